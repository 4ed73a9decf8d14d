//! Flows: what they are, how they are found again, and what is noted of them while they live. Memory per flow is bounded,
//! and so is the number of flows.

mod closing;
pub(super) mod conn;
mod counters;
pub(super) mod datagrams;
pub(super) mod ends;
pub(super) mod finished;
pub(super) mod item;
pub(super) mod key;
pub(super) mod moved;
pub(super) mod mover;
pub(super) mod mptcp;
pub(super) mod parties;
pub(super) mod paths;
pub(super) mod progress;
pub(super) mod rates;
pub(super) mod sequence;
mod series;
pub(super) mod shares;
pub(super) mod table;
mod tags;
pub(super) mod twice;
pub(super) mod view;
