//! Windows coupled to one another: see [`Coupling`].

use super::Concurrent;
use crate::congestion::{Coupling, Gain, PathShare};
use crate::sctp::ids::PathId;
use crate::sctp::peer::Peer;
use smallvec::SmallVec;

/// The paths whose windows are coupled, with what coupling must know of them.
type Shares = SmallVec<[(PathId, PathShare); 4]>;

impl Concurrent {
    /// By how much each path's window is to open; nothing where none is coupled.
    pub(in crate::sctp) fn coupled_gains(&self, peer: &Peer) -> SmallVec<[(PathId, Gain); 4]> {
        let Some((coupling, shares)) = self.coupled(peer) else {
            return SmallVec::new();
        };
        let paths: SmallVec<[PathShare; 4]> = shares.iter().map(|s| s.1).collect();
        let gains = shares.iter().enumerate();
        gains.map(|(i, s)| (s.0, coupling.gain(&paths, i))).collect()
    }

    /// ssthresh of a path after a loss, where coupling has a say in it.
    pub(super) fn coupled_ssthresh(&self, path: PathId, peer: &Peer) -> Option<u32> {
        let (coupling, shares) = self.coupled(peer)?;
        let of = shares.iter().position(|s| s.0 == path)?;
        let paths: SmallVec<[PathShare; 4]> = shares.iter().map(|s| s.1).collect();
        coupling.ssthresh_after_loss(&paths, of)
    }

    fn coupled(&self, peer: &Peer) -> Option<(Coupling, Shares)> {
        let coupling = self.settings.congestion;
        if coupling == Coupling::Uncoupled {
            return None;
        }
        let share = |id: PathId| {
            let path = &peer[id];
            let share = PathShare {
                cwnd: path.cwnd(),
                ssthresh: path.ssthresh(),
                segment: path.segment(),
                rtt: path.srtt_or_rto(),
                inter_loss: self.share(id).inter_loss(),
            };
            (id, share)
        };
        Some((coupling, peer.usable_paths().map(share).collect()))
    }
}
