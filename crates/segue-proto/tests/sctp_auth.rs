//! Chunk authentication (RFC 4895), and what RFC 5061 makes of it.

use crate::common::auth::{association_key, authenticated, is_authentic};
use crate::common::*;
use bytes::Bytes;
use segue_proto::Duration;
use segue_proto::sctp::{
    AddressError, AsconfAuth, AuthConfig, AuthError, Config, Event, HmacIdentifier, SharedKey,
};
use segue_wire::sctp::chunk_type::{ABORT, COOKIE_ACK, DATA, ERROR, HEARTBEAT, SACK, SHUTDOWN};
use segue_wire::sctp::{Asconf, AsconfParameter, Auth, Chunk, ErrorCause, Parameter};
use segue_wire::{AsconfSerial, Packet, Payload};

fn requiring(chunk_types: &[u8]) -> Config {
    Config {
        auth: AuthConfig {
            required_chunks: chunk_types.to_vec(),
            ..AuthConfig::default()
        },
        ..Config::default()
    }
}

fn with_keys(keys: &[(u16, &'static str)], active_key: u16) -> Config {
    Config {
        auth: AuthConfig {
            shared_keys: keys
                .iter()
                .map(|&(id, key)| SharedKey {
                    id,
                    key: Bytes::from_static(key.as_bytes()),
                })
                .collect(),
            active_key,
            ..AuthConfig::default()
        },
        ..Config::default()
    }
}

/// As [`Net::established`], with the handshake still in the log.
fn connected(config: [Config; 2], addresses: [u16; 2]) -> Net {
    let mut net = Net::new(config, addresses, ms(10), 1);
    net.connect();
    net.run_for(ms(500));
    assert!(net.association(A).is_established() && net.association(B).is_established());
    net
}

fn both(config: Config, addresses: [u16; 2]) -> Net {
    connected([config.clone(), config], addresses)
}

fn parameters(net: &Net, host: usize) -> Vec<Parameter> {
    net.log
        .iter()
        .find_map(|d| match &d.sctp().chunks[0] {
            Chunk::Init(init) | Chunk::InitAck(init) if d.from == host => Some(init.parameters.clone()),
            _ => None,
        })
        .expect("no INIT")
}

/// Serial number of the first ASCONF of `host`: its initial TSN.
fn first_serial(net: &Net, host: usize) -> AsconfSerial {
    net.log
        .iter()
        .find_map(|d| match &d.sctp().chunks[0] {
            Chunk::Init(init) | Chunk::InitAck(init) if d.from == host => {
                Some(AsconfSerial(init.initial_tsn.0))
            }
            _ => None,
        })
        .expect("no INIT")
}

/// An ASCONF of B that adds its address `n`.
fn asconf(serial: AsconfSerial, n: u16) -> Chunk {
    Chunk::Asconf(Box::new(Asconf {
        serial_number: serial,
        address: address(B, 1),
        parameters: vec![AsconfParameter::AddIpAddress {
            correlation_id: 1,
            address: address(B, n),
        }],
    }))
}

fn destinations(net: &Net, host: usize) -> Vec<std::net::Ipv6Addr> {
    net.association(host).paths().map(|p| p.destination).collect()
}

/// What the last packet of `host` carried.
fn last_of(net: &Net, host: usize) -> Vec<&'static str> {
    names(net.log.iter().rfind(|d| d.from == host).expect("silence").sctp())
}

/// The packet as it comes off a wire.
fn through_bytes(packet: &Packet) -> Packet {
    Packet::parse(&packet.to_vec()).expect("parse")
}

#[test]
fn both_ends_offer_authentication_and_demand_it_of_asconf() {
    // RFC 4895 section 6.1, RFC 5061 section 4.2.7
    let net = both(Config::default(), [1, 1]);
    let mut randoms = Vec::new();
    for host in [A, B] {
        let sent = parameters(&net, host);
        assert!(sent.contains(&Parameter::Chunks(Bytes::from_static(&[0xc1, 0x80]))));
        assert!(sent.contains(&Parameter::HmacAlgo(vec![3, 1])));
        assert!(sent.iter().any(|p| matches!(p,
            Parameter::SupportedExtensions(types) if [0xc1, 0x80, 0x0f].iter().all(|t| types.contains(t)))));
        randoms.extend(sent.into_iter().filter_map(|p| match p {
            Parameter::Random(random) => Some(random),
            _ => None,
        }));
        assert!(net.association(host).is_authentication_negotiated());
        assert!(!net.has_event(host, &Event::AuthenticationNotSupported));
    }
    assert_eq!(randoms.iter().map(Bytes::len).collect::<Vec<_>>(), [32, 32]);
    assert_ne!(randoms[0], randoms[1]);
}

#[test]
fn an_asconf_and_its_answer_are_authenticated_by_the_key_of_the_handshake() {
    let mut net = both(Config::default(), [1, 1]);
    let key = association_key(&net, b"");
    net.log.clear();
    net.owned[B].push(address(B, 2));
    net.command(B, |b, now| b.add_address(now, local(B, 2))).unwrap();
    net.run_for(ms(100));
    assert_eq!(
        net.trace(),
        [
            "B AUTH ASCONF",
            "A AUTH ASCONF-ACK",
            "A HEARTBEAT",
            "B HEARTBEAT-ACK"
        ]
    );
    assert!(net.log[..2].iter().all(|d| is_authentic(&key, d.sctp())));
    let Chunk::Auth(auth) = &net.log[0].sctp().chunks[0] else {
        panic!("no AUTH")
    };
    assert_eq!(
        (auth.shared_key_id, auth.hmac_id, auth.hmac.len()),
        (0, 3, 32),
        "SHA-256 is what both prefer"
    );
    assert_eq!(destinations(&net, A), [address(B, 1), address(B, 2)]);
    assert_eq!(net.association(A).counters().refused.total(), 0);
}

#[test]
fn an_asconf_without_authentication_or_with_a_wrong_one_changes_nothing_and_is_counted() {
    // RFC 5061 section 4.1.1, RFC 4895 section 6.3
    let mut net = both(Config::default(), [1, 1]);
    let key = association_key(&net, b"");
    let serial = first_serial(&net, B);
    let flipped = |mut chunks: Vec<Chunk>| {
        let Chunk::Auth(auth) = &mut chunks[0] else {
            panic!()
        };
        let mut hmac = auth.hmac.to_vec();
        hmac[31] ^= 1;
        auth.hmac = hmac.into();
        chunks
    };
    let add = || [asconf(serial, 2)];
    let forged: [(Vec<Chunk>, u64, u64); 7] = [
        (add().to_vec(), 1, 0),
        (authenticated(b"another key", (0, 3), add()), 0, 1),
        (flipped(authenticated(&key, (0, 3), add())), 0, 1),
        // right, but for another ASCONF
        (
            vec![
                authenticated(&key, (0, 3), [asconf(serial, 3)])[0].clone(),
                asconf(serial, 2),
            ],
            0,
            1,
        ),
        // a key that does not exist, and an HMAC cut short
        (authenticated(&key, (1, 3), add()), 0, 1),
        (
            vec![
                Chunk::Auth(Box::new(Auth::new(0, 3, Bytes::new()))),
                asconf(serial, 2),
            ],
            0,
            1,
        ),
        // before the AUTH chunk it is not authenticated (section 5.1), and takes with it what follows (RFC 5061 section
        // 5.2, D5)
        (
            [
                add().to_vec(),
                authenticated(&key, (0, 3), [Chunk::Heartbeat(Bytes::from_static(b"x"))]),
            ]
            .concat(),
            1,
            0,
        ),
    ];
    for (i, (chunks, unauthenticated, bad_auth)) in forged.into_iter().enumerate() {
        // from an address of the peer, and from one that A would find the association of by what the ASCONF says
        for from in [address(B, 1), address(B, 7)] {
            let before = net.association(A).counters().refused;
            let packet = net.forge(A, from, chunks.clone());
            for packet in [through_bytes(&packet), packet] {
                net.log.clear();
                net.inject(A, packet);
                let answers = net.trace();
                assert!(answers.is_empty(), "{i} {answers:?}");
            }
            let after = net.association(A).counters().refused;
            assert_eq!(
                after.unauthenticated - before.unauthenticated,
                2 * unauthenticated,
                "{i}"
            );
            assert_eq!(after.bad_auth - before.bad_auth, 2 * bad_auth, "{i}");
            assert_eq!(destinations(&net, A), [address(B, 1)]);
            net.log.clear();
        }
    }
    // and it was not for the serial number
    let packet = net.forge(A, address(B, 1), authenticated(&key, (0, 1), add()));
    net.inject(A, packet);
    assert_eq!(destinations(&net, A), [address(B, 1), address(B, 2)]);
}

#[test]
fn an_asconf_that_comes_again_changes_nothing() {
    let mut net = both(Config::default(), [1, 1]);
    net.owned[B].extend([address(B, 2), address(B, 3)]);
    net.log.clear();
    net.command(B, |b, now| b.add_address(now, local(B, 2))).unwrap();
    net.run_for(ms(100));
    let first = net.log[0].packet.clone();
    net.command(B, |b, now| {
        b.add_address(now, local(B, 3)).unwrap();
    });
    net.run_for(ms(100));
    net.command(B, |b, now| b.set_route(now, address(B, 3))).unwrap();
    net.command(B, |b, now| b.delete_address(now, address(B, 2)))
        .unwrap();
    net.run_for(ms(100));
    let addresses = vec![address(B, 1), address(B, 3)];
    assert_eq!(destinations(&net, A), addresses);
    let last = net
        .log
        .iter()
        .rfind(|d| names(d.sctp()).contains(&"ASCONF"))
        .map(|d| d.packet.clone())
        .expect("no ASCONF");
    // the authentication of an old one is as good as it was, its serial number is not (RFC 5061 section 5.2, E3)
    for source in [address(B, 1), address(B, 9)] {
        let mut replayed = first.clone();
        replayed.ip.source = source;
        net.events[A].clear();
        net.log.clear();
        let before = net.association(A).counters().refused;
        net.inject(A, through_bytes(&replayed));
        let after = net.association(A).counters().refused;
        assert_eq!(after.bad_asconf_serial, before.bad_asconf_serial + 1);
        assert_eq!(after.bad_auth, before.bad_auth);
        assert_eq!(destinations(&net, A), addresses);
        assert!(net.trace().is_empty() && net.events[A].is_empty());
    }
    // the last one is answered again, authenticated, and not applied again (E2)
    let before = net.association(A).counters().refused;
    net.events[A].clear();
    net.inject(A, last);
    assert_eq!(net.trace(), ["A AUTH ASCONF-ACK"]);
    assert!(net.events[A].is_empty());
    assert_eq!(net.association(A).counters().refused, before);
}

#[test]
fn the_key_of_one_association_is_no_key_of_another() {
    // RFC 4895 section 9: a separate key for each association
    let mut first = connected([Config::default(), Config::default()], [1, 1]);
    first.log.clear();
    first
        .command(B, |b, now| b.add_address(now, local(B, 2)))
        .unwrap();
    let mut stolen = first.log[0].packet.clone();
    let mut net = Net::new([Config::default(), Config::default()], [1, 1], ms(10), 2);
    net.connect();
    net.run_for(ms(500));
    if let Payload::Sctp(sctp) = &mut stolen.payload {
        sctp.verification_tag = net.tag_of(A);
    }
    net.inject(A, stolen);
    assert_eq!(net.association(A).counters().refused.bad_auth, 1);
    assert_eq!(destinations(&net, A), [address(B, 1)]);
}

#[test]
fn when_both_connect_at_once_both_have_the_same_key() {
    // RFC 4895 section 6.1: RANDOM follows the verification tag (RFC 9260 section 5.2)
    for delay in [0, 3, 15] {
        let config = Config::default();
        let mut net = Net::new([config.clone(), config], [1, 1], ms(10), 1);
        net.connect();
        net.run_for(ms(delay));
        net.ids[B] = net.ends[B].connect(net.now, &[address(A, 1)], PORT);
        net.drain();
        net.run_for(Duration::from_secs(5));
        for host in [A, B] {
            assert_eq!(net.ends[host].associations().count(), 1);
            assert!(net.association(host).is_established());
        }
        net.owned[B].push(address(B, 2));
        net.command(B, |b, now| b.add_address(now, local(B, 2))).unwrap();
        net.run_for(ms(100));
        assert_eq!(
            destinations(&net, A),
            [address(B, 1), address(B, 2)],
            "{delay} ms"
        );
        for host in [A, B] {
            assert_eq!(net.association(host).counters().refused.bad_auth, 0);
        }
    }
}

#[test]
fn asconf_is_not_used_with_a_peer_that_does_not_authenticate() {
    let without = Config {
        asconf_auth: AsconfAuth::None,
        ..Config::default()
    };
    let mut net = connected([Config::default(), without], [1, 1]);
    assert!(net.has_event(A, &Event::AuthenticationNotSupported));
    assert!(!net.has_event(B, &Event::AuthenticationNotSupported));
    net.owned[A].push(address(A, 2));
    assert_eq!(
        net.command(A, |a, now| a.add_address(now, local(A, 2))),
        Err(AddressError::NotPossible)
    );
    assert_eq!(
        net.command(A, |a, _| a.set_shared_key(1, "key")),
        Ok(()),
        "it offered authentication"
    );
    assert_eq!(
        net.command(B, |b, _| b.set_shared_key(1, "key")),
        Err(AuthError::NotOffered)
    );
    // B, which would, would not be heard, and the association would end for want of an answer
    net.owned[B].push(address(B, 2));
    assert_eq!(
        net.command(B, |b, now| b.add_address(now, local(B, 2))),
        Err(AddressError::NotPossible)
    );
    net.run_for(ms(100));
    assert_eq!(destinations(&net, A), [address(B, 1)]);
    // data flows all the same
    net.send(A, 0, synthetic(0, 100));
    net.send(B, 0, synthetic(0, 100));
    net.run_for(ms(100));
    assert_eq!((net.messages[A].len(), net.messages[B].len()), (1, 1));
}

#[test]
fn without_the_demand_no_packet_says_anything_of_authentication() {
    let without = Config {
        asconf_auth: AsconfAuth::None,
        ..Config::default()
    };
    let mut net = both(without, [1, 1]);
    for host in [A, B] {
        assert!(parameters(&net, host).iter().all(|p| !matches!(
            p,
            Parameter::Random(_) | Parameter::Chunks(_) | Parameter::HmacAlgo(_)
        )));
        assert!(!net.association(host).is_authentication_negotiated());
        assert!(!net.has_event(host, &Event::AuthenticationNotSupported));
    }
    net.owned[B].push(address(B, 2));
    net.command(B, |b, now| b.add_address(now, local(B, 2))).unwrap();
    net.run_for(ms(100));
    assert_eq!(destinations(&net, A), [address(B, 1), address(B, 2)]);
    assert!(net.trace().iter().all(|t| !t.contains("AUTH")));
}

#[test]
fn authenticated_data_leaves_room_for_its_auth_chunk() {
    for (hmacs, size) in [
        (vec![HmacIdentifier::Sha256, HmacIdentifier::Sha1], 40),
        (vec![HmacIdentifier::Sha1], 28),
        (vec![], 28),
    ] {
        let mut config = requiring(&[DATA, SACK, HEARTBEAT]);
        config.auth.hmac_identifiers = hmacs;
        config.mtu = 1280;
        let mut net = both(config, [1, 1]);
        let key = association_key(&net, b"");
        let room = 1280 - 40 - 12 - 16 - size;
        assert_eq!(net.association(A).max_message_in_one_chunk(), room & !3);
        net.log.clear();
        // lost once, so that it is retransmitted as well
        let mut left = 2;
        net.rule = Box::new(move |d| {
            if d.data().next().is_some() && left > 0 {
                left -= 1;
                return vec![];
            }
            vec![ms(10)]
        });
        for i in 0..20 {
            net.send(A, 0, synthetic(i * 3000, 3000));
            net.send(B, 0, synthetic(i * 30, 30));
        }
        net.run_for(Duration::from_secs(30));
        assert_eq!((net.messages[A].len(), net.messages[B].len()), (20, 20));
        assert!(net.association(A).counters().data_chunks_retransmitted > 0);
        let mut longest = 0;
        for departure in &net.log {
            longest = longest.max(departure.packet.buffer_len());
            let chunks = names(departure.sctp());
            let first = chunks
                .iter()
                .position(|c| ["DATA", "SACK", "HEARTBEAT"].contains(c));
            if let Some(first) = first {
                assert_eq!(chunks[first - 1], "AUTH", "{chunks:?}");
                assert!(is_authentic(&key, departure.sctp()));
            }
        }
        assert_eq!(longest, 1280);
        assert_eq!(net.association(B).counters().refused.total(), 0);
    }
}

#[test]
fn chunks_that_the_peer_must_authenticate_are_not_taken_without() {
    let mut net = both(requiring(&[DATA, ABORT, SHUTDOWN, ERROR, COOKIE_ACK]), [1, 1]);
    let key = association_key(&net, b"");
    let data = |net: &Net| {
        Chunk::Data(segue_wire::sctp::DataChunk {
            tsn: segue_wire::Tsn(first_serial(net, B).0),
            stream_id: 0,
            ssn: segue_wire::Ssn(0),
            payload_protocol_id: 0,
            unordered: false,
            beginning: true,
            ending: true,
            immediate: false,
            data: segue_wire::Data::Bytes(Bytes::from_static(b"hello")),
        })
    };
    let abort = |reflected_tag| Chunk::Abort {
        reflected_tag,
        causes: vec![],
    };
    let shutdown = Chunk::Shutdown {
        cumulative_tsn_ack: segue_wire::Tsn(first_serial(&net, A).0).previous(),
    };
    let data = data(&net);
    let tag = net.tag_of(A);
    net.run_for(ms(300));
    net.messages[A].clear();
    for chunks in [
        vec![data.clone()],
        vec![abort(false)],
        vec![shutdown],
        vec![abort(false), data.clone()],
        authenticated(b"guess", (0, 3), [abort(false)]),
    ] {
        let packet = net.forge_with_tag(A, address(B, 1), tag, chunks);
        net.inject(A, packet);
        assert!(net.association(A).is_established());
        assert!(net.messages[A].is_empty());
    }
    assert_eq!(net.association(A).counters().refused.unauthenticated, 5);
    assert_eq!(net.association(A).counters().refused.bad_auth, 1);
    // the tag that an ABORT may reflect is good for the ABORT only
    let reflected = net.tag_of(B);
    let packet = net.forge_with_tag(
        A,
        address(B, 1),
        reflected,
        [abort(true), Chunk::Heartbeat(Bytes::new())],
    );
    net.log.clear();
    net.inject(A, packet);
    assert!(net.association(A).is_established() && net.trace().is_empty());
    let abort = authenticated(&key, (0, 3), [abort(false)]);
    let packet = net.forge_with_tag(A, address(B, 1), tag, abort);
    net.inject(A, packet);
    assert!(net.has_event(A, &Event::Aborted { causes: vec![] }));
}

#[test]
fn our_own_shutdown_and_abort_are_authenticated_where_the_peer_wants_it() {
    let mut net = both(requiring(&[ABORT, SHUTDOWN, ERROR]), [1, 1]);
    let key = association_key(&net, b"");
    net.command(A, |a, now| a.shutdown(now));
    assert_eq!(last_of(&net, A), ["AUTH", "SHUTDOWN"]);
    assert!(is_authentic(&key, net.log.last().unwrap().sctp()));
    net.run_for(ms(100));
    assert!(net.has_event(A, &Event::Closed) && net.has_event(B, &Event::Closed));
    let mut net = both(requiring(&[ABORT]), [1, 1]);
    net.command(A, |a, now| a.abort(now, Bytes::new()));
    assert_eq!(last_of(&net, A), ["AUTH", "ABORT"]);
    net.run_for(ms(100));
    assert!(matches!(net.events[B].last(), Some((_, Event::Aborted { .. }))));
}

#[test]
fn an_hmac_that_was_not_offered_is_answered_with_an_error() {
    // RFC 4895 sections 4.1 and 6.3
    let mut only_sha1 = Config::default();
    only_sha1.auth.hmac_identifiers = vec![HmacIdentifier::Sha1];
    let mut net = connected([only_sha1, Config::default()], [1, 1]);
    let key = association_key(&net, b"");
    let serial = first_serial(&net, B);
    for (hmac_id, hmac) in [(3, 32), (2, 20), (0, 0), (0xffff, 64)] {
        let auth = if hmac_id == 3 {
            authenticated(&key, (0, 3), [asconf(serial, 2)])
        } else {
            vec![
                Chunk::Auth(Box::new(Auth::new(0, hmac_id, Bytes::from(vec![0; hmac])))),
                asconf(serial, 2),
            ]
        };
        let packet = net.forge(A, address(B, 1), auth);
        net.log.clear();
        net.inject(A, packet);
        let cause = ErrorCause::UnsupportedHmacIdentifier(hmac_id);
        assert_eq!(net.log[0].sctp().chunks[..], [Chunk::Error(vec![cause])]);
        assert_eq!(destinations(&net, A), [address(B, 1)]);
    }
    // B uses what A lists first, and supports
    net.log.clear();
    net.owned[B].push(address(B, 2));
    net.command(B, |b, now| b.add_address(now, local(B, 2))).unwrap();
    net.run_for(ms(100));
    let ids: Vec<u16> = net
        .log
        .iter()
        .flat_map(|d| &d.sctp().chunks)
        .filter_map(|c| match c {
            Chunk::Auth(auth) => Some(auth.hmac_id),
            _ => None,
        })
        .collect();
    assert_eq!(ids, [1, 3], "each uses what the other lists first");
    assert_eq!(destinations(&net, A), [address(B, 1), address(B, 2)]);
}

#[test]
fn shared_keys_keep_out_who_saw_the_handshake_but_does_not_know_them() {
    let mut net = both(with_keys(&[(7, "open sesame")], 7), [1, 1]);
    let serial = first_serial(&net, B);
    // the empty key, under the identifier of it and of the right key
    let empty = association_key(&net, b"");
    for id in [0, 7] {
        let packet = net.forge(
            A,
            address(B, 1),
            authenticated(&empty, (id, 3), [asconf(serial, 2)]),
        );
        net.inject(A, packet);
        assert_eq!(destinations(&net, A), [address(B, 1)]);
    }
    assert_eq!(net.association(A).counters().refused.bad_auth, 2);
    let right = association_key(&net, b"open sesame");
    let packet = net.forge(
        A,
        address(B, 1),
        authenticated(&right, (7, 3), [asconf(serial, 2)]),
    );
    net.inject(A, packet);
    assert_eq!(destinations(&net, A), [address(B, 1), address(B, 2)]);
    // an active key that is not configured gives way to one that is
    let config = with_keys(&[(7, "open sesame")], 9);
    assert_eq!(both(config, [1, 1]).association(A).active_key(), 7);
}

#[test]
fn ends_with_different_shared_keys_have_data_but_no_asconf() {
    let mut net = connected(
        [with_keys(&[(1, "one")], 1), with_keys(&[(1, "another")], 1)],
        [1, 1],
    );
    net.owned[B].push(address(B, 2));
    net.command(B, |b, now| b.add_address(now, local(B, 2))).unwrap();
    net.send(B, 0, synthetic(0, 10));
    net.run_for(ms(100));
    assert_eq!(net.messages[A].len(), 1);
    assert_eq!(destinations(&net, A), [address(B, 1)]);
    assert_eq!(net.association(A).counters().refused.bad_auth, 1);
}

#[test]
fn keys_are_changed_while_the_association_lives() {
    let mut net = both(Config::default(), [1, 1]);
    assert_eq!(
        net.command(A, |a, _| a.set_active_key(5)),
        Err(AuthError::NoSuchKey)
    );
    for host in [A, B] {
        net.command(host, |a, _| a.set_shared_key(5, "five")).unwrap();
    }
    let key = association_key(&net, b"five");
    assert_eq!(
        net.association(B).active_key(),
        0,
        "a key is accepted before it is used"
    );
    net.command(B, |b, _| b.set_active_key(5)).unwrap();
    net.log.clear();
    net.owned[B].push(address(B, 2));
    net.command(B, |b, now| b.add_address(now, local(B, 2))).unwrap();
    net.run_for(ms(100));
    assert!(is_authentic(&key, net.log[0].sctp()));
    assert_eq!(destinations(&net, A), [address(B, 1), address(B, 2)]);
    // A hears of it, and B of nothing: A answered with the old key
    let news = |net: &Net, host: usize| {
        net.events[host]
            .iter()
            .filter(|e| matches!(e.1, Event::PeerKeyChanged(_)))
            .count()
    };
    assert!(net.has_event(A, &Event::PeerKeyChanged(5)));
    assert_eq!((news(&net, A), news(&net, B)), (1, 0));
    // the old key goes; the active one cannot
    net.command(A, |a, _| a.set_active_key(5)).unwrap();
    for host in [A, B] {
        assert_eq!(
            net.command(host, |a, _| a.delete_shared_key(5)),
            Err(AuthError::ActiveKey)
        );
        assert_eq!(net.command(host, |a, _| a.delete_shared_key(0)), Ok(()));
        assert_eq!(
            net.command(host, |a, _| a.delete_shared_key(0)),
            Err(AuthError::NoSuchKey)
        );
    }
    net.owned[B].push(address(B, 3));
    net.command(B, |b, now| b.add_address(now, local(B, 3))).unwrap();
    net.run_for(ms(100));
    assert_eq!(destinations(&net, A).len(), 3);
    assert_eq!((news(&net, A), news(&net, B)), (1, 1));
    // a key is replaced under its identifier
    net.command(A, |a, _| a.set_shared_key(5, "another five"))
        .unwrap();
    net.owned[B].push(address(B, 4));
    net.command(B, |b, now| b.add_address(now, local(B, 4))).unwrap();
    net.run_for(ms(100));
    assert_eq!(net.association(A).counters().refused.bad_auth, 1);
    net.command(B, |b, _| b.set_shared_key(5, "another five"))
        .unwrap();
    net.run_for(Duration::from_secs(3));
    assert_eq!(
        destinations(&net, A).len(),
        4,
        "the retransmission has the new key"
    );
}
