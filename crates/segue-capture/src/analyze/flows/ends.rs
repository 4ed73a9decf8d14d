//! What became of each packet of data, from what left the sender and what reached the receiver (Phoomikiattisak and Bhatti
//! 2019, sections 6.1.2 and 6.1.3): two streams in the order of time, with bounded memory.
//!
//! - A **retransmission** is a packet sent whose first byte had been sent before.
//! - A packet is **lost** if it did not arrive, or arrived at a locator that its receiver no longer had.
//! - A retransmission is **spurious** if an earlier copy arrived and was taken, even afterwards.
//! - A packet is **in flight** if it did not arrive, was sent after the last one that arrived by its way, and neither it
//!   was sent nor that one arrived longer before the end of the captures than any packet took. Where a queue grows, the
//!   packet at its head has been under way for longer than any before, but its way was not silent for so long.
//! - A packet is **reordered** if one that was sent later arrived before it.
//! - A packet is **unmatched** if it shows at one end when the other's capture had not begun or had ended: it arrived and
//!   is not known to be sent, or was sent before the receiver's first packet or after its last and did not arrive.
//!   Captures that begin, or end, no further apart than a packet takes do so together; and where the sender hears nothing
//!   of the receiver either, of which it heard before, it is the network that is silent and not a capture that is over.
//!
//! Copies of the same bytes are told apart by their timestamps (RFC 7323), by the identification of fragments, and by the
//! way that they take. Where these are the same, or there are none, the copy that arrives is the oldest that nothing sent
//! later by its way has overtaken, since ways seldom reorder; one that was sent again after an outage rather than the
//! first, which would have taken longer than any packet before it. A packet that arrives in another cut than it was sent in (segmentation offload at either end) is matched
//! by the bytes that it covers; what was sent counts as arrived when any of it did.

use super::sequence::BASE;
use crate::analyze::model::EndCounts;
use std::collections::VecDeque;

/// Copies of one direction that are followed at a time, where memory allows: beyond that many the oldest is taken to have
/// met its fate.
pub(in super::super) const MAX_COPIES: usize = 65_536;

/// So many are followed whatever their age.
const ALWAYS_KEPT: usize = 1024;

/// Beyond those, a copy older than this is taken to have met its fate, nanoseconds.
const SETTLED_AFTER_NS: u64 = 30_000_000_000;

/// Copies that are searched for what arrives in another cut.
const SEARCHED: usize = 512;

/// Copies of one segment that are looked at.
const CHAIN: usize = 64;

/// A packet sent.
#[derive(Clone, Copy, Debug)]
struct Copy {
    offset: u64,
    sent_ns: u64,
    length: u32,
    stamp: u32,
    /// The copy with the same first byte that was sent next; 0 for none (numbers count from 1).
    next: u64,
    way: u16,
    retransmission: bool,
    /// Some of it arrived.
    received: bool,
    /// And was taken.
    taken: bool,
    /// An earlier copy was taken.
    spurious: bool,
    /// One that was sent later had arrived before it.
    reordered: bool,
}

/// What was sent in one packet at first.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    /// Numbers of its first copy that is kept, and of its last.
    first: u64,
    last: u64,
}

/// A stretch of time in which packets sent are counted apart.
#[derive(Clone, Copy, Debug)]
struct Around {
    begin_ns: u64,
    end_ns: u64,
    counts: EndCounts,
}

/// When one of two captures has packets, on the common clock, and when any has.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Listens {
    pub since_ns: u64,
    pub until_ns: u64,
    /// First and last packet of both captures.
    pub begin_ns: u64,
    pub end_ns: u64,
}

impl Default for Listens {
    /// As long as the other.
    fn default() -> Self {
        Self {
            since_ns: 0,
            until_ns: u64::MAX,
            begin_ns: 0,
            end_ns: u64::MAX,
        }
    }
}

/// Both ends of one direction.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Ends {
    /// Of the receiver's capture.
    listens: Listens,
    /// When the sender first and last heard of the receiver.
    heard_ns: Option<(u64, u64)>,
    copies: VecDeque<Copy>,
    /// Number of the first copy kept.
    first: u64,
    /// Segments by first byte, in order.
    segments: VecDeque<Segment>,
    next: u64,
    origin: Option<u32>,
    /// By way: number of the last copy that arrived, and when something last did.
    last_received: Vec<(u64, u64)>,
    /// Highest number that arrived.
    highest_received: u64,
    longest_ns: u64,
    counts: EndCounts,
    /// Something arrived that was known to be sent.
    matched: bool,
    /// Copies that had not arrived and made room for newer ones.
    evicted: u64,
    /// Around each handover.
    around: Vec<Around>,
}

/// A packet with data at one end.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct AtEnd {
    pub time_ns: u64,
    pub seq: u32,
    pub span: u32,
    pub stamp: Option<u32>,
}

impl Ends {
    /// Nothing is sent yet; the receiver's capture listens so long.
    pub(in super::super) fn new(listens: Listens) -> Self {
        Self {
            listens,
            ..Self::default()
        }
    }

    /// Whether a change of path at the sender, with its first packet sent then, may not show in the receiver's capture
    /// because that had not begun or had ended.
    pub(in super::super) const fn may_miss(&self, sent_ns: u64) -> bool {
        sent_ns < self.listens.since_ns || sent_ns.saturating_add(self.longest_ns) > self.listens.until_ns
    }

    /// The sender hears of the receiver.
    pub(in super::super) fn hears(&mut self, time_ns: u64) {
        let heard = self.heard_ns.get_or_insert((time_ns, time_ns));
        heard.1 = heard.1.max(time_ns);
    }

    /// Whether the receiver's capture begins later than there was something to capture.
    fn begins_late(&self) -> bool {
        let since_ns = self.listens.since_ns;
        since_ns.saturating_sub(self.listens.begin_ns) > self.longest_ns
            && self.heard_ns.is_none_or(|(first, _)| first < since_ns)
    }

    /// Whether the receiver's capture ends earlier than there was something to capture, up to `end_ns`.
    pub(in super::super) fn ends_early(&self, end_ns: u64) -> bool {
        let after = |ns: u64| ns.saturating_sub(self.listens.until_ns) > self.longest_ns;
        after(end_ns) && self.heard_ns.is_none_or(|(_, last)| after(last))
    }

    /// The longest that a packet took.
    pub(in super::super) const fn longest_ns(&self) -> u64 {
        self.longest_ns
    }

    /// Whether something arrived that was known to be sent.
    pub(in super::super) const fn is_matched(&self) -> bool {
        self.matched
    }

    /// Copies that had not arrived and made room for newer ones.
    pub(in super::super) const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// The sender will begin with this sequence number.
    pub(in super::super) fn begin(&mut self, seq: u32) {
        if self.origin.is_none() {
            self.origin = Some(seq);
            self.next = BASE;
        }
    }

    fn offset(&self, seq: u32) -> u64 {
        let origin = self.origin.unwrap_or(seq);
        let expected = origin.wrapping_add((self.next.max(BASE) - BASE) as u32);
        let ahead = i64::from(seq.wrapping_sub(expected) as i32);
        self.next.max(BASE).saturating_add_signed(ahead).max(1)
    }

    /// A packet leaves the sender by a way; `limit` is how many copies may be followed.
    pub(in super::super) fn sent(&mut self, packet: AtEnd, way: u16, limit: usize) {
        self.begin(packet.seq);
        while let Some(oldest) = self.copies.front()
            && (self.copies.len() >= limit
                || (self.copies.len() > ALWAYS_KEPT && oldest.sent_ns + SETTLED_AFTER_NS < packet.time_ns))
        {
            self.evicted += u64::from(self.copies.len() >= limit && !oldest.taken);
            let recent_ns = if self.ends_early(packet.time_ns) {
                self.listens.until_ns.saturating_sub(self.longest_ns)
            } else {
                u64::MAX
            };
            self.settle_first(recent_ns);
        }
        let number = self.first + self.copies.len() as u64 + 1;
        let offset = self.offset(packet.seq);
        let mut copy = Copy {
            offset,
            sent_ns: packet.time_ns,
            length: packet.span,
            stamp: packet.stamp.unwrap_or_default(),
            next: 0,
            way,
            retransmission: offset < self.next,
            received: false,
            taken: false,
            spurious: false,
            reordered: false,
        };
        if copy.retransmission {
            if let Some(at) = self.segment_of(offset) {
                let previous = core::mem::replace(&mut self.segments[at].last, number);
                if let Some(earlier) = self.copy_mut(previous) {
                    earlier.next = number;
                    copy.spurious = earlier.taken || earlier.spurious;
                }
            }
        } else {
            self.segments.push_back(Segment {
                offset,
                first: number,
                last: number,
            });
        }
        self.next = self.next.max(offset + u64::from(packet.span));
        self.copies.push_back(copy);
    }

    /// A packet reaches the receiver by a way, which takes it or not.
    pub(in super::super) fn received(&mut self, packet: AtEnd, way: u16, taken: bool) {
        let Some(number) = self.find(&packet, way) else {
            self.unmatched();
            return;
        };
        self.matched = true;
        let end = self.offset(packet.seq) + u64::from(packet.span);
        self.arrive(number, packet.time_ns, taken);
        // one that covers several: they were sent one after the other
        let mut at = number;
        while let Some(copy) = self.copy_mut(at)
            && copy.offset + u64::from(copy.length) < end
        {
            let joins = copy.offset + u64::from(copy.length);
            let stamp = copy.stamp;
            match self.copy_mut(at + 1) {
                Some(next) if next.offset == joins && next.stamp == stamp && !next.received => {
                    at += 1;
                    self.arrive(at, packet.time_ns, taken);
                }
                _ => break,
            }
        }
    }

    /// A packet reaches the receiver that the sender's capture does not know.
    pub(in super::super) fn unmatched(&mut self) {
        self.counts = self.counts.and(&EndCounts {
            unmatched_packets: 1,
            ..EndCounts::default()
        });
    }

    /// Packets sent from `begin_ns` to `end_ns` are counted apart from now on; gives the number of the count.
    pub(in super::super) fn count_around(&mut self, begin_ns: u64, end_ns: u64) -> usize {
        self.around.push(Around {
            begin_ns,
            end_ns,
            counts: EndCounts::default(),
        });
        self.around.len() - 1
    }

    /// The counts, and those of each stretch that was counted apart, were this the end. `end_ns` is when the captures
    /// end.
    pub(in super::super) fn finish(mut self, end_ns: u64) -> (EndCounts, Vec<EndCounts>) {
        let last_ns = if self.ends_early(end_ns) {
            self.listens.until_ns
        } else {
            end_ns
        };
        let recent_ns = last_ns.saturating_sub(self.longest_ns);
        while !self.copies.is_empty() {
            self.settle_first(recent_ns);
        }
        (self.counts, self.around.iter().map(|a| a.counts).collect())
    }

    /// The segment that holds an offset, or the last before it.
    fn segment_of(&self, offset: u64) -> Option<usize> {
        self.segments
            .partition_point(|s| s.offset <= offset)
            .checked_sub(1)
    }

    fn copy_mut(&mut self, number: u64) -> Option<&mut Copy> {
        let at = number.checked_sub(self.first + 1)?;
        self.copies.get_mut(usize::try_from(at).ok()?)
    }

    fn copy(&self, number: u64) -> Option<&Copy> {
        let at = number.checked_sub(self.first + 1)?;
        self.copies.get(usize::try_from(at).ok()?)
    }

    /// Number of the copy that arrives by a way: one that was sent by it, if there is one. A tunnel that begins on the way
    /// lets packets arrive by another than they were sent by.
    fn find(&self, packet: &AtEnd, way: u16) -> Option<u64> {
        self.find_among(packet, |copy| copy.way == way)
            .or_else(|| self.find_among(packet, |_| true))
            .or_else(|| self.find_in_another_cut(packet))
    }

    fn find_among(&self, packet: &AtEnd, may_be: impl Fn(&Copy) -> bool) -> Option<u64> {
        let (offset, end, stamp) = self.extent(packet);
        let overlaps =
            |c: &Copy| c.stamp == stamp && c.offset < end && offset < c.offset + u64::from(c.length);
        // the oldest copy of exactly this cut that has not arrived and was not overtaken on its way, or was; best one that
        // took no longer than others have
        let segment = self.segment_of(offset).map(|at| self.segments[at]);
        let mut number = segment.map_or(0, |s| s.first);
        let (mut oldest, mut overtaken, mut covering) = (None, None, None);
        for _ in 0..CHAIN {
            let Some(copy) = self.copy(number) else { break };
            if !copy.received && copy.stamp == stamp && may_be(copy) {
                if copy.offset == offset && copy.length == packet.span {
                    let last = self.last_received.get(usize::from(copy.way));
                    if last.is_some_and(|(last, _)| number < *last) {
                        overtaken = overtaken.or(Some(number));
                    } else if packet.time_ns.saturating_sub(copy.sent_ns) <= self.longest_ns {
                        return Some(number);
                    } else {
                        oldest = oldest.or(Some(number));
                    }
                } else if covering.is_none() && overlaps(copy) {
                    covering = Some(number);
                }
            }
            number = copy.next;
        }
        oldest.or(overtaken).or(covering)
    }

    /// One in another cut, and last of all one of which a part has arrived.
    fn find_in_another_cut(&self, packet: &AtEnd) -> Option<u64> {
        let (offset, end, stamp) = self.extent(packet);
        let overlaps =
            |c: &Copy| c.stamp == stamp && c.offset < end && offset < c.offset + u64::from(c.length);
        let newest = self.copies.len().saturating_sub(SEARCHED);
        let searched = || self.copies.range(newest..);
        let fresh = searched().position(|c| overlaps(c) && !c.received);
        let found = fresh.or_else(|| searched().position(overlaps));
        found.map(|at| self.first + 1 + (at + newest) as u64)
    }

    /// First byte, end and timestamp.
    fn extent(&self, packet: &AtEnd) -> (u64, u64, u32) {
        let offset = self.offset(packet.seq);
        let end = offset + u64::from(packet.span);
        (offset, end, packet.stamp.unwrap_or_default())
    }

    fn arrive(&mut self, number: u64, time_ns: u64, taken: bool) {
        let overtaken = number < self.highest_received;
        let Some(copy) = self.copy_mut(number) else {
            return;
        };
        copy.reordered |= overtaken && !copy.received;
        copy.received = true;
        copy.taken |= taken;
        let (way, took_ns, mut next) = (
            usize::from(copy.way),
            time_ns.saturating_sub(copy.sent_ns),
            copy.next,
        );
        self.longest_ns = self.longest_ns.max(took_ns);
        self.highest_received = self.highest_received.max(number);
        if self.last_received.len() <= way {
            self.last_received.resize(way + 1, (0, 0));
        }
        let last = &mut self.last_received[way];
        *last = (last.0.max(number), last.1.max(time_ns));
        while taken && let Some(later) = self.copy_mut(next) {
            later.spurious = true;
            next = later.next;
        }
    }

    /// The oldest copy meets its fate. Those sent at or after `recent_ns`, or by a way over which something arrived since,
    /// may be under way.
    fn settle_first(&mut self, recent_ns: u64) {
        let Some(copy) = self.copies.pop_front() else {
            return;
        };
        self.first += 1;
        let number = self.first;
        if let Some(at) = self.segment_of(copy.offset)
            && self.segments[at].first == number
        {
            self.segments[at].first = copy.next;
        }
        while self.segments.front().is_some_and(|s| s.last <= number) {
            self.segments.pop_front();
        }
        // those behind one that is sent again and again
        if self.segments.len() > 2 * self.copies.len() + ALWAYS_KEPT {
            self.segments.retain(|s| s.last > number);
        }
        let last = self.last_received.get(usize::from(copy.way));
        let (last, arrived_ns) = last.copied().unwrap_or_default();
        let silent = copy.sent_ns.max(arrived_ns) < recent_ns;
        let missed = !copy.received
            && ((copy.sent_ns < self.listens.since_ns && self.begins_late())
                || (copy.sent_ns > self.listens.until_ns && self.ends_early(self.listens.end_ns)));
        let lost = !copy.taken && !missed && (copy.received || number < last || silent);
        let fate = EndCounts {
            packets_sent: 1,
            retransmissions: u64::from(copy.retransmission),
            spurious_retransmissions: u64::from(copy.retransmission && copy.spurious),
            lost_packets: u64::from(lost),
            unmatched_packets: u64::from(missed),
            in_flight_packets: u64::from(!copy.taken && !lost && !missed),
            reordered_packets: u64::from(copy.reordered),
        };
        self.counts = self.counts.and(&fate);
        for around in &mut self.around {
            if (around.begin_ns..=around.end_ns).contains(&copy.sent_ns) {
                around.counts = around.counts.and(&fate);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When the captures of most tests end.
    const LAST_NS: u64 = 9;

    fn at(time_ns: u64, seq: u32, span: u32, stamp: u32) -> AtEnd {
        AtEnd {
            time_ns,
            seq,
            span,
            stamp: Some(stamp),
        }
    }

    #[test]
    fn copies_are_told_apart_by_their_timestamps() {
        for (arrives, spurious) in [(1, 1), (5, 0)] {
            let mut ends = Ends::default();
            for (time, seq, stamp) in [(0, 0, 1), (1, 100, 1), (5, 0, 5), (6, 200, 6)] {
                ends.sent(at(time, seq, 100, stamp), 0, 100);
            }
            for (seq, stamp) in [(100, 1), (0, arrives), (200, 6)] {
                ends.received(at(9, seq, 100, stamp), 0, true);
            }
            let (counts, _) = ends.finish(LAST_NS);
            assert_eq!(
                (counts.lost_packets, counts.spurious_retransmissions),
                (1, spurious)
            );
            assert_eq!(counts.reordered_packets, u64::from(arrives == 1));
            assert_eq!(counts.unmatched_packets, 0);
        }
    }

    #[test]
    fn what_is_cut_otherwise_is_matched_by_its_bytes() {
        // one large segment leaves the sender and arrives as three packets
        let mut split = Ends::default();
        split.sent(at(0, 0, 3000, 1), 0, 100);
        split.sent(at(1, 3000, 3000, 1), 0, 100);
        for n in 0..3 {
            split.received(at(5, n * 1000, 1000, 1), 0, true);
        }
        let (counts, _) = split.finish(5);
        assert_eq!((counts.packets_sent, counts.in_flight_packets), (2, 1));
        assert_eq!(counts.unmatched_packets, 0);
        // three packets leave it and arrive as one
        let mut joined = Ends::default();
        for n in 0..3 {
            joined.sent(at(0, n * 1000, 1000, 1), 0, 100);
        }
        joined.received(at(5, 0, 3000, 1), 0, true);
        let (counts, _) = joined.finish(5);
        assert_eq!(
            (
                counts.packets_sent,
                counts.in_flight_packets + counts.lost_packets
            ),
            (3, 0)
        );
    }

    #[test]
    fn memory_is_bounded_and_what_makes_room_has_met_its_fate() {
        let mut ends = Ends::default();
        for n in 0..1000u32 {
            ends.sent(at(u64::from(n), n * 10, 10, n), 0, 64);
            if n % 2 == 0 {
                ends.received(at(u64::from(n), n * 10, 10, n), 0, true);
            }
        }
        assert!(ends.copies.len() <= 64 && ends.segments.len() <= 64);
        let (counts, _) = ends.finish(999);
        assert_eq!((counts.packets_sent, counts.lost_packets), (1000, 499));
        assert_eq!(counts.in_flight_packets, 1);
    }

    #[test]
    fn memory_is_bounded_though_one_segment_is_sent_again_and_again() {
        let mut ends = Ends::default();
        for n in 0..10_000u32 {
            ends.sent(at(u64::from(n), n * 10, 10, n), 0, 64);
            ends.sent(at(u64::from(n), 0, 10, n), 0, 64);
        }
        assert!(
            ends.segments.len() <= 64 * 2 + ALWAYS_KEPT,
            "{}",
            ends.segments.len()
        );
        let (counts, _) = ends.finish(10_000);
        assert_eq!((counts.packets_sent, counts.retransmissions), (20_000, 10_000));
    }

    #[test]
    fn a_packet_that_its_receiver_does_not_take_is_lost() {
        let mut ends = Ends::default();
        for (time, seq, stamp) in [(0, 0, 1), (1, 100, 1), (5, 0, 5)] {
            ends.sent(at(time, seq, 100, stamp), 0, 100);
        }
        let around = ends.count_around(0, 1);
        ends.received(at(3, 0, 100, 1), 0, false);
        ends.received(at(4, 100, 100, 1), 0, true);
        ends.received(at(9, 0, 100, 5), 0, true);
        let (counts, apart) = ends.finish(LAST_NS);
        assert_eq!((counts.retransmissions, counts.lost_packets), (1, 1));
        assert_eq!(counts.spurious_retransmissions, 0);
        assert_eq!((apart[around].packets_sent, apart[around].lost_packets), (2, 1));
    }

    #[test]
    fn what_was_sent_after_the_last_packet_that_arrived_by_its_way_is_in_flight() {
        let mut ends = Ends::default();
        for n in 0..6u32 {
            let way = u16::from(n == 1 || n == 3);
            ends.sent(at(u64::from(n), n * 100, 100, n), way, 100);
        }
        ends.received(at(6, 0, 100, 0), 0, true);
        ends.received(at(8, 400, 100, 4), 0, true);
        let (counts, _) = ends.finish(8);
        // 2 was overtaken, 1 has been under way for longer than any packet was; 3 and 5 may come yet
        assert_eq!((counts.lost_packets, counts.in_flight_packets), (2, 2));
    }

    #[test]
    fn behind_the_head_of_a_queue_that_grows_everything_is_in_flight() {
        // a packet a second into a queue that lets one out every two; the last of them came just now, after ten seconds
        let mut ends = Ends::default();
        for n in 0..=20u32 {
            ends.sent(at(u64::from(n), n * 100, 100, n), 0, 100);
        }
        for n in 0..=10u32 {
            ends.received(at(2 * u64::from(n), n * 100, 100, n), 0, true);
        }
        // the one at the head has waited for eleven, longer than any
        let (counts, _) = ends.clone().finish(22);
        assert_eq!((counts.lost_packets, counts.in_flight_packets), (0, 10));
        // once nothing has come for longer than a packet may take, it will not
        let (counts, _) = ends.finish(31);
        assert_eq!((counts.lost_packets, counts.in_flight_packets), (10, 0));
    }

    #[test]
    fn what_arrives_by_another_way_is_the_copy_that_was_sent_by_it() {
        // without timestamps, as SCTP has none: twice by a way that is dead, then by another
        let mut ends = Ends::default();
        for (time, way) in [(0, 0), (1, 0), (2, 1)] {
            ends.sent(at(time, 0, 1, 0), way, 100);
        }
        ends.sent(at(3, 1, 1, 0), 1, 100);
        ends.received(at(5, 0, 1, 0), 1, true);
        ends.received(at(6, 1, 1, 0), 1, true);
        let (counts, _) = ends.finish(LAST_NS);
        assert_eq!(
            (
                counts.retransmissions,
                counts.lost_packets,
                counts.spurious_retransmissions
            ),
            (2, 2, 0)
        );
    }
}
