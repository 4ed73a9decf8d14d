//! Segments of TCP of which the first fragment was seen, so that the bytes of the others have their place.

use crate::analyze::decode::{Address, Decoded};
use crate::analyze::flows::key::Slot;
use std::collections::VecDeque;

/// First fragments that are remembered.
const MAX_FIRST: usize = 64;

/// The others come no later than this: a receiver waits no longer (RFC 8200 section 4.5 has 60 s, Linux half of it).
const REASSEMBLED_NS: u64 = 30_000_000_000;

/// What fragments of one packet have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Whole {
    capture: u8,
    ends: (Address, Address),
    identification: u32,
}

impl Whole {
    /// That of a fragment in a capture.
    pub(super) fn of(capture: u8, packet: &Decoded<'_>) -> Self {
        Self {
            capture,
            ends: packet.inner,
            identification: packet.fragments.unwrap_or(packet.identification.into()),
        }
    }
}

/// A segment whose first fragment was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub slot: Slot,
    pub direction: usize,
    pub ports: (u16, u16),
    /// Sequence number that the first byte of the header would have.
    pub seq: u32,
    pub stamp: Option<u32>,
}

/// The newest of them.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    begun: VecDeque<(Whole, u64, Begun)>,
}

impl Fragments {
    /// A first fragment is seen.
    pub(super) fn begin(&mut self, whole: Whole, now_ns: u64, begun: Begun) {
        if self.begun.len() >= MAX_FIRST {
            self.begun.pop_front();
        }
        self.begun.push_back((whole, now_ns, begun));
    }

    /// What a later fragment is of.
    pub(super) fn find(&self, whole: Whole, now_ns: u64) -> Option<Begun> {
        let newest = self.begun.iter().rev().find(|(known, ..)| *known == whole)?;
        (now_ns.saturating_sub(newest.1) <= REASSEMBLED_NS).then_some(newest.2)
    }
}
