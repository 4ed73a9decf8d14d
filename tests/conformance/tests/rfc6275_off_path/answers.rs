//! Forged answers to what a mobile node has said, and forged complaints.

use super::*;

#[test]
fn tests_with_wrong_cookies_or_that_nobody_asked_for_are_dropped() {
    let mut net = optimized();
    let test = |cookie| Test {
        nonce_index: 1,
        cookie,
        keygen_token: 0x6666,
    };
    let home = |from, cookie| {
        packet(
            from,
            HOME,
            MobilityHeader::new(MobilityMessage::HomeTest(test(cookie)), vec![]),
        )
    };
    let care_of = |from, cookie| {
        packet(
            from,
            CARE_OF,
            MobilityHeader::new(MobilityMessage::CareOfTest(test(cookie)), vec![]),
        )
    };
    let through_tunnel = |inner| Packet {
        payload: Payload::Ipv6(Box::new(inner)),
        ..datagram(HOME_AGENT, CARE_OF, b"")
    };
    // no test is under way
    for forged in [
        through_tunnel(home(CORRESPONDENT, 1)),
        care_of(CORRESPONDENT, 1),
        care_of(EVIL, 1),
    ] {
        drops(&mut net, forged, |c| c.unexpected, mobile, 0);
    }
    assert_unmoved(&mut net);
    // both tests are under way and unanswered
    net.fate = Box::new(|_, p| p.ip.destination != CORRESPONDENT);
    net.hand_over(MN, 1, 2, CARE_OF_2);
    net.run(ms(100));
    let mut late = care_of(CORRESPONDENT, 2);
    late.ip.destination = CARE_OF_2;
    drops(&mut net, late, |c| c.wrong_cookie, mobile, 0);
    let mut inner = through_tunnel(home(CORRESPONDENT, 3));
    inner.ip.destination = CARE_OF_2;
    drops(&mut net, inner, |c| c.wrong_cookie, mobile, 0);
    // from somebody who is not asked
    let mut other = care_of(EVIL, 4);
    other.ip.destination = CARE_OF_2;
    drops(&mut net, other, |c| c.unexpected, mobile, 0);
    // the tests go on, and with the true answers all is well
    net.fate = Box::new(|_, _| true);
    net.run(secs(5));
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
    let binding = net
        .correspondent(CN)
        .binding_cache()
        .get(HOME)
        .map(|b| b.care_of_address);
    assert_eq!(binding, Some(CARE_OF_2));
}

#[test]
fn acknowledgements_that_are_forged_are_dropped() {
    let mut net = optimized();
    let acknowledgement = |status, sequence| {
        MobilityHeader::new(
            MobilityMessage::BindingAcknowledgement(BindingAcknowledgement {
                status,
                sequence,
                lifetime: 100,
                ..BindingAcknowledgement::default()
            }),
            vec![],
        )
    };
    let routed = |from, to, header| {
        let mut forged = packet(from, to, header);
        forged.extensions.push(ExtensionHeader::type_2_routing(HOME));
        forged
    };
    // nothing is waited for
    let forged = routed(HOME_AGENT, CARE_OF, acknowledgement(0, 1));
    drops(&mut net, forged, |c| c.unexpected, mobile, 0);
    let forged = routed(CORRESPONDENT, CARE_OF, acknowledgement(0, 1));
    drops(&mut net, forged, |c| c.unexpected, mobile, 0);
    assert_unmoved(&mut net);
    // a home registration is under way: its number is known, the key is not
    net.fate = Box::new(|_, p| p.ip.destination != HOME_AGENT);
    net.hand_over(MN, 1, 2, CARE_OF_2);
    for (status, sequence, reason) in [
        (0, 2, 0),
        (135, 500, 0),
        (129, 2, 0),
        (0, 1, 1),
        (0, 3, 1),
        (135, 1, 1),
    ] {
        let forged = routed(HOME_AGENT, CARE_OF_2, acknowledgement(status, sequence));
        let counted = |c: &Counters| {
            if reason == 0 {
                c.unauthenticated
            } else {
                c.bad_sequence
            }
        };
        drops(&mut net, forged, counted, mobile, 0);
    }
    assert_eq!(
        net.mobile(MN).registered(),
        Some(CARE_OF),
        "the new one is not acknowledged"
    );
    // a correspondent registration likewise
    net.fate = Box::new(|_, p| {
        !matches!(&p.payload, Payload::Mobility(h)
            if matches!(h.message, MobilityMessage::BindingUpdate(u) if !u.home_registration))
    });
    net.run(ms(3500));
    for (status, reason) in [(0, 0), (129, 0), (135, 0)] {
        let sequence = if status == 135 { 700 } else { 2 };
        let forged = routed(CORRESPONDENT, CARE_OF_2, acknowledgement(status, sequence));
        let counted = |c: &Counters| {
            if reason == 0 {
                c.unauthenticated
            } else {
                c.bad_sequence
            }
        };
        drops(&mut net, forged, counted, mobile, 0);
    }
    let forged = routed(CORRESPONDENT, CARE_OF_2, acknowledgement(0, 900));
    drops(&mut net, forged, |c| c.bad_sequence, mobile, 0);
    assert!(!net.mobile(MN).is_optimized(CORRESPONDENT));
    net.fate = Box::new(|_, _| true);
    net.run(secs(10));
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
}

/// Sections 11.3.6 and 11.7.4: a forged Binding Error is passed over while packets come the direct way, and a forged
/// Binding Refresh Request so soon after a registration.
#[test]
fn forged_errors_and_refresh_requests_are_passed_over() {
    let mut net = optimized();
    net.send(CN, HOME, b"progress");
    net.run(ms(100));
    net.take_received(MN);
    for (status, home) in [
        (binding_error::UNKNOWN_BINDING, HOME),
        (binding_error::UNKNOWN_BINDING, address(1, 77)),
        (binding_error::UNRECOGNIZED_MH_TYPE, HOME),
        (200, HOME),
    ] {
        let error = MobilityHeader::new(
            MobilityMessage::BindingError {
                status,
                home_address: home,
            },
            vec![],
        );
        let forged = packet(CORRESPONDENT, CARE_OF, error.clone());
        drops(&mut net, forged, |c| c.ignored, mobile, 0);
        drops(
            &mut net,
            packet(EVIL, CARE_OF, error),
            |c| c.unexpected,
            mobile,
            0,
        );
    }
    let request = MobilityHeader::new(MobilityMessage::BindingRefreshRequest, vec![]);
    for from in [CORRESPONDENT, EVIL] {
        let forged = Packet {
            payload: Payload::Ipv6(Box::new(packet(from, HOME, request.clone()))),
            ..datagram(HOME_AGENT, CARE_OF, b"")
        };
        drops(&mut net, forged, |c| c.ignored, mobile, 0);
    }
    assert_unmoved(&mut net);
}

/// RFC 4443 section 3.4, RFC 6275 section 11.3.5: a parameter problem must quote a cookie of a test that is under way.
#[test]
fn a_forged_parameter_problem_does_not_end_route_optimisation() {
    let mut net = Net::ordinary();
    net.fate = Box::new(|_, p| p.ip.destination != CORRESPONDENT);
    net.send(MN, CORRESPONDENT, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(ms(100));
    let init = MobilityHeader::new(MobilityMessage::CareOfTestInit { cookie: 12345 }, vec![]);
    let problem = Icmpv6::ParameterProblem {
        code: 1,
        pointer: 6,
        invoking: Icmpv6::quote(&packet(CARE_OF, CORRESPONDENT, init)),
    };
    net.inject(Packet {
        payload: Payload::Icmpv6(problem),
        ..datagram(CORRESPONDENT, CARE_OF, b"")
    });
    net.fate = Box::new(|_, _| true);
    net.run(secs(5));
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
}

/// A correspondent that was restarted without Mobile IPv6 does not know the option any more. What says so may be forged, and is
/// weighed as a Binding Error is: the tests show what is true.
#[test]
fn a_parameter_problem_about_the_home_address_option_has_the_correspondent_tested_again() {
    let mut net = optimized();
    let problem = |code, pointer, home_address| {
        let mut quoted = datagram(CARE_OF, CORRESPONDENT, b"out");
        quoted
            .extensions
            .push(ExtensionHeader::home_address(home_address));
        let problem = Icmpv6::ParameterProblem {
            code,
            pointer,
            invoking: Icmpv6::quote(&quoted),
        };
        Packet {
            payload: Payload::Icmpv6(problem),
            ..datagram(CORRESPONDENT, CARE_OF, b"")
        }
    };
    net.run(secs(2));
    // behind the fixed header, next header, length, and padding to 8n+6
    const POINTER: u32 = 46;
    for (code, pointer, home_address) in [
        (1, POINTER, HOME),
        (2, POINTER + 1, HOME),
        (2, 5000, HOME),
        (2, POINTER, address(1, 77)),
    ] {
        net.inject(problem(code, pointer, home_address));
        assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
    }
    net.inject(problem(2, POINTER, HOME));
    assert!(!net.mobile(MN).is_optimized(CORRESPONDENT));
    net.run(secs(1));
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT), "it was forged");
    // while packets come the direct way it is passed over
    net.send(CN, HOME, b"in");
    net.run(ms(100));
    net.inject(problem(2, POINTER, HOME));
    assert_eq!(net.counts(MN).ignored, 1);
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
}

/// Somebody makes the correspondent send a genuine Binding Error: a message of an unknown type in the name of the mobile
/// node, just when that has moved. It must not give route optimisation up, while the correspondent goes on sending to
/// where it was. (Found by the fuzzer.)
#[test]
fn a_binding_error_that_was_provoked_is_passed_over() {
    let mut net = optimized();
    net.hand_over(MN, 1, 2, CARE_OF_2);
    let unknown = MobilityHeader::new(
        MobilityMessage::Unknown {
            mh_type: 99,
            data: Bytes::from_static(&[0; 10]),
        },
        vec![],
    );
    net.inject(packet(HOME, CORRESPONDENT, unknown));
    net.run(secs(2));
    assert_eq!(net.counts(MN).ignored, 1);
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
    let binding = net
        .correspondent(CN)
        .binding_cache()
        .get(HOME)
        .map(|b| b.care_of_address);
    assert_eq!(binding, Some(CARE_OF_2));
}
