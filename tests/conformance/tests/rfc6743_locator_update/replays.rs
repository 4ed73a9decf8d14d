//! Updates that are forged, late, or replayed.

use super::*;

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
