//! Flows by what their packets have in common, and in the order in which they were last heard of.

use super::conn::Conn;
use super::key::{Key, Slot};
use core::hash::{BuildHasher, Hasher};
use hashbrown::HashTable;
use std::hash::RandomState;

const NONE: u32 = u32::MAX;

/// Keys of one flow.
const MAX_KEYS: usize = 64;

#[derive(Debug)]
struct Entry {
    conn: Option<Box<Conn>>,
    /// Number of the flow.
    id: u64,
    /// What it is known by.
    keys: Vec<Key>,
    older: u32,
    newer: u32,
}

/// All live flows.
#[derive(Debug)]
pub(in super::super) struct Table {
    index: HashTable<(Key, Slot)>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    live: usize,
    max_live: usize,
    next_id: u64,
    seed: u64,
}

impl Table {
    /// Of as many flows at a time as are to be followed: whoever adds one makes room for it.
    pub(in super::super) fn of(max_live: usize) -> Self {
        Self {
            index: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            live: 0,
            max_live,
            next_id: 0,
            // no capture can be made so that all its flows meet in one bucket
            seed: RandomState::new().build_hasher().finish(),
        }
    }

    pub(in super::super) const fn live(&self) -> usize {
        self.live
    }

    /// Whether there is no room for another.
    pub(in super::super) const fn is_full(&self) -> bool {
        self.live >= self.max_live
    }

    /// Flows so far.
    pub(in super::super) const fn total(&self) -> u64 {
        self.next_id
    }

    pub(in super::super) fn find(&self, key: &Key) -> Option<Slot> {
        self.index
            .find(key.hash(self.seed), |(k, _)| k == key)
            .map(|(_, slot)| *slot)
    }

    /// The flow of a slot, if it is still there.
    pub(in super::super) fn get(&mut self, slot: Slot) -> Option<&mut Conn> {
        let entry = self.entries.get_mut(slot.index as usize)?;
        entry.conn.as_deref_mut().filter(|_| entry.id == slot.id)
    }

    /// All live flows with their numbers.
    pub(in super::super) fn flows(&self) -> impl Iterator<Item = (u64, &Conn)> {
        let live = self.entries.iter();
        live.filter_map(|entry| Some((entry.id, entry.conn.as_deref()?)))
    }

    /// The flow was heard of just now.
    pub(in super::super) fn touch(&mut self, slot: Slot) {
        if self.newest != slot.index {
            self.unlink(slot.index);
            self.link(slot.index);
        }
    }

    /// Adds a flow and gives it its number.
    pub(in super::super) fn insert(&mut self, conn: Box<Conn>) -> Slot {
        let id = self.next_id;
        self.next_id += 1;
        let entry = Entry {
            conn: Some(conn),
            id,
            keys: Vec::new(),
            older: NONE,
            newer: NONE,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.entries[index as usize] = entry;
                index
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.link(index);
        self.live += 1;
        Slot { index, id }
    }

    /// Makes a flow known by a key. A key that another flow has becomes this one's.
    pub(in super::super) fn know(&mut self, slot: Slot, key: Key) -> bool {
        let entry = self.entries.get_mut(slot.index as usize);
        let Some(entry) = entry.filter(|e| e.conn.is_some() && e.id == slot.id) else {
            return false;
        };
        if entry.keys.contains(&key) {
            return true;
        }
        if entry.keys.len() >= MAX_KEYS {
            return false;
        }
        entry.keys.push(key);
        self.forget(&key);
        let seed = self.seed;
        self.index
            .insert_unique(key.hash(seed), (key, slot), |(k, _)| k.hash(seed));
        true
    }

    /// Takes a flow out.
    pub(in super::super) fn remove(&mut self, slot: Slot) -> Option<Box<Conn>> {
        self.get(slot)?;
        let entry = &mut self.entries[slot.index as usize];
        let conn = entry.conn.take()?;
        for key in &core::mem::take(&mut entry.keys) {
            let own = |(k, s): &(Key, Slot)| k == key && *s == slot;
            if let Ok(entry) = self.index.find_entry(key.hash(self.seed), own) {
                entry.remove();
            }
        }
        self.unlink(slot.index);
        self.free.push(slot.index);
        self.live -= 1;
        Some(conn)
    }

    /// The flow that has been silent longest.
    pub(in super::super) fn oldest(&self) -> Option<Slot> {
        let entry = self.entries.get(self.oldest as usize)?;
        entry.conn.as_ref()?;
        Some(Slot {
            index: self.oldest,
            id: entry.id,
        })
    }

    fn forget(&mut self, key: &Key) {
        if let Ok(entry) = self.index.find_entry(key.hash(self.seed), |(k, _)| k == key) {
            entry.remove();
        }
    }

    fn link(&mut self, index: u32) {
        let before = self.newest;
        let entry = &mut self.entries[index as usize];
        entry.older = before;
        entry.newer = NONE;
        match self.entries.get_mut(before as usize) {
            Some(entry) => entry.newer = index,
            None => self.oldest = index,
        }
        self.newest = index;
    }

    fn unlink(&mut self, index: u32) {
        let (older, newer) = {
            let entry = &self.entries[index as usize];
            (entry.older, entry.newer)
        };
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
        match self.entries.get_mut(newer as usize) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::KeyKind;
    use super::*;

    #[test]
    fn every_bit_of_a_key_changes_its_hash() {
        for seed in [
            0x9e37_79b9_7f4a_7c15,
            0x0123_4567_89ab_cdef,
            0xfedc_ba98_7654_3210,
        ] {
            let key = Key {
                kind: KeyKind::Udp,
                a: 5 << 64 | 3,
                b: 9 << 64 | 7,
                ports: 11,
            };
            let mut hashes = std::collections::BTreeSet::from([key.hash(seed)]);
            for bit in 0..128 {
                assert!(
                    hashes.insert(
                        Key {
                            a: key.a ^ 1 << bit,
                            ..key
                        }
                        .hash(seed)
                    ),
                    "{bit}"
                );
                assert!(
                    hashes.insert(
                        Key {
                            b: key.b ^ 1 << bit,
                            ..key
                        }
                        .hash(seed)
                    ),
                    "{bit}"
                );
            }
            for bit in 0..32 {
                let ports = key.ports ^ 1 << bit;
                assert!(hashes.insert(Key { ports, ..key }.hash(seed)), "{bit}");
            }
            for kind in [KeyKind::Tcp, KeyKind::Sctp, KeyKind::SctpTag, KeyKind::QuicId] {
                assert!(hashes.insert(Key { kind, ..key }.hash(seed)));
            }
        }
    }
}
