//! The ledger of packet fates: every TCP packet with data that leaves a host has an entry, and so has every DATA chunk of
//! SCTP and every datagram of an application over UDP; what became of it is noted where it happens. It is the ground truth
//! of loss and retransmission; what the two ends can make out of it is worked out apart from it, in `segue_capture::analyze`.
//!
//! Entries of which nothing more can be learnt are forgotten after a while, so that a run takes no more memory after an hour
//! than after a minute. Of one that was lost or sent again it is counted what it was, and a [`Mark`] of eight bytes stays, from
//! which handovers count.

mod copies;
mod counts;
mod entry_store;
mod mark;
#[cfg(test)]
mod tests;

use crate::hints::{Hints, hash};
use crate::recorder::DropCause;
use copies::{Chain, Copies};
use entry_store::EntryStore;
use segue_capture::handover::LossCause;
use segue_capture::rows::{Rows, Spill};
use segue_proto::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// The entries of a packet: one for a TCP segment or a datagram, one after the other for DATA chunks of SCTP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Entries {
    first: u32,
    count: u32,
}

impl Entries {
    /// Of a packet that has none.
    pub const NONE: Self = Self { first: 0, count: 0 };

    /// Whether there are none.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.count == 0
    }

    /// Adds the next entry.
    pub fn add(&mut self, entry: u32) {
        if self.count == 0 {
            self.first = entry;
        }
        self.count += 1;
    }

    /// Their numbers.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        self.first..self.first + self.count
    }
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketFate {
    /// It is still under way.
    InFlight,
    /// Its receiver's transport got it.
    Delivered,
    /// It reached its receiver, and was dropped below the transport: the shim no longer has the locator that it was
    /// sent to, or the host has not the address.
    Stale,
    /// It was dropped on its way.
    Dropped(DropCause),
}

impl PacketFate {
    /// Whether it was lost: a packet that arrives and is dropped for a stale locator is (004 section 6.1.3).
    #[must_use]
    pub const fn is_lost(self) -> bool {
        matches!(self, Self::Stale | Self::Dropped(..))
    }

    /// Which loss it is in the metrics, if it is one: what comes to a place that the host has left is lost to handover.
    #[must_use]
    pub const fn loss(self) -> Option<LossCause> {
        match self {
            Self::InFlight | Self::Delivered => None,
            Self::Stale => Some(LossCause::Handover),
            Self::Dropped(cause) => Some(cause.loss()),
        }
    }

    /// Name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InFlight => "in-flight",
            Self::Delivered => "delivered",
            Self::Stale => "stale",
            Self::Dropped(cause) => cause.name(),
        }
    }
}

/// A segment with data, as the ledger sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Which flow: see [`FlowKey`].
    pub flow: FlowKey,
    /// Sequence number of the first byte; the TSN of a DATA chunk; over UDP the place of the first byte in all that was sent.
    pub seq: u32,
    /// Sequence numbers that it takes: its bytes, or one for a DATA chunk.
    pub length: u32,
    /// Bytes of data.
    pub bytes: u32,
}

pub use counts::FlowCounts;
pub use mark::Mark;
pub use segue_proto::app::Transport;

/// One direction of a connection. Addresses of a mobile host change, so it goes by its sender and what stays: the ports
/// and the identifier of the receiver, which is the lower half of its identity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowKey {
    /// Over what.
    pub transport: Transport,
    /// Node that sends.
    pub sender: u32,
    /// Identifier of the receiver; the verification tag of SCTP.
    pub receiver: u64,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

impl FlowKey {
    fn hash(&self) -> u64 {
        let ports = u64::from(self.source_port) << 16 | u64::from(self.destination_port);
        let over = (self.transport as u64) << 32;
        hash(u64::from(self.sender) << 34 ^ over ^ ports, self.receiver)
    }
}

impl Ord for FlowKey {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        let key = |k: &Self| {
            let over = k.transport as u8;
            (k.sender, k.receiver, k.source_port, k.destination_port, over)
        };
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for FlowKey {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether something was sent before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sending {
    /// Its first byte had not been sent before.
    Original,
    /// It had.
    Retransmission,
    /// It had, and was sent again because of missing reports (SCTP).
    FastRetransmission,
}

/// Unit of [`Entry::sent_ticks`], nanoseconds; enough for runs of eleven hours, after which it stands still.
pub const TICK_NS: u64 = 10_000;

/// A time in units of [`TICK_NS`].
#[must_use]
pub fn ticks(ns: u64) -> u32 {
    u32::try_from(ns / TICK_NS).unwrap_or(u32::MAX)
}

/// One packet. Small, since there are many: memory that is used once costs more than the rest here.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// First sequence number, counted from the first that the flow sent.
    pub offset: u64,
    /// When it was sent, in units of [`TICK_NS`]: as exact as an entry has room for.
    pub sent_ticks: u32,
    /// Number of its flow.
    pub flow: u32,
    /// Bytes of data.
    pub bytes: u16,
    /// What became of it.
    pub fate: PacketFate,
    /// Whether its first byte had been sent before.
    pub sending: Sending,
}

impl Entry {
    /// Whether its first byte had been sent before.
    #[must_use]
    pub fn is_retransmission(&self) -> bool {
        self.sending != Sending::Original
    }

    /// It was sent once and arrived, as nearly all do: there is nothing to be counted of it but itself.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.fate == PacketFate::Delivered && self.sending == Sending::Original
    }
}

/// The ledger.
#[derive(Debug, Default)]
pub struct Ledger {
    entries: EntryStore,
    flows: Vec<FlowLedger>,
    /// Their numbers.
    numbers: BTreeMap<FlowKey, u32>,
    /// Those of the flows that sent last.
    hints: Hints<u32>,
    /// Flow of the last segment: mostly the next one's too.
    last: usize,
    spill: Option<Spill>,
}

/// In this order: what every packet looks at comes first, on few lines of the cache.
#[derive(Debug)]
#[repr(C)]
struct FlowLedger {
    key: FlowKey,
    /// Sequence number of offset 0.
    origin: u32,
    /// First byte that has not been sent.
    next: u64,
    sent: u64,
    /// Which of its packets carried the same.
    copies: Copies,
    retransmissions: u64,
    /// What was counted of entries that are forgotten.
    forgotten: FlowCounts,
    /// Of them, what handovers may count.
    marks: Rows<Mark>,
    /// Of them, the greatest first byte of one that was lost.
    lost_last: Option<u64>,
}

impl Ledger {
    /// Leaves what handovers may count of what is forgotten in this store.
    pub fn keep_in(&mut self, spill: &Spill) {
        self.flows.iter_mut().for_each(|flow| flow.marks.keep_in(spill));
        self.spill = Some(spill.clone());
    }

    /// Has all of it in memory again: the run is over.
    pub fn recall(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.marks.recall());
    }

    /// A host sends a segment; gives the numbers of its entry and of its flow.
    pub fn sent(&mut self, now: Instant, segment: &Segment) -> (u32, usize) {
        let number = self.flow(segment);
        let id = self.entries.next_id();
        let flow = &mut self.flows[number];
        let offset = flow.offset(segment.seq);
        let retransmission = offset < flow.next;
        if retransmission {
            flow.sent_again(offset, id);
        } else {
            flow.copies.sent_first(offset, id);
        }
        flow.next = flow.next.max(offset + u64::from(segment.length));
        flow.sent += 1;
        self.entries.push(Entry {
            offset,
            sent_ticks: ticks(now.as_nanos()),
            flow: number as u32,
            bytes: segment.bytes as u16,
            fate: PacketFate::InFlight,
            sending: if retransmission {
                Sending::Retransmission
            } else {
                Sending::Original
            },
        });
        (id, number)
    }

    /// Whether it is time to [forget](Self::forget).
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.entries.is_full()
    }

    /// Forgets entries of which nothing more can be learnt.
    #[cold]
    pub fn forget(&mut self, now: Instant) {
        let until = self.entries.age(now, self.flows.len());
        let mut plain = vec![Vec::new(); self.flows.len()];
        let chains = self.flows.iter().zip(&until);
        let mut over: Vec<Vec<Chain>> = chains
            .map(|(flow, until)| flow.copies.over(&self.entries, *until))
            .collect();
        for (id, entry) in self.entries.aged() {
            let flow = entry.flow as usize;
            if *id >= until[flow] {
                continue;
            }
            if entry.is_plain() {
                plain[flow].push(entry.offset);
            } else if entry.fate.is_lost() && !entry.is_retransmission() {
                over[flow].extend(self.flows[flow].copies.lost_alone(entry.offset, *id));
            }
        }
        let mut gone = BTreeSet::new();
        for (flow, (plain, over)) in self.flows.iter_mut().zip(plain.iter().zip(&over)) {
            flow.copies.forget(plain, over);
            for (id, arrived_before) in over.iter().flat_map(|chain| &chain.entries) {
                gone.insert(*id);
                if let Some(entry) = self.entries.get(*id) {
                    flow.count(entry, *arrived_before);
                }
            }
        }
        self.entries.retain_aged(|id, entry| {
            let plain = entry.is_plain() && id < until[entry.flow as usize];
            !plain && !gone.contains(&id)
        });
    }

    /// Of what was sent so long ago that much of it is forgotten, the entries that are not, by their numbers; and the number
    /// from which on nothing is forgotten.
    #[must_use]
    pub fn aged(&self) -> (&[(u32, Entry)], u32) {
        (self.entries.aged(), self.entries.first_recent())
    }

    /// The sequence number of what a flow has not yet sent.
    #[must_use]
    pub fn next_seq(&self, key: &FlowKey) -> u32 {
        let flow = self.numbers.get(key).map(|number| &self.flows[*number as usize]);
        flow.map_or(0, |flow| flow.origin.wrapping_add(flow.next as u32))
    }

    /// An entry, unless it is forgotten.
    #[must_use]
    #[inline]
    pub fn entry(&self, id: u32) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// Sequence numbers that a packet takes.
    #[must_use]
    pub fn length_of(&self, entry: &Entry) -> u32 {
        match self.flows[entry.flow as usize].key.transport {
            Transport::Tcp | Transport::Udp => u32::from(entry.bytes),
            Transport::Sctp => 1,
        }
    }

    /// A packet met its fate. Of one that a link has made two of, the better fate counts.
    pub fn met(&mut self, entries: Entries, fate: PacketFate) {
        for id in entries.iter() {
            if let Some(entry) = self.entries.get_mut(id)
                && entry.fate != PacketFate::Delivered
            {
                entry.fate = fate;
            }
        }
    }

    /// What has this entry was delivered; gives it, unless it was so long ago that it is forgotten, and this is a copy.
    pub fn delivered(&mut self, id: u32) -> Option<Entry> {
        let entry = self.entries.get_mut(id)?;
        entry.fate = PacketFate::Delivered;
        Some(*entry)
    }

    /// A host says that what it sent last of an SCTP flow with this number was sent because of missing reports.
    pub fn was_fast(&mut self, sender: u32, peer_tag: u32, tsn: u32) {
        let Some(number) = self.number_of_tag(sender, peer_tag) else {
            return;
        };
        let flow = &self.flows[number];
        let last = flow.copies.last_of(flow.offset(tsn));
        if let Some(last) = last.and_then(|id| self.entries.get_mut(id)) {
            last.sending = Sending::FastRetransmission;
        }
    }

    /// Whether something in the packet was a retransmission.
    #[must_use]
    pub fn is_retransmission(&self, entries: Entries) -> bool {
        entries
            .iter()
            .any(|id| self.entry(id).is_some_and(Entry::is_retransmission))
    }

    /// Number of the flow with this key, once it has sent.
    #[must_use]
    pub fn number_of(&self, key: &FlowKey) -> Option<usize> {
        self.numbers.get(key).map(|number| *number as usize)
    }

    /// Number of the SCTP flow of a sender with this verification tag, once it has sent.
    #[must_use]
    pub fn number_of_tag(&self, sender: u32, tag: u32) -> Option<usize> {
        let first = FlowKey {
            transport: Transport::Sctp,
            sender,
            receiver: u64::from(tag),
            source_port: 0,
            destination_port: 0,
        };
        let mut own = self
            .numbers
            .range(first..)
            .take_while(|(k, _)| (k.sender, k.receiver) == (sender, first.receiver))
            .filter(|(k, _)| k.transport == Transport::Sctp);
        own.next().map(|(_, number)| *number as usize)
    }

    /// The flows by number.
    pub fn flows(&self) -> impl Iterator<Item = &FlowKey> {
        self.flows.iter().map(|f| &f.key)
    }

    /// A flow by its number.
    #[must_use]
    pub fn key(&self, number: usize) -> &FlowKey {
        &self.flows[number].key
    }

    /// All entries that are not forgotten, by their numbers, in the order in which packets were sent.
    pub fn entries(&self) -> impl Iterator<Item = (u32, &Entry)> {
        self.entries.iter()
    }

    /// Counts of every flow, by number.
    #[must_use]
    pub fn counts(&self) -> Vec<FlowCounts> {
        let begin = |f: &FlowLedger| FlowCounts {
            packets_sent: f.sent,
            retransmissions: f.retransmissions,
            ..f.forgotten.clone()
        };
        let mut counts: Vec<FlowCounts> = self.flows.iter().map(begin).collect();
        for (id, entry) in self.entries().filter(|(_, e)| !e.is_plain()) {
            counts[entry.flow as usize].add(entry, self.arrived_before(id, entry));
        }
        counts
    }

    /// What handovers may count, with the number of its flow.
    pub fn marks(&self) -> impl Iterator<Item = (usize, Mark)> {
        let forgotten = self.flows.iter().enumerate();
        let forgotten =
            forgotten.flat_map(|(number, flow)| flow.marks.iter().map(move |mark| (number, mark)));
        let known = self.entries().filter(|(_, entry)| !entry.is_plain());
        forgotten.chain(known.filter_map(|(id, entry)| {
            let mark = Mark::of(entry, self.arrived_before(id, entry))?;
            Some((entry.flow as usize, mark))
        }))
    }

    /// The greatest first byte of those packets of a flow that were lost and are forgotten.
    #[must_use]
    pub fn lost_last(&self, flow: usize) -> Option<u64> {
        self.flows[flow].lost_last
    }

    /// The sequence number that an entry begins with, as it was on the wire.
    #[must_use]
    pub fn seq_of(&self, entry: &Entry) -> u32 {
        let flow = &self.flows[entry.flow as usize];
        flow.origin.wrapping_add(entry.offset as u32)
    }

    /// Whether all that a flow has sent is before this offset.
    #[must_use]
    pub fn ends_at(&self, flow: usize, offset: u64) -> bool {
        self.flows[flow].next <= offset
    }

    /// Whether a copy of a packet that was sent before it arrived, then or later.
    fn arrived_before(&self, id: u32, entry: &Entry) -> bool {
        let flow = &self.flows[entry.flow as usize];
        flow.copies.arrived_before(id, &self.entries)
    }

    fn flow(&mut self, segment: &Segment) -> usize {
        if self.flows.get(self.last).is_none_or(|f| f.key != segment.flow) {
            self.find_flow(segment);
        }
        self.last
    }

    #[inline(never)]
    fn find_flow(&mut self, segment: &Segment) {
        let hash = segment.flow.hash();
        let is_it = |number: &u32| self.flows[*number as usize].key == segment.flow;
        if let Some(number) = self.hints.find(hash, is_it) {
            self.last = number as usize;
            return;
        }
        self.find_flow_in_tree(segment);
        self.hints.note(hash, self.last as u32, self.flows.len());
    }

    #[inline(never)]
    fn find_flow_in_tree(&mut self, segment: &Segment) {
        self.last = self.number_of(&segment.flow).unwrap_or_else(|| {
            self.numbers.insert(segment.flow, self.flows.len() as u32);
            self.flows.push(FlowLedger {
                key: segment.flow,
                origin: segment.seq,
                next: 0,
                copies: Copies::default(),
                sent: 0,
                retransmissions: 0,
                forgotten: FlowCounts::default(),
                marks: Rows::new(),
                lost_last: None,
            });
            let last = self.flows.len() - 1;
            self.spill
                .iter()
                .for_each(|spill| self.flows[last].marks.keep_in(spill));
            last
        });
    }
}

impl FlowLedger {
    /// Offset of a sequence number: the one nearest to what was sent last (RFC 9293 section 3.4).
    fn offset(&self, seq: u32) -> u64 {
        let expected = self.origin.wrapping_add(self.next as u32);
        let ahead = i64::from(seq.wrapping_sub(expected) as i32);
        self.next.saturating_add_signed(ahead)
    }

    #[cold]
    fn sent_again(&mut self, offset: u64, id: u32) {
        self.retransmissions += 1;
        self.copies.sent_again(offset, id);
    }

    /// Counts an entry that is about to be forgotten.
    fn count(&mut self, entry: &Entry, arrived_before: bool) {
        self.forgotten.add(entry, arrived_before);
        Mark::of(entry, arrived_before)
            .into_iter()
            .for_each(|mark| self.marks.push(mark));
        if entry.fate.is_lost() {
            self.lost_last = self.lost_last.max(Some(entry.offset));
        }
    }
}
