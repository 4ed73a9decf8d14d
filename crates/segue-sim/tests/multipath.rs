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

#[test]
fn with_an_ideal_buffer_cmt_comes_near_equation_3() {
    for (ratio, t_dwell) in [
        ("1", "2 s"),
        ("1", "40 s"),
        ("2", "20 s"),
        ("3", "20 s"),
        ("4", "40 s"),
        ("8", "5 s"),
    ] {
        let m = run(&[("bw_ratio", ratio), ("t_dwell", t_dwell)]);
        let (time, theory) = times(&m);
        let tolerance = (0.03 * theory).max(1.5);
        assert!(
            (time - theory).abs() <= tolerance,
            "ratio {ratio}, {t_dwell}: {time} s, {theory} s"
        );
        assert_eq!(m.bytes_per_path.values().sum::<u64>(), 8_000_000);
        assert!(m.rbuf_blocked_s < 0.01, "{}", m.rbuf_blocked_s);
    }
}

#[test]
fn without_mobility_cmt_has_the_links_together() {
    for ratio in ["1", "4", "8"] {
        let bits = 800e6;
        let m = run(&[
            ("bw_ratio", ratio),
            ("t_dwell", "10000 s"),
            ("file_size", "100 MB"),
            ("duration", "3000 s"),
        ]);
        let (time, _) = times(&m);
        let share = 1452.0 / 1520.0;
        let both = (ratio.parse::<f64>().expect("a number") + 1.0) * 384e3 * share;
        assert!(
            bits / time >= 0.98 * both,
            "ratio {ratio}: {} of {both} bit/s",
            bits / time
        );
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
