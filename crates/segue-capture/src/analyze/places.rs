//! What two captures together are known to be of.

use super::decode::Address;
use super::flows::ends::Listens;
use std::collections::BTreeSet;

/// Identities of one host that are remembered.
const MAX_IDENTITIES: usize = 8192;

/// What two captures together are known to be of.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// Identities of the host of each capture.
    local: [BTreeSet<Address>; 2],
    /// When each capture has packets, beside the other.
    listens: [Listens; 2],
    /// So many bytes, from the transport's header on, do both have of every packet that is as long.
    both_have: usize,
}

impl Places {
    /// Nothing is known but when each capture has packets, and how much of them both have.
    pub(super) fn listening(listens: [Listens; 2], both_have: usize) -> Self {
        Self {
            listens,
            both_have,
            ..Self::default()
        }
    }

    /// The host of a capture has this identity; with ILNP, its node identifier is one too.
    pub(super) fn note(&mut self, capture: u8, end: Address, ilnp: bool) {
        let local = &mut self.local[usize::from(capture)];
        if local.len() < MAX_IDENTITIES {
            local.insert(end);
            if ilnp {
                local.insert(Address(u128::from(end.nid())));
            }
        }
    }

    /// Whether the host of a capture is known by this identity.
    pub(super) fn is_local(&self, capture: u8, end: Address) -> bool {
        self.local[usize::from(capture)].contains(&end)
    }

    /// So many bytes, from the transport's header on, do both have of every packet that is as long.
    pub(super) const fn both_have(&self) -> usize {
        self.both_have
    }

    /// When each capture has packets.
    pub(super) const fn listens(&self) -> [Listens; 2] {
        self.listens
    }
}
