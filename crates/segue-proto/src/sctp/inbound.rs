//! Which TSNs have arrived, and what the next SACK says of them.

use segue_wire::Tsn;
use segue_wire::sctp::{GapAckBlock, Sack};
use smallvec::SmallVec;

/// What became of a TSN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// New, and the one that the cumulative TSN ack waited for.
    InOrder,
    /// New, with a gap before it.
    OutOfOrder,
    /// Received before.
    Duplicate,
    /// Too far ahead to be reported by a gap ack block.
    TooFar,
}

/// The TSNs received.
#[derive(Debug)]
pub(super) struct Received {
    cumulative_tsn_ack: Tsn,
    /// Ranges beyond it, ascending, both ends inclusive, never adjacent.
    ranges: Vec<(Tsn, Tsn)>,
    duplicates: Vec<Tsn>,
}

impl Received {
    pub(super) fn new(initial_tsn: Tsn) -> Self {
        Self {
            cumulative_tsn_ack: initial_tsn.previous(),
            ranges: Vec::new(),
            duplicates: Vec::new(),
        }
    }

    pub(super) fn cumulative_tsn_ack(&self) -> Tsn {
        self.cumulative_tsn_ack
    }

    pub(super) fn has_gap(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Highest TSN received.
    /// Whether TSNs have come more than once since the last SACK.
    pub(super) fn has_duplicates(&self) -> bool {
        !self.duplicates.is_empty()
    }

    pub(super) fn highest(&self) -> Tsn {
        self.ranges.last().map_or(self.cumulative_tsn_ack, |r| r.1)
    }

    /// Where `tsn` would stand, without recording it.
    pub(super) fn classify(&self, tsn: Tsn) -> Arrival {
        if tsn == self.cumulative_tsn_ack.next() {
            return Arrival::InOrder;
        }
        if tsn.at_or_before(self.cumulative_tsn_ack) {
            return Arrival::Duplicate;
        }
        if tsn.distance_from(self.cumulative_tsn_ack) > u32::from(u16::MAX) {
            return Arrival::TooFar;
        }
        let at = self.ranges.partition_point(|r| r.1.before(tsn));
        match self.ranges.get(at) {
            Some(r) if r.0.at_or_before(tsn) => Arrival::Duplicate,
            _ => Arrival::OutOfOrder,
        }
    }

    /// Records a new TSN that `classify` called in or out of order.
    pub(super) fn record(&mut self, tsn: Tsn) {
        if tsn == self.cumulative_tsn_ack.next() {
            self.cumulative_tsn_ack = tsn;
            if let Some(&(start, end)) = self.ranges.first()
                && start == tsn.next()
            {
                self.cumulative_tsn_ack = end;
                self.ranges.remove(0);
            }
            return;
        }
        let at = self.ranges.partition_point(|r| r.1.before(tsn));
        let joins_before = at > 0 && self.ranges[at - 1].1.next() == tsn;
        let joins_after = self.ranges.get(at).is_some_and(|r| r.0 == tsn.next());
        match (joins_before, joins_after) {
            (true, true) => {
                self.ranges[at - 1].1 = self.ranges[at].1;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].1 = tsn,
            (false, true) => self.ranges[at].0 = tsn,
            (false, false) => self.ranges.insert(at, (tsn, tsn)),
        }
    }

    /// Everything up to `tsn`, which is beyond the cumulative TSN ack, counts as received (RFC 3758 section 3.6).
    pub(super) fn advance_to(&mut self, tsn: Tsn) {
        self.cumulative_tsn_ack = tsn;
        let passed = self.ranges.partition_point(|r| r.1.at_or_before(tsn));
        self.ranges.drain(..passed);
        if let Some(&(start, end)) = self.ranges.first()
            && start.at_or_before(tsn.next())
        {
            self.cumulative_tsn_ack = end;
            self.ranges.remove(0);
        }
    }

    /// Notes a duplicate for the next SACK; no more than `limit` are kept.
    pub(super) fn note_duplicate(&mut self, tsn: Tsn, limit: usize) {
        if self.duplicates.len() < limit {
            self.duplicates.push(tsn);
        }
    }

    /// Bytes that the next SACK chunk takes, at least: without gaps and duplicates it is exact.
    pub(super) fn sack_size(&self) -> u32 {
        16 + 4 * (self.ranges.len() + self.duplicates.len()) as u32
    }

    /// The SACK to send now, of at most `limit` gap ack blocks and duplicates together; forgets the duplicates.
    pub(super) fn sack(&mut self, a_rwnd: u32, limit: usize) -> Sack {
        let cumulative_tsn_ack = self.cumulative_tsn_ack;
        let mut gap_ack_blocks = SmallVec::new();
        let mut duplicate_tsns = Vec::new();
        if !self.ranges.is_empty() {
            gap_ack_blocks.extend(self.ranges.iter().take(limit).map(|&(start, end)| GapAckBlock {
                start: start.distance_from(cumulative_tsn_ack) as u16,
                end: end.distance_from(cumulative_tsn_ack) as u16,
            }));
        }
        if !self.duplicates.is_empty() {
            duplicate_tsns = core::mem::take(&mut self.duplicates);
            duplicate_tsns.truncate(limit - gap_ack_blocks.len());
        }
        Sack {
            cumulative_tsn_ack,
            a_rwnd,
            gap_ack_blocks,
            duplicate_tsns: duplicate_tsns.into(),
            data_packets: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(r: &mut Received, tsn: u32) -> Arrival {
        let arrival = r.classify(Tsn(tsn));
        if matches!(arrival, Arrival::InOrder | Arrival::OutOfOrder) {
            r.record(Tsn(tsn));
        }
        arrival
    }

    #[test]
    fn gaps_open_join_and_close() {
        let mut r = Received::new(Tsn(u32::MAX));
        assert_eq!(receive(&mut r, u32::MAX), Arrival::InOrder);
        for tsn in [2, 4, 3, 7] {
            assert_eq!(receive(&mut r, tsn), Arrival::OutOfOrder);
        }
        assert_eq!(receive(&mut r, 3), Arrival::Duplicate);
        assert_eq!(receive(&mut r, u32::MAX), Arrival::Duplicate);
        r.note_duplicate(Tsn(3), 10);
        let sack = r.sack(1000, 300);
        assert_eq!(sack.cumulative_tsn_ack, Tsn(u32::MAX));
        assert_eq!(
            sack.gap_ack_blocks[..],
            [GapAckBlock { start: 3, end: 5 }, GapAckBlock { start: 8, end: 8 }]
        );
        assert_eq!(*sack.duplicate_tsns, [Tsn(3)]);
        receive(&mut r, 0);
        receive(&mut r, 1);
        assert_eq!(r.cumulative_tsn_ack(), Tsn(4));
        assert_eq!(r.highest(), Tsn(7));
        assert!(r.sack(1000, 300).duplicate_tsns.is_empty());
    }

    #[test]
    fn a_sack_is_as_long_as_its_blocks_and_duplicates_and_takes_no_more_than_fit() {
        let mut r = Received::new(Tsn(1));
        assert_eq!(r.sack_size(), 16);
        for tsn in [2, 4, 6] {
            receive(&mut r, tsn);
        }
        assert_eq!(r.sack_size(), 28);
        for _ in 0..3 {
            r.note_duplicate(Tsn(4), 2);
        }
        assert_eq!(r.sack_size(), 36);
        let sack = r.sack(1000, 4);
        assert_eq!((sack.gap_ack_blocks.len(), sack.duplicate_tsns.len()), (3, 1));
        assert_eq!(r.sack_size(), 28);
        assert_eq!(r.sack(1000, 2).gap_ack_blocks.len(), 2);
    }

    #[test]
    fn what_no_gap_ack_block_can_report_is_too_far() {
        let r = Received::new(Tsn(1));
        assert_eq!(r.classify(Tsn(65_535)), Arrival::OutOfOrder);
        assert_eq!(r.classify(Tsn(65_536)), Arrival::TooFar);
        assert_eq!(r.classify(Tsn(0)), Arrival::Duplicate);
    }

    #[test]
    fn advancing_passes_gaps_and_joins_what_follows() {
        // the example of RFC 3758 section 3.6
        let mut r = Received::new(Tsn(102));
        for tsn in [102, 104, 105, 107] {
            receive(&mut r, tsn);
        }
        r.advance_to(Tsn(103));
        assert_eq!(r.cumulative_tsn_ack(), Tsn(105));
        assert_eq!(r.highest(), Tsn(107));
        r.advance_to(Tsn(107));
        assert_eq!((r.cumulative_tsn_ack(), r.has_gap()), (Tsn(107), false));
        r.advance_to(Tsn(200));
        assert_eq!(r.cumulative_tsn_ack(), Tsn(200));
        receive(&mut r, 203);
        r.advance_to(Tsn(201));
        assert_eq!((r.cumulative_tsn_ack(), r.has_gap()), (Tsn(201), true));
    }

    #[test]
    fn tsns_beyond_the_reach_of_a_gap_ack_block_are_not_taken() {
        let r = Received::new(Tsn(1));
        assert_eq!(r.classify(Tsn(65_535)), Arrival::OutOfOrder);
        assert_eq!(r.classify(Tsn(65_536)), Arrival::TooFar);
    }

    #[test]
    fn gap_ack_blocks_and_duplicates_fit_the_limit() {
        let mut r = Received::new(Tsn(1));
        for tsn in (3..2000).step_by(2) {
            receive(&mut r, tsn);
        }
        r.note_duplicate(Tsn(3), 10);
        let sack = r.sack(0, 358);
        assert_eq!(sack.gap_ack_blocks.len(), 358);
        assert!(sack.duplicate_tsns.is_empty());
    }
}
