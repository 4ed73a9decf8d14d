//! Opportunistic retransmission with penalisation (Raiciu, Paasch, Barré, Ford, Honda, Duchene, Bonaventure and Handley 2012;
//! for SCTP, chunk rescheduling, Dreibholz, Becke, Pulinthanath and Rathgeb 2010).
//!
//! A path has room and data waits, but the peer's window is full of what waits for a chunk that is still under way on a slower
//! path. That chunk goes out again on the free path at once, before it counts as lost; and the path that holds
//! everybody up is penalised: cwnd and ssthresh are halved, once per round trip at most, so that it will hold less.
//!
//! A chunk is moved from a slower path to a faster one. It may be a retransmission: where a policy puts that at the end of a
//! slow path's queue, it holds everybody up like any other. But what was moved is not moved again before it is lost (by
//! missing reports or T3-rtx): which path is the faster one changes, and the chunk would go to and fro. So there are no
//! more moves than transmissions of other kinds. The copy that is still under way leaves the flight of its path: SCTP knows one
//! path of a chunk.

use super::Concurrent;
use crate::sctp::ids::PathId;
use crate::sctp::sender::chunk::{Cause, ChunkState};
use crate::sctp::sender::plan::Plan;
use crate::sctp::sender::strategy::lent::{Lent, View};
use segue_wire::Tsn;

impl Concurrent {
    /// What to send while a path has room and the peer's window is closed. It goes on the fastest that has room, whosever turn
    /// it is: as long as nothing new may be sent the scheduler would name the same path again and again.
    pub(super) fn plan_opportunistic(&mut self, lent: &mut Lent<'_>) -> Option<Plan> {
        // what goes first may go as a packet of its own, and the policy would then have the chunk back on its path
        if !self.settings.opportunistic || lent.something_goes_first {
            return None;
        }
        let (tsn, holder) = holding_up(lent.view())?;
        if lent.is_given_up(tsn) {
            return None;
        }
        let path = self.fastest_with_room(lent)?;
        let slow = lent.peer[holder].srtt_or_rto();
        if holder == path || lent.peer[path].srtt_or_rto() >= slow {
            return None;
        }
        if self.shares.open(holder).penalise(lent.now, slow) {
            lent.peer.halve_window(holder);
            lent.counters.penalties += 1;
        }
        // a chunk that is under way leaves its path's flight, to be sent again
        lent.flight.lose_one(Cause::Rescheduled, tsn);
        lent.counters.chunks_rescheduled += 1;
        lent.recovery.force_more(u32::MAX);
        let forced = true;
        Some(Plan::Retransmit { tsn, path, forced })
    }
}

/// The chunk that the peer's cumulative TSN ack waits for, if it is under way and was not moved, with its path.
fn holding_up(view: View<'_>) -> Option<(Tsn, PathId)> {
    let base = view.flight.base();
    let first = view.flight.get(base)?;
    let waits = first.state() == ChunkState::Outstanding { rescheduled: false };
    Some((base, first.path()?)).filter(|_| waits)
}
