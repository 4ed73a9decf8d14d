//! The retransmission queue with the scoreboard of RFC 6675 section 4: what was sent and not acknowledged, and what is
//! known of each segment. Sizes are bytes of sequence space, so that SYN and FIN count.

use crate::time::Instant;
use std::collections::VecDeque;

/// A segment that was sent. Positions count from the SYN, which is 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    start: u64,
    end: u64,
    /// Last transmission.
    sent_at: Instant,
    /// SND.NXT at the last retransmission.
    next_at_retransmission: u64,
    flags: u8,
}

/// Reported by a SACK block.
const SACKED: u8 = 1;
/// Taken for lost; its retransmission, if there was one, may be under way.
const LOST: u8 = 2;
/// A retransmission is under way.
const RETRANSMITTED: u8 = 4;
/// Was ever retransmitted.
const EVER_RETRANSMITTED: u8 = 8;

impl Sent {
    pub fn start(&self) -> u64 {
        self.start
    }
    pub fn end(&self) -> u64 {
        self.end
    }
    /// Time of the last transmission.
    pub fn sent_at(&self) -> Instant {
        self.sent_at
    }
    /// SND.NXT at the last retransmission.
    pub fn next_at_retransmission(&self) -> u64 {
        self.next_at_retransmission
    }
    pub fn len(&self) -> u32 {
        (self.end - self.start) as u32
    }
    pub fn is_sacked(&self) -> bool {
        self.flags & SACKED != 0
    }
    pub fn is_lost(&self) -> bool {
        self.flags & LOST != 0
    }
    pub fn is_retransmitted(&self) -> bool {
        self.flags & RETRANSMITTED != 0
    }
    pub fn was_retransmitted(&self) -> bool {
        self.flags & EVER_RETRANSMITTED != 0
    }
}

/// The queue, and sums over it.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    queue: VecDeque<Sent>,
    /// Bytes of all of them.
    bytes: u32,
    sacked_bytes: u32,
    sacked_segments: u32,
    /// Lost and not SACKed.
    lost_bytes: u32,
    retransmitted_bytes: u32,
    /// Segments found lost since the connection began; a retransmission that is lost counts again.
    losses: u64,
    /// End of the highest SACKed segment; zero if none is.
    highest_sacked: u64,
    /// No segment before this waits to be retransmitted.
    retransmit_from: u64,
    /// Every segment before this that is not SACKed is lost.
    lost_to: u64,
    /// SACKed segments before `lost_to`.
    sacked_below: u32,
    /// What the last blocks reported, and was marked: blocks are reported again and again, and grow.
    reported: [(u64, u64); 4],
    /// No segment before this that was sent once only waits to be found lost by its time.
    untimed_to: u64,
    /// Retransmissions in the order of their sending, with the segment's end; those that are over are still among them.
    retransmissions: VecDeque<(Instant, u64)>,
}

impl Scoreboard {
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Segments outstanding, SACKed ones included.
    pub fn segments(&self) -> u32 {
        self.queue.len() as u32
    }

    pub fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }

    /// Bytes between SND.UNA and SND.NXT: FlightSize of RFC 5681.
    pub fn flightsize(&self) -> u32 {
        self.bytes
    }

    /// SetPipe of RFC 6675 section 4: what is thought to be in the network.
    pub fn pipe(&self) -> u32 {
        self.flightsize() - self.sacked_bytes - self.lost_bytes + self.retransmitted_bytes
    }

    pub fn losses(&self) -> u64 {
        self.losses
    }

    pub fn has_lost(&self) -> bool {
        self.lost_bytes > 0
    }

    pub fn has_retransmissions(&self) -> bool {
        self.retransmitted_bytes > 0
    }

    pub fn highest_sacked(&self) -> u64 {
        self.highest_sacked
    }

    pub fn first(&self) -> Option<&Sent> {
        self.queue.front()
    }

    pub fn last(&self) -> Option<&Sent> {
        self.queue.back()
    }

    /// Segments that are lost and not SACKed, and retransmissions under way.
    pub fn lost_and_retransmitted(&self) -> (u32, u32) {
        self.queue.iter().fold((0, 0), |(lost, retransmitted), s| {
            let lost = lost + u32::from(s.is_lost() && !s.is_sacked());
            (lost, retransmitted + u32::from(s.is_retransmitted()))
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Sent> {
        self.queue.iter()
    }

    /// A new segment was sent.
    pub fn push(&mut self, now: Instant, start: u64, end: u64) {
        self.bytes += (end - start) as u32;
        self.queue.push_back(Sent {
            start,
            end,
            sent_at: now,
            next_at_retransmission: 0,
            flags: 0,
        });
    }

    /// Takes the first segment out if all of it lies before `ack`.
    pub fn pop_acked(&mut self, ack: u64) -> Option<Sent> {
        let first = *self.queue.front()?;
        if first.end > ack {
            return None;
        }
        self.queue.pop_front();
        self.bytes -= first.len();
        // nearly all were sent once and are heard of for the first time
        if first.flags != 0 {
            self.count_off(&first);
        }
        if self.highest_sacked <= ack {
            self.highest_sacked = 0;
        }
        Some(first)
    }

    /// A segment that something was known of is gone from the queue.
    #[inline(never)]
    fn count_off(&mut self, gone: &Sent) {
        if gone.is_sacked() {
            self.sacked_bytes -= gone.len();
            self.sacked_segments -= 1;
            if gone.end <= self.lost_to {
                self.sacked_below -= 1;
            }
        } else if gone.is_lost() {
            self.lost_bytes -= gone.len();
        }
        if gone.is_retransmitted() {
            self.retransmitted_bytes -= gone.len();
        }
    }

    /// The beginning of the first segment was acknowledged.
    pub fn trim(&mut self, ack: u64) -> u32 {
        let Some(first) = self.queue.front_mut().filter(|f| f.start < ack && ack < f.end) else {
            return 0;
        };
        let cut = (ack - first.start) as u32;
        first.start = ack;
        self.bytes -= cut;
        let flags = first.flags;
        if flags & SACKED != 0 {
            self.sacked_bytes -= cut;
        } else if flags & LOST != 0 {
            self.lost_bytes -= cut;
        }
        if flags & RETRANSMITTED != 0 {
            self.retransmitted_bytes -= cut;
        }
        cut
    }

    /// Index of the first segment that ends behind `position`.
    pub fn index_of(&self, position: u64) -> usize {
        self.queue.partition_point(|s| s.end <= position)
    }

    pub fn at(&self, index: usize) -> Option<&Sent> {
        self.queue.get(index)
    }

    /// Marks what `left..right` reports, and tells of every segment that is newly SACKed, with its index. Only whole
    /// segments count (RFC 2018 section 5.1).
    pub fn sack(&mut self, left: u64, right: u64, mut newly: impl FnMut(usize, &Sent)) {
        // the part that is known already is passed over
        let known = self
            .reported
            .iter()
            .copied()
            .filter(|(l, r)| left <= *l && *r <= right);
        let known = known.max_by_key(|(l, r)| r - l).unwrap_or((left, left));
        let below = self.queue.partition_point(|s| s.start < left);
        self.sack_part(below, known.0, right, &mut newly);
        let above = self.queue.partition_point(|s| s.end <= known.1 || s.start < left);
        self.sack_part(above, right, right, &mut newly);
        self.reported.rotate_right(1);
        self.reported[0] = (left, right);
    }

    /// The part of [`sack`](Self::sack) from segment `index` on that begins before `until`.
    fn sack_part(&mut self, mut index: usize, until: u64, right: u64, newly: &mut impl FnMut(usize, &Sent)) {
        while let Some(sent) = self.queue.get_mut(index) {
            if sent.start >= until || sent.end > right {
                break;
            }
            if sent.flags & SACKED == 0 {
                let len = sent.len();
                let before = *sent;
                if before.is_lost() {
                    self.lost_bytes -= len;
                }
                if before.is_retransmitted() {
                    self.retransmitted_bytes -= len;
                }
                sent.flags = (before.flags & EVER_RETRANSMITTED) | SACKED;
                self.sacked_bytes += len;
                self.sacked_segments += 1;
                if before.end <= self.lost_to {
                    self.sacked_below += 1;
                }
                self.highest_sacked = self.highest_sacked.max(before.end);
                newly(index, &before);
            }
            index += 1;
        }
    }

    /// Forgets what was SACKed: the peer did (RFC 2018 section 8).
    pub fn forget_sacks(&mut self) {
        for sent in &mut self.queue {
            sent.flags &= !SACKED;
        }
        (self.sacked_bytes, self.sacked_segments, self.highest_sacked) = (0, 0, 0);
        (self.lost_to, self.sacked_below) = (0, 0);
        self.reported = [(0, 0); 4];
        self.untimed_to = 0;
    }

    /// Marks a segment lost, whether it was before or not: a retransmission of it counts as lost too. Whether that was
    /// news.
    pub fn mark_lost(&mut self, index: usize) -> bool {
        let Some(sent) = self.queue.get_mut(index) else {
            return false;
        };
        if sent.flags & SACKED != 0 || (sent.flags & LOST != 0 && sent.flags & RETRANSMITTED == 0) {
            return false;
        }
        let len = sent.len();
        if sent.flags & RETRANSMITTED != 0 {
            self.retransmitted_bytes -= len;
        }
        if sent.flags & LOST == 0 {
            self.lost_bytes += len;
        }
        sent.flags = (sent.flags | LOST) & !RETRANSMITTED;
        self.losses += 1;
        self.retransmit_from = self.retransmit_from.min(sent.start);
        true
    }

    /// IsLost of RFC 6675 for all segments at once: with `dup_thresh` SACKed segments above. Each segment is looked at
    /// once only. Returns the bytes newly lost.
    pub fn mark_below_sacked(&mut self, dup_thresh: u32) -> u32 {
        let before = self.lost_bytes;
        let mut index = self.queue.partition_point(|s| s.end <= self.lost_to);
        while let Some(&sent) = self.queue.get(index) {
            if self.sacked_segments < self.sacked_below + dup_thresh {
                break;
            }
            if sent.is_sacked() {
                // it has fewer above than what lies before it
                if self.sacked_segments < self.sacked_below + 1 + dup_thresh {
                    break;
                }
                self.sacked_below += 1;
            } else if !sent.is_lost() && !sent.is_retransmitted() {
                self.mark_lost(index);
            }
            self.lost_to = sent.end;
            index += 1;
        }
        self.lost_bytes.saturating_sub(before)
    }

    /// The rule of FACK: the highest SACKed segment is `dup_thresh` segments above.
    pub fn mark_below_forward(&mut self, dup_thresh: u32) {
        if self.highest_sacked == 0 {
            return;
        }
        let forward = self.index_of(self.highest_sacked - 1) + 1;
        let to = forward.saturating_sub(dup_thresh as usize);
        let mut index = self.queue.partition_point(|s| s.end <= self.lost_to);
        while index < to {
            let Some(&sent) = self.queue.get(index) else { break };
            if sent.is_sacked() {
                self.sacked_below += 1;
            } else if !sent.is_lost() && !sent.is_retransmitted() {
                self.mark_lost(index);
            }
            self.lost_to = sent.end;
            index += 1;
        }
    }

    /// Everything that is not SACKed is lost, retransmissions too.
    pub fn mark_all_lost(&mut self) {
        self.lost_bytes = 0;
        self.retransmitted_bytes = 0;
        for sent in &mut self.queue {
            sent.flags &= !RETRANSMITTED;
            if sent.flags & SACKED == 0 {
                sent.flags |= LOST;
                self.lost_bytes += sent.len();
            }
        }
        self.retransmit_from = 0;
        self.lost_to = self.queue.back().map_or(0, |s| s.end);
        self.sacked_below = self.sacked_segments;
    }

    /// Nothing is lost after all.
    pub fn unmark_lost(&mut self) {
        for sent in &mut self.queue {
            sent.flags &= !LOST;
        }
        self.lost_bytes = 0;
        self.lost_to = 0;
        self.sacked_below = 0;
        self.untimed_to = 0;
    }

    /// Marks lost what was sent at or before `sent_at` (with the segment's end, where times are equal), has not arrived and
    /// is `due`; returns when the first of the others will be due. Segments sent once only lie in the order of their
    /// sending, and retransmissions have a queue in that order: each is looked at until it is found lost or has arrived.
    pub fn mark_overdue(
        &mut self,
        latest: (Instant, u64),
        due: impl Fn(Instant) -> Result<(), Instant>,
    ) -> Option<Instant> {
        let mut earliest: Option<Instant> = None;
        let mut wait = |at: Instant| earliest = Some(earliest.map_or(at, |e| e.min(at)));
        let mut index = self.index_of(self.untimed_to);
        while let Some(&sent) = self.queue.get(index) {
            if !sent.is_sacked() && !sent.is_lost() && !sent.is_retransmitted() {
                if (sent.sent_at, sent.end) >= latest {
                    break;
                }
                if let Err(at) = due(sent.sent_at) {
                    wait(at);
                    break;
                }
                self.mark_lost(index);
            }
            self.untimed_to = sent.end;
            index += 1;
        }
        while let Some((index, sent_at, end)) = self.first_retransmission() {
            if (sent_at, end) >= latest {
                break;
            }
            if let Err(at) = due(sent_at) {
                wait(at);
                break;
            }
            self.mark_lost(index);
        }
        earliest
    }

    /// The oldest retransmission under way: its index, time and end. What is over is forgotten.
    fn first_retransmission(&mut self) -> Option<(usize, Instant, u64)> {
        while let Some(&(sent_at, end)) = self.retransmissions.front() {
            let index = self.index_of(end - 1);
            // what was sent at the same time may lie where that segment was
            let current =
                |s: &Sent| (s.sent_at, s.end) == (sent_at, end) && s.is_retransmitted() && !s.is_sacked();
            if self.queue.get(index).is_some_and(current) {
                return Some((index, sent_at, end));
            }
            self.retransmissions.pop_front();
        }
        None
    }

    /// Index of the first segment that is lost and has no retransmission under way.
    pub fn next_lost(&mut self) -> Option<usize> {
        if self.lost_bytes == 0 {
            return None;
        }
        let mut index = self.queue.partition_point(|s| s.end <= self.retransmit_from);
        while let Some(sent) = self.queue.get(index) {
            if sent.flags & (LOST | SACKED | RETRANSMITTED) == LOST {
                self.retransmit_from = sent.start;
                return Some(index);
            }
            index += 1;
        }
        self.retransmit_from = self.queue.back().map_or(0, |s| s.end);
        None
    }

    /// Index of the first segment at or behind `from` and below the highest SACKed one that was not retransmitted in
    /// this recovery (NextSeg of RFC 6675, rule 3).
    pub fn next_below_sacked(&self, from: u64) -> Option<usize> {
        let index = self.queue.partition_point(|s| s.end <= from);
        self.queue
            .range(index..)
            .take_while(|s| s.end <= self.highest_sacked)
            .position(|s| s.flags & (LOST | SACKED | RETRANSMITTED) == 0)
            .map(|offset| index + offset)
    }

    /// A segment is being retransmitted.
    pub fn on_retransmit(&mut self, now: Instant, index: usize, next: u64) {
        self.first_retransmission();
        let Some(sent) = self.queue.get_mut(index) else {
            return;
        };
        if sent.flags & RETRANSMITTED == 0 {
            self.retransmitted_bytes += sent.len();
        }
        sent.flags |= RETRANSMITTED | EVER_RETRANSMITTED;
        sent.sent_at = now;
        sent.next_at_retransmission = next;
        self.retransmissions.push_back((now, sent.end));
    }

    /// Cuts a segment in two, the first `len` long: the path carries less than it did.
    pub fn split(&mut self, index: usize, len: u32) {
        let Some(sent) = self.queue.get_mut(index).filter(|s| s.len() > len) else {
            return;
        };
        let mut rest = *sent;
        rest.start += u64::from(len);
        sent.end = rest.start;
        if rest.is_sacked() {
            self.sacked_segments += 1;
            if rest.end <= self.lost_to {
                self.sacked_below += 1;
            }
        }
        let (end, whole) = (sent.end, (rest.sent_at, rest.end));
        if let Some(at) = self.retransmissions.iter().position(|r| *r == whole) {
            self.retransmissions.insert(at, (whole.0, end));
        }
        self.queue.insert(index + 1, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    impl Scoreboard {
        /// Panics if a sum is not what it is the sum of.
        fn check(&self) {
            let sum = |flag: fn(&Sent) -> bool| -> u32 {
                self.queue.iter().filter(|s| flag(s)).map(Sent::len).sum()
            };
            assert_eq!(self.bytes, sum(|_| true));
            assert_eq!(self.sacked_bytes, sum(Sent::is_sacked));
            assert_eq!(self.lost_bytes, sum(|s| s.is_lost() && !s.is_sacked()));
            assert_eq!(self.retransmitted_bytes, sum(Sent::is_retransmitted));
            let sacked = self.queue.iter().filter(|s| s.is_sacked()).count() as u32;
            assert_eq!(self.sacked_segments, sacked);
            let below = |s: &&Sent| s.is_sacked() && s.end <= self.lost_to;
            assert_eq!(self.sacked_below, self.queue.iter().filter(below).count() as u32);
        }
    }

    fn board(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for n in 0..segments {
            board.push(Instant::ZERO, 1 + 100 * n, 101 + 100 * n);
        }
        board
    }

    fn lost(board: &Scoreboard) -> Vec<usize> {
        (0..board.queue.len())
            .filter(|i| board.queue[*i].is_lost())
            .collect()
    }

    #[test]
    fn a_segment_with_three_sacked_above_is_lost() {
        // RFC 6675 section 4
        let mut b = board(10);
        b.sack(201, 301, |_, _| {});
        b.sack(401, 501, |_, _| {});
        assert_eq!(b.mark_below_sacked(3), 0);
        b.sack(601, 701, |_, _| {});
        assert_eq!(b.mark_below_sacked(3), 200);
        assert_eq!(lost(&b), [0, 1]);
        assert_eq!(b.pipe(), 1000 - 300 - 200);
        b.sack(801, 901, |_, _| {});
        b.mark_below_sacked(3);
        assert_eq!(lost(&b), [0, 1, 3]);
        b.check();
    }

    #[test]
    fn forward_acknowledgement_counts_from_the_highest() {
        let mut b = board(10);
        b.sack(601, 701, |_, _| {});
        b.mark_below_forward(3);
        assert_eq!(lost(&b), [0, 1, 2, 3]);
        b.check();
    }

    #[test]
    fn the_pipe_counts_what_is_in_the_network() {
        // RFC 6675 section 4, SetPipe
        let mut b = board(5);
        b.sack(201, 501, |_, _| {});
        b.mark_below_sacked(3);
        assert_eq!(b.pipe(), 0);
        let index = b.next_lost().unwrap();
        b.on_retransmit(Instant::ZERO, index, 501);
        assert_eq!((index, b.pipe(), b.next_lost()), (0, 100, Some(1)));
        assert!(b.pop_acked(101).is_some());
        assert_eq!(b.pipe(), 0);
        b.check();
    }

    #[test]
    fn the_sums_hold_whatever_happens() {
        let mut random = Stream::new(3, "scoreboard");
        for _ in 0..300 {
            let mut b = board(30);
            let (mut una, mut end) = (1, 3001);
            for _ in 0..60 {
                match random.below(9) {
                    0 => {
                        una = (una + random.below(250)).min(end);
                        while b.pop_acked(una).is_some() {}
                        b.trim(una);
                    }
                    1..=3 => {
                        let left = una + random.below(end - una + 1);
                        b.sack(left, left + random.below(600), |_, _| {});
                    }
                    4 => {
                        b.mark_below_sacked(3);
                    }
                    5 => b.mark_below_forward(3),
                    6 => {
                        if let Some(index) = b.next_lost() {
                            b.on_retransmit(Instant::ZERO, index, end);
                        }
                    }
                    7 => {
                        b.push(Instant::ZERO, end, end + 100);
                        end += 100;
                        b.split(random.below(20) as usize, 40);
                    }
                    _ => match random.below(8) {
                        0 => b.mark_all_lost(),
                        1 => b.unmark_lost(),
                        2 => b.forget_sacks(),
                        _ => {
                            b.mark_lost(random.below(20) as usize);
                        }
                    },
                }
                b.check();
            }
        }
    }
}
