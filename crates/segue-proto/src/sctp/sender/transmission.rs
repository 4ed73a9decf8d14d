//! One transmission of a chunk: its place in the order of sending, and what SACKs have said of it.

use crate::time::Instant;

/// The last transmission of a chunk, and what SACKs have said of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) struct Transmission {
    /// Its number among all transmissions of the association; 0 if it was never sent.
    number: u64,
    at: Instant,
    again: bool,
    /// The chunk was sent on another path before.
    moved: bool,
    missing_reports: u8,
    /// Found lost by missing reports, this time or before: not eligible for it again but with MFR.
    fast_retransmitted: bool,
}

impl Transmission {
    /// That of a TSN that is never sent.
    pub(in crate::sctp) const NONE: Self = Self {
        number: 0,
        at: Instant::ZERO,
        again: false,
        moved: false,
        missing_reports: 0,
        fast_retransmitted: false,
    };

    /// When it was.
    pub(in crate::sctp) fn at(&self) -> Instant {
        self.at
    }

    /// Whether the chunk was sent before: no round trip may be measured from it (RFC 9260 section 6.3.1, rule C5).
    pub(in crate::sctp) fn is_again(&self) -> bool {
        self.again
    }

    /// Its place in the order of sending.
    pub(in crate::sctp) fn number(&self) -> u64 {
        self.number
    }

    /// Whether the chunk was sent on another path before.
    pub(super) fn has_moved(&self) -> bool {
        self.moved
    }

    /// Whether missing reports had it sent, or will have.
    pub(super) fn is_fast_retransmitted(&self) -> bool {
        self.fast_retransmitted
    }

    /// That of a chunk that is sent for the first time.
    pub(super) fn first(number: u64, at: Instant) -> Self {
        Self {
            number,
            at,
            ..Self::NONE
        }
    }

    /// The chunk is sent again, by `next`; `moves`: on another path.
    pub(super) fn again(self, next: Self, moves: bool) -> Self {
        Self {
            again: true,
            moved: self.moved || moves,
            fast_retransmitted: self.fast_retransmitted,
            ..next
        }
    }

    pub(super) fn report_missing(&mut self, reports: u8) -> u8 {
        self.missing_reports = self.missing_reports.saturating_add(reports);
        self.missing_reports
    }

    pub(super) fn note_fast_retransmission(&mut self) -> bool {
        core::mem::replace(&mut self.fast_retransmitted, true)
    }

    /// Missing reports so far.
    #[cfg(test)]
    pub(super) fn missing_reports(&self) -> u8 {
        self.missing_reports
    }
}
