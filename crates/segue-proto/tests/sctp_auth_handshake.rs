//! Chunk authentication (RFC 4895) in the handshake, and of packets that belong to no association.

use crate::common::auth::{association_key, authenticated, is_authentic};
use crate::common::*;
use bytes::Bytes;
use segue_proto::random::Stream;
use segue_proto::sctp::{AsconfAuth, AuthConfig, Config, Endpoint, Event, SharedKey};
use segue_proto::{Duration, InterfaceId, Transmit};
use segue_wire::sctp::chunk_type::{AUTH, COOKIE_ACK, COOKIE_ECHO, ERROR, INIT, INIT_ACK, SHUTDOWN_COMPLETE};
use segue_wire::sctp::{Auth, Chunk, ErrorCause, Init, Parameter, SctpPacket};
use segue_wire::{Packet, Payload};

fn requiring(chunk_types: &[u8]) -> Config {
    Config {
        auth: AuthConfig {
            required_chunks: chunk_types.to_vec(),
            ..AuthConfig::default()
        },
        ..Config::default()
    }
}

/// Two ends whose packets go nowhere of themselves.
fn apart(config: [Config; 2]) -> Net {
    let mut net = Net::new(config, [1, 1], ms(10), 1);
    net.rule = Box::new(|_| vec![]);
    net
}

/// The last packet that `host` sent.
fn last(net: &Net, host: usize) -> Packet {
    net.log
        .iter()
        .rfind(|d| d.from == host)
        .expect("silence")
        .packet
        .clone()
}

fn sctp(packet: &mut Packet) -> &mut SctpPacket {
    match &mut packet.payload {
        Payload::Sctp(sctp) => sctp,
        _ => panic!("not SCTP"),
    }
}

fn init(packet: &mut Packet) -> &mut Init {
    match &mut sctp(packet).chunks[0] {
        Chunk::Init(init) | Chunk::InitAck(init) => init,
        other => panic!("{other:?}"),
    }
}

fn chunks_of_last(net: &Net, host: usize) -> Vec<&'static str> {
    names(net.log.iter().rfind(|d| d.from == host).expect("silence").sctp())
}

/// The handshake up to what A answers to the INIT ACK, which `change` may alter.
fn until_cookie_echo(net: &mut Net, change: impl FnOnce(&mut Init)) {
    net.connect();
    net.inject(B, last(net, A));
    let mut init_ack = last(net, B);
    change(init(&mut init_ack));
    net.inject(A, init_ack);
}

fn is_violation(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Abort { causes, .. } if matches!(causes[..], [ErrorCause::ProtocolViolation(_)]))
}

#[test]
fn a_random_number_that_is_not_of_32_bytes_ends_the_attempt() {
    // RFC 4895 section 6.1
    let spoil = |init: &mut Init, len: usize| {
        for parameter in &mut init.parameters {
            if let Parameter::Random(random) = parameter {
                *random = Bytes::from(vec![7; len]);
            }
        }
    };
    for len in [0, 31, 33, 64] {
        let mut net = apart([Config::default(), Config::default()]);
        net.connect();
        let mut packet = last(&net, A);
        spoil(init(&mut packet), len);
        net.inject(B, packet);
        assert!(is_violation(&sctp(&mut last(&net, B)).chunks[0]));
        assert_eq!(net.ends[B].counters().refused.bad_init, 1);

        let mut net = apart([Config::default(), Config::default()]);
        until_cookie_echo(&mut net, |init| spoil(init, len));
        assert!(is_violation(&sctp(&mut last(&net, A)).chunks[0]));
        assert!(matches!(net.events[A][..], [(_, Event::Aborted { .. })]));
        // whoever does not authenticate does not know the parameter
        let without = Config {
            asconf_auth: AsconfAuth::None,
            ..Config::default()
        };
        let mut net = apart([without, Config::default()]);
        until_cookie_echo(&mut net, |init| spoil(init, len));
        assert_eq!(chunks_of_last(&net, A), ["COOKIE-ECHO"]);
    }
}

#[test]
fn a_peer_that_cannot_authenticate_is_refused_if_more_than_asconf_needs_it() {
    let strip = |init: &mut Init| {
        init.parameters.retain(|p| !matches!(p, Parameter::Random(_)));
    };
    let wanting = requiring(&[0]);
    let mut net = apart([Config::default(), wanting.clone()]);
    net.connect();
    let mut packet = last(&net, A);
    strip(init(&mut packet));
    net.inject(B, packet);
    assert!(is_violation(&sctp(&mut last(&net, B)).chunks[0]));
    let mut net = apart([wanting, Config::default()]);
    until_cookie_echo(&mut net, strip);
    assert!(is_violation(&sctp(&mut last(&net, A)).chunks[0]));
    // for ASCONF alone nobody is refused
    let mut net = apart([Config::default(), Config::default()]);
    until_cookie_echo(&mut net, strip);
    assert_eq!(chunks_of_last(&net, A), ["COOKIE-ECHO"]);
}

#[test]
fn chunk_types_that_cannot_be_authenticated_are_not_listed_and_ignored_if_they_are() {
    // RFC 4895 section 3.2
    let never = [INIT, INIT_ACK, SHUTDOWN_COMPLETE, AUTH];
    let mut net = apart([requiring(&never), Config::default()]);
    net.connect();
    assert!(
        init(&mut last(&net, A))
            .parameters
            .contains(&Parameter::Chunks(Bytes::from_static(&[0xc1, 0x80])))
    );
    let mut net = apart([Config::default(), Config::default()]);
    until_cookie_echo(&mut net, |init| {
        for parameter in &mut init.parameters {
            if let Parameter::Chunks(types) = parameter {
                *types = Bytes::from([&never[..], &[COOKIE_ECHO, 0x42]].concat());
            }
        }
    });
    // of these only COOKIE ECHO; a type that nobody knows is no harm
    assert_eq!(chunks_of_last(&net, A), ["AUTH", "COOKIE-ECHO"]);
}

#[test]
fn a_cookie_echo_can_be_authenticated_and_then_must_be() {
    // RFC 4895 section 6.3: by what the cookie says, as there is no association yet
    let with_key = |key: &'static str| {
        let mut config = requiring(&[COOKIE_ECHO, COOKIE_ACK]);
        config.auth.shared_keys = vec![SharedKey {
            id: 3,
            key: Bytes::from_static(key.as_bytes()),
        }];
        config
    };
    let mut net = Net::new([with_key("right"), with_key("right")], [1, 1], ms(10), 1);
    net.connect();
    net.run_for(ms(500));
    assert_eq!(
        net.trace()[..4],
        ["A INIT", "B INIT-ACK", "A AUTH COOKIE-ECHO", "B AUTH COOKIE-ACK"]
    );
    let key = association_key(&net, b"right");
    assert!(is_authentic(&key, net.log[2].sctp()) && is_authentic(&key, net.log[3].sctp()));
    assert!(net.association(A).is_established() && net.association(B).is_established());

    // who does not know the key has no association
    let mut net = Net::new([with_key("guess"), with_key("right")], [1, 1], ms(10), 1);
    net.connect();
    net.run_for(ms(500));
    assert_eq!(net.ends[B].associations().count(), 0);
    assert_eq!(net.ends[B].counters().refused.bad_auth, 1);

    // nor who leaves the AUTH chunk away
    let mut net = apart([with_key("right"), with_key("right")]);
    until_cookie_echo(&mut net, |_| {});
    let mut bare = last(&net, A);
    assert!(matches!(sctp(&mut bare).chunks.remove(0), Chunk::Auth(_)));
    net.inject(B, bare);
    assert_eq!(net.ends[B].associations().count(), 0);
    assert_eq!(net.ends[B].counters().refused.unauthenticated, 1);
    // the real one still does it, as bytes or typed, and what comes with it counts as authenticated
    let key = association_key(&net, b"right");
    let mut real = last(&net, A);
    let cookie_echo = sctp(&mut real).chunks[1].clone();
    let bundle = [cookie_echo, Chunk::Heartbeat(Bytes::from_static(b"beat"))];
    sctp(&mut real).chunks = authenticated(&key, (3, 3), bundle).into();
    net.inject(B, Packet::parse(&real.to_vec()).expect("parse"));
    assert_eq!(net.ends[B].associations().count(), 1);
    let said: Vec<String> = net.trace();
    assert!(
        said.ends_with(&["B AUTH COOKIE-ACK".into(), "B HEARTBEAT-ACK".into()]),
        "{said:?}"
    );
}

#[test]
fn a_stale_cookie_that_is_not_authentic_or_not_for_this_port_is_not_answered() {
    // RFC 9260 section 5.1.5, steps 3 and 4; RFC 4895 section 6.3
    let mut net = apart([requiring(&[]), requiring(&[COOKIE_ECHO])]);
    until_cookie_echo(&mut net, |_| {});
    let echo = last(&net, A);
    net.run_for(Duration::from_secs(1000));
    net.log.clear();
    let mut bare = echo.clone();
    sctp(&mut bare).chunks.remove(0);
    net.inject(B, bare);
    assert_eq!(net.ends[B].counters().refused.unauthenticated, 1);
    let mut of_another_port = echo.clone();
    sctp(&mut of_another_port).source_port += 1;
    net.inject(B, of_another_port);
    assert_eq!(net.ends[B].counters().refused.mismatched_cookies, 1);
    assert!(net.log.iter().all(|d| d.from != B), "{:?}", net.trace());
    net.inject(B, echo);
    assert_eq!(chunks_of_last(&net, B), ["ERROR"]);
    assert_eq!(net.ends[B].counters().refused.stale_cookies, 1);
}

#[test]
fn auth_stands_behind_a_cookie_echo_that_need_not_be_authenticated() {
    // RFC 4895 section 7, the second example: the receiver has the keys once it has worked off the COOKIE ECHO
    let mut net = apart([Config::default(), requiring(&[ERROR])]);
    until_cookie_echo(&mut net, |init| {
        init.parameters.push(Parameter::Unknown {
            parameter_type: 0xc042,
            value: Bytes::new(),
        });
    });
    assert_eq!(chunks_of_last(&net, A), ["COOKIE-ECHO", "AUTH", "ERROR"]);
    net.inject(B, Packet::parse(&last(&net, A).to_vec()).expect("parse"));
    assert_eq!(chunks_of_last(&net, B), ["COOKIE-ACK"]);
    assert_eq!(net.association(B).counters().refused.total(), 0);
    // with a wrong HMAC the ERROR is not looked at, but the association is there
    let mut net = apart([Config::default(), requiring(&[ERROR])]);
    until_cookie_echo(&mut net, |_| {});
    let mut packet = last(&net, A);
    sctp(&mut packet)
        .chunks
        .extend(authenticated(b"guess", (0, 3), [Chunk::Error(vec![])]));
    net.inject(B, packet);
    assert_eq!(chunks_of_last(&net, B), ["COOKIE-ACK"]);
    assert_eq!(net.association(B).counters().refused.bad_auth, 1);
}

#[test]
fn a_server_keeps_nothing_and_still_has_the_right_key() {
    // many INITs are answered before one comes back, to an endpoint that did not draw its random number again
    let mut net = apart([requiring(&[COOKIE_ACK]), Config::default()]);
    until_cookie_echo(&mut net, |_| {});
    let echo = last(&net, A);
    for _ in 0..50 {
        let mut another = last(&net, A);
        let sent = net.log.iter().find(|d| d.from == A).expect("INIT").packet.clone();
        another.payload = sent.payload;
        init(&mut another).initiate_tag = 77;
        net.inject(B, another);
    }
    assert_eq!(net.ends[B].associations().count(), 0);
    net.inject(B, echo);
    let cookie_ack = last(&net, B);
    assert_eq!(chunks_of_last(&net, B), ["AUTH", "COOKIE-ACK"]);
    net.inject(A, cookie_ack);
    assert!(net.association(A).is_established());
    assert_eq!(net.association(A).counters().refused.total(), 0);
}

#[test]
fn a_packet_out_of_the_blue_is_answered_as_if_it_had_no_auth() {
    // RFC 4895 section 6.3
    let auth = || Chunk::Auth(Box::new(Auth::new(0, 3, Bytes::from(vec![1; 32]))));
    let abort = Chunk::Abort {
        reflected_tag: false,
        causes: vec![],
    };
    let shutdown_complete = Chunk::ShutdownComplete { reflected_tag: true };
    let answered = Chunk::Abort {
        reflected_tag: true,
        causes: vec![],
    };
    for (chunks, answer) in [
        (vec![auth(), Chunk::ShutdownAck], Some(shutdown_complete)),
        (vec![auth(), Chunk::Heartbeat(Bytes::new())], Some(answered)),
        (vec![auth(), abort], None),
        (vec![auth(), Chunk::CookieAck], None),
        (vec![auth()], None),
        // neither INIT nor a second AUTH may stand behind one
        (vec![auth(), auth(), Chunk::ShutdownAck], None),
        (
            vec![auth(), Chunk::ShutdownComplete { reflected_tag: false }],
            None,
        ),
    ] {
        let mut net = apart([Config::default(), Config::default()]);
        let packet = net.forge_with_tag(B, address(A, 1), 5, chunks);
        net.ends[B].handle_packet(net.now, InterfaceId(0), packet);
        let sent: Vec<Transmit> = std::iter::from_fn(|| net.ends[B].poll_transmit(net.now)).collect();
        let chunks: Vec<Chunk> = sent
            .into_iter()
            .flat_map(|mut t| sctp(&mut t.packet).chunks.clone())
            .collect();
        assert_eq!(chunks, Vec::from_iter(answer));
    }
}

#[test]
fn packets_as_values_and_packets_as_bytes_are_the_same_conversation() {
    let run = |exact: bool| {
        let config = requiring(&[0, 3, 4, 5, ERROR, COOKIE_ECHO, COOKIE_ACK]);
        let mut net = Net::new([config.clone(), config], [2, 2], ms(10), 3);
        if exact {
            net.corrupt = Some(Box::new(|_| ()));
        }
        net.connect();
        for i in 0..10 {
            net.send(A, 0, synthetic(i * 5000, 5000));
            net.run_for(ms(100));
        }
        net.owned[B].push(address(B, 3));
        net.command(B, |b, now| b.add_address(now, local(B, 3))).unwrap();
        net.run_for(Duration::from_secs(40));
        net.command(A, |a, now| a.shutdown(now));
        net.run_for(Duration::from_secs(1));
        assert_eq!(net.messages[B].len(), 10);
        assert_eq!(net.unparsed, 0);
        net.log
            .iter()
            .map(|d| (d.at, d.packet.to_vec()))
            .collect::<Vec<_>>()
    };
    let typed = run(false);
    assert!(typed.len() > 50);
    assert_eq!(typed, run(true));
}

/// A loses everything it knew, but not the keys of its configuration.
fn lose_memory(net: &mut Net, config: Config) {
    net.ends[A] = Endpoint::new(config, PORT, Box::new(Stream::new(9, "secrets after the crash")));
    net.ends[A].add_local_address(local(A, 1));
    net.ids[A] = None;
}

fn keyed(config: Config) -> Config {
    let key = SharedKey {
        id: 3,
        key: Bytes::from_static(b"right"),
    };
    Config {
        auth: AuthConfig {
            shared_keys: vec![key],
            ..config.auth
        },
        ..config
    }
}

#[test]
fn a_restart_makes_new_association_keys_and_keeps_the_shared_ones() {
    let config = keyed(Config::default());
    let mut net = Net::new([config.clone(), config.clone()], [1, 1], ms(10), 1);
    net.connect();
    net.run_for(ms(500));
    net.command(B, |b, _| b.set_shared_key(8, "set later")).unwrap();
    let former = association_key(&net, b"right");
    lose_memory(&mut net, config);
    net.log.clear();
    net.connect();
    net.run_for(ms(500));
    assert_eq!(net.ends[B].counters().restarts, 1);
    let key = association_key(&net, b"right");
    assert_ne!(key, former);
    net.log.clear();
    net.owned[B].push(address(B, 2));
    net.command(B, |b, now| b.add_address(now, local(B, 2))).unwrap();
    net.run_for(ms(100));
    assert!(is_authentic(&key, net.log[0].sctp()));
    assert!(net.association(A).paths().any(|p| p.destination == address(B, 2)));
    // the key that was set on the association, not configured, is there under the new vectors
    net.command(A, |a, _| a.set_shared_key(8, "set later")).unwrap();
    net.command(A, |a, _| a.set_active_key(8)).unwrap();
    net.owned[A].push(address(A, 2));
    net.command(A, |a, now| a.add_address(now, local(A, 2))).unwrap();
    net.run_for(ms(100));
    assert!(net.association(B).paths().any(|p| p.destination == address(A, 2)));
    assert_eq!(net.association(B).counters().refused.bad_auth, 0);
}

#[test]
fn nobody_restarts_an_association_whose_key_he_does_not_know_if_the_cookie_echo_must_be_authenticated() {
    // RFC 4895 section 6.3
    let config = keyed(requiring(&[COOKIE_ECHO]));
    let mut net = Net::new([config.clone(), config.clone()], [1, 1], ms(10), 1);
    net.connect();
    net.run_for(ms(500));
    let former = association_key(&net, b"right");
    let tag = net.tag_of(A);
    lose_memory(&mut net, config);
    net.rule = Box::new(|_| vec![]);
    until_cookie_echo(&mut net, |_| {});
    let echo = last(&net, A);
    assert_eq!(chunks_of_last(&net, A), ["AUTH", "COOKIE-ECHO"]);
    let before = net.ends[B].counters().refused.bad_auth;
    net.inject(B, echo.clone());
    assert_eq!(net.ends[B].counters().refused.bad_auth, before + 1);
    assert_eq!(net.ends[B].counters().restarts, 0);
    // the former association is untouched: what B says still bears the tag of A's former self
    net.log.clear();
    net.send(B, 0, synthetic(0, 10));
    assert_eq!(sctp(&mut last(&net, B)).verification_tag, tag);
    // who does know the association's key may
    let mut known = echo;
    let cookie_echo = sctp(&mut known).chunks[1].clone();
    sctp(&mut known).chunks = authenticated(&former, (3, 3), [cookie_echo]).into();
    net.inject(B, known);
    assert_eq!(net.ends[B].counters().restarts, 1);
}
