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
                offset: offset.wrapping_add(start as u64),
                len: len as u32,
            },
        }
    }

    /// Appends the bytes to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(b) => out.extend_from_slice(b),
            Self::Synthetic { offset, len } => {
                let start = out.len();
                out.resize(start + *len as usize, 0);
                if let Some(tail) = out.get_mut(start..) {
                    fill_synthetic(*offset, tail);
                }
            }
        }
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        self.len()
    }

    /// Whether these are the synthetic bytes from `offset` on.
    #[must_use]
    pub fn is_synthetic_at(&self, offset: u64) -> bool {
        match self {
            Self::Bytes(b) => bytes_are_synthetic(offset, b),
            Self::Synthetic { offset: own, .. } => *own == offset,
        }
    }

    /// From where on these are the synthetic bytes, if they are: eight of them that lie together say where they lie. `None`
    /// for other bytes, and for fewer than [`PLACEABLE_LEN`], which may hold no such eight.
    #[must_use]
    pub fn synthetic_offset(&self) -> Option<u64> {
        match self {
            Self::Synthetic { offset, .. } => Some(*offset),
            Self::Bytes(b) => (0..8).find_map(|head| {
                let word = b.get(head..head + 8)?.first_chunk()?;
                let offset = offset_of_word(u64::from_le_bytes(*word)).wrapping_sub(head as u64);
                (b.len() >= PLACEABLE_LEN && bytes_are_synthetic(offset, b)).then_some(offset)
            }),
        }
    }
}

/// Bytes of data whose place in the synthetic sequence can be told from them, wherever they begin.
pub const PLACEABLE_LEN: usize = 15;

/// Byte `offset` of the synthetic sequence: one byte of a SplitMix64 output, so that shifted or swapped data is
/// noticed.
#[must_use]
pub fn synthetic_byte(offset: u64) -> u8 {
    synthetic_word(offset).to_le_bytes()[(offset & 7) as usize]
}

/// The eight synthetic bytes that `offset` lies among, the first of them least significant: step `offset / 8` of
/// SplitMix64 from zero.
fn synthetic_word(offset: u64) -> u64 {
    let mut z = (offset >> 3).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The offset of the first of these eight synthetic bytes: SplitMix64 undone, which is a permutation of its counter.
fn offset_of_word(word: u64) -> u64 {
    // inverses of the multipliers, modulo 2^64
    let z = (word ^ (word >> 31) ^ (word >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let z = (z ^ (z >> 27) ^ (z >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    let z = (z ^ (z >> 30) ^ (z >> 60)).wrapping_mul(0xf1de_83e1_9937_733d);
    z.wrapping_sub(1) << 3
}

/// Length of the part of `len` bytes from `offset` on that comes before the first whole word.
fn unaligned_len(offset: u64, len: usize) -> usize {
    ((offset.wrapping_neg() & 7) as usize).min(len)
}

/// Fills `out` with the synthetic bytes from `offset` on, a word at a time where aligned.
fn fill_synthetic(mut offset: u64, out: &mut [u8]) {
    let (head, rest) = out.split_at_mut(unaligned_len(offset, out.len()));
    for byte in head {
        *byte = synthetic_byte(offset);
        offset = offset.wrapping_add(1);
    }
    let (words, tail) = rest.as_chunks_mut::<8>();
    for word in words {
        *word = synthetic_word(offset).to_le_bytes();
        offset = offset.wrapping_add(8);
    }
    let last = synthetic_word(offset).to_le_bytes();
    for (byte, synthetic) in tail.iter_mut().zip(last) {
        *byte = synthetic;
    }
}

/// Whether `bytes` are the synthetic bytes from `offset` on, a word at a time where aligned.
fn bytes_are_synthetic(offset: u64, bytes: &[u8]) -> bool {
    let (head, rest) = bytes.split_at(unaligned_len(offset, bytes.len()));
    let aligned = offset.wrapping_add(head.len() as u64);
    let (words, tail) = rest.as_chunks::<8>();
    let last = synthetic_word(aligned.wrapping_add(8 * words.len() as u64)).to_le_bytes();
    (0u64..)
        .zip(head)
        .all(|(i, byte)| *byte == synthetic_byte(offset.wrapping_add(i)))
        && (0u64..)
            .zip(words)
            .all(|(i, word)| *word == synthetic_word(aligned.wrapping_add(8 * i)).to_le_bytes())
        && tail.iter().zip(last).all(|(byte, synthetic)| *byte == synthetic)
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

    /// The sequence is part of the file formats: the first outputs of SplitMix64 seeded with zero.
    #[test]
    fn synthetic_bytes_are_those_of_splitmix64() {
        let mut out = Vec::new();
        Data::Synthetic { offset: 0, len: 16 }.emit(&mut out);
        let expected = [0xe220_a839_7b1d_cdaf_u64, 0x6e78_9e6a_a1b9_65f4]
            .map(u64::to_le_bytes)
            .concat();
        assert_eq!(out, expected);
    }

    #[test]
    fn synthetic_bytes_say_where_they_lie() {
        for offset in (0..20).chain([1 << 40, (1 << 61) + 3]) {
            let data = Data::Synthetic { offset, len: 40 };
            let mut out = Vec::new();
            data.emit(&mut out);
            let read = Data::Bytes(Bytes::from(out.clone()));
            for len in [PLACEABLE_LEN, 16, 40] {
                assert_eq!(read.slice(0, len).synthetic_offset(), Some(offset), "{len} bytes");
                out[len - 1] ^= 1;
                let damaged = Data::Bytes(Bytes::copy_from_slice(&out[..len]));
                assert_eq!(damaged.synthetic_offset(), None);
                out[len - 1] ^= 1;
            }
            assert_eq!(read.slice(0, PLACEABLE_LEN - 1).synthetic_offset(), None);
            assert_eq!(data.synthetic_offset(), Some(offset));
        }
    }

    #[test]
    fn words_and_single_bytes_agree_at_every_alignment_and_length() {
        for offset in (0..20).chain(u64::MAX - 20..=u64::MAX) {
            for len in 0..40 {
                let mut out = vec![0xee];
                Data::Synthetic { offset, len }.emit(&mut out);
                let by_byte: Vec<u8> = (0..u64::from(len))
                    .map(|i| synthetic_byte(offset.wrapping_add(i)))
                    .collect();
                assert_eq!(out[1..], by_byte, "offset {offset}, length {len}");
                let read = Data::Bytes(Bytes::from(by_byte));
                assert!(read.is_synthetic_at(offset));
                for at in 0..len as usize {
                    out[1 + at] ^= 1;
                    assert!(!Data::Bytes(Bytes::copy_from_slice(&out[1..])).is_synthetic_at(offset));
                    out[1 + at] ^= 1;
                }
            }
        }
    }
}
