//! What a SACK says of each path.

use super::flight::{Acknowledged, Flight};
use crate::sctp::ids::PathId;
use smallvec::SmallVec;

/// What a SACK says of one path.
#[derive(Clone, Copy, Debug)]
pub(in crate::sctp) struct PathProgress {
    path: PathId,
    /// What it newly acknowledges.
    acked_bytes: u32,
    /// What was under way before.
    flight_before: u32,
    /// Something was found lost.
    lost: bool,
    /// The path's pseudo-cumulative ack is acknowledged (CUC).
    pseudo: bool,
}

impl PathProgress {
    pub(in crate::sctp) fn path(&self) -> PathId {
        self.path
    }

    /// What the SACK newly acknowledges.
    pub(in crate::sctp) fn acked_bytes(&self) -> u32 {
        self.acked_bytes
    }

    /// What was under way before.
    pub(in crate::sctp) fn flight_before(&self) -> u32 {
        self.flight_before
    }

    /// Whether something was found lost.
    pub(in crate::sctp) fn has_lost(&self) -> bool {
        self.lost
    }

    /// Whether the path's pseudo-cumulative ack is acknowledged (CUC).
    pub(in crate::sctp) fn advances_pseudo(&self) -> bool {
        self.pseudo
    }
}

/// What a SACK says of each path on which something was sent.
#[derive(Debug)]
pub(in crate::sctp) struct Progress(SmallVec<[PathProgress; 2]>);

impl Progress {
    pub(super) fn begin(flight: &Flight) -> Self {
        let paths = flight.sizes().map(|(path, flight_before)| PathProgress {
            path,
            acked_bytes: 0,
            flight_before,
            lost: false,
            pseudo: false,
        });
        Self(paths.collect())
    }

    pub(in crate::sctp) fn iter(&self) -> impl Iterator<Item = &PathProgress> {
        self.0.iter()
    }

    pub(super) fn of(&self, path: PathId) -> Option<&PathProgress> {
        self.0.iter().find(|p| p.path == path)
    }

    pub(super) fn note_acknowledged(&mut self, acknowledged: &Acknowledged) {
        let path = acknowledged.path;
        if let Some(progress) = self.0.iter_mut().find(|p| Some(p.path) == path) {
            progress.acked_bytes += acknowledged.size;
            progress.pseudo |= acknowledged.pseudo;
        }
    }

    pub(super) fn note_lost(&mut self, path: PathId) {
        if let Some(progress) = self.0.iter_mut().find(|p| p.path == path) {
            progress.lost = true;
        }
    }
}
