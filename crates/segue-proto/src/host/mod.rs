//! A host: interfaces, shim, transport and applications, composed.
//!
//! ```text
//!   applications            app::Application, one per association
//!   SCTP endpoint           sctp::Endpoint          SIGMA (sigma::Sigma) commands its association
//!   TCP endpoint            tcp::Endpoint
//!   UDP sockets             udp::Endpoint
//!   shim                    shim::Shim: none, Mobile IPv6, ILNPv6
//!   interfaces              address::Acquisition (neighbour discovery, DHCPv6) or fixed addresses
//! ```
//!
//! The parts pass events to each other until there are none (`settle`, bounded). A data packet at an endpoint
//! touches the endpoint and its application only: everything else is looked at when it was marked dirty.

mod config;
mod fragments;
mod location;
mod report;
mod settle;
mod shim;
mod tcp;
mod udp;

use fragments::{Outcome, Reassembler};

pub use config::{Addressing, HostConfig, HostError, InterfaceConfig, ShimConfig};
pub use location::LocationConfig;

use crate::address::{Acquisition, AddressEvent};
use crate::app::{self, Application};
use crate::contract::{CellId, InterfaceId, LinkEvent, LocalAddress, Transmit};
use crate::location::{ClientEvent, LookupId, Name};
use crate::random::{SecretRng, Stream};
use crate::sctp::{self, AssociationId, Endpoint, Event};
use crate::shim::{Shim, ShimEvent};
use crate::sigma::{Sigma, SigmaEvent};
use crate::tcp::ConnectionId;
use crate::time::Instant;
use crate::udp::SocketId;
use core::net::Ipv6Addr;
use segue_wire::fragment::{Fragment, fragment};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ipv6::OptionAction;
use segue_wire::sctp::Chunk;
use segue_wire::{ExtensionHeader, Ipv6Header, Packet, Payload};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// What a host tells its driver.
#[derive(Clone, PartialEq, Debug)]
pub enum HostEvent {
    /// Layer 2 is to attach `interface` to `cell`: a command to the driver.
    Attach {
        /// Interface.
        interface: InterfaceId,
        /// Cell.
        cell: CellId,
    },
    /// An address can be used from now on.
    AddressReady(LocalAddress),
    /// An address can no longer be used.
    AddressLost(LocalAddress),
    /// Duplicate address detection found the address taken.
    AddressRefused(LocalAddress),
    /// The location manager is to be told that the host is at this address: step 4. Its client does so, where there
    /// is one.
    UpdateLocation(Ipv6Addr),
    /// The location client reports.
    Location(ClientEvent),
    /// The trail of a handover.
    Sigma(SigmaEvent),
    /// The shim reports.
    Shim(ShimEvent),
    /// A notification of an association; `Readable`, `Writable` and `SendersDry` stay inside the host.
    Sctp(AssociationId, Event),
    /// A notification of a TCP connection; `Readable`, `Writable` and `SendersDry` stay inside the host.
    Tcp(ConnectionId, crate::tcp::Event),
    /// An application reports.
    App {
        /// Its number, see [`Host::application`].
        application: usize,
        /// What it reports.
        event: app::AppEvent,
    },
}

/// Packets and commands that came to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostCounters {
    /// Packets to an address that is not this host's.
    pub not_for_us: u64,
    /// Packets with a payload that nothing here takes, or with an extension header that says to discard them.
    pub not_understood: u64,
    /// Associations accepted although no application listens for more.
    pub without_application: u64,
    /// Packets sent in fragments.
    pub fragmented: u64,
    /// Packets put together from fragments that arrived.
    pub reassembled: u64,
    /// Commands of SIGMA that SCTP did not take.
    pub commands_refused: u64,
    /// Times that the parts did not come to rest within the bound: a bug of this program.
    pub restless: u64,
}

/// A host.
pub struct Host {
    interfaces: Vec<Interface>,
    /// Addresses that can be used: few, and looked through for every packet.
    addresses: SmallVec<[LocalAddress; 4]>,
    endpoint: Endpoint,
    tcp: Option<Box<tcp::Tcp>>,
    udp: Option<Box<udp::Udp>>,
    shim: Option<Box<dyn Shim>>,
    applications: Vec<Running>,
    /// The listening application: its number and what it does.
    listener: Option<(usize, app::Kind)>,
    sigma: Option<Sigma>,
    location: location::Location,
    /// The association that SIGMA drives.
    sigma_association: Option<AssociationId>,
    /// Something other than SCTP and its applications may have events, commands or timers.
    dirty: bool,
    /// Timers of everything but SCTP and the applications on connections.
    slow_timeout: Option<Instant>,
    transmits: VecDeque<Transmit>,
    reassembler: Reassembler,
    /// Of the last packet that was fragmented.
    identification: u32,
    /// That packet.
    fragmented: Option<Box<Packet>>,
    events: VecDeque<HostEvent>,
    counters: HostCounters,
    /// The packet taken last got past the shim, when so many had not been for this host.
    passed_up: Option<u64>,
}

struct Interface {
    acquisition: Option<Acquisition>,
    /// Cell connected to or being attached to: kept where there is no SIGMA to do it.
    cell: Option<CellId>,
    /// Addresses that it has whenever its link is up.
    while_up: Vec<Ipv6Addr>,
}

struct Running {
    application: Application,
    transport: app::Transport,
    connection: Connecting,
    /// Made for a connection that the listening application accepted.
    accepted: bool,
}

/// How far an application's connection is.
enum Connecting {
    /// Connects at this time.
    At {
        start: Instant,
        peer: Vec<Ipv6Addr>,
        port: u16,
    },
    /// Looks a peer up at this time, and connects to what is found.
    AtName {
        start: Instant,
        name: Name,
        port: u16,
        looking_up: Option<LookupId>,
    },
    /// Waits for a peer.
    Listening,
    /// Has an association, established or on its way.
    With(AssociationId),
    /// Has a TCP connection, established or on its way.
    WithTcp(ConnectionId),
    /// Has a socket of UDP.
    WithUdp(SocketId),
    /// Had one.
    Over,
}

impl Host {
    /// A host from its configuration. `seed` and the host's name give its random streams; `secrets` secures SCTP.
    ///
    /// # Errors
    /// [`HostError`]: what is wrong with the configuration.
    pub fn new(config: HostConfig, seed: u64, mut secrets: Box<dyn SecretRng>) -> Result<Self, HostError> {
        config.check()?;
        let location = location::Location::new(config.location, &mut *secrets);
        let location = location.map_err(|message| HostError::Part {
            host: config.name.clone(),
            message,
        })?;
        let shim = shim::from_config(&config.shim, &mut *secrets);
        let tcp = tcp::Tcp::for_applications(config.tcp, config.port, &config.applications, &mut *secrets);
        let udp = udp::Udp::for_applications(config.port, &config.applications, &mut *secrets);
        let mut host = Self {
            interfaces: Vec::new(),
            addresses: SmallVec::new(),
            endpoint: Endpoint::new(
                sctp::Config {
                    // SIGMA decides what becomes of addresses
                    auto_asconf: config.sctp.auto_asconf && config.sigma.is_none(),
                    ..config.sctp
                },
                config.port,
                secrets,
            ),
            tcp,
            udp,
            shim: None,
            applications: Vec::new(),
            listener: None,
            sigma: None,
            location,
            sigma_association: None,
            dirty: true,
            slow_timeout: None,
            transmits: VecDeque::new(),
            reassembler: Reassembler::default(),
            identification: Stream::new(seed, &format!("host {} fragments", config.name)).secret_u32(),
            fragmented: None,
            events: VecDeque::new(),
            counters: HostCounters::default(),
            passed_up: None,
        };
        if let Some(shim) = shim {
            host.install_shim(shim);
        }
        let mut radios: SmallVec<[InterfaceId; 2]> = SmallVec::new();
        for (number, interface) in config.interfaces.iter().enumerate() {
            let id = InterfaceId(number as u8);
            let mut while_up = Vec::new();
            let acquisition = match &interface.addressing {
                Addressing::Static(addresses) => {
                    for &address in addresses {
                        let local = LocalAddress {
                            interface: id,
                            address,
                        };
                        host.tell_shim(Instant::ZERO, &AddressEvent::Ready(local));
                        host.address_ready(local);
                    }
                    None
                }
                Addressing::WhileUp(addresses) => {
                    radios.push(id);
                    while_up.clone_from(addresses);
                    None
                }
                Addressing::Acquire(method) => {
                    radios.push(id);
                    let stream = Stream::new(seed, &format!("host {} interface {number}", config.name));
                    let mut acquisition = Acquisition::new(id, interface.link_layer, method, &stream);
                    if let Some(identifier) = shim::interface_identifier(&config.shim) {
                        acquisition.set_interface_identifier(identifier);
                    }
                    Some(acquisition)
                }
            };
            host.interfaces.push(Interface {
                acquisition,
                cell: None,
                while_up,
            });
        }
        host.sigma = config.sigma.map(|config| Sigma::new(config, &radios));
        for (number, config) in config.applications.into_iter().enumerate() {
            let connection = match config.role {
                app::Role::Listen if config.transport != app::Transport::Sctp => Connecting::Listening,
                app::Role::Listen => {
                    host.endpoint.listen();
                    host.listener = Some((number, config.kind.clone()));
                    Connecting::Listening
                }
                app::Role::Connect { peer, port, start } => Connecting::At {
                    start: Instant::ZERO + start,
                    peer,
                    port,
                },
                app::Role::ConnectByName { name, port, start } => Connecting::AtName {
                    start: Instant::ZERO + start,
                    name,
                    port,
                    looking_up: None,
                },
            };
            host.applications.push(Running {
                application: Application::new(&config.kind),
                transport: config.transport,
                connection,
                accepted: false,
            });
        }
        host.update_slow_timeout(None);
        Ok(host)
    }

    /// Takes a packet that arrived over `interface`.
    pub fn handle_packet(&mut self, now: Instant, interface: InterfaceId, mut packet: Packet) {
        self.handle_packet_in_place(now, interface, &mut packet);
    }

    /// The same for a packet where it lies, which saves moving it. What is left of it is of no use.
    pub fn handle_packet_in_place(&mut self, now: Instant, interface: InterfaceId, packet: &mut Packet) {
        // what stands in front of a fragment header comes first (RFC 8200 section 4.1): it may be the shim's
        if !packet.extensions.is_empty()
            && !names_home_address(packet)
            && let Some(fragment) = Fragment::of(packet)
        {
            self.passed_up = None;
            self.handle_fragment(now, interface, fragment);
            return;
        }
        self.passed_up = None;
        if !self.up(now, interface, packet) {
            self.settle(now);
            return;
        }
        if self.shim.is_some()
            && let Some(fragment) = Fragment::of(packet)
        {
            // it was in a tunnel, or behind what the shim took off
            self.handle_fragment(now, interface, fragment);
            self.settle(now);
            return;
        }
        self.passed_up = Some(self.counters.not_for_us);
        if packet.extensions.iter().any(forbids_processing) {
            self.counters.not_understood += 1;
            self.report_option(interface, packet);
            return;
        }
        match &packet.payload {
            Payload::Sctp(_) | Payload::SctpOverUdp { .. } => {
                if !self.has_address(packet.ip.destination) {
                    self.counters.not_for_us += 1;
                    return;
                }
                self.endpoint.handle_packet_in_place(now, interface, packet);
            }
            Payload::Tcp(_) => self.handle_tcp(now, interface, packet),
            _ => self.handle_message(now, interface, packet),
        }
        self.settle(now);
    }

    /// Takes a packet that is no transport's.
    #[inline(never)]
    fn handle_message(&mut self, now: Instant, interface: InterfaceId, packet: &Packet) {
        match &packet.payload {
            Payload::Icmpv6(Icmpv6::EchoRequest(_)) => self.answer_echo(now, interface, packet),
            Payload::Udp(datagram)
                if self.has_address(packet.ip.destination)
                    && self.location.handle_datagram(
                        now,
                        packet.ip.destination,
                        packet.ip.source,
                        datagram,
                    ) =>
            {
                self.dirty = true;
            }
            Payload::Udp(datagram) if self.handle_udp(now, interface, packet, datagram) => {}
            Payload::Icmpv6(message) if message.is_error() => {
                if !self.has_address(packet.ip.destination) {
                    self.counters.not_for_us += 1;
                    return;
                }
                self.endpoint.handle_icmp(now, message);
                if let Some(tcp) = &mut self.tcp {
                    tcp.handle_icmp(message);
                }
            }
            Payload::Icmpv6(_) | Payload::Udp(_) => match self.acquisition_mut(interface) {
                Some(acquisition) => {
                    acquisition.handle_packet(now, packet);
                    self.dirty = true;
                }
                None => self.counters.not_understood += 1,
            },
            _ => self.counters.not_understood += 1,
        }
    }

    /// Takes a link event.
    pub fn handle_link(&mut self, now: Instant, event: LinkEvent) {
        self.dirty = true;
        if let Some(shim) = &mut self.shim {
            shim.handle_link(now, &event);
        }
        match &mut self.sigma {
            Some(sigma) => sigma.handle_link(now, &event),
            None => self.attach_to_first_cell(&event),
        }
        match event {
            LinkEvent::Up { interface, .. } => {
                if let Some(acquisition) = self.acquisition_mut(interface) {
                    acquisition.handle_link_up(now);
                }
                self.tell_of_wire(now, interface, AddressEvent::Ready);
            }
            LinkEvent::Down { interface, .. } => {
                if let Some(acquisition) = self.acquisition_mut(interface) {
                    acquisition.handle_link_down(now);
                }
                self.tell_of_wire(now, interface, AddressEvent::Lost);
            }
            _ => {}
        }
        self.settle(now);
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.slow_timeout.is_some_and(|at| at <= now) {
            self.dirty = true;
            // SIGMA first, and its commands before SCTP's timers: a route that changes at the moment of a
            // retransmission is the one that the retransmission takes.
            if let Some(sigma) = &mut self.sigma {
                sigma.handle_timeout(now);
            }
            for acquisition in self.interfaces.iter_mut().filter_map(|i| i.acquisition.as_mut()) {
                acquisition.handle_timeout(now);
            }
            self.location.handle_timeout(now);
            self.settle(now);
        }
        if let Some(shim) = &mut self.shim {
            shim.handle_timeout(now);
        }
        for index in 0..self.applications.len() {
            if self.applications[index]
                .application
                .poll_timeout()
                .is_some_and(|at| at <= now)
            {
                self.with_application(index, |application, association| {
                    application.on_timeout(now, association);
                });
                self.with_tcp_application(index, |application, connection| {
                    application.on_timeout(now, connection);
                });
                self.with_udp_application(index, |application, socket| application.on_timeout(now, socket));
            }
        }
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        if let Some(tcp) = &mut self.tcp {
            tcp.handle_timeout(now);
        }
        if let Some(udp) = &mut self.udp {
            udp.handle_timeout(now);
        }
        self.settle(now);
    }

    /// The next packet to send. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let mut packet = Packet::EMPTY;
        let interface = self.poll_transmit_into(now, &mut packet)?;
        Some(Transmit { interface, packet })
    }

    /// The same, written to `packet`, where its driver wants it: moving it costs more than most of what makes it. Gives the
    /// interface to send it on.
    pub fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        loop {
            if !self.transmits.is_empty() {
                return self.transmits.pop_front().map(|t| t.write_to(packet));
            }
            let interface = if self.shim.is_none() {
                self.poll_transports(now, packet)
            } else {
                self.poll_through_shim(now, packet)
            };
            // Sending may have events of its own, and they may lead to more to send.
            if interface.is_some() || !self.settle(now) {
                return interface;
            }
        }
    }

    /// When `handle_timeout` must be called next. Poll after `poll_transmit` and `poll_event` returned `None`.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        let at = |timeout: Option<Instant>| timeout.unwrap_or(Instant::MAX);
        let mut earliest = at(self.slow_timeout).min(at(self.endpoint.poll_timeout()));
        if let Some(tcp) = &mut self.tcp {
            earliest = earliest.min(at(tcp.poll_timeout()));
        }
        if let Some(udp) = &self.udp {
            earliest = earliest.min(at(udp.poll_timeout()));
        }
        if let Some(shim) = &self.shim {
            earliest = earliest.min(at(shim.poll_timeout()));
        }
        for running in &self.applications {
            earliest = earliest.min(at(running.application.poll_timeout()));
        }
        (earliest != Instant::MAX).then_some(earliest)
    }

    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }

    /// Whether the packet taken last was handed to a transport, as far as shim and addresses go: a shim may have taken it
    /// for itself or found it stale, and its address may be another's.
    #[must_use]
    pub fn took_packet(&self) -> bool {
        self.passed_up == Some(self.counters.not_for_us)
    }

    /// The packet that was last sent in fragments, if they have this identification.
    #[must_use]
    pub fn fragmented_packet(&self, identification: u32) -> Option<&Packet> {
        self.fragmented
            .as_deref()
            .filter(|_| self.identification == identification)
    }

    /// The SCTP endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What application `index` has done so far. The configured applications come first, in their order; further
    /// connections of the listening one follow, one entry serving one connection after the other.
    #[must_use]
    pub fn application(&self, index: usize) -> Option<&app::Stats> {
        self.applications.get(index).map(|a| a.application.stats())
    }

    /// All applications, in the order of [`application`](Self::application).
    pub fn applications(&self) -> impl Iterator<Item = &app::Stats> {
        self.applications.iter().map(|a| a.application.stats())
    }

    /// The association of application `index`, while it has one.
    #[must_use]
    pub fn association_of(&self, index: usize) -> Option<AssociationId> {
        match self.applications.get(index)?.connection {
            Connecting::With(id) => Some(id),
            _ => None,
        }
    }

    /// Addresses that can be used now, link-local ones not among them.
    pub fn addresses(&self) -> impl Iterator<Item = LocalAddress> {
        self.addresses.iter().copied()
    }

    /// Address acquisition of an interface that has it.
    #[must_use]
    pub fn acquisition(&self, interface: InterfaceId) -> Option<&Acquisition> {
        self.interfaces
            .get(usize::from(interface.0))?
            .acquisition
            .as_ref()
    }

    /// SIGMA, on a mobile host.
    #[must_use]
    pub fn sigma(&self) -> Option<&Sigma> {
        self.sigma.as_ref()
    }

    /// Packets and commands that came to nothing.
    #[must_use]
    pub fn counters(&self) -> HostCounters {
        self.counters
    }

    /// A packet of chunks that were cut before its path turned out to carry less is fragmented (RFC 9260 section 6.9);
    /// one that is padded to find out what a path carries is not (RFC 4820 section 3).
    #[inline(never)]
    fn fragmented(&mut self, transmit: Transmit, mtu: usize) -> Option<Transmit> {
        self.identification = self.identification.wrapping_add(1);
        self.counters.fragmented += 1;
        let interface = transmit.interface;
        self.fragmented = Some(Box::new(transmit.packet.clone()));
        let mut fragments = fragment(transmit.packet, mtu, self.identification)
            .into_iter()
            .map(|packet| Transmit { interface, packet });
        let first = fragments.next();
        self.transmits.extend(fragments);
        first
    }

    /// The MTU of the way that `packet` goes, if the packet is longer and not there to find out.
    #[inline]
    fn mtu_exceeded_by(&self, packet: &Packet) -> Option<usize> {
        let mtu = self.endpoint.reduced_mtu(packet.ip.destination)? as usize;
        let sctp = packet.payload.sctp()?;
        let probe = sctp.chunks.iter().any(|c| matches!(c, Chunk::Pad(_)));
        (!probe && packet.buffer_len() > mtu).then_some(mtu)
    }

    /// The next packet of a transport, on a host without a shim.
    #[inline]
    fn poll_transports(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        if let Some(tcp) = &mut self.tcp {
            // a segment has the size of its way, and goes as it is
            let interface = tcp.poll_transmit_into(now, packet);
            if interface.is_some() {
                return interface;
            }
        }
        if let Some(datagram) = self.udp.as_mut().and_then(|u| u.poll_transmit()) {
            return Some(datagram.write_to(packet));
        }
        let interface = self.endpoint.poll_transmit_into(now, packet)?;
        match self.mtu_exceeded_by(packet) {
            None => Some(interface),
            Some(mtu) => {
                let whole = Transmit {
                    interface,
                    packet: core::mem::replace(packet, Packet::EMPTY),
                };
                self.fragmented(whole, mtu).map(|t| t.write_to(packet))
            }
        }
    }

    #[inline(never)]
    fn handle_fragment(&mut self, now: Instant, interface: InterfaceId, fragment: Fragment) {
        if !self.has_address(fragment.ip.destination) {
            self.counters.not_for_us += 1;
            return;
        }
        match self.reassembler.take(now, fragment) {
            Outcome::Whole(packet) => {
                self.counters.reassembled += 1;
                self.handle_packet(now, interface, *packet);
            }
            Outcome::Waits => {}
            Outcome::Bad => self.counters.not_understood += 1,
        }
    }

    fn acquisition_mut(&mut self, interface: InterfaceId) -> Option<&mut Acquisition> {
        self.interfaces
            .get_mut(usize::from(interface.0))?
            .acquisition
            .as_mut()
    }

    fn has_address(&self, address: Ipv6Addr) -> bool {
        self.addresses.iter().any(|l| l.address == address)
    }

    /// RFC 4443 section 4.2.
    fn answer_echo(&mut self, now: Instant, interface: InterfaceId, packet: &Packet) {
        let own = packet.ip.destination;
        let ours = self.has_address(own) || self.acquisition(interface).is_some_and(|a| a.owns(own));
        let Payload::Icmpv6(Icmpv6::EchoRequest(echo)) = &packet.payload else {
            return;
        };
        if !ours || packet.ip.source.is_unspecified() || packet.ip.source.is_multicast() {
            self.counters.not_for_us += 1;
            return;
        }
        let ip = Ipv6Header {
            source: own,
            destination: packet.ip.source,
            hop_limit: 64,
            ..packet.ip
        };
        let reply = Packet {
            ip,
            extensions: Vec::new(),
            payload: Payload::Icmpv6(Icmpv6::EchoReply(echo.clone())),
        };
        let reply = self.down(
            now,
            Transmit {
                interface,
                packet: reply,
            },
        );
        self.transmits.extend(reply);
    }

    /// Without SIGMA, an idle radio attaches to the first cell it hears that no other radio is in.
    fn attach_to_first_cell(&mut self, event: &LinkEvent) {
        match *event {
            LinkEvent::Beacon { interface, cell, .. } => {
                let taken = self.interfaces.iter().any(|i| i.cell == Some(cell));
                let radio = self.interfaces.get_mut(usize::from(interface.0));
                if let Some(radio) = radio.filter(|r| !taken && r.cell.is_none() && r.acquisition.is_some()) {
                    radio.cell = Some(cell);
                    self.events.push_back(HostEvent::Attach { interface, cell });
                }
            }
            LinkEvent::Up { interface, cell } => {
                if let Some(radio) = self.interfaces.get_mut(usize::from(interface.0)) {
                    radio.cell = Some(cell);
                }
            }
            LinkEvent::Down { interface, cell } => {
                if let Some(radio) = self.interfaces.get_mut(usize::from(interface.0)) {
                    radio.cell = radio.cell.filter(|c| *c != cell);
                }
            }
            LinkEvent::GoingDown { .. } | LinkEvent::Overlap { .. } => {}
        }
    }
}

/// Whether a packet has a home address of Mobile IPv6 among its extension headers: a type 2 routing header that leads on,
/// or a Home Address option.
fn names_home_address(packet: &Packet) -> bool {
    !packet.extensions.is_empty()
        && (packet.home_address().is_some()
            || packet
                .extensions
                .iter()
                .any(|e| e.type_2_home_address().is_some()))
}

/// Whether a packet with this header is to be discarded: an unknown option whose type says so (RFC 8200 section 4.2),
/// a routing header that leads on from here (section 4.4). It is not reported to the sender.
fn forbids_processing(extension: &ExtensionHeader) -> bool {
    match extension {
        ExtensionHeader::HopByHop(options) | ExtensionHeader::DestinationOptions(options) => {
            options.iter().any(|o| o.action() != OptionAction::Skip)
        }
        ExtensionHeader::Routing { segments_left, .. } => *segments_left > 0,
        ExtensionHeader::Fragment { .. } => false,
    }
}
