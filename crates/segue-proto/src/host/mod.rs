//! A host: interfaces, shim, transport and applications, composed.
//!
//! ```text
//!   applications            app::Application, one per association
//!   SCTP endpoint           sctp::Endpoint          SIGMA (sigma::Sigma) commands its associations
//!   TCP endpoint            tcp::Endpoint
//!   UDP sockets             udp::Endpoint
//!   shim                    shim::Shim: none, Mobile IPv6, ILNPv6
//!   interfaces              address::Acquisition (neighbour discovery, DHCPv6) or fixed addresses
//! ```
//!
//! The parts pass events to each other until there are none (`settle`, bounded). A data packet at an endpoint
//! touches the endpoint and its application only: everything else is looked at when it was marked dirty.

mod config;
mod event;
mod inbound;
mod location;
mod notice;
mod parts;
mod settle;
mod shim;
mod tcp;
mod udp;

pub use config::{Addressing, HostConfig, HostError, InterfaceConfig, ShimConfig};
pub use event::{HostCounters, HostEvent};
pub use parts::driven::{DriverNotice, DriverRole};
pub use parts::location::LocationConfig;

use crate::address::{Acquisition, AddressEvent};
use crate::app;
use crate::contract::{Departure, InterfaceId, LinkEvent, LocalAddress, Transmit};
use crate::random::{SecretRng, Stream};
use crate::sctp::{self, AssociationId, Endpoint};
use crate::shim::Shim;
use crate::sigma::Sigma;
use crate::time::Instant;
use core::hint::cold_path;
use core::net::Ipv6Addr;
use notice::Notice;
use parts::applications::{Applications, Connected, Connecting};
use parts::fragments::{Fragmenter, Reassembler};
use parts::interfaces::Interfaces;
use parts::kernel::Kernel;
use parts::location::Location;
use parts::movers::Movers;
use parts::shims;
use parts::tcp::Tcp;
use parts::udp::Udp;
use segue_wire::Packet;
use segue_wire::sctp::Chunk;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// A host.
pub struct Host {
    interfaces: Interfaces,
    /// Addresses that can be used: few, and looked through for every packet.
    addresses: SmallVec<[LocalAddress; 4]>,
    /// Addresses whose valid lifetimes are over, the last at the end: nothing is sent from them.
    expired: SmallVec<[Ipv6Addr; 1]>,
    endpoint: Endpoint,
    tcp: Option<Box<Tcp>>,
    udp: Option<Box<Udp>>,
    shim: Option<Box<dyn Shim>>,
    /// Where TCP and UDP are, if not here.
    kernel: Option<Box<Kernel>>,
    applications: Applications,
    /// The listening application: its number and what it does.
    listener: Option<(usize, app::Kind)>,
    sigma: Option<Movers>,
    location: Location,
    /// Something other than SCTP and its applications may have events, commands or timers.
    dirty: bool,
    /// Timers of everything but SCTP and the applications on connections.
    slow_timeout: Option<Instant>,
    transmits: VecDeque<Transmit>,
    reassembler: Reassembler,
    fragmenter: Fragmenter,
    events: VecDeque<HostEvent>,
    counters: HostCounters,
    /// The packet taken last got past the shim, when so many had not been for this host.
    passed_up: Option<u64>,
}

impl Host {
    /// A host from its configuration. `seed` and the host's name give its random streams; `secrets` secures SCTP.
    ///
    /// # Errors
    /// [`HostError`]: what is wrong with the configuration.
    pub fn new(config: HostConfig, seed: u64, secrets: Box<dyn SecretRng>) -> Result<Self, HostError> {
        Self::with_kernel(config, seed, secrets, None)
    }

    fn with_kernel(
        config: HostConfig,
        seed: u64,
        mut secrets: Box<dyn SecretRng>,
        kernel: Option<Box<Kernel>>,
    ) -> Result<Self, HostError> {
        config.check()?;
        let location = Location::new(config.location, &mut *secrets);
        let location = location.map_err(|message| HostError::Part {
            host: config.name.clone(),
            message,
        })?;
        let shim = shims::from_config(&config.shim, &mut *secrets);
        let tcp = Tcp::for_applications(config.tcp, config.port, &config.applications, &mut *secrets);
        let udp = Udp::for_applications(config.port, &config.applications, &mut *secrets);
        // what the kernel has, this host has not
        let (tcp, udp) = (tcp.filter(|_| kernel.is_none()), udp.filter(|_| kernel.is_none()));
        let mut host = Self {
            interfaces: Interfaces::default(),
            addresses: SmallVec::new(),
            expired: SmallVec::new(),
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
            kernel,
            applications: Applications::new(seed, &config.name),
            listener: None,
            sigma: None,
            location,
            dirty: true,
            slow_timeout: None,
            transmits: VecDeque::new(),
            reassembler: Reassembler::default(),
            fragmenter: Fragmenter::new(
                Stream::new(seed, &format!("host {} fragments", config.name)).secret_u32(),
            ),
            events: VecDeque::new(),
            counters: HostCounters::default(),
            passed_up: None,
        };
        if let Some(shim) = shim {
            host.install_shim(shim);
        }
        let radios = host.install_interfaces(&config.name, &config.interfaces, &config.shim, seed);
        host.sigma = config
            .sigma
            .map(|config| Movers::new(Sigma::new(config, &radios)));
        for (number, config) in config.applications.into_iter().enumerate() {
            host.install_application(number, config);
        }
        host.update_slow_timeout(None);
        Ok(host)
    }

    /// The interfaces, and the addresses that they have from the beginning. Gives those whose links come and go.
    fn install_interfaces(
        &mut self,
        name: &str,
        interfaces: &[InterfaceConfig],
        shim: &ShimConfig,
        seed: u64,
    ) -> SmallVec<[InterfaceId; 2]> {
        let mut radios: SmallVec<[InterfaceId; 2]> = SmallVec::new();
        for (number, interface) in interfaces.iter().enumerate() {
            let id = InterfaceId(number as u8);
            let mut while_up = Vec::new();
            let acquisition = match &interface.addressing {
                Addressing::Static(addresses) => {
                    for &address in addresses {
                        let local = LocalAddress {
                            interface: id,
                            address,
                        };
                        self.tell_shim(Instant::ZERO, &AddressEvent::Ready(local));
                        self.address_ready(local);
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
                    let stream = Stream::new(seed, &format!("host {} interface {number}", name));
                    let mut acquisition = Acquisition::new(id, interface.link_layer, method, &stream);
                    if let Some(identifier) = shims::interface_identifier(shim) {
                        acquisition.set_interface_identifier(identifier);
                    }
                    Some(acquisition)
                }
            };
            self.interfaces.push(acquisition, while_up);
        }
        radios
    }

    fn install_application(&mut self, number: usize, config: app::Config) {
        let connection = match config.role {
            _ if self.kernel.is_some() && config.transport != app::Transport::Sctp => Connecting::Over,
            app::Role::Listen if config.transport != app::Transport::Sctp => Connecting::Listening,
            app::Role::Listen => {
                self.endpoint.listen();
                self.listener = Some((number, config.kind.clone()));
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
        self.applications
            .push(&config.kind, config.transport, connection, false);
    }

    /// Takes a link event.
    pub fn handle_link(&mut self, now: Instant, event: LinkEvent) {
        // every cell in reach sends ten a second, and hardly any matters
        let nothing_is_due = !self.dirty && self.slow_timeout.is_none_or(|at| at > now);
        if let (LinkEvent::Beacon { .. }, Some(movers), None) = (&event, &mut self.sigma, &self.shim) {
            if movers.hear_beacon(now, &event) || !nothing_is_due {
                self.dirty = true;
                self.settle(now);
            }
            return;
        }
        self.dirty = true;
        if let Some(shim) = &mut self.shim {
            shim.handle_link(now, &event);
        }
        match &mut self.sigma {
            Some(movers) => movers.tell_all(|sigma| sigma.handle_link(now, &event)),
            None => {
                if let (Some(cell), LinkEvent::Beacon { interface, .. }) =
                    (self.interfaces.attach_to_first_cell(&event), event)
                {
                    self.events.push_back(HostEvent::Attach { interface, cell });
                }
            }
        }
        self.interfaces.handle_link(now, &event);
        match event {
            LinkEvent::Up { interface, .. } => self.tell_of_wire(now, interface, AddressEvent::Ready),
            LinkEvent::Down { interface, .. } => self.tell_of_wire(now, interface, AddressEvent::Lost),
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
            if let Some(movers) = &mut self.sigma {
                movers.tell_all(|sigma| sigma.handle_timeout(now));
            }
            self.interfaces.handle_timeout(now);
            self.location_due(now);
            self.settle(now);
        }
        if let Some(shim) = &mut self.shim {
            shim.handle_timeout(now);
        }
        for index in self.applications.due(now) {
            self.notify(now, index, Notice::Due);
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
        let interface = self.poll_transmit_into(now, &mut packet)?.interface;
        Some(Transmit { interface, packet })
    }

    /// The same, written to `packet`, where its driver wants it: moving it costs more than most of what makes it.
    pub fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<Departure> {
        loop {
            if !self.transmits.is_empty() {
                cold_path();
                return self.transmits.pop_front().map(|t| t.write_to(packet));
            }
            let departure = if self.shim.is_none() {
                self.poll_transports(now, packet)
            } else {
                cold_path();
                self.poll_through_shim(now, packet)
            };
            // Sending may have events of its own, and they may lead to more to send.
            if departure.is_some() || !self.settle(now) {
                return departure;
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
        earliest = earliest.min(at(self.applications.poll_timeout()));
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
        self.fragmenter.last(identification)
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
        self.applications.get(index).map(|a| a.application().stats())
    }

    /// What the kind of application `index` alone keeps an account of.
    #[must_use]
    pub fn record_of(&self, index: usize) -> Option<app::Record<'_>> {
        self.applications.get(index)?.application().record()
    }

    /// All applications, in the order of [`application`](Self::application).
    pub fn applications(&self) -> impl Iterator<Item = &app::Stats> {
        self.applications.iter().map(|a| a.application().stats())
    }

    /// The association of application `index`, while it has one.
    #[must_use]
    pub fn association_of(&self, index: usize) -> Option<AssociationId> {
        match self.applications.connected(index)? {
            Connected::Sctp(id) => Some(id),
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
        self.interfaces.acquisition(interface)
    }

    /// SIGMA, on a mobile host: that of its first association.
    #[must_use]
    pub fn sigma(&self) -> Option<&Sigma> {
        self.sigma.as_ref().map(Movers::first)
    }

    /// Packets and commands that came to nothing.
    #[must_use]
    pub fn counters(&self) -> HostCounters {
        self.counters
    }

    /// A packet of chunks that were cut before its path turned out to carry less is fragmented (RFC 9260 section 6.9);
    /// one that is padded to find out what a path carries is not (RFC 4820 section 3).
    #[inline(never)]
    fn fragmented(&mut self, interface: InterfaceId, packet: Packet, mtu: usize) -> Option<Transmit> {
        self.counters.fragmented += 1;
        let fragments = self.fragmenter.cut(packet, mtu).into_iter();
        let mut fragments = fragments.map(|packet| Transmit { interface, packet });
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
    fn poll_transports(&mut self, now: Instant, packet: &mut Packet) -> Option<Departure> {
        let departure = self.poll_whole(now, packet)?;
        if let Some(mtu) = self.mtu_exceeded_by(packet) {
            cold_path();
            let whole = core::mem::replace(packet, Packet::EMPTY);
            self.fragmented(departure.interface, whole, mtu)?.write_to(packet);
        }
        Some(departure)
    }

    /// The next packet of a transport, which may be too long for its way if it is one of SCTP.
    #[inline]
    fn poll_whole(&mut self, now: Instant, packet: &mut Packet) -> Option<Departure> {
        if let Some(tcp) = &mut self.tcp {
            let departure = tcp.poll_transmit_into(now, packet);
            if departure.is_some() {
                return departure;
            }
        }
        if let Some(udp) = &mut self.udp {
            let departure = udp.poll_transmit_into(now, packet);
            if departure.is_some() {
                return departure;
            }
        }
        self.endpoint.poll_transmit_into(now, packet)
    }

    fn has_address(&self, address: Ipv6Addr) -> bool {
        self.addresses.iter().any(|l| l.address == address)
    }
}
