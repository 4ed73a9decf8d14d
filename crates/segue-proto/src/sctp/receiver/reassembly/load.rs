//! What is held, as the receive window counts it.

use core::ops::{AddAssign, SubAssign};
use segue_wire::Data;

/// User bytes, and the DATA chunks that they came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Load {
    bytes: usize,
    chunks: usize,
}

impl Load {
    /// That of the data of some chunks.
    pub(super) fn of<'a>(parts: impl IntoIterator<Item = &'a Data>) -> Self {
        let mut load = Self::default();
        for part in parts {
            load += Self {
                bytes: part.len(),
                chunks: 1,
            };
        }
        load
    }

    /// So many chunks, without their data.
    pub(super) fn of_chunks(chunks: usize) -> Self {
        Self { bytes: 0, chunks }
    }

    pub(super) fn bytes(self) -> usize {
        self.bytes
    }

    pub(super) fn chunks(self) -> usize {
        self.chunks
    }
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.chunks += other.chunks;
    }
}

impl SubAssign for Load {
    fn sub_assign(&mut self, other: Self) {
        self.bytes -= other.bytes;
        self.chunks -= other.chunks;
    }
}
