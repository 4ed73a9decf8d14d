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

use crate::congestion::CongestionControl;
use crate::sctp::association::Association;
use crate::sctp::path::PathId;
use crate::sctp::sender::{Cause, ChunkState};
use crate::sctp::transmit::Plan;
use crate::time::Instant;
use segue_wire::Tsn;

impl Association {
    /// What to send while a path has room and the peer's window is closed. It goes on the fastest that has room, whosever turn
    /// it is: as long as nothing new may be sent the scheduler would name the same path again and again.
    pub(in crate::sctp) fn plan_opportunistic(&mut self, now: Instant) -> Option<Plan> {
        if !self.multipath.as_ref().is_some_and(|m| m.config.opportunistic) {
            return None;
        }
        // these may go first, as packets of their own, and the policy would then have the chunk back on its path
        if self.receiver.sack_is_due() || self.partial.due {
            return None;
        }
        let (tsn, holder) = self.holding_up()?;
        let path = self.fastest_with_room(now)?;
        let (fast, slow) = (self.srtt_of(path), self.srtt_of(holder));
        if holder == path || fast >= slow {
            return None;
        }
        self.penalise(now, holder);
        // a chunk that is under way leaves its path's flight, to be sent again
        if let Some((_, len)) = self.flight.lose_one(Cause::Rescheduled, tsn) {
            self.credit.give_back(len);
        }
        self.out.counters.multipath.chunks_rescheduled += 1;
        self.recovery.force_more(u32::MAX);
        Some(Plan::Retransmit {
            tsn,
            path,
            forced: true,
        })
    }

    /// The chunk that the peer's cumulative TSN ack waits for, if it is under way and was not moved, with its path.
    fn holding_up(&self) -> Option<(Tsn, PathId)> {
        let base = self.flight.base();
        let first = self.flight.get(base)?;
        let waits = first.state() == ChunkState::Outstanding { rescheduled: false };
        Some((base, first.path()?)).filter(|_| waits)
    }

    /// What is taken for the smoothed round-trip time; where none was measured, the RTO.
    pub(in crate::sctp) fn srtt_of(&self, path: PathId) -> crate::time::Duration {
        let path = &self.paths[path];
        path.rtt.srtt().unwrap_or_else(|| path.rto())
    }

    fn penalise(&mut self, now: Instant, path: PathId) {
        let Some(state) = self.paths.get_mut(path) else {
            return;
        };
        let srtt = state.rtt.srtt().unwrap_or_else(|| state.rto());
        if state.share.penalised.is_some_and(|at| now.since(at) < srtt) {
            return;
        }
        state.share.penalised = Some(now);
        let half = state.window.cwnd() / 2;
        state.window.cut_to(half);
        self.out.counters.multipath.penalties += 1;
    }
}
