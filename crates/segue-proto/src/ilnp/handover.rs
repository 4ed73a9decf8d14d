//! A handoff of this host, as long as there are peers who have to acknowledge it.

use crate::shim::ShimEvent;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::ilnp::Locator;

/// A handoff whose updates are not all acknowledged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Handover {
    to: Ipv6Addr,
    begun: Instant,
    /// The last acknowledgement.
    acknowledged: Option<Instant>,
}

impl Handover {
    pub fn begin(now: Instant, to: Ipv6Addr) -> Self {
        Self {
            to,
            begun: now,
            acknowledged: None,
        }
    }

    /// Whether this is where it leads.
    pub fn is_to(&self, locator: Locator) -> bool {
        Locator::of(self.to) == locator
    }

    /// A peer has acknowledged it.
    pub fn on_acknowledgement(&mut self, now: Instant) {
        self.acknowledged = Some(now);
    }

    /// Nobody is left who has to. If nobody ever did, it just ends.
    pub fn end(self) -> Option<ShimEvent> {
        self.acknowledged.map(|acknowledged| ShimEvent::HandoffDone {
            to: self.to,
            delay: acknowledged.since(self.begun),
        })
    }
}
