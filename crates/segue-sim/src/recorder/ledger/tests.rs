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

/// Sends segments of 100 bytes by number and gives their entries; the sequence numbers wrap on the way.
fn send(ledger: &mut Ledger, numbers: &[u32]) -> Vec<Entries> {
    let send = |&n: &u32| {
        let segment = Segment {
            flow: FLOW,
            seq: (u32::MAX - 250).wrapping_add(n * 100),
            length: 100,
            bytes: 100,
        };
        one(ledger.sent(Instant::ZERO, &segment).0)
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
        let (id, _) = ledger.sent(now, &segment);
        assert_eq!(all.sent(Instant::ZERO, &segment).0, id);
        if again && stream.below(2) == 0 {
            all.was_fast(FLOW.sender, FLOW.receiver as u32, seq);
            ledger.was_fast(FLOW.sender, FLOW.receiver as u32, seq);
        }
        under_way.push_back(id);
        if under_way.len() > 20 {
            let fate = match stream.below(100) {
                0 => continue,
                1..3 => PacketFate::Dropped(DropCause::RandomLoss),
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
    let remarkable = all.entries().filter(|(_, e)| !e.is_plain()).count();
    let kept = ledger.entries().count();
    assert!(
        all.entries().count() == 120_000 && kept < remarkable + 40_000,
        "{kept}"
    );
    let originals = ledger.flows[0].originals.len();
    assert!(originals < 2 * remarkable + 40_000, "{originals}");
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
        let (id, _) = ledger.sent(Instant::ZERO + Duration::from_millis(u64::from(n) * 3), &segment);
        ledger.met(one(id), PacketFate::Delivered);
    }
    let silent = ledger.entries().filter(|(_, e)| e.flow == 0);
    assert_eq!(Vec::from_iter(silent.map(|(id, _)| id)), [996, 997, 998, 999]);
    // and what is forgotten, sent again, was sent in vain
    let again = send(&mut ledger, &[500]);
    assert!(ledger.is_retransmission(again[0]));
    assert_eq!(ledger.counts()[0].spurious_retransmissions, 1);
}
