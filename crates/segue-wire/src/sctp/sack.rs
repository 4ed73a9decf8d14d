//! SACK chunk (RFC 9260 section 3.3.4).

use crate::reader::Reader;
use crate::writer::length_u16;
use crate::{ParseError, Tsn};
use bytes::BufMut;
use smallvec::SmallVec;

/// SACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sack {
    /// Cumulative TSN ack.
    pub cumulative_tsn_ack: Tsn,
    /// Advertised receiver window credit, bytes.
    pub a_rwnd: u32,
    /// Gap ack blocks, ascending as a well-behaved peer sends them. Parsing keeps them as they came: blocks that
    /// start at zero, end before they start, overlap or are out of order are the association's to refuse.
    pub gap_ack_blocks: SmallVec<[GapAckBlock; 4]>,
    /// TSNs received more than once since the last SACK.
    pub duplicate_tsns: Vec<Tsn>,
}

/// A gap ack block: offsets from the cumulative TSN ack, both inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GapAckBlock {
    /// Offset of the first TSN.
    pub start: u16,
    /// Offset of the last TSN.
    pub end: u16,
}

impl Sack {
    /// Parses the chunk's value.
    ///
    /// # Errors
    /// If it is longer or shorter than its counts of gap ack blocks and duplicate TSNs say.
    pub fn parse(mut reader: Reader<'_>) -> Result<Self, ParseError> {
        let cumulative_tsn_ack = Tsn(reader.u32()?);
        let a_rwnd = reader.u32()?;
        let blocks = usize::from(reader.u16()?);
        let duplicates = usize::from(reader.u16()?);
        if reader.remaining() != 4 * (blocks + duplicates) {
            return Err(ParseError::BadLength(reader.context()));
        }
        let mut gap_ack_blocks = SmallVec::with_capacity(blocks);
        for _ in 0..blocks {
            gap_ack_blocks.push(GapAckBlock {
                start: reader.u16()?,
                end: reader.u16()?,
            });
        }
        let mut duplicate_tsns = Vec::with_capacity(duplicates);
        for _ in 0..duplicates {
            duplicate_tsns.push(Tsn(reader.u32()?));
        }
        Ok(Self {
            cumulative_tsn_ack,
            a_rwnd,
            gap_ack_blocks,
            duplicate_tsns,
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        12 + 4 * (self.gap_ack_blocks.len() + self.duplicate_tsns.len())
    }

    /// Appends the chunk's value.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(self.cumulative_tsn_ack.0);
        out.put_u32(self.a_rwnd);
        out.put_u16(length_u16(self.gap_ack_blocks.len()));
        out.put_u16(length_u16(self.duplicate_tsns.len()));
        for block in &self.gap_ack_blocks {
            out.put_u16(block.start);
            out.put_u16(block.end);
        }
        for tsn in &self.duplicate_tsns {
            out.put_u32(tsn.0);
        }
    }
}
