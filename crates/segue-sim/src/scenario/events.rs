//! What happens to links and cells while a run goes, as `[[event]]` has it. Each is written as what it comes to: outages of a
//! link, times at which a cell is there, and silences, in which a way that is up takes packets and delivers none.

use super::model::{OutageEntry, ScenarioFile};
use super::validate::{Problem, problem, written};
use segue_proto::Duration;
use serde::{Deserialize, Serialize};

/// Times that a flapping link may go down.
const MOST_FLAPS: u64 = 10_000;

/// Something that happens.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventEntry {
    /// What.
    pub kind: EventKind,
    /// Name of the cell or link that it happens to.
    pub on: String,
    /// When it begins.
    pub at: Duration,
    /// How long it lasts; to the end if left out.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Duration>,
    /// One-way loss: which end no longer hears; of a cell its router, or any other name for its hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub towards: Option<String>,
    /// Share of packets that is lost: 1, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Flap: the time from going down to going down again, half of which it is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Duration>,
}

/// Kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The link goes down, or the cell is gone, and hosts notice as their layer 2 does.
    CarrierDown,
    /// Everything stays up, and nothing gets through.
    Blackhole,
    /// Nothing gets through one way.
    OneWayLoss,
    /// It goes down and comes up again, over and over.
    Flap,
}

/// A time in which packets are lost on a way that is up.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Silence {
    /// Its beginning.
    pub from: Duration,
    /// Its end; that of the run if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Duration>,
    /// Of a link: the node that no longer hears; both if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub towards: Option<String>,
    /// Share of packets that is lost.
    #[serde(default = "all")]
    pub loss: f64,
}

const fn all() -> f64 {
    1.0
}

/// What an event happens to: its number.
enum Place {
    Cell(usize),
    Link(usize),
}

/// Writes the events of a scenario as what they come to.
pub(super) fn apply(s: &mut ScenarioFile) -> Result<(), Problem> {
    for (number, event) in core::mem::take(&mut s.event).iter().enumerate() {
        let key = |k: &str| format!("event[{number}].{k}");
        let cell = s.cell.iter().position(|c| c.name == event.on);
        let link = s.link.iter().position(|l| l.name.as_ref() == Some(&event.on));
        let place = match (cell, link) {
            (Some(cell), _) => Place::Cell(cell),
            (None, Some(link)) => Place::Link(link),
            (None, None) => {
                return problem(
                    key("on"),
                    format!("`{}`: expected the name of a [[cell]] or a [[link]]", event.on),
                );
            }
        };
        check(event, s.duration, &key)?;
        match event.kind {
            EventKind::CarrierDown => take_away(s, &place, event.at, event.lasts, &key)?,
            EventKind::Flap => {
                let (period, lasts) = (event.period.unwrap_or_default(), event.lasts.unwrap_or_default());
                let mut at = event.at;
                while at < event.at + lasts {
                    take_away(s, &place, at, Some(period / 2), &key)?;
                    at += period;
                }
            }
            EventKind::Blackhole | EventKind::OneWayLoss => silence(s, &place, event, &key)?,
        }
    }
    Ok(())
}

fn check(event: &EventEntry, duration: Duration, key: &impl Fn(&str) -> String) -> Result<(), Problem> {
    if event.at >= duration {
        let expected = format!("expected a time before `duration`, {}", written(duration));
        return problem(key("at"), expected);
    }
    if event.lasts.is_some_and(|lasts| lasts.is_zero()) {
        return problem(key("for"), "expected more than 0 s");
    }
    if event.loss.is_some_and(|loss| !(0.0..=1.0).contains(&loss)) {
        return problem(key("loss"), "expected a share from 0 to 1");
    }
    let one_way = event.kind == EventKind::OneWayLoss;
    if event.towards.is_some() != one_way {
        let expected = if one_way {
            "expected the end that no longer hears, as towards = \"NAME\""
        } else {
            "has no effect with this kind: expected it to be left out"
        };
        return problem(key("towards"), expected);
    }
    if event.loss.is_some() && !matches!(event.kind, EventKind::OneWayLoss | EventKind::Blackhole) {
        return problem(
            key("loss"),
            "has no effect with this kind: expected it to be left out",
        );
    }
    match (event.kind, event.period, event.lasts) {
        (EventKind::Flap, Some(period), Some(lasts)) => {
            let least = Duration::from_millis(2);
            if period < least {
                return problem(key("period"), "expected at least 2 ms");
            }
            if lasts.as_nanos() / period.as_nanos() > MOST_FLAPS {
                return problem(key("period"), format!("expected at most {MOST_FLAPS} of them"));
            }
            Ok(())
        }
        (EventKind::Flap, None, _) => problem(key("period"), "expected a time such as period = \"500 ms\""),
        (EventKind::Flap, _, None) => problem(key("for"), "expected a time such as for = \"5 s\""),
        (_, Some(_), _) => problem(
            key("period"),
            "has no effect with this kind: expected it to be left out",
        ),
        _ => Ok(()),
    }
}

/// The link is down, or the cell not there, from then on for so long.
fn take_away(
    s: &mut ScenarioFile,
    place: &Place,
    from: Duration,
    lasts: Option<Duration>,
    key: &impl Fn(&str) -> String,
) -> Result<(), Problem> {
    let until = lasts.map(|lasts| from + lasts);
    match *place {
        Place::Link(link) => {
            let outages = &mut s.link[link].outages;
            outages.push(OutageEntry { from, to: until });
            outages.sort_by_key(|o| o.from);
            Ok(())
        }
        Place::Cell(cell) => {
            let entry = &mut s.cell[cell];
            let Some(present) = &entry.present else {
                return problem(
                    key("on"),
                    format!(
                        "cell `{}` is where its position and radius say: expected one with `present`, such as present = \"0 s..\"",
                        entry.name
                    ),
                );
            };
            let Some(present) = present.without(from, until) else {
                return problem(
                    key("at"),
                    "expected a time at which something of `present` is left",
                );
            };
            entry.present = Some(present);
            Ok(())
        }
    }
}

/// What is sent there is lost.
fn silence(
    s: &mut ScenarioFile,
    place: &Place,
    event: &EventEntry,
    key: &impl Fn(&str) -> String,
) -> Result<(), Problem> {
    let silence = |towards: Option<String>| Silence {
        from: event.at,
        to: event.lasts.map(|lasts| event.at + lasts),
        towards,
        loss: event.loss.unwrap_or(1.0),
    };
    match *place {
        Place::Link(link) => {
            let entry = &mut s.link[link];
            if let Some(towards) = event.towards.as_ref().filter(|t| !entry.between.contains(t)) {
                let [a, b] = &entry.between;
                return problem(key("towards"), format!("`{towards}`: expected `{a}` or `{b}`"));
            }
            entry.silences.push(silence(event.towards.clone()));
        }
        Place::Cell(cell) => {
            let entry = &mut s.cell[cell];
            let up = event.towards.as_ref().is_none_or(|t| *t == entry.router);
            let down = event.towards.as_ref().is_none_or(|t| *t != entry.router);
            let Some(bearer) = &mut entry.bearer else {
                return problem(
                    key("on"),
                    format!(
                        "cell `{}` is a shared radio channel: expected one with bearers, such as technology = \"lan\"",
                        entry.name
                    ),
                );
            };
            for (way, hit) in [(&mut bearer.down, down), (&mut bearer.up, up)] {
                if hit {
                    way.silences.push(silence(None));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
        Scenario::from_toml(&format!("{LINKED}[[event]]\n{event}"), "events.toml", &[])
            .map_err(|e| e.to_string())
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
    fn what_cannot_happen_is_refused_in_one_line() {
        for (event, line) in [
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
}
