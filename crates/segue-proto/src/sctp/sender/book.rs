//! What is under way on each path: its bytes, the chunk that T3-rtx runs for, and the one whose round trip is measured.
//! Kept by [`Flight`](super::Flight) alone, so that it is in step with the chunks.

use super::cuc::PseudoCumulativeAck;
use crate::sctp::path::PathId;
use crate::time::{Duration, Instant};
use segue_wire::Tsn;
use smallvec::SmallVec;

/// The chunk that T3-rtx runs for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Earliest {
    /// This one.
    Is(Tsn),
    /// That one is in flight no more; the next is not before it.
    Was(Tsn),
}

/// What is under way on a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Book {
    pub path: PathId,
    /// Bytes with header and padding.
    pub size: u32,
    /// Runs while something is under way.
    pub t3_rtx: Option<Instant>,
    /// None while nothing is under way.
    pub earliest: Option<Earliest>,
    /// The one TSN whose round trip is being measured, and when it was sent.
    pub timed: Option<(Tsn, Instant)>,
    pub pseudo: PseudoCumulativeAck,
}

impl Book {
    fn new(path: PathId) -> Self {
        Self {
            path,
            size: 0,
            t3_rtx: None,
            earliest: None,
            timed: None,
            pseudo: PseudoCumulativeAck::default(),
        }
    }

    /// A chunk of `size` bytes is sent now (R1).
    pub(super) fn enter(&mut self, now: Instant, tsn: Tsn, size: u32, rto: Duration, by_order: bool) {
        let before = |other: Tsn| !by_order && tsn.before(other);
        self.earliest = match self.earliest {
            None => Some(Earliest::Is(tsn)),
            Some(Earliest::Is(other)) if self.size == 0 || before(other) => Some(Earliest::Is(tsn)),
            Some(Earliest::Was(other)) if self.size == 0 || before(other) => Some(Earliest::Was(tsn)),
            unchanged => unchanged,
        };
        self.size += size;
        self.t3_rtx.get_or_insert(now + rto);
    }

    /// A chunk is under way no more.
    pub(super) fn leave(&mut self, tsn: Tsn, size: u32) {
        self.size -= size;
        if self.earliest == Some(Earliest::Is(tsn)) {
            self.earliest = Some(Earliest::Was(tsn));
        }
        self.timed.take_if(|timed| timed.0 == tsn);
    }

    /// Nothing is under way any more.
    pub(super) fn clear(&mut self) {
        self.size = 0;
        self.t3_rtx = None;
        self.earliest = None;
        self.timed = None;
    }
}

/// The books of all paths.
#[derive(Debug, Default)]
pub(super) struct Books(SmallVec<[Book; 2]>);

impl Books {
    pub(super) fn get(&self, path: PathId) -> Option<&Book> {
        self.0.iter().find(|b| b.path == path)
    }

    pub(super) fn get_mut(&mut self, path: PathId) -> Option<&mut Book> {
        self.0.iter_mut().find(|b| b.path == path)
    }

    /// That of a path, opened if need be: in the place of one whose path is gone.
    pub(super) fn open(&mut self, path: PathId) -> &mut Book {
        let place = self.0.iter().position(|b| b.path.place() == path.place());
        let at = place.unwrap_or(self.0.len());
        match self.0.get(at) {
            Some(book) if book.path == path => {}
            Some(_) => self.0[at] = Book::new(path),
            None => self.0.push(Book::new(path)),
        }
        &mut self.0[at]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Book> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Book> {
        self.0.iter_mut()
    }
}
