//! Which way packets to a peer go, and where it called this host.

use super::local::LocatorState;
use crate::contract::InterfaceId;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::ilnp::Locator;

/// The way of a packet, which is that of the next as well while nothing changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// Of this host's locators: with another, it is worked out anew.
    pub generation: u64,
    /// The lifetime of the peer's locator is over then.
    pub until: Option<Instant>,
    pub interface: InterfaceId,
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    /// Position of the peer's locator.
    pub index: usize,
}

/// Where a peer called this host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CalledAt {
    /// At a locator that a hard handoff had not given up. If one does later, nothing goes from there any more.
    Held(Locator),
    /// At one that a hard handoff had given up by then: the caller knows no other, and takes answers from nowhere else.
    Left(Locator),
}

impl CalledAt {
    /// A call comes at a locator of this host's that is in `state`.
    pub fn new(locator: Locator, state: LocatorState) -> Self {
        match state {
            LocatorState::Withdrawn => Self::Left(locator),
            _ => Self::Held(locator),
        }
    }

    pub const fn locator(self) -> Locator {
        let (Self::Held(locator) | Self::Left(locator)) = self;
        locator
    }

    /// Whether it is answered from there, now that the locator is in `state`.
    pub fn answers(self, state: LocatorState) -> bool {
        state != LocatorState::Withdrawn || matches!(self, Self::Left(_))
    }
}
