//! A constellation of satellites over a host that stays where it is, written out as cells by the clock.
//!
//! ```toml
//! [constellation]
//! host = "terminal"                   # who is served: a host with [mobile]
//! router = "gateway"                  # what satellites, or the network that hides them, are linked to
//! addresses = "satellite"             # each is a router with a prefix of its own; "network": one router, which hides them
//! altitude = "550 km"
//! inclination = "53 deg"
//! planes = 72
//! satellites_per_plane = 22
//! user = { lat = "48.1 deg", lon = "11.6 deg" }
//! gateway = { lat = "50.1 deg", lon = "8.7 deg" }
//! feeder = { rate = "1 Gbit/s", delay = "1 ms" }
//! ```
//!
//! With `addresses = "satellite"`, each satellite that serves becomes a router and a cell with its name, `sat-PLANE-NUMBER`, which is in
//! reach while it serves and `overlap` before, and a link to `router`. With `"network"`, there is one cell, and what changes from
//! satellite to satellite is its delay. The host's `plan` says who serves when. So the scenario as run names them all.

use super::ScenarioError;
use super::cell_files;
use super::keys::range::{self, above, at_least, proportion, within};
use super::mobility::{Angle, Origin};
use crate::constellation::{Place, Plan, Rhythm, Satellite, Shell, Slot};
use crate::mobility::geography::NOWHERE;
use schemars::JsonSchema;
use segue_proto::Duration;
use segue_proto::units::Metres;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

const SECTION: &str = "constellation";
/// Name of the one cell and router of a network that hides its satellites.
const HIDDEN: &str = "sky";
/// Most slots of a run, satellites of a shell, and satellites that serve.
const MOST_SLOTS: u64 = 1000;
const MOST_SATELLITES: u32 = 20_000;
const MOST_CELLS: usize = 1_900;

/// `[constellation]`
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ConstellationSection")]
pub(super) struct Section {
    /// The host that is served.
    host: String,
    /// The router that satellites are linked to.
    router: String,
    /// Whose the host's addresses are.
    addresses: Addresses,
    /// Height of the orbits.
    #[schemars(extend("x-range" = within("100 km", "36000 km")))]
    altitude: Metres,
    /// Their inclination.
    inclination: Angle,
    /// Orbital planes.
    #[schemars(extend("x-range" = at_least("1")))]
    planes: u32,
    /// Satellites in each.
    #[schemars(extend("x-range" = at_least("1")))]
    satellites_per_plane: u32,
    /// F of Walker's i: T/P/F.
    #[serde(default)]
    phasing: u32,
    /// Where the host is.
    user: Origin,
    /// Where the gateway is.
    gateway: Origin,
    /// Below it no satellite serves.
    #[serde(default = "lowest")]
    #[schemars(extend("x-range" = at_least("0 deg").below("90 deg")))]
    min_elevation: Angle,
    /// How far the constellation has turned when the run begins.
    #[serde(default)]
    begins: Duration,
    /// When the first slot begins that begins in the run.
    #[serde(default = "twelve_seconds")]
    first_slot: Duration,
    /// How often satellites are assigned anew.
    #[serde(default = "fifteen_seconds")]
    #[schemars(extend("x-range" = at_least("1 s")))]
    slot: Duration,
    /// How many satellites serve at once, each of which needs a radio.
    #[serde(default = "one")]
    #[schemars(extend("x-range" = within("1", "8")))]
    at_once: usize,
    /// How long before its time a satellite can be used.
    #[serde(default)]
    overlap: Duration,
    /// How long ahead the host is told of the plan; not at all, if left out.
    #[serde(default)]
    #[schemars(extend("x-range" = above("0 s")))]
    told_ahead: Option<Duration>,
    /// With addresses of the network: how long packets are lost when another satellite serves.
    #[serde(default)]
    reconfiguration: Duration,
    /// The share of them that is lost.
    #[serde(default = "all_of_them")]
    #[schemars(extend("x-range" = proportion()))]
    reconfiguration_loss: f64,
    /// Keys of the link to each router.
    #[schemars(schema_with = "super::keys::texts::any_table")]
    feeder: Table,
    /// Keys of each cell.
    #[serde(default)]
    #[schemars(schema_with = "super::keys::texts::any_table")]
    cell: Table,
}

/// Whose addresses the host has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ConstellationAddresses")]
enum Addresses {
    /// Each satellite's is a network of its own.
    Satellite,
    /// The network behind them hides them.
    Network,
}

fn lowest() -> Angle {
    "25 deg".parse().expect("an angle")
}

fn twelve_seconds() -> Duration {
    Duration::from_secs(12)
}

fn fifteen_seconds() -> Duration {
    Duration::from_secs(15)
}

fn one() -> usize {
    1
}

fn all_of_them() -> f64 {
    1.0
}

/// A key, and what is wrong with it.
type Wrong = (&'static str, String);

/// How many entries of each list the file has itself: those behind them are the constellation's.
#[derive(Debug, Default)]
pub(super) struct Made {
    written: Vec<(&'static str, usize)>,
}

impl Made {
    /// The key of the file that `key` comes from.
    pub(super) fn entry_of(&self, key: &str) -> String {
        let is_made = |(list, written): &(&str, usize)| {
            let rest = key.strip_prefix(list)?;
            let rest = rest.strip_prefix('[').or_else(|| rest.strip_prefix('.'))?;
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let number: usize = rest[..end].parse().ok()?;
            (number >= *written).then_some(())
        };
        match self.written.iter().find_map(is_made) {
            Some(()) => SECTION.to_owned(),
            None => key.to_owned(),
        }
    }
}

/// Writes out `[constellation]`.
pub(super) fn expand(table: &mut Table, source: &dyn Fn(&str) -> String) -> Result<Made, ScenarioError> {
    let Some(section) = table.remove(SECTION) else {
        return Ok(Made::default());
    };
    if !section.is_table() {
        let expected = "expected a table: [constellation]".to_owned();
        return Err(ScenarioError::new(&source(SECTION), SECTION, expected));
    }
    let written = section.clone();
    let section: Section = cell_files::read(section, SECTION, source)?;
    range::check_section(SECTION, &written)
        .map_err(|(key, expected)| ScenarioError::new(&source(&key), &key, expected))?;
    // what is no duration is refused with the other types
    let duration = table.get("duration").and_then(Value::as_str);
    let Some(duration) = duration.and_then(|text| text.parse::<Duration>().ok()) else {
        return Ok(Made::default());
    };
    let made = section
        .check(duration)
        .and_then(|plan| section.expand(&plan, duration));
    let made = made.and_then(|made| tell(table, &section, made.plan.clone()).map(|()| made));
    let made = made.map_err(|(key, problem)| {
        let key = format!("{SECTION}.{key}");
        ScenarioError::new(&source(&key), &key, problem)
    })?;
    let mut written = Vec::new();
    for (list, more) in [
        ("router", made.routers),
        ("link", made.links),
        ("cell", made.cells),
    ] {
        let there = table
            .entry(list.to_owned())
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(there) = there {
            written.push((list, there.len()));
            there.extend(more);
        }
    }
    Ok(Made { written })
}

/// What a constellation comes to.
struct Expanded {
    routers: Vec<Value>,
    links: Vec<Value>,
    cells: Vec<Value>,
    plan: Vec<Value>,
}

/// Gives the host its plan.
fn tell(table: &mut Table, section: &Section, plan: Vec<Value>) -> Result<(), Wrong> {
    let missing = || {
        let expected = format!("`{}`: expected a host with [mobile]", section.host);
        ("host", expected)
    };
    let entries = match table.get_mut("mobile") {
        Some(Value::Array(entries)) => &mut entries[..],
        Some(one) => core::slice::from_mut(one),
        None => return Err(missing()),
    };
    let is_it = |entry: &&mut Table| entry.get("host").and_then(Value::as_str) == Some(&section.host[..]);
    let mobile = entries.iter_mut().filter_map(Value::as_table_mut).find(is_it);
    let mobile = mobile.ok_or_else(missing)?;
    if mobile.contains_key("plan") || mobile.contains_key("told_ahead") {
        return Err((
            "host",
            "has a plan of its own: expected none in [mobile]".to_owned(),
        ));
    }
    if section.addresses == Addresses::Satellite {
        // in a run without a change there is nothing to tell
        let told = section.told_ahead.filter(|_| plan.len() > 1);
        mobile.extend(told.map(|ahead| ("told_ahead".to_owned(), time(ahead))));
        mobile.insert("plan".to_owned(), Value::Array(plan));
    }
    Ok(())
}

impl Section {
    /// Whether it is possible; its plan.
    fn check(&self, duration: Duration) -> Result<Plan, Wrong> {
        let wrong = |key, expected: &str| Err((key, expected.to_owned()));
        if self.planes.saturating_mul(self.satellites_per_plane) > MOST_SATELLITES {
            return Err((
                "planes",
                format!("expected at most {MOST_SATELLITES} satellites in all"),
            ));
        }
        if self.phasing >= self.planes {
            return wrong("phasing", "expected less than `planes`");
        }
        for (key, origin) in [("user", self.user), ("gateway", self.gateway)] {
            if origin.lat.degrees().abs() > 89.0 || origin.lon.degrees().abs() > 180.0 {
                return wrong(key, NOWHERE);
            }
        }
        if duration.as_nanos() / self.slot.as_nanos() >= MOST_SLOTS {
            let most = MOST_SLOTS - 1;
            return Err(("slot", format!("expected at most {most} slots in the run")));
        }
        // what is seen at both ends of a slot may else have been below the horizon between them
        let half_s = self.shell().period_s() / 2.0;
        if self.slot.as_secs_f64() > half_s {
            return Err((
                "slot",
                format!("expected at most half a revolution, {half_s:.0} s at this altitude"),
            ));
        }
        if self.first_slot > self.slot {
            return wrong("first_slot", "expected at most `slot`");
        }
        if self.overlap > self.slot {
            return wrong("overlap", "expected at most `slot`");
        }
        let least = match self.first_slot {
            Duration::ZERO => self.slot,
            first => first,
        };
        if self.told_ahead.is_some_and(|ahead| ahead > least) {
            return wrong("told_ahead", "expected at most `first_slot`");
        }
        if self.reconfiguration > self.slot {
            return wrong("reconfiguration", "expected at most `slot`");
        }
        let hides = self.addresses == Addresses::Network;
        if hides && (self.told_ahead.is_some() || !self.overlap.is_zero() || self.at_once > 1) {
            let expected =
                "hides satellites from the host: expected no told_ahead, overlap or at_once with it";
            return wrong("addresses", expected);
        }
        if !hides && !self.reconfiguration.is_zero() {
            return wrong(
                "reconfiguration",
                "is the network's: expected addresses = \"network\" with it",
            );
        }
        Ok(Plan {
            shell: self.shell(),
            begins_s: self.begins.as_secs_f64(),
            user: Place::at(self.user.geodetic()),
            gateway: Place::at(self.gateway.geodetic()),
            least_elevation: self.min_elevation.degrees().to_radians(),
            at_once: self.at_once,
        })
    }

    fn shell(&self) -> Shell {
        Shell {
            altitude_m: self.altitude.metres(),
            inclination_deg: self.inclination.degrees(),
            planes: self.planes,
            satellites_per_plane: self.satellites_per_plane,
            phasing: self.phasing,
        }
    }

    fn expand(&self, plan: &Plan, duration: Duration) -> Result<Expanded, Wrong> {
        let rhythm = Rhythm {
            first: self.first_slot,
            slot: self.slot,
        };
        let slots = plan.slots(rhythm, duration);
        if slots.first().is_none_or(|slot| slot.satellites.is_empty()) {
            let expected = "no satellite serves when the run begins: expected a place that one passes, or another `begins`";
            return Err(("user", expected.to_owned()));
        }
        Ok(match self.addresses {
            Addresses::Satellite => self.networks_of_satellites(plan, &slots, duration)?,
            Addresses::Network => self.one_network(plan, &slots, duration),
        })
    }

    /// Each satellite is a router with a cell.
    fn networks_of_satellites(
        &self,
        plan: &Plan,
        slots: &[Slot],
        duration: Duration,
    ) -> Result<Expanded, Wrong> {
        let mut serves: BTreeMap<Satellite, Vec<Window>> = BTreeMap::new();
        for slot in slots {
            let since = slot.from.saturating_sub(self.overlap);
            for satellite in &slot.satellites {
                let windows = serves.entry(*satellite).or_default();
                match windows.last_mut() {
                    Some(last) if last.until >= since => last.until = slot.until,
                    _ => windows.push(Window {
                        from: since,
                        until: slot.until,
                    }),
                }
            }
        }
        if serves.len() > MOST_CELLS {
            let expected = format!("{} satellites serve: expected at most {MOST_CELLS}", serves.len());
            return Err(("slot", expected));
        }
        let mut made = Expanded {
            routers: Vec::new(),
            links: Vec::new(),
            cells: Vec::new(),
            plan: Vec::new(),
        };
        for (satellite, windows) in &serves {
            let name = name(*satellite);
            let ways = |leg: usize| {
                let at = move |second| [(second, plan.ways_m(*satellite, second)[leg])];
                distances(windows, at)
            };
            made.routers.push(named(&name));
            made.links.push(self.link(&name, Some(&ways(1))));
            made.cells
                .push(self.cell(&name, windows, duration, &ways(0), &[]));
        }
        let mut last = None;
        for slot in slots {
            let best = slot.satellites.first();
            if best != last
                && let Some(best) = best
            {
                let entry = [
                    ("from".to_owned(), time(slot.from)),
                    ("cell".to_owned(), Value::String(name(*best))),
                ];
                made.plan.push(Value::Table(entry.into_iter().collect()));
            }
            last = best;
        }
        Ok(made)
    }

    /// One router hides them: there is a cell whose stations are as far away as the satellite and its gateway.
    fn one_network(&self, plan: &Plan, slots: &[Slot], duration: Duration) -> Expanded {
        let mut windows: Vec<Window> = Vec::new();
        let mut silences = Vec::new();
        let mut last = None;
        for slot in slots {
            let Some(best) = slot.satellites.first() else {
                continue;
            };
            match windows.last_mut() {
                Some(window) if window.until == slot.from => window.until = slot.until,
                _ => windows.push(Window {
                    from: slot.from,
                    until: slot.until,
                }),
            }
            if last.is_some_and(|last| last != best) {
                silences.push(slot.from);
            }
            last = Some(best);
        }
        let at = |second: Duration| {
            let slot = slots.iter().find(|slot| slot.until > second);
            let best = slot.and_then(|slot| slot.satellites.first());
            best.map(|best| (second, plan.ways_m(*best, second).iter().sum::<f64>()))
        };
        let changes: Vec<Window> = slots
            .iter()
            .map(|slot| Window {
                from: slot.from,
                until: slot.until,
            })
            .collect();
        Expanded {
            routers: vec![named(HIDDEN)],
            links: vec![self.link(HIDDEN, None)],
            cells: vec![self.cell(HIDDEN, &windows, duration, &distances(&changes, at), &silences)],
            plan: Vec::new(),
        }
    }

    fn link(&self, name: &str, distances: Option<&str>) -> Value {
        let mut link = self.feeder.clone();
        let between = [&self.router, name].map(|end| Value::String(end.to_owned()));
        link.insert("between".to_owned(), Value::Array(between.to_vec()));
        link.extend(distances.map(|text| ("trace".to_owned(), trace(text))));
        Value::Table(link)
    }

    fn cell(
        &self,
        name: &str,
        windows: &[Window],
        duration: Duration,
        distances: &str,
        reconfigured: &[Duration],
    ) -> Value {
        let mut cell = self.cell.clone();
        let text = |text: &str| Value::String(text.to_owned());
        cell.insert("name".to_owned(), text(name));
        cell.insert("router".to_owned(), text(name));
        if !cell.contains_key("bearer") {
            cell.entry("technology").or_insert_with(|| text("leo"));
        }
        // one that serves at the end of the run goes on
        let window = |w: &Window| match w.until {
            until if until >= duration => Value::String(format!("{}..", w.from)),
            until => Value::String(format!("{}..{until}", w.from)),
        };
        let present = windows.iter().map(window).collect();
        cell.insert("present".to_owned(), Value::Array(present));
        let silence = |from: &Duration| {
            let keys = [
                ("from".to_owned(), time(*from)),
                ("to".to_owned(), time(*from + self.reconfiguration)),
                ("loss".to_owned(), Value::Float(self.reconfiguration_loss)),
            ];
            Value::Table(keys.into_iter().collect())
        };
        let silences: Vec<Value> = match self.reconfiguration.is_zero() {
            true => Vec::new(),
            false => reconfigured.iter().map(silence).collect(),
        };
        let bearer = cell.entry("bearer").or_insert_with(|| Value::Table(Table::new()));
        for direction in ["down", "up"] {
            let Value::Table(bearer) = &mut *bearer else {
                continue;
            };
            let keys = bearer
                .entry(direction)
                .or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(keys) = keys {
                keys.insert("trace".to_owned(), trace(distances));
                if !silences.is_empty() {
                    keys.insert("silences".to_owned(), Value::Array(silences.clone()));
                }
            }
        }
        Value::Table(cell)
    }
}

/// A time in which a satellite can be used.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: Duration,
    until: Duration,
}

fn name(satellite: Satellite) -> String {
    format!("sat-{:02}-{:02}", satellite.plane, satellite.number)
}

fn named(name: &str) -> Value {
    let name = ("name".to_owned(), Value::String(name.to_owned()));
    Value::Table([name].into_iter().collect())
}

fn time(duration: Duration) -> Value {
    Value::String(duration.to_string())
}

fn trace(text: &str) -> Value {
    let keys = [("format", "csv"), ("text", text)];
    let keys = keys.map(|(key, value)| (key.to_owned(), Value::String(value.to_owned())));
    Value::Table(keys.into_iter().collect())
}

/// A trace of distances, metres, as they are at the beginning of each window and once a second in it: a satellite moves 7.6 km in that
/// time, for which light takes 25 us.
fn distances<I: IntoIterator<Item = (Duration, f64)>>(
    windows: &[Window],
    at: impl Fn(Duration) -> I,
) -> String {
    let mut text = "time_s,distance_m\n".to_owned();
    for window in windows {
        let mut second = window.from;
        while second < window.until {
            for (time, distance) in at(second) {
                text += &format!("{},{distance:.1}\n", time.as_secs_f64());
            }
            second += Duration::from_secs(1);
        }
    }
    text
}
