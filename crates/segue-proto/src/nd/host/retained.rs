//! Addresses kept over the loss of their link, to be used again on coming back to it while they are valid.
//!
//! A host that is connected to a link again hears from a router whether it is the one that it was on before: the prefix of
//! a retained address is among those advertised. Then the address is usable at once. Duplicate address detection is not
//! repeated: the address was unique on that link, and a node that took it meanwhile is one that took the same interface
//! identifier (compare RFC 6059, whose host asks its former routers by unicast instead of waiting for an advertisement).
//! Lifetimes go on while the link is away (RFC 4862 section 5.5.4).

use super::host::{AddressState, Entry, HostNd, NdEvent};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::nd::PrefixInformation;

/// Most addresses kept, the oldest are given up: as many links can a host come back to.
const MAX_RETAINED: usize = 16;

impl HostNd {
    /// The link is gone: keeps what may be used again.
    pub(super) fn retain(&mut self, entry: Entry) {
        let certain = matches!(entry.state, AddressState::Preferred | AddressState::Deprecated);
        if !self.config.retain || !certain || entry.address.is_unicast_link_local() {
            return;
        }
        if self.retained.len() >= MAX_RETAINED {
            let given_up = self.retained.remove(0);
            self.events.push_back(NdEvent::AddressExpired(given_up.address));
        }
        self.retained.push(entry);
    }

    /// A router of this link advertises `prefix`: addresses of it that were kept are usable again.
    pub(super) fn use_retained(&mut self, now: Instant, prefix: &PrefixInformation) {
        self.expire_retained(now);
        let bits = u32::from(prefix.prefix_length.min(128));
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        let on_link = |a: Ipv6Addr| (a.to_bits() ^ prefix.prefix.to_bits()) & mask == 0;
        if prefix.valid_lifetime_s == 0 {
            return;
        }
        while let Some(at) = self.retained.iter().position(|e| on_link(e.address)) {
            let entry = self.retained.remove(at);
            if !self.entries.iter().any(|e| e.address == entry.address) {
                self.events.push_back(NdEvent::AddressReady(entry.address));
                self.entries.push(entry);
            }
        }
    }

    /// Addresses that were kept and are no longer valid.
    pub(super) fn expire_retained(&mut self, now: Instant) {
        let events = &mut self.events;
        self.retained.retain(|entry| {
            let over = entry.valid_until.is_some_and(|t| t <= now);
            if over {
                events.push_back(NdEvent::AddressExpired(entry.address));
            }
            !over
        });
    }

    /// The addresses kept for links that the interface is not on now.
    pub fn retained(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.retained.iter().map(|e| e.address)
    }
}
