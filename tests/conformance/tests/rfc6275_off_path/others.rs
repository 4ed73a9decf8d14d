//! Packets with addresses that are not theirs, messages for others, and what strangers can make a node remember.

use super::*;

/// Sections 9.3.1 and 6.3: a Home Address option without a binding for just that care-of address is dropped, and the
/// sender is told by a Binding Error, at a limited rate.
#[test]
fn a_home_address_option_from_elsewhere_is_dropped() {
    let mut net = optimized();
    let forged = |source, home| with_home_address(datagram(source, CORRESPONDENT, b"forged"), home);
    drops(&mut net, forged(EVIL, HOME), |c| c.no_binding, correspondent, 1);
    // not a second time so soon
    drops(&mut net, forged(EVIL, HOME), |c| c.no_binding, correspondent, 0);
    net.run(secs(1));
    drops(
        &mut net,
        forged(CARE_OF, address(1, 77)),
        |c| c.no_binding,
        correspondent,
        1,
    );
    for home in [Ipv6Addr::UNSPECIFIED, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)] {
        drops(&mut net, forged(CARE_OF, home), |c| c.malformed, correspondent, 0);
    }
    assert_unmoved(&mut net);
}

/// Section 6.4: a routing header leads to the home address and nowhere else.
#[test]
fn a_routing_header_with_another_address_is_dropped() {
    let mut net = optimized();
    let mut forged = datagram(EVIL, CARE_OF, b"forged");
    forged
        .extensions
        .push(ExtensionHeader::type_2_routing(address(1, 77)));
    drops(&mut net, forged, |c| c.not_our_home_address, mobile, 0);
    // section 6.1: of mobility headers, only an acknowledgement may come this way
    let init = MobilityHeader::new(MobilityMessage::HomeTestInit { cookie: 1 }, vec![]);
    let mut forged = packet(EVIL, CARE_OF, init);
    forged.extensions.push(ExtensionHeader::type_2_routing(HOME));
    drops(&mut net, forged, |c| c.malformed, mobile, 0);
    assert_unmoved(&mut net);
}

/// Section 9.3.3: an unknown message is answered by a Binding Error, and changes nothing; a home agent's or care-of
/// address is nobody's correspondent.
#[test]
fn messages_for_others_are_dropped() {
    let mut net = optimized();
    let unknown = MobilityHeader::new(
        MobilityMessage::Unknown {
            mh_type: 99,
            data: Bytes::from_static(&[0; 10]),
        },
        vec![],
    );
    drops(
        &mut net,
        packet(EVIL, CORRESPONDENT, unknown.clone()),
        |c| c.unknown_message,
        correspondent,
        1,
    );
    drops(
        &mut net,
        packet(EVIL, HOME_AGENT, unknown),
        |c| c.unknown_message,
        agent,
        0,
    );
    let init = MobilityHeader::new(MobilityMessage::CareOfTestInit { cookie: 1 }, vec![]);
    drops(
        &mut net,
        packet(EVIL, HOME_AGENT, init.clone()),
        |c| c.unexpected,
        agent,
        0,
    );
    drops(
        &mut net,
        packet(EVIL, CARE_OF, init.clone()),
        |c| c.unexpected,
        mobile,
        0,
    );
    // sections 9.4.1 and 9.4.2: a test has no Home Address option
    drops(
        &mut net,
        with_home_address(packet(EVIL, CORRESPONDENT, init), HOME),
        |c| c.malformed,
        correspondent,
        0,
    );
    // section 9.5.1: a correspondent is nobody's home agent, and says so
    let header = MobilityHeader::new(update(1, true, 900), vec![]);
    drops(
        &mut net,
        with_home_address(packet(EVIL, CORRESPONDENT, header), HOME),
        |c| c.not_home_agent,
        correspondent,
        1,
    );
    assert_unmoved(&mut net);
}

/// Section 5.2.2: answering tests costs a correspondent no memory.
#[test]
fn tests_leave_no_state() {
    let mut net = optimized();
    for n in 0..2000_u16 {
        let init = if n % 2 == 0 {
            MobilityMessage::HomeTestInit { cookie: u64::from(n) }
        } else {
            MobilityMessage::CareOfTestInit { cookie: u64::from(n) }
        };
        net.inject(packet(
            address(99, n + 1),
            CORRESPONDENT,
            MobilityHeader::new(init, vec![]),
        ));
    }
    let node = net.correspondent(CN);
    assert_eq!(node.binding_cache().iter().count(), 1);
    assert_eq!(net.counts(CN).tests_sent, 2 + 2000);
    net.sent.clear();
    assert_unmoved(&mut net);
}

/// A binding update list and cache of bounded size: packets from and to thousands of others do not fill memory.
#[test]
fn a_mobile_node_keeps_a_bounded_number_of_peers() {
    let mut net = optimized();
    for n in 0..1000_u16 {
        net.send(MN, address(99, n + 1), b"scan");
    }
    net.run(secs(60));
    // every one of the 64 is tested four times at most, by two tests that pass at most two hops each
    assert!(net.counts(MN).test_inits_sent < 10_000, "{:?}", net.counts(MN));
    net.take_events(MN);
    net.take_received(CN);
    net.send(CN, HOME, b"in");
    net.run(ms(100));
    assert_eq!(net.take_received(MN), [(CORRESPONDENT, HOME, b"in".to_vec())]);
}
