//! What waits, and the messages of what was sent.

use super::*;
use crate::sctp::lengths::chunk_size;
use crate::sctp::options::Policy;
use crate::sctp::sender::messages::take;

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
    assert_eq!(
        (q.queue.streams_needed(), q.queue.next_len(1000)),
        (4, Some(1000))
    );
    assert_eq!(q.send(FIRST), (1, 1000, 0, true, false));
    assert_eq!(
        (q.queue.unsent_bytes(), q.queue.next_len(1000)),
        (2012, Some(1000))
    );
    assert!(q.queue.is_amid_message_of(&[3]) && !q.queue.is_amid_message_of(&[1]));
    assert_eq!(q.send(FIRST), (2, 1000, 0, false, true));
    assert_eq!(q.send(FIRST), (3, 1000, 1, true, false));
    assert_eq!(q.queue.next_len(1000), Some(1));
    assert!(!q.queue.is_last(1));
    assert_eq!(q.send(FIRST), (4, 1, 1, false, true));
    assert_eq!(q.queue.streams_needed(), 2);
    assert_eq!(q.send(FIRST), (5, 5, 0, true, true));
    assert!(q.queue.is_last(6) && !q.queue.is_last(5));
    assert_eq!(q.send(FIRST), (6, 6, 0, true, true));
    assert!(!q.queue.has_unsent() && q.queue.next_len(1000).is_none());
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
    q.flight.advertise(5000);
    let room = q.flight.peer_rwnd();
    q.flight.abandon(Tsn(6));
    assert_eq!((q.buffered(), q.flight.peer_rwnd() - room), (1600, 1000));
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
    assert_eq!(to_arrive(&q), [0_u32; 0]);
}

#[test]
fn what_is_abandoned_does_not_arrive() {
    let mut q = Sending::new();
    for priority in [3, 8, 6, 8] {
        q.push(0, 100, prioritised(priority));
        q.send(FIRST);
    }
    for (tsn, left) in [(2, 3), (4, 2), (3, 1), (1, 0)] {
        q.flight.abandon(Tsn(tsn));
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
    let order: Vec<_> = core::iter::from_fn(|| q.queue.cut(1000, false))
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
    let (begun, unsent) = take(&mut q.flight, &mut q.queue);
    let shape = |messages: &[Message]| -> Vec<(u16, Vec<usize>)> {
        let parts = |m: &Message| m.parts.iter().map(Data::len).collect();
        messages.iter().map(|m| (m.stream_id, parts(m))).collect()
    };
    assert_eq!(shape(&begun), [(1, vec![1000, 1000, 500]), (3, vec![1000, 500])]);
    assert_eq!(shape(&unsent), [(4, vec![50])]);
    assert!(begun.iter().chain(&unsent).all(|m| m.first && m.last));
    assert!(q.queue.is_empty() && q.flight.is_empty());
    assert_eq!((q.buffered(), q.flight.counts()), (0, (0, 0, 0)));
}
