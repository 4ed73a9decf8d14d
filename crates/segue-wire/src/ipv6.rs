//! IPv6 header and extension headers (RFC 8200).

use crate::ParseError;
use crate::checksum::PseudoRule;
use crate::ilnp::Nonce;
use crate::reader::Reader;
use crate::writer::{length_u8, pad};
use bytes::{BufMut, Bytes};
use core::net::Ipv6Addr;

/// Next header value of a hop-by-hop options header (RFC 8200 section 4.3).
pub const HOP_BY_HOP: u8 = 0;
/// Next header value of an IPv6 packet in the packet (RFC 2473 section 3).
pub const IPV6_IN_IPV6: u8 = 41;
/// Next header value of a routing header (RFC 8200 section 4.4).
pub const ROUTING: u8 = 43;
/// Next header value of a fragment header (RFC 8200 section 4.5).
pub const FRAGMENT: u8 = 44;
/// Next header value of a destination options header (RFC 8200 section 4.6).
pub const DESTINATION_OPTIONS: u8 = 60;
/// Next header value for "nothing follows" (RFC 8200 section 4.7).
pub const NO_NEXT_HEADER: u8 = 59;
/// Length of the fixed header, bytes (RFC 8200 section 3).
pub const HEADER_LEN: usize = 40;

/// The fixed IPv6 header (RFC 8200 section 3). Payload length and next header are worked out on emission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Header {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// Traffic class.
    pub traffic_class: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
}

impl Ipv6Header {
    /// Parses the header, and hands back payload length and next header with it.
    ///
    /// ```text
    /// |Version| Traffic Class |           Flow Label                  |
    /// |         Payload Length        |  Next Header  |   Hop Limit   |
    /// |              Source Address (16), Destination Address (16)    |
    /// ```
    ///
    /// # Errors
    /// If it is truncated or its version is not 6.
    pub fn parse(reader: &mut Reader<'_>) -> Result<(Self, u16, u8), ParseError> {
        let first = reader.u32()?;
        if first >> 28 != 6 {
            return Err(ParseError::BadValue("IPv6 version"));
        }
        let payload_length = reader.u16()?;
        let next_header = reader.u8()?;
        let hop_limit = reader.u8()?;
        let header = Self {
            source: reader.ipv6()?,
            destination: reader.ipv6()?,
            traffic_class: (first >> 20) as u8,
            hop_limit,
            flow_label: first & 0x000f_ffff,
        };
        Ok((header, payload_length, next_header))
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Appends the header.
    pub fn emit(&self, payload_length: u16, next_header: u8, out: &mut Vec<u8>) {
        out.put_u32(6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0x000f_ffff);
        out.put_u16(payload_length);
        out.put_u8(next_header);
        out.put_u8(self.hop_limit);
        out.put_slice(&self.source.octets());
        out.put_slice(&self.destination.octets());
    }
}

/// An extension header (RFC 8200 section 4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExtensionHeader {
    /// Hop-by-hop options.
    HopByHop(Vec<Ipv6Option>),
    /// Destination options.
    DestinationOptions(Vec<Ipv6Option>),
    /// Routing header, kept whole.
    Routing {
        /// Routing type.
        routing_type: u8,
        /// Segments left.
        segments_left: u8,
        /// Type-specific data.
        data: Bytes,
    },
    /// Fragment header (section 4.5). The payload behind a fragment is kept as `Payload::Unknown` unless the
    /// offset is zero and no more fragments follow.
    Fragment {
        /// Offset in units of 8 bytes.
        offset: u16,
        /// More fragments follow.
        more: bool,
        /// Identification.
        identification: u32,
    },
}

impl ExtensionHeader {
    /// Whether `next_header` names a header that [`parse`](Self::parse) knows.
    #[must_use]
    pub const fn is_known(next_header: u8) -> bool {
        matches!(next_header, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS)
    }

    /// The next header value that announces this header.
    #[must_use]
    pub const fn header_type(&self) -> u8 {
        match self {
            Self::HopByHop(_) => HOP_BY_HOP,
            Self::DestinationOptions(_) => DESTINATION_OPTIONS,
            Self::Routing { .. } => ROUTING,
            Self::Fragment { .. } => FRAGMENT,
        }
    }

    /// Whether this is a fragment header behind which lies less than the whole fragmentable part, so that what
    /// follows cannot be parsed before reassembly (RFC 8200 section 4.5). An atomic fragment (RFC 6946) is whole.
    #[must_use]
    pub const fn is_incomplete_fragment(&self) -> bool {
        matches!(self, Self::Fragment { offset, more, .. } if *offset != 0 || *more)
    }

    /// A type 2 routing header (RFC 6275 section 6.4): the packet's destination is the care-of address of the mobile node
    /// whose home address this is.
    #[must_use]
    pub fn type_2_routing(home_address: Ipv6Addr) -> Self {
        let mut data = vec![0; 4];
        data.put_slice(&home_address.octets());
        Self::Routing {
            routing_type: TYPE_2,
            segments_left: 1,
            data: data.into(),
        }
    }

    /// The home address of a type 2 routing header that is not used up: one segment left, of one (RFC 6275 section
    /// 6.4.1).
    #[must_use]
    pub fn type_2_home_address(&self) -> Option<Ipv6Addr> {
        match self {
            Self::Routing {
                routing_type: TYPE_2,
                segments_left: 1,
                data,
            } if data.len() == 20 => data.last_chunk::<16>().copied().map(Ipv6Addr::from),
            _ => None,
        }
    }

    /// A destination options header with a Home Address option (RFC 6275 section 6.3): the packet's source is a care-of
    /// address of the mobile node whose home address this is.
    #[must_use]
    pub fn home_address(home_address: Ipv6Addr) -> Self {
        Self::DestinationOptions(vec![Ipv6Option::HomeAddress(home_address)])
    }

    /// Parses the header that `header_type` announced, and hands back the next header value with it.
    ///
    /// # Errors
    /// If it is truncated, an option is malformed, the header asks for a jumbogram (RFC 2675), or `header_type` is not
    /// [known](Self::is_known).
    pub fn parse(header_type: u8, reader: &mut Reader<'_>) -> Result<(Self, u8), ParseError> {
        match header_type {
            HOP_BY_HOP => {
                let (next_header, body) = sized_body(reader, "hop-by-hop options")?;
                Ok((Self::HopByHop(Ipv6Option::parse_all(body)?), next_header))
            }
            DESTINATION_OPTIONS => {
                let (next_header, body) = sized_body(reader, "destination options")?;
                Ok((
                    Self::DestinationOptions(Ipv6Option::parse_all(body)?),
                    next_header,
                ))
            }
            ROUTING => {
                let (next_header, mut body) = sized_body(reader, "routing header")?;
                let routing_type = body.u8()?;
                let segments_left = body.u8()?;
                Ok((
                    Self::Routing {
                        routing_type,
                        segments_left,
                        data: body.rest(),
                    },
                    next_header,
                ))
            }
            FRAGMENT => {
                let mut body = reader.take(8, "fragment header")?;
                let next_header = body.u8()?;
                body.skip(1)?;
                let offset_and_flags = body.u16()?;
                let header = Self::Fragment {
                    offset: offset_and_flags >> 3,
                    more: offset_and_flags & 1 != 0,
                    identification: body.u32()?,
                };
                Ok((header, next_header))
            }
            _ => Err(ParseError::BadValue("extension header type")),
        }
    }

    /// Number of bytes that [`emit`](Self::emit) appends: a multiple of 8.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        match self {
            Self::HopByHop(options) | Self::DestinationOptions(options) => options
                .iter()
                .fold(2, |at, option| option.end(at))
                .next_multiple_of(8),
            Self::Routing { data, .. } => (4 + data.len()).next_multiple_of(8),
            Self::Fragment { .. } => 8,
        }
    }

    /// Appends the header, padded to a multiple of 8 bytes.
    pub fn emit(&self, next_header: u8, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u8(next_header);
        match self {
            Self::HopByHop(options) | Self::DestinationOptions(options) => {
                out.put_u8(length_u8(self.buffer_len() / 8 - 1));
                for option in options {
                    option.emit(start, out);
                }
                let end = (out.len() - start).next_multiple_of(8) + start;
                emit_padding(end - out.len(), out);
            }
            Self::Routing {
                routing_type,
                segments_left,
                data,
            } => {
                out.put_u8(length_u8(self.buffer_len() / 8 - 1));
                out.put_u8(*routing_type);
                out.put_u8(*segments_left);
                out.put_slice(data);
                pad(out, start, 8);
            }
            Self::Fragment {
                offset,
                more,
                identification,
            } => {
                out.put_u8(0);
                out.put_u16(offset << 3 | u16::from(*more));
                out.put_u32(*identification);
            }
        }
    }
}

/// An option of a hop-by-hop or destination options header (RFC 8200 section 4.2); padding is not kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ipv6Option {
    /// Router alert (RFC 2711).
    RouterAlert(u16),
    /// Home address (RFC 6275 section 6.3), of destination options.
    HomeAddress(Ipv6Addr),
    /// ILNP nonce (RFC 6744 section 2), of one of the two lengths that there are.
    IlnpNonce {
        /// The nonce.
        nonce: Nonce,
        /// Which rule the TCP or UDP checksum behind the option follows: not in the option itself, but only packets
        /// that have the option have the choice. Parsing tries both in order and sets what it finds; anything that has
        /// no such checksum is under [`PseudoRule::Ipv6`].
        rule: PseudoRule,
    },
    /// An option this crate does not know, with its data.
    Unknown {
        /// Option type, with the action bits.
        option_type: u8,
        /// Option data.
        data: Bytes,
    },
}

impl Ipv6Option {
    /// Option type, with the action bits.
    #[must_use]
    pub const fn option_type(&self) -> u8 {
        match self {
            Self::RouterAlert(_) => ROUTER_ALERT,
            Self::HomeAddress(_) => HOME_ADDRESS,
            Self::IlnpNonce { .. } => ILNP_NONCE,
            Self::Unknown { option_type, .. } => *option_type,
        }
    }

    /// What a node that does not recognise the option must do with its packet.
    #[must_use]
    pub const fn action(&self) -> OptionAction {
        match self.option_type() >> 6 {
            0 => OptionAction::Skip,
            1 => OptionAction::Discard,
            2 => OptionAction::DiscardAndReport,
            _ => OptionAction::DiscardAndReportUnlessMulticast,
        }
    }

    /// Parses the options that fill `reader`.
    fn parse_all(mut reader: Reader<'_>) -> Result<Vec<Self>, ParseError> {
        let mut options = Vec::new();
        while !reader.is_empty() {
            let option_type = reader.u8()?;
            if option_type == PAD_1 {
                continue;
            }
            let len = usize::from(reader.u8()?);
            match option_type {
                PAD_N => reader.skip(len)?,
                JUMBO_PAYLOAD => return Err(ParseError::BadValue("jumbogram")),
                ROUTER_ALERT if len == 2 => options.push(Self::RouterAlert(reader.u16()?)),
                ROUTER_ALERT => return Err(ParseError::BadLength("router alert option")),
                HOME_ADDRESS if len == 16 => options.push(Self::HomeAddress(reader.ipv6()?)),
                HOME_ADDRESS => return Err(ParseError::BadLength("home address option")),
                ILNP_NONCE if len == 4 || len == 12 => {
                    let nonce = if len == 4 {
                        Nonce::Bits32(reader.array()?)
                    } else {
                        Nonce::Bits96(reader.array()?)
                    };
                    options.push(Self::IlnpNonce {
                        nonce,
                        rule: PseudoRule::Ipv6,
                    });
                }
                _ => options.push(Self::Unknown {
                    option_type,
                    data: reader.bytes(len)?,
                }),
            }
        }
        Ok(options)
    }

    /// Where the option ends in its header if there is room for it from `at` on, counting padding before it.
    fn end(&self, at: usize) -> usize {
        match self {
            // Alignment 2n+0 (RFC 2711 section 2.1).
            Self::RouterAlert(_) => at.next_multiple_of(2) + 4,
            // Alignment 8n+6 (RFC 6275 section 6.3).
            Self::HomeAddress(_) => (at + 2).next_multiple_of(8) - 2 + 18,
            // No alignment is asked for (RFC 6744 section 2): alone in its header, it fills that without padding.
            Self::IlnpNonce { nonce, .. } => at + 2 + nonce.as_bytes().len(),
            Self::Unknown { data, .. } => at + 2 + data.len(),
        }
    }

    /// Appends the option to the header that begins at `start`.
    fn emit(&self, start: usize, out: &mut Vec<u8>) {
        match self {
            Self::RouterAlert(value) => {
                emit_padding((out.len() - start) % 2, out);
                out.put_slice(&[ROUTER_ALERT, 2]);
                out.put_u16(*value);
            }
            Self::HomeAddress(address) => {
                let at = out.len() - start;
                emit_padding((at + 2).next_multiple_of(8) - 2 - at, out);
                out.put_slice(&[HOME_ADDRESS, 16]);
                out.put_slice(&address.octets());
            }
            Self::IlnpNonce { nonce, .. } => {
                let nonce = nonce.as_bytes();
                out.put_slice(&[ILNP_NONCE, length_u8(nonce.len())]);
                out.put_slice(nonce);
            }
            Self::Unknown { option_type, data } => {
                out.put_u8(*option_type);
                out.put_u8(length_u8(data.len()));
                out.put_slice(data);
            }
        }
    }
}

/// What to do with a packet that carries an unrecognised option: the two highest bits of the option's type
/// (RFC 8200 section 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionAction {
    /// 00: skip over the option.
    Skip,
    /// 01: discard the packet.
    Discard,
    /// 10: discard the packet and send an ICMPv6 Parameter Problem, code 2.
    DiscardAndReport,
    /// 11: discard the packet and send an ICMPv6 Parameter Problem, code 2, unless its destination is multicast.
    DiscardAndReportUnlessMulticast,
}

/// Option type of Pad1 (RFC 8200 section 4.2).
const PAD_1: u8 = 0;
/// Option type of PadN (RFC 8200 section 4.2).
const PAD_N: u8 = 1;
/// Option type of router alert (RFC 2711 section 2.1).
const ROUTER_ALERT: u8 = 5;
/// Option type of home address (RFC 6275 section 6.3).
const HOME_ADDRESS: u8 = 0xc9;
/// Routing type 2 (RFC 6275 section 6.4).
const TYPE_2: u8 = 2;
/// Option type of the ILNP nonce (RFC 6744 section 2): a node that does not know it discards the packet and says so.
pub const ILNP_NONCE: u8 = 0x8b;
/// Option type of jumbo payload (RFC 2675 section 2).
const JUMBO_PAYLOAD: u8 = 0xc2;

/// Reads next header and header length, and splits off the rest of the header.
fn sized_body<'a>(reader: &mut Reader<'a>, context: &'static str) -> Result<(u8, Reader<'a>), ParseError> {
    let mut named = reader.named(context);
    let next_header = named.u8()?;
    let len = 6 + 8 * usize::from(named.u8()?);
    let body = named.take(len, context)?;
    *reader = named.named(reader.context());
    Ok((next_header, body))
}

/// Appends `len` bytes of padding, fewer than 8: Pad1 or PadN.
fn emit_padding(len: usize, out: &mut Vec<u8>) {
    match len {
        0 => {}
        1 => out.put_u8(PAD_1),
        _ => {
            out.put_slice(&[PAD_N, length_u8(len - 2)]);
            out.put_bytes(0, len - 2);
        }
    }
}
