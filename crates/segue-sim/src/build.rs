//! From a scenario to a network: addresses, routes, machines.
//!
//! Address plan: cell `n` has the prefix `2001:db8:(n + 2)::/64` (the SIGMA paper's 2.0.1 and 3.0.1), wired link `n`
//! has `2001:db8:ff00 + n::/64` with `::1` and `::2` at its ends. Every prefix is a /64.

use crate::captures::{CapturedHost, Captures};
use crate::link::{Link, LinkConfig};
use crate::mobility::{Point, Trajectory};
use crate::network::cells::{Attachment, Cell, Owner, Place, PlaceKind};
use crate::network::hosts::{HostNode, HostPort};
use crate::network::routers::{Access, RouterNode, Way, prefix_of};
use crate::network::{LazyTimer, LinkEnd, Network, Node};
use crate::output::{RunOptions, Trace};
use crate::radio::{Channel, ChannelConfig};
use crate::recorder::Recorder;
use crate::scenario::Scenario;
use crate::scenario::model::{
    AddressMethod, ApplicationEntry, ApplicationKind, HostEntry, MobileSection, Pattern, ScenarioFile,
};
use crate::scenario::point;
use crate::scheduler::{Event, Scheduler};
use crate::store::PacketStore;
use core::net::Ipv6Addr;
use segue_proto::address::{ClientConfig, Dhcpv6Server, Method, ServerConfig};
use segue_proto::host::{Addressing, Host, HostConfig, HostError, InterfaceConfig, ShimConfig};
use segue_proto::nd::{AdvertisedPrefix, RouterConfig, RouterNd};
use segue_proto::random::Stream;
use segue_proto::units::Bytes;
use segue_proto::{Duration, Instant, InterfaceId, app, l2, sctp, sigma};
use segue_wire::icmpv6::nd::LinkLayerAddress;

/// SCTP port of every host.
const PORT: u16 = 9;

/// Constant-rate message and request or response, where the scenario gives none.
pub(crate) const DEFAULT_MESSAGE: Bytes = Bytes::new(1000);

/// The SCTP configuration of a scenario: its profile's, with what it sets.
pub(crate) fn sctp_config(s: &ScenarioFile) -> sctp::Config {
    let set = &s.sctp;
    let mut c = sctp::Config::new(set.profile);
    let bytes = |b: Option<Bytes>, otherwise: u32| b.map_or(otherwise, |b| b.bytes() as u32);
    c.mtu = bytes(set.mtu, c.mtu);
    c.receive_buffer = bytes(set.receive_buffer, c.receive_buffer);
    c.send_buffer = bytes(set.send_buffer, c.send_buffer);
    c.max_chunk_data = set.chunk_data.map(|b| b.bytes() as u32);
    c.rto_initial = set.rto_initial.unwrap_or(c.rto_initial);
    c.rto_min = set.rto_min.unwrap_or(c.rto_min);
    c.rto_max = set.rto_max.unwrap_or(c.rto_max);
    c.path_max_retrans = set.path_max_retrans.unwrap_or(c.path_max_retrans);
    c.association_max_retrans = set.association_max_retrans.unwrap_or(c.association_max_retrans);
    c.hb_interval = set
        .hb_interval
        .map_or(c.hb_interval, |i| (!i.is_zero()).then_some(i));
    c.sack_delay = set.sack_delay.unwrap_or(c.sack_delay);
    c.sack_frequency = set.sack_frequency.unwrap_or(c.sack_frequency);
    c.max_burst = set.max_burst.map_or(c.max_burst, |b| (b > 0).then_some(b));
    c.cwnd_credit = set.cwnd_credit;
    c.sack_route = set.sack_route;
    c.retransmit_to = set.retransmit_to;
    c
}

/// Prefix of a cell's link.
fn cell_prefix(cell: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, cell as u16 + 2, 0, 0, 0, 0, 0)
}

/// Address at one end of a wired link.
fn wire_address(link: usize, end: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xff00 + link as u16, 0, 0, 0, 0, end as u16 + 1)
}

fn link_layer(node: u32, interface: u8) -> LinkLayerAddress {
    let [high, low] = (node as u16).to_be_bytes();
    LinkLayerAddress([0x02, 0, high, low, 0, interface])
}

/// Nodes by number: hosts in their order, then routers.
struct Numbers<'a> {
    file: &'a ScenarioFile,
}

impl Numbers<'_> {
    fn of(&self, name: &str) -> u32 {
        let hosts = self.file.host.iter().map(|h| &h.name);
        let all = hosts.chain(self.file.router.iter().map(|r| &r.name));
        all.into_iter()
            .position(|n| n == name)
            .expect("names were checked") as u32
    }

    fn names(&self) -> Vec<String> {
        let hosts = self.file.host.iter().map(|h| h.name.clone());
        hosts
            .chain(self.file.router.iter().map(|r| r.name.clone()))
            .collect()
    }
}

/// Builds the network of a scenario, ready to run.
pub(crate) fn network(scenario: &Scenario, seed: u64, options: &RunOptions) -> Result<Network, HostError> {
    let s = scenario.file();
    let numbers = Numbers { file: s };
    let end = Instant::ZERO + s.duration;
    let stream = |name: &str| Stream::new(seed, name);

    let (links, link_ends) = wires(s, &numbers, &stream);
    let (cells, mut channels, mut stations) = radio_cells(s, &numbers, &stream);
    let trajectory = s
        .mobile
        .as_ref()
        .map_or_else(|| Trajectory::fixed(Point::default()), |m| trajectory(m, end));
    let mobile_node = s.mobile.as_ref().map(|m| numbers.of(&m.host));

    let mut nodes = Vec::new();
    let mut attachments = Vec::new();
    for (number, host) in s.host.iter().enumerate() {
        let number = number as u32;
        let mut ports: Vec<HostPort> = wired_ends(s, &host.name)
            .map(|(l, e)| HostPort::Wire((2 * l + e) as u32))
            .collect();
        for _ in 0..host.radios {
            let interface = InterfaceId(ports.len() as u8);
            ports.push(HostPort::Radio(attachments.len() as u32));
            let index = attachments.len() as u32;
            attachments.push(attachment(
                s,
                number,
                interface,
                index,
                &mut channels,
                &mut stations,
                &stream,
            ));
        }
        let sends_data = s.application.iter().any(|a| a.from == host.name);
        let config = host_config(s, host, number);
        let secrets = Box::new(stream(&format!("{}/secrets", host.name)));
        let host = Host::new(config, seed, secrets)?;
        nodes.push(Node::Host(Box::new(HostNode {
            host,
            ports,
            timer: LazyTimer::default(),
            sends_data,
        })));
    }
    for router in &s.router {
        let number = numbers.of(&router.name);
        let cell = s.cell.iter().position(|c| c.router == router.name);
        let access = cell.map(|cell| access(s, number, cell, &stream));
        nodes.push(Node::Router(Box::new(RouterNode {
            routes: routes(s, &numbers, number),
            access,
            timer: LazyTimer::default(),
        })));
    }

    let places = places(s, &trajectory, end);
    let sample_period = (options.trace && mobile_node.is_some())
        .then(|| Duration::from_nanos((s.duration.as_nanos() / 2000).max(10_000_000)));
    let trace = Trace {
        nodes: numbers.names(),
        cells: s
            .cell
            .iter()
            .map(|c| {
                let at = point(c.position);
                (c.name.clone(), at.x, at.y, c.radius.metres())
            })
            .collect(),
        ..Trace::default()
    };
    let captures = options.pcap.then(|| captures(s, seed));
    let mut network = Network {
        now: Instant::ZERO,
        end,
        wire: s.wire,
        scheduler: Scheduler::default(),
        store: PacketStore::default(),
        nodes,
        links,
        link_ends,
        channels,
        stations,
        cells,
        attachments,
        trajectory,
        places,
        mobile_node,
        sample_period,
        corruption: stream("corruption"),
        recorder: Recorder::new(options, trace, captures, mobile_node),
        outcomes: Vec::new(),
        bytes: Vec::new(),
    };
    first_events(&mut network, &stream);
    Ok(network)
}

/// What happens at the beginning: places already reached, nodes started, beacons at phases of their own.
fn first_events(network: &mut Network, stream: &impl Fn(&str) -> Stream) {
    if let Some(first) = network.places.first() {
        network.scheduler.at(first.time, Event::Waypoint(0));
    }
    for node in 0..network.nodes.len() as u32 {
        network.scheduler.at(Instant::ZERO, Event::Start(node));
    }
    for (number, cell) in network.cells.iter().enumerate() {
        let phase = stream(&format!("cell {number}/phase")).below(cell.beacon_period.as_nanos().max(1));
        network
            .scheduler
            .at(Instant::from_nanos(phase), Event::Beacon(number as u32));
    }
    if network.sample_period.is_some() {
        network.scheduler.at(Instant::ZERO, Event::PositionSample);
    }
}

/// Links 2n and 2n + 1 are the directions of wired link n: away from its first node, and back.
fn wires(
    s: &ScenarioFile,
    numbers: &Numbers<'_>,
    stream: &impl Fn(&str) -> Stream,
) -> (Vec<Link>, Vec<LinkEnd>) {
    let (mut links, mut ends) = (Vec::new(), Vec::new());
    for (number, entry) in s.link.iter().enumerate() {
        let config = LinkConfig {
            rate: entry.rate,
            delay: entry.delay,
            queue: entry.queue,
            loss: entry.loss,
            jitter: entry.jitter,
            reorder: entry.reorder,
            duplicate: entry.duplicate,
            corrupt: entry.corrupt,
            service: entry.service,
        };
        for direction in 0..2 {
            let [from, to] = [&entry.between[direction], &entry.between[1 - direction]];
            let name = format!("link {number}: {from} to {to}");
            links.push(Link::new(links.len() as u32, config.clone(), stream(&name)));
            let interface = wired_ends(s, to)
                .position(|(l, e)| (l, e) == (number, 1 - direction))
                .unwrap_or_default();
            ends.push(LinkEnd {
                node: numbers.of(to),
                interface: InterfaceId(interface as u8),
            });
        }
    }
    (links, ends)
}

/// The wired links of a node in their order, each with the end at which the node is.
fn wired_ends<'a>(s: &'a ScenarioFile, node: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let ends = move |(n, link): (usize, &'a crate::scenario::model::LinkEntry)| {
        link.between.iter().position(|b| b == node).map(|end| (n, end))
    };
    s.link.iter().enumerate().filter_map(ends)
}

fn channel_config(s: &ScenarioFile) -> ChannelConfig {
    let r = &s.radio;
    let standard = ChannelConfig::default();
    ChannelConfig {
        rate: r.rate,
        basic_rate: r.basic_rate,
        preamble: r.preamble,
        slot: r.slot,
        difs: standard.sifs + r.slot * 2,
        cw_min: r.cw_min,
        cw_max: r.cw_max,
        attempts: r.attempts,
        queue_packets: r.queue as usize,
        overhead_bytes: r.overhead.bytes() as u32,
        ..standard
    }
}

fn radio_cells(
    s: &ScenarioFile,
    numbers: &Numbers<'_>,
    stream: &impl Fn(&str) -> Stream,
) -> (Vec<Cell>, Vec<Channel>, Vec<Vec<Owner>>) {
    let mut channel_numbers: Vec<u16> = s.cell.iter().map(|c| c.channel).collect();
    channel_numbers.sort_unstable();
    channel_numbers.dedup();
    let new_channel = |(index, number): (usize, &u16)| {
        Channel::new(
            index as u32,
            channel_config(s),
            stream(&format!("channel {number}")),
        )
    };
    let mut channels: Vec<Channel> = channel_numbers.iter().enumerate().map(new_channel).collect();
    let mut stations: Vec<Vec<Owner>> = vec![Vec::new(); channels.len()];
    let mut cells = Vec::new();
    for (number, entry) in s.cell.iter().enumerate() {
        let channel = channel_numbers
            .binary_search(&entry.channel)
            .expect("every cell's channel is listed");
        stations[channel].push(Owner::Cell(number as u32));
        cells.push(Cell {
            router: numbers.of(&entry.router),
            channel: channel as u32,
            station: channels[channel].add_station(),
            position: point(entry.position),
            radius: entry.radius.metres(),
            beacon_period: s.l2.beacon_period,
            beacon_length: s.l2.beacon_size.bytes() as u32,
            neighbors: Vec::new(),
            reached: false,
        });
    }
    (cells, channels, stations)
}

fn attachment(
    s: &ScenarioFile,
    node: u32,
    interface: InterfaceId,
    index: u32,
    channels: &mut [Channel],
    stations: &mut [Vec<Owner>],
    stream: &impl Fn(&str) -> Stream,
) -> Attachment {
    let config = l2::Config {
        latency: s.l2.latency,
        beacon_period: s.l2.beacon_period,
        loss_detection: s.l2.loss_detection,
        beacon_loss: s.l2.beacon_loss,
    };
    for owners in stations.iter_mut() {
        owners.push(Owner::Attachment(index));
    }
    Attachment {
        node,
        interface,
        layer2: l2::Layer2::new(interface, config, stream(&format!("attachment {index}"))),
        stations: channels.iter_mut().map(Channel::add_station).collect(),
        timer: LazyTimer::default(),
    }
}

fn access(s: &ScenarioFile, router: u32, cell: usize, stream: &impl Fn(&str) -> Stream) -> Access {
    let a = &s.address;
    let interface = InterfaceId::default();
    let link_layer = link_layer(router, 0);
    let discovery = RouterConfig {
        min_rtr_adv_interval: a.ra_interval_min,
        max_rtr_adv_interval: a.ra_interval_max,
        max_ra_delay_time: a.ra_delay,
        min_delay_between_ras: Duration::ZERO,
        unicast_solicited: true,
        managed: a.method == AddressMethod::Dhcpv6,
        prefixes: vec![AdvertisedPrefix {
            autonomous: a.method != AddressMethod::Dhcpv6,
            ..AdvertisedPrefix::new(cell_prefix(cell))
        }],
        ..RouterConfig::default()
    };
    let random = stream(&format!("cell {cell}/router advertisements"));
    let server = ServerConfig {
        reply_delay: a.server_delay,
        rapid_commit: a.rapid_commit,
        preference: Some(255),
        ..ServerConfig::default()
    };
    Access {
        cell: cell as u32,
        discovery: RouterNd::new(Instant::ZERO, interface, link_layer, discovery, random),
        dhcp: (a.method == AddressMethod::Dhcpv6)
            .then(|| Dhcpv6Server::new(interface, link_layer, cell_prefix(cell), server)),
    }
}

/// Ways from a router to every prefix: fewest hops, lowest link number among equals.
fn routes(s: &ScenarioFile, numbers: &Numbers<'_>, router: u32) -> Vec<(u64, Way)> {
    let nodes = s.host.len() + s.router.len();
    // First link on the way to every node that routers lead to.
    let mut first: Vec<Option<u32>> = vec![None; nodes];
    let mut seen = vec![false; nodes];
    seen[router as usize] = true;
    let mut queue = std::collections::VecDeque::from([router]);
    let mut order = vec![router];
    while let Some(at) = queue.pop_front() {
        let is_host = (at as usize) < s.host.len();
        if is_host {
            continue;
        }
        for (number, link) in s.link.iter().enumerate() {
            for direction in 0..2 {
                let (from, to) = (
                    numbers.of(&link.between[direction]),
                    numbers.of(&link.between[1 - direction]),
                );
                if from == at && !seen[to as usize] {
                    seen[to as usize] = true;
                    first[to as usize] = first[at as usize].or(Some((2 * number + direction) as u32));
                    queue.push_back(to);
                    order.push(to);
                }
            }
        }
    }
    let mut routes = Vec::new();
    for (number, cell) in s.cell.iter().enumerate() {
        let at = numbers.of(&cell.router);
        let way = if at == router {
            Some(Way::Cell(number as u32))
        } else {
            first[at as usize].map(Way::Link)
        };
        routes.extend(way.map(|w| (prefix_of(cell_prefix(number)), w)));
    }
    for (number, link) in s.link.iter().enumerate() {
        let ends = [numbers.of(&link.between[0]), numbers.of(&link.between[1])];
        let own = ends.iter().position(|e| *e == router);
        let way = match own {
            Some(end) => Some((2 * number + end) as u32),
            // The end that the search came by first is the nearer one.
            None => order
                .iter()
                .find(|n| ends.contains(n))
                .and_then(|n| first[*n as usize]),
        };
        routes.extend(way.map(|w| (prefix_of(wire_address(number, 0)), Way::Link(w))));
    }
    routes
}

fn host_config(s: &ScenarioFile, host: &HostEntry, number: u32) -> HostConfig {
    let mut interfaces: Vec<InterfaceConfig> = Vec::new();
    for (link, end) in wired_ends(s, &host.name) {
        interfaces.push(InterfaceConfig {
            link_layer: link_layer(number, interfaces.len() as u8),
            addressing: Addressing::Static(vec![wire_address(link, end)]),
        });
    }
    for _ in 0..host.radios {
        interfaces.push(InterfaceConfig {
            link_layer: link_layer(number, interfaces.len() as u8),
            addressing: Addressing::Acquire(acquisition(s)),
        });
    }
    let mobile = s.mobile.as_ref().is_some_and(|m| m.host == host.name);
    HostConfig {
        name: host.name.clone(),
        interfaces,
        sctp: sctp_config(s),
        port: PORT,
        applications: s
            .application
            .iter()
            .filter_map(|a| application(s, a, &host.name))
            .collect(),
        sigma: mobile.then(|| s.handover.clone()),
        shim: ShimConfig::None,
    }
}

fn acquisition(s: &ScenarioFile) -> Method {
    let a = &s.address;
    let nd = segue_proto::nd::HostConfig {
        max_rtr_solicitation_delay: Duration::ZERO,
        dup_addr_detect_transmits: a.dad_transmits,
        retrans_timer: a.retrans_timer,
        ..segue_proto::nd::HostConfig::default()
    };
    match a.method {
        AddressMethod::Fixed => Method::Fixed {
            latency: a.resolution,
            solicit: true,
        },
        AddressMethod::Slaac => Method::Slaac { nd },
        AddressMethod::Dhcpv6 => {
            let client = ClientConfig {
                rapid_commit: a.rapid_commit,
                sol_max_delay: Duration::ZERO,
                ..ClientConfig::default()
            };
            Method::Dhcpv6 { nd, client }
        }
    }
}

/// Who opens an application's association: the host that moves, or else the sender. A listening host must have an
/// address that does not change.
pub(crate) fn opener<'a>(s: &ScenarioFile, a: &'a ApplicationEntry) -> &'a String {
    let radios = |name: &str| s.host.iter().any(|h| h.name == name && h.radios > 0);
    if radios(&a.to) { &a.to } else { &a.from }
}

/// The part of an application that runs on `host`.
fn application(s: &ScenarioFile, a: &ApplicationEntry, host: &str) -> Option<app::Config> {
    let (sends, receives) = (a.from == host, a.to == host);
    if !sends && !receives {
        return None;
    }
    let peer = if sends { &a.to } else { &a.from };
    let role = if opener(s, a) == host {
        let addresses = wired_ends(s, peer).map(|(link, end)| wire_address(link, end));
        app::Role::Connect {
            peer: addresses.collect(),
            port: PORT,
            start: a.start,
        }
    } else {
        app::Role::Listen
    };
    let (request, response) = (
        a.message.unwrap_or(DEFAULT_MESSAGE),
        a.response.unwrap_or(DEFAULT_MESSAGE),
    );
    let kind = match (a.kind, sends) {
        (ApplicationKind::Bulk, true) => app::Kind::Bulk {
            total: a.size,
            message: a.message,
        },
        (ApplicationKind::ConstantRate, true) => app::Kind::ConstantRate {
            rate: a.rate.expect("a constant-rate sender's rate was checked"),
            message: request,
            total: a.size,
        },
        (ApplicationKind::Bulk | ApplicationKind::ConstantRate, false) => app::Kind::Sink,
        (ApplicationKind::RequestResponse, true) => app::Kind::RequestClient {
            request,
            response,
            think: Duration::ZERO,
            count: None,
        },
        (ApplicationKind::RequestResponse, false) => app::Kind::RequestServer { request, response },
    };
    Some(app::Config { role, kind })
}

fn trajectory(m: &MobileSection, end: Instant) -> Trajectory {
    let (from, start, speed) = (
        point(m.from),
        Instant::ZERO + m.start,
        m.speed.metres_per_second(),
    );
    match m.pattern {
        Pattern::Still => Trajectory::fixed(from),
        Pattern::BackAndForth => {
            Trajectory::back_and_forth(from, m.to.map_or(from, point), speed, start, end)
        }
        Pattern::Waypoints => {
            let points: Vec<Point> = m.points.iter().copied().map(point).collect();
            Trajectory::waypoints(from, &points, speed, start)
        }
    }
}

/// The moments at which reach changes or a policy wants to be told, in order.
fn places(s: &ScenarioFile, trajectory: &Trajectory, end: Instant) -> Vec<Place> {
    if s.mobile.is_none() {
        return Vec::new();
    }
    let stays: Vec<_> = s
        .cell
        .iter()
        .map(|c| trajectory.stays_within(point(c.position), c.radius.metres(), end))
        .collect();
    let mut places = Vec::new();
    let margin = s.handover.margin;
    for (cell, own) in stays.iter().enumerate() {
        for stay in own {
            let cell = cell as u32;
            places.push(Place {
                time: stay.enter,
                kind: PlaceKind::Enters(cell),
            });
            if stay.leave == Instant::MAX {
                continue;
            }
            places.push(Place {
                time: stay.leave,
                kind: PlaceKind::Leaves(cell),
            });
            if s.handover.policy == sigma::Policy::LastMoment {
                let warning = (stay.leave - margin).max(stay.enter);
                places.push(Place {
                    time: warning,
                    kind: PlaceKind::WillLeave(cell, stay.leave - warning),
                });
            }
        }
    }
    if s.handover.policy == sigma::Policy::Overlap {
        places.extend(overlap_points(&stays, s.handover.fraction));
    }
    places.retain(|p| p.time <= end);
    places.sort_by_key(|p| (p.time, place_order(p.kind)));
    places
}

/// Entering comes before leaving at the same moment: cells that touch leave no gap.
fn place_order(kind: PlaceKind) -> u8 {
    match kind {
        PlaceKind::Enters(_) => 0,
        PlaceKind::WillLeave(..) | PlaceKind::Overlap { .. } => 1,
        PlaceKind::Leaves(_) => 2,
    }
}

/// The overlap of two cells is crossed by a stay in each that begin and end in the same order.
fn overlap_points(stays: &[Vec<crate::mobility::Stay>], fraction: f64) -> Vec<Place> {
    let mut points = Vec::new();
    for (from, old) in stays.iter().enumerate() {
        for (to, new) in stays.iter().enumerate() {
            for (a, b) in old.iter().flat_map(|a| new.iter().map(move |b| (a, b))) {
                let crosses = from != to && a.enter < b.enter && b.enter < a.leave && a.leave < b.leave;
                if crosses {
                    let whole = a.leave.since(b.enter).as_secs_f64();
                    points.push(Place {
                        time: b.enter + Duration::from_secs_f64(whole * fraction),
                        kind: PlaceKind::Overlap {
                            from: from as u32,
                            to: to as u32,
                            fraction,
                        },
                    });
                }
            }
        }
    }
    points
}

fn captures(s: &ScenarioFile, seed: u64) -> Captures {
    let hosts = s.host.iter().enumerate().map(|(number, host)| {
        let wired = wired_ends(s, &host.name).map(|(link, end)| {
            let peer = &s.link[link].between[1 - end];
            (
                format!("{}-to-{peer}", host.name),
                format!("wire, {}", wire_address(link, end)),
            )
        });
        let radios = (0..host.radios).map(|r| (format!("{}-radio{r}", host.name), "radio".to_owned()));
        CapturedHost {
            node: number as u32,
            name: host.name.clone(),
            interfaces: wired.chain(radios).collect(),
        }
    });
    Captures::new(hosts.collect(), &format!("scenario {}, seed {seed}", s.name))
}
