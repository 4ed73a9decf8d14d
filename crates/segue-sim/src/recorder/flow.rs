//! One direction of a flow while the run goes: what arrived when and by which way, and how long nothing new did.

use super::handoffs::Handoffs;
use super::ledger::Entry;
use super::overlap::Overlaps;
use super::pauses::{Gap, Pauses};
use super::received::Received;
use core::hint::cold_path;
use segue_capture::handover::{Handover, HandoverMeter, LossCause};
use segue_capture::rows::{Rows, Spill};
use segue_proto::{Duration, Instant, InterfaceId};
use segue_wire::{Packet, Payload, Tsn};
use smallvec::SmallVec;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// Width of a bin of received data.
pub const BIN: Duration = Duration::from_secs(1);

/// The way that a packet takes, as it shows on the wire: a path of `segue_capture::analyze`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// Source of the outermost header.
    pub source: Ipv6Addr,
    /// Its destination.
    pub destination: Ipv6Addr,
    /// Interface that it leaves or arrives by; always the first where the transport's sender chooses paths by addresses.
    pub interface: InterfaceId,
    /// Through a tunnel.
    pub tunnelled: bool,
    /// Source and interface when it left, where shims may change them on the way.
    pub origin: (Ipv6Addr, InterfaceId),
}

impl Way {
    /// Of a packet at an interface of a host.
    #[must_use]
    #[inline]
    pub fn of(packet: &Packet, interface: InterfaceId) -> Self {
        Self {
            source: packet.ip.source,
            destination: packet.ip.destination,
            interface,
            tunnelled: matches!(packet.payload, Payload::Ipv6(_)),
            origin: (packet.ip.source, interface),
        }
    }

    /// Whether it leaves and arrives as the other does. What differs in between, as a tunnel that is or is not there, is no
    /// handover of a host.
    fn has_ends_of(&self, other: &Self) -> bool {
        let ends = |way: &Self| (way.origin, way.destination, way.interface);
        ends(self) == ends(other)
    }

    /// The same by its addresses alone.
    const fn addresses(self) -> Self {
        Self {
            interface: InterfaceId(0),
            tunnelled: false,
            origin: (self.source, InterfaceId(0)),
            ..self
        }
    }
}

/// How a packet leaves its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Left {
    origin: (Ipv6Addr, InterfaceId),
    destination: Ipv6Addr,
}

/// What is known of a way of a flow.
#[derive(Clone, Copy, Debug)]
struct ByWay {
    /// New bytes that it brought.
    new_bytes: u64,
    /// Number of the first way that has its ends.
    first: u16,
}

/// Changes of [`Left`] that are remembered: more than packets are under way.
const REMEMBERED: usize = 8192;

/// What tells the ways of a flow apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Paths {
    /// All that shows on the wire at both ends: the network layer sees to mobility.
    #[default]
    Network,
    /// The addresses that the transport's sender chose.
    Transport,
    /// The same, several of them at once.
    Concurrent,
}

/// A handover of a flow's data.
#[derive(Clone, Debug)]
pub struct Move {
    /// The way before.
    pub from: Way,
    /// The way after.
    pub to: Way,
    /// What the data shows; its paths are of no use.
    pub data: Handover<()>,
}

/// A handoff that a flow may be without data for.
#[derive(Clone, Copy, Debug)]
struct Around {
    number: u32,
    /// Longest time without new data around it so far.
    gap: Option<Duration>,
}

/// A direction of a flow. In this order: what a packet that is sent and one that arrives look at is on a few lines of the cache,
/// since among many flows each of them has to come from memory.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Data {
    first_sent: Option<Instant>,
    /// How packets left, from which entry of the ledger on.
    left: Vec<(u32, Left)>,
    /// Greatest offset that was sent, that arrived, and behind what arrived.
    newest_sent: u64,
    newest: u64,
    arrived_end: u64,
    /// Once there is more than one way.
    meter: Option<Box<HandoverMeter<u16>>>,
    ways: SmallVec<[Way; 2]>,
    sender: u32,
    /// Number of the way by which data arrived last, and by which it was sent last.
    way: u16,
    sent_way: u16,
    paths: Paths,
    /// The mobile host is at the sending end, so that a path has the name of its source.
    sender_moves: bool,
    /// Its sender has said that it was over.
    closed: bool,
    pauses: Pauses,
    /// When data last arrived that had not been there before.
    last_new: Option<Instant>,
    /// When data last arrived.
    last_data: Option<Instant>,
    /// Bytes that arrived, each counted once.
    new_bytes: u64,
    in_last_bin: u64,
    received: Received,
    /// Node at the receiving end, once something has arrived.
    receiver: Option<u32>,
    looked_at: [usize; 2],
    /// Of each way.
    by_way: SmallVec<[ByWay; 2]>,
    /// Where data takes all paths at once.
    overlaps: Option<Box<Overlaps>>,
    /// New bytes by second of simulated time, and before that those of the second in which something last arrived.
    bins: Rows<u64>,
    /// Handoffs that it may be without data for, and before that how many of each end's hosts have been looked at.
    watched: SmallVec<[Around; 2]>,
    duplicates: u64,
    /// Longest time without new data, ns, by handoffs that are over.
    gaps: Rows<(u32, u64)>,
    spill: Option<Spill>,
}

impl Data {
    /// A direction whose data `sender` sends.
    #[must_use]
    pub fn new(sender: u32, sender_moves: bool, paths: Paths) -> Self {
        Self {
            sender,
            sender_moves,
            paths,
            overlaps: (paths == Paths::Concurrent).then(Box::default),
            ..Self::default()
        }
    }

    /// The same in a run in which something happens then.
    #[must_use]
    pub fn around(self, events: &Arc<[Gap]>) -> Self {
        Self {
            pauses: Pauses::around(events),
            ..self
        }
    }

    /// Leaves all that is over of what grows with the run in this store.
    pub fn keep_in(&mut self, spill: &Spill) {
        self.pauses.keep_in(spill);
        self.bins.keep_in(spill);
        self.gaps.keep_in(spill);
        self.meter.iter_mut().for_each(|meter| meter.keep_in(spill));
        self.overlaps.iter_mut().for_each(|o| o.keep_in(spill));
        self.spill = Some(spill.clone());
    }

    /// Has all of it in memory again: the run is over.
    pub fn recall(&mut self) {
        self.pauses.recall();
        self.bins.recall();
        self.gaps.recall();
        self.meter.iter_mut().for_each(|meter| meter.recall());
        self.overlaps.iter_mut().for_each(|o| o.recall());
    }

    /// Data leaves as this entry of the ledger. Its sender has had some to send since `busy_since`; if that is not known, since
    /// new data last arrived.
    #[inline]
    pub fn sent(&mut self, now: Instant, id: u32, entry: &Entry, way: &Way, busy_since: Option<Instant>) {
        self.first_sent.get_or_insert(now);
        let awaited_since = busy_since.or(self.last_new).unwrap_or(now);
        self.pauses.sent(now, awaited_since, entry.is_retransmission());
        let left = Left {
            origin: way.origin,
            destination: way.destination,
        };
        if self.left.last().is_none_or(|(_, last)| *last != left) {
            self.leaves_otherwise(id, left);
        }
        if self.paths != Paths::Network {
            let number = self.number_of_addresses(way, self.sent_way);
            if number != 0 && self.meter.is_none() && self.paths == Paths::Transport {
                self.begin_meter();
            }
            self.sent_way = number;
            if let Some(meter) = &mut self.meter {
                cold_path();
                meter.data_sent(now.as_nanos(), number, Tsn(entry.offset as u32));
            }
        }
        self.newest_sent = self.newest_sent.max(entry.offset);
    }

    /// Data arrives that takes `length` sequence numbers.
    #[inline]
    pub fn arrived(
        &mut self,
        now: Instant,
        id: u32,
        entry: &Entry,
        length: u64,
        way: &Way,
        handoffs: &Handoffs,
    ) {
        let new = self.received.take(entry.offset, entry.offset + length);
        let bytes = u64::from(entry.bytes);
        // a division is worth avoiding here
        let new_bytes = if new == length {
            bytes
        } else {
            cold_path();
            new * bytes / length.max(1)
        };
        let gap = self.silence_until(now);
        self.took_way(gap, id, entry, new_bytes, way);
        if new == 0 {
            cold_path();
            self.duplicates += 1;
            return;
        }
        self.note_gaps(handoffs, now);
        self.arrived_end = self.arrived_end.max(entry.offset + length);
        self.new_bytes += new_bytes;
        let bin = (now.as_nanos() / BIN.as_nanos()) as usize;
        while self.bins.len() < bin {
            cold_path();
            self.bins.push(core::mem::take(&mut self.in_last_bin));
        }
        self.in_last_bin += new_bytes;
        let is_first = self.last_new.replace(now).is_none();
        let more_under_way = self.newest_sent >= self.arrived_end;
        self.pauses.arrived(gap, is_first, more_under_way);
    }

    /// The time without new data that ends with what arrives now: since it last did, or, if nothing was to come then, since
    /// something was. Of what arrives first, since it was first tried.
    #[inline]
    fn silence_until(&self, now: Instant) -> Gap {
        let since = match self.last_new {
            Some(before) => before.max(self.pauses.awaited_since().unwrap_or(before)),
            None => self.first_sent.unwrap_or(now),
        };
        Gap { since, until: now }
    }

    /// By which way data arrives.
    #[inline]
    fn took_way(&mut self, gap: Gap, id: u32, entry: &Entry, new_bytes: u64, way: &Way) {
        let now = gap.until;
        let number = match self.paths {
            Paths::Network => {
                let origin = self.left_as(id).map_or(way.origin, |left| left.origin);
                self.number_of(&Way { origin, ..*way }, self.way)
            }
            Paths::Transport | Paths::Concurrent => self.number_of_addresses(way, self.way),
        };
        if self.last_data.is_none() {
            self.way = number;
        } else if number != self.way && self.meter.is_none() && self.overlaps.is_none() {
            self.moves_perhaps(number);
        }
        self.by_way[usize::from(number)].new_bytes += new_bytes;
        let now_ns = now.as_nanos();
        if let Some(meter) = &mut self.meter {
            cold_path();
            if self.last_new.is_some_and(|before| gap.since > before) {
                meter.silence_begins(gap.since.as_nanos());
            }
            let first = self.by_way[usize::from(number)].first;
            meter.data_received(now_ns, first, Tsn(entry.offset as u32), new_bytes as u32);
        }
        let address = self.name_of(way);
        if new_bytes > 0
            && let Some(overlaps) = &mut self.overlaps
        {
            cold_path();
            overlaps.received(gap, address);
        }
        self.way = number;
        self.last_data = Some(now);
        self.newest = self.newest.max(entry.offset);
    }

    /// Data that was on this way is lost.
    pub fn lost(&mut self, now: Instant, packet: &Packet, cause: LossCause, chunks: u32) {
        if self.paths == Paths::Network {
            return;
        }
        let way = Way::of(packet, InterfaceId(0)).addresses();
        let (number, address) = (self.number_of(&way, self.sent_way), self.name_of(&way));
        for _ in 0..chunks {
            // without a meter there has been one way so far: its losses belong to the handover that may come
            if cause == LossCause::Handover && self.paths == Paths::Transport && self.meter.is_none() {
                self.begin_meter();
            }
            if let Some(meter) = &mut self.meter {
                meter.data_lost(now.as_nanos(), number, cause);
            }
            if cause == LossCause::Handover
                && let Some(overlaps) = &mut self.overlaps
            {
                overlaps.lost(address);
            }
        }
    }

    /// The sender made another path its primary.
    pub fn primary_changed(&mut self, path: Ipv6Addr) {
        if let Some(overlaps) = &mut self.overlaps {
            overlaps.primary_changed(path);
        }
        let Some(&last) = self.ways.get(usize::from(self.sent_way)) else {
            return;
        };
        if self.paths != Paths::Transport || last.destination == path && self.meter.is_none() {
            return;
        }
        let way = Way {
            destination: path,
            ..last
        };
        let number = self.number_of(&way, self.sent_way);
        if self.meter.is_none() {
            self.begin_meter();
        }
        if let Some(meter) = &mut self.meter {
            meter.path_announced(number);
        }
    }

    /// Its sender says that it is over.
    pub const fn close(&mut self) {
        self.closed = true;
    }

    /// Notes how long nothing new came, until `now`, around each handoff of its ends.
    #[inline]
    pub fn note_gaps(&mut self, handoffs: &Handoffs, now: Instant) {
        let ends = [Some(self.sender), self.receiver];
        for (looked_at, node) in self.looked_at.iter_mut().zip(ends) {
            let Some(node) = node else { continue };
            let own = handoffs.of(node);
            if own.count() > *looked_at {
                cold_path();
                let begun = own.from(*looked_at);
                self.watched
                    .extend(begun.map(|number| Around { number, gap: None }));
                *looked_at = own.count();
            }
        }
        if !self.watched.is_empty() {
            self.note_gaps_watched(handoffs, now);
        }
    }

    #[cold]
    fn note_gaps_watched(&mut self, handoffs: &Handoffs, now: Instant) {
        let Gap { since, .. } = self.silence_until(now);
        self.watched.retain(|around| {
            let Some(handoff) = handoffs.get(around.number) else {
                return false;
            };
            if handoff.is_within(since, now) {
                around.gap = around.gap.max(Some(now.since(since)));
            }
            let is_over = handoff.is_over(now);
            if is_over && let Some(gap) = around.gap {
                self.gaps.push((around.number, gap.as_nanos()));
            }
            !is_over
        });
    }

    /// Notes the node at the receiving end.
    #[inline]
    pub const fn received_at(&mut self, node: u32) {
        self.receiver = Some(node);
    }

    /// Handovers that its data shows, in order.
    #[must_use]
    pub fn moves(&self) -> Vec<Move> {
        if let Some(overlaps) = &self.overlaps {
            let found = overlaps.finish();
            let way = |address: Ipv6Addr| self.ways.iter().rev().find(|w| self.name_of(w) == address);
            // there is no moment at which all data moves from one path to the other
            let moved = |h: &Handover| {
                Some(Move {
                    from: *way(h.from)?,
                    to: *way(h.to)?,
                    data: without_paths(h),
                })
            };
            return found.iter().filter_map(moved).collect();
        }
        let Some(meter) = &self.meter else {
            return Vec::new();
        };
        let moved = |h: &Handover<u16>| Move {
            from: self.ways[usize::from(h.from)],
            to: self.ways[usize::from(h.to)],
            data: without_paths(h),
        };
        HandoverMeter::clone(meter)
            .finish()
            .handovers
            .iter()
            .map(moved)
            .collect()
    }

    /// What tells its ways apart.
    #[must_use]
    pub const fn paths(&self) -> Paths {
        self.paths
    }

    /// Node that sends.
    #[must_use]
    pub const fn sender(&self) -> u32 {
        self.sender
    }

    /// Node at the receiving end, if anything arrived.
    #[must_use]
    pub const fn receiver(&self) -> Option<u32> {
        self.receiver
    }

    /// When its first data was sent.
    #[must_use]
    pub fn begin(&self) -> Instant {
        self.first_sent.unwrap_or_default()
    }

    /// Whether there has been something to come since new data last arrived.
    #[must_use]
    pub const fn is_awaited(&self) -> bool {
        self.pauses.awaited_since().is_some()
    }

    /// Since when nothing new has come that was to come, at the end of the run.
    #[must_use]
    pub fn silent_since(&self, end: Instant) -> Instant {
        self.silence_until(end).since
    }

    /// When new data last arrived.
    #[must_use]
    pub const fn last_new(&self) -> Option<Instant> {
        self.last_new
    }

    /// Bytes that arrived, each counted once.
    #[must_use]
    pub const fn new_bytes(&self) -> u64 {
        self.new_bytes
    }

    /// Packets that arrived and carried nothing new.
    #[must_use]
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// New bytes that arrived, by second of simulated time.
    #[must_use]
    pub fn bins(&self) -> Vec<u64> {
        let last = self.last_new.map(|_| self.in_last_bin);
        self.bins.iter().chain(last).collect()
    }

    /// New bytes that arrived, by the address of the end that moves.
    #[must_use]
    pub fn bytes_by_address(&self) -> Vec<(Ipv6Addr, u64)> {
        let mut all: Vec<(Ipv6Addr, u64)> = Vec::new();
        for (way, of_way) in self.ways.iter().zip(&self.by_way) {
            let address = self.name_of(way);
            match all.iter_mut().find(|(a, _)| *a == address) {
                Some((_, known)) => *known += of_way.new_bytes,
                None => all.push((address, of_way.new_bytes)),
            }
        }
        all.retain(|(_, bytes)| *bytes > 0);
        all
    }

    /// Its times without new data, and what its sender does about the last.
    #[must_use]
    pub const fn pauses(&self) -> &Pauses {
        &self.pauses
    }

    /// Longest time without new data around a handoff of one of its ends; nothing if it is none of theirs.
    #[must_use]
    pub fn gap_around(&self, number: u32, node: u32) -> Option<Duration> {
        if node != self.sender && Some(node) != self.receiver {
            return None;
        }
        let watched = self.watched.iter().map(|around| (around.number, around.gap));
        let over = self
            .gaps
            .iter()
            .map(|(n, ns)| (n, Some(Duration::from_nanos(ns))));
        let own = watched.chain(over).filter(|(n, _)| *n == number);
        Some(own.filter_map(|(_, gap)| gap).max().unwrap_or_default())
    }

    /// Everything before this offset has arrived.
    #[must_use]
    pub const fn cumulative(&self) -> u64 {
        self.received.cumulative()
    }

    /// Whether its sender has said that it was over.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// The first attempt since new data last arrived, or that arrival.
    #[must_use]
    pub fn tried_since(&self) -> Instant {
        let tried = self.pauses.tried_since().or(self.last_new);
        tried.unwrap_or_else(|| self.begin())
    }

    /// Where an entry of the ledger was sent to.
    #[must_use]
    pub fn destination_of(&self, id: u32) -> Option<Ipv6Addr> {
        self.left_as(id).map(|left| left.destination)
    }

    /// Of how many ways it is remembered from when on packets left so.
    #[cfg(test)]
    pub fn ways_left(&self) -> usize {
        self.left.len()
    }

    fn left_as(&self, id: u32) -> Option<&Left> {
        let after = self.left.partition_point(|(first, _)| *first <= id);
        after.checked_sub(1).map(|at| &self.left[at].1)
    }

    #[cold]
    fn leaves_otherwise(&mut self, id: u32, left: Left) {
        if self.left.len() == REMEMBERED {
            self.left.drain(..REMEMBERED / 2);
        }
        self.left.push((id, left));
    }

    /// Of how packets left, keeps what is known of these entries, which are in order, and of those from `recent` on.
    pub fn forget_left(&mut self, kept: &[u32], recent: u32) {
        let nexts: Vec<u32> = self.left.iter().skip(1).map(|(first, _)| *first).collect();
        let mut nexts = nexts.into_iter();
        self.left.retain(|(first, _)| {
            // the last goes on
            let Some(next) = nexts.next() else { return true };
            let from = kept.partition_point(|id| id < first);
            next > recent || kept.get(from).is_some_and(|id| *id < next)
        });
    }

    /// Nothing before this offset can arrive any more.
    pub fn forget_holes(&mut self, floor: u64) {
        self.received.forget_holes(floor);
    }

    /// The address that names a way: of the end that moves.
    const fn name_of(&self, way: &Way) -> Ipv6Addr {
        if self.sender_moves {
            way.source
        } else {
            way.destination
        }
    }

    /// Number of a way, which is probably `last`.
    #[inline]
    fn number_of(&mut self, way: &Way, last: u16) -> u16 {
        if self.ways.get(usize::from(last)) == Some(way) {
            return last;
        }
        self.number_of_another(way)
    }

    /// The same of a way [by its addresses](Way::addresses), where ways are known by nothing else.
    #[inline]
    fn number_of_addresses(&mut self, way: &Way, last: u16) -> u16 {
        let known = self.ways.get(usize::from(last));
        if known.is_some_and(|known| (known.source, known.destination) == (way.source, way.destination)) {
            return last;
        }
        self.number_of_another(&way.addresses())
    }

    #[cold]
    fn number_of_another(&mut self, way: &Way) -> u16 {
        let known = self.ways.iter().position(|w| w == way);
        known.unwrap_or_else(|| {
            let number = self.ways.len();
            let first = self.ways.iter().position(|w| w.has_ends_of(way));
            self.ways.push(*way);
            self.by_way.push(ByWay {
                new_bytes: 0,
                first: first.unwrap_or(number) as u16,
            });
            number
        }) as u16
    }

    /// Data comes by another way than before, for the first time.
    #[cold]
    fn moves_perhaps(&mut self, number: u16) {
        let first = |number| self.by_way[usize::from(number)].first;
        if first(number) != first(self.way) {
            self.begin_meter();
        }
    }

    /// Up to now there was one way: that is all that a meter would know.
    #[cold]
    fn begin_meter(&mut self) {
        let mut meter = Box::new(HandoverMeter::new());
        let ns = |at: Option<Instant>| at.unwrap_or_default().as_nanos();
        if self.paths == Paths::Transport {
            meter.data_sent(ns(self.first_sent), self.sent_way, Tsn(0));
            if self.newest_sent > 0 {
                meter.data_sent(ns(self.first_sent), self.sent_way, Tsn(self.newest_sent as u32));
            }
        }
        let way = self.by_way[usize::from(self.way)].first;
        if self.last_new.is_some() {
            meter.data_received(ns(self.last_new), way, Tsn(self.newest as u32), 1);
        }
        if self.last_data > self.last_new {
            meter.data_received(ns(self.last_data), way, Tsn(self.newest as u32), 0);
        }
        self.spill.iter().for_each(|spill| meter.keep_in(spill));
        self.meter = Some(meter);
    }
}

const fn without_paths<P>(h: &Handover<P>) -> Handover<()> {
    Handover {
        time_s: h.time_s,
        from: (),
        to: (),
        latency_s: h.latency_s,
        interruption_s: h.interruption_s,
        lost_packets: h.lost_packets,
    }
}
