//! When what happens, as a run reports it: `[[event]]` by its name, and what a link has of its own.

use super::super::model::{LinkEntry, ScenarioFile};
use super::{EventEntry, Places};
use segue_proto::Duration;
use serde::Serialize;

/// What happens without an end is looked at for so long: what comes later is something else, the end of the data for one.
const AROUND: Duration = Duration::from_secs(1);

/// Something that happens in a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Happening {
    kind: String,
    on: Vec<String>,
    at: Duration,
    lasts: Option<Duration>,
}

/// The same as a run reports it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ScenarioEvent {
    /// The kind of an `[[event]]`, or "silence" or "outage" of a link that has them.
    pub kind: String,
    /// What it happens to, by name.
    pub on: Vec<String>,
    /// When it begins, seconds.
    pub at_s: f64,
    /// How long it lasts, or how long what is replaced can still be used, seconds; nothing to the end.
    pub for_s: Option<f64>,
}

impl Happening {
    /// All of a scenario whose events are not yet written as what they come to, in order of time.
    pub(super) fn all(s: &ScenarioFile) -> Vec<Self> {
        let events = s.event.iter().map(Self::of_event);
        let links = s.link.iter().flat_map(Self::of_link);
        let mut all: Vec<Self> = events.chain(links).collect();
        all.sort_by_key(|one| one.at);
        all
    }

    fn of_event(event: &EventEntry) -> Self {
        let kind = toml::Value::try_from(event.kind).ok();
        Self {
            kind: kind
                .as_ref()
                .and_then(toml::Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            on: match &event.on {
                Places::One(name) => vec![name.clone()],
                Places::All(names) => names.clone(),
            },
            at: event.at,
            lasts: event.lasts,
        }
    }

    fn of_link(link: &LinkEntry) -> Vec<Self> {
        let name = link.name.clone().unwrap_or_else(|| link.between.join("-"));
        let own = |kind: &str, from: Duration, to: Option<Duration>| Self {
            kind: kind.to_owned(),
            on: vec![name.clone()],
            at: from,
            lasts: to.map(|to| to.saturating_sub(from)),
        };
        let silences = link.silences.iter().map(|s| own("silence", s.from, s.to));
        let outages = link.outages.iter().map(|o| own("outage", o.from, o.to));
        silences.chain(outages).collect()
    }

    /// From when until when a time without new data has to do with it.
    #[must_use]
    pub fn window(&self) -> (Duration, Duration) {
        let lasts = self.lasts.filter(|lasts| !lasts.is_zero()).unwrap_or(AROUND);
        (self.at, self.at + lasts)
    }

    /// As a run reports it.
    #[must_use]
    pub fn report(&self) -> ScenarioEvent {
        ScenarioEvent {
            kind: self.kind.clone(),
            on: self.on.clone(),
            at_s: self.at.as_secs_f64(),
            for_s: self.lasts.map(Duration::as_secs_f64),
        }
    }
}
