//! The calls into the simulator, in one place.

use crate::errors::JobError;
use segue_sim::{RunError, RunOptions, RunOutput, Scenario};
use std::sync::atomic::AtomicBool;

/// Parses and validates a scenario.
pub(crate) fn parse(text: &str, file: &str, overrides: &[(String, String)]) -> Result<Scenario, JobError> {
    Scenario::from_toml(text, file, overrides).map_err(|error| JobError::Scenario(error.to_string()))
}

/// Runs a scenario; `None` if `cancel` was set meanwhile.
pub(crate) fn run(
    scenario: &Scenario,
    options: RunOptions,
    cancel: &AtomicBool,
) -> Result<Option<RunOutput>, JobError> {
    match segue_sim::run_with_cancel(scenario, options, cancel) {
        Ok(output) => Ok(Some(output)),
        Err(RunError::Cancelled) => Ok(None),
        Err(error) => Err(JobError::Run(error.to_string())),
    }
}
