//! Where today's Linux is what the RFCs leave open, or what they have become: PRR of RFC 9937, RACK's timer, when the window
//! counts as used (`tcp_cwnd_validate`, `tcp_is_cwnd_limited`), and duplicate acknowledgements without SACK. Segments are of
//! 1000 bytes; positions are counted from the first byte of data, which is 1.

use crate::common::tcp_script::ms;
use crate::common::tcp_sender::{NONE, RTT, ack, rack, sender, standard, ten, wait, write};
use segue_proto::Duration;
use segue_proto::tcp::{Config, Phase, Reduction};

fn in_proportion() -> Config {
    Config {
        reduction: Reduction::Prr,
        ..rack()
    }
}

#[test]
fn what_was_retransmitted_at_one_moment_is_not_retransmitted_again_when_a_part_of_it_arrives() {
    // RFC 8985 section 6.2: of equal times of sending, the higher number was sent later
    let mut s = ten(in_proportion());
    s.now += ms(RTT);
    for end in [5001, 6001, 7001, 8001, 9001, 10_001] {
        ack(&mut s, 1, &[(4001, end)]);
    }
    assert_eq!(s.connection().counters().recovery.retransmissions, 4);
    s.now += ms(RTT);
    for to in [1001, 2001, 3001] {
        assert_eq!(ack(&mut s, to, &[(4001, 10_001)]), NONE);
    }
    ack(&mut s, 10_001, &[]);
    assert_eq!(s.connection().counters().recovery.retransmissions, 4);
}

#[test]
fn an_acknowledgement_of_a_retransmission_and_of_what_was_late_before_it_leaves_the_rest_alone() {
    // tcp_rack_advance: RACK.rtt is that of the segment looked at last, in the order of numbers
    let mut s = ten(in_proportion());
    s.now += ms(RTT);
    ack(&mut s, 1, &[(1001, 2001)]);
    ack(&mut s, 1, &[(1001, 3001)]);
    assert_eq!(ack(&mut s, 1, &[(8001, 9001), (1001, 3001)]), [(1, 1000)]);
    assert_eq!(
        s.connection().outstanding().lost,
        6,
        "what was sent before the highest"
    );
    s.now += ms(RTT + 20);
    ack(&mut s, 4001, &[(8001, 9001)]);
    // the retransmission took 120 ms, 3001 to 4001 took 220: the last segment has been under way for as long
    assert_eq!(s.connection().outstanding().lost, 4);
}

#[test]
fn a_recovery_that_the_reordering_timer_begins_lets_one_segment_go() {
    // RFC 9937 section 5: SndCnt is a segment where nothing was delivered; not all of the window that was there before
    let mut s = ten(in_proportion());
    s.now += ms(RTT);
    assert_eq!(ack(&mut s, 1, &[(7001, 8001)]), NONE);
    assert_eq!(s.connection().snapshot().phase, Phase::Disorder);
    assert_eq!(wait(&mut s, ms(RTT / 4)), [(1, 1000)]);
    let now = s.connection();
    assert_eq!(
        (now.snapshot().phase, now.outstanding().lost),
        (Phase::Recovery, 7)
    );
    assert_eq!(now.snapshot().cwnd, 3000, "what is in the network, and one");
    assert_eq!(ack(&mut s, 1, &[(7001, 9001)]), [(1001, 1000)]);
}

#[test]
fn below_ssthresh_only_progress_earns_a_segment_more_than_arrived() {
    // RFC 9937 section 5: safeACK is SND.UNA going forward without further loss; RFC 6937 section 3.1 adds MSS always
    for (reduction, more) in [(Reduction::Prr, 1), (Reduction::PrrRfc6937, 2)] {
        let mut s = ten(Config { reduction, ..rack() });
        s.write(10_000, 20_000);
        s.now += ms(RTT);
        ack(&mut s, 1, &[(6001, 7001)]);
        ack(&mut s, 1, &[(6001, 8001)]);
        // the pipe is 12 - 3 - 6 of a ssthresh of 5
        assert_eq!(ack(&mut s, 1, &[(6001, 9001)]).len(), more, "{reduction:?}");
    }
    let mut s = ten(in_proportion());
    s.now += ms(RTT);
    for end in [7001, 8001, 9001, 10_001] {
        ack(&mut s, 1, &[(6001, end)]);
    }
    s.now += ms(RTT);
    assert_eq!(ack(&mut s, 1001, &[(6001, 10_001)]).len(), 2, "progress");
}

#[test]
fn slow_start_doubles_what_was_used_of_the_window_in_its_last_flight() {
    // tcp_is_cwnd_limited: cwnd < 2 max_packets_out, however much is left of the flight
    for (segments, grown) in [(5, 10), (6, 12), (9, 18), (10, 20)] {
        let mut s = sender(standard());
        write(&mut s, 0, 1000 * segments);
        for to in (1..=segments).filter(|n| n % 2 == 0 || *n == segments) {
            ack(&mut s, 1000 * to + 1, &[]);
        }
        assert_eq!(
            s.connection().snapshot().cwnd,
            1000 * grown,
            "{segments} segments"
        );
    }
}

#[test]
fn a_window_that_kept_something_back_was_used_until_all_of_it_is_acknowledged() {
    // tp->is_cwnd_limited is kept for a window of data
    let mut s = ten(standard());
    // congestion avoidance, in which the doubling of slow start is no reason to grow
    ack(&mut s, 1, &[(1001, 4001)]);
    s.now += ms(RTT);
    ack(&mut s, 10_001, &[]);
    let cwnd = s.connection().snapshot().cwnd;
    let segments = cwnd / 1000;
    write(&mut s, 10_000, cwnd);
    s.now += ms(RTT);
    for n in 1..=segments {
        ack(&mut s, 10_001 + 1000 * n, &[]);
    }
    // RFC 5681 section 3.1: nearly a segment per round trip
    let grown = s.connection().snapshot().cwnd - cwnd;
    assert!((800..=1000).contains(&grown), "{grown}");
}

#[test]
fn without_sack_what_duplicates_stood_for_does_not_open_the_window_again() {
    // tcp_remove_reno_sacks: of three segments acknowledged after two duplicates one is news
    let mut s = ten(Config {
        sack: false,
        ..standard()
    });
    s.write(10_000, 5000);
    assert_eq!(ack(&mut s, 1, &[]), [(10_001, 1000)]);
    assert_eq!(ack(&mut s, 1, &[]), [(11_001, 1000)]);
    assert_eq!(ack(&mut s, 3001, &[]), [(12_001, 1000), (13_001, 1000)]);
    assert_eq!(s.connection().snapshot().cwnd, 11_000);
}

#[test]
fn probes_do_not_keep_a_window_alive_that_nothing_was_sent_through() {
    // RFC 5681 section 4.1: nothing but probes was sent for more than a timeout; what follows is no burst
    let mut s = sender(standard());
    let mut offset = 0;
    for n in [10, 20] {
        write(&mut s, offset, 1000 * n);
        offset += u64::from(1000 * n);
        s.now += ms(RTT);
        ack(&mut s, offset as u32 + 1, &[]);
    }
    assert_eq!(s.connection().snapshot().cwnd, 40_000);
    s.window = 0;
    ack(&mut s, offset as u32 + 1, &[]);
    assert_eq!(write(&mut s, offset, 40_000), NONE);
    for _ in 0..3 {
        let interval = Duration::from_secs(3);
        wait(&mut s, interval);
        ack(&mut s, offset as u32 + 1, &[]);
    }
    assert!(s.connection().counters().recovery.window_probes >= 3);
    s.window = 60_000;
    let burst = ack(&mut s, offset as u32 + 1, &[]);
    let bytes: usize = burst.iter().map(|(_, len)| len).sum();
    assert!(bytes <= 10_001, "{bytes} bytes at once");
    assert_eq!(s.connection().snapshot().cwnd, 10_000);
}
