//! The entries of a ledger, by their numbers: the latest, and of those before what is not forgotten. See the ledger for which are.

use super::{Entry, ticks};
use core::hint::cold_path;
use segue_proto::{Duration, Instant};

/// How long after it was sent a packet may be forgotten that has arrived or was lost: longer than a copy that a link made of it
/// may come after it.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

/// So many packets of each flow are remembered however old they are: of one that is dead, the last that arrived are told.
const REMEMBERED: usize = 4;

/// The least number of entries at which it is looked which can be forgotten.
const FIRST_LOOK: usize = 4096;

/// See the module.
#[derive(Debug)]
pub(super) struct EntryStore {
    /// The latest, one after the other.
    latest: Vec<Entry>,
    /// Number of the first of them.
    first: u32,
    /// Of those before, that were sent long ago, what is not forgotten: in order of their numbers.
    aged: Vec<(u32, Entry)>,
    /// When there are so many of the latest, it is looked which can be forgotten.
    look_at: usize,
}

impl Default for EntryStore {
    fn default() -> Self {
        Self {
            latest: Vec::new(),
            first: 0,
            aged: Vec::new(),
            look_at: FIRST_LOOK,
        }
    }
}

impl EntryStore {
    /// Number of the next entry.
    pub fn next_id(&self) -> u32 {
        self.first + self.latest.len() as u32
    }

    /// Adds the next entry.
    pub fn push(&mut self, entry: Entry) {
        self.latest.push(entry);
    }

    /// An entry, unless it is forgotten.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&Entry> {
        match id.checked_sub(self.first) {
            Some(at) => self.latest.get(at as usize),
            None => {
                cold_path();
                Some(&self.aged[self.place(id)?].1)
            }
        }
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Entry> {
        match id.checked_sub(self.first) {
            Some(at) => self.latest.get_mut(at as usize),
            None => {
                cold_path();
                let place = self.place(id)?;
                Some(&mut self.aged[place].1)
            }
        }
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.aged.binary_search_by_key(&id, |(id, _)| *id).ok()
    }

    /// All that are not forgotten, with their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Entry)> {
        let aged = self.aged.iter().map(|(id, entry)| (*id, entry));
        aged.chain((self.first..).zip(&self.latest))
    }

    /// Whether it is time to [age](Self::age).
    #[inline]
    pub fn is_full(&self) -> bool {
        self.latest.len() >= self.look_at
    }

    /// Those that were sent long ago, of which most are forgotten: with their numbers, in order.
    pub fn aged(&self) -> &[(u32, Entry)] {
        &self.aged
    }

    /// Number from which on nothing is forgotten.
    pub const fn first_recent(&self) -> u32 {
        self.first
    }

    /// Time goes on: gives for each of so many flows the number before which its entries may be forgotten, that of the last
    /// [`REMEMBERED`] of those that arrived long ago.
    pub fn age(&mut self, now: Instant, flows: usize) -> Vec<u32> {
        let horizon = ticks(now.as_nanos().saturating_sub(FORGOTTEN_AFTER.as_nanos()));
        let before = self.latest.partition_point(|entry| entry.sent_ticks < horizon);
        self.aged.extend((self.first..).zip(self.latest.drain(..before)));
        self.first += before as u32;
        let mut plain = vec![(0, 0); flows];
        for (id, entry) in self.aged.iter().rev().filter(|(_, entry)| entry.is_plain()) {
            let (count, until) = &mut plain[entry.flow as usize];
            *count += 1;
            if *count == REMEMBERED {
                *until = *id;
            }
        }
        plain.into_iter().map(|(_, until)| until).collect()
    }

    /// Forgets those of the aged that are not to be kept.
    pub fn retain_aged(&mut self, mut keep: impl FnMut(u32, &Entry) -> bool) {
        self.aged.retain(|(id, entry)| keep(*id, entry));
        // in proportion to what stays, so that the work for each packet does not grow with the number of packets
        self.look_at = FIRST_LOOK.max(2 * self.latest.len() + self.aged.len());
    }
}
