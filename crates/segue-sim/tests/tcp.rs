//! TCP in the simulator.

use crate::common::metrics;
use segue_sim::{RunOptions, Scenario, run};

/// A bulk transfer from `a` to `b`; further lines of TOML for the link, for TCP and for the application.
fn one_link(rate: &str, delay: &str, link: &str, tcp: &str, application: &str) -> String {
    format!(
        r#"
name = "one link"
duration = "100 s"

[tcp]
{tcp}

[[host]]
name = "a"

[[host]]
name = "b"

[[link]]
between = ["a", "b"]
rate = "{rate}"
delay = "{delay}"
{link}

[[application]]
kind = "bulk"
transport = "tcp"
from = "a"
to = "b"
{application}
"#
    )
}

#[test]
fn two_hundred_seeds_of_loss_duplication_reordering_and_corruption_deliver_every_byte() {
    let size = 200_000;
    let profiles = ["modern", "linux-3.9", "linux-2.4"];
    let algorithms = ["cubic", "reno", "hybla", "veno"];
    for seed in 1..=200u64 {
        let loss = 0.002 * (seed % 25) as f64;
        let link = format!(
            "loss = {{ model = \"bernoulli\", probability = {loss} }}\njitter = \"8 ms\"\nreorder = true\n\
             duplicate = 0.03\ncorrupt = 0.02\nqueue = \"{} packets\"",
            5 + seed % 40
        );
        let tcp = format!(
            "profile = \"{}\"\ncongestion_control = \"{}\"",
            profiles[seed as usize % 3],
            algorithms[seed as usize / 3 % 4]
        );
        let wire = if seed % 4 == 0 { "exact" } else { "typed" };
        let text = one_link("8 Mbit/s", "15 ms", &link, &tcp, &format!("size = \"{size} B\""));
        let m = metrics(&text, &[("duration", "400 s"), ("wire", wire)], seed);
        assert_eq!(m.delivered_bytes, size, "seed {seed}");
        assert_eq!(m.corrupt_messages, 0, "seed {seed}");
        let flow = &m.flows[0];
        assert_eq!(flow.transferred_bytes, size, "seed {seed}");
        assert!(
            m.packets_retransmitted >= u64::from(flow.counts.lost_packets > 0),
            "seed {seed}"
        );
    }
}

#[test]
fn typed_packets_and_real_bytes_give_the_same_run() {
    let link = "loss = { model = \"bernoulli\", probability = 0.01 }\njitter = \"3 ms\"\nreorder = true";
    for profile in ["modern", "linux-3.9", "linux-2.4"] {
        let text = one_link(
            "20 Mbit/s",
            "10 ms",
            link,
            &format!("profile = \"{profile}\""),
            "",
        );
        let hash = |wire: &str| metrics(&text, &[("duration", "5 s"), ("wire", wire)], 7).event_log_hash;
        assert_eq!(hash("typed"), hash("exact"), "{profile}");
    }
}

#[test]
fn a_flow_fills_its_link() {
    for algorithm in ["cubic", "reno", "hybla", "veno"] {
        let tcp = format!("congestion_control = \"{algorithm}\"");
        let text = one_link("20 Mbit/s", "20 ms", "queue = \"100 packets\"", &tcp, "");
        let m = metrics(&text, &[("duration", "30 s")], 1);
        // 1428 bytes of data in packets of 1500
        let capacity = 20e6 * 1428.0 / 1500.0;
        assert!(
            m.throughput_bps > 0.9 * capacity,
            "{algorithm}: {}",
            m.throughput_bps
        );
        assert!(m.throughput_bps <= capacity, "{algorithm}: {}", m.throughput_bps);
    }
}

#[test]
fn the_window_clamp_of_the_paper_limits_a_flow_to_a_window_per_round_trip() {
    // 004 section 5.2: iperf with a window of 320 kB and 1400 bytes of data a segment, round trip of about 200 ms
    let tcp = "profile = \"linux-3.9\"\nwindow_clamp = \"320 KiB\"\nmax_segment = \"1400 B\"";
    let text = one_link("1 Gbit/s", "100 ms", "queue = \"1000 packets\"", tcp, "");
    let m = metrics(&text, &[("duration", "60 s")], 1);
    let expected = 320.0 * 1024.0 * 8.0 / 0.2;
    assert!(m.throughput_bps < expected * 1.01, "{}", m.throughput_bps);
    assert!(m.throughput_bps > expected * 0.95, "{}", m.throughput_bps);
    assert_eq!(m.packets_retransmitted, 0);
}

#[test]
fn two_flows_share_a_bottleneck() {
    // which of the two loses the last packet of a full queue is chance, and the same all along: four beginnings
    let starts = ["5", "5.13", "5.27", "5.41"];
    for algorithm in ["cubic", "reno", "veno"] {
        let evenness: f64 = starts.iter().map(|start| evenness_of_two(algorithm, start)).sum();
        let evenness = evenness / starts.len() as f64;
        assert!(evenness > 0.95, "{algorithm}: {evenness}");
    }
}

/// Jain's index of what two flows over one bottleneck get, from 40 s on, when the second begins at `start` seconds.
fn evenness_of_two(algorithm: &str, start: &str) -> f64 {
    let text = format!(
        r#"
name = "two flows"
duration = "120 s"
tcp.congestion_control = "{algorithm}"
tcp.slow_start = "standard"
host = [{{ name = "a" }}, {{ name = "b" }}, {{ name = "c" }}, {{ name = "d" }}]
router = [{{ name = "r" }}, {{ name = "s" }}]
link = [
    {{ between = ["a", "r"], rate = "100 Mbit/s", delay = "1 ms" }},
    {{ between = ["b", "r"], rate = "100 Mbit/s", delay = "1 ms" }},
    {{ between = ["r", "s"], rate = "10 Mbit/s", delay = "15 ms", queue = "50 packets" }},
    {{ between = ["s", "c"], rate = "100 Mbit/s", delay = "1 ms" }},
    {{ between = ["s", "d"], rate = "100 Mbit/s", delay = "1 ms" }},
]
application = [
    {{ kind = "bulk", transport = "tcp", from = "a", to = "c" }},
    {{ kind = "bulk", transport = "tcp", from = "b", to = "d", start = "{start} s" }},
]
"#
    );
    let scenario = Scenario::from_toml(&text, "test", &[]).unwrap_or_else(|e| panic!("{e}"));
    let m = run(&scenario, RunOptions::default()).unwrap().metrics;
    let share: Vec<f64> = m
        .flows
        .iter()
        .map(|f| f.received_bytes_by_second[40..].iter().sum::<u64>() as f64)
        .collect();
    let (sum, squares) = (share[0] + share[1], share[0] * share[0] + share[1] * share[1]);
    assert!(sum * 8.0 / 80.0 > 8.5e6, "{algorithm}: {sum}");
    sum * sum / (2.0 * squares)
}

#[test]
fn requests_and_responses_go_over_one_connection() {
    // a response is 14 full segments and a little: Nagle's algorithm has that wait for a round trip more, but not as Linux
    // has it
    let delivered = |nagle: &str| {
        let text = one_link("10 Mbit/s", "10 ms", "", &format!("nagle{nagle}"), "").replace(
            "kind = \"bulk\"",
            "kind = \"request-response\"\nmessage = \"300 B\"\nresponse = \"20 kB\"",
        );
        let m = metrics(&text, &[("duration", "10 s")], 1);
        assert_eq!((m.corrupt_messages, m.packets_retransmitted), (0, 0));
        m.delivered_bytes as f64 / 20_300.0
    };
    // 20 ms of delay and 17.4 ms of serialisation
    let (with, without) = (delivered("_rule = \"rfc-9293\""), delivered(" = false"));
    assert!((without - 10_000.0 / 37.4).abs() < 10.0, "{without}");
    assert!((with - 10_000.0 / 57.4).abs() < 10.0, "{with}");
    let linux = delivered(" = true");
    assert!((linux - without).abs() < 1.0, "{linux} and {without}");
}

#[test]
fn settings_of_tcp_are_checked() {
    for (tcp, expected) in [
        ("rto_min = \"200\"", "tcp.rto_min"),
        ("window_clamp = \"100 B\"", "tcp.window_clamp"),
        ("profile = \"linux-9\"", "tcp.profile"),
        ("ack_delay = \"2 s\"", "tcp.ack_delay"),
        ("congestion_controll = \"reno\"", "congestion_control"),
    ] {
        let text = one_link("10 Mbit/s", "10 ms", "", tcp, "");
        let error = Scenario::from_toml(&text, "file.toml", &[])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(expected) && error.starts_with("file.toml"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
