//! INIT and INIT ACK chunks (RFC 9260 sections 3.3.2 and 3.3.3).

use crate::reader::Reader;
use crate::sctp::Parameter;
use crate::sctp::tlv::{emit_list, list_len, parse_list};
use crate::{ParseError, Tsn};
use bytes::BufMut;

/// INIT or INIT ACK: the same fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Init {
    /// Initiate tag.
    pub initiate_tag: u32,
    /// Advertised receiver window credit, bytes.
    pub a_rwnd: u32,
    /// Number of outbound streams.
    pub outbound_streams: u16,
    /// Number of inbound streams.
    pub inbound_streams: u16,
    /// Initial TSN.
    pub initial_tsn: Tsn,
    /// Variable-length parameters.
    pub parameters: Vec<Parameter>,
}

impl Init {
    /// Parses the chunk's value. An initiate tag or stream count of zero is left to the association to refuse.
    ///
    /// # Errors
    /// If it is truncated or a parameter is malformed.
    pub fn parse(mut reader: Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            initiate_tag: reader.u32()?,
            a_rwnd: reader.u32()?,
            outbound_streams: reader.u16()?,
            inbound_streams: reader.u16()?,
            initial_tsn: Tsn(reader.u32()?),
            parameters: parse_list::<Parameter>(reader)?,
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        16 + list_len(&self.parameters)
    }

    /// Appends the chunk's value, without padding.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(self.initiate_tag);
        out.put_u32(self.a_rwnd);
        out.put_u16(self.outbound_streams);
        out.put_u16(self.inbound_streams);
        out.put_u32(self.initial_tsn.0);
        emit_list(&self.parameters, out);
    }
}
