//! RFC 9260 section 5: how associations begin.

use segue_conformance::expect;
use segue_conformance::script::chunks::{PEER_TAG, data, init, peer_tsn};
use segue_conformance::script::{PORT, Script, ms, ours, peer, quiet};
use segue_proto::sctp::{Config, Event, PathState, SendOptions};
use segue_proto::{Duration, Instant};
use segue_wire::Data;
use segue_wire::sctp::{Chunk, ErrorCause, Init, Parameter};

fn cookie_of(ack: &Init) -> bytes::Bytes {
    ack.parameters
        .iter()
        .find_map(|p| match p {
            Parameter::StateCookie(cookie) => Some(cookie.clone()),
            _ => None,
        })
        .expect("state cookie")
}

/// An INIT ACK of the peer with a cookie.
fn init_ack() -> Chunk {
    Chunk::InitAck(Box::new(Init {
        parameters: vec![Parameter::StateCookie("cookie".into())],
        ..init()
    }))
}

/// A listening endpoint that has answered the peer's INIT.
fn init_answered(config: Config) -> (Script, bytes::Bytes) {
    let mut t = Script::listening(config);
    t.send_with_tag(0, [Chunk::Init(Box::new(init()))]);
    let ack = expect!(t, Chunk::InitAck(ack) => ack.clone());
    t.our_tag = ack.initiate_tag;
    t.our_tsn = ack.initial_tsn;
    (t, cookie_of(&ack))
}

#[test]
fn s5_1_the_listening_end_keeps_nothing_before_the_cookie_comes_back() {
    let (mut t, cookie) = init_answered(quiet());
    // B: the INIT ACK goes to where the INIT came from, with the tag that the INIT gave
    let last = t.last.clone().expect("packet");
    assert_eq!(
        (last.source, last.destination, last.tag),
        (ours(1), peer(1), PEER_TAG)
    );
    assert_ne!(t.our_tag, 0, "section 5.3.1: a tag is never 0");
    assert_eq!(t.end.associations().count(), 0);
    assert_eq!(t.end.poll_timeout(), None);
    // D: COOKIE ACK
    t.send([Chunk::CookieEcho(cookie)]);
    expect!(t, Chunk::CookieAck);
    t.expect_event(&Event::Connected);
    assert_eq!(t.end.associations().count(), 1);
}

#[test]
fn s5_1_the_opening_end_sends_init_then_cookie_echo_then_data() {
    let mut t = Script::connecting(quiet());
    t.command(|a, now| a.send(now, 0, Data::Bytes("early".into()), SendOptions::default()))
        .expect("send");
    let init = expect!(t, Chunk::Init(init) => init.clone());
    // section 8.5.1 A: an INIT carries no tag
    assert_eq!(t.last.as_ref().map(|p| p.tag), Some(0));
    assert_ne!(init.initiate_tag, 0);
    t.our_tag = init.initiate_tag;
    t.send([init_ack()]);
    expect!(t, Chunk::CookieEcho(cookie) if cookie == &b"cookie"[..]);
    assert_eq!(t.last.as_ref().map(|p| p.tag), Some(PEER_TAG));
    t.send([Chunk::CookieAck]);
    t.expect_event(&Event::Connected);
    expect!(t, Chunk::Data(chunk) if chunk.tsn == init.initial_tsn);
}

#[test]
fn s5_1_t1_repeats_the_init_with_the_rto_doubling_until_max_init_retransmits() {
    let mut t = Script::connecting(Config {
        max_init_retransmits: 3,
        ..quiet()
    });
    for seconds in [0, 1, 3, 7] {
        expect!(t, Chunk::Init(_));
        let at = Instant::ZERO + Duration::from_secs(seconds);
        assert_eq!(t.last.as_ref().map(|p| p.at), Some(at));
    }
    t.silence(ms(60_000));
    t.expect_event(&Event::Lost);
}

#[test]
fn s5_1_t1_repeats_the_cookie_echo() {
    let mut t = Script::connecting(quiet());
    t.our_tag = expect!(t, Chunk::Init(init) => init.initiate_tag);
    t.send([init_ack()]);
    for _ in 0..3 {
        expect!(t, Chunk::CookieEcho(cookie) if cookie == &b"cookie"[..]);
    }
}

#[test]
fn s5_1_data_may_travel_with_the_cookie_echo_and_is_taken() {
    let (mut t, cookie) = init_answered(quiet());
    t.send([Chunk::CookieEcho(cookie), data(0)]);
    assert_eq!(t.messages.len(), 1);
    expect!(t, Chunk::CookieAck, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(0));
}

#[test]
fn s3_3_3_an_init_ack_asks_for_no_more_streams_than_the_peer_takes_and_lists_no_address_types() {
    let config = Config {
        outbound_streams: 100,
        ..quiet()
    };
    let mut t = Script::listening(config.clone());
    t.send_with_tag(0, [Chunk::Init(Box::new(init()))]);
    let ack = expect!(t, Chunk::InitAck(ack) => ack.clone());
    assert_eq!(ack.outbound_streams, 8, "the peer's MIS");
    let types = |p: &Parameter| matches!(p, Parameter::SupportedAddressTypes(_));
    // table 6 of section 3.3.3 has no such parameter; that of INIT has
    assert!(!ack.parameters.iter().any(types));
    assert!(matches!(ack.parameters.last(), Some(Parameter::StateCookie(_))));
    let mut t = Script::connecting(config);
    let init = expect!(t, Chunk::Init(init) => init.clone());
    assert_eq!(init.outbound_streams, 100);
    assert!(init.parameters.iter().any(types));
}

#[test]
fn s5_1_max_init_timeout_bounds_the_time_between_inits_and_nothing_else() {
    let mut t = Script::connecting(Config {
        max_init_timeout: Some(ms(1500)),
        max_init_retransmits: 3,
        ..quiet()
    });
    for at in [0, 1000, 2500, 4000] {
        expect!(t, Chunk::Init(_));
        assert_eq!(t.last.as_ref().map(|p| p.at), Some(Instant::ZERO + ms(at)));
    }
}

#[test]
fn s5_1_a_peer_that_never_answers_the_cookie_is_told_that_the_attempt_is_over() {
    let mut t = Script::connecting(Config {
        max_init_retransmits: 1,
        ..quiet()
    });
    t.our_tag = expect!(t, Chunk::Init(init) => init.initiate_tag);
    t.send([init_ack()]);
    expect!(t, Chunk::CookieEcho(_));
    expect!(t, Chunk::CookieEcho(_));
    expect!(t, Chunk::Abort { reflected_tag: false, causes } if causes.is_empty());
    t.silence(ms(60_000));
    t.expect_event(&Event::Lost);
}

#[test]
fn s5_1_1_each_direction_has_as_many_streams_as_both_can_do() {
    // the peer takes 8 streams, and sends on 8
    let mut t = Script::established(Config {
        outbound_streams: 100,
        max_inbound_streams: 5,
        ..quiet()
    });
    assert_eq!(t.association().outbound_streams(), 8);
    t.send([Chunk::Data(segue_wire::sctp::DataChunk {
        stream_id: 5,
        ..segue_conformance::script::chunks::data_chunk(0)
    })]);
    expect!(t, Chunk::Error(causes), Chunk::Sack(_)
        if causes == &[ErrorCause::InvalidStreamIdentifier(5)]);
}

#[test]
fn s5_1_2_addresses_of_the_init_are_the_peers_and_so_is_the_one_it_came_from() {
    let t = Script::established_with(quiet(), 1, vec![Parameter::Ipv6Address(peer(2))]);
    let destinations: Vec<_> = t.association().paths().map(|p| p.destination).collect();
    assert_eq!(destinations, [peer(1), peer(2)]);
    assert_eq!(t.association().primary_path(), peer(1));
}

#[test]
fn s5_1_2_a_host_name_is_refused_with_unresolvable_address() {
    let mut t = Script::listening(quiet());
    let init = Init {
        parameters: vec![Parameter::HostNameAddress("peer.example\0".into())],
        ..init()
    };
    t.send_with_tag(0, [Chunk::Init(Box::new(init))]);
    let causes = expect!(t, Chunk::Abort { causes, .. } => causes.clone());
    assert!(matches!(causes[..], [ErrorCause::UnresolvableAddress(_)]));
}

#[test]
fn s5_1_5_a_cookie_that_was_changed_is_silently_discarded() {
    let (mut t, cookie) = init_answered(quiet());
    for at in 0..cookie.len() {
        let mut changed = cookie.to_vec();
        changed[at] ^= 0x10;
        t.send([Chunk::CookieEcho(changed.into())]);
    }
    t.silence(ms(1000));
    assert_eq!(t.end.associations().count(), 0);
    assert_eq!(t.end.counters().refused.forged_cookies, cookie.len() as u64);
}

#[test]
fn s5_1_5_a_good_cookie_under_another_tag_or_port_is_silently_discarded() {
    let (mut t, cookie) = init_answered(quiet());
    t.send_with_tag(t.our_tag ^ 1, [Chunk::CookieEcho(cookie.clone())]);
    t.send_sctp(
        peer(1),
        ours(1),
        segue_wire::sctp::SctpPacket {
            source_port: PORT + 1,
            destination_port: PORT,
            verification_tag: t.our_tag,
            chunks: [Chunk::CookieEcho(cookie)].into_iter().collect(),
        },
    );
    t.silence(ms(1000));
    assert_eq!(t.end.associations().count(), 0);
    assert_eq!(t.end.counters().refused.mismatched_cookies, 2);
}

#[test]
fn s5_1_5_a_stale_cookie_is_answered_with_how_stale_it_is() {
    let (mut t, cookie) = init_answered(quiet());
    t.wait(ms(62_000));
    t.send([Chunk::CookieEcho(cookie)]);
    let causes = expect!(t, Chunk::Error(causes) => causes.clone());
    assert_eq!(causes, [ErrorCause::StaleCookie(2_000_000)]);
    assert_eq!(t.last.as_ref().map(|p| p.tag), Some(PEER_TAG));
    assert_eq!(t.end.associations().count(), 0);
    assert_eq!(t.end.counters().refused.stale_cookies, 1);
}

#[test]
fn s5_2_1_an_init_in_cookie_wait_is_answered_with_the_same_tag_and_tsn_as_ones_own_init() {
    let mut t = Script::connecting(quiet());
    let own = expect!(t, Chunk::Init(init) => init.clone());
    t.send_with_tag(0, [Chunk::Init(Box::new(init()))]);
    let ack = expect!(t, Chunk::InitAck(ack) => ack.clone());
    assert_eq!(
        (ack.initiate_tag, ack.initial_tsn),
        (own.initiate_tag, own.initial_tsn)
    );
    // section 5.2.4 row B: the peer's COOKIE ECHO completes it
    t.our_tag = ack.initiate_tag;
    t.send([Chunk::CookieEcho(cookie_of(&ack))]);
    expect!(t, Chunk::CookieAck);
    t.expect_event(&Event::Connected);
    assert_eq!(t.end.associations().count(), 1);
}

#[test]
fn s5_2_2_an_init_while_up_is_answered_with_a_new_tag_and_changes_nothing() {
    let mut t = Script::established(quiet());
    t.send_with_tag(
        0,
        [Chunk::Init(Box::new(Init {
            initiate_tag: 77,
            ..init()
        }))],
    );
    let ack = expect!(t, Chunk::InitAck(ack) => ack.clone());
    assert_ne!(ack.initiate_tag, t.our_tag);
    assert_eq!(t.last.as_ref().map(|p| p.tag), Some(77));
    t.send([data(0), data(1)]);
    assert_eq!(t.messages.len(), 2, "the association goes on");
}

#[test]
fn s5_2_3_an_init_ack_that_is_not_awaited_is_discarded() {
    let mut t = Script::established(quiet());
    t.send([init_ack()]);
    t.silence(ms(1000));
    assert!(t.association().is_established());
    assert_eq!(t.association().counters().refused.unexpected, 1);
}

#[test]
fn s5_2_4_row_d_a_cookie_echo_that_comes_again_is_answered_and_changes_nothing() {
    let (mut t, cookie) = init_answered(quiet());
    t.send([Chunk::CookieEcho(cookie.clone())]);
    expect!(t, Chunk::CookieAck);
    t.send([data(0), data(1)]);
    expect!(t, Chunk::Sack(_));
    // step 3: however old it has become
    t.wait(ms(100_000));
    t.send([Chunk::CookieEcho(cookie)]);
    expect!(t, Chunk::CookieAck);
    t.send([data(2)]);
    assert_eq!(t.messages.len(), 3);
    assert_eq!(t.end.associations().count(), 1);
}

#[test]
fn s5_2_5_a_cookie_ack_that_is_not_awaited_is_discarded() {
    let mut t = Script::established(quiet());
    t.send([Chunk::CookieAck]);
    t.silence(ms(1000));
    assert!(t.association().is_established());
    assert_eq!(t.association().counters().refused.unexpected, 1);
}

#[test]
fn s5_2_6_a_stale_cookie_error_makes_a_new_init_that_asks_for_a_longer_life() {
    let mut t = Script::connecting(quiet());
    let first = expect!(t, Chunk::Init(init) => init.clone());
    t.our_tag = first.initiate_tag;
    t.send([init_ack()]);
    expect!(t, Chunk::CookieEcho(_));
    t.wait(ms(500));
    t.send([Chunk::Error(vec![ErrorCause::StaleCookie(3_000_000)])]);
    let second = expect!(t, Chunk::Init(init) => init.clone());
    let asked = second.parameters.iter().find_map(|p| match p {
        Parameter::CookiePreservative(ms) => Some(*ms),
        _ => None,
    });
    // the round trip of the exchange, and no more than a second beside it
    assert!(asked.is_some_and(|ms| (500..=1500).contains(&ms)), "{asked:?}");
    assert_eq!(second.initiate_tag, first.initiate_tag);
}

#[test]
fn s5_4_an_address_that_only_the_peer_vouches_for_gets_a_heartbeat_and_no_data_until_it_answers() {
    let mut t = Script::established_with(quiet(), 1, vec![Parameter::Ipv6Address(peer(2))]);
    let info = expect!(t, Chunk::Heartbeat(info) => info.clone());
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(2)));
    t.command(|a, now| a.set_primary_path(now, peer(2)))
        .expect("primary");
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(1)));
    t.send([segue_conformance::script::chunks::sack(t.our_tsn)]);
    // a wrong nonce proves nothing
    let mut wrong = info.to_vec();
    wrong[0] ^= 1;
    t.send_from(peer(2), [Chunk::HeartbeatAck(wrong.into())]);
    let state = |t: &Script| {
        t.association()
            .paths()
            .find(|p| p.destination == peer(2))
            .map(|p| p.state)
    };
    assert_eq!(state(&t), Some(PathState::Unconfirmed));
    assert_eq!(t.association().counters().refused.bad_heartbeat_acks, 1);
    t.send_from(peer(2), [Chunk::HeartbeatAck(info)]);
    assert_eq!(state(&t), Some(PathState::Active));
    t.expect_event(&Event::PeerAddressConfirmed(peer(2)));
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(2)));
}

#[test]
fn s5_tsns_of_the_peer_begin_where_its_init_says() {
    let mut t = Script::established(quiet());
    t.send([data(0)]);
    t.wait(ms(300));
    expect!(t, Chunk::Sack(sack) if sack.cumulative_tsn_ack == peer_tsn(0));
}
