//! RFC 6275: home registration, the tunnel, returning home; with the authentication of RFC 4285.

use segue_conformance::mip6::*;
use segue_proto::contract::LocalAddress;
use segue_proto::mip6::{HomeAgentEvent, ReplayProtection};
use segue_proto::shim::ShimEvent;
use segue_proto::{Duration, Instant, InterfaceId};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::mobility::{MobilityMessage, MobilityOption, binding_status};
use segue_wire::{ExtensionHeader, Packet, Payload};
use std::net::Ipv6Addr;

/// An address that another interface has on the home link.
const OTHER_AT_HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);

fn is_update(message: &MobilityMessage) -> bool {
    matches!(message, MobilityMessage::BindingUpdate(_))
}

fn is_acknowledgement(message: &MobilityMessage) -> bool {
    matches!(message, MobilityMessage::BindingAcknowledgement(_))
}

/// Without route optimisation, away at `CARE_OF`, registered.
fn away(change: impl Fn(&mut segue_proto::mip6::MobileNodeConfig)) -> Net {
    let mut config = mobile_config(HOME, HOME_AGENT);
    config.route_optimization = false;
    change(&mut config);
    let mut net = Net::of(config, correspondent_config(), agent_config(HOME_AGENT, HOME));
    net.attach(MN, 0, HOME);
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(ms(100));
    assert_eq!(net.mobile(MN).registered(), Some(CARE_OF));
    net
}

#[test]
fn s4_1_at_home_packets_pass_as_they_are_and_nothing_is_signalled() {
    let mut net = Net::ordinary();
    net.send(MN, CORRESPONDENT, b"out");
    net.send(CN, HOME, b"in");
    net.run(secs(10));
    assert_eq!(net.take_received(CN), [(HOME, CORRESPONDENT, b"out".to_vec())]);
    assert_eq!(net.take_received(MN), [(CORRESPONDENT, HOME, b"in".to_vec())]);
    assert_eq!(net.sent.len(), 2);
    assert!(net.sent.iter().all(|(_, p)| p.extensions.is_empty()));
    assert_eq!(net.take_events(MN), []);
}

#[test]
fn s11_7_1_a_home_registration_and_the_tunnel_both_ways() {
    let mut net = away(|_| {});
    let update = net.last_sent(is_update).expect("Binding Update");
    assert_eq!(update.ip.source, CARE_OF);
    assert_eq!(update.ip.destination, HOME_AGENT);
    assert_eq!(update.extensions, [ExtensionHeader::home_address(HOME)]);
    let Payload::Mobility(header) = &update.payload else {
        unreachable!()
    };
    let MobilityMessage::BindingUpdate(message) = header.message else {
        unreachable!()
    };
    assert!(message.acknowledge && message.home_registration);
    assert_eq!(message.lifetime, 900, "3600 s in units of 4 s");
    assert!(
        header
            .message_authentication()
            .is_some_and(|o| o.spi == 256 && o.data.len() == 12)
    );
    // section 9.5.4: the acknowledgement comes by a type 2 routing header
    let acknowledgement = net.last_sent(is_acknowledgement).expect("acknowledgement");
    assert_eq!(acknowledgement.ip.destination, CARE_OF);
    assert_eq!(
        acknowledgement.extensions,
        [ExtensionHeader::type_2_routing(HOME)]
    );
    assert!(net.agents[0].intercepts(net.now, HOME));
    let bound = HomeAgentEvent::Bound {
        home_address: HOME,
        care_of_address: CARE_OF,
    };
    assert_eq!(net.agent_events, [(Instant::ZERO + DELAY, bound)]);
    let begun = ShimEvent::HandoffBegun {
        from: Some(HOME),
        to: CARE_OF,
    };
    let done = ShimEvent::HandoffDone {
        to: CARE_OF,
        delay: DELAY * 2,
    };
    assert_eq!(net.take_events(MN), [begun, done]);

    // sections 11.3.1, 10.4.2, 10.4.5: transports see home addresses, the wire a tunnel
    net.sent.clear();
    net.send(MN, CORRESPONDENT, b"out");
    net.send(CN, HOME, b"in");
    net.run(secs(1));
    assert_eq!(net.take_received(CN), [(HOME, CORRESPONDENT, b"out".to_vec())]);
    assert_eq!(net.take_received(MN), [(CORRESPONDENT, HOME, b"in".to_vec())]);
    let tunnelled: Vec<_> = net
        .sent
        .iter()
        .filter(|(_, p)| matches!(p.payload, Payload::Ipv6(_)))
        .map(|(_, p)| (p.ip.source, p.ip.destination))
        .collect();
    assert_eq!(tunnelled, [(CARE_OF, HOME_AGENT), (HOME_AGENT, CARE_OF)]);
    assert_eq!(
        (net.counts(MN).tunnelled_out, net.counts(MN).tunnelled_in),
        (1, 1)
    );
}

/// Section 11.8: 1.5 s for a first registration, then twice as long each time up to 32 s, and on and on; each with a
/// greater sequence number.
#[test]
fn s11_8_unanswered_binding_updates_are_sent_again_at_a_slowing_pace() {
    let mut net = Net::ordinary();
    net.fate = Box::new(|_, packet| packet.ip.destination != HOME_AGENT);
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(200));
    let updates: Vec<_> = net
        .signalling()
        .iter()
        .filter_map(|(at, _, _, header)| match header.message {
            MobilityMessage::BindingUpdate(update) => Some((at.as_nanos() / 1_000_000, update.sequence)),
            _ => None,
        })
        .collect();
    let expected = [
        (0, 1),
        (1500, 2),
        (4500, 3),
        (10_500, 4),
        (22_500, 5),
        (46_500, 6),
        (78_500, 7),
        (110_500, 8),
        (142_500, 9),
        (174_500, 10),
    ];
    assert_eq!(updates, expected);
    // told once
    let failed = ShimEvent::HandoffFailed { peer: HOME_AGENT };
    let told = net.take_events(MN).into_iter().filter(|e| *e == failed).count();
    assert_eq!(told, 1);
    // and it recovers
    net.fate = Box::new(|_, _| true);
    net.run(secs(40));
    assert_eq!(net.mobile(MN).registered(), Some(CARE_OF));
}

/// Section 11.8 and 11.7.3: an acknowledgement of an earlier transmission counts; with a home agent that takes longer than
/// the timeout it is the one that comes.
#[test]
fn s11_7_3_an_acknowledgement_of_any_transmission_counts() {
    let mut config = agent_config(HOME_AGENT, HOME);
    config.home_agent_delay = ms(2000);
    let mut mobile = mobile_config(HOME, HOME_AGENT);
    mobile.route_optimization = false;
    let mut net = Net::of(mobile, correspondent_config(), config);
    net.attach(MN, 0, HOME);
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(10));
    let done = ShimEvent::HandoffDone {
        to: CARE_OF,
        delay: ms(2020),
    };
    assert!(net.take_events(MN).contains(&done));
    assert_eq!(net.counts(MN).binding_updates_sent, 2);
    // the answer to the retransmission finds nothing that waits for it
    assert_eq!(net.counts(MN).unexpected, 1);
}

/// Section 10.3.1: before the first binding the home agent detects duplicates, which takes 1 s; a change of the binding
/// does not.
#[test]
fn s10_3_1_only_the_first_registration_waits_for_duplicate_address_detection() {
    let mut agent = agent_config(HOME_AGENT, HOME);
    agent.duplicate_address_detection = secs(1);
    agent.home_agent_delay = ms(5);
    let mut mobile = mobile_config(HOME, HOME_AGENT);
    mobile.route_optimization = false;
    let mut net = Net::of(mobile, correspondent_config(), agent);
    net.attach(MN, 0, HOME);
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(5));
    net.hand_over(MN, 1, 0, CARE_OF_2);
    net.run(secs(5));
    let delays: Vec<Duration> = net
        .take_events(MN)
        .into_iter()
        .filter_map(|e| match e {
            ShimEvent::HandoffDone { delay, .. } => Some(delay),
            _ => None,
        })
        .collect();
    assert_eq!(delays, [ms(1025), ms(25)]);
}

/// Section 11.5.5: deregistration, after which nothing is intercepted.
#[test]
fn s11_5_5_back_home_the_binding_is_deleted() {
    let mut net = away(|_| {});
    net.take_events(MN);
    net.hand_over(MN, 1, 0, HOME);
    net.run(secs(1));
    let update = net.last_sent(is_update).expect("Binding Update");
    assert_eq!((update.ip.source, update.extensions.len()), (HOME, 0));
    let Payload::Mobility(header) = &update.payload else {
        unreachable!()
    };
    assert!(
        matches!(header.message, MobilityMessage::BindingUpdate(u) if u.lifetime == 0 && u.home_registration)
    );
    assert!(!net.agents[0].intercepts(net.now, HOME));
    assert_eq!(net.mobile(MN).registered(), None);
    assert!(net.mobile(MN).is_at_home());
    let events = net.take_events(MN);
    assert!(
        matches!(
            events[..],
            [
                ShimEvent::HandoffBegun {
                    from: Some(CARE_OF),
                    to: HOME
                },
                ShimEvent::AnnounceAddress(LocalAddress {
                    interface: InterfaceId(0),
                    address: HOME
                }),
                ShimEvent::HandoffDone { to: HOME, .. },
            ]
        ),
        "{events:?}"
    );
    net.sent.clear();
    net.send(CN, HOME, b"in");
    net.send(MN, CORRESPONDENT, b"out");
    net.run(secs(1));
    assert_eq!(net.take_received(MN).len() + net.take_received(CN).len(), 2);
    assert_eq!(net.sent.len(), 2, "no tunnel");
}

/// Section 11.5.5: the home address belongs on the interface that is on the home link, without duplicate address detection while
/// there is a binding, since the home agent defends it; and nowhere any more once the node has left.
#[test]
fn s11_5_5_home_by_another_interface_the_home_address_is_there_too() {
    let local = LocalAddress {
        interface: InterfaceId(2),
        address: HOME,
    };
    let asks = |net: &mut Net| -> Vec<ShimEvent> {
        let events = net.take_events(MN).into_iter();
        let is_asked = |e: &ShimEvent| {
            matches!(
                e,
                ShimEvent::FormAddress(_) | ShimEvent::AssignAddress(_) | ShimEvent::WithdrawAddress(_)
            )
        };
        events.filter(is_asked).collect()
    };
    let mut net = away(|config| config.home_lifetime = secs(8));
    net.take_events(MN);
    net.hand_over(MN, 1, 2, OTHER_AT_HOME);
    net.run(secs(1));
    assert_eq!(asks(&mut net), [ShimEvent::AssignAddress(local)]);
    assert!(net.mobile(MN).is_at_home());
    net.hand_over(MN, 2, 1, CARE_OF);
    net.run(secs(1));
    assert_eq!(asks(&mut net), [ShimEvent::WithdrawAddress(local)]);

    // section 11.5.5 again: "SHOULD" detect duplicates once all bindings have expired
    net.detach(MN, 1);
    net.run(secs(60));
    assert_eq!(net.mobile(MN).registered(), None);
    net.link_up(MN, 2);
    net.attach(MN, 2, OTHER_AT_HOME);
    net.run(secs(1));
    assert_eq!(asks(&mut net), [ShimEvent::FormAddress(local)]);
}

/// Section 11.7.1: refreshed before it ends, at the pace that the home agent advises (section 6.2.4).
#[test]
fn s11_7_1_a_binding_is_refreshed_before_it_ends() {
    let mut net = away(|config| config.home_lifetime = secs(100));
    net.run(secs(1000));
    let updates = net.counts(MN).binding_updates_sent;
    assert!((13..=15).contains(&updates), "one in 75 s: {updates}");
    assert!(net.agents[0].intercepts(net.now, HOME));
    // a refresh is no handoff
    assert_eq!(net.counts(MN).handoffs_begun, 1);

    let mut agent = agent_config(HOME_AGENT, HOME);
    agent.refresh_advice = Some(secs(20));
    let mut net = Net::of(mobile_config(HOME, HOME_AGENT), correspondent_config(), agent);
    net.attach(MN, 0, HOME);
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(101));
    assert_eq!(net.counts(MN).binding_updates_sent, 1 + 5);
}

/// Section 11.7.1: what could not be refreshed when it was time, since there was no link, is when there is one.
#[test]
fn s11_7_1_a_refresh_that_falls_into_a_loss_of_the_link_is_made_up_for() {
    for lost_at in [74, 70] {
        let mut net = away(|config| config.home_lifetime = secs(100));
        net.run(secs(lost_at));
        net.detach(MN, 1);
        net.run(secs(8));
        net.link_up(MN, 1);
        net.attach(MN, 1, CARE_OF);
        net.run(secs(1));
        assert_eq!(net.counts(MN).binding_updates_sent, 2, "lost at {lost_at} s");
        net.run(secs(60));
        assert!(net.agents[0].intercepts(net.now, HOME), "lost at {lost_at} s");
        // back where it was, which is no handoff
        assert_eq!(net.counts(MN).handoffs_begun, 1);
        assert_eq!(net.counts(MN).bindings_expired, 0);
    }
}

/// Sections 11.7.3 and 11.8: a binding lasts from the update that was acknowledged, and not from the first that was not.
#[test]
fn s11_7_3_a_home_agent_that_was_away_for_longer_than_the_lifetime_has_the_binding_again_for_good() {
    let mut net = away(|config| config.home_lifetime = secs(40));
    net.fate = Box::new(|_, packet| packet.ip.destination != HOME_AGENT);
    net.run(secs(120));
    assert!(!net.agents[0].intercepts(net.now, HOME));
    net.fate = Box::new(|_, _| true);
    // the slowest pace is 32 s
    net.run(secs(33));
    assert!(net.agents[0].intercepts(net.now, HOME));
    net.run(secs(600));
    assert!(net.agents[0].intercepts(net.now, HOME));
    assert_eq!(net.mobile(MN).registered(), Some(CARE_OF));
    assert_eq!(net.counts(MN).bindings_expired, 1);
}

/// Section 10.3.1: a mobile node that vanishes is forgotten when the lifetime is over.
#[test]
fn s9_1_a_binding_ends_with_its_lifetime() {
    let mut net = away(|config| config.home_lifetime = secs(40));
    net.fate = Box::new(|_, packet| packet.ip.source != CARE_OF);
    net.run(secs(39));
    assert!(net.agents[0].intercepts(net.now, HOME));
    net.run(secs(2));
    assert!(!net.agents[0].intercepts(net.now, HOME));
    assert_eq!(net.agents[0].counts().bindings_expired, 1);
    assert_eq!(
        net.agent_events.last().map(|e| e.1),
        Some(HomeAgentEvent::Unbound { home_address: HOME })
    );
}

/// Section 11.5.4: packets at a care-of address that is no longer the registered one are accepted as long as it is the
/// node's own.
#[test]
fn s11_5_4_what_is_on_its_way_to_the_old_address_is_accepted() {
    let mut net = away(|config| config.handoff = segue_proto::mip6::HandoffPolicy::OnNewRouter);
    // tunnelled to the old address at the moment that the new one is chosen
    net.send(CN, HOME, b"late");
    net.run(DELAY);
    net.attach(MN, 0, CARE_OF_2);
    assert_eq!(net.mobile(MN).care_of_address(), Some(CARE_OF_2));
    net.run(secs(1));
    assert_eq!(net.take_received(MN), [(CORRESPONDENT, HOME, b"late".to_vec())]);
    // without the old address there is nobody to take it
    net.send(CN, HOME, b"lost");
    net.run(DELAY);
    net.detach(MN, 0);
    net.run(secs(1));
    assert_eq!(net.take_received(MN), []);
    assert_eq!(net.nowhere, 1);
}

/// Section 10.4.5: the tunnel's source must be the care-of address.
#[test]
fn s10_4_5_the_home_agent_forwards_nothing_from_elsewhere() {
    let mut net = away(|_| {});
    let inner = datagram(HOME, CORRESPONDENT, b"forged");
    let forged = |source, inner: &Packet| Packet {
        payload: Payload::Ipv6(Box::new(inner.clone())),
        ..datagram(source, HOME_AGENT, b"")
    };
    net.inject(forged(address(6, 6), &inner));
    // and nobody's packets but those of its mobile nodes
    net.inject(forged(
        CARE_OF,
        &datagram(address(1, 8), CORRESPONDENT, b"forged"),
    ));
    net.run(secs(1));
    assert_eq!(net.take_received(CN), []);
    assert_eq!(net.agents[0].counts().tunnel_source_mismatch, 2);
    // nor does the mobile node take a tunnel from anybody else
    net.inject(Packet {
        payload: Payload::Ipv6(Box::new(datagram(CORRESPONDENT, HOME, b"forged"))),
        ..datagram(address(6, 6), CARE_OF, b"")
    });
    assert_eq!(net.take_received(MN), []);
    assert_eq!(net.counts(MN).tunnel_source_mismatch, 1);
}

/// Section 9.5.1: after a loss of memory the mobile node's numbers begin anew; the home agent says where it is.
#[test]
fn s11_7_3_a_mobile_node_that_forgot_its_sequence_number_is_told() {
    let mut net = away(|config| config.home_lifetime = secs(8));
    net.run(secs(60));
    let mut config = mobile_config(HOME, HOME_AGENT);
    config.route_optimization = false;
    net.hosts[MN].end = mobile_end(config, 9);
    net.attach(MN, 1, CARE_OF_2);
    net.run(secs(1));
    assert_eq!(net.agents[0].counts().bad_sequence, 1);
    assert_eq!(net.mobile(MN).registered(), Some(CARE_OF_2));
    let refused = net.signalling().into_iter().any(|(_, _, _, header)| {
        matches!(header.message, MobilityMessage::BindingAcknowledgement(ack)
            if ack.status == binding_status::SEQUENCE_OUT_OF_WINDOW && ack.sequence > 5)
    });
    assert!(refused);
}

/// RFC 4285 section 6: a clock that is off is set by the home agent's, and then it goes on.
#[test]
fn rfc_4285_timestamps_protect_too() {
    let mut agent = agent_config(HOME_AGENT, HOME);
    agent.mobile_nodes[0].security.replay_protection = ReplayProtection::Timestamp;
    let mut net = Net::of(mobile_config(HOME, HOME_AGENT), correspondent_config(), agent);
    net.attach(MN, 0, HOME);
    net.run(secs(20));
    // the mobile node does not know that it must
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(1));
    assert_eq!(net.agents[0].counts().bad_timestamp, 1);
    assert_eq!(net.mobile(MN).registered(), Some(CARE_OF));
    let update = net.last_sent(is_update).expect("Binding Update");
    let Payload::Mobility(header) = &update.payload else {
        unreachable!()
    };
    let Some(MobilityOption::ReplayProtection(timestamp)) = header.options.first() else {
        panic!("{header:?}")
    };
    assert_eq!(timestamp >> 32, 20);
    // a replay is neither newer
    let before = net.agents[0].counts();
    net.inject(update.clone());
    assert_eq!(net.agents[0].counts().bad_timestamp, before.bad_timestamp + 1);
    // nor, after a while, close enough
    net.run(secs(30));
    net.inject(update);
    assert_eq!(net.agents[0].counts().bad_timestamp, before.bad_timestamp + 2);
    assert_eq!(net.agents[0].counts().bindings_accepted, before.bindings_accepted);
}

/// RFC 2473 section 7.1: a packet too big for the tunnel is answered, one that just fits passes.
#[test]
fn rfc_2473_a_packet_too_big_for_the_tunnel_is_reported() {
    let mut net = away(|_| {});
    static DATA: [u8; 1413] = [7; 1413];
    net.send(CN, HOME, &DATA[..1412]);
    net.run(secs(1));
    assert_eq!(net.take_received(MN).len(), 1, "1500 bytes in the tunnel");
    net.send(CN, HOME, &DATA);
    net.run(secs(1));
    assert_eq!(net.take_received(MN), []);
    assert_eq!(net.agents[0].counts().too_big, 1);
    let told = net.hosts[CN].received.pop_front().expect("an error");
    let Payload::Icmpv6(Icmpv6::PacketTooBig { mtu, invoking }) = told.payload else {
        panic!("{told:?}")
    };
    assert_eq!(mtu, 1460);
    assert_eq!(invoking[24..40], HOME.octets());
}

/// Signalling is counted with the bytes that it takes on the wire (claim I13).
#[test]
fn signalling_is_counted_in_packets_and_bytes() {
    let net = away(|_| {});
    let from_mobile: Vec<usize> = net
        .sent
        .iter()
        .filter(|(_, p)| p.ip.source == CARE_OF)
        .map(|(_, p)| p.buffer_len())
        .collect();
    let counts = net.counts(MN);
    assert_eq!(counts.signalling_packets_sent as usize, from_mobile.len());
    assert_eq!(
        counts.signalling_bytes_sent as usize,
        from_mobile.iter().sum::<usize>()
    );
    // 40 IPv6, 24 home address option, 32 mobility header: 12, aligned to 4n+1 13, 2 + 5 + 12 of the option
    assert_eq!(from_mobile, [40 + 24 + 32]);
}

/// Section 10.3.2: a binding that is not there cannot be deleted, but one that was deleted just now can be deleted again, for
/// the sake of Binding Updates that are sent twice.
#[test]
fn s10_3_2_a_binding_that_does_not_exist_is_not_deleted() {
    let mut net = away(|_| {});
    let mut losses = 1;
    net.fate = Box::new(move |_, p| {
        let lost = losses > 0 && p.ip.source == HOME_AGENT && p.ip.destination == HOME;
        losses -= i32::from(lost);
        !lost
    });
    net.hand_over(MN, 1, 0, HOME);
    net.run(secs(5));
    let statuses = |net: &Net| -> Vec<u8> {
        let all = net
            .signalling()
            .into_iter()
            .filter_map(|(_, _, _, h)| match h.message {
                MobilityMessage::BindingAcknowledgement(ack) => Some(ack.status),
                _ => None,
            });
        all.collect()
    };
    let accepted = binding_status::ACCEPTED;
    assert_eq!(
        statuses(&net),
        [accepted; 3],
        "the registration, and both deletions"
    );
    assert_eq!(net.counts(MN).retransmissions, 1);
    assert!(net.take_events(MN).contains(&ShimEvent::HandoffDone {
        to: HOME,
        delay: ms(1000) + DELAY * 2
    }));

    // the home agent has started anew while the node was away
    let mut net = away(|_| {});
    net.take_events(MN);
    net.sent.clear();
    net.agents[0] = segue_proto::mip6::HomeAgent::new(agent_config(HOME_AGENT, HOME));
    net.hand_over(MN, 1, 0, HOME);
    net.run(secs(5));
    assert_eq!(statuses(&net), [binding_status::NOT_HOME_AGENT]);
    assert_eq!(net.agents[0].counts().not_registered, 1);
    // for the node it comes to the same
    assert_eq!(net.mobile(MN).registered(), None);
    assert!(
        net.take_events(MN)
            .iter()
            .any(|e| matches!(e, ShimEvent::HandoffDone { to: HOME, .. }))
    );
    assert_eq!(net.counts(MN).binding_updates_sent, 2);
}

/// Sections 10.4.1 and 10.4.2: a binding is over when its lifetime is, whether the home agent's timer has been worked off or
/// not.
#[test]
fn s10_4_1_nothing_is_intercepted_for_a_binding_that_is_over() {
    let mut net = away(|config| config.home_lifetime = secs(40));
    let agent = &mut net.agents[0];
    let later = net.now + secs(41);
    assert!(agent.intercepts(net.now, HOME));
    assert!(!agent.intercepts(later, HOME));
    let packet = datagram(CORRESPONDENT, HOME, b"in");
    assert_eq!(agent.handle_packet(later, packet.clone()), Some(packet));
    assert_eq!(agent.poll_transmit(), None);
}
