//! What Python sees of a run.

use crate::engine;
use crate::outputs::Recorded;
use crate::tables::Tables;
use pyo3::prelude::*;
use pyo3_arrow::PyTable;
use segue_sim::RunOutput;

/// Result of a run: metrics always; what was recorded, in memory or in files.
#[pyclass(frozen, module = "segue._native")]
pub(crate) struct Run {
    metrics_json: String,
    scenario_toml: String,
    recorded: Recorded,
}

impl Run {
    /// What a run measured, and what it recorded.
    pub(crate) fn new(output: &RunOutput, recorded: Recorded) -> Self {
        Self {
            metrics_json: serde_json::to_string(&output.metrics)
                .expect("metrics are plain numbers and names"),
            scenario_toml: output.scenario_toml.clone(),
            recorded,
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
    fn table(&self, name: &str) -> Option<PyTable> {
        self.recorded.tables_in_memory.as_ref()?.table(name)
    }
}

/// What a scenario says of itself.
#[pyclass(frozen, get_all, module = "segue._native")]
pub(crate) struct ScenarioInfo {
    name: String,
    description: String,
    toml: String,
}

/// Parses and validates a scenario without running it.
#[pyfunction]
#[pyo3(signature = (text, file, overrides))]
pub(crate) fn check(text: &str, file: &str, overrides: Vec<(String, String)>) -> PyResult<ScenarioInfo> {
    let scenario = engine::parse(text, file, &overrides)?;
    Ok(ScenarioInfo {
        name: scenario.name().to_owned(),
        description: scenario.description().to_owned(),
        toml: scenario.to_toml(),
    })
}
