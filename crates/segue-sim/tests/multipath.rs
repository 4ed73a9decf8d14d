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
/// time, with nothing of the protocol machine: cwnd and chunks in bytes (RFC 4960 section 7.2.1), an acknowledgement for every
/// two packets.
fn start_up_s(ratio: f64) -> f64 {
    const CHUNK: u32 = 1468;
    let packet = 1520.0 * 8.0 / (ratio * 384e3);
    let one_way = 0.020 + 1520.0 * 8.0 / 100e6;
    let (mut cwnd, mut flightsize, mut waiting) = (4380, 0, 0);
    let (mut free, mut idle, mut now) = (0.0_f64, 0.0, 0.0);
    let mut sent = Vec::new();
    for number in 0..400 {
        while flightsize < cwnd {
            sent.push(now);
            flightsize += CHUNK;
        }
        let arrives = sent[number] + one_way;
        idle += (arrives - free).max(0.0);
        free = arrives.max(free) + packet;
        waiting += 1;
        if waiting == 2 {
            // cwnd was full, or the sender would have gone on
            cwnd += 1520.min(waiting * CHUNK);
            flightsize -= waiting * CHUNK;
            (waiting, now) = (0, free + 0.020);
        }
    }
    idle
}

/// A point of table I that is farther from equation (3) than 3 % and 1.5 s.
#[derive(Debug)]
struct Far {
    ratio: u32,
    t_dwell: u32,
    /// Beyond the equation, s.
    excess_s: f64,
    metrics: Metrics,
}

/// All of them, with further settings.
fn far_from_equation_3(settings: &[(&str, &str)]) -> Vec<Far> {
    let mut far = Vec::new();
    for ratio in 1..=14 {
        for t_dwell in [2, 5, 10, 20, 30, 40] {
            let (r, dwell) = (ratio.to_string(), format!("{t_dwell} s"));
            let mut overrides = IDEAL.to_vec();
            overrides.extend([("bw_ratio", r.as_str()), ("t_dwell", dwell.as_str())]);
            overrides.extend(settings);
            let metrics = run(&overrides);
            let (time, theory) = times(&metrics);
            assert_eq!(metrics.bytes_per_path.values().sum::<u64>(), 8_000_000);
            assert!(metrics.rbuf_blocked_s == 0.0, "ratio {ratio}, {t_dwell} s");
            let excess_s = time - theory;
            if excess_s.abs() > (0.03 * theory).max(1.5) {
                far.push(Far {
                    ratio,
                    t_dwell,
                    excess_s,
                    metrics,
                });
            } else {
                // at ratio 1 the links change roles in the end
                let allowed = u64::from(ratio == 1);
                assert!(
                    metrics.timeouts <= allowed,
                    "ratio {ratio}, {t_dwell} s: {metrics:?}"
                );
            }
        }
    }
    far
}

/// What is beyond the equation is what slow start leaves of the fast link idle, of which a second is `ratio` seconds of the
/// slow one, and what the slow link needs to be confirmed and filled.
fn assert_start_up(far: &Far) {
    let ratio = f64::from(far.ratio);
    let rest = far.excess_s - ratio * start_up_s(ratio);
    assert!(
        far.metrics.timeouts == 0 && (0.2..0.4).contains(&rest),
        "{rest} s; {far:?}"
    );
}

fn points(far: &[Far]) -> Vec<(u32, u32)> {
    far.iter().map(|f| (f.ratio, f.t_dwell)).collect()
}

#[test]
fn with_an_ideal_buffer_cmt_comes_near_equation_3_but_for_4_of_84_points_as_the_paper_has_it() {
    let far = far_from_equation_3(&[]);
    assert_eq!(points(&far), [(11, 10), (12, 10), (13, 10), (14, 5)], "{far:?}");
    far.iter().for_each(assert_start_up);
}

#[test]
fn with_a_quicker_start_and_an_ideal_buffer_cmt_comes_near_equation_3_at_every_point() {
    // slow start doubles cwnd in each round trip, from the four packets of usrsctp; and a loss at the very end of the file is
    // no matter of seconds
    let far = far_from_equation_3(&[
        ("sctp.quick_sacks", "16"),
        ("sctp.early_retransmit", "true"),
        ("sctp.initial_cwnd", "3"),
    ]);
    assert!(far.is_empty(), "{far:?}");
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
fn opportunistic_retransmission_helps_out_a_retransmission_on_the_slow_path() {
    // rtx_policy "cwnd" puts a fast retransmission at the end of the slow link's queue of 1.6 s
    // (ratio 8 was the case until retransmissions that were sent later counted as overtaking: now losses there are found soon
    // enough for 1 MB)
    let settings = [("bw_ratio", "12"), ("rbuf", "1048576 B")];
    let without = run(&settings);
    let with = run(&[&settings[..], &[("cmt.opportunistic", "true")]].concat());
    assert!(without.rbuf_blocked_s > 2.0, "{}", without.rbuf_blocked_s);
    assert!(with.rbuf_blocked_s < 0.5, "{}", with.rbuf_blocked_s);
}

#[test]
fn the_handover_of_cmt_is_the_end_of_its_overlap() {
    let m = run(&[("t_dwell", "10 s")]);
    let [handover] = &m.handovers[..] else {
        panic!("{:?}", m.handovers);
    };
    // the first data over the slow link comes when the overlap begins, the last over the fast one when it ends
    assert!((2.0..2.8).contains(&handover.time), "{}", handover.time);
    let latency_s = handover.latency_s.unwrap();
    assert!((-10.1..-9.0).contains(&latency_s), "{latency_s}");
    let interruption_s = handover.interruption_s.unwrap();
    assert!((0.02..0.5).contains(&interruption_s), "{interruption_s}");
    let lost = handover.lost_packets.unwrap();
    assert!(lost > 0 && lost <= m.packets_lost_to_handover);
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
