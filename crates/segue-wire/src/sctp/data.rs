//! DATA chunk (RFC 9260 section 3.3.1).

use crate::payload::Data;
use crate::reader::Reader;
use crate::{ParseError, Ssn, Tsn};
use bytes::BufMut;

/// DATA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataChunk {
    /// Transmission sequence number.
    pub tsn: Tsn,
    /// Stream identifier.
    pub stream_id: u16,
    /// Stream sequence number; meaningless if unordered.
    pub ssn: Ssn,
    /// Payload protocol identifier.
    pub payload_protocol_id: u32,
    /// U bit.
    pub unordered: bool,
    /// B bit: first fragment of a user message.
    pub beginning: bool,
    /// E bit: last fragment of a user message.
    pub ending: bool,
    /// I bit: the receiver should acknowledge at once (RFC 7053).
    pub immediate: bool,
    /// User data. An empty chunk is an error that parsing leaves to the association, which must abort with the cause
    /// "no user data" and the chunk's TSN (section 3.3.10.9).
    pub data: Data,
}

impl DataChunk {
    /// The chunk with its data; what is left has none.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let data = core::mem::replace(&mut self.data, Data::Synthetic { offset: 0, len: 0 });
        Self { data, ..*self }
    }

    /// Length of what precedes the user data in the chunk, chunk header included, bytes.
    pub const HEADER_LEN: usize = 16;

    /// Parses the chunk's value.
    ///
    /// # Errors
    /// If it is truncated.
    pub fn parse(flags: u8, mut reader: Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            tsn: Tsn(reader.u32()?),
            stream_id: reader.u16()?,
            ssn: Ssn(reader.u16()?),
            payload_protocol_id: reader.u32()?,
            unordered: flags & UNORDERED != 0,
            beginning: flags & BEGINNING != 0,
            ending: flags & ENDING != 0,
            immediate: flags & IMMEDIATE != 0,
            data: Data::Bytes(reader.rest()),
        })
    }

    /// Chunk flags.
    #[must_use]
    pub const fn flags(&self) -> u8 {
        (if self.unordered { UNORDERED } else { 0 })
            | (if self.beginning { BEGINNING } else { 0 })
            | (if self.ending { ENDING } else { 0 })
            | (if self.immediate { IMMEDIATE } else { 0 })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        Self::HEADER_LEN - 4 + self.data.len()
    }

    /// Appends the chunk's value, without padding.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(self.tsn.0);
        out.put_u16(self.stream_id);
        out.put_u16(self.ssn.0);
        out.put_u32(self.payload_protocol_id);
        self.data.emit(out);
    }
}

const ENDING: u8 = 1;
const BEGINNING: u8 = 2;
const UNORDERED: u8 = 4;
const IMMEDIATE: u8 = 8;
