//! Handover numbers from any capture.

mod adaptation;

pub use adaptation::{AdaptationTime, BIN_NS, Bin, MAX_BINS, ThroughputBins, adaptation_time};
