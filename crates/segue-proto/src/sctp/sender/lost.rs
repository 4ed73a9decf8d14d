//! What is under way is given up on: by cause, what that does to the flight, to the peer's window, and to our own.
//!
//! | cause | peer's window | cwnd | fast recovery | goes again |
//! |---|---|---|---|---|
//! | missing reports | given back | cut once an episode | begins | one packet whatever cwnd says |
//! | timeout | given back | one segment; ssthresh halved | ends | one packet whatever cwnd says |
//! | the path is gone | given back | as it was | ends, if the address was ours | as cwnd allows; one packet at once, with others in use |
//! | too big | given back | as it was | goes on | as cwnd allows |
//! | rescheduled | given back | that of its path halved, once a round trip | goes on | at once, on the faster path |
//! | a probe is refused | given back | as it was | goes on | as cwnd allows |
//! | abandoned | given back | as it was | goes on | never |
//!
//! The peer's window is here; cwnd and fast recovery are in [`fast_retransmit`](super::fast_retransmit), [`timeout`](super::timeout) and
//! the strategy's; what goes again, and when, is said where the cause is found.
//!
//! # Paths that are left
//! An address of either end is gone, or the peer wants nothing there.
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
use super::credit::Credit;
use super::flight::{Flight, Left};
use crate::sctp::MultipathCounters;
use crate::sctp::ids::PathId;
use crate::time::{Duration, Instant};
use segue_wire::Tsn;

/// Everything outstanding for which `which` holds is to be sent again.
pub(in crate::sctp) fn lose(
    flight: &mut Flight,
    credit: &mut Credit,
    cause: Cause,
    which: impl FnMut(&Sent) -> bool,
) -> Left {
    let left = flight.lose(cause, which);
    credit.give_back(left.bytes());
    left
}

/// One chunk is to be sent again, if it is outstanding; returns whether it was, and the path that it was on.
pub(in crate::sctp) fn lose_one(
    flight: &mut Flight,
    credit: &mut Credit,
    cause: Cause,
    tsn: Tsn,
) -> Option<Option<PathId>> {
    let (path, len) = flight.lose_one(cause, tsn)?;
    credit.give_back(len);
    Some(path)
}

/// T3-rtx of a path expired: see [`Flight::expire`].
pub(super) fn expire(
    flight: &mut Flight,
    credit: &mut Credit,
    now: Instant,
    path: PathId,
    (spared, rto): (Instant, Duration),
) -> (Left, u32) {
    let (left, chunks) = flight.expire(now, path, spared, rto);
    credit.give_back(left.bytes());
    (left, chunks)
}

/// One chunk is never sent again.
pub(super) fn abandon(flight: &mut Flight, credit: &mut Credit, tsn: Tsn) {
    if let Some(len) = flight.abandon(tsn) {
        credit.give_back(len);
    }
}

/// Paths are left.
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
        self.flight.follow_new_data(|path| paths.contains(&path));
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
