//! What a receiver says of chunks, windows and acknowledgements.

use super::*;
use crate::sctp::testing::{address, ms, own};
use segue_wire::sctp::{GapAckBlock, Sack};
use segue_wire::{Data, Ssn};

const INITIAL: Tsn = Tsn(u32::MAX - 1);
const FORM: SackForm = SackForm {
    non_renegable: false,
    mtu: 1500,
    auth_len: 0,
};

/// A receiver with a peer, and what it is given.
struct Rig {
    receiver: Receiver,
    config: Config,
    out: Outbox,
}

impl Rig {
    fn new(config: Config) -> Self {
        let mut receiver = Receiver::new(&config);
        receiver.begin(INITIAL, 3, address(0), &config);
        Self {
            receiver,
            config,
            out: Outbox::default(),
        }
    }

    /// A message in one chunk, `offset` after the initial TSN.
    fn data(&mut self, offset: u32, stream_id: u16, ssn: u16, len: u32) -> Outcome {
        self.chunk(offset, stream_id, ssn, len, "BE")
    }

    fn chunk(&mut self, offset: u32, stream_id: u16, ssn: u16, len: u32, flags: &str) -> Outcome {
        self.chunk_of(u64::from(offset), offset, (stream_id, ssn), len, flags)
    }

    /// A fragment of message 0 of stream 0 that goes on where the one before it ends, and is not refused for good.
    fn contiguous(&mut self, offset: u32, len: u32, flags: &str) {
        let outcome = self.chunk_of(u64::from(offset * len), offset, (0, 0), len, flags);
        assert_eq!(outcome, Outcome::Taken, "{offset}");
    }

    /// `len` bytes of data from `position` on.
    fn chunk_of(
        &mut self,
        position: u64,
        offset: u32,
        (stream_id, ssn): (u16, u16),
        len: u32,
        flags: &str,
    ) -> Outcome {
        let mut chunk = DataChunk {
            tsn: INITIAL.add(offset),
            stream_id,
            ssn: Ssn(ssn),
            payload_protocol_id: 0,
            unordered: false,
            beginning: flags.contains('B'),
            ending: flags.contains('E'),
            immediate: false,
            data: Data::Synthetic {
                offset: position,
                len,
            },
        };
        self.receiver
            .on_data(&mut chunk, 0, &self.config, || FORM, &mut self.out)
    }

    fn sack(&mut self) -> Sack {
        match self.receiver.take_sack(FORM, &self.config, &mut self.out) {
            Some(Chunk::Sack(sack)) => sack,
            other => panic!("{other:?}"),
        }
    }

    fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.out.next_event()).collect()
    }
}

#[test]
fn before_the_peer_is_known_nothing_is_taken_and_nothing_can_be_said() {
    let config = Config::default();
    let mut rig = Rig {
        receiver: Receiver::new(&config),
        config,
        out: Outbox::default(),
    };
    assert_eq!(rig.data(0, 0, 0, 100), Outcome::Unexpected);
    let forward_tsn = ForwardTsn {
        new_cumulative_tsn: INITIAL,
        skipped: Default::default(),
    };
    let outcome = rig.receiver.on_forward_tsn(&forward_tsn, &mut rig.out);
    assert_eq!(outcome, Outcome::Unexpected);
    assert_eq!(rig.out.counters.refused.unexpected, 2);
    let r = &mut rig.receiver;
    assert_eq!(
        (r.cumulative_tsn_ack(), r.reply_to(), r.arrived_at()),
        (None, None, None)
    );
    assert!(!r.has_gap() && !r.owes_sack());
    assert_eq!(r.take_sack(FORM, &rig.config, &mut rig.out), None);
    assert_eq!(r.take_shutdown(FORM, &rig.config, &mut rig.out), None);
    assert_eq!(r.reset_association(&mut rig.out), None);
    assert_eq!((r.a_rwnd(&rig.config), r.inbound_streams()), (131_072, 2048));
    // and then it is
    r.begin(INITIAL, 3, address(0), &rig.config);
    assert_eq!(r.cumulative_tsn_ack(), Some(INITIAL.previous()));
    assert_eq!((r.reply_to(), r.inbound_streams()), (Some(address(0)), 3));
    assert_eq!(rig.data(0, 0, 0, 100), Outcome::Taken);
}

#[test]
fn a_chunk_is_taken_or_there_is_a_reason_and_it_is_counted() {
    let mut rig = Rig::new(Config::default());
    assert!(!rig.receiver.has_received());
    assert_eq!(rig.data(0, 0, 0, 100), Outcome::Taken);
    assert!(rig.receiver.has_received());
    assert_eq!(rig.events(), [Event::Readable]);
    assert_eq!(rig.data(2, 0, 1, 100), Outcome::Taken);
    assert_eq!(rig.events(), [], "the user knows, and has not taken it");
    assert_eq!(rig.data(0, 0, 0, 100), Outcome::Duplicate);
    assert_eq!(rig.data(2, 0, 0, 100), Outcome::Duplicate);
    assert_eq!(rig.data(65_536, 0, 0, 100), Outcome::NoRoom);
    assert_eq!(rig.data(4, 0, 2, 0), Outcome::NoUserData);
    // counted as received all the same
    assert_eq!(rig.data(1, 3, 0, 100), Outcome::NoSuchStream);
    let counters = rig.out.counters;
    assert_eq!(
        (counters.data_chunks_received, counters.duplicate_data_chunks),
        (3, 2)
    );
    assert_eq!(
        (counters.refused.beyond_window, counters.refused.bad_stream),
        (1, 1)
    );
    let sack = rig.sack();
    assert_eq!(sack.cumulative_tsn_ack, INITIAL.add(2));
    assert_eq!(*sack.duplicate_tsns, [INITIAL, INITIAL.add(2)]);
    assert_eq!(sack.a_rwnd, 131_072 - 200, "what is of no stream is not held");
    // the user takes it all, and is told again of what comes then
    let taken = core::iter::from_fn(|| rig.receiver.take_message()).count();
    assert_eq!((taken, rig.receiver.has_message()), (2, false));
    assert_eq!(rig.data(3, 0, 2, 100), Outcome::Taken);
    assert_eq!(rig.events(), [Event::Readable]);
    for (outcome, asks) in [
        (Outcome::Taken, false),
        (Outcome::NoSuchStream, false),
        (Outcome::Duplicate, true),
        (Outcome::NoRoom, true),
        (Outcome::OutOfResource, true),
        (Outcome::Unexpected, false),
    ] {
        assert_eq!(outcome.asks_for_sack(), asks, "{outcome:?}");
    }
}

/// A receive buffer of 2,000 bytes, with this held in it: chunks at offsets of streams with their numbers and flags.
fn full(held: &[(u32, u16, &str)]) -> Rig {
    let config = Config {
        receive_buffer: 2000,
        partial_delivery_point: Some(u32::MAX),
        ..Config::default()
    };
    let mut rig = Rig::new(config);
    for &(offset, ssn, flags) in held {
        assert_eq!(rig.chunk(offset, 0, ssn, 1000, flags), Outcome::Taken);
    }
    rig
}

#[test]
fn a_full_buffer_takes_what_fills_gaps_up_to_twice_its_size_and_nothing_beyond() {
    // 1 and 3 wait for what is before them
    let waiting = [(1, 1, "BE"), (3, 3, "BE")];
    let mut rig = full(&waiting);
    assert_eq!(rig.data(4, 0, 4, 1), Outcome::NoRoom);
    assert_eq!(rig.data(2, 0, 2, 2001), Outcome::NoRoom);
    assert_eq!(rig.data(2, 0, 2, 1000), Outcome::Taken);
    assert_eq!(rig.data(0, 0, 0, 1000), Outcome::Taken);
    assert_eq!(rig.receiver.cumulative_tsn_ack(), Some(INITIAL.add(3)));
    // the user has something to take: there will be room
    assert_eq!(rig.data(4, 0, 4, 1), Outcome::NoRoom);
    assert_eq!(rig.out.counters.refused.beyond_window, 3);
    // what lies beyond all is next, the user has nothing to take, and nothing is missing: the message is too long
    let begun = [(0, 0, "B"), (1, 0, "")];
    assert_eq!(full(&begun).chunk(2, 0, 0, 1, ""), Outcome::OutOfResource);
    assert_eq!(
        full(&begun).chunk(3, 0, 0, 1, ""),
        Outcome::NoRoom,
        "it is not next"
    );
    // with a gap it is taken as far as twice the buffer
    let gap = [(0, 0, "B"), (2, 0, "")];
    assert_eq!(full(&gap).chunk(1, 0, 0, 2000, ""), Outcome::Taken);
    assert_eq!(full(&gap).chunk(1, 0, 0, 2001, ""), Outcome::OutOfResource);
    // long messages may be delivered in parts: then there is room soon
    let mut rig = full(&[]);
    rig.config.partial_delivery_point = Some(5000);
    rig.receiver = Receiver::new(&rig.config);
    rig.receiver.begin(INITIAL, 3, address(0), &rig.config);
    for (offset, flags) in [(0, "B"), (1, "")] {
        assert_eq!(rig.chunk(offset, 0, 0, 1000, flags), Outcome::Taken);
    }
    assert_eq!(rig.events(), []);
    assert_eq!(rig.chunk(2, 0, 0, 1000, ""), Outcome::NoRoom);
    assert_eq!(rig.events(), [Event::Readable]);
    let part = rig.receiver.take_message().expect("a part is ready");
    assert_eq!((part.first, part.last, part.parts.len()), (true, false, 2));
    assert_eq!(rig.chunk(2, 0, 0, 1000, ""), Outcome::Taken);
}

#[test]
fn many_small_chunks_fill_the_buffer_by_what_they_cost() {
    let mut rig = full(&[]);
    let taken = (0..100).take_while(|&n| rig.data(n, 0, n as u16, 1) == Outcome::Taken);
    // 128 bytes each beyond the 2,000 that are allowed for that, and 1: full with the 32nd
    assert_eq!(taken.count(), 32);
    assert_eq!(rig.receiver.a_rwnd(&rig.config), 0);
}

#[test]
fn a_peer_that_keeps_to_the_window_has_what_is_next_taken_whatever_its_chunks_cost() {
    // 2,000 bytes of window in whole messages of 10, the last first and the first last
    let mut rig = full(&[]);
    assert_eq!(rig.data(199, 0, 199, 10), Outcome::Taken);
    let taken = (1..199)
        .filter(|&n| rig.data(n, 0, n as u16, 10) == Outcome::Taken)
        .count();
    // 10 bytes and 128 each, 2,000 of that forgiven, and 4,000 held: with the last, which is there, 44
    assert_eq!(taken, 43);
    assert_eq!(rig.receiver.a_rwnd(&rig.config), 0);
    assert_eq!(rig.data(0, 0, 0, 10), Outcome::Taken);
    let came = core::iter::from_fn(|| rig.receiver.take_message()).count();
    assert_eq!(came, 44, "and what waited for it");
    // a message of 1,900 bytes in fragments of 10, before what has come of another stream
    let mut rig = full(&[]);
    for n in 200..230 {
        assert_eq!(rig.data(n, 1, n as u16 - 199, 1), Outcome::Taken);
    }
    for n in 0..190 {
        let flags = ["B", "", "E"][usize::from(n > 0) + usize::from(n == 189)];
        rig.contiguous(n, 10, flags);
    }
    for n in 190..200 {
        assert_ne!(rig.data(n, 0, n as u16 - 189, 1), Outcome::OutOfResource);
    }
    let first = rig
        .receiver
        .take_message()
        .map(|m| m.parts.iter().map(Data::len).sum());
    assert_eq!(first, Some(1900));
}

#[test]
fn a_peer_that_keeps_to_no_window_is_refused_at_four_times_the_buffer() {
    // one byte each: the stream sequence number 0 never comes, so nothing can be taken, though no TSN is missing
    let mut rig = full(&[]);
    let outcomes: Vec<_> = (0..200).map(|n| rig.data(n, 0, n as u16 + 1, 1)).collect();
    assert_eq!(
        outcomes.iter().position(|&o| o == Outcome::OutOfResource),
        Some(32)
    );
    // the same with a TSN that is missing at the end of the window
    let mut rig = full(&[]);
    rig.data(1000, 1, 1, 1);
    let outcomes: Vec<_> = (0..200).map(|n| rig.data(n, 0, n as u16 + 1, 1)).collect();
    // 129 each, less the 2,000 that are forgiven
    assert_eq!(
        outcomes.iter().position(|&o| o == Outcome::OutOfResource),
        Some(77)
    );
    assert_eq!(rig.receiver.check_invariants(&rig.config), Ok(()));
}

#[test]
fn a_window_update_is_sent_if_it_may_matter_to_the_peer() {
    // receive buffer, advertised of it, room now: update
    let table = [
        (100_000, 100_000, 100_000, false),
        // nearly used up, and grown by two segments
        (100_000, 2000, 4999, false),
        (100_000, 2000, 5000, true),
        (100_000, 2999, 5999, true),
        (100_000, 3000, 6000, false),
        // grown by half the buffer
        (100_000, 40_000, 89_999, false),
        (100_000, 40_000, 90_000, true),
        // of a small buffer by half of that
        (4000, 1000, 2999, false),
        (4000, 1000, 3000, true),
        // less than a segment is no window
        (100_000, 0, 1499, false),
    ];
    for (receive_buffer, known, free, update) in table {
        let config = Config {
            receive_buffer,
            ..Config::default()
        };
        let mut rig = Rig::new(config);
        rig.receiver.advertised_rwnd = known;
        // what is left of the buffer
        if free < receive_buffer {
            assert_eq!(rig.data(1, 0, 1, receive_buffer - free), Outcome::Taken);
            rig.receiver.advertised_rwnd = known;
        }
        rig.receiver.consider_window_update(1500, &rig.config);
        assert_eq!(
            rig.receiver.sack_is_due(),
            update,
            "{receive_buffer} {known} {free}"
        );
    }
}

#[test]
fn acknowledgements_go_to_where_data_last_came_from_while_that_is_an_address_of_the_peers() {
    let mut rig = Rig::new(Config::default());
    let r = &mut rig.receiver;
    r.arrived(Some((address(1), Some(40))), own().address);
    assert_eq!(
        (r.reply_to(), r.arrived_at()),
        (Some(address(1)), Some(own().address))
    );
    // from nowhere that acknowledgements may go to
    r.arrived(None, address(9));
    assert_eq!(
        (r.reply_to(), r.arrived_at()),
        (Some(address(1)), Some(address(9)))
    );
    r.leave_address(address(0), address(2));
    assert_eq!(r.reply_to(), Some(address(1)));
    // one entry has room in 40 bytes, with a SHUTDOWN beside it
    for offset in [1, 3] {
        rig.data(offset, 0, offset as u16, 1);
    }
    assert_eq!(rig.sack().gap_ack_blocks[..], [GapAckBlock { start: 2, end: 2 }]);
    rig.receiver.arrived(Some((address(1), None)), own().address);
    assert_eq!(rig.sack().gap_ack_blocks.len(), 2);
    rig.receiver.leave_address(address(1), address(2));
    assert_eq!(rig.receiver.reply_to(), Some(address(2)));
}

#[test]
fn a_gap_before_or_after_a_packet_has_it_acknowledged_at_once() {
    for (had_gap, has_gap, immediate, due) in [
        (false, false, false, false),
        (true, false, false, true),
        (false, true, false, true),
        (false, false, true, true),
    ] {
        let config = Config {
            quick_sacks: 0,
            ..Config::default()
        };
        let mut rig = Rig::new(config);
        rig.data(u32::from(has_gap), 0, 0, 1);
        let Rig {
            receiver,
            config,
            out,
        } = &mut rig;
        receiver.owe(ms(0), had_gap, immediate, config, out);
        assert_eq!((receiver.owes_sack(), receiver.sack_is_due()), (true, due));
        assert_eq!(receiver.sack_timer().is_some(), !due);
    }
}

#[test]
fn a_sack_or_an_nr_sack_settles_what_is_owed_and_advertises_the_window() {
    let mut rig = Rig::new(Config::default());
    for offset in [0, 2] {
        rig.data(offset, 0, offset as u16, 1000);
    }
    rig.receiver.owe(ms(0), false, false, &rig.config, &mut rig.out);
    assert!(rig.receiver.sack_is_due());
    let nr = SackForm {
        non_renegable: true,
        ..FORM
    };
    assert_eq!((rig.receiver.sack_len(FORM), rig.receiver.sack_len(nr)), (20, 24));
    let chunk = rig.receiver.take_sack(nr, &rig.config, &mut rig.out);
    let Some(Chunk::NrSack(nr_sack)) = chunk else {
        panic!("{chunk:?}");
    };
    assert_eq!(nr_sack.nr_gap_ack_blocks[..], [GapAckBlock { start: 2, end: 2 }]);
    assert_eq!(
        (nr_sack.sack.gap_ack_blocks.len(), nr_sack.sack.a_rwnd),
        (0, 131_072 - 2000)
    );
    assert!(!rig.receiver.owes_sack());
    assert_eq!(rig.out.counters.sacks_sent, 1);
    assert_eq!(rig.receiver.advertised_rwnd, 131_072 - 2000);
}

#[test]
fn a_sack_goes_before_a_shutdown_if_it_has_more_to_say() {
    /// What there is to say.
    #[derive(Clone, Copy, Debug)]
    enum Says {
        Nothing,
        Gap,
        Duplicate,
        ShortWindow,
    }
    for (says, owed, sack) in [
        (Says::Nothing, true, false),
        (Says::Gap, true, true),
        (Says::Duplicate, true, true),
        (Says::ShortWindow, true, true),
        (Says::Gap, false, false),
    ] {
        let mut rig = Rig::new(Config::default());
        rig.data(0, 0, 0, 1000);
        match says {
            Says::Nothing => {}
            Says::Gap => assert_eq!(rig.data(2, 0, 2, 1), Outcome::Taken),
            Says::Duplicate => assert_eq!(rig.data(0, 0, 0, 1000), Outcome::Duplicate),
            Says::ShortWindow => assert_eq!(rig.data(1, 0, 1, 64_537), Outcome::Taken),
        }
        let cumulative_tsn_ack = rig.receiver.cumulative_tsn_ack().expect("the peer is known");
        let Rig {
            receiver,
            config,
            out,
        } = &mut rig;
        if owed {
            receiver.owe(ms(0), false, false, config, out);
        }
        let chunks = receiver
            .take_shutdown(FORM, config, out)
            .expect("the peer is known");
        let (shutdown, before) = chunks.split_last().expect("there is a SHUTDOWN");
        assert_eq!(*shutdown, Chunk::Shutdown { cumulative_tsn_ack });
        let goes_before = matches!(before, [Chunk::Sack(_)]);
        assert_eq!(
            (goes_before, before.len()),
            (sack, usize::from(sack)),
            "{says:?}, {owed}"
        );
        assert!(!receiver.owes_sack());
    }
}

#[test]
fn a_forward_tsn_passes_what_is_missing_and_cuts_short_what_is_delivered_in_parts() {
    let config = Config {
        partial_delivery_point: Some(10),
        ..Config::default()
    };
    let mut rig = Rig::new(config);
    rig.chunk(0, 1, 0, 10, "B");
    rig.data(4, 0, 1, 1);
    assert_eq!(rig.events(), [Event::Readable]);
    let forward = |rig: &mut Rig, offset: u32, skipped: &[(u16, Ssn)]| {
        let chunk = ForwardTsn {
            new_cumulative_tsn: INITIAL.add(offset),
            skipped: skipped.to_vec(),
        };
        rig.receiver.on_forward_tsn(&chunk, &mut rig.out)
    };
    assert_eq!(forward(&mut rig, 0, &[]), Outcome::Duplicate);
    // stream 3 there is not
    let skipped = [(0, Ssn(0)), (1, Ssn(0)), (3, Ssn(9))];
    assert_eq!(forward(&mut rig, 3, &skipped), Outcome::Taken);
    assert_eq!(rig.events(), [Event::PartialDeliveryAborted(1)]);
    assert_eq!(rig.receiver.cumulative_tsn_ack(), Some(INITIAL.add(4)));
    let taken: Vec<u16> = core::iter::from_fn(|| rig.receiver.take_message())
        .map(|m| m.stream_id)
        .collect();
    assert_eq!(taken, [1, 0]);
    assert_eq!(
        (rig.out.counters.forward_tsns_received, rig.receiver.has_gap()),
        (2, false)
    );
}

#[test]
fn streams_that_the_peer_adds_are_taken_from() {
    let mut rig = Rig::new(Config::default());
    assert_eq!(rig.data(0, 4, 0, 1), Outcome::NoSuchStream);
    rig.receiver.add_streams(2);
    assert_eq!(rig.receiver.inbound_streams(), 5);
    assert_eq!(rig.data(1, 4, 0, 1), Outcome::Taken);
}

#[test]
fn after_a_reset_the_peer_goes_on_where_it_was_told_to() {
    // RFC 6525 section 5.2.4, G2: 2^31 beyond
    let mut rig = Rig::new(Config::default());
    rig.data(0, 0, 0, 1);
    let next = rig.receiver.reset_association(&mut rig.out);
    assert_eq!(next, Some(INITIAL.add(1 + (1 << 31))));
    assert_eq!(rig.events(), [Event::Readable, Event::AssociationReset]);
    assert_eq!(rig.receiver.cumulative_tsn_ack(), next.map(Tsn::previous));
    // as the side that asked: what comes meanwhile waits, on either side of the reset
    let mut rig = Rig::new(Config::default());
    rig.receiver.await_association_reset(&mut rig.out);
    assert_eq!(rig.data(0, 0, 0, 1), Outcome::Taken);
    assert!(!rig.receiver.has_message());
    rig.receiver.association_was_reset(INITIAL.add(1), &mut rig.out);
    assert_eq!(rig.events(), [Event::Readable]);
    assert_eq!(rig.receiver.cumulative_tsn_ack(), Some(INITIAL));
    assert_eq!(rig.data(1, 0, 0, 1), Outcome::Taken);
    let taken = core::iter::from_fn(|| rig.receiver.take_message()).count();
    assert_eq!(taken, 2, "the stream has begun again at 0");
}
