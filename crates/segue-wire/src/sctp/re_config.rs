//! RE-CONFIG chunk (RFC 6525 section 3) and its parameters (section 4).

use crate::reader::Reader;
use crate::sctp::UnrecognizedAction;
use crate::sctp::parameter_type::{
    ADD_INCOMING_STREAMS, ADD_OUTGOING_STREAMS, INCOMING_SSN_RESET, OUTGOING_SSN_RESET, RE_CONFIG_RESPONSE,
    SSN_TSN_RESET,
};
use crate::sctp::tlv::{TLV_HEADER_LEN, emit_list, emit_tlv, list_len, parse_list, parse_tlv, tlv};
use crate::{ParseError, ReConfigSerial, Tsn};
use bytes::{BufMut, Bytes};

/// RE-CONFIG (0x82).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReConfig {
    /// Parameters: one, or two in the combinations that section 3.1 lists. Parsing keeps what comes; which
    /// combinations to refuse is the association's.
    pub parameters: Vec<ReConfigParameter>,
}

/// A parameter of RE-CONFIG.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReConfigParameter {
    /// Outgoing SSN reset request (13): the sender begins again at SSN 0.
    OutgoingSsnReset {
        /// Re-configuration request sequence number.
        request: ReConfigSerial,
        /// Re-configuration response sequence number: of the incoming SSN reset request that this answers.
        response: ReConfigSerial,
        /// Sender's last assigned TSN: the reset comes after it.
        last_assigned_tsn: Tsn,
        /// Streams; none stands for all.
        streams: Vec<u16>,
    },
    /// Incoming SSN reset request (14): the receiver is asked to begin again at SSN 0.
    IncomingSsnReset {
        /// Re-configuration request sequence number.
        request: ReConfigSerial,
        /// Streams; none stands for all.
        streams: Vec<u16>,
    },
    /// SSN/TSN reset request (15): all streams of both directions, and the TSNs.
    SsnTsnReset {
        /// Re-configuration request sequence number.
        request: ReConfigSerial,
    },
    /// Re-configuration response (16).
    Response {
        /// Re-configuration response sequence number: that of the request.
        response: ReConfigSerial,
        /// Result.
        result: ReConfigResult,
        /// Sender's next TSN and receiver's next TSN, in the answer to an SSN/TSN reset request.
        next_tsns: Option<(Tsn, Tsn)>,
    },
    /// Add outgoing streams request (17): the sender has that many more to send on.
    AddOutgoingStreams {
        /// Re-configuration request sequence number.
        request: ReConfigSerial,
        /// Number of new streams.
        new_streams: u16,
    },
    /// Add incoming streams request (18): the receiver is asked to have that many more to send on.
    AddIncomingStreams {
        /// Re-configuration request sequence number.
        request: ReConfigSerial,
        /// Number of new streams.
        new_streams: u16,
    },
    /// Any other parameter; what to do with it lies in its two highest bits (RFC 9260 section 3.2.1).
    Unknown {
        /// Parameter type.
        parameter_type: u16,
        /// Parameter value.
        value: Bytes,
    },
}

/// Result of a request (RFC 6525 section 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReConfigResult {
    /// Success, nothing to do (0).
    NothingToDo,
    /// Success, performed (1).
    Performed,
    /// Denied (2).
    Denied,
    /// Error: wrong SSN (3).
    WrongSsn,
    /// Error: request already in progress (4).
    RequestInProgress,
    /// Error: bad sequence number (5).
    BadSequenceNumber,
    /// In progress (6).
    InProgress,
    /// A value that is not assigned.
    Other(u32),
}

impl ReConfigResult {
    /// The result that a value stands for.
    #[must_use]
    pub const fn from_value(value: u32) -> Self {
        match value {
            0 => Self::NothingToDo,
            1 => Self::Performed,
            2 => Self::Denied,
            3 => Self::WrongSsn,
            4 => Self::RequestInProgress,
            5 => Self::BadSequenceNumber,
            6 => Self::InProgress,
            other => Self::Other(other),
        }
    }

    /// Value on the wire.
    #[must_use]
    pub const fn value(self) -> u32 {
        match self {
            Self::NothingToDo => 0,
            Self::Performed => 1,
            Self::Denied => 2,
            Self::WrongSsn => 3,
            Self::RequestInProgress => 4,
            Self::BadSequenceNumber => 5,
            Self::InProgress => 6,
            Self::Other(value) => value,
        }
    }
}

impl ReConfig {
    /// Parses the chunk's value.
    ///
    /// # Errors
    /// If a parameter is truncated or has a length it cannot have.
    pub fn parse(reader: Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            parameters: parse_list(reader.named("RE-CONFIG parameter"))?,
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        list_len(&self.parameters)
    }

    /// Appends the chunk's value, without padding.
    pub fn emit(&self, out: &mut Vec<u8>) {
        emit_list(&self.parameters, out);
    }
}

impl ReConfigParameter {
    /// Parameter type.
    #[must_use]
    pub const fn parameter_type(&self) -> u16 {
        match self {
            Self::OutgoingSsnReset { .. } => OUTGOING_SSN_RESET,
            Self::IncomingSsnReset { .. } => INCOMING_SSN_RESET,
            Self::SsnTsnReset { .. } => SSN_TSN_RESET,
            Self::Response { .. } => RE_CONFIG_RESPONSE,
            Self::AddOutgoingStreams { .. } => ADD_OUTGOING_STREAMS,
            Self::AddIncomingStreams { .. } => ADD_INCOMING_STREAMS,
            Self::Unknown { parameter_type, .. } => *parameter_type,
        }
    }

    /// Re-configuration request sequence number, if it is a request.
    #[must_use]
    pub const fn request(&self) -> Option<ReConfigSerial> {
        match self {
            Self::OutgoingSsnReset { request, .. }
            | Self::IncomingSsnReset { request, .. }
            | Self::SsnTsnReset { request }
            | Self::AddOutgoingStreams { request, .. }
            | Self::AddIncomingStreams { request, .. } => Some(*request),
            Self::Response { .. } | Self::Unknown { .. } => None,
        }
    }

    /// What who does not recognise the parameter must do (RFC 9260 section 3.2.1).
    #[must_use]
    pub const fn unrecognized_action(&self) -> UnrecognizedAction {
        UnrecognizedAction::of_parameter_type(self.parameter_type())
    }

    /// Parses a parameter and passes over its padding.
    ///
    /// # Errors
    /// If it is truncated or has a length it cannot have.
    pub fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (parameter_type, mut value) = parse_tlv(reader)?;
        let parameter = match parameter_type {
            OUTGOING_SSN_RESET => Self::OutgoingSsnReset {
                request: serial(&mut value)?,
                response: serial(&mut value)?,
                last_assigned_tsn: Tsn(value.u32()?),
                streams: streams(&mut value)?,
            },
            INCOMING_SSN_RESET => Self::IncomingSsnReset {
                request: serial(&mut value)?,
                streams: streams(&mut value)?,
            },
            SSN_TSN_RESET => Self::SsnTsnReset {
                request: serial(&mut value)?,
            },
            RE_CONFIG_RESPONSE => Self::Response {
                response: serial(&mut value)?,
                result: ReConfigResult::from_value(value.u32()?),
                next_tsns: if value.is_empty() {
                    None
                } else {
                    Some((Tsn(value.u32()?), Tsn(value.u32()?)))
                },
            },
            ADD_OUTGOING_STREAMS => Self::AddOutgoingStreams {
                request: serial(&mut value)?,
                new_streams: new_streams(&mut value)?,
            },
            ADD_INCOMING_STREAMS => Self::AddIncomingStreams {
                request: serial(&mut value)?,
                new_streams: new_streams(&mut value)?,
            },
            _ => Self::Unknown {
                parameter_type,
                value: value.rest(),
            },
        };
        value.finish()?;
        Ok(parameter)
    }

    /// Length without padding, the value of the length field.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        TLV_HEADER_LEN
            + match self {
                Self::OutgoingSsnReset { streams, .. } => 12 + 2 * streams.len(),
                Self::IncomingSsnReset { streams, .. } => 4 + 2 * streams.len(),
                Self::SsnTsnReset { .. } => 4,
                Self::Response { next_tsns, .. } => 8 + if next_tsns.is_some() { 8 } else { 0 },
                Self::AddOutgoingStreams { .. } | Self::AddIncomingStreams { .. } => 8,
                Self::Unknown { value, .. } => value.len(),
            }
    }

    /// Appends the parameter without padding.
    pub fn emit(&self, out: &mut Vec<u8>) {
        emit_tlv(self.parameter_type(), out, |out| match self {
            Self::OutgoingSsnReset {
                request,
                response,
                last_assigned_tsn,
                streams,
            } => {
                out.put_u32(request.0);
                out.put_u32(response.0);
                out.put_u32(last_assigned_tsn.0);
                streams.iter().for_each(|stream_id| out.put_u16(*stream_id));
            }
            Self::IncomingSsnReset { request, streams } => {
                out.put_u32(request.0);
                streams.iter().for_each(|stream_id| out.put_u16(*stream_id));
            }
            Self::SsnTsnReset { request } => out.put_u32(request.0),
            Self::Response {
                response,
                result,
                next_tsns,
            } => {
                out.put_u32(response.0);
                out.put_u32(result.value());
                if let Some((sender, receiver)) = next_tsns {
                    out.put_u32(sender.0);
                    out.put_u32(receiver.0);
                }
            }
            Self::AddOutgoingStreams { request, new_streams }
            | Self::AddIncomingStreams { request, new_streams } => {
                out.put_u32(request.0);
                out.put_u16(*new_streams);
                out.put_u16(0);
            }
            Self::Unknown { value, .. } => out.put_slice(value),
        });
    }
}

tlv!(ReConfigParameter);

fn serial(value: &mut Reader<'_>) -> Result<ReConfigSerial, ParseError> {
    Ok(ReConfigSerial(value.u32()?))
}

/// The stream numbers that fill the rest of a parameter.
fn streams(value: &mut Reader<'_>) -> Result<Vec<u16>, ParseError> {
    let mut streams = Vec::with_capacity(value.remaining() / 2);
    while !value.is_empty() {
        streams.push(value.u16()?);
    }
    Ok(streams)
}

/// Number of new streams, and a reserved field that is not looked at.
fn new_streams(value: &mut Reader<'_>) -> Result<u16, ParseError> {
    let new_streams = value.u16()?;
    value.u16()?;
    Ok(new_streams)
}
