//! pcapng in and out, flows, handover metrics, and what the two ends of TCP saw.

pub mod analyze;
pub mod handover;
pub mod pcapng;
pub mod tcp_ends;
