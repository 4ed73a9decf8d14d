//! Simulate, capture, analyse: what `segue analyze` makes of the captures of the two ends is what the simulator's ledger
//! says. The analysis reads pcapng bytes and nothing else.

use crate::common::scenario_text;
use segue_capture::analyze::{
    Analysis, Direction, DirectionReport, Flow, HandoverKind, Input, Options, Protocol, Vantage,
    analyze_inputs,
};
use segue_capture::record::FlowState;
use segue_sim::recorder::FlowMetrics;
use segue_sim::{Metrics, RunOptions, RunOutput, Scenario, run};

/// Seconds that a packet takes on the slowest link of the scenarios: times agree within it.
const PACKET_TIME_S: f64 = 1e-3;
/// The same in the scenario of SIGMA, on its link of 2 Mbit/s.
const SIGMA_PACKET_TIME_S: f64 = 1500.0 * 8.0 / 2e6;

const SHIMS: [&str; 5] = ["mip6", "mip6-ro", "ilnp-hard", "ilnp-soft", "ilnp-multihomed"];

fn captured(text: &str, overrides: &[(&str, &str)], seed: u64) -> RunOutput {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let scenario = Scenario::from_toml(text, "test", &overrides).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions {
        seed: Some(seed),
        trace: true,
        pcap: true,
    };
    run(&scenario, options).unwrap_or_else(|e| panic!("{e}"))
}

fn input(output: &RunOutput, host: &str) -> Input {
    let name = format!("{host}.pcapng");
    let found = output.captures.iter().find(|(n, _)| *n == name);
    let (name, bytes) = found.expect("a capture of the host");
    Input::Bytes(name.clone(), bytes.as_slice().into())
}

fn analysed(output: &RunOutput, hosts: [&str; 2]) -> Analysis {
    let inputs = hosts.map(|h| input(output, h));
    let analysis = analyze_inputs(&inputs, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(analysis.captures.iter().all(|c| c.partial.is_none()));
    assert!(analysis.limits.is_empty(), "{:?}", analysis.limits);
    analysis
}

/// The direction of the analysed flow with these ports.
fn direction(analysis: &Analysis, source: u16, destination: u16) -> (&Flow, &DirectionReport, Direction) {
    let is = |f: &&Flow| {
        f.parent.is_none()
            && ((f.a.port, f.b.port) == (source, destination)
                || (f.b.port, f.a.port) == (source, destination))
    };
    let mut flows = analysis.flows.iter().filter(is);
    let flow = flows.next().expect("the flow is found");
    assert!(
        flows.next().is_none(),
        "one flow stays one flow: {:#?}",
        analysis.flows
    );
    if flow.a.port == source {
        (flow, &flow.forward, Direction::Forward)
    } else {
        (flow, &flow.reverse, Direction::Reverse)
    }
}

/// Counts of a flow over a shim, told by the ledger and by the analysis.
fn agree(analysis: &Analysis, flow: &FlowMetrics, case: &str) {
    agree_within(PACKET_TIME_S, analysis, flow, case);
}

fn agree_within(packet_time_s: f64, analysis: &Analysis, flow: &FlowMetrics, case: &str) {
    let (_, found, _) = direction(analysis, flow.source_port, flow.destination_port);
    assert_eq!(found.vantage, Vantage::Both, "{case}");
    let ends = found.ends.expect("both ends were captured");
    let ledger = &flow.counts;
    let told = [
        ("packets sent", ledger.packets_sent, ends.packets_sent),
        ("retransmissions", ledger.retransmissions, ends.retransmissions),
        ("lost packets", ledger.lost_packets, ends.lost_packets),
        (
            "spurious retransmissions",
            ledger.spurious_retransmissions,
            ends.spurious_retransmissions,
        ),
        ("in flight", ledger.in_flight_packets, ends.in_flight_packets),
        ("transferred bytes", flow.transferred_bytes, found.useful_bytes),
    ];
    for (what, ledger, ends) in told {
        assert_eq!(ledger, ends, "{case}: {what}: {:?} {found:?}", flow.counts);
    }
    assert_eq!(ends.unmatched_packets, 0, "{case}");
    // what comes in fragments arrives with the last of them; the analysis sees it with the first
    let apart_s = (flow.end.longest_gap_s - found.end.longest_gap_s).abs();
    assert!(
        apart_s <= packet_time_s,
        "{case}: longest gap {} s simulated, {} s analysed",
        flow.end.longest_gap_s,
        found.end.longest_gap_s
    );
}

fn near(simulated: f64, analysed: f64, what: &str) {
    assert!(
        (simulated - analysed).abs() <= PACKET_TIME_S,
        "{what}: {simulated} s simulated, {analysed} s analysed"
    );
}

fn flow_of<'a>(metrics: &'a Metrics, from: &str) -> &'a FlowMetrics {
    metrics.flows.iter().find(|f| f.from == from).expect("a flow")
}

#[test]
fn the_ledger_and_the_analysis_agree_on_sctp_over_every_shim_and_on_tcp_over_several_locators() {
    let text = scenario_text("ilnp.toml");
    let shared = [("duration", "40 s"), ("application.0.start", "27 s")];
    let mut lossy = 0;
    let cases = ["lan-lan", "lan-wan", "wan-lan", "wan-wan"];
    let sctp = SHIMS.into_iter().map(|scheme| (scheme, "sctp"));
    for (number, (scheme, transport)) in sctp.chain([("ilnp-multihomed", "tcp")]).enumerate() {
        let case = cases[(number + 2) % 4];
        let name = format!("{scheme} {case} {transport}");
        let overrides = [
            shared[0],
            shared[1],
            ("case", case),
            ("scheme", scheme),
            ("application.0.transport", transport),
        ];
        let output = captured(&text, &overrides, number as u64 + 1);
        let analysis = analysed(&output, ["mn", "cn"]);
        let flow = flow_of(&output.metrics, "cn");
        assert!(flow.counts.packets_sent > 1000, "{name}");
        agree(&analysis, flow, &name);
        lossy += u32::from(flow.counts.lost_packets > 0);
        assert!(!analysis.handovers.is_empty(), "{name}: no handover was found");
        let kind = if scheme.starts_with("mip6") {
            HandoverKind::CareOfAddress
        } else {
            HandoverKind::Locator
        };
        assert!(
            analysis.handovers.iter().any(|h| h.kind == kind),
            "{name}: {:#?}",
            analysis.handovers
        );
        // the ledger's pause around a handoff
        if let Some(simulated) = flow.interruption_s {
            let found = analysis
                .handovers
                .iter()
                .map(|h| h.settling_gap_s.max(h.record.interruption_s.unwrap_or_default()));
            near(
                simulated,
                found.fold(0.0, f64::max),
                &format!("{name}: interruption"),
            );
        }
    }
    assert!(lossy >= 2, "hardly anything was lost");
}

#[test]
fn they_agree_when_both_hosts_move_and_when_nothing_keeps_the_connection() {
    // the mobile node is the client, and its connection ends where its first network does
    let text = scenario_text("ilnp.toml");
    let settings = [
        ("duration", "40 s"),
        ("application.0.start", "27 s"),
        ("scheme", "none"),
        ("application.0.from", "mn"),
        ("application.0.to", "cn"),
    ];
    let output = captured(&text, &settings, 1);
    let analysis = analysed(&output, ["mn", "cn"]);
    let flow = flow_of(&output.metrics, "mn");
    let (_, found, _) = direction(&analysis, flow.source_port, flow.destination_port);
    let ends = found.ends.expect("both ends were captured");
    assert!(flow.counts.lost_packets > 0, "{flow:?}");
    assert_eq!(flow.counts.packets_sent, ends.packets_sent);
    assert_eq!(flow.counts.retransmissions, ends.retransmissions);
    assert_eq!(
        flow.counts.spurious_retransmissions,
        ends.spurious_retransmissions
    );
    assert_eq!(flow.transferred_bytes, found.useful_bytes);
    // the last that the host sent went nowhere, but no capture can tell it from what is under way
    let missing = flow.counts.lost_packets + flow.counts.in_flight_packets;
    assert_eq!(missing, ends.lost_packets + ends.in_flight_packets);
    assert!(ends.in_flight_packets <= 1, "{ends:?}");
    // its sender went on for seconds, and both captures know when the last byte came
    assert_eq!(found.end.state, FlowState::Dead, "{:?}", found.end);
    let dead_since_s = found.end.dead_since_s.expect("it is dead");
    assert!(found.attempts >= 3, "{:?}", found.end);
    near(
        found.end.longest_gap_s,
        analysis.duration_s - dead_since_s,
        "silence",
    );
    assert!(analysis.interruptions.first().is_some_and(|i| i.censored));
    // the sender's alone knows it to a round trip: later by the way of an acknowledgement, or earlier where the
    // acknowledgements of what arrived last went nowhere
    let alone = analyze_inputs(&[input(&output, "mn")], &Options::default()).expect("a capture");
    let (_, sender, _) = direction(&alone, flow.source_port, flow.destination_port);
    assert_eq!(sender.end.state, FlowState::Dead);
    let start_s = (alone.start_time_ns as f64 - analysis.start_time_ns as f64) / 1e9;
    let later_s = sender.end.dead_since_s.expect("it is dead") + start_s - dead_since_s;
    let trip_s = sender.rtt_s.expect("acknowledged").max;
    assert!((-trip_s..=trip_s).contains(&later_s), "{later_s} s, {trip_s} s");
    // the receiver's alone sees silence
    let alone = analyze_inputs(&[input(&output, "cn")], &Options::default()).expect("a capture");
    let (_, receiver, _) = direction(&alone, flow.source_port, flow.destination_port);
    // its capture ends with what arrived last
    assert_eq!(receiver.end.state, FlowState::Active);
    let text = scenario_text("both-move.toml");
    for scheme in ["mip6", "mip6-ro", "ilnp-hard", "ilnp-soft"] {
        let output = captured(&text, &[("duration", "20 s"), ("scheme", scheme)], 1);
        let analysis = analysed(&output, ["b", "a"]);
        agree(
            &analysis,
            flow_of(&output.metrics, "a"),
            &format!("both move, {scheme}"),
        );
    }
}

#[test]
fn they_agree_on_every_vertical_handover() {
    // queues of GPRS are long: the runs end in the middle of them
    let text = scenario_text("vertical.toml");
    let mut in_flight = 0;
    for (seed, case, duration) in [
        (1, "wlan-gprs", "65 s"),
        (2, "lan-gprs", "40 s"),
        (3, "gprs-wlan", "35 s"),
        (4, "gprs-lan", "35 s"),
        (5, "wlan-gprs-wlan", "52 s"),
        (6, "gprs-wlan-gprs", "75 s"),
        (7, "gprs-lan-gprs", "75 s"),
        (8, "gprs-wlan-gprs-soft", "75 s"),
    ] {
        let output = captured(&text, &[("case", case), ("duration", duration)], seed);
        let analysis = analysed(&output, ["mn", "cn"]);
        let flow = flow_of(&output.metrics, "cn");
        agree(&analysis, flow, case);
        in_flight += flow.counts.in_flight_packets;
        let handoffs = output.metrics.handoffs.iter().filter(|h| h.parts.is_some());
        let found = analysis.handovers.len();
        assert!(
            found > 0 && found <= handoffs.count() + 1,
            "{case}: {found} handovers"
        );
        if let Some(simulated) = flow.interruption_s {
            let gaps = analysis
                .handovers
                .iter()
                .map(|h| h.settling_gap_s.max(h.record.interruption_s.unwrap_or_default()));
            let name = format!("{case}: interruption");
            near(simulated, gaps.fold(0.0, f64::max), &name);
        }
    }
    assert!(in_flight > 10, "hardly anything was under way at the ends");
}

#[test]
fn the_handovers_of_sigma_are_those_of_the_simulator() {
    let text = scenario_text("sigma.toml");
    for (seed, settings) in [
        (1, [("duration", "60 s"), ("l2.latency", "200 ms")]),
        (2, [("duration", "60 s"), ("l2.latency", "500 ms")]),
    ] {
        let output = captured(&text, &settings, seed);
        let analysis = analysed(&output, ["mh", "cn"]);
        let metrics = &output.metrics;
        let largest = |f: &&Flow| f.forward.data_bytes + f.reverse.data_bytes;
        let flow = analysis.flows.iter().max_by_key(largest).expect("a flow");
        assert_eq!(flow.protocol, Protocol::Sctp);
        let data = if flow.forward.data_bytes > flow.reverse.data_bytes {
            &flow.forward
        } else {
            &flow.reverse
        };
        let ends = data.ends.expect("both ends");
        assert_eq!(metrics.packets_sent, ends.packets_sent);
        assert_eq!(metrics.packets_retransmitted, ends.retransmissions);
        let lost =
            metrics.packets_lost_to_handover + metrics.packets_lost_to_queue + metrics.packets_lost_otherwise;
        assert_eq!(lost, ends.lost_packets);
        assert_eq!(metrics.delivered_bytes, data.useful_bytes);
        assert_eq!(metrics.duplicate_packets, data.duplicate_packets);
        near(metrics.longest_gap_s, data.end.longest_gap_s, "longest gap");
        assert!(metrics.handovers.len() >= 2, "{:?}", metrics.handovers);
        assert_eq!(
            metrics.handovers.len(),
            analysis.handovers.len(),
            "{:#?}",
            analysis.handovers
        );
        let start_s = analysis.start_time_ns as f64 / 1e9;
        for (simulated, found) in metrics.handovers.iter().zip(&analysis.handovers) {
            near(simulated.time, start_s + found.record.time, "time");
            let record = &found.record;
            near(
                simulated.latency_s.expect("data"),
                record.latency_s.expect("data came back"),
                "latency",
            );
            near(
                simulated.interruption_s.expect("data"),
                record.interruption_s.expect("of a flow"),
                "interruption",
            );
            assert_eq!(record.to, simulated.to);
        }
    }
}

#[test]
fn they_agree_on_sctp_over_mobile_ipv6_in_the_scenario_of_sigma() {
    // without route optimisation some DATA leaves in fragments: its chunks were cut before the tunnel was met
    let text = scenario_text("sigma.toml");
    for scheme in ["mip6", "mip6-ro"] {
        let output = captured(&text, &[("duration", "60 s"), ("scheme", scheme)], 1);
        let analysis = analysed(&output, ["mh", "cn"]);
        let flow = flow_of(&output.metrics, "cn");
        assert!(
            flow.counts.packets_sent > 1000 && flow.counts.lost_packets > 0,
            "{flow:?}"
        );
        agree_within(SIGMA_PACKET_TIME_S, &analysis, flow, &format!("sigma, {scheme}"));
    }
}

#[test]
fn several_paths_at_once_are_counted_packet_by_packet() {
    let text = scenario_text("cmt.toml");
    for scheme in ["single", "failover", "msctp-best", "msctp-worst", "cmt"] {
        let settings = [
            ("scheme", scheme),
            ("file_size", "2 MB"),
            ("t_dwell", "5 s"),
            ("duration", "60 s"),
        ];
        let output = captured(&text, &settings, 1);
        let analysis = analysed(&output, ["mn", "cn"]);
        let metrics = &output.metrics;
        let largest = |f: &&Flow| f.forward.data_bytes + f.reverse.data_bytes;
        let flow = analysis.flows.iter().max_by_key(largest).expect("a flow");
        let data = if flow.forward.data_bytes > flow.reverse.data_bytes {
            &flow.forward
        } else {
            &flow.reverse
        };
        let ends = data.ends.expect("both ends");
        assert_eq!(metrics.packets_sent, ends.packets_sent, "{scheme}");
        assert_eq!(metrics.packets_retransmitted, ends.retransmissions, "{scheme}");
        let lost =
            metrics.packets_lost_to_handover + metrics.packets_lost_to_queue + metrics.packets_lost_otherwise;
        assert_eq!(lost, ends.lost_packets, "{scheme}");
        assert_eq!(metrics.delivered_bytes, data.useful_bytes, "{scheme}");
        assert_eq!(metrics.duplicate_packets, data.duplicate_packets, "{scheme}");
        near(metrics.longest_gap_s, data.end.longest_gap_s, scheme);
        let way = if flow.forward.data_bytes > flow.reverse.data_bytes {
            Direction::Forward
        } else {
            Direction::Reverse
        };
        let found = analysis.handovers.iter().filter(|h| h.direction == way).count();
        assert_eq!(
            metrics.handovers.len(),
            found,
            "{scheme}: {:#?}",
            analysis.handovers
        );
        let shared = analysis.shares.iter().any(|s| s.direction == way);
        assert!(shared || scheme != "cmt", "both paths are in use");
        assert!(!shared || scheme != "single", "{:#?}", analysis.shares);
    }
}
