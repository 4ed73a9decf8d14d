#![cfg_attr(feature = "sctp", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "sctp"), doc = "Protocol machines without I/O; see the README.")]

#[cfg(any(feature = "mip6", feature = "ilnp"))]
#[macro_use]
mod counting;

#[cfg(feature = "nd")]
pub mod address;
#[cfg(feature = "host")]
pub mod app;
#[cfg(any(feature = "sctp", feature = "tcp"))]
pub mod congestion;
pub mod contract;
#[cfg(any(feature = "sctp", feature = "tcp"))]
mod earliest;
mod error_budget;
#[cfg(feature = "host")]
pub mod host;
#[cfg(feature = "ilnp")]
pub mod ilnp;
#[cfg(feature = "host")]
pub mod l2;
#[cfg(feature = "location")]
pub mod location;
#[cfg(any(feature = "location", feature = "mip6"))]
mod mac;
#[cfg(feature = "mip6")]
pub mod mip6;
#[cfg(feature = "nd")]
pub mod nd;
pub mod random;
#[cfg(any(feature = "mip6", feature = "ilnp"))]
mod reachability;
#[cfg(feature = "sctp")]
pub mod sctp;
#[cfg(feature = "nd")]
pub mod shim;
#[cfg(feature = "sigma")]
pub mod sigma;
#[cfg(feature = "tcp")]
pub mod tcp;
pub mod time;
#[cfg(feature = "host")]
pub mod udp;
pub mod units;

pub use contract::{CellId, Departure, InterfaceId, LinkEvent, Transmit};
pub use error_budget::{ErrorBudget, TokenBucket};
pub use time::{Duration, Instant};
