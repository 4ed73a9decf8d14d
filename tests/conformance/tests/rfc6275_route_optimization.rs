//! RFC 6275: return routability, correspondent registration, the direct way; both ends mobile.

mod lifetimes;
mod two_mobile_nodes;

use segue_conformance::mip6::*;
use segue_proto::mip6::MobileNodeConfig;
use segue_proto::shim::ShimEvent;
use segue_wire::ipv6::Ipv6Option;
use segue_wire::mobility::{MobilityHeader, MobilityMessage, MobilityOption, binding_error, binding_status};
use segue_wire::{ExtensionHeader, Packet, Payload};

fn routed(peer: core::net::Ipv6Addr, to: core::net::Ipv6Addr) -> ShimEvent {
    ShimEvent::RouteChanged { peer, to }
}

fn is_update_to(header: &MobilityHeader, home_registration: bool) -> bool {
    matches!(header.message, MobilityMessage::BindingUpdate(u) if u.home_registration == home_registration)
}

/// The mobile node has talked to the correspondent, moved away, and told it.
fn optimized(change: impl Fn(&mut MobileNodeConfig)) -> Net {
    let mut config = mobile_config(HOME, HOME_AGENT);
    change(&mut config);
    let mut net = Net::of(config, correspondent_config(), agent_config(HOME_AGENT, HOME));
    net.attach(MN, 0, HOME);
    net.send(MN, CORRESPONDENT, b"hello");
    net.run(secs(1));
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(1));
    net.take_received(CN);
    net
}

fn names(net: &Net) -> Vec<&'static str> {
    net.signalling()
        .iter()
        .map(|(_, _, _, header)| match header.message {
            MobilityMessage::BindingRefreshRequest => "BRR",
            MobilityMessage::HomeTestInit { .. } => "HoTI",
            MobilityMessage::CareOfTestInit { .. } => "CoTI",
            MobilityMessage::HomeTest(_) => "HoT",
            MobilityMessage::CareOfTest(_) => "CoT",
            MobilityMessage::BindingUpdate(_) => "BU",
            MobilityMessage::BindingAcknowledgement(_) => "BA",
            MobilityMessage::BindingError { .. } => "BE",
            MobilityMessage::Unknown { .. } => "?",
        })
        .collect()
}

/// Sections 5.2.5 and 11.7.2: home registration, both tests at once, the home test by the home agent, Binding Update.
#[test]
fn s5_2_5_return_routability_and_the_correspondent_registration() {
    let mut net = optimized(|_| {});
    // what goes through the tunnel is sent twice, once on each side of the home agent
    assert_eq!(
        names(&net),
        [
            "BU", "BA", "HoTI", "CoTI", "HoTI", "CoT", "HoT", "HoT", "BU", "BA"
        ]
    );
    let signalling = net.signalling();
    let from = |name: &str, n: usize| {
        let all: Vec<_> = names(&net)
            .iter()
            .zip(&signalling)
            .filter(|(is, _)| **is == name)
            .map(|(_, s)| (s.1, s.2))
            .collect();
        all[n]
    };
    assert_eq!(from("HoTI", 0), (HOME, CORRESPONDENT));
    assert_eq!(from("CoTI", 0), (CARE_OF, CORRESPONDENT));
    assert_eq!(from("HoT", 0), (CORRESPONDENT, HOME));
    assert_eq!(from("CoT", 0), (CORRESPONDENT, CARE_OF));
    assert_eq!(from("BU", 1), (CARE_OF, CORRESPONDENT));
    let (_, _, _, update) = &signalling[8];
    assert!(is_update_to(update, false));
    assert!(matches!(
        update.options[..],
        [
            MobilityOption::NonceIndices { .. },
            MobilityOption::BindingAuthorizationData(_)
        ]
    ));
    // BU-BA 2, HoTI-HoT 4, BU-BA 2 one-way delays
    let events = net.take_events(MN);
    let expected = [
        ShimEvent::HandoffBegun {
            from: Some(HOME),
            to: CARE_OF,
        },
        routed(CORRESPONDENT, CORRESPONDENT),
        ShimEvent::HandoffDone {
            to: CARE_OF,
            delay: DELAY * 8,
        },
    ];
    assert_eq!(events, expected);
    assert_eq!(net.take_events(CN), [routed(HOME, CARE_OF)]);
    let binding = net
        .correspondent(CN)
        .binding_cache()
        .get(HOME)
        .copied()
        .expect("binding");
    assert_eq!(binding.care_of_address, CARE_OF);
    let left = binding.expires.since(net.now);
    assert!(left > secs(418) && left <= secs(420), "{left}");
}

/// Sections 11.3.1 and 9.3.2: Home Address option one way, type 2 routing header the other, home addresses above.
#[test]
fn s9_3_2_packets_take_the_direct_way_both_ways() {
    let mut net = optimized(|_| {});
    net.sent.clear();
    net.send(MN, CORRESPONDENT, b"out");
    net.send(CN, HOME, b"in");
    net.run(secs(1));
    let shape: Vec<_> = net
        .sent
        .iter()
        .map(|(_, p)| (p.ip.source, p.ip.destination, p.extensions.clone()))
        .collect();
    let expected = [
        (CARE_OF, CORRESPONDENT, vec![ExtensionHeader::home_address(HOME)]),
        (
            CORRESPONDENT,
            CARE_OF,
            vec![ExtensionHeader::type_2_routing(HOME)],
        ),
    ];
    assert_eq!(shape, expected);
    assert_eq!(net.take_received(CN), [(HOME, CORRESPONDENT, b"out".to_vec())]);
    assert_eq!(net.take_received(MN), [(CORRESPONDENT, HOME, b"in".to_vec())]);
    let (mobile, correspondent) = (net.counts(MN), net.counts(CN));
    assert_eq!((mobile.optimized_out, mobile.optimized_in), (1, 1));
    assert_eq!((correspondent.optimized_out, correspondent.optimized_in), (1, 1));
}

/// A handoff from one foreign link to another: packets go by the home agent meanwhile; the home keygen token is still
/// good (section 5.2.5), so the care-of test is all.
#[test]
fn s5_2_5_a_fresh_home_keygen_token_saves_the_home_test() {
    let mut net = optimized(|_| {});
    net.take_events(MN);
    net.sent.clear();
    net.hand_over(MN, 1, 2, CARE_OF_2);
    net.send(MN, CORRESPONDENT, b"meanwhile");
    net.run(secs(1));
    assert_eq!(names(&net), ["BU", "BA", "CoTI", "CoT", "BU", "BA"]);
    let tunnelled = net.sent.iter().any(|(_, p)| {
        p.ip.source == CARE_OF_2
            && p.ip.destination == HOME_AGENT
            && matches!(&p.payload, Payload::Ipv6(inner) if matches!(inner.payload, Payload::Udp(_)))
    });
    assert!(tunnelled, "until the correspondent knows");
    let events = net.take_events(MN);
    let expected = [
        ShimEvent::HandoffBegun {
            from: Some(CARE_OF),
            to: CARE_OF_2,
        },
        routed(CORRESPONDENT, HOME_AGENT),
        routed(CORRESPONDENT, CORRESPONDENT),
        ShimEvent::HandoffDone {
            to: CARE_OF_2,
            delay: DELAY * 6,
        },
    ];
    assert_eq!(events, expected);
    // and with a config that asks for it every time
    let mut net = optimized(|config| config.reuse_home_keygen_token = false);
    net.sent.clear();
    net.hand_over(MN, 1, 2, CARE_OF_2);
    net.run(secs(1));
    assert!(names(&net).contains(&"HoTI"));
}

/// Sections 5.2.7 and 12: tokens are not used beyond MAX_TOKEN_LIFETIME.
#[test]
fn s5_2_7_a_token_too_old_is_asked_for_again() {
    let mut net = optimized(|_| {});
    net.run(secs(210));
    net.sent.clear();
    net.hand_over(MN, 1, 2, CARE_OF_2);
    net.run(secs(1));
    assert!(names(&net).contains(&"HoTI"), "{:?}", names(&net));
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
}

/// Section 11.8: unanswered tests are sent again after 1 s, 2 s, ..., each with a new cookie; in the end the peer is given
/// up, and the handoff is done without it.
#[test]
fn s11_8_tests_are_repeated_and_given_up() {
    let mut net = Net::ordinary();
    net.fate = Box::new(
        |_, p| !matches!(&p.payload, Payload::Mobility(h) if matches!(h.message, MobilityMessage::CareOfTestInit { .. })),
    );
    net.send(MN, CORRESPONDENT, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(30));
    let inits: Vec<_> = net
        .signalling()
        .iter()
        .filter_map(|(at, _, _, header)| match header.message {
            MobilityMessage::CareOfTestInit { cookie } => Some((at.as_nanos() / 1_000_000, cookie)),
            _ => None,
        })
        .collect();
    let times: Vec<u64> = inits.iter().map(|i| i.0).collect();
    assert_eq!(times, [20, 1020, 3020, 7020]);
    let mut cookies: Vec<u64> = inits.iter().map(|i| i.1).collect();
    cookies.sort_unstable();
    cookies.dedup();
    assert_eq!(cookies.len(), 4);
    let events = net.take_events(MN);
    assert!(
        matches!(events[..], [
            ShimEvent::HandoffBegun { .. },
            ShimEvent::HandoffFailed { peer: CORRESPONDENT },
            ShimEvent::HandoffDone { delay, .. },
        ] if delay == ms(15_020)),
        "{events:?}"
    );
    // the home test was answered once, and not asked for again
    assert_eq!(names(&net).iter().filter(|n| **n == "HoTI").count(), 2);
    // traffic goes by the home agent; after a while it is tried again
    net.send(MN, CORRESPONDENT, b"still here");
    net.run(secs(1));
    assert_eq!(net.take_received(CN).len(), 2);
    net.fate = Box::new(|_, _| true);
    net.run(secs(60));
    net.send(MN, CORRESPONDENT, b"and now");
    net.run(secs(1));
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
}

/// A correspondent that has a binding of the old care-of address and cannot be told the new one is asked to delete it, by
/// the home agent; or it would send to where nobody is for as long as the binding lives.
#[test]
fn s5_2_5_a_stale_binding_is_deleted_by_the_home_keygen_token() {
    let mut net = optimized(|_| {});
    net.fate = Box::new(
        |_, p| !matches!(&p.payload, Payload::Mobility(h) if matches!(h.message, MobilityMessage::CareOfTestInit { .. })),
    );
    net.hand_over(MN, 1, 2, CARE_OF_2);
    net.run(secs(10));
    net.send(CN, HOME, b"lost");
    net.run(secs(10));
    assert_eq!(net.take_received(MN), []);
    assert!(net.correspondent(CN).binding_cache().get(HOME).is_none());
    net.send(CN, HOME, b"found");
    net.run(secs(1));
    assert_eq!(net.take_received(MN), [(CORRESPONDENT, HOME, b"found".to_vec())]);
    // told once, and the handoff was done without waiting for it
    let events = net.take_events(MN);
    let failed = ShimEvent::HandoffFailed { peer: CORRESPONDENT };
    assert_eq!(events.iter().filter(|e| **e == failed).count(), 1);
    assert!(matches!(events.last(), Some(ShimEvent::HandoffDone { delay, .. }) if *delay == ms(15_020)));
}

/// A Binding Update whose acknowledgement is lost is sent again with a greater number (section 11.8).
#[test]
fn s11_8_an_unacknowledged_binding_update_is_repeated() {
    let mut net = Net::ordinary();
    let mut lost = 0;
    net.fate = Box::new(move |_, p| {
        let from_correspondent = p.ip.source == CORRESPONDENT
            && matches!(&p.payload, Payload::Mobility(h) if matches!(h.message, MobilityMessage::BindingAcknowledgement(_)));
        lost += u32::from(from_correspondent);
        !(from_correspondent && lost <= 2)
    });
    net.send(MN, CORRESPONDENT, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(10));
    let sequences: Vec<u16> = net
        .signalling()
        .iter()
        .filter_map(|(_, _, _, h)| match h.message {
            MobilityMessage::BindingUpdate(u) if !u.home_registration => Some(u.sequence),
            _ => None,
        })
        .collect();
    assert_eq!(sequences, [1, 2, 3]);
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
    assert_eq!(net.counts(CN).bad_sequence, 0);
}

/// Section 9.3.3 and 11.3.6: a correspondent that lost its bindings says so, and is told again.
#[test]
fn s9_3_3_a_home_address_without_a_binding_is_a_binding_error() {
    let mut net = optimized(|_| {});
    net.run(secs(10));
    net.hosts[CN].end = correspondent_end(correspondent_config(), 77);
    net.attach(CN, 0, CORRESPONDENT);
    net.take_events(MN);
    net.send(MN, CORRESPONDENT, b"lost");
    net.run(secs(1));
    assert_eq!(net.take_received(CN), []);
    assert_eq!(net.counts(CN).no_binding, 1);
    let error = net
        .last_sent(|m| matches!(m, MobilityMessage::BindingError { .. }))
        .expect("Binding Error");
    assert_eq!((error.ip.source, error.ip.destination), (CORRESPONDENT, CARE_OF));
    let Payload::Mobility(header) = &error.payload else {
        unreachable!()
    };
    let expected = MobilityMessage::BindingError {
        status: binding_error::UNKNOWN_BINDING,
        home_address: HOME,
    };
    assert_eq!(header.message, expected);
    // the mobile node's old home token was another node key's: it is refused, and asked for again
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
    net.send(MN, CORRESPONDENT, b"found");
    net.run(secs(1));
    assert_eq!(net.take_received(CN), [(HOME, CORRESPONDENT, b"found".to_vec())]);
}

/// Section 11.3.5: a correspondent that does not know mobility headers is left in peace, and reached by the home agent.
#[test]
fn s11_3_5_a_correspondent_without_mobile_ipv6_is_reached_by_the_home_agent() {
    let mut config = correspondent_config();
    config.route_optimization = false;
    let mut net = Net::of(
        mobile_config(HOME, HOME_AGENT),
        config,
        agent_config(HOME_AGENT, HOME),
    );
    net.attach(MN, 0, HOME);
    net.send(MN, CORRESPONDENT, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(1));
    let fell_back = ShimEvent::FellBack { peer: CORRESPONDENT };
    assert!(net.take_events(MN).contains(&fell_back));
    let before = net.counts(MN).test_inits_sent;
    net.run(secs(100));
    net.send(MN, CORRESPONDENT, b"still");
    net.run(secs(1));
    assert_eq!(net.counts(MN).test_inits_sent, before);
    assert_eq!(net.take_received(CN).len(), 2);
    assert!(!net.mobile(MN).is_optimized(CORRESPONDENT));
}

/// Without an acknowledgement asked for, the direct way begins with the Binding Update (section 11.7.2).
#[test]
fn s11_7_2_correspondents_need_not_acknowledge() {
    let mut net = optimized(|config| config.acknowledge_correspondents = false);
    assert_eq!(names(&net).iter().filter(|n| **n == "BA").count(), 1);
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
    let done = net.take_events(MN).into_iter().find_map(|e| match e {
        ShimEvent::HandoffDone { delay, .. } => Some(delay),
        _ => None,
    });
    assert_eq!(done, Some(DELAY * 6));
}

/// A Home Address option stands behind a routing header and before a fragment header (section 6.3).
#[test]
fn s6_3_the_home_address_option_has_its_place() {
    let mut net = optimized(|_| {});
    let mut packet: Packet = datagram(HOME, CORRESPONDENT, b"x");
    packet.extensions = vec![
        ExtensionHeader::HopByHop(vec![]),
        ExtensionHeader::Fragment {
            offset: 0,
            more: false,
            identification: 1,
        },
    ];
    let End::Mobile(shim) = &mut net.hosts[MN].end else {
        unreachable!()
    };
    let sent = segue_proto::shim::Shim::outbound(&mut **shim, net.now, packet).expect("direct way");
    assert!(matches!(
        sent.packet.extensions[..],
        [
            ExtensionHeader::HopByHop(_),
            ExtensionHeader::DestinationOptions(_),
            ExtensionHeader::Fragment { .. }
        ]
    ));
}

/// Section 9.3.1: the Home Address option has served when the source is replaced; other options of the same header have not.
#[test]
fn s9_3_1_other_destination_options_go_up() {
    let mut net = optimized(|_| {});
    let other = Ipv6Option::Unknown {
        option_type: 0x1e,
        data: vec![1, 2, 3, 4].into(),
    };
    for (options, rest) in [
        (
            vec![Ipv6Option::HomeAddress(HOME), other.clone()],
            vec![ExtensionHeader::DestinationOptions(vec![other])],
        ),
        (vec![Ipv6Option::HomeAddress(HOME)], vec![]),
    ] {
        let mut packet = datagram(CARE_OF, CORRESPONDENT, b"direct");
        packet
            .extensions
            .push(ExtensionHeader::DestinationOptions(options));
        net.hosts[CN].received.clear();
        net.inject(packet);
        net.run(secs(1));
        let up = net.hosts[CN].received.pop_front().expect("a packet");
        assert_eq!((up.ip.source, up.extensions), (HOME, rest));
    }
}
