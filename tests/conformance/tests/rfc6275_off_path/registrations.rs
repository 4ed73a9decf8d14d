//! Binding Updates that are forged, overheard, or say too much.

use super::*;

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
