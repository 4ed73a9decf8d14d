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
}

impl Places {
    /// Nothing is known but when each capture has packets.
    pub(super) fn listening(listens: [Listens; 2]) -> Self {
        Self {
            listens,
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

    /// When each capture has packets.
    pub(super) const fn listens(&self) -> [Listens; 2] {
        self.listens
    }
}
