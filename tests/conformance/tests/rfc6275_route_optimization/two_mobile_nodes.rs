//! Both ends are mobile (section 6.1).

use super::*;

/// Section 6.1: mobility headers take no notice of bindings, so a peer that is mobile itself is tested by its home agent.
#[test]
fn s6_1_two_mobile_nodes_optimize_both_directions() {
    let mut net = Net::of_two_mobile_nodes(|_| {});
    net.send(MN, HOME_B, b"hello");
    net.send(CN, HOME, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.hand_over(CN, 0, 1, CARE_OF_B);
    net.run(secs(5));
    assert!(net.mobile(MN).is_optimized(HOME_B) && net.mobile(CN).is_optimized(HOME));
    for (_, packet) in &net.sent {
        if let Payload::Mobility(header) = &packet.payload {
            let routed = packet
                .extensions
                .iter()
                .any(|e| e.type_2_home_address().is_some());
            let acknowledgement = matches!(header.message, MobilityMessage::BindingAcknowledgement(_));
            assert!(!routed || acknowledgement, "{packet:?}");
        }
    }
    net.take_received(MN);
    net.take_received(CN);
    net.sent.clear();
    net.send(MN, HOME_B, b"direct");
    net.run(secs(1));
    // care-of address to care-of address, with both headers
    let [(_, packet)] = &net.sent[..] else {
        panic!("{:?}", net.sent)
    };
    assert_eq!((packet.ip.source, packet.ip.destination), (CARE_OF, CARE_OF_B));
    let both = [
        ExtensionHeader::type_2_routing(HOME_B),
        ExtensionHeader::home_address(HOME),
    ];
    assert_eq!(packet.extensions, both);
    assert_eq!(net.take_received(CN), [(HOME, HOME_B, b"direct".to_vec())]);
}

/// Both move at the same moment (claim I8). While the direct way is broken, data for the peer's old care-of address is
/// lost; tests go by the home agents and bring the direct way back.
#[test]
fn s6_1_a_double_jump_is_repaired_through_the_home_agents() {
    let mut net = Net::of_two_mobile_nodes(|_| {});
    net.send(MN, HOME_B, b"hello");
    net.send(CN, HOME, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.hand_over(CN, 0, 1, CARE_OF_B);
    net.run(secs(5));
    net.take_received(MN);
    net.take_received(CN);
    net.detach(MN, 1);
    net.detach(CN, 1);
    net.attach(MN, 2, CARE_OF_2);
    net.attach(CN, 2, CARE_OF_B_2);
    net.send(MN, HOME_B, b"into the void");
    net.run(secs(5));
    assert_eq!(net.take_received(CN), []);
    assert!(net.mobile(MN).is_optimized(HOME_B) && net.mobile(CN).is_optimized(HOME));
    net.send(MN, HOME_B, b"found again");
    net.run(secs(1));
    assert_eq!(net.take_received(CN), [(HOME, HOME_B, b"found again".to_vec())]);
}

/// The same when the tests do not come through: the peers are given up, the bindings that they left are deleted, and data
/// goes by the home agents, both ways (claim I8). Later the direct way is tried again.
#[test]
fn a_double_jump_without_return_routability_fails_over_to_the_home_agents() {
    let mut net = Net::of_two_mobile_nodes(|_| {});
    net.send(MN, HOME_B, b"hello");
    net.send(CN, HOME, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.hand_over(CN, 0, 1, CARE_OF_B);
    net.run(secs(5));
    net.fate = Box::new(
        |_, p| !matches!(&p.payload, Payload::Mobility(h) if matches!(h.message, MobilityMessage::CareOfTestInit { .. })),
    );
    net.detach(MN, 1);
    net.detach(CN, 1);
    net.attach(MN, 2, CARE_OF_2);
    net.attach(CN, 2, CARE_OF_B_2);
    net.run(secs(20));
    net.take_received(MN);
    net.take_received(CN);
    assert!(!net.mobile(MN).is_optimized(HOME_B) && !net.mobile(CN).is_optimized(HOME));
    net.sent.clear();
    net.send(MN, HOME_B, b"by the home agents");
    net.send(CN, HOME, b"and back");
    net.run(secs(1));
    assert_eq!(
        net.take_received(CN),
        [(HOME, HOME_B, b"by the home agents".to_vec())]
    );
    assert_eq!(net.take_received(MN), [(HOME_B, HOME, b"and back".to_vec())]);
    let hops: Vec<_> = net
        .sent
        .iter()
        .map(|(_, p)| (p.ip.source, p.ip.destination))
        .collect();
    for hop in [
        (CARE_OF_2, HOME_AGENT),
        (HOME, HOME_B),
        (HOME_AGENT_B, CARE_OF_B_2),
    ] {
        assert!(hops.contains(&hop), "{hop:?} {hops:?}");
    }
    net.fate = Box::new(|_, _| true);
    net.run(secs(60));
    net.send(MN, HOME_B, b"again");
    net.run(secs(1));
    assert!(net.mobile(MN).is_optimized(HOME_B));
}

/// One home agent for both: what comes out of one tunnel goes into the other.
#[test]
fn s10_4_2_two_mobile_nodes_of_one_home_agent() {
    let other = address(1, 10);
    let mut agent = agent_config(HOME_AGENT, HOME);
    let mut second = agent.mobile_nodes[0].clone();
    second.home_address = other;
    agent.mobile_nodes.push(second);
    let mut configs = [mobile_config(HOME, HOME_AGENT), mobile_config(other, HOME_AGENT)];
    configs.iter_mut().for_each(|c| c.route_optimization = false);
    let [a, b] = configs;
    let mut net = Net::new(
        vec![mobile_end(a, 1), mobile_end(b, 2)],
        vec![segue_proto::mip6::HomeAgent::new(agent)],
    );
    net.attach(MN, 0, CARE_OF);
    net.attach(CN, 0, CARE_OF_B);
    net.run(secs(5));
    net.send(MN, other, b"over there");
    net.run(secs(1));
    assert_eq!(net.take_received(CN), [(HOME, other, b"over there".to_vec())]);
}
