//! Satellites that pass: what hosts make of handovers that are known ahead.

use crate::common::{metrics, scenario_text};
use segue_proto::{Duration, Instant};
use segue_sim::constellation::{LIGHT_M_PER_S, slant_range_m};
use segue_sim::{Metrics, RunOptions, Scenario, run};

/// Time between two messages of the stream.
const PACE_S: f64 = 0.01;

fn satellites(case: &str, more: &[(&str, &str)]) -> Metrics {
    // what is set last counts
    let settings = [&[("case", case), ("duration", "180 s")], more].concat();
    metrics(&scenario_text("satellites.toml"), &settings, 1)
}

/// The longest time without a message around each handover of the stream.
fn interruptions(m: &Metrics) -> Vec<f64> {
    let with_data = m.handovers.iter().filter(|h| h.flow.is_some());
    let of_handover = with_data.map(|h| {
        assert!(!h.censored, "{h:?}");
        h.interruption_s.expect("the stream went on")
    });
    of_handover.collect()
}

/// By how much later a message can come than the pace has it, because the next satellite is farther away from terminal and gateway, or
/// waits for a frame.
fn latest_s() -> f64 {
    let [low, high] = [25.0_f64, 90.0].map(|degrees| slant_range_m(550e3, degrees.to_radians()));
    2.0 * (low - high) / LIGHT_M_PER_S + 0.00133
}

/// When within three minutes the best satellite is another than before.
fn changes() -> Vec<f64> {
    let set = [("duration".to_owned(), "180 s".to_owned())];
    let scenario = Scenario::from_toml(&scenario_text("satellites.toml"), "test", &set).unwrap();
    let plan = &scenario.file().mobile.first().unwrap().plan;
    plan[1..].iter().map(|entry| entry.from.as_secs_f64()).collect()
}

#[test]
fn the_plan_changes_satellites_in_the_rhythm_of_fifteen_seconds() {
    let changes = changes();
    assert!(changes.len() >= 5, "{changes:?}");
    assert!(changes.iter().all(|at| (at - 12.0) % 15.0 == 0.0), "{changes:?}");
}

#[test]
fn a_planned_handover_interrupts_no_longer_than_the_pace_of_the_packets() {
    let m = satellites("sigma-planned", &[]);
    let interruptions = interruptions(&m);
    assert_eq!(interruptions.len(), changes().len());
    let most = PACE_S + latest_s();
    assert!(interruptions.iter().all(|s| *s <= most), "{interruptions:?}");
    assert_eq!(m.flows[0].counts.lost_packets, 0);
    // the switch is before the slot, by the margin and the way there and back at most
    for (handover, slot) in m.handovers.iter().zip(changes()) {
        let early = slot - handover.time;
        assert!((0.0..0.1).contains(&early), "{early} s before {slot} s");
    }
}

#[test]
fn who_does_not_know_the_plan_finds_out_when_the_satellite_is_gone() {
    // a link is lost when three beacons have not come
    let m = satellites("sigma", &[]);
    let unplanned = interruptions(&m);
    assert_eq!(unplanned.len(), changes().len());
    assert!(unplanned.iter().all(|s| *s > 0.2), "{unplanned:?}");
    assert!(m.flows[0].counts.lost_packets > 10 * unplanned.len() as u64);
}

#[test]
fn an_address_that_is_known_ahead_shortens_whatever_handover() {
    // duplicate address detection takes a second, which is as long as the next satellite is there before its time
    for scheme in ["mip6", "mip6-ro", "ilnp-hard", "ilnp-soft"] {
        let settings = |told: bool| -> Vec<(&str, &str)> {
            let mut settings = vec![("duration", "100 s")];
            settings.extend(told.then_some(("constellation.told_ahead", "5 s")));
            settings
        };
        let sum = |told| -> f64 { interruptions(&satellites(scheme, &settings(told))).iter().sum() };
        let (untold, told) = (sum(false), sum(true));
        assert!(told < 0.8 * untold, "{scheme}: {told} s, {untold} s");
    }
}

#[test]
fn cmt_uses_two_satellites_and_goes_on_over_one_while_the_other_changes() {
    let m = satellites("cmt", &[("duration", "100 s")]);
    let gap = m.flows[0].end.longest_gap_s;
    assert!(gap < 1.0, "{gap}");
    let exact = satellites("cmt", &[("duration", "100 s"), ("wire", "exact")]);
    assert_eq!(m, exact);
}

#[test]
fn a_network_that_hides_its_satellites_hands_nothing_over_and_moves_the_delay() {
    let text = scenario_text("starlink.toml");
    let m = metrics(&text, &[], 1);
    assert_eq!((m.handovers.len(), m.handoffs.len()), (0, 0));
    assert_eq!(m.flows[0].counts.lost_packets, 0);
    let gap = m.flows[0].end.longest_gap_s;
    assert!(gap <= PACE_S + latest_s(), "{gap}");

    // from 550 km twice to 1123 km twice, beside the 6.3 ms of the preset; a second moves it by 50 us, another satellite by more
    let scenario = Scenario::from_toml(&text, "test", &[]).unwrap();
    let bearer = scenario.file().cell[0].bearer.as_ref().unwrap();
    let trace = bearer.down.trace.as_ref().unwrap().trace.as_ref().unwrap();
    let delays: Vec<f64> = (0..180)
        .map(|second| {
            let (delay, _) = trace.at(Instant::ZERO + Duration::from_secs(second));
            delay.unwrap().as_secs_f64()
        })
        .collect();
    let ways = delays.iter().map(|delay| (delay - 0.0063) * LIGHT_M_PER_S);
    assert!(
        ways.clone().all(|m| (1100e3..2.0 * 1123.5e3).contains(&m)),
        "{delays:?}"
    );
    let changes = changes();
    for (second, pair) in (1..).zip(delays.windows(2)) {
        let is_change = changes.contains(&f64::from(second));
        let moved = (pair[1] - pair[0]).abs();
        assert!(is_change || moved < 51e-6, "{second} s: {moved} s");
    }

    let lost = |loss: &str| {
        let settings = [
            ("constellation.reconfiguration", "200 ms"),
            ("constellation.reconfiguration_loss", loss),
        ];
        metrics(&text, &settings, 1).flows[0].counts.lost_packets
    };
    // twenty of a hundred messages a second, at each change
    let all = changes.len() as u64 * 20;
    assert!(lost("1").abs_diff(all) <= changes.len() as u64, "{}", lost("1"));
    assert!((all / 4..3 * all / 4).contains(&lost("0.5")), "{}", lost("0.5"));
}

#[test]
fn a_scenario_as_it_was_run_has_the_satellites_and_runs_as_before() {
    let settings = [
        ("case".to_owned(), "sigma-planned".to_owned()),
        ("duration".to_owned(), "60 s".to_owned()),
    ];
    let written = Scenario::from_toml(&scenario_text("satellites.toml"), "test", &settings).unwrap();
    let text = written.to_toml();
    assert!(!text.contains("[constellation]") && text.contains("sat-"));
    assert!(text.contains("told_ahead"));
    let again = Scenario::from_toml(&text, "again", &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(written.file(), again.file());
    let hash = |scenario| {
        run(scenario, RunOptions::default())
            .unwrap()
            .metrics
            .event_log_hash
    };
    assert_eq!(hash(&written), hash(&again));
}

/// A run that ends before the first change has a plan of one satellite, of which nobody is told.
#[test]
fn a_run_may_be_shorter_than_a_slot() {
    let m = satellites("sigma-planned", &[("duration", "10 s")]);
    assert_eq!((m.handovers.len(), m.flows[0].counts.lost_packets), (0, 0));
}

#[test]
fn a_constellation_that_cannot_be_is_refused_in_a_line() {
    let text = scenario_text("satellites.toml");
    let refused = |key: &str, value: &str| {
        let set = [(key.to_owned(), value.to_owned())];
        let line = Scenario::from_toml(&text, "test", &set).unwrap_err().to_string();
        assert!(!line.contains('\n'), "{line}");
        line
    };
    for (key, value, expected) in [
        ("planes", "0", "expected at least 1"),
        ("planes", "20000", "expected at most 20000 satellites"),
        ("altitude", "550 m", "expected 100 km to 36000 km"),
        ("phasing", "72", "expected less than `planes`"),
        ("min_elevation", "90 deg", "expected 0 deg"),
        ("user.lat", "95 deg", "expected a latitude"),
        ("user.lat", "85 deg", "no satellite serves"),
        ("slot", "10 ms", "expected at least 1 s"),
        (
            "slot",
            "48 min",
            "expected at most half a revolution, 2865 s at this altitude",
        ),
        ("first_slot", "20 s", "expected at most `slot`"),
        ("at_once", "0", "expected 1 to 8"),
        ("overlap", "16 s", "expected at most `slot`"),
        ("host", "nobody", "`nobody`: expected a host with [mobile]"),
        ("host", "ground", "`ground`: expected a host with [mobile]"),
        ("reconfiguration", "1 s", "is the network's"),
        ("addresses", "network", "hides satellites"),
        ("told_ahead", "16 s", "expected at most `first_slot`"),
        (
            "router",
            "nobody",
            "`nobody`: expected the name of a host or router",
        ),
        ("altitude", "high", "`high` is not a number with a unit"),
        ("height", "1 km", "unknown key: expected one of host, router"),
    ] {
        let line = refused(&format!("constellation.{key}"), value);
        let blamed = format!("--set constellation.{key}={value}: {expected}");
        assert!(line.starts_with(&blamed), "{line}");
    }
    let told = [("address.method", "dhcpv6"), ("constellation.told_ahead", "5 s")];
    let told = told.map(|(k, v)| (k.to_owned(), v.to_owned()));
    let line = Scenario::from_toml(&text, "test", &told).unwrap_err().to_string();
    assert!(line.contains("expected another method"), "{line}");
}

#[test]
fn a_plan_is_checked_like_any_list_of_times() {
    let own = scenario_text("coverage-gap.toml");
    let refused = |plan: &str, ahead: &str| {
        let set = [("mobile.plan", plan), ("mobile.told_ahead", ahead)];
        let set = set.map(|(k, v)| (k.to_owned(), v.to_owned()));
        Scenario::from_toml(&own, "test", &set).unwrap_err().to_string()
    };
    let two = r#"[{ from = "0 s", cell = "cell 1" }, { from = "9 s", cell = "cell 2" }]"#;
    for (plan, ahead, expected) in [
        (
            r#"[{ from = "0 s", cell = "cell 3" }]"#,
            "1 s",
            "mobile.plan[0].cell: `cell 3`: expected the name of a cell",
        ),
        (
            &two.replace("9 s", "0 s"),
            "1 s",
            "mobile.plan[1].from: expected a later time",
        ),
        (
            two,
            "10 s",
            "--set mobile.told_ahead=10 s: expected more than 0 s and at most 9 s",
        ),
        (
            r#"[{ from = "0 s", cell = "cell 1" }]"#,
            "1 s",
            "--set mobile.told_ahead=1 s: there is nothing to tell",
        ),
    ] {
        let line = refused(plan, ahead);
        assert!(line.contains(expected), "{line}");
    }
}
