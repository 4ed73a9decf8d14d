//! Concurrent multipath transfer (CMT): new data on all paths at once, and what that asks of the rules for one path.
//!
//! Sources: Iyengar, Amer and Stewart, "Concurrent multipath transfer using SCTP multihoming over independent end-to-end
//! paths", IEEE/ACM Transactions on Networking 14(5), 2006; Natarajan, Iyengar, Amer and Stewart, "Concurrent multipath
//! transfer using transport layer multihoming: performance under network failures", MILCOM 2006; Budzisz, Ferrús,
//! Casadevall and Amer, "On concurrent multipath transfer in SCTP-based handover scenarios" (paper 003).

mod config;
pub mod scheduler;

pub use config::{Cuc, MultipathConfig, RtxPolicy};
