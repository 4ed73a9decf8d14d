//! What a scenario may say.

use crate::errors::JobError;
use pyo3::prelude::*;
use segue_sim::scenario::keys;
use segue_sim::scenario::problems::problems;

/// JSON Schema of scenario files, as a JSON document.
#[pyfunction]
pub(crate) fn scenario_schema() -> String {
    keys::schema().to_string()
}

/// Every key of a scenario, as a JSON document: a list of what `segue_sim::scenario::keys::Key` has.
#[pyfunction]
pub(crate) fn scenario_keys() -> String {
    serde_json::to_string(&keys::keys()).unwrap_or_default()
}

/// Reads a scenario for its form alone: what `scenario_schema` is about.
#[pyfunction]
pub(crate) fn check_form(text: &str, file: &str) -> PyResult<()> {
    Ok(keys::check_form(text, file).map_err(|error| JobError::Scenario(error.to_string()))?)
}

/// What is wrong: line and column, if it is in the file, and what.
type Found = (Option<(usize, usize)>, String);

/// All that is wrong with a scenario file, and whether there may be more.
#[pyfunction]
pub(crate) fn scenario_problems(text: &str, file: &str) -> (Vec<Found>, bool) {
    let problems = problems(text, file);
    let found = problems
        .found
        .into_iter()
        .map(|found| (found.at, found.error.to_string()));
    (found.collect(), problems.more)
}
