//! CUC, cwnd update for CMT (Iyengar et al. 2006, section IV).
//!
//! The receiver's cumulative TSN ack stands still while it waits for the slower path, though everything on the faster one
//! arrives in order. So the sender keeps a *pseudo-cumulative TSN* for each path: the earliest one outstanding there. Its
//! acknowledgement, cumulative or by a gap ack block, opens cwnd as an advance of the cumulative TSN ack does otherwise.
//!
//! Version 1 has one such TSN for a path. When it is lost and sent again on another path, this path waits for an
//! acknowledgement that is no longer its own. Version 2 follows what was sent once and what was sent again apart, and looks for
//! the next one as soon as something is found lost, which may go elsewhere.

use super::chunk::{ChunkState, Sent};
use crate::sctp::multipath::Cuc;
use segue_wire::Tsn;

/// A TSN that is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Follow {
    /// It is to be looked for (`find_pseudo_cumack` of the paper).
    #[default]
    Find,
    /// Its acknowledgement is waited for (`pseudo_cumack`).
    Await(Tsn),
}

/// Numbers of chunks that are outstanding on a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct UnderWay {
    /// Sent once.
    once: u32,
    /// Sent again.
    again: u32,
}

impl UnderWay {
    /// One more.
    pub(super) fn enter(&mut self, again: bool) {
        *(if again { &mut self.again } else { &mut self.once }) += 1;
    }

    /// One less.
    pub(super) fn leave(&mut self, again: bool) {
        *(if again { &mut self.again } else { &mut self.once }) -= 1;
    }

    /// All of them.
    pub(super) fn chunks(self) -> u32 {
        self.once + self.again
    }

    /// Whether there may be one to follow: of version 1 those that are marked are too.
    fn may_have(self, version: Cuc, again: bool) -> bool {
        version == Cuc::V1 || (if again { self.again } else { self.once }) > 0
    }
}

/// What CUC follows on a path: the earliest chunk of those sent once, and with version 2 of those sent again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PseudoCumulativeAck {
    first: Follow,
    again: Follow,
}

impl PseudoCumulativeAck {
    /// What was outstanding on the path is not any more, or may have moved: the earliest is to be looked for anew.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// A chunk of the path was found lost by missing reports.
    pub(super) fn on_lost(&mut self, version: Cuc) {
        if version == Cuc::V2 {
            self.forget();
        }
    }

    /// Before the gap ack blocks are looked at: what to wait for, where that is not known. `earliest` gives the earliest
    /// chunk of the path from a TSN on, or from the first on, for which a predicate holds.
    pub(super) fn find(
        &mut self,
        version: Cuc,
        under_way: UnderWay,
        earliest: impl Fn(&dyn Fn(&Sent) -> bool) -> Option<Tsn>,
    ) {
        for (follow, again) in self.followed(version) {
            if *follow == Follow::Find
                && under_way.may_have(version, again)
                && let Some(tsn) = earliest(&|sent| is_followed(version, again, sent))
            {
                *follow = Follow::Await(tsn);
            }
        }
    }

    /// A gap ack block acknowledges `tsn` for the first time: if it is one that was waited for, the next is. Returns whether
    /// it was. `earliest` gives the earliest behind it.
    pub(super) fn on_gap_acked(
        &mut self,
        version: Cuc,
        tsn: Tsn,
        under_way: UnderWay,
        earliest: impl Fn(&dyn Fn(&Sent) -> bool) -> Option<Tsn>,
    ) -> bool {
        let mut was_awaited = false;
        for (follow, again) in self.followed(version) {
            if *follow == Follow::Await(tsn) {
                was_awaited = true;
                let others = under_way.may_have(version, again);
                let next = others.then(|| earliest(&|sent| is_followed(version, again, sent)));
                let next = next.flatten();
                *follow = next.map_or(Follow::Find, Follow::Await);
            }
        }
        was_awaited
    }

    /// The TSNs that are waited for.
    #[cfg(test)]
    pub(super) fn awaited(&self) -> [Option<u32>; 2] {
        [self.first, self.again].map(|follow| match follow {
            Follow::Find => None,
            Follow::Await(tsn) => Some(tsn.0),
        })
    }

    /// With whether it is of chunks that were sent again.
    fn followed(&mut self, version: Cuc) -> impl Iterator<Item = (&mut Follow, bool)> {
        let again = (version == Cuc::V2).then_some((&mut self.again, true));
        core::iter::once((&mut self.first, false)).chain(again)
    }
}

/// Whether a chunk is followed: version 1 makes no difference between those sent once and those sent again, and waits for
/// those that are lost as well.
fn is_followed(version: Cuc, again: bool, sent: &Sent) -> bool {
    match (version, sent.state()) {
        (Cuc::V1, ChunkState::Outstanding { .. } | ChunkState::Marked(_)) => true,
        (_, ChunkState::Outstanding { .. }) => sent.transmission().is_again() == again,
        _ => false,
    }
}
