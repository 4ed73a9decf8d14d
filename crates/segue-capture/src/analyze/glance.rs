//! What an analysis that goes on has found so far.

use super::model::{Flow, Handover};
use serde::Serialize;

/// What an analysis that goes on has found so far: what its result would say if the capture ended here, of the flows that matter
/// most.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Glance {
    /// As [`Analysis::start_time_ns`](super::Analysis::start_time_ns).
    pub start_time_ns: u64,
    /// Newest packet, seconds since then.
    pub time_s: f64,
    /// For how long none has come, by the clock of who watches, seconds.
    pub quiet_s: f64,
    /// Packets read.
    pub packets: u64,
    /// Flows that were seen.
    pub flows_total: u64,
    /// Handovers of all flows.
    pub handovers: u64,
    /// The last of them.
    pub last_handover: Option<Handover>,
    /// Directions of flows: those that died, those that handed over, those with most data; in the order of their flows.
    pub flows: Vec<GlancedFlow>,
}

/// A flow that goes on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GlancedFlow {
    /// As it would be reported.
    pub flow: Flow,
    /// For how long none of its directions has had new data, seconds to [`Glance::time_s`].
    pub silent_s: f64,
    /// Handovers of both directions.
    pub handovers: u64,
    /// The last of them.
    pub last_handover: Option<Handover>,
}
