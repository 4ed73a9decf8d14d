//! The calls into the simulator, in one place.

use crate::errors::JobError;
use crate::outputs::{Outputs, Wanted};
use crate::result::Run;
use segue_sim::assertion::Assertion;
use segue_sim::{RunError, RunOptions, Scenario};
use sha2::{Digest as _, Sha256};
use std::fmt::{self, Write as _};
use std::sync::atomic::AtomicBool;

/// Parses and validates a scenario.
pub(crate) fn parse(text: &str, file: &str, overrides: &[(String, String)]) -> Result<Scenario, JobError> {
    Scenario::from_toml(text, file, overrides).map_err(|error| JobError::Scenario(error.to_string()))
}

/// The conditions of a scenario, then those of a command line.
pub(crate) fn conditions(scenario: &Scenario, given: &[String]) -> Result<Vec<Assertion>, JobError> {
    let given = Assertion::of_command_line(given).map_err(JobError::Scenario)?;
    Ok(scenario.file().assert.iter().cloned().chain(given).collect())
}

/// A digest of what a run follows from but the program: the scenario as text, its `Debug` form (which has what was read from files,
/// and no secrets), what is warned of, the seed, whether tables are recorded, and the conditions.
pub(crate) fn identity(
    scenario: &Scenario,
    seed: Option<u64>,
    traces: bool,
    conditions: &[String],
) -> [u8; 32] {
    let mut digest = Digesting(Sha256::new());
    let parts = (
        scenario.to_toml(),
        scenario.file(),
        scenario.warnings(),
        seed.unwrap_or(scenario.file().seed),
        traces,
        conditions,
    );
    write!(digest, "{parts:?}").expect("a digest takes everything");
    digest.0.finalize().into()
}

/// A digest that one can write to.
struct Digesting(Sha256);

impl fmt::Write for Digesting {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

/// Runs a scenario; `None` if `cancel` was set meanwhile, and then no file is left behind.
pub(crate) fn run(
    scenario: &Scenario,
    seed: Option<u64>,
    wanted: &Wanted,
    conditions: &[Assertion],
    cancel: &AtomicBool,
) -> Result<Option<Run>, JobError> {
    let options = RunOptions {
        seed,
        trace: wanted.traces(),
        pcap: wanted.pcap_folder.is_some(),
    };
    let mut outputs = Outputs::new(wanted);
    match segue_sim::run_into(scenario, options, Some(cancel), &mut outputs) {
        Ok(output) => {
            let recorded = outputs
                .finish()
                .map_err(|error| JobError::Run(error.to_string()))?;
            Ok(Some(Run::new(&output, recorded, conditions)))
        }
        Err(RunError::Cancelled) => Ok(None),
        Err(error @ (RunError::NoModel { .. } | RunError::NoProxy { .. })) => {
            Err(JobError::Scenario(error.to_string()))
        }
        Err(error) => Err(JobError::Run(error.to_string())),
    }
}
