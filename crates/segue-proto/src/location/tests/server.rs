//! What a server makes of updates and questions (RFC 1035, RFC 2136, RFC 2308), and what it keeps.

use super::*;
use crate::location::config::MOST_RECORDS;
use crate::location::place::Place;
use crate::location::rows;
use std::collections::BTreeMap;

/// RFC 1035 section 4.1.4: a pointer has 14 bits.
#[test]
fn names_that_come_first_beyond_16_kb_are_not_pointed_to() {
    let long: Vec<u8> = vec![1; 250];
    for before in [0, 62, 63, 64, 65, 200] {
        let mut message = DnsMessage::new(Header::request(1, Opcode::QUERY));
        let filler = (0..before).map(|_| record("a.loc.example", Class::IN, Rtype::NULL, 5, &long));
        message.answer.extend(filler);
        for n in 0..9 {
            for name in ["b.loc.example", "c.b.loc.example", "x.other", "a.loc.example"] {
                let record = record(name, Class::IN, Rtype::AAAA, 5, &[n; 16]);
                message.additional.push(record);
            }
        }
        let bytes: Bytes = message.emit(usize::from(u16::MAX)).expect("a message").into();
        assert!(!parse(&bytes).header.truncated);
        assert_eq!(parse(&bytes), message, "{before} records before");
    }
}

/// RFC 1035 section 2.3.4: a name has up to 127 labels, and a compressor has places for some of them.
#[test]
fn the_records_of_a_name_fit_a_row_however_many_labels_their_zone_has() {
    for labels in [1, 23, 24, 25, 60, 110] {
        let zone = name(&format!("{}loc", "z.".repeat(labels - 1)));
        let host = name(&format!("a.b.c.{zone}"));
        let records: Vec<Record> = (0..MOST_RECORDS as u16)
            .map(|n| Record {
                name: host.clone(),
                rtype: Rtype::AAAA,
                class: Class::IN,
                ttl: 5,
                rdata: Rdata::opaque([&[0; 14][..], &n.to_be_bytes()].concat()),
            })
            .collect();
        let (top, place) = (Place::of(&zone), Place::of(&host));
        let row = rows::node(&zone, &top, &place, records.clone());
        let value = row.value.expect("records");
        let Some(rows::Kept::Records {
            zone: of,
            records: read,
        }) = rows::read(&row.key, &value)
        else {
            panic!("no records")
        };
        assert_eq!(of, zone);
        assert!(read == records, "{labels} labels: {} records", read.len());
    }
}

#[test]
fn what_is_not_permitted_is_refused() {
    let mut s = server(server_config());
    let others = update(
        &key(),
        UNIX,
        vec![],
        vec![record("www.loc.example", Class::IN, Rtype::AAAA, 5, &[0; 16])],
    );
    assert_eq!(rcode(&mut s, at(0), &others), Rcode::REFUSED);
    let mut unsigned = DnsMessage::new(Header::request(1, Opcode::UPDATE));
    unsigned.questions.push(Question {
        name: name("loc.example"),
        rtype: Rtype::SOA,
        class: Class::IN,
    });
    unsigned.authority.push(aaaa(CELL_1));
    assert_eq!(
        rcode(&mut s, at(0), &unsigned.emit(512).expect("a message")),
        Rcode::REFUSED
    );
    let mut elsewhere = unsigned.clone();
    elsewhere.questions[0].name = name("elsewhere.example");
    assert_eq!(
        rcode(&mut s, at(1), &signed(elsewhere, &key(), UNIX + 1)),
        Rcode::NOTAUTH
    );
    assert_eq!(
        rcode(&mut s, at(0), &query("elsewhere.example", Rtype::AAAA)),
        Rcode::REFUSED
    );
    assert_eq!(
        rcode(&mut s, at(0), &query("loc.example", Rtype::AXFR)),
        Rcode::REFUSED
    );
    assert_eq!(s.serial(&name("loc.example")), Some(1));
}

/// RFC 2136 section 3.2.5, and the table of section 2.4.
#[test]
fn prerequisites_decide_whether_an_update_is_made() {
    let mut s = server_with_record();
    let mut second = 10;
    let mut with = |s: &mut Server, prerequisite: Record| {
        second += 1;
        rcode(
            s,
            at(second * 1000),
            &update(&key(), UNIX + second, vec![prerequisite], vec![aaaa(CELL_2)]),
        )
    };
    let (mh, none) = ("mh.loc.example", "none.loc.example");
    let p = |n, class, rtype| record(n, class, rtype, 0, &[]);
    assert_eq!(with(&mut s, p(none, Class::ANY, Rtype::ANY)), Rcode::NXDOMAIN);
    assert_eq!(with(&mut s, p(mh, Class::ANY, Rtype::ANY)), Rcode::NOERROR);
    assert_eq!(with(&mut s, p(mh, Class::ANY, Rtype::TXT)), Rcode::NXRRSET);
    assert_eq!(with(&mut s, p(mh, Class::ANY, Rtype::AAAA)), Rcode::NOERROR);
    assert_eq!(with(&mut s, p(mh, Class::NONE, Rtype::ANY)), Rcode::YXDOMAIN);
    assert_eq!(with(&mut s, p(none, Class::NONE, Rtype::ANY)), Rcode::NOERROR);
    assert_eq!(with(&mut s, p(mh, Class::NONE, Rtype::AAAA)), Rcode::YXRRSET);
    assert_eq!(with(&mut s, p(mh, Class::NONE, Rtype::TXT)), Rcode::NOERROR);
    let one = record(mh, Class::IN, Rtype::AAAA, 0, &CELL_1.octets());
    assert_eq!(with(&mut s, one.clone()), Rcode::NXRRSET, "there are two by now");
    assert_eq!(with(&mut s, Record { ttl: 1, ..one }), Rcode::FORMERR);
    assert_eq!(
        with(&mut s, p("mh.other.example", Class::ANY, Rtype::ANY)),
        Rcode::NOTZONE
    );
    assert_eq!(
        with(&mut s, record(mh, Class::ANY, Rtype::ANY, 0, &[1])),
        Rcode::FORMERR
    );
    assert_eq!(with(&mut s, p(mh, Class::CH, Rtype::ANY)), Rcode::FORMERR);
}

/// RFC 2136 section 3.4.2: SOA and NS of the zone stay, CNAME stands alone, and the serial follows changes only.
#[test]
fn updates_follow_the_rules_of_section_3_4_2() {
    let everywhere = Grant {
        name: name("loc.example"),
        below: true,
    };
    let mut s = server(ServerConfig {
        keys: vec![KeyConfig {
            key: key(),
            grants: vec![everywhere],
        }],
        ..server_config()
    });
    let mut second = 0;
    let mut make = |s: &mut Server, records: Vec<Record>| {
        second += 1;
        rcode(
            s,
            at(second * 1000),
            &update(&key(), UNIX + second, vec![], records),
        )
    };
    let serial = |s: &Server| s.serial(&name("loc.example")).expect("a serial");
    let types = |s: &mut Server, n: &str| {
        let answer = parse(&ask_tcp(s, at(0), &query(n, Rtype::ANY)).expect("an answer"));
        answer.answer.iter().map(|r| r.rtype).collect::<Vec<_>>()
    };
    let delete = |n, rtype| record(n, Class::ANY, rtype, 0, &[]);
    assert_eq!(
        make(
            &mut s,
            vec![
                delete("loc.example", Rtype::ANY),
                delete("loc.example", Rtype::NS)
            ]
        ),
        Rcode::NOERROR
    );
    assert_eq!(types(&mut s, "loc.example"), [Rtype::NS, Rtype::SOA]);
    assert_eq!(serial(&s), 1, "nothing changed");
    let ns = name("ns.loc.example");
    assert_eq!(
        make(
            &mut s,
            vec![record("loc.example", Class::NONE, Rtype::NS, 0, ns.as_slice())]
        ),
        Rcode::NOERROR
    );
    assert_eq!(
        types(&mut s, "loc.example"),
        [Rtype::NS, Rtype::SOA],
        "the last NS record stays"
    );
    assert_eq!(
        make(&mut s, vec![aaaa(CELL_1), aaaa(CELL_1), aaaa(CELL_2)]),
        Rcode::NOERROR
    );
    assert_eq!((types(&mut s, "mh.loc.example").len(), serial(&s)), (2, 2));
    let alias = record("mh.loc.example", Class::IN, Rtype::CNAME, 5, ns.as_slice());
    assert_eq!(make(&mut s, vec![alias]), Rcode::NOERROR);
    assert_eq!(
        types(&mut s, "mh.loc.example"),
        [Rtype::AAAA, Rtype::AAAA],
        "no CNAME beside data"
    );
    let one = record("mh.loc.example", Class::NONE, Rtype::AAAA, 0, &CELL_1.octets());
    assert_eq!(make(&mut s, vec![one]), Rcode::NOERROR);
    assert_eq!(
        (types(&mut s, "mh.loc.example"), serial(&s)),
        (vec![Rtype::AAAA], 3)
    );
    assert_eq!(
        make(&mut s, vec![delete("mh.loc.example", Rtype::ANY)]),
        Rcode::NOERROR
    );
    let alias = record("key-1.loc.example", Class::IN, Rtype::CNAME, 5, ns.as_slice());
    assert_eq!(make(&mut s, vec![alias]), Rcode::NOERROR);
    let mut cn = client(ClientConfig::new(vec![(SERVER, PORT)]));
    cn.look_up(at(0), &name("key-1.loc.example"));
    assert_eq!(
        resolved(&exchange(&mut cn, &mut s, at(0))),
        [SERVER],
        "through the alias"
    );
    assert_eq!(
        make(
            &mut s,
            vec![record("x.loc.example", Class::IN, Rtype::ANY, 5, &[1])]
        ),
        Rcode::FORMERR
    );
    assert_eq!(
        make(
            &mut s,
            vec![record("x.loc.example", Class::ANY, Rtype::AAAA, 5, &[])]
        ),
        Rcode::FORMERR
    );
    assert_eq!(
        make(
            &mut s,
            vec![record("x.other.example", Class::IN, Rtype::AAAA, 5, &[0; 16])]
        ),
        Rcode::REFUSED
    );
    // All or nothing.
    let before = serial(&s);
    let mixed = vec![
        aaaa(CELL_1),
        record("x.other.example", Class::IN, Rtype::AAAA, 5, &[0; 16]),
    ];
    assert_eq!(make(&mut s, mixed), Rcode::REFUSED);
    assert_eq!((serial(&s), types(&mut s, "mh.loc.example").len()), (before, 0));
}

/// RFC 2308: no such name, and a name without such a record, each with the SOA; RFC 8020 for names in between.
#[test]
fn negative_answers_have_the_soa() {
    let mut s = server_with_record();
    for (qname, expected) in [
        ("none.loc.example", Rcode::NXDOMAIN),
        ("mh.loc.example", Rcode::NOERROR),
        ("x.mh.loc.example", Rcode::NXDOMAIN),
        ("loc.example", Rcode::NOERROR),
    ] {
        let answer = parse(&ask(&mut s, at(0), &query(qname, Rtype::A)).expect("an answer"));
        assert_eq!(
            (answer.header.rcode, answer.answer.len()),
            (expected, 0),
            "{qname}"
        );
        assert_eq!(answer.authority.len(), 1);
        assert_eq!(
            (answer.authority[0].rtype, answer.authority[0].ttl),
            (Rtype::SOA, 5)
        );
        assert!(answer.header.authoritative);
    }
    let soa = parse(&ask(&mut s, at(0), &query("loc.example", Rtype::SOA)).expect("an answer"));
    assert_eq!((soa.answer.len(), soa.answer[0].rtype), (1, Rtype::SOA));
}

#[test]
fn the_answer_to_edns_is_edns_and_an_unknown_version_is_refused() {
    let mut s = server_with_record();
    let mut message = DnsMessage::new(Header::request(5, Opcode::QUERY));
    message.questions.push(Question {
        name: name("mh.loc.example"),
        rtype: Rtype::AAAA,
        class: Class::IN,
    });
    message.edns = Some(Edns {
        udp_payload: 4096,
        version: 0,
        bad_version: false,
    });
    let answer = parse(&ask(&mut s, at(0), &message.emit(512).expect("a message")).expect("an answer"));
    assert_eq!(answer.edns.map(|e| (e.udp_payload, e.version)), Some((1232, 0)));
    message.edns = Some(Edns {
        udp_payload: 4096,
        version: 1,
        bad_version: false,
    });
    let answer = ask(&mut s, at(0), &message.emit(512).expect("a message")).expect("an answer");
    assert!(parse(&answer).answer.is_empty());
    let full = domain::base::Message::from_octets(answer)
        .expect("a message")
        .opt_rcode();
    assert_eq!(full, domain::base::iana::OptRcode::BADVERS);
}

#[test]
fn an_answer_that_does_not_fit_says_so_and_fits_over_tcp() {
    let mut s = server(server_config());
    let many = (0..40)
        .map(|i| aaaa(Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, i)))
        .collect();
    assert_eq!(
        rcode(&mut s, at(0), &update(&key(), UNIX, vec![], many)),
        Rcode::NOERROR
    );
    let question = query("mh.loc.example", Rtype::AAAA);
    let udp = ask(&mut s, at(0), &question).expect("an answer");
    assert!(udp.len() <= 512 && parse(&udp).header.truncated);
    let datagram = Datagram {
        peer: HOST,
        peer_port: 1,
        local_port: PORT,
        data: question.into(),
    };
    s.handle_message(at(0), Transport::Tcp(3), &datagram);
    let answer = s.poll_answer().expect("an answer");
    assert_eq!(
        (answer.transport, parse(&answer.datagram.data).answer.len()),
        (Transport::Tcp(3), 40)
    );
}

/// RFC 2136 section 3.5: neither the requestor nor anybody else learns of a change that could still be lost.
#[test]
fn answers_wait_until_the_change_is_durable() {
    let mut s = server(ServerConfig {
        journal: true,
        ..server_config()
    });
    assert_eq!(ask(&mut s, at(0), &query("mh.loc.example", Rtype::AAAA)), None);
    let zones = s.poll_journal().expect("the zones themselves");
    s.handle_durable(zones.number);
    assert!(s.poll_answer().is_some());
    assert_eq!(
        ask(&mut s, at(0), &update(&key(), UNIX, vec![], vec![aaaa(CELL_1)])),
        None
    );
    let entry = s.poll_journal().expect("a change");
    assert_eq!(ask(&mut s, at(0), &query("mh.loc.example", Rtype::AAAA)), None);
    s.handle_durable(entry.number);
    let (first, second) = (s.poll_answer(), s.poll_answer());
    assert_eq!(
        first.map(|a| parse(&a.datagram.data).header.opcode),
        Some(Opcode::UPDATE)
    );
    assert_eq!(second.map(|a| parse(&a.datagram.data).answer.len()), Some(1));
}

#[test]
fn a_server_that_starts_from_its_journal_or_snapshot_goes_on_as_it_was() {
    let config = ServerConfig {
        journal: true,
        ..server_config()
    };
    let mut s = server(config.clone());
    let first = update(&key(), UNIX, vec![], vec![aaaa(CELL_1)]);
    let second = update(&key(), UNIX + 1, vec![], vec![aaaa(CELL_2)]);
    for data in [&first, &second] {
        let datagram = Datagram {
            peer: HOST,
            peer_port: 1,
            local_port: PORT,
            data: data.clone().into(),
        };
        s.handle_message(at(1000), Transport::Udp, &datagram);
    }
    let journal: Vec<_> = core::iter::from_fn(|| s.poll_journal()).collect();
    assert_eq!(journal.len(), 3, "the zones, and two updates");
    let mut table = BTreeMap::new();
    for row in journal.into_iter().flat_map(|entry| entry.rows) {
        match row.value {
            Some(value) => table.insert(row.key, value),
            None => table.remove(&row.key),
        };
    }
    let state: BTreeMap<_, _> = s.rows().filter_map(|r| Some((r.key, r.value?))).collect();
    assert_eq!(table, state);
    let backwards = table.iter().rev().map(|(k, v)| Ok((k.clone(), v.clone())));
    let mut again = Server::restored::<RestoreError>(config.clone(), backwards).expect("restored");
    assert_eq!(again.zones_for_test(), s.zones_for_test());
    assert_eq!(again.poll_journal(), None);
    // The retransmission of what was acknowledged is answered, and what came before it stays refused.
    assert_eq!(rcode(&mut again, at(1000), &second), Rcode::NOERROR);
    assert_eq!(rcode(&mut again, at(1000), &first), Rcode::NOTAUTH);
    assert_eq!((again.counters().updates, again.counters().repeated), (0, 1));
    let other = ServerConfig {
        zones: vec![ZoneConfig::new(name("other.example"), vec![]).expect("a zone")],
        keys: vec![],
        ..config.clone()
    };
    assert_eq!(
        restored(other, s.rows()).err(),
        Some(RestoreError::UnknownZone("loc.example".to_owned()))
    );
    let row = |key: &[u8], value: &[u8]| Row {
        key: key.to_vec(),
        value: Some(value.to_vec()),
    };
    for bad in [
        row(b"", b""),
        row(b"K\x01k", b"short"),
        row(b"M\x05ab", b"\0"),
        row(b"N", b"?"),
    ] {
        assert_eq!(
            restored(config.clone(), [bad]).err(),
            Some(RestoreError::Malformed)
        );
    }
    // Without its SOA a zone is none.
    let top = s.rows().next().expect("the zone's own name");
    let others = s.rows().filter(|r| *r != top);
    assert_eq!(restored(config, others).err(), Some(RestoreError::Malformed));
}

/// A zone that is added to the configuration of a server that keeps others.
#[test]
fn a_new_zone_is_written_down_and_the_others_stay() {
    let s = server_with_record();
    let mut config = ServerConfig {
        journal: true,
        ..server_config()
    };
    config
        .zones
        .push(ZoneConfig::new(name("new.example"), vec![]).expect("a zone"));
    let mut again = restored(config, s.rows()).expect("restored");
    let entry = again.poll_journal().expect("the new zone");
    assert_eq!(entry.rows.len(), 1);
    assert_eq!(again.poll_journal(), None);
    assert_eq!(
        (
            again.serial(&name("new.example")),
            again.serial(&name("loc.example"))
        ),
        (Some(1), Some(2))
    );
}

/// What was refused once is not taken after a restart, when what stood against it has gone (RFC 8945 section 5.2.3).
#[test]
fn a_refused_update_stays_refused_by_the_server_after_it() {
    let mut s = server_with_record();
    let absent = record("mh.loc.example", Class::NONE, Rtype::AAAA, 0, &[]);
    let refused = update(&key(), UNIX + 5, vec![absent], vec![aaaa(CELL_2)]);
    assert_eq!(rcode(&mut s, at(5000), &refused), Rcode::YXRRSET);
    let mut config = server_config();
    config.keys[0].grants[0].below = true;
    let mut again = restored(config, s.rows()).expect("restored");
    assert_eq!(rcode(&mut again, at(5000), &refused), Rcode::YXRRSET);
    assert_eq!(again.counters().repeated, 1);
}

#[test]
fn whatever_comes_is_dropped_or_answered_but_never_a_reason_to_stop() {
    let mut s = server(server_config());
    let mut mh = client(client_config());
    mh.update(at(0), CELL_1);
    let asked = mh.poll_transmit().expect("an update");
    let answer = ask(&mut s, at(0), &asked.data).expect("an answer");
    let mut random = Stream::new(9, "damage");
    for original in [
        asked.data.clone(),
        answer,
        query("mh.loc.example", Rtype::ANY).into(),
    ] {
        for _ in 0..3000 {
            let mut data = original.to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(data.len() as u64) as usize;
                data[at] = random.next_u64() as u8;
            }
            data.truncate(random.below(data.len() as u64 + 1) as usize);
            let data = Bytes::from(data);
            ask(&mut s, at(1), &data);
            mh.handle_datagram(at(1), &back(&asked, data.clone()));
            let kind = b"NKM"[random.below(3) as usize];
            let key = [&[kind], &data[..data.len() / 2]].concat();
            let value = Some(data.to_vec());
            // An error is as good as none: it must come back.
            let _ = restored(server_config(), [Row { key, value }]);
        }
    }
    assert_eq!(
        s.serial(&name("loc.example")),
        Some(2),
        "the update itself, and nothing forged"
    );
}
