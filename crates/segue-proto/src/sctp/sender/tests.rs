//! What waits and what is under way: numbers, sizes, states, and what is left.

use super::loss::LossDetector;
use super::*;
use crate::sctp::multipath::Cuc;
use crate::sctp::options::Policy;
use crate::sctp::path::PathId;
use crate::sctp::{Config, Reliability, SendOptions};
use crate::time::{Duration, Instant};
use segue_wire::{Data, Tsn};

const FIRST: PathId = PathId::first_at(0);
const SECOND: PathId = PathId::first_at(1);
const RTO: Duration = Duration::from_secs(1);

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

/// A queue, and what was sent of it.
struct Sending {
    queue: SendQueue,
    flight: Flight,
    detector: LossDetector,
}

impl Sending {
    fn new() -> Self {
        Self::with(false, Cuc::Off)
    }

    fn with(by_order: bool, cuc: Cuc) -> Self {
        Self {
            queue: SendQueue::new(1000),
            flight: Flight::new(Tsn(1), by_order, cuc),
            detector: LossDetector::new(&Config::default()),
        }
    }

    fn push(&mut self, stream: u16, len: u32, options: SendOptions) {
        let data = Data::Synthetic { offset: 0, len };
        self.queue.push(ms(0), stream, data, options);
    }

    fn send(&mut self, path: PathId) -> (u32, u32, u16, bool, bool) {
        self.send_at(ms(0), path)
    }

    fn send_at(&mut self, at: Instant, path: PathId) -> (u32, u32, u16, bool, bool) {
        let transmission = self.detector.on_sent(at);
        let content = self.queue.cut(false).expect("it waits");
        let (tsn, s) = self.flight.send(at, content, path, RTO, transmission);
        let c = s.content();
        (tsn.0, s.len(), c.ssn.0, c.beginning, c.ending)
    }

    fn resend(&mut self, at: Instant, tsn: u32, path: PathId) -> bool {
        let again = |former, moves| self.detector.on_sent_again(at, former, moves);
        self.flight.resend(at, Tsn(tsn), path, RTO, again).is_some()
    }

    /// Chunks of 100 bytes on these paths, a millisecond apart.
    fn flight(paths: &[PathId]) -> Self {
        let mut s = Self::new();
        s.fly(paths);
        s
    }

    fn fly(&mut self, paths: &[PathId]) {
        for (n, &path) in (0..).zip(paths) {
            self.push(0, 100, SendOptions::default());
            self.send_at(ms(n), path);
        }
    }

    fn buffered(&self) -> usize {
        self.queue.buffered() + self.flight.held()
    }
}

fn prioritised(priority: u32) -> SendOptions {
    SendOptions {
        reliability: Reliability::Priority { priority },
        ..SendOptions::default()
    }
}

#[test]
fn messages_are_cut_at_the_largest_chunk_and_numbered_by_stream() {
    let mut q = Sending::new();
    q.push(3, 2000, SendOptions::default());
    q.push(3, 1001, SendOptions::default());
    q.push(
        1,
        5,
        SendOptions {
            unordered: true,
            ..SendOptions::default()
        },
    );
    q.push(1, 6, SendOptions::default());
    assert_eq!((q.queue.unsent_bytes(), q.buffered()), (3012, 3012));
    assert_eq!((q.queue.streams_needed(), q.queue.next_len()), (4, Some(1000)));
    assert_eq!(q.send(FIRST), (1, 1000, 0, true, false));
    assert_eq!((q.queue.unsent_bytes(), q.queue.next_len()), (2012, Some(1000)));
    assert!(q.queue.is_amid_message_of(&[3]) && !q.queue.is_amid_message_of(&[1]));
    assert_eq!(q.send(FIRST), (2, 1000, 0, false, true));
    assert_eq!(q.send(FIRST), (3, 1000, 1, true, false));
    assert_eq!(q.queue.next_len(), Some(1));
    assert!(!q.queue.is_last(1));
    assert_eq!(q.send(FIRST), (4, 1, 1, false, true));
    assert_eq!(q.queue.streams_needed(), 2);
    assert_eq!(q.send(FIRST), (5, 5, 0, true, true));
    assert!(q.queue.is_last(6) && !q.queue.is_last(5));
    assert_eq!(q.send(FIRST), (6, 6, 0, true, true));
    assert!(!q.queue.has_unsent() && q.queue.next_len().is_none());
    assert_eq!((q.queue.streams_needed(), q.flight.next_tsn()), (0, Tsn(7)));
    assert_eq!(q.flight.counts(), (3012, 6, 0));
    // the next numbers of streams 1 and 3, before and after they begin again
    let next = |q: &mut Sending, stream| {
        q.push(stream, 1, SendOptions::default());
        q.send(FIRST).2
    };
    assert_eq!([next(&mut q, 1), next(&mut q, 3)], [1, 2]);
    q.queue.reset_ssns(&[3]);
    assert_eq!([next(&mut q, 1), next(&mut q, 3)], [2, 0]);
    q.queue.reset_ssns(&[]);
    assert_eq!([next(&mut q, 1), next(&mut q, 3)], [0, 0]);
}

#[test]
fn a_chunk_is_as_large_as_its_header_data_and_padding() {
    let sizes = [1, 4, 5, 1000, 1001].map(chunk_size);
    assert_eq!(sizes, [20, 20, 24, 1016, 1020]);
}

#[test]
fn the_counts_follow_the_states_of_the_chunks() {
    let mut q = Sending::flight(&[FIRST; 5]);
    let counts = |q: &Sending| {
        q.flight.check().expect("in step");
        q.flight.counts()
    };
    assert_eq!(counts(&q), (500, 5, 0));
    let lose = |q: &mut Sending, tsn| q.flight.lose_one(Cause::MissingReports, Tsn(tsn));
    assert_eq!(lose(&mut q, 4), Some((Some(FIRST), 100)));
    assert_eq!((counts(&q), lose(&mut q, 4)), ((400, 4, 1), None));
    assert_eq!(q.flight.next_marked(None), Some(Tsn(4)));
    lose(&mut q, 2);
    assert_eq!(counts(&q), (300, 3, 2));
    assert_eq!(q.flight.next_marked(None), Some(Tsn(2)));
    assert_eq!(q.flight.next_marked(Some(Tsn(3))), Some(Tsn(4)));
    assert_eq!(q.flight.next_marked(Some(Tsn(1))), Some(Tsn(2)));
    assert_eq!(q.flight.next_marked(Some(Tsn(5))), None);
    assert!(q.resend(ms(9), 2, FIRST) && !q.resend(ms(9), 2, FIRST));
    assert_eq!(counts(&q), (400, 4, 1));
    assert!(q.flight.acknowledge(Tsn(3)).is_some() && q.flight.acknowledge(Tsn(3)).is_none());
    assert_eq!(counts(&q), (300, 3, 1));
    assert_eq!(q.flight.abandon(Tsn(5)), Some(100));
    assert_eq!((lose(&mut q, 5), lose(&mut q, 6)), (None, None));
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
    let left = |chunks, bytes| flight::Left { chunks, bytes };
    assert_eq!(q.flight.lose(Cause::PathGone, on(FIRST)), left(1, 100));
    assert_eq!(q.flight.counts(), (200, 2, 1));
    assert_eq!(q.flight.next_marked(None), Some(Tsn(3)));
    assert_eq!(q.flight.lose(Cause::PathGone, on(SECOND)), left(2, 200));
    assert_eq!(q.flight.counts(), (0, 0, 3));
    assert_eq!(q.flight.lose(Cause::PathGone, |_| true), left(0, 0));
    assert_eq!(q.flight.next_marked(None), Some(Tsn(2)));
    q.flight.leave_paths(|p| p == SECOND);
    let path = |tsn| q.flight.get(Tsn(tsn)).and_then(Sent::path);
    assert_eq!((path(1), path(2)), (Some(FIRST), None));
}

/// What each way out of flight does to T3-rtx, to the round trip that is measured and to CUC, of three chunks of which the
/// first goes.
#[test]
fn a_chunk_leaves_flight_by_cause() {
    let now = ms(100);
    type Leave = fn(&mut Sending);
    // cause; T3-rtx runs for, until; measured; CUC awaits
    type Row = (&'static str, Leave, u32, u64, bool, Option<u32>);
    let rows: [Row; 9] = [
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
            "path gone",
            |q| {
                q.flight.lose(Cause::PathGone, first);
            },
            2,
            1000,
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
        q.flight.check().expect(name);
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
    assert!(!q.flight.renege(ms(5), Tsn(1), Some(RTO)), "it was not reported");
    assert!(q.flight.renege(ms(5), Tsn(2), Some(RTO)));
    assert_eq!((q.flight.counts(), q.flight.size_on(FIRST)), ((200, 2, 0), 232));
    // its path is gone
    assert!(q.flight.renege(ms(5), Tsn(3), None));
    assert_eq!(q.flight.counts(), (200, 2, 1));
    q.flight.check().expect("in step");
    // what it promised to keep stays acknowledged
    q.flight.acknowledge(Tsn(2));
    q.flight.release(Tsn(2));
    assert_eq!((q.flight.held(), q.flight.buffered()), (300, 200));
    assert!(!q.flight.renege(ms(6), Tsn(2), Some(RTO)));
}

#[test]
fn a_message_lies_between_its_ends() {
    let mut q = Sending::new();
    for len in [100, 2500, 100, 1500] {
        q.push(0, len, SendOptions::default());
    }
    for _ in 0..6 {
        q.send(FIRST);
    }
    let around = |q: &Sending, tsn| q.flight.message_around(Tsn(tsn)).map(|(f, l, e)| (f.0, l.0, e));
    assert_eq!(around(&q, 1), Some((1, 1, true)));
    for tsn in 2..=4 {
        assert_eq!(around(&q, tsn), Some((2, 4, true)));
    }
    assert_eq!(around(&q, 6), Some((6, 6, false)), "500 bytes wait");
    assert_eq!(around(&q, 7), None);
    // what was acknowledged is gone
    q.flight.acknowledge_next();
    q.flight.acknowledge_next();
    assert_eq!(around(&q, 4), Some((3, 4, true)));
    // the rest of the last one is given up, and a TSN ends it
    assert_eq!(q.buffered(), 1500 + 100 + 1500);
    let end = q.queue.end_partly_sent().expect("500 bytes wait");
    q.flight.skip(end);
    assert_eq!((q.buffered(), q.flight.next_tsn()), (2600, Tsn(8)));
    assert_eq!(around(&q, 7), Some((6, 7, true)));
    assert!(q.queue.end_partly_sent().is_none());
    assert_eq!(q.flight.abandon(Tsn(6)), Some(1000));
    assert_eq!(q.buffered(), 1600);
    assert_eq!(q.flight.counts(), (1600, 3, 0));
}

#[test]
fn what_makes_room_is_the_oldest_of_the_lowest_priority() {
    let mut q = Sending::new();
    for (len, priority) in [(1500, 7), (100, 9), (200, 2), (300, 9), (400, 5)] {
        q.push(0, len, prioritised(priority));
    }
    q.send(FIRST);
    let five = Policy::Priority(5);
    // 9 and 9 wait; 7 is half sent
    assert_eq!(q.queue.bytes_below(five), 400);
    assert_eq!(q.queue.bytes_below(Policy::Full), 1000);
    assert_eq!(q.queue.lowest_below(five), Some(0));
    assert_eq!(q.queue.lowest_below(Policy::Priority(9)), None);
    assert_eq!(q.queue.unsent_policy(1), Some(Policy::Priority(2)));
    assert_eq!(
        (q.queue.next_unsent(), q.queue.partly_sent()),
        (None, Some(Policy::Priority(7)))
    );
    assert_eq!(q.queue.remove_unsent(0), Some((0, 0)));
    assert_eq!(q.buffered(), 2400);
    assert_eq!(q.queue.lowest_below(five), Some(1));
    let to_arrive = |q: &Sending| -> Vec<u32> { q.flight.to_arrive().map(|(tsn, _)| tsn.0).collect() };
    assert_eq!(to_arrive(&q), [1]);
    q.send(FIRST);
    assert_eq!(
        (q.queue.next_unsent(), q.queue.partly_sent()),
        (Some(Policy::Priority(2)), None)
    );
    // once all of it has arrived there is nothing to give up
    q.flight.acknowledge(Tsn(1));
    assert_eq!(to_arrive(&q), [1]);
    q.flight.acknowledge(Tsn(2));
    assert_eq!(to_arrive(&q), []);
}

#[test]
fn what_is_abandoned_does_not_arrive() {
    let mut q = Sending::new();
    for priority in [3, 8, 6, 8] {
        q.push(0, 100, prioritised(priority));
        q.send(FIRST);
    }
    for (tsn, left) in [(2, 3), (4, 2), (3, 1), (1, 0)] {
        assert_eq!(q.flight.abandon(Tsn(tsn)), Some(100));
        assert_eq!(q.flight.to_arrive().count(), left);
    }
    assert_eq!((q.buffered(), q.flight.counts()), (0, (0, 0, 0)));
}

#[test]
fn a_policy_ends_at_its_time_and_at_its_number() {
    let until = Policy::new(
        ms(100),
        Reliability::Timed {
            lifetime: Duration::from_millis(50),
        },
    );
    assert_eq!(until, Policy::Until(ms(150)));
    let before = ms(150) - Duration::from_nanos(1);
    for (now, over) in [(before, false), (ms(150), true)] {
        assert_eq!(until.is_expired(now), over);
        assert_eq!(until.forbids_retransmission(now, 0), over);
    }
    let twice = Policy::new(ms(0), Reliability::Retransmissions { limit: 2 });
    assert!(!twice.forbids_retransmission(ms(9), 1) && twice.forbids_retransmission(ms(9), 2));
    assert!(!twice.is_expired(ms(9)));
    let four = Policy::Priority(4);
    assert!(!four.is_expired(Instant::MAX) && !four.forbids_retransmission(Instant::MAX, u32::MAX));
    let below = |other| four.priority_below(other);
    assert_eq!(below(Policy::Priority(4)), None);
    assert_eq!(below(Policy::Priority(3)), Some(4));
    assert_eq!(below(Policy::Full), Some(4));
    assert_eq!(Policy::Full.priority_below(four), None);
}

#[test]
fn what_is_held_back_is_of_the_streams_that_are_reset_and_not_begun() {
    let mut q = Sending::new();
    for (stream, len) in [(1, 1500), (1, 10), (2, 20)] {
        q.push(stream, len, SendOptions::default());
    }
    q.send(FIRST);
    q.queue.hold(vec![1]);
    assert!(q.queue.holds_messages());
    assert_eq!(q.queue.unsent_bytes(), 520);
    q.push(1, 30, SendOptions::default());
    q.push(3, 40, SendOptions::default());
    assert_eq!(q.queue.unsent_bytes(), 560);
    q.queue.hold(Vec::new());
    assert_eq!(q.queue.unsent_bytes(), 500, "all but what is begun");
    assert_eq!(q.buffered(), 1600);
    q.queue.release();
    assert_eq!(q.queue.unsent_bytes(), 600);
    assert!(!q.queue.holds_messages() && !q.flight.is_empty());
    let order: Vec<_> = core::iter::from_fn(|| q.queue.cut(false))
        .map(|c| c.data.len())
        .collect();
    assert_eq!(order, [500, 10, 30, 20, 40]);
}

#[test]
fn what_was_not_delivered_comes_back_begun_or_not() {
    let mut q = Sending::new();
    for (stream, len) in [(1, 2500), (2, 100), (3, 1500), (4, 50)] {
        q.push(stream, len, SendOptions::default());
    }
    for _ in 0..5 {
        q.send(FIRST);
    }
    // the second has arrived in whole, of the first one chunk has
    q.flight.acknowledge(Tsn(2));
    q.flight.acknowledge(Tsn(4));
    let (begun, unsent) = messages::take(&mut q.flight, &mut q.queue);
    let shape = |messages: &[crate::sctp::Message]| -> Vec<(u16, Vec<usize>)> {
        let parts = |m: &crate::sctp::Message| m.parts.iter().map(Data::len).collect();
        messages.iter().map(|m| (m.stream_id, parts(m))).collect()
    };
    assert_eq!(shape(&begun), [(1, vec![1000, 1000, 500]), (3, vec![1000, 500])]);
    assert_eq!(shape(&unsent), [(4, vec![50])]);
    assert!(begun.iter().chain(&unsent).all(|m| m.first && m.last));
    assert!(q.queue.is_empty() && q.flight.is_empty());
    assert_eq!((q.buffered(), q.flight.counts()), (0, (0, 0, 0)));
}
