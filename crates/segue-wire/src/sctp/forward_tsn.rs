//! FORWARD TSN chunk (RFC 3758 section 3.2).

use crate::reader::Reader;
use crate::{ParseError, Ssn, Tsn};
use bytes::BufMut;

/// FORWARD TSN (0xC0): the receiver is not to wait for what comes up to a TSN.
///
/// ```text
/// |                      New Cumulative TSN                       |
/// |           Stream-1            |       Stream Sequence-1       |
/// |                              ...                              |
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForwardTsn {
    /// New cumulative TSN.
    pub new_cumulative_tsn: Tsn,
    /// Streams in which ordered messages are skipped, with the highest stream sequence number skipped.
    pub skipped: Vec<(u16, Ssn)>,
}

impl ForwardTsn {
    /// Bytes of a chunk that skips in no stream, chunk header included.
    pub const HEADER_LEN: usize = 8;
    /// Bytes of one stream with its sequence number.
    pub const SKIPPED_LEN: usize = 4;

    /// Parses the chunk's value.
    ///
    /// # Errors
    /// If it is truncated.
    pub fn parse(mut reader: Reader<'_>) -> Result<Self, ParseError> {
        let new_cumulative_tsn = Tsn(reader.u32()?);
        let mut skipped = Vec::with_capacity(reader.remaining() / Self::SKIPPED_LEN);
        while !reader.is_empty() {
            skipped.push((reader.u16()?, Ssn(reader.u16()?)));
        }
        Ok(Self {
            new_cumulative_tsn,
            skipped,
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        Self::HEADER_LEN - 4 + Self::SKIPPED_LEN * self.skipped.len()
    }

    /// Appends the chunk's value.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(self.new_cumulative_tsn.0);
        for (stream_id, ssn) in &self.skipped {
            out.put_u16(*stream_id);
            out.put_u16(ssn.0);
        }
    }
}
