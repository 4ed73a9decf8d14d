//! The stream of packets of all captures, taken apart into flows and signalling.

mod early_join;
mod mptcp;
mod packet;
mod quic_ids;
mod sctp;
mod signalling;
mod tcp;
mod udp;

use super::counts::Counts;
use super::decode::{self, Address, Decoded};
use super::flows::conn::{Conn, Limits};
use super::flows::ends::MAX_COPIES;
use super::flows::item::Settings;
use super::flows::key::{Key, Slot};
use super::flows::paths::{Role, Sight};
use super::flows::table::Table;
use super::heard::Heard;
use super::model::{Options, Protocol, SignalKind};
use super::places::Places;
use super::reader::Record;
use super::report::Results;
use crate::pcapng::Direction;
use packet::Seen;
use std::collections::{BTreeMap, BTreeSet};

/// Signals kept; further ones are counted.
const MAX_SIGNALS: usize = 10_000;

/// Node identifiers of ILNP that are remembered.
const MAX_NIDS: usize = 65_536;

/// Hosts whose locators are followed.
const MAX_HOSTS: usize = 1024;

/// Copies of packets of all flows between two captures that are followed at a time: 40 bytes each.
const ALL_COPIES: usize = 1_500_000;

/// What a host said of its locators (RFC 6743).
#[derive(Clone, Debug)]
struct Locators {
    capture: u8,
    nid: u64,
    locators: Vec<u64>,
}

/// Takes packets in the order of time.
pub(super) struct Engine {
    pub(super) table: Table,
    pub(super) results: Results,
    pub(super) counts: [Counts; 2],
    pub(super) signals: Vec<Heard>,
    pub(super) limits: BTreeMap<&'static str, u64>,
    pub(super) evicted: u64,
    /// Flows of those that it has taken over.
    absorbed: u64,
    max_live: usize,
    settings: Settings,
    /// Time of the last packet so far.
    read_to_ns: u64,
    two: bool,
    places: Places,
    nids: BTreeSet<u64>,
    locators: Vec<Locators>,
    quic_id_lengths: quic_ids::QuicIdLengths,
    early_joins: early_join::EarlyJoins,
}

impl Engine {
    pub(super) fn new(options: &Options, two: bool, places: Places, start_ns: u64) -> Self {
        let ns = |s: f64| {
            if s.is_finite() {
                (s.max(0.0) * 1e9) as u64
            } else {
                u64::MAX / 4
            }
        };
        Self {
            table: Table::new(),
            results: Results::new(options.max_reported_flows),
            counts: [Counts::default(), Counts::default()],
            signals: Vec::new(),
            limits: BTreeMap::new(),
            evicted: 0,
            absorbed: 0,
            // a flow at two places takes twice the memory
            max_live: (options.max_live_flows / if two { 2 } else { 1 }).max(1),
            settings: Settings {
                window_ns: ns(options.throughput_window_s).max(1),
                min_gap_ns: ns(options.min_gap_s).max(1),
                series: options.series,
                start_ns,
            },
            read_to_ns: 0,
            two,
            places,
            nids: BTreeSet::new(),
            locators: Vec::new(),
            quic_id_lengths: quic_ids::QuicIdLengths::default(),
            early_joins: early_join::EarlyJoins::default(),
        }
    }

    /// A packet of a capture, at a time on the common clock.
    pub(super) fn packet(&mut self, capture: u8, time_ns: u64, record: &Record<'_>) {
        let number = usize::from(capture & 1);
        self.read_to_ns = self.read_to_ns.max(time_ns);
        let counts = &mut self.counts[number];
        let packet = match decode::decode(record.link, record.bytes, record.wire_len) {
            Ok(packet) => packet,
            Err(skip) => {
                counts.skipped[skip as usize] += 1;
                return;
            }
        };
        counts.fragments += u64::from(packet.fragment);
        let kind = match packet.protocol {
            decode::TCP => &mut counts.tcp,
            decode::UDP => &mut counts.udp,
            decode::SCTP => &mut counts.sctp,
            decode::ICMPV6 => &mut counts.icmpv6,
            decode::MOBILITY => &mut counts.mobility,
            _ => &mut counts.other,
        };
        *kind += 1;
        let found = self.place(capture, time_ns, record, packet);
        let result = match packet.protocol {
            decode::TCP => self.tcp(&found),
            decode::UDP => self.udp(&found),
            decode::SCTP => self.sctp(&found, packet.payload),
            decode::ICMPV6 => self.icmpv6(&found),
            decode::MOBILITY => self.mobility(&found),
            _ => Ok(()),
        };
        if let Err(skip) = result {
            self.counts[number].skipped[skip as usize] += 1;
        }
    }

    /// Who the ends are, and where the packet was seen.
    fn place<'a>(&mut self, capture: u8, time_ns: u64, record: &Record<'_>, packet: Decoded<'a>) -> Seen<'a> {
        let (source, destination) = packet.identity;
        let mut ends = packet.identity;
        let mut taken = true;
        let direction = record.direction.or(packet.direction);
        let ilnp = packet.marks.ilnp
            || (!self.nids.is_empty()
                && self.nids.contains(&source.nid())
                && self.nids.contains(&destination.nid()));
        if ilnp && !source.is_v4() {
            if packet.marks.ilnp && self.nids.len() < MAX_NIDS {
                self.nids.insert(source.nid());
                self.nids.insert(destination.nid());
            }
            ends = (
                Address(u128::from(source.nid())),
                Address(u128::from(destination.nid())),
            );
            if direction == Some(Direction::Inbound) {
                taken = self.has_locator(capture, destination);
            }
        }
        let local = |end: Address| self.places.local[usize::from(capture & 1)].contains(&end);
        let role = match direction {
            Some(Direction::Outbound) => Role::Sender,
            Some(Direction::Inbound) => Role::Receiver,
            None if local(ends.0) => Role::Sender,
            None if local(ends.1) => Role::Receiver,
            None => Role::Somewhere,
        };
        let away = |end: Address| self.places.local[usize::from(1 - (capture & 1))].contains(&end);
        let both = self.two
            && match role {
                Role::Sender => away(ends.1),
                Role::Receiver => away(ends.0),
                Role::Somewhere => false,
            };
        let sight = Sight {
            time_ns,
            capture,
            interface: record.interface,
            role,
            outer: packet.outer,
            ports: (0, 0),
            marks: packet.marks,
            fragments: packet.fragments,
            taken,
            both,
        };
        Seen { sight, packet, ends }
    }

    /// Whether a host has the locator of an address, by what it said last itself.
    fn has_locator(&self, capture: u8, address: Address) -> bool {
        let host = self
            .locators
            .iter()
            .find(|l| l.capture == capture && l.nid == address.nid());
        host.is_none_or(|l| l.locators.contains(&address.locator()))
    }

    fn limits(&self) -> Limits {
        let each = ALL_COPIES / self.table.live().max(1);
        Limits {
            settings: self.settings,
            copies: each.clamp(64, MAX_COPIES),
            listens: self.places.listens,
        }
    }

    /// A limit was hit.
    fn limit(&mut self, name: &'static str) {
        *self.limits.entry(name).or_default() += 1;
    }

    /// The flow of a key, or a new one that begins with this packet.
    fn flow(&mut self, key: Key, protocol: Protocol, found: &Seen<'_>) -> Slot {
        if let Some(slot) = self.table.find(&key) {
            self.table.touch(slot);
            return slot;
        }
        self.new_flow(key, protocol, found)
    }

    #[cold]
    fn new_flow(&mut self, key: Key, protocol: Protocol, found: &Seen<'_>) -> Slot {
        let ports = found.sight.ports;
        let (a, b) = ((found.ends.0, ports.0), (found.ends.1, ports.1));
        let mut conn = Conn::new(protocol, a, b, found.sight.time_ns);
        conn.shown = found.packet.identity;
        let slot = self.insert(conn);
        self.table.know(slot, key);
        slot
    }

    /// Makes room for a flow and adds it.
    fn insert(&mut self, conn: Box<Conn>) -> Slot {
        while self.table.live() >= self.max_live {
            let Some(oldest) = self.table.oldest() else {
                break;
            };
            self.evicted += 1;
            self.end(oldest);
        }
        self.table.insert(conn)
    }

    /// A flow has ended.
    fn end(&mut self, slot: Slot) {
        let Some(conn) = self.table.remove(slot) else {
            return;
        };
        let parent = conn.parent();
        self.note_limits(&conn);
        self.results.add(*conn, &self.settings, self.read_to_ns);
        if let Some(parent) = parent
            && let Some(connection) = self.table.get(parent)
        {
            connection.subflows = connection.subflows.saturating_sub(1);
            if connection.subflows == 0 {
                self.end(parent);
            }
        }
    }

    fn note_limits(&mut self, conn: &Conn) {
        let views = || conn.halves.iter().flat_map(|h| h.at.iter().flatten());
        let given_up: u64 = views().map(|v| u64::from(v.sequence.given_up)).sum();
        let evicted: u64 = conn.halves.iter().flat_map(|h| &h.ends).map(|e| e.evicted).sum();
        let outages: u64 = conn.halves.iter().map(|h| h.progress.outages.beyond).sum();
        let dropped: u64 = views()
            .filter_map(|v| v.detail.as_ref()?.mover.as_ref())
            .map(|m| m.dropped)
            .sum();
        for (name, number) in [
            ("gaps-given-up", given_up),
            ("packets-settled-early", evicted),
            ("handovers-beyond-limit", dropped),
            ("outages-beyond-limit", outages),
            ("packets-captured-twice", conn.captured_twice),
            ("packets-on-paths-beyond-limit", conn.paths_beyond),
        ] {
            if number > 0 {
                *self.limits.entry(name).or_default() += number;
            }
        }
    }

    /// Ends all flows.
    pub(super) fn finish(&mut self) {
        while let Some(oldest) = self.table.oldest() {
            self.end(oldest);
        }
        for _ in 0..self.early_joins.len() {
            self.limit(early_join::UNKNOWN);
        }
    }

    /// Flows that were seen.
    pub(super) fn flows_total(&self) -> u64 {
        self.table.total() + self.absorbed
    }

    /// Takes over what another has found, once both have ended; its flows are numbered from the last of these on.
    pub(super) fn absorb(&mut self, mut other: Self) {
        let more = self.flows_total();
        other
            .signals
            .iter_mut()
            .filter_map(|s| s.flow.as_mut())
            .for_each(|n| *n += more);
        other.results.renumber(more);
        self.results.absorb(other.results);
        self.signals.append(&mut other.signals);
        for (name, number) in &other.limits {
            *self.limits.entry(name).or_default() += number;
        }
        for (own, others) in self.counts.iter_mut().zip(other.counts) {
            own.add(&others);
        }
        self.evicted += other.evicted;
        self.absorbed += other.table.total() + other.absorbed;
    }

    /// Notes a message of signalling.
    fn signal(&mut self, found: &Seen<'_>, kind: SignalKind, about: Option<Address>, flow: Option<Slot>) {
        self.numbered_signal(found, kind, about, flow, (kind != SignalKind::MptcpJoin, None));
    }

    /// The same with whether it asks for an answer, and the number of that.
    fn numbered_signal(
        &mut self,
        found: &Seen<'_>,
        kind: SignalKind,
        about: Option<Address>,
        flow: Option<Slot>,
        (asks, serial): (bool, Option<u32>),
    ) {
        if self.signals.len() >= MAX_SIGNALS {
            return self.limit("signals-beyond-limit");
        }
        self.signals.push(Heard {
            time_ns: found.sight.time_ns,
            capture: found.sight.capture,
            interface: found.sight.interface,
            kind,
            outer: found.sight.outer,
            about,
            flow: flow.map(|s| s.id),
            inbound: found.sight.role == Role::Receiver,
            asks,
            serial,
        });
    }
}
