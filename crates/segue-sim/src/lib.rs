//! Deterministic simulator: scheduler, links, radio cells, mobility, scenarios.

pub mod output;

pub use output::{Metrics, RunOptions, RunOutput, Spread, Trace};
