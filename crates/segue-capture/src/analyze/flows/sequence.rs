//! Which sequence numbers of a direction were seen.

use crate::analyze::model::SegmentMark;

/// Offset of the first sequence number: what comes before it has room below.
pub(in super::super) const BASE: u64 = 1 << 33;

/// Separate ranges that are kept beyond the first gap. Beyond that many, the oldest gap is taken to be filled.
const MAX_RANGES: usize = 1024;

/// What was seen of one direction at one place: everything up to one offset, and ranges beyond.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Sequence {
    origin: u32,
    started: bool,
    /// Highest end.
    next: u64,
    /// All before this was seen.
    cumulative: u64,
    /// What was seen beyond, sorted, apart from one another.
    beyond: Vec<(u64, u64)>,
    /// Gaps that were given up.
    given_up: u32,
}

/// What an item of data is to what came before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Noted {
    /// Of its first sequence number, [`BASE`] for the flow's first.
    pub offset: u64,
    /// Sequence numbers that had not been seen.
    pub new: u64,
    pub mark: SegmentMark,
}

impl Sequence {
    /// The first sequence number will be this one: from a SYN or an INIT.
    pub(in super::super) fn begin(&mut self, seq: u32) {
        if !self.started {
            self.started = true;
            self.origin = seq;
            self.next = BASE;
            self.cumulative = BASE;
        }
    }

    /// Offset of a sequence number: the one nearest to what is expected next (RFC 9293 section 3.4).
    pub(in super::super) fn offset(&self, seq: u32) -> u64 {
        let expected = self.origin.wrapping_add((self.next - BASE) as u32);
        self.next
            .saturating_add_signed(i64::from(seq.wrapping_sub(expected) as i32))
            .max(1)
    }

    /// The sequence number behind all that was seen.
    pub(in super::super) fn end(&self) -> Option<u32> {
        self.started
            .then(|| self.origin.wrapping_add((self.next - BASE) as u32))
    }

    /// Nothing is missing before that.
    pub(in super::super) const fn is_whole(&self) -> bool {
        self.beyond.is_empty()
    }

    /// Gaps that were taken to be filled.
    pub(in super::super) const fn given_up(&self) -> u32 {
        self.given_up
    }

    /// Data with `span` sequence numbers from `seq` on.
    pub(in super::super) fn note(&mut self, seq: u32, span: u32) -> Noted {
        self.begin(seq);
        let offset = self.offset(seq);
        let end = offset + u64::from(span);
        if offset == self.cumulative && self.beyond.is_empty() {
            self.cumulative = end;
            self.next = end;
            return Noted {
                offset,
                new: u64::from(span),
                mark: SegmentMark::New,
            };
        }
        let later = offset >= self.next;
        let new = self.take(offset, end);
        self.next = self.next.max(end);
        let mark = match (new, later) {
            (0, _) => SegmentMark::Repeats,
            (_, true) => SegmentMark::Ahead,
            (_, false) => SegmentMark::Fills,
        };
        Noted { offset, new, mark }
    }

    fn take(&mut self, begin: u64, end: u64) -> u64 {
        let begin = begin.max(self.cumulative);
        if end <= begin {
            return 0;
        }
        let first = self.beyond.partition_point(|range| range.1 < begin);
        let after = first + self.beyond[first..].partition_point(|range| range.0 <= end);
        let touched = &self.beyond[first..after];
        let known: u64 = touched
            .iter()
            .map(|r| r.1.min(end).saturating_sub(r.0.max(begin)))
            .sum();
        let joined = (
            touched.first().map_or(begin, |r| r.0.min(begin)),
            touched.last().map_or(end, |r| r.1.max(end)),
        );
        self.beyond.splice(first..after, [joined]);
        if self.beyond.len() > MAX_RANGES {
            self.given_up += 1;
            self.cumulative = self.beyond[0].0;
        }
        if let Some(&(first, last)) = self.beyond.first()
            && first <= self.cumulative
        {
            self.cumulative = last;
            self.beyond.remove(0);
        }
        end - begin - known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_counted_once_in_whatever_order_it_comes() {
        let mut s = Sequence::default();
        let at = |n: u32| u32::MAX - 150 + n;
        let note = |s: &mut Sequence, n: u32, span| {
            let noted = s.note(at(0).wrapping_add(n), span);
            (noted.offset - BASE, noted.new, noted.mark)
        };
        assert_eq!(note(&mut s, 0, 100), (0, 100, SegmentMark::New));
        assert_eq!(note(&mut s, 200, 100), (200, 100, SegmentMark::Ahead));
        assert_eq!(note(&mut s, 400, 100), (400, 100, SegmentMark::Ahead));
        assert_eq!(note(&mut s, 200, 100), (200, 0, SegmentMark::Repeats));
        assert_eq!(note(&mut s, 150, 300), (150, 150, SegmentMark::Fills));
        assert_eq!(note(&mut s, 0, 200), (0, 50, SegmentMark::Fills));
        assert_eq!(s.cumulative - BASE, 500);
        assert!(s.beyond.is_empty());
        assert_eq!(note(&mut s, 500, 1), (500, 1, SegmentMark::New));
    }

    #[test]
    fn ranges_are_bounded() {
        let mut s = Sequence::default();
        for n in 0..3000 {
            s.note(n * 10, 5);
        }
        assert!(s.beyond.len() <= MAX_RANGES);
        assert_eq!(s.given_up as usize, 3000 - 1 - MAX_RANGES);
    }

    #[test]
    fn a_first_packet_that_was_not_the_first_leaves_room_before_it() {
        let mut s = Sequence::default();
        s.note(1000, 100);
        let before = s.note(500, 100);
        assert_eq!((before.offset, before.new), (BASE - 500, 0));
    }
}
