//! Mobile nodes, correspondents and home agents, and a network between them, in virtual time and on real bytes: every
//! packet is emitted and parsed.

use core::net::Ipv6Addr;
use segue_proto::address::AddressEvent;
use segue_proto::contract::LocalAddress;
use segue_proto::mip6::{
    CorrespondentConfig, CorrespondentNode, Counters, HomeAgent, HomeAgentConfig, HomeAgentEvent, MobileNode,
    MobileNodeConfig, SecurityAssociation, ServedNode,
};
use segue_proto::random::Stream;
use segue_proto::shim::{Inbound, Shim, ShimEvent};
use segue_proto::{CellId, Duration, Instant, InterfaceId, LinkEvent, Transmit};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::nd::{NdOption, RouterAdvertisement};
use segue_wire::mobility::{MobilityHeader, MobilityMessage};
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, Ipv6Header, Packet, Payload};
use std::collections::{BTreeMap, VecDeque};

/// The mobile node.
pub const MN: usize = 0;
/// The correspondent, or the other mobile node.
pub const CN: usize = 1;

/// One way, whoever sends to whom.
pub const DELAY: Duration = Duration::from_millis(10);

/// The key between mobile nodes and home agents.
pub const KEY: &str = "a key of 16 bytes";

/// `2001:db8:subnet::host`.
#[must_use]
pub const fn address(subnet: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, subnet, 0, 0, 0, 0, host)
}

/// The home link of the mobile node is subnet 1, its home agent and itself on it.
pub const HOME_AGENT: Ipv6Addr = address(1, 1);
/// See [`HOME_AGENT`].
pub const HOME: Ipv6Addr = address(1, 9);
/// The correspondent that does not move.
pub const CORRESPONDENT: Ipv6Addr = address(7, 7);
/// Care-of addresses on subnets 2 and 3.
pub const CARE_OF: Ipv6Addr = address(2, 9);
/// See [`CARE_OF`].
pub const CARE_OF_2: Ipv6Addr = address(3, 9);
/// The other mobile node, whose home link is subnet 4, with its home agent and care-of addresses.
pub const HOME_AGENT_B: Ipv6Addr = address(4, 1);
/// See [`HOME_AGENT_B`].
pub const HOME_B: Ipv6Addr = address(4, 9);
/// See [`HOME_AGENT_B`].
pub const CARE_OF_B: Ipv6Addr = address(5, 9);
/// See [`HOME_AGENT_B`].
pub const CARE_OF_B_2: Ipv6Addr = address(6, 9);

/// The association between mobile nodes and home agents.
#[must_use]
pub fn security() -> SecurityAssociation {
    SecurityAssociation::new(256, KEY)
}

/// A mobile node's configuration.
#[must_use]
pub fn mobile_config(home_address: Ipv6Addr, home_agent: Ipv6Addr) -> MobileNodeConfig {
    MobileNodeConfig {
        home_address,
        home_agent,
        security: security(),
        ..MobileNodeConfig::default()
    }
}

/// A home agent's configuration: one mobile node, no time for anything.
#[must_use]
pub fn agent_config(home_agent: Ipv6Addr, home_address: Ipv6Addr) -> HomeAgentConfig {
    HomeAgentConfig {
        address: home_agent,
        mobile_nodes: vec![ServedNode {
            home_address,
            security: security(),
        }],
        duplicate_address_detection: Duration::ZERO,
        ..HomeAgentConfig::default()
    }
}

/// A host's shim.
#[derive(Debug)]
pub enum End {
    /// A mobile node.
    Mobile(Box<MobileNode>),
    /// A correspondent.
    Correspondent(Box<CorrespondentNode>),
}

impl End {
    fn shim(&mut self) -> &mut dyn Shim {
        match self {
            Self::Mobile(shim) => &mut **shim,
            Self::Correspondent(shim) => &mut **shim,
        }
    }

    fn timeout(&self) -> Option<Instant> {
        match self {
            Self::Mobile(shim) => shim.poll_timeout(),
            Self::Correspondent(shim) => shim.poll_timeout(),
        }
    }
}

/// A host: its shim, and what came of it.
#[derive(Debug)]
pub struct Host {
    /// The shim.
    pub end: End,
    /// Packets that went up.
    pub received: VecDeque<Packet>,
    /// What the shim reported, and when.
    pub events: Vec<(Instant, ShimEvent)>,
}

/// What the network does to a packet that is sent: whether it is carried.
pub type Fate = Box<dyn FnMut(Instant, &Packet) -> bool>;

/// Hosts, home agents, and every packet between them.
pub struct Net {
    /// The time.
    pub now: Instant,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The home agents.
    pub agents: Vec<HomeAgent>,
    /// What the home agents reported.
    pub agent_events: Vec<(Instant, HomeAgentEvent)>,
    /// What becomes of packets.
    pub fate: Fate,
    /// Every packet that was sent, and when, as it was on the wire.
    pub sent: Vec<(Instant, Packet)>,
    /// Packets for an address that is nowhere.
    pub nowhere: u64,
    places: BTreeMap<Ipv6Addr, (usize, InterfaceId)>,
    in_flight: BTreeMap<(Instant, u64), Packet>,
    sequence: u64,
}

impl Net {
    /// A network of these hosts and home agents. Correspondents are attached to interface 0 at their addresses.
    #[must_use]
    pub fn new(ends: Vec<End>, agents: Vec<HomeAgent>) -> Self {
        let mut net = Self {
            now: Instant::ZERO,
            hosts: Vec::new(),
            agents,
            agent_events: Vec::new(),
            fate: Box::new(|_, _| true),
            sent: Vec::new(),
            nowhere: 0,
            places: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            sequence: 0,
        };
        for (n, mut end) in ends.into_iter().enumerate() {
            let fixed = match &end {
                End::Correspondent(shim) => Some(shim.identity()),
                End::Mobile(_) => None,
            };
            end.shim();
            net.hosts.push(Host {
                end,
                received: VecDeque::new(),
                events: Vec::new(),
            });
            if let Some(address) = fixed {
                net.attach(n, 0, address);
            }
        }
        net
    }

    /// A mobile node, a correspondent and a home agent.
    #[must_use]
    pub fn of(mobile: MobileNodeConfig, correspondent: CorrespondentConfig, agent: HomeAgentConfig) -> Self {
        assert_eq!(mobile.check(), Ok(()));
        assert_eq!(correspondent.check(), Ok(()));
        assert_eq!(agent.check(), Ok(()));
        Self::new(
            vec![mobile_end(mobile, 1), correspondent_end(correspondent, 2)],
            vec![HomeAgent::new(agent)],
        )
    }

    /// The same with nothing out of the ordinary, and everybody at home.
    #[must_use]
    pub fn ordinary() -> Self {
        let mut net = Self::of(
            mobile_config(HOME, HOME_AGENT),
            correspondent_config(),
            agent_config(HOME_AGENT, HOME),
        );
        net.attach(MN, 0, HOME);
        net
    }

    /// Two mobile nodes with their home agents, both at home.
    #[must_use]
    pub fn of_two_mobile_nodes(change: impl Fn(&mut MobileNodeConfig)) -> Self {
        let mut configs = [
            mobile_config(HOME, HOME_AGENT),
            mobile_config(HOME_B, HOME_AGENT_B),
        ];
        configs.iter_mut().for_each(&change);
        let [a, b] = configs;
        let mut net = Self::new(
            vec![mobile_end(a, 1), mobile_end(b, 2)],
            vec![
                HomeAgent::new(agent_config(HOME_AGENT, HOME)),
                HomeAgent::new(agent_config(HOME_AGENT_B, HOME_B)),
            ],
        );
        net.attach(MN, 0, HOME);
        net.attach(CN, 0, HOME_B);
        net
    }

    /// The mobile node that host `n` is.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn mobile(&self, n: usize) -> &MobileNode {
        match &self.hosts[n].end {
            End::Mobile(shim) => shim,
            End::Correspondent(_) => panic!("host {n} does not move"),
        }
    }

    /// The correspondent that host `n` is.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn correspondent(&self, n: usize) -> &CorrespondentNode {
        match &self.hosts[n].end {
            End::Correspondent(shim) => shim,
            End::Mobile(_) => panic!("host {n} moves"),
        }
    }

    /// What host `n` counted.
    #[must_use]
    pub fn counts(&self, n: usize) -> Counters {
        match &self.hosts[n].end {
            End::Mobile(shim) => shim.counts(),
            End::Correspondent(shim) => shim.counts(),
        }
    }

    /// An address of a host can be used from now on; where it was before, it no longer is.
    pub fn attach(&mut self, host: usize, interface: u8, address: Ipv6Addr) {
        let local = LocalAddress {
            interface: InterfaceId(interface),
            address,
        };
        self.places.insert(address, (host, local.interface));
        let now = self.now;
        self.hosts[host]
            .end
            .shim()
            .handle_address(now, &AddressEvent::Ready(local));
        self.drain();
    }

    /// The link of an interface goes down, and its addresses with it.
    pub fn detach(&mut self, host: usize, interface: u8) {
        let interface = InterfaceId(interface);
        let now = self.now;
        let gone: Vec<Ipv6Addr> = self
            .places
            .iter()
            .filter(|(_, place)| **place == (host, interface))
            .map(|(address, _)| *address)
            .collect();
        let down = LinkEvent::Down {
            interface,
            cell: CellId(0),
        };
        self.hosts[host].end.shim().handle_link(now, &down);
        for address in gone {
            self.places.remove(&address);
            let lost = AddressEvent::Lost(LocalAddress { interface, address });
            self.hosts[host].end.shim().handle_address(now, &lost);
        }
        self.drain();
    }

    /// The radio no longer reaches anybody, but layer 2 has not noticed.
    pub fn silence(&mut self, host: usize, interface: u8) {
        let place = (host, InterfaceId(interface));
        self.places.retain(|_, p| *p != place);
    }

    /// The link of an interface comes up.
    pub fn link_up(&mut self, host: usize, interface: u8) {
        let up = LinkEvent::Up {
            interface: InterfaceId(interface),
            cell: CellId(0),
        };
        let now = self.now;
        self.hosts[host].end.shim().handle_link(now, &up);
        self.drain();
    }

    /// From one link to another, without a pause: the new address is there when the old link goes.
    pub fn hand_over(&mut self, host: usize, from: u8, to: u8, address: Ipv6Addr) {
        self.link_up(host, to);
        self.attach(host, to, address);
        self.detach(host, from);
    }

    /// A host hears a router advertisement, with an advertisement interval if that is not zero.
    pub fn advertise(&mut self, host: usize, interface: u8, router: u16, interval: Duration) {
        let mut options = Vec::new();
        if !interval.is_zero() {
            options.push(NdOption::AdvertisementInterval(interval.as_millis() as u32));
        }
        let packet = Packet {
            ip: Ipv6Header {
                source: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, router),
                destination: Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
                traffic_class: 0,
                hop_limit: 255,
                flow_label: 0,
            },
            extensions: Vec::new(),
            payload: Payload::Icmpv6(Icmpv6::RouterAdvertisement(RouterAdvertisement {
                router_lifetime_s: 1800,
                options,
                ..RouterAdvertisement::default()
            })),
        };
        let now = self.now;
        let inbound = self.hosts[host]
            .end
            .shim()
            .inbound(now, InterfaceId(interface), packet);
        assert!(
            matches!(inbound, Inbound::Up(_)),
            "neighbour discovery needs it too"
        );
        self.drain();
    }

    /// A transport of a host sends a datagram from its identity to `to`.
    pub fn send(&mut self, host: usize, to: Ipv6Addr, data: &'static [u8]) {
        let now = self.now;
        let shim = self.hosts[host].end.shim();
        let packet = datagram(shim.identity(), to, data);
        let overhead = shim.overhead(to) as usize;
        let len = packet.buffer_len();
        if let Some(transmit) = shim.outbound(now, packet) {
            assert!(transmit.packet.buffer_len() <= len + overhead);
            self.transmit(transmit);
        }
        self.drain();
    }

    /// Somebody else's packet, which arrives at once.
    pub fn inject(&mut self, packet: Packet) {
        self.arrive(reparsed(&packet));
        self.drain();
    }

    /// Data of the datagrams that a host received and that were not looked at yet, with their addresses.
    ///
    /// # Panics
    /// If something else was received.
    pub fn take_received(&mut self, host: usize) -> Vec<(Ipv6Addr, Ipv6Addr, Vec<u8>)> {
        self.hosts[host]
            .received
            .drain(..)
            .map(|packet| match packet.payload {
                Payload::Udp(UdpDatagram {
                    data: Data::Bytes(data),
                    ..
                }) if packet.extensions.is_empty() => {
                    (packet.ip.source, packet.ip.destination, data.to_vec())
                }
                other => panic!("{other:?}"),
            })
            .collect()
    }

    /// What a host's shim reported since the last time it was asked.
    pub fn take_events(&mut self, host: usize) -> Vec<ShimEvent> {
        self.hosts[host]
            .events
            .drain(..)
            .map(|(_, event)| event)
            .collect()
    }

    /// Handles the next packet or timer if it is due by `end`; else time passes until then.
    ///
    /// # Panics
    /// If a timer stands still.
    pub fn step(&mut self, end: Instant) -> bool {
        let arrival = self.in_flight.first_key_value().map(|(k, _)| k.0);
        let hosts = self.hosts.iter().filter_map(|h| h.end.timeout());
        let agents = self.agents.iter().filter_map(HomeAgent::poll_timeout);
        let timer = hosts.chain(agents).min();
        let Some(next) = arrival.into_iter().chain(timer).min().filter(|at| *at <= end) else {
            self.now = self.now.max(end);
            return false;
        };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            if let Some((_, packet)) = self.in_flight.pop_first() {
                self.arrive(packet);
            }
            self.drain();
            return true;
        }
        let now = self.now;
        for host in &mut self.hosts {
            if host.end.timeout().is_some_and(|at| at <= now) {
                host.end.shim().handle_timeout(now);
            }
        }
        for agent in &mut self.agents {
            if agent.poll_timeout().is_some_and(|at| at <= now) {
                agent.handle_timeout(now);
            }
        }
        self.drain();
        for host in &self.hosts {
            let timer = host.end.timeout();
            assert!(
                timer.is_none_or(|at| at > now),
                "a timer stands still at {now:?}: {host:?}"
            );
        }
        true
    }

    /// Runs for `time`.
    ///
    /// # Panics
    /// If a timer stands still.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
    }

    /// The mobility messages sent so far, tunnels taken off, with the addresses of the packets that they were in.
    #[must_use]
    pub fn signalling(&self) -> Vec<(Instant, Ipv6Addr, Ipv6Addr, MobilityHeader)> {
        self.sent
            .iter()
            .filter_map(|(at, packet)| {
                let mut innermost = packet;
                while let Payload::Ipv6(inner) = &innermost.payload {
                    innermost = inner;
                }
                match &innermost.payload {
                    Payload::Mobility(header) => Some((
                        *at,
                        innermost.ip.source,
                        innermost.ip.destination,
                        (**header).clone(),
                    )),
                    _ => None,
                }
            })
            .collect()
    }

    /// The last packet sent whose mobility message `wanted` likes, as it was on the wire.
    #[must_use]
    pub fn last_sent(&self, wanted: impl Fn(&MobilityMessage) -> bool) -> Option<Packet> {
        let likes = |p: &Packet| matches!(&p.payload, Payload::Mobility(header) if wanted(&header.message));
        self.sent.iter().rev().map(|(_, p)| p).find(|p| likes(p)).cloned()
    }

    fn arrive(&mut self, packet: Packet) {
        let now = self.now;
        let destination = packet.ip.destination;
        let agent = self
            .agents
            .iter_mut()
            .find(|a| a.address() == destination || a.intercepts(now, destination));
        let packet = match agent {
            Some(agent) => match agent.handle_packet(now, packet) {
                None => return,
                Some(packet) => packet,
            },
            None => packet,
        };
        match self.places.get(&destination) {
            Some(&(host, interface)) => {
                if let Inbound::Up(packet) = self.hosts[host].end.shim().inbound(now, interface, packet) {
                    self.hosts[host].received.push_back(packet);
                }
            }
            None => self.nowhere += 1,
        }
    }

    fn transmit(&mut self, transmit: Transmit) {
        let from = transmit.packet.ip.source;
        // no ingress filter lets a foreign source pass
        let placed = self.places.get(&from).map(|p| p.1);
        assert!(
            placed.is_none_or(|interface| interface == transmit.interface),
            "{from} sends over {:?}",
            transmit.interface
        );
        self.carry(transmit.packet);
    }

    fn carry(&mut self, packet: Packet) {
        let packet = reparsed(&packet);
        self.sent.push((self.now, packet.clone()));
        if (self.fate)(self.now, &packet) {
            self.sequence += 1;
            self.in_flight.insert((self.now + DELAY, self.sequence), packet);
        }
    }

    /// Takes everything out of everybody.
    fn drain(&mut self) {
        let now = self.now;
        for n in 0..self.hosts.len() {
            loop {
                while let Some(event) = self.hosts[n].end.shim().poll_event() {
                    self.hosts[n].events.push((now, event));
                }
                match self.hosts[n].end.shim().poll_transmit(now) {
                    Some(transmit) => self.transmit(transmit),
                    None => break,
                }
            }
        }
        for n in 0..self.agents.len() {
            while let Some(packet) = self.agents[n].poll_transmit() {
                self.carry(packet);
            }
            while let Some(event) = self.agents[n].poll_event() {
                self.agent_events.push((now, event));
            }
        }
    }
}

/// A mobile node.
#[must_use]
pub fn mobile_end(config: MobileNodeConfig, seed: u64) -> End {
    let secrets = Stream::new(seed, "mobile node");
    End::Mobile(Box::new(MobileNode::new(config, Box::new(secrets))))
}

/// A correspondent.
#[must_use]
pub fn correspondent_end(config: CorrespondentConfig, seed: u64) -> End {
    let secrets = Stream::new(seed, "correspondent");
    End::Correspondent(Box::new(CorrespondentNode::new(config, Box::new(secrets))))
}

/// The correspondent's configuration.
#[must_use]
pub fn correspondent_config() -> CorrespondentConfig {
    CorrespondentConfig {
        address: CORRESPONDENT,
        ..CorrespondentConfig::default()
    }
}

/// A UDP datagram.
#[must_use]
pub fn datagram(source: Ipv6Addr, destination: Ipv6Addr, data: &'static [u8]) -> Packet {
    Packet {
        ip: Ipv6Header {
            source,
            destination,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload: Payload::Udp(UdpDatagram {
            source_port: 1000,
            destination_port: 2000,
            data: Data::Bytes(data.into()),
        }),
    }
}

/// Seconds.
#[must_use]
pub const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// Milliseconds.
#[must_use]
pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The packet after a journey as bytes.
fn reparsed(packet: &Packet) -> Packet {
    let bytes = packet.to_vec();
    assert_eq!(bytes.len(), packet.buffer_len());
    let parsed = Packet::parse(&bytes).unwrap_or_else(|e| panic!("{e}: {packet:?}"));
    assert_eq!(&parsed, packet, "what is sent is what arrives");
    parsed
}
