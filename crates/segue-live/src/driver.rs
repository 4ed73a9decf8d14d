//! The event loop: socket, clock and addresses around an SCTP endpoint.

use crate::addresses::{AddressChange, AddressWatch, HostAddress};
use crate::outbox::{Failed, Outbox};
use crate::socket::{Datagrams, PacketSocket, Route};
use crate::{Capture, Clock, OsSecrets};
use bytes::Bytes;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use segue_proto::contract::LocalAddress;
use segue_proto::sctp::{
    Association, AssociationId, Config, Endpoint, Event, PmtuDiscovery, UdpEncapsulation,
};
use segue_proto::{Duration, Instant, InterfaceId, Transmit};
use segue_wire::sctp::{Chunk, SctpPacket};
use segue_wire::{Ipv6Header, Packet, Payload};
use std::collections::VecDeque;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, BorrowedFd};

/// Calls of the socket per turn, so that a flood does not keep timers and the caller waiting.
const RECEIVES_PER_TURN: usize = 64;

/// What SCTP packets travel in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// UDP (RFC 6951).
    Udp {
        /// Port of this end; 0 lets the kernel choose.
        local_port: u16,
        /// Port that peers are first sent to.
        remote_port: u16,
    },
    /// IPv6 itself, as protocol 132. Needs `CAP_NET_RAW`, and no SCTP of the kernel's beside it.
    Raw,
}

/// What a [`Driver`] is made of.
#[derive(Clone, Debug)]
pub struct DriverConfig {
    /// The endpoint's configuration; `udp_encapsulation` is set by the driver.
    pub sctp: Config,
    /// SCTP port.
    pub port: u16,
    /// What packets travel in.
    pub transport: Transport,
    /// Addresses of this host to be used, the first as the route; empty for all. A peer is told of those only whose scope
    /// reaches it.
    pub addresses: Vec<Ipv6Addr>,
    /// Send and receive buffer of the socket, bytes.
    pub socket_buffer: usize,
}

impl Default for DriverConfig {
    /// UDP between the IANA ports, all addresses, 4 MiB of socket buffer.
    fn default() -> Self {
        Self {
            sctp: Config::default(),
            port: 5001,
            transport: Transport::Udp {
                local_port: segue_wire::udp::SCTP_TUNNELING_PORT,
                remote_port: segue_wire::udp::SCTP_TUNNELING_PORT,
            },
            addresses: Vec::new(),
            socket_buffer: 4 << 20,
        }
    }
}

/// Why a driver cannot start, or go on.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The UDP port is in use.
    #[error("UDP port {0} is in use by another program: choose another")]
    PortInUse(u16),
    /// The UDP port cannot be had for another reason.
    #[error("UDP port {port}: {error}")]
    Port {
        /// The port.
        port: u16,
        /// What the operating system says.
        error: io::Error,
    },
    /// Raw sockets are for root.
    #[error("raw sockets need CAP_NET_RAW: run it as root, or use UDP encapsulation")]
    NotPermitted,
    /// An address is not the host's.
    #[error("{0} is not a usable address of this host: {1}")]
    NoSuchAddress(Ipv6Addr, String),
    /// There is no address to send from or to.
    #[error("no IPv6 address to use")]
    NoAddress,
    /// The operating system refuses something else.
    #[error("{what}: {error}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// What the operating system says.
        error: io::Error,
    },
}

/// What happened.
#[derive(Clone, PartialEq, Debug)]
pub enum DriverEvent {
    /// An association has something to tell.
    Association(AssociationId, Event),
    /// The host has a new address, usable from now on; or one of two interfaces that had it has lost it, and it is the other's.
    AddressAppeared(LocalAddress),
    /// The host has lost an address. Associations send from it no more, and go on from another, or from the next one that
    /// appears if it was the last; their peers are not told unless that happens.
    AddressVanished(LocalAddress),
}

/// Packets of a driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriverCounters {
    /// SCTP packets sent.
    pub packets_sent: u64,
    /// SCTP packets received.
    pub packets_received: u64,
    /// INITs to an address of this host that was not to be used.
    pub not_for_us: u64,
    /// Packets that do not parse, bad checksums included.
    pub malformed: u64,
    /// Calls to send that the kernel refused: no route, or the source address is gone.
    pub send_failures: u64,
    /// ICMPv6 errors about packets of ours.
    pub icmp_errors: u64,
    /// Other errors of the socket.
    pub socket_errors: u64,
}

/// An SCTP endpoint over a real socket.
pub struct Driver {
    clock: Clock,
    endpoint: Endpoint,
    socket: PacketSocket,
    outbox: Outbox,
    watch: AddressWatch,
    interfaces: Vec<Interface>,
    /// New associations offer all global addresses, those that appear later included.
    all_addresses: bool,
    /// The addresses to be used, where they were named.
    named: Vec<Ipv6Addr>,
    /// The capture, if there is to be one, or why it could not be written: nothing more is then.
    capture: Option<io::Result<Capture>>,
    events: VecDeque<DriverEvent>,
    counters: DriverCounters,
    last_failure: Option<io::Error>,
}

/// An interface, by its number.
struct Interface {
    index: u32,
    name: String,
    loopback: bool,
}

impl Driver {
    /// Opens the socket and looks up the addresses.
    ///
    /// # Errors
    /// [`DriverError`]: what is in the way.
    pub fn new(config: DriverConfig) -> Result<Self, DriverError> {
        let system = |what| move |error| DriverError::System { what, error };
        let finds_pmtu = config.sctp.pmtu_discovery != PmtuDiscovery::None;
        let (socket, encapsulation) = match config.transport {
            Transport::Udp {
                local_port,
                remote_port,
            } => {
                let socket =
                    PacketSocket::udp(local_port, config.socket_buffer, finds_pmtu).map_err(|error| {
                        match error.kind() {
                            io::ErrorKind::AddrInUse => DriverError::PortInUse(local_port),
                            io::ErrorKind::PermissionDenied => DriverError::Port {
                                port: local_port,
                                error,
                            },
                            _ => system("UDP socket")(error),
                        }
                    })?;
                let encapsulation = socket.udp_port().map(|local_port| UdpEncapsulation {
                    local_port,
                    remote_port,
                });
                (socket, encapsulation)
            }
            Transport::Raw => {
                let socket =
                    PacketSocket::raw(config.socket_buffer, finds_pmtu).map_err(|error| {
                        match error.kind() {
                            io::ErrorKind::PermissionDenied => DriverError::NotPermitted,
                            _ => system("raw socket")(error),
                        }
                    })?;
                (socket, None)
            }
        };
        let mut sctp = config.sctp;
        sctp.udp_encapsulation = encapsulation;
        let secrets = OsSecrets::new().map_err(system("randomness of the operating system"))?;
        let mut driver = Self {
            clock: Clock::new(),
            endpoint: Endpoint::new(sctp, config.port, Box::new(secrets)),
            socket,
            outbox: Outbox::new(),
            watch: AddressWatch::new().map_err(system("addresses of this host"))?,
            interfaces: Vec::new(),
            all_addresses: config.addresses.is_empty(),
            named: config.addresses.clone(),
            capture: None,
            events: VecDeque::new(),
            counters: DriverCounters::default(),
            last_failure: None,
        };
        for address in driver.addresses_of(&config.addresses)? {
            let local = driver.local(&address);
            driver.endpoint.add_local_address(local);
        }
        Ok(driver)
    }

    /// Accepts associations from now on.
    pub fn listen(&mut self) {
        self.endpoint.listen();
    }

    /// Starts an association with a peer, whose first address is the primary path. Where the addresses of this end were
    /// left open, the one that the routing table chooses for that destination is the route.
    ///
    /// # Errors
    /// [`DriverError::NoAddress`] if there is no address on either side.
    pub fn connect(&mut self, peer: &[Ipv6Addr], port: u16) -> Result<AssociationId, DriverError> {
        let now = self.now();
        if self.all_addresses
            && let Some(first) = peer.first()
        {
            self.prefer_source_for(*first);
        }
        self.endpoint
            .connect(now, peer, port)
            .ok_or(DriverError::NoAddress)
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The endpoint.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// An association, to be looked at.
    #[must_use]
    pub fn association(&self, id: AssociationId) -> Option<&Association> {
        self.endpoint.association(id)
    }

    /// An association, to be commanded; what it has to send goes out with the next [`turn`](Self::turn).
    pub fn association_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.endpoint.association_mut(id)
    }

    /// An address of this host with its interface, if the host has it now.
    pub fn local_address(&mut self, address: Ipv6Addr) -> Option<LocalAddress> {
        let found = *self.watch.find(address)?;
        Some(self.local(&found))
    }

    /// Local UDP port, with UDP encapsulation.
    #[must_use]
    pub const fn udp_port(&self) -> Option<u16> {
        self.socket.udp_port()
    }

    /// Name of an interface.
    #[must_use]
    pub fn interface_name(&self, interface: InterfaceId) -> &str {
        self.interfaces
            .get(usize::from(interface.0))
            .map_or("?", |i| &i.name)
    }

    /// Writes all packets from now on to a capture.
    pub fn set_capture(&mut self, capture: Capture) {
        self.capture = Some(Ok(capture));
    }

    /// Takes the capture back, to end it, if there was to be one.
    ///
    /// # Errors
    /// Why it could not be written: it ends before that.
    pub fn take_capture(&mut self) -> Option<io::Result<Capture>> {
        self.capture.take()
    }

    /// The clock.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Counters since the start.
    #[must_use]
    pub const fn counters(&self) -> DriverCounters {
        self.counters
    }

    /// Why the last packet that could not be sent was not.
    #[must_use]
    pub const fn last_failure(&self) -> Option<&io::Error> {
        self.last_failure.as_ref()
    }

    /// Sends what there is to send, waits until something happens, and deals with it: a packet, a timer, a change of
    /// addresses, `until` is reached, or a descriptor of `wake` can be read. Does not wait while events are to be polled.
    ///
    /// # Errors
    /// If the operating system refuses to wait.
    pub fn turn(&mut self, until: Option<Instant>, wake: &[BorrowedFd<'_>]) -> Result<(), DriverError> {
        self.drain(self.now());
        self.flush();
        let timer = self.endpoint.poll_timeout();
        let timeout = if self.events.is_empty() {
            let deadline = [until, timer].into_iter().flatten().min();
            deadline.map(|at| time_spec(at.since(self.now())))
        } else {
            Some(time_spec(Duration::ZERO))
        };
        let (packets, addresses) = {
            let mut fds = vec![
                PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.watch.as_fd(), PollFlags::POLLIN),
            ];
            fds.extend(wake.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)));
            match ppoll(&mut fds, timeout, None) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(e) => {
                    return Err(DriverError::System {
                        what: "waiting for packets",
                        error: e.into(),
                    });
                }
            }
            let ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|r| !r.is_empty());
            (ready(&fds[0]), ready(&fds[1]))
        };
        if addresses {
            self.take_address_changes()?;
        }
        let now = self.now();
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
            self.drain(now);
        }
        if packets {
            self.receive_errors();
            self.receive();
        }
        self.flush();
        Ok(())
    }

    /// Sends what there is to send, without waiting for anything: before the program ends.
    pub fn send_now(&mut self) {
        self.drain(self.now());
        self.flush();
    }

    /// What happened. Poll until `None` after every [`turn`](Self::turn).
    pub fn poll_event(&mut self) -> Option<DriverEvent> {
        if self.events.is_empty() {
            // commands given since may have events of their own
            self.take_events();
        }
        self.events.pop_front()
    }

    /// Packets into the outbox, events into the queue. Events first: a destination that has just become known gets its
    /// source before the first packet goes there.
    fn drain(&mut self, now: Instant) {
        self.take_events();
        while let Some(Transmit { interface, packet }) = self.endpoint.poll_transmit(now) {
            self.post(now, interface, packet);
        }
        self.take_events();
    }

    fn take_events(&mut self) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            if matches!(
                event,
                Event::Connected
                    | Event::Restarted(_)
                    | Event::PeerAddressAdded(_)
                    | Event::AsconfAnswered { .. }
            ) {
                self.choose_sources(id);
            }
            self.events.push_back(DriverEvent::Association(id, event));
        }
    }

    /// Has an association send to each of the peer's addresses from where the routing table does.
    fn choose_sources(&mut self, id: AssociationId) {
        let Some(association) = self.endpoint.association_mut(id) else {
            return;
        };
        let mut destinations: Vec<Ipv6Addr> = association.paths().map(|path| path.destination).collect();
        destinations.sort_unstable();
        destinations.dedup();
        for destination in destinations {
            association.set_source(destination, crate::socket::source_for(destination));
        }
    }

    fn post(&mut self, now: Instant, interface: InterfaceId, packet: Packet) {
        if let Some(Ok(capture)) = &mut self.capture {
            let name = self
                .interfaces
                .get(usize::from(interface.0))
                .map_or("?", |i| &i.name);
            if let Err(error) = capture.sent(now, interface, name, &packet) {
                self.capture = Some(Err(error));
            }
        }
        let (sctp, port): (&SctpPacket, u16) = match &packet.payload {
            Payload::Sctp(sctp) if self.socket.udp_port().is_none() => (sctp, 0),
            Payload::SctpOverUdp {
                destination_port,
                packet,
                ..
            } => (packet, *destination_port),
            // a peer that answered without UDP, and there is only UDP here
            _ => {
                self.counters.send_failures += 1;
                return;
            }
        };
        let pinned = self.interfaces.get(usize::from(interface.0));
        let route = Route {
            source: packet.ip.source,
            // addresses of the loopback interface are reached, and reach, over any
            interface_index: pinned.filter(|i| !i.loopback).map_or(0, |i| i.index),
            destination: packet.ip.destination,
            port,
            fragment_to: self.fragment_to(&packet, sctp),
        };
        self.counters.packets_sent += 1;
        let mut failed = Failed::default();
        self.outbox.push(&mut self.socket, route, sctp, &mut failed);
        self.note(failed);
    }

    /// A packet of chunks that were cut before its path turned out to carry less is fragmented (RFC 9260 section 6.9);
    /// one that is padded to find out what a path carries is not (RFC 4820 section 3).
    fn fragment_to(&self, packet: &Packet, sctp: &SctpPacket) -> Option<u16> {
        let len = packet.buffer_len();
        // every path carries this much (RFC 8200 section 5): there is nothing to look up
        if len <= 1280 {
            return None;
        }
        let mtu = self.endpoint.reduced_mtu(packet.ip.destination)?;
        let probe = sctp.chunks.iter().any(|c| matches!(c, Chunk::Pad(_)));
        (len > mtu as usize && !probe).then(|| u16::try_from(mtu).unwrap_or(u16::MAX))
    }

    fn flush(&mut self) {
        let mut failed = Failed::default();
        self.outbox.flush(&mut self.socket, &mut failed);
        self.note(failed);
    }

    fn note(&mut self, failed: Failed) {
        self.counters.send_failures += failed.batches;
        if failed.error.is_some() {
            self.last_failure = failed.error;
        }
    }

    fn receive(&mut self) {
        for _ in 0..RECEIVES_PER_TURN {
            match self.socket.receive() {
                Ok(Some(datagrams)) => self.take(&datagrams),
                Ok(None) => return,
                Err(error) => {
                    self.counters.socket_errors += 1;
                    self.last_failure = Some(error);
                }
            }
        }
    }

    /// Errors are kept until they are read, and wake whoever waits until then.
    fn receive_errors(&mut self) {
        for _ in 0..RECEIVES_PER_TURN {
            match self.socket.receive_error() {
                Ok(Some(Some(message))) => {
                    self.counters.icmp_errors += 1;
                    let now = self.now();
                    self.endpoint.handle_icmp(now, &message);
                    self.drain(now);
                }
                Ok(Some(None)) => self.counters.socket_errors += 1,
                Ok(None) => return,
                Err(error) => {
                    self.counters.socket_errors += 1;
                    self.last_failure = Some(error);
                }
            }
        }
    }

    fn take(&mut self, datagrams: &Datagrams) {
        let now = self.now();
        let interface = self.interface(datagrams.interface_index);
        let udp_ports = self.socket.udp_port().map(|own| (datagrams.from_port, own));
        // each packet has storage of its own: what an association keeps of one does not hold on to the others
        let packets: Vec<Bytes> = self
            .socket
            .received(datagrams)
            .map(Bytes::copy_from_slice)
            .collect();
        for bytes in packets {
            if let Some(Ok(capture)) = &mut self.capture {
                let name = self
                    .interfaces
                    .get(usize::from(interface.0))
                    .map_or("?", |i| &i.name);
                let written = capture.received(
                    now,
                    interface,
                    name,
                    datagrams.from,
                    datagrams.to,
                    udp_ports,
                    &bytes,
                );
                if let Err(error) = written {
                    self.capture = Some(Err(error));
                }
            }
            let Ok(packet) = SctpPacket::parse(&bytes) else {
                self.counters.malformed += 1;
                continue;
            };
            self.counters.packets_received += 1;
            if matches!(packet.chunks.first(), Some(Chunk::Init(_))) && !self.accepts_at(datagrams.to) {
                self.counters.not_for_us += 1;
                continue;
            }
            let packet = Packet {
                ip: Ipv6Header {
                    source: datagrams.from,
                    destination: datagrams.to,
                    traffic_class: 0,
                    hop_limit: 64,
                    flow_label: 0,
                },
                extensions: Vec::new(),
                payload: match udp_ports {
                    None => Payload::Sctp(packet),
                    Some((source_port, destination_port)) => Payload::SctpOverUdp {
                        source_port,
                        destination_port,
                        packet,
                    },
                },
            };
            self.endpoint.handle_packet(now, interface, packet);
            self.drain(now);
        }
    }

    fn take_address_changes(&mut self) -> Result<(), DriverError> {
        let changes = self.watch.changes().map_err(|error| DriverError::System {
            what: "addresses of this host",
            error,
        })?;
        for (number, change) in changes.iter().enumerate() {
            match change {
                AddressChange::Appeared(address) => self.address_appeared(address),
                AddressChange::Vanished(address) => {
                    self.endpoint.remove_local_address(address.address);
                    match self.elsewhere(address, &changes[number + 1..]) {
                        // it goes on by the other interface
                        Some(other) => self.address_appeared(&other),
                        None => self.address_vanished(address),
                    }
                }
                AddressChange::PreferenceChanged(address) => self.offer(address),
            }
        }
        self.choose_all_sources();
        Ok(())
    }

    fn address_appeared(&mut self, address: &HostAddress) {
        let local = self.local(address);
        self.offer(address);
        // what is sent from it at once has to go to where it reaches
        self.choose_all_sources();
        self.tell_associations(|association, now| {
            // an address that the peer cannot answer to is none
            let known = |l: LocalAddress| l.address == address.address;
            if address.global || association.local_addresses().any(known) {
                association.local_address_added(now, local);
            }
        });
        self.events.push_back(DriverEvent::AddressAppeared(local));
    }

    fn address_vanished(&mut self, address: &HostAddress) {
        self.tell_associations(|association, now| {
            association.local_address_removed(now, address.address);
        });
        let local = self.local(address);
        self.events.push_back(DriverEvent::AddressVanished(local));
    }

    /// The same address on another interface that has it already, and not only by one of the `later` changes.
    fn elsewhere(&self, address: &HostAddress, later: &[AddressChange]) -> Option<HostAddress> {
        let is_there =
            |a: &&HostAddress| a.address == address.address && !later.contains(&AddressChange::Appeared(**a));
        self.watch.addresses().iter().find(is_there).copied()
    }

    /// Has new associations offer an address, or no longer, as it is to be used: one that is deprecated only if it was named (RFC
    /// 4862 section 5.5.4).
    fn offer(&mut self, address: &HostAddress) {
        if self.named.contains(&address.address) || self.all_addresses && !address.deprecated {
            let local = self.local(address);
            self.endpoint.add_local_address(local);
        } else {
            self.endpoint.remove_local_address(address.address);
        }
    }

    fn choose_all_sources(&mut self) {
        let all: Vec<AssociationId> = self.endpoint.associations().map(|(id, _)| id).collect();
        for id in all {
            self.choose_sources(id);
        }
    }

    fn tell_associations(&mut self, mut tell: impl FnMut(&mut Association, Instant)) {
        let now = self.now();
        let ids: Vec<AssociationId> = self.endpoint.associations().map(|(id, _)| id).collect();
        for id in ids {
            if let Some(association) = self.endpoint.association_mut(id) {
                tell(association, now);
            }
            self.drain(now);
        }
    }

    /// The addresses named, or where none are, those that every host of the network may use.
    fn addresses_of(&self, named: &[Ipv6Addr]) -> Result<Vec<HostAddress>, DriverError> {
        if named.is_empty() {
            let usable = self.watch.addresses().iter().filter(|a| !a.deprecated);
            let mut found: Vec<HostAddress> = usable.copied().collect();
            found.sort_by_key(|a| !a.global);
            return if found.is_empty() {
                Err(DriverError::NoAddress)
            } else {
                Ok(found)
            };
        }
        named
            .iter()
            .map(|address| {
                self.watch.find(*address).copied().ok_or_else(|| {
                    let there: Vec<String> = self
                        .watch
                        .addresses()
                        .iter()
                        .map(|a| a.address.to_string())
                        .collect();
                    DriverError::NoSuchAddress(*address, format!("it has {}", there.join(", ")))
                })
            })
            .collect()
    }

    /// Whether a peer may begin an association with this address of ours.
    fn accepts_at(&self, address: Ipv6Addr) -> bool {
        self.all_addresses || self.named.contains(&address)
    }

    /// Puts the address that the routing table sends from to the front.
    fn prefer_source_for(&mut self, destination: Ipv6Addr) {
        let Some(source) = crate::socket::source_for(destination) else {
            return;
        };
        let Some(found) = self.watch.find(source).copied() else {
            return;
        };
        let usable = self.watch.addresses().iter();
        let mut all: Vec<HostAddress> = usable
            .filter(|a| a.address == source || !a.deprecated)
            .copied()
            .collect();
        all.sort_by_key(|a| (a.address != found.address, !a.global));
        for address in &all {
            self.endpoint.remove_local_address(address.address);
        }
        for address in &all {
            let local = self.local(address);
            self.endpoint.add_local_address(local);
        }
    }

    fn local(&mut self, address: &HostAddress) -> LocalAddress {
        LocalAddress {
            interface: self.interface(address.interface_index),
            address: address.address,
        }
    }

    /// The number of an interface; it gets one when first seen. A host with more than 256 shares the last.
    fn interface(&mut self, index: u32) -> InterfaceId {
        let found = self.interfaces.iter().position(|i| i.index == index);
        let position = found.unwrap_or_else(|| {
            if self.interfaces.len() <= usize::from(u8::MAX) {
                self.interfaces.push(Interface::look_up(index));
            }
            self.interfaces.len() - 1
        });
        InterfaceId(position as u8)
    }
}

impl Interface {
    fn look_up(index: u32) -> Self {
        let name = nix::net::if_::if_indextoname(index).map_or_else(
            |_| format!("if{index}"),
            |name| name.to_string_lossy().into_owned(),
        );
        let loopback = getifaddrs().is_ok_and(|mut all| {
            all.any(|i| i.interface_name == name && i.flags.contains(InterfaceFlags::IFF_LOOPBACK))
        });
        Self {
            index,
            name,
            loopback,
        }
    }
}

fn time_spec(duration: Duration) -> TimeSpec {
    TimeSpec::from_duration(std::time::Duration::from_nanos(duration.as_nanos()))
}
