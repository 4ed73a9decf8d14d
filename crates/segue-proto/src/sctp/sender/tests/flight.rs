//! What is under way: numbers, sizes, states, and what is left.

use super::*;
use crate::sctp::sender::chunk::Sent;
use crate::sctp::sender::flight::Passed;

#[test]
fn the_counts_follow_the_states_of_the_chunks() {
    let mut q = Sending::flight(&[FIRST; 5]);
    let counts = |q: &Sending| {
        q.flight.check_invariants().expect("in step");
        q.flight.counts()
    };
    assert_eq!(counts(&q), (500, 5, 0));
    let lose = |q: &mut Sending, tsn| q.flight.lose_one(Cause::MissingReports, Tsn(tsn));
    q.flight.advertise(700);
    assert_eq!(q.flight.peer_rwnd(), 200);
    assert_eq!(lose(&mut q, 4), Some(Some(FIRST)));
    assert_eq!(q.flight.peer_rwnd(), 300);
    assert_eq!((counts(&q), lose(&mut q, 4)), ((400, 4, 1), None));
    assert_eq!(q.flight.next_marked(None), Some(Tsn(4)));
    lose(&mut q, 2);
    assert_eq!(counts(&q), (300, 3, 2));
    assert_eq!(q.flight.next_marked(None), Some(Tsn(2)));
    assert_eq!(q.flight.next_marked(Some(Tsn(3))), Some(Tsn(4)));
    assert_eq!(q.flight.next_marked(Some(Tsn(1))), Some(Tsn(2)));
    assert_eq!(q.flight.next_marked(Some(Tsn(5))), None);
    assert!(q.resend(ms(9), 2, FIRST) && !q.resend(ms(9), 2, FIRST));
    assert_eq!((counts(&q), q.flight.peer_rwnd()), ((400, 4, 1), 300));
    assert!(q.flight.acknowledge(Tsn(3)).is_some() && q.flight.acknowledge(Tsn(3)).is_none());
    assert_eq!(counts(&q), (300, 3, 1));
    q.flight.abandon(Tsn(5));
    assert_eq!((lose(&mut q, 5), lose(&mut q, 6)), (None, None));
    // what is acknowledged gives nothing back: the SACK says what room there is
    assert_eq!(q.flight.peer_rwnd(), 400);
    assert_eq!(counts(&q), (200, 2, 1));
    // off the front
    for (tsn, expected) in [(1, (100, 1, 1)), (2, (0, 0, 1)), (3, (0, 0, 1)), (4, (0, 0, 0))] {
        let passed = q.flight.acknowledge_next().expect("sent");
        assert_eq!(matches!(passed, Passed::New(_)), tsn != 3);
        q.flight.settle(FIRST, None);
        assert_eq!(counts(&q), expected);
        assert_eq!(q.buffered(), 400 - 100 * tsn);
    }
    assert_eq!(q.flight.cumulative_tsn_ack(), Tsn(4));
    assert!(matches!(q.flight.acknowledge_next(), Some(Passed::Abandoned)));
    assert!(q.flight.acknowledge_next().is_none());
}

#[test]
fn losing_takes_what_is_outstanding_and_goes_back_to_the_first() {
    let mut q = Sending::flight(&[FIRST, SECOND, FIRST, SECOND]);
    q.flight.acknowledge(Tsn(1));
    let on = |path| move |sent: &Sent| sent.path() == Some(path);
    q.flight.advertise(300);
    assert_eq!(q.flight.lose(Cause::PathGone, on(FIRST)), 1);
    assert_eq!(q.flight.peer_rwnd(), 100);
    assert_eq!(q.flight.counts(), (200, 2, 1));
    assert_eq!(q.flight.next_marked(None), Some(Tsn(3)));
    assert_eq!(q.flight.lose(Cause::PathGone, on(SECOND)), 2);
    assert_eq!(q.flight.peer_rwnd(), 300);
    assert_eq!(q.flight.counts(), (0, 0, 3));
    assert_eq!(q.flight.lose(Cause::PathGone, |_| true), 0);
    assert_eq!(q.flight.next_marked(None), Some(Tsn(2)));
    q.flight.leave(&[SECOND]);
    let path = |tsn| q.flight.get(Tsn(tsn)).and_then(Sent::path);
    assert_eq!((path(1), path(2)), (Some(FIRST), None));
}

#[test]
fn a_path_that_is_back_is_another_one_for_whatever_was_sent_there_before() {
    let mut q = Sending::flight(&[FIRST, FIRST, SECOND]);
    // one that T3-rtx had marked already, and one that leaving the path marks
    q.flight.lose_one(Cause::Timeout, Tsn(1));
    q.flight.lose_one(Cause::Timeout, Tsn(3));
    assert_eq!(q.flight.leave(&[FIRST]), 1);
    assert_eq!((q.flight.t3_rtx(FIRST), q.flight.timed(FIRST)), (None, None));
    for (tsn, path, has_moved) in [(1, FIRST, true), (2, FIRST, true), (3, SECOND, false)] {
        assert!(q.resend(ms(9), tsn, path));
        let sent = q.flight.get(Tsn(tsn)).expect("it is under way");
        assert_eq!(sent.transmission().has_moved(), has_moved, "{tsn}");
    }
}

/// What each way out of flight does to T3-rtx, to the round trip that is measured and to CUC, of three chunks of which the
/// first goes.
#[test]
fn a_chunk_leaves_flight_by_cause() {
    let now = ms(100);
    type Leave = fn(&mut Sending);
    // cause; T3-rtx runs for, until; measured; CUC awaits
    type Row = (&'static str, Leave, u32, u64, bool, Option<u32>);
    let rows: [Row; 8] = [
        (
            "acknowledged",
            |q| {
                q.flight.acknowledge(Tsn(1));
            },
            2,
            1700,
            false,
            Some(2),
        ),
        (
            "missing",
            |q| {
                q.flight.lose_one(Cause::MissingReports, Tsn(1));
            },
            2,
            1700,
            false,
            None,
        ),
        (
            "rescheduled",
            |q| {
                q.flight.lose_one(Cause::Rescheduled, Tsn(1));
            },
            2,
            1000,
            false,
            None,
        ),
        (
            "probe refused",
            |q| {
                q.flight.lose_one(Cause::ProbeRefused, Tsn(1));
            },
            2,
            1700,
            false,
            Some(1),
        ),
        (
            "too big",
            |q| {
                q.flight.lose(Cause::TooBig, first);
            },
            2,
            1000,
            false,
            Some(1),
        ),
        (
            "abandoned",
            |q| {
                q.flight.abandon(Tsn(1));
            },
            2,
            1000,
            false,
            Some(1),
        ),
        (
            "timeout",
            |q| {
                q.flight.expire(ms(100), FIRST, ms(1), RTO);
            },
            2,
            1100,
            false,
            None,
        ),
        (
            "another is missing",
            |q| {
                q.flight.lose_one(Cause::MissingReports, Tsn(2));
            },
            1,
            1000,
            true,
            None,
        ),
    ];
    fn first(sent: &Sent) -> bool {
        sent.transmission().at() == Instant::ZERO
    }
    for (name, leave, watched, until, measured, awaited) in rows {
        let mut q = Sending::with(false, Cuc::V2);
        q.fly(&[FIRST; 3]);
        q.flight.find_pseudo_cumulative_acks();
        assert_eq!(q.flight.awaited(FIRST), [Some(1), None]);
        assert_eq!(q.flight.timed(FIRST), Some((1, ms(0))));
        leave(&mut q);
        q.flight.settle(FIRST, Some(now + Duration::from_millis(1600)));
        assert_eq!(q.flight.size_on(FIRST), 232, "{name}");
        assert_eq!(q.flight.watched(FIRST), Some((watched, ms(until))), "{name}");
        assert_eq!(q.flight.timed(FIRST).is_some(), measured, "{name}");
        assert_eq!(q.flight.awaited(FIRST)[0], awaited, "{name}");
        q.flight.check_invariants().expect(name);
    }
}

#[test]
fn t3_rtx_runs_for_the_lowest_tsn_or_for_what_was_sent_first() {
    for (by_order, again, then) in [(false, 1, 3), (true, 3, 4)] {
        let mut q = Sending::with(by_order, Cuc::Off);
        q.fly(&[FIRST, SECOND, FIRST, FIRST]);
        assert_eq!(q.flight.watched(FIRST), Some((1, ms(1000))));
        q.flight.lose_one(Cause::Rescheduled, Tsn(1));
        assert_eq!(q.flight.watched(FIRST), Some((3, ms(1000))));
        q.resend(ms(50), 1, FIRST);
        assert_eq!(q.flight.watched(FIRST).map(|w| w.0), Some(again));
        q.flight.acknowledge(Tsn(again));
        q.flight.settle(FIRST, Some(ms(2000)));
        assert_eq!(q.flight.watched(FIRST), Some((then, ms(2000))));
        // a retransmission is not measured, and what was lost is not either
        assert_eq!(q.flight.timed(FIRST), None);
    }
}

#[test]
fn a_path_books_what_is_sent_on_it() {
    let mut q = Sending::new();
    q.fly(&[FIRST; 3]);
    assert_eq!((q.flight.size_on(FIRST), q.flight.size_on(SECOND)), (348, 0));
    assert_eq!(q.flight.watched(FIRST), Some((1, ms(1000))));
    assert_eq!(q.flight.timed(FIRST), Some((1, ms(0))));
    assert_eq!(
        (q.flight.t3_rtx(SECOND), q.flight.next_timer()),
        (None, Some(ms(1000)))
    );
    q.flight.lose_one(Cause::Rescheduled, Tsn(1));
    // on another path it has a timer of its own, and no round trip is measured
    q.resend(ms(7), 1, SECOND);
    assert_eq!(q.flight.watched(SECOND), Some((1, ms(1007))));
    assert_eq!((q.flight.timed(SECOND), q.flight.size_on(SECOND)), (None, 116));
    for _ in 0..3 {
        q.flight.acknowledge_next();
    }
    for path in [FIRST, SECOND] {
        q.flight.settle(path, Some(ms(9000)));
        assert_eq!((q.flight.size_on(path), q.flight.t3_rtx(path)), (0, None));
    }
}

#[test]
fn what_the_receiver_reneged_is_outstanding_again() {
    let mut q = Sending::flight(&[FIRST, FIRST, SECOND]);
    for tsn in [2, 3] {
        q.flight.acknowledge(Tsn(tsn));
        q.flight.settle(FIRST, None);
        q.flight.settle(SECOND, None);
    }
    assert!(!q.flight.renege(ms(5), Tsn(1), |_| RTO), "it was not reported");
    assert!(q.flight.renege(ms(5), Tsn(2), |_| RTO));
    assert_eq!((q.flight.counts(), q.flight.size_on(FIRST)), ((200, 2, 0), 232));
    // its path was left
    assert_eq!(q.flight.leave(&[SECOND]), 0);
    assert!(q.flight.renege(ms(5), Tsn(3), |_| RTO));
    assert_eq!(q.flight.counts(), (200, 2, 1));
    q.flight.check_invariants().expect("in step");
    // what it promised to keep stays acknowledged
    q.flight.acknowledge(Tsn(2));
    q.flight.release(Tsn(2));
    assert_eq!((q.flight.held(), q.flight.buffered()), (300, 200));
    assert!(!q.flight.renege(ms(6), Tsn(2), |_| RTO));
}
