//! The machine between applications and scripted servers; each test reads like a packet trace.

use super::config::Server;
use super::message::{HEADER, question};
use super::*;
use domain::base::iana::{Class, Rtype};
use domain::base::name::ToName as _;
use domain::base::rdata::UnknownRecordData;
use domain::base::{Message, MessageBuilder, Ttl};
use domain::rdata::{Aaaa, Cname, Soa};
use proptest::prelude::*;
use segue_proto::location::tsig::{Algorithm, Key};
use segue_proto::random::Stream;

const PREFIX: Locator = Locator(0xfd53_6567_7565_0001);
const OWN: Nid = Nid(0x02aa_0000_0000_0001);
const PEER: Nid = Nid(0x02aa_0000_0000_0002);
const FIRST: Locator = Locator(0x2001_0db8_0001_0000);
const SECOND: Locator = Locator(0x2001_0db8_0002_0000);
const SERVERS: [&str; 2] = ["2001:db8::53", "192.0.2.53"];
const APPLICATION: &str = "[::1]:40000";

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn name(text: &str) -> Name {
    parse_name(text).unwrap()
}

fn server(number: usize) -> Server {
    Server::of((SERVERS[number].parse::<std::net::IpAddr>().unwrap(), 53).into())
}

fn identity(nid: Nid) -> Ipv6Addr {
    PREFIX.address(nid)
}

fn secrets(name: &str) -> Box<dyn SecretRng> {
    Box::new(Stream::new(1, name))
}

fn names_of(servers: usize, peers: &[PeerConfig], publish: Option<config::Publish>) -> Names {
    let config = NamesConfig {
        listen: vec!["[::1]:53".parse().unwrap()],
        upstream: (0..servers).map(server).collect(),
        publish,
    };
    let own = Own {
        nid: OWN,
        identity_prefix: PREFIX,
    };
    Names::new(
        Some(&config),
        own,
        peers,
        [secrets("questions"), secrets("updates")],
    )
    .unwrap()
}

fn names() -> Names {
    names_of(1, &[], None)
}

fn asker(from: &str) -> Asker {
    Asker::Datagram {
        listener: 0,
        from: from.parse().unwrap(),
    }
}

/// An application's question, number 7.
fn query(text: &str, rtype: Rtype) -> Vec<u8> {
    let mut bytes = question(&name(text), rtype);
    bytes[1] = 7;
    bytes
}

fn ask(names: &mut Names, now: Instant, text: &str, rtype: Rtype) {
    names.handle_query(now, asker(APPLICATION), &query(text, rtype));
}

/// Questions that went to servers, by what they ask for.
#[derive(Default)]
struct Sent(Vec<(String, Rtype, Datagram)>);

impl Sent {
    fn of(names: &mut Names) -> Self {
        let mut sent = Self::default();
        while let Some(datagram) = names.poll_datagram() {
            let message = Message::from_octets(&datagram.data[..]).unwrap();
            let question = message.sole_question().unwrap();
            let text = question.qname().to_bytes().to_string().to_ascii_lowercase();
            sent.0.push((text, question.qtype(), datagram));
        }
        sent
    }

    fn types(&self) -> Vec<Rtype> {
        self.0.iter().map(|(_, rtype, _)| *rtype).collect()
    }

    fn one(&self, rtype: Rtype) -> &Datagram {
        let mut found = self.0.iter().filter(|(_, other, _)| *other == rtype);
        let (_, _, datagram) = found.next().unwrap_or_else(|| panic!("no question for {rtype}"));
        datagram
    }
}

/// Records of an answer.
#[derive(Clone)]
enum Data {
    Raw(Rtype, Vec<u8>),
    Alias(&'static str),
}

fn pair(rtype: Rtype, preference: u16, value: u64) -> Data {
    let mut data = preference.to_be_bytes().to_vec();
    data.extend_from_slice(&value.to_be_bytes());
    Data::Raw(rtype, data)
}

fn nid(preference: u16, nid: Nid) -> Data {
    pair(Rtype::NID, preference, nid.0)
}

fn l64(preference: u16, locator: Locator) -> Data {
    pair(Rtype::L64, preference, locator.0)
}

fn aaaa(address: &str) -> Data {
    Data::Raw(
        Rtype::AAAA,
        address.parse::<Ipv6Addr>().unwrap().octets().to_vec(),
    )
}

fn respond(question: &[u8], rcode: Rcode, ttl: u32, records: &[(&str, Data)]) -> Vec<u8> {
    let asked = Message::from_octets(question).unwrap();
    let mut answer = MessageBuilder::new_bytes().start_answer(&asked, rcode).unwrap();
    let ttl = Ttl::from_secs(ttl);
    for (owner, data) in records {
        match data {
            Data::Raw(rtype, data) => {
                let data = UnknownRecordData::from_octets(*rtype, data.clone()).unwrap();
                answer.push((name(owner), Class::IN, ttl, data)).unwrap();
            }
            Data::Alias(to) => answer
                .push((name(owner), Class::IN, ttl, Cname::new(name(to))))
                .unwrap(),
        }
    }
    let mut authority = answer.authority();
    if records.is_empty() {
        let soa = Soa::new(
            name("ns.example"),
            name("host.example"),
            1.into(),
            ttl,
            ttl,
            ttl,
            ttl,
        );
        authority.push((name("example"), Class::IN, ttl, soa)).unwrap();
    }
    authority.finish().to_vec()
}

/// A server's answer to a question that was sent.
fn answer_with(names: &mut Names, now: Instant, sent: &Datagram, bytes: Vec<u8>) {
    let back = Datagram {
        data: bytes.into(),
        ..sent.clone()
    };
    names.handle_datagram(now, &back);
}

fn answer(names: &mut Names, now: Instant, sent: &Datagram, records: &[(&str, Data)]) {
    answer_with(names, now, sent, respond(&sent.data, Rcode::NOERROR, 30, records));
}

/// What an application was told: the code, the addresses with the least time to live.
fn told(names: &mut Names) -> (Rcode, Vec<Ipv6Addr>, u32) {
    let answer = names.poll_answer().expect("an answer");
    assert_eq!(answer.to, asker(APPLICATION));
    assert_eq!(names.poll_answer(), None);
    let message = Message::from_octets(&answer.message[..]).unwrap();
    assert_eq!((message.header().id(), message.header().qr()), (7, true));
    let all = message.answer().unwrap().limit_to_in::<Aaaa>().flatten();
    let all: Vec<(Ipv6Addr, u32)> = all
        .map(|r| (r.data().addr().octets().into(), r.ttl().as_secs()))
        .collect();
    let ttl = all.iter().map(|(_, ttl)| *ttl).min().unwrap_or(0);
    (
        message.header().rcode(),
        all.into_iter().map(|(a, _)| a).collect(),
        ttl,
    )
}

fn count(names: &Names, what: &str) -> u64 {
    let counters = names.counters();
    counters
        .into_iter()
        .find(|(name, _)| *name == what)
        .expect("a counter")
        .1
}

/// Has the machine learn that `text` is the peer at `locators`.
fn learn(names: &mut Names, now: Instant, text: &str, locators: &[(u16, Locator)]) {
    ask(names, now, text, Rtype::AAAA);
    let sent = Sent::of(names);
    answer(names, now, sent.one(Rtype::NID), &[(text, nid(10, PEER))]);
    let records: Vec<(&str, Data)> = locators.iter().map(|(p, l)| (text, l64(*p, *l))).collect();
    let next = Sent::of(names);
    answer(names, now, next.one(Rtype::L64), &records);
    assert_eq!(told(names).1, [identity(PEER)]);
}

fn peer_of_file(name: Option<&str>) -> PeerConfig {
    PeerConfig {
        nid: PEER,
        locators: vec![FIRST, SECOND],
        name: name.map(str::to_owned),
    }
}

/// RFC 6742: NID and L64 make an identity; what they say is told to the shim once, the better locator first.
#[test]
fn a_name_with_an_identifier_and_locators_is_answered_with_the_identity() {
    let mut names = names();
    ask(&mut names, at(0), "server.example", Rtype::AAAA);
    let sent = Sent::of(&mut names);
    assert_eq!(sent.types(), [Rtype::AAAA, Rtype::NID]);
    assert_ne!(sent.0[0].2.local_port, sent.0[1].2.local_port);
    let plain = [("server.example", aaaa("2001:db8:77::1"))];
    answer(&mut names, at(20), sent.one(Rtype::AAAA), &plain);
    assert_eq!(names.poll_answer(), None, "the name may be a node's");
    answer(
        &mut names,
        at(21),
        sent.one(Rtype::NID),
        &[("server.example", nid(10, PEER))],
    );
    let next = Sent::of(&mut names);
    assert_eq!(next.types(), [Rtype::L64]);
    let records = [
        ("server.example", l64(20, SECOND)),
        ("server.example", l64(10, FIRST)),
    ];
    answer(&mut names, at(40), next.one(Rtype::L64), &records);
    assert_eq!(told(&mut names), (Rcode::NOERROR, vec![identity(PEER)], 30));
    names.handle_look_up(at(50), identity(PEER));
    let found = names.poll_found().expect("it was just said");
    assert_eq!(found.locators, [(FIRST, 10), (SECOND, 20)]);
    assert!(names.poll_datagram().is_none());
    // it is believed as long as it said, with what is left of that
    ask(&mut names, at(10_040), "SERVER.example", Rtype::AAAA);
    assert_eq!(told(&mut names), (Rcode::NOERROR, vec![identity(PEER)], 20));
    ask(&mut names, at(30_041), "server.example", Rtype::AAAA);
    assert_eq!(Sent::of(&mut names).types(), [Rtype::AAAA, Rtype::NID]);
}

/// Both ends have moved: a second question is by somebody who did not get there, and nothing that is remembered is of use.
#[test]
fn who_did_not_get_there_is_told_what_the_servers_say_now() {
    let mut names = names();
    learn(&mut names, at(0), "server.example", &[(10, FIRST)]);
    names.handle_look_up(at(10), identity(PEER));
    assert_eq!(names.poll_found().unwrap().locators, [(FIRST, 10)]);
    names.handle_look_up(at(1000), identity(PEER));
    names.handle_look_up(at(1001), identity(PEER));
    let sent = Sent::of(&mut names);
    assert_eq!(sent.types(), [Rtype::L64], "once");
    // there is no network yet: it goes out again
    names.handle_timeout(at(1700), 0, |_| true);
    let again = Sent::of(&mut names);
    assert_eq!(again.0[0].2, sent.0[0].2);
    answer(
        &mut names,
        at(1750),
        again.one(Rtype::L64),
        &[("server.example", l64(10, SECOND))],
    );
    let found = names.poll_found().unwrap();
    assert_eq!((found.peer, found.locators), (identity(PEER), vec![(SECOND, 10)]));
    assert_eq!(names.learnt().next().unwrap().1.locators, [(SECOND, 10)]);
    // what was remembered of the name is not any more
    ask(&mut names, at(1800), "server.example", Rtype::AAAA);
    assert_eq!(Sent::of(&mut names).types(), [Rtype::AAAA, Rtype::NID]);
}

#[test]
fn who_is_not_known_is_nowhere() {
    let mut names = names();
    names.handle_look_up(at(0), identity(PEER));
    assert_eq!(names.poll_found().unwrap().locators, []);
    assert_eq!(count(&names, "look_ups_in_vain"), 1);
}

/// Peers without the agent: as if it were not there.
#[test]
fn what_is_no_nodes_is_passed_on_as_it_came() {
    let mut names = names();
    ask(&mut names, at(0), "www.example", Rtype::AAAA);
    let sent = Sent::of(&mut names);
    answer_with(
        &mut names,
        at(5),
        sent.one(Rtype::NID),
        respond(&sent.one(Rtype::NID).data, Rcode::NOERROR, 60, &[]),
    );
    let plain = [
        ("www.example", Data::Alias("host.example")),
        ("host.example", aaaa("2001:db8:77::1")),
    ];
    let bytes = respond(&sent.one(Rtype::AAAA).data, Rcode::NOERROR, 30, &plain);
    answer_with(&mut names, at(20), sent.one(Rtype::AAAA), bytes.clone());
    let told = names.poll_answer().unwrap().message;
    let end = HEADER + 17;
    assert_eq!(told[2..HEADER], bytes[2..HEADER]);
    assert_eq!(told[HEADER..end], query("www.example", Rtype::AAAA)[HEADER..end]);
    assert_eq!(told[end..], bytes[end..]);
    // it is known now that there is nothing else to ask
    ask(&mut names, at(1000), "www.example", Rtype::AAAA);
    assert_eq!(Sent::of(&mut names).types(), [Rtype::AAAA]);
    // nor for other types, whatever the name
    ask(&mut names, at(1000), "other.example", Rtype::MX);
    assert_eq!(Sent::of(&mut names).types(), [Rtype::MX]);
}

#[test]
fn a_server_that_is_silent_about_nodes_holds_up_nothing_for_long() {
    let mut names = names();
    let plain = [("www.example", aaaa("2001:db8:77::1"))];
    for round in 0..3 {
        let begin = 20_000 * round;
        ask(&mut names, at(begin), "www.example", Rtype::AAAA);
        let sent = Sent::of(&mut names);
        answer(&mut names, at(begin + 20), sent.one(Rtype::AAAA), &plain);
        names.handle_timeout(at(begin + 1019), 0, |_| false);
        assert_eq!(names.poll_answer(), None);
        assert_eq!(names.queries.poll_timeout(), Some(at(begin + 1020)));
        names.handle_timeout(at(begin + 1020), 0, |_| false);
        assert_eq!(told(&mut names).1.len(), 1);
        for later in [2000, 4000, 6000, 10_000] {
            names.handle_timeout(at(begin + later), 0, |_| false);
        }
        assert!(names.findings.is_empty());
        let _ = Sent::of(&mut names);
    }
    assert_eq!(count(&names, "node_undecided"), 3);
    // after three it is left alone, for a minute
    ask(&mut names, at(60_000), "www.example", Rtype::AAAA);
    let sent = Sent::of(&mut names);
    assert!(!sent.types().contains(&Rtype::NID));
    answer(&mut names, at(60_020), sent.one(Rtype::AAAA), &plain);
    assert_eq!(told(&mut names).1.len(), 1);
}

/// RFC 5452 section 9: an answer has the number, the question, the server and the port. All else changes nothing.
#[test]
fn forged_answers_are_counted_and_change_nothing() {
    let mut names = names_of(2, &[], None);
    ask(&mut names, at(0), "server.example", Rtype::AAAA);
    let sent = Sent::of(&mut names);
    let asked = sent.one(Rtype::NID).clone();
    let evil = [("server.example", nid(1, Nid(666)))];
    let good = respond(&asked.data, Rcode::NOERROR, 30, &evil);
    let mut forged = |change: &dyn Fn(&mut Datagram, &mut Vec<u8>), counter: &str| {
        let (mut datagram, mut bytes) = (asked.clone(), good.clone());
        change(&mut datagram, &mut bytes);
        let before = count(&names, counter);
        answer_with(&mut names, at(1), &datagram, bytes);
        assert_eq!(count(&names, counter), before + 1, "{counter}");
        assert!(names.poll_datagram().is_none());
    };
    forged(&|d, _| d.peer = server(1).address, "upstream_wrong_source");
    forged(&|d, _| d.peer_port = 5353, "upstream_wrong_source");
    forged(&|d, _| d.local_port ^= 1, "upstream_late");
    forged(&|_, b| b[0] ^= 1, "upstream_wrong_answer");
    forged(&|_, b| b[2] ^= 0x80, "upstream_wrong_answer");
    forged(&|_, b| b[HEADER + 1] ^= 1, "upstream_wrong_answer");
    forged(&|_, b| b[5] = 0, "upstream_wrong_answer");
    forged(&|_, b| b.truncate(11), "upstream_wrong_answer");
    answer(&mut names, at(2), &asked, &[("server.example", nid(10, PEER))]);
    assert_eq!(Sent::of(&mut names).types(), [Rtype::L64]);
}

/// Letters are sent as capitals or not, by chance; a server that answers in others is asked once more as it was asked for.
#[test]
fn a_server_that_does_not_keep_letters_is_asked_without_them() {
    let mut names = names();
    let long = "a-long-name-with-many-letters.in-a-zone-with-more-of-them.example";
    ask(&mut names, at(0), long, Rtype::TXT);
    let sent = Sent::of(&mut names);
    let asked = sent.one(Rtype::TXT).clone();
    let plain = question(&name(long), Rtype::TXT);
    let end = HEADER + long.len() + 2;
    assert_ne!(asked.data[HEADER..end], plain[HEADER..end]);
    let mut bytes = respond(&asked.data, Rcode::NOERROR, 30, &[]);
    bytes[HEADER..end].make_ascii_lowercase();
    answer_with(&mut names, at(5), &asked, bytes);
    assert_eq!(
        (names.poll_answer(), count(&names, "upstream_other_letters")),
        (None, 1)
    );
    let again = Sent::of(&mut names);
    let again = again.one(Rtype::TXT);
    assert_eq!(again.data[HEADER..end], plain[HEADER..end]);
    assert_ne!(again.local_port, asked.local_port);
    answer(&mut names, at(10), again, &[]);
    assert_eq!(told(&mut names).0, Rcode::NOERROR);
}

#[test]
fn servers_are_asked_in_turn_and_one_that_refuses_is_not_the_last() {
    let mut names = names_of(2, &[], None);
    ask(&mut names, at(0), "www.example", Rtype::A);
    let first = Sent::of(&mut names);
    assert_eq!(first.0[0].2.peer, server(0).address);
    names.handle_timeout(at(700), 0, |_| false);
    let second = Sent::of(&mut names);
    assert_eq!(
        (second.0[0].2.peer, second.0[0].2.data.clone()),
        (server(1).address, first.0[0].2.data.clone())
    );
    // the first answers after all
    answer(&mut names, at(720), &first.0[0].2, &[]);
    assert_eq!(told(&mut names).0, Rcode::NOERROR);
    ask(&mut names, at(1000), "www.example", Rtype::A);
    let sent = Sent::of(&mut names);
    answer_with(
        &mut names,
        at(1001),
        &sent.0[0].2,
        respond(&sent.0[0].2.data, Rcode::SERVFAIL, 0, &[]),
    );
    let next = Sent::of(&mut names);
    assert_eq!(next.0[0].2.peer, server(1).address);
    answer_with(
        &mut names,
        at(1002),
        &next.0[0].2,
        respond(&next.0[0].2.data, Rcode::REFUSED, 0, &[]),
    );
    assert_eq!(told(&mut names).0, Rcode::REFUSED);
    // and none at all
    ask(&mut names, at(2000), "www.example", Rtype::A);
    for ms in [2700, 4100, 6899] {
        names.handle_timeout(at(ms), 0, |_| false);
        assert_eq!(names.poll_answer(), None);
    }
    names.handle_timeout(at(6900), 0, |_| false);
    assert_eq!(told(&mut names).0, Rcode::SERVFAIL);
    assert_eq!(count(&names, "upstream_unanswered"), 1);
}

/// RFC 7766 section 5: what does not fit is asked for over TCP, of an application by itself.
#[test]
fn truncated_answers_are_asked_for_over_tcp() {
    let mut names = names();
    ask(&mut names, at(0), "server.example", Rtype::AAAA);
    let sent = Sent::of(&mut names);
    let mut short = respond(&sent.one(Rtype::NID).data, Rcode::NOERROR, 0, &[]);
    short[2] |= 2;
    answer_with(&mut names, at(5), sent.one(Rtype::NID), short);
    let over_tcp = names.poll_stream().expect("over TCP");
    assert_eq!((over_tcp.server, names.waits_for(over_tcp.id)), (server(0), true));
    assert!(!names.waits_at(sent.one(Rtype::NID).local_port));
    let whole = respond(
        &over_tcp.message,
        Rcode::NOERROR,
        30,
        &[("server.example", nid(10, PEER))],
    );
    names.handle_stream(at(10), over_tcp.id, Some(&whole.into()));
    assert_eq!(Sent::of(&mut names).types(), [Rtype::L64]);
    // a connection that fails is another try
    names.handle_query(at(20), Asker::Stream(3), &query("big.example", Rtype::TXT));
    let first = names.poll_stream().unwrap();
    names.handle_stream(at(21), first.id, None);
    let second = names.poll_stream().unwrap();
    assert_eq!(second.message, first.message);
    let whole = respond(&second.message, Rcode::NOERROR, 30, &[]);
    names.handle_stream(at(22), second.id, Some(&whole.into()));
    assert_eq!(names.poll_answer().unwrap().to, Asker::Stream(3));
    // what a server sends in spite of EDNS is cut for who cannot take it
    let mut without_edns = query("www.example", Rtype::TXT);
    without_edns.truncate(without_edns.len() - 11);
    without_edns[11] = 0;
    names.handle_query(at(30), asker(APPLICATION), &without_edns);
    let sent = Sent::of(&mut names);
    let long = Data::Raw(
        Rtype::TXT,
        [&[255][..], &[b'x'; 255], &[255], &[b'x'; 255]].concat(),
    );
    answer(&mut names, at(31), sent.one(Rtype::TXT), &[("www.example", long)]);
    let cut = names.poll_answer().unwrap().message;
    assert!(cut.len() < 512 && cut[2] & 2 != 0, "{cut:?}");
}

/// RFC 6742 section 2.4, and a preference of each kind (section 2.1.1): lower is better.
#[test]
fn locators_may_be_another_names_and_identifiers_have_preferences() {
    let mut names = names();
    ask(&mut names, at(0), "www.example", Rtype::AAAA);
    let sent = Sent::of(&mut names);
    let records = [
        ("www.example", Data::Alias("server.example")),
        ("server.example", nid(20, Nid(8))),
        ("server.example", nid(10, Nid(9))),
        ("server.example", nid(15, Nid(0))),
        ("server.example", Data::Raw(Rtype::NID, vec![0, 1, 2])),
    ];
    answer(&mut names, at(1), sent.one(Rtype::NID), &records);
    let next = Sent::of(&mut names);
    assert_eq!(
        (next.0[0].0.as_str(), next.0[0].1),
        ("server.example", Rtype::L64)
    );
    answer(&mut names, at(2), &next.0[0].2, &[]);
    let next = Sent::of(&mut names);
    assert_eq!((next.0[0].0.as_str(), next.0[0].1), ("server.example", Rtype::LP));
    let lp = |preference: u8, to: &str| {
        let mut data = vec![0, preference];
        data.extend_from_slice(name(to).as_slice());
        ("server.example", Data::Raw(Rtype::LP, data))
    };
    answer(
        &mut names,
        at(3),
        &next.0[0].2,
        &[lp(2, "worse.example"), lp(1, "net.example")],
    );
    let next = Sent::of(&mut names);
    assert_eq!((next.0[0].0.as_str(), next.0[0].1), ("net.example", Rtype::L64));
    let places = [
        ("net.example", l64(30, FIRST)),
        ("net.example", l64(5, SECOND)),
        // neither the prefix of identities nor a link is a place
        ("net.example", l64(1, PREFIX)),
        ("net.example", l64(1, Locator(0xfe80_0000_0000_0000))),
    ];
    answer(&mut names, at(4), &next.0[0].2, &places);
    assert_eq!(told(&mut names).1, [identity(Nid(9)), identity(Nid(8))]);
    assert_eq!(count(&names, "record_malformed"), 4);
    names.handle_look_up(at(5), identity(Nid(8)));
    assert_eq!(names.poll_found().unwrap().locators, [(SECOND, 5), (FIRST, 30)]);
}

/// Whoever has a name of his own could give it another's identifier: what is meant for that would come to him.
#[test]
fn an_identifier_is_that_of_the_first_name_that_has_it() {
    let mut names = names();
    learn(&mut names, at(0), "bank.example", &[(10, FIRST)]);
    for (number, (evil, stolen)) in [("evil.example", PEER), ("self.example", OWN)]
        .into_iter()
        .enumerate()
    {
        ask(&mut names, at(100), evil, Rtype::AAAA);
        let sent = Sent::of(&mut names);
        answer(
            &mut names,
            at(110),
            sent.one(Rtype::AAAA),
            &[(evil, aaaa("2001:db8:666::1"))],
        );
        answer(
            &mut names,
            at(120),
            sent.one(Rtype::NID),
            &[(evil, nid(10, stolen))],
        );
        let next = Sent::of(&mut names);
        answer(
            &mut names,
            at(130),
            next.one(Rtype::L64),
            &[(evil, l64(10, SECOND))],
        );
        assert_eq!(
            told(&mut names).1,
            ["2001:db8:666::1".parse::<Ipv6Addr>().unwrap()]
        );
        assert_eq!(count(&names, "nid_of_another_name"), number as u64 + 1);
    }
    names.handle_look_up(at(200), identity(PEER));
    assert_eq!(names.poll_found().unwrap().locators, [(FIRST, 10)]);
    // a name that nobody has asked for, and that nothing goes to, is forgotten; one in use is not
    let hour = 3_700_000;
    names.handle_timeout(at(hour), 0, |identity| identity == PREFIX.address(PEER));
    assert_eq!(names.learnt().count(), 1);
    names.handle_timeout(at(3 * hour), 0, |_| false);
    assert_eq!(names.learnt().count(), 0);
}

/// A table for laboratories: no server is asked.
#[test]
fn names_of_the_file_are_answered_without_servers() {
    let mut names = names_of(0, &[peer_of_file(Some("server.example"))], None);
    ask(&mut names, at(0), "Server.Example", Rtype::AAAA);
    assert_eq!(told(&mut names), (Rcode::NOERROR, vec![identity(PEER)], FILE_TTL));
    ask(&mut names, at(0), "server.example", Rtype::A);
    assert_eq!(told(&mut names), (Rcode::NOERROR, vec![], 0));
    // the next resolver of the list may know
    ask(&mut names, at(0), "other.example", Rtype::AAAA);
    assert_eq!(told(&mut names).0, Rcode::REFUSED);
    assert!(names.poll_datagram().is_none());
    names.handle_look_up(at(0), identity(PEER));
    assert_eq!(
        names.poll_found().unwrap().locators,
        [(FIRST, ELSEWHERE), (SECOND, ELSEWHERE)]
    );
}

#[test]
fn a_peer_of_the_file_is_looked_up_by_its_name_where_there_are_servers() {
    let mut names = names_of(1, &[peer_of_file(None)], None);
    learn(&mut names, at(0), "server.example", &[(10, FIRST)]);
    names.handle_look_up(at(1), identity(PEER));
    assert_eq!(names.poll_found().unwrap().locators, [(FIRST, 10)]);
    names.handle_look_up(at(1000), identity(PEER));
    let sent = Sent::of(&mut names);
    assert_eq!(sent.0[0].0, "server.example");
    let refused = respond(&sent.0[0].2.data, Rcode::REFUSED, 0, &[]);
    answer_with(&mut names, at(1001), &sent.0[0].2, refused);
    // nobody says: it may be anywhere that the file has
    assert_eq!(names.poll_found().unwrap().locators.len(), 2);
}

#[test]
fn only_this_machine_is_answered_and_what_is_no_question_is_refused() {
    let mut names = names();
    for stranger in ["[2001:db8::9]:53", "192.0.2.9:53", "[::ffff:192.0.2.9]:53"] {
        names.handle_query(at(0), asker(stranger), &query("www.example", Rtype::AAAA));
    }
    assert_eq!((names.poll_answer(), names.poll_datagram()), (None, None));
    assert_eq!(count(&names, "query_not_from_here"), 3);
    let mut refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = query("www.example", Rtype::AAAA);
        change(&mut bytes);
        names.handle_query(at(0), asker("127.0.0.1:5"), &bytes);
        assert!(names.poll_datagram().is_none());
        names.poll_answer().map(|answer| answer.message[3] & 0x0f)
    };
    assert_eq!(refused(&|b| b[2] |= 0x80), None);
    assert_eq!(refused(&|b| b.truncate(11)), None);
    assert_eq!(refused(&|b| b[2] |= 0x28), Some(4));
    assert_eq!(refused(&|b| b[5] = 2), Some(1));
    assert_eq!(refused(&|b| b[7] = 1), Some(1));
    assert_eq!(refused(&|b| b.truncate(20)), Some(1));
    // a name that points elsewhere
    assert_eq!(refused(&|b| b[HEADER] = 0xc0), Some(1));
    assert_eq!(count(&names, "query_malformed"), 7);
}

#[test]
fn what_waits_is_bounded_and_a_question_sent_again_is_the_same() {
    let mut names = names();
    for n in 0..3 {
        ask(&mut names, at(n), "www.example", Rtype::A);
    }
    assert_eq!(
        (Sent::of(&mut names).0.len(), count(&names, "query_repeated")),
        (1, 2)
    );
    // a resolver that asks this one in turn
    for port in 0..40u16 {
        let asker = asker(&format!("[::1]:{}", 1000 + port));
        names.handle_query(at(10), asker, &query("www.example", Rtype::A));
    }
    assert_eq!(
        (Sent::of(&mut names).0.len(), count(&names, "query_too_many")),
        (15, 25)
    );
    for n in 0..600 {
        ask(&mut names, at(20), &format!("host-{n}.example"), Rtype::AAAA);
    }
    assert!(Sent::of(&mut names).0.len() <= 512);
    let ports: std::collections::BTreeSet<u16> = names.upstream.ports().collect();
    assert_eq!(
        ports.len(),
        names.upstream.ports().count(),
        "each has a port of its own"
    );
    // who is gone waits for nothing
    names.handle_query(at(30), Asker::Stream(1), &query("host-1.example", Rtype::A));
    names.handle_gone(Asker::Stream(1));
}

/// RFC 6147 section 5.5 by analogy: who checks signatures by himself gets what is signed.
#[test]
fn who_validates_is_given_what_the_servers_say() {
    let mut names = names();
    let mut bytes = query("server.example", Rtype::AAAA);
    bytes[3] |= 0x10;
    let at_flags = bytes.len() - 4;
    bytes[at_flags] |= 0x80;
    names.handle_query(at(0), asker(APPLICATION), &bytes);
    assert_eq!(Sent::of(&mut names).types(), [Rtype::AAAA]);
}

fn publish() -> config::Publish {
    config::Publish {
        name: name("mobile.example"),
        zone: None,
        server: server(0),
        key: config::TsigKey(Key::new(name("key"), Algorithm::HmacSha256, vec![7; 32])),
        ttl: Duration::from_secs(5),
        addresses: true,
    }
}

/// RFC 2136 section 2.5: what the name is to have replaces what it has, at each change; the own name is this host's.
#[test]
fn the_own_name_is_kept_at_the_hosts_locators() {
    let mut names = names_of(0, &[], Some(publish()));
    let own: Ipv6Addr = "2001:db8:1::7".parse().unwrap();
    let at_first = |locators: &[PreferredLocator]| Records {
        locators: locators.to_vec(),
        addresses: vec![own],
    };
    names.handle_locators(at(0), at_first(&[]), 1_700_000_000);
    assert!(names.poll_datagram().is_none(), "there is nothing to publish");
    names.handle_locators(at(0), at_first(&[(FIRST, 10)]), 1_700_000_000);
    let sent = names.poll_datagram().unwrap();
    let message = Message::from_octets(&sent.data[..]).unwrap();
    let types = |section: domain::base::message::RecordSection<'_, [u8]>| -> Vec<(Rtype, Class)> {
        section
            .map(|r| r.unwrap())
            .map(|r| (r.rtype(), r.class()))
            .collect()
    };
    let authority = message.for_slice().authority().unwrap();
    let replaced = [Rtype::NID, Rtype::L64, Rtype::AAAA];
    let expected: Vec<_> = replaced
        .iter()
        .map(|rtype| (*rtype, Class::ANY))
        .chain(replaced.iter().map(|rtype| (*rtype, Class::IN)))
        .collect();
    assert_eq!(types(authority), expected);
    assert_eq!(
        types(message.for_slice().additional().unwrap()),
        [(Rtype::TSIG, Class::ANY)]
    );
    // the same once more is nothing new; an answer without a signature is none
    names.handle_locators(at(1), at_first(&[(FIRST, 10)]), 1_700_000_000);
    assert!(names.poll_datagram().is_none());
    let unsigned = respond(&sent.data, Rcode::NOERROR, 0, &[]);
    answer_with(&mut names, at(2), &sent, unsigned);
    assert_eq!(
        count(&names, "update_answer_not_authentic") + count(&names, "update_answer_unexpected"),
        1
    );
    assert_eq!(names.published().unwrap().2, &Progress::UnderWay);
    assert!(names.waits_at(sent.local_port));
    // it goes out again, and a move replaces it
    names.handle_timeout(at(250), 1_700_000_000, |_| false);
    assert_eq!(names.poll_datagram().unwrap().data, sent.data);
    names.handle_locators(at(600), at_first(&[(SECOND, 10)]), 1_700_000_000);
    assert_ne!(names.poll_datagram().unwrap().data, sent.data);
    assert_eq!(count(&names, "updates_superseded"), 1);
    // an application that asks for this host gets this host
    ask(&mut names, at(700), "mobile.example", Rtype::AAAA);
    assert_eq!(told(&mut names).1, [identity(OWN)]);
}

/// Nothing that anybody sends may panic, or leave more waiting than was asked for.
fn bombard(
    names: &mut Names,
    flips: &[(usize, u8)],
    cut: usize,
    message: &[u8],
    as_answer: Option<&Datagram>,
) {
    let mut bytes = message.to_vec();
    for (place, value) in flips {
        let length = bytes.len();
        bytes[place % length] = *value;
    }
    bytes.truncate(bytes.len() - cut % bytes.len());
    match as_answer {
        Some(sent) => answer_with(names, at(5), sent, bytes),
        None => names.handle_query(at(5), asker(APPLICATION), &bytes),
    }
    while names.poll_answer().is_some() {}
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn damaged_questions_and_answers_never_panic(
        flips in proptest::collection::vec((0usize..600, any::<u8>()), 0..6),
        cut in 0usize..40,
        which in 0usize..6,
    ) {
        let mut names = names();
        bombard(&mut names, &flips, cut, &query("server.example", Rtype::AAAA), None);
        let _ = Sent::of(&mut names);
        ask(&mut names, at(10), "www.example", Rtype::AAAA);
        let sent = Sent::of(&mut names);
        let to = if which % 2 == 0 { sent.one(Rtype::NID) } else { sent.one(Rtype::AAAA) };
        let lp = Data::Raw(Rtype::LP, [&[0, 1][..], name("net.example").as_slice()].concat());
        let records = [
            ("www.example", Data::Alias("server.example")),
            ("server.example", nid(20, PEER)),
            ("server.example", l64(20, FIRST)),
            ("server.example", lp),
            ("server.example", aaaa("2001:db8::1")),
        ];
        let records = if which < 4 { &records[..] } else { &[] };
        let mut message = respond(&to.data, Rcode::NOERROR, 30, records);
        // the number and the question stay: what is behind them is looked into
        let end = HEADER + 17;
        let behind: Vec<(usize, u8)> = flips
            .iter()
            .map(|(place, value)| (end + place % (message.len() - end), *value))
            .collect();
        bombard(&mut names, &behind, cut % (message.len() - end), &message, Some(to));
        while let Some(over_tcp) = names.poll_stream() {
            message[..2].copy_from_slice(&over_tcp.message[..2]);
            names.handle_stream(at(6), over_tcp.id, Some(&message.clone().into()));
        }
        let next = Sent::of(&mut names);
        for (_, _, datagram) in &next.0 {
            bombard(&mut names, &behind, cut % 60, &respond(&datagram.data, Rcode::NOERROR, 1, records), Some(datagram));
        }
        prop_assert!(names.queries.poll_timeout().is_none_or(|until| until <= at(5) + NODE_PATIENCE + NODE_PATIENCE));
    }

    #[test]
    fn anything_at_all_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut names = names();
        names.handle_query(at(0), asker(APPLICATION), &bytes);
        ask(&mut names, at(0), "www.example", Rtype::AAAA);
        let sent = Sent::of(&mut names);
        let to = sent.one(Rtype::NID);
        let mut answer = to.data.to_vec();
        answer[2] |= 0x80;
        answer.extend_from_slice(&bytes);
        answer_with(&mut names, at(1), to, answer);
        answer_with(&mut names, at(1), sent.one(Rtype::AAAA), bytes);
    }
}
