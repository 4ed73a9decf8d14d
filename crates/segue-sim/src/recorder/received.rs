//! What has arrived of a flow: everything up to some offset, and ranges beyond it.

use std::collections::BTreeMap;

/// Offsets that have arrived.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Everything before this has arrived.
    cumulative: u64,
    /// What has arrived beyond: first byte and the byte after the last.
    beyond: BTreeMap<u64, u64>,
}

impl Received {
    /// Everything before this has arrived.
    pub(super) const fn cumulative(&self) -> u64 {
        self.cumulative
    }

    /// Takes the bytes from `begin` to `end`; how many of them are new.
    #[inline]
    pub(super) fn take(&mut self, begin: u64, end: u64) -> u64 {
        let begin = begin.max(self.cumulative);
        if end <= begin {
            return 0;
        }
        if begin == self.cumulative && self.beyond.is_empty() {
            self.cumulative = end;
            return end - begin;
        }
        self.take_out_of_order(begin, end)
    }

    /// Nothing before `floor` will be taken any more: holes there are never filled, and the ranges between them become one.
    pub(super) fn forget_holes(&mut self, floor: u64) {
        let Some((&begin, _)) = self.beyond.range(..floor).next() else {
            return;
        };
        let behind = self.beyond.split_off(&floor);
        let end = self.beyond.values().max().copied().unwrap_or_default();
        self.beyond = behind;
        self.join(begin, end.max(floor));
    }

    #[inline(never)]
    fn take_out_of_order(&mut self, begin: u64, end: u64) -> u64 {
        // mostly it is the next of a range, with a hole behind it
        if begin > self.cumulative
            && self
                .beyond
                .range(begin + 1..)
                .next()
                .is_none_or(|(&next, _)| end < next)
            && let Some((_, after)) = self.beyond.range_mut(..=begin).next_back()
            && *after == begin
        {
            *after = end;
            return end - begin;
        }
        self.take_among_others(begin, end)
    }

    fn take_among_others(&mut self, begin: u64, end: u64) -> u64 {
        let (mut new, mut at) = (0, begin);
        // a hole may never be filled: what lies before the range that `begin` is in, or behind, is not looked at
        let first = self
            .beyond
            .range(..=begin)
            .next_back()
            .map_or(begin, |(first, _)| *first);
        for (&first, &after) in self.beyond.range(first..end) {
            if after > at {
                new += first.saturating_sub(at).min(end - at);
                at = at.max(after);
            }
            if at >= end {
                break;
            }
        }
        new += end.saturating_sub(at);
        self.join(begin, end);
        while let Some(first) = self.beyond.first_entry()
            && *first.key() <= self.cumulative
        {
            self.cumulative = self.cumulative.max(first.remove());
        }
        new
    }

    /// Adds a range to those beyond the cumulative point; ranges that touch become one.
    fn join(&mut self, mut begin: u64, mut end: u64) {
        while let Some((&first, &after)) = self.beyond.range(..=end).next_back()
            && after >= begin
        {
            (begin, end) = (begin.min(first), end.max(after));
            self.beyond.remove(&first);
        }
        self.beyond.insert(begin, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_arrive_out_of_order_count_once_each() {
        let mut r = Received::default();
        assert_eq!(r.take(0, 10), 10);
        assert_eq!(r.take(30, 40), 10);
        assert_eq!(r.take(50, 60), 10);
        assert_eq!(r.take(35, 55), 10, "40 to 50 is new");
        assert_eq!(r.take(30, 60), 0);
        assert_eq!(r.take(5, 20), 10);
        assert_eq!((r.cumulative, r.take(20, 70)), (20, 20));
        assert_eq!((r.cumulative, r.beyond.len()), (70, 0));
    }

    /// Datagrams that are lost are not sent again. Were all ranges looked at for each of them, this would take hours.
    #[test]
    fn holes_that_are_never_filled_cost_nothing() {
        let mut r = Received::default();
        for n in 0..1_000_000 {
            assert_eq!(r.take(10 + 20 * n, 20 + 20 * n), 10);
        }
        assert_eq!((r.cumulative, r.beyond.len()), (0, 1_000_000));
        assert_eq!(r.take(5, 20_000_025), 5 + 10 * 999_999 + 25);
        assert_eq!(r.beyond.len(), 1);
    }

    #[test]
    fn holes_that_are_forgotten_change_nothing_of_what_comes_after_them() {
        let mut stream = segue_proto::random::Stream::new(5, "holes");
        let (mut kept, mut forgetful) = (Received::default(), Received::default());
        for n in 0..20_000 {
            let floor = 10 * n;
            let begin = floor + 10 * stream.below(30);
            let (a, b) = (kept.take(begin, begin + 10), forgetful.take(begin, begin + 10));
            assert_eq!(a, b);
            if stream.below(10) == 0 {
                forgetful.forget_holes(floor);
                assert!(forgetful.beyond.len() <= 32, "{}", forgetful.beyond.len());
            }
            assert_eq!(kept.cumulative(), forgetful.cumulative());
        }
        assert!(kept.beyond.len() > 1000);
    }

    #[test]
    fn random_ranges_agree_with_a_set_of_bytes() {
        let mut stream = segue_proto::random::Stream::new(4, "ranges");
        let (mut r, mut seen) = (Received::default(), std::collections::BTreeSet::new());
        for _ in 0..2000 {
            let begin = stream.below(1000);
            let end = begin + 1 + stream.below(40);
            let new = (begin..end).filter(|b| seen.insert(*b)).count() as u64;
            assert_eq!(r.take(begin, end), new);
            let cumulative = (0..).find(|b| !seen.contains(b)).unwrap_or_default();
            assert_eq!(r.cumulative, cumulative);
        }
    }
}
