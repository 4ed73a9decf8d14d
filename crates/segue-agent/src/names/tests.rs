//! The machine between applications and scripted servers; each test reads like a packet trace.

mod damage;
mod servers;

use super::config::Server;
use super::message::{HEADER, question};
use super::*;
use domain::base::iana::{Class, Rtype};
use domain::base::name::ToName as _;
use domain::base::rdata::UnknownRecordData;
use domain::base::{Message, MessageBuilder, Ttl};
use domain::rdata::{Aaaa, Cname, Soa};
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

/// RFC 1035 section 3.2.1: a pointer is believed for its own time, however long that of what it points at is.
#[test]
fn a_pointer_is_believed_no_longer_than_it_says() {
    let mut names = names();
    ask(&mut names, at(0), "server.example", Rtype::AAAA);
    let sent = Sent::of(&mut names);
    let mut lp = vec![0, 1];
    lp.extend_from_slice(name("net.example").as_slice());
    let steps = [
        (Rtype::NID, 3600, vec![("server.example", nid(10, PEER))]),
        (Rtype::L64, 3600, vec![]),
        (Rtype::LP, 5, vec![("server.example", Data::Raw(Rtype::LP, lp))]),
        (Rtype::L64, 3600, vec![("net.example", l64(10, FIRST))]),
    ];
    let mut next = sent;
    for (rtype, ttl, records) in steps {
        let asked = next.one(rtype);
        let bytes = respond(&asked.data, Rcode::NOERROR, ttl, &records);
        answer_with(&mut names, at(1), asked, bytes);
        next = Sent::of(&mut names);
    }
    assert_eq!(told(&mut names).1, [identity(PEER)]);
    ask(&mut names, at(5000), "server.example", Rtype::AAAA);
    assert_eq!(told(&mut names).1, [identity(PEER)]);
    ask(&mut names, at(5001), "server.example", Rtype::AAAA);
    assert_eq!(Sent::of(&mut names).types(), [Rtype::AAAA, Rtype::NID]);
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

/// Questions and updates draw their ports without knowing of each other: where both have the same one, the opcode tells.
#[test]
fn a_port_that_a_question_and_an_update_have_is_of_both() {
    let mut names = names_of(1, &[], Some(publish()));
    let records = Records {
        locators: vec![(FIRST, 10)],
        addresses: Vec::new(),
    };
    names.handle_locators(at(0), records, 1_700_000_000);
    let update = names.poll_datagram().unwrap();
    ask(&mut names, at(1), "www.example", Rtype::A);
    names.upstream.have_port(update.local_port);
    let mut asked = names.poll_datagram().unwrap();
    asked.local_port = update.local_port;
    let unsigned = respond(&update.data, Rcode::NOERROR, 0, &[]);
    answer_with(&mut names, at(2), &update, unsigned);
    assert_eq!(
        count(&names, "update_answer_not_authentic") + count(&names, "update_answer_unexpected"),
        1
    );
    assert_eq!(names.poll_answer(), None);
    answer(&mut names, at(3), &asked, &[]);
    assert_eq!(told(&mut names).0, Rcode::NOERROR);
    assert!(names.waits_at(update.local_port), "the update is under way yet");
}
