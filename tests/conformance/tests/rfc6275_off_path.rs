//! RFC 6275 sections 5.1, 5.2 and 15, and RFC 4285: what somebody who is on no path can do, which is nothing. Every forged
//! or replayed message changes no binding and no way of a packet, is answered only where the RFC asks for it, and
//! is counted by its reason.

use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_conformance::mip6::*;
use segue_proto::mip6::{BindingManagementKey, Counters, mn_ha_code};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::mobility::{
    BindingAcknowledgement, BindingUpdate, MobilityHeader, MobilityMessage, MobilityOption, Test,
    binding_error, binding_status,
};
use segue_wire::{ExtensionHeader, Packet, Payload};

/// Where the attacker would like the packets to go.
const EVIL: Ipv6Addr = address(66, 6);

fn packet(source: Ipv6Addr, destination: Ipv6Addr, header: MobilityHeader) -> Packet {
    Packet {
        payload: Payload::Mobility(Box::new(header)),
        ..datagram(source, destination, b"")
    }
}

fn with_home_address(mut packet: Packet, home: Ipv6Addr) -> Packet {
    packet.extensions.push(ExtensionHeader::home_address(home));
    packet
}

fn update(sequence: u16, home_registration: bool, lifetime: u16) -> MobilityMessage {
    MobilityMessage::BindingUpdate(BindingUpdate {
        sequence,
        acknowledge: true,
        home_registration,
        lifetime,
        ..BindingUpdate::default()
    })
}

/// Talking, away, and on the direct way.
fn optimized() -> Net {
    let mut net = Net::ordinary();
    net.send(MN, CORRESPONDENT, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(5));
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
    net.take_received(CN);
    net.take_events(MN);
    net.take_events(CN);
    net.sent.clear();
    net
}

/// Nothing that matters has changed, and packets arrive by the ways that they took.
fn assert_unmoved(net: &mut Net) {
    net.run(secs(1));
    assert_eq!(
        net.agents[0].binding_cache().get(HOME).map(|b| b.care_of_address),
        Some(CARE_OF)
    );
    assert_eq!(net.agents[0].binding_cache().iter().count(), 1);
    let bindings: Vec<_> = net
        .correspondent(CN)
        .binding_cache()
        .iter()
        .map(|(home, b)| (home, b.care_of_address))
        .collect();
    assert_eq!(bindings, [(HOME, CARE_OF)]);
    assert!(net.mobile(MN).is_optimized(CORRESPONDENT));
    assert_eq!(net.mobile(MN).registered(), Some(CARE_OF));
    assert_eq!(net.take_events(MN), []);
    assert_eq!(net.take_events(CN), []);
    net.sent.clear();
    net.send(CN, HOME, b"in");
    net.send(MN, CORRESPONDENT, b"out");
    net.run(ms(100));
    assert_eq!(net.take_received(MN), [(CORRESPONDENT, HOME, b"in".to_vec())]);
    assert_eq!(net.take_received(CN), [(HOME, CORRESPONDENT, b"out".to_vec())]);
    assert_eq!(net.sent.len(), 2, "the direct way");
}

/// One message more was dropped for `reason` by `count`, and `answers` packets were sent because of it.
fn drops(
    net: &mut Net,
    forged: Packet,
    reason: impl Fn(&Counters) -> u64,
    count: impl Fn(&Net) -> Counters,
    answers: usize,
) {
    let (before, sent) = (reason(&count(net)), net.sent.len());
    net.inject(forged.clone());
    assert_eq!(
        reason(&count(net)),
        before + 1,
        "{forged:?} {:?}",
        count(net).list()
    );
    assert_eq!(net.sent.len(), sent + answers, "answers to {forged:?}");
}

fn agent(net: &Net) -> Counters {
    net.agents[0].counts()
}

fn correspondent(net: &Net) -> Counters {
    net.counts(CN)
}

fn mobile(net: &Net) -> Counters {
    net.counts(MN)
}

#[test]
fn a_home_registration_without_the_key_changes_nothing() {
    let mut net = optimized();
    let to_agent = |header| with_home_address(packet(EVIL, HOME_AGENT, header), HOME);
    // no authentication at all
    let bare = MobilityHeader::new(update(1000, true, 900), vec![]);
    drops(&mut net, to_agent(bare), |c| c.unauthenticated, agent, 0);
    // an option full of zeros, or under a guessed key, or another index
    for (key, spi) in [(None, 256), (Some("an other 16 byte"), 256), (Some(KEY), 257)] {
        let options = vec![MobilityOption::blank_authentication(spi)];
        let mut header = MobilityHeader::new(update(1000, true, 900), options);
        if let (Some(key), Some(mh_data)) = (key, header.authenticated_bytes()) {
            header.authenticate(mn_ha_code(key.as_bytes(), EVIL, HOME, &mh_data));
        }
        drops(&mut net, to_agent(header), |c| c.unauthenticated, agent, 0);
    }
    // a shorter code, whose first byte may be guessed
    for guess in 0..=255 {
        let mut header = MobilityHeader::new(
            update(1000, true, 900),
            vec![MobilityOption::blank_authentication(256)],
        );
        header.authenticate(Bytes::from(vec![guess]));
        drops(&mut net, to_agent(header), |c| c.unauthenticated, agent, 0);
    }
    // deletion, from the home address itself
    let bare = MobilityHeader::new(update(1000, true, 0), vec![]);
    drops(
        &mut net,
        packet(HOME, HOME_AGENT, bare),
        |c| c.unauthenticated,
        agent,
        0,
    );
    // a mobile node that nobody knows
    let bare = MobilityHeader::new(update(1, true, 900), vec![]);
    let stranger = with_home_address(packet(EVIL, HOME_AGENT, bare), address(1, 77));
    drops(&mut net, stranger, |c| c.not_home_agent, agent, 0);
    assert_unmoved(&mut net);
}

/// A Binding Update that was overheard says from where it was sent: from elsewhere its code is wrong; from there its
/// sequence number is old. The refusal goes to the mobile node, which waits for none.
#[test]
fn a_home_registration_is_not_replayed() {
    let mut net = Net::ordinary();
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(1));
    let old = net
        .last_sent(|m| matches!(m, MobilityMessage::BindingUpdate(_)))
        .expect("Binding Update");
    net.hand_over(MN, 1, 2, CARE_OF_2);
    net.run(secs(1));
    assert_eq!(net.mobile(MN).registered(), Some(CARE_OF_2));
    drops(&mut net, old.clone(), |c| c.bad_sequence, agent, 1);
    let mut elsewhere = old.clone();
    elsewhere.ip.source = EVIL;
    drops(&mut net, elsewhere, |c| c.unauthenticated, agent, 0);
    // the sequence number is covered
    let mut later = old.clone();
    let Payload::Mobility(header) = &old.payload else {
        unreachable!()
    };
    later.payload = Payload::Mobility(Box::new(MobilityHeader::new(
        update(5000, true, 900),
        header.options.clone(),
    )));
    drops(&mut net, later, |c| c.unauthenticated, agent, 0);
    // nor is it after the binding's end: the home agent remembers
    net.detach(MN, 2);
    net.run(secs(3700));
    assert!(!net.agents[0].intercepts(net.now, HOME));
    drops(&mut net, old, |c| c.bad_sequence, agent, 1);
    net.run(secs(5));
    assert!(!net.agents[0].intercepts(net.now, HOME));
}

#[test]
fn a_correspondent_binding_needs_both_tokens() {
    let mut net = optimized();
    let genuine = Net::ordinary_update();
    let indices = genuine.1;
    let to_correspondent = |header| with_home_address(packet(EVIL, CORRESPONDENT, header), HOME);
    // neither indices nor authenticator; no authenticator; one that is not the last; one of zeros
    let bare = MobilityHeader::new(update(1000, false, 100), vec![]);
    drops(
        &mut net,
        to_correspondent(bare),
        |c| c.malformed,
        correspondent,
        0,
    );
    let cases = [
        vec![indices.clone()],
        vec![MobilityOption::blank_authorization(), indices.clone()],
        vec![indices.clone(), MobilityOption::blank_authorization()],
    ];
    for options in cases {
        let header = MobilityHeader::new(update(1000, false, 100), options);
        drops(
            &mut net,
            to_correspondent(header),
            |c| c.unauthenticated,
            correspondent,
            0,
        );
    }
    // the attacker can have a care-of token for its own address, but no home token: it guesses it
    let cookie = 0x6666;
    net.inject(packet(
        EVIL,
        CORRESPONDENT,
        MobilityHeader::new(MobilityMessage::CareOfTestInit { cookie }, vec![]),
    ));
    let Some((_, _, _, test)) = net.signalling().pop() else {
        panic!("no care-of test")
    };
    let MobilityMessage::CareOfTest(test) = test.message else {
        panic!("{test:?}")
    };
    for home_token in [0, 1, test.keygen_token] {
        let key = BindingManagementKey::new(home_token, Some(test.keygen_token));
        let mut header = MobilityHeader::new(
            update(1000, false, 100),
            vec![indices.clone(), MobilityOption::blank_authorization()],
        );
        let mh_data = header.authorized_bytes().expect("option");
        header.authenticate(key.authenticator(EVIL, CORRESPONDENT, &mh_data));
        drops(
            &mut net,
            to_correspondent(header),
            |c| c.unauthenticated,
            correspondent,
            0,
        );
    }
    // deletion needs the home token
    let key = BindingManagementKey::new(test.keygen_token, None);
    let mut header = MobilityHeader::new(
        update(1000, false, 0),
        vec![indices, MobilityOption::blank_authorization()],
    );
    let mh_data = header.authorized_bytes().expect("option");
    header.authenticate(key.authenticator(HOME, CORRESPONDENT, &mh_data));
    drops(
        &mut net,
        packet(HOME, CORRESPONDENT, header),
        |c| c.unauthenticated,
        correspondent,
        0,
    );
    assert_unmoved(&mut net);
}

/// Section 9.5.1: expired or future indices are refused by status 136 to 138, as the RFC asks, to where the Binding Update
/// came from; sequence number and authenticator are not even looked at.
#[test]
fn indices_that_are_not_valid_are_refused_and_nothing_more() {
    let mut net = optimized();
    let (_, indices) = Net::ordinary_update();
    let MobilityOption::NonceIndices { home, .. } = indices else {
        unreachable!()
    };
    for (home, care_of, status) in [
        (home.wrapping_add(100), home, binding_status::EXPIRED_HOME_NONCE),
        (
            home,
            home.wrapping_add(100),
            binding_status::EXPIRED_CARE_OF_NONCE,
        ),
        (
            home.wrapping_add(100),
            home.wrapping_sub(100),
            binding_status::EXPIRED_NONCES,
        ),
    ] {
        let options = vec![
            MobilityOption::NonceIndices { home, care_of },
            MobilityOption::blank_authorization(),
        ];
        let forged = with_home_address(
            packet(
                EVIL,
                CORRESPONDENT,
                MobilityHeader::new(update(1, false, 100), options),
            ),
            HOME,
        );
        drops(&mut net, forged, |c| c.expired_nonce, correspondent, 1);
        let (_, _, to, header) = net.signalling().pop().expect("acknowledgement");
        assert_eq!(to, EVIL);
        assert!(
            matches!(header.message, MobilityMessage::BindingAcknowledgement(a) if a.status == status),
            "{header:?}"
        );
    }
    assert_unmoved(&mut net);
}

/// A genuine Binding Update of the mobile node, overheard and sent again: its number is old. Sections 5.2.8 and 9.5.1.
#[test]
fn a_correspondent_registration_is_not_replayed() {
    let mut net = Net::ordinary();
    net.send(MN, CORRESPONDENT, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(5));
    let old = net
        .last_sent(|m| matches!(m, MobilityMessage::BindingUpdate(u) if !u.home_registration))
        .expect("Binding Update");
    // the refusal, which the RFC asks for, is authentic, and goes to where the update says that it came from
    drops(&mut net, old.clone(), |c| c.bad_sequence, correspondent, 1);
    net.hand_over(MN, 1, 2, CARE_OF_2);
    net.run(secs(5));
    drops(&mut net, old.clone(), |c| c.bad_sequence, correspondent, 1);
    net.hand_over(MN, 2, 0, HOME);
    net.run(secs(5));
    assert!(net.correspondent(CN).binding_cache().get(HOME).is_none());
    // the binding is gone, its sequence number is not, as long as the nonces are valid
    drops(&mut net, old.clone(), |c| c.bad_sequence, correspondent, 1);
    net.run(secs(250));
    drops(&mut net, old, |c| c.expired_nonce, correspondent, 1);
    assert!(net.correspondent(CN).binding_cache().get(HOME).is_none());
}

/// A mobile node that lives elsewhere cannot register the address of somebody else as its own care-of address: the
/// care-of token is for one address. Section 5.2.3.
#[test]
fn a_care_of_token_is_good_for_one_address() {
    let mut net = Net::ordinary();
    net.send(MN, CORRESPONDENT, b"hello");
    net.hand_over(MN, 0, 1, CARE_OF);
    net.run(secs(5));
    let genuine = net
        .last_sent(|m| matches!(m, MobilityMessage::BindingUpdate(u) if !u.home_registration))
        .expect("Binding Update");
    let Payload::Mobility(header) = &genuine.payload else {
        unreachable!()
    };
    // the mobile node itself, which knows both tokens, as the tests told them
    let token = |wanted: fn(&MobilityMessage) -> Option<Test>| {
        net.signalling()
            .iter()
            .find_map(|s| wanted(&s.3.message))
            .map(|t| t.keygen_token)
    };
    let home = token(|m| match m {
        MobilityMessage::HomeTest(t) => Some(*t),
        _ => None,
    });
    let care_of = token(|m| match m {
        MobilityMessage::CareOfTest(t) => Some(*t),
        _ => None,
    });
    let key = BindingManagementKey::new(home.expect("home test"), care_of);
    let victim = EVIL;
    let mut bomb = MobilityHeader::new(
        update(1000, false, 100),
        vec![
            header.options[0].clone(),
            MobilityOption::AlternateCareOfAddress(victim),
            MobilityOption::blank_authorization(),
        ],
    );
    let mh_data = bomb.authorized_bytes().expect("option");
    bomb.authenticate(key.authenticator(victim, CORRESPONDENT, &mh_data));
    let forged = with_home_address(packet(CARE_OF, CORRESPONDENT, bomb), HOME);
    drops(&mut net, forged, |c| c.unauthenticated, correspondent, 0);
    // while its own address would have done, by the same key
    let mut honest = MobilityHeader::new(
        update(1000, false, 100),
        vec![
            header.options[0].clone(),
            MobilityOption::AlternateCareOfAddress(CARE_OF),
            MobilityOption::blank_authorization(),
        ],
    );
    let mh_data = honest.authorized_bytes().expect("option");
    honest.authenticate(key.authenticator(CARE_OF, CORRESPONDENT, &mh_data));
    let before = net.counts(CN).bindings_accepted;
    net.inject(with_home_address(packet(CARE_OF, CORRESPONDENT, honest), HOME));
    assert_eq!(net.counts(CN).bindings_accepted, before + 1);
}

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

trait Overheard {
    /// The Binding Update that [`optimized`] brings about, and its nonce indices: the seeds are the same.
    fn ordinary_update() -> (Packet, MobilityOption);
}

impl Overheard for Net {
    fn ordinary_update() -> (Packet, MobilityOption) {
        let mut net = Net::ordinary();
        net.send(MN, CORRESPONDENT, b"hello");
        net.hand_over(MN, 0, 1, CARE_OF);
        net.run(secs(5));
        let update = net
            .last_sent(|m| matches!(m, MobilityMessage::BindingUpdate(u) if !u.home_registration))
            .expect("Binding Update");
        let Payload::Mobility(header) = &update.payload else {
            unreachable!()
        };
        let indices = header.options[0].clone();
        (update, indices)
    }
}
