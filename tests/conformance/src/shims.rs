//! ILNPv6 shims and a network of locators between them, on real bytes: every packet is emitted and parsed on its way.
//!
//! Above each shim is no transport but a list of what came up. Locators come and go by command; packets to a locator that
//! nobody is at are lost. A directory answers look-ups with what was published last.

use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_proto::address::AddressEvent;
use segue_proto::contract::LocalAddress;
use segue_proto::ilnp::{Config, Counters, Ilnp, Rewriter};
use segue_proto::random::Stream;
use segue_proto::shim::{Inbound, Shim, ShimEvent};
use segue_proto::{Duration, Instant, InterfaceId, Transmit};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{Locator, LocatorOperation, LocatorUpdate, Nid, Nonce};
use segue_wire::ipv6::Ipv6Option;
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, ExtensionHeader, Ipv6Header, Packet, Payload};
use std::collections::BTreeMap;

/// What becomes of a packet on its way.
pub enum Fate {
    /// It arrives.
    Arrives,
    /// It is lost.
    Lost,
    /// It arrives so much later.
    Late(Duration),
    /// It arrives twice, the second time so much later.
    Twice(Duration),
}

/// What decides about packets.
pub type Decide = Box<dyn FnMut(Instant, &Packet) -> Fate>;

/// A network with shims.
pub struct Shims {
    /// Now.
    pub now: Instant,
    /// The hosts.
    pub hosts: Vec<ShimHost>,
    /// Time that a packet takes.
    pub delay: Duration,
    /// Decides what becomes of packets; all arrive if there is nothing.
    pub fate: Decide,
    /// What was sent: when, by which host.
    pub sent: Vec<(Instant, usize, Packet)>,
    /// A site border router in front of this host.
    pub border: Option<(usize, Rewriter)>,
    /// Whether look-ups are answered.
    pub directory: bool,
    published: BTreeMap<Nid, Vec<(Locator, u16)>>,
    places: Vec<(Locator, usize, InterfaceId)>,
    on_the_way: BTreeMap<(Instant, u64), Packet>,
    answers: Vec<(Instant, usize, Ipv6Addr)>,
    sequence: u64,
}

/// A host: its shim and what came of it.
pub struct ShimHost {
    /// The shim.
    pub shim: Ilnp,
    /// What came up to its transports.
    pub up: Vec<(Instant, Packet)>,
    /// What the shim reported.
    pub events: Vec<(Instant, ShimEvent)>,
    /// Speaks only IPv6: answers the nonce option with a parameter problem, as Linux does.
    pub plain: bool,
}

/// The port of both ends: what one says in [`Shims::send`] answers what the other has said.
pub const PORT: u16 = 4000;

/// `2001:db8:0:n::`.
pub fn locator(n: u16) -> Locator {
    Locator(0x2001_0db8_0000_0000 | u64::from(n))
}

/// The identifier of host `n`.
pub fn nid(n: usize) -> Nid {
    Nid(0x0200_00ff_fe00_0001 + n as u64)
}

/// Milliseconds.
pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

impl Shims {
    /// Hosts with these configurations, whose identifiers are [`nid`]; 10 ms apart.
    pub fn new(configs: impl IntoIterator<Item = Config>) -> Self {
        let hosts = configs.into_iter().enumerate().map(|(n, config)| {
            let secrets = Box::new(Stream::new(1, &format!("shim {n}")));
            let config = Config {
                nid: nid(n),
                ..config
            };
            ShimHost {
                shim: Ilnp::new(config, secrets).expect("a configuration"),
                up: Vec::new(),
                events: Vec::new(),
                plain: false,
            }
        });
        Self {
            now: Instant::ZERO,
            hosts: hosts.collect(),
            delay: ms(10),
            fate: Box::new(|_, _| Fate::Arrives),
            sent: Vec::new(),
            border: None,
            directory: true,
            published: BTreeMap::new(),
            places: Vec::new(),
            on_the_way: BTreeMap::new(),
            answers: Vec::new(),
            sequence: 0,
        }
    }

    /// Two hosts of this configuration, the first at locator 1 and the second at locator 2, each of which knows where the
    /// other is.
    pub fn pair(config: &Config) -> Self {
        let mut shims = Self::new([config.clone(), config.clone()]);
        shims.arrive(0, 0, locator(1));
        shims.arrive(1, 0, locator(2));
        shims
    }

    /// The identity of a host.
    pub fn identity(&self, host: usize) -> Ipv6Addr {
        self.hosts[host].shim.identity()
    }

    /// Everything that a host has counted.
    pub fn counters(&self, host: usize) -> Counters {
        self.hosts[host].shim.counted()
    }

    /// A host's interface is at a locator: its address is ready.
    pub fn arrive(&mut self, host: usize, interface: u8, at: Locator) {
        self.places.push((at, host, InterfaceId(interface)));
        let address = at.address(self.hosts[host].shim.nid());
        self.address(
            host,
            &AddressEvent::Ready(LocalAddress {
                interface: InterfaceId(interface),
                address,
            }),
        );
    }

    /// A host's interface is no longer at a locator.
    pub fn leave(&mut self, host: usize, interface: u8, at: Locator) {
        self.places.retain(|p| *p != (at, host, InterfaceId(interface)));
        let address = at.address(self.hosts[host].shim.nid());
        self.address(
            host,
            &AddressEvent::Lost(LocalAddress {
                interface: InterfaceId(interface),
                address,
            }),
        );
    }

    /// Tells a shim of an address or a router.
    pub fn address(&mut self, host: usize, event: &AddressEvent) {
        let now = self.now;
        self.hosts[host].shim.handle_address(now, event);
        self.drain(host);
    }

    /// A host's transport sends a datagram to an identity.
    pub fn send(&mut self, host: usize, to: Ipv6Addr, data: &'static [u8]) {
        let packet = datagram(self.identity(host), to, data);
        self.send_packet(host, packet);
    }

    /// A host's transport sends a packet.
    pub fn send_packet(&mut self, host: usize, packet: Packet) {
        let now = self.now;
        if let Some(transmit) = self.hosts[host].shim.outbound(now, packet) {
            self.carry(host, transmit);
        }
        self.drain(host);
    }

    /// One datagram each way.
    pub fn greet(&mut self) {
        let (a, b) = (self.identity(0), self.identity(1));
        self.send(0, b, b"hello?");
        self.run_for(ms(100));
        self.send(1, a, b"hello");
        self.run_for(ms(100));
        self.send(0, b, b"hello");
        self.run_for(ms(100));
    }

    /// Puts a packet onto the network that no host has sent.
    pub fn inject(&mut self, packet: Packet) {
        self.put(self.now + self.delay, packet);
    }

    /// Lets time go by.
    pub fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let packet = self.on_the_way.keys().next().map(|k| k.0);
            let answer = self.answers.iter().map(|a| a.0).min();
            let timers = self.hosts.iter().filter_map(|h| h.shim.poll_timeout());
            let Some(next) = timers.chain(packet).chain(answer).min().filter(|at| *at <= until) else {
                break;
            };
            assert!(next >= self.now, "a timer in the past");
            self.now = next;
            self.step();
        }
        self.now = until;
    }

    /// The data that came up to a host from `from`, with the rest of the headers as transports must see them.
    pub fn heard(&self, host: usize, from: usize) -> Vec<Bytes> {
        let addresses = (self.identity(from), self.identity(host));
        let ours = self.hosts[host]
            .up
            .iter()
            .filter(|(_, p)| (p.ip.source, p.ip.destination) == addresses);
        ours.map(|(_, p)| {
            assert!(p.extensions.is_empty(), "what the shim added must be gone");
            match &p.payload {
                Payload::Udp(UdpDatagram {
                    data: Data::Bytes(bytes),
                    ..
                }) => bytes.clone(),
                other => panic!("not sent: {other:?}"),
            }
        })
        .collect()
    }

    /// The nonce in the last packet of a host.
    pub fn nonce_of(&self, host: usize) -> Nonce {
        let mut packets = self.sent.iter().rev().filter(|(_, by, _)| *by == host);
        packets.find_map(|(_, _, p)| p.ilnp_nonce()).expect("a nonce").0
    }

    /// The nonce in a host's packets, from one that it sends for the purpose.
    pub fn nonce_of_next(&mut self, host: usize) -> Nonce {
        let to = self.identity(1 - host);
        self.send(host, to, b"for its nonce");
        self.run_for(self.delay * 2);
        self.hosts[1 - host].up.pop();
        self.nonce_of(host)
    }

    /// Updates or acknowledgements that a host has sent: when, and the packet.
    pub fn updates(&self, host: usize, operation: LocatorOperation) -> Vec<(Instant, &Packet)> {
        self.sent
            .iter()
            .filter(|(_, by, p)| *by == host && update_in(p).is_some_and(|u| u.operation == operation))
            .map(|(at, _, p)| (*at, p))
            .collect()
    }

    /// Whether a host has reported what `is` is true of.
    pub fn reported(&self, host: usize, is: impl Fn(&ShimEvent) -> bool) -> bool {
        self.hosts[host].events.iter().any(|(_, e)| is(e))
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some(entry) = self.on_the_way.first_entry().filter(|e| e.key().0 <= now) {
            let packet = entry.remove();
            self.deliver(packet);
        }
        let due: Vec<_> = self.answers.iter().filter(|a| a.0 <= now).copied().collect();
        self.answers.retain(|a| a.0 > now);
        for (_, host, peer) in due {
            let found = self.published.get(&Nid::of(peer)).cloned().unwrap_or_default();
            let addresses: Vec<_> = found.iter().map(|(l, _)| l.address(Nid::of(peer))).collect();
            self.hosts[host].shim.handle_found(now, peer, &addresses);
            self.drain(host);
        }
        for host in 0..self.hosts.len() {
            if self.hosts[host].shim.poll_timeout().is_some_and(|at| at <= now) {
                self.hosts[host].shim.handle_timeout(now);
                self.drain(host);
                assert!(
                    self.hosts[host].shim.poll_timeout().is_none_or(|at| at > now),
                    "a timer that was worked off is still due"
                );
            }
        }
    }

    fn deliver(&mut self, mut packet: Packet) {
        if let Some((_, border)) = &mut self.border {
            packet = border.inbound(packet);
        }
        let at = Locator::of(packet.ip.destination);
        let Some((_, host, interface)) = self.places.iter().find(|p| p.0 == at).copied() else {
            return;
        };
        let now = self.now;
        if self.hosts[host].plain {
            self.deliver_to_plain(host, packet);
            return;
        }
        if let Inbound::Up(packet) = self.hosts[host].shim.inbound(now, interface, packet) {
            self.hosts[host].up.push((now, packet));
        }
        self.drain(host);
    }

    /// RFC 8200 section 4.2: an option that is not known, with 10 in its highest bits.
    fn deliver_to_plain(&mut self, host: usize, packet: Packet) {
        if packet.ilnp_nonce().is_none() {
            self.hosts[host].up.push((self.now, packet));
            return;
        }
        let problem = parameter_problem(&packet, 42);
        self.inject(problem);
    }

    fn drain(&mut self, host: usize) {
        let now = self.now;
        while let Some(transmit) = self.hosts[host].shim.poll_transmit(now) {
            self.carry(host, transmit);
        }
        while let Some(event) = self.hosts[host].shim.poll_event() {
            self.hosts[host].events.push((now, event));
            match event {
                ShimEvent::UpdateDirectory => {
                    let published = self.hosts[host].shim.advertised().to_vec();
                    self.published.insert(self.hosts[host].shim.nid(), published);
                }
                ShimEvent::LookUp { peer } if self.directory => {
                    self.answers.push((now + self.delay * 2, host, peer));
                }
                ShimEvent::FormAddress(local) => {
                    self.hosts[host]
                        .shim
                        .handle_address(now, &AddressEvent::Ready(local));
                }
                ShimEvent::WithdrawAddress(local) => {
                    self.hosts[host]
                        .shim
                        .handle_address(now, &AddressEvent::Lost(local));
                }
                _ => {}
            }
        }
    }

    fn carry(&mut self, host: usize, transmit: Transmit) {
        let mut packet = transmit.packet;
        let at = Locator::of(packet.ip.source);
        let place = self.places.iter().find(|p| p.0 == at && p.1 == host);
        assert_eq!(
            place.map(|p| p.2),
            Some(transmit.interface),
            "{packet:?} goes out where its source is"
        );
        if let Some((_, border)) = self.border.as_mut().filter(|(site, _)| *site == host) {
            packet = border.outbound(packet);
        }
        self.sent.push((self.now, host, packet.clone()));
        let at = self.now + self.delay;
        match (self.fate)(self.now, &packet) {
            Fate::Arrives => self.put(at, packet),
            Fate::Lost => {}
            Fate::Late(by) => self.put(at + by, packet),
            Fate::Twice(by) => {
                self.put(at, packet.clone());
                self.put(at + by, packet);
            }
        }
    }

    fn put(&mut self, at: Instant, packet: Packet) {
        let bytes = packet.to_vec();
        let parsed = Packet::parse(&bytes).expect("what is sent can be parsed");
        assert_eq!(parsed.to_vec(), bytes);
        self.sequence += 1;
        self.on_the_way.insert((at, self.sequence), parsed);
    }
}

/// The locator update in a packet.
pub fn update_in(packet: &Packet) -> Option<&LocatorUpdate> {
    match &packet.payload {
        Payload::Icmpv6(Icmpv6::LocatorUpdate(update)) => Some(update),
        _ => None,
    }
}

/// A fixed header.
pub fn header(source: Ipv6Addr, destination: Ipv6Addr) -> Ipv6Header {
    Ipv6Header {
        source,
        destination,
        traffic_class: 0,
        hop_limit: 64,
        flow_label: 0,
    }
}

/// A UDP datagram.
pub fn datagram(source: Ipv6Addr, destination: Ipv6Addr, data: &'static [u8]) -> Packet {
    Packet {
        ip: header(source, destination),
        extensions: Vec::new(),
        payload: Payload::Udp(UdpDatagram {
            source_port: PORT,
            destination_port: PORT,
            data: Data::Bytes(Bytes::from_static(data)),
        }),
    }
}

/// The same packet with a nonce.
pub fn with_nonce(mut packet: Packet, nonce: Nonce) -> Packet {
    let option = Ipv6Option::IlnpNonce {
        nonce,
        rule: segue_wire::PseudoRule::Ipv6,
    };
    packet
        .extensions
        .push(ExtensionHeader::DestinationOptions(vec![option]));
    packet
}

/// What Linux answers to an option that it does not know, at `pointer`.
pub fn parameter_problem(packet: &Packet, pointer: u32) -> Packet {
    Packet {
        ip: header(packet.ip.destination, packet.ip.source),
        extensions: Vec::new(),
        payload: Payload::Icmpv6(Icmpv6::ParameterProblem {
            code: 2,
            pointer,
            invoking: Icmpv6::quote(packet),
        }),
    }
}
