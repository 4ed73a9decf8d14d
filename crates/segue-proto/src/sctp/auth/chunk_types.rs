//! Which chunk types are authenticated (RFC 4895 section 3.2).

use segue_wire::sctp::Chunk;
use segue_wire::sctp::chunk_type::{AUTH, DATA, INIT, INIT_ACK, SACK, SHUTDOWN_COMPLETE};

/// A set of chunk types.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ChunkTypes([u64; 4]);

impl ChunkTypes {
    /// Those of both sets.
    pub(super) fn union(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    pub(super) fn contains(&self, chunk_type: u8) -> bool {
        self.0[usize::from(chunk_type >> 6)] >> (chunk_type & 63) & 1 == 1
    }

    /// Whether a chunk is of one of them.
    #[inline]
    pub(super) fn contains_type_of(&self, chunk: &Chunk) -> bool {
        match chunk {
            // nearly all are one of these, and asked of each that comes or goes
            Chunk::Data(_) => self.contains(DATA),
            Chunk::Sack(_) => self.contains(SACK),
            _ => self.contains_type_of_other(chunk),
        }
    }

    #[cold]
    fn contains_type_of_other(&self, chunk: &Chunk) -> bool {
        self.contains(chunk.chunk_type())
    }
}

/// Those of `types` that can be authenticated: INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH must not be listed and are
/// ignored if they are (section 3.2).
impl<'a> FromIterator<&'a u8> for ChunkTypes {
    fn from_iter<I: IntoIterator<Item = &'a u8>>(types: I) -> Self {
        let mut set = Self::default();
        for &t in types {
            if can_be_authenticated(t) {
                set.0[usize::from(t >> 6)] |= 1 << (t & 63);
            }
        }
        set
    }
}

/// Whether a chunk of this type can be authenticated.
pub(super) fn can_be_authenticated(chunk_type: u8) -> bool {
    !NEVER_AUTHENTICATED.contains(&chunk_type)
}

const NEVER_AUTHENTICATED: [u8; 4] = [INIT, INIT_ACK, SHUTDOWN_COMPLETE, AUTH];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_listed_and_can_be_authenticated() {
        let listed = [0, 1, 2, 14, 15, 63, 64, 0x80, 0xc1, 255];
        let set: ChunkTypes = listed.iter().collect();
        let has: Vec<u8> = (0..=255).filter(|&t| set.contains(t)).collect();
        assert_eq!(has, [0, 63, 64, 0x80, 0xc1, 255]);
        let others: ChunkTypes = [3, 0xc0].iter().collect();
        let both: Vec<u8> = (0..=255).filter(|&t| set.union(others).contains(t)).collect();
        assert_eq!(both, [0, 3, 63, 64, 0x80, 0xc0, 0xc1, 255]);
    }
}
