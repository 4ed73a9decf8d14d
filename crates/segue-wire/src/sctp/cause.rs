//! Error causes (RFC 9260 section 3.3.10, RFC 4895 section 4, RFC 5061 section 4.3).

use crate::reader::Reader;
use crate::sctp::tlv::{TLV_HEADER_LEN, emit_tlv, parse_tlv, tlv};
use crate::{ParseError, Tsn};
use bytes::{BufMut, Bytes};

/// An error cause of an ABORT, ERROR or ASCONF-ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ErrorCause {
    /// Invalid stream identifier (1).
    InvalidStreamIdentifier(u16),
    /// Missing mandatory parameter (2): parameter types.
    MissingMandatoryParameter(Vec<u16>),
    /// Stale cookie (3): measure of staleness, microseconds.
    StaleCookie(u32),
    /// Out of resource (4).
    OutOfResource,
    /// Unresolvable address (5): the address parameter, whole.
    UnresolvableAddress(Bytes),
    /// Unrecognized chunk type (6): the chunk, whole.
    UnrecognizedChunkType(Bytes),
    /// Invalid mandatory parameter (7).
    InvalidMandatoryParameter,
    /// Unrecognized parameters (8): the parameters, whole.
    UnrecognizedParameters(Bytes),
    /// No user data (9): TSN of the empty DATA chunk.
    NoUserData(Tsn),
    /// Cookie received while shutting down (10).
    CookieReceivedWhileShuttingDown,
    /// Restart of an association with new addresses (11): the address parameters, whole.
    RestartWithNewAddresses(Bytes),
    /// User-initiated abort (12): upper-layer reason.
    UserInitiatedAbort(Bytes),
    /// Protocol violation (13): additional information.
    ProtocolViolation(Bytes),
    /// Request to delete last remaining IP address (0x00A0): the parameter, whole.
    DeleteLastRemainingAddress(Bytes),
    /// Operation refused due to resource shortage (0x00A1): the parameter, whole.
    OperationRefusedResourceShortage(Bytes),
    /// Request to delete source IP address (0x00A2): the parameter, whole.
    DeleteSourceAddress(Bytes),
    /// Association aborted due to illegal ASCONF-ACK (0x00A3).
    IllegalAsconfAck,
    /// Request refused, no authorization (0x00A4): the parameter, whole.
    RequestRefusedNoAuthorization(Bytes),
    /// Unsupported HMAC identifier (0x0105, RFC 4895 section 4.1).
    UnsupportedHmacIdentifier(u16),
    /// Any other cause, and those above with a length they cannot have: causes only explain, and a malformed
    /// explanation does not undo an ABORT.
    Unknown {
        /// Cause code.
        code: u16,
        /// Cause-specific information.
        value: Bytes,
    },
}

impl ErrorCause {
    /// Its name in the RFC that defines it; that of an unknown one says so.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::InvalidStreamIdentifier(_) => "Invalid Stream Identifier",
            Self::MissingMandatoryParameter(_) => "Missing Mandatory Parameter",
            Self::StaleCookie(_) => "Stale Cookie",
            Self::OutOfResource => "Out of Resource",
            Self::UnresolvableAddress(_) => "Unresolvable Address",
            Self::UnrecognizedChunkType(_) => "Unrecognized Chunk Type",
            Self::InvalidMandatoryParameter => "Invalid Mandatory Parameter",
            Self::UnrecognizedParameters(_) => "Unrecognized Parameters",
            Self::NoUserData(_) => "No User Data",
            Self::CookieReceivedWhileShuttingDown => "Cookie Received While Shutting Down",
            Self::RestartWithNewAddresses(_) => "Restart of an Association with New Addresses",
            Self::UserInitiatedAbort(_) => "User-Initiated Abort",
            Self::ProtocolViolation(_) => "Protocol Violation",
            Self::DeleteLastRemainingAddress(_) => "Request to Delete Last Remaining IP Address",
            Self::OperationRefusedResourceShortage(_) => "Operation Refused Due to Resource Shortage",
            Self::DeleteSourceAddress(_) => "Request to Delete Source IP Address",
            Self::IllegalAsconfAck => "Association Aborted Due to Illegal ASCONF-ACK",
            Self::RequestRefusedNoAuthorization(_) => "Request Refused - No Authorization",
            Self::UnsupportedHmacIdentifier(_) => "Unsupported HMAC Identifier",
            Self::Unknown { .. } => "unknown cause",
        }
    }

    /// Cause code.
    #[must_use]
    pub const fn code(&self) -> u16 {
        match self {
            Self::InvalidStreamIdentifier(_) => 1,
            Self::MissingMandatoryParameter(_) => 2,
            Self::StaleCookie(_) => 3,
            Self::OutOfResource => 4,
            Self::UnresolvableAddress(_) => 5,
            Self::UnrecognizedChunkType(_) => 6,
            Self::InvalidMandatoryParameter => 7,
            Self::UnrecognizedParameters(_) => 8,
            Self::NoUserData(_) => 9,
            Self::CookieReceivedWhileShuttingDown => 10,
            Self::RestartWithNewAddresses(_) => 11,
            Self::UserInitiatedAbort(_) => 12,
            Self::ProtocolViolation(_) => 13,
            Self::DeleteLastRemainingAddress(_) => 0x00a0,
            Self::OperationRefusedResourceShortage(_) => 0x00a1,
            Self::DeleteSourceAddress(_) => 0x00a2,
            Self::IllegalAsconfAck => 0x00a3,
            Self::RequestRefusedNoAuthorization(_) => 0x00a4,
            Self::UnsupportedHmacIdentifier(_) => 0x0105,
            Self::Unknown { code, .. } => *code,
        }
    }

    /// Parses a cause and passes over its padding.
    ///
    /// # Errors
    /// If it is truncated or its length is less than its header's.
    pub fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (code, value) = parse_tlv(reader)?;
        Ok(Self::parse_value(code, value).unwrap_or_else(|| {
            let mut value = value;
            Self::Unknown {
                code,
                value: value.rest(),
            }
        }))
    }

    /// Length without padding, the value of the length field.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        TLV_HEADER_LEN
            + match self {
                Self::InvalidStreamIdentifier(_) | Self::StaleCookie(_) | Self::NoUserData(_) => 4,
                Self::UnsupportedHmacIdentifier(_) => 2,
                Self::MissingMandatoryParameter(types) => 4 + 2 * types.len(),
                Self::OutOfResource
                | Self::InvalidMandatoryParameter
                | Self::CookieReceivedWhileShuttingDown
                | Self::IllegalAsconfAck => 0,
                Self::UnresolvableAddress(bytes)
                | Self::UnrecognizedChunkType(bytes)
                | Self::UnrecognizedParameters(bytes)
                | Self::RestartWithNewAddresses(bytes)
                | Self::UserInitiatedAbort(bytes)
                | Self::ProtocolViolation(bytes)
                | Self::DeleteLastRemainingAddress(bytes)
                | Self::OperationRefusedResourceShortage(bytes)
                | Self::DeleteSourceAddress(bytes)
                | Self::RequestRefusedNoAuthorization(bytes)
                | Self::Unknown { value: bytes, .. } => bytes.len(),
            }
    }

    /// Appends the cause without padding.
    pub fn emit(&self, out: &mut Vec<u8>) {
        emit_tlv(self.code(), out, |out| match self {
            Self::InvalidStreamIdentifier(stream_id) => {
                out.put_u16(*stream_id);
                out.put_u16(0);
            }
            Self::MissingMandatoryParameter(types) => {
                out.put_u32(types.len() as u32);
                types
                    .iter()
                    .for_each(|parameter_type| out.put_u16(*parameter_type));
            }
            Self::UnsupportedHmacIdentifier(hmac_id) => out.put_u16(*hmac_id),
            Self::StaleCookie(staleness) => out.put_u32(*staleness),
            Self::NoUserData(tsn) => out.put_u32(tsn.0),
            Self::OutOfResource
            | Self::InvalidMandatoryParameter
            | Self::CookieReceivedWhileShuttingDown
            | Self::IllegalAsconfAck => {}
            Self::UnresolvableAddress(bytes)
            | Self::UnrecognizedChunkType(bytes)
            | Self::UnrecognizedParameters(bytes)
            | Self::RestartWithNewAddresses(bytes)
            | Self::UserInitiatedAbort(bytes)
            | Self::ProtocolViolation(bytes)
            | Self::DeleteLastRemainingAddress(bytes)
            | Self::OperationRefusedResourceShortage(bytes)
            | Self::DeleteSourceAddress(bytes)
            | Self::RequestRefusedNoAuthorization(bytes)
            | Self::Unknown { value: bytes, .. } => out.put_slice(bytes),
        });
    }

    /// The known cause with this code and value, if there is one and the length is right.
    fn parse_value(code: u16, mut value: Reader<'_>) -> Option<Self> {
        let cause = match code {
            1 => {
                let stream_id = value.u16().ok()?;
                value.skip(2).ok()?;
                Self::InvalidStreamIdentifier(stream_id)
            }
            2 => {
                let count = value.u32().ok()? as usize;
                let mut types = Vec::with_capacity(value.remaining() / 2);
                while !value.is_empty() {
                    types.push(value.u16().ok()?);
                }
                (types.len() == count).then_some(Self::MissingMandatoryParameter(types))?
            }
            3 => Self::StaleCookie(value.u32().ok()?),
            4 => Self::OutOfResource,
            5 => Self::UnresolvableAddress(value.rest()),
            6 => Self::UnrecognizedChunkType(value.rest()),
            7 => Self::InvalidMandatoryParameter,
            8 => Self::UnrecognizedParameters(value.rest()),
            9 => Self::NoUserData(Tsn(value.u32().ok()?)),
            10 => Self::CookieReceivedWhileShuttingDown,
            11 => Self::RestartWithNewAddresses(value.rest()),
            12 => Self::UserInitiatedAbort(value.rest()),
            13 => Self::ProtocolViolation(value.rest()),
            0x00a0 => Self::DeleteLastRemainingAddress(value.rest()),
            0x00a1 => Self::OperationRefusedResourceShortage(value.rest()),
            0x00a2 => Self::DeleteSourceAddress(value.rest()),
            0x00a3 => Self::IllegalAsconfAck,
            0x00a4 => Self::RequestRefusedNoAuthorization(value.rest()),
            0x0105 => Self::UnsupportedHmacIdentifier(value.u16().ok()?),
            _ => return None,
        };
        value.is_empty().then_some(cause)
    }
}

tlv!(ErrorCause);
