//! What has arrived: in order, and waiting for the application; or beyond a gap.

use segue_wire::Data;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};

/// A range of the stream: from the first position to before the second.
pub(super) type Range = (u64, u64);

/// The receive queue.
#[derive(Debug)]
pub(super) struct Reassembly {
    /// RCV.NXT, as a position.
    next: u64,
    /// In order, not yet taken by the application.
    ready: VecDeque<Data>,
    ready_bytes: u64,
    /// Beyond gaps, by position; they do not overlap.
    beyond: BTreeMap<u64, Data>,
    /// What is beyond, in ranges as long as can be, ascending.
    ranges: Vec<Range>,
    /// Ranges in the order in which they last grew, latest first (RFC 2018 section 4).
    recent: SmallVec<[Range; 4]>,
}

/// What became of a segment's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Taken {
    /// Something is in order now that was not.
    pub in_order: bool,
    /// It came before something else: there is a gap.
    pub out_of_order: bool,
    /// It filled a gap, in part or in whole.
    pub filled_gap: bool,
    /// What of it was there already.
    pub duplicate: Option<Range>,
}

impl Reassembly {
    pub fn new(next: u64) -> Self {
        Self {
            next,
            ready: VecDeque::new(),
            ready_bytes: 0,
            beyond: BTreeMap::new(),
            ranges: Vec::new(),
            recent: SmallVec::new(),
        }
    }

    /// RCV.NXT.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// A SYN or FIN is in order: it takes a position and has no data.
    pub fn pass_control(&mut self) {
        self.next += 1;
    }

    /// Bytes that wait for the application.
    pub fn ready_bytes(&self) -> u64 {
        self.ready_bytes
    }

    /// Whether something has arrived beyond a gap.
    pub fn has_gap(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// SACK blocks, latest first.
    pub fn recent(&self) -> &[Range] {
        &self.recent
    }

    /// The next data for the application.
    pub fn pop(&mut self) -> Option<Data> {
        let data = self.ready.pop_front()?;
        self.ready_bytes -= data.len() as u64;
        Some(data)
    }

    /// Whether data at position `at` is what comes next, and there is nothing beyond.
    #[inline]
    pub fn expects(&self, at: u64) -> bool {
        at == self.next && self.ranges.is_empty()
    }

    /// Takes data that is expected.
    #[inline]
    pub fn append(&mut self, data: Data) {
        self.next += data.len() as u64;
        self.push_ready(data);
    }

    /// Takes `data` at position `at`, cut to the window by the caller.
    pub fn take(&mut self, mut at: u64, mut data: Data) -> Taken {
        let mut taken = Taken {
            in_order: false,
            out_of_order: false,
            filled_gap: false,
            duplicate: None,
        };
        let end = at + data.len() as u64;
        if at < self.next {
            taken.duplicate = Some((at, end.min(self.next)));
            if end <= self.next {
                return taken;
            }
            let skip = (self.next - at) as usize;
            data = data.slice(skip, data.len() - skip);
            at = self.next;
        }
        if self.expects(at) {
            self.append(data);
            taken.in_order = true;
            return taken;
        }
        if let Some(known) = self.overlap(at, end) {
            taken.duplicate = taken.duplicate.or(Some(known));
        }
        self.insert_parts(at, &data);
        let range = self.insert_range((at, end));
        if range.0 > self.next {
            taken.out_of_order = true;
            self.note_recent(range);
            return taken;
        }
        taken.in_order = true;
        taken.filled_gap = true;
        self.advance(range.1);
        taken
    }

    /// A FIN at position `at` has come before what precedes it: it is reported as the data is.
    pub fn note_fin(&mut self, at: u64) {
        if at > self.next {
            let range = self.insert_range((at, at + 1));
            self.note_recent(range);
        }
    }

    fn note_recent(&mut self, range: Range) {
        self.recent.retain(|r| r.0 < range.0 || r.1 > range.1);
        self.recent.truncate(RECENT - 1);
        self.recent.insert(0, range);
    }

    /// Everything up to `end` is in order now.
    fn advance(&mut self, end: u64) {
        while let Some(entry) = self.beyond.first_entry() {
            if *entry.key() >= end {
                break;
            }
            let data = entry.remove();
            self.push_ready(data);
        }
        self.next = end;
        self.ranges.retain(|r| r.0 > end);
        self.recent.retain(|r| r.0 > end);
    }

    fn push_ready(&mut self, data: Data) {
        self.ready_bytes += data.len() as u64;
        if let (
            Some(Data::Synthetic { offset, len }),
            Data::Synthetic {
                offset: from,
                len: more,
            },
        ) = (self.ready.back_mut(), &data)
            && offset.wrapping_add(u64::from(*len)) == *from
            && let Some(sum) = len.checked_add(*more)
        {
            *len = sum;
            return;
        }
        self.ready.push_back(data);
    }

    /// The first part of a range that is there already.
    fn overlap(&self, from: u64, to: u64) -> Option<Range> {
        let index = self.ranges.partition_point(|r| r.1 <= from);
        let known = self.ranges.get(index)?;
        (known.0 < to).then(|| (known.0.max(from), known.1.min(to)))
    }

    /// Keeps the parts of `data` that are not there yet.
    fn insert_parts(&mut self, at: u64, data: &Data) {
        let end = at + data.len() as u64;
        let mut from = at;
        let mut index = self.ranges.partition_point(|r| r.1 <= at);
        while from < end {
            let (known_from, known_to) = self.ranges.get(index).copied().unwrap_or((end, end));
            let to = known_from.clamp(from, end);
            if to > from {
                let part = data.slice((from - at) as usize, (to - from) as usize);
                self.beyond.insert(from, part);
            }
            from = known_to.max(to);
            index += 1;
        }
    }

    /// Adds a range; returns the one that it is part of now.
    fn insert_range(&mut self, new: Range) -> Range {
        let first = self.ranges.partition_point(|r| r.1 < new.0);
        let last = self.ranges.partition_point(|r| r.0 <= new.1);
        if first == last {
            self.ranges.insert(first, new);
            return new;
        }
        let merged = (
            self.ranges[first].0.min(new.0),
            self.ranges[last - 1].1.max(new.1),
        );
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..last);
        merged
    }
}

/// Blocks that a SACK option may have.
const RECENT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn part(from: u64, to: u64) -> Data {
        Data::Synthetic {
            offset: from,
            len: (to - from) as u32,
        }
    }

    #[test]
    fn rfc_2018_section_5_case_2() {
        // the first of eight segments of 500 bytes is lost: the block grows with each of the others
        let mut r = Reassembly::new(5000);
        for n in 1..8u64 {
            let at = 5000 + 500 * n;
            let taken = r.take(at, part(at, at + 500));
            assert!(taken.out_of_order && !taken.in_order);
            assert_eq!(r.recent(), [(5500, at + 500)]);
        }
        let taken = r.take(5000, part(5000, 5500));
        assert!(taken.in_order && taken.filled_gap);
        assert_eq!((r.next(), r.recent().len(), r.has_gap()), (9000, 0, false));
        assert_eq!(r.pop(), Some(part(5000, 9000)));
    }

    #[test]
    fn rfc_2018_section_5_case_3() {
        // the 2nd, 4th, 6th and 8th of eight are lost; then the 4th comes
        let mut r = Reassembly::new(5000);
        for at in [5000, 6000, 7000, 8000] {
            r.take(at, part(at, at + 500));
        }
        assert_eq!(r.recent(), [(8000, 8500), (7000, 7500), (6000, 6500)]);
        r.take(6500, part(6500, 7000));
        assert_eq!(r.recent(), [(6000, 7500), (8000, 8500)]);
        r.take(5500, part(5500, 6000));
        assert_eq!((r.next(), r.recent()), (7500, &[(8000, 8500)][..]));
    }

    #[test]
    fn duplicates_are_reported_where_they_overlap() {
        // RFC 2883 section 4
        let mut r = Reassembly::new(1000);
        r.take(1000, part(1000, 1500));
        assert_eq!(r.take(1000, part(1000, 1500)).duplicate, Some((1000, 1500)));
        assert_eq!(r.take(1400, part(1400, 1600)).duplicate, Some((1400, 1500)));
        r.take(2000, part(2000, 2500));
        assert_eq!(r.take(2000, part(2000, 2500)).duplicate, Some((2000, 2500)));
        assert_eq!(r.take(2400, part(2400, 2700)).duplicate, Some((2400, 2500)));
        assert_eq!((r.next(), r.recent()), (1600, &[(2000, 2700)][..]));
    }

    #[test]
    fn pieces_in_any_order_over_and_over_give_the_stream_once() {
        let mut random = Stream::new(1, "reassembly");
        for _ in 0..200 {
            let mut r = Reassembly::new(0);
            while r.next() < 2000 {
                let at = random.below(2000);
                let to = (at + 1 + random.below(200)).min(2000);
                r.take(at, part(at, to));
                assert!(r.ranges.windows(2).all(|w| w[0].1 < w[1].0));
                assert!(r.recent().iter().all(|block| r.ranges.contains(block)));
            }
            let mut at = 0;
            while let Some(data) = r.pop() {
                assert!(data.is_synthetic_at(at));
                at += data.len() as u64;
            }
            assert_eq!((at, r.ready_bytes()), (2000, 0));
        }
    }
}
