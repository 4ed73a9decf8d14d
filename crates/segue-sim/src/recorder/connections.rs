//! Flows and shim handoffs while a run goes: the ledger, what receivers got when, and how long they got nothing
//! around each handoff.

use super::ledger::{Entries, FlowCounts, FlowKey, Ledger, PacketFate, Segment};
use segue_proto::shim::ShimEvent;
use segue_proto::{Duration, Instant, InterfaceId};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A gap in the received data belongs to a handoff if it begins no later than this after everybody was told.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// Width of a bin of received data.
pub const BIN: Duration = Duration::from_secs(1);

/// All TCP flows and all handoffs of a run.
#[derive(Debug, Default)]
pub struct Connections {
    /// The fates of packets.
    pub ledger: Ledger,
    /// The parts of handoffs.
    pub vertical: super::vertical::Vertical,
    receivers: Vec<Receiver>,
    handoffs: Vec<Handoff>,
}

/// A handoff of a shim.
#[derive(Clone, Debug)]
pub struct Handoff {
    /// The host.
    pub node: u32,
    /// When the first message left that tells of the new address.
    pub begin: Instant,
    /// When the last one was acknowledged, and how long after the first (004 section 5.4).
    pub done: Option<(Instant, Duration)>,
    /// Address used before.
    pub from: Option<Ipv6Addr>,
    /// Address used after.
    pub to: Ipv6Addr,
    /// Those who could not be told.
    pub failed: Vec<Ipv6Addr>,
}

impl Handoff {
    /// Whether data that does not arrive from `since` to `until` is missed because of it.
    fn is_within(&self, since: Instant, until: Instant) -> bool {
        let settled = self.done.map_or(Instant::MAX, |(at, _)| at + SETTLES_WITHIN);
        until >= self.begin && since <= settled
    }
}

/// The receiving end of a flow.
#[derive(Debug, Default)]
struct Receiver {
    /// Its node, once something has arrived.
    node: Option<u32>,
    first_sent: Option<Instant>,
    /// When data last arrived that had not been there before.
    last_new: Option<Instant>,
    /// Bytes that arrived, each counted once.
    new_bytes: u64,
    /// Everything before this has arrived.
    cumulative: u64,
    /// What has arrived beyond: first byte and the byte after the last.
    beyond: BTreeMap<u64, u64>,
    /// New bytes by second of simulated time.
    bins: Vec<u64>,
    /// Longest time without new data, by handoff.
    gaps: Vec<Duration>,
    /// Longest time without new data at all.
    longest_gap: Duration,
}

/// What a flow measured.
#[derive(Debug)]
pub struct FlowReport {
    /// Which flow.
    pub key: FlowKey,
    /// Node at the receiving end, if anything arrived.
    pub receiver: Option<u32>,
    /// Counts of its packets.
    pub counts: FlowCounts,
    /// Bytes that arrived, each counted once.
    pub transferred_bytes: u64,
    /// When its first data was sent.
    pub begin: Instant,
    /// When new data last arrived.
    pub last_new: Option<Instant>,
    /// New bytes that arrived, by second of simulated time.
    pub bins: Vec<u64>,
    /// Longest time between two arrivals of new data.
    pub longest_gap: Duration,
    /// By handoff of the run: the longest time without new data, where it concerns this flow.
    pub interruptions: Vec<Option<Duration>>,
}

impl Connections {
    /// A host sends a segment with data; gives the number of its entry.
    pub fn sent(&mut self, now: Instant, segment: &Segment) -> u32 {
        let (id, number) = self.ledger.sent(segment);
        if self.receivers.len() <= number {
            self.receivers.resize_with(number + 1, Receiver::default);
        }
        self.receivers[number].first_sent.get_or_insert(now);
        id
    }

    /// What a packet carries was handed to the transport at `node`, or refused there.
    pub fn arrived(
        &mut self,
        now: Instant,
        node: u32,
        interface: InterfaceId,
        entries: Entries,
        taken: bool,
    ) {
        if !taken {
            return self.ledger.met(entries, PacketFate::Stale);
        }
        for id in entries.iter() {
            let entry = self.ledger.delivered(id);
            let length = u64::from(self.ledger.length_of(&entry));
            let receiver = &mut self.receivers[entry.flow as usize];
            receiver.node = Some(node);
            self.vertical.data(now, node, interface, u32::from(entry.bytes));
            let new = receiver.take(entry.offset, entry.offset + length);
            if new == 0 {
                continue;
            }
            let bytes = u64::from(entry.bytes);
            // a division is worth avoiding here
            let new_bytes = if new == length {
                bytes
            } else {
                new * bytes / length
            };
            receiver.new_bytes += new_bytes;
            let bin = (now.as_nanos() / BIN.as_nanos()) as usize;
            if receiver.bins.len() <= bin {
                receiver.bins.resize(bin + 1, 0);
            }
            receiver.bins[bin] += new_bytes;
            let before = receiver.last_new.replace(now);
            if let Some(before) = before {
                receiver.longest_gap = receiver.longest_gap.max(now.since(before));
            }
            let since = before.or(receiver.first_sent);
            receiver.note_gap(&self.handoffs, since.unwrap_or(now), now);
        }
    }

    /// A shim reports.
    pub fn shim_event(&mut self, now: Instant, node: u32, event: &ShimEvent) {
        match *event {
            ShimEvent::HandoffBegun { from, to } => {
                self.vertical.handoff_begun(now, node, to);
                self.handoffs.push(Handoff {
                    node,
                    begin: now,
                    done: None,
                    from,
                    to,
                    failed: Vec::new(),
                });
            }
            ShimEvent::HandoffDone { to, delay } => {
                let own = |h: &&mut Handoff| h.node == node && h.to == to && h.done.is_none();
                if let Some(handoff) = self.handoffs.iter_mut().rev().find(own) {
                    handoff.done = Some((now, delay));
                }
            }
            ShimEvent::HandoffFailed { peer } => {
                if let Some(handoff) = self.handoffs.iter_mut().rev().find(|h| h.node == node) {
                    handoff.failed.push(peer);
                }
            }
            ShimEvent::RouteChanged { to, .. } => self.vertical.told(now, to),
            _ => {}
        }
    }

    /// The handoffs so far.
    #[must_use]
    pub fn handoffs(&self) -> &[Handoff] {
        &self.handoffs
    }

    /// What every flow measured by the end of the run.
    #[must_use]
    pub fn finish(&mut self, end: Instant) -> Vec<FlowReport> {
        let counts = self.ledger.counts();
        let mut reports = Vec::new();
        for ((key, counts), receiver) in self.ledger.flows().zip(counts).zip(&mut self.receivers) {
            if let Some(since) = receiver.last_new {
                receiver.note_gap(&self.handoffs, since, end);
            }
            let concerned = |h: &Handoff| h.node == key.sender || Some(h.node) == receiver.node;
            let interruptions = self.handoffs.iter().enumerate();
            let interruptions = interruptions.map(|(number, handoff)| {
                concerned(handoff).then(|| receiver.gaps.get(number).copied().unwrap_or_default())
            });
            reports.push(FlowReport {
                key: *key,
                receiver: receiver.node,
                counts,
                transferred_bytes: receiver.new_bytes,
                begin: receiver.first_sent.unwrap_or_default(),
                last_new: receiver.last_new,
                bins: receiver.bins.clone(),
                longest_gap: receiver.longest_gap,
                interruptions: interruptions.collect(),
            });
        }
        reports
    }
}

impl Receiver {
    /// Takes the bytes from `begin` to `end`; how many of them are new.
    #[inline]
    fn take(&mut self, begin: u64, end: u64) -> u64 {
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

    #[inline(never)]
    fn take_out_of_order(&mut self, begin: u64, end: u64) -> u64 {
        let (mut new, mut at) = (0, begin);
        for (&first, &after) in self.beyond.range(..end) {
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

    /// There was no new data from `since` to `until`.
    fn note_gap(&mut self, handoffs: &[Handoff], since: Instant, until: Instant) {
        if self.gaps.len() < handoffs.len() {
            self.gaps.resize(handoffs.len(), Duration::ZERO);
        }
        for (gap, handoff) in self.gaps.iter_mut().zip(handoffs) {
            if handoff.is_within(since, until) {
                *gap = (*gap).max(until.since(since));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_arrive_out_of_order_count_once_each() {
        let mut r = Receiver::default();
        assert_eq!(r.take(0, 10), 10);
        assert_eq!(r.take(30, 40), 10);
        assert_eq!(r.take(50, 60), 10);
        assert_eq!(r.take(35, 55), 10, "40 to 50 is new");
        assert_eq!(r.take(30, 60), 0);
        assert_eq!(r.take(5, 20), 10);
        assert_eq!((r.cumulative, r.take(20, 70)), (20, 20));
        assert_eq!((r.cumulative, r.beyond.len()), (70, 0));
    }

    #[test]
    fn random_ranges_agree_with_a_set_of_bytes() {
        let mut stream = segue_proto::random::Stream::new(4, "ranges");
        let (mut r, mut seen) = (Receiver::default(), std::collections::BTreeSet::new());
        for _ in 0..2000 {
            let begin = stream.below(1000);
            let end = begin + 1 + stream.below(40);
            let new = (begin..end).filter(|b| seen.insert(*b)).count() as u64;
            assert_eq!(r.take(begin, end), new);
            let cumulative = (0..).find(|b| !seen.contains(b)).unwrap_or_default();
            assert_eq!(r.cumulative, cumulative);
        }
    }

    #[test]
    fn the_interruption_of_a_handoff_is_the_longest_gap_around_it() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let key = FlowKey {
            transport: crate::recorder::ledger::Transport::Tcp,
            sender: 0,
            receiver: 1,
            source_port: 1,
            destination_port: 2,
        };
        let mut c = Connections::default();
        let mut seq = 0;
        let mut packet = |c: &mut Connections, ms: u64| {
            let segment = Segment {
                flow: key,
                seq,
                length: 100,
                bytes: 100,
            };
            seq += 100;
            let mut entries = Entries::NONE;
            entries.add(c.sent(at(ms), &segment));
            c.arrived(at(ms), 5, InterfaceId(0), entries, true);
        };
        let to = Ipv6Addr::LOCALHOST;
        for ms in [0, 400, 410] {
            packet(&mut c, ms);
        }
        c.shim_event(at(500), 5, &ShimEvent::HandoffBegun { from: None, to });
        c.shim_event(at(700), 9, &ShimEvent::HandoffBegun { from: None, to });
        let delay = Duration::from_millis(300);
        c.shim_event(at(800), 5, &ShimEvent::HandoffDone { to, delay });
        for ms in [900, 1000, 1900, 5000] {
            packet(&mut c, ms);
        }
        let reports = c.finish(at(6000));
        // 410 to 900 and 1000 to 1900 touch it, 1900 to 5000 comes too late; the handoff of node 9 is none of ours
        let ms = Duration::from_millis;
        assert_eq!(reports[0].interruptions, [Some(ms(900)), None]);
        assert_eq!(reports[0].bins, [400, 200, 0, 0, 0, 100]);
        assert_eq!(c.handoffs()[0].done, Some((at(800), delay)));
    }
}
