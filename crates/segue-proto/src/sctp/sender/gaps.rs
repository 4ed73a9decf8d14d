//! Gap ack blocks (RFC 9260 section 3.3.4): what a SACK reports by them, beside what the one before it did.
//!
//! With concurrent multipath transfer a SACK may have a hundred, of which all but one or two are as they were: those are found
//! to be alike from either end, and nothing else is done about them.

use segue_wire::Tsn;
use segue_wire::sctp::GapAckBlock;
use smallvec::SmallVec;

/// Ranges as offsets from the cumulative TSN ack, both ends inclusive, ascending.
type Ranges = SmallVec<[(u32, u32); 4]>;

/// Whether gap ack blocks are in order and within what was sent (`reach` TSNs beyond the cumulative TSN ack).
pub(super) fn are_valid(blocks: &[GapAckBlock], reach: u32) -> bool {
    let mut last = 0;
    blocks.iter().all(|block| {
        let in_order = block.start > last && block.end >= block.start;
        last = block.end;
        in_order
    }) && u32::from(last) <= reach
}

/// What the gap ack blocks of the last SACK reported.
#[derive(Debug, Default)]
pub(in crate::sctp) struct Reported {
    /// Ascending, both ends inclusive.
    ranges: SmallVec<[(Tsn, Tsn); 4]>,
}

/// What a SACK's gap ack blocks make of what was reported.
#[derive(Debug, Default)]
pub(super) struct Change {
    newly: Ranges,
    gone: Ranges,
    /// So many ranges does the cumulative TSN ack pass.
    passed: usize,
    /// Of what is beyond it so many are as they were, from the first on,
    first: usize,
    /// and up to the last.
    last: usize,
    /// All are.
    is_none: bool,
}

impl Change {
    /// What was not reported before, as offsets from the cumulative TSN ack.
    pub(super) fn newly(&self) -> &[(u32, u32)] {
        &self.newly
    }

    /// What was, lies beyond the cumulative TSN ack, and is not any more.
    pub(super) fn gone(&self) -> &[(u32, u32)] {
        &self.gone
    }

    /// Whether the blocks are those that they were, as far as the cumulative TSN ack has not passed them.
    pub(super) fn is_none(&self) -> bool {
        self.is_none
    }
}

impl Reported {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// In order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Tsn, Tsn)> + '_ {
        self.ranges.iter().copied()
    }

    pub(super) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// What valid `blocks` beyond a cumulative TSN ack, which never goes back, would change.
    #[inline]
    pub(super) fn change(&self, cumulative: Tsn, blocks: &[GapAckBlock]) -> Change {
        if self.ranges.is_empty() && blocks.is_empty() {
            return Change {
                is_none: true,
                ..Change::default()
            };
        }
        self.compare(cumulative, blocks)
    }

    #[inline(never)]
    fn compare(&self, cumulative: Tsn, blocks: &[GapAckBlock]) -> Change {
        let passed = self.ranges.partition_point(|r| r.1.at_or_before(cumulative));
        let former = &self.ranges[passed..];
        let offset = |tsn: Tsn| tsn.distance_from(cumulative);
        let before = |&(start, end): &(Tsn, Tsn)| {
            // the cumulative TSN ack may be within it
            let start = if cumulative.before(start) {
                offset(start)
            } else {
                1
            };
            (start, offset(end))
        };
        let now = |b: &GapAckBlock| (u32::from(b.start), u32::from(b.end));
        let alike = |(r, b): &(&(Tsn, Tsn), &GapAckBlock)| before(r) == now(b);
        let first = former.iter().zip(blocks).take_while(alike).count();
        let (former, blocks) = (&former[first..], &blocks[first..]);
        let backwards = former.iter().rev().zip(blocks.iter().rev());
        let last = backwards.take_while(alike).count();
        let former: Ranges = former[..former.len() - last].iter().map(before).collect();
        let blocks: Ranges = blocks[..blocks.len() - last].iter().map(now).collect();
        Change {
            newly: difference(&blocks, &former),
            gone: difference(&former, &blocks),
            passed,
            first,
            last,
            is_none: former.is_empty() && blocks.is_empty(),
        }
    }

    /// `blocks` are what is reported now; `change` is what they change.
    pub(super) fn take(&mut self, cumulative: Tsn, blocks: &[GapAckBlock], change: &Change) {
        let (begin, end) = (change.passed + change.first, self.ranges.len() - change.last);
        if !change.is_none {
            let tsns = |b: &GapAckBlock| {
                let [start, end] = [b.start, b.end].map(|at| cumulative.add(u32::from(at)));
                (start, end)
            };
            let others = blocks[change.first..blocks.len() - change.last].iter().map(tsns);
            self.ranges.drain(begin..end);
            self.ranges.insert_many(begin, others);
        }
        self.ranges.drain(..change.passed);
        if let Some(first) = self.ranges.first_mut()
            && first.0.at_or_before(cumulative)
        {
            first.0 = cumulative.next();
        }
    }
}

/// What of `a` is not in `b`.
fn difference(a: &Ranges, b: &Ranges) -> Ranges {
    let mut out = Ranges::new();
    let mut j = 0;
    for &(start, end) in a {
        let mut at = start;
        while j < b.len() && b[j].1 < at {
            j += 1;
        }
        let mut k = j;
        while at <= end {
            match b.get(k) {
                Some(&(from, to)) if from <= end => {
                    if at < from {
                        out.push((at, from - 1));
                    }
                    at = at.max(to + 1);
                    k += 1;
                }
                _ => {
                    out.push((at, end));
                    break;
                }
            }
        }
    }
    out
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Blocks from their offsets.
    pub(in crate::sctp::sender) fn blocks(of: &[(u32, u32)]) -> SmallVec<[GapAckBlock; 4]> {
        let block = |&(start, end): &(u32, u32)| GapAckBlock {
            start: start as u16,
            end: end as u16,
        };
        of.iter().map(block).collect()
    }

    #[test]
    fn difference_of_ranges() {
        let r = |v: &[(u32, u32)]| v.iter().copied().collect::<Ranges>();
        assert_eq!(difference(&r(&[(2, 9)]), &r(&[])), r(&[(2, 9)]));
        assert_eq!(difference(&r(&[(2, 9)]), &r(&[(2, 9)])), r(&[]));
        assert_eq!(difference(&r(&[(2, 9)]), &r(&[(2, 7)])), r(&[(8, 9)]));
        assert_eq!(
            difference(&r(&[(2, 9), (12, 14)]), &r(&[(3, 4), (6, 12)])),
            r(&[(2, 2), (5, 5), (13, 14)])
        );
        assert_eq!(difference(&r(&[(5, 6), (8, 8)]), &r(&[(1, 20)])), r(&[]));
    }

    #[test]
    fn blocks_ascend_apart_within_what_was_sent() {
        let valid = |of: &[(u32, u32)]| are_valid(&blocks(of), 9);
        assert!(valid(&[]) && valid(&[(2, 3), (4, 4), (7, 9)]));
        for wrong in [
            &[(0, 1)][..],
            &[(3, 2)],
            &[(2, 4), (4, 5)],
            &[(5, 6), (2, 3)],
            &[(2, 10)],
        ] {
            assert!(!valid(wrong), "{wrong:?}");
        }
    }

    /// The blocks that report these offsets: one for what is adjacent, but where `apart`.
    fn reporting(offsets: &BTreeSet<u32>, apart: bool) -> Vec<(u32, u32)> {
        let mut all: Vec<(u32, u32)> = Vec::new();
        for &at in offsets {
            match all.last_mut() {
                Some(last) if last.1 + 1 == at && !(apart && at % 7 == 0) => last.1 = at,
                _ => all.push((at, at)),
            }
        }
        all
    }

    proptest! {
        #[test]
        fn what_changes_is_what_sets_of_tsns_say(
            initial in prop_oneof![Just(1), Just(u32::MAX - 30), any::<u32>()],
            sacks in proptest::collection::vec(
                (0..6_u32, proptest::collection::vec(1..60_u32, 0..12), any::<bool>(), any::<bool>()), 1..40),
        ) {
            let mut reported = Reported::default();
            let mut known: BTreeSet<u32> = BTreeSet::new();
            let mut cumulative = Tsn(initial);
            for (advance, others, keeps, apart) in sacks {
                cumulative = cumulative.add(advance);
                let former: BTreeSet<u32> =
                    known.iter().filter(|&&at| at > advance).map(|at| at - advance).collect();
                let mut now: BTreeSet<u32> = others.into_iter().collect();
                if keeps {
                    now.extend(&former);
                }
                let listed = reporting(&now, apart);
                let blocks = blocks(&listed);
                let change = reported.change(cumulative, &blocks);
                let all = |ranges: &[(u32, u32)]| -> Vec<u32> {
                    ranges.iter().flat_map(|&(start, end)| start..=end).collect()
                };
                prop_assert_eq!(all(change.newly()), now.difference(&former).copied().collect::<Vec<_>>());
                prop_assert_eq!(all(change.gone()), former.difference(&now).copied().collect::<Vec<_>>());
                if change.is_none() {
                    prop_assert_eq!(&now, &former);
                }
                reported.take(cumulative, &blocks, &change);
                let tsns = |&(start, end): &(u32, u32)| (cumulative.add(start), cumulative.add(end));
                let listed: Vec<(Tsn, Tsn)> = listed.iter().map(tsns).collect();
                prop_assert_eq!(reported.iter().collect::<Vec<_>>(), listed);
                prop_assert!(reported.change(cumulative, &blocks).is_none());
                known = now;
            }
        }
    }
}
