//! Layer-2 handover: how long attaching to a cell takes, and how its loss is noticed.
//!
//! [`Layer2`] is the machine of one radio interface. The driver tells it to attach, which beacons the radio heard and
//! when the coverage of a cell ended; it answers with the [`LinkEvent`](crate::LinkEvent)s that the host is to be told. It models the
//! time of the IEEE 802.11 procedures (detection, probe, authentication, reassociation; Mishra, Shin and Arbaugh
//! 2003), not their frames: nothing of them is sent.

mod latency;
mod machine;

pub use latency::{DurationRange, Latency, Phase, Phases};
pub use machine::{Config, L2Event, Layer2, LossDetection, State};

#[cfg(test)]
mod tests;
