//! `sharing` of a cell with bearers: how those who are attached share its downlink and its uplink.

use super::keys::range::{at_most, within};
use super::model::{CellEntry, ScenarioFile};
use super::validate::{Problem, problem};
use crate::cell_scheduler::{Discipline, SchedulerConfig};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use segue_proto::Duration;
use segue_proto::units::Decibel;
use serde::{Deserialize, Serialize};

/// `sharing` of a cell: a table, or the scheduler alone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharingSection {
    /// Whose turn is next.
    pub scheduler: Discipline,
    /// The longest turn: a transmission time interval, 1 ms of LTE. Technology "5g" has 0.5 ms.
    #[serde(default = "a_millisecond")]
    #[schemars(extend("x-range" = within("10 us", "1 s")))]
    pub slot: Duration,
    /// For how long the averages of `proportional-fair` remember.
    #[serde(default = "a_second")]
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub window: Duration,
    /// Signal to noise at the border of the cell, from which that at other places follows, and the rate of each host. Left out:
    /// all have the bearer's rate everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("-10 dB", "100 dB").by("3GPP TR 36.942 annex A.2: at less than -10 dB nothing is sent")))]
    pub edge_snr: Option<Decibel>,
}

impl SharingSection {
    /// What a direction of the cell is shared by.
    pub(crate) const fn scheduler(&self) -> SchedulerConfig {
        SchedulerConfig {
            discipline: self.scheduler,
            slot: self.slot,
            window: self.window,
        }
    }
}

/// JSON Schema of the key: a table, or the scheduler alone.
pub(super) fn schema(generator: &mut SchemaGenerator) -> Schema {
    let (scheduler, table) = (
        generator.subschema_for::<Discipline>(),
        generator.subschema_for::<SharingSection>(),
    );
    json_schema!({ "anyOf": [scheduler, table] })
}

fn a_millisecond() -> Duration {
    Duration::from_millis(1)
}

fn a_second() -> Duration {
    Duration::from_secs(1)
}

pub(super) fn check(s: &ScenarioFile) -> Result<(), Problem> {
    for (i, cell) in s.cell.iter().enumerate() {
        if let Some(sharing) = &cell.sharing {
            of_cell(&|k| format!("cell[{i}].{k}"), cell, sharing)?;
        }
    }
    Ok(())
}

fn of_cell(key: &impl Fn(&str) -> String, cell: &CellEntry, sharing: &SharingSection) -> Result<(), Problem> {
    let Some(bearer) = &cell.bearer else {
        return problem(
            key("sharing"),
            "a radio channel is shared by its stations as they contend for it: expected a cell with bearers, as of technology \"lte\"",
        );
    };
    for (name, direction) in [("down", &bearer.down), ("up", &bearer.up)] {
        let key = |k: &str| key(&format!("bearer.{name}.{k}"));
        if direction.trace.is_some() {
            return problem(
                key("trace"),
                "expected none in a cell with `sharing`: its rate is that of the whole cell",
            );
        }
        if !direction.set_up.is_zero() {
            return problem(key("set_up"), "expected \"0 s\" in a cell with `sharing`");
        }
    }
    if sharing.window <= sharing.slot {
        return problem(key("sharing.window"), "expected more than a slot");
    }
    if sharing.edge_snr.is_some() && cell.present.is_some() {
        return problem(
            key("sharing.edge_snr"),
            "the cell is there by the clock, at no place: expected none",
        );
    }
    Ok(())
}

/// Least signal to noise ratio of the model of 3GPP TR 36.942 annex A.2, dB.
pub(crate) const LEAST_SNR_DB: f64 = -10.0;
