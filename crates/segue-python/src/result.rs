//! What Python sees of a run.

use crate::arrow_table::ArrowTable;
use crate::engine;
use crate::outputs::Recorded;
use crate::tables::Tables;
use pyo3::prelude::*;
use segue_sim::RunOutput;
use segue_sim::assertion::{Assertion, Verdict};
use segue_sim::junit;

/// Result of a run: metrics always; what was recorded, in memory or in files.
#[pyclass(frozen, module = "segue._native")]
pub(crate) struct Run {
    metrics_json: String,
    scenario_toml: String,
    recorded: Recorded,
    verdicts: Vec<Verdict>,
    scenario: String,
    duration_s: f64,
}

impl Run {
    /// What a run measured, what it recorded, and what the conditions come to.
    pub(crate) fn new(output: &RunOutput, recorded: Recorded, conditions: &[Assertion]) -> Self {
        let metrics = &output.metrics;
        let verdicts: Vec<Verdict> = conditions.iter().map(|c| c.check(metrics)).collect();
        Self {
            metrics_json: serde_json::to_string(&output.metrics)
                .expect("metrics are plain numbers and names"),
            scenario_toml: output.scenario_toml.clone(),
            recorded,
            verdicts,
            scenario: metrics.scenario.clone(),
            duration_s: metrics.duration_s,
        }
    }
}

#[pymethods]
impl Run {
    /// Metrics as one JSON document.
    #[getter]
    fn metrics_json(&self) -> &str {
        &self.metrics_json
    }

    /// The scenario as run, overrides applied.
    #[getter]
    fn scenario_toml(&self) -> &str {
        &self.scenario_toml
    }

    /// Of each condition, those of the scenario first: the condition, whether it holds, and both in words.
    #[getter]
    fn verdicts(&self) -> Vec<(String, bool, String)> {
        let plain = |v: &Verdict| (v.condition.clone(), v.holds, v.text.clone());
        self.verdicts.iter().map(plain).collect()
    }

    /// The conditions as test cases of a JUnit file; one that passes if there are none.
    #[getter]
    fn junit(&self) -> String {
        let mut cases: Vec<junit::Case> = self.verdicts.iter().map(junit::Case::from).collect();
        if cases.is_empty() {
            cases.push(junit::Case::passed("run"));
        }
        junit::document("segue run", &self.scenario, self.duration_s, &cases)
    }

    /// Names of the tables that were recorded.
    #[getter]
    fn table_names(&self) -> Vec<&'static str> {
        if self.recorded.tables_in_memory.is_some() || self.recorded.tables_in_files {
            Tables::NAMES.to_vec()
        } else {
            Vec::new()
        }
    }

    /// Names of the captures that were written.
    #[getter]
    fn capture_names(&self) -> Vec<String> {
        self.recorded.captures.clone()
    }

    /// A table over the Arrow PyCapsule interface; `None` if it is not in memory.
    fn table(&self, name: &str) -> Option<ArrowTable> {
        self.recorded.tables_in_memory.as_ref()?.table(name)
    }
}

/// What a scenario says of itself.
#[pyclass(frozen, get_all, module = "segue._native")]
pub(crate) struct ScenarioInfo {
    name: String,
    description: String,
    toml: String,
    warnings: Vec<String>,
    refusal: Option<String>,
}

/// Parses and validates a scenario, and conditions on its run, without running it.
#[pyfunction]
#[pyo3(signature = (text, file, overrides, conditions=None))]
pub(crate) fn check(
    text: &str,
    file: &str,
    overrides: Vec<(String, String)>,
    conditions: Option<Vec<String>>,
) -> PyResult<ScenarioInfo> {
    let scenario = engine::parse(text, file, &overrides)?;
    engine::conditions(&scenario, &conditions.unwrap_or_default())?;
    Ok(ScenarioInfo {
        name: scenario.name().to_owned(),
        description: scenario.description().to_owned(),
        toml: scenario.to_toml(),
        warnings: scenario
            .warnings()
            .iter()
            .map(|warning| warning.text.clone())
            .collect(),
        refusal: segue_sim::check_model(&scenario)
            .err()
            .map(|error| error.to_string()),
    })
}
