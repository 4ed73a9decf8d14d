//! What events happen to: names of cells, links, routers or hosts, one or several at the same instant.

use super::super::model::ScenarioFile;
use super::super::validate::{Problem, problem};
use super::EventKind;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// The names, as they are written: `on = "one"`, or `on = ["one", "home"]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Places {
    /// One.
    One(String),
    /// Several, to which it happens at the same instant.
    All(Vec<String>),
}

/// What a name stands for: its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Cell(usize),
    Link(usize),
    Router(usize),
    Host(usize),
}

impl Places {
    /// The names, each with the key that it is written at.
    fn keyed(&self, key: &str) -> Vec<(String, &str)> {
        match self {
            Self::One(name) => vec![(key.to_owned(), name)],
            Self::All(names) => {
                let names = names.iter().enumerate();
                names
                    .map(|(at, name)| (format!("{key}[{at}]"), name.as_str()))
                    .collect()
            }
        }
    }
}

/// What the places of an event are, each with the key that names it.
pub(super) fn find(
    s: &ScenarioFile,
    (kind, on): (EventKind, &Places),
    key: &str,
) -> Result<Vec<(String, Place)>, Problem> {
    let mut found: Vec<(String, Place)> = Vec::new();
    for (key, name) in on.keyed(key) {
        let cell = || s.cell.iter().position(|c| c.name == name).map(Place::Cell);
        let link = || s.link.iter().position(|l| l.name.as_deref() == Some(name));
        let (place, expected) = match kind {
            EventKind::RouterDown => {
                let router = s.router.number(name);
                (router.map(Place::Router), "a [[router]]")
            }
            EventKind::AddressChange => {
                let host = s.host.number(name);
                (host.map(Place::Host), "a [[host]]")
            }
            EventKind::Renumber => (cell(), "a [[cell]]"),
            EventKind::CarrierDown | EventKind::Flap | EventKind::Blackhole | EventKind::OneWayLoss => (
                cell().or_else(|| link().map(Place::Link)),
                "a [[cell]] or a [[link]]",
            ),
        };
        let Some(place) = place else {
            return problem(key, format!("`{name}`: expected the name of {expected}"));
        };
        if found.iter().any(|(_, other)| *other == place) {
            return problem(key, format!("`{name}` is there already: expected each once"));
        }
        found.push((key, place));
    }
    if found.is_empty() {
        return problem(key, "expected at least one name");
    }
    Ok(found)
}

impl<'de> Deserialize<'de> for Places {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMore)
    }
}

struct OneOrMore;

impl<'de> Visitor<'de> for OneOrMore {
    type Value = Places;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name such as \"one\", or several: [\"one\", \"home\"]")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Places, E> {
        Ok(Places::One(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Places, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = list.next_element()? {
            names.push(name);
        }
        Ok(Places::All(names))
    }
}
