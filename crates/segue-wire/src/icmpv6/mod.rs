//! ICMPv6 (RFC 4443) and neighbour discovery (RFC 4861).

pub mod invoking;
pub mod nd;

use crate::ParseError;
use crate::checksum::PseudoHeader;
use crate::ilnp::LocatorUpdate;
use crate::reader::Reader;
use crate::writer::set;
use bytes::{BufMut, Bytes};
use core::net::Ipv6Addr;
use nd::{NdOption, NeighborAdvertisement, NeighborSolicitation, RouterAdvertisement, RouterSolicitation};

/// Protocol number (RFC 4443 section 1).
pub const NEXT_HEADER: u8 = 58;

/// An ICMPv6 message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Icmpv6 {
    /// Destination unreachable (type 1), with the code and the start of the packet that caused it.
    DestinationUnreachable {
        /// Code (RFC 4443 section 3.1).
        code: u8,
        /// As much of the invoking packet as fits.
        invoking: Bytes,
    },
    /// Packet too big (type 2).
    PacketTooBig {
        /// MTU of the next hop, bytes.
        mtu: u32,
        /// As much of the invoking packet as fits.
        invoking: Bytes,
    },
    /// Time exceeded (type 3).
    TimeExceeded {
        /// Code (RFC 4443 section 3.3).
        code: u8,
        /// As much of the invoking packet as fits.
        invoking: Bytes,
    },
    /// Parameter problem (type 4).
    ParameterProblem {
        /// Code (RFC 4443 section 3.4).
        code: u8,
        /// Offset of the error in the invoking packet, bytes.
        pointer: u32,
        /// As much of the invoking packet as fits.
        invoking: Bytes,
    },
    /// Echo request (type 128).
    EchoRequest(Echo),
    /// Echo reply (type 129).
    EchoReply(Echo),
    /// Router solicitation (type 133).
    RouterSolicitation(RouterSolicitation),
    /// Router advertisement (type 134).
    RouterAdvertisement(RouterAdvertisement),
    /// Neighbour solicitation (type 135).
    NeighborSolicitation(NeighborSolicitation),
    /// Neighbour advertisement (type 136).
    NeighborAdvertisement(NeighborAdvertisement),
    /// Locator update (type 156, RFC 6743).
    LocatorUpdate(LocatorUpdate),
    /// Any other message, kept whole.
    Unknown {
        /// Type.
        message_type: u8,
        /// Code.
        code: u8,
        /// Body after the checksum.
        body: Bytes,
    },
}

impl Icmpv6 {
    /// Parses a message. Invoking packets, echo data and unknown bodies share the storage of `bytes`.
    ///
    /// The code is kept where it means something, must be zero in neighbour discovery (RFC 4861 sections 6.1 and 7.1),
    /// and is otherwise ignored.
    ///
    /// # Errors
    /// If the message is truncated, its checksum is wrong, or it is a neighbour discovery message with another code
    /// than zero or an option of length zero, or a malformed locator update.
    pub fn parse(bytes: &Bytes, pseudo_header: &PseudoHeader) -> Result<Self, ParseError> {
        let mut reader = Reader::new(bytes, "ICMPv6");
        let message_type = reader.u8()?;
        let code = reader.u8()?;
        reader.skip(2)?;
        if pseudo_header.checksum(NEXT_HEADER, bytes) != 0 {
            return Err(ParseError::BadChecksum("ICMPv6"));
        }
        if matches!(message_type, ROUTER_SOLICITATION..=NEIGHBOR_ADVERTISEMENT) && code != 0 {
            return Err(ParseError::BadValue("neighbour discovery code"));
        }
        Ok(match message_type {
            DESTINATION_UNREACHABLE => {
                reader.skip(4)?;
                Self::DestinationUnreachable {
                    code,
                    invoking: reader.rest(),
                }
            }
            PACKET_TOO_BIG => Self::PacketTooBig {
                mtu: reader.u32()?,
                invoking: reader.rest(),
            },
            TIME_EXCEEDED => {
                reader.skip(4)?;
                Self::TimeExceeded {
                    code,
                    invoking: reader.rest(),
                }
            }
            PARAMETER_PROBLEM => Self::ParameterProblem {
                code,
                pointer: reader.u32()?,
                invoking: reader.rest(),
            },
            ECHO_REQUEST => Self::EchoRequest(Echo::parse(&mut reader)?),
            ECHO_REPLY => Self::EchoReply(Echo::parse(&mut reader)?),
            ROUTER_SOLICITATION => {
                Self::RouterSolicitation(RouterSolicitation::parse(reader.named("router solicitation"))?)
            }
            ROUTER_ADVERTISEMENT => {
                Self::RouterAdvertisement(RouterAdvertisement::parse(reader.named("router advertisement"))?)
            }
            NEIGHBOR_SOLICITATION => Self::NeighborSolicitation(NeighborSolicitation::parse(
                reader.named("neighbour solicitation"),
            )?),
            NEIGHBOR_ADVERTISEMENT => Self::NeighborAdvertisement(NeighborAdvertisement::parse(
                reader.named("neighbour advertisement"),
            )?),
            LOCATOR_UPDATE => {
                Self::LocatorUpdate(LocatorUpdate::parse(code, reader.named("locator update"))?)
            }
            _ => Self::Unknown {
                message_type,
                code,
                body: reader.rest(),
            },
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        HEADER_LEN
            + match self {
                Self::DestinationUnreachable { invoking, .. }
                | Self::PacketTooBig { invoking, .. }
                | Self::TimeExceeded { invoking, .. }
                | Self::ParameterProblem { invoking, .. } => 4 + invoking.len(),
                Self::EchoRequest(echo) | Self::EchoReply(echo) => echo.buffer_len(),
                Self::RouterSolicitation(message) => message.buffer_len(),
                Self::RouterAdvertisement(message) => message.buffer_len(),
                Self::NeighborSolicitation(message) => message.buffer_len(),
                Self::NeighborAdvertisement(message) => message.buffer_len(),
                Self::LocatorUpdate(message) => message.buffer_len(),
                Self::Unknown { body, .. } => body.len(),
            }
    }

    /// Appends the message with its checksum.
    pub fn emit(&self, pseudo_header: &PseudoHeader, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_slice(&[self.message_type(), self.code(), 0, 0]);
        match self {
            Self::DestinationUnreachable { invoking, .. } | Self::TimeExceeded { invoking, .. } => {
                out.put_u32(0);
                out.put_slice(invoking);
            }
            Self::PacketTooBig { mtu: word, invoking }
            | Self::ParameterProblem {
                pointer: word,
                invoking,
                ..
            } => {
                out.put_u32(*word);
                out.put_slice(invoking);
            }
            Self::EchoRequest(echo) | Self::EchoReply(echo) => echo.emit(out),
            Self::RouterSolicitation(message) => message.emit(out),
            Self::RouterAdvertisement(message) => message.emit(out),
            Self::NeighborSolicitation(message) => message.emit(out),
            Self::NeighborAdvertisement(message) => message.emit(out),
            Self::LocatorUpdate(message) => message.emit(out),
            Self::Unknown { body, .. } => out.put_slice(body),
        }
        let checksum = pseudo_header.checksum(NEXT_HEADER, out.get(start..).unwrap_or_default());
        set(out, start + 2, &checksum.to_be_bytes());
    }

    /// Type (RFC 4443 section 2.1).
    #[must_use]
    pub const fn message_type(&self) -> u8 {
        match self {
            Self::DestinationUnreachable { .. } => DESTINATION_UNREACHABLE,
            Self::PacketTooBig { .. } => PACKET_TOO_BIG,
            Self::TimeExceeded { .. } => TIME_EXCEEDED,
            Self::ParameterProblem { .. } => PARAMETER_PROBLEM,
            Self::EchoRequest(_) => ECHO_REQUEST,
            Self::EchoReply(_) => ECHO_REPLY,
            Self::RouterSolicitation(_) => ROUTER_SOLICITATION,
            Self::RouterAdvertisement(_) => ROUTER_ADVERTISEMENT,
            Self::NeighborSolicitation(_) => NEIGHBOR_SOLICITATION,
            Self::NeighborAdvertisement(_) => NEIGHBOR_ADVERTISEMENT,
            Self::LocatorUpdate(_) => LOCATOR_UPDATE,
            Self::Unknown { message_type, .. } => *message_type,
        }
    }

    /// Code (RFC 4443 section 2.1).
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::DestinationUnreachable { code, .. }
            | Self::TimeExceeded { code, .. }
            | Self::ParameterProblem { code, .. }
            | Self::Unknown { code, .. } => *code,
            _ => 0,
        }
    }

    /// Whether this is an error message: the highest bit of the type is zero (RFC 4443 section 2.1). None is ever
    /// sent in answer to one (section 2.4).
    #[must_use]
    pub const fn is_error(&self) -> bool {
        self.message_type() < 128
    }

    /// The checks of RFC 4861 sections 6.1.1, 6.1.2, 7.1.1 and 7.1.2 that need only the message and its addresses.
    pub(crate) fn nd_addresses_are_valid(&self, source: Ipv6Addr, destination: Ipv6Addr) -> bool {
        match self {
            Self::RouterSolicitation(message) => {
                !source.is_unspecified() || !has_source_link_layer_address(&message.options)
            }
            Self::RouterAdvertisement(_) => source.is_unicast_link_local(),
            Self::NeighborSolicitation(message) => {
                !message.target.is_multicast()
                    && (!source.is_unspecified()
                        || nd::is_solicited_node_multicast(destination)
                            && !has_source_link_layer_address(&message.options))
            }
            Self::NeighborAdvertisement(message) => {
                !message.target.is_multicast() && (!destination.is_multicast() || !message.solicited)
            }
            _ => false,
        }
    }
}

/// Echo request and reply (RFC 4443 section 4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Echo {
    /// Identifier.
    pub identifier: u16,
    /// Sequence number.
    pub sequence: u16,
    /// Data.
    pub data: Bytes,
}

impl Echo {
    /// Parses what follows the checksum.
    fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            identifier: reader.u16()?,
            sequence: reader.u16()?,
            data: reader.rest(),
        })
    }

    fn buffer_len(&self) -> usize {
        4 + self.data.len()
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.put_u16(self.identifier);
        out.put_u16(self.sequence);
        out.put_slice(&self.data);
    }
}

/// Type, code and checksum, bytes (RFC 4443 section 2.1).
const HEADER_LEN: usize = 4;

// Types of RFC 4443 sections 3 and 4 and RFC 4861 section 4.
const DESTINATION_UNREACHABLE: u8 = 1;
const PACKET_TOO_BIG: u8 = 2;
const TIME_EXCEEDED: u8 = 3;
const PARAMETER_PROBLEM: u8 = 4;
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;
const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOR_SOLICITATION: u8 = 135;
const NEIGHBOR_ADVERTISEMENT: u8 = 136;
// RFC 6743 section 2
const LOCATOR_UPDATE: u8 = 156;

fn has_source_link_layer_address(options: &[NdOption]) -> bool {
    options
        .iter()
        .any(|option| option.option_type() == nd::SOURCE_LINK_LAYER_ADDRESS)
}
