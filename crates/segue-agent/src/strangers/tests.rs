use super::*;
use crate::stack::Stack;
use bytes::Bytes;
use segue_proto::InterfaceId;
use segue_proto::address::AddressEvent;
use segue_proto::contract::LocalAddress;
use segue_proto::ilnp::{Config, Ilnp, PeerConfig};
use segue_proto::mip6::{CorrespondentConfig, MobileNodeConfig, SecurityAssociation};
use segue_proto::random::{SecretRng as _, Stream};
use segue_proto::shim::Shim as _;
use segue_wire::ilnp::{Locator, Nid};
use segue_wire::ilnp_udp::NonceInUdp;
use segue_wire::mobility::{MobilityHeader, MobilityMessage};
use segue_wire::raw::{ChecksumState, RawPayload};
use segue_wire::{ExtensionHeader, Ipv6Header, Packet, Payload};

fn look(bytes: &[u8]) -> Option<Head> {
    Head::look(bytes, Some(ilnp_udp::DEFAULT_PORT))
}

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const HERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0x2aa, 0, 0, 2);
const THERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0x2aa, 0, 0, 1);
const HOME_AGENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 0xa);
const HOME_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 1, 7);

fn packet(source: Ipv6Addr, destination: Ipv6Addr, payload: Payload) -> Packet {
    Packet {
        ip: Ipv6Header {
            source,
            destination,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload,
    }
}

/// A datagram without a checksum that has to be right.
fn datagram(source: Ipv6Addr, destination: Ipv6Addr) -> Packet {
    let raw = RawPayload {
        next_header: 17,
        bytes: vec![1, 2, 3, 4, 0, 12, 0, 0, 5, 6, 7, 8].into(),
        checksum: ChecksumState::Partial,
        segment_size: None,
    };
    let mut packet = packet(source, destination, Payload::Raw(raw));
    let pseudo = packet.pseudo_header();
    let Payload::Raw(raw) = &mut packet.payload else {
        return packet;
    };
    raw.complete(&pseudo);
    packet
}

fn test_init(source: Ipv6Addr, destination: Ipv6Addr) -> Packet {
    let init = MobilityMessage::CareOfTestInit { cookie: 7 };
    let header = MobilityHeader::new(init, Vec::new());
    packet(source, destination, Payload::Mobility(Box::new(header)))
}

fn local(address: Ipv6Addr) -> LocalAddress {
    LocalAddress {
        interface: InterfaceId(0),
        address,
    }
}

fn host(own: Ipv6Addr, peer: Ipv6Addr) -> Ilnp {
    let config = Config {
        peers: vec![PeerConfig {
            nid: Nid::of(peer),
            locators: vec![Locator::of(peer)],
            name: None,
        }],
        ..Config::new(Nid::of(own))
    };
    let mut host = Ilnp::new(
        config,
        Box::new(Stream::new(u64::from(own.segments()[7]), "test")),
    )
    .unwrap();
    host.handle_address(NOW, &AddressEvent::Ready(local(own)));
    host
}

/// A packet of `from` to the identity of `to`, as it is on the wire.
fn sent(from: &mut Ilnp, to: Ipv6Addr) -> Bytes {
    let packet = datagram(from.identity(), to);
    let out = from.outbound(NOW, packet);
    let out = out.or_else(|| {
        from.handle_found(NOW, to, &[]);
        from.poll_transmit(NOW)
    });
    out.expect("a packet").packet.to_vec().into()
}

/// A first packet of a host that nobody knows, in a network of the number.
fn first_packet(secrets: &mut Stream, network: u16) -> Bytes {
    let nid = secrets.secret_u64() & !(0x3 << 56) | 1;
    let source = Locator(0x2001_0000_0000_0000 | u64::from(network) << 16).address(Nid(nid));
    let mut packet = datagram(source, HERE);
    let nonce = Nonce::Bits32(secrets.secret_u32().to_be_bytes());
    let option = segue_wire::ipv6::Ipv6Option::IlnpNonce {
        nonce,
        rule: segue_wire::PseudoRule::Ipv6,
    };
    packet
        .extensions
        .push(ExtensionHeader::DestinationOptions(vec![option]));
    packet.to_vec().into()
}

/// A stack, and a peer with a session.
fn with_session() -> (Stack, Ilnp) {
    let mut peer = host(THERE, HERE);
    let here = host(HERE, THERE);
    let identity = here.identity();
    let mut stack = Stack::new(Role::Ilnp(Box::new(here)));
    let first = sent(&mut peer, identity);
    take(&mut stack, NOW, &first);
    assert_eq!(stack.counters().to_kernel, 1);
    (stack, peer)
}

fn take(stack: &mut Stack, now: Instant, bytes: &Bytes) {
    stack.handle_wire(now, InterfaceId(0), bytes.clone(), ChecksumState::Complete, None);
    while stack.poll_kernel().is_some() || stack.poll_wire().is_some() || stack.poll_event().is_some() {}
}

fn sessions(stack: &Stack) -> usize {
    let Role::Ilnp(shim) = stack.role() else { return 0 };
    shim.correspondents().count()
}

#[test]
fn a_network_begins_forty_sessions_at_once_and_twenty_a_second() {
    let (mut stack, mut peer) = with_session();
    let identity = stack.identity().unwrap();
    let mut secrets = Stream::new(3, "attacker");
    for second in 0..=2 {
        let now = NOW + Duration::from_secs(second);
        for _ in 0..5000 {
            take(&mut stack, now, &first_packet(&mut secrets, 9));
        }
        assert_eq!(sessions(&stack), 1 + 40 + 20 * second as usize);
    }
    assert_eq!(stack.counters().too_many_strangers, 3 * 5000 - 80);
    // who talks already notices nothing, and neither does another network
    let now = NOW + Duration::from_secs(2);
    let before = stack.counters().to_kernel;
    for _ in 0..100 {
        let bytes = sent(&mut peer, identity);
        take(&mut stack, now, &bytes);
    }
    assert_eq!(stack.counters().to_kernel, before + 100);
    take(&mut stack, now, &first_packet(&mut secrets, 10));
    assert_eq!(sessions(&stack), 1 + 80 + 1);
}

#[test]
fn all_networks_together_begin_five_hundred_at_once_and_five_hundred_a_second() {
    let (mut stack, _) = with_session();
    let mut secrets = Stream::new(3, "attacker");
    for second in 0..=2 {
        for n in 0..20_000 {
            let now = NOW + Duration::from_secs(second);
            take(&mut stack, now, &first_packet(&mut secrets, n));
        }
        // that of the session was the first
        let counters = stack.counters();
        assert_eq!(
            counters.received - counters.too_many_strangers,
            500 * (1 + second)
        );
        // of those who are not heard again, which the peer has not been either
        assert_eq!(sessions(&stack), 256);
    }
}

#[test]
fn an_answer_to_a_call_is_known_before_its_nonce_is() {
    let mut caller = host(THERE, HERE);
    let mut called = host(HERE, THERE);
    let (to, back) = (called.identity(), caller.identity());
    let Packet { ip, .. } = Packet::parse(&sent(&mut caller, to)).unwrap();
    assert_eq!(ip.destination, HERE);
    let answer = sent(&mut called, back);
    let head = look(&answer).unwrap();
    let role = Role::Ilnp(Box::new(caller));
    assert!(!may_begin(&role, &head));
    // from elsewhere it is somebody else's
    let elsewhere = Head {
        source: Locator(0x2001_0db8_0009_0000).address(Nid::of(HERE)),
        ..head
    };
    assert!(may_begin(&role, &elsewhere));
}

#[test]
fn tests_and_updates_for_a_correspondent_are_counted_unless_its_binding_says_so() {
    let mut fixed = Fixed::new(
        None,
        Some(CorrespondentConfig::default()),
        Box::new(Stream::new(1, "test")),
    );
    fixed.handle_own_addresses(NOW, &[local(HERE)]);
    let mut stack = Stack::new(Role::Fixed(Box::new(fixed)));
    let bytes = Bytes::from(test_init(THERE, HERE).to_vec());
    for _ in 0..1000 {
        stack.handle_wire(NOW, InterfaceId(0), bytes.clone(), ChecksumState::Complete, None);
    }
    let answers = core::iter::from_fn(|| stack.poll_wire()).count();
    assert_eq!(answers, 40);
    let mut used = datagram(THERE, HERE);
    used.extensions.push(ExtensionHeader::home_address(HOME_ADDRESS));
    let head = look(&used.to_vec()).unwrap();
    assert_eq!(head.home_address, Some(HOME_ADDRESS));
    assert!(may_begin(stack.role(), &head));
}

#[test]
fn at_a_mobile_node_its_home_agent_is_known_and_what_is_in_its_tunnel_counts_for_itself() {
    let config = MobileNodeConfig {
        home_address: HOME_ADDRESS,
        home_agent: HOME_AGENT,
        security: SecurityAssociation::new(256, "0123456789abcdef"),
        ..MobileNodeConfig::default()
    };
    let node = MobileNode::new(config, Box::new(Stream::new(1, "test")));
    let role = Role::MobileNode(Box::new(node));
    let begins = |packet: Packet| may_begin(&role, &look(&packet.to_vec()).unwrap());
    let tunnelled = |inner: Packet| packet(HOME_AGENT, HERE, Payload::Ipv6(Box::new(inner)));
    assert!(!begins(test_init(HOME_AGENT, HERE)));
    assert!(begins(test_init(THERE, HERE)));
    assert!(begins(tunnelled(test_init(THERE, HOME_ADDRESS))));
    // data is what it is there for
    assert!(!begins(tunnelled(datagram(THERE, HOME_ADDRESS))));
    assert!(!begins(datagram(THERE, HERE)));
}

#[test]
fn headers_that_are_cut_off_or_wrong_are_odd_and_never_a_panic() {
    let mut secrets = Stream::new(5, "fuzz");
    let whole = first_packet(&mut secrets, 1).to_vec();
    assert!(look(&whole).unwrap().nonce.is_some());
    for length in 0..whole.len() {
        let head = look(&whole[..length]);
        assert_eq!(head.is_some(), length >= 40, "{length}");
        assert!(head.is_none_or(|head| head.is_odd == (length < 48)), "{length}");
    }
    for _ in 0..100_000 {
        let mut bytes = [0; 96];
        secrets.fill(&mut bytes);
        bytes[6] = [0, 17, 41, 43, 60, 135][usize::from(bytes[6]) % 6];
        bytes[40] = [0, 41, 43, 60, 135][usize::from(bytes[40]) % 5];
        bytes[41] &= 3;
        let _ = look(&bytes);
    }
}

#[test]
fn a_nonce_in_udp_is_one_too() {
    let mut secrets = Stream::new(6, "first");
    let packet = Packet::parse_bytes(first_packet(&mut secrets, 1)).unwrap();
    let Some(carried) = NonceInUdp::of(&packet) else {
        panic!("a packet with a nonce")
    };
    let with_option = look(&packet.to_vec()).unwrap();
    for port in [ilnp_udp::DEFAULT_PORT, 53] {
        let bytes = carried.packet(packet.ip, port).to_vec();
        let expected = (port == ilnp_udp::DEFAULT_PORT)
            .then_some(with_option.nonce)
            .flatten();
        assert_eq!(look(&bytes).unwrap().nonce, expected, "{port}");
        for length in 40..bytes.len() {
            let seen = look(&bytes[..length]).unwrap().nonce;
            assert!(seen.is_none() || seen == expected, "{length}");
        }
    }
}

#[test]
fn a_fragment_header_of_a_whole_packet_hides_nothing() {
    let mut secrets = Stream::new(7, "first");
    let whole = first_packet(&mut secrets, 1);
    let before = look(&whole).unwrap();
    let with = |fragment: [u8; 8]| {
        let mut bytes = whole.to_vec();
        bytes[6] = FRAGMENT;
        bytes.splice(40..40, fragment);
        look(&bytes).unwrap()
    };
    // its second byte is reserved, and so are two bits of the offset's
    let seen = with([DESTINATION_OPTIONS, 0xff, 0, 6, 1, 2, 3, 4]);
    assert_eq!(seen, before);
    assert!(seen.nonce.is_some());
    // what follows a piece is no beginning of anything
    for (offset, more) in [(0, 1), (1, 0)] {
        let seen = with([DESTINATION_OPTIONS, 0, 0, offset << 3 | more, 1, 2, 3, 4]);
        assert_eq!((seen.nonce, seen.is_odd), (None, false));
    }
}
