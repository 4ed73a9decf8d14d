//! Networks that are up and let nothing through, in the scenarios of the lab: they are left at once, and others never.

use crate::common::metrics;
use segue_proto::app::Transport;
use segue_sim::Metrics;

/// A scenario of the lab, with both networks there all the time, and an event.
fn lab(scheme: &str, event: &str, overrides: &[(&str, &str)]) -> Metrics {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/lab");
    let text = std::fs::read_to_string(format!("{folder}/{scheme}.toml")).unwrap() + event;
    let there = [("cell.one.present", "0 s.."), ("cell.two.present", "1 s..")];
    let overrides: Vec<_> = there.iter().chain(overrides).copied().collect();
    metrics(&text, &overrides, 1)
}

/// The longest time without new data of a flow that loses packets, ms.
fn longest_gap(m: &Metrics) -> f64 {
    let hit = m
        .flows
        .iter()
        .filter(|f| f.to == "cn" && f.counts.lost_packets > 0);
    let gaps = hit.map(|f| f.end.longest_gap_s * 1e3);
    gaps.fold(0.0, f64::max)
}

/// That network two is left soon after it begins to lose all of something, and a flow that loses packets goes on.
fn is_left(scheme: &str, event: &str) {
    let only_udp = [
        ("duration", "20 s"),
        ("application.0.start", "19.9 s"),
        ("application.1.start", "19.9 s"),
    ];
    let m = lab(scheme, event, &only_udp);
    let gap = longest_gap(&m);
    assert!(gap > 20.0 && gap < 105.0, "{scheme}: {gap} ms");
    let moved = m.handovers.iter().filter(|h| h.time > 12.0 && h.time < 12.2);
    assert!(moved.count() >= 1, "{scheme}");
}

#[test]
fn a_blackhole_is_left_within_3_round_trips_and_100_ms() {
    for scheme in ["ilnp-soft", "mip6-ro", "mip6"] {
        is_left(
            scheme,
            "\n[[event]]\nkind = \"blackhole\"\non = \"two\"\nat = \"12 s\"\n",
        );
    }
}

/// What was under way from the correspondent comes after the first packet that is lost.
#[test]
fn a_network_that_takes_nothing_but_still_gives_is_left_as_soon() {
    for scheme in ["ilnp-soft", "mip6-ro", "mip6"] {
        is_left(
            scheme,
            "\n[[event]]\nkind = \"one-way-loss\"\non = \"two\"\ntowards = \"r2\"\nat = \"12 s\"\n",
        );
    }
}

/// What TCP acknowledges comes until the blackhole begins, at whatever time between two probes.
#[test]
fn a_blackhole_is_left_as_soon_while_packets_come() {
    for scheme in ["ilnp-soft", "mip6-ro", "mip6"] {
        for at in [12.2, 12.5, 12.8] {
            let event = format!("\n[[event]]\nkind = \"blackhole\"\non = \"two\"\nat = \"{at} s\"\n");
            let m = lab(scheme, &event, &[("duration", "15 s")]);
            let paced = m.flows.iter().find(|f| f.transport == Transport::Udp).unwrap();
            let moved = m.handovers.iter().filter(|h| h.flow == Some(paced.id));
            let first = moved.map(|h| h.time).find(|time| *time > at);
            assert!(
                first.is_some_and(|time| time < at + 0.105),
                "{scheme}, {at} s: {first:?}"
            );
        }
    }
}

#[test]
fn loss_and_jitter_for_ten_minutes_move_nobody() {
    for scheme in ["ilnp-soft", "mip6-ro"] {
        let m = lab(
            scheme,
            "",
            &[
                ("duration", "610 s"),
                (
                    "link.cn-core.loss",
                    "{ model = \"bernoulli\", probability = 0.05 }",
                ),
                ("link.cn-core.jitter", "30 ms"),
                ("link.cn-core.reorder", "true"),
            ],
        );
        let moved: Vec<f64> = m
            .handovers
            .iter()
            .map(|h| h.time)
            .filter(|at| *at > 10.0)
            .collect();
        assert_eq!(moved, [0.0_f64; 0], "{scheme}");
    }
}

/// A gap between the networks, in which packets are sent: nothing is probed, and time goes on.
#[test]
fn a_gap_without_any_network_ends() {
    for scheme in ["mip6", "mip6-ro", "ilnp-soft"] {
        let gap = [
            ("cell.one.present", "0 s..8 s"),
            ("cell.two.present", "10 s.."),
            ("duration", "15 s"),
        ];
        let m = lab(scheme, "", &gap);
        assert!(m.duration_s > 14.0, "{scheme}");
    }
}
