//! What follows from a loss that missing reports tell of: retransmission, and smaller windows (RFC 9260 section 7.2.4).
//!
//! An episode of losses cuts a window once: which episode, and which window, is the [`Strategy`](super::strategy::Strategy)'s.

use super::Sender;
use super::chunk::Cause;
use super::context::Context;
use super::loss_detection::Verdict;
use super::progress::Progress;

impl Sender {
    /// Acts on what loss detection found.
    pub(super) fn recover(&mut self, cx: &mut Context<'_>, verdict: &Verdict, progress: &mut Progress) {
        let counters = &mut cx.out.counters.multipath;
        if self.strategy.is_concurrent() {
            counters.missing_reports_withheld += verdict.withheld;
        }
        if verdict.lost.is_empty() {
            return;
        }
        for lost in &verdict.lost {
            counters.retransmissions_lost += u64::from(lost.again);
            let Some(path) = self.flight.lose_one(Cause::MissingReports, lost.tsn) else {
                continue;
            };
            if let Some(path) = path {
                progress.note_lost(path);
                self.strategy.note_lost(path, 1);
            }
        }
        self.strategy
            .recover(cx, &self.flight, &mut self.recovery, progress);
    }
}
