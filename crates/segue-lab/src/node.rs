//! A host whose transports are the kernel's: a shim between a TUN device and Ethernet interfaces, as a machine.
//!
//! ```text
//!   kernel's TCP     identity <-> identity
//!   TUN device       handle_kernel() | poll_kernel()
//!   ------------------------------------------------------------------
//!   shim, address acquisition, neighbours
//!   ------------------------------------------------------------------
//!   interfaces       handle_frame(), handle_carrier() | poll_frame()
//! ```
//!
//! The contract is that of every machine (see [`segue_proto::contract`]): one mutation, then the polls until they are empty.
//! Packets of the kernel's are carried in bytes, without understanding ([`Payload::Raw`]).

use bytes::Bytes;
use segue_proto::address::{Acquisition, AddressEvent, Method};
use segue_proto::contract::{LocalAddress, Transmit};
use segue_proto::random::Stream;
use segue_proto::shim::{Inbound, Shim, ShimEvent};
use segue_proto::{CellId, Instant, InterfaceId, LinkEvent};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::nd::LinkLayerAddress;
use segue_wire::raw::ChecksumState;
use segue_wire::{Packet, Payload};
use std::collections::VecDeque;
use std::net::Ipv6Addr;

/// An interface of a node.
#[derive(Debug)]
struct Port {
    acquisition: Acquisition,
    neighbors: Neighbors,
    up: bool,
}

/// A packet for an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutboundFrame {
    /// Number of the interface.
    pub port: usize,
    /// Whom on the link it is for.
    pub to: LinkLayerAddress,
    /// The packet.
    pub packet: Packet,
}

/// What a node tells.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeEvent {
    /// An interface has a usable address.
    AddressReady(LocalAddress),
    /// An interface has lost an address.
    AddressLost(LocalAddress),
    /// The shim has something to tell.
    Shim(ShimEvent),
}

/// Packets of a node that went nowhere, by reason; and those that did not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeCounters {
    /// Packets that the kernel sent.
    pub from_kernel: u64,
    /// Packets given to the kernel.
    pub to_kernel: u64,
    /// Packets received over interfaces.
    pub received: u64,
    /// Packets sent over interfaces.
    pub sent: u64,
    /// From the kernel, but not from the identity: its own router solicitations, say.
    pub not_from_identity: u64,
    /// Up from the shim, but not for the identity: the kernel does not have these addresses.
    pub not_for_identity: u64,
    /// What does not parse, bad checksums of ICMPv6 included.
    pub malformed: u64,
    /// For an interface that is down, or without a router.
    pub no_next_hop: u64,
}

/// The node.
pub struct Node {
    shim: Box<dyn Shim>,
    ports: Vec<Port>,
    to_kernel: VecDeque<Packet>,
    to_wire: VecDeque<OutboundFrame>,
    events: VecDeque<NodeEvent>,
    counters: NodeCounters,
}

impl Node {
    /// A node of which no interface is up. `interfaces` are their link-layer addresses; with `identifier`, addresses are formed
    /// with it instead.
    #[must_use]
    pub fn new(
        shim: Box<dyn Shim>,
        interfaces: &[LinkLayerAddress],
        identifier: Option<[u8; 8]>,
        method: &Method,
        seed: u64,
    ) -> Self {
        let port = |(number, mac): (usize, &LinkLayerAddress)| {
            let stream = Stream::new(seed, &format!("interface {number}"));
            let mut acquisition = Acquisition::new(InterfaceId(number as u8), *mac, method, &stream);
            if let Some(identifier) = identifier {
                acquisition.set_interface_identifier(identifier);
            }
            Port {
                acquisition,
                neighbors: Neighbors::default(),
                up: false,
            }
        };
        Self {
            shim,
            ports: interfaces.iter().enumerate().map(port).collect(),
            to_kernel: VecDeque::new(),
            to_wire: VecDeque::new(),
            events: VecDeque::new(),
            counters: NodeCounters::default(),
        }
    }

    /// The shim.
    #[must_use]
    pub fn shim(&self) -> &dyn Shim {
        &*self.shim
    }

    /// Packets counted.
    #[must_use]
    pub const fn counters(&self) -> NodeCounters {
        self.counters
    }

    /// Takes a packet that the kernel sent.
    pub fn handle_kernel(&mut self, now: Instant, bytes: &Bytes) {
        self.counters.from_kernel += 1;
        let Ok(packet) = Packet::parse_raw(bytes, ChecksumState::Complete, None) else {
            self.counters.malformed += 1;
            return;
        };
        if packet.ip.source != self.shim.identity() {
            self.counters.not_from_identity += 1;
            return;
        }
        let transmit = self.shim.outbound(now, packet);
        self.send(transmit);
        self.settle(now);
    }

    /// Takes a packet that arrived over interface number `port` from `source`. `checksum` and `segment_size` are what the
    /// interface says of it.
    pub fn handle_frame(
        &mut self,
        now: Instant,
        port: usize,
        source: LinkLayerAddress,
        bytes: &Bytes,
        checksum: ChecksumState,
        segment_size: Option<u16>,
    ) {
        self.counters.received += 1;
        let Some(interface) = self.ports.get_mut(port).filter(|p| p.up) else {
            return;
        };
        let Ok(packet) = Packet::parse_raw(bytes, checksum, segment_size) else {
            self.counters.malformed += 1;
            return;
        };
        if is_neighbor_discovery(&packet) {
            if packet.nd_is_valid() {
                interface.neighbors.learn(packet.ip.source, source);
            }
            interface.acquisition.handle_packet(now, &packet);
        } else {
            let inbound = self.shim.inbound(now, InterfaceId(port as u8), packet);
            if let Inbound::Up(packet) = inbound {
                self.deliver(packet);
            }
        }
        self.settle(now);
    }

    /// An interface has got its carrier, or lost it.
    pub fn handle_carrier(&mut self, now: Instant, port: usize, up: bool) {
        let Some(interface) = self.ports.get_mut(port).filter(|p| p.up != up) else {
            return;
        };
        interface.up = up;
        let cell = CellId(port as u16);
        let number = InterfaceId(port as u8);
        if up {
            interface.acquisition.handle_link_up(now);
            self.shim.handle_link(
                now,
                &LinkEvent::Up {
                    interface: number,
                    cell,
                },
            );
        } else {
            // who was there may not be who will be
            interface.neighbors = Neighbors::default();
            interface.acquisition.handle_link_down(now);
            self.shim.handle_link(
                now,
                &LinkEvent::Down {
                    interface: number,
                    cell,
                },
            );
        }
        self.settle(now);
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        for port in &mut self.ports {
            port.acquisition.handle_timeout(now);
        }
        self.shim.handle_timeout(now);
        self.settle(now);
    }

    /// The next packet for the kernel. Poll until `None` after every other call.
    pub fn poll_kernel(&mut self) -> Option<Packet> {
        self.to_kernel.pop_front()
    }

    /// The next packet for an interface. Poll until `None` after every other call.
    pub fn poll_frame(&mut self) -> Option<OutboundFrame> {
        self.to_wire.pop_front()
    }

    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<NodeEvent> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let ports = self.ports.iter().map(|p| p.acquisition.poll_timeout());
        ports.chain([self.shim.poll_timeout()]).flatten().min()
    }

    /// Passes what the parts have to say to each other, until they have said it.
    fn settle(&mut self, now: Instant) {
        loop {
            let mut quiet = true;
            for number in 0..self.ports.len() {
                while let Some(event) = self.ports[number].acquisition.poll_event() {
                    quiet = false;
                    self.note(&event);
                    self.shim.handle_address(now, &event);
                }
                while let Some(transmit) = self.ports[number].acquisition.poll_transmit(now) {
                    quiet = false;
                    self.send(Some(transmit));
                }
            }
            while let Some(transmit) = self.shim.poll_transmit(now) {
                quiet = false;
                self.send(Some(transmit));
            }
            while let Some(event) = self.shim.poll_event() {
                quiet = false;
                self.on_shim(now, event);
            }
            if quiet {
                return;
            }
        }
    }

    fn note(&mut self, event: &AddressEvent) {
        match *event {
            AddressEvent::Ready(local) => self.events.push_back(NodeEvent::AddressReady(local)),
            AddressEvent::Lost(local) => self.events.push_back(NodeEvent::AddressLost(local)),
            _ => {}
        }
    }

    fn on_shim(&mut self, now: Instant, event: ShimEvent) {
        match event {
            // there is no directory here: what is known of peers is in the shim's configuration
            ShimEvent::LookUp { peer } => self.shim.handle_found(now, peer, &[]),
            ShimEvent::FormAddress(local) => {
                if let Some(port) = self.ports.get_mut(usize::from(local.interface.0)) {
                    port.acquisition.add_address(now, local.address);
                }
            }
            ShimEvent::AssignAddress(local) => {
                if let Some(port) = self.ports.get_mut(usize::from(local.interface.0)) {
                    port.acquisition.assign_address(now, local.address);
                }
            }
            ShimEvent::AnnounceAddress(local) => {
                if let Some(port) = self.ports.get_mut(usize::from(local.interface.0)) {
                    port.acquisition.announce_address(local.address);
                }
            }
            ShimEvent::WithdrawAddress(local) => {
                if let Some(port) = self.ports.get_mut(usize::from(local.interface.0)) {
                    port.acquisition.remove_address(now, local.address);
                }
            }
            _ => {}
        }
        self.events.push_back(NodeEvent::Shim(event));
    }

    fn deliver(&mut self, packet: Packet) {
        if packet.ip.destination != self.shim.identity() {
            self.counters.not_for_identity += 1;
            return;
        }
        self.counters.to_kernel += 1;
        self.to_kernel.push_back(packet);
    }

    fn send(&mut self, transmit: Option<Transmit>) {
        let Some(Transmit { interface, packet }) = transmit else {
            return;
        };
        let port = usize::from(interface.0);
        let next_hop = self
            .ports
            .get(port)
            .filter(|p| p.up)
            .and_then(|p| p.next_hop(packet.ip.destination));
        let Some(to) = next_hop else {
            self.counters.no_next_hop += 1;
            return;
        };
        self.counters.sent += 1;
        self.to_wire.push_back(OutboundFrame { port, to, packet });
    }
}

impl Port {
    /// Whom on the link a packet to `destination` is for: a group, a neighbour that was heard, or else the first router whose
    /// address is known (RFC 4861 section 5.2; that there is no other neighbour is true of a link with one router).
    fn next_hop(&self, destination: Ipv6Addr) -> Option<LinkLayerAddress> {
        if destination.is_multicast() {
            let [.., a, b, c, d] = destination.octets();
            // RFC 2464 section 7
            return Some(LinkLayerAddress([0x33, 0x33, a, b, c, d]));
        }
        self.neighbors.find(destination).or_else(|| {
            let mut routers = self.acquisition.nd().default_routers();
            routers.find_map(|router| self.neighbors.find(router))
        })
    }
}

/// Link-layer addresses of neighbours, as their discovery messages came from them; the latest is at the end.
#[derive(Debug, Default)]
struct Neighbors(VecDeque<(Ipv6Addr, LinkLayerAddress)>);

impl Neighbors {
    fn learn(&mut self, address: Ipv6Addr, link_layer: LinkLayerAddress) {
        if address.is_unspecified() {
            return;
        }
        self.0.retain(|n| n.0 != address);
        if self.0.len() == MAX_NEIGHBORS {
            self.0.pop_front();
        }
        self.0.push_back((address, link_layer));
    }

    fn find(&self, address: Ipv6Addr) -> Option<LinkLayerAddress> {
        self.0.iter().find(|n| n.0 == address).map(|n| n.1)
    }
}

/// Whoever is on a link can claim any number of addresses.
const MAX_NEIGHBORS: usize = 64;

fn is_neighbor_discovery(packet: &Packet) -> bool {
    matches!(
        &packet.payload,
        Payload::Icmpv6(
            Icmpv6::RouterSolicitation(_)
                | Icmpv6::RouterAdvertisement(_)
                | Icmpv6::NeighborSolicitation(_)
                | Icmpv6::NeighborAdvertisement(_)
        )
    )
}
