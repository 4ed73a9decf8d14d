use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
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
fn what_is_held_is_counted_once_and_not_lost_when_something_else_is_to_be_held() {
    let mut r = Reassembly::new(&Config::default());
    r.hold(Tsn(1), Until::StreamsReset(vec![1]));
    for (tsn, ssn) in [(2, 0), (3, 1), (4, 2)] {
        r.insert(chunk(tsn, ssn, "BE", u64::from(tsn)));
    }
    assert_eq!((r.load.bytes(), r.recount()), (30, 30));
    r.hold(Tsn(3), Until::StreamsReset(Vec::new()));
    assert_eq!((r.load.bytes(), r.recount()), (30, 30));
    // 4 alone waits
    assert_eq!(offsets(&r.pop().unwrap()), [2]);
    assert_eq!(offsets(&r.pop().unwrap()), [3]);
    assert!(r.pop().is_none());
    r.release();
    assert_eq!(offsets(&r.pop().unwrap()), [4]);
    assert_eq!((r.load.bytes(), r.recount(), r.held_bytes(0)), (0, 0, 0));
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
    assert_eq!((r.load.bytes(), r.recount()), (0, 0));
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
            prop_assert_eq!(r.load.bytes(), r.recount());
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
            prop_assert_eq!(r.load.bytes(), r.recount());
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
}
