//! Tables of a run, filled while it goes.

use super::names;
use super::numbers::Numbers;
use super::segments::innermost;
use crate::output::Trace;
use crate::sink::{Sink, SinkError};
use segue_proto::host::HostEvent;
use segue_proto::l2::{L2Event, Phase};
use segue_proto::location::{ClientEvent, PreferredLocator};
use segue_proto::mip6::HomeAgentEvent;
use segue_proto::sctp::{Event as SctpEvent, PathSnapshot};
use segue_proto::shim::ShimEvent;
use segue_proto::sigma::SigmaEventKind;
use segue_proto::tcp::Event as TcpEvent;
use segue_proto::{Instant, InterfaceId, LinkEvent};
use segue_wire::{Packet, Payload};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Rows that wait for their sink.
const PIECE_ROWS: usize = 1 << 16;

/// The tables under construction.
#[derive(Debug)]
pub struct Tables {
    trace: Trace,
    /// Whether there is a location manager to be told of anything.
    located: bool,
    /// Last row of each path, to write changes only.
    windows: BTreeMap<(u32, u32, Ipv6Addr, Ipv6Addr), [u64; 5]>,
    numbers: Numbers,
    /// Of cells, which the table of cells has no longer when that was given out.
    cell_names: Vec<String>,
}

impl Tables {
    /// Tables over the nodes and cells of `trace`, with a location manager or without, of a run with ILNPv6 or another.
    #[must_use]
    pub fn new(trace: Trace, located: bool, ilnp: bool) -> Self {
        Self {
            cell_names: trace.cells.iter().map(|cell| cell.name.clone()).collect(),
            trace,
            located,
            windows: BTreeMap::new(),
            numbers: Numbers::new(ilnp),
        }
    }

    /// Gives the sink the rows there are, if they are many, or in any case, if `all`.
    pub(super) fn give(&mut self, sink: &mut dyn Sink, all: bool) -> Result<(), SinkError> {
        let rows = self.trace.packets.time_ns.len() + self.trace.windows.time_ns.len();
        if !all && rows < PIECE_ROWS {
            return Ok(());
        }
        let nodes = self.trace.nodes.clone();
        let next = Trace {
            nodes,
            ..Trace::default()
        };
        sink.rows(core::mem::replace(&mut self.trace, next))
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn packet(
        &mut self,
        now: Instant,
        node: u32,
        interface: InterfaceId,
        id: u64,
        length: u32,
        packet: &Packet,
        action: &'static str,
        cause: &'static str,
        retransmission: bool,
    ) {
        let connection = self.numbers.of(packet);
        let mut row = |kind: &'static str, tsn: Option<u32>| {
            let t = &mut self.trace.packets;
            t.time_ns.push(now.as_nanos());
            t.node.push(node as u16);
            t.action.push(action);
            t.cause.push(cause);
            t.interface.push(interface.0);
            t.packet_id.push(id);
            t.connection.push(connection);
            t.source.push(packet.ip.source);
            t.destination.push(packet.ip.destination);
            t.kind.push(kind);
            t.tsn.push(tsn);
            t.length_bytes.push(length);
            t.retransmission.push(retransmission && kind == "DATA");
        };
        match &innermost(packet).payload {
            Payload::Sctp(sctp) | Payload::SctpOverUdp { packet: sctp, .. } => {
                for chunk in &sctp.chunks {
                    let (kind, tsn) = names::chunk(chunk);
                    row(kind, tsn);
                }
            }
            Payload::Icmpv6(message) => row(names::icmp(message), None),
            Payload::Udp(datagram) => {
                let kind = names::udp(datagram);
                let place = datagram.data.synthetic_offset().filter(|_| kind == "DATA");
                row(kind, place.map(|offset| offset as u32));
            }
            Payload::Mobility(header) => row(names::mobility(&header.message), None),
            Payload::Tcp(segment) => {
                let (kind, seq) = names::tcp(segment);
                row(kind, seq);
            }
            Payload::Raw(raw) => {
                let (kind, place) = names::kernel(raw);
                row(kind, place);
            }
            _ => row("OTHER", None),
        }
    }

    /// A path of the association with this verification tag, as its sender sees it now; a row is written if it changed.
    pub fn association_window(&mut self, now: Instant, node: u32, peer_tag: u32, path: &PathSnapshot) {
        if let Some(number) = self.numbers.of_tag(peer_tag) {
            self.window(now, node, number, path);
        }
    }

    /// The path of the TCP connection between these ports.
    pub fn connection_window(&mut self, now: Instant, node: u32, ports: [u16; 2], path: &PathSnapshot) {
        let [local, remote] = ports;
        let number = self
            .numbers
            .of_tcp((path.source, local), (path.destination, remote));
        self.window(now, node, number, path);
    }

    fn window(&mut self, now: Instant, node: u32, connection: u32, path: &PathSnapshot) {
        let values = [
            u64::from(path.cwnd),
            u64::from(path.ssthresh),
            u64::from(path.flightsize),
            path.rto.as_nanos(),
            u64::from(path.primary),
        ];
        let key = (node, connection, path.source, path.destination);
        if self.windows.insert(key, values) == Some(values) {
            return;
        }
        let t = &mut self.trace.windows;
        t.time_ns.push(now.as_nanos());
        t.node.push(node as u16);
        t.connection.push(connection);
        t.source.push(path.source);
        t.destination.push(path.destination);
        t.cwnd_bytes.push(path.cwnd);
        t.ssthresh_bytes.push(path.ssthresh);
        t.flightsize_bytes.push(path.flightsize);
        t.rto_ns.push(path.rto.as_nanos());
        t.primary.push(path.primary);
    }

    /// A sample of a position, metres.
    pub fn position(&mut self, now: Instant, node: u32, x: f64, y: f64) {
        let t = &mut self.trace.positions;
        t.time_ns.push(now.as_nanos());
        t.node.push(node as u16);
        t.x_m.push(x);
        t.y_m.push(y);
    }

    pub(super) fn link_event(&mut self, now: Instant, node: u32, event: &L2Event) {
        let cell = |c: segue_proto::CellId| self.cell_name(c);
        match event {
            // A row per beacon would bury the rest: what a beacon causes is recorded.
            L2Event::Link(LinkEvent::Beacon { .. }) => {}
            L2Event::Link(LinkEvent::Up { cell: c, .. }) => self.signal(now, node, 0, "l2-up", cell(*c)),
            L2Event::Link(LinkEvent::Down { cell: c, .. }) => self.signal(now, node, 0, "l2-down", cell(*c)),
            L2Event::Link(LinkEvent::GoingDown { cell: c, .. }) => {
                self.signal(now, node, 0, "l2-going-down", cell(*c));
            }
            L2Event::Link(LinkEvent::Overlap { to, fraction, .. }) => {
                let detail = format!("{} of the way into {}", fraction, self.cell_name(*to));
                self.signal(now, node, 0, "overlap-point", detail);
            }
            L2Event::Link(LinkEvent::Planned { to, after, .. }) => {
                let detail = format!("{} in {after}", self.cell_name(*to));
                self.signal(now, node, 0, "told-of", detail);
            }
            // The whole handover as one phase says no more than that it began.
            L2Event::PhaseStarted {
                phase: Phase::Whole, ..
            } => {}
            L2Event::PhaseStarted { cell: c, phase } => {
                let detail = format!("{}: {}", cell(*c), format!("{phase:?}").to_lowercase());
                self.signal(now, node, 0, "l2-phase", detail);
            }
            L2Event::Aborted { cell: c } => self.signal(now, node, 0, "l2-aborted", cell(*c)),
        }
    }

    /// A place of the trajectory is passed.
    pub fn coverage(&mut self, now: Instant, node: u32, event: &str, cell: segue_proto::CellId) {
        let name = self.cell_name(cell);
        self.signal(now, node, 0, event, name);
    }

    pub(super) fn host_event(&mut self, now: Instant, node: u32, event: &HostEvent) {
        match event {
            // step 4 ends where it begins
            HostEvent::Sigma(e) if !self.located && matches!(e.kind, SigmaEventKind::LocationUpdated(_)) => {}
            HostEvent::Sigma(e) => {
                let step = e.kind.step().unwrap_or(0);
                let detail = match e.kind {
                    SigmaEventKind::ObtainStarted { cell, .. }
                    | SigmaEventKind::LinkUp { cell, .. }
                    | SigmaEventKind::LinkDown { cell, .. } => self.cell_name(cell),
                    SigmaEventKind::DecisionPoint { from, to } => {
                        format!("{} to {}", self.cell_name(from), self.cell_name(to))
                    }
                    SigmaEventKind::Missed { to, reason } => format!("{}: {reason:?}", self.cell_name(to)),
                    SigmaEventKind::Retracted { to } => self.cell_name(to),
                    kind => kind.address().map(|a| a.to_string()).unwrap_or_default(),
                };
                self.signal(e.time, node, step, e.kind.name(), detail);
            }
            HostEvent::Location(e) => self.location_event(now, node, e),
            HostEvent::Shim(e) => self.shim_event(now, node, e),
            HostEvent::AddressReady(a) => self.signal(now, node, 0, "address-ready", a.address.to_string()),
            HostEvent::AddressLost(a) => self.signal(now, node, 0, "address-lost", a.address.to_string()),
            HostEvent::AddressDeprecated(a) => {
                self.signal(now, node, 0, "address-deprecated", a.address.to_string());
            }
            HostEvent::AddressRefused(a) => {
                self.signal(now, node, 0, "address-refused", a.address.to_string())
            }
            HostEvent::Tcp(_, e) => {
                let name = match e {
                    TcpEvent::Connected => "tcp-connected",
                    TcpEvent::PeerClosed => "tcp-peer-closed",
                    TcpEvent::Closed => "tcp-closed",
                    TcpEvent::Refused => "tcp-refused",
                    TcpEvent::Reset => "tcp-reset",
                    TcpEvent::TimedOut => "tcp-timed-out",
                    TcpEvent::Aborted => "tcp-aborted",
                    TcpEvent::Readable | TcpEvent::Writable | TcpEvent::SendersDry => return,
                };
                self.signal(now, node, 0, name, String::new());
            }
            HostEvent::Sctp(_, e) => {
                let (name, detail) = match e {
                    SctpEvent::Connected => ("sctp-connected", String::new()),
                    SctpEvent::PrimaryChanged(a) => ("sctp-primary-changed", a.to_string()),
                    SctpEvent::PeerAddressAdded(a) => ("sctp-peer-address-added", a.to_string()),
                    SctpEvent::PeerAddressDeleted(a) => ("sctp-peer-address-deleted", a.to_string()),
                    SctpEvent::PeerAddressDeactivated(a) => ("sctp-peer-address-deactivated", a.to_string()),
                    SctpEvent::PeerAddressActivated(a) => ("sctp-peer-address-activated", a.to_string()),
                    SctpEvent::Stranded => ("sctp-stranded", String::new()),
                    SctpEvent::Resumed => ("sctp-resumed", String::new()),
                    SctpEvent::PathStateChanged { address, state } => {
                        ("sctp-path-state", format!("{address} {state:?}"))
                    }
                    SctpEvent::Lost => ("sctp-lost", String::new()),
                    SctpEvent::Closed => ("sctp-closed", String::new()),
                    SctpEvent::Aborted { .. } => ("sctp-aborted", String::new()),
                    _ => return,
                };
                self.signal(now, node, 0, name, detail);
            }
            _ => {}
        }
    }

    fn location_event(&mut self, now: Instant, node: u32, event: &ClientEvent) {
        let (step, name, detail) = match event {
            ClientEvent::Updated {
                address,
                latency,
                sent,
            } => {
                let address = address.map(|a| a.to_string()).unwrap_or_default();
                (
                    4,
                    "location-acknowledged",
                    format!("{address} after {latency}, sent {sent}"),
                )
            }
            ClientEvent::UpdateFailed { failure, .. } => (4, "location-failed", failure.to_string()),
            ClientEvent::Resolved {
                addresses,
                ttl,
                latency,
                ..
            } => {
                let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                (
                    0,
                    "name-resolved",
                    format!("{} after {latency}, ttl {ttl}", addresses.join(" ")),
                )
            }
            ClientEvent::LocatorsUpdated {
                locators,
                latency,
                sent,
            } => (
                4,
                "locators-acknowledged",
                format!("{} after {latency}, sent {sent}", locator_list(locators)),
            ),
            ClientEvent::LocatorsUpdateFailed { failure } => (4, "locators-failed", failure.to_string()),
            ClientEvent::LocatorsFound {
                locators,
                ttl,
                latency,
                ..
            } => (
                0,
                "locators-found",
                format!("{} after {latency}, ttl {ttl}", locator_list(locators)),
            ),
            ClientEvent::LookupFailed { failure, .. } => (0, "name-not-resolved", failure.to_string()),
        };
        self.signal(now, node, step, name, detail);
    }

    fn shim_event(&mut self, now: Instant, node: u32, event: &ShimEvent) {
        let (name, detail) = match event {
            ShimEvent::HandoffBegun { from: Some(from), to } => ("handoff-begun", format!("{from} to {to}")),
            ShimEvent::HandoffBegun { from: None, to } => ("handoff-begun", to.to_string()),
            ShimEvent::HandoffDone { to, delay } => ("handoff-done", format!("{to} after {delay}")),
            ShimEvent::HandoffFailed { peer } => ("handoff-failed", peer.to_string()),
            ShimEvent::RouteChanged { peer, to } => ("route-changed", format!("{peer} at {to}")),
            ShimEvent::FellBack { peer } => ("fell-back", peer.to_string()),
            ShimEvent::UpdateDirectory => ("update-directory", String::new()),
            ShimEvent::FormAddress(local) => ("form-address", local.address.to_string()),
            ShimEvent::AssignAddress(local) => ("assign-address", local.address.to_string()),
            ShimEvent::AnnounceAddress(local) => ("announce-address", local.address.to_string()),
            ShimEvent::WithdrawAddress(local) => ("withdraw-address", local.address.to_string()),
            ShimEvent::LookUp { peer } => ("look-up", peer.to_string()),
        };
        self.signal(now, node, 0, name, detail);
    }

    pub(super) fn home_agent_event(&mut self, now: Instant, node: u32, event: &HomeAgentEvent) {
        let (name, detail) = match event {
            HomeAgentEvent::Bound {
                home_address,
                care_of_address,
            } => ("bound", format!("{home_address} at {care_of_address}")),
            HomeAgentEvent::Unbound { home_address } => ("unbound", home_address.to_string()),
        };
        self.signal(now, node, 0, name, detail);
    }

    fn signal(&mut self, now: Instant, node: u32, step: u8, event: &str, detail: String) {
        let t = &mut self.trace.signalling;
        t.time_ns.push(now.as_nanos());
        t.node.push(node as u16);
        t.step.push(step);
        t.event.push(event.to_owned());
        t.detail.push(detail);
    }

    fn cell_name(&self, cell: segue_proto::CellId) -> String {
        self.cell_names.get(cell.0 as usize).cloned().unwrap_or_default()
    }
}

/// Locators with their preferences.
fn locator_list(locators: &[PreferredLocator]) -> String {
    let list: Vec<String> = locators
        .iter()
        .map(|(l, preference)| format!("{l} ({preference})"))
        .collect();
    list.join(", ")
}
