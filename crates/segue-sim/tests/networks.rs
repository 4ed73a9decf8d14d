//! Access technologies, traces of links, ways from files, and handovers between technologies.

use crate::common::metrics;
use segue_sim::{RunOptions, Scenario, run};

const VERTICAL: &str = include_str!("../../../scenarios/papers/vertical.toml");
const SIGMA: &str = include_str!("../../../scenarios/papers/sigma.toml");
/// As if the scenario lay there.
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/scenario.toml");

fn read(text: &str, overrides: &[(&str, &str)]) -> Result<Scenario, String> {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    Scenario::from_toml(text, HERE, &overrides).map_err(|e| e.to_string())
}

fn refused(text: &str, overrides: &[(&str, &str)]) -> String {
    let line = read(text, overrides).expect_err("must be refused");
    assert!(!line.contains('\n'), "more than one line: {line}");
    line
}

/// A bulk transfer over one link.
fn link(keys: &str) -> String {
    format!(
        "name = \"link\"\nduration = \"30 s\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[link]]\nbetween = [\"a\", \
         \"b\"]\n{keys}\n[[application]]\nkind = \"bulk\"\ntransport = \"tcp\"\nfrom = \"a\"\nto = \"b\"\n"
    )
}

fn bytes_by_second(text: &str) -> Vec<u64> {
    let output = run(&read(text, &[]).unwrap(), RunOptions::default()).unwrap();
    output.metrics.flows[0].received_bytes_by_second.clone()
}

#[test]
fn a_technology_gives_a_link_what_is_not_set() {
    let gprs = read(&link("technology = \"gprs\""), &[]).unwrap();
    let own = &gprs.file().link[0];
    let up = own.up.as_ref().unwrap();
    assert_eq!(own.rate.bits_per_second(), 53_600);
    assert_eq!((up.rate.bits_per_second(), up.delay), (13_400, own.delay));
    let set = read(
        &link("technology = \"gprs\"\ndelay = \"1 ms\"\nup.rate = \"20 kbit/s\""),
        &[],
    )
    .unwrap();
    let own = &set.file().link[0];
    let up = own.up.as_ref().unwrap();
    assert_eq!(
        (own.delay.as_millis(), up.delay.as_millis()),
        (1, 1),
        "both directions"
    );
    assert_eq!(
        (own.rate.bits_per_second(), up.rate.bits_per_second()),
        (53_600, 20_000)
    );
    // as it is run, it is written, and read again
    assert_eq!(read(&set.to_toml(), &[]).unwrap(), set);
    for nothing in [
        "jitter = \"0 s\"",
        "set_up = \"0 s\"",
        "up.jitter = \"0 s\"",
        "up.set_up = \"0 s\"",
    ] {
        let set = read(&link(&format!("technology = \"gprs\"\n{nothing}")), &[]).unwrap();
        assert_eq!(read(&set.to_toml(), &[]).unwrap(), set, "{nothing}");
    }
    let slow = bytes_by_second(&link("technology = \"gprs\""));
    let rate = slow[20..30].iter().sum::<u64>() as f64 * 8.0 / 10.0;
    assert!((40_000.0..53_600.0).contains(&rate), "{rate} bit/s");
}

#[test]
fn what_a_technology_cannot_be_is_said() {
    assert!(refused(&link("technology = \"gprs2\""), &[]).contains("did you mean"));
    assert!(refused(&link("technology = \"wlan-802.11b\""), &[]).contains("expected it on a [[cell]]"));
    let set = |key, value| refused(VERTICAL, &[(key, value)]);
    assert!(set("cell.gprs.bearer.down.rate", "0 bit/s").contains("cell[2].bearer.down.rate"));
    assert!(set("cell.gprs.radio.rate", "1 Mbit/s").contains("expected no radio channel"));
    assert!(set("cell.wlan.radio.attempts", "0").contains("cell[1].radio.attempts"));
    assert!(set("cell.gprs.ra_interval_min", "5 s").contains("cell[2].ra_interval_min"));
    assert!(set("host.mn.technologies", "[\"lan\"]").contains("one for each of its radios: 3"));
    assert!(set("host.mn.technologies", "[\"5g\", \"5g\", \"5g\"]").contains("hears none"));
    assert!(set("cell.gprs.present", "[\"20 s..10 s\"]").contains("cell[2].present"));
    assert!(set("remedy.window_clamp.router", "nobody").contains("remedy.window_clamp.router"));
    assert!(set("remedy.rtt_margin", "-1").contains("remedy.rtt_margin"));
    let tunnelled = refused(VERTICAL, &[("scheme", "mip6"), ("remedy.careful_resume", "true")]);
    assert!(tunnelled.contains("mip6-ro"), "{tunnelled}");
}

#[test]
fn a_trace_is_what_the_link_carries() {
    // an opportunity every 20 ms: 600 kbit/s of packets of 1500 bytes
    let steady = bytes_by_second(&link(
        "rate = \"1 Gbit/s\"\ndelay = \"20 ms\"\ntrace = { file = \"constant.down\", format = \"mahimahi\" }",
    ));
    let rate = steady[10..30].iter().sum::<u64>() as f64 * 8.0 / 20.0;
    assert!((500_000.0..600_000.0).contains(&rate), "{rate} bit/s");
    let keys = "rate = \"1 Gbit/s\"\ndelay = \"1 ms\"\ntrace = { file = \"outage.csv\", format = \"csv\" }";
    let measured = bytes_by_second(&link(keys));
    assert_eq!(measured[11], 0, "an outage from 10 to 12 s");
    let before = measured[5..10].iter().sum::<u64>() * 8 / 5;
    let after = measured[20..30].iter().sum::<u64>() * 8 / 10;
    assert!((800_000..1_000_000).contains(&before), "{before} bit/s");
    assert!(after < 200_000 && after > 20_000, "{after} bit/s");
    // head-of-line service comes to the same
    let line = bytes_by_second(&link(&format!("{keys}\nservice = \"head-of-line\"")));
    assert_eq!(line, measured);
}

#[test]
fn files_that_are_wrong_are_refused_by_name_and_line() {
    let trace = |file: &str, format: &str| {
        let keys = format!(
            "rate = \"1 Mbit/s\"\ndelay = \"1 ms\"\ntrace = {{ file = \"{file}\", format = \"{format}\" }}"
        );
        refused(&link(&keys), &[])
    };
    assert!(trace("wrong.csv", "csv").starts_with("wrong.csv: line 3: time_s"));
    assert!(trace("outage.csv", "mahimahi").starts_with("outage.csv: line 1: "));
    assert!(trace("missing.csv", "csv").contains("link[0].trace.file: `missing.csv`: cannot be read"));
    let way = refused(
        SIGMA,
        &[(
            "mobile.mobility",
            "{ file = \"walk.movements\", format = \"bonnmotion\", node = \"7\" }",
        )],
    );
    assert!(way.starts_with("walk.movements: line 1: node 7"), "{way}");
}

#[test]
fn a_way_from_a_file_is_walked_like_one_that_was_written_out() {
    let written = [
        ("duration", "30 s"),
        ("mobile.pattern", "waypoints"),
        ("mobile.from", "[\"0 m\", \"0 m\"]"),
        ("mobile.points", "[[\"70 m\", \"0 m\"]]"),
        ("mobile.start", "2 s"),
        ("mobile.speed", "5 m/s"),
    ];
    let expected = metrics(SIGMA, &written, 1);
    assert_eq!(expected.handovers.len(), 1);
    for (file, format, node) in [
        ("walk.tcl", "setdest", "0"),
        ("walk.movements", "bonnmotion", "0"),
        ("walk.xml", "sumo-fcd", "mh"),
    ] {
        let section = format!("{{ file = \"{file}\", format = \"{format}\", node = \"{node}\" }}");
        let set = [("duration", "30 s"), ("mobile.mobility", section.as_str())];
        let output = run(&read(SIGMA, &set).unwrap(), RunOptions::default()).unwrap();
        assert_eq!(output.metrics.event_log_hash, expected.event_log_hash, "{format}");
    }
}

/// SIGMA's mobile host, three times over, each with a way from one file.
fn three_from(file: &str) -> String {
    let text = SIGMA
        .replacen("name = \"mh\"", "name = \"mh{i}\"\ncount = 3", 1)
        .replace("to = \"mh\"", "to = \"mh0\"");
    let (begin, end) = (text.find("[mobile]").unwrap(), text.find("[l2]").unwrap());
    let mobile = format!(
        "[[mobile]]\nhost = \"mh{{i}}\"\ncount = 3\nmobility = {{ file = \"{file}\", format = \"sumo-fcd\", node = \"flow.{{i}}\" }}\n\n"
    );
    format!("{}{mobile}{}", &text[..begin], &text[end..])
}

#[test]
fn a_population_takes_its_ways_from_one_file() {
    let scenario = read(&three_from("crowd.xml"), &[]).unwrap();
    let begins = |n: usize| {
        let mobile = scenario.file().mobile.iter().nth(n).unwrap();
        let points = &mobile.mobility.as_ref().unwrap().points;
        (mobile.from.map(|c| c.metres()), points.len())
    };
    assert_eq!(begins(0), ([0.0, 0.0], 2));
    assert_eq!(begins(1), ([70.0, 0.0], 2));
    // it is where it is first seen
    assert_eq!(begins(2), ([30.0, 10.0], 1));
    // numbers are names, too
    let lines = three_from("crowd.movements")
        .replace("sumo-fcd", "bonnmotion")
        .replace("flow.{i}", "{i}");
    let by_number = read(&lines, &[]).unwrap();
    assert_eq!(
        by_number.file().mobile.iter().map(|m| m.from).collect::<Vec<_>>(),
        scenario.file().mobile.iter().map(|m| m.from).collect::<Vec<_>>()
    );
    let error = refused(&three_from("walk.xml"), &[]);
    assert!(error.starts_with("walk.xml: line "), "{error}");
    assert!(error.ends_with("no vehicle or person `flow.0`"), "{error}");
    let error = refused(&three_from("missing.xml"), &[]);
    assert!(
        error.contains(": mobile[0].mobility.file: `missing.xml`: cannot be read"),
        "{error}"
    );
}

#[test]
fn typed_and_exact_wire_agree_on_handovers_between_technologies() {
    for (case, more) in [
        ("wlan-gprs", ("seed", "3")),
        ("wlan-gprs-wlan", ("seed", "3")),
        ("lan-gprs", ("remedy.window_clamp.router", "core")),
        ("gprs-wlan-gprs", ("remedy.careful_resume", "true")),
    ] {
        let settings = |wire| [("case", case), ("wire", wire), more];
        let typed = metrics(VERTICAL, &settings("typed"), 3);
        let exact = metrics(VERTICAL, &settings("exact"), 3);
        assert_eq!(typed.event_log_hash, exact.event_log_hash, "{case}");
        let parts = typed.handoffs.iter().rev().find_map(|h| h.parts).unwrap();
        assert!(
            parts.t_n_s.is_some() && parts.t_a_s.is_some(),
            "{case}: {parts:?}"
        );
        assert_eq!(parts.soft, case == "wlan-gprs-wlan");
    }
}

#[test]
fn a_soft_handover_loses_nothing_and_a_hard_one_a_window() {
    let soft = metrics(VERTICAL, &[("case", "wlan-gprs-wlan")], 1);
    assert_eq!(soft.flows[0].counts.lost_packets, 0);
    assert!(soft.flows[0].counts.spurious_retransmissions > 0);
    let hard = metrics(VERTICAL, &[("case", "wlan-gprs")], 1);
    assert!(hard.flows[0].counts.lost_packets > 20);
}

#[test]
fn a_clamped_window_keeps_the_queue_of_gprs_short() {
    let under_way = |more: &[(&str, &str)]| {
        let mut set = vec![("case", "gprs-wlan"), ("duration", "19.9 s")];
        set.extend_from_slice(more);
        metrics(VERTICAL, &set, 2).flows[0].counts.in_flight_packets
    };
    let router = ("remedy.window_clamp.router", "core");
    let (free, clamped) = (under_way(&[]), under_way(&[router]));
    let wide = under_way(&[router, ("remedy.window_clamp.size", "1 MB")]);
    assert!(
        free > 25 && clamped <= 12,
        "{free} packets under way, {clamped} clamped"
    );
    assert_eq!(wide, free, "a limit above every window changes nothing");
}
