//! What happens to links, cells, routers and addresses while a run goes, as `[[event]]` has it. Each is written as what it comes
//! to: outages of a link, times at which a cell is there, silences, in which a way that is up takes packets and delivers none,
//! renumberings of a cell, changes of a host's addresses.

mod check;
mod happenings;
mod places;
mod readdressing;

pub use happenings::{Happening, ScenarioEvent};
pub use places::Places;
pub(super) use readdressing::check as check_readdressing;
pub use readdressing::{AddressChange, Renumbering};

use super::keys::range::{at_least, proportion};
use super::model::{OutageEntry, ScenarioFile};
use super::validate::{Problem, problem};
use core::net::Ipv6Addr;
use places::Place;
use schemars::JsonSchema;
use segue_proto::Duration;
use serde::{Deserialize, Deserializer, Serialize, de};

/// Something that happens.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventEntry {
    /// What.
    pub kind: EventKind,
    /// What it happens to: a cell or a link by its name, with `router-down` a router, with `renumber` a cell, with
    /// `address-change` a host; or several at the same instant.
    pub on: Places,
    /// When it begins.
    pub at: Duration,
    /// How long it lasts, or how long what is replaced can still be used; to the end if left out.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Duration>,
    /// One-way loss: which end no longer hears; of a cell its router, or any other name for its hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub towards: Option<String>,
    /// Share of packets that is lost, as 0.3 or "30 %": 1, if left out.
    #[serde(default, deserialize_with = "share", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::keys::texts::share")]
    #[schemars(extend("x-range" = proportion()))]
    pub loss: Option<f64>,
    /// Flap: the time from going down to going down again, half of which it is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_least("2 ms")))]
    pub period: Option<Duration>,
    /// Renumber: the prefix that takes the place of the cell's; one that nobody has, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Ipv6Addr>,
    /// Address change: the cell in which the host has it; wherever it is, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
}

/// Kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
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
    /// A router hangs: it takes nothing, forwards nothing and says nothing, while layer 2 of its cell stays up.
    RouterDown,
    /// The prefix of a cell is replaced by another.
    Renumber,
    /// The addresses of a host are replaced by others of the same prefixes.
    AddressChange,
}

/// A time in which packets are lost on a way that is up.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
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
    #[schemars(extend("x-range" = proportion()))]
    pub loss: f64,
}

/// A number, or a number of hundredths.
fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(f64),
        Text(String),
    }
    let expected = || de::Error::custom("expected a share such as 0.3 or \"30 %\"");
    match Written::deserialize(deserializer).map_err(|_| expected())? {
        Written::Number(number) => Ok(Some(number)),
        Written::Text(text) => {
            let percent = text.trim().strip_suffix('%').map(str::trim);
            let percent: Option<f64> = percent.and_then(|number| number.parse().ok());
            percent.map(|percent| Some(percent / 100.0)).ok_or_else(expected)
        }
    }
}

const fn all() -> f64 {
    1.0
}

/// Writes the events of a scenario as what they come to.
pub(super) fn apply(s: &mut ScenarioFile) -> Result<(), Problem> {
    s.happenings = Happening::all(s);
    for (number, event) in core::mem::take(&mut s.event).iter().enumerate() {
        let key = |k: &str| format!("event[{number}].{k}");
        let places = places::find(s, (event.kind, &event.on), &key("on"))?;
        check::keys(event, s.duration, &key)?;
        for (on, place) in places {
            let key = |k: &str| if k == "on" { on.clone() } else { key(k) };
            happen(s, place, event, &key)?;
        }
    }
    Ok(())
}

/// Writes down what an event comes to at one place.
fn happen(
    s: &mut ScenarioFile,
    place: Place,
    event: &EventEntry,
    key: &impl Fn(&str) -> String,
) -> Result<(), Problem> {
    match event.kind {
        EventKind::CarrierDown => take_away(s, place, event.at, event.lasts, key),
        EventKind::Flap => {
            let (period, lasts) = (event.period.unwrap_or_default(), event.lasts.unwrap_or_default());
            let mut at = event.at;
            while at < event.at + lasts {
                take_away(s, place, at, Some(period / 2), key)?;
                at += period;
            }
            Ok(())
        }
        EventKind::Blackhole | EventKind::OneWayLoss | EventKind::RouterDown => silence(s, place, event, key),
        EventKind::Renumber | EventKind::AddressChange => readdressing::write(s, place, event, key),
    }
}

/// The link is down, or the cell not there, from then on for so long.
fn take_away(
    s: &mut ScenarioFile,
    place: Place,
    from: Duration,
    lasts: Option<Duration>,
    key: &impl Fn(&str) -> String,
) -> Result<(), Problem> {
    let until = lasts.map(|lasts| from + lasts);
    match place {
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
        Place::Router(_) | Place::Host(_) => unreachable!("not a network"),
    }
}

/// What is sent there is lost.
///
/// Of a router it is what is sent to it and by it, over every link and in its cell. It keeps what it has in memory: neighbours,
/// and the bindings of a home agent, whose lifetimes go on.
fn silence(
    s: &mut ScenarioFile,
    place: Place,
    event: &EventEntry,
    key: &impl Fn(&str) -> String,
) -> Result<(), Problem> {
    match place {
        Place::Link(link) => {
            let [a, b] = &s.link[link].between;
            if let Some(towards) = event.towards.as_ref().filter(|t| *t != a && *t != b) {
                return problem(key("towards"), format!("`{towards}`: expected `{a}` or `{b}`"));
            }
            s.link[link]
                .silences
                .push(silence_of(event, event.towards.clone()));
        }
        Place::Cell(cell) => silence_cell(s, cell, event, key)?,
        Place::Router(router) => {
            let name = s.router[router].name.clone();
            for link in s.link.iter_mut().filter(|l| l.between.contains(&name)) {
                link.silences.push(silence_of(event, None));
            }
            if let Some(cell) = s.cell.iter().position(|c| c.router == name) {
                silence_cell(s, cell, event, key)?;
            }
        }
        Place::Host(_) => unreachable!("not a network"),
    }
    Ok(())
}

fn silence_cell(
    s: &mut ScenarioFile,
    cell: usize,
    event: &EventEntry,
    key: &impl Fn(&str) -> String,
) -> Result<(), Problem> {
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
            way.silences.push(silence_of(event, None));
        }
    }
    Ok(())
}

fn silence_of(event: &EventEntry, towards: Option<String>) -> Silence {
    Silence {
        from: event.at,
        to: event.lasts.map(|lasts| event.at + lasts),
        towards,
        loss: event.loss.unwrap_or(1.0),
    }
}

#[cfg(test)]
mod tests;
