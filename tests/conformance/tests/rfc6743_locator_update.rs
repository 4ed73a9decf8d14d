//! ICMPv6 Locator Update (RFC 6743): handoffs of one end and of both, what is lost, what is repeated, what is refused.

mod entries;
mod reachability;
mod replays;

use segue_conformance::shims::{
    Fate, Shims, datagram, header, locator, ms, nid, parameter_problem, update_in, with_nonce,
};
use segue_proto::Duration;
use segue_proto::ilnp::{Config, Handoff, LocatorState, Mode, PeerConfig};
use segue_proto::shim::ShimEvent;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{LocatorEntry, LocatorOperation, LocatorUpdate, Nonce};
use segue_wire::{Packet, Payload};

fn config(handoff: Handoff) -> Config {
    Config {
        handoff,
        ..Config::default()
    }
}

/// A pair in conversation.
fn talking(handoff: Handoff) -> Shims {
    let mut shims = Shims::pair(&config(handoff));
    shims.greet();
    assert_eq!((shims.heard(0, 1).len(), shims.heard(1, 0).len()), (1, 2));
    for host in &mut shims.hosts {
        host.up.clear();
        host.events.clear();
    }
    shims.sent.clear();
    shims
}

/// An update of host 0's that host 0 did not send.
fn forged(shims: &Shims, at: u16, nonce: Option<Nonce>) -> Packet {
    let packet = Packet {
        ip: header(locator(at).address(nid(0)), locator(2).address(nid(1))),
        extensions: Vec::new(),
        payload: Payload::Icmpv6(Icmpv6::LocatorUpdate(LocatorUpdate {
            operation: LocatorOperation::Advertisement,
            locators: vec![LocatorEntry {
                locator: locator(at),
                preference: 1,
                lifetime_s: 600,
            }],
        })),
    };
    let _ = shims;
    match nonce {
        Some(nonce) => with_nonce(packet, nonce),
        None => packet,
    }
}

/// Section 2, and 004 section 2.4.2: one round trip. Packets go before, during and after.
#[test]
fn soft_handoff_takes_a_round_trip_and_loses_nothing() {
    let mut shims = talking(Handoff::Soft);
    let (a, b) = (shims.identity(0), shims.identity(1));
    let begun = shims.now;
    shims.send(1, a, b"before");
    shims.arrive(0, 1, locator(3));
    shims.send(0, b, b"from the new locator");
    shims.run_for(ms(5));
    shims.send(1, a, b"during, to the old locator");
    shims.run_for(ms(100));
    shims.send(1, a, b"after");
    shims.run_for(ms(100));
    assert_eq!(
        shims.heard(0, 1),
        ["before", "during, to the old locator", "after"]
    );
    assert_eq!(shims.heard(1, 0), ["from the new locator"]);
    let updates = shims.updates(0, LocatorOperation::Advertisement);
    let [(_, packet)] = updates[..] else {
        panic!("{updates:?}")
    };
    assert_eq!(packet.ip.source, locator(3).address(nid(0)));
    let named: Vec<_> = update_in(packet)
        .unwrap()
        .locators
        .iter()
        .map(|e| (e.locator, e.preference))
        .collect();
    assert_eq!(named, [(locator(3), 10), (locator(1), 20)]);
    let (_, ack) = shims.updates(1, LocatorOperation::Acknowledgement)[0];
    assert_eq!(ack.ip.destination, locator(3).address(nid(0)));
    assert_eq!(
        update_in(ack).unwrap().locators,
        update_in(packet).unwrap().locators
    );
    let events: Vec<_> = shims.hosts[0]
        .events
        .iter()
        .map(|(at, e)| (at.since(begun), *e))
        .collect();
    let (from, to) = (locator(1).address(nid(0)), locator(3).address(nid(0)));
    assert_eq!(
        events,
        [
            (ms(0), ShimEvent::HandoffBegun { from: Some(from), to }),
            (ms(0), ShimEvent::UpdateDirectory),
            (ms(20), ShimEvent::HandoffDone { to, delay: ms(20) }),
        ]
    );
    assert!(shims.reported(1, |e| *e == ShimEvent::RouteChanged { peer: a, to }));
    let last = shims.sent.last().unwrap();
    assert_eq!(
        (last.1, last.2.ip.destination),
        (1, to),
        "packets take the new way"
    );
}

/// 004 section 2.3 and 6.1.3: the old locator is dropped at once, and what arrives for it is lost.
#[test]
fn hard_handoff_drops_what_arrives_for_the_stale_locator() {
    let mut shims = talking(Handoff::Hard);
    let a = shims.identity(0);
    shims.send(1, a, b"on its way");
    shims.run_for(ms(5));
    shims.arrive(0, 1, locator(3));
    shims.send(1, a, b"to the stale locator");
    shims.run_for(ms(100));
    shims.send(1, a, b"after");
    shims.run_for(ms(100));
    assert_eq!(shims.heard(0, 1), ["after"]);
    assert_eq!(shims.counters(0).stale_locator, 2);
    let (_, packet) = shims.updates(0, LocatorOperation::Advertisement)[0];
    assert_eq!(update_in(packet).unwrap().locators.len(), 1);
    let first = shims.hosts[0].shim.locators().next();
    assert_eq!(first.map(|l| l.state), Some(LocatorState::Withdrawn));
    assert!(shims.reported(
        0,
        |e| matches!(e, ShimEvent::HandoffDone { delay, .. } if *delay == ms(20))
    ));
}

/// Both networks were in reach before anybody called, and the caller knows of the one that was left since: its call is
/// taken and answered from there, as RFC 6744 section 4 wants it, and the update follows. When the locator in use is lost, the
/// host goes back to the one that remains.
#[test]
fn a_call_to_a_locator_that_was_left_before_is_answered_and_told_of_the_one_in_use() {
    let knows_the_first = Config {
        peers: vec![PeerConfig {
            nid: nid(0),
            locators: vec![locator(1)],
            name: None,
        }],
        ..config(Handoff::Hard)
    };
    let mut shims = Shims::new([config(Handoff::Hard), knows_the_first]);
    let (a, b) = (shims.identity(0), shims.identity(1));
    shims.arrive(0, 0, locator(1));
    shims.arrive(1, 0, locator(2));
    shims.arrive(0, 1, locator(3));
    shims.run_for(ms(100));
    shims.hosts[1].events.clear();
    for (from, to, data) in [
        (1, a, &b"call"[..]),
        (0, b, b"answer"),
        (1, a, b"one"),
        (0, b, b"two"),
        (1, a, b"three"),
        (0, b, b"four"),
    ] {
        shims.send(from, to, data);
        shims.run_for(ms(100));
    }
    assert_eq!(shims.heard(0, 1), ["call", "one", "three"]);
    assert_eq!(shims.heard(1, 0), ["answer", "two", "four"]);
    let (in_use, left) = (locator(3).address(nid(0)), locator(1).address(nid(0)));
    assert!(shims.reported(1, |e| *e == ShimEvent::RouteChanged { peer: a, to: in_use }));
    assert!(!shims.reported(1, |e| matches!(e, ShimEvent::FellBack { .. })));
    shims.hosts[1].events.clear();
    shims.leave(0, 1, locator(3));
    shims.run_for(ms(100));
    assert!(shims.reported(1, |e| *e == ShimEvent::RouteChanged { peer: a, to: left }));
    shims.send(1, a, b"five");
    shims.run_for(ms(100));
    assert_eq!(shims.heard(0, 1).last().unwrap(), "five");
    assert_eq!(shims.hosts[0].shim.locators().count(), 1);
}

/// An update is sent again at growing intervals until it is acknowledged.
#[test]
fn lost_updates_and_acknowledgements_are_repeated() {
    let mut shims = talking(Handoff::Hard);
    let mut losses = 3;
    shims.fate = Box::new(move |_, packet| {
        let lost = update_in(packet).is_some() && losses > 0;
        losses -= i32::from(lost);
        if lost { Fate::Lost } else { Fate::Arrives }
    });
    let begun = shims.now;
    shims.arrive(0, 1, locator(3));
    shims.run_for(ms(20_000));
    let at: Vec<_> = shims
        .updates(0, LocatorOperation::Advertisement)
        .iter()
        .map(|(at, _)| at.since(begun))
        .collect();
    assert_eq!(at, [ms(0), ms(1000), ms(3000), ms(7000)]);
    assert!(shims.reported(
        0,
        |e| matches!(e, ShimEvent::HandoffDone { delay, .. } if *delay == ms(7020))
    ));
    assert_eq!(shims.counters(0).lu_retransmitted, 3);
    // and when it is the acknowledgement that is lost, the update is answered again and changes nothing
    let mut shims = talking(Handoff::Hard);
    let mut losses = 1;
    shims.fate = Box::new(move |_, packet| {
        let ack = update_in(packet).is_some_and(|u| u.operation == LocatorOperation::Acknowledgement);
        let lost = ack && losses > 0;
        losses -= i32::from(lost);
        if lost { Fate::Lost } else { Fate::Arrives }
    });
    shims.arrive(0, 1, locator(3));
    shims.run_for(ms(5000));
    assert_eq!(
        (shims.counters(1).lu_received, shims.counters(1).lu_repeated),
        (1, 1)
    );
    assert!(shims.reported(0, |e| matches!(e, ShimEvent::HandoffDone { .. })));
}

#[test]
fn updates_that_nobody_answers_are_given_up_and_said_so() {
    let mut shims = talking(Handoff::Hard);
    shims.directory = false;
    shims.leave(1, 0, locator(2));
    let b = shims.identity(1);
    shims.arrive(0, 1, locator(3));
    shims.run_for(ms(200_000));
    assert!(shims.reported(0, |e| *e == ShimEvent::HandoffFailed { peer: b }));
    assert!(!shims.reported(0, |e| matches!(e, ShimEvent::HandoffDone { .. })));
    assert_eq!(shims.updates(0, LocatorOperation::Advertisement).len(), 7);
    assert_eq!(shims.hosts[0].shim.counted().lu_given_up, 1);
}

/// An update of host 0's with these locators and lifetimes, as host 0 would send it.
fn update_of(shims: &mut Shims, entries: &[(u16, u16)]) -> Packet {
    let nonce = shims.nonce_of_next(0);
    let mut packet = forged(shims, 1, Some(nonce));
    let Payload::Icmpv6(Icmpv6::LocatorUpdate(update)) = &mut packet.payload else {
        unreachable!()
    };
    update.locators = entries
        .iter()
        .map(|&(n, lifetime_s)| LocatorEntry {
            locator: locator(n),
            preference: n,
            lifetime_s,
        })
        .collect();
    packet
}

/// Everybody who is left has acknowledged: those who turn out to speak only IPv6 need not.
#[test]
fn a_handoff_is_done_when_the_last_who_has_not_acknowledged_is_gone() {
    for forgotten in [false, true] {
        let config = Config {
            max_correspondents: 2,
            fallback_after: None,
            ..config(Handoff::Soft)
        };
        let mut shims = Shims::new([config, Config::default(), Config::default(), Config::default()]);
        for host in 0..4 {
            shims.arrive(host, 0, locator(host as u16 + 1));
        }
        let real = |host: usize| locator(host as u16 + 1).address(nid(host));
        shims.send(0, real(1), b"hello");
        shims.run_for(ms(100));
        shims.send(1, shims.identity(0), b"hello");
        shims.run_for(ms(100));
        // what it says to the second is lost for now
        shims.fate = Box::new(move |_, p| {
            if p.ip.destination == real(2) {
                Fate::Lost
            } else {
                Fate::Arrives
            }
        });
        shims.send(0, real(2), b"hello");
        let sent = shims.sent.last().unwrap().2.clone();
        shims.arrive(0, 1, locator(7));
        shims.run_for(ms(500));
        let done = |shims: &Shims| shims.reported(0, |e| matches!(e, ShimEvent::HandoffDone { .. }));
        assert!(!done(&shims), "the second has not acknowledged");
        if forgotten {
            shims.send(0, real(1), b"hello");
            shims.send(0, real(3), b"the cache is full");
        } else {
            shims.inject(parameter_problem(&sent, 42));
        }
        shims.run_for(ms(100));
        assert!(
            shims.reported(
                0,
                |e| matches!(e, ShimEvent::HandoffDone { delay, .. } if *delay == ms(20))
            ),
            "{:?}",
            shims.hosts[0].events
        );
    }
}

/// 004 section 7.6 (claim I8): both keep their old locators, and each update arrives.
#[test]
fn both_ends_moving_at_once_is_no_matter_to_soft_handoff() {
    let mut shims = talking(Handoff::Soft);
    shims.directory = false;
    let (a, b) = (shims.identity(0), shims.identity(1));
    shims.arrive(0, 1, locator(3));
    shims.arrive(1, 1, locator(4));
    shims.run_for(ms(5));
    shims.send(0, b, b"there");
    shims.send(1, a, b"back");
    shims.run_for(ms(100));
    assert_eq!((shims.heard(1, 0).len(), shims.heard(0, 1).len()), (1, 1));
    for host in 0..2 {
        assert!(shims.reported(
            host,
            |e| matches!(e, ShimEvent::HandoffDone { delay, .. } if *delay == ms(20))
        ));
        shims.leave(host, 0, locator(host as u16 + 1));
    }
    shims.run_for(ms(100));
    shims.send(0, b, b"there again");
    shims.send(1, a, b"back again");
    shims.run_for(ms(100));
    assert_eq!((shims.heard(1, 0).len(), shims.heard(0, 1).len()), (2, 2));
}

/// 004 section 7.6, RFC 6740 section 6.2 (claim I8): hard handoffs of both miss each other; the directory repairs it.
#[test]
fn both_ends_moving_at_once_by_hard_handoff_need_the_directory() {
    for directory in [false, true] {
        let mut shims = talking(Handoff::Hard);
        shims.directory = directory;
        let (a, b) = (shims.identity(0), shims.identity(1));
        for host in 0..2 {
            shims.arrive(host, 1, locator(host as u16 + 3));
            shims.leave(host, 0, locator(host as u16 + 1));
        }
        let begun = shims.now;
        for _ in 0..300 {
            shims.send(0, b, b"there");
            shims.send(1, a, b"back");
            shims.run_for(ms(1000));
        }
        assert_eq!(
            shims.reported(0, |e| matches!(e, ShimEvent::HandoffDone { .. })),
            directory
        );
        assert_eq!(shims.heard(0, 1).is_empty(), !directory);
        if directory {
            let first = shims.hosts[0].up[0].0.since(begun);
            assert!(first < ms(10_000), "repaired after {first:?}");
            assert!(shims.reported(0, |e| *e == ShimEvent::LookUp { peer: b }));
        } else {
            assert!(shims.reported(0, |e| *e == ShimEvent::HandoffFailed { peer: b }));
        }
    }
}

/// Three hosts, of which the first talks to both others.
fn talking_to_two() -> Shims {
    let mut shims = Shims::new([
        config(Handoff::Hard),
        config(Handoff::Hard),
        config(Handoff::Hard),
    ]);
    for host in 0..3 {
        shims.arrive(host, 0, locator(host as u16 + 1));
    }
    let a = shims.identity(0);
    for host in [1, 2] {
        shims.send(host, a, b"hello");
        shims.run_for(ms(50));
        let peer = shims.identity(host);
        shims.send(0, peer, b"hello");
        shims.run_for(ms(50));
    }
    shims
}

/// How long the handoffs of the first host took that were done.
fn delays(shims: &Shims) -> Vec<Duration> {
    let done = shims.hosts[0].events.iter().filter_map(|(_, e)| match e {
        ShimEvent::HandoffDone { delay, .. } => Some(*delay),
        _ => None,
    });
    done.collect()
}

/// Every peer with a session is told, and the handoff is done when the last has acknowledged.
#[test]
fn all_correspondents_are_told() {
    let mut shims = talking_to_two();
    let mut lost = false;
    shims.fate = Box::new(move |_, packet| {
        let to_last = packet.ip.destination == locator(3).address(nid(2));
        if update_in(packet).is_some() && to_last && !core::mem::replace(&mut lost, true) {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    shims.arrive(0, 1, locator(9));
    shims.run_for(ms(5000));
    assert_eq!(delays(&shims), [ms(1020)]);
    assert_eq!(shims.counters(0).handoffs, 1);
    for peer in shims.hosts[0].shim.correspondents() {
        assert_eq!(peer.mode(), Mode::Ilnp);
    }
}

/// One who is off is given up: with the others the handoff is done, and took as long as they did.
#[test]
fn a_correspondent_that_is_off_does_not_undo_what_the_others_have_acknowledged() {
    let mut shims = talking_to_two();
    shims.directory = false;
    let (last, off) = (shims.identity(2), locator(3).address(nid(2)));
    shims.fate = Box::new(move |_, packet| {
        if packet.ip.destination == off {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    shims.arrive(0, 1, locator(9));
    shims.run_for(ms(200_000));
    assert!(shims.reported(0, |e| *e == ShimEvent::HandoffFailed { peer: last }));
    assert_eq!(delays(&shims), [ms(20)]);
}

/// Signalling is counted (claim I13): an update of one locator is 40 + 8 + 8 + 12 bytes.
#[test]
fn signalling_is_counted_in_packets_and_bytes() {
    let mut shims = talking(Handoff::Hard);
    shims.arrive(0, 1, locator(3));
    shims.run_for(ms(100));
    for host in 0..2 {
        let counters = shims.counters(host);
        assert_eq!(
            (counters.signalling_packets_sent, counters.signalling_bytes_sent),
            (1, 68)
        );
    }
}

/// A packet of a session is not enough to move it: only an update is.
#[test]
fn data_from_another_locator_does_not_move_a_session() {
    let mut shims = talking(Handoff::Soft);
    let nonce = shims.nonce_of_next(0);
    let packet = datagram(
        locator(66).address(nid(0)),
        locator(2).address(nid(1)),
        b"elsewhere",
    );
    shims.inject(with_nonce(packet, nonce));
    shims.run_for(ms(50));
    assert_eq!(
        shims.heard(1, 0),
        ["elsewhere"],
        "it is the session's by its nonce"
    );
    let a = shims.identity(0);
    shims.send(1, a, b"here");
    assert_eq!(
        shims.sent.last().unwrap().2.ip.destination,
        locator(1).address(nid(0))
    );
}
