//! Traces, one line per event: time in milliseconds, what, path, TSN.

use super::*;
use Step::{Lost, Recv, Send};

const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
const B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);

#[derive(Clone, Copy)]
enum Step {
    Send(u64, Ipv6Addr, u32),
    Recv(u64, Ipv6Addr, u32),
    Lost(u64, Ipv6Addr),
}

fn feed(meter: &mut HandoverMeter, steps: &[Step]) {
    for &step in steps {
        match step {
            Send(ms, path, tsn) => meter.data_sent(ms * 1_000_000, path, Tsn(tsn)),
            Recv(ms, path, tsn) => meter.data_received(ms * 1_000_000, path, Tsn(tsn), 1000),
            Lost(ms, path) => meter.data_lost(ms * 1_000_000, path, LossCause::Handover),
        }
    }
}

fn report(steps: &[Step]) -> HandoverReport {
    let mut meter = HandoverMeter::new();
    feed(&mut meter, steps);
    meter.finish()
}

/// The same without what the sender knows.
fn report_of_receiver(steps: &[Step]) -> HandoverReport {
    let received: Vec<Step> = steps.iter().copied().filter(|s| matches!(s, Recv(..))).collect();
    report(&received)
}

#[test]
fn clean_switch_has_the_gap_between_the_paths_as_latency() {
    let trace = [
        Send(0, A, 1),
        Send(10, A, 2),
        Recv(50, A, 1),
        Recv(60, A, 2),
        Send(20, B, 3),
        Recv(67, B, 3),
        Send(30, B, 4),
        Recv(77, B, 4),
    ];
    for report in [report(&trace), report_of_receiver(&trace)] {
        let [handover] = &report.handovers[..] else {
            panic!("{report:?}")
        };
        assert_eq!((handover.from, handover.to), (A, B));
        assert_eq!(handover.time_s, 0.067);
        assert_eq!(handover.latency_s, 0.007);
        assert_eq!(
            handover.interruption_s, 0.010,
            "the gap to the second segment is longer"
        );
        assert_eq!(handover.lost_packets, 0);
    }
}

#[test]
fn old_path_that_drains_during_and_after_the_switch_gives_a_negative_latency() {
    let trace = [
        Send(0, A, 1),
        Send(1, A, 2),
        Send(2, A, 3),
        Send(3, A, 4),
        Send(4, B, 5),
        Send(5, B, 6),
        Send(6, B, 7),
        Recv(50, A, 1),
        Recv(60, B, 5),
        Recv(70, A, 2),
        Recv(75, B, 6),
        Recv(80, A, 3),
        Recv(85, B, 7),
        Recv(90, A, 4),
    ];
    for report in [report(&trace), report_of_receiver(&trace)] {
        let [handover] = &report.handovers[..] else {
            panic!("{report:?}")
        };
        assert_eq!(handover.time_s, 0.060);
        assert_eq!(handover.latency_s, -0.030);
        assert_eq!(handover.interruption_s, 0.010);
    }
}

#[test]
fn retransmission_to_the_alternate_path_is_an_excursion() {
    let trace = [
        Send(0, A, 1),
        Send(1, A, 2),
        Send(2, A, 3),
        Recv(50, A, 1),
        Recv(52, A, 3),
        Send(100, B, 2),
        Recv(150, B, 2),
        Send(160, A, 4),
        Send(161, A, 5),
        Recv(210, A, 4),
        Recv(211, A, 5),
    ];
    assert_eq!(report(&trace).handovers, []);
    assert_eq!(report_of_receiver(&trace).handovers, []);
    assert_eq!(report(&trace).totals.packets_retransmitted, 1);
}

#[test]
fn excursion_does_not_date_the_handover_that_comes_later() {
    let trace = [
        Send(0, A, 1),
        Send(1, A, 2),
        Send(2, A, 3),
        Recv(50, A, 1),
        Recv(52, A, 3),
        Send(100, B, 2),
        Recv(150, B, 2),
        Send(160, A, 4),
        Recv(210, A, 4),
        Send(300, B, 5),
        Send(301, B, 6),
        Recv(350, B, 5),
        Recv(351, B, 6),
    ];
    let report = report(&trace);
    let [handover] = &report.handovers[..] else {
        panic!("{report:?}")
    };
    assert_eq!((handover.time_s, handover.latency_s), (0.350, 0.140));
}

#[test]
fn several_retransmissions_to_the_alternate_path_are_still_an_excursion_when_the_sender_is_seen() {
    // The whole end of a window is lost and repaired over B, while new data stays on A.
    let trace = [
        Send(0, A, 1),
        Send(1, A, 2),
        Send(2, A, 3),
        Send(3, A, 4),
        Recv(50, A, 1),
        Send(1000, B, 2),
        Recv(1050, B, 2),
        Send(1100, B, 3),
        Send(1101, B, 4),
        Recv(1150, B, 3),
        Recv(1151, B, 4),
        Send(1200, A, 5),
        Send(1201, A, 6),
        Recv(1250, A, 5),
        Recv(1251, A, 6),
    ];
    assert_eq!(report(&trace).handovers, []);
}

/// 000 section V-C, CLAIMS S6: the window sent from 8.9 s on is lost with the old path at 9.0 s.
#[test]
fn lost_window_with_one_segment_on_the_new_path_long_before_the_rest_is_one_handover() {
    let trace = [
        Send(8900, A, 1),
        Recv(9000, A, 1),
        Send(9000, A, 2),
        Send(9001, A, 3),
        Send(9002, A, 4),
        Lost(9050, A),
        Lost(9051, A),
        Lost(9052, A),
        Send(9990, B, 2),
        Recv(10000, B, 2),
        Send(13000, A, 2),
        Lost(13050, A),
        Send(14990, B, 3),
        Recv(15000, B, 3),
        Send(15010, B, 4),
        Recv(15020, B, 4),
        Send(15030, B, 5),
        Send(15031, B, 6),
        Recv(15040, B, 5),
        Recv(15041, B, 6),
    ];
    for report in [report(&trace), report_of_receiver(&trace)] {
        let [handover] = &report.handovers[..] else {
            panic!("{report:?}")
        };
        assert_eq!((handover.from, handover.to), (A, B));
        assert_eq!(handover.time_s, 10.0);
        assert_eq!(handover.latency_s, 1.0);
        assert_eq!(handover.interruption_s, 5.0);
    }
    assert_eq!(report(&trace).handovers[0].lost_packets, 4);
    assert_eq!(report(&trace).totals.lost_to_handover, 4);
}

#[test]
fn zigzag_is_two_handovers_and_the_losses_go_to_their_own() {
    let trace = [
        Send(0, A, 1),
        Recv(10, A, 1),
        Send(20, A, 2),
        Lost(25, A),
        Send(30, B, 3),
        Send(31, B, 4),
        Recv(40, B, 3),
        Recv(41, B, 4),
        Lost(45, A), // still on its way to A
        Send(50, B, 5),
        Lost(55, B),
        Lost(56, B),
        Lost(57, B),
        Send(60, A, 6),
        Send(61, A, 7),
        Recv(70, A, 6),
        Recv(71, A, 7),
    ];
    let report = report(&trace);
    let [there, back] = &report.handovers[..] else {
        panic!("{report:?}")
    };
    assert_eq!(
        (there.from, there.to, there.latency_s, there.lost_packets),
        (A, B, 0.030, 2)
    );
    assert_eq!(
        (back.from, back.to, back.latency_s, back.lost_packets),
        (B, A, 0.029, 3)
    );
}

/// 20 m/s over the paper's geometry: a handover every 3.5 s; and far faster ones.
#[test]
fn handovers_are_found_at_any_pace() {
    for dwell_ms in [3500, 100, 20] {
        let mut meter = HandoverMeter::new();
        let (mut tsn, mut now) = (0u32, 0u64);
        for dwell in 0..100 {
            let path = if dwell % 2 == 0 { A } else { B };
            for _ in 0..dwell_ms / 10 {
                tsn = tsn.wrapping_add(1);
                feed(&mut meter, &[Send(now, path, tsn), Recv(now + 4, path, tsn)]);
                now += 10;
            }
        }
        let report = meter.finish();
        assert_eq!(report.handovers.len(), 99, "dwelling {dwell_ms} ms");
        assert!(
            report
                .handovers
                .iter()
                .all(|h| h.latency_s == 0.010 && h.lost_packets == 0)
        );
        assert!(
            report
                .handovers
                .windows(2)
                .all(|w| w[0].to == w[1].from && w[0].from == w[1].to)
        );
    }
}

#[test]
fn sequence_number_wrap_is_no_handover_and_hides_none() {
    let trace = [
        Send(0, A, u32::MAX - 1),
        Recv(5, A, u32::MAX - 1),
        Send(10, A, u32::MAX),
        Recv(15, A, u32::MAX),
        Send(20, A, 0),
        Recv(25, A, 0),
        Send(30, B, 1),
        Recv(35, B, 1),
        Send(40, B, 2),
        Recv(45, B, 2),
    ];
    let report = report(&trace);
    assert_eq!(report.handovers.len(), 1);
    assert_eq!(report.totals.packets_retransmitted, 0);
}

#[test]
fn retransmission_to_the_old_path_after_the_switch_does_not_stretch_the_overlap() {
    let trace = [
        Send(0, A, 1),
        Send(1, A, 2),
        Recv(50, A, 1),
        Send(10, B, 3),
        Send(11, B, 4),
        Recv(60, B, 3),
        Recv(61, B, 4),
        Send(2000, A, 2),
        Recv(2050, A, 2),
        Send(2060, B, 5),
        Recv(2110, B, 5),
    ];
    let report = report(&trace);
    let [handover] = &report.handovers[..] else {
        panic!("{report:?}")
    };
    assert_eq!(handover.latency_s, 0.010);
}

#[test]
fn switch_at_the_very_end_counts_with_one_segment() {
    let trace = [Send(0, A, 1), Recv(5, A, 1), Send(10, B, 2), Recv(15, B, 2)];
    assert_eq!(report(&trace).handovers.len(), 1);
    // But a mere retransmission does not.
    let trace = [
        Send(0, A, 1),
        Recv(5, A, 1),
        Send(6, A, 2),
        Send(10, B, 2),
        Recv(15, B, 2),
    ];
    assert_eq!(report(&trace).handovers.len(), 0);
}

#[test]
fn totals_count_every_packet_once() {
    let mut meter = HandoverMeter::new();
    feed(
        &mut meter,
        &[
            Send(0, A, 1),
            Send(1, A, 2),
            Send(2, A, 3),
            Recv(5, A, 1),
            Send(9, A, 2),
        ],
    );
    meter.data_received(6_000_000, A, Tsn(1), 0);
    meter.data_lost(7_000_000, A, LossCause::Queue);
    meter.data_lost(8_000_000, A, LossCause::Other);
    meter.data_lost(9_000_000, A, LossCause::Handover);
    let totals = *meter.totals();
    assert_eq!(
        totals,
        DataTotals {
            packets_sent: 4,
            packets_retransmitted: 1,
            packets_received: 2,
            duplicate_packets: 1,
            useful_bytes: 1000,
            lost_to_handover: 1,
            lost_to_queue: 1,
            lost_otherwise: 1,
            longest_gap_ns: 0,
        }
    );
    assert_eq!(totals.handover_loss_rate(), 0.25);
    assert_eq!(
        HandoverMeter::<Ipv6Addr>::new()
            .finish()
            .totals
            .handover_loss_rate(),
        0.0
    );
}

#[test]
fn duplicates_end_no_interruption() {
    let mut meter = HandoverMeter::new();
    feed(
        &mut meter,
        &[
            Send(0, A, 1),
            Recv(5, A, 1),
            Send(10, A, 2),
            Recv(15, A, 2),
            Send(20, B, 3),
        ],
    );
    // The old path's last segment comes again after a second; new data only after three.
    meter.data_received(1_015_000_000, B, Tsn(2), 0);
    feed(
        &mut meter,
        &[
            Send(3000, B, 3),
            Recv(3015, B, 3),
            Send(3020, B, 4),
            Recv(3025, B, 4),
        ],
    );
    let report = meter.finish();
    let [handover] = &report.handovers[..] else {
        panic!("{report:?}")
    };
    assert_eq!(handover.latency_s, 1.0);
    assert_eq!(handover.interruption_s, 3.0);
    assert_eq!(report.totals.longest_gap_ns, 3_000_000_000);
}

#[test]
fn an_announced_path_needs_one_segment_and_a_retransmission_will_do() {
    let mut meter = HandoverMeter::new();
    feed(
        &mut meter,
        &[
            Send(0, A, 1),
            Recv(5, A, 1),
            Send(10, A, 2),
            Send(1010, B, 2),
            Recv(1015, B, 2),
        ],
    );
    meter.path_announced(B);
    // Before more can move, the host has gone back.
    meter.path_announced(A);
    feed(&mut meter, &[Send(2000, A, 3), Recv(2005, A, 3)]);
    let report = meter.finish();
    let found: Vec<_> = report
        .handovers
        .iter()
        .map(|h| (h.from, h.to, h.latency_s))
        .collect();
    assert_eq!(found, [(A, B, 1.01), (B, A, 0.99)]);
}

#[test]
fn what_was_on_its_way_before_the_announcement_does_not_move_data_back() {
    let mut meter = HandoverMeter::new();
    let sent: Vec<_> = (1..6).map(|n| Send(u64::from(n), A, n)).collect();
    feed(&mut meter, &sent);
    feed(&mut meter, &[Recv(20, A, 1)]);
    meter.path_announced(B);
    feed(&mut meter, &[Send(21, B, 6), Recv(30, B, 6)]);
    let late: Vec<_> = (2..6).map(|n| Recv(40 + u64::from(n), A, n)).collect();
    feed(&mut meter, &late);
    feed(&mut meter, &[Send(60, B, 7), Recv(65, B, 7)]);
    let report = meter.finish();
    assert_eq!(report.handovers.len(), 1, "{report:?}");
    assert_eq!(report.handovers[0].latency_s, -0.015);
}

/// Nothing new comes from 10 ms on; B is announced, and a copy of what had arrived is the first over it, at 200 ms. The
/// first new data at 500 ms, by `path`, is one before the move or one after it.
fn copy_that_settles(path: Ipv6Addr, tsn: u32) -> HandoverReport {
    let mut meter = HandoverMeter::new();
    feed(
        &mut meter,
        &[Send(0, A, 1), Send(0, A, 2), Recv(5, A, 1), Recv(10, A, 2)],
    );
    feed(&mut meter, &[Send(20, A, 3), Send(20, A, 4)]);
    meter.path_announced(B);
    meter.data_sent(150_000_000, B, Tsn(2));
    meter.data_received(200_000_000, B, Tsn(2), 0);
    assert_eq!(meter.handovers_settled(), 1);
    if tsn > 4 {
        meter.data_sent(400_000_000, path, Tsn(tsn));
    }
    meter.data_received(500_000_000, path, Tsn(tsn), 1000);
    // a silence that begins after the handover is not its
    feed(&mut meter, &[Send(1400, B, 9), Recv(1500, B, 9)]);
    meter.finish()
}

#[test]
fn silence_that_a_copy_settles_lasts_until_new_data_comes_over_the_new_path() {
    for tsn in [3, 5] {
        let report = copy_that_settles(B, tsn);
        assert_eq!(report.handovers[0].time_s, 0.2);
        assert_eq!(report.handovers[0].interruption_s, 0.49, "TSN {tsn}: {report:?}");
    }
    let drained = copy_that_settles(A, 3);
    assert_eq!(drained.handovers[0].interruption_s, 0.49, "{drained:?}");
}

#[test]
fn silence_that_begins_behind_the_first_new_data_and_in_which_a_copy_settles_is_the_handovers() {
    let mut meter = HandoverMeter::new();
    feed(
        &mut meter,
        &[
            Send(0, A, 1),
            Send(5, A, 2),
            Recv(10, A, 1),
            Send(20, B, 3),
            Recv(30, B, 3),
        ],
    );
    // its acknowledgement is lost, and it is sent again
    meter.data_sent(1_000_000_000, B, Tsn(3));
    meter.data_received(1_010_000_000, B, Tsn(3), 0);
    assert_eq!(meter.handovers_settled(), 1);
    feed(
        &mut meter,
        &[
            Send(1100, B, 4),
            Recv(1130, B, 4),
            Send(3000, B, 5),
            Recv(3010, B, 5),
        ],
    );
    let found = meter.finish().handovers;
    assert_eq!(found[0].interruption_s, 1.1, "{found:?}");
}

#[test]
fn silence_that_the_next_handover_ends_is_not_the_one_befores() {
    const C: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 4, 0, 0, 0, 0, 1);
    let mut meter = HandoverMeter::new();
    feed(&mut meter, &[Send(0, A, 1), Recv(10, A, 1)]);
    meter.path_announced(B);
    meter.data_sent(150_000_000, B, Tsn(1));
    meter.data_received(200_000_000, B, Tsn(1), 0);
    feed(
        &mut meter,
        &[Send(400, C, 2), Send(410, C, 3), Recv(500, C, 2), Recv(510, C, 3)],
    );
    let found = meter.finish().handovers;
    let interruptions: Vec<f64> = found.iter().map(|h| h.interruption_s).collect();
    assert_eq!(interruptions, [0.19, 0.49], "{found:?}");
}

#[test]
fn silence_before_a_path_that_carried_one_segment_belongs_to_the_handover_past_it() {
    const C: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 4, 0, 0, 0, 0, 1);
    let trace = [
        Send(0, A, 1),
        Recv(10, A, 1),
        Send(900, B, 2),
        Recv(910, B, 2),
        Send(1000, C, 3),
        Send(1010, C, 4),
        Recv(1020, C, 3),
        Recv(1030, C, 4),
    ];
    for report in [report(&trace), report_of_receiver(&trace)] {
        let [handover] = &report.handovers[..] else {
            panic!("{report:?}")
        };
        assert_eq!((handover.from, handover.to), (A, C));
        assert_eq!((handover.latency_s, handover.interruption_s), (1.01, 0.9));
    }
}

/// Somebody reads for a minute, and moves meanwhile.
#[test]
fn while_nothing_was_to_come_neither_latency_nor_interruption_begins() {
    let of_page = |settled_before: bool| {
        let mut meter = HandoverMeter::new();
        feed(&mut meter, &[Recv(0, A, 1), Recv(20, A, 2)]);
        if settled_before {
            feed(&mut meter, &[Recv(30, B, 3)]);
        }
        meter.silence_begins(60_000 * 1_000_000);
        // an earlier beginning changes nothing
        meter.silence_begins(59_000 * 1_000_000);
        feed(&mut meter, &[Recv(60_045, B, 4), Recv(60_055, B, 5)]);
        meter.finish()
    };
    let report = of_page(false);
    let [handover] = &report.handovers[..] else {
        panic!("{report:?}")
    };
    assert_eq!((handover.latency_s, handover.interruption_s), (0.045, 0.045));
    assert_eq!(report.totals.longest_gap_ns, 45_000_000);
    // the new path had begun before: its latency is what it was
    let report = of_page(true);
    let [handover] = &report.handovers[..] else {
        panic!("{report:?}")
    };
    assert_eq!((handover.latency_s, handover.interruption_s), (0.010, 0.045));
}
