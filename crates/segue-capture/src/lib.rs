//! pcapng in and out, and handover metrics: of what a simulation is told, and of captures of any kind.

pub mod analyze;
pub mod handover;
pub mod pcapng;
pub mod record;
pub mod rows;
