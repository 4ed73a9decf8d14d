//! What a sender remembers of the networks that its peers were in, and what it does with that when one of them moves:
//! remedies for the time that TCP takes to adapt (Cottingham and Vidales, section 7), and their modern form.
//!
//! A network is known by the prefix of the care-of address. The shim tells of a move ([`Endpoint::network_changed`](super::Endpoint::network_changed)); without
//! a shim that knows, nothing is done.
//!
//! - *RTT injection*: "a guessed value for the new interface's RTT [...] the last RTT seen on that particular type of
//!   interface, possibly with a small fraction added on for safety".
//! - *Careful resume* (draft-ietf-tsvwg-careful-resume): besides, nothing that belongs to the other network is kept (no
//!   undo, at most an initial window, ssthresh at what this one carried), and the window goes at once to half of what the network was
//!   seen to carry, as soon as the first acknowledgement over it shows that it is as far away as remembered; what was sent on
//!   credit is then validated, or the window retreats.

use crate::time::Duration;
use core::net::Ipv6Addr;
use std::collections::BTreeMap;

/// A network as it was when it was last used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remembered {
    /// SRTT.
    pub srtt: Duration,
    /// What the timeout was longer than SRTT.
    pub variation: Duration,
    /// Shortest round trip: saved_rtt.
    pub shortest: Duration,
    /// Bytes that it carries in the shortest round trip, by the rate of the last round without loss: saved_cwnd.
    pub capacity: Option<u32>,
}

/// Networks by their prefixes, and where each peer is.
#[derive(Debug, Default)]
pub(super) struct Networks {
    known: BTreeMap<u64, Remembered>,
    /// The network of each peer that has moved.
    peers: BTreeMap<Ipv6Addr, u64>,
}

/// A peer has gone from one network to another, by their prefixes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Move {
    pub left: u64,
    pub entered: u64,
}

impl Networks {
    /// Packets to `peer` go to an address with this prefix from now on. `None` if they did before.
    pub fn on_move(&mut self, peer: Ipv6Addr, entered: u64) -> Option<Move> {
        let at_home = (peer.to_bits() >> 64) as u64;
        let left = self.peers.insert(peer, entered).unwrap_or(at_home);
        (left != entered).then_some(Move { left, entered })
    }

    /// What is remembered of the network with this prefix.
    pub fn remembered(&self, prefix: u64) -> Option<Remembered> {
        self.known.get(&prefix).copied()
    }

    /// The network with this prefix was so when it was left.
    pub fn remember(&mut self, prefix: u64, seen: Remembered) {
        self.known.insert(prefix, seen);
    }
}
