//! A packet on its way to its flow.

use crate::analyze::decode::{Address, Decoded};
use crate::analyze::flows::key::{Key, KeyKind};
use crate::analyze::flows::paths::Sight;

/// A decoded packet on its way to its flow.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub sight: Sight,
    pub packet: Decoded<'a>,
    /// Source and destination as identities.
    pub ends: (Address, Address),
}

/// Key of a flow between two ends.
pub(super) fn ends_key(kind: KeyKind, found: &Seen<'_>) -> Key {
    let ports = found.sight.ports;
    Key::of_ends(kind, (found.ends.0, ports.0), (found.ends.1, ports.1))
}
