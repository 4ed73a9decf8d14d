//! NID, L64 and LP records (RFC 6742).

use super::*;

/// RFC 6742 sections 2.1 and 2.3, by RFC 2136: a node's identifier and locators replace those that were there.
#[test]
fn locators_are_updated_and_looked_up_by_preference() {
    let mut server = server(server_config());
    let mut mh = client(client_config());
    let mut cn = client(ClientConfig::new(vec![(SERVER, PORT)]));
    let nid = Nid(0x0014_4fff_ff20_ee64);
    let [first, second, third] = [1, 2, 3].map(|n| Locator(0x2001_0db8_1140_0000 | n));
    let mh_name = name("mh.loc.example");
    for (now, locators) in [
        (at(0), vec![(first, 10)]),
        (at(5000), vec![(second, 20), (third, 10)]),
        (at(9000), vec![(third, 10)]),
    ] {
        mh.update_locators(now, nid, &locators);
        let events = exchange(&mut mh, &mut server, now);
        assert!(
            matches!(&events[..], [ClientEvent::LocatorsUpdated { locators: told, sent: 1, .. }] if *told == locators),
            "{events:?}"
        );
        cn.look_up_locators(now, &mh_name);
        let events = exchange(&mut cn, &mut server, now);
        let mut by_preference = locators;
        by_preference.sort_by_key(|l| l.1);
        match &events[..] {
            [ClientEvent::LocatorsFound { locators, ttl, .. }] => {
                assert_eq!(*locators, by_preference);
                assert_eq!(*ttl, client_config().ttl);
            }
            other => panic!("{other:?}"),
        }
    }
    // the data is that of RFC 6742 section 2.1.1: preference and identifier
    let answer = ask(&mut server, at(9000), &query("mh.loc.example", Rtype::NID)).expect("an answer");
    let records = parse(&answer).answer;
    assert_eq!(
        records[0].rdata.bytes[..],
        [0, 10, 0, 0x14, 0x4f, 0xff, 0xff, 0x20, 0xee, 0x64]
    );
    cn.look_up_locators(at(9000), &name("nobody.loc.example"));
    let events = exchange(&mut cn, &mut server, at(9000));
    assert!(
        matches!(
            events[..],
            [ClientEvent::LookupFailed {
                failure: Failure::NoSuchName,
                ..
            }]
        ),
        "{events:?}"
    );
}

/// RFC 2136 section 2.5: a node that also speaks plain IPv6 replaces its addresses with the rest, and what it does not name stays.
#[test]
fn a_node_publishes_addresses_beside_its_locators() {
    let mut server = server(server_config());
    let mut mh = client(client_config());
    let here = [(Locator(0x2001_0db8_0000_0001), 10)];
    let own = |n: u16| Ipv6Addr::new(0x2001, 0xdb8, 0, n, 0, 0, 0, 7);
    let (first, second) = (own(1), own(2));
    let mut published = |now, addresses: Option<&[Ipv6Addr]>| {
        mh.update_node(now, Nid(7), &here, addresses);
        let events = exchange(&mut mh, &mut server, now);
        assert!(
            matches!(&events[..], [ClientEvent::LocatorsUpdated { .. }]),
            "{events:?}"
        );
        let answer = ask(&mut server, now, &query("mh.loc.example", Rtype::AAAA)).expect("an answer");
        let records = parse(&answer).answer;
        records.iter().map(|r| r.rdata.bytes.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(published(at(0), Some(&[first, second])).len(), 2);
    assert_eq!(published(at(5000), Some(&[second])), [second.octets().to_vec()]);
    assert_eq!(published(at(9000), None), [second.octets().to_vec()]);
    assert!(published(at(12_000), Some(&[])).is_empty());
}

/// RFC 8945 section 5.2.3: a clock that was set is signed by; one that was put back does not make updates go back.
#[test]
fn a_clock_that_was_set_is_signed_by() {
    let mut server = server(server_config());
    let mut mh = client(client_config());
    let update = |mh: &mut Client, server: &mut Server, now| {
        mh.update_locators(
            now,
            Nid(7),
            &[(Locator(0x2001_0db8_0000_0001), now.as_nanos() as u16)],
        );
        exchange(mh, server, now)
    };
    let right = client_config().unix_at_zero;
    mh.handle_clock(right - 4000);
    let events = update(&mut mh, &mut server, at(1));
    assert!(
        matches!(
            events[..],
            [ClientEvent::LocatorsUpdateFailed {
                failure: Failure::ClockSkew { .. }
            }]
        ),
        "{events:?}"
    );
    for (n, offset) in [(2, 0), (3, 20)] {
        mh.handle_clock(right - offset);
        let events = update(&mut mh, &mut server, at(1000 * n));
        assert!(
            matches!(events[..], [ClientEvent::LocatorsUpdated { .. }]),
            "{events:?}"
        );
    }
}

/// RFC 6742 section 2.4: where there is no L64 record, LP names where they are.
#[test]
fn look_ups_follow_lp_records_once() {
    let mut config = server_config();
    config.keys[0].grants[0].below = true;
    let mut server = server(config);
    let lp = |from: &str, to: &str, preference: u8| {
        let mut data = vec![0, preference];
        data.extend_from_slice(name(to).as_slice());
        record(from, Class::IN, Rtype::LP, 5, &data)
    };
    let l64 = record(
        "net.mh.loc.example",
        Class::IN,
        Rtype::L64,
        5,
        &[0, 7, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 9],
    );
    let records = vec![
        lp("mh.loc.example", "nowhere.mh.loc.example", 20),
        lp("mh.loc.example", "net.mh.loc.example", 10),
        lp("loop.mh.loc.example", "mh.loc.example", 10),
        l64,
    ];
    let made = update(&key(), UNIX, Vec::new(), records);
    assert_eq!(rcode(&mut server, at(0), &made), Rcode::NOERROR);
    let mut cn = client(ClientConfig::new(vec![(SERVER, PORT)]));
    cn.look_up_locators(at(0), &name("mh.loc.example"));
    let events = exchange(&mut cn, &mut server, at(0));
    let [ClientEvent::LocatorsFound { locators, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(*locators, [(Locator(0x2001_0db8_0000_0009), 7)]);
    cn.look_up_locators(at(0), &name("loop.mh.loc.example"));
    let events = exchange(&mut cn, &mut server, at(0));
    assert!(
        matches!(
            events[..],
            [ClientEvent::LookupFailed {
                failure: Failure::NoAddress,
                ..
            }]
        ),
        "{events:?}"
    );
}

/// Data that does not fit its type is refused (RFC 2136 section 3.4.1).
#[test]
fn malformed_locator_records_are_refused() {
    let mut server = server(server_config());
    for (rtype, data) in [
        (Rtype::NID, &[0, 10, 1, 2, 3][..]),
        (Rtype::L64, &[0, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (Rtype::L32, &[0, 10, 1, 2, 3]),
        (Rtype::LP, &[0, 10]),
        (Rtype::LP, &[0, 10, 3, b'a']),
    ] {
        let bad = record("mh.loc.example", Class::IN, rtype, 5, data);
        let message = update(&key(), UNIX, Vec::new(), vec![bad]);
        assert_eq!(rcode(&mut server, at(0), &message), Rcode::FORMERR, "{rtype}");
    }
}
