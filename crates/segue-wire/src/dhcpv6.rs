//! DHCPv6 messages (RFC 8415), as far as a client that asks for one address needs them.

use crate::ParseError;
use crate::reader::Reader;
use crate::writer::length_u16;
use bytes::{BufMut, Bytes};
use core::net::Ipv6Addr;

/// UDP port of clients (RFC 8415 section 7.2).
pub const CLIENT_PORT: u16 = 546;
/// UDP port of servers and relays (RFC 8415 section 7.2).
pub const SERVER_PORT: u16 = 547;

/// Message types (RFC 8415 section 7.3) of client-server exchanges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageType {
    /// SOLICIT (1).
    Solicit,
    /// ADVERTISE (2).
    Advertise,
    /// REQUEST (3).
    Request,
    /// CONFIRM (4).
    Confirm,
    /// RENEW (5).
    Renew,
    /// REBIND (6).
    Rebind,
    /// REPLY (7).
    Reply,
    /// RELEASE (8).
    Release,
    /// DECLINE (9).
    Decline,
}

impl MessageType {
    /// The type with this number, if it is one of a client-server exchange.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Solicit,
            2 => Self::Advertise,
            3 => Self::Request,
            4 => Self::Confirm,
            5 => Self::Renew,
            6 => Self::Rebind,
            7 => Self::Reply,
            8 => Self::Release,
            9 => Self::Decline,
            _ => return None,
        })
    }

    /// The type's number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Solicit => 1,
            Self::Advertise => 2,
            Self::Request => 3,
            Self::Confirm => 4,
            Self::Renew => 5,
            Self::Rebind => 6,
            Self::Reply => 7,
            Self::Release => 8,
            Self::Decline => 9,
        }
    }
}

/// A client-server message (RFC 8415 section 8).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dhcpv6Message {
    /// Message type.
    pub message_type: MessageType,
    /// Transaction id, 24 bits.
    pub transaction_id: u32,
    /// Options.
    pub options: Vec<Dhcpv6Option>,
}

impl Dhcpv6Message {
    /// Parses the data of a UDP datagram.
    ///
    /// # Errors
    /// If it is truncated, an option has a wrong length, or the type is not one of a client-server exchange (relay
    /// messages, reconfigure and information-request are not).
    pub fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
        let mut reader = Reader::new(bytes, "DHCPv6");
        let first = reader.u32()?;
        let message_type = MessageType::from_number((first >> 24) as u8)
            .ok_or(ParseError::BadValue("DHCPv6 message type"))?;
        let mut options = Vec::new();
        while !reader.is_empty() {
            options.push(Dhcpv6Option::parse(&mut reader)?);
        }
        Ok(Self {
            message_type,
            transaction_id: first & 0x00ff_ffff,
            options,
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        4 + self.options.iter().map(Dhcpv6Option::buffer_len).sum::<usize>()
    }

    /// Appends the message.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(u32::from(self.message_type.number()) << 24 | self.transaction_id & 0x00ff_ffff);
        for option in &self.options {
            option.emit(out);
        }
    }

    /// The message's bytes, as the data of a UDP datagram.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.buffer_len());
        self.emit(&mut out);
        Bytes::from(out)
    }
}

/// An option (RFC 8415 section 21).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dhcpv6Option {
    /// Client identifier (1): a DUID.
    ClientIdentifier(Bytes),
    /// Server identifier (2): a DUID.
    ServerIdentifier(Bytes),
    /// Identity association for non-temporary addresses (3).
    IaNa(IaNa),
    /// Elapsed time (8), hundredths of a second.
    ElapsedTime(u16),
    /// Rapid commit (14).
    RapidCommit,
    /// Status code (13) with its message.
    StatusCode {
        /// Code (section 21.13).
        code: u16,
        /// UTF-8 text, kept as bytes.
        message: Bytes,
    },
    /// Any other option.
    Unknown {
        /// Option code.
        code: u16,
        /// Option data.
        data: Bytes,
    },
}

impl Dhcpv6Option {
    /// Option code.
    #[must_use]
    pub const fn code(&self) -> u16 {
        match self {
            Self::ClientIdentifier(_) => CLIENT_IDENTIFIER,
            Self::ServerIdentifier(_) => SERVER_IDENTIFIER,
            Self::IaNa(_) => IA_NA,
            Self::ElapsedTime(_) => ELAPSED_TIME,
            Self::RapidCommit => RAPID_COMMIT,
            Self::StatusCode { .. } => STATUS_CODE,
            Self::Unknown { code, .. } => *code,
        }
    }

    /// Parses one option.
    ///
    /// # Errors
    /// If it is truncated or its length is not one it can have.
    pub fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (code, mut body) = option_body(reader, "DHCPv6 option")?;
        let option = match code {
            CLIENT_IDENTIFIER => Self::ClientIdentifier(body.rest()),
            SERVER_IDENTIFIER => Self::ServerIdentifier(body.rest()),
            IA_NA => Self::IaNa(IaNa::parse(&mut body)?),
            ELAPSED_TIME => Self::ElapsedTime(body.u16()?),
            RAPID_COMMIT => Self::RapidCommit,
            STATUS_CODE => Self::StatusCode {
                code: body.u16()?,
                message: body.rest(),
            },
            _ => Self::Unknown {
                code,
                data: body.rest(),
            },
        };
        body.finish()?;
        Ok(option)
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        OPTION_HEADER_LEN
            + match self {
                Self::ClientIdentifier(data) | Self::ServerIdentifier(data) | Self::Unknown { data, .. } => {
                    data.len()
                }
                Self::IaNa(ia) => 12 + ia.addresses.len() * (OPTION_HEADER_LEN + IA_ADDRESS_LEN),
                Self::ElapsedTime(_) => 2,
                Self::RapidCommit => 0,
                Self::StatusCode { message, .. } => 2 + message.len(),
            }
    }

    /// Appends the option.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u16(self.code());
        out.put_u16(length_u16(self.buffer_len() - OPTION_HEADER_LEN));
        match self {
            Self::ClientIdentifier(data) | Self::ServerIdentifier(data) | Self::Unknown { data, .. } => {
                out.put_slice(data);
            }
            Self::IaNa(ia) => ia.emit(out),
            Self::ElapsedTime(time) => out.put_u16(*time),
            Self::RapidCommit => {}
            Self::StatusCode { code, message } => {
                out.put_u16(*code);
                out.put_slice(message);
            }
        }
    }
}

/// Identity association for non-temporary addresses (section 21.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IaNa {
    /// Identity association identifier.
    pub iaid: u32,
    /// T1, seconds.
    pub t1_s: u32,
    /// T2, seconds.
    pub t2_s: u32,
    /// Addresses in it (section 21.6).
    pub addresses: Vec<IaAddress>,
}

impl IaNa {
    /// Parses an option's data. Options in it that are not addresses are checked for length and passed over.
    fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let iaid = reader.u32()?;
        let t1_s = reader.u32()?;
        let t2_s = reader.u32()?;
        let mut addresses = Vec::new();
        while !reader.is_empty() {
            let (code, mut body) = option_body(reader, "DHCPv6 IA_NA option")?;
            if code == IA_ADDRESS {
                addresses.push(IaAddress::parse(&mut body)?);
            }
        }
        Ok(Self {
            iaid,
            t1_s,
            t2_s,
            addresses,
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(self.iaid);
        out.put_u32(self.t1_s);
        out.put_u32(self.t2_s);
        for address in &self.addresses {
            out.put_u16(IA_ADDRESS);
            out.put_u16(IA_ADDRESS_LEN as u16);
            out.put_slice(&address.address.octets());
            out.put_u32(address.preferred_lifetime_s);
            out.put_u32(address.valid_lifetime_s);
        }
    }
}

/// IA address option (section 21.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IaAddress {
    /// The address.
    pub address: Ipv6Addr,
    /// Preferred lifetime, seconds.
    pub preferred_lifetime_s: u32,
    /// Valid lifetime, seconds.
    pub valid_lifetime_s: u32,
}

impl IaAddress {
    /// Parses an option's data; options in it are passed over.
    fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let address = reader.ipv6()?;
        let preferred_lifetime_s = reader.u32()?;
        let valid_lifetime_s = reader.u32()?;
        while !reader.is_empty() {
            option_body(reader, "DHCPv6 IA address option")?;
        }
        Ok(Self {
            address,
            preferred_lifetime_s,
            valid_lifetime_s,
        })
    }
}

/// Code and length, bytes (section 21.1).
const OPTION_HEADER_LEN: usize = 4;
/// Length of an IA address option's data without options in it, bytes (section 21.6).
const IA_ADDRESS_LEN: usize = 24;

// Option codes of section 21.
const CLIENT_IDENTIFIER: u16 = 1;
const SERVER_IDENTIFIER: u16 = 2;
const IA_NA: u16 = 3;
const IA_ADDRESS: u16 = 5;
const ELAPSED_TIME: u16 = 8;
const STATUS_CODE: u16 = 13;
const RAPID_COMMIT: u16 = 14;

/// Reads code and length of an option, and splits off its data.
fn option_body<'a>(reader: &mut Reader<'a>, context: &'static str) -> Result<(u16, Reader<'a>), ParseError> {
    let code = reader.u16()?;
    let len = usize::from(reader.u16()?);
    Ok((code, reader.take(len, context)?))
}
