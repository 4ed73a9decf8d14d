//! An episode of losses cuts a window once (RFC 9260 section 7.2.4). With concurrent multipath transfer each path has its own,
//! which ends when everything that was outstanding there when it began has been acknowledged.

use super::{Concurrent, Cuc};
use crate::sctp::sender::context::Context;
use crate::sctp::sender::flight::Flight;
use crate::sctp::sender::progress::{PathProgress, Progress};
use crate::sctp::sender::strategy::lent::View;
use segue_wire::Tsn;

impl Concurrent {
    /// Each path that lost something is cut once per loss episode of its own, and one packet may go there whatever cwnd says.
    pub(in crate::sctp) fn recover(&mut self, cx: &mut Context<'_>, flight: &Flight, progress: &Progress) {
        let last_sent = flight.next_tsn().previous();
        for progress in progress.iter().filter(|p| p.has_lost()) {
            let path = progress.path();
            if self.share(path).is_in_fast_recovery() {
                continue;
            }
            let coupled = self.coupled_ssthresh(path, cx.peer);
            let loss = flight.loss_on(cx.now, path);
            cx.peer.on_loss(path, loss, coupled);
            self.shares.open(path).begin_recovery(last_sent);
        }
    }

    /// Ends the fast recovery of paths on which everything that was outstanding when it began has been acknowledged. Without
    /// CUC no path has an ack point of its own, and the association's has to do.
    pub(in crate::sctp) fn leave_fast_recovery(&mut self, view: View<'_>, cumulative: Tsn) {
        let by_path = self.settings.cuc != Cuc::Off;
        for (path, share) in self.shares.iter_mut() {
            share.leave_recovery(|exit| {
                if by_path {
                    !view.flight.awaits_on(path, exit)
                } else {
                    exit.at_or_before(cumulative)
                }
            });
        }
    }

    /// Something on the path of `progress` is newly acknowledged. For the growth of cwnd: whether its ack point advanced, and
    /// whether it is in fast recovery.
    pub(in crate::sctp) fn on_ack(
        &mut self,
        progress: &PathProgress,
        cumulative_advanced: bool,
    ) -> (bool, bool) {
        let cuc = self.settings.cuc;
        let share = self.shares.open(progress.path());
        share.on_ack(progress.acked_bytes());
        share.window_state(cuc, cumulative_advanced, progress.advances_pseudo())
    }
}
