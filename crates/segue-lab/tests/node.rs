//! Two hosts with ILNPv6 under somebody else's transport, and routers between them, all in memory.

use bytes::Bytes;
use segue_lab::node::{Node, NodeCounters, NodeEvent, OutboundFrame};
use segue_proto::address::Method;
use segue_proto::ilnp::{Config, Ilnp, PeerConfig};
use segue_proto::nd::{AdvertisedPrefix, HostConfig, RouterConfig, RouterNd, solicited_node};
use segue_proto::random::Stream;
use segue_proto::shim::{Shim as _, ShimEvent};
use segue_proto::{Duration, Instant, InterfaceId};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::nd::{LinkLayerAddress, NeighborSolicitation};
use segue_wire::ilnp::{Locator, Nid};
use segue_wire::raw::ChecksumState;
use segue_wire::tcp::{TcpFlags, TcpOptions, TcpSegment};
use segue_wire::{Data, Ipv6Header, Packet, Payload, SeqNumber};
use std::net::Ipv6Addr;

const MOBILE: usize = 0;
const FIXED: usize = 1;

/// Networks 0 and 1 are the mobile's cells, 2 the correspondent's.
struct World {
    now: Instant,
    nodes: [Node; 2],
    routers: [RouterNd; 3],
    /// What the hosts' kernels got.
    received: [Vec<Packet>; 2],
    events: [Vec<NodeEvent>; 2],
}

fn prefix(network: usize) -> Locator {
    Locator(0x2001_0db8_0000_0001 + network as u64)
}

fn router_mac(network: usize) -> LinkLayerAddress {
    LinkLayerAddress([2, 0, 0, 0, 0xff, network as u8])
}

fn identity(nid: u64) -> Ipv6Addr {
    Config::default().identity_prefix.address(Nid(nid))
}

/// The network that an interface of a node is on.
fn network(node: usize, port: usize) -> usize {
    if node == MOBILE { port } else { 2 }
}

fn node(nid: u64, interfaces: u8) -> Node {
    let mut config = Config::new(Nid(nid));
    if nid == 1 {
        config.peers = vec![PeerConfig {
            nid: Nid(2),
            locators: vec![prefix(2)],
            name: None,
        }];
    }
    let shim = Ilnp::new(config, Box::new(Stream::new(nid, "secrets"))).unwrap();
    assert_eq!(shim.identity(), identity(nid));
    let macs: Vec<_> = (0..interfaces)
        .map(|n| LinkLayerAddress([2, 0, 0, 0, nid as u8, n]))
        .collect();
    let nd = HostConfig::default();
    let method = Method::Slaac { nd };
    Node::new(Box::new(shim), &macs, Some(nid.to_be_bytes()), &method, nid)
}

fn router(network: usize) -> RouterNd {
    let config = RouterConfig {
        min_rtr_adv_interval: Duration::from_millis(300),
        max_rtr_adv_interval: Duration::from_millis(400),
        min_delay_between_ras: Duration::from_millis(100),
        prefixes: vec![AdvertisedPrefix::new(prefix(network).address(Nid(0)))],
        ..RouterConfig::default()
    };
    let stream = Stream::new(7, &format!("router {network}"));
    RouterNd::new(Instant::ZERO, InterfaceId(0), router_mac(network), config, stream)
}

impl World {
    fn new() -> Self {
        Self {
            now: Instant::ZERO,
            nodes: [node(1, 2), node(2, 1)],
            routers: [router(0), router(1), router(2)],
            received: [Vec::new(), Vec::new()],
            events: [Vec::new(), Vec::new()],
        }
    }

    fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.now < end {
            self.now = end.min(self.now + Duration::from_millis(1));
            for router in &mut self.routers {
                router.handle_timeout(self.now);
            }
            for node in &mut self.nodes {
                node.handle_timeout(self.now);
            }
            self.settle();
        }
    }

    fn settle(&mut self) {
        loop {
            let mut quiet = true;
            for node in [MOBILE, FIXED] {
                while let Some(packet) = self.nodes[node].poll_kernel() {
                    self.received[node].push(packet);
                }
                while let Some(event) = self.nodes[node].poll_event() {
                    self.events[node].push(event);
                }
                while let Some(frame) = self.nodes[node].poll_frame() {
                    quiet = false;
                    self.on_frame(network(node, frame.port), &frame);
                }
            }
            for network in 0..3 {
                while let Some(transmit) = self.routers[network].poll_transmit(self.now) {
                    quiet = false;
                    self.deliver(network, &transmit.packet);
                }
            }
            if quiet {
                return;
            }
        }
    }

    /// A frame that a host sent on a network: to the router, which forwards by prefix what is not its own.
    fn on_frame(&mut self, on: usize, frame: &OutboundFrame) {
        let group = frame.to.0[0] & 1 == 1;
        assert!(group || frame.to == router_mac(on), "{frame:?} is for nobody");
        let packet = &frame.packet;
        let destination = packet.ip.destination;
        if destination.is_multicast() || destination.is_unicast_link_local() {
            self.routers[on].handle_packet(self.now, packet);
            return;
        }
        let to = (0..3).find(|n| prefix(*n) == Locator::of(destination));
        self.deliver(to.expect("a packet for one of the networks"), packet);
    }

    fn deliver(&mut self, network: usize, packet: &Packet) {
        let (node, port) = if network == 2 {
            (FIXED, 0)
        } else {
            (MOBILE, network)
        };
        let bytes = Bytes::from(packet.to_vec());
        let from = router_mac(network);
        self.nodes[node].handle_frame(self.now, port, from, &bytes, ChecksumState::Complete, None);
    }

    /// The kernel of a host sends a segment of TCP to that of the other.
    fn send(&mut self, node: usize, number: u32) -> Packet {
        let packet = segment(node as u64 + 1, 2 - node as u64, number);
        let bytes = Bytes::from(packet.to_vec());
        self.nodes[node].handle_kernel(self.now, &bytes);
        self.settle();
        packet
    }

    fn counters(&self, node: usize) -> NodeCounters {
        self.nodes[node].counters()
    }
}

fn segment(from: u64, to: u64, number: u32) -> Packet {
    Packet {
        ip: Ipv6Header {
            source: identity(from),
            destination: identity(to),
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0x12345,
        },
        extensions: Vec::new(),
        payload: Payload::Tcp(TcpSegment {
            // one at both ends, so that what the other end sends is an answer
            source_port: 2000,
            destination_port: 2000,
            seq: SeqNumber(number),
            ack: SeqNumber(0),
            flags: TcpFlags::ACK,
            window: 1000,
            options: TcpOptions::default(),
            data: Data::Bytes(Bytes::from_static(b"carried without understanding")),
        }),
    }
}

/// Both hosts up, the mobile in network 0.
fn attached() -> World {
    let mut world = World::new();
    world.nodes[MOBILE].handle_carrier(world.now, 0, true);
    world.nodes[FIXED].handle_carrier(world.now, 0, true);
    world.run(Duration::from_secs(5));
    for events in &world.events {
        let ready = events.iter().any(|e| matches!(e, NodeEvent::AddressReady(_)));
        assert!(ready, "{events:?}");
    }
    world
}

#[test]
fn a_segment_comes_out_as_it_went_in() {
    let mut world = attached();
    for number in 0..3 {
        let there = world.send(MOBILE, number);
        let got = world.received[FIXED].pop().expect("it arrives");
        assert_eq!(got.to_vec(), there.to_vec());
        let back = world.send(FIXED, number);
        let got = world.received[MOBILE].pop().expect("it arrives");
        assert_eq!(got.to_vec(), back.to_vec());
    }
}

#[test]
fn a_second_network_takes_over_and_the_first_may_go() {
    let mut world = attached();
    world.send(MOBILE, 0);
    world.send(FIXED, 0);
    world.nodes[MOBILE].handle_carrier(world.now, 1, true);
    world.run(Duration::from_secs(3));
    let done = |event: &NodeEvent| match event {
        NodeEvent::Shim(ShimEvent::HandoffDone { to, .. }) => Locator::of(*to) == prefix(1),
        _ => false,
    };
    assert!(world.events[MOBILE].iter().any(done));
    world.nodes[MOBILE].handle_carrier(world.now, 0, false);
    world.run(Duration::from_secs(1));
    world.received = [Vec::new(), Vec::new()];
    let there = world.send(MOBILE, 1);
    let back = world.send(FIXED, 1);
    assert_eq!(world.received[FIXED][0].to_vec(), there.to_vec());
    assert_eq!(world.received[MOBILE][0].to_vec(), back.to_vec());
    assert_eq!(world.counters(MOBILE).no_next_hop, 0);
}

#[test]
fn what_is_not_the_identitys_is_dropped_and_counted() {
    let mut world = attached();
    let mut stranger = segment(1, 2, 0);
    stranger.ip.source = "fe80::1234".parse().unwrap();
    let bytes = Bytes::from(stranger.to_vec());
    world.nodes[MOBILE].handle_kernel(world.now, &bytes);
    world.nodes[MOBILE].handle_kernel(world.now, &bytes.slice(..30));
    // plain IPv6 to the host's real address, which its kernel does not have
    let mut plain = segment(1, 2, 0);
    plain.ip.source = "2001:db8:0:3::9".parse().unwrap();
    plain.ip.destination = prefix(0).address(Nid(1));
    world.deliver(0, &plain);
    world.settle();
    let counters = world.counters(MOBILE);
    assert_eq!(counters.not_from_identity, 1);
    assert_eq!(counters.malformed, 1);
    assert_eq!(counters.not_for_identity, 1);
    assert_eq!(world.received, [Vec::new(), Vec::new()]);
}

#[test]
fn solicitations_for_its_addresses_are_answered_to_the_neighbour() {
    let mut world = attached();
    let own = prefix(0).address(Nid(1));
    let solicitation = Packet {
        ip: Ipv6Header {
            source: world.routers[0].link_local(),
            destination: solicited_node(own),
            traffic_class: 0,
            hop_limit: 255,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload: Payload::Icmpv6(Icmpv6::NeighborSolicitation(NeighborSolicitation {
            target: own,
            options: Vec::new(),
        })),
    };
    world.deliver(0, &solicitation);
    let frame = world.nodes[MOBILE].poll_frame().expect("an answer");
    assert_eq!(frame.to, router_mac(0));
    let Payload::Icmpv6(Icmpv6::NeighborAdvertisement(answer)) = &frame.packet.payload else {
        panic!("{frame:?}")
    };
    assert_eq!(answer.target, own);
}

#[test]
fn a_host_without_a_network_sends_nothing() {
    let mut world = World::new();
    world.send(MOBILE, 0);
    world.run(Duration::from_secs(2));
    assert_eq!(world.counters(MOBILE).sent, 0);
}
