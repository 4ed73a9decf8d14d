//! Round trips where SACKs come back over several paths (paper 003, section III-A, third problem).
//!
//! A SACK over the fast path may acknowledge the chunk of the slow path that is being timed. The round trip is then one of
//! both paths, and too short for the slow one. It is refused if it would lower the estimate: one that is longer even so is
//! news of a queue that grows, and T3-rtx must know of that. Of several refused in a row the next is taken: a receiver that
//! sends all its SACKs over one path leaves nothing better.

use super::{Concurrent, MultipathCounters};
use crate::sctp::ids::PathId;
use crate::sctp::peer::Peer;
use crate::time::Duration;
use core::net::Ipv6Addr;

impl Concurrent {
    /// A SACK begins to be dealt with that came in a packet with these addresses.
    pub(in crate::sctp) fn begin_sack(&mut self, from: Ipv6Addr, to: Ipv6Addr, peer: &Peer) {
        let mut paths = peer.paths();
        let came_over =
            paths.find(|(_, path)| path.source().address == to && peer[path.destination()].address() == from);
        self.sack_path = came_over.map(|(id, _)| id);
        for share in self.shares.values_mut() {
            share.begin_sack();
        }
    }

    /// Whether the SACK at hand may end the round trip that is measured on `path`, of that length.
    pub(in crate::sctp) fn may_end_round_trip(
        &mut self,
        path: PathId,
        round_trip: Duration,
        peer: &Peer,
        counters: &mut MultipathCounters,
    ) -> bool {
        let Some(known) = peer.path(path) else {
            return false;
        };
        let own = self.sack_path == Some(path);
        counters.ambiguous_round_trips += u64::from(!own);
        let shorter = known.srtt().is_some_and(|srtt| round_trip < srtt);
        let is_doubtful = self.settings.own_rtt && !own && shorter;
        let refused = self.shares.open(path).refuses_round_trip(is_doubtful);
        counters.round_trips_refused += u64::from(refused);
        !refused
    }
}
