use super::*;
use bytes::Bytes;
use segue_proto::Duration;
use segue_proto::mip6::{HomeAgentConfig, MobileNode, MobileNodeConfig, SecurityAssociation, ServedNode};
use segue_wire::raw::{ChecksumState, RawPayload};
use segue_wire::{Ipv6Header, Payload};
use std::collections::BTreeSet;

const HOME_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 1, 7);
const HOME_AGENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 0xa);
const CARE_OF_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 1, 7);
/// The kernel's own.
const OWN: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 2);
const ELSEWHERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 9);
const NOW: Instant = Instant::from_nanos(1_000_000_000);

fn local(address: Ipv6Addr) -> LocalAddress {
    LocalAddress {
        interface: InterfaceId(0),
        address,
    }
}

fn stream(seed: u64) -> Box<Stream> {
    Box::new(Stream::new(seed, "test"))
}

fn security() -> SecurityAssociation {
    SecurityAssociation::new(256, "0123456789abcdef")
}

/// As the agent has it.
fn correspondent_config() -> CorrespondentConfig {
    CorrespondentConfig {
        translate_errors: true,
        ..CorrespondentConfig::default()
    }
}

fn mobile() -> MobileNode {
    let config = MobileNodeConfig {
        home_address: HOME_ADDRESS,
        home_agent: HOME_AGENT,
        security: security(),
        correspondent: correspondent_config(),
        ..MobileNodeConfig::default()
    };
    let mut node = MobileNode::new(config, stream(1));
    node.handle_address(NOW, &AddressEvent::Ready(local(CARE_OF_ADDRESS)));
    node
}

fn fixed(home_agent: bool, correspondent: bool) -> Fixed {
    let home_agent = home_agent.then(|| {
        HomeAgent::new(HomeAgentConfig {
            address: HOME_AGENT,
            mobile_nodes: vec![ServedNode {
                home_address: HOME_ADDRESS,
                security: security(),
            }],
            duplicate_address_detection: Duration::ZERO,
            ..HomeAgentConfig::default()
        })
    });
    let config = correspondent.then(correspondent_config);
    let mut fixed = Fixed::new(home_agent, config, stream(2));
    fixed.handle_own_addresses(NOW, &[local(OWN)]);
    fixed
}

fn datagram(source: Ipv6Addr, destination: Ipv6Addr, segment_size: Option<u16>, length: usize) -> Packet {
    Packet {
        ip: Ipv6Header {
            source,
            destination,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload: Payload::Raw(RawPayload {
            next_header: 17,
            bytes: vec![7; length].into(),
            checksum: ChecksumState::Complete,
            segment_size,
        }),
    }
}

/// As it is on the wire: bytes, of which the receiver knows nothing.
fn raw(packet: &Packet) -> Packet {
    Packet::parse_raw(&Bytes::from(packet.to_vec()), ChecksumState::Complete, None).unwrap()
}

/// All that both have to say to each other, until they say no more. What came for the kernel.
fn exchange(node: &mut MobileNode, fixed: &mut Fixed) -> Vec<Packet> {
    let mut to_kernel = Vec::new();
    loop {
        let mut quiet = true;
        while let Some(transmit) = node.poll_transmit(NOW) {
            quiet = false;
            fixed.handle_wire(NOW, raw(&transmit.packet));
        }
        let interfaces: Vec<Packet> =
            core::iter::from_fn(|| fixed.poll_interface().map(|transmit| transmit.packet)).collect();
        for packet in core::iter::from_fn(|| fixed.poll_routed()).chain(interfaces) {
            quiet = false;
            let packet = understand(raw(&packet), ALL).unwrap();
            node.inbound(NOW, InterfaceId(0), packet);
        }
        to_kernel.extend(core::iter::from_fn(|| fixed.poll_kernel()));
        if quiet {
            return to_kernel;
        }
    }
}

#[test]
fn a_home_address_is_routed_to_the_agent_while_it_is_bound() {
    let (mut node, mut fixed) = (mobile(), fixed(true, false));
    assert!(!fixed.take_change());
    assert_eq!(exchange(&mut node, &mut fixed), []);
    assert!(fixed.take_change() && !fixed.take_change());
    let [binding] = fixed.bindings().collect::<Vec<_>>()[..] else {
        panic!("one binding")
    };
    assert_eq!(
        (binding.care_of_address, binding.at),
        (CARE_OF_ADDRESS, HOME_AGENT)
    );
    fixed.handle_timeout(binding.expires);
    assert!(fixed.take_change());
    assert_eq!(fixed.bindings().count(), 0);
    assert_eq!(fixed.poll_timeout(), None);
}

#[test]
fn what_is_forwarded_to_a_home_address_goes_into_the_tunnel_in_segments() {
    let (mut node, mut fixed) = (mobile(), fixed(true, false));
    exchange(&mut node, &mut fixed);
    fixed.handle_kernel(NOW, datagram(ELSEWHERE, HOME_ADDRESS, Some(100), 258));
    let out: Vec<Packet> = core::iter::from_fn(|| fixed.poll_routed()).collect();
    let lengths: Vec<usize> = out.iter().map(Packet::buffer_len).collect();
    assert_eq!(lengths, [188, 188, 138]);
    for packet in out {
        assert_eq!(
            (packet.ip.source, packet.ip.destination),
            (HOME_AGENT, CARE_OF_ADDRESS)
        );
        let packet = understand(raw(&packet), ALL).unwrap();
        let Inbound::Up(inner) = node.inbound(NOW, InterfaceId(0), packet) else {
            panic!("it is for the home address")
        };
        assert_eq!((inner.ip.source, inner.ip.destination), (ELSEWHERE, HOME_ADDRESS));
    }
    // and back: out of the tunnel, the kernel forwards it
    let packet = node
        .outbound(NOW, datagram(HOME_ADDRESS, ELSEWHERE, None, 20))
        .unwrap()
        .packet;
    fixed.handle_wire(NOW, raw(&packet));
    let forwarded = fixed.poll_kernel().unwrap();
    assert_eq!(
        (forwarded.ip.source, forwarded.ip.destination),
        (HOME_ADDRESS, ELSEWHERE)
    );
    // not from somewhere else
    let mut forged = packet;
    forged.ip.source = ELSEWHERE;
    fixed.handle_wire(NOW, raw(&forged));
    assert_eq!(fixed.poll_kernel(), None);
}

#[test]
fn at_the_home_agents_address_there_is_nothing_else() {
    let mut fixed = fixed(true, false);
    let echo = |payload| Packet {
        payload,
        ..datagram(ELSEWHERE, HOME_AGENT, None, 0)
    };
    fixed.handle_wire(NOW, raw(&datagram(ELSEWHERE, HOME_AGENT, None, 20)));
    assert_eq!(fixed.poll_kernel(), None);
    let request = segue_wire::icmpv6::Echo {
        identifier: 1,
        sequence: 2,
        data: Bytes::from_static(b"there?"),
    };
    let request = echo(Payload::Icmpv6(segue_wire::icmpv6::Icmpv6::EchoRequest(request)));
    fixed.handle_wire(NOW, raw(&request));
    assert_eq!(fixed.poll_kernel(), Some(request));
    let counters = fixed.counters();
    let (_, counts) = counters.iter().find(|(part, _)| *part == "packets").unwrap();
    assert!(counts.contains(&("no_service", 1)), "{counts:?}");
}

#[test]
fn a_correspondent_beside_the_home_agent_is_reached_directly() {
    let (mut node, mut fixed) = (mobile(), fixed(true, true));
    exchange(&mut node, &mut fixed);
    let first = node
        .outbound(NOW, datagram(HOME_ADDRESS, OWN, None, 20))
        .unwrap()
        .packet;
    assert_eq!(first.ip.destination, HOME_AGENT);
    fixed.handle_wire(NOW, raw(&first));
    // tests through the tunnel and beside it, and what they are for: none of it is the kernel's
    let to_kernel = exchange(&mut node, &mut fixed);
    assert_eq!(to_kernel.len(), 1);
    assert!(node.is_optimized(OWN));
    let ats: BTreeSet<Ipv6Addr> = fixed.bindings().map(|b| b.at).collect();
    assert_eq!(ats, [HOME_AGENT, OWN].into());
    let direct = node
        .outbound(NOW, datagram(HOME_ADDRESS, OWN, None, 20))
        .unwrap()
        .packet;
    assert_eq!((direct.ip.source, direct.ip.destination), (CARE_OF_ADDRESS, OWN));
    fixed.handle_wire(NOW, raw(&direct));
    let up = fixed.poll_kernel().unwrap();
    assert_eq!((up.ip.source, up.ip.destination), (HOME_ADDRESS, OWN));
    fixed.handle_kernel(NOW, datagram(OWN, HOME_ADDRESS, Some(1000), 4008));
    // a device cuts it up
    let back = fixed.poll_interface().unwrap().packet;
    assert_eq!(
        (back.ip.destination, back.final_destination()),
        (CARE_OF_ADDRESS, HOME_ADDRESS)
    );
    assert!(matches!(back.payload, Payload::Raw(raw) if raw.segment_size == Some(1000)));
}

/// A mobile node and a correspondent with the direct way between them, and a packet of each that takes it.
fn direct() -> (MobileNode, Fixed, [Packet; 2]) {
    let (mut node, mut fixed) = (mobile(), fixed(true, true));
    exchange(&mut node, &mut fixed);
    let first = node.outbound(NOW, datagram(HOME_ADDRESS, OWN, None, 20)).unwrap();
    fixed.handle_wire(NOW, raw(&first.packet));
    exchange(&mut node, &mut fixed);
    let there = node
        .outbound(NOW, datagram(HOME_ADDRESS, OWN, None, 200))
        .unwrap();
    fixed.handle_kernel(NOW, datagram(OWN, HOME_ADDRESS, None, 200));
    let back = fixed.poll_interface().unwrap();
    (node, fixed, [there.packet, back.packet])
}

/// A router's error about a packet, which it quotes to this length.
fn time_exceeded(about: &Packet, length: usize) -> Packet {
    let mut packet = datagram(ELSEWHERE, about.ip.source, None, 0);
    packet.payload = Payload::Icmpv6(segue_wire::icmpv6::Icmpv6::TimeExceeded {
        code: 0,
        invoking: Bytes::from(about.to_vec()).slice(..length.min(about.buffer_len())),
    });
    packet
}

fn quoted_in(packet: &Packet) -> Bytes {
    match &packet.payload {
        Payload::Icmpv6(message) => message.invoking().unwrap().clone(),
        other => panic!("an error: {other:?}"),
    }
}

#[test]
fn errors_about_the_direct_way_are_the_transport_s_with_the_addresses_that_it_knows() {
    let (mut node, mut fixed, [there, back]) = direct();
    let original = Bytes::from(datagram(HOME_ADDRESS, OWN, None, 200).to_vec());
    for length in [1000, 100, 40 + 24 + 8] {
        let error = raw(&time_exceeded(&there, length));
        let Inbound::Up(up) = node.inbound(NOW, InterfaceId(0), error) else {
            panic!("an error for the transport")
        };
        assert_eq!((up.ip.source, up.ip.destination), (ELSEWHERE, HOME_ADDRESS));
        let expected = length.min(there.buffer_len()) - 24;
        assert_eq!(quoted_in(&up), original.slice(..expected));
        assert!(Packet::parse(&up.to_vec()).is_ok());
    }
    let original = Bytes::from(datagram(OWN, HOME_ADDRESS, None, 200).to_vec());
    for length in [1000, 100, 40 + 24 + 8] {
        fixed.handle_wire(NOW, raw(&time_exceeded(&back, length)));
        let up = fixed.poll_kernel().unwrap();
        assert_eq!((up.ip.source, up.ip.destination), (ELSEWHERE, OWN));
        let expected = length.min(back.buffer_len()) - 24;
        assert_eq!(quoted_in(&up), original.slice(..expected));
    }
}

#[test]
fn errors_about_what_was_not_sent_are_no_transport_s() {
    let (mut node, mut fixed, [there, back]) = direct();
    let changes: [fn(&mut Packet); 3] = [
        |quoted| quoted.ip.source = ELSEWHERE,
        |quoted| quoted.ip.destination = ELSEWHERE,
        |quoted| quoted.extensions.clear(),
    ];
    for change in changes {
        let mut about = there.clone();
        change(&mut about);
        let mut error = time_exceeded(&about, 1000);
        error.ip.destination = CARE_OF_ADDRESS;
        let taken = node.inbound(NOW, InterfaceId(0), raw(&error));
        let up_to_home = matches!(&taken, Inbound::Up(p) if p.ip.destination == HOME_ADDRESS);
        assert!(!up_to_home, "{taken:?}");
        let mut about = back.clone();
        change(&mut about);
        let mut error = time_exceeded(&about, 1000);
        error.ip.destination = OWN;
        // the kernel's own, perhaps: as it came
        let before = quoted_in(&error);
        fixed.handle_wire(NOW, raw(&error));
        assert_eq!(quoted_in(&fixed.poll_kernel().unwrap()), before);
    }
}

#[test]
fn a_flow_has_one_label_in_the_tunnel() {
    // RFC 6438 section 3
    let mut node = mobile();
    let label = |node: &mut MobileNode, to: Ipv6Addr, flow_label: u32| {
        let mut packet = datagram(HOME_ADDRESS, to, None, 20);
        packet.ip.flow_label = flow_label;
        node.outbound(NOW, packet).unwrap().packet.ip.flow_label
    };
    let one = label(&mut node, OWN, 5);
    assert_eq!(label(&mut node, OWN, 5), one);
    let others = [label(&mut node, OWN, 6), label(&mut node, ELSEWHERE, 5)];
    assert!(
        one != 0 && one <= 0xf_ffff && !others.contains(&one),
        "{one} {others:?}"
    );
    assert_eq!(label(&mut node, OWN, 0), 0);
}

#[test]
fn a_home_address_option_without_a_binding_goes_nowhere() {
    let mut fixed = fixed(false, true);
    let mut packet = datagram(CARE_OF_ADDRESS, OWN, None, 20);
    let option = segue_wire::ExtensionHeader::home_address(HOME_ADDRESS);
    packet.extensions.push(option);
    for _ in 0..10 {
        fixed.handle_wire(NOW, raw(&packet));
    }
    assert_eq!(fixed.poll_kernel(), None);
    // one error, and no more for a while
    let error = fixed.poll_interface().unwrap();
    assert_eq!(error.packet.ip.destination, CARE_OF_ADDRESS);
    assert_eq!(fixed.poll_interface(), None);
    let counters = fixed.counters();
    let (_, counts) = counters
        .iter()
        .find(|(part, _)| *part == "correspondent")
        .unwrap();
    assert!(counts.contains(&("no_binding", 10)), "{counts:?}");
}

#[test]
fn what_came_for_want_of_a_binding_leaves_as_it_is() {
    let mut fixed = fixed(false, true);
    fixed.handle_kernel(NOW, datagram(ELSEWHERE, HOME_ADDRESS, None, 20));
    assert_eq!(fixed.poll_interface(), None);
    fixed.prefer(InterfaceId(3));
    let packet = datagram(ELSEWHERE, HOME_ADDRESS, None, 20);
    fixed.handle_kernel(NOW, packet.clone());
    let interface = InterfaceId(3);
    assert_eq!(fixed.poll_interface(), Some(Transmit { interface, packet }));
}

#[test]
fn a_correspondent_is_one_at_each_address_of_the_kernels() {
    let mut every = fixed(false, true);
    assert_eq!(every.correspondent_addresses().collect::<Vec<_>>(), [OWN]);
    every.handle_own_addresses(NOW, &[local(ELSEWHERE)]);
    assert_eq!(every.correspondent_addresses().collect::<Vec<_>>(), [ELSEWHERE]);
    let config = CorrespondentConfig {
        address: OWN,
        ..CorrespondentConfig::default()
    };
    let mut one = Fixed::new(None, Some(config), stream(3));
    one.handle_own_addresses(NOW, &[local(OWN), local(ELSEWHERE)]);
    assert_eq!(one.correspondent_addresses().collect::<Vec<_>>(), [OWN]);
    let many: Vec<LocalAddress> = (0..200u16)
        .map(|n| local(Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, n)))
        .collect();
    every.handle_own_addresses(NOW, &many);
    assert_eq!(every.correspondent_addresses().count(), MOST_CORRESPONDENTS);
}

#[test]
fn a_registration_that_is_replayed_is_refused_ten_times_a_second_at_most() {
    let (mut node, mut fixed) = (mobile(), fixed(true, false));
    let update = raw(&node.poll_transmit(NOW).expect("a Binding Update").packet);
    let mut answers_at = |now: Instant| {
        for _ in 0..1000 {
            fixed.handle_wire(now, update.clone());
        }
        core::iter::from_fn(|| fixed.poll_routed()).count()
    };
    // the first is taken, and acknowledged
    assert_eq!(answers_at(NOW), 1 + 10);
    assert_eq!(answers_at(NOW + Duration::from_secs(1)), 10);
    let [binding] = fixed.bindings().collect::<Vec<_>>()[..] else {
        panic!("one binding")
    };
    assert_eq!(binding.care_of_address, CARE_OF_ADDRESS);
    let (_, counts) = &fixed.counters()[0];
    assert!(counts.contains(&("errors_withheld", 2000 - 1 - 20)), "{counts:?}");
}
