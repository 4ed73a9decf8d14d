//! The entries of a ledger, by their numbers. One of which there is nothing more to say ([`Entry::is_plain`]) is forgotten after a
//! while, so that a run takes no more memory after an hour than after a minute: what stays is what was lost or sent again.

use super::{Entry, ticks};
use core::hint::cold_path;
use segue_proto::{Duration, Instant};

/// How long after it was sent a packet is forgotten that was sent once and has arrived: longer than a copy that a link made of
/// it may come after it.
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
    /// Of those before, what is not forgotten: in order of their numbers.
    old: Vec<(u32, Entry)>,
    /// When there are so many of the latest, it is looked which can be forgotten.
    look_at: usize,
}

impl Default for EntryStore {
    fn default() -> Self {
        Self {
            latest: Vec::new(),
            first: 0,
            old: Vec::new(),
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
                Some(&self.old[self.place(id)?].1)
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
                Some(&mut self.old[place].1)
            }
        }
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.old.binary_search_by_key(&id, |(id, _)| *id).ok()
    }

    /// All that are not forgotten, with their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Entry)> {
        let old = self.old.iter().map(|(id, entry)| (*id, entry));
        old.chain((self.first..).zip(&self.latest))
    }

    /// Whether it is time to [forget](Self::forget).
    #[inline]
    pub fn is_full(&self) -> bool {
        self.latest.len() >= self.look_at
    }

    /// Forgets what can be: gives the offsets of what was, in order, by flow, of which there are so many.
    pub fn forget(&mut self, now: Instant, flows: usize) -> Vec<Vec<u64>> {
        let horizon = ticks(now.as_nanos().saturating_sub(FORGOTTEN_AFTER.as_nanos()));
        let before = self.latest.partition_point(|entry| entry.sent_ticks < horizon);
        self.old.extend((self.first..).zip(self.latest.drain(..before)));
        self.first += before as u32;
        let mut plain = vec![0_usize; flows];
        for (_, entry) in self.old.iter().filter(|(_, entry)| entry.is_plain()) {
            plain[entry.flow as usize] += 1;
        }
        let mut forgotten = vec![Vec::new(); flows];
        self.old.retain(|(_, entry)| {
            let flow = entry.flow as usize;
            let goes = entry.is_plain() && plain[flow] > REMEMBERED;
            if goes {
                plain[flow] -= 1;
                forgotten[flow].push(entry.offset);
            }
            !goes
        });
        // in proportion to what stays, so that the work for each packet does not grow with the number of packets
        self.look_at = FIRST_LOOK.max(2 * self.latest.len() + self.old.len());
        forgotten
    }
}
