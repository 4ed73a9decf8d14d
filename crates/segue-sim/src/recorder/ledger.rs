//! The ledger of packet fates: every TCP packet with data that leaves a host has an entry, and so has every DATA chunk of
//! SCTP and every datagram of an application over UDP; what became of it is noted where it happens. It is the ground truth
//! of loss and retransmission; what the two ends can make out of it is worked out apart from it, in `segue_capture::analyze`.
//!
//! Entries of which there is nothing more to say ([`Entry::is_plain`]) are forgotten after a while, so that a run takes no more
//! memory after an hour than after a minute: what stays is what was lost or sent again.

mod counts;
mod entry_store;
#[cfg(test)]
mod tests;

use crate::recorder::DropCause;
use entry_store::EntryStore;
use segue_capture::handover::LossCause;
use segue_proto::Instant;
use std::collections::BTreeMap;

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

/// In place of the number of an entry: forgotten, and so delivered.
const FORGOTTEN: u32 = u32::MAX;

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
    /// By retransmission: the packet that carried its first byte before.
    previous: BTreeMap<u32, u32>,
    flows: Vec<FlowLedger>,
    /// Their numbers.
    numbers: BTreeMap<FlowKey, u32>,
    /// Flow of the last segment: mostly the next one's too.
    last: usize,
}

#[derive(Debug)]
struct FlowLedger {
    key: FlowKey,
    /// Sequence number of offset 0.
    origin: u32,
    /// First byte that has not been sent.
    next: u64,
    /// The packets that carried something first, by their first byte; of those that are forgotten, the first of each run.
    originals: Vec<Original>,
    /// By first byte of the original: its last copy.
    last_copies: BTreeMap<u64, u32>,
    sent: u64,
    retransmissions: u64,
}

/// A packet that carried something first.
#[derive(Clone, Copy, Debug)]
struct Original {
    offset: u64,
    /// Number of its entry, or [`FORGOTTEN`].
    id: u32,
}

impl Ledger {
    /// A host sends a segment; gives the numbers of its entry and of its flow.
    pub fn sent(&mut self, now: Instant, segment: &Segment) -> (u32, usize) {
        let number = self.flow(segment);
        if self.entries.is_full() {
            self.forget(now);
        }
        let id = self.entries.next_id();
        let flow = &mut self.flows[number];
        let offset = flow.offset(segment.seq);
        let retransmission = offset < flow.next;
        if retransmission {
            self.note_retransmission(id, number, offset);
        } else {
            flow.originals.push(Original { offset, id });
        }
        let flow = &mut self.flows[number];
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

    #[cold]
    fn note_retransmission(&mut self, id: u32, flow: usize, offset: u64) {
        let flow = &mut self.flows[flow];
        flow.retransmissions += 1;
        let after = flow
            .originals
            .partition_point(|original| original.offset <= offset);
        let Some(original) = after.checked_sub(1).map(|at| flow.originals[at]) else {
            return;
        };
        // several are in one place once they are forgotten
        let forgotten = original.id == FORGOTTEN;
        let copied = if forgotten { offset } else { original.offset };
        let before = flow.last_copies.insert(copied, id).filter(|_| !forgotten);
        self.previous.insert(id, before.unwrap_or(original.id));
    }

    #[cold]
    fn forget(&mut self, now: Instant) {
        let forgotten = self.entries.forget(now, self.flows.len());
        for (flow, offsets) in self.flows.iter_mut().zip(&forgotten) {
            flow.forget(offsets);
        }
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
        let last = flow.last_copies.get(&flow.offset(tsn)).copied();
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
            ..FlowCounts::default()
        };
        let mut counts: Vec<FlowCounts> = self.flows.iter().map(begin).collect();
        for (id, entry) in self.entries().filter(|(_, e)| !e.is_plain()) {
            let c = &mut counts[entry.flow as usize];
            if let Some(loss) = entry.fate.loss() {
                c.lost_packets += 1;
                match loss {
                    LossCause::Handover => c.lost_to_handover += 1,
                    LossCause::Queue => c.lost_to_queue += 1,
                    LossCause::Other => c.lost_otherwise += 1,
                }
                *c.lost_by_cause.entry(entry.fate.name()).or_default() += 1;
            }
            c.in_flight_packets += u64::from(entry.fate == PacketFate::InFlight);
            let spurious = entry.is_retransmission() && self.arrived_before(id);
            let fast = entry.sending == Sending::FastRetransmission;
            c.spurious_retransmissions += u64::from(spurious);
            c.fast_retransmissions += u64::from(fast);
            c.spurious_fast_retransmissions += u64::from(fast && spurious);
        }
        counts
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
    #[must_use]
    pub fn arrived_before(&self, id: u32) -> bool {
        let before = |id: &u32| self.previous.get(id).copied();
        core::iter::successors(before(&id), before).any(|id| {
            self.entry(id)
                .is_none_or(|entry| entry.fate == PacketFate::Delivered)
        })
    }

    fn flow(&mut self, segment: &Segment) -> usize {
        if self.flows.get(self.last).is_none_or(|f| f.key != segment.flow) {
            self.find_flow(segment);
        }
        self.last
    }

    #[inline(never)]
    fn find_flow(&mut self, segment: &Segment) {
        self.last = self.number_of(&segment.flow).unwrap_or_else(|| {
            self.numbers.insert(segment.flow, self.flows.len() as u32);
            self.flows.push(FlowLedger {
                key: segment.flow,
                origin: segment.seq,
                next: 0,
                originals: Vec::new(),
                last_copies: BTreeMap::new(),
                sent: 0,
                retransmissions: 0,
            });
            self.flows.len() - 1
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

    /// The originals with these first bytes, in order, are forgotten.
    fn forget(&mut self, offsets: &[u64]) {
        let mut offsets = offsets.iter().peekable();
        let mut before = None;
        self.originals.retain_mut(|original| {
            if offsets.next_if_eq(&&original.offset).is_some() {
                original.id = FORGOTTEN;
            }
            // a run of those that are forgotten is one
            let goes_on = original.id == FORGOTTEN && before == Some(FORGOTTEN);
            before = Some(original.id);
            !goes_on
        });
    }
}
