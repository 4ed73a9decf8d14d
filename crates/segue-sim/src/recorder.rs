//! What a run leaves behind: the event-log hash, the metrics, and on demand tables and captures.

pub(crate) mod applications;
pub mod connections;
pub(crate) mod ends;
pub mod flow;
pub(crate) mod fragments;
pub mod handoffs;
pub(crate) mod handovers;
pub mod ledger;
mod log;
mod names;
pub mod networks;
mod numbers;
pub mod overlap;
pub mod pauses;
mod received;
pub(crate) mod report;
pub(crate) mod segments;
mod signalling;
mod tables;
mod telling;
pub mod vertical;

use crate::network::cells::PlaceKind;
use crate::output::{RunOptions, Trace};
use crate::sink::{Sink, SinkError};
use crate::store::Stored;
use connections::Connections;
use core::hint::cold_path;
use flow::Way;
use fragments::{Wholes, fragment_of};
use handoffs::Moving;
use ledger::{Entries, PacketFate, Segment};
use log::{EventLog, Kind};
use networks::Networks;
use segments::Said;
use segue_capture::handover::LossCause;
use segue_proto::host::HostEvent;
use segue_proto::l2::L2Event;
use segue_proto::mip6::HomeAgentEvent;
use segue_proto::sctp::Event as SctpEvent;
use segue_proto::sigma::SigmaEvent;
use segue_proto::{CellId, Departure, Instant, InterfaceId, LinkEvent};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::{Packet, Payload};

pub use names::{Signal, signal_of};
pub use report::{FlowMetrics, HandoffMetrics};
pub use segments::receiver_report;
pub use signalling::{Signalling, SignallingCount};
pub use tables::Tables;
pub use vertical::HandoffParts;

/// Why a packet went no further.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DropCause {
    /// No room in a queue.
    QueueFull,
    /// No room in an access router's queue, while the receiver was out of reach.
    QueueFullOutOfReach,
    /// Lost at random on a link.
    RandomLoss,
    /// Arrived with a bit flipped and failed its checksum.
    Corrupted,
    /// Collided on a radio channel until it was given up.
    Collision,
    /// The receiver was out of reach of the cell.
    OutOfReach,
    /// No station of the cell has this address.
    NoNeighbor,
    /// The sender's interface was not connected.
    NoLink,
    /// The link was down, or went down while the packet was on it.
    LinkDown,
    /// No router knows a way.
    NoRoute,
    /// The hop limit ran out.
    HopLimit,
    /// Longer than the MTU of the next link.
    TooBig,
    /// A home agent knows no binding that it goes with.
    HomeAgent,
    /// A node that takes time for packets had no room for another.
    Overload,
}

impl DropCause {
    /// Name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::QueueFullOutOfReach => "queue-full-out-of-reach",
            Self::RandomLoss => "random-loss",
            Self::Corrupted => "corrupted",
            Self::Collision => "collision",
            Self::OutOfReach => "out-of-reach",
            Self::NoNeighbor => "no-neighbor",
            Self::NoLink => "no-link",
            Self::LinkDown => "link-down",
            Self::NoRoute => "no-route",
            Self::HopLimit => "hop-limit",
            Self::TooBig => "too-big",
            Self::HomeAgent => "home-agent",
            Self::Overload => "overload",
        }
    }

    /// Which loss it is in the metrics. "Dropped by the access router, either because it is not aware of the mobile
    /// host's location or the buffer space is full" (000 section VI-B.2): a full buffer counts as handover loss only
    /// if it is full because its receiver has left.
    #[must_use]
    pub const fn loss(self) -> LossCause {
        match self {
            Self::OutOfReach
            | Self::NoNeighbor
            | Self::NoLink
            | Self::LinkDown
            | Self::QueueFullOutOfReach
            | Self::HomeAgent => LossCause::Handover,
            Self::QueueFull | Self::Overload => LossCause::Queue,
            Self::RandomLoss
            | Self::Corrupted
            | Self::Collision
            | Self::NoRoute
            | Self::HopLimit
            | Self::TooBig => LossCause::Other,
        }
    }
}

/// What became of a fragment at its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FragmentTaken {
    /// Others are awaited.
    Waits,
    /// The host no longer has the address.
    Stale,
    /// It was the last.
    Last {
        /// Whether the whole was handed to the transport.
        taken: bool,
    },
}

/// The recorder of a run.
pub struct Recorder {
    log: EventLog,
    hops: u64,
    /// Flows, the fates of their packets, and handoffs.
    pub connections: Connections,
    /// Packets under way in fragments.
    wholes: Wholes,
    /// Datagrams that kernels cut into fragments, and that are not counted otherwise.
    in_fragments: u64,
    /// Signalling sent.
    pub signalling: Signalling,
    /// Which network each host that moves was in.
    networks: Networks,
    tables: Option<Tables>,
    captures: Option<crate::captures::Captures>,
}

impl Recorder {
    /// A recorder for the named nodes; `located`: there is a location manager; `ilnp`: addresses have identifiers.
    #[must_use]
    pub fn new(
        options: &RunOptions,
        trace: Trace,
        captures: Option<crate::captures::Captures>,
        connections: Connections,
        networks: Networks,
        located: bool,
        ilnp: bool,
    ) -> Self {
        Self {
            log: EventLog::new(),
            hops: 0,
            connections,
            wholes: Wholes::default(),
            in_fragments: 0,
            signalling: Signalling::default(),
            networks,
            tables: options.trace.then(|| Tables::new(trace, located, ilnp)),
            captures,
        }
    }

    /// Which network each host that moves was in.
    #[must_use]
    pub const fn networks(&self) -> &Networks {
        &self.networks
    }

    /// Whether tables are recorded.
    pub fn tables(&mut self) -> Option<&mut Tables> {
        self.tables.as_mut()
    }

    /// A node sends a packet, in fragments with this identification if it has one. Gives its entries in the ledger, which
    /// the packet is to carry.
    pub fn sent(
        &mut self,
        now: Instant,
        node: u32,
        departure: Departure,
        stored: &Stored,
        fragments: Option<u32>,
    ) -> Entries {
        self.log.record(now, Kind::Sent, node, stored.id, stored.length);
        let mut entries = self.said(now, node, departure, &stored.packet);
        // TCP is no signalling
        if !matches!(stored.packet.payload, Payload::Tcp(_)) {
            self.signalling.sent(&stored.packet, stored.length);
        }
        if let Some(identification) = fragments {
            cold_path();
            match self.wholes.find(identification) {
                Some(whole) => entries = whole.entries,
                // a kernel has cut it
                None if segments::begins_a_datagram(&stored.packet) => self.in_fragments += 1,
                None => {}
            }
        }
        if self.tables.is_some() || self.captures.is_some() {
            cold_path();
            let retransmission = self.connections.ledger.is_retransmission(entries);
            self.trace_sent(now, node, departure.interface, stored, retransmission);
        }
        entries
    }

    /// A node has cut a packet into fragments, and is about to send the first.
    #[inline(never)]
    pub fn fragmented(
        &mut self,
        now: Instant,
        node: u32,
        departure: Departure,
        identification: u32,
        packet: &Packet,
    ) {
        let entries = self.said(now, node, departure, packet);
        self.wholes.add(identification, packet.clone(), entries);
    }

    /// What a packet says of flows as it leaves.
    #[inline(always)]
    fn said(&mut self, now: Instant, node: u32, departure: Departure, packet: &Packet) -> Entries {
        let mut entries = Entries::NONE;
        let Departure {
            interface,
            busy_since,
        } = departure;
        segments::each(node, packet, |said| match said {
            Said::Data(segment) => {
                let way = Way::of(packet, interface);
                entries.add(self.connections.sent(now, &way, segment, busy_since));
            }
            Said::Datagram(datagram) => {
                cold_path();
                let way = Way::of(packet, interface);
                let seq = self.connections.ledger.next_seq(&datagram.flow);
                let segment = Segment { seq, ..*datagram };
                entries.add(self.connections.sent(now, &way, &segment, busy_since));
            }
            Said::Over(flow) => self.connections.closing(flow),
        });
        entries
    }

    /// A host took a fragment. `taken`: whether it was the last, and what they make together was handed to the
    /// transport.
    #[inline(never)]
    pub fn fragment_received(
        &mut self,
        now: Instant,
        node: u32,
        way: Way,
        identification: u32,
        taken: FragmentTaken,
    ) {
        let Some(whole) = self.wholes.find(identification) else {
            return;
        };
        let entries = whole.entries;
        match taken {
            FragmentTaken::Waits => {}
            FragmentTaken::Stale => self.connections.ledger.met(entries, PacketFate::Stale),
            FragmentTaken::Last { taken } => self.connections.arrived(now, node, &way, entries, taken),
        }
    }

    #[inline(never)]
    fn trace_sent(
        &mut self,
        now: Instant,
        node: u32,
        interface: InterfaceId,
        stored: &Stored,
        retransmission: bool,
    ) {
        if let Some(tables) = &mut self.tables {
            tables.packet(
                now,
                node,
                interface,
                stored.id,
                stored.length,
                &stored.packet,
                "sent",
                "",
                retransmission,
            );
        }
        if let Some(captures) = &mut self.captures {
            captures.packet(now, node, interface, &stored.packet, true);
        }
    }

    /// A packet arrived at the end of a link or was handed over by a radio channel.
    pub fn hop(&mut self, now: Instant, node: u32, stored: &Stored) {
        self.hops += 1;
        self.log.record(now, Kind::Hop, node, stored.id, stored.length);
    }

    /// A host receives a packet.
    pub fn received(
        &mut self,
        now: Instant,
        node: u32,
        interface: InterfaceId,
        id: u64,
        length: u32,
        packet: &Packet,
    ) {
        self.log.record(now, Kind::Received, node, id, length);
        if let Payload::Icmpv6(Icmpv6::RouterAdvertisement(_)) = packet.payload {
            cold_path();
            self.connections.vertical.advertisement(now, node, interface);
        }
        if self.tables.is_some() || self.captures.is_some() {
            cold_path();
            self.trace_received(now, node, interface, id, length, packet);
        }
    }

    #[inline(never)]
    fn trace_received(
        &mut self,
        now: Instant,
        node: u32,
        interface: InterfaceId,
        id: u64,
        length: u32,
        packet: &Packet,
    ) {
        if let Some(tables) = &mut self.tables {
            tables.packet(now, node, interface, id, length, packet, "received", "", false);
        }
        if let Some(captures) = &mut self.captures {
            captures.packet(now, node, interface, packet, false);
        }
    }

    /// A packet goes no further.
    pub fn dropped(&mut self, now: Instant, node: u32, stored: &Stored, cause: DropCause) {
        self.log
            .record(now, Kind::Dropped, node, stored.id, stored.length);
        self.log.text(cause.name());
        let fate = PacketFate::Dropped(cause);
        match fragment_of(&stored.packet).and_then(|(identification, _)| self.wholes.find(identification)) {
            Some(whole) => {
                let first = !core::mem::replace(&mut whole.lost, true);
                self.connections
                    .lost(now, &whole.packet, whole.entries, fate, first);
            }
            None => self
                .connections
                .lost(now, &stored.packet, stored.entries, fate, true),
        }
        if let Some(tables) = &mut self.tables {
            let (id, length) = (stored.id, stored.length);
            let interface = InterfaceId::default();
            tables.packet(
                now,
                node,
                interface,
                id,
                length,
                &stored.packet,
                "dropped",
                cause.name(),
                false,
            );
        }
    }

    /// Layer 2 of a host's interface reports.
    pub fn link_event(&mut self, now: Instant, node: u32, event: &L2Event) {
        if let L2Event::Link(LinkEvent::Beacon { interface, cell, .. }) = event {
            return self
                .log
                .record(now, Kind::Link, node, u64::from(cell.0), u32::from(interface.0));
        }
        let text = format!("{event:?}");
        self.log.record(now, Kind::Link, node, text.len() as u64, 0);
        self.log.text(&text);
        if let L2Event::Link(LinkEvent::Up { interface, cell }) = event {
            self.connections
                .vertical
                .link_up(node, *interface, u32::from(cell.0));
        }
        self.networks.link_event(now, node, event);
        if let Some(tables) = &mut self.tables {
            tables.link_event(now, node, event);
        }
    }

    /// The mobile host reaches a place of its way.
    pub(crate) fn place(&mut self, now: Instant, node: u32, place: PlaceKind) {
        let cell = place.cell();
        let event = match place {
            PlaceKind::Enters(_) => "enters",
            PlaceKind::Leaves(_) => "leaves",
            PlaceKind::WillLeave(..) => "will-leave",
            PlaceKind::Overlap { .. } => "overlap-point",
            PlaceKind::Planned { .. } => "told-of",
        };
        self.log.record(now, Kind::Place, node, u64::from(cell), 0);
        self.log.text(event);
        match place {
            PlaceKind::Enters(cell) => {
                self.connections.vertical.entered(now, node, cell);
                self.networks.reach(now, node, cell, true);
            }
            PlaceKind::Leaves(cell) => {
                self.connections.vertical.left(now, node, cell);
                self.networks.reach(now, node, cell, false);
            }
            PlaceKind::WillLeave(..) | PlaceKind::Overlap { .. } | PlaceKind::Planned { .. } => {}
        }
        if let Some(tables) = &mut self.tables {
            tables.coverage(now, node, event, CellId(cell as u16));
        }
    }

    /// A host reports.
    pub fn host_event(&mut self, now: Instant, node: u32, event: &HostEvent) {
        if let HostEvent::Sctp(_, SctpEvent::FastRetransmitted { tsn, peer_tag }) = event {
            self.connections.ledger.was_fast(node, *peer_tag, tsn.0);
        }
        match event {
            HostEvent::Shim(event) => {
                self.connections.shim_event(now, node, event);
                self.networks.shim_event(now, node, event);
            }
            HostEvent::Sctp(
                id,
                SctpEvent::Closed | SctpEvent::Lost | SctpEvent::Aborted { .. } | SctpEvent::Restarted(_),
            ) => {
                self.connections.association_gone(now, node, *id);
                self.networks.association_gone(node, *id);
            }
            HostEvent::AddressReady(local) => {
                self.connections.vertical.address_ready(now, node, *local);
                self.networks.address_ready(now, node, *local);
            }
            HostEvent::AddressLost(local) => self.networks.address_lost(now, node, *local),
            _ => {}
        }
        let text = format!("{event:?}");
        self.log.record(now, Kind::Host, node, text.len() as u64, 0);
        self.log.text(&text);
        if let Some(tables) = &mut self.tables {
            tables.host_event(now, node, event);
        }
    }

    /// A host changes the addresses of an association. The log and the tables have that of its first, which is the trail of the
    /// host.
    pub fn association_moves(&mut self, node: u32, moving: Moving, event: &SigmaEvent) {
        self.connections.sigma_event(node, moving, event);
        self.networks.sigma_event(node, moving.id, event);
    }

    /// A router's home agent reports.
    pub fn home_agent_event(&mut self, now: Instant, node: u32, event: &HomeAgentEvent) {
        let text = format!("{event:?}");
        self.log.record(now, Kind::Host, node, text.len() as u64, 0);
        self.log.text(&text);
        if let Some(tables) = &mut self.tables {
            tables.home_agent_event(now, node, event);
        }
    }

    /// Hash of the log so far, its records, and hops.
    #[must_use]
    pub fn totals(&mut self) -> (String, u64, u64) {
        (self.log.digest(), self.log.events(), self.hops)
    }

    /// Datagrams that kernels cut into fragments: they are in no flow.
    #[must_use]
    pub const fn in_fragments(&self) -> u64 {
        self.in_fragments
    }

    /// Gives the sink what has been recorded in captures and tables, where that is much, or all of it, if `all`.
    pub(crate) fn give(&mut self, sink: &mut dyn Sink, all: bool) -> Result<(), SinkError> {
        self.connections.check_store()?;
        if let Some(captures) = &mut self.captures {
            captures.give(sink, all)?;
        }
        match &mut self.tables {
            Some(tables) => tables.give(sink, all),
            None => Ok(()),
        }
    }
}
