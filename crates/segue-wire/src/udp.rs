//! UDP (RFC 768, checksum over IPv6 by RFC 8200 section 8.1).

use crate::ParseError;
use crate::checksum::PseudoHeader;
use crate::payload::Data;
use crate::reader::Reader;
use crate::writer::{length_u16, set};
use bytes::{BufMut, Bytes};

/// Protocol number (RFC 768).
pub const NEXT_HEADER: u8 = 17;

/// Port of SCTP in UDP (RFC 6951 section 7).
pub const SCTP_TUNNELING_PORT: u16 = 9899;

/// Length of the header, bytes.
pub const HEADER_LEN: usize = 8;

/// A UDP datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UdpDatagram {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// User data.
    pub data: Data,
}

impl UdpDatagram {
    /// Parses a datagram; bytes behind its length are ignored. The data shares the storage of `bytes`.
    ///
    /// # Errors
    /// If it is truncated, its length is less than its header's (zero would be a jumbogram, RFC 2675 section 4), or
    /// its checksum is wrong or, as IPv6 does not allow, zero (RFC 8200 section 8.1).
    pub fn parse(bytes: &Bytes, pseudo_header: &PseudoHeader) -> Result<Self, ParseError> {
        let mut reader = Reader::new(bytes, "UDP");
        let source_port = reader.u16()?;
        let destination_port = reader.u16()?;
        let length = usize::from(reader.u16()?);
        let checksum = reader.u16()?;
        let data_len = length
            .checked_sub(HEADER_LEN)
            .ok_or(ParseError::BadLength("UDP"))?;
        let data = reader.bytes(data_len)?;
        let datagram = bytes.get(..length).ok_or(ParseError::Truncated("UDP"))?;
        if checksum == 0 || pseudo_header.checksum(NEXT_HEADER, datagram) != 0 {
            return Err(ParseError::BadChecksum("UDP"));
        }
        Ok(Self {
            source_port,
            destination_port,
            data: Data::Bytes(data),
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        HEADER_LEN + self.data.len()
    }

    /// Appends the datagram with its checksum.
    pub fn emit(&self, pseudo_header: &PseudoHeader, out: &mut Vec<u8>) {
        let ports = (self.source_port, self.destination_port);
        emit(ports, self.data.len(), pseudo_header, out, |out| {
            self.data.emit(out)
        });
    }
}

/// Appends a datagram from `ports.0` to `ports.1`, whose `data_len` bytes of data `emit_data` appends, with its checksum.
pub(crate) fn emit(
    ports: (u16, u16),
    data_len: usize,
    pseudo_header: &PseudoHeader,
    out: &mut Vec<u8>,
    emit_data: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    out.put_u16(ports.0);
    out.put_u16(ports.1);
    out.put_u16(length_u16(HEADER_LEN + data_len));
    out.put_u16(0);
    emit_data(out);
    let checksum = match pseudo_header.checksum(NEXT_HEADER, out.get(start..).unwrap_or_default()) {
        0 => 0xffff,
        checksum => checksum,
    };
    set(out, start + 6, &checksum.to_be_bytes());
}
