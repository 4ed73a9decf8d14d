//! What is refused, and in which words.

use super::Scenario;

const SIGMA: &str = include_str!("../../../../scenarios/papers/sigma.toml");

fn with(overrides: &[(&str, &str)]) -> Result<Scenario, String> {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    Scenario::from_toml(SIGMA, "sigma.toml", &overrides).map_err(|e| e.to_string())
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
    assert_eq!(a.file().mobile.as_ref().unwrap().speed.metres_per_second(), 7.5);
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
    assert!(refusal("rate = \"2 Mbit/s\"", "rate = \"0 bit/s\"").contains("expected a rate above 0"));
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
        "sigma.toml: missing field `duration`"
    );
}

#[test]
fn overrides_of_what_is_not_there_are_refused() {
    assert!(
        with(&[("link.9.rate", "1 Mbit/s")])
            .unwrap_err()
            .contains("index below 3")
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
