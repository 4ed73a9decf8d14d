//! Several hosts that move, each on its own way.

use crate::common::{all_scenarios, metrics};
use segue_sim::{RunOptions, Scenario, run};

/// The SIGMA scenario with a second mobile host that begins at the other end and downloads as well.
pub fn two_mobiles() -> String {
    let (_, text) = all_scenarios()
        .into_iter()
        .find(|(p, _)| p.ends_with("sigma.toml"))
        .expect("sigma.toml");
    let second = r#"[[mobile]]
host = "other"
from = ["70 m", "0 m"]
to = ["0 m", "0 m"]
speed = "5 m/s"

[l2]"#;
    let application = r#"[[application]]
kind = "bulk"
from = "cn"
to = "other"

[[application]]"#;
    text.replacen("[mobile]", "[[mobile]]", 1)
        .replacen("[l2]", second, 1)
        .replacen(
            "[[router]]",
            "[[host]]\nname = \"other\"\nradios = 2\n\n[[router]]",
            1,
        )
        .replacen("[[application]]", application, 1)
}

#[test]
fn two_hosts_cross_in_opposite_directions_and_both_hand_over() {
    let text = two_mobiles();
    let settings = [("duration", "60 s"), ("l2.latency", "100 ms")];
    let overrides: Vec<_> = settings
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let scenario = Scenario::from_toml(&text, "two", &overrides).unwrap();
    let options = RunOptions {
        trace: true,
        ..RunOptions::default()
    };
    let output = run(&scenario, options).unwrap();
    let trace = output.trace.unwrap();
    for name in ["mh", "other"] {
        let node = trace.nodes.iter().position(|n| n == name).unwrap() as u16;
        let events = |wanted: &str| {
            let rows = trace.signalling.node.iter().zip(&trace.signalling.event);
            rows.filter(|(n, e)| **n == node && *e == wanted).count()
        };
        assert!(events("add-acknowledged") >= 3, "{name} handed over too seldom");
        assert!(
            events("enters") >= 4 && events("leaves") >= 3,
            "{name} did not move"
        );
        let last = trace.positions.node.iter().rposition(|n| *n == node);
        assert!(last.is_some(), "{name} has no positions");
    }
    let typed = metrics(&text, &settings, 1);
    let exact = metrics(&text, &[settings[0], settings[1], ("wire", "exact")], 1);
    assert_eq!(typed, exact);
    assert_eq!(typed.packets_lost_to_handover, 0);
}

const ZIGZAG: &str = include_str!("../../../scenarios/zigzag.toml");

/// A further correspondent of that scenario's host, to which it sends.
fn other(delay: &str) -> String {
    format!(
        r#"
[[host]]
name = "other"

[[link]]
between = ["other", "r"]
rate = "1 Mbit/s"
delay = "{delay}"

[[application]]
kind = "bulk"
from = "mh"
to = "other"
start = "5 s"
"#
    )
}

#[test]
fn every_association_of_a_host_moves_with_it() {
    let text = format!("{ZIGZAG}{}", other("1 ms"));
    let both = metrics(&text, &[("duration", "60 s")], 1);
    assert_eq!(both.warnings, []);
    for flow in 0..2u64 {
        let own: Vec<_> = both.handovers.iter().filter(|h| h.flow == Some(flow)).collect();
        assert_eq!(own.len(), 5, "{own:?}");
        assert!(
            own.iter().all(|h| h.interruption_s.is_some_and(|s| s < 0.05)),
            "{own:?}"
        );
        assert!(both.flows[flow as usize].end.longest_gap_s < 0.05);
    }
}

#[test]
fn a_handover_of_a_flow_is_signalled_by_its_own_association() {
    let text = format!("{ZIGZAG}{}", other("300 ms"));
    let both = metrics(&text, &[("duration", "60 s")], 1);
    // a round trip to each correspondent, and two where the address is new
    for (flow, round_trip) in [(0, 0.022), (1, 0.602)] {
        let own: Vec<_> = both.handovers.iter().filter(|h| h.flow == Some(flow)).collect();
        assert_eq!(own.len(), 5, "{own:?}");
        for h in own {
            let delay = h.handoff_delay_s.expect("acknowledged");
            assert!((0.95 * round_trip..3.0 * round_trip).contains(&delay), "{h:?}");
            let (begin, end) = (h.begin_s.unwrap(), h.end_s.unwrap());
            assert!(end - begin >= delay - 1e-6 && begin <= h.time, "{h:?}");
        }
    }
    assert!(
        both.handovers.iter().all(|h| h.flow.is_some()),
        "one row of each move is enough"
    );
}
