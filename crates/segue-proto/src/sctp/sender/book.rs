//! What is under way on a path: its bytes, the chunk that T3-rtx runs for, and the one whose round trip is measured.
//! Kept by [`Flight`](super::flight::Flight) alone, so that it is in step with the chunks.

use super::chunk::{Sent, Transmission};
use super::cuc::{PseudoCumulativeAck, UnderWay};
use crate::sctp::multipath::Cuc;
use crate::time::{Duration, Instant};
use segue_wire::Tsn;
use std::collections::VecDeque;

/// The chunk that T3-rtx runs for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Earliest {
    /// This one.
    Is(Tsn),
    /// That one is in flight no more; the next is not before it.
    Was(Tsn),
}

/// What is under way on a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    /// Bytes with header and padding.
    size: u32,
    under_way: UnderWay,
    /// Where T3-rtx runs for what was sent first: numbers of transmissions here, ascending, and what was sent. Of some, that is
    /// under way no more.
    order: VecDeque<(u64, Tsn)>,
    /// Runs while something is under way.
    t3_rtx: Option<Instant>,
    /// None while nothing is under way.
    earliest: Option<Earliest>,
    /// The one TSN whose round trip is being measured, and when it was sent.
    timed: Option<(Tsn, Instant)>,
    pseudo: PseudoCumulativeAck,
}

impl Book {
    /// Bytes with header and padding.
    #[inline]
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// When T3-rtx expires.
    #[inline]
    pub(super) fn t3_rtx(&self) -> Option<Instant> {
        self.t3_rtx
    }

    /// The TSN that T3-rtx runs for, if that is under way.
    pub(super) fn watched(&self) -> Option<Tsn> {
        match self.earliest? {
            Earliest::Is(tsn) => Some(tsn),
            Earliest::Was(_) => None,
        }
    }

    /// Where the chunk that T3-rtx ran for was, if it has left and others are under way: the next one is not before it.
    #[inline]
    pub(super) fn needs_next(&self) -> Option<Tsn> {
        match self.earliest {
            Some(Earliest::Was(tsn)) if self.size > 0 => Some(tsn),
            _ => None,
        }
    }

    /// A chunk of `size` bytes is sent now (R1).
    pub(super) fn enter(
        &mut self,
        now: Instant,
        tsn: Tsn,
        (size, transmission): (u32, Transmission),
        rto: Duration,
        by_order: bool,
    ) {
        self.under_way.enter(transmission.is_again());
        if by_order {
            self.enter_in_order(transmission.number(), tsn);
        }
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

    /// One that the receiver has reneged on was sent before others that are under way.
    fn enter_in_order(&mut self, number: u64, tsn: Tsn) {
        if self.order.back().is_none_or(|&(last, _)| last < number) {
            return self.order.push_back((number, tsn));
        }
        if let Err(at) = self.order.binary_search_by_key(&number, |&(number, _)| number) {
            self.order.insert(at, (number, tsn));
        }
    }

    /// Of what was sent here, the first that is still under way, as `is_under_way` has it of a transmission.
    pub(super) fn first_sent(&mut self, is_under_way: impl Fn(u64, Tsn) -> bool) -> Option<Tsn> {
        while let Some(&(number, tsn)) = self.order.front() {
            if is_under_way(number, tsn) {
                return Some(tsn);
            }
            self.order.pop_front();
        }
        None
    }

    /// Forgets what is under way no more, if that is most of what is kept.
    pub(super) fn tidy(&mut self, is_under_way: impl Fn(u64, Tsn) -> bool) {
        if self.order.len() > 2 * self.under_way.chunks() as usize + 64 {
            self.order.retain(|&(number, tsn)| is_under_way(number, tsn));
        }
    }

    /// Chunks that are under way.
    pub(super) fn under_way(&self) -> UnderWay {
        self.under_way
    }

    /// A chunk is sent for the first time: its round trip is measured, if no other is.
    #[inline]
    pub(super) fn time(&mut self, now: Instant, tsn: Tsn) {
        self.timed.get_or_insert((tsn, now));
    }

    /// Section 7.2.4 rule 4; after a timeout elsewhere, section 6.1: sent again, the earliest begins T3-rtx anew.
    pub(super) fn sent_again(&mut self, now: Instant, tsn: Tsn, rto: Duration) {
        if matches!(self.earliest, Some(Earliest::Is(e) | Earliest::Was(e)) if e == tsn) {
            self.earliest = Some(Earliest::Is(tsn));
            self.t3_rtx = Some(now + rto);
        }
    }

    /// A chunk is under way no more; returns when it was sent, if its round trip was being measured.
    pub(super) fn leave(&mut self, tsn: Tsn, size: u32, transmission: Transmission) -> Option<Instant> {
        self.size -= size;
        self.under_way.leave(transmission.is_again());
        if self.earliest == Some(Earliest::Is(tsn)) {
            self.earliest = Some(Earliest::Was(tsn));
        }
        let timed = self.timed.take_if(|timed| timed.0 == tsn);
        timed.map(|timed| timed.1)
    }

    /// No round trip is measured.
    pub(super) fn forget_round_trip(&mut self) {
        self.timed = None;
    }

    /// Nothing is under way, so T3-rtx stops (R2).
    #[inline]
    pub(super) fn stop_timer(&mut self) {
        self.t3_rtx = None;
        self.earliest = None;
    }

    /// T3-rtx runs for `next`, and expires at `restart`, if that is given.
    pub(super) fn watch(&mut self, next: Option<Tsn>, restart: Option<Instant>) {
        if let Some(next) = next {
            self.earliest = Some(Earliest::Is(next));
        }
        if restart.is_some() {
            self.t3_rtx = restart;
        }
    }

    /// Nothing is under way any more.
    pub(super) fn clear(&mut self) {
        self.size = 0;
        self.under_way = UnderWay::default();
        self.order.clear();
        self.stop_timer();
        self.timed = None;
    }
}

/// What CUC follows of it.
impl Book {
    /// See [`PseudoCumulativeAck::find`].
    pub(super) fn find_pseudo(
        &mut self,
        version: Cuc,
        earliest: impl Fn(&dyn Fn(&Sent) -> bool) -> Option<Tsn>,
    ) {
        self.pseudo.find(version, self.under_way, earliest);
    }

    /// See [`PseudoCumulativeAck::on_gap_acked`].
    pub(super) fn on_gap_acked(
        &mut self,
        version: Cuc,
        tsn: Tsn,
        earliest: impl Fn(&dyn Fn(&Sent) -> bool) -> Option<Tsn>,
    ) -> bool {
        self.pseudo.on_gap_acked(version, tsn, self.under_way, earliest)
    }

    /// A chunk was found lost by missing reports.
    pub(super) fn pseudo_lost(&mut self, version: Cuc) {
        self.pseudo.on_lost(version);
    }

    /// What is waited for may have moved, or was acknowledged cumulatively.
    pub(super) fn forget_pseudo(&mut self) {
        self.pseudo.forget();
    }

    /// What tests look at: the TSNs that are waited for, the one that T3-rtx runs or ran for, and the one that is timed.
    #[cfg(test)]
    pub(super) fn awaited(&self) -> [Option<u32>; 2] {
        self.pseudo.awaited()
    }

    #[cfg(test)]
    pub(super) fn last_watched(&self) -> Option<Tsn> {
        self.earliest.map(|(Earliest::Is(tsn) | Earliest::Was(tsn))| tsn)
    }

    #[cfg(test)]
    pub(super) fn timed(&self) -> Option<(Tsn, Instant)> {
        self.timed
    }
}
