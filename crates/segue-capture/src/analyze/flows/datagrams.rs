//! Datagrams on their way, where both ends are seen.

use std::collections::{BTreeMap, BTreeSet};

/// Datagrams that left a host and have not been seen to arrive, by what they carry. One that arrives is found wherever it
/// is among them, in a time that what they carry cannot draw out: trees, and no table of hashes that somebody may choose.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Datagrams {
    /// What each carries, by number.
    under_way: BTreeMap<u64, u64>,
    /// The same, by what they carry, and by number where that is the same.
    by_content: BTreeSet<(u64, u64)>,
    next: u64,
}

impl Datagrams {
    /// A datagram leaves; gives its number. At most so many are remembered: the oldest make room.
    pub(in super::super) fn sent(&mut self, what: u64, limit: usize) -> u32 {
        while self.under_way.len() >= limit.max(1)
            && let Some((number, what)) = self.under_way.pop_first()
        {
            self.by_content.remove(&(what, number));
        }
        let number = self.next;
        self.next += 1;
        self.under_way.insert(number, what);
        self.by_content.insert((what, number));
        number as u32
    }

    /// A datagram arrives; gives the number that it left with. Of several that carry the same it is the oldest.
    pub(in super::super) fn received(&mut self, what: u64) -> Option<u32> {
        let (_, number) = *self.by_content.range((what, 0)..=(what, u64::MAX)).next()?;
        self.by_content.remove(&(what, number));
        self.under_way.remove(&number);
        Some(number as u32)
    }
}
