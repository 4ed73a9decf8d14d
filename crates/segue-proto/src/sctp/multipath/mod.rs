//! Concurrent multipath transfer (CMT): new data on all paths at once, and what that asks of rules made for one path.
//!
//! Sources: Iyengar, Amer and Stewart, "Concurrent multipath transfer using SCTP multihoming over independent end-to-end
//! paths", IEEE/ACM Transactions on Networking 14(5), 2006; Natarajan, Iyengar, Amer and Stewart, "Concurrent multipath
//! transfer using transport layer multihoming: performance under network failures", MILCOM 2006; Budzisz, Ferrús,
//! Casadevall and Amer, "On concurrent multipath transfer in SCTP-based handover scenarios" (paper 003).
//!
//! | part | file | without it |
//! |---|---|---|
//! | send where a window has room | `schedule` | one path at a time |
//! | CUC, cwnd update for CMT | `sender/cuc`, beside this folder | a cwnd stands still while the cumulative TSN ack waits for another path |
//! | SFR, split fast retransmit | `sender/loss_detection`, beside this folder | a chunk on a slow path is taken for lost when later ones arrive over a fast one |
//! | DAC, delayed acks for CMT | `receiver/acknowledgement`, beside this folder | a SACK for every packet, for there is nearly always a gap |
//! | retransmission policy | `rtx` | |
//! | what T3-rtx spares | `timeout` | a window goes out twice |
//! | CMT-PF | `peer/errors`, beside this folder | a dead path gets data until Path.Max.Retrans, and the receive buffer fills |
//! | what SACKs over several paths leave open | `round_trips`, `sender/overtaken` | reneging that is none, round trips that are too short |
//! | an episode of losses for each path | `recovery` | a loss on one path cuts all |
//! | leaving a path | `sender/flight/retransmission` | data on a dead path waits for T3-rtx |
//!
//! Beyond the paper, against what several paths of different speed do to the receive buffer, each off unless asked for:
//!
//! | remedy | file |
//! |---|---|
//! | schedulers: which of the paths with room gets the next packet | `scheduler` |
//! | buffer splitting: no path fills a buffer that others need | `buffer_split` |
//! | opportunistic retransmission, with a penalty for the path that holds the others up | `opportunistic` |
//! | NR-SACK: what the receiver keeps takes no room in the send buffer | `sender/nr_sack`, beside this folder |
//! | coupled congestion control | `coupling`, [`Coupling`](crate::congestion::Coupling) |
//!
//! Congestion control is kept by path, fast recovery with it: the paths are taken to have no bottleneck in common.
//! [`Config::multipath`](super::Config::multipath) turns all of it on; without it nothing here acts.

mod buffer_split;
mod cmt_path;
pub(in crate::sctp) mod config;
mod counters;
mod coupling;
mod opportunistic;
mod recovery;
mod round_trips;
mod rtx;
mod schedule;
pub mod scheduler;
#[cfg(test)]
mod tests;
mod timeout;

pub use config::{BufferSplit, Cuc, MultipathConfig, RtxPolicy};
pub use counters::MultipathCounters;
pub use scheduler::{Scheduler, SchedulerKind};

use super::ids::PathId;
use super::per_path::PerPath;
use cmt_path::CmtPath;

/// What an association keeps that sends on several paths at once.
#[derive(Debug)]
pub(in crate::sctp) struct Concurrent {
    settings: MultipathConfig,
    scheduler: Box<dyn Scheduler>,
    /// The peer's window stopped a path with room since the scheduler was asked last.
    was_blocked: bool,
    /// The path that the SACK at hand came over.
    sack_path: Option<PathId>,
    shares: PerPath<CmtPath>,
}

impl Concurrent {
    pub(in crate::sctp) fn new(settings: MultipathConfig) -> Self {
        Self {
            settings,
            scheduler: settings.scheduler.begin(),
            was_blocked: false,
            sack_path: None,
            shares: PerPath::default(),
        }
    }

    /// What is kept of a path.
    fn share(&self, path: PathId) -> CmtPath {
        self.shares.get(path).copied().unwrap_or_default()
    }

    /// A chunk is sent on a path.
    pub(in crate::sctp) fn note_sent(&mut self, path: PathId) {
        self.shares.open(path).note_sent();
    }

    /// Chunks of a path were found lost.
    pub(in crate::sctp) fn note_lost(&mut self, path: PathId, chunks: u32) {
        self.shares.open(path).on_lost(chunks);
    }
}
