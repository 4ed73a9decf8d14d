//! The updates of a peer that were accepted, so that none is taken twice.

use crate::time::{Duration, Instant};
use segue_wire::ilnp::LocatorEntry;
use std::collections::VecDeque;

/// The updates of a peer that were accepted. RFC 6743 gives them no number; but those of this implementation differ from
/// each other (see [`Telling::begin`](super::telling::Telling::begin)), so that what was superseded and comes again, byte for byte, is a replay or comes from a host
/// of another implementation that is back where it was.
#[derive(Clone, Debug, Default)]
pub(super) struct Accepted {
    /// The last.
    current: Option<u64>,
    /// Those that it superseded, and when each was.
    superseded: VecDeque<(u64, Instant)>,
}

impl Accepted {
    /// Whether an update is one from before, and the peer where the last one said: heard from there, at `heard`, less than
    /// `guard` ago, or there for less than that. A host that is back is silent elsewhere and tells again.
    pub fn is_replay(&self, now: Instant, body: u64, heard: Option<Instant>, guard: Duration) -> bool {
        let lately = |at: Instant| now.since(at) < guard;
        let before = self.superseded.iter().rev().find(|(old, _)| *old == body);
        self.current != Some(body) && before.is_some_and(|(_, at)| lately(*at) || heard.is_some_and(lately))
    }

    /// Whether there was one.
    pub fn any(&self) -> bool {
        self.current.is_some()
    }

    pub fn accept(&mut self, now: Instant, body: u64) {
        if self.current == Some(body) {
            return;
        }
        self.superseded.retain(|(old, _)| *old != body);
        if let Some(old) = self.current.replace(body) {
            if self.superseded.len() == MAX_SUPERSEDED {
                self.superseded.pop_front();
            }
            self.superseded.push_back((old, now));
        }
    }
}

/// A number for what an update says (FNV-1a).
pub(super) fn hash(entries: &[LocatorEntry]) -> u64 {
    entries.iter().fold(0xcbf2_9ce4_8422_2325, |hash, entry| {
        let rest = u64::from(entry.preference) << 16 | u64::from(entry.lifetime_s);
        let bytes = entry
            .locator
            .0
            .to_be_bytes()
            .into_iter()
            .chain(rest.to_be_bytes());
        bytes.fold(hash, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    })
}

/// Updates of a peer that are remembered to know their replay.
const MAX_SUPERSEDED: usize = 32;
