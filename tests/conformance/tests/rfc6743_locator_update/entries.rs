//! What an update names.

use super::*;

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
    assert_eq!(peer.locators().len(), 64);
    assert_eq!(peer.locators()[0].preference, 2000 - 3 * 255 - 254);
    assert_eq!(shims.counters(1).locators_left_out, 4 * (255 - 64));
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

/// The prefix of identities is nowhere: what went there would come back to this host's own transports at best.
#[test]
fn an_identity_is_no_locator() {
    let mut shims = talking(Handoff::Soft);
    let mut update = update_of(&mut shims, &[(7, 600)]);
    if let Payload::Icmpv6(Icmpv6::LocatorUpdate(message)) = &mut update.payload {
        message.locators[0].locator = segue_wire::ilnp::Locator::of(shims.identity(0));
    }
    shims.inject(update);
    shims.run_for(ms(50));
    assert_eq!(shims.counters(1).lu_bad_locator, 1);
    assert_eq!(shims.counters(1).lu_received, 0);
    let a = shims.identity(0);
    shims.send(1, a, b"hello");
    let to = shims.sent.last().unwrap().2.ip.destination;
    assert_eq!(to, locator(1).address(nid(0)));
}

/// Section 2, and RFC 6741 section 5.2: a locator whose lifetime is over is used for want of another only.
#[test]
fn a_locator_whose_lifetime_is_over_gives_way_to_one_whose_is_not() {
    let mut shims = talking(Handoff::Soft);
    let update = update_of(&mut shims, &[(1, 5), (7, 600)]);
    shims.inject(update);
    shims.run_for(ms(50));
    let a = shims.identity(0);
    let mut to = |wait: u64| {
        shims.run_for(ms(wait));
        shims.send(1, a, b"hello");
        shims.sent.last().unwrap().2.ip.destination
    };
    let (best, other) = (locator(1).address(nid(0)), locator(7).address(nid(0)));
    assert_eq!((to(0), to(2000), to(2900)), (best, best, best));
    assert_eq!((to(100), to(1000)), (other, other));
}
