//! Sessions in which nothing is said for long, and what is left of flows whose session is gone (RFC 6741 section 5.2).

use super::*;
use crate::contract::Transmit;
use crate::shim::{Inbound, ShimEvent};

const SYN_ACK: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);
const HOUR: u64 = 3600;

fn peer() -> Ipv6Addr {
    Config::new(OWN).identity_prefix.address(PEER)
}

fn host(change: impl FnOnce(&mut Config)) -> Ilnp {
    let mut config = Config::new(OWN);
    change(&mut config);
    let mut shim = Ilnp::new(config, Box::new(crate::random::Stream::new(5, "shim"))).unwrap();
    shim.handle_address(at(0), &AddressEvent::Ready(own(1)));
    shim
}

/// One that knows where its peer is.
fn caller() -> Ilnp {
    host(|config| {
        config.peers = vec![PeerConfig {
            nid: PEER,
            locators: vec![locator(2)],
            name: None,
        }];
    })
}

fn udp(from: u8, to: u8) -> Packet {
    raw(17, vec![0, from, 0, to, 0, 8, 0, 0])
}

/// Whether a packet from a locator of the peer's, with a nonce, goes up.
fn is_heard(shim: &mut Ilnp, s: u64, (from, number): (u64, u8), mut packet: Packet) -> bool {
    (packet.ip.source, packet.ip.destination) = (locator(from).address(PEER), own(1).address);
    nonce::insert(&mut packet, Nonce::Bits32([0, 0, 0, number]), PseudoRule::Ipv6);
    shim.handle_timeout(at(s));
    matches!(shim.inbound(at(s), InterfaceId(0), packet), Inbound::Up(_))
}

/// To which locator a packet to the peer goes, and with which nonce; nothing if it waits or is dropped.
fn sent(shim: &mut Ilnp, s: u64, mut packet: Packet) -> Option<(Locator, Nonce)> {
    (packet.ip.source, packet.ip.destination) = (shim.identity(), peer());
    shim.handle_timeout(at(s));
    let Transmit { packet, .. } = shim.outbound(at(s), packet)?;
    Some((Locator::of(packet.ip.destination), packet.ilnp_nonce()?.0))
}

fn to(shim: &mut Ilnp, s: u64, packet: Packet) -> Option<Locator> {
    Some(sent(shim, s, packet)?.0)
}

/// A host that the peer, at locator 2 and with the nonce 7, has called: from port 5 to 80.
fn called() -> Ilnp {
    let mut shim = host(|_| {});
    assert!(is_heard(&mut shim, 1, (2, 7), tcp(5, 80, TcpFlags::SYN)));
    assert_eq!(to(&mut shim, 1, tcp(80, 5, SYN_ACK)), Some(locator(2)));
    assert!(is_heard(&mut shim, 1, (2, 7), tcp(5, 80, TcpFlags::ACK)));
    shim
}

#[test]
fn a_connection_in_which_nothing_was_said_for_hours_goes_on() {
    let mut shim = called();
    for hours in [11, 22] {
        assert_eq!(
            to(&mut shim, hours * HOUR, tcp(80, 5, TcpFlags::ACK)),
            Some(locator(2))
        );
    }
    assert!(is_heard(&mut shim, 33 * HOUR, (2, 7), tcp(5, 80, TcpFlags::ACK)));
    assert!(!is_heard(&mut shim, 33 * HOUR, (2, 8), tcp(5, 80, TcpFlags::ACK)));
    // and in one that this host has begun
    let mut shim = caller();
    let (there, nonce) = sent(&mut shim, 0, tcp(5, 80, TcpFlags::SYN)).expect("it is known");
    assert!(is_heard(&mut shim, 1, (2, 7), tcp(80, 5, SYN_ACK)));
    assert_eq!(
        sent(&mut shim, 11 * HOUR, tcp(5, 80, TcpFlags::ACK)),
        Some((there, nonce))
    );
    assert!(is_heard(&mut shim, 22 * HOUR, (2, 7), tcp(80, 5, TcpFlags::ACK)));
    shim.handle_timeout(at(35 * HOUR));
    assert_eq!(shim.correspondents().count(), 0);
}

#[test]
fn of_what_came_to_nothing_nothing_is_known_after_five_minutes() {
    let mut shim = caller();
    sent(&mut shim, 0, tcp(5, 80, TcpFlags::SYN)).expect("it is known");
    shim.handle_timeout(at(301));
    assert_eq!(shim.correspondents().count(), 0, "it was not answered");
    assert!(is_heard(&mut shim, 400, (2, 7), tcp(5, 80, TcpFlags::SYN)));
    sent(&mut shim, 400, tcp(80, 5, SYN_ACK)).expect("an answer");
    shim.handle_timeout(at(701));
    assert_eq!(shim.correspondents().count(), 0, "he did not carry on");
}

/// The other host of a session, and what the two say to each other.
fn settle(shims: &mut [Ilnp; 2], now: Instant) {
    loop {
        let mut said = false;
        for n in 0..2 {
            shims[n].handle_timeout(now);
            while shims[n].poll_event().is_some() {}
            while let Some(Transmit { packet, .. }) = shims[n].poll_transmit(now) {
                shims[1 - n].inbound(now, InterfaceId(0), packet);
                said = true;
            }
        }
        if !said {
            return;
        }
    }
}

#[test]
fn that_hosts_tell_each_other_where_they_are_keeps_no_session_and_ends_with_what_is_said() {
    let config = |nid, other| {
        let mut config = Config::new(nid);
        config.peers = vec![PeerConfig {
            nid: other,
            locators: vec![locator(other.0)],
            name: None,
        }];
        config
    };
    let mut shims = [(OWN, PEER), (PEER, OWN)].map(|(nid, other)| {
        let secrets = Box::new(crate::random::Stream::new(nid.0, "shim"));
        let mut shim = Ilnp::new(config(nid, other), secrets).unwrap();
        for n in [0, 3] {
            let local = LocalAddress {
                interface: InterfaceId(n as u8),
                address: locator(nid.0 + n).address(nid),
            };
            shim.handle_address(at(0), &AddressEvent::Ready(local));
        }
        shim
    });
    let say = |shims: &mut [Ilnp; 2], now: Instant, from: usize| {
        let mut packet = if from == 0 { udp(5, 80) } else { udp(80, 5) };
        packet.ip.source = shims[from].identity();
        packet.ip.destination = shims[1 - from].identity();
        let sent = shims[from].outbound(now, packet).expect("it is known").packet;
        assert!(matches!(
            shims[1 - from].inbound(now, InterfaceId(0), sent),
            Inbound::Up(_)
        ));
        settle(shims, now);
    };
    for s in [1, 2, 3] {
        say(&mut shims, at(s), 0);
        say(&mut shims, at(s), 1);
    }
    let told = |shims: &[Ilnp; 2]| shims.each_ref().map(|shim| shim.counted().lu_sent);
    let first = told(&shims);
    assert_eq!(first, [1, 1], "of the locators beside the one in use");
    // while there is something to say, they are told again, every three quarters of an hour
    for minutes in 1..=100 {
        say(&mut shims, at(60 * minutes), (minutes % 2) as usize);
    }
    assert_eq!(told(&shims), [3, 3]);
    for minutes in 100..=20 * 60 {
        settle(&mut shims, at(60 * minutes));
    }
    let after = told(&shims);
    assert!(after[0] <= 4 && after[1] <= 4, "{after:?}");
    assert_eq!(shims.each_ref().map(|shim| shim.correspondents().count()), [0, 0]);
}

#[test]
fn who_was_called_and_has_forgotten_it_speaks_first_and_is_answered() {
    let mut shim = host(|config| config.idle_timeout = s_(60));
    assert!(is_heard(&mut shim, 1, (2, 7), tcp(5, 80, TcpFlags::SYN)));
    assert!(is_heard(&mut shim, 1, (2, 7), tcp(5, 80, TcpFlags::ACK)));
    shim.handle_timeout(at(100));
    assert_eq!(shim.correspondents().count(), 0);
    // nobody knows where the peer is
    assert_eq!(to(&mut shim, 100, tcp(80, 5, TcpFlags::ACK)), None);
    shim.handle_locators(at(100), peer(), &[]);
    // who is not of the connection gets nothing of it, and it goes on when the peer speaks
    assert!(is_heard(&mut shim, 101, (2, 7), tcp(5, 80, TcpFlags::ACK)));
    assert_eq!(to(&mut shim, 101, tcp(80, 5, TcpFlags::ACK)), Some(locator(2)));
    assert_eq!(shim.counted().wrong_locator, 0);
    // a call that waits keeps its flow
    assert_eq!(to(&mut shim, 102, tcp(81, 6, TcpFlags::SYN)), None);
    assert!(!is_heard(&mut shim, 102, (2, 8), tcp(6, 81, TcpFlags::ACK)));
    assert_eq!(shim.counted().wrong_locator, 1);
}

#[test]
fn a_call_in_a_quiet_flow_is_taken_if_this_hosts_transport_answers_it() {
    let mut shim = called();
    assert!(!is_heard(&mut shim, 300, (3, 9), tcp(5, 80, TcpFlags::SYN)));
    // somebody who says that he is the peer, or the peer that was started again, elsewhere
    assert!(!is_heard(&mut shim, 301, (3, 9), tcp(5, 80, TcpFlags::ACK)));
    assert!(is_heard(&mut shim, 301, (3, 9), tcp(5, 80, TcpFlags::SYN)));
    // a connection that lives challenges it (RFC 5961 section 4.2), in its session, and goes on there
    let (there, nonce) = sent(&mut shim, 302, tcp(80, 5, TcpFlags::ACK)).expect("a challenge");
    assert_eq!(there, locator(2));
    assert!(!is_heard(&mut shim, 302, (3, 9), tcp(5, 80, TcpFlags::ACK)));
    assert!(
        is_heard(&mut shim, 302, (3, 9), tcp(5, 80, TcpFlags::RST)),
        "the answer to the challenge"
    );
    assert!(is_heard(&mut shim, 302, (2, 7), tcp(5, 80, TcpFlags::ACK)));
    // where there is none, it is answered, and is the caller's
    assert!(is_heard(&mut shim, 303, (3, 9), tcp(5, 80, TcpFlags::SYN)));
    let (there, other) = sent(&mut shim, 303, tcp(80, 5, SYN_ACK)).expect("an answer");
    assert_eq!(there, locator(3));
    assert_ne!(nonce, other, "what the one is told the other need not know");
    assert!(is_heard(&mut shim, 303, (3, 9), tcp(5, 80, TcpFlags::ACK)));
    assert_eq!(to(&mut shim, 303, tcp(80, 5, TcpFlags::ACK)), Some(locator(3)));
    // until the old nonce shows that its owner is there
    assert!(is_heard(&mut shim, 304, (2, 7), tcp(5, 80, TcpFlags::ACK)));
    assert_eq!(
        sent(&mut shim, 304, tcp(80, 5, TcpFlags::ACK)),
        Some((locator(2), nonce))
    );
    assert!(!is_heard(&mut shim, 304, (3, 9), tcp(5, 80, TcpFlags::ACK)));
}

#[test]
fn datagrams_in_a_quiet_flow_begin_anew_from_where_the_peer_is_alone() {
    let mut shim = host(|_| {});
    for s in [1, 2] {
        assert!(is_heard(&mut shim, s, (2, 7), udp(5, 80)));
        assert_eq!(to(&mut shim, s, udp(80, 5)), Some(locator(2)));
    }
    assert!(!is_heard(&mut shim, 301, (2, 9), udp(5, 80)));
    assert!(!is_heard(&mut shim, 302, (66, 9), udp(5, 80)));
    assert_eq!(shim.counted().wrong_nonce, 2);
    assert!(is_heard(&mut shim, 302, (2, 9), udp(5, 80)));
    assert_eq!(to(&mut shim, 302, udp(80, 5)), Some(locator(2)));
    assert!(is_heard(&mut shim, 303, (2, 9), udp(5, 80)));
    assert_eq!(shim.correspondents().count(), 2);
    // it was forged, or the peer is back from before
    assert!(is_heard(&mut shim, 304, (2, 7), udp(5, 80)));
    assert!(!is_heard(&mut shim, 304, (2, 9), udp(5, 80)));
}

#[test]
fn what_is_sent_first_after_a_quiet_time_may_be_answered_with_another_nonce() {
    let mut shim = caller();
    sent(&mut shim, 0, udp(5, 80)).expect("it is known");
    assert!(is_heard(&mut shim, 1, (2, 7), udp(80, 5)));
    // the peer is started again
    sent(&mut shim, 100, udp(5, 80)).expect("it is known");
    assert!(!is_heard(&mut shim, 100, (2, 8), udp(80, 5)));
    for (s, packet, answer) in [
        (500, udp(5, 80), udp(80, 5)),
        (1000, tcp(6, 80, TcpFlags::SYN), tcp(80, 6, SYN_ACK)),
    ] {
        let number = (s / 100) as u8;
        sent(&mut shim, s, packet.clone()).expect("it is known");
        assert!(
            !is_heard(&mut shim, s, (66, number), answer.clone()),
            "from elsewhere"
        );
        assert!(is_heard(&mut shim, s, (2, number), answer.clone()));
        assert!(!is_heard(&mut shim, s, (2, number + 1), answer));
    }
    assert_eq!(shim.counted().called_anew, 2);
    // nor if the peer that was known is there
    sent(&mut shim, 2000, tcp(7, 80, TcpFlags::SYN)).expect("it is known");
    assert!(is_heard(&mut shim, 2000, (2, 10), tcp(80, 7, SYN_ACK)));
    assert!(!is_heard(&mut shim, 2000, (2, 11), tcp(80, 7, SYN_ACK)));
}

#[test]
fn a_peer_that_does_not_answer_after_a_quiet_time_is_looked_up_at_once() {
    let mut shim = caller();
    sent(&mut shim, 0, tcp(5, 80, TcpFlags::SYN)).expect("it is known");
    assert!(is_heard(&mut shim, 1, (2, 7), tcp(80, 5, SYN_ACK)));
    let is_asked = |shim: &mut Ilnp| {
        core::iter::from_fn(|| shim.poll_event()).any(|e| matches!(e, ShimEvent::LookUp { .. }))
    };
    // while it was in use, eight packets are few
    sent(&mut shim, 2, tcp(6, 80, TcpFlags::SYN)).expect("it is known");
    sent(&mut shim, 3, tcp(6, 80, TcpFlags::SYN)).expect("it is known");
    assert!(!is_asked(&mut shim));
    assert!(is_heard(&mut shim, 4, (2, 7), tcp(80, 6, SYN_ACK)));
    for (s, asked) in [(304, false), (305, true)] {
        sent(&mut shim, s, tcp(7, 80, TcpFlags::SYN)).expect("it is known");
        assert_eq!(is_asked(&mut shim), asked, "{s}");
    }
}

#[test]
fn of_very_many_connections_of_a_peer_none_is_given_to_a_call() {
    let calls = |shim: &mut Ilnp, ports: core::ops::Range<u16>| {
        for port in ports {
            assert!(is_heard(shim, 2, (2, 7), tcp(port, 80, TcpFlags::SYN)));
        }
    };
    // one that calls nobody, and one that has called the peer as well
    for calls_too in [false, true] {
        let mut shim = if calls_too { caller() } else { host(|_| {}) };
        let mut own_nonce = None;
        if calls_too {
            own_nonce = sent(&mut shim, 0, tcp(9, 22, TcpFlags::SYN)).map(|(_, nonce)| nonce);
            assert!(is_heard(&mut shim, 0, (2, 3), tcp(22, 9, SYN_ACK)));
        }
        calls(&mut shim, 1000..1300);
        for port in [1000, 1299] {
            let (there, nonce) = sent(&mut shim, 3, tcp(80, port, TcpFlags::ACK)).expect("the peer is known");
            assert_eq!(there, locator(2));
            assert_ne!(Some(nonce), own_nonce);
            assert!(is_heard(&mut shim, 3, (2, 7), tcp(port, 80, TcpFlags::ACK)));
        }
        assert_eq!(shim.counted().look_ups, 0);
    }
    // with two that say they are the peer, nobody knows; a call is a call
    let mut shim = host(|_| {});
    calls(&mut shim, 1000..1300);
    assert_eq!(to(&mut shim, 3, tcp(81, 5, TcpFlags::SYN)), None);
    assert_eq!(shim.counted().look_ups, 1);
    let mut shim = host(|_| {});
    for number in [7, 8] {
        assert!(is_heard(
            &mut shim,
            2,
            (2, number),
            tcp(number.into(), 80, TcpFlags::SYN)
        ));
    }
    assert_eq!(to(&mut shim, 3, tcp(80, 5, TcpFlags::ACK)), None);
}
