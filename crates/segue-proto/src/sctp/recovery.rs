//! What follows from a loss that missing reports tell of: retransmission, and smaller windows (RFC 9260 section 7.2.4).
//!
//! An episode of losses cuts a window once. It is the association's; with concurrent multipath transfer each path has its
//! own, which ends when everything that was outstanding there when it began has been acknowledged.

use super::Profile;
use super::association::Association;
use super::loss::{Cause, Verdict};
use super::outbound::ChunkState;
use crate::congestion::{CongestionControl, Loss};
use crate::time::Instant;
use segue_wire::Tsn;

impl Association {
    /// Acts on what loss detection found.
    pub(super) fn recover(&mut self, now: Instant, verdict: &Verdict) {
        let by_path = self.multipath.is_some();
        if by_path {
            self.out.counters.multipath.missing_reports_withheld += verdict.withheld;
        }
        if verdict.lost.is_empty() {
            return;
        }
        let cuc = self.cuc();
        for lost in &verdict.lost {
            let again = lost.cause == Cause::RetransmissionMissing;
            self.out.counters.multipath.retransmissions_lost += u64::from(again);
            let Some(sent) = self.outbound.get_mut(lost.tsn) else {
                continue;
            };
            sent.fast_marked = true;
            let (path, len) = (sent.path, sent.len());
            self.mark_lost(lost.tsn, len);
            if let Some(path) = path.and_then(|id| self.paths.get_mut(id)) {
                path.share.on_lost(1);
                if let Some(version) = cuc {
                    path.share.pseudo.on_lost(version);
                }
            }
        }
        if by_path {
            self.recover_by_path(now);
        } else {
            self.recover_as_one(now);
        }
    }

    pub(super) fn mark_lost(&mut self, tsn: Tsn, len: u32) {
        let Some((_, path, size)) = self.outbound.set_state(tsn, ChunkState::Marked) else {
            return;
        };
        self.peer_rwnd = self.peer_rwnd.saturating_add(len);
        if let Some(path) = path.and_then(|id| self.paths.get_mut(id)) {
            path.flightsize -= size;
            path.lost = true;
            path.earliest_acked |= path.earliest == tsn;
            if path.timed.is_some_and(|t| t.0 == tsn) {
                path.timed = None;
            }
        }
    }

    /// Rules 2 and 3 of section 7.2.4: the windows are cut once per loss episode, and one packet goes out whatever cwnd
    /// says. RFC 2960 knows no episode and cuts each time.
    fn recover_as_one(&mut self, now: Instant) {
        let rfc2960 = self.config.profile == Profile::Rfc2960;
        if self.fast_recovery_exit.is_some() && !rfc2960 {
            return;
        }
        for path in self.paths.values_mut().filter(|p| p.lost) {
            path.window.on_loss(Loss {
                now,
                flightsize: path.flightsize,
                cut_already: false,
            });
        }
        if !rfc2960 {
            self.fast_recovery_exit = Some(self.outbound.next_tsn().previous());
        }
        self.forced_retransmissions = 1;
    }

    /// Each path that lost something is cut once per loss episode of its own, and one packet may go there whatever cwnd says.
    fn recover_by_path(&mut self, now: Instant) {
        let last_sent = self.outbound.next_tsn().previous();
        for i in self.paths.ids() {
            let path = &self.paths[i];
            if !path.lost || path.share.fast_recovery_exit.is_some() {
                continue;
            }
            let coupled = self.coupled_ssthresh(i);
            let path = &mut self.paths[i];
            path.share.inter_loss.on_loss();
            match coupled {
                Some(ssthresh) => path.window.cut_to(ssthresh),
                None => path.window.on_loss(Loss {
                    now,
                    flightsize: path.flightsize,
                    cut_already: false,
                }),
            }
            path.share.fast_recovery_exit = Some(last_sent);
            path.share.fast_retransmission_due = true;
        }
    }

    /// Ends the fast recovery of what a SACK with this cumulative TSN ack has made good.
    pub(super) fn leave_fast_recovery(&mut self, cumulative: Tsn) {
        if self.multipath.is_some() {
            self.leave_fast_recovery_by_path(cumulative);
        }
        if self
            .fast_recovery_exit
            .is_some_and(|exit| exit.at_or_before(cumulative))
        {
            self.fast_recovery_exit = None;
        }
    }

    /// Ends the fast recovery of paths on which everything that was outstanding when it began has been acknowledged. Without
    /// CUC no path has an ack point of its own, and the association's has to do.
    fn leave_fast_recovery_by_path(&mut self, cumulative: Tsn) {
        let by_path = self.cuc().is_some();
        for i in self.paths.ids() {
            let Some(exit) = self.paths[i].share.fast_recovery_exit else {
                continue;
            };
            let over = if by_path {
                let path = i;
                let base = self.outbound.base;
                let reach = (exit.distance_from(base) as usize).saturating_add(1);
                let waits = |state| matches!(state, ChunkState::Outstanding | ChunkState::Marked);
                let mut before = self.outbound.sent.iter().take(reach);
                exit.before(base) || !before.any(|s| s.path == Some(path) && waits(s.state))
            } else {
                exit.at_or_before(cumulative)
            };
            if over {
                self.paths[i].share.fast_recovery_exit = None;
            }
        }
    }
}
