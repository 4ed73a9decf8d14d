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
    /// ReceivedTsns before.
    Duplicate,
    /// Too far ahead to be reported by a gap ack block.
    TooFar,
}

/// The TSNs received.
#[derive(Debug)]
pub(super) struct ReceivedTsns {
    cumulative_tsn_ack: Tsn,
    /// Ranges beyond it, ascending, both ends inclusive, never adjacent.
    ranges: Vec<(Tsn, Tsn)>,
    duplicates: Vec<Tsn>,
}

impl ReceivedTsns {
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

    /// Whether TSNs have come more than once since the last SACK.
    pub(super) fn has_duplicates(&self) -> bool {
        !self.duplicates.is_empty()
    }

    /// Highest TSN received.
    pub(super) fn highest(&self) -> Tsn {
        self.ranges.last().map_or(self.cumulative_tsn_ack, |r| r.1)
    }

    /// Whether a TSN beyond the cumulative TSN ack is farther ahead than a gap ack block could report.
    pub(super) fn is_too_far(&self, tsn: Tsn) -> bool {
        tsn.distance_from(self.cumulative_tsn_ack) > u32::from(u16::MAX)
    }

    /// Where `tsn` would stand, without recording it.
    pub(super) fn classify(&self, tsn: Tsn) -> Arrival {
        if tsn == self.cumulative_tsn_ack.next() {
            return Arrival::InOrder;
        }
        if tsn.at_or_before(self.cumulative_tsn_ack) {
            return Arrival::Duplicate;
        }
        if self.is_too_far(tsn) {
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

    /// Gap ack blocks and duplicates that there are to tell.
    pub(super) fn entries(&self) -> usize {
        self.ranges.len() + self.duplicates.len()
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
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn receive(r: &mut ReceivedTsns, tsn: u32) -> Arrival {
        let arrival = r.classify(Tsn(tsn));
        if matches!(arrival, Arrival::InOrder | Arrival::OutOfOrder) {
            r.record(Tsn(tsn));
        }
        arrival
    }

    #[test]
    fn gaps_open_join_and_close() {
        let mut r = ReceivedTsns::new(Tsn(u32::MAX));
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
    fn a_sack_has_all_blocks_and_duplicates_that_fit() {
        let mut r = ReceivedTsns::new(Tsn(1));
        assert_eq!(r.entries(), 0);
        for tsn in [2, 4, 6] {
            receive(&mut r, tsn);
        }
        assert_eq!(r.entries(), 3);
        for _ in 0..3 {
            r.note_duplicate(Tsn(4), 2);
        }
        assert_eq!(r.entries(), 5);
        let sack = r.sack(1000, 4);
        assert_eq!((sack.gap_ack_blocks.len(), sack.duplicate_tsns.len()), (3, 1));
        assert_eq!(r.entries(), 3);
        assert_eq!(r.sack(1000, 2).gap_ack_blocks.len(), 2);
    }

    #[test]
    fn what_no_gap_ack_block_can_report_is_too_far() {
        let r = ReceivedTsns::new(Tsn(1));
        assert_eq!(r.classify(Tsn(65_535)), Arrival::OutOfOrder);
        assert_eq!(r.classify(Tsn(65_536)), Arrival::TooFar);
        assert_eq!(r.classify(Tsn(0)), Arrival::Duplicate);
    }

    #[test]
    fn advancing_passes_gaps_and_joins_what_follows() {
        // the example of RFC 3758 section 3.6
        let mut r = ReceivedTsns::new(Tsn(102));
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
        let r = ReceivedTsns::new(Tsn(1));
        assert_eq!(r.classify(Tsn(65_535)), Arrival::OutOfOrder);
        assert_eq!(r.classify(Tsn(65_536)), Arrival::TooFar);
    }

    #[test]
    fn gap_ack_blocks_and_duplicates_fit_the_limit() {
        let mut r = ReceivedTsns::new(Tsn(1));
        for tsn in (3..2000).step_by(2) {
            receive(&mut r, tsn);
        }
        r.note_duplicate(Tsn(3), 10);
        let sack = r.sack(0, 358);
        assert_eq!(sack.gap_ack_blocks.len(), 358);
        assert!(sack.duplicate_tsns.is_empty());
    }

    /// The same as a set of offsets from the TSN before the first.
    #[derive(Default)]
    struct Naive {
        cumulative: u32,
        beyond: BTreeSet<u32>,
    }

    impl Naive {
        fn classify(&self, offset: u32) -> Arrival {
            if offset <= self.cumulative || self.beyond.contains(&offset) {
                Arrival::Duplicate
            } else if offset - self.cumulative > 65_535 {
                Arrival::TooFar
            } else if offset == self.cumulative + 1 {
                Arrival::InOrder
            } else {
                Arrival::OutOfOrder
            }
        }

        fn close(&mut self) {
            while self.beyond.remove(&(self.cumulative + 1)) {
                self.cumulative += 1;
            }
        }

        fn blocks(&self) -> Vec<GapAckBlock> {
            let mut blocks: Vec<GapAckBlock> = Vec::new();
            for offset in &self.beyond {
                let at = (offset - self.cumulative) as u16;
                match blocks.last_mut() {
                    Some(block) if block.end + 1 == at => block.end = at,
                    _ => blocks.push(GapAckBlock { start: at, end: at }),
                }
            }
            blocks
        }
    }

    proptest! {
        #[test]
        fn what_has_arrived_is_what_a_set_of_tsns_says(
            initial in prop_oneof![Just(1), Just(u32::MAX - 30), any::<u32>()],
            moves in proptest::collection::vec((0..10_u8, 0..30_u32), 1..150),
        ) {
            let mut r = ReceivedTsns::new(Tsn(initial));
            let mut naive = Naive::default();
            let tsn = |offset: u32| Tsn(initial).previous().add(offset);
            for (kind, step) in moves {
                if kind == 0 {
                    // a FORWARD TSN, beyond the cumulative TSN ack
                    naive.cumulative += 1 + step / 5;
                    r.advance_to(tsn(naive.cumulative));
                    naive.beyond.retain(|&offset| offset > naive.cumulative);
                } else {
                    // one far away now and then, else from somewhat before what is known to somewhat beyond
                    let far = if kind == 1 { 65_520 } else { 0 };
                    let offset = (naive.cumulative + far + step).saturating_sub(8).max(1);
                    let arrival = r.classify(tsn(offset));
                    prop_assert_eq!(arrival, naive.classify(offset));
                    if matches!(arrival, Arrival::InOrder | Arrival::OutOfOrder) {
                        r.record(tsn(offset));
                        naive.beyond.insert(offset);
                    }
                }
                naive.close();
                prop_assert_eq!(r.cumulative_tsn_ack(), tsn(naive.cumulative));
                prop_assert_eq!(r.has_gap(), !naive.beyond.is_empty());
                let highest = naive.beyond.last().copied().unwrap_or(naive.cumulative);
                prop_assert_eq!(r.highest(), tsn(highest));
                let blocks = naive.blocks();
                prop_assert_eq!(r.entries(), blocks.len());
                let sack = r.sack(0, usize::MAX);
                prop_assert_eq!(sack.cumulative_tsn_ack, tsn(naive.cumulative));
                prop_assert_eq!(sack.gap_ack_blocks.to_vec(), blocks);
            }
        }
    }
}
