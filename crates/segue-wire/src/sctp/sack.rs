//! SACK chunk (RFC 9260 section 3.3.4).

use crate::reader::Reader;
use crate::writer::length_u16;
use crate::{ParseError, Tsn};
use bytes::BufMut;
use smallvec::SmallVec;

const DATA_PACKETS_SHIFT: u32 = 6;

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
    pub duplicate_tsns: Box<[Tsn]>,
    /// Packets with DATA that it acknowledges, 1 to 3, in the two highest bits of the flags: delayed acks for concurrent
    /// multipath transfer (Iyengar, Amer and Stewart 2006), as usrsctp has it. 0, as RFC 9260 has all flags: not said.
    pub data_packets: u8,
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
    /// Most packets that a SACK says it acknowledges.
    pub const MOST_DATA_PACKETS: u8 = 3;

    /// Chunk flags.
    #[must_use]
    pub const fn flags(&self) -> u8 {
        self.data_packets << DATA_PACKETS_SHIFT
    }

    /// What the flags of a SACK or NR-SACK say of packets.
    pub(super) const fn data_packets(flags: u8) -> u8 {
        flags >> DATA_PACKETS_SHIFT
    }

    /// Parses the chunk's value.
    ///
    /// # Errors
    /// If it is longer or shorter than its counts of gap ack blocks and duplicate TSNs say.
    pub fn parse(flags: u8, mut reader: Reader<'_>) -> Result<Self, ParseError> {
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
            duplicate_tsns: duplicate_tsns.into(),
            data_packets: Self::data_packets(flags),
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
        for tsn in &*self.duplicate_tsns {
            out.put_u32(tsn.0);
        }
    }
}
