//! A mobile host with two radios leaves its home link while a correspondent sends to it over SCTP or TCP: the whole host stack
//! with Mobile IPv6 under an unchanged transport, its home agent, and no simulator.

use segue_proto::address::Method;
use segue_proto::app::{self, Kind, Role};
use segue_proto::contract::LocalAddress;
use segue_proto::host::{
    Addressing, Host, HostConfig, HostEvent, InterfaceConfig, LocationConfig, ShimConfig,
};
use segue_proto::mip6::{
    CorrespondentConfig, HomeAgent, HomeAgentConfig, MobileNodeConfig, SecurityAssociation, ServedNode,
};
use segue_proto::nd::{AdvertisedPrefix, RouterConfig, RouterNd, form_address};
use segue_proto::random::Stream;
use segue_proto::shim::ShimEvent;
use segue_proto::{CellId, Duration, Instant, InterfaceId, LinkEvent, Transmit, nd, sctp};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::nd::{LinkLayerAddress, NdOption};
use segue_wire::{Packet, Payload};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

const CN: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 1);
const HOME_AGENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const PORT: u16 = 5001;
/// Cell 1 is the home link.
const HOME_CELL: u16 = 1;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn prefix(cell: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, cell, 0, 0, 0, 0, 0)
}

fn mac(last: u8) -> LinkLayerAddress {
    LinkLayerAddress([2, 0, 0, 0, 0, last])
}

fn home() -> Ipv6Addr {
    form_address(prefix(HOME_CELL), mac(1))
}

fn secrets(name: &str) -> Box<Stream> {
    Box::new(Stream::new(1, name))
}

enum To {
    Correspondent,
    Mobile(u16),
    Router(u16),
    /// A router that forwards it.
    Core,
}

struct World {
    now: Instant,
    mobile: Host,
    correspondent: Host,
    home_agent: HomeAgent,
    routers: BTreeMap<u16, RouterNd>,
    /// Cell that each interface is in.
    cells: [Option<u16>; 2],
    flying: BTreeMap<(Instant, u64), (To, Packet)>,
    /// When each cell's radio is free.
    radio_free: BTreeMap<u16, Instant>,
    sent: u64,
    events: Vec<(Instant, ShimEvent)>,
    /// Source addresses of the correspondent's data at the mobile host's radio, outermost header.
    ways: Vec<(Instant, Ipv6Addr)>,
    /// What the routers' neighbour caches have: addresses of the mobile host, where it can use them, and when each came.
    neighbors: BTreeSet<(InterfaceId, Ipv6Addr)>,
    ready: Vec<(Instant, LocalAddress)>,
    /// Addresses that the mobile host has told a whole link of, with the link-layer address.
    announced: Vec<(Instant, Ipv6Addr, LinkLayerAddress)>,
}

impl World {
    fn new(route_optimization: bool, transport: app::Transport) -> Self {
        let security = SecurityAssociation::new(300, "sixteen bytes...");
        let method = Method::Slaac {
            nd: nd::HostConfig {
                max_rtr_solicitation_delay: Duration::ZERO,
                ..nd::HostConfig::default()
            },
        };
        let radio = |last| InterfaceConfig {
            link_layer: mac(last),
            addressing: Addressing::Acquire(method.clone()),
        };
        let sctp = || sctp::Config {
            asconf_auth: sctp::AsconfAuth::None,
            ..sctp::Config::new(sctp::Profile::Rfc9260)
        };
        let mobile = HostConfig {
            name: "mobile".to_owned(),
            interfaces: vec![radio(1), radio(2)],
            sctp: sctp(),
            tcp: segue_proto::tcp::Config::default(),
            port: PORT,
            applications: vec![app::Config {
                transport,
                role: Role::Connect {
                    peer: vec![CN],
                    port: PORT,
                    start: ms(3000),
                },
                kind: Kind::Sink,
            }],
            sigma: None,
            shim: ShimConfig::MobileIpv6(Box::new(MobileNodeConfig {
                home_address: home(),
                home_agent: HOME_AGENT,
                security: security.clone(),
                route_optimization,
                ..MobileNodeConfig::default()
            })),
            location: LocationConfig::default(),
        };
        let correspondent = HostConfig {
            name: "correspondent".to_owned(),
            interfaces: vec![InterfaceConfig {
                link_layer: mac(9),
                addressing: Addressing::Static(vec![CN]),
            }],
            sctp: sctp(),
            tcp: segue_proto::tcp::Config::default(),
            port: PORT,
            applications: vec![app::Config {
                transport,
                role: Role::Listen,
                kind: Kind::Bulk {
                    total: None,
                    message: None,
                },
            }],
            sigma: None,
            shim: ShimConfig::MobileIpv6Correspondent(Box::new(CorrespondentConfig {
                address: CN,
                ..CorrespondentConfig::default()
            })),
            location: LocationConfig::default(),
        };
        let home_agent = HomeAgentConfig {
            address: HOME_AGENT,
            mobile_nodes: vec![ServedNode {
                home_address: home(),
                security,
            }],
            ..HomeAgentConfig::default()
        };
        assert_eq!(home_agent.check(), Ok(()));
        let router = |cell: u16| {
            let config = RouterConfig {
                min_rtr_adv_interval: ms(100),
                max_rtr_adv_interval: ms(100),
                advertise_interval: true,
                prefixes: vec![AdvertisedPrefix::new(prefix(cell))],
                ..RouterConfig::default()
            };
            let stream = Stream::new(1, &format!("router {cell}"));
            let link_layer = mac(100 + cell as u8);
            RouterNd::new(Instant::ZERO, InterfaceId(0), link_layer, config, stream)
        };
        Self {
            now: Instant::ZERO,
            mobile: Host::new(mobile, 1, secrets("mobile")).expect("mobile"),
            correspondent: Host::new(correspondent, 1, secrets("correspondent")).expect("correspondent"),
            home_agent: HomeAgent::new(home_agent),
            routers: [1, 2].map(|cell| (cell, router(cell))).into(),
            cells: [None; 2],
            flying: BTreeMap::new(),
            radio_free: BTreeMap::new(),
            sent: 0,
            events: Vec::new(),
            ways: Vec::new(),
            neighbors: BTreeSet::new(),
            ready: Vec::new(),
            announced: Vec::new(),
        }
    }

    fn up(&mut self, interface: u8, cell: u16) {
        self.cells[usize::from(interface)] = Some(cell);
        let event = LinkEvent::Up {
            interface: InterfaceId(interface),
            cell: CellId(cell),
        };
        self.mobile.handle_link(self.now, event);
        self.drain();
    }

    fn down(&mut self, interface: u8) {
        let Some(cell) = self.cells[usize::from(interface)].take() else {
            return;
        };
        let event = LinkEvent::Down {
            interface: InterfaceId(interface),
            cell: CellId(cell),
        };
        self.mobile.handle_link(self.now, event);
        self.drain();
    }

    fn fly(&mut self, after: Duration, to: To, packet: Packet) {
        self.sent += 1;
        self.flying.insert((self.now + after, self.sent), (to, packet));
    }

    /// A packet in the core of the network goes on.
    fn forward(&mut self, packet: Packet) {
        let destination = packet.ip.destination;
        let packet = if destination == HOME_AGENT || self.home_agent.intercepts(self.now, destination) {
            match self.home_agent.handle_packet(self.now, packet) {
                Some(packet) => packet,
                None => return,
            }
        } else {
            packet
        };
        match destination.segments()[2] {
            9 => self.fly(ms(5), To::Correspondent, packet),
            cell => {
                // 20 Mbit/s of radio, and a queue of 50 ms
                let free = self.radio_free.entry(cell).or_insert(self.now);
                let start = (*free).max(self.now + ms(5));
                if start - self.now < ms(55) {
                    if packet.buffer_len() > 200 {
                        *free = start + Duration::from_micros(600);
                    }
                    self.fly(start - self.now, To::Mobile(cell), packet);
                }
            }
        }
    }

    fn drain(&mut self) {
        loop {
            let mut quiet = true;
            while let Some(Transmit { interface, packet }) = self.mobile.poll_transmit(self.now) {
                quiet = false;
                let Some(cell) = self.cells[usize::from(interface.0)] else {
                    continue;
                };
                let source = packet.ip.source;
                let local = source.is_unspecified() || source.is_unicast_link_local();
                if local || packet.ip.destination.is_multicast() {
                    self.fly(ms(5), To::Router(cell), packet);
                } else {
                    assert_eq!(source.segments()[2], cell, "the source fits the link: {packet:?}");
                    self.fly(ms(5), To::Core, packet);
                }
            }
            while let Some(Transmit { packet, .. }) = self.correspondent.poll_transmit(self.now) {
                quiet = false;
                self.fly(ms(5), To::Core, packet);
            }
            while let Some(packet) = self.home_agent.poll_transmit() {
                quiet = false;
                self.fly(Duration::ZERO, To::Core, packet);
            }
            for cell in [1, 2] {
                let router = self.routers.get_mut(&cell).expect("router");
                while let Some(transmit) = router.poll_transmit(self.now) {
                    quiet = false;
                    self.sent += 1;
                    let key = (self.now + ms(1), self.sent);
                    self.flying.insert(key, (To::Mobile(cell), transmit.packet));
                }
            }
            while let Some(event) = self.mobile.poll_event() {
                quiet = false;
                match event {
                    HostEvent::Shim(event) => self.events.push((self.now, event)),
                    HostEvent::AddressReady(local) => {
                        self.neighbors.insert((local.interface, local.address));
                        self.ready.push((self.now, local));
                    }
                    HostEvent::AddressLost(local) => {
                        self.neighbors.remove(&(local.interface, local.address));
                    }
                    _ => {}
                }
            }
            while self.correspondent.poll_event().is_some() {
                quiet = false;
            }
            if quiet {
                return;
            }
        }
    }

    fn run_until(&mut self, end: Instant) {
        loop {
            let arrival = self.flying.first_key_value().map(|(k, _)| k.0);
            let timers = [
                self.mobile.poll_timeout(),
                self.correspondent.poll_timeout(),
                self.home_agent.poll_timeout(),
                self.routers.values().filter_map(RouterNd::poll_timeout).min(),
            ];
            let timer = timers.into_iter().flatten().min();
            let Some(next) = arrival.into_iter().chain(timer).min().filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            let now = self.now;
            if arrival == Some(next)
                && let Some((_, (to, packet))) = self.flying.pop_first()
            {
                match to {
                    To::Correspondent => self.correspondent.handle_packet(now, InterfaceId(0), packet),
                    To::Router(cell) => {
                        self.note_announcement(&packet);
                        if let Some(router) = self.routers.get_mut(&cell) {
                            router.handle_packet(now, &packet);
                        }
                    }
                    To::Core => self.forward(packet),
                    To::Mobile(cell) => {
                        let interface = self.cells.iter().position(|c| *c == Some(cell));
                        if let Some(interface) = interface.filter(|i| self.takes(*i, &packet)) {
                            let data = match &packet.payload {
                                Payload::Ipv6(inner) => !matches!(inner.payload, Payload::Mobility(_)),
                                payload => matches!(payload, Payload::Sctp(_) | Payload::Tcp(_)),
                            };
                            if data {
                                self.ways.push((now, packet.ip.source));
                            }
                            self.mobile
                                .handle_packet(now, InterfaceId(interface as u8), packet);
                        }
                    }
                }
            } else {
                for host in [&mut self.mobile, &mut self.correspondent] {
                    if host.poll_timeout().is_some_and(|at| at <= now) {
                        host.handle_timeout(now);
                    }
                }
                if self.home_agent.poll_timeout().is_some_and(|at| at <= now) {
                    self.home_agent.handle_timeout(now);
                }
                for router in self.routers.values_mut() {
                    if router.poll_timeout().is_some_and(|at| at <= now) {
                        router.handle_timeout(now);
                    }
                }
            }
            self.drain();
        }
    }

    /// Whether the router of the cell that an interface is in finds it by the destination of a packet.
    fn takes(&self, interface: usize, packet: &Packet) -> bool {
        let to = packet.ip.destination;
        let local = to.is_multicast() || to.is_unicast_link_local();
        local || self.neighbors.contains(&(InterfaceId(interface as u8), to))
    }

    fn note_announcement(&mut self, packet: &Packet) {
        if let Payload::Icmpv6(Icmpv6::NeighborAdvertisement(told)) = &packet.payload
            && packet.ip.destination.is_multicast()
            && told.override_flag
            && !told.solicited
        {
            let link_layer = told.options.iter().find_map(|option| match option {
                NdOption::TargetLinkLayerAddress(link_layer) => Some(*link_layer),
                _ => None,
            });
            let link_layer = link_layer.expect("the option that it is about");
            self.announced.push((self.now, told.target, link_layer));
        }
    }

    fn run(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    fn received(&self) -> u64 {
        self.mobile.application(0).map_or(0, |stats| stats.bytes_received)
    }
}

/// At home, 5 s later in the foreign cell too, and after another 5 s out of the home cell.
fn leave_home(route_optimization: bool, transport: app::Transport) -> World {
    let mut world = World::new(route_optimization, transport);
    world.up(0, HOME_CELL);
    world.run(ms(5000));
    assert!(world.received() > 0, "at home");
    assert!(world.events.is_empty(), "{:?}", world.events);
    world.up(1, 2);
    world.run(ms(5000));
    assert!(world.events.is_empty(), "the old link still is there");
    world.down(0);
    world
}

/// The home agent detects duplicates for 1 s; what was lost meanwhile is retransmitted and the association lives. Its
/// packets are too big for the tunnel: the home agent says so, and those cut before go in fragments, through the
/// tunnel too.
#[test]
fn an_association_survives_the_move_through_the_tunnel() {
    let world = move_through_the_tunnel(app::Transport::Sctp);
    assert!(world.home_agent.counts().too_big > 0);
    assert!(world.correspondent.counters().fragmented > 0);
}

/// TCP makes its segments smaller by what the shim adds, so that all fit.
#[test]
fn a_connection_survives_the_move_through_the_tunnel() {
    let world = move_through_the_tunnel(app::Transport::Tcp);
    assert_eq!(world.home_agent.counts().too_big, 0);
}

fn move_through_the_tunnel(transport: app::Transport) -> World {
    let mut world = leave_home(false, transport);
    let left = world.now;
    world.run(ms(900));
    assert!(
        !world.ways.iter().any(|(at, _)| *at > left + ms(50)),
        "nothing arrives before the tunnel is there"
    );
    world.run(ms(9100));
    let care_of = form_address(prefix(2), mac(2));
    let begun = ShimEvent::HandoffBegun {
        from: Some(home()),
        to: care_of,
    };
    // BU and BA: 5 ms each way, and 1 s
    let done = ShimEvent::HandoffDone {
        to: care_of,
        delay: ms(1010),
    };
    assert_eq!(world.events, [(left, begun), (left + ms(1010), done)]);
    let before = world.received();
    world.run(ms(5000));
    assert!(world.received() > before, "data flows");
    let late = world.ways.iter().filter(|(at, _)| *at > left + ms(1000));
    assert!(late.clone().count() > 100);
    assert!(late.clone().all(|(_, from)| *from == HOME_AGENT), "in the tunnel");
    assert_eq!(world.mobile.application(0).map(|s| s.messages_corrupt), Some(0));
    world
}

#[test]
fn an_association_survives_the_move_and_takes_the_direct_way() {
    move_and_take_the_direct_way(app::Transport::Sctp);
}

#[test]
fn a_connection_survives_the_move_and_takes_the_direct_way() {
    move_and_take_the_direct_way(app::Transport::Tcp);
}

fn move_and_take_the_direct_way(transport: app::Transport) {
    let mut world = leave_home(true, transport);
    let left = world.now;
    world.run(ms(10_000));
    let ends: Vec<_> = world
        .events
        .iter()
        .filter_map(|(_, e)| match e {
            ShimEvent::HandoffDone { delay, .. } => Some(*delay),
            _ => None,
        })
        .collect();
    // 1010 ms as above, both tests 20 ms, Binding Update and its acknowledgement 20 ms
    assert_eq!(ends, [ms(1050)]);
    assert!(
        world
            .events
            .contains(&(left + ends[0], ShimEvent::RouteChanged { peer: CN, to: CN }))
    );
    let before = world.received();
    world.run(ms(5000));
    assert!(world.received() > before, "data flows");
    let late: Vec<_> = world
        .ways
        .iter()
        .filter(|(at, _)| *at > left + ms(8000))
        .collect();
    assert!(
        late.len() > 100 && late.iter().all(|(_, from)| *from == CN),
        "directly"
    );

    // and home again: plain packets
    world.up(0, HOME_CELL);
    world.run(ms(3000));
    world.down(1);
    world.run(ms(10_000));
    let home_again = world.now;
    let before = world.received();
    world.run(ms(2000));
    assert!(world.received() > before, "data flows at home");
    assert!(!world.home_agent.intercepts(world.now, home()));
    assert!(
        world
            .ways
            .iter()
            .filter(|(at, _)| *at > home_again)
            .all(|(_, from)| *from == CN)
    );
    let counters = world.mobile.shim().expect("shim").counters();
    let count = |name: &str| counters.iter().find(|c| c.0 == name).map(|c| c.1);
    assert_eq!(count("handoffs_begun"), Some(2));
    assert_eq!(count("handoffs_done"), Some(2));
}

/// RFC 6275 section 11.5.5: the node comes home by the other radio than the one that its home address was made for. It has the
/// address there at once, without duplicate address detection, for the home agent defends it; tells the link of it when the home
/// agent has let it go; and takes it along when it leaves again.
#[test]
fn a_node_comes_home_by_whichever_radio() {
    let mut world = leave_home(true, app::Transport::Tcp);
    world.run(ms(10_000));
    world.down(1);
    world.up(1, HOME_CELL);
    let back = world.now;
    world.run(ms(5000));
    let ready = |world: &World, address| {
        let mut of_radio = world.ready.iter().filter(|(_, l)| l.interface == InterfaceId(1));
        of_radio.rfind(|(_, l)| l.address == address).map(|(at, _)| *at)
    };
    // the radio's own address takes duplicate address detection, and shows that the node is at home
    let own = ready(&world, form_address(prefix(HOME_CELL), mac(2)));
    assert_eq!(ready(&world, home()), own);
    let own = own.expect("an address at home");
    assert!(own > back + ms(1000));
    // Binding Update and Acknowledgement, 5 ms each way
    assert_eq!(world.announced, [(own + ms(15), home(), mac(2))]);
    assert!(!world.home_agent.intercepts(world.now, home()));
    let before = world.received();
    world.run(ms(2000));
    assert!(world.received() > before, "data flows at home");
    assert!(world.ways.last().is_some_and(|(_, from)| *from == CN));

    // away by the first radio, and the second forgets the address although its link is still there
    world.up(0, 2);
    world.run(ms(3000));
    world.down(1);
    assert!(!world.neighbors.contains(&(InterfaceId(1), home())));
    world.run(ms(10_000));
    let before = world.received();
    world.run(ms(2000));
    assert!(world.received() > before, "data flows in the foreign network");
    let counters = world.mobile.shim().expect("shim").counters();
    let done = counters.iter().find(|c| c.0 == "handoffs_done").map(|c| c.1);
    assert_eq!(done, Some(3));
}

/// A node whose binding is over when it comes home, or that never had one, detects duplicates first.
#[test]
fn without_a_binding_the_home_address_is_formed_as_any_other() {
    let mut world = World::new(true, app::Transport::Tcp);
    world.up(1, HOME_CELL);
    world.run(ms(10_000));
    let at = |address| {
        let mut all = world.ready.iter().filter(|(_, l)| l.address == address);
        all.next().map(|(at, local)| (*at, local.interface))
    };
    let (own, _) = at(form_address(prefix(HOME_CELL), mac(2))).expect("an address at home");
    assert_eq!(at(home()), Some((own + ms(1000), InterfaceId(1))));
    assert_eq!(world.announced, []);
    assert!(world.received() > 0, "data flows at home");
}
