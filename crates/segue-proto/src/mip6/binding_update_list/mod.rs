//! The binding update list of a mobile node (RFC 6275 section 11.1): what it told its home agent and correspondents, and
//! what it waits for.

mod home;
mod pace;
mod peer;
mod update;

#[cfg(test)]
pub(super) use pace::{Retransmission, UpdateRate};

pub(super) use peer::{Expiry, Peer, Tests, Use};
pub(super) use update::{Due, PendingUpdate, Registered};

use crate::time::Instant;
use core::net::Ipv6Addr;
use home::HomeEntry;
use std::collections::BTreeMap;

/// Everything a mobile node told.
#[derive(Debug, Default)]
pub(super) struct BindingUpdateList {
    pub(super) home: HomeEntry,
    pub(super) peers: BTreeMap<Ipv6Addr, Peer>,
}

impl BindingUpdateList {
    /// The entry of `peer`, made if there is room for it: one that is of no use any more makes way.
    pub(super) fn peer(&mut self, now: Instant, peer: Ipv6Addr) -> Option<&mut Peer> {
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
        let peers = self.peers.values().filter_map(Peer::poll_timeout);
        self.home.poll_timeout().into_iter().chain(peers).min()
    }
}

/// Correspondents kept in mind.
const MAX_PEERS: usize = 64;
