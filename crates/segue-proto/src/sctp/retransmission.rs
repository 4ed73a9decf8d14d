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
        let path = &mut self.paths[index];
        if !probe_answered {
            path.share.inter_loss.on_loss();
            path.window.on_rto(Loss {
                now,
                flightsize: path.flightsize,
                cut_already: false,
            });
            if let Some(ssthresh) = coupled {
                path.window.set_ssthresh(ssthresh);
            }
        }
        path.rtt.back_off();
        let srtt = path.rtt.srtt();
        path.clear_flight();
        let destination = path.destination;
        if !probe_answered {
            self.suspect_black_hole(index);
        }
        let share = &mut self.paths[index].share;
        share.fast_recovery_exit = None;
        share.fast_retransmission_due = false;
        share.pseudo.forget();
        let marked = self.outbound.marked;
        let spared = self.spared_from(now, srtt);
        let bytes = self
            .outbound
            .mark_where(|sent| sent.path == Some(id) && sent.transmission.at() < spared);
        self.paths[index].share.on_lost(self.outbound.marked - marked);
        self.resume_flight(now, id);
        self.peer_rwnd = self.peer_rwnd.saturating_add(bytes);
        self.fast_recovery_exit = None;
        // section 6.1 rule A: a window probe that is answered but not taken is no error of the path
        if probe_answered {
            self.window_probe.answered = false;
        } else if !self.count_error(destination) {
            return;
        }
        self.forced_retransmissions = (self.forced_retransmissions + 1).min(self.outbound.marked);
        self.open_burst();
        self.drop_retired_paths();
    }
}
