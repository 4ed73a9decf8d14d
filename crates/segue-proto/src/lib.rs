//! The sans-IO protocol machines of Segue.
//!
//! Nothing here does I/O, reads a clock or draws from a global random generator. A machine is handed packets, link
//! events and the time, and is asked for packets, timers and events: see [`contract`].

#[macro_use]
mod counting;

pub mod address;
pub mod app;
pub mod congestion;
pub mod contract;
mod error_budget;
pub mod host;
pub mod ilnp;
pub mod l2;
pub mod location;
mod mac;
pub mod mip6;
pub mod nd;
pub mod random;
pub mod sctp;
pub mod shim;
pub mod sigma;
pub mod tcp;
pub mod time;
pub mod udp;
pub mod units;

pub use contract::{CellId, InterfaceId, LinkEvent, Transmit};
pub use error_budget::ErrorBudget;
pub use time::{Duration, Instant};
