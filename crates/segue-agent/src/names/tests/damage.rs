//! Strangers, too much, and what is no DNS.

use super::*;
use proptest::prelude::*;

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

/// RFC 8945 section 5.5, RFC 6891 section 6.1.3: neither goes to a server, nor has it a name's addresses.
#[test]
fn what_is_signed_and_what_is_of_a_later_edns_is_not_passed_on() {
    let mut names = names_of(1, &[peer_of_file(Some("server.example"))], None);
    let plain = query("server.example", Rtype::AAAA);
    let mut told = |bytes: &[u8]| {
        names.handle_query(at(0), asker(APPLICATION), bytes);
        assert!(names.poll_datagram().is_none());
        names.poll_answer().unwrap().message
    };
    // an OPT record is the last: the version is the seventh of its eleven octets
    let opt = plain.len() - 11;
    let mut later = plain.clone();
    later[opt + 6] = 1;
    let bytes = told(&later);
    let message = Message::from_octets(&bytes[..]).unwrap();
    let of_opt = message.opt().unwrap();
    assert_eq!(of_opt.rcode(message.header()).to_int(), 16);
    assert_eq!((of_opt.version(), message.header_counts().ancount()), (0, 0));
    let mut signed = plain.clone();
    signed[11] = 2;
    signed.extend_from_slice(&[0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 0]);
    let bytes = told(&signed);
    let message = Message::from_octets(&bytes[..]).unwrap();
    assert_eq!(message.header().rcode(), Rcode::REFUSED);
    assert_eq!(message.header_counts().ancount(), 0);
    assert_eq!(told(&plain)[3] & 0x0f, 0, "as it is, it is answered");
}

#[test]
fn one_connection_has_so_many_questions_under_way() {
    let mut names = names();
    for n in 0..20 {
        let asked = query(&format!("host-{n}.example"), Rtype::TXT);
        names.handle_query(at(0), Asker::Stream(1), &asked);
    }
    assert_eq!(count(&names, "query_too_many"), 4);
    names.handle_query(at(0), Asker::Stream(2), &query("other.example", Rtype::TXT));
    assert_eq!(count(&names, "query_too_many"), 4, "another has his own");
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
