//! The binding cache and the binding update list, by themselves.

use super::super::binding_update_list::{
    Due, HomeEntry, Peer, Peers, PendingUpdate, Registered, Retransmission, UpdateRate,
};
use super::*;
use crate::time::Instant;
use segue_wire::mobility::Test;

fn at(s: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(s)
}

fn node(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, n)
}

fn binding(sequence: u16, expires: Instant) -> Binding {
    Binding {
        care_of_address: node(99),
        expires,
        sequence,
    }
}

#[test]
fn a_binding_ends_with_its_lifetime_and_its_sequence_number_is_kept_a_while() {
    // RFC 6275 section 5.2.8, 9.5.1
    let mut cache = BindingCache::new(2, Duration::ZERO);
    cache.insert(node(1), binding(7, at(10)));
    cache.insert(node(2), binding(8, at(20)));
    assert!(cache.has_room_for(node(1)) && !cache.has_room_for(node(3)));
    assert!(
        cache
            .expire(
                Instant::ZERO + Duration::from_millis(9999),
                Duration::from_secs(240)
            )
            .is_empty()
    );
    assert_eq!(cache.expire(at(10), Duration::from_secs(240)), [node(1)]);
    assert!(cache.get(node(1)).is_none() && cache.has_room_for(node(3)));
    assert_eq!(cache.last_sequence(at(249), node(1)), Some(7));
    assert_eq!(cache.last_sequence(at(250), node(1)), None);
    assert_eq!(
        cache.last_sequence(at(250), node(2)),
        Some(8),
        "of a binding that is there"
    );
    // a new binding takes the place of what was kept
    cache.insert(node(1), binding(3, at(300)));
    assert_eq!(
        (cache.last_sequence(at(11), node(1)), cache.retired()),
        (Some(3), 0)
    );
    // deleted by an update, it is that update's number that counts
    assert!(cache.remove(node(1), Some(9), at(60)));
    assert!(!cache.remove(node(1), None, at(60)), "it is gone");
    assert_eq!(cache.last_sequence(at(59), node(1)), Some(9));
    assert!(!cache.forget_retired(at(59)) && cache.retired() == 1);
    assert!(!cache.forget_retired(at(60)) && cache.retired() == 0);
}

#[test]
fn a_token_is_good_for_its_address_and_for_210_s() {
    // RFC 6275 section 12, MAX_TOKEN_LIFETIME
    let is_valid = |now: Instant, address: Ipv6Addr| {
        let mut peer = Peer::new(at(0));
        peer.begin_tests(at(99), Duration::from_secs(3), true);
        peer.on_test_sent(TokenKind::CareOf, 7);
        let test = Test {
            nonce_index: 1,
            cookie: 7,
            keygen_token: 2,
        };
        assert!(!peer.on_test(at(100), TokenKind::CareOf, node(1), Test { cookie: 8, ..test }));
        assert!(peer.on_test(at(100), TokenKind::CareOf, node(1), test));
        let tests = peer.send_tests(now, node(9), Some(address)).unwrap().unwrap();
        assert!(tests.home, "it has no token for that");
        tests.care_of.is_none()
    };
    assert!(is_valid(at(100), node(1)));
    assert!(is_valid(Instant::ZERO + Duration::from_millis(309_999), node(1)));
    assert!(!is_valid(at(310), node(1)));
    assert!(!is_valid(at(100), node(2)));
}

#[test]
fn retransmissions_double_up_to_their_bound() {
    // RFC 6275 section 11.8
    let mut it = Retransmission::begin(at(0), Duration::from_secs(1));
    let mut waited = vec![it.next()];
    for _ in 0..6 {
        it.again(it.next(), Duration::from_secs(10));
        waited.push(it.next());
    }
    assert_eq!(waited, [1, 3, 7, 15, 25, 35, 45].map(at));
    assert!(it.is_over(7) && !it.is_over(8));
}

#[test]
fn no_more_than_three_of_a_kind_within_a_second_and_the_first_that_waits_waits_once() {
    // RFC 6275 sections 11.8 and 12: MAX_UPDATE_RATE
    let ms = |n| Instant::ZERO + Duration::from_millis(n);
    let mut rate = UpdateRate::default();
    let sent = [0, 300, 600, 700, 999, 1000, 1200, 1300, 1700]
        .map(|n| rate.send(ms(n)).map_err(|until| until - ms(0)));
    let wait = |n| Err(Duration::from_millis(n));
    assert_eq!(
        sent,
        [
            Ok(()),
            Ok(()),
            Ok(()),
            wait(1000),
            wait(1000),
            Ok(()),
            wait(1300),
            Ok(()),
            Ok(())
        ]
    );
    let mut it = Retransmission::begin(ms(700), Duration::from_secs(1));
    it.postpone(ms(1000));
    it.again(ms(1000), Duration::from_secs(10));
    assert_eq!(
        it.next(),
        ms(2000),
        "nothing had been sent that could have been lost"
    );
    assert!(it.is_over(1) && !it.is_over(2));
    it.again(ms(2000), Duration::from_secs(10));
    assert_eq!(it.next(), ms(4000));
    assert!(it.is_over(2) && !it.is_over(3));
}

/// An update that is sent at the beginning, and again then.
fn pending(first_sequence: u16, next: Instant) -> PendingUpdate {
    PendingUpdate::new(at(0), node(5), 10, first_sequence, next - at(0))
}

#[test]
fn an_acknowledgement_may_be_for_any_transmission_of_the_update() {
    // each has a sequence number of its own (section 11.8); they wrap
    for (first, last, good, bad) in [
        (10, 12, &[10, 11, 12][..], &[9, 13, 30_000][..]),
        (65_534, 1, &[65_534, 65_535, 0, 1], &[65_533, 2]),
        (5, 5, &[5], &[4, 6]),
    ] {
        let update = pending(first, at(1));
        assert!(good.iter().all(|s| update.answers(*s, last)), "{first} to {last}");
        assert!(!bad.iter().any(|s| update.answers(*s, last)), "{first} to {last}");
    }
}

#[test]
fn what_a_correspondent_waits_for_is_the_earliest_of_its_timers() {
    let mut peer = Peer::new(at(0));
    assert_eq!(peer.poll_timeout(), None);
    // for 400 s, and to be refreshed after three quarters of that
    let update = pending(1, at(30));
    peer.on_registered(at(0), &update, 100, None);
    assert_eq!(peer.poll_timeout(), Some(at(300)));
    assert_eq!(peer.take_due(at(300)), Due::Refresh);
    assert_eq!(peer.poll_timeout(), Some(at(400)));
    peer.begin_tests(at(0), Duration::from_secs(3), true);
    assert_eq!(peer.poll_timeout(), Some(at(3)));
    assert!(peer.is_busy());
    for (kind, cookie) in [(TokenKind::Home, 1), (TokenKind::CareOf, 2)] {
        peer.on_test_sent(kind, cookie);
        assert!(peer.has_sent(cookie));
    }
    peer.stop();
    assert!(!peer.is_busy() && !peer.has_sent(1) && !peer.has_sent(2));
    assert_eq!(peer.poll_timeout(), Some(at(400)), "the binding is still there");
    give_home_token(&mut peer, at(0));
    assert!(peer.begin_update(at(0), node(9), node(9), 10, Duration::from_secs(30)));
    assert!(peer.is_busy());
    assert_eq!(peer.poll_timeout(), Some(at(30)));
    peer.give_up(at(0), node(9), at(1000), Duration::from_secs(30));
    assert!(!peer.is_busy(), "it was reported: nobody waits for it");
    let mut peers = Peers::default();
    assert_eq!(peers.poll_timeout(), None);
    *peers.entry(at(0), node(1)).unwrap() = peer;
    assert_eq!(peers.poll_timeout(), Some(at(30)));
    let mut home = HomeEntry::default();
    assert_eq!(home.poll_timeout(), None);
    let binding = Registered::new(
        at(0),
        &update,
        at(0),
        Duration::from_secs(90),
        Duration::from_secs(20),
    );
    home.on_acknowledged(Some(binding));
    assert_eq!(home.poll_timeout(), Some(at(20)));
    home.begin(at(0), node(5), 10, Duration::from_secs(10));
    assert_eq!(home.poll_timeout(), Some(at(10)));
}

/// Has a correspondent answer a test of the home address.
fn give_home_token(peer: &mut Peer, now: Instant) {
    peer.begin_tests(now, Duration::from_secs(3), true);
    peer.on_test_sent(TokenKind::Home, 7);
    let test = Test {
        nonce_index: 1,
        cookie: 7,
        keygen_token: 2,
    };
    assert!(peer.on_test(now, TokenKind::Home, node(9), test));
}

#[test]
fn of_too_many_correspondents_the_one_that_has_been_idle_longest_goes() {
    let mut list = Peers::default();
    for n in 0..64 {
        assert!(list.entry(at(100 + u64::from(n)), node(n)).is_some());
    }
    assert!(list.entry(at(200), node(3)).is_some(), "it is known");
    assert_eq!(list.iter().count(), 64);
    // the oldest two are at work or registered
    let at_work = list.get_mut(node(0)).unwrap();
    give_home_token(at_work, at(200));
    assert!(at_work.begin_update(at(200), node(9), node(9), 10, Duration::from_secs(300)));
    let update = pending(1, at(30));
    list.get_mut(node(1))
        .unwrap()
        .on_registered(at(200), &update, 100, None);
    assert!(list.entry(at(201), node(100)).is_some());
    assert_eq!(list.iter().count(), 64);
    assert!(list.get(node(2)).is_none(), "the next oldest");
    for (_, peer) in list.iter_mut() {
        peer.begin_tests(at(201), Duration::from_secs(3), true);
    }
    assert!(list.entry(at(202), node(101)).is_none(), "all are at work");
}

#[test]
fn what_each_agent_may_be_set_to() {
    let own: Ipv6Addr = "2001:db8:1::1".parse().expect("address");
    let correspondent = |change: fn(&mut CorrespondentConfig)| {
        let mut config = CorrespondentConfig {
            address: own,
            ..CorrespondentConfig::default()
        };
        change(&mut config);
        config
            .check()
            .map_err(|e| e.split([':', ' ']).next().unwrap_or_default().to_owned())
    };
    let wrong = |key: &str| Err(key.to_owned());
    let s = Duration::from_secs;
    assert_eq!(correspondent(|_| {}), Ok(()));
    for address in ["::", "::1", "ff02::1", "fe80::1"] {
        let config = CorrespondentConfig {
            address: address.parse().expect("address"),
            ..CorrespondentConfig::default()
        };
        assert!(config.check().is_err(), "{address}");
    }
    // section 12: MAX_RR_BINDING_LIFETIME, MAX_NONCE_LIFETIME
    assert_eq!(
        correspondent(|c| c.max_lifetime = MAX_RR_BINDING_LIFETIME),
        Ok(())
    );
    assert_eq!(correspondent(|c| c.nonce_lifetime = MAX_NONCE_LIFETIME), Ok(()));
    assert_eq!(
        correspondent(|c| c.nonce_lifetime = Duration::from_secs(241)),
        wrong("nonce_lifetime")
    );
    assert_eq!(
        correspondent(|c| c.nonce_interval = Duration::ZERO),
        wrong("nonce_interval")
    );
    assert_eq!(correspondent(|c| c.nonce_interval = c.nonce_lifetime), Ok(()));
    assert_eq!(
        correspondent(|c| c.nonce_interval = Duration::from_secs(241)),
        wrong("nonce_interval")
    );
    let security = SecurityAssociation::new(256, "sixteen bytes!!!");
    let served = |address: &str| ServedNode {
        home_address: address.parse().expect("address"),
        security: security.clone(),
    };
    let agent = HomeAgentConfig {
        address: own,
        mobile_nodes: vec![served("2001:db8:1::8"), served("2001:db8:1::9")],
        max_lifetime: LIFETIME_UNIT,
        ..HomeAgentConfig::default()
    };
    assert_eq!(agent.check(), Ok(()));
    let said = |change: &dyn Fn(&mut HomeAgentConfig)| {
        let mut config = agent.clone();
        change(&mut config);
        config
            .check()
            .map_err(|e| e.split([':', ' ']).next().unwrap_or_default().to_owned())
    };
    assert_eq!(
        said(&|c| c.mobile_nodes.push(served("2001:db8:1::8"))),
        wrong("mobile_nodes[2].home_address")
    );
    assert_eq!(
        said(&|c| c.mobile_nodes[1] = served("fe80::1")),
        wrong("mobile_nodes[1].home_address")
    );
    assert_eq!(
        said(&|c| c.mobile_nodes[1].security.spi = 255),
        wrong("mobile_nodes[1].spi")
    );
    assert_eq!(
        said(&|c| c.mobile_nodes[1].security.key = "fifteen bytes!!".to_owned()),
        wrong("mobile_nodes[1].key")
    );
    assert_eq!(said(&|c| c.max_lifetime = s(3)), wrong("max_lifetime"));
    assert_eq!(said(&|c| c.path_mtu = crate::units::Bytes::new(1280)), Ok(()));
    assert_eq!(
        said(&|c| c.path_mtu = crate::units::Bytes::new(1279)),
        wrong("path_mtu")
    );
    let mobile = MobileNodeConfig {
        home_address: "2001:db8:1::9".parse().expect("address"),
        home_agent: own,
        security,
        ..MobileNodeConfig::default()
    };
    let said = |change: fn(&mut MobileNodeConfig)| {
        let mut config = mobile.clone();
        change(&mut config);
        config
            .check()
            .map_err(|e| e.split([':', ' ']).next().unwrap_or_default().to_owned())
    };
    assert_eq!(
        said(|c| (c.home_lifetime, c.correspondent_lifetime) = (LIFETIME_UNIT, LIFETIME_UNIT)),
        Ok(())
    );
    assert_eq!(
        said(|c| c.correspondent_lifetime = Duration::from_secs(3)),
        wrong("correspondent_lifetime")
    );
    assert_eq!(
        said(|c| c.initial_bindack_timeout = Duration::ZERO),
        wrong("initial_bindack_timeout")
    );
    assert_eq!(
        said(|c| c.initial_bindack_timeout_first_reg = Duration::ZERO),
        wrong("initial_bindack_timeout_first_reg")
    );
    assert_eq!(
        said(|c| c.max_bindack_timeout = Duration::from_millis(999)),
        wrong("max_bindack_timeout")
    );
    assert_eq!(said(|c| c.max_bindack_timeout = Duration::from_secs(1)), Ok(()));
    assert_eq!(
        said(|c| c.correspondent_attempts = 0),
        wrong("correspondent_attempts")
    );
    assert_eq!(
        said(|c| c.advertisement_interval = Some(Duration::ZERO)),
        wrong("advertisement_interval")
    );
    assert_eq!(
        said(|c| c.advertisement_interval = Some(Duration::from_millis(1))),
        Ok(())
    );
}
