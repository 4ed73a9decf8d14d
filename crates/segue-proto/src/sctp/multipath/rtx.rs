//! Where retransmissions go (Iyengar et al. 2006, section VI).
//!
//! All policies choose among the paths to active destinations, those to potentially failed ones only where there is no
//! other. They hold after missing reports and after timeouts alike. Where the paper draws lots among equals, the path that the
//! data was last on is taken, or else the first: a run must not depend on how often it is asked.

use super::{Concurrent, RtxPolicy};
use crate::sctp::ids::PathId;
use crate::sctp::sender::strategy::lent::View;
use core::cmp::Reverse;
use segue_wire::Tsn;

impl Concurrent {
    /// Where a marked chunk goes.
    pub(in crate::sctp) fn retransmission_path(&self, view: View<'_>, tsn: Tsn) -> Option<PathId> {
        let policy = self.settings.rtx_policy;
        let peer = view.peer;
        let last = view.flight.get(tsn)?.path();
        if policy == RtxPolicy::Same && peer.usable_paths().any(|p| Some(p) == last) {
            return last;
        }
        let key = |path: PathId| match policy {
            RtxPolicy::Asap => u64::from(view.has_window(path)),
            RtxPolicy::Same => 0,
            RtxPolicy::Cwnd => u64::from(peer[path].cwnd()),
            RtxPolicy::Ssthresh => u64::from(peer[path].ssthresh()),
            RtxPolicy::LossRate => u64::MAX - self.share(path).loss_rate(),
        };
        let best = peer
            .usable_paths()
            .max_by_key(|&p| (key(p), Some(p) == last, Reverse(p.place())));
        best.or_else(|| peer.current_path())
    }
}
