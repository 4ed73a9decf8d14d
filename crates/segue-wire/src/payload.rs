//! User data: real bytes, or synthetic bytes that are a pure function of their offset.

use bytes::Bytes;

/// The data that a chunk or datagram carries.
///
/// `Synthetic` stands for bytes that no application reads: byte `i` of it is [`synthetic_byte`]`(offset + i)`, so
/// that it can be emitted and, at the receiver, checked, without ever being stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// Real bytes.
    Bytes(Bytes),
    /// `len` bytes of the synthetic byte sequence, from `offset` on.
    Synthetic {
        /// Position of the first byte in the synthetic sequence.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
}

impl Data {
    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(b) => b.len(),
            Self::Synthetic { len, .. } => *len as usize,
        }
    }

    /// Whether there is no data.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sub-range `start..start + len`, sharing storage.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn slice(&self, start: usize, len: usize) -> Self {
        assert!(start + len <= self.len(), "slice out of bounds");
        match self {
            Self::Bytes(b) => Self::Bytes(b.slice(start..start + len)),
            Self::Synthetic { offset, .. } => Self::Synthetic {
                offset: offset + start as u64,
                len: len as u32,
            },
        }
    }

    /// Appends the bytes to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(b) => out.extend_from_slice(b),
            Self::Synthetic { offset, len } => {
                out.extend((0..u64::from(*len)).map(|i| synthetic_byte(offset + i)));
            }
        }
    }

    /// Whether these are the synthetic bytes from `offset` on.
    #[must_use]
    pub fn is_synthetic_at(&self, offset: u64) -> bool {
        match self {
            Self::Bytes(b) => b
                .iter()
                .enumerate()
                .all(|(i, &byte)| byte == synthetic_byte(offset + i as u64)),
            Self::Synthetic { offset: own, .. } => *own == offset,
        }
    }
}

/// Byte `offset` of the synthetic sequence: one byte of a SplitMix64 output, so that shifted or swapped data is
/// noticed.
#[must_use]
pub fn synthetic_byte(offset: u64) -> u8 {
    let mut z = (offset >> 3).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    z.to_le_bytes()[(offset & 7) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emitted_synthetic_data_is_recognised_at_its_own_offset_only() {
        let data = Data::Synthetic {
            offset: 1000,
            len: 64,
        };
        let mut out = Vec::new();
        data.emit(&mut out);
        let read = Data::Bytes(Bytes::from(out));
        assert!(read.is_synthetic_at(1000));
        assert!(!read.is_synthetic_at(1001));
        assert!(read.slice(3, 20).is_synthetic_at(1003));
    }
}
