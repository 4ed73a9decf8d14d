//! The plan of a network: which cell serves a host from when, and how long ahead the host is told.

use super::mobility::model_of;
use super::model::{AddressMethod, MobileSection, ScenarioFile};
use super::validate::{Problem, problem, written};
use schemars::JsonSchema;
use segue_proto::Duration;
use serde::{Deserialize, Serialize};

/// An entry of `plan` of a mobile host: `{ from = "12 s", cell = "sat-01-07" }`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanEntry {
    /// From when.
    pub from: Duration,
    /// The cell that serves, until the next entry.
    pub cell: String,
}

pub(super) fn check(s: &ScenarioFile) -> Result<(), Problem> {
    for (i, m) in s.mobile.iter().enumerate() {
        let key = |k: &str| format!("{}.{k}", s.mobile.key(i));
        for (n, entry) in m.plan.iter().enumerate() {
            if s.cell.iter().all(|c| c.name != entry.cell) {
                let expected = format!("`{}`: expected the name of a cell", entry.cell);
                return problem(key(&format!("plan[{n}].cell")), expected);
            }
            if n > 0 && m.plan[n - 1].from >= entry.from {
                return problem(
                    key(&format!("plan[{n}].from")),
                    "expected a later time than in the entry before",
                );
            }
        }
        told_ahead(s, m).or_else(|expected| problem(key("told_ahead"), expected))?;
    }
    Ok(())
}

fn told_ahead(s: &ScenarioFile, m: &MobileSection) -> Result<(), String> {
    let Some(ahead) = m.told_ahead else { return Ok(()) };
    let gaps = m.plan.windows(2).map(|pair| pair[1].from - pair[0].from);
    let Some(most) = gaps.min() else {
        return Err("there is nothing to tell: expected a `plan` of two cells or more".to_owned());
    };
    if ahead.is_zero() || ahead > most {
        return Err(format!(
            "expected more than 0 s and at most {}: no entry of the plan is told of before the one before it",
            written(most)
        ));
    }
    if model_of(m).is_some() {
        return Err("expected a way that is known from the beginning: a model draws this one".to_owned());
    }
    if s.address.method == AddressMethod::Dhcpv6 {
        return Err(
            "with method \"dhcpv6\" the server chooses addresses: expected another method".to_owned(),
        );
    }
    Ok(())
}

/// The changes of a plan, each with how long it is until then when the host is told: (time, from, to, after).
pub(crate) fn told<'a>(
    m: &'a MobileSection,
) -> impl Iterator<Item = (Duration, &'a str, &'a str, Duration)> + 'a {
    let pairs = m.plan.windows(2);
    pairs.filter_map(move |pair| {
        let after = m.told_ahead?.min(pair[1].from);
        Some((pair[1].from - after, &pair[0].cell[..], &pair[1].cell[..], after))
    })
}
