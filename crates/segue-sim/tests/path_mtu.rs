//! A bottleneck of a smaller MTU, found by Packet Too Big and by probing, with typed packets and with real bytes.

use segue_sim::{RunOptions, Scenario, run};

fn scenario(discovery: &str, wire: &str) -> String {
    format!(
        r#"
name = "path mtu"
duration = "30 s"
seed = 3
wire = "{wire}"

[sctp]
pmtu_discovery = "{discovery}"

[[host]]
name = "near"

[[host]]
name = "far"

[[router]]
name = "r1"

[[router]]
name = "r2"

[[link]]
between = ["near", "r1"]
rate = "10 Mbit/s"
delay = "5 ms"

[[link]]
between = ["r1", "r2"]
rate = "5 Mbit/s"
delay = "10 ms"
mtu = "1400 B"

[[link]]
between = ["r2", "far"]
rate = "10 Mbit/s"
delay = "5 ms"

[[application]]
kind = "bulk"
from = "near"
to = "far"
size = "2 MB"
"#
    )
}

/// Bytes delivered, messages that arrived changed, and the hash of the event log.
fn result(discovery: &str, wire: &str) -> (u64, u64, String) {
    let scenario =
        Scenario::from_toml(&scenario(discovery, wire), "test", &[]).unwrap_or_else(|e| panic!("{e}"));
    let output = run(&scenario, RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let m = output.metrics;
    (m.delivered_bytes, m.corrupt_messages, m.event_log_hash)
}

#[test]
fn a_transfer_crosses_a_link_of_a_smaller_mtu_with_the_same_events_typed_and_in_bytes() {
    for (discovery, delivered) in [("packet-too-big", true), ("probing", true), ("none", false)] {
        let typed = result(discovery, "typed");
        let exact = result(discovery, "exact");
        assert_eq!(typed, exact, "{discovery}");
        assert_eq!(typed.1, 0);
        assert_eq!(typed.0 == 2_000_000, delivered, "{discovery}: {} bytes", typed.0);
    }
}

#[test]
fn an_mtu_below_the_least_is_refused() {
    let text = scenario("none", "typed").replace("1400 B", "1200 B");
    let error = Scenario::from_toml(&text, "test", &[])
        .expect_err("refused")
        .to_string();
    assert!(error.contains("link[1].mtu") && error.contains("1280"), "{error}");
}
