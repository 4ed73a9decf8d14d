//! RFC 6740 section 9.2, RFC 6741 sections 5.4 and 11.2: first packets with somebody else's identifier.

use super::{GUESS, count};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_conformance::shims::{
    Fate, PORT, Shims, datagram, header, locator, ms, nid, update_in, with_nonce,
};
use segue_proto::ilnp::{Config, Identifiers, NonceIn};
use segue_proto::shim::ShimEvent;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{Locator, Nonce};
use segue_wire::tcp::{TcpFlags, TcpOptions, TcpSegment};
use segue_wire::{Data, Packet, Payload, SeqNumber};

/// Where the attacker is.
const THERE: u16 = 66;

/// The packet between other ports.
fn from_port(mut packet: Packet, port: u16) -> Packet {
    let Payload::Udp(udp) = &mut packet.payload else {
        unreachable!()
    };
    udp.source_port = port;
    packet
}

pub(super) fn segment(source: Ipv6Addr, destination: Ipv6Addr, flags: TcpFlags) -> Packet {
    Packet {
        ip: header(source, destination),
        extensions: Vec::new(),
        payload: Payload::Tcp(TcpSegment {
            source_port: PORT,
            destination_port: PORT,
            seq: SeqNumber(1),
            ack: SeqNumber(0),
            flags,
            window: 1000,
            options: TcpOptions::default(),
            data: Data::Bytes(Bytes::new()),
        }),
    }
}

/// Host 0 has heard a first packet, with host 1's identifier, from somewhere else.
fn lied_to(config: &Config) -> Shims {
    let mut shims = Shims::pair(config);
    let first = datagram(
        locator(THERE).address(nid(1)),
        locator(1).address(nid(0)),
        b"forged",
    );
    shims.inject(with_nonce(from_port(first, 999), GUESS));
    shims.run_for(ms(50));
    shims
}

fn went_to(shims: &Shims) -> Locator {
    let (_, _, packet) = shims.sent.iter().rev().find(|(_, by, _)| *by == 0).expect("sent");
    Locator::of(packet.ip.destination)
}

/// Whoever spoke first in the name of a node gets what answers him, and nothing else: a call goes where the directory
/// says that the node is.
#[test]
fn a_call_does_not_go_where_a_stranger_has_said() {
    for nonce_in in [NonceIn::Every, NonceIn::SessionStartAndSignalling] {
        let config = Config {
            nonce_in,
            ..Config::default()
        };
        let mut shims = lied_to(&config);
        let (a, b) = (shims.identity(0), shims.identity(1));
        let mut answer = datagram(a, b, b"answer");
        if let Payload::Udp(udp) = &mut answer.payload {
            udp.destination_port = 999;
        }
        shims.send_packet(0, answer.clone());
        assert_eq!(went_to(&shims), locator(THERE), "what he said is answered");
        shims.send(0, b, b"call");
        shims.run_for(ms(100));
        assert_eq!(went_to(&shims), locator(2));
        assert_eq!(shims.heard(1, 0), ["call"]);
        shims.send(1, a, b"heard");
        shims.run_for(ms(100));
        assert_eq!(shims.heard(0, 1), ["forged", "heard"]);
        // both go on side by side
        shims.send_packet(0, answer);
        assert_eq!(went_to(&shims), locator(THERE));
        shims.send(0, b, b"call");
        assert_eq!(went_to(&shims), locator(2));
    }
}

/// Protocols that show when they call do so whatever ports the attacker has guessed.
#[test]
fn a_call_between_the_ports_of_a_stranger_is_a_call() {
    let mut shims = Shims::pair(&Config::default());
    let (a, b) = (shims.identity(0), shims.identity(1));
    let forged = segment(
        locator(THERE).address(nid(1)),
        locator(1).address(nid(0)),
        TcpFlags::SYN,
    );
    shims.inject(with_nonce(forged, GUESS));
    shims.run_for(ms(50));
    let answer = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);
    shims.send_packet(0, segment(a, b, answer));
    assert_eq!(went_to(&shims), locator(THERE));
    shims.send_packet(0, segment(a, b, TcpFlags::SYN));
    shims.run_for(ms(100));
    assert_eq!(went_to(&shims), locator(2));
    // from here on the flow is the call's: more of the same from the stranger is dropped
    let more = segment(
        locator(THERE).address(nid(1)),
        locator(1).address(nid(0)),
        TcpFlags::RST,
    );
    let up = shims.hosts[0].up.len();
    shims.inject(with_nonce(more, GUESS));
    shims.run_for(ms(50));
    assert_eq!(shims.hosts[0].up.len(), up);
    shims.send_packet(1, segment(b, a, answer));
    shims.run_for(ms(50));
    assert_eq!(shims.hosts[0].up.len(), up + 1);
}

/// Nor is the node itself shut out: with its own nonce it is another peer (RFC 6744 section 5.2).
#[test]
fn a_stranger_does_not_shut_out_the_node() {
    let mut shims = lied_to(&Config::default());
    let (a, b) = (shims.identity(0), shims.identity(1));
    shims.send(1, a, b"it is me");
    shims.run_for(ms(100));
    assert_eq!(shims.heard(0, 1), ["forged", "it is me"]);
    shims.send(0, b, b"welcome");
    shims.run_for(ms(100));
    assert_eq!(shims.heard(1, 0), ["welcome"]);
    assert_eq!(shims.counters(0).wrong_nonce, 0);
    // the stranger's nonce moves the stranger only
    assert_eq!(shims.hosts[0].shim.correspondents().count(), 2);
    assert_eq!(shims.counters(0).look_ups, 0, "an answer needs none");
}

/// Before a call is answered the peer's nonce is not known: what answers must be of the call's flow and come from where
/// the call went (RFC 6744 section 4).
#[test]
fn a_call_is_not_answered_from_elsewhere() {
    let mut shims = Shims::pair(&Config::default());
    let peer = locator(2).address(nid(1));
    shims.send(0, peer, b"call");
    let answer = datagram(
        locator(THERE).address(nid(1)),
        locator(1).address(nid(0)),
        b"forged",
    );
    shims.inject(with_nonce(answer.clone(), GUESS));
    shims.run_for(ms(15));
    assert!(shims.hosts[0].up.is_empty());
    assert_eq!(count(&shims, 0, "wrong_locator"), 1);
    assert!(
        shims.reported(0, |e| *e == ShimEvent::LookUp { peer }),
        "it may have moved"
    );
    // another flow is another session's, and leaves the call alone
    shims.inject(with_nonce(from_port(answer, 999), GUESS));
    shims.run_for(ms(50));
    shims.send(1, shims.identity(0), b"answer");
    shims.run_for(ms(50));
    let from: Vec<_> = shims.hosts[0].up.iter().map(|(_, p)| p.ip.source).collect();
    assert_eq!(from, [shims.identity(1), peer]);
    shims.send(0, peer, b"thanks");
    assert_eq!(went_to(&shims), locator(2));
}

/// An error about what a stranger has said belongs to that: it is no call either, and asks no directory.
#[test]
fn an_error_about_a_forged_packet_is_an_answer() {
    let mut shims = lied_to(&Config::default());
    let (a, b) = (shims.identity(0), shims.identity(1));
    let (_, forged) = shims.hosts[0].up.pop().expect("what was forged");
    assert_eq!((forged.ip.source, forged.ip.destination), (b, a));
    let error = Packet {
        ip: header(a, b),
        extensions: Vec::new(),
        payload: Payload::Icmpv6(Icmpv6::DestinationUnreachable {
            code: 4,
            invoking: Icmpv6::quote(&forged),
        }),
    };
    shims.send_packet(0, error);
    assert_eq!(went_to(&shims), locator(THERE));
    assert_eq!(shims.counters(0).look_ups, 0);
    assert_eq!(shims.hosts[0].shim.correspondents().count(), 1);
}

/// What is established is not reached by another nonce: the flow is another session's.
#[test]
fn a_new_nonce_does_not_reach_a_flow_of_old() {
    let mut shims = Shims::pair(&Config::default());
    shims.greet();
    let up = shims.hosts[1].up.len();
    for source in [1, THERE] {
        let forged = datagram(
            locator(source).address(nid(0)),
            locator(2).address(nid(1)),
            b"forged",
        );
        shims.inject(with_nonce(forged, GUESS));
    }
    shims.run_for(ms(50));
    assert_eq!(shims.hosts[1].up.len(), up);
    assert_eq!(count(&shims, 1, "wrong_nonce"), 2);
}

/// Both call at once, between the same ports: it is one conversation at both ends.
#[test]
fn calls_that_cross_become_one() {
    let mut shims = Shims::pair(&Config::default());
    let (a, b) = (shims.identity(0), shims.identity(1));
    shims.send(0, b, b"hello?");
    shims.send(1, a, b"hello!");
    for _ in 0..3 {
        shims.run_for(ms(100));
        shims.send(0, b, b"more");
        shims.send(1, a, b"more");
    }
    shims.run_for(ms(100));
    assert_eq!((shims.heard(1, 0).len(), shims.heard(0, 1).len()), (4, 4));
    for host in 0..2 {
        let dropped = (
            count(&shims, host, "wrong_nonce"),
            count(&shims, host, "wrong_locator"),
        );
        assert_eq!(dropped, (0, 0));
        assert_eq!(shims.hosts[host].shim.correspondents().count(), 1);
    }
}

/// What the one session was being told when it turned out to be the other's is told to the end.
#[test]
fn calls_that_cross_during_a_handoff_are_told_of_it() {
    let mut shims = Shims::pair(&Config::default());
    let (a, b) = (shims.identity(0), shims.identity(1));
    // host 1 has called, between other ports
    shims.send_packet(1, from_port(datagram(b, a, b"hello"), 999));
    shims.run_for(ms(50));
    let mut answer = datagram(a, b, b"hello");
    if let Payload::Udp(udp) = &mut answer.payload {
        udp.destination_port = 999;
    }
    shims.send_packet(0, answer);
    shims.run_for(ms(50));
    // host 0 moves, and its update is lost
    shims.fate = Box::new(|_, packet| match update_in(packet) {
        Some(_) => Fate::Lost,
        None => Fate::Arrives,
    });
    shims.arrive(0, 1, locator(3));
    shims.run_for(ms(100));
    assert_eq!(count(&shims, 0, "lu_sent"), 1);
    // both call at once
    shims.send(0, b, b"hello?");
    shims.run_for(ms(25));
    shims.send(1, a, b"hello!");
    shims.run_for(ms(100));
    assert_eq!(shims.hosts[0].shim.correspondents().count(), 1, "they are one");
    shims.fate = Box::new(|_, _| Fate::Arrives);
    shims.run_for(ms(10_000));
    assert_eq!(count(&shims, 0, "lu_ack_received"), 1);
    let at: Vec<_> = shims.hosts[1]
        .shim
        .correspondents()
        .filter(|c| c.is_called())
        .flat_map(|c| c.locators().iter().map(|l| l.locator))
        .collect();
    assert_eq!(at, [locator(3), locator(1)]);
    assert!(shims.reported(0, |e| matches!(e, ShimEvent::HandoffDone { .. })));
}

/// As many sessions as he likes, but not many at a time, and the node's own is not among those that go.
#[test]
fn forged_sessions_of_one_identifier_are_few() {
    let mut shims = Shims::pair(&Config::default());
    let a = shims.identity(0);
    shims.send(1, a, b"it is me");
    shims.run_for(ms(50));
    shims.send(0, shims.identity(1), b"welcome");
    for n in 0..50 {
        let forged = datagram(
            locator(THERE).address(nid(1)),
            locator(1).address(nid(0)),
            b"forged",
        );
        shims.inject(with_nonce(
            from_port(forged, 100 + n),
            Nonce::Bits32([n as u8 + 1; 4]),
        ));
        shims.run_for(ms(50));
    }
    assert_eq!(shims.hosts[0].shim.correspondents().count(), 8);
    assert_eq!(count(&shims, 0, "forgotten"), 43);
    let before = shims.heard(0, 1).len();
    shims.send(1, a, b"still me");
    shims.run_for(ms(50));
    assert_eq!(shims.heard(0, 1).len(), before + 1);
    shims.send(0, shims.identity(1), b"welcome");
    assert_eq!(went_to(&shims), locator(2));
}

/// What an ephemeral identifier was for is over: its addresses are given back.
#[test]
fn addresses_of_ephemeral_identifiers_are_withdrawn() {
    let caller = Config {
        identifiers: Identifiers::Ephemeral,
        ..Config::default()
    };
    let mut shims = Shims::new([caller, Config::default()]);
    shims.arrive(0, 0, locator(1));
    shims.arrive(1, 0, locator(2));
    let formed = |shims: &Shims| -> Vec<_> {
        let events = shims.hosts[0].events.iter();
        let all = events.filter_map(|(_, e)| match e {
            ShimEvent::FormAddress(local) => Some(local.address),
            _ => None,
        });
        all.collect()
    };
    let ready = formed(&shims).len();
    let peer = shims.identity(1);
    shims.send(0, peer, b"hello");
    shims.run_for(ms(100));
    let used = shims.sent.last().unwrap().2.ip.source;
    assert!(formed(&shims).contains(&used));
    assert_eq!(
        formed(&shims).len(),
        ready + 1,
        "one is kept in reserve in its place"
    );
    shims.run_for(ms(400_000));
    assert_eq!(shims.hosts[0].shim.correspondents().count(), 0);
    let withdrawn = |e: &ShimEvent| matches!(e, ShimEvent::WithdrawAddress(local) if local.address == used);
    assert!(shims.reported(0, withdrawn));
}
