use crate::{RunOptions, Scenario, run};

const LINKED: &str = r#"
name = "events"
duration = "4 s"
scheme = "none"
[[host]]
name = "a"
[[host]]
name = "b"
[[router]]
name = "r"
[[link]]
name = "first"
between = ["a", "r"]
rate = "10 Mbit/s"
delay = "1 ms"
[[link]]
name = "second"
between = ["r", "b"]
rate = "10 Mbit/s"
delay = "1 ms"
[[application]]
kind = "constant-rate"
transport = "udp"
from = "a"
to = "b"
rate = "80 kbit/s"
message = "100 B"
"#;

fn read(event: &str) -> Result<Scenario, String> {
    Scenario::from_toml(&format!("{LINKED}[[event]]\n{event}"), "events.toml", &[]).map_err(|e| e.to_string())
}

fn lost(event: &str) -> u64 {
    let output = run(&read(event).unwrap(), RunOptions::default()).unwrap();
    output.metrics.flows[0].counts.lost_packets
}

/// A message each 10 ms.
#[test]
fn what_is_sent_into_a_blackhole_is_lost_for_as_long_as_it_lasts() {
    let event = |more: &str| format!("kind = \"blackhole\"\non = \"second\"\nat = \"1 s\"\n{more}");
    assert_eq!(lost(&event("for = \"500 ms\"")), 50);
    assert!((299..=301).contains(&lost(&event(""))));
    let some = lost(&event("loss = 0.5"));
    assert!((100..200).contains(&some), "{some} of 300");
}

#[test]
fn one_way_loss_leaves_the_other_way_alone() {
    let event = |towards: &str| {
        format!(
            "kind = \"one-way-loss\"\non = \"second\"\nat = \"1 s\"\nfor = \"1 s\"\ntowards = \"{towards}\""
        )
    };
    assert_eq!((lost(&event("b")), lost(&event("r"))), (100, 0));
}

#[test]
fn a_scenario_as_run_has_what_its_events_come_to_and_no_events() {
    let event = "kind = \"flap\"\non = \"first\"\nat = \"1 s\"\nfor = \"1 s\"\nperiod = \"400 ms\"";
    // whoever connects needs an address that stays
    let error = read(event).map(|s| s.file().link[0].outages.len());
    let outages = match error {
        Ok(outages) => outages,
        Err(line) => panic!("{line}"),
    };
    assert_eq!(outages, 3);
    let text = read(event).unwrap().to_toml();
    assert!(!text.contains("[[event]]"));
    let again = Scenario::from_toml(&text, "again.toml", &[]).unwrap();
    assert_eq!(again.file().link, read(event).unwrap().file().link);
}

#[test]
fn a_router_that_hangs_lets_nothing_through_over_any_of_its_links() {
    let event = "kind = \"router-down\"\non = \"r\"\nat = \"1 s\"\nfor = \"500 ms\"";
    let file = read(event).unwrap().file().clone();
    for link in &file.link {
        assert_eq!((link.silences.len(), &link.silences[0].towards), (1, &None));
    }
    assert_eq!(lost(event), 50);
}

#[test]
fn what_happens_to_several_happens_to_each_of_them() {
    let event = "kind = \"blackhole\"\non = [\"first\", \"second\"]\nat = \"1 s\"\nfor = \"1 s\"";
    let file = read(event).unwrap().file().clone();
    assert_eq!(file.link[0].silences, file.link[1].silences);
    assert_eq!(file.link[0].silences.len(), 1);
}

/// A mobile host in two cells.
const CELLS: &str = r#"
name = "cells"
duration = "4 s"
scheme = "none"
[mobile]
host = "mn"
pattern = "still"
from = ["0 m", "0 m"]
speed = "1 m/s"
[[host]]
name = "cn"
[[host]]
name = "mn"
radios = 2
[[router]]
name = "r1"
[[router]]
name = "r2"
[[link]]
name = "wire"
between = ["cn", "r1"]
rate = "10 Mbit/s"
delay = "1 ms"
[[link]]
between = ["r1", "r2"]
rate = "10 Mbit/s"
delay = "1 ms"
[[cell]]
name = "one"
router = "r1"
position = ["0 m", "0 m"]
radius = "100 m"
technology = "lan"
present = "0 s.."
[[cell]]
name = "two"
router = "r2"
position = ["0 m", "0 m"]
radius = "100 m"
technology = "lan"
present = "1 s.."
"#;

fn in_cells(event: &str) -> Result<Scenario, String> {
    Scenario::from_toml(&format!("{CELLS}[[event]]\n{event}"), "events.toml", &[]).map_err(|e| e.to_string())
}

#[test]
fn a_router_that_hangs_is_silent_in_its_cell_which_stays() {
    let file = in_cells("kind = \"router-down\"\non = [\"r1\", \"r2\"]\nat = \"2 s\"").unwrap();
    for cell in &file.file().cell {
        let bearer = cell.bearer.as_ref().unwrap();
        assert_eq!((bearer.down.silences.len(), bearer.up.silences.len()), (1, 1));
        assert_eq!(cell.present.as_ref().unwrap().windows().len(), 1);
    }
    let links = &file.file().link;
    assert_eq!((links[0].silences.len(), links[1].silences.len()), (1, 2));
}

#[test]
fn a_renumbering_without_a_prefix_gets_one_that_nobody_has() {
    let scenario =
        in_cells("kind = \"renumber\"\non = [\"one\", \"two\"]\nat = \"2 s\"\nfor = \"0 s\"").unwrap();
    let prefixes: Vec<String> = scenario
        .file()
        .cell
        .iter()
        .map(|c| c.renumberings[0].prefix.to_string())
        .collect();
    assert_eq!(prefixes, ["2001:db8:8000::", "2001:db8:8001::"]);
    let again = Scenario::from_toml(&scenario.to_toml(), "again.toml", &[]).unwrap();
    assert_eq!(again.file().cell, scenario.file().cell);
}

#[test]
fn an_address_change_is_of_a_host_that_gets_its_addresses() {
    let event = "kind = \"address-change\"\non = \"mn\"\nnetwork = \"two\"\nat = \"2 s\"\nfor = \"0 s\"";
    let scenario = in_cells(event).unwrap();
    let changes = &scenario.file().host[1].address_changes;
    assert_eq!(changes.len(), 1);
    let again = Scenario::from_toml(&scenario.to_toml(), "again.toml", &[]).unwrap();
    assert_eq!(again.file().host[1].address_changes, *changes);
}

#[test]
fn a_host_has_room_for_so_many_addresses_that_stay_valid() {
    let changes = |count: usize, lasts: &str| {
        let one = |n: usize| {
            format!(
                "kind = \"address-change\"\non = \"mn\"\nat = \"{} ms\"\n{lasts}",
                1000 + n * 100
            )
        };
        (0..count).map(one).collect::<Vec<_>>().join("\n[[event]]\n")
    };
    assert!(in_cells(&changes(6, "")).is_ok());
    assert!(in_cells(&changes(12, "for = \"0 s\"")).is_ok());
    let line = "expected at most 6 after which the former addresses stay valid, others with for = \"0 s\"";
    assert_eq!(
        in_cells(&changes(7, "")).unwrap_err(),
        format!("events.toml: event[6].on: {line}")
    );
}

#[test]
fn what_cannot_be_replaced_is_refused_in_one_line() {
    let network = "expected the name of a [[cell]]";
    for (event, line) in [
        (
            "kind = \"renumber\"\non = \"wire\"\nat = \"1 s\"",
            format!("event[0].on: `wire`: {network}"),
        ),
        (
            "kind = \"renumber\"\non = \"one\"\nat = \"1 s\"\nprefix = \"2001:db8:7::1\"",
            "event[0].prefix: `2001:db8:7::1`: expected a prefix of 64 bits such as \"2001:db8:100::\"".to_owned(),
        ),
        (
            "kind = \"renumber\"\non = \"one\"\nat = \"1 s\"\nprefix = \"2001:db8:3::\"",
            "event[0].prefix: 2001:db8:3:: is taken: expected a prefix of its own".to_owned(),
        ),
        (
            "kind = \"renumber\"\non = [\"one\", \"two\"]\nat = \"1 s\"\nprefix = \"2001:db8:7::\"",
            "event[0].prefix: 2001:db8:7:: is taken: expected a prefix of its own".to_owned(),
        ),
        (
            "kind = \"renumber\"\non = \"one\"\nat = \"1 s\"\n[address]\nmethod = \"dhcpv6\"",
            "event[0].on: addresses are leased, and leases last: expected address.method = \"slaac\" or \"fixed\""
                .to_owned(),
        ),
        (
            "kind = \"renumber\"\non = \"one\"\nat = \"1 s\"\n[[event]]\nkind = \"renumber\"\non = \"one\"\nat = \"1 s\"",
            "event[1].at: expected renumberings of a cell one after the other".to_owned(),
        ),
        (
            "kind = \"address-change\"\non = \"one\"\nat = \"1 s\"",
            "event[0].on: `one`: expected the name of a [[host]]".to_owned(),
        ),
        (
            "kind = \"address-change\"\non = \"cn\"\nat = \"1 s\"",
            "event[0].on: `cn` has no radio, and its addresses stay: expected a host that gets them in a [[cell]]"
                .to_owned(),
        ),
        (
            "kind = \"address-change\"\non = \"mn\"\nnetwork = \"wire\"\nat = \"1 s\"",
            format!("event[0].network: `wire`: {network}"),
        ),
        (
            "kind = \"blackhole\"\non = \"one\"\nat = \"1 s\"\nprefix = \"2001:db8:7::\"",
            "event[0].prefix: has no effect with this kind: expected it to be left out".to_owned(),
        ),
    ] {
        assert_eq!(in_cells(event).unwrap_err(), format!("events.toml: {line}"));
    }
}

#[test]
fn what_cannot_happen_is_refused_in_one_line() {
    for (event, line) in [
        (
            "kind = \"blackhole\"\non = []\nat = \"1 s\"",
            "events.toml: event[0].on: expected at least one name",
        ),
        (
            "kind = \"blackhole\"\non = [\"first\", \"r\"]\nat = \"1 s\"",
            "events.toml: event[0].on[1]: `r`: expected the name of a [[cell]] or a [[link]]",
        ),
        (
            "kind = \"blackhole\"\non = [\"first\", \"first\"]\nat = \"1 s\"",
            "events.toml: event[0].on[1]: `first` is there already: expected each once",
        ),
        (
            "kind = \"router-down\"\non = \"first\"\nat = \"1 s\"",
            "events.toml: event[0].on: `first`: expected the name of a [[router]]",
        ),
        (
            "kind = \"blackhole\"\non = \"first\"\nat = \"1 s\"\nfor = \"0 s\"",
            "events.toml: event[0].for: expected more than 0 s",
        ),
        (
            "kind = \"blackhole\"\non = \"third\"\nat = \"1 s\"",
            "events.toml: event[0].on: `third`: expected the name of a [[cell]] or a [[link]]",
        ),
        (
            "kind = \"blackhole\"\non = \"first\"\nat = \"9 s\"",
            "events.toml: event[0].at: expected a time before `duration`, 4 s",
        ),
        (
            "kind = \"one-way-loss\"\non = \"first\"\nat = \"1 s\"",
            "events.toml: event[0].towards: expected the end that no longer hears, as towards = \"NAME\"",
        ),
        (
            "kind = \"one-way-loss\"\non = \"first\"\nat = \"1 s\"\ntowards = \"b\"",
            "events.toml: event[0].towards: `b`: expected `a` or `r`",
        ),
        (
            "kind = \"flap\"\non = \"first\"\nat = \"1 s\"\nfor = \"1 s\"",
            "events.toml: event[0].period: expected a time such as period = \"500 ms\"",
        ),
    ] {
        assert_eq!(read(event).unwrap_err(), line);
    }
}

#[test]
fn a_share_is_a_number_or_a_percentage() {
    let event = |loss: &str| format!("kind = \"blackhole\"\non = \"first\"\nat = \"1 s\"\nloss = {loss}\n");
    let some = lost(&event("\"30 %\""));
    assert_eq!(some, lost(&event("0.3")));
    assert!((50..150).contains(&some), "{some} of some 300");
    assert_eq!(lost(&event("1")), lost(&event("\"100%\"")));
    for wrong in ["\"much\"", "\"30\"", "true"] {
        let said = read(&event(wrong)).unwrap_err();
        assert!(said.contains("event[0].loss"), "{said}");
        assert!(
            said.contains("expected a share such as 0.3 or \"30 %\""),
            "{said}"
        );
    }
    assert!(read(&event("\"130 %\"")).is_err());
}
