use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use segue_wire::Data;
fn chunk(tsn: u32, ssn: u16, flags: &str, offset: u64) -> DataChunk {
    DataChunk {
        tsn: Tsn(tsn),
        stream_id: 1,
        ssn: Ssn(ssn),
        payload_protocol_id: 0,
        unordered: flags.contains('U'),
        beginning: flags.contains('B'),
        ending: flags.contains('E'),
        immediate: false,
        data: Data::Synthetic { offset, len: 10 },
    }
}

fn offsets(message: &Message) -> Vec<u64> {
    message
        .parts
        .iter()
        .map(|p| match p {
            Data::Synthetic { offset, .. } => *offset,
            Data::Bytes(_) => u64::MAX,
        })
        .collect()
}

#[test]
fn fragments_in_any_order_give_the_message_in_order() {
    let tsns = [u32::MAX - 1, u32::MAX, 0, 1];
    let flags = ["B", "", "", "E"];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        let mut r = Reassembly::new(&Config::default());
        for (n, &i) in order.iter().enumerate() {
            assert!(r.pop().is_none(), "delivered after {n} of 4 fragments");
            r.insert(chunk(tsns[i], 0, flags[i], 10 * i as u64));
        }
        assert_eq!(offsets(&r.pop().unwrap()), [0, 10, 20, 30]);
        assert_eq!(r.load.bytes(), 0);
    }
}

#[test]
fn ordered_messages_wait_for_their_predecessor_and_unordered_ones_do_not() {
    let mut r = Reassembly::new(&Config::default());
    r.insert(chunk(2, 1, "BE", 100));
    assert!(r.pop().is_none());
    r.insert(chunk(3, 0, "UBE", 200));
    assert_eq!(offsets(&r.pop().unwrap()), [200]);
    r.insert(chunk(1, 0, "BE", 0));
    assert_eq!(offsets(&r.pop().unwrap()), [0]);
    assert_eq!(offsets(&r.pop().unwrap()), [100]);
}

#[test]
fn a_forward_tsn_looks_at_nothing_but_what_it_delivers_however_many_entries_it_has() {
    let mut r = Reassembly::new(&Config::default());
    // SSN 0 is missing, and every second one after it
    for n in 1..=1000 {
        r.insert(chunk(2 * n, (2 * n) as u16, "BE", 0));
    }
    // the same stream again and again, each time for one message or for none
    let skipped = (0..10_000_u16).map(|n| (1, Ssn(2 * (n / 100))));
    assert_eq!(r.forward(Tsn(1), skipped), None);
    let delivered = core::iter::from_fn(|| r.pop()).count();
    assert_eq!(delivered, 99);
    assert!(
        r.delivery.looked_at() <= 10_000 + 99,
        "{} looked at",
        r.delivery.looked_at()
    );
    // across the end of the number space
    let mut r = Reassembly::new(&Config::default());
    let far = [0x7000, 0xe000, 0xfffd].map(|ssn| (1, Ssn(ssn)));
    r.forward(Tsn(1), far.into_iter());
    for (tsn, ssn) in [(4, 1), (3, 0), (2, 0xffff), (5, 3)] {
        r.insert(chunk(tsn, ssn, "BE", tsn.into()));
    }
    r.forward(Tsn(2), core::iter::once((1, Ssn(1))));
    let order: Vec<u64> = core::iter::from_fn(|| r.pop())
        .flat_map(|m| offsets(&m))
        .collect();
    assert_eq!(order, [2, 3, 4]);
}

#[test]
fn adjacent_fragments_of_different_messages_are_not_joined() {
    let mut r = Reassembly::new(&Config::default());
    r.insert(chunk(1, 0, "B", 0));
    r.insert(chunk(2, 1, "E", 10));
    assert!(r.pop().is_none());
    assert_eq!(r.load.bytes(), 20);
}

#[test]
fn a_fragment_is_joined_to_what_came_before_it_only_if_both_say_that_they_are_of_one_message() {
    // what follows came first: of another message; the beginning of one; behind an end
    let cases = [
        (chunk(2, 1, "E", 20), chunk(1, 0, "B", 10)),
        (chunk(2, 0, "B", 20), chunk(1, 0, "B", 10)),
        (chunk(2, 0, "", 20), chunk(1, 0, "E", 10)),
    ];
    // and what makes a message of one of the two
    let completing = [
        (chunk(3, 1, "E", 30), None),
        (chunk(3, 0, "E", 30), Some(vec![20, 30])),
        (chunk(0, 0, "B", 0), Some(vec![0, 10])),
    ];
    for ((second, first), (last, message)) in cases.into_iter().zip(completing) {
        let mut r = Reassembly::new(&Config::default());
        for chunk in [second, first] {
            r.insert(chunk);
            assert!(!r.has_ready());
        }
        r.insert(last);
        assert_eq!(r.pop().map(|m| offsets(&m)), message);
    }
}

#[test]
fn parts_that_adjoin_are_joined_with_little_copying_and_the_message_is_the_same() {
    let real = |tsn: u32, flags: &str| DataChunk {
        data: Data::Bytes(vec![tsn as u8; 10].into()),
        ..chunk(tsn, 0, flags, 0)
    };
    let mut r = Reassembly::new(&Config::default());
    r.insert(real(1, "B"));
    for tsn in 2..=100 {
        r.insert(real(tsn, ""));
        if tsn % 10 == 0 {
            r.join_parts();
            // each of them at least twice as long as the next
            assert!(r.load.chunks() <= 7, "{} parts of {tsn}", r.load.chunks());
            assert_eq!((r.load.bytes(), r.check()), (10 * tsn as usize, Ok(())));
        }
    }
    r.insert(real(101, "E"));
    let bytes: Vec<u8> = r
        .pop()
        .into_iter()
        .flat_map(|m| m.parts)
        .fold(Vec::new(), |mut all, part| {
            part.emit(&mut all);
            all
        });
    assert_eq!(bytes, (1..=101).flat_map(|tsn| [tsn; 10]).collect::<Vec<u8>>());
    assert_eq!((r.load.bytes(), r.load.chunks()), (0, 0));
    // synthetic bytes that do not adjoin stay apart
    let mut r = Reassembly::new(&Config::default());
    for (tsn, offset, flags) in [(1, 0, "B"), (2, 10, ""), (3, 25, ""), (4, 35, "E")] {
        r.insert(chunk(tsn, 0, flags, offset));
        r.join_parts();
    }
    assert_eq!(r.pop().map(|m| offsets(&m)), Some(vec![0, 25, 35]));
}

#[test]
fn what_is_held_is_counted_once_and_not_lost_when_something_else_is_to_be_held() {
    let mut r = Reassembly::new(&Config::default());
    r.hold(Tsn(1), Until::StreamsReset(vec![1]));
    for (tsn, ssn) in [(2, 0), (3, 1), (4, 2)] {
        r.insert(chunk(tsn, ssn, "BE", u64::from(tsn)));
    }
    assert_eq!((r.load.bytes(), r.check()), (30, Ok(())));
    r.hold(Tsn(3), Until::StreamsReset(Vec::new()));
    assert_eq!((r.load.bytes(), r.check()), (30, Ok(())));
    // 4 alone waits
    assert_eq!(offsets(&r.pop().unwrap()), [2]);
    assert_eq!(offsets(&r.pop().unwrap()), [3]);
    assert!(r.pop().is_none());
    r.release();
    assert_eq!(offsets(&r.pop().unwrap()), [4]);
    assert_eq!((r.load.bytes(), r.check(), r.held_bytes(0)), (0, Ok(()), 0));
}

#[test]
fn after_a_new_beginning_streams_go_on_at_0_whatever_was_held() {
    let mut r = Reassembly::new(&Config::default());
    for tsn in 1..=3 {
        r.insert(chunk(tsn, tsn as u16 - 1, "BE", u64::from(tsn)));
    }
    // sent after a reset of the stream: its numbers begin at 0
    r.hold(Tsn(4), Until::StreamsReset(vec![1]));
    r.insert(chunk(6, 1, "BE", 6));
    r.insert(chunk(5, 0, "BE", 5));
    r.begin_anew();
    for tsn in 1000..=1001 {
        r.insert(chunk(tsn, tsn as u16 - 1000, "BE", u64::from(tsn)));
    }
    let came: Vec<_> = core::iter::from_fn(|| r.pop())
        .flat_map(|m| offsets(&m))
        .collect();
    assert_eq!(came, [1, 2, 3, 5, 6, 1000, 1001]);
    assert_eq!((r.load.bytes(), r.check()), (0, Ok(())));
}

#[test]
fn what_is_wrong_with_what_is_held_is_found() {
    // counted wrongly
    let mut r = Reassembly::new(&Config::default());
    r.insert(chunk(1, 0, "B", 10));
    r.load = Load::default();
    assert!(r.check().is_err());
    // a fragment of what was given up
    let mut r = Reassembly::new(&Config::default());
    r.forward(Tsn(2), core::iter::empty());
    r.insert(chunk(2, 0, "B", 10));
    assert!(r.check().is_err());
    // a stream that has gone on beyond a chunk that waits
    let mut r = Reassembly::new(&Config::default());
    r.hold(Tsn(0), Until::AssociationReset);
    r.insert(chunk(1, 0, "BE", 10));
    assert_eq!(r.check(), Ok(()));
    r.pass_over(Tsn(2), core::iter::once((1, Ssn(1))));
    assert!(r.check().is_err());
}

/// A message on stream 1 (SSN 0), one given up (1), one more (2), while a reset of the association is waited for.
fn forwarded_while_held() -> Reassembly {
    let mut r = Reassembly::new(&Config::default());
    r.hold(Tsn(0), Until::AssociationReset);
    r.insert(chunk(1, 0, "BE", 1));
    assert_eq!(r.forward(Tsn(2), core::iter::once((1, Ssn(1)))), None);
    r.insert(chunk(3, 2, "BE", 3));
    assert!(!r.has_ready());
    r
}

/// Where the chunks that can be taken begin.
fn taken(r: &mut Reassembly) -> Vec<u64> {
    core::iter::from_fn(|| r.pop())
        .flat_map(|m| offsets(&m))
        .collect()
}

#[test]
fn what_is_given_up_while_chunks_wait_is_passed_over_in_its_turn() {
    // the reset did not take place
    let mut r = forwarded_while_held();
    r.release();
    r.insert(chunk(4, 3, "BE", 4));
    assert_eq!(taken(&mut r), [1, 3, 4]);
    // it did, behind it all or before it all, whether or not what goes on was taken in already
    for (next_tsn, ssn) in [(4, 0), (1, 3)] {
        for takes_in in [false, true] {
            let mut r = forwarded_while_held();
            if takes_in {
                assert_eq!(r.take_what_goes_on(Tsn(3)), (false, None));
                assert_eq!(taken(&mut r), [1, 3]);
            }
            assert_eq!(r.release_around(Tsn(next_tsn)), [None, None]);
            r.insert(chunk(4, ssn, "BE", 4));
            let rest: &[u64] = if takes_in { &[4] } else { &[1, 3, 4] };
            assert_eq!(taken(&mut r), rest, "{next_tsn}");
            assert_eq!((r.load.bytes(), r.check()), (0, Ok(())));
        }
    }
    // what another reset has wait is not forgotten
    let mut r = forwarded_while_held();
    assert_eq!(r.hold(Tsn(0), Until::AssociationReset), None);
    assert!(!r.has_ready());
    r.release();
    assert_eq!(taken(&mut r), [1, 3]);
}

#[test]
fn fragments_that_wait_are_given_up_with_their_message_and_no_others_are() {
    let mut r = Reassembly::new(&Config::default());
    r.insert(chunk(1, 0, "UB", 10));
    r.hold(Tsn(1), Until::AssociationReset);
    r.insert(chunk(2, 0, "UE", 20));
    r.insert(chunk(3, 0, "B", 30));
    // 4, its end, is lost
    assert_eq!(r.forward(Tsn(4), core::iter::once((1, Ssn(0)))), None);
    assert_eq!(r.take_what_goes_on(Tsn(4)), (false, None));
    assert_eq!(taken(&mut r), [10, 20]);
    assert_eq!((r.load.bytes(), r.check()), (0, Ok(())));
    // of one that is delivered in parts the user is told
    let config = Config {
        partial_delivery_point: Some(10),
        ..Config::default()
    };
    let mut r = Reassembly::new(&config);
    r.hold(Tsn(0), Until::AssociationReset);
    r.insert(chunk(1, 0, "B", 10));
    r.forward(Tsn(2), core::iter::once((1, Ssn(0))));
    assert_eq!(r.release(), Some(1));
    // streams that the peer resets have nothing to skip behind their reset, and fragments to lose
    let mut r = Reassembly::new(&Config::default());
    r.insert(chunk(2, 1, "BE", 2));
    r.hold(Tsn(2), Until::StreamsReset(vec![1]));
    r.insert(chunk(3, 0, "B", 3));
    r.insert(chunk(5, 1, "BE", 5));
    assert_eq!(r.forward(Tsn(4), core::iter::once((1, Ssn(0)))), None);
    assert_eq!(taken(&mut r), [2]);
    r.reset_streams(&[1]);
    r.release();
    r.insert(chunk(6, 0, "BE", 6));
    assert_eq!(taken(&mut r), [6, 5]);
    assert_eq!((r.load.bytes(), r.check()), (0, Ok(())));
}

/// Messages as their sender has them: stream, unordered, fragments.
type Messages = Vec<(u16, bool, usize)>;

/// Messages, and an order in which their chunks arrive.
fn arrivals() -> impl Strategy<Value = (Messages, Vec<usize>)> {
    let messages = vec((0..3_u16, any::<bool>(), 1..5_usize), 1..9);
    messages.prop_flat_map(|messages| {
        let chunks = messages.iter().map(|m| m.2).sum::<usize>();
        (
            Just(messages),
            Just((0..chunks).collect::<Vec<_>>()).prop_shuffle(),
        )
    })
}

/// The chunks of `messages` in the order of their TSNs, which go around the end of the number space, each with the index
/// of its message. Their offsets say which message and fragment they are.
fn cut(messages: &Messages) -> Vec<(usize, DataChunk)> {
    let (mut tsn, mut next_ssn) = (u32::MAX - 5, [u16::MAX; 3]);
    let mut chunks = Vec::new();
    for (index, &(stream_id, unordered, fragments)) in messages.iter().enumerate() {
        if !unordered {
            let ssn = &mut next_ssn[usize::from(stream_id)];
            *ssn = ssn.wrapping_add(1);
        }
        for fragment in 0..fragments {
            let flags = match (unordered, fragment == 0, fragment + 1 == fragments) {
                (true, true, true) => "UBE",
                (true, true, false) => "UB",
                (true, false, true) => "UE",
                (true, false, false) => "U",
                (false, true, true) => "BE",
                (false, true, false) => "B",
                (false, false, true) => "E",
                (false, false, false) => "",
            };
            let ssn = if unordered {
                0
            } else {
                next_ssn[usize::from(stream_id)]
            };
            let chunk = DataChunk {
                stream_id,
                ..chunk(tsn, ssn, flags, (100 * index + fragment) as u64)
            };
            chunks.push((index, chunk));
            tsn = tsn.wrapping_add(1);
        }
    }
    chunks
}

/// Which messages may be delivered once the chunks of `came` have come: those that are complete and, unless they are
/// unordered, have all before them in their stream complete.
fn deliverable(messages: &Messages, came: &[usize]) -> Vec<usize> {
    let complete = |m: &usize| came.iter().filter(|&c| c == m).count() == messages[*m].2;
    let precedes = |earlier: &usize, m: usize| !messages[*earlier].1 && messages[*earlier].0 == messages[m].0;
    let in_turn = |m: usize| {
        messages[m].1
            || (0..m)
                .filter(|earlier| precedes(earlier, m))
                .all(|e| complete(&e))
    };
    (0..messages.len())
        .filter(|m| complete(m) && in_turn(*m))
        .collect()
}

proptest! {
    #[test]
    fn whatever_order_chunks_come_in_each_message_is_delivered_once_whole_and_as_soon_as_its_turn_comes(
        (messages, order) in arrivals()
    ) {
        let chunks = cut(&messages);
        let config = Config { partial_delivery_point: Some(u32::MAX), ..Config::default() };
        let mut r = Reassembly::new(&config);
        let (mut came, mut delivered) = (Vec::new(), Vec::new());
        for arrival in order {
            let (message, chunk) = chunks[arrival].clone();
            came.push(message);
            r.insert(chunk);
            prop_assert_eq!(r.check(), Ok(()));
            while let Some(message) = r.pop() {
                let offsets = offsets(&message);
                let index = (offsets[0] / 100) as usize;
                let whole: Vec<u64> = (0..messages[index].2).map(|f| (100 * index + f) as u64).collect();
                prop_assert_eq!(offsets, whole);
                prop_assert!(message.is_complete());
                prop_assert_eq!((message.stream_id, message.unordered), (messages[index].0, messages[index].1));
                delivered.push(index);
            }
            let mut so_far = delivered.clone();
            so_far.sort_unstable();
            prop_assert_eq!(so_far, deliverable(&messages, &came));
            prop_assert_eq!(r.load.chunks(), came.len() - delivered.iter().map(|&m| messages[m].2).sum::<usize>());
        }
        for stream in 0..3 {
            let of_stream = |m: &&usize| messages[**m].0 == stream && !messages[**m].1;
            prop_assert!(delivered.iter().filter(of_stream).is_sorted(), "{:?}", delivered);
        }
        prop_assert_eq!((delivered.len(), r.held_bytes(0)), (messages.len(), 0));
    }

    #[test]
    fn delivered_in_parts_a_message_is_all_there_in_order_and_no_other_is_begun_in_between(
        (messages, order) in arrivals(), point in 10..30_u32
    ) {
        let chunks = cut(&messages);
        let config = Config { partial_delivery_point: Some(point), ..Config::default() };
        let mut r = Reassembly::new(&config);
        let (mut delivered, mut begun) = (Vec::new(), None::<Vec<u64>>);
        for arrival in order {
            r.insert(chunks[arrival].1.clone());
            prop_assert_eq!(r.check(), Ok(()));
            while let Some(piece) = r.pop() {
                let mut parts = match begun.take_if(|_| !piece.first) {
                    Some(parts) => parts,
                    None => {
                        prop_assert!(piece.first, "{piece:?} goes on with nothing");
                        Vec::new()
                    }
                };
                parts.extend(offsets(&piece));
                if !piece.last {
                    prop_assert!(begun.is_none(), "a second message is begun");
                    begun = Some(parts);
                    continue;
                }
                let index = (parts[0] / 100) as usize;
                let whole: Vec<u64> = (0..messages[index].2).map(|f| (100 * index + f) as u64).collect();
                prop_assert_eq!(parts, whole);
                delivered.push(index);
            }
        }
        delivered.sort_unstable();
        prop_assert_eq!(delivered, (0..messages.len()).collect::<Vec<_>>());
        prop_assert_eq!((begun, r.held_bytes(0)), (None, 0));
    }
    #[test]
    fn what_waits_for_a_reset_comes_in_order_whatever_is_given_up_meanwhile(
        messages in vec((0..3_u16, any::<bool>(), 1..4_usize), 1..9),
        given_up in vec(any::<bool>(), 9),
        reset_at in 0..10_usize,
        steps in vec((any::<u32>(), any::<bool>(), 0..3_u8), 40),
    ) {
        // the stream sequence numbers begin again with this message
        let reset_at = reset_at.min(messages.len());
        let chunks: Vec<(usize, DataChunk)> = {
            let (before, after) = messages.split_at(reset_at);
            let first = cut(&before.to_vec());
            let again = cut(&after.to_vec());
            let behind = first.len() as u32;
            let renumbered = again.into_iter().map(|(m, c)| {
                let fragment = c.data.synthetic_offset().unwrap_or_default() % 100;
                let offset = (100 * (m + reset_at)) as u64 + fragment;
                (m + reset_at, DataChunk { tsn: c.tsn.add(behind), data: Data::Synthetic { offset, len: 10 }, ..c })
            });
            first.into_iter().chain(renumbered).collect()
        };
        let tsn = |at: usize| Tsn(u32::MAX - 5).add(at as u32);
        // what was sent before the reset has arrived, or was given up, before the rest is sent
        let mut order: Vec<usize> = (0..chunks.len())
            .filter(|&at| !(given_up[chunks[at].0] && steps[at].1))
            .collect();
        order.sort_by_key(|&at| (chunks[at].0 >= reset_at, steps[at].0));
        let split = chunks.iter().filter(|c| c.0 < reset_at).count();
        let config = Config { partial_delivery_point: Some(u32::MAX), ..Config::default() };
        let mut r = Reassembly::new(&config);
        prop_assert_eq!(r.hold(tsn(0).previous(), Until::AssociationReset), None);
        let (mut has, mut cumulative) = (vec![false; chunks.len()], 0);
        let (mut came, mut pending) = (Vec::new(), order.into_iter().peekable());
        loop {
            // a FORWARD TSN: of what was sent before the reset, while that has not all arrived
            let end = if cumulative < split { split } else { chunks.len() };
            let (mut to, mut skipped) = (cumulative, Vec::new());
            while to < end && (has[to] || given_up[chunks[to].0]) {
                let chunk = &chunks[to].1;
                if !has[to] && !chunk.unordered {
                    skipped.push((chunk.stream_id, chunk.ssn));
                }
                to += 1;
            }
            // it stands on what was given up (RFC 3758 section 3.5, C2)
            while to > cumulative && !given_up[chunks[to - 1].0] {
                to -= 1;
            }
            let next = pending.peek().copied();
            let action = next.map_or(0, |at| steps[at].2);
            let passes = next.is_none_or(|at| at >= split) && cumulative < split;
            if to > cumulative && (passes || action == 0) {
                prop_assert_eq!(r.forward(tsn(to - 1), skipped.into_iter()), None);
                cumulative = to;
                continue;
            }
            if action == 1 && cumulative > 0 {
                r.take_what_goes_on(tsn(cumulative - 1));
            }
            let Some(at) = pending.next() else { break };
            if at < cumulative {
                continue;
            }
            has[at] = true;
            r.insert(chunks[at].1.clone());
            while has.get(cumulative) == Some(&true) {
                cumulative += 1;
            }
            came.extend(core::iter::from_fn(|| r.pop()));
            prop_assert_eq!(r.check(), Ok(()));
        }
        r.release_around(tsn(split));
        came.extend(core::iter::from_fn(|| r.pop()));
        prop_assert_eq!((r.load.bytes(), r.check()), (0, Ok(())));
        let mut seen: Vec<usize> = Vec::new();
        for message in &came {
            let m = (offsets(message)[0] / 100) as usize;
            let whole: Vec<u64> = (0..messages[m].2).map(|f| (100 * m + f) as u64).collect();
            prop_assert_eq!(offsets(message), whole);
            prop_assert!(!seen.contains(&m), "{m} came twice");
            seen.push(m);
        }
        for (m, given_up) in given_up.into_iter().enumerate().take(messages.len()) {
            prop_assert!(given_up || seen.contains(&m), "{m} is lost: {seen:?}");
        }
        for stream in 0..3 {
            let of_stream = |m: &&usize| messages[**m].0 == stream && !messages[**m].1;
            prop_assert!(seen.iter().filter(of_stream).is_sorted(), "{:?}", seen);
        }
    }
}
