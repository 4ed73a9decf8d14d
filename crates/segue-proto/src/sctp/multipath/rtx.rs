//! Where retransmissions go (Iyengar et al. 2006, section VI).
//!
//! All policies choose among the paths to active destinations, those to potentially failed ones only where there is no
//! other. They hold after missing reports and after timeouts alike. Where the paper draws lots among equals, the path that the
//! data was last on is taken, or else the first: a run must not depend on how often it is asked.

use super::RtxPolicy;
use crate::congestion::CongestionControl;
use crate::sctp::association::Association;
use crate::sctp::path::{Path, PathId};
use core::cmp::Reverse;
use segue_wire::Tsn;

impl Association {
    /// Where a marked chunk goes.
    pub(in crate::sctp) fn policy_path(&self, policy: RtxPolicy, tsn: Tsn) -> Option<PathId> {
        let last = self.flight.get(tsn)?.path();
        if policy == RtxPolicy::Same && self.usable_paths().any(|p| Some(p) == last) {
            return last;
        }
        let key = |id: PathId, path: &Path| match policy {
            RtxPolicy::Asap => u64::from(self.has_window(id)),
            RtxPolicy::Same => 0,
            RtxPolicy::Cwnd => u64::from(path.window.cwnd()),
            RtxPolicy::Ssthresh => u64::from(path.window.ssthresh()),
            RtxPolicy::LossRate => u64::MAX - path.share.loss_rate(),
        };
        self.usable_paths()
            .max_by_key(|&p| {
                let path = &self.paths[p];
                (key(p, path), Some(p) == last, Reverse(p.place()))
            })
            .or_else(|| self.current_path())
    }
}
