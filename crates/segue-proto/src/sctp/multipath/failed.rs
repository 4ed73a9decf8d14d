//! CMT-PF (Natarajan et al. 2006): a path whose T3-rtx expires once has potentially failed, and gets no data until it has
//! answered a heartbeat.
//!
//! An acknowledgement of what T3-rtx marked, or of what was sent again, is no answer: the first may have been on its way when
//! the path died, the second may be for the transmission on another path (RFC 7829 section 3.2, too, leaves chunks out that
//! went to several addresses). Where no other destination is active, data goes there all the same, and any
//! acknowledgement will do.
//!
//! The state is that of RFC 7829 with PFMR 0, in `potentially_failed`; heartbeats go every RTO, which backs off. What is
//! added here: cwnd of a path that answered may begin with two segments instead of one, so that a receiver that delays its
//! SACKs answers the first flight at once.

use crate::congestion::CongestionControl;
use crate::sctp::association::Association;
use crate::sctp::path::{DestinationId, Path};
use crate::sctp::{Config, PathState};

/// PFMR of an association with this configuration.
pub(in crate::sctp) fn pf_max_retrans(config: &Config) -> Option<u32> {
    let pf = config.multipath.is_some_and(|m| m.pf);
    config.pf_max_retrans.or(pf.then_some(0))
}

impl Association {
    /// The window of a path that has answered after it had potentially failed.
    pub(in crate::sctp) fn recovered_window(path: &mut Path, segments: u32) {
        path.window.restart();
        let one = path.window.cwnd();
        if segments > 1 {
            path.window.set_cwnd(one * segments);
        }
    }

    /// Whether a destination is left alone until it has answered a heartbeat, or what T3-rtx did not take for lost.
    pub(in crate::sctp) fn doubts(&self, index: DestinationId) -> bool {
        let pf = self.multipath.as_ref().is_some_and(|m| m.config.pf);
        pf && self.destinations[index].state == PathState::PotentiallyFailed
            && self.usable_paths().next().is_some()
    }

    /// Segments that such a window begins with.
    pub(in crate::sctp) fn recovery_segments(&self) -> u32 {
        self.multipath
            .as_ref()
            .map_or(1, |m| u32::from(m.config.pf_recovery))
    }
}
