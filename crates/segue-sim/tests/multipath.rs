//! The schemes of paper 003 against its equations, and links that go down.

use crate::common::{metrics, one_link};
use segue_sim::Metrics;

const CMT: &str = include_str!("../../../scenarios/papers/cmt.toml");

fn run(overrides: &[(&str, &str)]) -> Metrics {
    metrics(CMT, overrides, 1)
}

fn times(m: &Metrics) -> (f64, f64) {
    (
        m.transfer_time_s.expect("it arrived"),
        m.theory_s.expect("a theory"),
    )
}

/// A buffer that nothing ever fills.
const IDEAL: [(&str, &str); 2] = [("rbuf", "64 MB"), ("sctp.send_buffer", "64 MB")];

/// How long the fast link carries nothing after the first packet has left, s: until slow start has filled it. A packet at a
/// time, with nothing of the protocol machine: a window of three, an acknowledgement for every two packets, and three for
/// each of those.
fn start_up_s(ratio: f64) -> f64 {
    let packet = 1520.0 * 8.0 / (ratio * 384e3);
    let one_way = 0.020 + 1520.0 * 8.0 / 100e6;
    let mut sent = [0.0; 3].to_vec();
    let (mut free, mut idle, mut next) = (0.0_f64, 0.0, 0);
    while next < 400 {
        // the second of two packets is acknowledged when it has arrived
        let arrives = sent[next] + one_way;
        idle += (arrives - free).max(0.0);
        free = arrives.max(free) + packet;
        if next % 2 == 1 {
            sent.extend([free + 0.020; 3]);
        }
        next += 1;
    }
    idle
}

#[test]
fn with_an_ideal_buffer_cmt_comes_near_equation_3_for_every_ratio_and_dwelling_time() {
    // start-up alone takes longer than 1.5 s, and nearly as long as 3 % where that is more: a second of the fast link is
    // `ratio` of the slow one. The rest is what the slow link needs to be confirmed and filled
    let slow_to_start = [(11, 10), (12, 10), (13, 10), (14, 5)];
    for ratio in 1..=14 {
        for t_dwell in [2, 5, 10, 20, 30, 40] {
            let (r, dwell) = (ratio.to_string(), format!("{t_dwell} s"));
            let mut overrides = IDEAL.to_vec();
            overrides.extend([("bw_ratio", r.as_str()), ("t_dwell", dwell.as_str())]);
            let m = run(&overrides);
            let (time, theory) = times(&m);
            let at = format!("ratio {ratio}, {t_dwell} s: {time} s, {theory} s");
            let tolerance = (0.03 * theory).max(1.5);
            if slow_to_start.contains(&(ratio, t_dwell)) {
                let start_up = start_up_s(f64::from(ratio)) * f64::from(ratio);
                let rest = time - theory - start_up;
                assert!(start_up > 1.5 && (0.0..0.4).contains(&rest), "{at}; {start_up}");
            } else {
                assert!((time - theory).abs() <= tolerance, "{at}");
            }
            assert_eq!(m.bytes_per_path.values().sum::<u64>(), 8_000_000);
            assert!(m.rbuf_blocked_s == 0.0, "{at}: {}", m.rbuf_blocked_s);
            assert!(ratio == 1 || m.timeouts == 0, "{at}: {} timeouts", m.timeouts);
        }
    }
}

#[test]
fn without_mobility_cmt_has_the_links_together() {
    for ratio in ["1", "4", "8", "14"] {
        let arrived = |duration| {
            let steady = [
                ("bw_ratio", ratio),
                ("t_1", "0 s"),
                ("t_dwell", "10000 s"),
                ("file_size", "1 GB"),
                ("duration", duration),
            ];
            let mut overrides = IDEAL.to_vec();
            overrides.extend(steady);
            run(&overrides).bytes_per_path.values().sum::<u64>() as f64
        };
        let rate = (arrived("80 s") - arrived("20 s")) * 8.0 / 60.0;
        let share = 1452.0 / 1520.0;
        let both = (ratio.parse::<f64>().expect("a number") + 1.0) * 384e3 * share;
        assert!(rate >= 0.98 * both, "ratio {ratio}: {rate} of {both} bit/s");
    }
}

#[test]
fn the_schemes_come_in_the_order_of_figure_5() {
    let [worst, failover, best, single, cmt] = ["msctp-worst", "failover", "msctp-best", "single", "cmt"]
        .map(|scheme| times(&run(&[("scheme", scheme)])).0);
    assert!(worst > 2.0 * failover, "worst {worst}, failover {failover}");
    assert!(failover > best, "failover {failover}, best {best}");
    assert!(
        best > single && single > cmt,
        "best {best}, single {single}, cmt {cmt}"
    );
}

#[test]
fn a_small_receive_buffer_blocks_cmt_and_the_metrics_say_for_how_long() {
    let small = run(&[("rbuf", "64 kB")]);
    assert!(small.rbuf_blocked_s > 5.0, "{}", small.rbuf_blocked_s);
    assert!(times(&small).0 > times(&run(&[])).0 + 5.0);
}

#[test]
fn the_handover_of_cmt_is_the_end_of_its_overlap() {
    let m = run(&[("t_dwell", "10 s")]);
    let [handover] = &m.handovers[..] else {
        panic!("{:?}", m.handovers);
    };
    // the first data over the slow link comes when the overlap begins, the last over the fast one when it ends
    assert!((2.0..2.8).contains(&handover.time_s), "{}", handover.time_s);
    assert!(
        (-10.1..-9.0).contains(&handover.latency_s),
        "{}",
        handover.latency_s
    );
    assert!(
        (0.02..0.5).contains(&handover.interruption_s),
        "{}",
        handover.interruption_s
    );
    assert!(handover.lost_packets > 0 && handover.lost_packets <= m.packets_lost_to_handover);
    // the file ends in the overlap
    assert!(run(&[]).handovers.is_empty());
}

#[test]
fn the_two_ambiguities_of_acknowledgements_are_counted() {
    let m = run(&[("bw_ratio", "8")]).multipath.expect("counters");
    assert!(
        m.stale_sacks > 0 && m.overtaken_sacks > 0 && m.ambiguous_round_trips > 0,
        "{m:?}"
    );
}

#[test]
fn a_file_that_ends_before_the_overlap_never_sees_it() {
    let m = run(&[("file_size", "100 kB"), ("t_dwell", "40 s")]);
    let (time, theory) = times(&m);
    assert!(time < 2.0 && time > theory, "{time} {theory}");
    assert_eq!(m.bytes_per_path.keys().collect::<Vec<_>>(), ["ran1"]);
}

/// A host on one wire, which is down for a while.
fn outage(service: &str) -> Metrics {
    let link = format!("outages = [{{ from = \"3 s\", to = \"5 s\" }}]\nservice = \"{service}\"");
    let text = one_link("2 Mbit/s", "20 ms", &link, "", "size = \"2 MB\"");
    // the host that is opened from has the wire that goes down; the other one needs an address that stays
    let text = text.replacen("[[link]]", "[[router]]\nname = \"r\"\n\n[[link]]\nbetween = [\"a\", \"r\"]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n\n[[link]]", 1);
    let at = text.rfind("between = [\"a\", \"b\"]").expect("the wire");
    let text = format!("{}between = [\"r\", \"b\"]{}", &text[..at], &text[at + 20..]);
    metrics(&text, &[("scheme", "none")], 1)
}

#[test]
fn what_is_on_a_link_that_goes_down_is_lost_and_the_transfer_goes_on_when_it_is_up() {
    let [fifo, line] = ["fifo", "head-of-line"].map(outage);
    for m in [&fifo, &line] {
        assert_eq!(m.delivered_bytes, 2_000_000);
        assert!(m.packets_lost_to_handover > 5, "{}", m.packets_lost_to_handover);
        assert!(m.longest_gap_s > 2.0, "{}", m.longest_gap_s);
    }
}
