//! From a scenario to a network: addresses, routes, machines.
//!
//! Address plan: cell `n` has the prefix `2001:db8:(n + 2)::/64` (the SIGMA paper's 2.0.1 and 3.0.1), wired link `n`
//! has `2001:db8:ff00 + n::/64` with `::1` and `::2` at its ends, or `2001:db8:feff:n::/64` from the 254th on. Every prefix is a
//! /64.

mod bearers;
mod hosts;
mod link_script;
mod location;
mod networks;
mod readdressing;
mod routes;
mod shims;
mod way;

pub(crate) use hosts::{
    DEFAULT_MESSAGE, PORT, flows_of, host_config, kind, moves, opener, opening_parts, sctp_config, server,
    wire_addresses,
};
pub(crate) use link_script::comes_and_goes;
pub(crate) use location::identity;
pub(crate) use shims::identity as shim_identity;

use crate::captures::{CapturedHost, Captures};
use crate::carried;
use crate::link::{Link, LinkConfig, Service};
use crate::load::{Load, LoadedAs};
use crate::network::cells::{Attachment, Cell, Medium, Stations};
use crate::network::directory::Directory;
use crate::network::errors::router_address;
use crate::network::forgeries::Forgery;
use crate::network::hosts::{HostNode, HostPort};
use crate::network::neighbors::Neighbors;
use crate::network::routers::{Access, RouterNode};
use crate::network::routes::{Routes, prefix_of};
use crate::network::walks::Way;
use crate::network::{LazyTimer, LinkEnd, Mover, Network, Node};
use crate::output::{CellReach, RunOptions, Trace};
use crate::radio::{Channel, ChannelConfig};
use crate::recorder::Recorder;
use crate::recorder::connections::{Connections, Mobility};
use crate::recorder::pauses::Gap;
use crate::scenario::model::{
    AddressMethod, ForgeryEntry, HostEntry, RadioSection, RouterEntry, ScenarioFile,
};
use crate::scenario::point;
use crate::scenario::schemes::Scheme;
use crate::scenario::{Scenario, mobility};
use crate::scheduler::{Event, Scheduler};
use crate::store::PacketStore;
use crate::warnings::Notes;
use core::net::Ipv6Addr;
use segue_proto::address::{Dhcpv6Server, ServerConfig};
use segue_proto::host::{Host, HostError, ShimConfig};
use segue_proto::nd::{AdvertisedPrefix, RouterConfig, RouterNd};
use segue_proto::random::Stream;
use segue_proto::{Duration, ErrorBudget, Instant, InterfaceId, l2};
use segue_wire::icmpv6::nd::LinkLayerAddress;
use std::collections::BTreeMap;

/// Prefix of a cell's link.
fn cell_prefix(cell: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, cell as u16 + 2, 0, 0, 0, 0, 0)
}

/// Address of the access router on a cell's link.
fn cell_router_address(cell: usize) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(cell_prefix(cell)) | 1)
}

/// The addresses of a router: one of no link for what it says itself, its ends of wired links, and in its cell.
fn router_addresses(s: &ScenarioFile, name: &str, number: u32, cell: Option<usize>) -> Vec<Ipv6Addr> {
    let wired = wired_ends(s, name).map(|(link, end)| wire_address(link, end));
    let own = [router_address(number)].into_iter();
    own.chain(wired).chain(cell.map(cell_router_address)).collect()
}

/// The prefixes that a cell has, one after the other.
fn cell_prefixes(s: &ScenarioFile, cell: usize) -> impl Iterator<Item = Ipv6Addr> + Clone {
    let later = s.cell[cell].renumberings.iter().map(|r| r.prefix);
    core::iter::once(cell_prefix(cell)).chain(later)
}

/// Whether a prefix is that of a cell, a wire or the routers themselves.
pub(crate) fn is_taken(s: &ScenarioFile, prefix: Ipv6Addr) -> bool {
    let cells = (0..s.cell.len()).flat_map(|cell| cell_prefixes(s, cell));
    let wires = (0..s.link.len()).map(|link| wire_address(link, 0));
    let routers = (0..s.host.len() + s.router.len()).map(|n| router_address(n as u32));
    cells
        .chain(wires)
        .chain(routers)
        .any(|a| prefix_of(a) == prefix_of(prefix))
}

/// The shim of a host, to be checked: its secrets are not those of a run.
pub(crate) fn shim_config(s: &ScenarioFile, host: &HostEntry) -> ShimConfig {
    shims::config(s, host, 0)
}

/// The address of a host on the first of its wires that does not come and go.
pub(crate) fn address_that_stays(s: &ScenarioFile, host: &str) -> Option<Ipv6Addr> {
    let stays = |(link, _): &(usize, usize)| s.link[*link].outages.is_empty();
    wired_ends(s, host)
        .find(stays)
        .map(|(link, end)| hosts::host_wire_address(s, host, link, end))
}

/// The wired link that has an address.
pub(crate) fn link_of(s: &ScenarioFile, address: Ipv6Addr) -> Option<usize> {
    (0..s.link.len()).find(|&l| prefix_of(wire_address(l, 0)) == prefix_of(address))
}

/// Address at one end of a wired link.
fn wire_address(link: usize, end: usize) -> Ipv6Addr {
    let host = end as u16 + 1;
    match u8::try_from(link) {
        // what follows is the routers'
        Ok(few @ ..=0xfd) => Ipv6Addr::new(0x2001, 0xdb8, 0xff00 + u16::from(few), 0, 0, 0, 0, host),
        _ => Ipv6Addr::new(0x2001, 0xdb8, 0xfeff, link as u16, 0, 0, 0, host),
    }
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
        let host = || self.file.host.number(name);
        let router = || Some(self.file.host.len() + self.file.router.number(name)?);
        host().or_else(router).expect("names were checked") as u32
    }
}

/// Builds the network of a scenario, ready to run.
pub(crate) fn network(scenario: &Scenario, seed: u64, options: &RunOptions) -> Result<Network, HostError> {
    network_of(scenario, seed, options, false)
}

/// Builds the network of a scenario; `kernels`: TCP and UDP of its hosts are somebody else's.
pub(crate) fn network_of(
    scenario: &Scenario,
    seed: u64,
    options: &RunOptions,
    kernels: bool,
) -> Result<Network, HostError> {
    let begun = mobility::begun(scenario.file(), seed);
    let s = begun.as_ref().unwrap_or(scenario.file());
    let numbers = Numbers { file: s };
    let end = Instant::ZERO + s.duration;
    let stream = |name: &str| Stream::new(seed, name);

    let (links, link_ends) = wires(s, &numbers, &stream);
    let (cells, channels, stations) = radio_cells(s, &numbers, &stream);
    let mut movers: Vec<Mover> = s
        .mobile
        .iter()
        .map(|m| Mover {
            node: numbers.of(&m.host),
            way: way::of(m, end, seed),
            radios: 0..0,
        })
        .collect();
    let mover_of: BTreeMap<u32, u32> = (0..).zip(&movers).map(|(number, m)| (m.node, number)).collect();

    let mut nodes = Vec::new();
    let mut attachments = Vec::new();
    for (number, host) in s.host.iter().enumerate() {
        let number = number as u32;
        let mut ports: Vec<HostPort> = wired_ends(s, &host.name)
            .map(|(l, e)| HostPort::Wire((2 * l + e) as u32))
            .collect();
        let first_radio = attachments.len() as u32;
        for radio in 0..host.radios {
            let interface = InterfaceId(ports.len() as u8);
            ports.push(HostPort::Radio(attachments.len() as u32));
            let index = attachments.len() as u32;
            let mut attachment = attachment(s, interface, index, &stream);
            attachment.node = number;
            attachment.mover = mover_of[&number];
            attachment.technology = host.technologies.get(usize::from(radio)).copied();
            attachments.push(attachment);
        }
        if let Some(&mover) = mover_of.get(&number) {
            movers[mover as usize].radios = first_radio..attachments.len() as u32;
        }
        let sends_data = s.application.of(&host.name).any(|(_, a)| a.from == host.name);
        let (spoofs, load) = (host.spoofs, load_of(s, host, kernels));
        let mut config = host_config(s, host, number, seed);
        let role = carried::role(s, &host.name).filter(|_| kernels);
        if role.is_some() {
            config.sctp.outbound_streams = carried::STREAMS;
            config.sctp.max_inbound_streams = carried::STREAMS;
        }
        let secrets = Box::new(stream(&format!("{}/secrets", host.name)));
        let mut host = if kernels {
            Host::under_kernel(config, seed, secrets)?
        } else {
            Host::new(config, seed, secrets)?
        };
        if let Some(role) = role {
            host.drive(role);
        }
        nodes.push(Node::Host(Box::new(HostNode {
            host,
            ports,
            timer: LazyTimer::default(),
            sends_data,
            spoofs,
            load,
        })));
    }
    let roads = routes::Wires::of(s, &numbers);
    for router in &s.router {
        let number = numbers.of(&router.name);
        let cell = s.cell.iter().position(|c| c.router == router.name);
        let access = cell.map(|cell| access(s, number, cell, &stream));
        let home_agent = cell.and_then(|cell| shims::home_agent(s, cell, seed));
        let addresses = router_addresses(s, &router.name, number, cell);
        nodes.push(Node::Router(Box::new(RouterNode {
            routes: Routes::new(routes::routes(s, &numbers, &roads, number), &addresses),
            access,
            timer: LazyTimer::default(),
            addresses,
            errors: ErrorBudget::default(),
            clamp: bearers::window_clamp(s, &router.name),
            rewriter: cell.and_then(|cell| shims::rewriter(s, cell)),
            load: load_of_home_agent(router, kernels).filter(|_| home_agent.is_some()),
            home_agent,
        })));
    }

    let bearers = bearers::all(s, links.len(), seed);
    let ground = way::ground(s, end);
    let places = way::places(s, &ground, &movers);
    let on_the_move = |host: &&HostEntry| comes_and_goes(s, &host.name);
    let roamers = s.host.iter().filter(on_the_move);
    let mobile_nodes = movers
        .iter()
        .map(|m| m.node)
        .chain(roamers.map(|h| numbers.of(&h.name)))
        .collect();
    let sample_period = (options.trace && !movers.is_empty())
        .then(|| Duration::from_nanos((s.duration.as_nanos() / 2000).max(10_000_000)));
    let trace = Trace {
        nodes: scenario.node_names(),
        cells: s
            .cell
            .iter()
            .map(|c| {
                let at = point(c.position);
                CellReach {
                    name: c.name.clone(),
                    x_m: at.x,
                    y_m: at.y,
                    radius_m: c.radius.metres(),
                    present_s: c.present.as_ref().map(|p| p.seconds(s.duration)),
                }
            })
            .collect(),
        ..Trace::default()
    };
    let captures = options.pcap.then(|| captures(s, seed));
    let mobility = match s.scheme {
        scheme if scheme.has_shim() => Mobility::Shim,
        Scheme::Cmt => Mobility::Concurrent,
        _ => Mobility::Transport,
    };
    let events = s.happenings.iter().map(|event| {
        let (since, until) = event.window();
        Gap {
            since: Instant::ZERO + since,
            until: Instant::ZERO + until,
        }
    });
    let connections = Connections::new(mobile_nodes, mobility).around(events.collect());
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
        neighbors: Neighbors::default(),
        attachments,
        bearers,
        shared_cells: bearers::shared_cells(s),
        movers,
        places,
        ground,
        forgeries: forgeries(s, &numbers, &stream),
        link_script: link_script::changes(s),
        readdressing: readdressing::changes(s, &numbers, &stream),
        directory: Directory::new(s.directory.update, s.directory.look_up),
        signalling_priority: s.signalling_priority,
        sample_period,
        corruption: stream("corruption"),
        recorder: Recorder::new(
            options,
            trace,
            captures,
            connections,
            networks::all(s, &numbers, kernels),
            s.location.is_some(),
            s.scheme.is_ilnp(),
        ),
        kernels: kernels.then(Box::default),
        opened_from: BTreeMap::new(),
        notes: Notes::default(),
        outcomes: Vec::new(),
        bytes: Vec::new(),
    };
    first_events(&mut network, &s.forgery, &stream);
    Ok(network)
}

/// What happens at the beginning: places already reached, nodes started, beacons at phases of their own.
fn first_events(network: &mut Network, forgeries: &[ForgeryEntry], stream: &impl Fn(&str) -> Stream) {
    network.start_link_script();
    network.start_readdressing();
    if let Some(first) = network.places.first() {
        network.scheduler.at(first.time, Event::Waypoint(0));
    }
    for (number, mover) in network.movers.iter().enumerate() {
        if matches!(mover.way, Way::Drawn(_)) {
            network.scheduler.at(Instant::ZERO, Event::Walk(number as u32));
        }
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
    for (number, forgery) in forgeries.iter().enumerate() {
        let at = Instant::ZERO + forgery.at;
        network.scheduler.at(at, Event::Forgery(number as u32));
    }
    if network.sample_period.is_some() {
        network.scheduler.at(Instant::ZERO, Event::PositionSample);
    }
}

/// The messages that hosts forge, in the order of the file.
fn forgeries(s: &ScenarioFile, numbers: &Numbers<'_>, stream: &impl Fn(&str) -> Stream) -> Vec<Forgery> {
    let make = |(number, entry): (usize, &ForgeryEntry)| {
        let mut guesses = stream(&format!("forgery {number}"));
        let parties = shims::parties(s, entry);
        Forgery::new(numbers.of(&entry.from), entry, parties, &mut guesses)
    };
    s.forgery.iter().enumerate().map(make).collect()
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
            // what goes before others needs a line to be put into
            service: if s.signalling_priority {
                Service::HeadOfLine
            } else {
                entry.service
            },
            mtu: entry.mtu.map(|mtu| mtu.bytes() as u32),
        };
        for direction in 0..2 {
            let config = match &entry.up {
                Some(up) if direction == 1 => bearers::direction(up, &config),
                _ => config.clone(),
            };
            let [from, to] = [&entry.between[direction], &entry.between[1 - direction]];
            let name = format!("link {number}: {from} to {to}");
            let (hold, set_up) = match &entry.up {
                Some(up) if direction == 1 => (up.jitter_hold, (up.set_up, up.set_up_hold)),
                _ => (entry.jitter_hold, (entry.set_up, entry.set_up_hold)),
            };
            let link = Link::new(links.len() as u32, config, stream(&name));
            let trace = match &entry.up {
                Some(up) if direction == 1 => up.trace.as_ref(),
                _ => entry.trace.as_ref(),
            };
            links.push(
                link.with_jitter_held(hold)
                    .with_set_up(set_up.0, set_up.1)
                    .with_silences(bearers::silences(&entry.silences, Some(to)))
                    .with_trace(trace.and_then(|t| t.trace.clone())),
            );
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

fn channel_config(r: &RadioSection) -> ChannelConfig {
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
) -> (Vec<Cell>, Vec<Channel>, Stations) {
    let shared = s.cell.iter().filter(|c| c.bearer.is_none());
    let mut channel_numbers: Vec<u16> = shared.map(|c| c.channel).collect();
    channel_numbers.sort_unstable();
    channel_numbers.dedup();
    let new_channel = |(index, number): (usize, &u16)| {
        let mut sharing = s
            .cell
            .iter()
            .filter(|c| c.bearer.is_none() && c.channel == *number);
        let radio = sharing.find_map(|c| c.radio.as_ref()).unwrap_or(&s.radio);
        Channel::new(
            index as u32,
            channel_config(radio),
            stream(&format!("channel {number}")),
        )
    };
    let channels: Vec<Channel> = channel_numbers.iter().enumerate().map(new_channel).collect();
    let mut stations = Stations::of_channels(channels.len());
    let mut cells = Vec::new();
    for (number, entry) in s.cell.iter().enumerate() {
        let medium = entry.bearer.is_none().then(|| {
            let channel = channel_numbers
                .binary_search(&entry.channel)
                .expect("every cell's channel is listed") as u32;
            Medium {
                channel,
                station: stations.add_cell(channel, number as u32),
            }
        });
        cells.push(Cell {
            router: numbers.of(&entry.router),
            medium,
            technology: entry.technology,
            position: point(entry.position),
            radius: entry.radius.metres(),
            beacon_period: s.l2.beacon_period,
            beacon_length: s.l2.beacon_size.bytes() as u32,
            reached_by: smallvec::SmallVec::new(),
        });
    }
    (cells, channels, stations)
}

/// The radio `interface` of a host: which host, and which of those that move, the caller says.
fn attachment(
    s: &ScenarioFile,
    interface: InterfaceId,
    index: u32,
    stream: &impl Fn(&str) -> Stream,
) -> Attachment {
    let config = l2::Config {
        latency: s.l2.latency,
        beacon_period: s.l2.beacon_period,
        loss_detection: s.l2.loss_detection,
        beacon_loss: s.l2.beacon_loss,
    };
    Attachment {
        node: 0,
        mover: 0,
        interface,
        technology: None,
        layer2: l2::Layer2::new(interface, config, stream(&format!("attachment {index}"))),
        timer: LazyTimer::default(),
    }
}

/// A prefix as routers advertise it.
fn advertised(s: &ScenarioFile, prefix: Ipv6Addr) -> AdvertisedPrefix {
    let (a, standard) = (&s.address, AdvertisedPrefix::new(prefix));
    AdvertisedPrefix {
        autonomous: a.method != AddressMethod::Dhcpv6,
        valid_lifetime: a.valid_lifetime.or(standard.valid_lifetime),
        preferred_lifetime: a.valid_lifetime.or(standard.preferred_lifetime),
        ..standard
    }
}

/// The load of a host that others depend on, or that takes time. Where hosts are real, loads that take no time are not counted:
/// what is kept grows by the second, and such a run may go on for days.
fn load_of(s: &ScenarioFile, host: &HostEntry, kernels: bool) -> Option<Box<Load>> {
    let manages = s.location.as_ref().is_some_and(|l| l.server == host.name) && !kernels;
    let role = if manages {
        LoadedAs::LocationManager
    } else {
        LoadedAs::Node
    };
    (manages || host.processing.is_some()).then(|| Box::new(Load::new(role, host.processing.as_ref())))
}

/// The same of a router, if it is a home agent.
fn load_of_home_agent(router: &RouterEntry, kernels: bool) -> Option<Box<Load>> {
    let takes = router.processing.as_ref();
    (takes.is_some() || !kernels).then(|| Box::new(Load::new(LoadedAs::HomeAgent, takes)))
}

fn access(s: &ScenarioFile, router: u32, cell: usize, stream: &impl Fn(&str) -> Stream) -> Access {
    let (a, own) = (&s.address, &s.cell[cell]);
    let interface = InterfaceId::default();
    let link_layer = link_layer(router, 0);
    let discovery = RouterConfig {
        min_rtr_adv_interval: own.ra_interval_min.unwrap_or(a.ra_interval_min),
        max_rtr_adv_interval: own.ra_interval_max.unwrap_or(a.ra_interval_max),
        max_ra_delay_time: a.ra_delay,
        min_delay_between_ras: Duration::ZERO,
        unicast_solicited: true,
        managed: a.method == AddressMethod::Dhcpv6,
        prefixes: vec![advertised(s, cell_prefix(cell))],
        ..RouterConfig::default()
    };
    let random = stream(&format!("cell {cell}/router advertisements"));
    let dhcp = ServerConfig::default();
    let server = ServerConfig {
        reply_delay: a.server_delay,
        rapid_commit: a.rapid_commit,
        preference: Some(255),
        valid_lifetime: a.valid_lifetime.unwrap_or(dhcp.valid_lifetime),
        preferred_lifetime: a.valid_lifetime.unwrap_or(dhcp.preferred_lifetime),
    };
    Access {
        cell: cell as u32,
        discovery: RouterNd::new(Instant::ZERO, interface, link_layer, discovery, random),
        dhcp: (a.method == AddressMethod::Dhcpv6)
            .then(|| Dhcpv6Server::new(interface, link_layer, cell_prefix(cell), server)),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_cell_every_wire_and_every_router_has_a_prefix_of_its_own() {
        let wires = (0..60_000).map(|link| wire_address(link, 0));
        let cells = (0..2_000).map(cell_prefix);
        let routers = (0..22_000).map(router_address);
        let prefixes: Vec<u64> = wires.chain(cells).chain(routers).map(prefix_of).collect();
        let distinct: BTreeSet<&u64> = prefixes.iter().collect();
        assert_eq!(distinct.len(), prefixes.len());
        assert_eq!(
            wire_address(0, 1),
            "2001:db8:ff00::2".parse::<Ipv6Addr>().unwrap()
        );
        assert_eq!(
            wire_address(254, 0),
            "2001:db8:feff:fe::1".parse::<Ipv6Addr>().unwrap()
        );
    }
}
