//! An attacker who sees nothing and can send anything, from any address: nothing changes, and counters say why. Those who
//! see a packet and send it again are here too.

use segue_conformance::expect;
use segue_conformance::script::auth::PeerAuth;
use segue_conformance::script::chunks::{abort, data, init};
use segue_conformance::script::{PORT, Script, auth, ms, ours, peer, quiet};
use segue_proto::random::Stream;
use segue_proto::sctp::{Config, Counters, Refused};
use segue_wire::sctp::{Asconf, AsconfParameter, Chunk, Init, Parameter, SctpPacket};
use segue_wire::{AsconfSerial, Tsn};
use std::net::Ipv6Addr;

/// An address of neither end.
const ATTACKER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 1, 0, 0, 0, 1);

/// ASCONF number `n` of the peer (its first has the peer's initial TSN), which adds `address`.
fn asconf(n: u32, address: Ipv6Addr) -> Chunk {
    Chunk::Asconf(Box::new(Asconf {
        serial_number: AsconfSerial(init().initial_tsn.0).add(n),
        address: peer(1),
        parameters: vec![
            AsconfParameter::AddIpAddress {
                correlation_id: 1,
                address,
            },
            AsconfParameter::SetPrimaryAddress {
                correlation_id: 2,
                address,
            },
        ],
    }))
}

/// ASCONF number `n` of the peer, known by `known`, that names `address`.
fn asconf_about(n: u32, known: Ipv6Addr, address: Ipv6Addr) -> Chunk {
    let mut chunk = asconf(n, address);
    if let Chunk::Asconf(asconf) = &mut chunk {
        asconf.address = known;
    }
    chunk
}

/// The peer changes its addresses by its ASCONF number `n`, authenticated, and is answered.
fn change(t: &mut Script, n: &mut u32, parameter: AsconfParameter) {
    let chunk = Chunk::Asconf(Box::new(Asconf {
        serial_number: AsconfSerial(init().initial_tsn.0).add(*n),
        address: peer(1),
        parameters: vec![parameter],
    }));
    let signed = t.signed([chunk]);
    t.send(signed);
    *n += 1;
}

fn add(t: &mut Script, n: &mut u32, address: Ipv6Addr) {
    let correlation_id = *n;
    let parameter = AsconfParameter::AddIpAddress {
        correlation_id,
        address,
    };
    change(t, n, parameter);
}

fn delete(t: &mut Script, n: &mut u32, address: Ipv6Addr) {
    let correlation_id = *n;
    let parameter = AsconfParameter::DeleteIpAddress {
        correlation_id,
        address,
    };
    change(t, n, parameter);
}

/// What an attack may not change: peer addresses, primary path, what is outstanding and received, and every counter but
/// those of refusals.
fn state(t: &Script) -> (Vec<Ipv6Addr>, Ipv6Addr, u32, Counters) {
    let a = t.association();
    let mut counters = a.counters();
    counters.refused = Refused::default();
    let destinations = a.paths().map(|p| p.destination).collect();
    (destinations, a.primary_path(), a.outstanding_bytes(), counters)
}

/// The association still works in both directions.
fn works(t: &mut Script) {
    assert!(t.association().is_established());
    t.forget();
    let taken = t.messages.len();
    for n in 0..3 {
        t.send([data(n)]);
    }
    assert_eq!(t.messages.len(), taken + 3);
    t.forget();
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(1)));
}

#[test]
fn asconf_without_auth_is_not_acted_on_and_not_answered() {
    let mut t = Script::authenticated(quiet(), 1);
    let before = state(&t);
    t.send([asconf(0, ATTACKER)]);
    t.send_from(ATTACKER, [asconf(0, ATTACKER)]);
    t.silence(ms(5000));
    assert_eq!(state(&t), before);
    assert_eq!(t.association().counters().refused.unauthenticated, 2);
    works(&mut t);
}

#[test]
fn asconf_is_refused_from_a_peer_that_did_not_negotiate_authentication() {
    // RFC 5061 section 4.2.7: ASCONF without AUTH is not to be used at all
    let parameters = vec![segue_conformance::script::chunks::extensions(&[0xc1, 0x80])];
    let mut t = Script::established_with(quiet(), 1, parameters);
    let before = state(&t);
    t.send([asconf(0, ATTACKER)]);
    t.silence(ms(5000));
    assert_eq!(state(&t), before);
    assert_eq!(t.association().counters().refused.unauthenticated, 1);
    works(&mut t);
}

#[test]
fn asconf_with_a_wrong_hmac_key_or_algorithm_is_not_acted_on() {
    let mut t = Script::authenticated(quiet(), 1);
    let before = state(&t);
    let good = t.auth.clone().expect("auth");
    // the key of another association: the attacker's own RANDOM
    let guessed = PeerAuth::new(&auth::parameters(), &auth::parameters(), b"").expect("key");
    let mut forgeries = vec![
        guessed.sign([asconf(0, ATTACKER)]),
        guessed.sign_with(0, auth::SHA1, [asconf(0, ATTACKER)]),
        // a key that does not exist, an HMAC that does not
        good.sign_with(7, auth::SHA256, [asconf(0, ATTACKER)]),
        good.sign_with(0, 9, [asconf(0, ATTACKER)]),
    ];
    // what was signed is not what is sent
    let mut swapped = good.sign([asconf(0, peer(3))]);
    swapped[1] = asconf(0, ATTACKER);
    forgeries.push(swapped);
    // an HMAC cut short
    let mut short = good.sign([asconf(0, ATTACKER)]);
    short[0] = Chunk::Auth(Box::new(segue_wire::sctp::Auth::new(
        0,
        auth::SHA256,
        b"short"[..].into(),
    )));
    forgeries.push(short);
    let count = forgeries.len() as u64;
    for forgery in forgeries {
        t.send(forgery);
    }
    t.wait(ms(5000));
    // at most the unsupported HMAC is reported; no ASCONF-ACK
    for sent in t.take_all() {
        assert!(matches!(sent.chunks[..], [Chunk::Error(_)]), "{sent:?}");
    }
    assert_eq!(state(&t), before);
    assert_eq!(t.association().counters().refused.bad_auth, count);
    works(&mut t);
}

#[test]
fn a_replayed_asconf_is_answered_as_before_and_not_applied_again() {
    let mut t = Script::authenticated(quiet(), 1);
    let add = t.signed([asconf(0, peer(2))]);
    t.send(add.clone());
    expect!(t, Chunk::Auth(_), Chunk::AsconfAck(_));
    // the peer deletes the address again
    let delete = Chunk::Asconf(Box::new(Asconf {
        serial_number: AsconfSerial(init().initial_tsn.0).add(1),
        address: peer(1),
        parameters: vec![AsconfParameter::DeleteIpAddress {
            correlation_id: 1,
            address: peer(2),
        }],
    }));
    let delete = t.signed([delete]);
    t.send(delete.clone());
    t.wait(ms(100));
    t.forget();
    let before = state(&t).0;
    assert_eq!(before, [peer(1)]);
    // an old one: nothing; the last one: the answer that there already was
    t.send(add.clone());
    t.silence(ms(100));
    t.send(delete);
    let answer = t.receive();
    assert!(t.auth.as_ref().expect("auth").covers(&answer.chunks));
    assert!(matches!(&answer.chunks[1], Chunk::AsconfAck(_)));
    // and from elsewhere
    t.send_from(ATTACKER, add);
    t.silence(ms(100));
    assert_eq!(state(&t).0, before);
    assert!(t.association().counters().refused.bad_asconf_serial >= 1);
    works(&mut t);
}

#[test]
fn blind_packets_with_a_guessed_tag_change_nothing() {
    let mut t = Script::authenticated(quiet(), 1);
    t.user_sends(10);
    t.forget();
    let before = state(&t);
    let cumulative_tsn_ack = t.our_tsn;
    let chunks = [
        abort(false),
        abort(true),
        Chunk::Shutdown { cumulative_tsn_ack },
        Chunk::ShutdownAck,
        Chunk::ShutdownComplete { reflected_tag: false },
        Chunk::ShutdownComplete { reflected_tag: true },
        data(0),
        segue_conformance::script::chunks::sack(cumulative_tsn_ack),
        Chunk::Heartbeat("x".into()),
        Chunk::HeartbeatAck("x".into()),
        Chunk::CookieAck,
        Chunk::Error(Vec::new()),
        Chunk::InitAck(Box::new(init())),
        asconf(0, ATTACKER),
    ];
    let mut random = Stream::new(1, "guesses");
    let mut sent = 0;
    for chunk in &chunks {
        for _ in 0..200 {
            let tag = random.next_u64() as u32;
            if tag != t.our_tag && tag != segue_conformance::script::peer_tag() {
                t.send_with_tag(tag, [chunk.clone()]);
                sent += 1;
            }
        }
    }
    assert_eq!(state(&t), before);
    assert_eq!(t.association().counters().refused.bad_tag, sent);
    assert_eq!(t.association().counters().refused.total(), sent);
    assert!(t.take_all().is_empty(), "nothing is answered");
    t.send([segue_conformance::script::chunks::sack(cumulative_tsn_ack)]);
    works(&mut t);
}

#[test]
fn an_init_or_a_cookie_echo_with_a_tag_of_ones_own_changes_nothing() {
    let mut t = Script::authenticated(quiet(), 1);
    let before = state(&t);
    t.send_with_tag(t.our_tag, [Chunk::Init(Box::new(init()))]);
    t.send_with_tag(5, [Chunk::CookieEcho("a cookie, perhaps".into())]);
    t.send([Chunk::CookieEcho(vec![0; 200].into())]);
    t.silence(ms(1000));
    let refused = t.end.counters().refused;
    assert_eq!(
        (refused.bad_init_tag, refused.forged_cookies, refused.total()),
        (1, 2, 3)
    );
    assert_eq!(state(&t), before);
    works(&mut t);
}

#[test]
fn an_init_in_the_peers_name_is_answered_to_the_peer_and_leaves_the_association_alone() {
    let mut t = Script::authenticated(quiet(), 1);
    let before = state(&t);
    for tag in 1..50 {
        t.send_with_tag(
            0,
            [Chunk::Init(Box::new(Init {
                initiate_tag: tag,
                initial_tsn: Tsn(tag),
                ..init()
            }))],
        );
        expect!(t, Chunk::InitAck(_));
        assert_eq!(
            t.last.as_ref().map(|p| (p.destination, p.tag)),
            Some((peer(1), tag))
        );
    }
    assert_eq!(state(&t), before);
    assert_eq!(t.end.associations().count(), 1);
    works(&mut t);
}

#[test]
fn a_flood_of_100_000_inits_leaves_nothing_behind() {
    let mut t = Script::listening(quiet());
    let (mut asked, mut answered) = (0, 0);
    for n in 0..100_000_u32 {
        let from = Ipv6Addr::from(0x2001_0db8_0bad_0000_0000_0000_0000_0000_u128 | u128::from(n));
        let flood = Init {
            initiate_tag: n + 1,
            initial_tsn: Tsn(n),
            parameters: vec![Parameter::Ipv6Address(from), Parameter::Ipv6Address(ATTACKER)],
            ..init()
        };
        let packet = SctpPacket {
            source_port: n as u16,
            destination_port: PORT,
            verification_tag: 0,
            chunks: [Chunk::Init(Box::new(flood))].into_iter().collect(),
        };
        asked += packet.buffer_len();
        t.send_sctp(from, ours(1), packet);
        // what it answers is taken off by the driver: nothing stays behind, and no timer runs
        let sent = t.take_all();
        assert_eq!(sent.len(), 1);
        answered += sent[0].len - 40;
    }
    assert_eq!(t.end.associations().count(), 0);
    assert_eq!(t.end.poll_timeout(), None);
    assert_eq!(t.end.check_invariants(), Ok(()));
    assert_eq!(t.end.counters().inits_answered, 100_000);
    assert_eq!(t.end.counters().refused.total(), 0);
    // an answer is not much longer than what it answers: no amplifier to speak of
    assert!(answered < 5 * asked, "{answered} bytes for {asked}");
    // an honest peer gets through as before
    t.shake_hands(Vec::new());
    works(&mut t);
}

#[test]
fn cookies_that_are_forged_changed_or_expired_make_no_association() {
    let mut t = Script::listening(quiet());
    t.send_with_tag(0, [Chunk::Init(Box::new(init()))]);
    let ack = expect!(t, Chunk::InitAck(ack) => ack.clone());
    let cookie = ack
        .parameters
        .iter()
        .find_map(|p| match p {
            Parameter::StateCookie(cookie) => Some(cookie.clone()),
            _ => None,
        })
        .expect("cookie");
    t.our_tag = ack.initiate_tag;
    let mut random = Stream::new(1, "forgeries");
    for _ in 0..1000 {
        let mut forged = cookie.to_vec();
        let at = random.below(forged.len() as u64) as usize;
        forged[at] ^= 1 + random.below(255) as u8;
        forged.truncate(forged.len() - random.below(3) as usize);
        t.send([Chunk::CookieEcho(forged.into())]);
    }
    // of another endpoint, with another key
    let mut other = Script::new(quiet(), 1);
    other.end = segue_proto::sctp::Endpoint::new(quiet(), PORT, Box::new(Stream::new(2, "another")));
    other.end.listen();
    other.send_with_tag(0, [Chunk::Init(Box::new(init()))]);
    let foreign = expect!(other, Chunk::InitAck(ack) => ack.parameters.iter().find_map(|p| match p {
        Parameter::StateCookie(cookie) => Some(cookie.clone()),
        _ => None,
    })
    .expect("cookie"));
    t.send([Chunk::CookieEcho(foreign)]);
    t.silence(ms(100));
    assert_eq!(t.end.counters().refused.forged_cookies, 1001);
    t.wait(ms(61_000));
    t.send([Chunk::CookieEcho(cookie)]);
    assert_eq!(t.end.counters().refused.stale_cookies, 1);
    assert_eq!(t.end.associations().count(), 0);
}

#[test]
fn data_injected_with_a_wrong_tag_is_not_delivered_and_not_acknowledged() {
    let mut t = Script::established(quiet());
    for n in 0..1000 {
        t.send_with_tag(t.our_tag.wrapping_add(1 + n), [data(n)]);
    }
    t.silence(ms(1000));
    assert!(t.messages.is_empty());
    assert_eq!(t.association().counters().data_chunks_received, 0);
    assert_eq!(t.association().counters().refused.bad_tag, 1000);
    works(&mut t);
}

/// What is answered, and where to, to a packet with the right tag and to one with a wrong one.
fn answers_by_tag(t: &mut Script, from: Ipv6Addr, chunks: &[Chunk]) -> [Vec<(Vec<Chunk>, Ipv6Addr)>; 2] {
    [t.our_tag, t.our_tag ^ 1].map(|tag| {
        let packet = SctpPacket {
            source_port: PORT,
            destination_port: PORT,
            verification_tag: tag,
            chunks: chunks.iter().cloned().collect(),
        };
        t.send_sctp(from, ours(1), packet);
        t.wait(ms(1000));
        let mut answers = t.take_all();
        // addresses that are not confirmed are probed meanwhile
        answers.retain(|a| !matches!(a.chunks[..], [Chunk::Heartbeat(_)]));
        assert!(answers.iter().all(|a| a.tag == tag), "the tag is reflected");
        let told = answers.into_iter().map(|a| (a.chunks, a.destination));
        told.collect()
    })
}

#[test]
fn a_good_tag_from_an_address_of_good_faith_is_answered_as_a_wrong_one_is() {
    let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    let named_link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
    // with one that cannot be its own, and more than are taken: those that the peer names it may send from, and an ABORT
    // would end the association there
    let mut parameters = auth::parameters();
    parameters.extend((1..=40).map(|n| Parameter::Ipv6Address(peer(n))));
    parameters.push(Parameter::Ipv6Address(named_link_local));
    let mut t = Script::established_with(quiet(), 1, parameters);
    assert_eq!(t.association().paths().count(), 32);
    // it deletes 33 of its addresses, one after the other: more than are remembered
    let mut n = 0;
    for address in 2..=32 {
        delete(&mut t, &mut n, peer(address));
    }
    for address in 101..=102 {
        add(&mut t, &mut n, peer(address));
        delete(&mut t, &mut n, peer(address));
    }
    t.forget();
    let before = state(&t);
    for (from, silent) in [
        (peer(2), false),
        (peer(3), true),
        (peer(32), true),
        (peer(102), true),
        (peer(50), false),
        (link_local, false),
        (ATTACKER, false),
    ] {
        for chunks in [
            vec![data(0)],
            vec![Chunk::Heartbeat("x".into())],
            vec![Chunk::ShutdownAck],
            vec![asconf_about(n, from, from)],
        ] {
            let answers = answers_by_tag(&mut t, from, &chunks);
            assert_eq!(answers[0], answers[1], "{from}: {chunks:?}");
            assert_eq!(answers[0].is_empty(), silent, "{from}: {chunks:?}");
        }
    }
    assert_eq!(state(&t), before);
    works(&mut t);
}

#[test]
fn what_a_peer_names_and_is_not_taken_is_not_answered_with_an_abort() {
    let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
    let mut named = vec![Parameter::Ipv6Address(link_local)];
    named.extend((1..=40).map(|n| Parameter::Ipv6Address(peer(n))));
    let mut accepted = Script::established_with(quiet(), 1, named.clone());
    let mut called = Script::connecting(quiet());
    let Chunk::Init(asked) = called.receive().chunks.remove(0) else {
        panic!("no INIT")
    };
    called.our_tag = asked.initiate_tag;
    let mut ack = init();
    ack.parameters = named;
    ack.parameters.push(Parameter::StateCookie(b"cookie"[..].into()));
    called.send([Chunk::InitAck(Box::new(ack))]);
    called.send([Chunk::CookieAck]);
    for t in [&mut accepted, &mut called] {
        assert!(t.association().is_established());
        assert_eq!(t.association().paths().count(), 31, "of the 32 named first");
        t.take_all();
        for (from, silent) in [
            (link_local, true),
            (peer(33), true),
            (peer(40), true),
            (peer(41), false),
        ] {
            let answers = answers_by_tag(t, from, &[data(0)]);
            assert_eq!(answers[0], answers[1], "{from}");
            assert_eq!(answers[0].is_empty(), silent, "{from}: {answers:?}");
        }
        assert!(t.is_alive());
    }
}

#[test]
fn a_good_tag_from_a_strange_address_changes_nothing_and_is_answered_as_a_wrong_one_is() {
    // a difference would tell whoever tries tags from an address of his own when he has found one
    let mut t = Script::authenticated(quiet(), 1);
    let before = state(&t);
    let stranger = |chunk: Chunk| {
        let mut named = asconf(0, ATTACKER);
        if let Chunk::Asconf(asconf) = &mut named {
            asconf.address = ATTACKER;
        }
        [chunk, named]
    };
    let chunks = [
        vec![data(0)],
        vec![abort(false)],
        vec![Chunk::Heartbeat("x".into())],
        vec![Chunk::ShutdownAck],
        vec![Chunk::InitAck(Box::new(init()))],
        vec![Chunk::CookieAck],
        vec![asconf(0, ATTACKER)],
        stranger(data(0)).into(),
        stranger(Chunk::Heartbeat("x".into()))[1..].into(),
    ];
    for chunks in chunks {
        let answers = answers_by_tag(&mut t, ATTACKER, &chunks);
        assert_eq!(answers[0], answers[1], "{chunks:?}");
    }
    assert_eq!(state(&t), before);
    works(&mut t);
}

#[test]
fn an_address_that_the_peer_has_deleted_is_not_answered_with_an_abort() {
    // RFC 5061 section 5.3: the deletion may overtake packets, and an ABORT that reflects their tag would end it all
    let mut t = Script::authenticated(quiet(), 1);
    let mut n = 0;
    add(&mut t, &mut n, peer(2));
    delete(&mut t, &mut n, peer(2));
    t.forget();
    t.send_from(peer(2), [data(0)]);
    t.send_from(peer(2), [Chunk::Heartbeat("x".into())]);
    t.silence(ms(1000));
    assert_eq!(t.end.counters().refused.foreign_address, 2);
    works(&mut t);
}

#[test]
fn an_init_ack_with_a_guessed_tag_does_not_end_an_association_that_is_being_set_up() {
    // section 8.5: one of an association exists with peer(1); another is begun with peer(2)
    let mut t = Script::listening(quiet());
    t.shake_hands(Vec::new());
    let first = t.id;
    let second = t.end.connect(t.now, &[peer(2)], PORT).expect("a call");
    t.id = Some(second);
    t.command(|_, _| ());
    let tag = expect!(t, Chunk::Init(init) => init.initiate_tag);
    let claims = || {
        Chunk::InitAck(Box::new(Init {
            initiate_tag: 7,
            parameters: vec![
                Parameter::StateCookie("a cookie".into()),
                Parameter::Ipv6Address(peer(1)),
            ],
            ..init()
        }))
    };
    let answer = |tag| SctpPacket {
        source_port: PORT,
        destination_port: PORT,
        verification_tag: tag,
        chunks: [claims()].into_iter().collect(),
    };
    for guess in [0, 1, tag ^ 1, t.our_tag] {
        t.send_sctp(peer(2), ours(1), answer(guess));
    }
    assert!(t.is_alive());
    assert_eq!(t.end.counters().refused.second_associations, 0);
    assert_eq!(t.association().counters().refused.bad_tag, 4);
    expect!(t, Chunk::Init(_));
    // with the right one it is the peer who says so (section 1.3)
    t.send_sctp(peer(2), ours(1), answer(tag));
    assert!(!t.is_alive());
    assert_eq!(t.end.counters().refused.second_associations, 1);
    t.id = first;
    assert!(t.association().is_established());
}

#[test]
fn a_cookie_outlives_the_change_of_its_key_and_no_longer() {
    let mut t = Script::listening(quiet());
    let give = |t: &mut Script| {
        t.send_with_tag(0, [Chunk::Init(Box::new(init()))]);
        let ack = expect!(t, Chunk::InitAck(ack) => ack.clone());
        let cookie = ack.parameters.iter().find_map(|p| match p {
            Parameter::StateCookie(cookie) => Some(cookie.clone()),
            _ => None,
        });
        (ack.initiate_tag, cookie.expect("cookie"))
    };
    let bring_back = |t: &mut Script, (tag, cookie): (u32, bytes::Bytes)| {
        t.our_tag = tag;
        t.send([Chunk::CookieEcho(cookie)]);
        t.forget();
        let refused = t.end.counters().refused;
        (refused.stale_cookies, refused.forged_cookies)
    };
    let first = give(&mut t);
    t.wait(ms(3_590_000));
    let last = give(&mut t);
    t.wait(ms(20_000));
    let (tag, _) = give(&mut t);
    // the key has changed: what the former one signed is still known
    assert_eq!(bring_back(&mut t, first.clone()), (1, 0));
    assert_eq!(t.end.associations().count(), 0);
    assert_eq!(bring_back(&mut t, last.clone()), (1, 0));
    assert!(t.association().is_established());
    assert_ne!(tag, last.0);
    // and once more
    t.wait(ms(3_600_000));
    give(&mut t);
    assert_eq!(bring_back(&mut t, first), (1, 1));
}

#[test]
fn without_the_switch_of_the_papers_time_configurations_refuse_bare_asconf() {
    assert_eq!(
        Config::default().asconf_auth,
        segue_proto::sctp::AsconfAuth::Required
    );
}
