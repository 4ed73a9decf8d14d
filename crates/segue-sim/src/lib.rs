//! Deterministic simulator: scheduler, links, radio cells, mobility, scenarios.

pub mod link;
pub mod loss;
pub mod mobility;
pub mod output;
pub mod radio;
pub mod scheduler;
pub mod store;

pub use output::{Metrics, RunOptions, RunOutput, Spread, Trace};
