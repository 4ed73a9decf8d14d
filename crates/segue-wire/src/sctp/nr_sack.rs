//! NR-SACK chunk (draft-natarajan-tsvwg-sctp-nrsack section 4): a SACK that also says which of the data beyond the
//! cumulative TSN ack the receiver will never discard.

use super::sack::{GapAckBlock, Sack};
use crate::reader::Reader;
use crate::writer::length_u16;
use crate::{ParseError, Tsn};
use bytes::BufMut;
use smallvec::SmallVec;

/// NR-SACK (16): instead of a SACK, once both ends have listed its type in their Supported Extensions parameters.
///
/// ```text
/// |                      Cumulative TSN Ack                       |
/// |          Advertised Receiver Window Credit (a_rwnd)           |
/// | Number of R Gap Ack Blocks N  | Number of NR Gap Ack Blocks M |
/// | Number of Duplicate TSNs X    |           Reserved            |
/// |   R Gap Ack Block #1 Start    |    R Gap Ack Block #1 End     |
/// |                             ... #N                            |
/// |   NR Gap Ack Block #1 Start   |   NR Gap Ack Block #1 End     |
/// |                             ... #M                            |
/// |                      Duplicate TSN 1 ... X                    |
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NrSack {
    /// What a SACK says; its gap ack blocks are the R blocks, of data that the receiver may still discard.
    pub sack: Sack,
    /// NR gap ack blocks, of data that it has delivered or promises to keep: the sender can forget them. A TSN is in a
    /// block of one kind or the other.
    pub nr_gap_ack_blocks: SmallVec<[GapAckBlock; 4]>,
}

impl NrSack {
    /// Bytes of a chunk without blocks and duplicates, chunk header included.
    pub const HEADER_LEN: usize = 20;

    /// Parses the chunk's value.
    ///
    /// # Errors
    /// If it is longer or shorter than its counts of blocks and duplicate TSNs say.
    pub fn parse(flags: u8, mut reader: Reader<'_>) -> Result<Self, ParseError> {
        let cumulative_tsn_ack = Tsn(reader.u32()?);
        let a_rwnd = reader.u32()?;
        let renegable = usize::from(reader.u16()?);
        let non_renegable = usize::from(reader.u16()?);
        let duplicates = usize::from(reader.u16()?);
        // reserved: ignored on receipt
        reader.u16()?;
        if reader.remaining() != 4 * (renegable + non_renegable + duplicates) {
            return Err(ParseError::BadLength(reader.context()));
        }
        let gap_ack_blocks = parse_blocks(&mut reader, renegable)?;
        let nr_gap_ack_blocks = parse_blocks(&mut reader, non_renegable)?;
        let mut duplicate_tsns = Vec::with_capacity(duplicates);
        for _ in 0..duplicates {
            duplicate_tsns.push(Tsn(reader.u32()?));
        }
        Ok(Self {
            sack: Sack {
                cumulative_tsn_ack,
                a_rwnd,
                gap_ack_blocks,
                duplicate_tsns: duplicate_tsns.into(),
                data_packets: Sack::data_packets(flags),
            },
            nr_gap_ack_blocks,
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        let blocks = self.sack.gap_ack_blocks.len() + self.nr_gap_ack_blocks.len();
        Self::HEADER_LEN - 4 + 4 * (blocks + self.sack.duplicate_tsns.len())
    }

    /// Appends the chunk's value.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let sack = &self.sack;
        out.put_u32(sack.cumulative_tsn_ack.0);
        out.put_u32(sack.a_rwnd);
        out.put_u16(length_u16(sack.gap_ack_blocks.len()));
        out.put_u16(length_u16(self.nr_gap_ack_blocks.len()));
        out.put_u16(length_u16(sack.duplicate_tsns.len()));
        out.put_u16(0);
        for block in sack.gap_ack_blocks.iter().chain(&self.nr_gap_ack_blocks) {
            out.put_u16(block.start);
            out.put_u16(block.end);
        }
        for tsn in &*sack.duplicate_tsns {
            out.put_u32(tsn.0);
        }
    }

    /// All gap ack blocks, whether renegable or not, in ascending order and as long as can be: what a SACK would have
    /// reported. Blocks of both kinds that overlap, against the draft, count once.
    #[must_use]
    pub fn all_gap_ack_blocks(&self) -> SmallVec<[GapAckBlock; 4]> {
        let mut all: SmallVec<[GapAckBlock; 4]> = self.sack.gap_ack_blocks.clone();
        all.extend_from_slice(&self.nr_gap_ack_blocks);
        all.sort_unstable_by_key(|block| (block.start, block.end));
        let mut joined: SmallVec<[GapAckBlock; 4]> = SmallVec::new();
        for block in all {
            match joined.last_mut() {
                // a block that ends before it starts stays as it came: it is the association's to refuse
                Some(last)
                    if last.start <= last.end
                        && block.start <= block.end
                        && block.start <= last.end.saturating_add(1) =>
                {
                    last.end = last.end.max(block.end);
                }
                _ => joined.push(block),
            }
        }
        joined
    }
}

fn parse_blocks(reader: &mut Reader<'_>, count: usize) -> Result<SmallVec<[GapAckBlock; 4]>, ParseError> {
    let mut blocks = SmallVec::with_capacity(count);
    for _ in 0..count {
        blocks.push(GapAckBlock {
            start: reader.u16()?,
            end: reader.u16()?,
        });
    }
    Ok(blocks)
}
