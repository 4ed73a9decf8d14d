//! RFC 2473 section 8: what routers say of packets in the tunnel goes on to whoever sent what is in them.

use segue_conformance::mip6::*;
use segue_proto::mip6::MobileNodeConfig;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::{Packet, Payload};
use std::net::Ipv6Addr;

/// A router that nobody knows.
const ROUTER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);

/// Away and registered, without route optimisation.
fn away() -> Net {
    let mut net = Net::of(
        MobileNodeConfig {
            route_optimization: false,
            ..mobile_config(HOME, HOME_AGENT)
        },
        correspondent_config(),
        agent_config(HOME_AGENT, HOME),
    );
    net.attach(MN, 0, HOME);
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(1));
    assert_eq!(net.mobile(MN).registered(), Some(CARE_OF));
    net.sent.clear();
    net
}

/// The last packet in a tunnel from `entry`.
fn tunnelled(net: &Net, entry: Ipv6Addr) -> Packet {
    let mut packets = net.sent.iter().rev().map(|(_, p)| p);
    let is_it = |p: &&Packet| p.ip.source == entry && matches!(p.payload, Payload::Ipv6(_));
    packets.find(is_it).expect("a packet in the tunnel").clone()
}

fn inner(packet: &Packet) -> &Packet {
    match &packet.payload {
        Payload::Ipv6(inner) => inner,
        other => panic!("{other:?}"),
    }
}

fn error(about: &Packet, message: impl Fn(bytes::Bytes) -> Icmpv6) -> Packet {
    Packet {
        payload: Payload::Icmpv6(message(Icmpv6::quote(about))),
        ..datagram(ROUTER, about.ip.source, b"")
    }
}

fn too_big(mtu: u32) -> impl Fn(bytes::Bytes) -> Icmpv6 {
    move |invoking| Icmpv6::PacketTooBig { mtu, invoking }
}

fn unreachable(invoking: bytes::Bytes) -> Icmpv6 {
    Icmpv6::DestinationUnreachable { code: 0, invoking }
}

/// What came up to a host as ICMPv6.
fn heard(net: &mut Net, host: usize) -> Vec<(Ipv6Addr, Icmpv6)> {
    let received = net.hosts[host].received.drain(..);
    let messages = received.filter_map(|p| match p.payload {
        Payload::Icmpv6(message) => Some((p.ip.source, message)),
        _ => None,
    });
    messages.collect()
}

static LARGE: [u8; 1400] = [7; 1400];
static TOO_LARGE: [u8; 1440] = [7; 1440];

/// Section 8.2, by the home agent: the MTU less the tunnel's header; all else is that the address cannot be reached.
#[test]
fn the_correspondent_hears_of_errors_in_the_tunnel_to_the_mobile_node() {
    let mut net = away();
    net.send(CN, HOME, &LARGE);
    net.run(secs(1));
    let packet = tunnelled(&net, HOME_AGENT);
    net.hosts[CN].received.clear();
    net.inject(error(&packet, too_big(1400)));
    net.run(secs(1));
    let about = Icmpv6::quote(&Packet {
        payload: Payload::Ipv6(Box::new(inner(&packet).clone())),
        ..packet.clone()
    });
    let heard_of = heard(&mut net, CN);
    let [(from, Icmpv6::PacketTooBig { mtu: 1360, invoking })] = &heard_of[..] else {
        panic!("{heard_of:?}")
    };
    assert_eq!(*from, HOME_AGENT);
    assert_eq!(
        invoking[..],
        about[40..],
        "what is in the tunnel, as far as it was quoted"
    );
    for message in [unreachable as fn(bytes::Bytes) -> Icmpv6, |invoking| {
        Icmpv6::TimeExceeded { code: 0, invoking }
    }] {
        net.inject(error(&packet, message));
        net.run(secs(1));
        let heard_of = heard(&mut net, CN);
        assert!(
            matches!(
                heard_of[..],
                [(HOME_AGENT, Icmpv6::DestinationUnreachable { code: 3, .. })]
            ),
            "{heard_of:?}"
        );
    }
    assert_eq!(net.agents[0].counts().tunnel_errors_relayed, 3);
}

/// By the mobile node, to its transports, which know its home address and make room for the tunnel themselves.
#[test]
fn transports_of_the_mobile_node_hear_of_errors_in_the_tunnel_to_the_home_agent() {
    let mut net = away();
    net.send(MN, CORRESPONDENT, &LARGE);
    net.run(secs(1));
    let packet = tunnelled(&net, CARE_OF);
    net.inject(error(&packet, too_big(1400)));
    net.inject(error(&packet, unreachable));
    net.run(secs(1));
    let destinations: Vec<_> = net.hosts[MN].received.iter().map(|p| p.ip.destination).collect();
    assert_eq!(destinations, [HOME; 2]);
    let heard_of = heard(&mut net, MN);
    let [
        (_, Icmpv6::PacketTooBig { mtu: 1400, invoking }),
        (_, Icmpv6::DestinationUnreachable { code: 3, .. }),
    ] = &heard_of[..]
    else {
        panic!("{heard_of:?}")
    };
    assert_eq!(invoking[..40], inner(&packet).to_vec()[..40]);
    assert_eq!(net.counts(MN).tunnel_errors_relayed, 2);
}

/// Who has not seen the tunnel cannot say what is in it; and what every link must carry is never too big (section 7.1).
#[test]
fn errors_about_what_was_never_sent_are_dropped() {
    let mut net = away();
    net.send(CN, HOME, &LARGE);
    net.send(MN, CORRESPONDENT, b"small");
    net.run(secs(1));
    let to_node = tunnelled(&net, HOME_AGENT);
    let to_agent = tunnelled(&net, CARE_OF);
    net.hosts[CN].received.clear();
    net.hosts[MN].received.clear();
    let mut elsewhere = to_node.clone();
    elsewhere.ip.destination = CARE_OF_2;
    let mut not_ours = to_agent.clone();
    not_ours.ip.destination = CORRESPONDENT;
    let mut about_an_error = to_node.clone();
    about_an_error.payload = Payload::Ipv6(Box::new(error(inner(&to_node), too_big(1300))));
    let Payload::Ipv6(quoted) = &mut about_an_error.payload else {
        unreachable!()
    };
    quoted.ip.destination = HOME;
    for packet in [
        error(&elsewhere, too_big(1400)),
        error(&not_ours, unreachable),
        error(&about_an_error, unreachable),
        error(&to_agent, too_big(1300)),
    ] {
        net.inject(packet);
    }
    net.run(secs(1));
    assert_eq!((heard(&mut net, CN).len(), heard(&mut net, MN).len()), (0, 0));
    assert_eq!(net.agents[0].counts().tunnel_errors_dropped, 2);
    assert_eq!(net.counts(MN).tunnel_errors_dropped, 2);
}

/// RFC 4443 section 2.4 f: ten at once, ten a second, whoever asks for them.
#[test]
fn errors_of_the_home_agent_are_limited() {
    let mut net = away();
    net.send(CN, HOME, &LARGE);
    net.run(secs(1));
    let packet = tunnelled(&net, HOME_AGENT);
    net.hosts[CN].received.clear();
    for _ in 0..100 {
        net.inject(error(&packet, too_big(1400)));
    }
    // and its own among them
    net.send(CN, HOME, &TOO_LARGE);
    net.run(ms(50));
    assert_eq!(heard(&mut net, CN).len(), 10);
    let counts = net.agents[0].counts();
    assert_eq!((counts.tunnel_errors_relayed, counts.errors_withheld), (10, 91));
    net.run(ms(500));
    for _ in 0..100 {
        net.inject(error(&packet, unreachable));
    }
    net.run(ms(50));
    assert_eq!(heard(&mut net, CN).len(), 5);
}

/// RFC 2473 section 3.1: the entry of the tunnel forwards, so it takes one off the hop limit; and if none is left it says so
/// like any router (RFC 4443 section 3.3).
#[test]
fn the_entry_of_the_tunnel_is_a_hop() {
    let mut net = away();
    let with_hops = |hop_limit: u8| {
        let mut packet = datagram(CORRESPONDENT, HOME, b"in");
        packet.ip.hop_limit = hop_limit;
        packet
    };
    net.inject(with_hops(2));
    net.run(secs(1));
    assert_eq!(inner(&tunnelled(&net, HOME_AGENT)).ip.hop_limit, 1);
    net.sent.clear();
    net.hosts[MN].received.clear();
    net.inject(with_hops(1));
    net.run(secs(1));
    assert_eq!(net.hosts[MN].received.len(), 0);
    assert_eq!(net.agents[0].counts().tunnel_limit, 1);
    let heard_of = heard(&mut net, CN);
    let [(HOME_AGENT, Icmpv6::TimeExceeded { code: 0, invoking })] = &heard_of[..] else {
        panic!("{heard_of:?}")
    };
    assert_eq!(invoking[..], with_hops(1).to_vec()[..]);
}
