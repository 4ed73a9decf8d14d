//! Handoffs below TCP, in the scenario of paper 004 and in that of two hosts that move at once.

use crate::common::{metrics, scenario_text};
use segue_proto::Duration;
use segue_sim::{Metrics, RunOptions, Scenario, Trace, run};

/// The flow is cut short: it begins before ILNPv6 hands off, and ends when Mobile IPv6 has.
const SHORT: [(&str, &str); 2] = [("duration", "39 s"), ("application.0.start", "27 s")];

fn short<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    SHORT.iter().chain(more).copied().collect()
}

fn traced(text: &str, overrides: &[(&str, &str)]) -> (Metrics, Trace) {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let scenario = Scenario::from_toml(text, "test", &overrides).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions {
        trace: true,
        ..RunOptions::default()
    };
    let output = run(&scenario, options).unwrap_or_else(|e| panic!("{e}"));
    (output.metrics, output.trace.expect("a trace"))
}

fn events(trace: &Trace, name: &str) -> usize {
    trace.signalling.event.iter().filter(|e| *e == name).count()
}

fn kind(m: &Metrics, name: &str) -> u64 {
    m.signalling.by_kind.get(name).map_or(0, |c| c.packets)
}

#[test]
fn every_scheme_hands_off_once_and_is_the_same_with_exact_bytes() {
    let text = scenario_text("ilnp.toml");
    for (scheme, case, told) in [
        ("mip6", "wan-lan", "BU"),
        ("mip6-ro", "lan-wan", "BU"),
        ("ilnp-hard", "lan-lan", "LU"),
        ("ilnp-soft", "wan-wan", "LU"),
    ] {
        let settings = short(&[("scheme", scheme), ("case", case)]);
        let typed = metrics(&text, &settings, 2);
        assert_eq!(typed.handoffs.len(), 1, "{scheme}: {:?}", typed.handoffs);
        assert!(
            typed.handoffs[0].handoff_delay_s.is_some(),
            "{scheme} did not end"
        );
        assert!(
            kind(&typed, told) > 0,
            "{scheme} said nothing: {:?}",
            typed.signalling
        );
        let bytes: u64 = typed.flows.iter().map(|f| f.transferred_bytes).sum();
        assert!(bytes > 1_000_000, "{scheme}: {bytes} bytes");
        let exact = metrics(&text, &[&settings[..], &[("wire", "exact")]].concat(), 2);
        assert_eq!(typed, exact, "{scheme}: typed and exact wire differ");
        assert_eq!(exact.corrupt_messages, 0);
    }
}

#[test]
fn without_a_shim_the_connection_ends_where_its_address_does() {
    let text = scenario_text("ilnp.toml");
    let m = metrics(&text, &short(&[("scheme", "none"), ("duration", "45 s")]), 1);
    let received = &m.flows[0].received_bytes_by_second;
    assert!(received[30] > 1_000_000, "{received:?}");
    assert_eq!(received.get(37..).map(|r| r.iter().sum()).unwrap_or(0), 0u64);
}

#[test]
fn soft_handoff_loses_nothing_and_hard_handoff_what_was_on_its_way() {
    let text = scenario_text("ilnp.toml");
    for (scheme, least, most) in [("ilnp-soft", 0, 0), ("ilnp-hard", 50, 300)] {
        let m = metrics(&text, &short(&[("scheme", scheme), ("case", "lan-lan")]), 1);
        let lost = m.flows[0].counts.lost_packets;
        assert!((least..=most).contains(&lost), "{scheme}: {lost}");
        // section 6.1.2: what soft handoff retransmits had only been overtaken
        assert!(m.flows[0].counts.retransmissions > 50, "{scheme}");
        let spurious = m.flows[0].counts.spurious_retransmissions;
        assert_eq!(spurious > 50, scheme == "ilnp-soft", "{scheme}: {spurious}");
    }
}

const EVE: &str = r#"
[[host]]
name = "eve"

[[link]]
between = ["eve", "r1"]
rate = "100 Mbit/s"
delay = "1 ms"
"#;

#[test]
fn forged_signalling_changes_nothing() {
    let text = scenario_text("ilnp.toml") + EVE;
    let forge = |message: &str, nonce: &str| {
        let entry = |at: u32| {
            format!(
                "\n[[forgery]]\nat = \"{at} s\"\nfrom = \"eve\"\nto = \"cn\"\nabout = \"mn\"\nmessage = \"{message}\"\nnonce = \"{nonce}\"\n"
            )
        };
        text.clone() + &entry(28) + &entry(31)
    };
    for (scheme, message, nonce, name) in [
        ("ilnp-soft", "locator-update", "wrong", "LU"),
        ("ilnp-soft", "locator-update", "missing", "LU"),
        ("mip6-ro", "binding-update", "wrong", "BU"),
    ] {
        let settings = short(&[("scheme", scheme)]);
        let clean = metrics(&text, &settings, 1);
        let forged = metrics(&forge(message, nonce), &settings, 1);
        assert_eq!(kind(&forged, name), kind(&clean, name) + 2, "{scheme}: not sent");
        assert_eq!(clean.flows, forged.flows, "{scheme}, {nonce}");
        assert_eq!(clean.handoffs, forged.handoffs, "{scheme}, {nonce}");
    }
}

#[test]
fn behind_the_border_of_a_site_nobody_sees_the_locator_inside() {
    let text = scenario_text("ilnp.toml").replacen(
        "name = \"r3\"\n",
        "name = \"r3\"\nrewrites_to = \"2001:db8:300::\"\n",
        1,
    );
    for checksum in ["identifiers", "ipv6"] {
        let settings = short(&[("scheme", "ilnp-soft"), ("ilnp.checksum", checksum)]);
        let (m, trace) = traced(&text, &settings);
        assert_eq!(m.handoffs.len(), 1);
        assert!(m.handoffs[0].handoff_delay_s.is_some(), "{:?}", m.handoffs);
        assert_eq!(m.flows[0].counts.lost_packets, 0);
        let cn = trace.nodes.iter().position(|n| n == "cn").unwrap() as u16;
        let rows = trace.packets.node.iter().zip(&trace.packets.destination);
        let to = |prefix: u16| {
            let within = |a: &std::net::Ipv6Addr| a.segments()[..3] == [0x2001, 0xdb8, prefix];
            rows.clone().filter(|(n, d)| **n == cn && within(d)).count()
        };
        assert!(to(0x300) > 1000, "nothing went to the locator outside");
        assert_eq!(to(3), 0, "the locator inside was seen");
        let exact = metrics(&text, &[&settings[..], &[("wire", "exact")]].concat(), 1);
        assert_eq!(m, exact, "{checksum}: typed and exact wire differ");
    }
}

#[test]
fn one_flow_is_shared_among_locators_packet_by_packet() {
    let text = scenario_text("ilnp.toml");
    let settings = short(&[
        ("scheme", "ilnp-multihomed"),
        ("ilnp.sharing", "per-packet"),
        ("tcp.profile", "modern"),
        ("duration", "34 s"),
    ]);
    let (m, trace) = traced(&text, &settings);
    assert_eq!(m.flows.len(), 1, "one connection");
    let cn = trace.nodes.iter().position(|n| n == "cn").unwrap() as u16;
    let mut by_prefix = std::collections::BTreeMap::new();
    let p = &trace.packets;
    for row in 0..p.node.len() {
        let late = p.time_ns[row] > 31_000_000_000;
        if late && p.node[row] == cn && p.action[row] == "sent" && p.kind[row] == "DATA" {
            *by_prefix.entry(p.destination[row].segments()[2]).or_insert(0) += 1;
        }
    }
    let counts: Vec<i32> = by_prefix.values().copied().collect();
    assert_eq!(counts.len(), 2, "{by_prefix:?}");
    assert!((counts[0] - counts[1]).abs() < counts[0] / 10, "{by_prefix:?}");
}

#[test]
fn both_hosts_moving_at_once_need_a_look_up_only_with_hard_handoff() {
    let text = scenario_text("both-move.toml");
    for (scheme, look_ups) in [("ilnp-soft", false), ("ilnp-hard", true), ("mip6-ro", false)] {
        let (m, trace) = traced(&text, &[("scheme", scheme), ("duration", "25 s")]);
        assert_eq!(m.handoffs.len(), 2, "{scheme}: {:?}", m.handoffs);
        let begun: Vec<f64> = m.handoffs.iter().map(|h| h.begin_s).collect();
        assert!(
            (begun[0] - begun[1]).abs() < 0.1,
            "{scheme}: not at once: {begun:?}"
        );
        let done = m.handoffs.iter().all(|h| h.handoff_delay_s.is_some());
        assert!(done, "{scheme}: {:?}", m.handoffs);
        assert_eq!(events(&trace, "look-up") > 0, look_ups, "{scheme}");
        let last = m.flows[0].received_bytes_by_second.last().copied();
        assert!(last > Some(100_000), "{scheme}: the flow did not go on");
    }
}

#[test]
fn starved_advertisements_make_false_handoffs_and_priority_removes_them() {
    let text = scenario_text("ilnp.toml");
    let starving = [
        ("scheme", "ilnp-soft"),
        ("tcp.window_clamp", "16 MiB"),
        ("radio.queue", "5000"),
        ("address.ra_interval_min", "300 ms"),
        ("address.ra_interval_max", "400 ms"),
        ("ilnp.locator_timeout", "1 s"),
    ];
    // of three runs: handoffs that are false, and how long an advertisement took at most
    let of = |more: &[(&str, &str)]| -> (usize, Duration) {
        let settings = [&starving[..], more].concat();
        let runs = (2..5).map(|seed: u64| {
            let seed = seed.to_string();
            let (m, trace) = traced(&text, &[&settings[..], &[("seed", &seed)]].concat());
            (m.handoffs.len() - 1, slowest_advertisement(&trace))
        });
        runs.fold((0, Duration::ZERO), |(n, slow), (false_ones, own)| {
            (n + false_ones, slow.max(own))
        })
    };
    let (behind, late) = of(&[]);
    assert!(behind > 0, "behind data: {behind}");
    assert!(late > Duration::from_millis(500), "behind data: {late}");
    for (more, name) in [
        (("signalling_priority", "true"), "ahead of data"),
        (("tcp.window_clamp", "320 KiB"), "with the paper's window"),
    ] {
        let (false_ones, late) = of(&[more]);
        // what is left is chance: advertisements collide, and are not repeated
        assert!(false_ones < behind, "{name}: {false_ones} of {behind}");
        assert!(late < Duration::from_millis(200), "{name}: {late}");
    }
}

/// From when a router hands an advertisement to its interface until the mobile node has it.
fn slowest_advertisement(trace: &Trace) -> Duration {
    let mn = trace.nodes.iter().position(|n| n == "mn").unwrap() as u16;
    let p = &trace.packets;
    let mut sent = std::collections::BTreeMap::new();
    let mut slowest = 0;
    for row in (0..p.node.len()).filter(|row| p.kind[*row] == "RA") {
        if p.action[row] == "sent" {
            sent.insert(p.packet_id[row], p.time_ns[row]);
        } else if p.action[row] == "received" && p.node[row] == mn {
            slowest = slowest.max(p.time_ns[row] - sent[&p.packet_id[row]]);
        }
    }
    Duration::from_nanos(slowest)
}

/// A host with two radios that is in turn at home, in two other networks, and at home again by the clock: by its second radio, since
/// the first is in the network that it leaves.
const HOME_AGAIN: &str = r#"
name = "home again"
duration = "60 s"
host = [{ name = "cn" }, { name = "mn", radios = 2 }]
router = [{ name = "r" }, { name = "home" }, { name = "a" }, { name = "b" }]

[mobile]
host = "mn"
pattern = "still"
from = ["0 m", "0 m"]
speed = "0 m/s"

[mip6.mobile_node]
handoff = "on-link-loss"

[[link]]
between = ["cn", "r"]
rate = "100 Mbit/s"
delay = "5 ms"

[[link]]
between = ["r", "home"]
rate = "100 Mbit/s"
delay = "5 ms"

[[link]]
between = ["r", "a"]
rate = "100 Mbit/s"
delay = "5 ms"

[[link]]
between = ["r", "b"]
rate = "100 Mbit/s"
delay = "5 ms"

[[cell]]
name = "home"
router = "home"
technology = "lan"
present = ["0 s..15 s", "40 s.."]

[[cell]]
name = "a"
router = "a"
technology = "lan"
present = "10 s..30 s"

[[cell]]
name = "b"
router = "b"
technology = "lan"
present = "25 s..45 s"

[[application]]
kind = "constant-rate"
transport = "udp"
from = "cn"
to = "mn"
rate = "400 kbit/s"
message = "500 B"
start = "5 s"
"#;

#[test]
fn a_mobile_node_comes_home_by_its_other_radio() {
    // a server has another address for it, so that it has to form its home address at the beginning
    for (scheme, method, formed) in [
        ("mip6", "fixed", 0),
        ("mip6", "slaac", 0),
        ("mip6-ro", "slaac", 0),
        ("mip6-ro", "dhcpv6", 1),
    ] {
        let settings = [("scheme", scheme), ("address.method", method)];
        let (m, trace) = traced(HOME_AGAIN, &settings);
        let ended = m.handoffs.iter().filter(|h| h.handoff_delay_s.is_some()).count();
        assert_eq!(ended, 3, "{scheme}, {method}: {:?}", m.handoffs);
        // without duplicate address detection, and told to the link when the home agent has let it go
        assert_eq!(events(&trace, "assign-address"), 1, "{scheme}, {method}");
        assert_eq!(events(&trace, "announce-address"), 1, "{scheme}, {method}");
        assert_eq!(events(&trace, "form-address"), formed, "{scheme}, {method}");
        // a hundred messages a second, from the last handoff, at 45 s, on
        let received = &m.flows[0].received_bytes_by_second;
        assert_eq!(received[47..59], [50_000; 12], "{scheme}, {method}: {received:?}");
        let exact = metrics(HOME_AGAIN, &[&settings[..], &[("wire", "exact")]].concat(), 1);
        assert_eq!(m, exact, "{scheme}, {method}: typed and exact wire differ");
    }
}

#[test]
fn data_that_takes_the_direct_route_instead_of_the_tunnel_is_no_handover() {
    let text = scenario_text("people/call.toml");
    let moves = |scheme: &str| {
        let m = metrics(&text, &[("scheme", scheme), ("duration", "60 s")], 1);
        for h in &m.handovers {
            assert_eq!(h.host, "phone", "{scheme}: {h:?}");
            assert_ne!(h.from, h.to, "{scheme}: {h:?}");
        }
        let of_flow = |flow: u64| m.handovers.iter().filter(|h| h.flow == Some(flow)).count();
        [of_flow(m.flows[0].id), of_flow(m.flows[1].id)]
    };
    assert_eq!(moves("mip6"), [2, 2]);
    // after each of them data is tunnelled by the home agent until the correspondent has a binding
    assert_eq!(moves("mip6-ro"), [2, 2]);
}
