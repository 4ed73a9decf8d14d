//! The same seed gives the same bits: twice in a row, in another process, and with every hop through real bytes.

use crate::common::{all_scenarios, metrics, metrics_of};

const SHORT: (&str, &str) = ("duration", "40 s");

#[test]
fn every_scenario_gives_the_same_hash_typed_exact_and_again() {
    let scenarios = all_scenarios();
    assert!(scenarios.len() >= 2, "scenarios/ is empty");
    for (path, text) in scenarios {
        // Exact bytes of a 100 Mbit/s minute are a lot of checksums: a few seconds show the same.
        let short = if path.contains("bulk") {
            ("duration", "2 s")
        } else {
            SHORT
        };
        let typed = metrics_of(&path, &text, &[short], 5);
        let again = metrics_of(&path, &text, &[short], 5);
        let exact = metrics_of(&path, &text, &[short, ("wire", "exact")], 5);
        assert!(typed.packets_sent > 0, "{path}: nothing happened");
        assert_eq!(typed, again, "{path}: two runs differ");
        assert_eq!(typed, exact, "{path}: typed and exact wire differ");
        assert_eq!(exact.corrupt_messages, 0, "{path}: payload was damaged");
    }
}

#[test]
fn a_scheme_without_a_model_is_refused_in_one_line() {
    let (path, text) = all_scenarios()
        .into_iter()
        .find(|(p, _)| p.ends_with("lab/none.toml"))
        .expect("lab/none.toml");
    for scheme in ["mptcp", "mptcp-delete", "wireguard", "quic"] {
        let set = [("scheme".to_owned(), scheme.to_owned())];
        let scenario = segue_sim::Scenario::from_toml(&text, &path, &set).unwrap();
        let refused = segue_sim::run(&scenario, segue_sim::RunOptions::default()).unwrap_err();
        let line = refused.to_string();
        assert!(line.starts_with("lab-none: scheme: "), "{line}");
        assert!(line.contains(scheme) && !line.contains('\n'), "{line}");
    }
}

#[test]
fn every_method_of_address_acquisition_hands_over_and_is_the_same_with_exact_bytes() {
    let (_, text) = all_scenarios()
        .into_iter()
        .find(|(p, _)| p.ends_with("sigma.toml"))
        .expect("sigma.toml");
    for method in ["fixed", "slaac", "dhcpv6"] {
        // DHCPv6 needs a link-local address first: two rounds of duplicate address detection, of a second each by
        // default, are more than the overlap leaves.
        let shared = [
            ("duration", "60 s"),
            ("address.method", method),
            ("address.retrans_timer", "200 ms"),
        ];
        let typed = metrics(&text, &shared, 2);
        let exact = metrics(&text, &[shared[0], shared[1], shared[2], ("wire", "exact")], 2);
        assert!(
            typed.handovers.len() >= 2,
            "{method}: {} handovers",
            typed.handovers.len()
        );
        assert_eq!(typed.packets_lost_to_handover, 0, "{method}");
        assert_eq!(typed, exact, "{method}: typed and exact wire differ");
    }
}

#[test]
fn losses_corruption_duplication_and_reordering_are_the_same_with_exact_bytes() {
    let link = r#"
loss = { model = "gilbert-elliott", good_to_bad = 0.01, bad_to_good = 0.3 }
jitter = "3 ms"
reorder = true
duplicate = 0.01
corrupt = 0.02"#;
    let text = crate::common::one_link("10 Mbit/s", "10 ms", link, "", "");
    let typed = metrics(&text, &[("duration", "30 s")], 3);
    let exact = metrics(&text, &[("duration", "30 s"), ("wire", "exact")], 3);
    assert!(
        typed.packets_lost_otherwise > 10 && typed.duplicate_packets > 0,
        "{typed:?}"
    );
    assert_eq!(typed, exact);
}

#[test]
fn sctp_in_udp_costs_eight_bytes_a_packet_and_is_the_same_with_exact_bytes() {
    let text = crate::common::one_link("10 Mbit/s", "10 ms", "", "", "");
    let plain = metrics(&text, &[("duration", "20 s")], 3);
    let udp = [("duration", "20 s"), ("sctp.udp_encapsulation", "true")];
    let typed = metrics(&text, &udp, 3);
    let exact = metrics(&text, &[udp[0], udp[1], ("wire", "exact")], 3);
    assert_eq!(typed, exact);
    assert_eq!(exact.corrupt_messages, 0);
    // full packets of 1500 bytes carry 1448 bytes of chunks without UDP, 1440 with it
    let ratio = typed.delivered_bytes as f64 / plain.delivered_bytes as f64;
    assert!((0.985..0.999).contains(&ratio), "{ratio}");
}

#[test]
fn another_seed_gives_another_run() {
    let text = crate::common::one_link(
        "10 Mbit/s",
        "10 ms",
        "loss = { model = \"bernoulli\", probability = 0.01 }",
        "",
        "",
    );
    let runs: Vec<String> = (1..4)
        .map(|seed| metrics(&text, &[("duration", "5 s")], seed).event_log_hash)
        .collect();
    assert!(runs[0] != runs[1] && runs[1] != runs[2]);
}

#[test]
fn the_hash_is_that_of_another_process() {
    let exe = std::env::current_exe().expect("a test has a path");
    if std::env::var_os("SEGUE_PRINT_HASH").is_some() {
        let hash = |name: &str| metrics(&crate::common::scenario_text(name), &[SHORT], 11).event_log_hash;
        eprintln!("hash={}{}", hash("sigma.toml"), hash("ilnp.toml"));
        return;
    }
    let hashes: Vec<String> = (0..2)
        .map(|_| {
            let output = std::process::Command::new(&exe)
                .args([
                    "--exact",
                    "determinism::the_hash_is_that_of_another_process",
                    "--nocapture",
                ])
                .env("SEGUE_PRINT_HASH", "1")
                .output()
                .expect("the test runs itself");
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let hash = text
                .split("hash=")
                .nth(1)
                .and_then(|t| t.split_whitespace().next());
            hash.unwrap_or_else(|| panic!("no hash in {text}")).to_owned()
        })
        .collect();
    assert_eq!(hashes[0], hashes[1]);
    assert_eq!(hashes[0].len(), 64);
}
