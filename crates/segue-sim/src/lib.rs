//! Deterministic simulator.
//!
//! A [`Scenario`] (TOML) becomes a network of hosts, routers, links and radio cells; [`run`] moves it through virtual
//! time and gives metrics, and on demand tables and captures. The same scenario and seed give the same bits on every
//! machine: the hash of the event log says so.

pub mod assertion;
mod build;
mod capacity;
pub mod captures;
pub mod carried;
pub mod cell_scheduler;
pub mod constellation;
mod hints;
pub mod junit;
pub mod link;
pub mod link_trace;
pub mod load;
pub mod loss;
pub mod mobility;
mod network;
pub mod output;
pub mod population;
pub mod quality;
pub mod radio;
pub mod realtime;
pub mod recorder;
mod run;
pub mod scenario;
pub mod scheduler;
pub mod sink;
pub mod store;
pub mod theory;
mod transfer;
pub mod warnings;

pub use output::{Metrics, RunOptions, RunOutput, Trace};
pub use population::Spread;
pub use run::{RunError, check_model, run, run_into, run_with_cancel};
pub use scenario::{Scenario, ScenarioError};
pub use sink::{Sink, SinkError};
