//! A packet on its way to its flow.

use crate::analyze::decode::{Address, Decoded};
use crate::analyze::flows::key::{Key, KeyKind};
use crate::analyze::flows::parties::End;
use crate::analyze::flows::paths::Sight;

/// A decoded packet on its way to its flow.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub sight: Sight,
    pub packet: Decoded<'a>,
    /// Source and destination as identities.
    pub ends: (Address, Address),
    /// So many bytes of it were captured.
    pub captured: u32,
}

impl Seen<'_> {
    /// How much of it has to be captured for so many bytes more to be there.
    pub(super) fn needed(&self, missing: usize) -> u32 {
        self.captured.saturating_add(missing as u32)
    }

    /// Source and destination, as identities with their ports.
    pub(super) const fn pair(&self) -> (End, End) {
        let (source, destination) = self.sight.ports;
        ((self.ends.0, source), (self.ends.1, destination))
    }
}

/// Key of a flow between two ends.
pub(super) fn ends_key(kind: KeyKind, found: &Seen<'_>) -> Key {
    let (source, destination) = found.pair();
    Key::of_ends(kind, source, destination)
}

/// A hash of what a packet carries, by so many bytes.
pub(super) fn fingerprint(data: &[u8], data_len: u32, compared: usize) -> u64 {
    let mut hash = u64::from(data_len) ^ 0x9e37_79b9_7f4a_7c15;
    for word in data.get(..data.len().min(compared)).unwrap_or_default().chunks(8) {
        let mut value = [0; 8];
        value.iter_mut().zip(word).for_each(|(to, from)| *to = *from);
        let wide = u128::from(u64::from_le_bytes(value) ^ hash) * 0xd1b5_4a32_d192_ed03_u128;
        hash = (wide as u64 ^ (wide >> 64) as u64).wrapping_add(1);
    }
    hash
}
