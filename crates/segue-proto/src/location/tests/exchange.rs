//! A client and its servers: updates, look-ups, losses, moves, caches.

use super::*;

#[test]
fn an_update_is_found_by_the_next_look_up() {
    let mut s = server_with_record();
    let mut cn = client(ClientConfig::new(vec![(SERVER, PORT)]));
    let id = cn.look_up(at(1), &name("MH.loc.example"));
    let events = exchange(&mut cn, &mut s, at(1));
    assert!(
        matches!(&events[..], [ClientEvent::Resolved { id: i, ttl, .. }] if *i == id
        && *ttl == Duration::from_secs(5))
    );
    assert_eq!(resolved(&events), [CELL_1]);
    assert_eq!(s.serial(&name("loc.example")), Some(2));
}

#[test]
fn the_second_address_replaces_the_first() {
    let mut s = server_with_record();
    let mut mh = client(client_config());
    mh.update(at(5000), CELL_2);
    exchange(&mut mh, &mut s, at(5000));
    mh.look_up(at(5000), &name("mh.loc.example"));
    assert_eq!(resolved(&exchange(&mut mh, &mut s, at(5000))), [CELL_2]);
    mh.withdraw(at(6000));
    exchange(&mut mh, &mut s, at(6000));
    let id = mh.look_up(at(6000), &name("mh.loc.example"));
    let gone = ClientEvent::LookupFailed {
        id,
        failure: Failure::NoSuchName,
    };
    assert_eq!(exchange(&mut mh, &mut s, at(6000)), [gone]);
}

#[test]
fn a_lost_update_is_sent_again_with_back_off_and_answered_once() {
    let mut s = server(server_config());
    let mut mh = client(client_config());
    mh.update(at(0), CELL_1);
    let first = mh.poll_transmit().expect("the update");
    assert_eq!(mh.poll_timeout(), Some(at(1000)));
    mh.handle_timeout(at(1000));
    let second = mh.poll_transmit().expect("the update again");
    assert_eq!((&second.data, second.local_port), (&first.data, first.local_port));
    assert_eq!(mh.poll_timeout(), Some(at(3000)));
    // The first was only late: it is carried out, the second answered as the first was.
    let answer = ask(&mut s, at(1001), &first.data).expect("an answer");
    let again = ask(&mut s, at(1002), &second.data).expect("an answer");
    assert_eq!((s.counters().updates, s.counters().repeated), (1, 1));
    mh.handle_datagram(at(1010), &back(&second, again));
    let latency = Duration::from_millis(1010);
    let updated = ClientEvent::Updated {
        address: Some(CELL_1),
        latency,
        sent: 2,
    };
    assert_eq!(mh.poll_event(), Some(updated));
    mh.handle_datagram(at(1011), &back(&first, answer));
    assert_eq!((mh.poll_event(), mh.counters().unexpected), (None, 1));
    assert_eq!(mh.poll_timeout(), None);
}

#[test]
fn a_move_during_an_update_gives_it_up_and_its_late_copy_changes_nothing() {
    let mut s = server(server_config());
    let mut mh = client(client_config());
    mh.update(at(0), CELL_1);
    let late = mh.poll_transmit().expect("an update");
    mh.update(at(100), CELL_2);
    assert_eq!(mh.counters().superseded, 1);
    let events = exchange(&mut mh, &mut s, at(110));
    assert!(matches!(
        events[..],
        [ClientEvent::Updated {
            address: Some(CELL_2),
            ..
        }]
    ));
    let refused = ask(&mut s, at(200), &late.data).expect("an answer");
    assert_eq!(parse(&refused).header.rcode, Rcode::NOTAUTH);
    assert_eq!(s.counters().bad_time, 1);
    mh.look_up(at(300), &name("mh.loc.example"));
    assert_eq!(resolved(&exchange(&mut mh, &mut s, at(300))), [CELL_2]);
}

#[test]
fn the_next_server_is_asked_when_one_is_silent_or_refuses() {
    const SECOND: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x54);
    let mut config = client_config();
    config.servers.push((SECOND, PORT));
    config.attempts = Some(3);
    let mut mh = client(config.clone());
    mh.update(at(0), CELL_1);
    assert_eq!(mh.poll_transmit().map(|d| d.peer), Some(SERVER));
    mh.handle_timeout(at(1000));
    assert_eq!(mh.poll_transmit().map(|d| d.peer), Some(SECOND));
    mh.handle_timeout(at(3000));
    assert_eq!(mh.poll_transmit().map(|d| d.peer), Some(SERVER));
    mh.handle_timeout(at(7000));
    let failed = |failure| {
        Some(ClientEvent::UpdateFailed {
            address: Some(CELL_1),
            failure,
        })
    };
    assert_eq!(mh.poll_event(), failed(Failure::NoAnswer));

    // A server that has another zone only: NOTAUTH, and the other one is asked at once.
    let other = ServerConfig {
        zones: vec![ZoneConfig::new(name("other.example"), vec![]).expect("a zone")],
        keys: vec![KeyConfig {
            key: key(),
            grants: vec![],
        }],
        ..server_config()
    };
    let (mut wrong, mut right) = (server(other), server(server_config()));
    let mut mh = client(config);
    mh.update(at(0), CELL_1);
    let asked = mh.poll_transmit().expect("an update");
    let answer = ask(&mut wrong, at(5), &asked.data).expect("an answer");
    mh.handle_datagram(at(10), &back(&asked, answer));
    let asked = mh.poll_transmit().expect("an update");
    assert_eq!(asked.peer, SECOND);
    let answer = ask(&mut right, at(15), &asked.data).expect("an answer");
    mh.handle_datagram(at(20), &back(&asked, answer));
    assert!(matches!(mh.poll_event(), Some(ClientEvent::Updated { .. })));
}

#[test]
fn a_cache_gives_the_old_address_until_its_time_is_over() {
    let mut s = server_with_record();
    let mut cn = client(ClientConfig {
        cache: true,
        ..ClientConfig::new(vec![(SERVER, PORT)])
    });
    let mh = name("mh.loc.example");
    cn.look_up(at(0), &mh);
    assert_eq!(resolved(&exchange(&mut cn, &mut s, at(0))), [CELL_1]);
    let moved = update(
        &key(),
        UNIX + 1,
        vec![],
        vec![
            record("mh.loc.example", Class::ANY, Rtype::AAAA, 0, &[]),
            aaaa(CELL_2),
        ],
    );
    assert_eq!(rcode(&mut s, at(1000), &moved), Rcode::NOERROR);
    cn.look_up(at(4999), &mh);
    assert_eq!(resolved(&exchange(&mut cn, &mut s, at(4999))), [CELL_1]);
    cn.look_up(at(5000), &mh);
    assert_eq!(resolved(&exchange(&mut cn, &mut s, at(5000))), [CELL_2]);
}
