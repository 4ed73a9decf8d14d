//! What a SACK changes.

use super::super::sack::{Impossible, SackOutcome};
use super::*;
use crate::sctp::testing::destination;
use segue_wire::sctp::{GapAckBlock, Sack};

#[test]
fn a_sack_takes_its_chunks_out_of_flight_and_begins_the_timer_anew() {
    let mut a = Rig::new(Config::default(), 2);
    for at in [0, 10, 20] {
        a.send_on(ms(at), FIRST, 1000);
    }
    assert!(a.peer.count_error(destination(0), &a.config, &mut a.out));
    let sack = |cumulative, a_rwnd| Sack {
        cumulative_tsn_ack: Tsn(cumulative),
        a_rwnd,
        gap_ack_blocks: Default::default(),
        duplicate_tsns: Vec::new().into(),
        data_packets: 0,
    };
    let taken = Ok(SackOutcome::Taken);
    let told = |a: &Rig| (a.sender.peer_rwnd(), a.out.counters.sacks_received);
    assert_eq!(a.sack(ms(400), &sack(1, 50_000)), taken);
    assert_eq!(a.sender.flight.size_on(FIRST), 2032);
    assert_eq!(a.peer[FIRST].srtt(), Some(Duration::from_millis(400)));
    // 400 + 4 x 200
    assert_eq!(a.sender.flight.watched(FIRST), Some((2, ms(1600))));
    assert_eq!(a.sender.flight.timed(FIRST), None);
    assert_eq!(told(&a), (48_000, 1));
    let errors = (a.peer[destination(0)].error_count(), a.peer.errors_in_a_row());
    assert_eq!(errors, (0, 0));
    // an old one, and one for what was never sent
    assert_eq!(a.sack(ms(410), &sack(0, 9)), Ok(SackOutcome::Overtaken));
    assert_eq!(a.sack(ms(410), &sack(4, 9)), Err(Impossible));
    assert_eq!(told(&a), (48_000, 1));
    // one that says nothing new leaves the timer alone
    assert_eq!(a.sack(ms(420), &sack(1, 40_000)), taken);
    assert_eq!(
        (a.sender.flight.t3_rtx(FIRST), a.sender.peer_rwnd()),
        (Some(ms(1600)), 38_000)
    );
    assert_eq!(a.sack(ms(500), &sack(3, 1500)), taken);
    assert_eq!(
        (a.sender.flight.size_on(FIRST), a.sender.flight.t3_rtx(FIRST)),
        (0, None)
    );
    assert_eq!(told(&a), (1500, 3));
    assert!(a.sender.is_dry());
}

#[test]
fn what_was_sent_by_a_way_that_was_left_tells_that_the_peer_is_there_and_no_more() {
    let mut a = Rig::new(Config::default(), 2);
    a.send_on(ms(0), FIRST, 1000);
    assert!(a.peer.count_error(destination(0), &a.config, &mut a.out));
    a.sender.leave_paths(&[FIRST], &mut a.out.counters.multipath);
    assert_eq!(a.sender.flight.marked(), 1);
    let cwnd = a.peer[FIRST].cwnd();
    let sack = Sack {
        cumulative_tsn_ack: Tsn(1),
        a_rwnd: 50_000,
        gap_ack_blocks: Default::default(),
        duplicate_tsns: Box::default(),
        data_packets: 0,
    };
    assert_eq!(a.sack(ms(400), &sack), Ok(SackOutcome::Taken));
    assert_eq!(
        (a.peer.errors_in_a_row(), a.peer[destination(0)].error_count()),
        (0, 1)
    );
    assert_eq!((a.peer[FIRST].cwnd(), a.peer[FIRST].srtt()), (cwnd, None));
}

#[test]
fn one_report_is_enough_for_early_retransmit_only_if_nothing_that_waits_can_follow() {
    for (a_rwnd, waiting, marked) in [(9000, 0, 1), (1500, 500, 0), (1499, 500, 1)] {
        let config = Config {
            early_retransmit: true,
            ..Config::default()
        };
        let mut a = Rig::new(config, 1);
        for _ in 0..3 {
            a.send_on(ms(0), FIRST, 1000);
        }
        if waiting > 0 {
            let data = Data::Synthetic {
                offset: 0,
                len: waiting,
            };
            a.sender.queue.push(ms(0), 0, data, SendOptions::default());
        }
        let sack = Sack {
            cumulative_tsn_ack: Tsn(0),
            a_rwnd,
            gap_ack_blocks: [GapAckBlock { start: 2, end: 3 }].into_iter().collect(),
            duplicate_tsns: Vec::new().into(),
            data_packets: 0,
        };
        assert_eq!(a.sack(ms(100), &sack), Ok(SackOutcome::Taken));
        assert_eq!(a.sender.flight.marked(), marked, "{a_rwnd}, {waiting} waiting");
    }
}
