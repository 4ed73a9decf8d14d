//! What was sent and is not cumulatively acknowledged, and what of it is under way on which path.
//!
//! Every way in which a chunk comes into flight or leaves it is a method here, and each keeps the counts, T3-rtx, the round
//! trip that is measured and CUC's pseudo-cumulative acks in step:
//!
//! | a chunk | by |
//! |---|---|
//! | is sent | [`Flight::send`], [`Flight::resend`] |
//! | is acknowledged | [`Flight::acknowledge_next`], [`Flight::acknowledge`]; then [`Flight::settle`] |
//! | is outstanding again, because the receiver reneged | [`Flight::renege`] |
//! | is to be sent again | [`Flight::lose`], [`Flight::lose_one`], [`Flight::expire`], each with its [`Cause`] |
//! | is abandoned | [`Flight::abandon`] |

mod check;
mod earliest;
mod find;
mod messages;
mod retransmission;

use super::book::Book;
use super::chunk::{About, ChunkState, Content, Sent, Transmission};
use super::gaps::{Change, Reported};
use crate::congestion::Loss;
use crate::sctp::Config;
use crate::sctp::ids::PathId;
use crate::sctp::multipath::Cuc;
use crate::sctp::per_path::PerPath;
use crate::time::{Duration, Instant};
use earliest::earliest_on;
use segue_wire::Tsn;
use segue_wire::sctp::GapAckBlock;
use std::collections::VecDeque;

/// A chunk is acknowledged for the first time.
#[derive(Clone, Copy, Debug)]
pub(in crate::sctp) struct Acknowledged {
    pub tsn: Tsn,
    /// Path it was last sent on.
    pub path: Option<PathId>,
    pub size: u32,
    /// It was under way, and not to be sent again.
    pub was_outstanding: bool,
    pub transmission: Transmission,
    /// When it was sent, if its round trip was being measured.
    pub timed: Option<Instant>,
    /// It is the pseudo-cumulative ack of its path.
    pub pseudo: bool,
}

/// What the cumulative TSN ack passes.
#[derive(Clone, Copy, Debug)]
pub(in crate::sctp) enum Passed {
    New(Acknowledged),
    /// Acknowledged by a gap ack block before.
    Known,
    Abandoned,
}

/// How much is in flight, or was taken out of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct InFlight {
    chunks: u32,
    /// User bytes.
    bytes: u32,
}

impl InFlight {
    /// A chunk more, of `len` user bytes.
    fn count(&mut self, len: u32) {
        self.chunks += 1;
        self.bytes += len;
    }

    /// A chunk less.
    fn take(&mut self, len: u32) {
        self.chunks -= 1;
        self.bytes -= len;
    }

    fn reduce_by(&mut self, other: Self) {
        self.chunks -= other.chunks;
        self.bytes -= other.bytes;
    }
}

/// The chunks that were sent. Chunk `i` has TSN `base + i`, so every look-up is an index.
#[derive(Debug)]
pub(in crate::sctp) struct Flight {
    base: Tsn,
    chunks: VecDeque<Sent>,
    /// User bytes held, those of chunks that were released included.
    held: usize,
    /// Of those, bytes of chunks that were released.
    released: usize,
    /// User bytes, and number, of chunks that are outstanding.
    outstanding: InFlight,
    /// Room left in the peer's receive window, user bytes (section 6.2.1 rules A to D).
    peer_rwnd: u32,
    /// Chunks to be sent again; none lies before `marked_from`.
    marked: u32,
    marked_from: Tsn,
    /// What the last SACK's gap ack blocks reported.
    reported: Reported,
    books: PerPath<Book>,
    /// T3-rtx runs for what was sent first, and not for the lowest TSN: see `multipath/timeout`.
    by_order: bool,
    /// Which pseudo-cumulative acks are kept.
    cuc: Cuc,
}

impl Flight {
    pub(in crate::sctp) fn new(initial_tsn: Tsn, config: &Config) -> Self {
        let multipath = config.multipath;
        Self {
            base: initial_tsn,
            chunks: VecDeque::new(),
            held: 0,
            released: 0,
            outstanding: InFlight::default(),
            peer_rwnd: 0,
            marked: 0,
            marked_from: initial_tsn,
            reported: Reported::default(),
            books: PerPath::default(),
            by_order: multipath.is_some(),
            cuc: multipath.map_or(Cuc::Off, |m| m.cuc),
        }
    }

    /// The peer's cumulative TSN ack as known here.
    pub(in crate::sctp) fn cumulative_tsn_ack(&self) -> Tsn {
        self.base.previous()
    }

    /// The first TSN that is not cumulatively acknowledged.
    pub(in crate::sctp) fn base(&self) -> Tsn {
        self.base
    }

    /// The TSN that the next new chunk gets.
    pub(in crate::sctp) fn next_tsn(&self) -> Tsn {
        self.base.add(self.chunks.len() as u32)
    }

    /// Whether everything that was sent is cumulatively acknowledged.
    pub(in crate::sctp) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Chunks that are not cumulatively acknowledged.
    pub(in crate::sctp) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// User bytes that take room in the send buffer.
    pub(in crate::sctp) fn buffered(&self) -> usize {
        self.held - self.released
    }

    /// The same, with those that take none because the receiver keeps them.
    pub(in crate::sctp) fn held(&self) -> usize {
        self.held
    }

    /// User bytes outstanding.
    pub(in crate::sctp) fn outstanding_bytes(&self) -> u32 {
        self.outstanding.bytes
    }

    /// Room left in the peer's receive window, user bytes.
    #[inline]
    pub(in crate::sctp) fn peer_rwnd(&self) -> u32 {
        self.peer_rwnd
    }

    /// The peer's window is as its INIT, its INIT ACK or a SACK advertises it.
    pub(in crate::sctp) fn advertise(&mut self, a_rwnd: u32) {
        self.peer_rwnd = a_rwnd.saturating_sub(self.outstanding.bytes);
    }

    /// So many user bytes go out, and take room in the peer's window (section 6.2.1 rule C).
    #[inline]
    fn go(&mut self, len: u32) {
        self.outstanding.count(len);
        self.peer_rwnd = self.peer_rwnd.saturating_sub(len);
    }

    /// A chunk of so many user bytes is in flight no more, and not acknowledged: that gives them back (rule B).
    fn leave_unacknowledged(&mut self, len: u32) {
        self.outstanding.take(len);
        self.peer_rwnd = self.peer_rwnd.saturating_add(len);
    }

    pub(in crate::sctp) fn has_outstanding(&self) -> bool {
        self.outstanding.chunks > 0
    }

    /// Chunks to be sent again.
    pub(in crate::sctp) fn marked(&self) -> u32 {
        self.marked
    }

    /// What the last SACK's gap ack blocks reported.
    pub(in crate::sctp) fn reported(&self) -> &Reported {
        &self.reported
    }

    /// Every chunk, with its TSN.
    pub(in crate::sctp) fn iter(&self) -> impl Iterator<Item = (Tsn, &Sent)> + Clone {
        let base = self.base;
        let chunks = self.chunks.iter().enumerate();
        chunks.map(move |(i, sent)| (base.add(i as u32), sent))
    }

    #[inline]
    pub(in crate::sctp) fn get(&self, tsn: Tsn) -> Option<&Sent> {
        self.chunks.get(tsn.distance_from(self.base) as usize)
    }

    fn get_mut(&mut self, tsn: Tsn) -> Option<&mut Sent> {
        self.chunks.get_mut(tsn.distance_from(self.base) as usize)
    }

    /// Bytes under way on each path, with headers and padding.
    pub(in crate::sctp) fn sizes(&self) -> impl Iterator<Item = (PathId, u32)> {
        self.books.iter().map(|(path, book)| (path, book.size()))
    }

    /// Bytes under way on a path, with headers and padding.
    #[inline]
    pub(in crate::sctp) fn size_on(&self, path: PathId) -> u32 {
        self.books.get(path).map_or(0, Book::size)
    }

    /// A loss on a path, now, for its window.
    pub(in crate::sctp) fn loss_on(&self, now: Instant, path: PathId) -> Loss {
        Loss {
            now,
            flightsize: self.size_on(path),
            cut_already: false,
        }
    }

    /// When T3-rtx of a path expires.
    pub(in crate::sctp) fn t3_rtx(&self, path: PathId) -> Option<Instant> {
        self.books.get(path)?.t3_rtx()
    }

    /// When the first T3-rtx expires.
    #[inline]
    pub(in crate::sctp) fn next_timer(&self) -> Option<Instant> {
        self.books.iter().filter_map(|(_, book)| book.t3_rtx()).min()
    }

    /// A new chunk goes out on `path`, whose RTO is `rto`.
    pub(in crate::sctp) fn send(
        &mut self,
        now: Instant,
        content: Content,
        path: PathId,
        rto: Duration,
        transmission: Transmission,
    ) -> (Tsn, &Sent) {
        let tsn = self.next_tsn();
        let sent = Sent::new(content, path, transmission);
        self.held += sent.len() as usize;
        self.go(sent.len());
        let book = self.books.open(path);
        book.enter(now, tsn, (sent.size(), transmission), rto, self.by_order);
        book.time(now, tsn);
        self.chunks.push_back(sent);
        (tsn, &self.chunks[self.chunks.len() - 1])
    }

    /// A TSN that is never sent ends a message.
    pub(in crate::sctp) fn skip(&mut self, about: About) {
        self.chunks.push_back(Sent::never(about));
    }

    /// The chunk at the cumulative TSN ack is acknowledged, which advances.
    pub(in crate::sctp) fn acknowledge_next(&mut self) -> Option<Passed> {
        let sent = self.chunks.pop_front()?;
        let tsn = self.base;
        self.base = tsn.next();
        if self.marked_from.before(self.base) {
            self.marked_from = self.base;
        }
        let passed = match sent.state() {
            ChunkState::Abandoned => Passed::Abandoned,
            ChunkState::GapAcked { .. } => Passed::Known,
            ChunkState::Outstanding { .. } | ChunkState::Marked(_) => {
                let mut acknowledged = self.leave_acknowledged(tsn, &sent);
                if let Some(book) = sent.path().and_then(|path| self.books.get_mut(path)) {
                    book.forget_pseudo();
                    acknowledged.pseudo = true;
                }
                Passed::New(acknowledged)
            }
        };
        if sent.is_released() {
            self.released -= sent.len() as usize;
        }
        self.held -= sent.into_data().len();
        Some(passed)
    }

    /// A gap ack block reports a chunk; `None` if that is known, or changes nothing.
    pub(in crate::sctp) fn acknowledge(&mut self, tsn: Tsn) -> Option<Acknowledged> {
        let index = tsn.distance_from(self.base) as usize;
        let sent = self.chunks.get_mut(index).filter(|s| s.is_awaited())?;
        let former = sent.gap_acked();
        let (path, size, len, transmission) = (sent.path(), sent.size(), sent.len(), sent.transmission());
        let mut acknowledged = self.leave_in(tsn, former, path, size, len, transmission);
        if self.cuc != Cuc::Off
            && let Some(path) = path
            && let Some(book) = self.books.get_mut(path)
        {
            let chunks = (self.base, &self.chunks);
            let behind = |which: &dyn Fn(&Sent) -> bool| earliest_on(chunks, path, tsn.next(), which);
            acknowledged.pseudo = book.on_gap_acked(self.cuc, tsn, behind);
        }
        Some(acknowledged)
    }

    fn leave_acknowledged(&mut self, tsn: Tsn, sent: &Sent) -> Acknowledged {
        let (state, path) = (sent.state(), sent.path());
        self.leave_in(tsn, state, path, sent.size(), sent.len(), sent.transmission())
    }

    fn leave_in(
        &mut self,
        tsn: Tsn,
        former: ChunkState,
        path: Option<PathId>,
        size: u32,
        len: u32,
        transmission: Transmission,
    ) -> Acknowledged {
        let was_outstanding = matches!(former, ChunkState::Outstanding { .. });
        let mut timed = None;
        if was_outstanding {
            self.outstanding.take(len);
            if let Some(book) = path.and_then(|path| self.books.get_mut(path)) {
                timed = book.leave(tsn, size, transmission);
            }
        } else {
            self.marked -= 1;
        }
        Acknowledged {
            tsn,
            path,
            size,
            was_outstanding,
            transmission,
            timed,
            pseudo: false,
        }
    }

    /// Abandons one chunk and frees its data.
    pub(in crate::sctp) fn abandon(&mut self, tsn: Tsn) {
        let index = tsn.distance_from(self.base) as usize;
        let Some(sent) = self.chunks.get_mut(index) else {
            return;
        };
        let (path, size, len, transmission) = (sent.path(), sent.size(), sent.len(), sent.transmission());
        if sent.is_released() {
            self.released -= len as usize;
        }
        let (former, data) = sent.abandon();
        self.held -= data;
        match former {
            ChunkState::Outstanding { .. } => {
                self.leave_unacknowledged(len);
                if let Some(path) = path {
                    if let Some(book) = self.books.get_mut(path) {
                        book.leave(tsn, size, transmission);
                    }
                    self.settle(path, None);
                }
            }
            ChunkState::Marked(_) => self.marked -= 1,
            ChunkState::GapAcked { .. } | ChunkState::Abandoned => {}
        }
    }

    /// What the gap ack blocks of a SACK reported is applied.
    pub(in crate::sctp::sender) fn blocks_are_applied(
        &mut self,
        cumulative: Tsn,
        blocks: &[GapAckBlock],
        change: &Change,
    ) {
        self.reported.take(cumulative, blocks, change);
    }

    /// After a SACK, or where a chunk has left: T3-rtx of a path runs for the earliest of what is under way, or not at all (R2).
    /// `restart`: when it expires if the earliest has changed (R3).
    pub(in crate::sctp) fn settle(&mut self, path: PathId, restart: Option<Instant>) {
        if self.by_order {
            self.tidy_order(path);
        }
        let Some(book) = self.books.get_mut(path) else {
            return;
        };
        if book.size() == 0 {
            book.stop_timer();
            return;
        }
        let Some(left) = book.needs_next() else { return };
        let next = if self.by_order {
            self.first_sent_on(path)
        } else {
            earliest_on((self.base, &self.chunks), path, left, &Sent::is_outstanding)
        };
        self.books.open(path).watch(next, restart);
    }

    /// Before the gap ack blocks of a SACK are looked at, and after its cumulative TSN ack was: the pseudo-cumulative acks of
    /// CUC that are not known.
    pub(in crate::sctp) fn find_pseudo_cumulative_acks(&mut self) {
        if self.cuc == Cuc::Off {
            return;
        }
        let chunks = (self.base, &self.chunks);
        for (path, book) in self.books.iter_mut() {
            book.find_pseudo(self.cuc, |which| earliest_on(chunks, path, self.base, which));
        }
    }

    /// The receiver keeps a chunk that a gap ack block reports (NR-SACK): it is forgotten but for its size.
    pub(in crate::sctp) fn release(&mut self, tsn: Tsn) {
        let Some(sent) = self.get_mut(tsn) else { return };
        if sent.release() {
            let len = sent.len() as usize;
            self.released += len;
        }
    }

    /// A SACK reports a chunk that is outstanding missing, so many times more; returns how often it has been.
    pub(in crate::sctp) fn report_missing(&mut self, tsn: Tsn, reports: u8) -> u8 {
        self.get_mut(tsn).map_or(0, |sent| sent.report_missing(reports))
    }

    /// A chunk is found lost by missing reports; returns whether it was before.
    pub(in crate::sctp) fn note_fast_retransmission(&mut self, tsn: Tsn) -> bool {
        self.get_mut(tsn).is_some_and(Sent::note_fast_retransmission)
    }

    /// Takes every chunk out.
    pub(in crate::sctp) fn take(&mut self) -> VecDeque<Sent> {
        let next = self.next_tsn();
        let chunks = core::mem::take(&mut self.chunks);
        self.restart_tsns(next);
        chunks
    }

    /// The TSNs begin at `next_tsn`; whatever was sent is forgotten.
    pub(in crate::sctp) fn restart_tsns(&mut self, next_tsn: Tsn) {
        self.base = next_tsn;
        self.chunks.clear();
        (self.held, self.released) = (0, 0);
        self.outstanding = InFlight::default();
        (self.marked, self.marked_from) = (0, next_tsn);
        self.reported.clear();
        self.books.values_mut().for_each(Book::clear);
    }
}
