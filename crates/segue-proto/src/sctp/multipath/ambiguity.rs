//! What SACKs that come over several paths leave open (paper 003, section III-A, second and third problem).
//!
//! # SACKs with equal cumulative TSN ack
//! The receiver's SACKs go back over the paths that the data came by, and one may overtake another: first comes one with
//! more gap ack blocks, then one with fewer. By RFC 9260 section 6.2.1 the second means that the receiver reneged, and what
//! it leaves out would be outstanding again. Here it is taken for what it is: a receiver only adds to what it holds, so a
//! SACK whose blocks lie within the ones known, with the same cumulative TSN ack, is an old one. It changes nothing, its
//! window included. A receiver that really reneged is believed as soon as its cumulative TSN ack moves, which it does before
//! the chunk in question is next; that SACK is newer than all before it. Where there has never been more than one path
//! nothing is to be doubted, and the RFC's reading holds.
//!
//! # Round trips
//! A SACK over the fast path may acknowledge the chunk of the slow path that is being timed. The round trip is then one of
//! both paths, and too short for the slow one. It is refused if it would lower the estimate: one that is longer even so is
//! news of a queue that grows, and T3-rtx must know of that. Of several refused in a row the next is taken: a receiver that
//! sends all its SACKs over one path leaves nothing better.

use crate::sctp::ack::{Ranges, difference};
use crate::sctp::association::Association;
use crate::sctp::path::PathId;
use crate::time::Duration;
use segue_wire::Tsn;

/// Ambiguous round trips in a row after which one is taken.
const PATIENCE: u8 = 8;

impl Association {
    /// Whether the SACK was overtaken, and is to change nothing.
    pub(in crate::sctp) fn is_overtaken(&mut self, cumulative: Tsn, blocks: &Ranges) -> bool {
        let one_path = self.paths.has_one_place();
        if one_path || cumulative != self.flight.cumulative_tsn_ack() || self.flight.reported().is_empty() {
            return false;
        }
        let known: Ranges = self
            .flight
            .reported()
            .iter()
            .filter(|r| cumulative.before(r.0))
            .map(|&(start, end)| (start.distance_from(cumulative), end.distance_from(cumulative)))
            .collect();
        let stale = *blocks != known && difference(blocks, &known).is_empty();
        let Some(multipath) = &self.multipath else {
            return stale;
        };
        self.out.counters.multipath.stale_sacks += u64::from(stale);
        stale && multipath.config.ignore_stale_sacks
    }

    /// A SACK begins to be dealt with.
    pub(in crate::sctp) fn begin_sack_by_path(&mut self) {
        let Some(multipath) = &mut self.multipath else {
            return;
        };
        let (from, to) = multipath.packet;
        let destinations = &self.destinations;
        let came_over = self.paths.iter().find(|(_, p)| {
            let d = &destinations[p.destination];
            p.source.address == to && d.address == from
        });
        multipath.sack_path = came_over.map(|(id, _)| id);
        for path in self.paths.values_mut() {
            path.share.fast_retransmission_due = false;
        }
    }

    /// Whether the SACK at hand may end the round trip that is measured on `path`, of that length.
    pub(in crate::sctp) fn may_end_round_trip(&mut self, path: PathId, round_trip: Duration) -> bool {
        let Some(multipath) = &self.multipath else {
            return true;
        };
        let Some(state) = self.paths.get_mut(path) else {
            return false;
        };
        let own = multipath.sack_path == Some(path);
        if !own {
            self.out.counters.multipath.ambiguous_round_trips += 1;
        }
        let longer = state.rtt.srtt().is_none_or(|srtt| round_trip >= srtt);
        let patient = state.share.refused_in_a_row < PATIENCE;
        if own || longer || !patient || !multipath.config.own_rtt {
            state.share.refused_in_a_row = 0;
            return true;
        }
        state.share.refused_in_a_row += 1;
        self.out.counters.multipath.round_trips_refused += 1;
        false
    }
}
