//! What two captures together are known to be of.

use super::decode::Address;
use super::flows::ends::Listens;
use std::collections::BTreeSet;

/// What two captures together are known to be of.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// Identities of the host of each capture.
    pub local: [BTreeSet<Address>; 2],
    /// When each capture has packets, beside the other.
    pub listens: [Listens; 2],
}
