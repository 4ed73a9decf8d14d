//! Which packets of a flow carried the same data: an original, and what was sent again of it, one after the other.

use super::PacketFate;
use super::entry_store::EntryStore;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// In place of the number of an entry: forgotten, and what it carried has arrived.
const ARRIVED: u32 = u32::MAX;
/// In place of the number of an entry: forgotten, and what it carried never arrived with it or a copy of it.
const LOST: u32 = u32::MAX - 1;

/// The packets of a flow by what they carried.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Copies {
    /// The packets that carried something first, by their first byte; of those that are forgotten, the first of each run.
    originals: Vec<Original>,
    /// By first byte of the original: its last copy.
    last: BTreeMap<u64, u32>,
    /// By copy: the packet that carried its first byte before.
    previous: BTreeMap<u32, u32>,
}

/// A packet that carried something first.
#[derive(Clone, Copy, Debug)]
struct Original {
    offset: u64,
    /// Number of its entry, or [`ARRIVED`] or [`LOST`].
    id: u32,
}

impl Original {
    const fn is_forgotten(self) -> bool {
        self.id >= LOST
    }
}

/// An original and its copies, all of them long sent, and none under way.
#[derive(Debug)]
pub(super) struct Chain {
    /// First byte of the original.
    offset: u64,
    /// Numbers of its entries, in the order in which they were sent, and of each whether one before it arrived.
    pub entries: SmallVec<[(u32, bool); 4]>,
    /// Whether any arrived.
    arrived: bool,
}

impl Copies {
    /// Packet `id` carries something first.
    pub fn sent_first(&mut self, offset: u64, id: u32) {
        self.originals.push(Original { offset, id });
    }

    /// Packet `id` carries something again.
    pub fn sent_again(&mut self, offset: u64, id: u32) {
        let after = self
            .originals
            .partition_point(|original| original.offset <= offset);
        let Some(original) = after.checked_sub(1).map(|at| self.originals[at]) else {
            return;
        };
        // several are in one place once they are forgotten
        let copied = if original.is_forgotten() {
            offset
        } else {
            original.offset
        };
        let before = self.last.insert(copied, id);
        self.previous.insert(id, before.unwrap_or(original.id));
    }

    /// The last copy of the original that begins here.
    pub fn last_of(&self, offset: u64) -> Option<u32> {
        self.last.get(&offset).copied()
    }

    /// Whether a packet that carried the same before this copy arrived, then or later.
    pub fn arrived_before(&self, id: u32, entries: &EntryStore) -> bool {
        let mut before = self.chain(id).skip(1);
        before.any(|id| {
            let entry = entries.get(id);
            id != LOST && entry.is_none_or(|entry| entry.fate == PacketFate::Delivered)
        })
    }

    /// This packet, and those that carried the same before it, the last first.
    fn chain(&self, id: u32) -> impl Iterator<Item = u32> {
        core::iter::successors(Some(id), |id| self.previous.get(id).copied())
    }

    /// Originals that were sent again and of which nothing more can be learnt: all packets that carried them were sent
    /// before `until`, and none is under way.
    pub fn over(&self, entries: &EntryStore, until: u32) -> Vec<Chain> {
        let chains = self.last.iter().filter_map(|(&offset, &last)| {
            let sent: SmallVec<[u32; 4]> = self.chain(last).collect();
            let is_over = |id: &u32| {
                let entry = entries.get(*id);
                entry.is_none_or(|entry| *id < until && entry.fate != PacketFate::InFlight)
            };
            // what is sent again of an original that was forgotten as lost has no place of its own to say that it arrived
            if sent.contains(&LOST) || !sent.iter().all(is_over) {
                return None;
            }
            let mut chain = Chain {
                offset,
                entries: SmallVec::new(),
                arrived: false,
            };
            for &id in sent.iter().rev() {
                let entry = entries.get(id);
                if entry.is_some() {
                    chain.entries.push((id, chain.arrived));
                }
                // what is forgotten of a chain has arrived
                chain.arrived |= entry.is_none_or(|entry| entry.fate == PacketFate::Delivered);
            }
            Some(chain)
        });
        chains.collect()
    }

    /// An original that was lost and never sent again, nothing of which is under way: its first byte and its entry.
    pub fn lost_alone(&self, offset: u64, id: u32) -> Option<Chain> {
        let alone = !self.last.contains_key(&offset);
        alone.then(|| Chain {
            offset,
            entries: SmallVec::from_slice(&[(id, false)]),
            arrived: false,
        })
    }

    /// Forgets which packets these were: `arrived` are the first bytes of originals that arrived, in order, whatever
    /// becomes of their copies.
    pub fn forget(&mut self, arrived: &[u64], chains: &[Chain]) {
        let mut over: BTreeMap<u64, u32> = arrived.iter().map(|offset| (*offset, ARRIVED)).collect();
        for chain in chains {
            if let Some(last) = self.last.remove(&chain.offset) {
                let sent: SmallVec<[u32; 4]> = self.chain(last).collect();
                for id in sent {
                    self.previous.remove(&id);
                }
            }
            let became = if chain.arrived { ARRIVED } else { LOST };
            over.insert(chain.offset, became);
        }
        let mut over = over.into_iter().peekable();
        let mut before = None;
        self.originals.retain_mut(|original| {
            // those of originals that were forgotten before have no place any more
            while over.next_if(|(offset, _)| *offset < original.offset).is_some() {}
            if let Some((_, became)) = over.next_if(|(offset, _)| *offset == original.offset)
                && !original.is_forgotten()
            {
                original.id = became;
            }
            // a run of those that are forgotten is one
            let goes_on = original.is_forgotten() && before == Some(original.id);
            before = Some(original.id);
            !goes_on
        });
    }

    /// Places that it takes: originals, and copies.
    #[cfg(test)]
    pub fn places(&self) -> (usize, usize) {
        (self.originals.len(), self.previous.len().max(self.last.len()))
    }
}
