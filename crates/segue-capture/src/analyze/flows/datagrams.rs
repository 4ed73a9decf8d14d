//! Datagrams on their way, where both ends are seen.

use std::collections::VecDeque;

/// Datagrams that left a host and have not been seen to arrive, by what they carry.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Datagrams {
    under_way: VecDeque<(u64, u32)>,
    next: u32,
}

/// Datagrams of one direction that are remembered.
const MAX_DATAGRAMS: usize = 4096;

/// Of these, so many are looked at.
const DATAGRAMS_SEARCHED: usize = 1024;

impl Datagrams {
    /// A datagram leaves; gives its number.
    pub(in super::super) fn sent(&mut self, what: u64) -> u32 {
        if self.under_way.len() >= MAX_DATAGRAMS {
            self.under_way.pop_front();
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.under_way.push_back((what, number));
        number
    }

    /// A datagram arrives; gives the number that it left with.
    pub(in super::super) fn received(&mut self, what: u64) -> Option<u32> {
        let searched = self.under_way.iter().take(DATAGRAMS_SEARCHED);
        let at = searched.enumerate().find(|(_, (known, _))| *known == what)?.0;
        let (_, number) = self.under_way.remove(at)?;
        // what was sent long before is lost, and need not be looked at again
        if at > DATAGRAMS_SEARCHED / 2 {
            self.under_way.drain(..at / 2);
        }
        Some(number)
    }
}
