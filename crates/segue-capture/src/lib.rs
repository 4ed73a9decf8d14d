//! pcapng in and out, flows, and handover metrics.

pub mod handover;
pub mod pcapng;
