//! What follows from a loss that missing reports tell of: retransmission, and smaller windows (RFC 9260 section 7.2.4).
//!
//! An episode of losses cuts a window once. It is the association's; with concurrent multipath transfer each path has its
//! own, which ends when everything that was outstanding there when it began has been acknowledged.

use super::Profile;
use super::ack::Progress;
use super::association::Association;
use super::multipath::Cuc;
use super::path::Path;
use super::sender::Cause;
use super::sender::loss::{Cause as LossCause, Verdict};
use crate::congestion::{CongestionControl, Loss};
use crate::time::Instant;
use segue_wire::Tsn;

impl Association {
    /// Acts on what loss detection found.
    pub(super) fn recover(&mut self, now: Instant, verdict: &Verdict, progress: &mut Progress) {
        let by_path = self.multipath.is_some();
        if by_path {
            self.out.counters.multipath.missing_reports_withheld += verdict.withheld;
        }
        if verdict.lost.is_empty() {
            return;
        }
        for lost in &verdict.lost {
            let again = lost.cause == LossCause::RetransmissionMissing;
            self.out.counters.multipath.retransmissions_lost += u64::from(again);
            let Some((path, len)) = self.flight.lose_one(Cause::MissingReports, lost.tsn) else {
                continue;
            };
            self.credit.give_back(len);
            if let Some((id, path)) = path.and_then(|id| Some((id, self.paths.get_mut(id)?))) {
                progress.note_lost(id);
                path.share.on_lost(1);
            }
        }
        if by_path {
            self.recover_by_path(now, progress);
        } else {
            self.recover_as_one(now, progress);
        }
    }

    /// Rules 2 and 3 of section 7.2.4: the windows are cut once per loss episode, and one packet goes out whatever cwnd
    /// says. RFC 2960 knows no episode and cuts each time.
    fn recover_as_one(&mut self, now: Instant, progress: &Progress) {
        let rfc2960 = self.config.profile == Profile::Rfc2960;
        if self.recovery.is_on() && !rfc2960 {
            return;
        }
        for progress in progress.iter().filter(|p| p.lost) {
            if let Some(path) = self.paths.get_mut(progress.path) {
                path.window.on_loss(Loss {
                    now,
                    flightsize: self.flight.size_on(progress.path),
                    cut_already: false,
                });
            }
        }
        if !rfc2960 {
            self.recovery.begin(self.flight.next_tsn().previous());
        }
        self.recovery.force_one();
    }

    /// Each path that lost something is cut once per loss episode of its own, and one packet may go there whatever cwnd says.
    fn recover_by_path(&mut self, now: Instant, progress: &Progress) {
        let last_sent = self.flight.next_tsn().previous();
        for progress in progress.iter().filter(|p| p.lost) {
            let id = progress.path;
            let begun = |p: &Path| p.share.fast_recovery_exit.is_some();
            if self.paths.get(id).is_none_or(begun) {
                continue;
            }
            let coupled = self.coupled_ssthresh(id);
            let path = &mut self.paths[id];
            path.share.inter_loss.on_loss();
            match coupled {
                Some(ssthresh) => path.window.cut_to(ssthresh),
                None => path.window.on_loss(Loss {
                    now,
                    flightsize: self.flight.size_on(id),
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
        self.recovery.on_acknowledged(cumulative);
    }

    /// Ends the fast recovery of paths on which everything that was outstanding when it began has been acknowledged. Without
    /// CUC no path has an ack point of its own, and the association's has to do.
    fn leave_fast_recovery_by_path(&mut self, cumulative: Tsn) {
        let by_path = self.multipath.as_ref().is_some_and(|m| m.config.cuc != Cuc::Off);
        for i in self.paths.ids() {
            let Some(exit) = self.paths[i].share.fast_recovery_exit else {
                continue;
            };
            let over = if by_path {
                !self.flight.awaits_on(i, exit)
            } else {
                exit.at_or_before(cumulative)
            };
            if over {
                self.paths[i].share.fast_recovery_exit = None;
            }
        }
    }
}
