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
//! | SFR, split fast retransmit | `sender/loss`, beside this folder | a chunk on a slow path is taken for lost when later ones arrive over a fast one |
//! | DAC, delayed acks for CMT | `receiver/acknowledgement`, beside this folder | a SACK for every packet, for there is nearly always a gap |
//! | retransmission policy | `rtx` | |
//! | CMT-PF | `failed`, and `potentially_failed` of RFC 7829 | a dead path gets data until Path.Max.Retrans, and the receive buffer fills |
//! | what SACKs over several paths leave open | `ambiguity` | reneging that is none, round trips that are too short |
//! | leaving a path | `quit` | data on a dead path waits for T3-rtx |
//!
//! Beyond the paper, against what several paths of different speed do to the receive buffer, each off unless asked for:
//!
//! | remedy | file |
//! |---|---|
//! | schedulers: which of the paths with room gets the next packet | `scheduler` |
//! | buffer splitting: no path fills a buffer that others need | `buffer_split` |
//! | opportunistic retransmission, with a penalty for the path that holds the others up | `opportunistic` |
//! | NR-SACK: what the receiver keeps takes no room in the send buffer | `nr_sack` |
//! | coupled congestion control | `coupling`, [`Coupling`](crate::congestion::Coupling) |
//!
//! Congestion control is kept by path, fast recovery with it: the paths are taken to have no bottleneck in common.
//! [`Config::multipath`](super::Config::multipath) turns all of it on; without it nothing here acts.

mod ambiguity;
mod buffer_split;
mod config;
mod counters;
mod coupling;
mod failed;
mod nr_sack;
mod opportunistic;
mod quit;
mod rtx;
mod schedule;
pub mod scheduler;
mod state;
mod timeout;

pub use config::{BufferSplit, Cuc, MultipathConfig, RtxPolicy};
pub use counters::MultipathCounters;
pub(super) use failed::pf_max_retrans;
pub(super) use nr_sack::uses_nr_sack;
pub use scheduler::{Scheduler, SchedulerKind};
pub(super) use state::{Multipath, PathShare};
