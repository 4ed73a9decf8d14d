//! Addresses that a peer may send from in good faith although this end does not have them as its: what it has deleted,
//! whose last packets the deletion has overtaken (RFC 5061 section 5.3), and what it named in its INIT or INIT ACK and this
//! end did not take.
//!
//! What comes from one of them and is for no association is not answered, whatever its tag: an ABORT that reflects the right
//! one would end the association, and if wrong ones alone were answered, that would tell which is right.

use crate::sctp::ids::MAX_DESTINATIONS;
use core::net::Ipv6Addr;
use std::collections::VecDeque;

/// The addresses that the peer deleted last, or named and cannot have.
#[derive(Debug, Default)]
pub(super) struct FormerAddresses(VecDeque<Ipv6Addr>);

/// Most of them kept: as many as a peer has at once. What was forgotten is answered as anybody else's is.
const MOST: usize = MAX_DESTINATIONS;

/// Most kept of those that a peer names and that are not taken: a cookie carries them, and it has to fit a packet.
pub(in crate::sctp) const MOST_NOT_TAKEN: usize = 16;

impl FormerAddresses {
    pub(super) fn add(&mut self, address: Ipv6Addr) {
        self.0.retain(|&a| a != address);
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(address);
    }

    /// All, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        self.0.iter().copied()
    }
}
