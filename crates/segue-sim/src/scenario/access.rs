//! What cells with technologies, bearers and channels of their own must be.

use super::model::{CellEntry, RadioSection, ScenarioFile};
use super::technology::check_direction;
use super::timers;
use super::validate::{Problem, problem};

pub(super) fn check(s: &ScenarioFile) -> Result<(), Problem> {
    for (i, cell) in s.cell.iter().enumerate() {
        let key = |k: &str| format!("cell[{i}].{k}");
        if let Some(bearer) = &cell.bearer {
            if cell.radio.is_some() {
                return problem(key("radio"), "the cell has bearers: expected no radio channel");
            }
            for (name, direction) in [("down", &bearer.down), ("up", &bearer.up)] {
                check_direction(direction)
                    .or_else(|(k, expected)| problem(key(&format!("bearer.{name}.{k}")), expected))?;
            }
        } else if let Some(radio) = &cell.radio {
            channel(&key("radio"), radio)?;
            if let Some(other) = s.cell[..i].iter().find(|c| shares(c, cell))
                && other.radio != cell.radio
            {
                return problem(
                    key("channel"),
                    format!("shared with `{}`: expected the same `radio` there", other.name),
                );
            }
        }
        intervals(s, i)?;
    }
    for (i, link) in s.link.iter().enumerate() {
        if let Some(up) = &link.up {
            check_direction(up).or_else(|(k, expected)| problem(format!("link[{i}].up.{k}"), expected))?;
        }
    }
    for (i, host) in s.host.iter().enumerate() {
        if !host.technologies.is_empty() && host.technologies.len() != usize::from(host.radios) {
            return problem(
                format!("host[{i}].technologies"),
                format!("expected one for each of its radios: {}", host.radios),
            );
        }
        let heard = |t| s.cell.iter().any(|c| c.technology == Some(t));
        if !host.technologies.is_empty() && !host.technologies.iter().any(|t| heard(*t)) {
            return problem(
                format!("host[{i}].technologies"),
                "hears none of the cells: expected the technology of one",
            );
        }
    }
    Ok(())
}

/// A radio channel, `[radio]` or a cell's own.
pub(super) fn channel(key: &str, r: &RadioSection) -> Result<(), Problem> {
    let key = |k: &str| format!("{key}.{k}");
    if r.cw_min > r.cw_max {
        return problem(key("cw_min"), "expected at most cw_max");
    }
    Ok(())
}

/// The beacons of the cells that share a channel must leave most of it to others.
pub(super) fn beacons_fit(s: &ScenarioFile) -> Result<(), Problem> {
    for cell in s.cell.iter().filter(|c| c.bearer.is_none()) {
        let radio = cell.radio.as_ref().unwrap_or(&s.radio);
        let body = s.l2.beacon_size.bytes() + radio.overhead.bytes();
        let air_time = radio.preamble + radio.basic_rate.time_for(body);
        let sharing = s.cell.iter().filter(|c| shares(c, cell)).count() as u64;
        if s.l2.beacon_period < air_time * 2 * sharing {
            return problem(
                "l2.beacon_period",
                format!(
                    "expected at least {}: a beacon takes {air_time} of the channel's time",
                    air_time * 2 * sharing
                ),
            );
        }
    }
    Ok(())
}

/// Whether two cells can lie within each other: by the clock or to other radios, each has a reach of its own; and there are layers.
pub(super) fn told_apart(a: &CellEntry, b: &CellEntry) -> bool {
    a.present.is_some() || b.present.is_some() || a.technology != b.technology || a.overlaid || b.overlaid
}

fn shares(a: &CellEntry, b: &CellEntry) -> bool {
    a.bearer.is_none() && b.bearer.is_none() && a.channel == b.channel
}

/// A cell's own intervals of router advertisements.
fn intervals(s: &ScenarioFile, cell: usize) -> Result<(), Problem> {
    let own = &s.cell[cell];
    let key = |k: &str| format!("cell[{cell}].ra_interval_{k}");
    let least = own.ra_interval_min.unwrap_or(s.address.ra_interval_min);
    let most = own.ra_interval_max.unwrap_or(s.address.ra_interval_max);
    if own.ra_interval_min.is_none() && own.ra_interval_max.is_none() {
        return Ok(());
    }
    timers::advertisements(&key, least, most)
}
