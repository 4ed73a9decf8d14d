//! The send queue: numbers, sizes and what is left.

use super::*;
use crate::sctp::Reliability;
use crate::sctp::loss::LossDetector;
use crate::sctp::options::Policy;
use crate::sctp::outbound::{ChunkState, Outbound, chunk_size};
use segue_wire::Ssn;

struct Queue {
    outbound: Outbound,
    detector: LossDetector,
}

impl Queue {
    fn new() -> Self {
        Self {
            outbound: Outbound::new(Tsn(1), 1000),
            detector: LossDetector::new(&Config::default()),
        }
    }

    fn push(&mut self, stream: u16, len: u32, options: SendOptions) {
        let data = Data::Synthetic { offset: 0, len };
        self.outbound.push(ms(0), stream, data, options);
    }

    fn send(&mut self, path: PathId) -> (u32, u32, u16, bool, bool) {
        let transmission = self.detector.on_sent(ms(0));
        let (tsn, s) = self
            .outbound
            .send_next(transmission, path, false)
            .expect("it waits");
        (tsn.0, s.len(), s.ssn.0, s.beginning, s.ending)
    }

    /// Chunks of 100 bytes on these paths.
    fn flight(paths: &[PathId]) -> Self {
        let mut q = Self::new();
        for &path in paths {
            q.push(0, 100, SendOptions::default());
            q.send(path);
        }
        q
    }

    /// Outstanding bytes and chunks, and those marked.
    fn books(&self) -> (u32, u32, u32) {
        let o = &self.outbound;
        (o.outstanding_bytes, o.outstanding_chunks, o.marked)
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
    let mut q = Queue::new();
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
    assert_eq!((q.outbound.unsent_bytes(), q.outbound.buffered), (3012, 3012));
    assert_eq!(
        (q.outbound.streams_needed(), q.outbound.next_len()),
        (4, Some(1000))
    );
    assert_eq!(q.send(FIRST), (1, 1000, 0, true, false));
    assert_eq!(
        (q.outbound.unsent_bytes(), q.outbound.next_len()),
        (2012, Some(1000))
    );
    assert!(q.outbound.is_amid_message_of(&[3]) && !q.outbound.is_amid_message_of(&[1]));
    assert_eq!(q.send(FIRST), (2, 1000, 0, false, true));
    assert_eq!(q.send(FIRST), (3, 1000, 1, true, false));
    assert_eq!(q.outbound.next_len(), Some(1));
    assert!(!q.outbound.is_last(1));
    assert_eq!(q.send(FIRST), (4, 1, 1, false, true));
    assert_eq!(q.outbound.streams_needed(), 2);
    assert_eq!(q.send(FIRST), (5, 5, 0, true, true));
    assert!(q.outbound.is_last(6) && !q.outbound.is_last(5));
    assert_eq!(q.send(FIRST), (6, 6, 0, true, true));
    assert!(!q.outbound.has_unsent() && q.outbound.next_len().is_none());
    assert_eq!((q.outbound.streams_needed(), q.outbound.next_tsn()), (0, Tsn(7)));
    assert_eq!(q.books(), (3012, 6, 0));
    assert_eq!(q.outbound.next_ssn, [0, 1, 0, 2].map(Ssn));
    q.outbound.reset_ssns(&[3]);
    assert_eq!(q.outbound.next_ssn, [0, 1, 0, 0].map(Ssn));
    q.outbound.reset_ssns(&[]);
    assert_eq!(q.outbound.next_ssn, [Ssn(0); 4]);
}

#[test]
fn a_chunk_is_as_large_as_its_header_data_and_padding() {
    let sizes = [1, 4, 5, 1000, 1001].map(chunk_size);
    assert_eq!(sizes, [20, 20, 24, 1016, 1020]);
}

#[test]
fn the_books_follow_the_states_of_the_chunks() {
    let mut q = Queue::flight(&[FIRST; 5]);
    assert_eq!(q.books(), (500, 5, 0));
    let change = |q: &mut Queue, tsn, state| q.outbound.set_state(Tsn(tsn), state).map(|s| s.0);
    use ChunkState as S;
    assert_eq!(change(&mut q, 4, S::Marked), Some(S::Outstanding));
    assert_eq!((q.books(), q.outbound.marked_from), ((400, 4, 1), Tsn(1)));
    assert_eq!(q.outbound.next_marked(None), Some(Tsn(4)));
    assert_eq!(q.outbound.marked_from, Tsn(4));
    change(&mut q, 2, S::Marked);
    assert_eq!((q.books(), q.outbound.marked_from), ((300, 3, 2), Tsn(2)));
    assert_eq!(q.outbound.next_marked(Some(Tsn(3))), Some(Tsn(4)));
    assert_eq!(q.outbound.next_marked(Some(Tsn(1))), Some(Tsn(2)));
    assert_eq!(q.outbound.next_marked(Some(Tsn(5))), None);
    assert_eq!(change(&mut q, 2, S::Outstanding), Some(S::Marked));
    assert_eq!(q.books(), (400, 4, 1));
    assert_eq!(change(&mut q, 3, S::GapAcked), Some(S::Outstanding));
    assert_eq!(q.books(), (300, 3, 1));
    assert_eq!(change(&mut q, 5, S::Abandoned), Some(S::Outstanding));
    assert_eq!(change(&mut q, 5, S::Marked), Some(S::Abandoned));
    assert_eq!(q.books(), (200, 2, 1));
    assert_eq!(change(&mut q, 6, S::Marked), None);
    // off the front
    for (tsn, books) in [(1, (100, 1, 1)), (2, (0, 0, 1)), (3, (0, 0, 1)), (4, (0, 0, 0))] {
        assert_eq!(q.outbound.pop_acked().map(|p| p.0), Some(Tsn(tsn)));
        assert_eq!(q.books(), books);
        assert_eq!(q.outbound.buffered, 500 - 100 * tsn as usize);
    }
    assert_eq!(q.outbound.marked_from, Tsn(5));
    assert_eq!(q.outbound.cumulative_tsn_ack(), Tsn(4));
}

#[test]
fn marking_takes_what_is_outstanding_and_goes_back_to_the_first() {
    let mut q = Queue::flight(&[FIRST, SECOND, FIRST, SECOND]);
    q.outbound.set_state(Tsn(1), ChunkState::GapAcked);
    assert_eq!(q.outbound.mark_where(|s| s.path == Some(FIRST)), 100);
    assert_eq!(q.books(), (200, 2, 1));
    assert_eq!(q.outbound.next_marked(None), Some(Tsn(3)));
    assert_eq!(q.outbound.mark_where(|s| s.path == Some(SECOND)), 200);
    assert_eq!((q.books(), q.outbound.marked_from), ((0, 0, 3), Tsn(2)));
    assert_eq!(q.outbound.mark_where(|_| true), 0);
    assert_eq!(q.outbound.next_marked(None), Some(Tsn(2)));
}

#[test]
fn t3_rtx_runs_for_the_lowest_tsn_or_for_what_was_sent_first() {
    let mut q = Queue::flight(&[FIRST, SECOND, FIRST, FIRST]);
    let again = q
        .detector
        .on_sent_again(ms(5), q.outbound.get(Tsn(1)).unwrap().transmission, false);
    q.outbound.get_mut(Tsn(1)).unwrap().transmission = again;
    let o = &mut q.outbound;
    assert_eq!(o.timed_on(FIRST, Tsn(0), false), Some(Tsn(1)));
    assert_eq!(o.timed_on(FIRST, Tsn(2), false), Some(Tsn(3)));
    assert_eq!(o.timed_on(FIRST, Tsn(4), false), Some(Tsn(4)));
    assert_eq!(o.timed_on(SECOND, Tsn(3), false), None);
    assert_eq!(o.timed_on(FIRST, Tsn(4), true), Some(Tsn(3)));
    o.set_state(Tsn(3), ChunkState::GapAcked);
    assert_eq!(o.timed_on(FIRST, Tsn(0), true), Some(Tsn(4)));
    o.set_state(Tsn(4), ChunkState::Marked);
    assert_eq!(o.timed_on(FIRST, Tsn(2), true), Some(Tsn(1)));
    assert_eq!(o.timed_on(FIRST, Tsn(2), false), None);
    o.forget_paths(|p| p == SECOND);
    assert_eq!(o.get(Tsn(2)).unwrap().path, None);
    assert_eq!(o.get(Tsn(1)).unwrap().path, Some(FIRST));
}

#[test]
fn a_message_lies_between_its_ends() {
    let mut q = Queue::new();
    for len in [100, 2500, 100, 1500] {
        q.push(0, len, SendOptions::default());
    }
    for _ in 0..6 {
        q.send(FIRST);
    }
    let around = |q: &Queue, tsn| q.outbound.message_around(Tsn(tsn)).map(|(f, l, e)| (f.0, l.0, e));
    assert_eq!(around(&q, 1), Some((1, 1, true)));
    for tsn in 2..=4 {
        assert_eq!(around(&q, tsn), Some((2, 4, true)));
    }
    assert_eq!(around(&q, 6), Some((6, 6, false)), "500 bytes wait");
    assert_eq!(around(&q, 7), None);
    // what was acknowledged is gone
    q.outbound.pop_acked();
    q.outbound.pop_acked();
    assert_eq!(around(&q, 4), Some((3, 4, true)));
    // the rest of the last one is given up, and a TSN ends it
    assert_eq!(q.outbound.buffered, 1500 + 100 + 1500);
    assert_eq!(q.outbound.end_partly_sent(), Some((0, 0)));
    assert_eq!((q.outbound.buffered, q.outbound.next_tsn()), (2600, Tsn(8)));
    assert_eq!(around(&q, 7), Some((6, 7, true)));
    assert_eq!(q.outbound.end_partly_sent(), None);
    let abandoned = q.outbound.abandon(Tsn(6));
    assert_eq!(
        abandoned,
        Some((ChunkState::Outstanding, Some(FIRST), 1016, 1000))
    );
    assert_eq!(q.outbound.buffered, 1600);
    assert_eq!(q.books(), (1600, 3, 0));
}

#[test]
fn what_makes_room_is_the_oldest_of_the_lowest_priority() {
    let mut q = Queue::new();
    for (len, priority) in [(1500, 7), (100, 9), (200, 2), (300, 9), (400, 5)] {
        q.push(0, len, prioritised(priority));
    }
    q.send(FIRST);
    let o = &mut q.outbound;
    let five = Policy::Priority(5);
    // 9 and 9 wait; 7 is half sent
    assert_eq!(o.bytes_below(five, false), 400);
    assert_eq!(o.bytes_below(five, true), 1400);
    assert_eq!(o.bytes_below(Policy::Full, false), 1000);
    assert_eq!(o.lowest_unsent_below(five), Some(0));
    assert_eq!(o.lowest_sent_below(five), Some(Tsn(1)));
    assert_eq!(o.lowest_sent_below(Policy::Priority(7)), None);
    assert_eq!(o.lowest_unsent_below(Policy::Priority(9)), None);
    assert_eq!(o.unsent_policy(1), Some(Policy::Priority(2)));
    assert_eq!(
        (o.next_unsent(), o.partly_sent()),
        (None, Some(Policy::Priority(7)))
    );
    assert_eq!(o.remove_unsent(0), Some((0, 0)));
    assert_eq!(o.buffered, 2400);
    assert_eq!(o.lowest_unsent_below(five), Some(1));
    q.send(FIRST);
    let o = &mut q.outbound;
    assert_eq!(
        (o.next_unsent(), o.partly_sent()),
        (Some(Policy::Priority(2)), None)
    );
    // once all of it has arrived there is nothing to give up
    o.set_state(Tsn(1), ChunkState::GapAcked);
    assert_eq!(o.lowest_sent_below(five), Some(Tsn(1)));
    o.set_state(Tsn(2), ChunkState::GapAcked);
    assert_eq!(o.lowest_sent_below(five), None);
}

#[test]
fn of_those_sent_the_oldest_of_the_lowest_priority_goes_first() {
    let mut q = Queue::new();
    for priority in [3, 8, 6, 8] {
        q.push(0, 100, prioritised(priority));
        q.send(FIRST);
    }
    let o = &mut q.outbound;
    let one = Policy::Priority(1);
    assert_eq!(o.bytes_below(Policy::Priority(5), true), 300);
    for (tsn, bytes) in [(2, 400), (4, 300), (3, 200), (1, 100)] {
        assert_eq!(o.bytes_below(one, true), bytes);
        assert_eq!(o.lowest_sent_below(one), Some(Tsn(tsn)));
        o.abandon(Tsn(tsn));
    }
    assert_eq!(o.lowest_sent_below(one), None);
    assert_eq!((o.buffered, q.books()), (0, (0, 0, 0)));
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
    let mut q = Queue::new();
    for (stream, len) in [(1, 1500), (1, 10), (2, 20)] {
        q.push(stream, len, SendOptions::default());
    }
    q.send(FIRST);
    q.outbound.hold(vec![1]);
    assert!(q.outbound.holds_messages());
    assert_eq!(q.outbound.unsent_bytes(), 520);
    q.push(1, 30, SendOptions::default());
    q.push(3, 40, SendOptions::default());
    assert_eq!(q.outbound.unsent_bytes(), 560);
    q.outbound.hold(Vec::new());
    assert_eq!(q.outbound.unsent_bytes(), 500, "all but what is begun");
    assert_eq!(q.outbound.buffered, 1600);
    q.outbound.release();
    assert_eq!(q.outbound.unsent_bytes(), 600);
    assert!(!q.outbound.holds_messages() && q.outbound.has_sent());
    let order: Vec<_> = q.outbound.unsent.iter().map(|m| m.data.len()).collect();
    assert_eq!(order, [1500, 10, 30, 20, 40]);
}

#[test]
fn what_was_not_delivered_comes_back_begun_or_not() {
    let mut q = Queue::new();
    for (stream, len) in [(1, 2500), (2, 100), (3, 1500), (4, 50)] {
        q.push(stream, len, SendOptions::default());
    }
    for _ in 0..5 {
        q.send(FIRST);
    }
    // the second has arrived in whole, of the first one chunk has
    q.outbound.set_state(Tsn(2), ChunkState::GapAcked);
    q.outbound.set_state(Tsn(4), ChunkState::GapAcked);
    let (begun, unsent) = q.outbound.take_messages();
    let shape = |messages: &[crate::sctp::Message]| -> Vec<(u16, Vec<usize>)> {
        let parts = |m: &crate::sctp::Message| m.parts.iter().map(Data::len).collect();
        messages.iter().map(|m| (m.stream_id, parts(m))).collect()
    };
    assert_eq!(shape(&begun), [(1, vec![1000, 1000, 500]), (3, vec![1000, 500])]);
    assert_eq!(shape(&unsent), [(4, vec![50])]);
    assert!(begun.iter().chain(&unsent).all(|m| m.first && m.last));
    assert!(q.outbound.is_empty());
    assert_eq!((q.outbound.buffered, q.books()), (0, (0, 0, 0)));
}
