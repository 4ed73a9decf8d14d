//! What is under way is given up on: by cause, what that does to the flight, to the peer's window, and to our own.
//!
//! | cause | peer's window | cwnd | fast recovery | goes again |
//! |---|---|---|---|---|
//! | missing reports | given back | cut once an episode | begins | one packet whatever cwnd says |
//! | timeout | given back | one segment; ssthresh halved | ends | one packet whatever cwnd says |
//! | the path is gone | given back | as it was | ends, if the address was ours | as cwnd allows; one packet at once, with others in use |
//! | too big | given back | as it was | goes on | as cwnd allows |
//! | rescheduled | given back | that of its path halved, once a round trip | goes on | at once, on the faster path |
//! | the receiver reneged, and the path was left | as the SACK says | as it was | goes on | as cwnd allows |
//! | a probe is refused | given back | as it was | goes on | as cwnd allows |
//! | abandoned | given back | as it was | goes on | never |
//!
//! The peer's window is here; cwnd and fast recovery are in [`fast_retransmit`](crate::sctp::sender::fast_retransmit), [`timeout`](crate::sctp::sender::timeout) and
//! the strategy's; what goes again, and when, is said where the cause is found.
//!
//! # Paths that are left
//! An address of either end is gone, or the peer wants nothing there.
//!
//! What was outstanding there is to be sent again elsewhere, as soon as cwnd there allows, with no penalty to another path's window (RFC 5061
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

use super::{Flight, InFlight};
use crate::sctp::MultipathCounters;
use crate::sctp::ids::PathId;
use crate::sctp::sender::Sender;
use crate::sctp::sender::book::Book;
use crate::sctp::sender::chunk::{Cause, ChunkState, Sent, Transmission};
use crate::time::{Duration, Instant};
use segue_wire::Tsn;

/// A chunk is to be sent again.
impl Flight {
    /// Everything outstanding for which `which` holds is to be sent again; returns how many chunks that is.
    pub(in crate::sctp) fn lose(&mut self, cause: Cause, mut which: impl FnMut(&Sent) -> bool) -> u32 {
        let mut lost = InFlight::default();
        let mut first = None;
        for (i, sent) in self.chunks.iter_mut().enumerate() {
            if !(sent.is_outstanding() && which(sent)) {
                continue;
            }
            sent.mark(cause);
            lost.count(sent.len());
            first = first.or(Some(i));
            let tsn = self.base.add(i as u32);
            if let Some(book) = sent.path().and_then(|path| self.books.get_mut(path)) {
                book.leave(tsn, sent.size(), sent.transmission());
                if cause == Cause::TooBig {
                    // no round trip is measured over what a router dropped
                    book.forget_round_trip();
                }
            }
        }
        let Some(first) = first else { return 0 };
        self.outstanding.reduce_by(lost);
        self.peer_rwnd = self.peer_rwnd.saturating_add(lost.bytes);
        self.marked += lost.chunks;
        let tsn = self.base.add(first as u32);
        if tsn.before(self.marked_from) || self.marked == lost.chunks {
            self.marked_from = tsn;
        }
        for path in self.books.paths() {
            self.settle(path, None);
        }
        lost.chunks
    }

    /// Paths are left: what is outstanding there is to be sent again, and none of their chunks, however it stands, has anything
    /// to do with them any more. Returns how many chunks were outstanding.
    pub(in crate::sctp) fn leave(&mut self, paths: &[PathId]) -> u32 {
        let there = |sent: &Sent| sent.path().is_some_and(|path| paths.contains(&path));
        let lost = self.lose(Cause::PathGone, there);
        for sent in self.chunks.iter_mut().filter(|sent| there(sent)) {
            sent.leave_path();
        }
        // what the pseudo-cumulative acks waited for may have moved
        self.books.values_mut().for_each(Book::forget_pseudo);
        lost
    }

    /// T3-rtx of a path expired: what was sent there before `spared` is to be sent again; what was sent since stays under way, and
    /// T3-rtx runs on for it, for `rto`. Returns how many chunks are lost, and how many were spared.
    pub(in crate::sctp) fn expire(
        &mut self,
        now: Instant,
        path: PathId,
        spared: Instant,
        rto: Duration,
    ) -> (u32, u32) {
        let lost = self.lose(Cause::Timeout, |sent| {
            sent.path() == Some(path) && sent.transmission().at() < spared
        });
        let own = self
            .iter()
            .filter(|(_, s)| s.is_outstanding() && s.path() == Some(path));
        let chunks = own.clone().count() as u32;
        let first = own.min_by_key(|(_, s)| s.transmission().number());
        let earliest = first.map(|(tsn, _)| tsn);
        let book = self.books.open(path);
        book.forget_round_trip();
        book.forget_pseudo();
        match earliest {
            Some(_) => book.watch(earliest, Some(now + rto)),
            None => book.clear(),
        }
        (lost, chunks)
    }

    /// One chunk is to be sent again, if it is outstanding; returns whether it was, and its path. With missing reports, which a
    /// SACK brings, [`settle`](Self::settle) follows with the others that it concerns.
    pub(in crate::sctp) fn lose_one(&mut self, cause: Cause, tsn: Tsn) -> Option<Option<PathId>> {
        let cuc = self.cuc;
        let sent = self.get_mut(tsn).filter(|s| s.is_outstanding())?;
        sent.mark(cause);
        let (path, size, len, transmission) = (sent.path(), sent.size(), sent.len(), sent.transmission());
        self.leave_unacknowledged(len);
        self.note_marked(tsn);
        if let Some(book) = path.and_then(|path| self.books.get_mut(path)) {
            book.leave(tsn, size, transmission);
            match cause {
                Cause::MissingReports => book.pseudo_lost(cuc),
                Cause::Rescheduled => book.forget_pseudo(),
                _ => {}
            }
        }
        let is_last = path.is_some_and(|path| self.size_on(path) == 0);
        match (cause, path) {
            (Cause::MissingReports, _) | (_, None) => {}
            // sent again at once, it begins T3-rtx anew
            (Cause::ProbeRefused, _) if !is_last => {}
            (_, Some(path)) => self.settle(path, None),
        }
        Some(path)
    }

    /// The receiver reneged (section 6.2.1 rule iii): a chunk that a gap ack block had reported is outstanding again, or is to
    /// be sent again if its path was left; `rto` gives that of a path. Returns whether it was.
    pub(in crate::sctp) fn renege(
        &mut self,
        now: Instant,
        tsn: Tsn,
        rto: impl FnOnce(PathId) -> Duration,
    ) -> bool {
        let by_order = self.by_order;
        let Some(sent) = self.get_mut(tsn) else {
            return false;
        };
        if sent.state() != (ChunkState::GapAcked { released: false }) {
            return false;
        }
        let (size, len, transmission) = (sent.size(), sent.len(), sent.transmission());
        match sent.path() {
            Some(path) => {
                sent.renege();
                self.outstanding.count(len);
                let book = self.books.open(path);
                book.enter(now, tsn, (size, transmission), rto(path), by_order);
            }
            None => {
                sent.mark(Cause::PathGone);
                self.note_marked(tsn);
            }
        }
        true
    }

    fn note_marked(&mut self, tsn: Tsn) {
        self.marked += 1;
        if tsn.before(self.marked_from) {
            self.marked_from = tsn;
        }
    }
}

/// It is sent again.
impl Flight {
    /// Lowest TSN marked for retransmission at or after `from`.
    pub(in crate::sctp) fn next_marked(&mut self, from: Option<Tsn>) -> Option<Tsn> {
        if self.marked == 0 {
            return None;
        }
        let start = match from {
            Some(from) if self.marked_from.before(from) => from,
            _ => self.marked_from,
        };
        let offset = start.distance_from(self.base) as usize;
        let found = self.chunks.iter().skip(offset).position(Sent::is_marked)?;
        let tsn = start.add(found as u32);
        if start == self.marked_from {
            self.marked_from = tsn;
        }
        Some(tsn)
    }

    /// A marked chunk goes out again, on `path`, whose RTO is `rto`; `transmission` is given its last one, and whether the path
    /// is another.
    pub(in crate::sctp) fn resend(
        &mut self,
        now: Instant,
        tsn: Tsn,
        path: PathId,
        rto: Duration,
        transmission: impl FnOnce(Transmission, bool) -> Transmission,
    ) -> Option<&Sent> {
        let index = tsn.distance_from(self.base) as usize;
        let sent = self.chunks.get_mut(index).filter(|s| s.is_marked())?;
        sent.send_again(path, transmission);
        self.marked -= 1;
        let len = sent.len();
        self.go(len);
        let sent = self.chunks.get(index)?;
        let book = self.books.open(path);
        book.enter(now, tsn, (sent.size(), sent.transmission()), rto, self.by_order);
        book.sent_again(now, tsn, rto);
        self.chunks.get(index)
    }
}

/// Paths are left.
impl Sender {
    /// What is outstanding on `paths`, those of one address, is to be sent again wherever new data goes. While others go on, one
    /// packet of it whatever cwnd says.
    pub(in crate::sctp) fn leave_paths(&mut self, paths: &[PathId], counters: &mut MultipathCounters) {
        let moved = self.flight.leave(paths);
        if self.strategy.is_concurrent() {
            counters.paths_left += 1;
            counters.chunks_moved += u64::from(moved);
            if moved > 0 {
                self.recovery.force_any();
            }
        }
    }

    /// The same where the address is ours: the route of the retransmissions is another one, whatever the one before was guilty
    /// of.
    pub(in crate::sctp) fn leave_source(&mut self, paths: &[PathId], counters: &mut MultipathCounters) {
        self.leave_paths(paths, counters);
        self.recovery.end();
    }

    /// Paths are gone of which nobody will miss anything: they are retired and empty, or make room for others.
    pub(in crate::sctp) fn forget_paths(&mut self, paths: &[PathId]) {
        self.flight.leave(paths);
    }

    /// Packets on a path hold `room` bytes of chunks from now on: what is outstanding there and did not fit is to be sent again.
    /// It was not lost to congestion, and T3-rtx need not tell. Returns whether there was any.
    pub(in crate::sctp) fn repeat_what_was_too_big(&mut self, path: PathId, room: u32) -> bool {
        let did_not_fit = |sent: &Sent| sent.path() == Some(path) && sent.size() > room;
        self.flight.lose(Cause::TooBig, did_not_fit) > 0
    }
}
