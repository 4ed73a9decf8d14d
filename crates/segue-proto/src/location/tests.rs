//! A client and a server that talk to each other, and what becomes of messages that are not as they should be.

use super::message::{DnsMessage, Edns, Header, Question, Rdata, Record};
use super::tsig::{Algorithm, Key, Signing};
use super::*;
use crate::random::Stream;
use crate::time::{Duration, Instant};
use domain::base::iana::{Class, Opcode, Rcode, Rtype};
use segue_wire::ilnp::{Locator, Nid};

const UNIX: u64 = 1_800_000_000;
const SERVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x53);
const HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const CELL_1: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
const CELL_2: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);

fn name(text: &str) -> Name {
    parse_name(text).expect("a name")
}

fn key() -> Key {
    Key::new(name("mh-key"), Algorithm::HmacSha256, vec![7; 32])
}

fn zone_config() -> ZoneConfig {
    ZoneConfig::new(name("loc.example"), vec![SERVER]).expect("a zone")
}

fn server_config() -> ServerConfig {
    let grants = vec![Grant {
        name: name("mh.loc.example"),
        below: false,
    }];
    ServerConfig {
        unix_at_zero: UNIX,
        ..ServerConfig::new(vec![zone_config()], vec![KeyConfig { key: key(), grants }])
    }
}

fn client_config() -> ClientConfig {
    ClientConfig {
        record: Some((name("loc.example"), name("mh.loc.example"))),
        key: Some(key()),
        unix_at_zero: UNIX,
        ..ClientConfig::new(vec![(SERVER, PORT)])
    }
}

fn client(config: ClientConfig) -> Client {
    Client::new(config, Box::new(Stream::new(1, "client"))).expect("a client")
}

fn server(config: ServerConfig) -> Server {
    Server::new(config).expect("a server")
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// What a server says to one message.
fn ask(server: &mut Server, now: Instant, data: &[u8]) -> Option<Bytes> {
    let datagram = Datagram {
        peer: HOST,
        peer_port: 50_000,
        local_port: PORT,
        data: Bytes::copy_from_slice(data),
    };
    server.handle_message(now, Transport::Udp, &datagram);
    let answer = server.poll_answer().map(|a| a.datagram.data);
    assert_eq!(server.poll_answer(), None);
    answer
}

/// The answer on its way back.
fn back(asked: &Datagram, data: Bytes) -> Datagram {
    Datagram {
        data,
        ..asked.clone()
    }
}

/// Carries everything both ways until there is nothing more, and returns the client's events.
fn exchange(client: &mut Client, server: &mut Server, now: Instant) -> Vec<ClientEvent> {
    while let Some(datagram) = client.poll_transmit() {
        if let Some(answer) = ask(server, now, &datagram.data) {
            client.handle_datagram(now, &back(&datagram, answer));
        }
    }
    core::iter::from_fn(|| client.poll_event()).collect()
}

fn resolved(events: &[ClientEvent]) -> Vec<Ipv6Addr> {
    match events {
        [ClientEvent::Resolved { addresses, .. }] => addresses.clone(),
        other => panic!("expected an address: {other:?}"),
    }
}

/// An update of `mh.loc.example` with these sections, signed with `key` at `unix`.
fn update(key: &Key, unix: u64, prerequisites: Vec<Record>, updates: Vec<Record>) -> Vec<u8> {
    let message = DnsMessage {
        questions: vec![Question {
            name: name("loc.example"),
            rtype: Rtype::SOA,
            class: Class::IN,
        }],
        answer: prerequisites,
        authority: updates,
        ..DnsMessage::new(Header::request(77, Opcode::UPDATE))
    };
    signed(message, key, unix)
}

fn signed(message: DnsMessage, key: &Key, unix: u64) -> Vec<u8> {
    let mut bytes = message.emit(65_535);
    let signing = Signing {
        request_mac: None,
        time_signed: unix,
        fudge: tsig::FUDGE,
        error: 0,
        other: &[],
    };
    tsig::sign(&mut bytes, key, &signing);
    bytes
}

fn record(at: &str, class: Class, rtype: Rtype, ttl: u32, rdata: &[u8]) -> Record {
    Record {
        name: name(at),
        rtype,
        class,
        ttl,
        rdata: Rdata::opaque(rdata.to_vec()),
    }
}

fn aaaa(address: Ipv6Addr) -> Record {
    record("mh.loc.example", Class::IN, Rtype::AAAA, 5, &address.octets())
}

fn query(qname: &str, rtype: Rtype) -> Vec<u8> {
    let mut message = DnsMessage::new(Header::request(5, Opcode::QUERY));
    message.questions.push(Question {
        name: name(qname),
        rtype,
        class: Class::IN,
    });
    message.emit(512)
}

fn parse(bytes: &Bytes) -> DnsMessage {
    DnsMessage::parse(bytes)
        .expect("an answer that can be read")
        .message
}

fn rcode(server: &mut Server, now: Instant, data: &[u8]) -> Rcode {
    parse(&ask(server, now, data).expect("an answer")).header.rcode
}

/// A server that has the record of the mobile host.
fn server_with_record() -> Server {
    let mut s = server(server_config());
    let mut c = client(client_config());
    c.update(at(0), CELL_1);
    let events = exchange(&mut c, &mut s, at(0));
    assert!(matches!(
        events[..],
        [ClientEvent::Updated {
            address: Some(CELL_1),
            ..
        }]
    ));
    s
}

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

/// RFC 8945 section 5.2.3: a clock that was ahead, and has been set right since.
#[test]
fn an_update_after_one_from_the_future_is_told_so() {
    let mut s = server(server_config());
    let mut ahead = client(ClientConfig {
        unix_at_zero: UNIX + 250,
        ..client_config()
    });
    ahead.update(at(0), CELL_1);
    assert!(matches!(
        exchange(&mut ahead, &mut s, at(1))[..],
        [ClientEvent::Updated { .. }]
    ));
    let mut mh = client(client_config());
    mh.update(at(0), CELL_2);
    let events = exchange(&mut mh, &mut s, at(1));
    let [ClientEvent::UpdateFailed { failure, .. }] = events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(failure, Failure::LaterUpdate { wait_s: 301 });
    assert!(
        failure.to_string().contains("signed later than this one"),
        "{failure}"
    );
    // after that time it is taken
    let mut mh = client(ClientConfig {
        unix_at_zero: UNIX + 301,
        ..client_config()
    });
    mh.update(at(0), CELL_2);
    assert!(matches!(
        exchange(&mut mh, &mut s, at(301_000))[..],
        [ClientEvent::Updated { .. }]
    ));
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

/// RFC 8945 sections 5.2.1, 5.2.2 and 5.4: unsigned complaints are reported only when no signed answer comes.
#[test]
fn wrong_keys_change_nothing_and_are_named() {
    let mut s = server(server_config());
    for (k, error) in [
        (
            Key::new(name("mh-key"), Algorithm::HmacSha256, vec![8; 32]),
            tsig::BADSIG,
        ),
        (
            Key::new(name("other-key"), Algorithm::HmacSha256, vec![7; 32]),
            tsig::BADKEY,
        ),
        (
            Key::new(name("mh-key"), Algorithm::HmacSha512, vec![7; 32]),
            tsig::BADKEY,
        ),
    ] {
        let mut mh = client(ClientConfig {
            key: Some(k),
            attempts: Some(1),
            ..client_config()
        });
        mh.update(at(0), CELL_1);
        assert_eq!(exchange(&mut mh, &mut s, at(1)), []);
        mh.handle_timeout(at(1000));
        let failure = Failure::KeyRefused(error);
        assert_eq!(
            mh.poll_event(),
            Some(ClientEvent::UpdateFailed {
                address: Some(CELL_1),
                failure
            })
        );
    }
    assert_eq!(
        (
            s.counters().bad_key,
            s.counters().bad_signature,
            s.counters().updates
        ),
        (2, 1, 0)
    );
}

/// RFC 8945 section 5.2.3.
#[test]
fn a_clock_that_is_wrong_is_told_the_servers_time() {
    let mut s = server(server_config());
    for skew in [301, 0_u64.wrapping_sub(301)] {
        let unix = UNIX.wrapping_add(skew);
        let mut mh = client(ClientConfig {
            unix_at_zero: unix,
            ..client_config()
        });
        mh.update(at(0), CELL_1);
        let failure = Failure::ClockSkew {
            server_time: UNIX,
            our_time: unix,
        };
        let which = if unix > UNIX { "behind" } else { "ahead of" };
        let text =
            format!("the server's clock is 301 s {which} ours: at most 300 s are allowed, set the clock");
        assert_eq!(failure.to_string(), text);
        let failed = ClientEvent::UpdateFailed {
            address: Some(CELL_1),
            failure,
        };
        assert_eq!(exchange(&mut mh, &mut s, at(1)), [failed]);
    }
    let mut mh = client(ClientConfig {
        unix_at_zero: UNIX - 299,
        ..client_config()
    });
    mh.update(at(0), CELL_1);
    assert!(matches!(
        exchange(&mut mh, &mut s, at(1))[..],
        [ClientEvent::Updated { .. }]
    ));
}

#[test]
fn answers_that_are_forged_are_ignored() {
    let mut s = server(server_config());
    let mut mh = client(client_config());
    mh.update(at(0), CELL_1);
    let asked = mh.poll_transmit().expect("an update");
    let answer = ask(&mut s, at(1), &asked.data).expect("an answer");
    let mut damaged = answer.to_vec();
    // Response code: from NOERROR to REFUSED.
    damaged[3] |= 5;
    mh.handle_datagram(at(2), &back(&asked, damaged.into()));
    let unsigned = DnsMessage::new(
        Header::request(u16::from_be_bytes([answer[0], answer[1]]), Opcode::UPDATE).answering(Rcode::NOERROR),
    )
    .emit(512);
    mh.handle_datagram(at(2), &back(&asked, unsigned.into()));
    assert_eq!(mh.counters().not_authentic, 2);
    let elsewhere = Datagram {
        peer: HOST,
        ..back(&asked, answer.clone())
    };
    mh.handle_datagram(at(2), &elsewhere);
    let other_port = Datagram {
        local_port: asked.local_port ^ 1,
        ..back(&asked, answer.clone())
    };
    mh.handle_datagram(at(2), &other_port);
    assert_eq!((mh.counters().unexpected, mh.poll_event()), (2, None));
    mh.handle_datagram(at(3), &back(&asked, answer));
    assert!(matches!(mh.poll_event(), Some(ClientEvent::Updated { .. })));
}

/// RFC 8945 section 5.2.3: a captured update cannot be played again to move the name back.
#[test]
fn replayed_updates_change_nothing() {
    let mut s = server(server_config());
    let first = update(&key(), UNIX, vec![], vec![aaaa(CELL_1)]);
    let same_second = update(
        &key(),
        UNIX,
        vec![],
        vec![
            record("mh.loc.example", Class::ANY, Rtype::AAAA, 0, &[]),
            aaaa(CELL_2),
        ],
    );
    assert_eq!(rcode(&mut s, at(0), &first), Rcode::NOERROR);
    assert_eq!(rcode(&mut s, at(0), &same_second), Rcode::NOERROR);
    assert_eq!(rcode(&mut s, at(1), &first), Rcode::NOERROR, "answered as before");
    assert_eq!((s.counters().updates, s.counters().repeated), (2, 1));
    let later = update(&key(), UNIX + 1, vec![], vec![aaaa(CELL_2)]);
    assert_eq!(rcode(&mut s, at(1000), &later), Rcode::NOERROR);
    assert_eq!(rcode(&mut s, at(1000), &first), Rcode::NOTAUTH);
    let answer = parse(&ask(&mut s, at(1000), &query("mh.loc.example", Rtype::AAAA)).expect("an answer"));
    assert_eq!(answer.answer.len(), 1);
    assert_eq!(answer.answer[0].rdata.bytes, CELL_2.octets()[..]);
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
    assert_eq!(rcode(&mut s, at(0), &unsigned.emit(512)), Rcode::REFUSED);
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
        let answer = parse(&ask(s, at(0), &query(n, Rtype::ANY)).expect("an answer"));
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
    let answer = parse(&ask(&mut s, at(0), &message.emit(512)).expect("an answer"));
    assert_eq!(answer.edns.map(|e| (e.udp_payload, e.version)), Some((1232, 0)));
    message.edns = Some(Edns {
        udp_payload: 4096,
        version: 1,
        bad_version: false,
    });
    let answer = ask(&mut s, at(0), &message.emit(512)).expect("an answer");
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
    assert!(ask(&mut s, at(0), &query("mh.loc.example", Rtype::AAAA)).is_some());
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
    let journal: Vec<_> = core::iter::from_fn(|| s.poll_journal())
        .map(|e| e.bytes)
        .collect();
    assert_eq!(journal.len(), 2);
    for entries in [journal.clone(), s.snapshot()] {
        let mut again = server(config.clone());
        for entry in &entries {
            again.replay(entry).expect("an entry");
        }
        assert_eq!(again.zones_for_test(), s.zones_for_test());
        assert_eq!(again.snapshot(), s.snapshot());
        // The retransmission of what was acknowledged is answered, and what came before it stays refused.
        assert_eq!(rcode(&mut again, at(1000), &second), Rcode::NOERROR);
        assert_eq!(rcode(&mut again, at(1000), &first), Rcode::NOTAUTH);
        assert_eq!((again.counters().updates, again.counters().repeated), (0, 1));
    }
    let mut other = server(ServerConfig {
        zones: vec![ZoneConfig::new(name("other.example"), vec![]).expect("a zone")],
        keys: vec![],
        ..config
    });
    assert_eq!(
        other.replay(&journal[0]),
        Err(ReplayError::UnknownZone("loc.example".to_owned()))
    );
    assert_eq!(other.replay(&[]), Err(ReplayError::Malformed));
    assert_eq!(other.replay(b"K\x05ab"), Err(ReplayError::Malformed));
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

/// RFC 8945 section 5.2.2.1 and 5.2.4, and section 5.1 for where the record may be.
#[test]
fn signatures_that_are_cut_short_or_misplaced_are_refused() {
    let mut s = server(server_config());
    let good = update(&key(), UNIX, vec![], vec![aaaa(CELL_1)]);
    // The MAC ends 6 bytes before the end: original id, error, other length.
    let cut = |keep: usize| {
        let mut data = good.clone();
        let mac = data.len() - 6 - 32;
        data.drain(mac + keep..mac + 32);
        data[mac - 2..mac].copy_from_slice(&(keep as u16).to_be_bytes());
        let rdlen = mac - 2 - 8 - "\x0bhmac-sha256\x00".len() - 2;
        let len = u16::from_be_bytes([data[rdlen], data[rdlen + 1]]) - (32 - keep as u16);
        data[rdlen..rdlen + 2].copy_from_slice(&len.to_be_bytes());
        data
    };
    let answer = DnsMessage::parse(&ask(&mut s, at(0), &cut(16)).expect("an answer")).expect("an answer");
    assert_eq!(answer.message.header.rcode, Rcode::NOTAUTH);
    assert_eq!(
        answer.tsig.map(|t| (t.error, t.mac.len())),
        Some((tsig::BADTRUNC, 32))
    );
    assert_eq!(rcode(&mut s, at(0), &cut(15)), Rcode::FORMERR);
    let mut twice = good.clone();
    let record = twice[twice.len() - key().record_len()..].to_vec();
    twice.extend_from_slice(&record);
    twice[11] += 1;
    assert_eq!(rcode(&mut s, at(0), &twice), Rcode::FORMERR);
    assert_eq!(rcode(&mut s, at(0), &good), Rcode::NOERROR);
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
            let mut again = server(server_config());
            let mut entry = vec![b"UZzK"[random.below(4) as usize]];
            entry.extend_from_slice(&data);
            // An error is as good as none: it must come back.
            let _ = again.replay(&entry);
        }
    }
    assert_eq!(
        s.serial(&name("loc.example")),
        Some(2),
        "the update itself, and nothing forged"
    );
}

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
