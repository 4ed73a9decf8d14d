//! RFC 6951: SCTP in UDP. The peer sits behind a translator: its UDP port may change.

use segue_conformance::expect;
use segue_conformance::script::chunks::{data, init};
use segue_conformance::script::{Script, ms, quiet};
use segue_proto::sctp::{Config, UdpEncapsulation};
use segue_wire::sctp::{Chunk, Parameter};

/// The port that SCTP in UDP is received on.
const OURS: u16 = 9899;
/// Where the translator has put the peer.
const PEERS: u16 = 40_000;

fn encapsulating() -> Config {
    Config {
        udp_encapsulation: Some(UdpEncapsulation::default()),
        ..quiet()
    }
}

/// An association that the peer has opened in UDP.
fn established() -> Script {
    let mut t = Script::listening(encapsulating());
    t.send_in_udp((PEERS, OURS), 0, [Chunk::Init(Box::new(init()))]);
    let ack = expect!(t, Chunk::InitAck(ack) => ack.clone());
    assert_eq!(t.last.as_ref().and_then(|p| p.udp), Some((OURS, PEERS)));
    t.our_tag = ack.initiate_tag;
    t.our_tsn = ack.initial_tsn;
    let cookie = ack.parameters.iter().find_map(|p| match p {
        Parameter::StateCookie(cookie) => Some(cookie.clone()),
        _ => None,
    });
    t.send_in_udp(
        (PEERS, OURS),
        t.our_tag,
        [Chunk::CookieEcho(cookie.expect("cookie"))],
    );
    expect!(t, Chunk::CookieAck);
    assert_eq!(t.last.as_ref().and_then(|p| p.udp), Some((OURS, PEERS)));
    t
}

#[test]
fn s5_3_an_association_begins_in_udp_at_the_configured_port() {
    let mut t = Script::connecting(encapsulating());
    expect!(t, Chunk::Init(_));
    assert_eq!(t.last.as_ref().and_then(|p| p.udp), Some((OURS, OURS)));
}

#[test]
fn s5_4_what_is_sent_goes_to_the_port_that_the_peers_packets_come_from() {
    let mut t = established();
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().and_then(|p| p.udp), Some((OURS, PEERS)));
    // the translator has forgotten the peer, and gives it another port
    t.send_in_udp((PEERS + 1, OURS), t.our_tag, [data(0)]);
    t.send_in_udp((PEERS + 1, OURS), t.our_tag, [data(1)]);
    expect!(t, Chunk::Sack(_));
    assert_eq!(t.last.as_ref().and_then(|p| p.udp), Some((OURS, PEERS + 1)));
}

#[test]
fn s5_4_a_packet_with_a_wrong_tag_moves_no_port() {
    let mut t = established();
    t.send_in_udp((666, OURS), t.our_tag ^ 1, [data(0)]);
    t.send_in_udp((666, OURS), 0, [Chunk::Init(Box::new(init()))]);
    t.forget();
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().and_then(|p| p.udp), Some((OURS, PEERS)));
    assert_eq!(t.association().counters().refused.bad_tag, 1);
}

#[test]
fn s5_6_the_udp_header_is_within_the_path_mtu() {
    let mut t = established();
    for _ in 0..10 {
        t.user_sends(1400);
        t.user_sends(700);
    }
    let sent = t.take_all();
    assert!(!sent.is_empty());
    assert!(sent.iter().all(|p| p.len <= 1500 && p.udp.is_some()));
}

#[test]
fn s5_2_who_does_not_encapsulate_takes_nothing_in_udp() {
    let mut t = Script::listening(quiet());
    t.send_in_udp((PEERS, OURS), 0, [Chunk::Init(Box::new(init()))]);
    t.silence(ms(1000));
}
