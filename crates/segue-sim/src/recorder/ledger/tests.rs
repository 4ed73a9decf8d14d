//! What is counted of packets, and what is forgotten of them.

use super::*;
use segue_proto::Duration;

const FLOW: FlowKey = FlowKey {
    transport: Transport::Tcp,
    sender: 0,
    receiver: 7,
    source_port: 5001,
    destination_port: 40_000,
};

fn one(entry: u32) -> Entries {
    let mut entries = Entries::NONE;
    entries.add(entry);
    entries
}

/// A host sends a segment, and the ledger forgets what it may: gives the number of its entry.
fn sent(ledger: &mut Ledger, now: Instant, segment: &Segment) -> u32 {
    if ledger.is_full() {
        ledger.forget(now);
    }
    ledger.sent(now, segment).0
}

/// Sends segments of 100 bytes by number and gives their entries; the sequence numbers wrap on the way.
fn send(ledger: &mut Ledger, numbers: &[u32]) -> Vec<Entries> {
    let send = |&n: &u32| {
        let segment = Segment {
            flow: FLOW,
            seq: (u32::MAX - 250).wrapping_add(n * 100),
            length: 100,
            bytes: 100,
        };
        one(sent(ledger, Instant::ZERO, &segment))
    };
    numbers.iter().map(send).collect()
}

#[test]
fn a_retransmission_is_spurious_if_an_earlier_copy_arrives_even_afterwards() {
    let mut ledger = Ledger::default();
    let e = send(&mut ledger, &[0, 1, 2, 3, 4, 1, 2, 2]);
    for i in [0, 3, 4, 5, 7] {
        ledger.met(e[i], PacketFate::Delivered);
    }
    ledger.met(e[1], PacketFate::Dropped(DropCause::QueueFull));
    ledger.met(e[2], PacketFate::Delivered);
    ledger.met(e[6], PacketFate::Stale);
    let counts = &ledger.counts()[0];
    assert_eq!((counts.packets_sent, counts.retransmissions), (8, 3));
    assert_eq!(counts.lost_packets, 2);
    assert_eq!(
        counts.lost_by_cause,
        BTreeMap::from([("queue-full", 1), ("stale", 1)])
    );
    // 1 was needed; 2 was there when it was sent again, and again
    assert_eq!(counts.spurious_retransmissions, 2);
    assert_eq!(counts.in_flight_packets, 0);
}

#[test]
fn what_is_under_way_at_the_end_is_neither_lost_nor_delivered() {
    let mut ledger = Ledger::default();
    let e = send(&mut ledger, &[0, 1, 0]);
    ledger.met(e[0], PacketFate::Dropped(DropCause::OutOfReach));
    let counts = &ledger.counts()[0];
    assert_eq!(counts.in_flight_packets, 2);
    assert_eq!((counts.lost_packets, counts.spurious_retransmissions), (1, 0));
    assert!(ledger.is_retransmission(e[2]) && !ledger.is_retransmission(e[1]));
}

#[test]
fn a_copy_that_a_link_made_does_not_undo_a_delivery() {
    let mut ledger = Ledger::default();
    let e = send(&mut ledger, &[0]);
    ledger.met(e[0], PacketFate::Delivered);
    ledger.met(e[0], PacketFate::Dropped(DropCause::RandomLoss));
    assert_eq!(ledger.counts()[0].lost_packets, 0);
}

#[test]
fn retransmissions_may_be_cut_differently() {
    let mut ledger = Ledger::default();
    let segment = |seq, length| Segment {
        flow: FLOW,
        seq,
        length,
        bytes: length,
    };
    let whole = one(ledger.sent(Instant::ZERO, &segment(1000, 1400)).0);
    ledger.met(whole, PacketFate::Delivered);
    let tail = one(ledger.sent(Instant::ZERO, &segment(1700, 700)).0);
    assert!(ledger.is_retransmission(tail));
    assert_eq!(ledger.counts()[0].spurious_retransmissions, 1);
}

/// The same packets to two ledgers, in one of which no time passes, so that it forgets nothing.
#[test]
fn what_is_forgotten_is_missed_by_no_count() {
    let mut stream = segue_proto::random::Stream::new(7, "ledger");
    let (mut all, mut ledger) = (Ledger::default(), Ledger::default());
    let mut under_way = std::collections::VecDeque::new();
    let mut next = 0;
    for ms in 0..120_000 {
        // now and then something from before is sent again, be it long forgotten
        let again = next > 0 && stream.below(50) == 0;
        let place = if again { stream.below(next) } else { next };
        next += u64::from(!again);
        let seq = place as u32;
        let segment = Segment {
            flow: FlowKey {
                transport: Transport::Sctp,
                ..FLOW
            },
            seq,
            length: 1,
            bytes: 100,
        };
        let now = Instant::ZERO + Duration::from_millis(ms);
        let id = sent(&mut ledger, now, &segment);
        assert_eq!(sent(&mut all, Instant::ZERO, &segment), id);
        if again && stream.below(2) == 0 {
            all.was_fast(FLOW.sender, FLOW.receiver as u32, seq);
            ledger.was_fast(FLOW.sender, FLOW.receiver as u32, seq);
        }
        under_way.push_back(id);
        if under_way.len() > 20 {
            let fate = match stream.below(100) {
                0 => continue,
                1 => PacketFate::Dropped(DropCause::RandomLoss),
                2 => PacketFate::Dropped(DropCause::OutOfReach),
                _ => PacketFate::Delivered,
            };
            // one is under way for a long time
            let id = under_way.remove(usize::from(ms % 40_000 != 0)).unwrap_or(id);
            all.met(one(id), fate);
            ledger.met(one(id), fate);
        }
    }
    assert_eq!(ledger.counts(), all.counts());
    let counts = &ledger.counts()[0];
    assert!(counts.fast_retransmissions > 500 && counts.spurious_fast_retransmissions > 400);
    assert_eq!(marks_of(&ledger), marks_of(&all));
    assert!(ledger.lost_last(0).is_some() && all.lost_last(0).is_none());
    // of the packets of the last ten seconds, and of those before that are under way, with what was sent again of them
    let under_way = all.entries().filter(|(_, e)| e.fate == PacketFate::InFlight);
    let kept = ledger.entries().count();
    let most = 20_000 + 2 * under_way.count();
    assert!(all.entries().count() == 120_000 && kept < most, "{kept}, {most}");
    let places = ledger.flows[0].copies.places();
    assert!(places.0 < most && places.1 < 2000, "{places:?}");
}

/// Numbers of the marks of the only flow: retransmissions, spurious ones, and losses to handover.
fn marks_of(ledger: &Ledger) -> (usize, usize, usize) {
    let count = |is: fn(&Mark) -> bool| ledger.marks().filter(|(_, mark)| is(mark)).count();
    (
        count(|mark| mark.is_retransmission),
        count(|mark| mark.is_spurious),
        count(|mark| mark.is_lost_to_handover),
    )
}

#[test]
fn the_last_that_arrived_are_remembered_for_however_long_their_flow_is_silent() {
    let mut ledger = Ledger::default();
    let all = send(&mut ledger, &Vec::from_iter(0..1000));
    for entries in all {
        ledger.met(entries, PacketFate::Delivered);
    }
    for n in 0..20_000 {
        let segment = Segment {
            flow: FlowKey { sender: 1, ..FLOW },
            seq: n,
            length: 1,
            bytes: 1,
        };
        let now = Instant::ZERO + Duration::from_millis(u64::from(n) * 3);
        let id = sent(&mut ledger, now, &segment);
        ledger.met(one(id), PacketFate::Delivered);
    }
    let silent = ledger.entries().filter(|(_, e)| e.flow == 0);
    assert_eq!(Vec::from_iter(silent.map(|(id, _)| id)), [996, 997, 998, 999]);
    // and what is forgotten, sent again, was sent in vain
    let again = send(&mut ledger, &[500]);
    assert!(ledger.is_retransmission(again[0]));
    assert_eq!(ledger.counts()[0].spurious_retransmissions, 1);
}

/// Sends and loses or delivers packets of other flows until the ledger has forgotten what it may.
fn long_afterwards(ledger: &mut Ledger, from_s: u64) {
    for n in 0..20_000 {
        let segment = Segment {
            flow: FlowKey { sender: 1, ..FLOW },
            seq: n,
            length: 1,
            bytes: 1,
        };
        let now = Instant::ZERO + Duration::from_secs(from_s) + Duration::from_millis(u64::from(n));
        let id = sent(ledger, now, &segment);
        ledger.met(one(id), PacketFate::Delivered);
    }
}

#[test]
fn of_what_was_lost_and_sent_again_a_mark_stays_once_nothing_more_can_be_learnt() {
    let mut ledger = Ledger::default();
    // 0 is lost and sent again; 1 is lost, and never sent again; 2 is under way
    let e = send(&mut ledger, &[0, 1, 2, 0, 3, 4, 5, 6]);
    ledger.met(e[0], PacketFate::Dropped(DropCause::OutOfReach));
    ledger.met(e[1], PacketFate::Dropped(DropCause::QueueFull));
    for entries in &e[3..] {
        ledger.met(*entries, PacketFate::Delivered);
    }
    let (counts, marks) = (ledger.counts(), marks_of(&ledger));
    assert_eq!(marks, (1, 0, 1));
    long_afterwards(&mut ledger, 20);
    assert_eq!(
        (ledger.counts()[0].clone(), marks_of(&ledger)),
        (counts[0].clone(), marks)
    );
    let kept = |ledger: &Ledger| {
        let own = ledger.entries().filter(|(_, e)| e.flow == 0);
        own.map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(kept(&ledger), [2, 4, 5, 6, 7]);
    assert_eq!(ledger.lost_last(0), Some(100));
    // what is sent again of them: of 0 a copy had arrived, of 1 none, until this one
    let again = send(&mut ledger, &[0, 1, 1]);
    assert!(again.iter().all(|e| ledger.is_retransmission(*e)));
    assert_eq!(ledger.counts()[0].spurious_retransmissions, 1);
    ledger.met(again[1], PacketFate::Delivered);
    assert_eq!(ledger.counts()[0].spurious_retransmissions, 2);
    long_afterwards(&mut ledger, 60);
    assert_eq!(ledger.counts()[0].spurious_retransmissions, 2);
    // 2 arrives after all
    ledger.met(e[2], PacketFate::Delivered);
    let again = send(&mut ledger, &[2]);
    assert!(ledger.is_retransmission(again[0]));
    let counts = &ledger.counts()[0];
    assert_eq!(
        (counts.spurious_retransmissions, counts.in_flight_packets),
        (3, 3)
    );
}
