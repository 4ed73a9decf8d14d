//! Servers that are silent, slow, or not who they pretend to be; answers that do not fit.

use super::*;

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
