//! PyO3 glue of the Python package: `segue._native`.
//!
//! Nothing is decided here. A scenario's text goes in, results come out: metrics as one JSON document, tables as Arrow
//! over the PyCapsule interface, captures into files. Simulations run in Rust threads with the interpreter lock released.
//!
//! ```text
//! text, overrides, seed -> engine (segue-sim) -> RunOutput -> result::Run -> metrics JSON | tables (Arrow)
//!                                  \ outputs: captures (pcapng) and tables (Parquet) into files while it runs
//!                                  \ pool: threads, progress, Ctrl-C
//! captures -> analysis (segue-capture) -> JSON
//! ```

mod adaptation;
mod analysis;
mod arrow_table;
mod engine;
mod errors;
mod keys;
mod outputs;
mod part_file;
mod pool;
mod result;
mod tables;

use pyo3::prelude::*;

/// A run allocates and frees small things all the time, and of thousands of hosts what is used together should lie together.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The native module.
#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::adaptation::adaptation_time;
    #[pymodule_export]
    use super::analysis::analyze;
    #[pymodule_export]
    use super::errors::{CaptureError, RunError, ScenarioError};
    #[pymodule_export]
    use super::keys::{check_form, scenario_keys, scenario_problems, scenario_schema};
    #[pymodule_export]
    use super::pool::{Job, identities, run, run_many};
    #[pymodule_export]
    use super::result::{Run, ScenarioInfo, check};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
