//! RFC 4895: authenticated chunks. The peer's side is written a second time (`script::auth`).

use segue_conformance::expect;
use segue_conformance::script::auth::{self, PeerAuth};
use segue_conformance::script::chunks::{data, init};
use segue_conformance::script::{Script, ms, quiet};
use segue_proto::sctp::{AuthConfig, Config};
use segue_wire::AsconfSerial;
use segue_wire::sctp::{Asconf, AsconfParameter, Auth, Chunk, ErrorCause, Init, Parameter};

/// The peer's next ASCONF, which changes nothing: it makes its own address the primary path.
fn asconf(n: u32) -> Chunk {
    let address = segue_conformance::script::peer(1);
    Chunk::Asconf(Box::new(Asconf {
        serial_number: AsconfSerial(init().initial_tsn.0).add(n),
        address,
        parameters: vec![AsconfParameter::SetPrimaryAddress {
            correlation_id: 1,
            address,
        }],
    }))
}

/// An endpoint that asks for authenticated DATA too.
fn with_data() -> Config {
    Config {
        auth: AuthConfig {
            required_chunks: vec![0],
            ..AuthConfig::default()
        },
        ..quiet()
    }
}

#[test]
fn s3_1_init_and_init_ack_carry_a_random_of_32_bytes_the_chunks_and_the_hmacs() {
    let mut t = Script::connecting(quiet());
    let own = expect!(t, Chunk::Init(init) => init.clone());
    let random = own.parameters.iter().find_map(|p| match p {
        Parameter::Random(random) => Some(random.clone()),
        _ => None,
    });
    assert_eq!(random.map(|r| r.len()), Some(32));
    let chunks = own.parameters.iter().find_map(|p| match p {
        Parameter::Chunks(types) => Some(types.clone()),
        _ => None,
    });
    let chunks = chunks.expect("CHUNKS");
    assert!(chunks.contains(&0xc1) && chunks.contains(&0x80));
    // section 3.2: INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH are never in the list
    assert!([1, 2, 14, 15].iter().all(|t| !chunks.contains(t)));
    // section 3.3: SHA-1 is always there
    let hmacs = own.parameters.iter().find_map(|p| match p {
        Parameter::HmacAlgo(list) => Some(list.clone()),
        _ => None,
    });
    assert!(hmacs.expect("HMAC-ALGO").contains(&auth::SHA1));
    // RFC 5061 section 4.2.7: AUTH is among the extensions
    assert!(
        own.parameters
            .iter()
            .any(|p| matches!(p, Parameter::SupportedExtensions(types) if types.contains(&0x0f)))
    );
}

#[test]
fn s3_1_random_differs_from_attempt_to_attempt() {
    let random_of = |t: &mut Script| {
        t.send_with_tag(
            0,
            [Chunk::Init(Box::new(Init {
                parameters: auth::parameters(),
                ..init()
            }))],
        );
        expect!(t, Chunk::InitAck(ack) => ack.parameters.iter().find_map(|p| match p {
            Parameter::Random(random) => Some(random.clone()),
            _ => None,
        }))
    };
    let mut t = Script::listening(quiet());
    let first = random_of(&mut t);
    assert!(first.is_some());
    assert_ne!(first, random_of(&mut t));
}

#[test]
fn s6_2_what_the_peer_wants_authenticated_is_sent_behind_auth() {
    let mut t = Script::authenticated(quiet(), 2);
    t.command(|a, now| a.request_set_primary(now, segue_conformance::script::ours(2)))
        .expect("ASCONF");
    let sent = t.receive();
    assert!(
        matches!(sent.chunks[..], [Chunk::Auth(_), Chunk::Asconf(_)]),
        "{sent:?}"
    );
    assert!(t.auth.as_ref().expect("auth").covers(&sent.chunks));
    let Chunk::Auth(chunk) = &sent.chunks[0] else {
        unreachable!()
    };
    // the first HMAC of the peer's list that is known here; the key that nobody has set
    assert_eq!((chunk.hmac_id, chunk.shared_key_id), (auth::SHA256, 0));
}

#[test]
fn s6_1_other_chunks_need_no_auth_and_data_does_if_the_peer_says_so() {
    let mut t = Script::authenticated(quiet(), 1);
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    let mut parameters = auth::parameters();
    parameters[1] = Parameter::Chunks(b"\x00\xc1\x80"[..].into());
    let mut t = Script::established_with(quiet(), 1, parameters);
    for _ in 0..3 {
        t.user_sends(900);
    }
    for sent in t.take_all() {
        assert!(t.auth.as_ref().expect("auth").covers(&sent.chunks), "{sent:?}");
        assert!(sent.len <= 1500);
    }
}

#[test]
fn s6_2_sha_1_is_used_if_the_peer_prefers_it() {
    let mut parameters = auth::parameters();
    parameters[2] = Parameter::HmacAlgo([auth::SHA1].into_iter().collect());
    let mut t = Script::established_with(quiet(), 1, parameters);
    let signed = t
        .auth
        .clone()
        .expect("auth")
        .sign_with(0, auth::SHA1, [asconf(0)]);
    t.send(signed);
    let sent = t.receive();
    assert!(matches!(&sent.chunks[0], Chunk::Auth(a) if a.hmac_id == auth::SHA1 && a.hmac.len() == 20));
    assert!(t.auth.as_ref().expect("auth").covers(&sent.chunks));
}

#[test]
fn s6_3_a_chunk_that_must_be_authenticated_is_dropped_before_auth_and_taken_behind_it() {
    let mut t = Script::authenticated(with_data(), 1);
    t.send([data(0)]);
    assert!(t.messages.is_empty());
    assert_eq!(t.association().counters().refused.unauthenticated, 1);
    // DATA before AUTH in the same packet is not covered either
    let mut chunks = vec![data(1)];
    chunks.extend(t.signed([data(0)]));
    t.send(chunks);
    assert_eq!(t.messages.len(), 1);
    assert_eq!(t.association().counters().refused.unauthenticated, 2);
}

#[test]
fn s6_3_everything_behind_an_auth_that_does_not_verify_is_dropped_and_what_is_before_it_is_not() {
    let mut t = Script::authenticated(quiet(), 1);
    let wrong = Chunk::Auth(Box::new(Auth::new(0, auth::SHA256, vec![0; 32].into())));
    t.send([data(0), wrong, data(1)]);
    assert_eq!(t.messages.len(), 1);
    assert_eq!(t.association().counters().refused.bad_auth, 1);
}

#[test]
fn s6_3_an_hmac_identifier_that_was_not_offered_is_reported() {
    let mut t = Script::authenticated(quiet(), 1);
    let signed = t.auth.clone().expect("auth").sign_with(0, 2, [asconf(0)]);
    t.send(signed);
    expect!(t, Chunk::Error(causes) if causes == &[ErrorCause::UnsupportedHmacIdentifier(2)]);
}

#[test]
fn s6_3_a_good_auth_is_taken_whatever_its_place() {
    let mut t = Script::authenticated(quiet(), 1);
    let mut chunks = vec![data(0)];
    chunks.extend(t.signed([asconf(0), data(1)]));
    t.send(chunks);
    assert_eq!(t.messages.len(), 2);
    let answers = t.take_all();
    assert!(
        answers
            .iter()
            .any(|p| p.chunks.iter().any(|c| matches!(c, Chunk::AsconfAck(_))))
    );
    assert_eq!(t.association().counters().refused.total(), 0);
}

#[test]
fn s6_1_the_key_is_of_both_ends_randoms() {
    // the same shared key, another RANDOM of either end: another key
    let mut t = Script::listening(quiet());
    let theirs = auth::parameters();
    let parameters = theirs.clone();
    t.send_with_tag(0, [Chunk::Init(Box::new(Init { parameters, ..init() }))]);
    let ack = expect!(t, Chunk::InitAck(ack) => ack.clone());
    t.our_tag = ack.initiate_tag;
    let cookie = ack.parameters.iter().find_map(|p| match p {
        Parameter::StateCookie(cookie) => Some(cookie.clone()),
        _ => None,
    });
    t.send([Chunk::CookieEcho(cookie.expect("cookie"))]);
    expect!(t, Chunk::CookieAck);
    let other = |parameters: &[Parameter]| -> Vec<Parameter> {
        let change = |p: &Parameter| match p {
            Parameter::Random(_) => Parameter::Random(vec![7; 32].into()),
            other => other.clone(),
        };
        parameters.iter().map(change).collect()
    };
    let key = |theirs: &[Parameter], ours: &[Parameter]| PeerAuth::new(theirs, ours, b"").expect("key");
    let ours = &ack.parameters;
    for (n, wrong) in [
        key(&other(&theirs), ours),
        key(&theirs, &other(ours)),
        key(&other(&theirs), &other(ours)),
    ]
    .into_iter()
    .enumerate()
    {
        t.send(wrong.sign([asconf(0)]));
        t.silence(ms(100));
        assert_eq!(t.association().counters().refused.bad_auth, 1 + n as u64);
    }
    let right = key(&theirs, ours);
    t.send(right.sign([asconf(0)]));
    let answer = t.receive();
    assert!(matches!(answer.chunks[1], Chunk::AsconfAck(_)));
    assert!(right.covers(&answer.chunks));
}

#[test]
fn s3_1_a_random_of_another_length_is_refused() {
    let mut t = Script::listening(quiet());
    let mut parameters = auth::parameters();
    parameters[0] = Parameter::Random(vec![1; 31].into());
    t.send_with_tag(0, [Chunk::Init(Box::new(Init { parameters, ..init() }))]);
    expect!(t, Chunk::Abort { .. });
    t.silence(ms(1000));
    assert_eq!(t.end.associations().count(), 0);
}
