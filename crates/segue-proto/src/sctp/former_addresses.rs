//! Addresses that a peer may send from in good faith although this end does not have them as its: what it has deleted,
//! whose last packets the deletion has overtaken (RFC 5061 section 5.3), and what this end did not take.

use super::address_rules::may_be_of_peer;
use super::association::Association;
use super::path::MAX_DESTINATIONS;
use core::net::Ipv6Addr;
use std::collections::VecDeque;

/// The addresses that the peer deleted last.
#[derive(Debug, Default)]
pub(super) struct FormerAddresses(VecDeque<Ipv6Addr>);

/// Most of them kept: as many as a peer has at once.
const MOST: usize = MAX_DESTINATIONS;

impl FormerAddresses {
    pub(super) fn add(&mut self, address: Ipv6Addr) {
        self.0.retain(|&a| a != address);
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(address);
    }
}

impl Association {
    /// Whether the peer may take `address` for one of the association's. Of an address that it named and that cannot be
    /// its own nothing is kept, and neither is of those that were too many.
    pub(super) fn may_come_from(&self, address: Ipv6Addr) -> bool {
        let own = |address| self.local.iter().any(|l| l.address.address == address);
        self.former_addresses.0.contains(&address)
            || !may_be_of_peer(address, self.primary_path(), own)
            || self.destination_count() >= MAX_DESTINATIONS
    }
}
