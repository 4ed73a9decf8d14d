//! The binding update list of a mobile node (RFC 6275 section 11.1): what it told its home agent and correspondents, and
//! what it waits for.

mod home;
mod pace;
mod peer;
mod update;

#[cfg(test)]
pub(super) use pace::{Retransmission, UpdateRate};

pub(super) use home::HomeEntry;
pub(super) use peer::{Expiry, Peer, Tests, Use};
pub(super) use update::{Due, PendingUpdate, Registered};

use crate::time::Instant;
use core::net::Ipv6Addr;
use std::collections::BTreeMap;

/// What correspondents were told, by address.
#[derive(Debug, Default)]
pub(super) struct Peers {
    peers: BTreeMap<Ipv6Addr, Peer>,
}

impl Peers {
    /// The entry of `peer`.
    pub(super) fn get(&self, peer: Ipv6Addr) -> Option<&Peer> {
        self.peers.get(&peer)
    }

    /// The entry of `peer`, to be changed.
    pub(super) fn get_mut(&mut self, peer: Ipv6Addr) -> Option<&mut Peer> {
        self.peers.get_mut(&peer)
    }

    /// All entries.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Ipv6Addr, &Peer)> {
        self.peers.iter().map(|(address, peer)| (*address, peer))
    }

    /// All entries, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Ipv6Addr, &mut Peer)> {
        self.peers.iter_mut().map(|(address, peer)| (*address, peer))
    }

    /// The entry of `peer`, made if there is room for it: one that is of no use any more makes way.
    pub(super) fn entry(&mut self, now: Instant, peer: Ipv6Addr) -> Option<&mut Peer> {
        if !self.peers.contains_key(&peer) && self.peers.len() >= MAX_PEERS {
            let idle = self
                .peers
                .iter()
                .filter(|(_, p)| !p.is_busy() && p.registered().is_none())
                .min_by_key(|(_, p)| p.last_used())
                .map(|(address, _)| *address)?;
            self.peers.remove(&idle);
        }
        Some(self.peers.entry(peer).or_insert_with(|| Peer::new(now)))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.peers.values().filter_map(Peer::poll_timeout).min()
    }
}

/// Correspondents kept in mind.
const MAX_PEERS: usize = 64;
