//! Mobile IPv6 against peers that are no friends: what they can make a node remember and do.

use segue_conformance::mip6::*;
use segue_proto::InterfaceId;
use segue_proto::mip6::mn_ha_code;
use segue_proto::shim::{Inbound, Shim, ShimEvent};
use segue_wire::mobility::{
    BindingAcknowledgement, MobilityHeader, MobilityMessage, MobilityOption, Test, binding_status,
};
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

/// A refusal as the home agent would send it to `CARE_OF`.
fn refusal(status: u8, sequence: u16) -> Packet {
    let acknowledgement = BindingAcknowledgement {
        status,
        sequence,
        ..BindingAcknowledgement::default()
    };
    let mut header = MobilityHeader::new(
        MobilityMessage::BindingAcknowledgement(acknowledgement),
        vec![
            MobilityOption::ReplayProtection(1),
            MobilityOption::blank_authentication(256),
        ],
    );
    let data = header.authenticated_bytes().expect("bytes");
    header.authenticate(mn_ha_code(security().key.as_bytes(), CARE_OF, HOME, &data));
    let mut answer = Packet {
        payload: Payload::Mobility(Box::new(header)),
        ..datagram(HOME_AGENT, CARE_OF, b"")
    };
    answer.extensions.push(ExtensionHeader::type_2_routing(HOME));
    answer
}

/// The Binding Updates to the home agent since this was last asked: when, and their sequence numbers.
fn home_updates(net: &mut Net) -> Vec<(u64, u16)> {
    let sent = net.signalling().into_iter();
    let updates = sent.filter_map(|(at, _, _, h)| match h.message {
        MobilityMessage::BindingUpdate(u) if u.home_registration => {
            Some((at.as_nanos() / 1_000_000_000, u.sequence))
        }
        _ => None,
    });
    let updates = updates.collect();
    net.sent.clear();
    updates
}

/// What is at home with a key, and refuses every Binding Update with `status` as soon as it has it.
fn refused_without_end(status: u8) -> usize {
    let mut net = Net::ordinary();
    net.fate = Box::new(|_, p| p.ip.destination != HOME_AGENT);
    net.hand_over(MN, 0, 1, CARE_OF);
    let mut seen = 0;
    let mut last = 0;
    for _ in 0..1000 {
        net.run(ms(20));
        let new = home_updates(&mut net);
        seen += new.len();
        for (_, sequence) in new {
            // the last one that it claims to have had is ahead of ours, each time
            last = sequence.wrapping_add(100);
            let out_of_window = status == binding_status::SEQUENCE_OUT_OF_WINDOW;
            net.inject(refusal(status, if out_of_window { last } else { sequence }));
        }
    }
    assert!(last > 0, "the proof that there was something to refuse");
    assert_eq!(net.counts(MN).unauthenticated, 0);
    seen
}

/// Section 11.8: what a home agent refuses is sent again at once only the first time, then at the pace of retransmissions.
#[test]
fn s11_8_a_home_agent_that_goes_on_refusing_is_not_asked_every_round_trip() {
    for status in [
        binding_status::SEQUENCE_OUT_OF_WINDOW,
        binding_status::ID_MISMATCH,
    ] {
        let updates = refused_without_end(status);
        assert!(
            (3..=8).contains(&updates),
            "{status}: {updates} Binding Updates in 20 s"
        );
    }
}

/// Away, with a home agent that refuses every Binding Update for 100 s: when those were sent.
fn refused_for_a_while(status: u8) -> (Net, Vec<u64>) {
    let mut net = Net::ordinary();
    net.fate = Box::new(|_, p| p.ip.destination != HOME_AGENT);
    net.hand_over(MN, 0, 1, CARE_OF);
    let mut at = Vec::new();
    for _ in 0..1000 {
        net.run(ms(100));
        for (second, sequence) in home_updates(&mut net) {
            at.push(second);
            net.inject(refusal(status, sequence));
        }
    }
    let failed = ShimEvent::HandoffFailed { peer: HOME_AGENT };
    let told = net.take_events(MN).into_iter().filter(|e| *e == failed).count();
    assert_eq!(told, 1, "{status}");
    net.fate = Box::new(|_, _| true);
    (net, at)
}

/// Sections 11.7.3 and 11.8: a reason that may pass does not end home registration; nor is it asked for more often than
/// without an answer.
#[test]
fn s11_7_3_what_is_refused_for_now_is_asked_for_again() {
    for status in [
        binding_status::UNSPECIFIED,
        binding_status::INSUFFICIENT_RESOURCES,
        binding_status::DAD_FAILED,
    ] {
        let (mut net, at) = refused_for_a_while(status);
        assert_eq!(at, [0, 32, 64, 96], "{status}");
        net.run(secs(40));
        assert_eq!(net.mobile(MN).registered(), Some(CARE_OF), "{status}");
        let done = |e: &ShimEvent| matches!(e, ShimEvent::HandoffDone { to: CARE_OF, .. });
        assert!(net.take_events(MN).iter().any(done), "{status}");
        assert_eq!(net.counts(MN).bad_sequence, 0, "{status}");
    }
}

/// Section 11.7.3: no further Binding Update is sent where it is known that it does not help, until the node moves.
#[test]
fn s11_7_3_what_is_refused_for_good_is_left_until_the_next_move() {
    for status in [
        binding_status::PROHIBITED,
        binding_status::HOME_REGISTRATION_NOT_SUPPORTED,
        binding_status::NOT_HOME_SUBNET,
        binding_status::NOT_HOME_AGENT,
        binding_status::REGISTRATION_TYPE_CHANGE,
        binding_status::INVALID_CARE_OF_ADDRESS,
    ] {
        let (mut net, at) = refused_for_a_while(status);
        assert_eq!(at, [0], "{status}");
        net.hand_over(MN, 1, 2, CARE_OF_2);
        net.run(secs(1));
        assert_eq!(net.mobile(MN).registered(), Some(CARE_OF_2), "{status}");
    }
}

/// Section 11.3.6: packets that come the direct way are a sign that the correspondent has the binding, but anybody can send them.
/// When it has lost the binding all the same, it has it again soon.
#[test]
fn s11_3_6_forged_packets_do_not_hide_that_a_binding_is_lost() {
    let mut net = optimized();
    net.run(secs(15));
    let fresh = correspondent_end(correspondent_config(), 9);
    net.hosts[CN].end = fresh;
    net.attach(CN, 0, CORRESPONDENT);
    for _ in 0..20 {
        let mut forged = datagram(CORRESPONDENT, CARE_OF, b"forged");
        forged.extensions.push(ExtensionHeader::type_2_routing(HOME));
        net.inject(forged);
        net.run(ms(50));
        net.send(MN, CORRESPONDENT, b"heard?");
        net.run(ms(50));
    }
    net.hosts[CN].received.clear();
    net.send(MN, CORRESPONDENT, b"heard?");
    net.run(secs(1));
    assert_eq!(net.hosts[CN].received.len(), 1);
    assert!(net.correspondent(CN).binding_cache().get(HOME).is_some());
}

/// Sections 11.8 and 12: no more than MAX_UPDATE_RATE (3) messages of a type to a node within a second, however fast the mobile
/// node moves; where it stays, it is registered soon.
#[test]
fn s11_8_a_node_that_moves_ten_times_a_second_sends_no_more_than_three_messages_of_a_kind() {
    let mut net = optimized();
    let places = [(1, CARE_OF), (2, CARE_OF_2)];
    for n in 0..41 {
        let ((from, _), (to, address)) = (places[n % 2], places[(n + 1) % 2]);
        net.hand_over(MN, from, to, address);
        net.send(MN, CORRESPONDENT, b"on the way");
        net.run(ms(100));
    }
    net.run(secs(2));
    assert_eq!(net.mobile(MN).registered(), Some(CARE_OF_2));
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
    let mut sent: std::collections::BTreeMap<_, Vec<_>> = std::collections::BTreeMap::new();
    for (at, source, destination, header) in net.signalling() {
        if [HOME, CARE_OF, CARE_OF_2].contains(&source) {
            let kind = (destination, core::mem::discriminant(&header.message));
            sent.entry(format!("{kind:?}")).or_default().push(at);
        }
    }
    assert_eq!(
        sent.len(),
        3,
        "updates to both, and care-of tests: {:?}",
        sent.keys()
    );
    for (kind, times) in sent {
        assert!(times.len() >= 4, "{kind}: {}", times.len());
        for four in times.windows(4) {
            assert!(four[3].since(four[0]) >= secs(1), "{kind}: {four:?}");
        }
    }
    let postponed = net.mobile(MN).counters().into_iter().find(|c| c.0 == "postponed");
    assert!(postponed.is_some_and(|(_, n)| n > 0), "{postponed:?}");
}
