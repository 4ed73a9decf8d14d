//! Runs one scenario file and prints its metrics as JSON: the Segue side of `make bench`.
//!
//! A process of its own, so that start-up, reading the scenario and the run are all in the measured time, as they are
//! for ns-2; no Python, since what is compared is the simulator.
//!
//! ```text
//! segue-bench scenarios/bench/bulk.toml
//! ```

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a driver: it reads the scenario file and prints the result"
)]

use std::path::PathBuf;
use std::process::ExitCode;

use segue_sim::{RunOptions, Scenario};

/// As in the Python extension, which is what users run.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match bench() {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("segue-bench: {message}");
            ExitCode::from(2)
        }
    }
}

fn bench() -> Result<String, Box<dyn std::error::Error>> {
    let file = PathBuf::from(
        std::env::args_os()
            .nth(1)
            .ok_or("usage: segue-bench SCENARIO.toml")?,
    );
    let text = std::fs::read_to_string(&file)?;
    let scenario = Scenario::from_toml(&text, &file.display().to_string(), &[])?;
    let output = segue_sim::run(&scenario, RunOptions::default())?;
    Ok(serde_json::to_string(&output.metrics)?)
}
