//! Keys, clocks, forgeries and replays (RFC 8945).

use super::*;

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
    .emit(512)
    .expect("a message");
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
