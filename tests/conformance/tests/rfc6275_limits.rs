//! Mobile IPv6 against peers that are no friends: what they can make a node remember and do.

use segue_conformance::mip6::*;
use segue_proto::InterfaceId;
use segue_proto::shim::{Inbound, Shim, ShimEvent};
use segue_wire::mobility::{BindingAcknowledgement, MobilityHeader, MobilityMessage, Test, binding_status};
use segue_wire::{ExtensionHeader, Packet, Payload};
use std::collections::BTreeSet;

fn packet(source: core::net::Ipv6Addr, destination: core::net::Ipv6Addr, message: MobilityMessage) -> Packet {
    Packet {
        payload: Payload::Mobility(Box::new(MobilityHeader::new(message, vec![]))),
        ..datagram(source, destination, b"")
    }
}

/// Talking, away, and on the direct way.
fn optimized() -> Net {
    let mut net = Net::ordinary();
    net.send(MN, CORRESPONDENT, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(5));
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
    net.take_events(MN);
    net.sent.clear();
    net
}

/// Section 11.6.2: away from home, a Home Test is the right one only if it comes through the tunnel from the home agent,
/// whatever its cookie.
#[test]
fn s11_6_2_a_home_test_outside_the_tunnel_is_dropped() {
    let mut net = optimized();
    net.run(secs(220));
    net.sent.clear();
    net.fate = Box::new(|_, p| p.ip.destination != CORRESPONDENT);
    net.hand_over(MN, 1, 2, CARE_OF_2);
    net.run(ms(500));
    let cookie = net
        .signalling()
        .into_iter()
        .find_map(|(_, _, _, h)| match h.message {
            MobilityMessage::HomeTestInit { cookie } => Some(cookie),
            _ => None,
        })
        .expect("a Home Test Init");
    let test = Test {
        nonce_index: 1,
        cookie,
        keygen_token: 0x6666,
    };
    let forged = packet(CORRESPONDENT, HOME, MobilityMessage::HomeTest(test));
    let now = net.now;
    let End::Mobile(shim) = &mut net.hosts[MN].end else {
        unreachable!()
    };
    assert_eq!(shim.inbound(now, InterfaceId(2), forged), Inbound::Taken);
    let counted = shim.counters().into_iter().find(|c| c.0 == "outside_tunnel");
    assert_eq!(counted, Some(("outside_tunnel", 1)));
    // the true one is still waited for
    net.fate = Box::new(|_, _| true);
    net.run(secs(5));
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
}

/// Sections 9.5.4 and 11.7.3: that nonces have expired is said without an authenticator, so anybody can say it. Whoever goes
/// on saying it does not keep the mobile node at it: the correspondent is given up, as one that does not answer is.
#[test]
fn s11_7_3_expired_nonces_without_end_are_given_up() {
    let mut net = optimized();
    net.fate = Box::new(|_, p| {
        !matches!(&p.payload, Payload::Mobility(h)
            if matches!(h.message, MobilityMessage::BindingUpdate(u) if !u.home_registration))
    });
    net.hand_over(MN, 1, 2, CARE_OF_2);
    let mut seen = BTreeSet::new();
    for _ in 0..1000 {
        net.run(ms(20));
        let sent = net
            .signalling()
            .into_iter()
            .filter_map(|(_, _, _, h)| match h.message {
                MobilityMessage::BindingUpdate(u) if !u.home_registration => Some(u.sequence),
                _ => None,
            });
        let new: Vec<u16> = sent.filter(|sequence| seen.insert(*sequence)).collect();
        net.sent.clear();
        for sequence in new {
            let message = MobilityMessage::BindingAcknowledgement(BindingAcknowledgement {
                status: binding_status::EXPIRED_NONCES,
                sequence,
                ..BindingAcknowledgement::default()
            });
            let mut forged = packet(CORRESPONDENT, CARE_OF_2, message);
            forged.extensions.push(ExtensionHeader::type_2_routing(HOME));
            net.inject(forged);
        }
    }
    assert!(seen.len() <= 8, "{} Binding Updates in 20 s", seen.len());
    let peer = CORRESPONDENT;
    assert!(net.take_events(MN).contains(&ShimEvent::HandoffFailed { peer }));
}
