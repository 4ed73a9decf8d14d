//! Paths are left: an address of either end is gone, or the peer wants nothing there.
//!
//! What was outstanding there is to be sent again elsewhere at once, with no penalty to another path's window (RFC 5061
//! section 5.3): no answer can come back, and that is no sign of congestion.
//!
//! # While others go on
//! With concurrent multipath transfer the mobile host has left the overlap of two networks (paper 003, section II). The paper
//! lists three things to do when an address is deleted or deactivated. *Quit CMT mode*: nothing new is scheduled there, since
//! the destination is no longer usable. *Handle retransmissions of packets that were in flight on the link that just went
//! down*: they are marked at once, without waiting for missing reports or T3-rtx, and go before new data; the first goes out
//! whatever cwnd says, for the receiver's buffer waits for it. *Congestion adjustments on the current path*: the loss was not
//! its own, so its cwnd and ssthresh stay; chunks that move begin without missing reports, and the pseudo-cumulative acks are
//! looked for anew, since what they waited for may have moved.

use super::Sender;
use super::chunk::{Cause, Sent};
use super::lost::lose;
use crate::sctp::MultipathCounters;
use crate::sctp::ids::PathId;

impl Sender {
    /// What is outstanding on `paths` is to be sent again elsewhere; returns how many chunks that is.
    pub(in crate::sctp) fn leave_paths(&mut self, paths: &[PathId]) -> u32 {
        let there = |sent: &Sent| sent.path().is_some_and(|path| paths.contains(&path));
        let left = lose(&mut self.flight, &mut self.credit, Cause::PathGone, there);
        left.chunks()
    }

    /// The same, and wherever retransmissions go as a rule, these follow the new data.
    pub(in crate::sctp) fn follow_new_data_from(&mut self, paths: &[PathId]) {
        self.leave_paths(paths);
        self.flight.leave_paths(|path| paths.contains(&path));
    }

    /// An address of ours is gone with its paths: the route of the retransmissions is another one, whatever the one before was
    /// guilty of.
    pub(in crate::sctp) fn leave_source(&mut self, paths: &[PathId]) {
        self.leave_paths(paths);
        self.recovery.end();
    }

    /// A destination was left, and `moved` chunks with it.
    pub(in crate::sctp) fn quit_destination(&mut self, moved: u32, counters: &mut MultipathCounters) {
        if !self.strategy.is_concurrent() {
            return;
        }
        counters.paths_left += 1;
        counters.chunks_moved += u64::from(moved);
        self.flight.forget_pseudo_cumulative_acks();
        if moved > 0 {
            self.recovery.force_any();
        }
    }

    /// Packets on a path hold `room` bytes of chunks from now on: what is outstanding there and did not fit is to be sent again.
    /// It was not lost to congestion, and T3-rtx need not tell. Returns whether there was any.
    pub(in crate::sctp) fn repeat_what_was_too_big(&mut self, path: PathId, room: u32) -> bool {
        let did_not_fit = |sent: &Sent| sent.path() == Some(path) && sent.size() > room;
        let left = lose(&mut self.flight, &mut self.credit, Cause::TooBig, did_not_fit);
        left.chunks() > 0
    }

    /// A path that is empty may begin anew: whether it is, and if so what was known of it is forgotten.
    pub(in crate::sctp) fn forget_empty_path(&mut self, path: PathId) -> bool {
        let is_empty = self.flight.size_on(path) == 0;
        if is_empty {
            self.flight.forget_round_trip(path);
            self.strategy.forget_path(path);
        }
        is_empty
    }
}
