//! CUC, cwnd update for CMT (Iyengar et al. 2006, section IV).
//!
//! The receiver's cumulative TSN ack stands still while it waits for the slower path, though everything on the faster one
//! arrives in order. So the sender keeps a *pseudo-cumulative TSN* for each path: the earliest one outstanding there. Its
//! acknowledgement, cumulative or by a gap ack block, opens cwnd as an advance of the cumulative TSN ack does otherwise.
//!
//! Version 1 has one such TSN for a path. When it is lost and sent again on another path, this path waits for an
//! acknowledgement that is no longer its own. Version 2 follows what was sent once and what was sent again apart, and looks for
//! the next one as soon as something is found lost, which may go elsewhere.

use super::Cuc;
use crate::sctp::association::Association;
use crate::sctp::outbound::{ChunkState, Outbound, Sent};
use crate::sctp::path::PathId;
use segue_wire::Tsn;

/// The variables of CUC for a path, by the names of the paper.
#[derive(Clone, Copy, Debug)]
pub(in crate::sctp) struct PseudoCumulativeAck {
    pub find_pseudo_cumack: bool,
    pub pseudo_cumack: Tsn,
    pub find_rtx_pseudo_cumack: bool,
    pub rtx_pseudo_cumack: Tsn,
    /// The SACK at hand acknowledges it.
    pub new_pseudo_cumack: bool,
}

impl Default for PseudoCumulativeAck {
    fn default() -> Self {
        Self {
            find_pseudo_cumack: true,
            pseudo_cumack: Tsn(0),
            find_rtx_pseudo_cumack: true,
            rtx_pseudo_cumack: Tsn(0),
            new_pseudo_cumack: false,
        }
    }
}

impl PseudoCumulativeAck {
    /// What was outstanding on the path is not any more: the earliest is to be looked for anew.
    pub(in crate::sctp) fn forget(&mut self) {
        self.find_pseudo_cumack = true;
        self.find_rtx_pseudo_cumack = true;
    }

    /// A chunk of the path was found lost by missing reports.
    pub(in crate::sctp) fn on_lost(&mut self, version: Cuc) {
        if version == Cuc::V2 {
            self.forget();
        }
    }

    /// A chunk of the path is acknowledged cumulatively, and was not before.
    pub(in crate::sctp) fn on_cumulatively_acked(&mut self) {
        self.forget();
        self.new_pseudo_cumack = true;
    }

    /// Before the gap ack blocks are looked at: what to wait for, where that is not known.
    fn find(&mut self, version: Cuc, outbound: &Outbound, path: PathId) {
        if self.find_pseudo_cumack
            && let Some(tsn) = earliest(outbound, path, outbound.base, kind(version, false))
        {
            self.find_pseudo_cumack = false;
            self.pseudo_cumack = tsn;
        }
        if version == Cuc::V2
            && self.find_rtx_pseudo_cumack
            && let Some(tsn) = earliest(outbound, path, outbound.base, kind(version, true))
        {
            self.find_rtx_pseudo_cumack = false;
            self.rtx_pseudo_cumack = tsn;
        }
    }

    /// A gap ack block acknowledges `tsn` for the first time: if it is the one that was waited for, the next is.
    fn on_gap_acked(&mut self, version: Cuc, outbound: &Outbound, path: PathId, tsn: Tsn) {
        if !self.find_pseudo_cumack && self.pseudo_cumack == tsn {
            self.new_pseudo_cumack = true;
            match earliest(outbound, path, tsn.next(), kind(version, false)) {
                Some(next) => self.pseudo_cumack = next,
                None => self.find_pseudo_cumack = true,
            }
        }
        if version == Cuc::V2 && !self.find_rtx_pseudo_cumack && self.rtx_pseudo_cumack == tsn {
            self.new_pseudo_cumack = true;
            match earliest(outbound, path, tsn.next(), kind(version, true)) {
                Some(next) => self.rtx_pseudo_cumack = next,
                None => self.find_rtx_pseudo_cumack = true,
            }
        }
    }
}

impl Association {
    /// To be called after the cumulative TSN ack of a SACK was dealt with, and before its gap ack blocks.
    pub(in crate::sctp) fn find_pseudo_cumulative_acks(&mut self) {
        let Some(version) = self.cuc() else { return };
        for (i, path) in self.paths.iter_mut() {
            path.share.pseudo.find(version, &self.outbound, i);
        }
    }

    /// A gap ack block acknowledges `tsn`, sent on `path`, for the first time.
    pub(in crate::sctp) fn advance_pseudo_cumulative_ack(&mut self, path: PathId, tsn: Tsn) {
        let Some(version) = self.cuc() else { return };
        if let Some(state) = self.paths.get_mut(path) {
            state
                .share
                .pseudo
                .on_gap_acked(version, &self.outbound, path, tsn);
        }
    }

    /// Whether a path is to be treated as one whose cumulative ack advanced.
    pub(in crate::sctp) fn note_pseudo_cumulative_acks(&mut self, cumulative_advanced: bool) {
        if self.cuc().is_none() || cumulative_advanced {
            return;
        }
        let advanced = self.paths.values().filter(|p| p.share.pseudo.new_pseudo_cumack);
        self.out.counters.multipath.pseudo_cumulative_acks += advanced.count() as u64;
    }

    /// The version in use.
    pub(in crate::sctp) fn cuc(&self) -> Option<Cuc> {
        let version = self.multipath.as_ref()?.config.cuc;
        (version != Cuc::Off).then_some(version)
    }
}

/// Which chunks are followed: version 1 makes no difference between those sent once and those sent again, and waits for those
/// that are lost as well.
fn kind(version: Cuc, retransmitted: bool) -> impl Fn(&Sent) -> bool {
    move |sent| match (version, sent.state) {
        (Cuc::V1, ChunkState::Outstanding | ChunkState::Marked) => true,
        (_, ChunkState::Outstanding) => sent.transmission.is_again() == retransmitted,
        _ => false,
    }
}

/// The earliest chunk of `path` from `from` on that is not acknowledged.
fn earliest(outbound: &Outbound, path: PathId, from: Tsn, which: impl Fn(&Sent) -> bool) -> Option<Tsn> {
    let start = if from.before(outbound.base) {
        outbound.base
    } else {
        from
    };
    let offset = start.distance_from(outbound.base) as usize;
    let found = outbound
        .sent
        .iter()
        .skip(offset)
        .position(|s| s.path == Some(path) && which(s))?;
    Some(start.add(found as u32))
}
