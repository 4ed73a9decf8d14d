//! What is refused, and in which words.

use super::Scenario;

const SIGMA: &str = include_str!("../../../../scenarios/papers/sigma.toml");

fn with(overrides: &[(&str, &str)]) -> Result<Scenario, String> {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    Scenario::from_toml(SIGMA, "sigma.toml", &overrides).map_err(line)
}

/// What is said of a key; which override is at fault is the matter of `messages`.
pub(super) fn line(e: super::ScenarioError) -> String {
    match e.source.starts_with("--set ") {
        true => format!("--set: {}: {}", e.key, e.problem),
        false => e.to_string(),
    }
}

/// The one line with which a changed file is refused.
fn refusal(from: &str, to: &str) -> String {
    assert!(SIGMA.contains(from), "the scenario has no `{from}`");
    let text = SIGMA.replacen(from, to, 1);
    let line = Scenario::from_toml(&text, "sigma.toml", &[])
        .expect_err("must be refused")
        .to_string();
    assert!(!line.contains('\n'), "more than one line: {line}");
    assert!(line.starts_with("sigma.toml: "), "does not name its file: {line}");
    line
}

#[test]
fn the_paper_scenario_is_read_and_written_back_unchanged() {
    let scenario = with(&[]).unwrap();
    let again = Scenario::from_toml(&scenario.to_toml(), "again", &[]).unwrap();
    assert_eq!(scenario, again);
}

#[test]
fn overrides_take_values_with_and_without_quotes() {
    let a = with(&[
        ("mobile.speed", "7.5 m/s"),
        ("l2.latency", "\"150 ms\""),
        ("seed", "9"),
    ])
    .unwrap();
    assert_eq!(a.file().mobile.first().unwrap().speed.metres_per_second(), 7.5);
    assert_eq!(a.file().seed, 9);
    let b = with(&[
        ("handover.policy", "first-ready"),
        ("link.0.rate", "5 Mbit/s"),
        ("wire", "exact"),
    ])
    .unwrap();
    assert_eq!(b.file().link[0].rate.bits_per_second(), 5_000_000);
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_one() {
    assert_eq!(
        refusal("speed = \"5 m/s\"", "sped = \"5 m/s\""),
        "sigma.toml: mobile.sped: unknown key: did you mean `speed`?"
    );
    let line = with(&[("l2.latancy", "1 s")]).unwrap_err();
    assert_eq!(line, "--set: l2.latancy: unknown key: did you mean `latency`?");
    let line = with(&[("handover.policy", "first-redy")]).unwrap_err();
    assert!(
        line.starts_with("--set: handover.policy: `first-redy`: expected one of"),
        "{line}"
    );
    assert!(line.ends_with("did you mean `first-ready`?)"), "{line}");
}

#[test]
fn a_bare_number_is_refused_with_the_unit_that_is_missing() {
    let line = refusal("speed = \"5 m/s\"", "speed = 5");
    assert!(line.starts_with("sigma.toml: mobile.speed: "), "{line}");
    assert!(line.contains("unit") && line.contains("m/s"), "{line}");
    let line = with(&[("l2.latency", "200")]).unwrap_err();
    assert!(
        line.starts_with("--set: l2.latency: ") && line.contains("ms"),
        "{line}"
    );
}

#[test]
fn negative_and_zero_quantities_are_refused() {
    assert!(refusal("rate = \"2 Mbit/s\"", "rate = \"-2 Mbit/s\"").contains("link[0].rate"));
    assert!(refusal("rate = \"2 Mbit/s\"", "rate = \"0 bit/s\"").contains("expected more than 0 bit/s"));
    assert!(refusal("speed = \"5 m/s\"", "speed = \"0 m/s\"").contains("mobile.speed"));
    assert!(refusal("radius = \"40 m\"", "radius = \"0 m\"").contains("cell[0].radius"));
    assert!(with(&[("duration", "0 s")]).unwrap_err().contains("duration"));
}

#[test]
fn impossible_geometry_is_refused() {
    let within = refusal("position = [\"70 m\", \"0 m\"]", "position = [\"0 m\", \"0 m\"]");
    assert!(
        within.contains("cell[1].position") && within.contains("within each other"),
        "{within}"
    );
    let away = refusal("from = [\"0 m\", \"0 m\"]", "from = [\"500 m\", \"0 m\"]");
    assert!(
        away.contains("mobile.from") && away.contains("out of reach"),
        "{away}"
    );
    let nowhere = refusal("to = [\"70 m\", \"0 m\"]", "to = [\"0 m\", \"0 m\"]");
    assert!(nowhere.contains("mobile.to"), "{nowhere}");
}

#[test]
fn a_host_without_address_is_refused() {
    let line = refusal("radios = 2", "");
    assert!(line.contains("`mh` has no address"), "{line}");
    let line = refusal("between = [\"cn\", \"r\"]", "between = [\"ar1\", \"r\"]");
    assert!(line.contains("`cn` has no address"), "{line}");
}

#[test]
fn names_must_exist_and_be_unique() {
    assert!(refusal("router = \"ar2\"", "router = \"ar9\"").contains("expected the name of a router"));
    assert!(refusal("name = \"ar2\"", "name = \"ar1\"").contains("expected a name of its own"));
    assert!(refusal("from = \"cn\"", "from = \"nobody\"").contains("expected the name of a host"));
}

#[test]
fn what_is_not_toml_is_refused_with_its_line() {
    let line = Scenario::from_toml("name = \"x\"\nduration == 5", "x.toml", &[])
        .unwrap_err()
        .to_string();
    assert!(line.starts_with("x.toml: line 2 is not TOML: "), "{line}");
    let line = Scenario::from_toml("\u{0}\u{1}", "x.toml", &[])
        .unwrap_err()
        .to_string();
    assert!(line.starts_with("x.toml: line 1 is not TOML: "), "{line}");
}

#[test]
fn a_missing_key_is_named() {
    assert_eq!(
        refusal("duration = \"500 s\"", ""),
        "sigma.toml: expected the key `duration` too"
    );
}

#[test]
fn overrides_of_what_is_not_there_are_refused() {
    assert!(
        with(&[("link.9.rate", "1 Mbit/s")])
            .unwrap_err()
            .contains("expected a number from 0 to 2, because `link` is a list of 3")
    );
    assert!(
        with(&[("duration.x", "1")])
            .unwrap_err()
            .contains("no keys of its own")
    );
    assert!(with(&[("a..b", "1")]).unwrap_err().contains("dotted key"));
    assert!(
        with(&[("nonsense", "1")])
            .unwrap_err()
            .starts_with("--set: nonsense: unknown key")
    );
}

#[test]
fn lists_are_no_tables_and_tables_no_lists() {
    let line = with(&[("l2", "[\"300 ms\"]")]).unwrap_err();
    assert_eq!(line, "--set: l2: expected a table: [l2]");
    let line = with(&[("application.0", "[\"bulk\", \"cn\", \"mh\"]")]).unwrap_err();
    assert!(
        line.contains("expected a list of tables: [[application]]"),
        "{line}"
    );
    assert!(refusal("[l2]", "[[l2]]").contains("expected a table: [l2]"));
}

#[test]
fn the_override_that_is_wrong_is_named() {
    assert!(
        with(&[("mobile.host", "nobody")])
            .unwrap_err()
            .starts_with("--set: mobile.host: `nobody`")
    );
    assert!(
        with(&[("handover.fraction", "2")])
            .unwrap_err()
            .starts_with("--set: handover.fraction: ")
    );
    assert!(
        with(&[("l2.beacon_size", "100 kB")])
            .unwrap_err()
            .starts_with("--set: l2.beacon_size: ")
    );
    assert!(
        with(&[("radio.cw_max", "4294967295")])
            .unwrap_err()
            .starts_with("--set: radio.cw_max: ")
    );
    assert!(with(&[("cell[0].radius", "10 m")]).is_ok());
}

#[test]
fn names_that_could_leave_a_folder_are_refused() {
    for name in ["../../evil", "/tmp/x", "a/b", ".", "..", "a\nb", ""] {
        let line = with(&[("host.0.name", name)]).unwrap_err();
        assert!(line.starts_with("--set: host[0].name: "), "{name}: {line}");
        assert!(!line.contains('\n'), "{line}");
    }
}

#[test]
fn what_cannot_work_is_refused() {
    assert!(
        with(&[("l2.beacon_period", "1024 us")])
            .unwrap_err()
            .contains("takes")
    );
    assert!(with(&[("radio.queue", "0")]).unwrap_err().contains("at least 1"));
    assert!(
        with(&[("link.0.queue", "0 packets")])
            .unwrap_err()
            .contains("room for a packet")
    );
    assert!(
        with(&[("mobile.to", "[\"1e300 m\", \"0 m\"]")])
            .unwrap_err()
            .contains("10000 km")
    );
    let apart = refusal("between = [\"r\", \"ar2\"]", "between = [\"r\", \"ar1\"]");
    assert!(apart.contains("no way from `ar2`"), "{apart}");
}

#[test]
fn applications_that_cannot_share_a_port_are_refused() {
    let second = "[[application]]\nkind = \"bulk\"\nfrom = \"mh\"\nto = \"cn\"\n\n[[application]]\n";
    let line = refusal("[[application]]\n", second);
    assert!(
        line.contains("application[1]") && line.contains("host `cn`"),
        "{line}"
    );
    assert!(
        with(&[("application.0.rate", "1 Mbit/s")])
            .unwrap_err()
            .contains("no effect")
    );
    let fast = [
        ("application.0.kind", "constant-rate"),
        ("application.0.rate", "1 Gbit/s"),
        ("application.0.message", "1 B"),
    ];
    assert!(with(&fast).unwrap_err().contains("messages per second"));
}

#[test]
fn messages_stay_on_one_short_line() {
    let long = "x".repeat(100_000);
    assert!(with(&[(&long, "1")]).unwrap_err().len() < 2000);
    assert!(!with(&[("name", "a\u{1b}[31m")]).unwrap_err().contains('\u{1b}'));
}

const CASES: &str = r#"
[cases.near]

[cases.far]
seed = 8
link.backbone.delay = "100 ms"
link.1.rate = "5 Mbit/s"
cell."cell 2".radius = "45 m"

[[host]]
name = "cn"
"#;

/// The SIGMA scenario with two cases and a named link.
fn in_case(choice: &str, overrides: &[(&str, &str)]) -> Result<Scenario, String> {
    let text = SIGMA.replacen("[[host]]\nname = \"cn\"\n", CASES, 1).replacen(
        "between = [\"cn\", \"r\"]",
        "name = \"backbone\"\nbetween = [\"cn\", \"r\"]",
        1,
    );
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    Scenario::from_toml(&format!("{choice}\n{text}"), "cases.toml", &overrides).map_err(line)
}

#[test]
fn a_case_sets_what_it_names_and_other_overrides_come_after_it() {
    let delay = |s: &Scenario| s.file().link[0].delay.as_secs_f64();
    let near = in_case("case = \"near\"", &[]).unwrap();
    assert_eq!((delay(&near), near.file().seed), (0.002, 1));
    let far = in_case("case = \"near\"", &[("case", "far"), ("seed", "9")]).unwrap();
    assert_eq!((delay(&far), far.file().seed), (0.1, 9));
    assert_eq!(far.file().link[1].rate.bits_per_second(), 5_000_000);
    assert_eq!(far.file().cell[1].radius.metres(), 45.0);
    assert_eq!(far.file().case.as_deref(), Some("far"));
    // what was run can be run again
    assert_eq!(Scenario::from_toml(&far.to_toml(), "again", &[]).unwrap(), far);
    let by_name = in_case("", &[("link.backbone.delay", "7 ms")]).unwrap();
    assert_eq!(delay(&by_name), 0.007);
}

#[test]
fn a_case_that_is_not_there_is_refused_in_one_line() {
    let refused = |choice, overrides| in_case(choice, overrides).unwrap_err();
    assert_eq!(
        refused("case = \"lan\"", &[]),
        "cases.toml: case: `lan`: expected one of far, near"
    );
    assert_eq!(
        refused("", &[("case", "wan")]),
        "--set: case: `wan`: expected one of far, near"
    );
    assert_eq!(
        with(&[("case", "wan")]).unwrap_err(),
        "--set: case: the scenario has no [cases.NAME]"
    );
    let line = refused("", &[("link.nowhere.delay", "1 ms")]);
    assert!(line.contains("or one of backbone"), "{line}");
}

#[test]
fn several_hosts_may_move() {
    let second = r#"[[mobile]]
host = "other"
from = ["70 m", "0 m"]
to = ["0 m", "0 m"]
speed = "5 m/s"

[l2]"#;
    let text = SIGMA
        .replacen("[mobile]", "[[mobile]]", 1)
        .replacen("[l2]", second, 1)
        .replacen(
            "[[router]]",
            "[[host]]\nname = \"other\"\nradios = 1\n\n[[router]]",
            1,
        );
    let scenario = Scenario::from_toml(&text, "two.toml", &[]).unwrap();
    assert_eq!(scenario.file().mobile.len(), 2);
    assert_eq!(
        Scenario::from_toml(&scenario.to_toml(), "again", &[]).unwrap(),
        scenario
    );
    let wrong = text.replacen("from = [\"70 m\"", "from = [\"700 m\"", 1);
    let line = Scenario::from_toml(&wrong, "two.toml", &[])
        .unwrap_err()
        .to_string();
    assert!(
        line.starts_with("two.toml: mobile[1].from: out of reach"),
        "{line}"
    );
    let twice = text.replacen("host = \"other\"", "host = \"mh\"", 1);
    let line = Scenario::from_toml(&twice, "two.toml", &[])
        .unwrap_err()
        .to_string();
    assert!(
        line.starts_with("two.toml: mobile[1].host: `mh` moves already"),
        "{line}"
    );
    let sped = text.replacen("speed = \"5 m/s\"\n\n[l2]", "sped = \"5 m/s\"\n\n[l2]", 1);
    let line = Scenario::from_toml(&sped, "two.toml", &[])
        .unwrap_err()
        .to_string();
    assert!(line.contains("mobile[1].sped: unknown key"), "{line}");
}

const LOCATION: &str = include_str!("../../../../scenarios/location.toml");

#[test]
fn a_host_that_looks_up_is_no_location_manager() {
    let set = [("location.server".to_owned(), "caller".to_owned())];
    let line = Scenario::from_toml(LOCATION, "location.toml", &set)
        .expect_err("must be refused")
        .to_string();
    assert_eq!(
        line,
        "--set location.server=caller: `caller` looks names up itself: expected a host without an application that is `by_name`"
    );
}

#[test]
fn what_happens_again_and_again_takes_its_time() {
    for (key, value, expected) in [
        (
            "address.ra_interval_min",
            "1 ns",
            "30 ms to 3600 s (RFC 6275 section 7.5)",
        ),
        (
            "address.ra_interval_min",
            "0 s",
            "30 ms to 3600 s (RFC 6275 section 7.5)",
        ),
        (
            "address.ra_interval_max",
            "69 ms",
            "70 ms to 3600 s (RFC 6275 section 7.5)",
        ),
        ("address.ra_interval_min", "601 s", "at most ra_interval_max"),
        ("address.dad_transmits", "101", "at most 100"),
        ("sctp.rto_min", "1 ns", "1 ms to 3600 s"),
        ("sctp.rto_initial", "999 us", "1 ms to 3600 s"),
        ("sctp.rto_max", "0 s", "1 ms to 3600 s"),
        ("radio.attempts", "4294967295", "1 to 255 (IEEE 802.11)"),
    ] {
        let line = with(&[(key, value)]).expect_err(key);
        assert!(line.starts_with(&format!("--set: {key}: expected ")), "{line}");
        assert!(line.contains(expected), "{line}");
    }
    let beacons_of_nothing = [
        ("radio.preamble", "0 s"),
        ("radio.overhead", "0 B"),
        ("l2.beacon_size", "0 B"),
        ("l2.beacon_period", "1 ns"),
    ];
    assert_eq!(
        with(&beacons_of_nothing).unwrap_err(),
        "--set: l2.beacon_period: expected at least 1.024 ms (the time unit of IEEE 802.11)"
    );
    let slaac = [("address.method", "slaac"), ("address.retrans_timer", "1 ns")];
    assert!(
        with(&slaac)
            .unwrap_err()
            .contains("address.retrans_timer: expected 1 ms to 3600 s")
    );
    let retry = [("location.retry".to_owned(), "1 ns".to_owned())];
    let line = Scenario::from_toml(LOCATION, "x", &retry)
        .expect_err("refused")
        .to_string();
    assert_eq!(line, "--set location.retry=1 ns: expected 1 ms to 3600 s");
}

/// With everything as short as it may be, the paper's scenario still comes to its end.
#[test]
fn the_shortest_of_everything_is_simulated() {
    let scenario = with(&[
        ("duration", "2 s"),
        ("address.method", "slaac"),
        ("address.ra_interval_min", "30 ms"),
        ("address.ra_interval_max", "70 ms"),
        ("address.retrans_timer", "1 ms"),
        ("address.dad_transmits", "100"),
        ("l2.latency", "0 s"),
        ("l2.beacon_period", "1024 us"),
        ("l2.beacon_size", "0 B"),
        ("radio.preamble", "0 s"),
        ("radio.overhead", "0 B"),
        ("sctp.rto_initial", "1 ms"),
        ("sctp.rto_min", "1 ms"),
        ("sctp.rto_max", "1 ms"),
        ("sctp.hb_interval", "1 ns"),
        ("sctp.sack_delay", "0 s"),
        ("link.0.delay", "0 s"),
        ("mobile.speed", "100000000 m/s"),
    ])
    .unwrap();
    let run = crate::run(&scenario, crate::RunOptions::default()).unwrap();
    assert!(run.metrics.events > 0);
}

#[test]
fn lifetimes_are_whole_seconds_that_their_field_holds() {
    for value in ["1500 ms", "0 s", "999 ms", "4294967295 s"] {
        let line = with(&[("address.valid_lifetime", value)]).expect_err(value);
        assert!(
            line.starts_with("--set: address.valid_lifetime: expected whole seconds, 1 s to 4294967294 s"),
            "{line}"
        );
    }
    assert!(with(&[("address.valid_lifetime", "2 s")]).is_ok());
}

#[test]
fn a_value_of_another_kind_is_told_what_is_there_to_choose_from() {
    assert_eq!(
        with(&[("handover.delete", "5")]).unwrap_err(),
        "--set: handover.delete: `5`: expected one of on-link-down, after-switch, after-delay, deactivate"
    );
    assert_eq!(
        with(&[("sctp.pf_max_retrans", "4294967296")]).unwrap_err(),
        "--set: sctp.pf_max_retrans: `4294967296`: expected a whole number from 0 to 4294967295"
    );
    assert_eq!(
        with(&[("sctp.pf_max_retrans", "-1")]).unwrap_err(),
        "--set: sctp.pf_max_retrans: `-1`: expected a whole number from 0 to 4294967295"
    );
    assert_eq!(
        with(&[("seed", "1.5")]).unwrap_err(),
        "--set: seed: `1.5`: expected a whole number, not negative"
    );
}

#[test]
fn a_host_without_an_address_that_stays_cannot_be_connected_to() {
    let text = include_str!("../../../../scenarios/handoff/both-move.toml");
    let none = [("scheme".to_owned(), "none".to_owned())];
    let line = Scenario::from_toml(text, "both.toml", &none)
        .unwrap_err()
        .to_string();
    assert!(
        line.contains("application[0]") && line.contains("no address that stays"),
        "{line}"
    );
    let home = [("mobile.a.home".to_owned(), "nowhere".to_owned())];
    let line = Scenario::from_toml(text, "both.toml", &home)
        .unwrap_err()
        .to_string();
    assert!(
        line.starts_with("--set mobile.a.home=nowhere: mobile[0].home: `nowhere`"),
        "{line}"
    );
    let nonce = [("ilnp.lu_attempts".to_owned(), "0".to_owned())];
    let line = Scenario::from_toml(text, "both.toml", &nonce)
        .unwrap_err()
        .to_string();
    assert!(
        line.contains("ilnp.lu_attempts=0: lu_attempts: expected at least 1"),
        "{line}"
    );
}

/// What is refused of one of the scenarios of the papers.
fn refused(text: &str, file: &str, overrides: &[(&str, &str)]) -> String {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let refused = Scenario::from_toml(text, file, &overrides).expect_err("must be refused");
    assert!(
        !refused.to_string().contains('\n'),
        "more than one line: {refused}"
    );
    line(refused)
}

const VERTICAL: &str = include_str!("../../../../scenarios/papers/vertical.toml");
const CMT: &str = include_str!("../../../../scenarios/papers/cmt.toml");

#[test]
fn what_ends_before_it_begins_is_told_so() {
    assert_eq!(
        with(&[("l2.latency", "8 s..7 s")]).unwrap_err(),
        "--set: l2.latency: `8 s..7 s`: expected a range with the shorter duration first, such as \"40 ms..350 ms\""
    );
    assert_eq!(
        refused(VERTICAL, "vertical.toml", &[("cell.0.present", "20 s..10 s")]),
        "--set: cell[0].present: `20 s..10 s`: expected a window that ends after it begins, such as \"20 s..40 s\" or \"40 s..\""
    );
    // however the file puts it
    let text = SIGMA.replacen("[l2]\n", "[l2]\nlatency = \"8 s..7 s\"\n", 1);
    let text = text.replacen("latency = \"200 ms\"", "", 1);
    let line = refused(&text, "sigma.toml", &[]);
    assert!(line.starts_with("sigma.toml: "), "{line}");
}

#[test]
fn a_name_where_a_list_of_names_belongs_is_told_how_to_write_it() {
    assert_eq!(
        refused(VERTICAL, "vertical.toml", &[("host.mn.technologies", "gprs")]),
        "--set: host[1].technologies: `\"gprs\"`: expected a list such as [\"lan\"], each one of lan, wlan-802.11b, \
         wlan-802.11g, wlan-802.11n, gprs, umts, lte, 5g, leo"
    );
    assert_eq!(
        with(&[("link.0.outages", "often")]).unwrap_err(),
        "--set: link[0].outages: `\"often\"`: expected a list, in brackets"
    );
}

#[test]
fn an_application_that_would_never_start_is_refused() {
    assert_eq!(
        with(&[("application.0.start", "500 s")]).unwrap_err(),
        "--set: application[0].start: expected a time before `duration`, 500 s: nothing is sent after that"
    );
    assert!(with(&[("application.0.start", "499 s")]).is_ok());
}

#[test]
fn tcp_over_cmt_is_for_the_lab_alone() {
    let set = [("scheme".to_owned(), "cmt".to_owned())];
    let scenario = Scenario::from_toml(VERTICAL, "vertical.toml", &set).unwrap();
    let error = crate::run(&scenario, crate::output::RunOptions::default()).unwrap_err();
    assert!(
        error.to_string().contains("carries TCP in `segue lab run` alone"),
        "{error}"
    );
}

#[test]
fn a_scheme_for_which_there_is_nothing_to_do_is_refused() {
    for scheme in ["msctp-best", "failover"] {
        let line = refused(VERTICAL, "vertical.toml", &[("scheme", scheme)]);
        assert!(
            line.starts_with("--set: scheme: changes the addresses of SCTP associations: expected"),
            "{line}"
        );
    }
    for scheme in ["mip6", "mip6-ro", "ilnp-hard", "ilnp-soft", "ilnp-multihomed"] {
        let line = refused(CMT, "cmt.toml", &[("scheme", scheme)]);
        assert!(
            line.starts_with("--set: scheme: moves hosts from [[cell]] to [[cell]]: expected"),
            "{line}"
        );
    }
}

#[test]
fn of_two_timers_that_contradict_each_other_the_one_that_was_set_is_named() {
    for section in ["sctp", "tcp"] {
        for (set, value, expected) in [
            ("rto_min", "1000 s", "expected at most rto_max, "),
            ("rto_max", "2 ms", "expected at least rto_min, "),
        ] {
            let key = format!("{section}.{set}");
            let line = with(&[(key.as_str(), value)]).unwrap_err();
            assert!(line.starts_with(&format!("--set: {key}: {expected}")), "{line}");
        }
    }
}

#[test]
fn two_hosts_have_one_association() {
    let line = refusal(
        "[[application]]",
        "[[application]]\nkind = \"bulk\"\nfrom = \"cn\"\nto = \"mh\"\nstart = \"0 s\"\n[[application]]",
    );
    assert!(
        line.contains("application[1]: ")
            && line.contains("SCTP association by application[0], which does not end"),
        "{line}"
    );
}
