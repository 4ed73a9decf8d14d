//! The location manager in the simulator: updates at step 4, look-ups before associations, and what losses do to them.

use crate::common::all_scenarios;
use segue_sim::{Metrics, RunOptions, Scenario, Trace, run};

/// A row of the signalling.
#[derive(Debug)]
struct Row {
    ms: f64,
    node: String,
    event: String,
    detail: String,
}

fn text() -> String {
    let all = all_scenarios();
    all.into_iter()
        .find(|(path, _)| path.ends_with("/location.toml"))
        .expect("location.toml")
        .1
}

fn traced(text: &str, overrides: &[(&str, &str)], seed: u64) -> (Metrics, Vec<Row>) {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let scenario = Scenario::from_toml(text, "test", &overrides).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions {
        seed: Some(seed),
        trace: true,
        pcap: false,
    };
    let output = run(&scenario, options).unwrap_or_else(|e| panic!("{e}"));
    let rows = rows(&output.trace.expect("a trace"));
    (output.metrics, rows)
}

fn rows(trace: &Trace) -> Vec<Row> {
    let s = &trace.signalling;
    (0..s.time_ns.len())
        .map(|i| Row {
            ms: s.time_ns[i] as f64 / 1e6,
            node: trace.nodes[usize::from(s.node[i])].clone(),
            event: s.event[i].clone(),
            detail: s.detail[i].clone(),
        })
        .collect()
}

fn of<'a>(rows: &'a [Row], node: &str, event: &str) -> Vec<&'a Row> {
    rows.iter()
        .filter(|r| r.node == node && r.event == event)
        .collect()
}

#[test]
fn a_caller_reaches_the_mobile_host_by_name_before_and_right_after_its_handover() {
    let (metrics, rows) = traced(&text(), &[], 1);
    let told = of(&rows, "mh", "location-updated");
    let acknowledged = of(&rows, "mh", "location-acknowledged");
    // The first is where it began: no handover told of it.
    assert_eq!((told.len(), acknowledged.len()), (1, 2), "{rows:#?}");
    assert!(
        acknowledged[1].detail.starts_with(&told[0].detail) && acknowledged[1].detail.ends_with("sent 1")
    );
    let latency = acknowledged[1].ms - told[0].ms;
    // Twice 10 ms to the location manager, 2 ms to the access router, and the air.
    assert!((24.0..40.0).contains(&latency), "{latency} ms");
    let resolved = of(&rows, "caller", "name-resolved");
    assert_eq!(resolved.len(), 2);
    assert!(resolved[0].detail.starts_with("2001:db8:2:") && resolved[0].ms < told[0].ms);
    assert!(resolved[1].detail.starts_with(&told[0].detail) && resolved[1].ms > acknowledged[1].ms);
    let connected = of(&rows, "caller", "sctp-connected");
    assert_eq!(connected.len(), 2, "both associations were set up");
    assert!(connected[1].ms - resolved[1].ms < 200.0, "{connected:#?}");
    assert_eq!(metrics.packets_lost_to_handover, 0);
}

#[test]
fn a_lost_update_is_sent_again_and_the_download_does_not_notice() {
    let quiet = [("application.2.start", "19 s"), ("application.1.start", "19 s")];
    let (without, _) = traced(&text(), &quiet, 1);
    let lossy = r#"{ model = "bernoulli", probability = 0.3 }"#;
    let mut again = 0;
    for seed in 1..=6 {
        let overrides = [
            quiet[0],
            quiet[1],
            ("link.1.loss", lossy),
            ("location.retry", "200 ms"),
        ];
        let (metrics, rows) = traced(&text(), &overrides, seed);
        let told = &of(&rows, "mh", "location-updated")[0].detail;
        let acknowledged = of(&rows, "mh", "location-acknowledged");
        let last = acknowledged.last().expect("an acknowledgement");
        assert!(last.detail.starts_with(told.as_str()), "seed {seed}: {last:?}");
        again += u32::from(!last.detail.ends_with("sent 1"));
        assert_eq!(metrics.handovers.len(), without.handovers.len());
        assert_eq!((metrics.packets_lost_to_handover, metrics.timeouts), (0, 0));
    }
    assert!(again >= 2, "{again} of 6 runs had to send the update again");
}

#[test]
fn a_location_manager_that_is_gone_stops_neither_the_handover_nor_the_download() {
    let quiet = [("application.2.start", "19 s"), ("application.1.start", "19 s")];
    let (with, _) = traced(&text(), &quiet, 1);
    let gone = r#"{ model = "bernoulli", probability = 1.0 }"#;
    let (without, rows) = traced(&text(), &[quiet[0], quiet[1], ("link.1.loss", gone)], 1);
    assert_eq!(of(&rows, "mh", "location-acknowledged").len(), 0);
    assert_eq!(of(&rows, "caller", "name-resolved").len(), 0);
    assert_eq!(of(&rows, "mh", "location-updated").len(), 1);
    assert_eq!(
        (with.handovers.len(), with.timeouts),
        (without.handovers.len(), without.timeouts)
    );
    assert_eq!(
        (with.packets_lost_to_handover, without.packets_lost_to_handover),
        (0, 0)
    );
    assert!(with.delivered_bytes.abs_diff(without.delivered_bytes) < with.delivered_bytes / 1000);
}

#[test]
fn a_caller_with_a_cache_is_sent_to_the_old_address_until_the_time_to_live_is_over() {
    let cached = [("location.cache", "true"), ("application.1.start", "7 s")];
    let (_, rows) = traced(&text(), &cached, 1);
    let resolved = of(&rows, "caller", "name-resolved");
    assert!(
        resolved[1].detail.starts_with("2001:db8:2:") && resolved[1].ms > 8300.0 - 1.0,
        "{resolved:#?}"
    );
    let short = [cached[0], cached[1], ("location.ttl", "1 s")];
    let (_, rows) = traced(&text(), &short, 1);
    let resolved = of(&rows, "caller", "name-resolved");
    assert!(resolved[1].detail.starts_with("2001:db8:3:"), "{resolved:#?}");
}

#[test]
fn other_identities_work_as_the_name_does() {
    for identity in [
        "home:2001:db8::1",
        &format!("key:{}", "ab".repeat(32)),
        "phone.loc.example",
    ] {
        let (_, rows) = traced(&text(), &[("location.identity", identity)], 1);
        assert_eq!(of(&rows, "caller", "sctp-connected").len(), 2, "{identity}");
    }
}

#[test]
fn what_cannot_work_is_refused_by_its_key() {
    for (key, value, expected) in [
        ("location.server", "nobody", "location.server"),
        ("location.server", "mh", "location.server"),
        ("location.zone", "a b", "location.zone"),
        ("location.identity", "mh.other.example", "location.identity"),
        ("location.identity", "key:12", "location.identity"),
        ("location.ttl", "1500 ms", "location.ttl"),
        ("location.retry", "0 s", "location.retry"),
        ("application.1.to", "cn", "--set application.1.to=cn"),
    ] {
        let overrides = [(key.to_owned(), value.to_owned())];
        let error = Scenario::from_toml(&text(), "test", &overrides)
            .expect_err(key)
            .to_string();
        assert!(error.contains(expected), "{key} = {value}: {error}");
    }
    let start = text().find("[location]").expect("a section");
    let end = text().find("[sctp]").expect("a section");
    let without = text()[..start].to_owned() + &text()[end..];
    let error = Scenario::from_toml(&without, "test", &[])
        .expect_err("by_name")
        .to_string();
    assert!(error.contains("application[1].by_name"), "{error}");
}
