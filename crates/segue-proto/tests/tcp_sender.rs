//! A sender against acknowledgements made by hand: what it takes for lost, and what a reduction
//! costs. Segments are of 1000 bytes; positions are counted from the first byte of data, which is 1.

use crate::common::tcp_script::ms;
use crate::common::tcp_sender::*;
use segue_proto::Duration;
use segue_proto::tcp::{Config, Reduction};

// --- fast retransmit: RFC 5681, RFC 6675, RFC 6937 ---

#[test]
fn a_segment_with_three_sacked_above_it_is_lost_and_the_last_one_is_sent_again_once() {
    // RFC 6675 section 4, IsLost and NextSeg rules 1 and 4
    let mut s = ten(standard());
    assert_eq!(ack(&mut s, 1, &[(1001, 2001)]), NONE);
    assert_eq!(ack(&mut s, 1, &[(1001, 3001)]), NONE);
    assert_eq!(ack(&mut s, 1, &[(1001, 4001)]), [(1, 1000)]);
    let cut = s.connection().snapshot();
    assert_eq!((cut.cwnd, cut.ssthresh), (5000, 5000));
    // the pipe is seven segments, then six, then five
    assert_eq!(ack(&mut s, 1, &[(1001, 5001)]), NONE);
    assert_eq!(ack(&mut s, 1, &[(1001, 6001)]), NONE);
    assert_eq!(ack(&mut s, 1, &[(1001, 7001)]), [(9001, 1000)], "the rescue");
    assert_eq!(ack(&mut s, 1, &[(1001, 9001)]), NONE, "there is one");
    assert_eq!(ack(&mut s, 10_001, &[]), NONE);
    let counters = s.connection().counters();
    assert_eq!(
        (
            counters.recovery.retransmissions,
            counters.recovery.fast_recoveries
        ),
        (2, 1)
    );
    // RFC 6582 section 3.2, step 3: no more than a few segments at once; and slow start for the two that arrived last
    assert_eq!(s.connection().snapshot().cwnd, 3000 + 2000);
}

#[test]
fn a_gap_below_what_was_sacked_is_filled_if_nothing_else_can_be_sent() {
    // RFC 6675 section 4, NextSeg rule 3
    let mut s = ten(standard());
    assert_eq!(ack(&mut s, 1, &[(1001, 4001)]), [(1, 1000)]);
    assert_eq!(ack(&mut s, 1, &[(6001, 7001), (1001, 5001)]), NONE);
    assert_eq!(
        ack(&mut s, 1, &[(8001, 9001), (6001, 7001), (1001, 5001)]),
        [(5001, 1000)]
    );
    // and the next one when there is room again
    assert_eq!(ack(&mut s, 5001, &[(8001, 9001), (6001, 7001)]), [(7001, 1000)]);
}

#[test]
fn new_data_goes_before_what_is_perhaps_missing() {
    // RFC 6675 section 4, NextSeg rule 2
    let mut s = ten(standard());
    s.write(10_000, 5000);
    assert_eq!(s.sent(), []);
    // limited transmit (RFC 3042) for the first two
    assert_eq!(ack(&mut s, 1, &[(1001, 2001)]), [(10_001, 1000)]);
    assert_eq!(ack(&mut s, 1, &[(1001, 3001)]), [(11_001, 1000)]);
    assert_eq!(ack(&mut s, 1, &[(1001, 4001)]), [(1, 1000)]);
    for end in [5001, 6001, 7001, 8001] {
        assert_eq!(ack(&mut s, 1, &[(1001, end)]), NONE);
    }
    assert_eq!(ack(&mut s, 1, &[(1001, 9001)]), [(12_001, 1000)]);
}

#[test]
fn a_window_comes_down_in_proportion_to_what_arrives() {
    // RFC 6937 section 3.1: ceil(prr_delivered * ssthresh / RecoverFS) - prr_out, here 5 of 12, until the pipe has come
    // down to ssthresh; then a segment for a segment
    let mut s = ten(Config {
        reduction: Reduction::Prr,
        ..standard()
    });
    s.write(10_000, 20_000);
    for end in [2001, 3001] {
        assert_eq!(ack(&mut s, 1, &[(1001, end)]).len(), 1);
    }
    assert_eq!(ack(&mut s, 1, &[(1001, 4001)]), [(1, 1000)]);
    let sent: Vec<usize> = (5..12)
        .map(|n| ack(&mut s, 1, &[(1001, 1000 * n + 1)]).len())
        .collect();
    assert_eq!(sent, [0, 0, 0, 0, 1, 1, 1]);
    assert_eq!(
        ack(&mut s, 12_001, &[]).len(),
        2,
        "what has left the network may go again"
    );
    assert_eq!(s.connection().snapshot().ssthresh, 5000);
}

#[test]
fn without_sack_each_duplicate_takes_a_segment_out_of_the_pipe() {
    // RFC 5681 section 3.2, steps 2 to 5
    let mut s = ten(Config {
        sack: false,
        limited_transmit: false,
        ..standard()
    });
    s.write(10_000, 10_000);
    assert_eq!(ack(&mut s, 1, &[]), NONE);
    assert_eq!(ack(&mut s, 1, &[]), NONE);
    assert_eq!(ack(&mut s, 1, &[]), [(1, 1000)], "the third");
    assert_eq!(s.connection().snapshot().ssthresh, 5000);
    // five, six, ... have left: cwnd is five segments
    assert_eq!(ack(&mut s, 1, &[]), NONE);
    assert_eq!(ack(&mut s, 1, &[]), NONE);
    assert_eq!(ack(&mut s, 1, &[]), [(10_001, 1000)]);
    assert_eq!(ack(&mut s, 1, &[]), [(11_001, 1000)]);
    // a segment with another window is no duplicate (section 2)
    s.window -= 1;
    assert_eq!(ack(&mut s, 1, &[]), NONE);
    assert_eq!(ack(&mut s, 12_001, &[])[0], (12_001, 1000), "all of it");
    assert_eq!(s.connection().counters().recovery.retransmissions, 1);
}

#[test]
fn what_was_sacked_and_is_no_more_is_sent_again() {
    // RFC 2018 section 8: the left edge of a SACKed block is SND.UNA
    let mut s = ten(standard());
    assert_eq!(ack(&mut s, 1, &[(1001, 3001)]), NONE);
    // as after a timeout: slow start
    assert_eq!(ack(&mut s, 1001, &[]), [(1001, 1000), (2001, 1000)]);
    assert_eq!(s.connection().snapshot().flightsize, 9000);
    assert_eq!(ack(&mut s, 3001, &[]).len(), 4);
}

#[test]
fn sack_blocks_that_cannot_be_are_counted_and_change_nothing() {
    let mut s = ten(standard());
    for block in [(10_001, 11_001), (9001, 10_002), (3001, 2001), (2001, 2001)] {
        assert_eq!(ack(&mut s, 1, &[block]), NONE);
    }
    assert_eq!(s.connection().counters().refused.impossible_sacks, 4);
    // a duplicate of what was never sent (RFC 2883 section 5)
    ack(&mut s, 1, &[(u32::MAX - 9, 1)]);
    let counters = s.connection().counters();
    assert_eq!(
        (
            counters.refused.impossible_sacks,
            counters.recovery.dsacks_received
        ),
        (5, 0)
    );
    assert_eq!(counters.refused.total(), 5);
    // half a segment is none (RFC 2018 section 5.1)
    assert_eq!(ack(&mut s, 1, &[(1501, 3000)]), NONE);
    assert_eq!(ack(&mut s, 1, &[(1501, 3500)]), NONE);
    assert_eq!(ack(&mut s, 1, &[(1501, 4500)]), NONE);
    assert_eq!(ack(&mut s, 1, &[(1501, 5000)]), NONE, "two whole ones");
    assert_eq!(ack(&mut s, 1, &[(1501, 5001)]), [(1, 1000)], "three");
    assert_eq!(s.connection().counters().refused.impossible_sacks, 5);
}

// --- RACK-TLP: RFC 8985 ---

#[test]
fn a_gap_is_waited_for_a_quarter_of_a_round_trip() {
    // section 6.2, steps 4 and 5: RACK.reo_wnd = min_RTT / 4
    let mut s = sender(rack());
    write(&mut s, 0, 5000);
    s.now += ms(RTT);
    assert_eq!(ack(&mut s, 1, &[(1001, 2001)]), NONE);
    assert_eq!(wait(&mut s, ms(24)), NONE);
    assert_eq!(wait(&mut s, ms(1)), [(1, 1000)]);
    assert_eq!(s.connection().counters().recovery.fast_recoveries, 1);
}

#[test]
fn a_gap_is_not_waited_for_where_three_segments_are_sacked_and_nothing_was_ever_reordered() {
    let mut s = sender(rack());
    write(&mut s, 0, 5000);
    s.now += ms(RTT);
    assert_eq!(ack(&mut s, 1, &[(2001, 4001)]), NONE);
    assert_eq!(ack(&mut s, 1, &[(2001, 5001)]), [(1, 1000), (1001, 1000)]);
    // with reordering seen it is
    let mut s = sender(rack());
    write(&mut s, 0, 2000);
    s.now += ms(RTT);
    assert_eq!(ack(&mut s, 1, &[(1001, 2001)]), NONE);
    assert_eq!(ack(&mut s, 2001, &[]), NONE);
    write(&mut s, 2000, 5000);
    s.now += ms(RTT);
    assert_eq!(ack(&mut s, 2001, &[(3001, 7001)]), NONE);
    assert_eq!(wait(&mut s, ms(24)), NONE);
    assert_eq!(wait(&mut s, ms(1)), [(2001, 1000)]);
}

#[test]
fn a_duplicate_that_was_reported_widens_the_reordering_window() {
    // section 6.2, step 4: RACK.reo_wnd_mult
    let mut s = sender(rack());
    write(&mut s, 0, 1000);
    s.now += ms(RTT);
    ack(&mut s, 1001, &[]);
    ack(&mut s, 1001, &[(1, 1001)]);
    assert_eq!(s.connection().counters().recovery.dsacks_received, 1);
    write(&mut s, 1000, 5000);
    s.now += ms(RTT);
    assert_eq!(ack(&mut s, 1001, &[(2001, 3001)]), NONE);
    assert_eq!(wait(&mut s, ms(49)), NONE);
    assert_eq!(wait(&mut s, ms(1)), [(1001, 1000)]);
}

#[test]
fn duplicates_widen_the_reordering_window_once_a_round_trip_and_again_in_each() {
    // section 6.2, step 4: RACK.dsack_round ends when SND.UNA reaches it, whether or not anything is missing by then
    for (rounds, duplicates, widened) in [(1, 1, 1), (1, 3, 1), (2, 1, 2), (3, 2, 3)] {
        let mut s = sender(rack());
        for round in 0..rounds {
            let begin = round * 2000;
            write(&mut s, u64::from(begin), 2000);
            s.now += ms(RTT);
            // the round lasts until what was sent by now is acknowledged
            for _ in 0..duplicates {
                ack(&mut s, begin + 1001, &[(begin + 1, begin + 1001)]);
            }
            ack(&mut s, begin + 2001, &[]);
        }
        let begin = rounds * 2000;
        write(&mut s, u64::from(begin), 5000);
        s.now += ms(RTT);
        assert_eq!(ack(&mut s, begin + 1, &[(begin + 1001, begin + 2001)]), NONE);
        let due = RTT / 4 * (1 + widened);
        assert_eq!(wait(&mut s, ms(due - 1)), NONE, "{rounds} rounds of {duplicates}");
        assert_eq!(
            wait(&mut s, ms(1)),
            [(begin + 1, 1000)],
            "{rounds} rounds of {duplicates}"
        );
    }
}

#[test]
fn a_retransmission_that_is_overdue_is_sent_again() {
    // section 6.2, step 5: retransmissions too are judged by their time of sending
    let mut s = sender(rack());
    write(&mut s, 0, 6000);
    s.now += ms(RTT);
    assert_eq!(ack(&mut s, 1, &[(1001, 4001)]), [(1, 1000)]);
    write(&mut s, 6000, 1000);
    s.now += ms(RTT);
    assert_eq!(ack(&mut s, 1, &[(1001, 5001)]), NONE, "sent before it");
    s.write(7000, 1000);
    let after = s.sent();
    assert_eq!(after.len(), 1);
    s.now += ms(RTT / 2);
    assert_eq!(ack(&mut s, 1, &[(1001, 7001)]), [(1, 1000)]);
}

fn with_probes() -> Config {
    Config {
        tail_loss_probe: true,
        ..rack()
    }
}

#[test]
fn the_tail_is_probed_after_two_round_trips_by_the_last_segment() {
    // section 7.2: PTO = 2 SRTT; section 7.3
    let mut s = sender(with_probes());
    write(&mut s, 0, 3000);
    assert_eq!(wait(&mut s, ms(2 * RTT - 1)), NONE);
    assert_eq!(wait(&mut s, ms(1)), [(2001, 1000)]);
    assert_eq!(s.connection().counters().recovery.loss_probes, 1);
    // the retransmission timer begins anew with it, and there is one probe
    assert_eq!(wait(&mut s, ms(RTO - 1)), NONE);
    assert_eq!(wait(&mut s, ms(1)), [(1, 1000)]);
    let counters = s.connection().counters();
    assert_eq!(
        (counters.recovery.loss_probes, counters.recovery.timeouts),
        (1, 1)
    );
}

#[test]
fn a_segment_alone_is_given_the_time_of_a_delayed_acknowledgement() {
    // section 7.2: PTO += TLP.max_ack_delay, and no later than the retransmission timer, which is earlier here: the probe
    // goes then, and the window is not lost for one segment
    let mut s = sender(with_probes());
    write(&mut s, 0, 1000);
    assert_eq!(wait(&mut s, ms(RTO)), [(1, 1000)]);
    let counters = s.connection().counters();
    assert_eq!(
        (counters.recovery.loss_probes, counters.recovery.timeouts),
        (1, 0)
    );
    assert_eq!(wait(&mut s, ms(RTO)), [(1, 1000)]);
    let counters = s.connection().counters();
    assert_eq!(
        (counters.recovery.loss_probes, counters.recovery.timeouts),
        (1, 1)
    );
    let mut s = sender(Config {
        rto_min: Duration::from_secs(2),
        ..with_probes()
    });
    write(&mut s, 0, 1000);
    assert_eq!(wait(&mut s, ms(2 * RTT + 199)), NONE);
    assert_eq!(wait(&mut s, ms(1)), [(1, 1000)]);
    assert_eq!(s.connection().counters().recovery.loss_probes, 1);
}

#[test]
fn the_probe_waits_from_the_last_acknowledgement_that_goes_forward() {
    // section 7.2: the timer is restarted by new data, and by an acknowledgement of some of it
    let mut s = sender(with_probes());
    write(&mut s, 0, 3000);
    s.now += ms(RTT);
    assert_eq!(ack(&mut s, 1001, &[]), NONE);
    let srtt = s.connection().snapshot().srtt.unwrap();
    assert_eq!(wait(&mut s, srtt * 2 - ms(1)), NONE);
    assert_eq!(wait(&mut s, ms(1)), [(2001, 1000)]);
}

#[test]
fn the_probe_is_new_data_where_there_is_any() {
    // section 7.3: whatever cwnd says, but within the peer's window
    for (window, probe) in [
        (60_000, (10_001, 1000)),
        (10_300, (10_001, 300)),
        (10_000, (9001, 1000)),
    ] {
        let mut s = sender(with_probes());
        s.window = window;
        ack(&mut s, 1, &[]);
        assert_eq!(write(&mut s, 0, 12_000).len(), 10);
        assert_eq!(wait(&mut s, ms(2 * RTT)), [probe], "window {window}");
    }
}

#[test]
fn a_probe_that_repaired_a_loss_costs_as_much_as_any_loss() {
    // section 7.4.2
    let probed = |blocks: &[(u32, u32)], duplicate: bool| {
        let mut s = ten(Config {
            rto_min: Duration::from_secs(2),
            ..with_probes()
        });
        s.now += ms(RTT);
        ack(&mut s, 9001, &[]);
        let cwnd = s.connection().snapshot().cwnd;
        assert_eq!(wait(&mut s, ms(400)), [(9001, 1000)]);
        assert_eq!(s.connection().counters().recovery.loss_probes, 1);
        ack(&mut s, 10_001, blocks);
        write(&mut s, 10_000, 1000);
        if duplicate {
            ack(&mut s, 10_001, &[]);
        }
        ack(&mut s, 11_001, &[]);
        (cwnd, s.connection().snapshot())
    };
    let (before, after) = probed(&[], false);
    assert!(after.ssthresh <= before / 2 + 1000, "{after:?}");
    let (before, after) = probed(&[(9001, 10_001)], false);
    assert!(
        after.ssthresh == u32::MAX && after.cwnd >= before,
        "both arrived: {after:?}"
    );
    let (before, after) = probed(&[], true);
    assert!(
        after.ssthresh == u32::MAX && after.cwnd >= before,
        "a duplicate says so as well: {after:?}"
    );
}
