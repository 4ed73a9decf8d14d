//! ASCONF and ASCONF-ACK chunks (RFC 5061 section 4.1) and their parameters (section 4.2).

use crate::reader::Reader;
use crate::sctp::parameter_type::{
    ACTIVATE_ADDRESS, ADD_IP_ADDRESS, DEACTIVATE_ADDRESS, DELETE_IP_ADDRESS, ERROR_CAUSE_INDICATION,
    IPV4_ADDRESS, IPV6_ADDRESS, SET_PRIMARY_ADDRESS, SUCCESS_INDICATION,
};
use crate::sctp::tlv::{TLV_HEADER_LEN, emit_list, emit_tlv, list_len, padded, parse_list, parse_tlv, tlv};
use crate::sctp::{ErrorCause, UnrecognizedAction};
use crate::writer::pad;
use crate::{AsconfSerial, ParseError};
use bytes::{BufMut, Bytes};
use core::net::Ipv6Addr;

/// ASCONF (0xC1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asconf {
    /// Serial number.
    pub serial_number: AsconfSerial,
    /// Address parameter: some address of the sender that is part of the association, for look-up. An IPv4 address
    /// parameter is an IPv4-mapped address here (RFC 4291 section 2.5.5.2).
    pub address: Ipv6Addr,
    /// Requests, in the order in which they are to be worked off.
    pub parameters: Vec<AsconfParameter>,
}

impl Asconf {
    /// Parses the chunk's value.
    ///
    /// # Errors
    /// If it is truncated, its first parameter is not an address, or a request is malformed.
    pub fn parse(mut reader: Reader<'_>) -> Result<Self, ParseError> {
        let serial_number = AsconfSerial(reader.u32()?);
        let mut address = reader.named("ASCONF address parameter");
        let (address_type, mut value) = parse_tlv(&mut address)?;
        let context = reader.context();
        reader = address.named(context);
        let address = match address_type {
            IPV6_ADDRESS => value.ipv6()?,
            IPV4_ADDRESS => value.ipv4()?.to_ipv6_mapped(),
            _ => return Err(ParseError::BadValue("ASCONF address parameter")),
        };
        value.finish()?;
        Ok(Self {
            serial_number,
            address,
            parameters: parse_list(reader.named("ASCONF parameter"))?,
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        let address_len = if self.address.to_ipv4_mapped().is_some() {
            TLV_HEADER_LEN + 4
        } else {
            ADDRESS_TLV_LEN
        };
        4 + address_len + list_len(&self.parameters)
    }

    /// Appends the chunk's value, without padding.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(self.serial_number.0);
        match self.address.to_ipv4_mapped() {
            Some(address) => emit_tlv(IPV4_ADDRESS, out, |out| out.put_slice(&address.octets())),
            None => emit_address(self.address, out),
        }
        emit_list(&self.parameters, out);
    }
}

/// ASCONF-ACK (0x80).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsconfAck {
    /// Serial number of the ASCONF answered.
    pub serial_number: AsconfSerial,
    /// Responses; a request without one succeeded.
    pub responses: Vec<AsconfResponse>,
}

impl AsconfAck {
    /// Parses the chunk's value.
    ///
    /// Responses of another type than success and error cause are left out; one whose type demands it stops
    /// the reading of responses (RFC 9260 section 3.2.1).
    ///
    /// # Errors
    /// If it is truncated or a response is malformed.
    pub fn parse(mut reader: Reader<'_>) -> Result<Self, ParseError> {
        let serial_number = AsconfSerial(reader.u32()?);
        let mut reader = reader.named("ASCONF-ACK parameter");
        let mut responses = Vec::new();
        while !reader.is_empty() {
            let (parameter_type, value) = parse_tlv(&mut reader)?;
            match AsconfResponse::parse_value(parameter_type, value)? {
                Some(response) => responses.push(response),
                None if UnrecognizedAction::of_parameter_type(parameter_type).stops() => break,
                None => {}
            }
        }
        Ok(Self {
            serial_number,
            responses,
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        self.responses
            .iter()
            .fold(4, |len, response| padded(len) + response.buffer_len())
    }

    /// Appends the chunk's value, without padding.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u32(self.serial_number.0);
        for response in &self.responses {
            pad(out, start, 4);
            response.emit(out);
        }
    }
}

/// A request of an ASCONF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AsconfParameter {
    /// Add IP address (0xC001).
    AddIpAddress {
        /// ASCONF-request correlation id.
        correlation_id: u32,
        /// Address; unspecified stands for the packet's source.
        address: Ipv6Addr,
    },
    /// Delete IP address (0xC002).
    DeleteIpAddress {
        /// ASCONF-request correlation id.
        correlation_id: u32,
        /// Address; unspecified stands for all but the packet's source.
        address: Ipv6Addr,
    },
    /// Set primary address (0xC004).
    SetPrimaryAddress {
        /// ASCONF-request correlation id.
        correlation_id: u32,
        /// Address; unspecified stands for the packet's source.
        address: Ipv6Addr,
    },
    /// Deactivate address (0xFF01), private.
    DeactivateAddress {
        /// ASCONF-request correlation id.
        correlation_id: u32,
        /// Address.
        address: Ipv6Addr,
    },
    /// Activate address (0xFF02), private.
    ActivateAddress {
        /// ASCONF-request correlation id.
        correlation_id: u32,
        /// Address.
        address: Ipv6Addr,
    },
    /// Any other request, and those above with another address type than IPv6, so that they can be answered with an
    /// error.
    Unknown {
        /// Parameter type.
        parameter_type: u16,
        /// ASCONF-request correlation id.
        correlation_id: u32,
        /// The rest of the value.
        value: Bytes,
    },
}

impl AsconfParameter {
    /// Parameter type.
    #[must_use]
    pub const fn parameter_type(&self) -> u16 {
        match self {
            Self::AddIpAddress { .. } => ADD_IP_ADDRESS,
            Self::DeleteIpAddress { .. } => DELETE_IP_ADDRESS,
            Self::SetPrimaryAddress { .. } => SET_PRIMARY_ADDRESS,
            Self::DeactivateAddress { .. } => DEACTIVATE_ADDRESS,
            Self::ActivateAddress { .. } => ACTIVATE_ADDRESS,
            Self::Unknown { parameter_type, .. } => *parameter_type,
        }
    }

    /// ASCONF-request correlation id.
    #[must_use]
    pub const fn correlation_id(&self) -> u32 {
        match self {
            Self::AddIpAddress { correlation_id, .. }
            | Self::DeleteIpAddress { correlation_id, .. }
            | Self::SetPrimaryAddress { correlation_id, .. }
            | Self::DeactivateAddress { correlation_id, .. }
            | Self::ActivateAddress { correlation_id, .. }
            | Self::Unknown { correlation_id, .. } => *correlation_id,
        }
    }

    /// What who does not recognise the request must do (RFC 9260 section 3.2.1).
    #[must_use]
    pub const fn unrecognized_action(&self) -> UnrecognizedAction {
        UnrecognizedAction::of_parameter_type(self.parameter_type())
    }

    /// Parses a request and passes over its padding.
    ///
    /// # Errors
    /// If it is truncated, lacks a correlation id, or has a malformed address.
    pub fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (parameter_type, mut value) = parse_tlv(reader)?;
        let correlation_id = value.u32()?;
        let mut whole = value;
        let address = match parameter_type {
            ADD_IP_ADDRESS | DELETE_IP_ADDRESS | SET_PRIMARY_ADDRESS => parse_ipv6_address(&mut value)?,
            // private types: whoever else uses them may mean something else
            DEACTIVATE_ADDRESS | ACTIVATE_ADDRESS => parse_ipv6_address(&mut value).unwrap_or(None),
            _ => None,
        };
        Ok(match (parameter_type, address) {
            (ADD_IP_ADDRESS, Some(address)) => Self::AddIpAddress {
                correlation_id,
                address,
            },
            (DELETE_IP_ADDRESS, Some(address)) => Self::DeleteIpAddress {
                correlation_id,
                address,
            },
            (SET_PRIMARY_ADDRESS, Some(address)) => Self::SetPrimaryAddress {
                correlation_id,
                address,
            },
            (DEACTIVATE_ADDRESS, Some(address)) => Self::DeactivateAddress {
                correlation_id,
                address,
            },
            (ACTIVATE_ADDRESS, Some(address)) => Self::ActivateAddress {
                correlation_id,
                address,
            },
            _ => Self::Unknown {
                parameter_type,
                correlation_id,
                value: whole.rest(),
            },
        })
    }

    /// Length without padding, the value of the length field.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        TLV_HEADER_LEN
            + 4
            + match self {
                Self::Unknown { value, .. } => value.len(),
                _ => ADDRESS_TLV_LEN,
            }
    }

    /// Appends the request without padding: as it stands whole in an error cause.
    pub fn emit(&self, out: &mut Vec<u8>) {
        emit_tlv(self.parameter_type(), out, |out| {
            out.put_u32(self.correlation_id());
            match self {
                Self::AddIpAddress { address, .. }
                | Self::DeleteIpAddress { address, .. }
                | Self::SetPrimaryAddress { address, .. }
                | Self::DeactivateAddress { address, .. }
                | Self::ActivateAddress { address, .. } => emit_address(*address, out),
                Self::Unknown { value, .. } => out.put_slice(value),
            }
        });
    }
}

tlv!(AsconfParameter);

/// A response of an ASCONF-ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AsconfResponse {
    /// Success indication (0xC005).
    SuccessIndication {
        /// Correlation id of the request.
        correlation_id: u32,
    },
    /// Error cause indication (0xC003).
    ErrorCauseIndication {
        /// Correlation id of the request.
        correlation_id: u32,
        /// Causes.
        causes: Vec<ErrorCause>,
    },
}

impl AsconfResponse {
    /// Correlation id of the request answered.
    #[must_use]
    pub const fn correlation_id(&self) -> u32 {
        match self {
            Self::SuccessIndication { correlation_id }
            | Self::ErrorCauseIndication { correlation_id, .. } => *correlation_id,
        }
    }

    /// Length without padding, the value of the length field.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        TLV_HEADER_LEN
            + 4
            + match self {
                Self::SuccessIndication { .. } => 0,
                Self::ErrorCauseIndication { causes, .. } => list_len(causes),
            }
    }

    /// Appends the response without padding.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::SuccessIndication { correlation_id } => {
                emit_tlv(SUCCESS_INDICATION, out, |out| out.put_u32(*correlation_id));
            }
            Self::ErrorCauseIndication {
                correlation_id,
                causes,
            } => {
                emit_tlv(ERROR_CAUSE_INDICATION, out, |out| {
                    out.put_u32(*correlation_id);
                    emit_list(causes, out);
                });
            }
        }
    }

    /// Parses a parameter's value; nothing if the parameter is not a response.
    fn parse_value(parameter_type: u16, mut value: Reader<'_>) -> Result<Option<Self>, ParseError> {
        match parameter_type {
            SUCCESS_INDICATION => {
                let correlation_id = value.u32()?;
                value.finish()?;
                Ok(Some(Self::SuccessIndication { correlation_id }))
            }
            ERROR_CAUSE_INDICATION => {
                let correlation_id = value.u32()?;
                let causes = parse_list(value.named("error cause"))?;
                Ok(Some(Self::ErrorCauseIndication {
                    correlation_id,
                    causes,
                }))
            }
            _ => Ok(None),
        }
    }
}

/// Length of an IPv6 address parameter, bytes.
pub(super) const ADDRESS_TLV_LEN: usize = TLV_HEADER_LEN + 16;

/// Reads the address parameter that fills the rest of `reader`; nothing if it is not an IPv6 address.
pub(super) fn parse_ipv6_address(reader: &mut Reader<'_>) -> Result<Option<Ipv6Addr>, ParseError> {
    let (address_type, mut value) = parse_tlv(reader)?;
    reader.finish()?;
    if address_type != IPV6_ADDRESS {
        return Ok(None);
    }
    let address = value.ipv6()?;
    value.finish()?;
    Ok(Some(address))
}

/// Appends an IPv6 address parameter.
pub(super) fn emit_address(address: Ipv6Addr, out: &mut Vec<u8>) {
    emit_tlv(IPV6_ADDRESS, out, |out| out.put_slice(&address.octets()));
}
