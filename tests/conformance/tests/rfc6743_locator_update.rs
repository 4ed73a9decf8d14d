//! ICMPv6 Locator Update (RFC 6743): handoffs of one end and of both, what is lost, what is repeated, what is refused.

use segue_conformance::shims::{
    Fate, Shims, datagram, header, locator, ms, nid, parameter_problem, update_in, with_nonce,
};
use segue_proto::ilnp::{Config, Handoff, LocatorState, Mode};
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
    assert_eq!(shims.hosts[0].shim.locators()[0].state, LocatorState::Withdrawn);
    assert!(shims.reported(
        0,
        |e| matches!(e, ShimEvent::HandoffDone { delay, .. } if *delay == ms(20))
    ));
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

/// Section 6: without the session's nonce nothing changes (claim I10).
#[test]
fn forged_updates_change_nothing() {
    let mut shims = talking(Handoff::Soft);
    let a = shims.identity(0);
    let right = shims.nonce_of_next(0);
    let before = format!("{:?}", shims.hosts[1].shim.correspondents().next());
    for (nonce, at) in [
        (None, 66),
        (Some(Nonce::Bits32([1, 2, 3, 4])), 66),
        (Some(Nonce::Bits96([0; 12])), 66),
    ] {
        let packet = forged(&shims, at, nonce);
        shims.inject(packet);
    }
    // of a node that nothing is known of, even with a nonce that is right for another
    let mut other = forged(&shims, 66, Some(right));
    other.ip.source = locator(66).address(nid(9));
    shims.inject(other);
    shims.run_for(ms(50));
    assert_eq!(
        format!("{:?}", shims.hosts[1].shim.correspondents().next()),
        before
    );
    let counters = shims.counters(1);
    assert_eq!(
        (
            counters.lu_missing_nonce,
            counters.lu_wrong_nonce,
            counters.lu_unknown_correspondent,
            counters.lu_received
        ),
        (1, 2, 1, 0)
    );
    assert!(
        shims.updates(1, LocatorOperation::Acknowledgement).is_empty(),
        "nobody is answered"
    );
    shims.send(1, a, b"still there");
    shims.run_for(ms(50));
    assert_eq!(shims.heard(0, 1), ["still there"]);
    // the proof that the test can fail: the right nonce does move the session
    let packet = forged(&shims, 66, Some(right));
    shims.inject(packet);
    shims.run_for(ms(50));
    assert_eq!(shims.counters(1).lu_received, 1);
}

/// A locator to which nothing can be routed, or a lifetime of nothing for all of them.
#[test]
fn updates_that_lead_nowhere_are_refused() {
    let mut shims = talking(Handoff::Soft);
    let nonce = shims.nonce_of_next(0);
    for (bits, lifetime_s) in [
        (0xff02_u64 << 48, 60),
        (0xfe80 << 48, 60),
        (0, 60),
        (locator(7).0, 0),
    ] {
        let mut packet = forged(&shims, 3, Some(nonce));
        let Payload::Icmpv6(Icmpv6::LocatorUpdate(update)) = &mut packet.payload else {
            unreachable!()
        };
        update.locators[0].locator.0 = bits;
        update.locators[0].lifetime_s = lifetime_s;
        shims.inject(packet);
    }
    shims.run_for(ms(50));
    assert_eq!(
        (shims.counters(1).lu_bad_locator, shims.counters(1).lu_received),
        (4, 0)
    );
}

/// The message has no sequence number: one that comes again after another has superseded it is refused for a while.
#[test]
fn a_late_duplicate_does_not_undo_a_later_update() {
    let mut shims = talking(Handoff::Hard);
    let a = shims.identity(0);
    shims.fate = Box::new(|_, packet| {
        let first = update_in(packet).is_some_and(|u| {
            u.operation == LocatorOperation::Advertisement && u.locators[0].locator == locator(3)
        });
        if first {
            Fate::Twice(ms(300))
        } else {
            Fate::Arrives
        }
    });
    shims.arrive(0, 1, locator(3));
    shims.run_for(ms(100));
    shims.arrive(0, 2, locator(4));
    shims.run_for(ms(1000));
    assert_eq!(shims.counters(1).lu_replayed, 1);
    shims.send(1, a, b"to the fourth");
    shims.run_for(ms(100));
    assert_eq!(shims.heard(0, 1), ["to the fourth"]);
    // a host that is really back tells so until it is believed
    shims.leave(0, 2, locator(4));
    shims.run_for(ms(3000));
    shims.send(1, a, b"to the third");
    shims.run_for(ms(100));
    assert_eq!(shims.heard(0, 1), ["to the fourth", "to the third"]);
}

/// A replay after the guard time does move the session, and the host, hearing its stale locator, moves it back.
#[test]
fn a_replay_later_is_repaired_by_the_host_that_was_replayed() {
    let mut shims = talking(Handoff::Hard);
    let a = shims.identity(0);
    shims.arrive(0, 1, locator(3));
    shims.run_for(ms(100));
    let recorded = shims.updates(0, LocatorOperation::Advertisement)[0].1.clone();
    shims.arrive(0, 2, locator(4));
    shims.run_for(ms(5000));
    shims.inject(recorded);
    shims.run_for(ms(100));
    assert_eq!(shims.counters(0).stale_locator, 1, "the acknowledgement");
    // what it tells again is another update, and believed at once
    assert_eq!(shims.updates(0, LocatorOperation::Advertisement).len(), 3);
    shims.send(1, a, b"found");
    shims.run_for(ms(100));
    assert_eq!(shims.heard(0, 1), ["found"]);
}

/// As long as a host is heard where it is, what it said of another place before is not believed again, however late it comes.
#[test]
fn a_replay_is_refused_while_the_host_is_heard_elsewhere() {
    let mut shims = talking(Handoff::Hard);
    let (a, b) = (shims.identity(0), shims.identity(1));
    shims.arrive(0, 1, locator(3));
    shims.run_for(ms(100));
    let recorded = shims.updates(0, LocatorOperation::Advertisement)[0].1.clone();
    shims.arrive(0, 2, locator(4));
    for _ in 0..100 {
        shims.send(0, b, b"still here");
        shims.run_for(ms(500));
    }
    shims.inject(recorded.clone());
    shims.run_for(ms(100));
    assert_eq!(shims.counters(1).lu_replayed, 1);
    shims.send(1, a, b"to the fourth");
    shims.run_for(ms(100));
    assert_eq!(shims.heard(0, 1), ["to the fourth"]);
    // the proof that the test can fail: once the host is silent, nothing speaks against the update
    shims.run_for(ms(5000));
    shims.inject(recorded);
    shims.run_for(ms(20));
    assert_eq!(shims.counters(1).lu_replayed, 1);
    assert_eq!(shims.counters(1).lu_received, 3);
}

/// A host that goes to and fro between two networks says the same each time, but never in the same words.
#[test]
fn a_host_that_comes_back_is_believed_at_once() {
    let mut shims = talking(Handoff::Hard);
    let a = shims.identity(0);
    for n in 0..6 {
        let at = 3 + n % 2;
        shims.arrive(0, 1 + n as u8, locator(at));
        shims.run_for(ms(100));
        shims.send(1, a, b"where you are");
        shims.run_for(ms(100));
        shims.leave(0, 1 + n as u8, locator(at));
    }
    assert_eq!(shims.heard(0, 1).len(), 6);
    let counters = shims.counters(1);
    assert_eq!((counters.lu_replayed, counters.lu_repeated), (0, 0));
    let mut bodies: Vec<_> = shims
        .updates(0, LocatorOperation::Advertisement)
        .iter()
        .map(|(_, p)| update_in(p).unwrap().locators.clone())
        .collect();
    let all = bodies.len();
    bodies.sort_by_key(|b| b.iter().map(|e| (e.locator, e.lifetime_s)).collect::<Vec<_>>());
    bodies.dedup();
    assert_eq!(bodies.len(), all);
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

/// Section 2: the lifetime is the most that a locator may be considered valid. One of zero is not valid any more.
#[test]
fn a_lifetime_of_zero_withdraws_a_locator() {
    let mut shims = talking(Handoff::Soft);
    let update = update_of(&mut shims, &[(1, 0), (7, 600)]);
    shims.inject(update.clone());
    shims.run_for(ms(50));
    assert_eq!(
        (shims.counters(1).lu_received, shims.counters(1).lu_repeated),
        (1, 0)
    );
    let a = shims.identity(0);
    shims.send(1, a, b"hello");
    let to = shims.sent.last().unwrap().2.ip.destination;
    assert_eq!(to, locator(7).address(nid(0)));
    // said again, it says nothing new
    shims.inject(update);
    shims.run_for(ms(50));
    assert_eq!(
        (shims.counters(1).lu_received, shims.counters(1).lu_repeated),
        (1, 1)
    );
    // and with nothing else it leaves none
    let none = update_of(&mut shims, &[(7, 0)]);
    shims.inject(none);
    shims.run_for(ms(50));
    assert_eq!(shims.counters(1).lu_bad_locator, 1);
}

/// Section 4: many locators may be named; the best are kept, and what is known of a peer stays small.
#[test]
fn of_very_many_locators_the_best_are_kept() {
    let mut shims = talking(Handoff::Soft);
    for round in 0..4 {
        let entries: Vec<_> = (0..255).map(|n| (2000 - round * 255 - n, 600)).collect();
        let update = update_of(&mut shims, &entries);
        shims.inject(update);
        shims.run_for(ms(50));
    }
    let peer = shims.hosts[1].shim.correspondents().next().unwrap();
    assert_eq!(peer.locators.len(), 64);
    assert_eq!(peer.locators[0].preference, 2000 - 3 * 255 - 254);
    assert_eq!(shims.counters(1).locators_left_out, 4 * (255 - 64));
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

/// Every peer with a session is told, and the handoff is done when the last has acknowledged.
#[test]
fn all_correspondents_are_told() {
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
    let delays: Vec<_> = shims.hosts[0]
        .events
        .iter()
        .filter_map(|(_, e)| match e {
            ShimEvent::HandoffDone { delay, .. } => Some(*delay),
            _ => None,
        })
        .collect();
    assert_eq!(delays, [ms(1020)]);
    assert_eq!(shims.counters(0).handoffs, 1);
    for peer in shims.hosts[0].shim.correspondents() {
        assert_eq!(peer.mode, Mode::Ilnp);
    }
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

/// What is told is told again before its lifetime is over.
#[test]
fn locators_are_refreshed_before_their_lifetime_is_over() {
    let mut shims = Shims::pair(&Config {
        locator_lifetime: ms(40_000),
        idle_timeout: ms(3_600_000),
        ..config(Handoff::Hard)
    });
    shims.greet();
    shims.arrive(0, 1, locator(3));
    shims.run_for(ms(100));
    shims.sent.clear();
    shims.run_for(ms(100_000));
    assert_eq!(shims.updates(0, LocatorOperation::Advertisement).len(), 3);
    let handoffs = shims.hosts[0]
        .events
        .iter()
        .filter(|(_, e)| matches!(e, ShimEvent::HandoffBegun { .. }));
    assert_eq!(handoffs.count(), 1, "it is no handoff");
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
