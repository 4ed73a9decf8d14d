//! Access technologies: presets of cells and links, `technologies.toml`, each number with its source.

use super::ScenarioError;
use super::files::TraceSection;
use super::keys::range::{above, at_most};
use crate::loss::LossModel;
use schemars::JsonSchema;
use segue_proto::Duration;
use segue_proto::units::{BitRate, QueueLimit};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

const PRESETS: &str = include_str!("technologies.toml");

/// An access technology.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Technology {
    /// Ethernet at 100 Mbit/s.
    #[serde(rename = "lan")]
    Lan,
    /// IEEE 802.11b.
    #[serde(rename = "wlan-802.11b")]
    Wlan80211b,
    /// IEEE 802.11g.
    #[serde(rename = "wlan-802.11g")]
    Wlan80211g,
    /// IEEE 802.11n.
    #[serde(rename = "wlan-802.11n")]
    Wlan80211n,
    /// GPRS: 4+1 timeslots of CS-2.
    #[serde(rename = "gprs")]
    Gprs,
    /// UMTS, release 99.
    #[serde(rename = "umts")]
    Umts,
    /// LTE, UE category 4.
    #[serde(rename = "lte")]
    Lte,
    /// 5G.
    #[serde(rename = "5g")]
    FiveG,
    /// A satellite in a low Earth orbit, but for the time that light takes to it.
    #[serde(rename = "leo")]
    Leo,
}

/// One direction of a bearer, or of a link. Nothing of it is left out when it is written: a preset would put its own there.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectionSection {
    /// Rate of IPv6 packets.
    #[schemars(extend("x-range" = above("0 bit/s")))]
    pub rate: BitRate,
    /// Delay.
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub delay: Duration,
    /// Waiting room.
    pub queue: QueueLimit,
    /// Greatest additional delay, drawn uniformly for each packet; packets stay in order.
    #[serde(default)]
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub jitter: Duration,
    /// Packets that follow each other with less than this between them have the same. Left out: each has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub jitter_hold: Option<Duration>,
    /// It has to be set up before it sends, which takes this long, where it was let go: a bearer that is there while it is
    /// used. Packets that come meanwhile wait.
    #[serde(default)]
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub set_up: Duration,
    /// It is let go when it has had nothing to send for longer than this.
    #[serde(default)]
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub set_up_hold: Duration,
    /// Random loss.
    #[serde(default)]
    pub loss: LossModel,
    /// A file that says its rate over time, and perhaps its delay and loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSection>,
    /// When packets are lost on it although it is up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silences: Vec<super::events::Silence>,
}

/// What a station has to itself in a cell that is no shared radio channel: bearers of cellular networks, a port of a
/// switch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BearerSection {
    /// To the mobile host.
    pub down: DirectionSection,
    /// From it.
    pub up: DirectionSection,
}

/// The names of those whose stations have bearers, or of those whose stations share a channel.
pub(super) fn names(with_bearers: bool) -> Vec<String> {
    let presets: Table = PRESETS.parse().expect("the presets are TOML");
    let of_kind = presets
        .iter()
        .filter(|(_, preset)| preset.get("bearer").is_some() == with_bearers);
    of_kind.map(|(name, _)| name.clone()).collect()
}

/// Puts the presets of technologies under the keys of the cells and links that name one.
pub(super) fn apply(table: &mut Table, file: &str) -> Result<(), ScenarioError> {
    let presets: Table = PRESETS.parse().expect("the presets are TOML");
    ways_from_files(table);
    for list in ["cell", "link"] {
        let Some(Value::Array(entries)) = table.get_mut(list) else {
            continue;
        };
        for (number, entry) in entries.iter_mut().enumerate() {
            let Value::Table(entry) = entry else { continue };
            let key = format!("{list}[{number}].technology");
            let preset = match entry.get("technology") {
                None => None,
                // what is no technology is refused with the other types
                Some(name) => match name.as_str().and_then(|n| presets.get(n)) {
                    Some(Value::Table(preset)) => Some(preset),
                    _ => continue,
                },
            };
            if list == "cell" {
                cell(entry, preset);
            } else if let Some(preset) = preset {
                link(entry, preset).map_err(|problem| ScenarioError::new(file, &key, problem))?;
            }
        }
    }
    Ok(())
}

/// Of a host whose way is in a file, pattern, place and speed are nothing to ask for.
fn ways_from_files(table: &mut Table) {
    let entries: Vec<&mut Value> = match table.get_mut("mobile") {
        Some(Value::Array(entries)) => entries.iter_mut().collect(),
        Some(one) => vec![one],
        None => return,
    };
    for entry in entries.into_iter().filter_map(Value::as_table_mut) {
        if entry.contains_key("mobility") {
            let text = |text: &str| Value::String(text.to_owned());
            entry.entry("pattern").or_insert_with(|| text("still"));
            entry
                .entry("from")
                .or_insert_with(|| Value::Array(vec![text("0 m"), text("0 m")]));
            entry.entry("speed").or_insert_with(|| text("0 m/s"));
        }
    }
}

/// Of a cell that has bearers, or that is there by the clock, its place is nothing to ask for. `sharing` may be the scheduler
/// alone.
fn cell(entry: &mut Table, preset: Option<&Table>) {
    if let Some(scheduler @ Value::String(_)) = entry.get("sharing").cloned() {
        let sharing = Table::from_iter([("scheduler".to_owned(), scheduler)]);
        entry.insert("sharing".to_owned(), Value::Table(sharing));
    }
    if let Some(preset) = preset {
        let mut preset = preset.clone();
        // bearers are shared only where the cell says so
        if !entry.contains_key("sharing") {
            preset.remove("sharing");
        }
        under(entry, &preset);
    }
    let bearers = entry.contains_key("bearer");
    if bearers {
        entry.entry("channel").or_insert_with(|| Value::Integer(0));
    }
    if entry.contains_key("present") {
        let nowhere = || Value::Array(vec![Value::String("0 m".to_owned()); 2]);
        entry.entry("position").or_insert_with(nowhere);
        entry
            .entry("radius")
            .or_insert_with(|| Value::String("100 m".to_owned()));
    }
}

fn link(entry: &mut Table, preset: &Table) -> Result<(), String> {
    let direction = |name: &str| {
        let bearer = preset.get("bearer").and_then(Value::as_table)?;
        bearer.get(name).and_then(Value::as_table)
    };
    let (Some(down), Some(up)) = (direction("down"), direction("up")) else {
        return Err("a radio channel is shared by stations: expected it on a [[cell]]".to_owned());
    };
    // what is set for the link is meant for both directions
    let mut set = Table::new();
    for key in [
        "rate",
        "delay",
        "queue",
        "jitter",
        "jitter_hold",
        "set_up",
        "set_up_hold",
        "loss",
    ] {
        set.extend(entry.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    under(entry, down);
    let mut there = entry.remove("up").unwrap_or(Value::Table(Table::new()));
    if let Value::Table(there) = &mut there {
        under(there, &set);
        under(there, up);
    }
    entry.insert("up".to_owned(), there);
    Ok(())
}

/// Sets in `table` what it has not of `preset`, key by key.
fn under(table: &mut Table, preset: &Table) {
    for (key, value) in preset {
        match (table.get_mut(key), value) {
            (Some(Value::Table(there)), Value::Table(value)) => under(there, value),
            (Some(_), _) => {}
            (None, _) => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

/// What is wrong with one direction, if anything: the key, and what was expected.
pub(super) fn check_direction(d: &DirectionSection) -> Result<(), (&'static str, &'static str)> {
    let room = match d.queue {
        QueueLimit::Packets(n) => n.count() > 0,
        QueueLimit::Bytes(n) => n.bytes() >= 1500,
    };
    if !room {
        return Err(("queue", "expected room for a packet: at least 1 packet or 1500 B"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::model::RadioSection;
    use super::*;

    #[test]
    fn every_number_of_a_preset_has_its_source() {
        for line in PRESETS.lines().filter(|l| l.contains(" = ")) {
            let source = line.split_once('#').map(|(_, comment)| comment.trim());
            if line.starts_with('#') {
                continue;
            }
            assert!(source.is_some_and(|s| s.len() > 5), "{line}");
        }
    }

    #[test]
    fn every_technology_has_a_preset_that_can_be_read() {
        let presets: Table = PRESETS.parse().unwrap();
        for technology in [
            Technology::Lan,
            Technology::Wlan80211b,
            Technology::Wlan80211g,
            Technology::Wlan80211n,
            Technology::Gprs,
            Technology::Umts,
            Technology::Lte,
            Technology::FiveG,
            Technology::Leo,
        ] {
            let name = Value::try_from(technology).unwrap();
            let preset = presets[name.as_str().unwrap()].as_table().unwrap().clone();
            match (preset.get("radio"), preset.get("bearer")) {
                (Some(radio), None) => {
                    let _: RadioSection = radio.clone().try_into().unwrap();
                }
                (None, Some(bearer)) => {
                    let bearer: BearerSection = bearer.clone().try_into().unwrap();
                    for direction in [&bearer.down, &bearer.up] {
                        assert_eq!(check_direction(direction), Ok(()), "{name}");
                    }
                    if let Some(mut sharing) = preset.get("sharing").cloned() {
                        let keys = sharing.as_table_mut().unwrap();
                        keys.insert("scheduler".to_owned(), "round-robin".into());
                        let _: super::super::sharing::SharingSection = sharing.try_into().unwrap();
                    }
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(presets.len(), 9);
    }

    #[test]
    fn a_round_trip_over_gprs_takes_the_second_that_its_sources_have() {
        let presets: Table = PRESETS.parse().unwrap();
        let bearer: BearerSection = presets["gprs"]["bearer"].clone().try_into().unwrap();
        let way = |d: &DirectionSection, length, set_up: Duration| {
            let jitter = Duration::from_nanos(d.jitter.as_nanos() / 2);
            (d.delay + jitter + set_up + d.rate.time_for(length)).as_secs_f64()
        };
        // a ping after a pause, and a full segment of a flow, whose bearer is kept, with its acknowledgement
        let (down, up) = (&bearer.down, &bearer.up);
        let ping = way(down, 104, down.set_up) + way(up, 104, up.set_up);
        assert!((ping - 1.0).abs() < 0.01, "{ping} s");
        assert!(up.set_up_hold < down.rate.time_for(1500) && down.rate.time_for(1500) < down.set_up_hold);
        let segment = way(down, 1500, Duration::ZERO) + way(up, 96, up.set_up);
        assert!((segment - 1.05).abs() < 0.01, "{segment} s");
    }
}
