//! A sender against acknowledgements made by hand: what it takes for lost, when its timers go off, and what a reduction
//! costs. Segments are of 1000 bytes; positions are counted from the first byte of data, which is 1.

use crate::common::tcp_script::{ACK, OWN, PEER, SYN, Script, ms, plain};
use segue_proto::Duration;
use segue_proto::congestion::Algorithm;
use segue_proto::tcp::{
    Config, Event, InitialWindow, LossDetection, Reduction, RtoRule, SendError, Snapshot, State,
};
use segue_wire::tcp::{SackBlock, TcpOptions, Timestamps};
use segue_wire::{Data, SeqNumber};
use std::net::Ipv6Addr;

/// Round-trip time of the handshake.
const RTT: u64 = 100;
/// What RFC 6298 makes of it: SRTT + 4 (SRTT / 2).
const RTO: u64 = 300;

/// With SACK, Reno and RFC 6675, and nothing of what came later.
pub fn standard() -> Config {
    Config {
        sack: true,
        congestion_control: Algorithm::Reno,
        initial_window: InitialWindow::Rfc6928,
        loss_detection: LossDetection::Rfc6675,
        reduction: Reduction::Immediate,
        rto_rule: RtoRule::Rfc6298,
        tail_loss_probe: false,
        frto: false,
        undo: false,
        ..plain()
    }
}

fn rack() -> Config {
    Config {
        loss_detection: LossDetection::Rack,
        ..standard()
    }
}

/// A connection whose handshake took one round trip; cwnd is ten segments.
pub fn sender(config: Config) -> Script {
    sender_with(config, TcpOptions::default())
}

fn sender_with(config: Config, mut options: TcpOptions) -> Script {
    let mut s = Script::listening(config);
    options.set_mss(1000);
    options.set_sack_permitted();
    s.timestamps = options.timestamps;
    let mut syn = s.segment(SYN, 0, 0, 0);
    syn.options = options;
    s.give(syn);
    s.iss = s.only().seq.0;
    s.now += ms(RTT);
    s.give(s.segment(ACK, 1, 1, 0));
    assert_eq!(s.sent(), []);
    s.events.clear();
    s
}

fn shown(s: &Script, segments: &[segue_wire::tcp::TcpSegment]) -> Vec<(u32, usize)> {
    segments
        .iter()
        .map(|segment| (s.numbers(segment).1, segment.data.len()))
        .collect()
}

/// Writes so many bytes and says what goes out: position and length.
pub fn write(s: &mut Script, offset: u64, len: u32) -> Vec<(u32, usize)> {
    s.write(offset, len);
    let sent = s.sent();
    shown(s, &sent)
}

/// An acknowledgement with these blocks, and what goes out for it.
pub fn ack(s: &mut Script, to: u32, blocks: &[(u32, u32)]) -> Vec<(u32, usize)> {
    let mut segment = s.segment(ACK, 1, to, 0);
    let number = |position: u32| SeqNumber(s.iss.wrapping_add(position));
    let blocks: Vec<SackBlock> = blocks
        .iter()
        .map(|(left, right)| SackBlock {
            left: number(*left),
            right: number(*right),
        })
        .collect();
    segment.options.set_sack_blocks(&blocks);
    s.give(segment);
    let sent = s.sent();
    shown(s, &sent)
}

pub fn wait(s: &mut Script, time: Duration) -> Vec<(u32, usize)> {
    let sent = s.wait(time);
    shown(s, &sent)
}

const NONE: [(u32, usize); 0] = [];

/// Ten segments are out.
pub fn ten(config: Config) -> Script {
    let mut s = sender(config);
    assert_eq!(write(&mut s, 0, 10_000).len(), 10);
    s
}

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
    assert_eq!((counters.retransmissions, counters.fast_recoveries), (2, 1));
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
    assert_eq!(s.connection().counters().retransmissions, 1);
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
        (counters.refused.impossible_sacks, counters.dsacks_received),
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
    assert_eq!(s.connection().counters().fast_recoveries, 1);
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
    assert_eq!(s.connection().counters().dsacks_received, 1);
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
    assert_eq!(s.connection().counters().loss_probes, 1);
    // the retransmission timer begins anew with it, and there is one probe
    assert_eq!(wait(&mut s, ms(RTO - 1)), NONE);
    assert_eq!(wait(&mut s, ms(1)), [(1, 1000)]);
    let counters = s.connection().counters();
    assert_eq!((counters.loss_probes, counters.timeouts), (1, 1));
}

#[test]
fn a_segment_alone_is_given_the_time_of_a_delayed_acknowledgement() {
    // section 7.2: PTO += TLP.max_ack_delay, and no later than the retransmission timer, which is earlier here
    let mut s = sender(with_probes());
    write(&mut s, 0, 1000);
    assert_eq!(wait(&mut s, ms(RTO)), [(1, 1000)]);
    let counters = s.connection().counters();
    assert_eq!((counters.loss_probes, counters.timeouts), (0, 1));
    let mut s = sender(Config {
        rto_min: Duration::from_secs(2),
        ..with_probes()
    });
    write(&mut s, 0, 1000);
    assert_eq!(wait(&mut s, ms(2 * RTT + 199)), NONE);
    assert_eq!(wait(&mut s, ms(1)), [(1, 1000)]);
    assert_eq!(s.connection().counters().loss_probes, 1);
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
        assert_eq!(s.connection().counters().loss_probes, 1);
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

// --- the retransmission timer: RFC 6298, RFC 5682 ---

#[test]
fn timeouts_double_and_the_first_segment_goes_alone() {
    let mut s = ten(standard());
    for (number, timeout) in [RTO, 2 * RTO, 4 * RTO].into_iter().enumerate() {
        assert_eq!(wait(&mut s, ms(timeout - 1)), NONE);
        assert_eq!(wait(&mut s, ms(1)), [(1, 1000)]);
        assert_eq!(s.connection().counters().timeouts, number as u64 + 1);
        let snapshot = s.connection().snapshot();
        assert_eq!(
            (snapshot.cwnd, snapshot.ssthresh),
            (1000, 5000),
            "ssthresh is cut once"
        );
    }
    // slow start: what the peer does not acknowledge was lost
    assert_eq!(ack(&mut s, 1001, &[]), [(1001, 1000), (2001, 1000)]);
    assert_eq!(
        s.connection().snapshot().rto,
        ms(8 * RTO),
        "a retransmission measures nothing (section 5, after rule 5.7)"
    );
    assert_eq!(
        ack(&mut s, 3001, &[]),
        [(3001, 1000), (4001, 1000), (5001, 1000), (6001, 1000)]
    );
    // all of it, and then news
    ack(&mut s, 10_001, &[]);
    assert_eq!(write(&mut s, 10_000, 1000), [(10_001, 1000)]);
    s.now += ms(RTT);
    ack(&mut s, 11_001, &[]);
    assert!(
        s.connection().snapshot().rto <= ms(RTO),
        "and the back-off is over"
    );
}

#[test]
fn the_timer_begins_anew_with_every_acknowledgement_of_new_data() {
    // RFC 6298 section 5.3
    let mut s = ten(standard());
    s.now += ms(RTO - 1);
    ack(&mut s, 1, &[]);
    assert_eq!(wait(&mut s, ms(1)), [(1, 1000)], "a duplicate is none");
    let mut s = ten(standard());
    s.now += ms(RTT);
    ack(&mut s, 1001, &[]);
    let rto = s.connection().snapshot().rto;
    assert_eq!(wait(&mut s, rto - ms(1)), NONE);
    assert_eq!(wait(&mut s, ms(1)), [(1001, 1000)]);
    // section 5.2: none runs when all is acknowledged
    s.now += ms(1);
    ack(&mut s, 10_001, &[]);
    assert_eq!(wait(&mut s, Duration::from_secs(30)), NONE);
}

#[test]
fn what_was_sent_twice_is_not_measured_unless_its_timestamp_tells() {
    // RFC 6298 section 3, Karn's algorithm; RFC 7323 section 4
    let mut s = sender(standard());
    write(&mut s, 0, 1000);
    wait(&mut s, ms(RTO));
    s.now += ms(20);
    ack(&mut s, 1001, &[]);
    assert_eq!(s.connection().snapshot().srtt, Some(ms(RTT)));
    let stamps = |value, echo| Some(Timestamps { value, echo });
    let config = Config {
        timestamps: true,
        ..standard()
    };
    let mut s = sender_with(config, TcpOptions::with_timestamps(stamps(9, 0)));
    s.write(0, 500);
    assert_eq!(s.sent().len(), 1);
    let again = s.wait(s.connection().snapshot().rto);
    let echo = again[0].options.timestamps.expect("on every segment").value;
    s.timestamps = stamps(10, echo);
    s.now += ms(20);
    let before = s.connection().snapshot().srtt.expect("of the handshake");
    ack(&mut s, 501, &[]);
    assert_eq!(
        s.connection().snapshot().srtt,
        Some(before - before / 8 + ms(20) / 8)
    );
}

#[test]
fn after_a_syn_that_was_sent_again_the_timeout_begins_at_3_s() {
    // RFC 6298 section 5, rule 5.7: without timestamps nothing says which of them was acknowledged
    let mut s = Script::listening(standard());
    s.give(s.segment(SYN, 0, 0, 0));
    s.iss = s.only().seq.0;
    assert_eq!(s.wait(ms(1000)).len(), 1);
    s.give(s.segment(ACK, 1, 1, 0));
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.connection().snapshot().rto, ms(3000));
}

fn with_frto() -> Config {
    Config {
        frto: true,
        undo: true,
        ..standard()
    }
}

#[test]
fn after_a_timeout_new_data_is_sent_first_and_its_fate_tells_whether_it_was_spurious() {
    // RFC 5682 section 3.1, steps 2b and 3b
    let mut s = ten(with_frto());
    s.write(10_000, 10_000);
    assert_eq!(wait(&mut s, ms(RTO)), [(1, 1000)]);
    assert_eq!(ack(&mut s, 2001, &[])[..2], [(10_001, 1000), (11_001, 1000)]);
    ack(&mut s, 3001, &[]);
    let counters = s.connection().counters();
    assert_eq!((counters.spurious_timeouts, counters.undone), (1, 1));
    assert_eq!(counters.retransmissions, 1);
    assert!(s.connection().snapshot().cwnd >= 10_000);
}

#[test]
fn a_duplicate_after_the_new_data_says_that_the_timeout_was_right() {
    // RFC 5682 section 3.1, step 3a
    let mut s = ten(with_frto());
    s.write(10_000, 10_000);
    assert_eq!(wait(&mut s, ms(RTO)), [(1, 1000)]);
    let new = ack(&mut s, 1001, &[]);
    assert_eq!(new[..2], [(10_001, 1000), (11_001, 1000)]);
    let again = ack(&mut s, 1001, &[(10_001, 11_001)]);
    assert_eq!(again.first(), Some(&(1001, 1000)));
    let counters = s.connection().counters();
    assert_eq!((counters.spurious_timeouts, counters.undone), (0, 0));
    assert_eq!(s.connection().snapshot().ssthresh, 5000);
}

#[test]
fn a_recovery_whose_retransmissions_all_arrived_twice_is_taken_back() {
    // RFC 3708
    for (duplicates, undone) in [(1, 1), (0, 0)] {
        let mut s = ten(Config {
            undo: true,
            ..standard()
        });
        assert_eq!(ack(&mut s, 1, &[(1001, 4001)]), [(1, 1000)]);
        ack(&mut s, 4001, &[]);
        for _ in 0..duplicates {
            ack(&mut s, 4001, &[(1, 1001)]);
        }
        ack(&mut s, 10_001, &[]);
        assert_eq!(s.connection().counters().undone, undone);
        let snapshot = s.connection().snapshot();
        assert_eq!(snapshot.cwnd >= 10_000, undone == 1, "{snapshot:?}");
    }
}

// --- windows ---

#[test]
fn a_closed_window_is_probed_ever_less_often_and_for_as_long_as_the_peer_answers() {
    // RFC 9293 section 3.8.6.1
    let mut s = sender(standard());
    s.window = 2000;
    ack(&mut s, 1, &[]);
    assert_eq!(write(&mut s, 0, 5000), [(1, 1000), (1001, 1000)]);
    s.window = 0;
    assert_eq!(ack(&mut s, 2001, &[]), NONE);
    let rto = s.connection().snapshot().rto;
    for n in 0..5 {
        let interval = rto * (1 << n);
        assert_eq!(wait(&mut s, interval - ms(1)), NONE, "probe {n}");
        assert_eq!(wait(&mut s, ms(1)), [(2001, 1)], "probe {n}");
        assert_eq!(ack(&mut s, 2001, &[]), NONE);
    }
    for _ in 0..20 {
        assert_eq!(wait(&mut s, Duration::from_secs(120)).len().min(1), 1);
        assert_eq!(ack(&mut s, 2001, &[]), NONE);
    }
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.connection().counters().timeouts, 0);
    // it opens: the octet was not taken
    s.window = 5000;
    assert_eq!(ack(&mut s, 2001, &[])[0], (2001, 1));
}

#[test]
fn a_closed_window_of_a_peer_that_is_gone_ends_the_connection() {
    let mut s = sender(standard());
    s.window = 1000;
    ack(&mut s, 1, &[]);
    write(&mut s, 0, 5000);
    s.window = 0;
    ack(&mut s, 1001, &[]);
    let probes = wait(&mut s, Duration::from_secs(3600));
    assert_eq!(probes.len(), 15, "MAX retransmissions");
    assert_eq!(s.events.last(), Some(&Event::TimedOut));
}

#[test]
fn an_octet_that_was_taken_is_not_sent_again_when_the_window_opens() {
    let mut s = sender(standard());
    s.window = 1000;
    ack(&mut s, 1, &[]);
    write(&mut s, 0, 5000);
    s.window = 0;
    ack(&mut s, 1001, &[]);
    let rto = s.connection().snapshot().rto;
    assert_eq!(wait(&mut s, rto), [(1001, 1)]);
    s.window = 5000;
    assert_eq!(ack(&mut s, 1002, &[])[0], (1002, 1000));
    assert_eq!(s.connection().counters().retransmissions, 0);
}

#[test]
fn a_segment_older_than_the_last_one_does_not_change_the_window() {
    // RFC 9293 section 3.10.7.4: SND.WL1 and SND.WL2
    let mut s = ten(standard());
    s.give(s.segment(ACK, 1, 1001, 100));
    s.give(s.segment(ACK, 101, 1001, 100));
    s.sent();
    assert_eq!(s.connection().snapshot().snd_wnd, 60_000);
    s.window = 10;
    s.give(s.segment(ACK, 1, 2001, 100));
    assert_eq!(
        s.connection().snapshot().snd_wnd,
        60_000,
        "an old sequence number"
    );
    s.sent();
    s.give(s.segment(ACK, 201, 2001, 0));
    assert_eq!(s.connection().snapshot().snd_wnd, 10);
    s.window = 50_000;
    s.give(s.segment(ACK, 201, 1001, 0));
    assert_eq!(s.connection().snapshot().snd_wnd, 10, "an old acknowledgement");
    s.give(s.segment(ACK, 201, 2001, 0));
    assert_eq!(s.connection().snapshot().snd_wnd, 50_000);
}

#[test]
fn an_application_that_does_not_use_its_window_loses_half_of_what_it_does_not_use() {
    // RFC 2861 section 3.2: once per RTO, cwnd = (cwnd + W) / 2, where W is no less than the initial window
    let mut s = sender(standard());
    let mut offset = 0;
    for n in [10, 20, 40] {
        assert_eq!(write(&mut s, offset, 1000 * n).len(), n as usize);
        offset += u64::from(1000 * n);
        s.now += ms(RTT);
        ack(&mut s, offset as u32 + 1, &[]);
    }
    let full = s.connection().snapshot();
    assert_eq!(full.cwnd, 80_000);
    let after = after_little_use(&mut s, &mut offset);
    assert_eq!((after.cwnd, after.ssthresh), (45_000, u32::MAX));
}

#[test]
fn ssthresh_remembers_three_quarters_of_the_window_that_was_not_used() {
    // RFC 2861 section 3.2
    let mut s = ten(standard());
    ack(&mut s, 1, &[(1001, 4001)]);
    s.now += ms(RTT);
    ack(&mut s, 10_001, &[]);
    let mut offset = 10_000;
    while s.connection().snapshot().cwnd < 12_000 {
        let cwnd = s.connection().snapshot().cwnd;
        write(&mut s, offset, cwnd);
        offset += u64::from(cwnd);
        s.now += ms(RTT);
        ack(&mut s, offset as u32 + 1, &[]);
    }
    let full = s.connection().snapshot();
    assert_eq!(full.ssthresh, 5000);
    let after = after_little_use(&mut s, &mut offset);
    assert_eq!(
        (after.cwnd, after.ssthresh),
        ((full.cwnd + 10_000) / 2, full.cwnd / 4 * 3)
    );
}

/// A segment every 50 ms, so that it is never idle for an RTO, which would be another rule; until the window has not been
/// used for one.
fn after_little_use(s: &mut Script, offset: &mut u64) -> Snapshot {
    let full = s.connection().snapshot().cwnd;
    let mut waited = ms(0);
    loop {
        s.now += ms(50);
        waited += ms(50);
        let rto = s.connection().snapshot().rto;
        write(s, *offset, 1000);
        let snapshot = s.connection().snapshot();
        if waited >= rto {
            assert!(waited >= ms(200), "RTO.Min");
            return snapshot;
        }
        assert_eq!(snapshot.cwnd, full, "after {waited}");
        *offset += 1000;
        ack(s, *offset as u32 + 1, &[]);
    }
}

#[test]
fn reordering_that_was_seen_raises_the_threshold_to_its_distance() {
    // RFC 6675 section 4's DupThresh, adapted as Linux does: from the segment that was late to the highest
    let mut s = ten(standard());
    assert_eq!(s.connection().snapshot().reordering, 3);
    ack(&mut s, 1, &[(6001, 7001)]);
    ack(&mut s, 1, &[(1001, 2001), (6001, 7001)]);
    assert_eq!(s.connection().snapshot().reordering, 5, "late, and reported");
    let mut s = ten(standard());
    ack(&mut s, 1, &[(6001, 7001)]);
    ack(&mut s, 1001, &[(6001, 7001)]);
    assert_eq!(s.connection().snapshot().reordering, 6, "late, and acknowledged");
}

#[test]
fn a_syn_that_was_lost_twice_leaves_one_segment_to_begin_with() {
    for (lost, segments) in [(0, 10), (1, 10), (2, 1)] {
        let mut s = Script::listening(standard());
        let mut syn = s.segment(SYN, 0, 0, 0);
        syn.options.set_mss(1000);
        s.give(syn);
        s.iss = s.only().seq.0;
        for n in 0..lost {
            assert_eq!(s.wait(Duration::from_secs(1 << n)).len(), 1);
        }
        s.give(s.segment(ACK, 1, 1, 0));
        assert_eq!(write(&mut s, 0, 20_000).len(), segments, "{lost} lost");
    }
}

#[test]
fn the_user_is_told_of_room_when_a_third_of_the_buffer_is_free_and_of_the_end() {
    let mut s = sender(Config {
        send_buffer: 6000,
        ..standard()
    });
    let data = |len| Data::Synthetic { offset: 0, len };
    assert_eq!(s.command(|c| c.send(&data(9000))), Ok(6000));
    assert_eq!(s.command(|c| c.send(&data(1))), Err(SendError::BufferFull));
    assert_eq!(s.command(|c| c.send(&data(0))), Ok(0));
    assert_eq!(s.sent().len(), 6);
    ack(&mut s, 1001, &[]);
    assert_eq!(s.events, []);
    ack(&mut s, 2001, &[]);
    assert_eq!(s.events, [Event::Writable]);
    ack(&mut s, 5001, &[]);
    assert_eq!(
        s.events,
        [Event::Writable],
        "it was told, and has written nothing"
    );
    ack(&mut s, 6001, &[]);
    assert_eq!(s.events, [Event::Writable, Event::SendersDry]);
    // all or nothing, but for what is longer than the buffer, which goes when it is empty
    assert_eq!(s.command(|c| c.send_all(data(7000))), Ok(()));
    assert_eq!(s.command(|c| c.send_all(data(1))), Err(SendError::BufferFull));
    assert_eq!(s.command(|c| c.send_room()), 0);
}

// --- receiving ---

#[test]
fn blocks_beyond_gaps_are_reported_the_latest_first() {
    // RFC 2018 section 4; timestamps leave room for three
    for (timestamps, most) in [(false, 4), (true, 3)] {
        let stamps = timestamps.then_some(Timestamps { value: 1, echo: 0 });
        let config = Config {
            timestamps,
            ..standard()
        };
        let mut s = sender_with(config, TcpOptions::with_timestamps(stamps));
        let mut expected: Vec<(u32, u32)> = Vec::new();
        let blocks = |s: &mut Script, seq: u32, len: u32| -> Vec<(u32, u32)> {
            s.give(s.segment(ACK, seq, 1, len));
            let irs = crate::common::tcp_script::IRS;
            let answer = s.only();
            let found = answer.options.sack_blocks().iter();
            found.map(|b| (b.left.0 - irs, b.right.0 - irs)).collect()
        };
        for at in [2001, 6001, 4001, 10_001, 8001] {
            expected.insert(0, (at, at + 1000));
            expected.truncate(most);
            assert_eq!(blocks(&mut s, at, 1000), expected);
        }
        // RFC 2883 section 4: a duplicate first, and the block that it is in
        let twice = blocks(&mut s, 4001, 1000);
        assert_eq!(twice[..2], [(4001, 5001), (4001, 5001)]);
        assert_eq!(twice.len(), most);
        // it is reported once
        assert_eq!(blocks(&mut s, 12_001, 1000)[0], (12_001, 13_001));
        assert_eq!(blocks(&mut s, 1, 1000)[0], (12_001, 13_001));
        // of what is acknowledged already
        assert_eq!(blocks(&mut s, 1, 1000)[0], (1, 1001));
    }
}

#[test]
fn time_wait_begins_anew_with_the_peer_s_fin() {
    // RFC 9293 section 3.10.7.4, eighth
    let fin = segue_wire::tcp::TcpFlags::FIN;
    let mut s = sender(standard());
    s.command(|c| c.close());
    assert_eq!(s.sent().len(), 1);
    s.give(s.segment(ACK, 1, 2, 0));
    assert_eq!(s.state(), State::FinWait2);
    s.wait(Duration::from_secs(59));
    s.give(s.segment(ACK, 1, 2, 10));
    s.wait(Duration::from_secs(59));
    assert_eq!(s.state(), State::FinWait2, "data is a sign of life");
    s.give(s.segment(ACK | fin, 11, 2, 0));
    assert_eq!(s.only().ack.0.wrapping_sub(crate::common::tcp_script::IRS), 12);
    assert_eq!(s.state(), State::TimeWait);
    s.wait(Duration::from_secs(40));
    s.give(s.segment(ACK | fin, 11, 2, 0));
    assert_eq!(s.sent().len(), 1, "the acknowledgement was lost");
    s.wait(Duration::from_secs(59));
    assert_eq!(s.state(), State::TimeWait);
    s.wait(Duration::from_secs(1));
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn a_peer_that_never_closes_is_not_waited_for_in_fin_wait_2() {
    let mut s = sender(standard());
    s.command(|c| c.close());
    s.sent();
    s.give(s.segment(ACK, 1, 2, 0));
    s.wait(Duration::from_secs(60));
    assert_eq!(s.events.last(), Some(&Event::TimedOut));
}

#[test]
fn a_timestamp_may_be_older_after_24_days() {
    // RFC 7323 section 5.5
    let stamps = |value| Some(Timestamps { value, echo: 0 });
    for (days, taken) in [(23, 0), (25, 100)] {
        let config = Config {
            timestamps: true,
            ..standard()
        };
        let mut s = sender_with(config, TcpOptions::with_timestamps(stamps(1 << 31)));
        s.now += Duration::from_secs(days * 86_400);
        s.timestamps = stamps(1000);
        s.give(s.segment(ACK, 1, 1, 100));
        assert_eq!(
            s.connection().counters().data_bytes_received,
            taken,
            "{days} days"
        );
    }
}

#[test]
fn segments_between_what_cannot_be_two_ends_are_counted_and_not_answered() {
    // RFC 9293 section 3.9.2.3 and MUST-57: not from or to a multicast address; nor without ports
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    for (from, to) in [(group, OWN), (Ipv6Addr::UNSPECIFIED, OWN), (PEER, group)] {
        let mut s = Script::listening(standard());
        let syn = s.segment(SYN, 0, 0, 0);
        s.give_between(from, to, syn);
        assert!(s.sent().is_empty());
        assert_eq!(s.endpoint.counters().not_unicast, 1);
    }
    for (source, destination) in [(0, 80), (4000, 0)] {
        let mut s = Script::listening(standard());
        let mut syn = s.segment(SYN, 0, 0, 0);
        (syn.source_port, syn.destination_port) = (source, destination);
        s.give(syn);
        assert!(s.sent().is_empty());
        assert_eq!(s.endpoint.counters().port_zero, 1);
    }
    let mut s = Script::listening(standard());
    for n in 1..=2 {
        s.give(s.segment(ACK, 5, 5, 0));
        assert_eq!(s.sent().len(), 1);
        assert_eq!(s.endpoint.counters().resets_sent, n);
        s.give(s.segment(segue_wire::tcp::TcpFlags::RST, 5, 5, 0));
        assert!(s.sent().is_empty());
        assert_eq!(s.endpoint.counters().stray_resets, n);
    }
}

#[test]
fn a_duplicate_of_the_last_segment_sent_is_one() {
    // RFC 2883 section 4: within the block that follows it
    let mut s = ten(standard());
    ack(&mut s, 1, &[(9001, 10_001), (8001, 10_001)]);
    let counters = s.connection().counters();
    assert_eq!((counters.dsacks_received, counters.refused.total()), (1, 0));
}

#[test]
fn an_old_segment_is_a_duplicate_only_if_there_is_something_in_it() {
    let mut s = sender(standard());
    s.give(s.segment(ACK, 1, 1, 100));
    s.give(s.segment(ACK, 50, 1, 0));
    assert_eq!(s.sent().len(), 1);
    let counters = s.connection().counters();
    assert_eq!(
        (counters.duplicate_segments, counters.refused.outside_window),
        (0, 1)
    );
    s.give(s.segment(ACK, 50, 1, 51));
    assert_eq!(s.sent().len(), 1);
    let counters = s.connection().counters();
    assert_eq!(
        (counters.duplicate_segments, counters.refused.outside_window),
        (1, 1)
    );
}

#[test]
fn nothing_is_taken_behind_a_close_however_early_it_came() {
    // RFC 9293 section 3.10.4, SYN-SENT and SYN-RECEIVED: the FIN goes behind what is queued
    let (mut s, syn) = Script::connecting(standard());
    let data = Data::Synthetic { offset: 0, len: 10 };
    assert_eq!(s.command(|c| c.send(&data)), Ok(10));
    // both ends open at once
    let mut theirs = s.segment(SYN, 0, 0, 0);
    theirs.options.set_mss(1000);
    s.give(theirs);
    s.sent();
    assert_eq!(s.state(), State::SynReceived);
    s.command(|c| c.close());
    assert_eq!(s.command(|c| c.send(&data)), Err(SendError::Closing));
    assert_eq!(s.command(|c| c.send_all(data.clone())), Err(SendError::Closing));
    assert_eq!(syn.data.len(), 0);
    s.give(s.segment(ACK, 1, 1, 0));
    let sent = s.sent();
    assert_eq!(shown(&s, &sent), [(1, 10)]);
    assert!(sent[0].flags.contains(segue_wire::tcp::TcpFlags::FIN));
}
