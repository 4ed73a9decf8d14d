//! Chunks that leave flight although nobody acknowledged them, each with its [`Cause`].

use super::{Flight, Left};
use crate::sctp::ids::PathId;
use crate::sctp::sender::chunk::{Cause, ChunkState, Sent};
use crate::time::{Duration, Instant};
use segue_wire::Tsn;

impl Flight {
    /// Everything outstanding for which `which` holds is to be sent again.
    pub(in crate::sctp) fn lose(&mut self, cause: Cause, mut which: impl FnMut(&Sent) -> bool) -> Left {
        let mut left = Left::default();
        let mut first = None;
        for (i, sent) in self.chunks.iter_mut().enumerate() {
            if !(sent.is_outstanding() && which(sent)) {
                continue;
            }
            sent.mark(cause);
            left.count(sent.len());
            first = first.or(Some(i));
            let tsn = self.base.add(i as u32);
            if let Some(book) = sent.path().and_then(|path| self.books.get_mut(path)) {
                book.leave(tsn, sent.size());
                if cause == Cause::TooBig {
                    // no round trip is measured over what a router dropped
                    book.forget_round_trip();
                }
            }
        }
        let Some(first) = first else { return left };
        self.outstanding.reduce_by(left);
        self.marked += left.chunks;
        let tsn = self.base.add(first as u32);
        if tsn.before(self.marked_from) || self.marked == left.chunks {
            self.marked_from = tsn;
        }
        for path in self.books.paths() {
            self.settle(path, None);
        }
        left
    }

    /// T3-rtx of a path expired: what was sent there before `spared` is to be sent again; what was sent since stays under way, and
    /// T3-rtx runs on for it, for `rto`. Returns with what is lost how many chunks were spared.
    pub(in crate::sctp) fn expire(
        &mut self,
        now: Instant,
        path: PathId,
        spared: Instant,
        rto: Duration,
    ) -> (Left, u32) {
        let left = self.lose(Cause::Timeout, |sent| {
            sent.path() == Some(path) && sent.transmission().at() < spared
        });
        let own = self
            .chunks
            .iter()
            .filter(|s| s.is_outstanding() && s.path() == Some(path));
        let chunks = own.count() as u32;
        let earliest = self.first_sent_on(path);
        let book = self.books.open(path);
        book.forget_round_trip();
        book.forget_pseudo();
        match earliest {
            Some(_) => book.watch(earliest, Some(now + rto)),
            None => book.clear(),
        }
        (left, chunks)
    }

    /// One chunk that is outstanding is to be sent again; returns its path and user bytes. With missing reports, which a SACK
    /// brings, [`settle`](Self::settle) follows with the others that it concerns.
    pub(in crate::sctp) fn lose_one(&mut self, cause: Cause, tsn: Tsn) -> Option<(Option<PathId>, u32)> {
        let cuc = self.cuc;
        let sent = self.get_mut(tsn).filter(|s| s.is_outstanding())?;
        sent.mark(cause);
        let (path, size, len) = (sent.path(), sent.size(), sent.len());
        self.outstanding.take(len);
        self.note_marked(tsn);
        if let Some(book) = path.and_then(|path| self.books.get_mut(path)) {
            book.leave(tsn, size);
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
        Some((path, len))
    }

    /// Abandons one chunk and frees its data; returns how many user bytes it had if it was under way.
    pub(in crate::sctp) fn abandon(&mut self, tsn: Tsn) -> Option<u32> {
        let index = tsn.distance_from(self.base) as usize;
        let sent = self.chunks.get_mut(index)?;
        let (path, size, len) = (sent.path(), sent.size(), sent.len());
        if sent.is_released() {
            self.released -= len as usize;
        }
        let (former, data) = sent.abandon();
        self.held -= data;
        match former {
            ChunkState::Outstanding { .. } => {
                self.outstanding.take(len);
                if let Some(path) = path {
                    if let Some(book) = self.books.get_mut(path) {
                        book.leave(tsn, size);
                    }
                    self.settle(path, None);
                }
                Some(len)
            }
            ChunkState::Marked(_) => {
                self.marked -= 1;
                None
            }
            ChunkState::GapAcked { .. } | ChunkState::Abandoned => None,
        }
    }
}
