//! What somebody without a key, or with one of his own, can make the server do: counted in answers, bytes and comparisons.

use super::super::message::Skimmed;
use super::super::place::compared;
use super::super::tsig::append_unsigned;
use super::*;

/// A header with these counts and the rest of a message.
fn raw(opcode: Opcode, counts: [u16; 4], rest: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 7, opcode.to_int() << 3, 0];
    out.extend(counts.iter().flat_map(|c| c.to_be_bytes()));
    out.extend_from_slice(rest);
    out
}

/// Labels of one octet: `count` of them, without the root.
fn labels(count: usize) -> Vec<u8> {
    (0..count).flat_map(|i| [1, b'a' + (i % 26) as u8]).collect()
}

/// A TSIG record with these names, a MAC of `mac` bytes and nothing else.
fn tsig_record(key: &[u8], algorithm: &[u8], mac: usize) -> Vec<u8> {
    let mut out = key.to_vec();
    out.extend_from_slice(&[0, 250, 0, 255, 0, 0, 0, 0]);
    out.extend_from_slice(&((algorithm.len() + 16 + mac) as u16).to_be_bytes());
    out.extend_from_slice(algorithm);
    out.extend_from_slice(&UNIX.to_be_bytes()[2..]);
    out.extend_from_slice(&tsig::FUDGE.to_be_bytes());
    out.extend_from_slice(&(mac as u16).to_be_bytes());
    out.extend_from_slice(&vec![0; mac]);
    out.extend_from_slice(&[0, 7, 0, 0, 0, 0]);
    out
}

const QTYPE: [u8; 4] = [0, 28, 0, 1];

/// 40 names, then one of 253 bytes, then pointers to it, and a key that nobody has: 2218 bytes that once made an answer that
/// could not be built, and was signed nevertheless.
#[test]
fn more_than_one_question_is_a_format_error_of_twelve_bytes() {
    let mut questions = Vec::new();
    for i in 0..40 {
        questions.extend_from_slice(&[1, b'a' + (i % 26), 0]);
        questions.extend_from_slice(&QTYPE);
    }
    let long = (12 + questions.len()) as u16;
    questions.extend_from_slice(&labels(126));
    questions.push(0);
    questions.extend_from_slice(&QTYPE);
    for _ in 0..298 {
        questions.extend_from_slice(&(0xc000 | long).to_be_bytes());
        questions.extend_from_slice(&QTYPE);
    }
    questions.extend_from_slice(&tsig_record(b"\x01x\0", b"\x0bhmac-sha256\0", 32));
    for opcode in [Opcode::QUERY, Opcode::UPDATE] {
        let data = raw(opcode, [339, 0, 0, 1], &questions);
        let mut s = server(server_config());
        let answer = ask(&mut s, at(0), &data).expect("an answer");
        assert_eq!((answer.len(), parse(&answer).header.rcode), (12, Rcode::FORMERR));
        assert_eq!(s.counters().malformed, 1);
    }
}

#[test]
fn nothing_is_appended_to_what_is_no_message() {
    let data = raw(
        Opcode::QUERY,
        [0, 0, 0, 1],
        &tsig_record(b"\x01x\0", b"\x01y\0", 0),
    );
    let asked = Skimmed::read(&data.into())
        .expect("a request")
        .tsig
        .expect("a signature");
    for mut short in [vec![], vec![0; 11]] {
        let before = short.clone();
        append_unsigned(&mut short, &asked, tsig::BADKEY);
        assert_eq!(short, before);
    }
}

/// Requests whose names are pointers, so that the same names written out are longer than the request.
#[test]
fn what_is_not_about_records_is_no_longer_than_what_was_asked() {
    let mut s = server_with_record();
    let long = [labels(100), vec![0]].concat();
    let question = [&long[..], &QTYPE].concat();
    let unknown = tsig_record(b"\xc0\x0c", b"\xc0\x0c", 0);
    let known = tsig_record(b"\x06mh-key\0", b"\x0bhmac-sha256\0", 16);
    let mut requests = vec![
        raw(Opcode::QUERY, [1, 0, 0, 1], &[&question[..], &unknown].concat()),
        raw(Opcode::UPDATE, [1, 0, 0, 1], &[&question[..], &unknown].concat()),
        raw(Opcode::UPDATE, [1, 0, 0, 1], &[&question[..], &known].concat()),
        raw(Opcode::UPDATE, [1, 0, 0, 0], &question),
        raw(Opcode::STATUS, [1, 0, 0, 0], &question),
        raw(Opcode::QUERY, [1, 0, 0, 0], &question),
        raw(Opcode::QUERY, [0, 0, 0, 0], &[]),
        raw(Opcode::QUERY, [1, 0, 0, 0], &[]),
        raw(Opcode::QUERY, [0, 1, 0, 0], &[0; 10]),
        // a name that begins in the header
        raw(Opcode::QUERY, [1, 0, 0, 0], &[0xc0, 1, 0, 28, 0, 1]),
        query("mh.loc.example", Rtype::ANY),
        query("mh.loc.example", Rtype::AXFR),
        query("mh.elsewhere.example", Rtype::AAAA),
    ];
    let mut edns = raw(Opcode::QUERY, [1, 0, 0, 1], &question);
    edns.extend_from_slice(&[0, 0, 41, 255, 255, 0, 9, 0, 0, 0, 0]);
    requests.push(edns);
    for request in requests {
        let answer = ask(&mut s, at(1), &request).expect("an answer");
        assert!(
            answer.len() <= request.len(),
            "{} to {}: {request:?}",
            answer.len(),
            request.len()
        );
        assert!(parse(&answer).header.response);
    }
}

/// RFC 8482 section 4.4: what is to be had all at once is to be had over TCP, or by who has a key.
#[test]
fn any_over_udp_is_sent_to_tcp() {
    let mut s = server_with_record();
    let any = query("mh.loc.example", Rtype::ANY);
    let answer = parse(&ask(&mut s, at(0), &any).expect("an answer"));
    assert!(answer.header.truncated && answer.answer.is_empty());
    let answer = parse(&ask_tcp(&mut s, at(0), &any).expect("an answer"));
    assert!(!answer.header.truncated && answer.answer.len() == 1);
    let message = parse(&any.into());
    let answer = parse(&ask(&mut s, at(0), &signed(message, &key(), UNIX)).expect("an answer"));
    assert_eq!(answer.answer.len(), 1);
}

/// The greatest answer there is over UDP, whatever is kept at the name and whatever room the request says there is.
#[test]
fn answers_over_udp_end_where_the_limits_are() {
    let mut s = server(server_config());
    let many = (0..64).map(|i| aaaa(Ipv6Addr::from_bits(i))).collect();
    assert_eq!(
        rcode(&mut s, at(0), &update(&key(), UNIX, vec![], many)),
        Rcode::NOERROR
    );
    for (room, most) in [
        (None, 512),
        (Some(0), 512),
        (Some(600), 600),
        (Some(65_535), 1232),
    ] {
        let mut message = parse(&query("mh.loc.example", Rtype::AAAA).into());
        message.edns = room.map(|udp_payload| Edns {
            udp_payload,
            version: 0,
            bad_version: false,
        });
        let asked = message.emit(512).expect("a message");
        let answer = ask(&mut s, at(1), &asked).expect("an answer");
        assert!(answer.len() <= most);
        let full = 12 + 20 + 64 * 28 > most;
        assert_eq!(
            (parse(&answer).header.truncated, answer.len() == asked.len()),
            (full, full)
        );
    }
}

fn everywhere(config: ServerConfig) -> ServerConfig {
    let mut config = config;
    config.keys[0].grants = vec![Grant {
        name: name("loc.example"),
        below: true,
    }];
    config
}

fn host(n: u32, address: Ipv6Addr) -> Vec<Record> {
    let at = format!("mh{n}.loc.example");
    vec![
        record(&at, Class::ANY, Rtype::AAAA, 0, &[]),
        record(&at, Class::IN, Rtype::AAAA, 5, &address.octets()),
    ]
}

#[test]
fn a_name_has_no_more_records_and_bytes_than_it_may() {
    let mut s = server(everywhere(server_config()));
    let addresses = |n: u128| (0..n).map(|i| aaaa(Ipv6Addr::from_bits(i))).collect::<Vec<_>>();
    let mut second = 0;
    let mut make = |s: &mut Server, updates| {
        second += 1;
        rcode(
            s,
            at(second * 1000),
            &update(&key(), UNIX + second, vec![], updates),
        )
    };
    let count = |s: &Server| s.rows().count();
    assert_eq!(make(&mut s, addresses(65)), Rcode::REFUSED);
    assert_eq!(make(&mut s, addresses(64)), Rcode::NOERROR);
    let full = count(&s);
    assert_eq!(make(&mut s, vec![aaaa(CELL_1)]), Rcode::REFUSED, "one more");
    let other_type = record("mh.loc.example", Class::IN, Rtype::TXT, 5, b"\x01x");
    assert_eq!(make(&mut s, vec![other_type]), Rcode::REFUSED, "of whatever type");
    let replaced = vec![
        record("mh.loc.example", Class::ANY, Rtype::AAAA, 0, &[]),
        aaaa(CELL_1),
    ];
    assert_eq!(make(&mut s, replaced), Rcode::NOERROR);
    let text = |n: u8| {
        record(
            "mh.loc.example",
            Class::IN,
            Rtype::TXT,
            5,
            &[&[255], &[n; 255][..]].concat(),
        )
    };
    let texts: Vec<_> = (0..63).map(text).collect();
    assert_eq!(
        make(&mut s, texts),
        Rcode::REFUSED,
        "63 records of 268 bytes are more than 16 KiB"
    );
    assert_eq!(make(&mut s, (0..60).map(text).collect()), Rcode::NOERROR);
    assert_eq!(count(&s), full);
}

#[test]
fn hosts_move_in_a_zone_that_is_full() {
    let room = Room {
        names: 5,
        ..Room::default()
    };
    let mut s = server(everywhere(ServerConfig {
        room,
        ..server_config()
    }));
    let mut second = 0;
    let mut make = |s: &mut Server, updates| {
        second += 1;
        rcode(
            s,
            at(second * 1000),
            &update(&key(), UNIX + second, vec![], updates),
        )
    };
    // the zone itself and its server are two of them
    for n in 0..3 {
        assert_eq!(make(&mut s, host(n, CELL_1)), Rcode::NOERROR);
    }
    assert_eq!(make(&mut s, host(3, CELL_1)), Rcode::REFUSED);
    for n in 0..3 {
        assert_eq!(
            make(&mut s, host(n, CELL_2)),
            Rcode::NOERROR,
            "it was there before"
        );
    }
    let gone = record("mh0.loc.example", Class::ANY, Rtype::ANY, 0, &[]);
    let exchanged = [vec![gone.clone()], host(3, CELL_1)].concat();
    assert_eq!(make(&mut s, exchanged), Rcode::NOERROR, "one for another");
    // Under limits that were narrowed since, too.
    let narrow = Room {
        names: 1,
        records: 1,
        bytes: 1,
    };
    let mut s = restored(
        everywhere(ServerConfig {
            room: narrow,
            ..server_config()
        }),
        s.rows(),
    )
    .expect("restored");
    assert_eq!(make(&mut s, host(1, CELL_1)), Rcode::NOERROR);
    assert_eq!(make(&mut s, host(0, CELL_1)), Rcode::REFUSED);
}

/// A referral is as long as its name servers, and not as all their addresses.
#[test]
fn glue_is_bounded() {
    let mut s = server(everywhere(server_config()));
    let mut updates = Vec::new();
    for n in 0..60 {
        let target = format!("ns{n}.loc.example");
        updates.push(record(
            "sub.loc.example",
            Class::IN,
            Rtype::NS,
            5,
            name(&target).as_slice(),
        ));
        updates.push(record(&target, Class::IN, Rtype::AAAA, 5, &CELL_1.octets()));
    }
    assert_eq!(
        rcode(&mut s, at(0), &update(&key(), UNIX, vec![], updates)),
        Rcode::NOERROR
    );
    let answer = parse(&ask_tcp(&mut s, at(0), &query("x.sub.loc.example", Rtype::AAAA)).expect("an answer"));
    assert_eq!((answer.authority.len(), answer.additional.len()), (60, 32));
    assert!(!answer.header.authoritative);
}

/// Hosts with a name and a key each: what their server is configured with, and what it has kept.
fn crowd(hosts: u32) -> (ServerConfig, Vec<Row>) {
    let mut config = server_config();
    config.keys.extend((0..hosts).map(|n| KeyConfig {
        key: Key::new(name(&format!("key{n}")), Algorithm::HmacSha256, vec![7; 32]),
        grants: vec![Grant {
            name: name(&format!("mh{n}.loc.example")),
            below: false,
        }],
    }));
    let row_of = |n: u32| {
        let at = name(&format!("mh{n}.loc.example"));
        let zone = name("loc.example");
        let records = vec![record(
            &format!("mh{n}.loc.example"),
            Class::IN,
            Rtype::AAAA,
            5,
            &CELL_1.octets(),
        )];
        let [zone_at, at] = [&zone, &at].map(place::Place::of);
        rows::node(&zone, &zone_at, &at, records)
    };
    let zones = server(server_config()).rows().collect::<Vec<_>>();
    (config, zones.into_iter().chain((0..hosts).map(row_of)).collect())
}

/// The comparisons of names that each kind of packet costs among so many hosts.
fn comparisons(hosts: u32) -> Vec<(&'static str, u64)> {
    let (config, rows) = crowd(hosts);
    let mut s = restored(config, rows).expect("restored");
    let middle = hosts / 2;
    let of_middle = Key::new(name(&format!("key{middle}")), Algorithm::HmacSha256, vec![7; 32]);
    let nobodys = Key::new(name("nobody"), Algorithm::HmacSha256, vec![7; 32]);
    let deep = format!("{}mh{middle}.loc.example", "a.".repeat(115));
    let delegated = format!("{}loc.example", "a.".repeat(115));
    let present = format!("mh{middle}.loc.example");
    let packets = [
        ("query", query(&present, Rtype::AAAA)),
        ("query for nobody", query("nobody.loc.example", Rtype::AAAA)),
        ("query of 118 labels below a host", query(&deep, Rtype::AAAA)),
        ("query of 117 labels", query(&delegated, Rtype::AAAA)),
        (
            "unknown key",
            update(&nobodys, UNIX, vec![], host(middle, CELL_2)),
        ),
        ("update", update(&of_middle, UNIX, vec![], host(middle, CELL_2))),
        (
            "replayed update",
            update(&of_middle, UNIX, vec![], host(middle, CELL_2)),
        ),
    ];
    let mut counted = Vec::new();
    for (what, data) in packets {
        compared();
        assert!(ask(&mut s, at(0), &data).is_some());
        counted.push((what, compared()));
    }
    assert_eq!((s.counters().updates, s.counters().repeated), (1, 1));
    counted
}

/// A hundred times as many hosts: the work grows as the height of a tree does.
#[test]
fn a_packet_costs_hardly_more_with_a_hundred_thousand_hosts() {
    let (few, many) = (comparisons(1000), comparisons(100_000));
    for ((what, few), (_, many)) in few.into_iter().zip(many) {
        assert!(
            many < 2 * few + 40 && many < 400,
            "{what}: {few} comparisons, then {many}"
        );
    }
}

/// A hundred times as many hosts take a hundred times as long to start with, but for the height of a tree.
#[test]
fn a_server_that_starts_again_looks_for_no_row_among_the_others() {
    let [few, many] = [1000, 100_000].map(|hosts| {
        let (config, rows) = crowd(hosts);
        compared();
        drop(restored(config, rows).expect("restored"));
        compared() / u64::from(hosts)
    });
    assert!(few > 0);
    assert!(
        many < 2 * few + 40 && many < 400,
        "{few} comparisons for each, then {many}"
    );
}

/// Every update of a second, and every name of one that has as many as it can.
#[test]
fn what_a_key_has_signed_is_found_without_a_search() {
    let mut s = server(everywhere(server_config()));
    for n in 0..4096 {
        assert_eq!(
            rcode(&mut s, at(0), &update(&key(), UNIX, vec![], host(n, CELL_1))),
            Rcode::NOERROR
        );
    }
    let more = update(&key(), UNIX, vec![], host(4096, CELL_1));
    assert_eq!(
        rcode(&mut s, at(0), &more),
        Rcode::SERVFAIL,
        "told to come again in the next second"
    );
    let first = update(&key(), UNIX, vec![], host(0, CELL_1));
    compared();
    assert_eq!(rcode(&mut s, at(0), &first), Rcode::NOERROR);
    assert!(compared() < 40);
    assert_eq!(s.counters().repeated, 1);
}
