//! T3-rtx (RFC 9260 section 6.3.3).

use super::association::Association;
use super::path::PathId;
use crate::congestion::{CongestionControl, Loss};
use crate::time::Instant;

impl Association {
    /// T3-rtx of a path expired.
    ///
    /// E1 and E2 cut the window and double the RTO. E3: the earliest outstanding chunks, as many as fit one packet, go
    /// out at once, the rest is marked and follows as cwnd allows. All are marked here, and one packet is forced.
    pub(super) fn on_t3(&mut self, now: Instant, index: PathId) {
        self.out.counters.t3_expiries += 1;
        let id = index;
        let probe_answered = self.probe_was_answered(id);
        let coupled = self.coupled_ssthresh(id);
        let flightsize = self.flight.size_on(id);
        let path = &mut self.paths[id];
        if !probe_answered {
            path.share.inter_loss.on_loss();
            path.window.on_rto(Loss {
                now,
                flightsize,
                cut_already: false,
            });
            if let Some(ssthresh) = coupled {
                path.window.set_ssthresh(ssthresh);
            }
        }
        path.rtt.back_off();
        let (srtt, rto, destination) = (path.rtt.srtt(), path.rto(), path.destination);
        path.share.fast_recovery_exit = None;
        path.share.fast_retransmission_due = false;
        if !probe_answered {
            self.suspect_black_hole(id);
        }
        let spared = self.spared_from(now, srtt);
        let (left, chunks) = self.flight.expire(now, id, spared, rto);
        self.out.counters.multipath.chunks_spared += u64::from(chunks);
        self.paths[id].share.on_lost(left.chunks);
        self.credit.give_back(left.bytes);
        self.recovery.end();
        // section 6.1 rule A: a window probe that is answered but not taken is no error of the path
        if probe_answered {
            self.credit.await_answer();
        } else if !self.count_error(destination) {
            return;
        }
        self.recovery.force_more(self.flight.marked());
        self.open_burst();
        self.drop_retired_paths();
    }
}
