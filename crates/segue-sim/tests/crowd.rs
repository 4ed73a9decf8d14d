//! Flows that never come back, and many hosts: what a run says of each flow is what the captures of its two ends show, and
//! what it says of all of them is what its tables say.

use crate::common::scenario_text;
use crate::several_mobiles::two_mobiles;
use segue_capture::analyze::{Direction, Flow, Input, Options, Vantage, analyze_inputs};
use segue_capture::record::{FlowState, HandoverRecord, Layer};
use segue_sim::recorder::FlowMetrics;
use segue_sim::{Metrics, RunOptions, RunOutput, Scenario, run};
use std::fmt::Write;

/// Times agree within the time that a packet takes on the slowest link of the scenarios.
const PACKET_TIME_S: f64 = 1500.0 * 8.0 / 2e6;

fn captured(text: &str, overrides: &[(&str, &str)], seed: u64) -> RunOutput {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let scenario = Scenario::from_toml(text, "test", &overrides).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions {
        seed: Some(seed),
        pcap: true,
        ..RunOptions::default()
    };
    run(&scenario, options).unwrap_or_else(|e| panic!("{e}"))
}

/// Phones that walk one after the other from one cell into another, with a quiet download each.
fn crowd(phones: usize, scheme: &str) -> String {
    let mut text = format!(
        r#"
name = "crowd"
duration = "30 s"
scheme = "{scheme}"

[l2]
latency = "100 ms"
beacon_period = "50 ms"

[radio]
rate = "54 Mbit/s"
basic_rate = "24 Mbit/s"
preamble = "20 us"
slot = "9 us"
cw_min = 15
queue = 1000

[address]
method = "fixed"
resolution = "200 ms"

[handover]
policy = "first-ready"
when_missed = "when-ready"
delete = "on-link-down"

[[host]]
name = "cn"

[[router]]
name = "core"

[[router]]
name = "west"

[[router]]
name = "east"
"#
    );
    for (a, b, delay) in [("cn", "core", 10), ("core", "west", 2), ("core", "east", 2)] {
        let _ = write!(
            text,
            "\n[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"100 Mbit/s\"\ndelay = \"{delay} ms\"\nqueue = \"1000 packets\"\n"
        );
    }
    for (name, x, channel) in [("west", 0, 36), ("east", 70, 149)] {
        let _ = write!(
            text,
            "\n[[cell]]\nname = \"{name}\"\nrouter = \"{name}\"\nposition = [\"{x} m\", \"0 m\"]\nradius = \"40 m\"\nchannel = {channel}\n"
        );
    }
    for n in 0..phones {
        let start_ms = 1000 + 90 * n;
        let _ = write!(
            text,
            r#"
[[host]]
name = "p{n}"
radios = 2

[[mobile]]
host = "p{n}"
pattern = "waypoints"
from = ["0 m", "0 m"]
points = [["70 m", "0 m"]]
speed = "5 m/s"
start = "{start_ms} ms"

[[application]]
kind = "constant-rate"
from = "cn"
to = "p{n}"
rate = "16 kbit/s"
message = "500 B"
"#
        );
    }
    text
}

/// Analyses the captures of a host and of its peer, and compares flow by flow. Gives how many handovers the flows between
/// them have.
fn compare(output: &RunOutput, host: &str, peer: &str, case: &str) -> usize {
    let metrics = &output.metrics;
    let input = |name: &str| {
        let file = format!("{name}.pcapng");
        let (name, bytes) = output.captures.iter().find(|c| c.0 == file).expect("a capture");
        Input::Bytes(name.clone(), bytes.as_slice().into())
    };
    let analysis =
        analyze_inputs(&[input(host), input(peer)], &Options::default()).expect("our own captures");
    let start_s = analysis.start_time_ns as f64 / 1e9;
    let between = |f: &&FlowMetrics| {
        (f.from == host && (f.to == peer || f.to.is_empty())) || (f.from == peer && f.to == host)
    };
    let mut handovers = 0;
    for flow in metrics.flows.iter().filter(between) {
        let case = format!("{case}, {} to {}", flow.from, flow.to);
        let ports = (flow.source_port, flow.destination_port);
        let both = |f: &Flow| {
            [
                ((f.a.port, f.b.port) == ports, Direction::Forward),
                ((f.b.port, f.a.port) == ports, Direction::Reverse),
            ]
        };
        // the peer's capture has others' flows too
        let directions = analysis
            .flows
            .iter()
            .flat_map(|f| both(f).map(|(is, d)| (f, is, d)));
        let own = directions
            .filter(|(_, is, _)| *is)
            .filter_map(|(f, _, direction)| {
                let report = match direction {
                    Direction::Forward => &f.forward,
                    Direction::Reverse => &f.reverse,
                };
                (report.vantage == Vantage::Both && report.data_packets > 0).then_some((f, direction, report))
            });
        let own: Vec<_> = own.collect();
        let [(found, direction, report)] = own[..] else {
            panic!("{case}: {} flows", own.len());
        };
        let ends = report.ends.expect("both ends");
        assert_eq!(flow.counts.packets_sent, ends.packets_sent, "{case}");
        assert_eq!(flow.counts.retransmissions, ends.retransmissions, "{case}");
        assert_eq!(
            flow.counts.spurious_retransmissions, ends.spurious_retransmissions,
            "{case}"
        );
        assert_eq!(flow.transferred_bytes, report.useful_bytes, "{case}");
        // at the end no capture can tell the lost from what is under way
        assert_eq!(
            flow.counts.lost_packets + flow.counts.in_flight_packets,
            ends.lost_packets + ends.in_flight_packets,
            "{case}"
        );
        let dead = (
            flow.end.state == FlowState::Dead,
            report.end.state == FlowState::Dead,
        );
        assert_eq!(dead.0, dead.1, "{case}: {:?} {:?}", flow.end, report.end);
        if dead.0 {
            let since = [&flow.end, &report.end].map(|e| e.dead_since_s.expect("since when"));
            near(since[0], start_s + since[1], &format!("{case}: dead since"));
        } else {
            near(
                flow.end.longest_gap_s,
                report.end.longest_gap_s,
                &format!("{case}: longest gap"),
            );
        }
        let told: Vec<&HandoverRecord> = metrics
            .handovers
            .iter()
            .filter(|h| h.flow == Some(flow.id))
            .collect();
        let shown = analysis.handovers.iter();
        let shown: Vec<&HandoverRecord> = shown
            .filter(|h| h.record.flow == Some(found.id) && h.direction == direction)
            .map(|h| &h.record)
            .collect();
        assert_eq!(told.len(), shown.len(), "{case}: {told:#?} {shown:#?}");
        for (told, shown) in told.iter().zip(&shown) {
            assert_eq!(told.censored, shown.censored, "{case}");
            assert_eq!((told.from, told.to), (shown.from, shown.to), "{case}");
            if told.censored {
                continue;
            }
            near(told.time, start_s + shown.time, &format!("{case}: time"));
            for (what, a, b) in [
                ("latency", told.latency_s, shown.latency_s),
                ("interruption", told.interruption_s, shown.interruption_s),
            ] {
                near(a.expect("data"), b.expect("data"), &format!("{case}: {what}"));
            }
            assert_eq!(told.retransmissions, shown.retransmissions, "{case}: {told:#?}");
            assert_eq!(
                told.spurious_retransmissions, shown.spurious_retransmissions,
                "{case}"
            );
        }
        handovers += told.len();
    }
    handovers
}

fn near(simulated: f64, analysed: f64, what: &str) {
    assert!(
        (simulated - analysed).abs() <= PACKET_TIME_S,
        "{what}: {simulated} s simulated, {analysed} s analysed"
    );
}

/// What is said of a whole run is what its tables say.
fn adds_up(m: &Metrics, case: &str) {
    let sum = |of: fn(&FlowMetrics) -> u64| m.flows.iter().map(of).sum::<u64>();
    for (what, total, sum) in [
        ("sent", m.packets_sent, sum(|f| f.counts.packets_sent)),
        (
            "again",
            m.packets_retransmitted,
            sum(|f| f.counts.retransmissions),
        ),
        ("duplicates", m.duplicate_packets, sum(|f| f.duplicate_packets)),
        ("bytes", m.delivered_bytes, sum(|f| f.transferred_bytes)),
        (
            "handover",
            m.packets_lost_to_handover,
            sum(|f| f.counts.lost_to_handover),
        ),
        ("queue", m.packets_lost_to_queue, sum(|f| f.counts.lost_to_queue)),
        (
            "otherwise",
            m.packets_lost_otherwise,
            sum(|f| f.counts.lost_otherwise),
        ),
        (
            "lost",
            m.packets_lost_to_handover + m.packets_lost_to_queue + m.packets_lost_otherwise,
            sum(|f| f.counts.lost_packets),
        ),
    ] {
        assert_eq!(total, sum, "{case}: {what}");
    }
    let longest = m.flows.iter().map(|f| f.end.longest_gap_s).fold(0.0, f64::max);
    assert_eq!(m.longest_gap_s, longest, "{case}");
    let moved: Vec<f64> = m.handovers.iter().filter_map(|h| h.interruption_s).collect();
    let with: Vec<u64> = m
        .handovers
        .iter()
        .filter(|h| h.censored)
        .filter_map(|h| h.flow)
        .collect();
    let outages = || m.flows.iter().flat_map(|f| &f.end.outages);
    for f in &m.flows {
        let last = f.end.outages.last().is_some_and(|o| o.censored);
        let dead = f.end.state == FlowState::Dead;
        assert_eq!(dead, last || with.contains(&f.id), "{case}: {:?}", f.end);
        assert!(!(last && with.contains(&f.id)), "{case}: counted twice");
        assert_eq!(f.end.silence_s.is_some(), dead, "{case}");
    }
    let spread = m.interruption_s.as_ref();
    assert_eq!(
        spread.map_or(0, |s| s.count),
        (moved.len() + outages().count()) as u64,
        "{case}"
    );
    assert_eq!(
        spread.map_or(0, |s| s.censored),
        (with.len() + outages().filter(|o| o.censored).count()) as u64,
        "{case}"
    );
    for host in &m.hosts {
        let own = m
            .flows
            .iter()
            .filter(|f| f.from == host.host || f.to == host.host);
        assert_eq!(host.flows, own.clone().count() as u64, "{case}");
        assert_eq!(
            host.delivered_bytes,
            own.map(|f| f.transferred_bytes).sum::<u64>(),
            "{case}"
        );
        let handovers = m.handovers.iter().filter(|h| h.host == host.host).count();
        assert_eq!(host.handovers, handovers as u64, "{case}");
    }
    for h in &m.handovers {
        let flow = h.flow.map(|id| &m.flows[id as usize]);
        assert!(
            flow.is_none_or(|f| f.from == h.host || f.to == h.host),
            "{case}: {h:?}"
        );
        // a row without a flow is of a host whose data shows nothing of it
        assert_eq!(h.flow.is_none(), h.interruption_s.is_none(), "{case}: {h:?}");
    }
}

#[test]
fn an_outage_that_lasts_to_the_end_is_the_longest() {
    // it walks out of both cells and does not come back
    let text = scenario_text("sigma.toml")
        .replacen("pattern = \"back-and-forth\"", "pattern = \"waypoints\"", 1)
        .replacen("to = [\"70 m\", \"0 m\"]", "points = [[\"1000 m\", \"0 m\"]]", 1);
    let output = captured(&text, &[("duration", "120 s"), ("scheme", "none")], 1);
    let m = &output.metrics;
    let [flow] = &m.flows[..] else {
        panic!("{:?}", m.flows);
    };
    assert_eq!(flow.end.state, FlowState::Dead);
    let since_s = flow.end.dead_since_s.expect("since when");
    // at 5 m/s from 1 s on, 40 m away at 9 s
    assert!((8.5..9.1).contains(&since_s), "{since_s}");
    assert!((flow.end.longest_gap_s - (120.0 - since_s)).abs() < 1e-9 && flow.end.censored);
    assert_eq!(m.longest_gap_s, flow.end.longest_gap_s);
    let spread = m.interruption_s.as_ref().expect("the outage counts");
    assert_eq!((spread.count, spread.censored), (1, 1));
    assert_eq!(
        (spread.median, spread.worst.flow),
        (flow.end.longest_gap_s, Some(flow.id))
    );
    assert!(m.handovers.is_empty(), "it died without a move");
    let last = &flow.end.last_packets;
    assert!(last.first().is_some_and(|l| l.ends_with("arrived")), "{last:#?}");
    assert!(last.iter().any(|l| l.contains("dropped: ")), "{last:#?}");
    assert!(last.iter().any(|l| l.contains(" again to ")), "{last:#?}");
    let host = m.hosts.iter().find(|h| h.host == "mh").expect("the host");
    assert_eq!((host.flows, host.dead_flows, host.handovers), (1, 1, 0));
    assert_eq!(compare(&output, "mh", "cn", "none"), 0);
    adds_up(m, "none");
}

#[test]
fn throughput_is_over_the_life_of_a_flow() {
    let settings = [("file_size", "2 MB"), ("t_dwell", "5 s"), ("duration", "60 s")];
    let m = captured(&scenario_text("cmt.toml"), &settings, 1).metrics;
    let took_s = m.transfer_time_s.expect("it arrives");
    assert!(took_s < 30.0, "{took_s}");
    assert_eq!(m.flows[0].end.state, FlowState::Closed);
    let rate = 2e6 * 8.0 / took_s;
    assert!(
        (m.throughput_bps / rate - 1.0).abs() < 1e-6,
        "{}",
        m.throughput_bps
    );
    assert!((m.flows[0].throughput_bps / rate - 1.0).abs() < 1e-6);
}

#[test]
fn two_phones_have_their_handovers_each() {
    let text = two_mobiles();
    let output = captured(&text, &[("duration", "40 s"), ("l2.latency", "100 ms")], 1);
    let found = ["mh", "other"].map(|host| compare(&output, host, "cn", "two phones"));
    assert!(found.iter().all(|n| *n >= 2), "{found:?}");
    let m = &output.metrics;
    assert_eq!(
        m.handovers.iter().filter(|h| h.flow.is_some()).count(),
        found[0] + found[1]
    );
    for h in m.handovers.iter().filter(|h| h.flow.is_some()) {
        assert_eq!(h.layer, Some(Layer::Transport));
        let delay = h
            .handoff_delay_s
            .expect("the address was added, and made primary");
        let (begin, end) = (h.begin_s.unwrap(), h.end_s.unwrap());
        // what it waits for the decision in between is no part of it
        assert!(
            0.0 < delay && delay <= end - begin + 1e-9 && begin < h.time,
            "{h:?}"
        );
    }
    adds_up(m, "two phones");
}

#[test]
fn of_a_hundred_phones_every_handover_is_there_and_agrees_with_the_captures() {
    for scheme in ["sigma", "mip6", "ilnp-hard", "ilnp-soft"] {
        let phones = 100;
        let output = captured(&crowd(phones, scheme), &[], 1);
        let m = &output.metrics;
        adds_up(m, scheme);
        assert_eq!(m.flows.len(), phones, "{scheme}");
        let mut handovers = 0;
        for n in 0..phones {
            handovers += compare(&output, &format!("p{n}"), "cn", scheme);
        }
        assert!(
            handovers >= phones,
            "{scheme}: {handovers} handovers of {phones} phones"
        );
        let of_flows = m.handovers.iter().filter(|h| h.flow.is_some());
        assert_eq!(of_flows.count(), handovers, "{scheme}");
        assert_eq!(m.hosts.len(), phones + 1, "{scheme}");
        assert!(
            m.hosts.iter().all(|h| h.host == "cn" || h.handovers >= 1),
            "{scheme}"
        );
    }
}

#[test]
fn totals_are_sums_whatever_the_scheme() {
    let shims = ["mip6", "mip6-ro", "ilnp-hard", "ilnp-soft", "ilnp-multihomed"];
    let sigma = scenario_text("sigma.toml");
    for scheme in ["sigma", "none"]
        .into_iter()
        .chain(shims)
        .filter(|s| *s != "ilnp-multihomed")
    {
        let output = captured(&sigma, &[("duration", "30 s"), ("scheme", scheme)], 2);
        adds_up(&output.metrics, scheme);
        if scheme != "none" {
            let m = &output.metrics;
            assert!(
                m.handovers.iter().any(|h| h.flow.is_some()),
                "{scheme}: {:?}",
                m.handoffs
            );
        }
    }
    let cmt = scenario_text("cmt.toml");
    for scheme in ["single", "failover", "msctp-best", "msctp-worst", "cmt"] {
        let settings = [
            ("scheme", scheme),
            ("file_size", "2 MB"),
            ("t_dwell", "5 s"),
            ("duration", "60 s"),
        ];
        adds_up(&captured(&cmt, &settings, 2).metrics, scheme);
    }
    let ilnp = scenario_text("ilnp.toml");
    for (scheme, transport) in shims.into_iter().flat_map(|s| [(s, "tcp"), (s, "sctp")]) {
        let settings = [
            ("scheme", scheme),
            ("duration", "34 s"),
            ("application.0.start", "28 s"),
            ("application.0.transport", transport),
        ];
        adds_up(
            &captured(&ilnp, &settings, 2).metrics,
            &format!("{scheme}, {transport}"),
        );
    }
}
