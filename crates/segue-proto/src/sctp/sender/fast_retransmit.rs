//! What follows from a loss that missing reports tell of: retransmission, and smaller windows (RFC 9260 section 7.2.4).
//!
//! An episode of losses cuts a window once: which episode, and which window, is the [`Strategy`](super::strategy::Strategy)'s.

use super::Sender;
use super::chunk::Cause;
use super::context::Context;
use super::loss_detection::Verdict;
use super::lost::lose_one;
use super::progress::Progress;
use super::strategy::lent::Lent;

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
            let (flight, credit) = (&mut self.flight, &mut self.credit);
            let Some(path) = lose_one(flight, credit, Cause::MissingReports, lost.tsn) else {
                continue;
            };
            if let Some(path) = path.filter(|path| cx.peer.path(*path).is_some()) {
                progress.note_lost(path);
                self.strategy.note_lost(path, 1);
            }
        }
        let mut lent = Lent {
            now: cx.now,
            config: cx.config,
            peer: cx.peer,
            queue: &self.queue,
            flight: &mut self.flight,
            credit: &mut self.credit,
            recovery: &mut self.recovery,
            counters: &mut cx.out.counters.multipath,
            may_forward_tsn: cx.may_forward_tsn,
            something_goes_first: false,
        };
        self.strategy.recover(&mut lent, progress);
    }
}
