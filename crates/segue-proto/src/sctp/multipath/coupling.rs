//! Windows coupled to one another: see [`Coupling`].

use crate::congestion::{CongestionControl, Coupling, Gain, PathShare};
use crate::sctp::association::Association;
use crate::sctp::path::PathId;
use smallvec::SmallVec;

/// The paths whose windows are coupled, with what coupling must know of them.
type Shares = SmallVec<[(PathId, PathShare); 4]>;

impl Association {
    /// By how much each path's window is to open; nothing where none is coupled.
    pub(in crate::sctp) fn coupled_gains(&self) -> SmallVec<[(PathId, Gain); 4]> {
        let Some((coupling, shares)) = self.shares() else {
            return SmallVec::new();
        };
        let paths: SmallVec<[PathShare; 4]> = shares.iter().map(|s| s.1).collect();
        let gains = shares.iter().enumerate();
        gains.map(|(i, s)| (s.0, coupling.gain(&paths, i))).collect()
    }

    /// ssthresh of a path after a loss, where coupling has a say in it.
    pub(in crate::sctp) fn coupled_ssthresh(&self, path: PathId) -> Option<u32> {
        let (coupling, shares) = self.shares()?;
        let of = shares.iter().position(|s| s.0 == path)?;
        let paths: SmallVec<[PathShare; 4]> = shares.iter().map(|s| s.1).collect();
        coupling.ssthresh_after_loss(&paths, of)
    }

    fn shares(&self) -> Option<(Coupling, Shares)> {
        let coupling = self.multipath.as_ref()?.config.congestion;
        if coupling == Coupling::Uncoupled {
            return None;
        }
        let share = |path: PathId| {
            let state = &self.paths[path];
            PathShare {
                cwnd: state.window.cwnd(),
                ssthresh: state.window.ssthresh(),
                segment: state.window.segment(),
                rtt: state.rtt.srtt().unwrap_or_else(|| state.rto()),
                inter_loss: state.share.inter_loss,
            }
        };
        Some((coupling, self.usable_paths().map(|p| (p, share(p))).collect()))
    }
}
