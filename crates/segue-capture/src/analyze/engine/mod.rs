//! The stream of packets of all captures, taken apart into flows and signalling.

mod early_join;
mod fragments;
mod mptcp;
mod packet;
mod quic_ids;
mod sctp;
mod signalling;
mod tcp;
mod udp;

use super::counts::Counts;
use super::cuts::{Cuts, Part};
use super::decode::{self, Address, Decoded, Skip};
use super::flows::conn::Conn;
use super::flows::ends::MAX_COPIES;
use super::flows::item::{Limits, Settings};
use super::flows::key::{Key, Slot};
use super::flows::parties::Parties;
use super::flows::paths::{Role, Sight};
use super::flows::table::Table;
use super::glance::Glance;
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

/// Copies of packets of all flows between two captures that are followed at a time: some 64 bytes each, and of datagrams, which
/// are looked up by what they carry, as much again.
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
    table: Table,
    results: Results,
    counts: [Counts; 2],
    signals: Vec<Heard>,
    limits: BTreeMap<&'static str, u64>,
    evicted: u64,
    settings: Settings,
    /// Time of the last packet so far.
    read_to_ns: u64,
    places: Places,
    nids: BTreeSet<u64>,
    locators: Vec<Locators>,
    quic_id_lengths: quic_ids::QuicIdLengths,
    early_joins: early_join::EarlyJoins,
    fragments: fragments::Fragments,
    cuts: Cuts,
}

/// What an engine has found once there are no more packets.
pub(super) struct Outcome {
    pub results: Results,
    pub counts: [Counts; 2],
    pub signals: Vec<Heard>,
    /// How often each limit was hit.
    pub limits: BTreeMap<&'static str, u64>,
    /// Flows that were seen, and those that made room for others.
    pub flows_total: u64,
    pub evicted: u64,
}

impl Outcome {
    /// This, and what another has found, whose flows are numbered from the last of these on.
    pub(super) fn and(self, other: Self) -> Self {
        let more = self.flows_total;
        let mut results = self.results;
        results.absorb(other.results, more);
        let mut limits = self.limits;
        for (name, number) in other.limits {
            *limits.entry(name).or_default() += number;
        }
        let renumbered = other.signals.into_iter().map(|s| Heard {
            flow: s.flow.map(|n| n + more),
            ..s
        });
        let [first, second] = self.counts;
        let [others_first, others_second] = other.counts;
        Self {
            results,
            counts: [first.and(&others_first), second.and(&others_second)],
            signals: self.signals.into_iter().chain(renumbered).collect(),
            limits,
            flows_total: more + other.flows_total,
            evicted: self.evicted + other.evicted,
        }
    }
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
            // a flow at two places takes twice the memory
            table: Table::of((options.max_live_flows / if two { 2 } else { 1 }).max(1)),
            results: Results::new(options.max_reported_flows),
            counts: [Counts::default(), Counts::default()],
            signals: Vec::new(),
            limits: BTreeMap::new(),
            evicted: 0,
            settings: Settings {
                window_ns: ns(options.throughput_window_s).max(1),
                min_gap_ns: ns(options.min_gap_s).max(1),
                series: options.series,
                start_ns,
            },
            read_to_ns: 0,
            places,
            nids: BTreeSet::new(),
            locators: Vec::new(),
            quic_id_lengths: quic_ids::QuicIdLengths::default(),
            early_joins: early_join::EarlyJoins::default(),
            fragments: fragments::Fragments::default(),
            cuts: Cuts::default(),
        }
    }

    /// A packet of a capture, at a time on the common clock.
    pub(super) fn packet(&mut self, capture: u8, time_ns: u64, record: &Record<'_>) {
        let number = usize::from(capture & 1);
        self.read_to_ns = self.read_to_ns.max(time_ns);
        let is_cut = (record.bytes.len() as u64) < u64::from(record.wire_len);
        let packet = match decode::decode(record.link, record.bytes, record.wire_len) {
            Ok(packet) => packet,
            Err(skip) => {
                if skip == Skip::CutOff && is_cut {
                    self.headers_cut_off(record);
                } else if skip == Skip::Fragment {
                    self.later_fragment(capture, time_ns, record);
                }
                return self.counts[number].skipped(skip);
            }
        };
        self.counts[number].packet(&packet);
        let found = self.place(capture, time_ns, record, packet);
        let result = match packet.protocol {
            decode::TCP => self.tcp(&found),
            decode::UDP => self.udp(&found),
            decode::SCTP => self.sctp(&found, packet.payload, packet.payload_len),
            decode::ICMPV6 => self.icmpv6(&found),
            decode::MOBILITY => self.mobility(&found),
            _ => Ok(()),
        };
        if let Err(skip) = result {
            if skip == Skip::CutOff && is_cut {
                let part = match packet.protocol {
                    // which locators are one host's, only what is behind tells
                    _ if found.ends != packet.identity => Part::Network,
                    decode::TCP => Part::Tcp,
                    decode::UDP => Part::Udp,
                    decode::SCTP => Part::Sctp,
                    _ => Part::Network,
                };
                self.cuts.packet(part, packet.identity, found.needed(1));
            }
            self.counts[number].skipped(skip);
        }
    }

    /// The network layer of a packet is cut off: behind its addresses, or within them.
    #[cold]
    fn headers_cut_off(&mut self, record: &Record<'_>) {
        let needed_bytes = record.bytes.len() as u32 + 1;
        match decode::outer(record.link, record.bytes) {
            Some(outer) => self.cuts.packet(Part::Network, outer, needed_bytes),
            // a flow may have gone on there if its transport can move it
            None => [Part::Tcp, Part::Udp, Part::Sctp]
                .into_iter()
                .for_each(|part| self.cuts.packet(part, Default::default(), needed_bytes)),
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
        let local = |end: Address| self.places.is_local(capture & 1, end);
        let role = match direction {
            Some(Direction::Outbound) => Role::Sender,
            Some(Direction::Inbound) => Role::Receiver,
            None if local(ends.0) => Role::Sender,
            None if local(ends.1) => Role::Receiver,
            None => Role::Somewhere,
        };
        let away = |end: Address| self.places.is_local(1 - (capture & 1), end);
        let both = match role {
            Role::Sender => away(ends.1),
            Role::Receiver => away(ends.0),
            Role::Somewhere => false,
        };
        let sight = Sight {
            time_ns,
            capture,
            interface: record.interface,
            device: packet.device,
            role,
            outer: packet.outer,
            ports: (0, 0),
            marks: packet.marks,
            fragments: packet.fragments,
            taken,
            both,
        };
        Seen {
            sight,
            packet,
            ends,
            captured: record.bytes.len() as u32,
        }
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
            listens: self.places.listens(),
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
        let (a, b) = found.pair();
        let parties = Parties::new([a, b], found.packet.identity.into());
        let slot = self.insert(Conn::new(protocol, parties, found.sight.time_ns));
        self.table.know(slot, key);
        slot
    }

    /// Makes room for a flow and adds it.
    fn insert(&mut self, conn: Box<Conn>) -> Slot {
        while self.table.is_full() {
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
        match self.cuts.of(slot.id, &conn, self.read_to_ns) {
            None => self.results.add(slot.id, *conn, &self.settings, self.read_to_ns),
            Some(cut) => self.results.add_cut(&conn, cut, &self.settings),
        }
        self.cuts.forget(slot.id);
        if let Some(parent) = parent
            && let Some(connection) = self.table.get(parent)
            && connection.subflow_ends()
        {
            self.end(parent);
        }
    }

    fn note_limits(&mut self, conn: &Conn) {
        for (name, number) in conn.beyond_limits() {
            if number > 0 {
                *self.limits.entry(name).or_default() += number;
            }
        }
    }

    /// What was found so far.
    pub(super) fn glance(&self) -> Glance {
        let signals = &self.signals;
        let flows = self.table.flows();
        Glance {
            flows_total: self.table.total(),
            ..self
                .results
                .glance(flows, &self.cuts, signals, &self.settings, self.read_to_ns)
        }
    }

    /// Ends all flows: there are no more packets.
    pub(super) fn finish(mut self) -> Outcome {
        while let Some(oldest) = self.table.oldest() {
            self.end(oldest);
        }
        for _ in 0..self.early_joins.len() {
            self.limit(early_join::UNKNOWN);
        }
        if self.cuts.beyond() > 0 {
            self.limits
                .insert("hosts-with-headers-cut-off-beyond-limit", self.cuts.beyond());
        }
        Outcome {
            flows_total: self.table.total(),
            results: self.results,
            counts: self.counts,
            signals: self.signals,
            limits: self.limits,
            evicted: self.evicted,
        }
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
