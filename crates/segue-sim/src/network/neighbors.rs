//! The neighbour caches of access routers.

use crate::hints::{Hints, hash};
use core::net::Ipv6Addr;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Addresses on the links of cells, with the attachments that have them. They come when an address becomes usable; the
/// neighbour solicitations that would ask for them are left out.
#[derive(Default)]
pub(crate) struct Neighbors {
    /// Of each address, in which cells, and who has it there.
    of: BTreeMap<Ipv6Addr, SmallVec<[(u32, u32); 1]>>,
    /// The cell where an address was last looked for and found, and who has it there.
    found: Hints<(Ipv6Addr, u32, u32)>,
}

impl Neighbors {
    /// Who has this address in this cell.
    pub fn find(&mut self, cell: u32, address: Ipv6Addr) -> Option<u32> {
        let is_it = |known: &(Ipv6Addr, u32, u32)| (known.0, known.1) == (address, cell);
        match self.found.find(hash_of(address), is_it) {
            Some((_, _, attachment)) => Some(attachment),
            None => self.find_in_tree(cell, address),
        }
    }

    #[inline(never)]
    fn find_in_tree(&mut self, cell: u32, address: Ipv6Addr) -> Option<u32> {
        let places = self.of.get(&address)?;
        let (_, attachment) = *places.iter().find(|(there, _)| *there == cell)?;
        self.found
            .note(hash_of(address), (address, cell, attachment), self.of.len());
        Some(attachment)
    }

    /// Somebody has it there, unless somebody else has.
    pub fn learn(&mut self, cell: u32, address: Ipv6Addr, attachment: u32) {
        if self.find(cell, address).is_none() {
            self.of.entry(address).or_default().push((cell, attachment));
        }
    }

    /// Nobody has it anywhere.
    pub fn forget(&mut self, address: Ipv6Addr) {
        self.of.remove(&address);
        self.found.forget(hash_of(address));
    }
}

fn hash_of(address: Ipv6Addr) -> u64 {
    let bits = address.to_bits();
    hash((bits >> 64) as u64, bits as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_who_had_it_first_until_it_is_forgotten() {
        let mut neighbors = Neighbors::default();
        let address = Ipv6Addr::LOCALHOST;
        neighbors.learn(3, address, 7);
        neighbors.learn(3, address, 8);
        neighbors.learn(4, address, 9);
        assert_eq!(
            [3, 4, 5].map(|cell| neighbors.find(cell, address)),
            [Some(7), Some(9), None]
        );
        neighbors.forget(address);
        assert_eq!(neighbors.find(3, address), None);
    }
}
