//! The calls into the simulator, in one place.

use crate::errors::JobError;
use crate::outputs::{Outputs, Wanted};
use crate::result::Run;
use segue_sim::{RunError, RunOptions, Scenario};
use std::sync::atomic::AtomicBool;

/// Parses and validates a scenario.
pub(crate) fn parse(text: &str, file: &str, overrides: &[(String, String)]) -> Result<Scenario, JobError> {
    Scenario::from_toml(text, file, overrides).map_err(|error| JobError::Scenario(error.to_string()))
}

/// Runs a scenario; `None` if `cancel` was set meanwhile, and then no file is left behind.
pub(crate) fn run(
    scenario: &Scenario,
    seed: Option<u64>,
    wanted: &Wanted,
    cancel: &AtomicBool,
) -> Result<Option<Run>, JobError> {
    let options = RunOptions {
        seed,
        trace: wanted.trace || wanted.trace_folder.is_some(),
        pcap: wanted.pcap_folder.is_some(),
    };
    let mut outputs = Outputs::new(wanted);
    match segue_sim::run_into(scenario, options, Some(cancel), &mut outputs) {
        Ok(output) => {
            let recorded = outputs
                .finish()
                .map_err(|error| JobError::Run(error.to_string()))?;
            Ok(Some(Run::new(&output, recorded)))
        }
        Err(RunError::Cancelled) => Ok(None),
        Err(error) => Err(JobError::Run(error.to_string())),
    }
}
