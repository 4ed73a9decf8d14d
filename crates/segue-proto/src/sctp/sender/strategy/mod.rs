//! Where data goes, and what a loss does to windows: on one path at a time, or on several at once.
//!
//! RFC 9260 sends on one path at a time, and keeps one episode of losses; concurrent multipath transfer
//! ([`multipath`](crate::sctp::multipath)) sends on all, and keeps both by path. What is sent where, and what an episode of losses
//! is, differs by a method here. Which reports make a chunk lost (SFR, MFR), CUC and delayed acknowledgements are rules that
//! [`Config::multipath`] switches one by one, in `loss_detection`, `cuc` and the receiver.

pub(in crate::sctp) mod lent;
mod single_path;

use super::context::Context;
use super::flight::Flight;
use super::plan::Plan;
use super::progress::{PathProgress, Progress};
use super::recovery::Recovery;
use crate::congestion::Gain;
use crate::sctp::ids::PathId;
use crate::sctp::multipath::Concurrent;
use crate::sctp::peer::Peer;
use crate::sctp::{Config, MultipathCounters};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use lent::{Lent, View};
use segue_wire::Tsn;
use single_path::SinglePath;
use smallvec::SmallVec;

/// How an association uses the peer's addresses.
#[derive(Debug)]
pub(super) enum Strategy {
    SinglePath(SinglePath),
    Concurrent(Box<Concurrent>),
}

impl Strategy {
    pub(super) fn new(config: &Config) -> Self {
        match config.multipath {
            None => Self::SinglePath(SinglePath::default()),
            Some(settings) => Self::Concurrent(Box::new(Concurrent::new(settings))),
        }
    }

    fn concurrent(&self) -> Option<&Concurrent> {
        match self {
            Self::SinglePath(_) => None,
            Self::Concurrent(concurrent) => Some(concurrent),
        }
    }

    pub(super) fn is_concurrent(&self) -> bool {
        self.concurrent().is_some()
    }
}

/// What is sent, and where.
impl Strategy {
    /// What the next packet of data is to begin with.
    #[inline]
    pub(super) fn plan(&mut self, lent: &mut Lent<'_>) -> Option<Plan> {
        match self {
            Self::SinglePath(single) => single.plan(lent),
            Self::Concurrent(concurrent) => concurrent.plan(lent),
        }
    }

    /// Where a marked chunk goes.
    pub(super) fn retransmission_path(&self, view: View<'_>, tsn: Tsn) -> Option<PathId> {
        match self {
            Self::SinglePath(_) => single_path::retransmission_path(view, tsn),
            Self::Concurrent(concurrent) => concurrent.retransmission_path(view, tsn),
        }
    }

    /// A new opportunity to send (Max.Burst, RFC 9260 section 6.1 rule D).
    #[inline]
    pub(super) fn open_burst(&mut self, max_burst: Option<u32>, peer: &Peer) {
        match self {
            Self::SinglePath(single) => single.open_burst(max_burst),
            Self::Concurrent(concurrent) => concurrent.open_bursts(max_burst, peer),
        }
    }

    /// A packet of new data goes out.
    #[inline]
    pub(super) fn new_data_goes(&mut self, now: Instant, path: PathId) {
        match self {
            Self::SinglePath(single) => single.use_burst(),
            Self::Concurrent(concurrent) => concurrent.new_data_goes(now, path),
        }
    }

    /// A packet of retransmissions goes out; `was_forced`: it has used up what was forced wherever it goes.
    pub(super) fn retransmissions_go(&mut self, path: PathId, was_forced: bool) {
        match self {
            Self::SinglePath(single) if !was_forced => single.use_burst(),
            Self::SinglePath(_) => {}
            Self::Concurrent(concurrent) => concurrent.retransmissions_go(path, was_forced),
        }
    }

    /// A chunk is sent on a path.
    #[inline]
    pub(super) fn note_sent(&mut self, path: PathId) {
        if let Self::Concurrent(concurrent) = self {
            concurrent.note_sent(path);
        }
    }
}

/// What is acknowledged.
impl Strategy {
    /// A SACK begins to be dealt with that came in a packet with these addresses.
    #[inline]
    pub(super) fn begin_sack(&mut self, from: Ipv6Addr, to: Ipv6Addr, peer: &Peer) {
        if let Self::Concurrent(concurrent) = self {
            concurrent.begin_sack(from, to, peer);
        }
    }

    /// Whether the SACK at hand may end the round trip that is measured on `path`, of that length.
    #[inline]
    pub(super) fn may_end_round_trip(
        &mut self,
        path: PathId,
        round_trip: Duration,
        peer: &Peer,
        counters: &mut MultipathCounters,
    ) -> bool {
        match self {
            Self::SinglePath(_) => true,
            Self::Concurrent(concurrent) => concurrent.may_end_round_trip(path, round_trip, peer, counters),
        }
    }

    /// Something on the path of `progress` is newly acknowledged. For the growth of cwnd: whether its ack point advanced, and
    /// whether losses are being made good.
    #[inline]
    pub(super) fn on_ack(
        &mut self,
        progress: &PathProgress,
        cumulative_advanced: bool,
        recovery: &Recovery,
    ) -> (bool, bool) {
        match self {
            Self::SinglePath(_) => single_path::window_state(recovery, cumulative_advanced),
            Self::Concurrent(concurrent) => concurrent.on_ack(progress, cumulative_advanced),
        }
    }

    /// By how much each path's window is to open; nothing where none is coupled.
    #[inline]
    pub(super) fn gains(&self, peer: &Peer) -> SmallVec<[(PathId, Gain); 4]> {
        match self {
            Self::SinglePath(_) => SmallVec::new(),
            Self::Concurrent(concurrent) => concurrent.coupled_gains(peer),
        }
    }
}

/// What is lost.
impl Strategy {
    /// Chunks of a path were found lost.
    pub(super) fn note_lost(&mut self, path: PathId, chunks: u32) {
        if let Self::Concurrent(concurrent) = self {
            concurrent.note_lost(path, chunks);
        }
    }

    /// Windows are cut for what `progress` says is lost.
    pub(super) fn recover(
        &mut self,
        cx: &mut Context<'_>,
        flight: &Flight,
        recovery: &mut Recovery,
        progress: &Progress,
    ) {
        match self {
            Self::SinglePath(_) => single_path::recover(cx, flight, recovery, progress),
            Self::Concurrent(concurrent) => concurrent.recover(cx, flight, progress),
        }
    }

    /// Ends the fast recovery of what a SACK with this cumulative TSN ack has made good.
    #[inline]
    pub(super) fn leave_fast_recovery(&mut self, view: View<'_>, cumulative: Tsn) {
        if let Self::Concurrent(concurrent) = self {
            concurrent.leave_fast_recovery(view, cumulative);
        }
    }

    /// T3-rtx of a path expired; `lost`: and not because a window is closed. Returns ssthresh, where coupling has a say in it.
    pub(super) fn on_t3(&mut self, path: PathId, lost: bool, peer: &Peer) -> Option<u32> {
        match self {
            Self::SinglePath(_) => None,
            Self::Concurrent(concurrent) => concurrent.on_t3(path, lost, peer),
        }
    }

    /// The time from which on chunks that were sent on a path with this smoothed round trip are left alone by its T3-rtx.
    pub(super) fn spared_from(&self, now: Instant, srtt: Option<Duration>) -> Instant {
        let concurrent = self.concurrent();
        concurrent.map_or(Instant::MAX, |concurrent| concurrent.spared_from(now, srtt))
    }
}
