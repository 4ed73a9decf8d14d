//! The one map from Rust errors to Python exceptions.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};

create_exception!(
    segue,
    ScenarioError,
    PyValueError,
    "A scenario or an override is wrong; the message names file, key and expectation in one line."
);
create_exception!(
    segue,
    RunError,
    PyRuntimeError,
    "A run could not be carried to its end."
);

create_exception!(
    segue,
    CaptureError,
    PyValueError,
    "A capture cannot be analysed; the message names the file and what was expected in one line."
);

/// What can go wrong in a job.
#[derive(Clone, Debug)]
pub(crate) enum JobError {
    /// The scenario is wrong.
    Scenario(String),
    /// The run failed.
    Run(String),
}

impl From<JobError> for PyErr {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Scenario(message) => ScenarioError::new_err(message),
            JobError::Run(message) => RunError::new_err(message),
        }
    }
}
