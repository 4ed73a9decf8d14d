//! What Python sees of a run.

use crate::engine;
use crate::tables::Tables;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3_arrow::PyTable;
use segue_sim::RunOutput;

/// Result of a run: metrics always; tables and captures if asked for.
#[pyclass(frozen, module = "segue._native")]
pub(crate) struct Run {
    metrics_json: String,
    scenario_toml: String,
    tables: Option<Tables>,
    captures: Vec<(String, Vec<u8>)>,
}

impl Run {
    /// Takes the columns over, without copying those of numbers.
    pub(crate) fn new(output: RunOutput) -> Self {
        Self {
            metrics_json: serde_json::to_string(&output.metrics)
                .expect("metrics are plain numbers and names"),
            scenario_toml: output.scenario_toml,
            tables: output.trace.map(Tables::new),
            captures: output.captures,
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
        if self.tables.is_some() {
            Tables::NAMES.to_vec()
        } else {
            Vec::new()
        }
    }

    /// A table over the Arrow PyCapsule interface; `None` if no trace was recorded or no table has that name.
    fn table(&self, name: &str) -> Option<PyTable> {
        self.tables.as_ref()?.table(name)
    }

    /// pcapng files as (file name, bytes).
    fn captures<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyBytes>)> {
        self.captures
            .iter()
            .map(|(name, bytes)| (name.clone(), PyBytes::new(py, bytes)))
            .collect()
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
