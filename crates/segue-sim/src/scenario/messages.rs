//! In which words a scenario is refused, who is blamed, and what is warned of.

use super::Scenario;
use crate::warnings::WarningKind;

const SIGMA: &str = include_str!("../../../../scenarios/papers/sigma.toml");
const ILNP: &str = include_str!("../../../../scenarios/papers/ilnp.toml");
const VERTICAL: &str = include_str!("../../../../scenarios/papers/vertical.toml");

const SCALE: &str = include_str!("../../../../scenarios/populations/scale.toml");

fn read(text: &str, overrides: &[(&str, &str)]) -> Result<Scenario, String> {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    Scenario::from_toml(text, "file.toml", &overrides).map_err(|e| e.to_string())
}

fn refused(overrides: &[(&str, &str)]) -> String {
    read(SIGMA, overrides).expect_err("must be refused")
}

#[test]
fn an_override_that_is_at_fault_is_named_in_full_and_its_key_once() {
    assert_eq!(
        refused(&[("seed", "7"), ("l2.latancy", "1 s")]),
        "--set l2.latancy=1 s: unknown key: did you mean `latency`?"
    );
    assert_eq!(
        refused(&[("link.0.rate", "5")]),
        "--set link.0.rate=5: `5` has no unit: expected a rate with a unit, such as \"384 kbit/s\""
    );
}

#[test]
fn the_file_is_not_blamed_for_what_an_override_makes_of_it() {
    assert_eq!(
        refused(&[("address.ra_interval_max", "100 ms"), ("seed", "7")]),
        "--set address.ra_interval_max=100 ms: address.ra_interval_min: expected at most ra_interval_max, 100 ms"
    );
    // and an override is not for what is wrong in the file
    let wrong = SIGMA.replacen("speed = \"5 m/s\"", "sped = \"5 m/s\"", 1);
    assert_eq!(
        read(&wrong, &[("seed", "7")]).unwrap_err(),
        "file.toml: mobile.sped: unknown key: did you mean `speed`?"
    );
}

#[test]
fn what_a_loss_is_to_be_is_said_right_the_first_time() {
    let expected = "expected a table such as { model = \"bernoulli\", probability = 0.01 }, with model one of none, bernoulli, \
                    gilbert-elliott, fades";
    for value in ["0.1", "[\"none\"]", "\"none\""] {
        assert_eq!(
            refused(&[("link.0.loss", value)]),
            format!("--set link.0.loss={value}: `{value}`: {expected}")
        );
    }
    assert!(
        read(
            SIGMA,
            &[("link.0.loss", "{ model = \"bernoulli\", probability = 0.01 }")]
        )
        .is_ok()
    );
    assert_eq!(
        refused(&[("link.0.loss", "{ model = \"bernoulli\" }")]),
        "--set link.0.loss={ model = \"bernoulli\" }: expected the key `probability` too"
    );
}

#[test]
fn a_part_of_a_name_suggests_the_names_that_have_it() {
    for (given, meant) in [
        ("wlan", "`wlan-802.11b`, `wlan-802.11g` or `wlan-802.11n`"),
        ("802.11g", "`wlan-802.11g`"),
        ("umst", "`umts`"),
    ] {
        let line = refused(&[("cell.0.technology", given)]);
        assert!(line.ends_with(&format!("(did you mean {meant}?)")), "{line}");
    }
}

#[test]
fn nothing_is_said_in_the_words_of_the_parser() {
    for (key, value) in [
        ("duration", "true"),
        ("application.0.size", "[]"),
        ("name", "3"),
        ("mobile.from", "[\"0 m\"]"),
        ("link.0.between", "[\"cn\"]"),
        ("location.server", "3"),
        ("cell.0.present", "7"),
        ("cell.0.bearer", "7"),
        ("ilnp.nid", "7"),
        ("ilnp.preferences", "[\"a\"]"),
        ("parameters", "1"),
        ("link.0.outages", "[{}]"),
        ("sctp.mtu", "{}"),
        ("mobile.from", "{}"),
        ("seed", "1.5"),
    ] {
        let line = refused(&[(key, value)]);
        assert!(line.starts_with(&format!("--set {key}={value}: ")), "{line}");
        assert!(line.contains("expected"), "{line}");
        for word in [
            "invalid",
            "missing field",
            "sequence",
            "a map",
            "boolean",
            "floating",
        ] {
            assert!(!line.contains(word), "{line}");
        }
    }
}

fn warned(text: &str, overrides: &[(&str, &str)]) -> Vec<String> {
    let scenario = read(text, overrides).unwrap();
    let warnings = scenario.warnings();
    assert!(warnings.iter().all(|w| w.kind == WarningKind::KeyWithoutEffect));
    warnings.iter().map(|w| w.text.clone()).collect()
}

#[test]
fn a_key_that_is_set_and_that_nothing_reads_is_warned_of() {
    assert_eq!(
        warned(SIGMA, &[("ilnp.nonce", "96-bit"), ("seed", "3")]),
        [
            "--set ilnp.nonce=96-bit has no effect: schemes \"ilnp-hard\", \"ilnp-soft\" and \"ilnp-multihomed\" read it, \
             and this is \"sigma\""
        ]
    );
    for (text, key, value) in [
        (SIGMA, "mip6.correspondent.max_bindings", "3"),
        (SIGMA, "cmt.mfr", "true"),
        (SIGMA, "tcp.nagle", "true"),
        (SIGMA, "address.dad_transmits", "2"),
        (SIGMA, "directory.update", "1 s"),
        (ILNP, "handover.policy", "first-ready"),
        (ILNP, "sctp.sack_frequency", "1"),
        (ILNP, "address.resolution", "1 s"),
        (ILNP, "ilnp.preferences", "[1, 2]"),
    ] {
        let Ok(scenario) = read(text, &[(key, value)]) else {
            panic!("{key}: {}", read(text, &[(key, value)]).unwrap_err())
        };
        let [warning] = scenario.warnings() else {
            panic!("{key}: {:?}", scenario.warnings())
        };
        assert!(
            warning
                .text
                .starts_with(&format!("--set {key}={value} has no effect: "))
        );
    }
    // with what reads them, they are not
    assert!(
        warned(
            SIGMA,
            &[("handover.policy", "first-ready"), ("sctp.sack_frequency", "1")]
        )
        .is_empty()
    );
    assert!(
        warned(
            ILNP,
            &[("scheme", "mip6"), ("mip6.mobile_node.handoff", "on-link-loss")]
        )
        .is_empty()
    );
}

/// Every scenario that comes with it.
const BUNDLED: [&str; 9] = [
    SIGMA,
    ILNP,
    VERTICAL,
    include_str!("../../../../scenarios/papers/cmt.toml"),
    include_str!("../../../../scenarios/campus-walk.toml"),
    include_str!("../../../../scenarios/coverage-gap.toml"),
    include_str!("../../../../scenarios/zigzag.toml"),
    include_str!("../../../../scenarios/bench/bulk.toml"),
    include_str!("../../../../scenarios/handoff/both-move.toml"),
];

#[test]
fn a_table_of_another_scheme_is_warned_of_in_a_file_that_is_run_as_it_stands() {
    let strange = format!("{SIGMA}\n[mip6.home_agent]\npath_mtu = \"1600 B\"\n");
    let mip6 = "[mip6] has no effect: schemes \"mip6\" and \"mip6-ro\" read it, and this is \"sigma\"";
    assert_eq!(warned(&strange, &[]), [mip6]);
    // whether it names the scheme or not
    assert_eq!(warned(&format!("scheme = \"sigma\"\n{strange}"), &[]), [mip6]);
    assert!(warned(&strange, &[("scheme", "sigma")]).is_empty());
    for text in BUNDLED {
        assert_eq!(warned(text, &[]), [""; 0], "{}", &text[..80]);
    }
    for scheme in ["mip6", "mip6-ro", "ilnp-hard", "none"] {
        assert!(warned(ILNP, &[("scheme", scheme)]).is_empty(), "{scheme}");
    }
}

#[test]
fn a_key_of_the_file_that_nothing_reads_is_warned_of_by_itself() {
    let more = "[tcp]\nnagle = true\n";
    assert_eq!(
        warned(&format!("{SIGMA}\n{more}"), &[]),
        ["[tcp] has no effect: it needs an application with transport = \"tcp\""]
    );
    // what something from outside made useless is not the file's fault, and what is read by it is read
    assert!(warned(SIGMA, &[("application.0.transport", "tcp")]).is_empty());
    assert!(warned(&format!("{SIGMA}\n{more}"), &[("application.0.transport", "tcp")]).is_empty());
    assert_eq!(warned(&format!("{SIGMA}\n{more}"), &[("seed", "3")]).len(), 1);
    let slaac = SIGMA.replacen("[address]\n", "[address]\ndad_transmits = 2\n", 1);
    assert_ne!(slaac, SIGMA);
    assert_eq!(
        warned(&slaac, &[]),
        ["address.dad_transmits has no effect: method \"slaac\" reads it"]
    );
}

#[test]
fn a_list_says_how_many_it_has_and_by_what_they_are_known() {
    assert_eq!(
        refused(&[("link.x.rate", "5 Mbit/s")]),
        "--set link.x.rate=5 Mbit/s: expected a number from 0 to 2, because `link` is a list of 3"
    );
    assert_eq!(
        refused(&[("application.1.size", "1 MB")]),
        "--set application.1.size=1 MB: expected the number 0, because `application` is a list of 1"
    );
    let line = refused(&[("host.x.radios", "2")]);
    assert!(
        line.contains(", or one of cn, mh, because `host` is a list of 2"),
        "{line}"
    );
}

#[test]
fn outages_on_the_only_link_of_a_host_that_is_connected_to_are_what_is_blamed() {
    let line = refused(&[("link.0.outages", "[{ from = \"3 s\" }]"), ("scheme", "none")]);
    assert!(line.contains("every [[link]] of `cn` has outages"), "{line}");
    assert!(
        line.contains("expected the outages on another [[link]]"),
        "{line}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_told_of_without_the_numbers_of_the_system() {
    let line = refused(&[("link.0.trace", "{ file = \"no.csv\", format = \"csv\" }")]);
    assert!(
        line.ends_with("`no.csv`: cannot be read: No such file or directory"),
        "{line}"
    );
}

#[test]
fn what_takes_time_is_a_host_or_a_home_agent() {
    let takes = r#"{ packet = "1 ms", update = "1 ms" }"#;
    let said = |key: &str, value: &str| {
        let value = value.to_owned();
        read(SCALE, &[(key, &value)]).expect_err("must be refused")
    };
    assert_eq!(
        said("router.core.processing", takes),
        format!(
            "--set router.core.processing={takes}: router[0].processing: `core` is nobody's home agent, and takes no time: expected the router of a \
             cell that is some [[mobile]]'s `home`"
        )
    );
    assert_eq!(
        said("host.manager.processing.packet", "1"),
        "--set host.manager.processing.packet=1: host[0].processing.packet: `1` has no unit: expected a duration with a unit, such as \"200 ms\""
    );
    assert!(read(SCALE, &[("host.source.processing", takes)]).is_ok());
}
