//! The typed packet.

use crate::ParseError;
use crate::checksum::{PseudoHeader, PseudoRule};
use crate::icmpv6::{self, Icmpv6};
use crate::ilnp::Nonce;
use crate::ipv6::{self, ExtensionHeader, Ipv6Header, Ipv6Option};
use crate::mobility::{self, MobilityHeader};
use crate::payload::Data;
use crate::raw::RawPayload;
use crate::reader::Reader;
use crate::sctp::{self, SctpPacket};
use crate::tcp::{self, TcpSegment};
use crate::udp::{self, UdpDatagram};
use crate::writer::length_u16;
use bytes::{BufMut, Bytes};
use core::hint::cold_path;
use core::net::Ipv6Addr;

/// An IPv6 packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The fixed header.
    pub ip: Ipv6Header,
    /// Extension headers, outermost first; empty for nearly every packet, and then no memory is allocated.
    pub extensions: Vec<ExtensionHeader>,
    /// What the packet carries.
    pub payload: Payload,
}

impl Packet {
    /// From nowhere to nowhere with nothing in it: a place for a packet to be written to.
    pub const EMPTY: Self = Self {
        ip: Ipv6Header {
            source: Ipv6Addr::UNSPECIFIED,
            destination: Ipv6Addr::UNSPECIFIED,
            traffic_class: 0,
            hop_limit: 0,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload: Payload::NoNextHeader,
    };

    /// Parses a packet, copying it once.
    ///
    /// ```
    /// # use segue_wire::{Packet, ParseError, Payload};
    /// let mut bytes = vec![0x60, 0, 0, 0, 0, 0, 59, 64];
    /// bytes.extend([0; 32]);
    /// let packet = Packet::parse(&bytes)?;
    /// assert_eq!(packet.payload, Payload::NoNextHeader);
    /// assert_eq!(Packet::parse(&bytes[..39]), Err(ParseError::Truncated("IPv6")));
    /// # Ok::<(), ParseError>(())
    /// ```
    ///
    /// # Errors
    /// As [`parse_bytes`](Self::parse_bytes).
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        Self::parse_bytes(Bytes::copy_from_slice(bytes))
    }

    /// Parses a packet whose user data then shares the storage of `bytes`.
    ///
    /// Bytes behind the payload length are ignored, as link layers pad. The payload behind an incomplete fragment, and
    /// a hop-by-hop header that is not the first (RFC 8200 section 4.1), become [`Payload::Unknown`].
    ///
    /// # Errors
    /// If a header or the payload is truncated or malformed, a checksum is wrong, or this is a jumbogram (RFC 2675).
    pub fn parse_bytes(bytes: Bytes) -> Result<Self, ParseError> {
        Self::parse_at(bytes, 0)
    }

    /// Parses a packet that is in `depth` others.
    fn parse_at(bytes: Bytes, depth: usize) -> Result<Self, ParseError> {
        let mut reader = Reader::new(&bytes, "IPv6");
        let (ip, payload_length, mut next_header) = Ipv6Header::parse(&mut reader)?;
        if payload_length == 0 && next_header == ipv6::HOP_BY_HOP {
            return Err(ParseError::BadLength("jumbogram"));
        }
        let mut reader = reader.take(usize::from(payload_length), "IPv6 payload")?;
        let mut extensions = Vec::new();
        let mut incomplete = false;
        while !incomplete
            && ExtensionHeader::is_known(next_header)
            && (next_header != ipv6::HOP_BY_HOP || extensions.is_empty())
        {
            let (extension, following) = ExtensionHeader::parse(next_header, &mut reader)?;
            incomplete = extension.is_incomplete_fragment();
            next_header = following;
            extensions.push(extension);
        }
        let body = reader.rest();
        let payload = if incomplete {
            Payload::Unknown {
                next_header,
                bytes: body,
            }
        } else {
            parse_payload(next_header, body, &ip, &mut extensions, depth)?
        };
        Ok(Self {
            ip,
            extensions,
            payload,
        })
    }

    /// Exact number of bytes on the wire. Cheap: nothing is allocated or emitted.
    #[must_use]
    #[inline]
    pub fn buffer_len(&self) -> usize {
        ipv6::HEADER_LEN + self.extensions_len() + self.payload.buffer_len()
    }

    /// Appends the packet with its checksums.
    ///
    /// A packet of more than 65,535 bytes after the fixed header cannot be represented: its payload length comes out
    /// too small, and parsing it fails.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.reserve(self.buffer_len());
        self.emit_headers(out);
        self.payload.emit(&self.pseudo_header(), out);
    }

    /// Appends the IPv6 header and the extension headers alone: for who sends the bytes of a [`Payload::Raw`] from where they
    /// are, with the checksum as it is.
    pub fn emit_headers(&self, out: &mut Vec<u8>) {
        let payload_length = length_u16(self.extensions_len() + self.payload.buffer_len());
        let types = self.extensions.iter().map(ExtensionHeader::header_type);
        let mut next_headers = types.chain([self.payload.next_header()]);
        let mut next_header = || next_headers.next().unwrap_or(ipv6::NO_NEXT_HEADER);
        self.ip.emit(payload_length, next_header(), out);
        for extension in &self.extensions {
            extension.emit(next_header(), out);
        }
    }

    /// The packet's bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.emit(&mut out);
        out
    }

    /// The addresses that the upper-layer checksum covers (RFC 8200 section 8.1): the address in a Home Address option
    /// instead of the source (RFC 6275 section 11.3.1), and the final destination, by the rule that is noted at
    /// the ILNP nonce.
    #[must_use]
    pub fn pseudo_header(&self) -> PseudoHeader {
        let whole = pseudo_header(&self.ip, &self.extensions);
        if self.extensions.is_empty() || !has_rule(self.payload.next_header()) {
            return whole;
        }
        whole.under(self.ilnp_nonce().map_or(PseudoRule::Ipv6, |(_, rule)| rule))
    }

    /// The address in the Home Address destination option (RFC 6275 section 6.3), if there is one.
    #[must_use]
    pub fn home_address(&self) -> Option<Ipv6Addr> {
        home_address(&self.extensions)
    }

    /// Where the packet is going after every segment of its routing header (RFC 8200 section 8.1).
    ///
    /// Only the routing types whose last address is the final destination are read: 0 (RFC 2460, obsolete) and 2
    /// (RFC 6275 section 6.4). With any other type, or no segments left, it is the destination address.
    #[must_use]
    pub fn final_destination(&self) -> Ipv6Addr {
        final_destination(&self.ip, &self.extensions)
    }

    /// Whether this is a neighbour discovery message that its receiver may use: the checks of RFC 4861 sections 6.1.1,
    /// 6.1.2, 7.1.1 and 7.1.2 that parsing has not made already, and that it was not fragmented (RFC 6980 section 5).
    ///
    /// False for anything that is not a router or neighbour solicitation or advertisement.
    #[must_use]
    pub fn nd_is_valid(&self) -> bool {
        let Payload::Icmpv6(message) = &self.payload else {
            return false;
        };
        let fragmented = self
            .extensions
            .iter()
            .any(|e| matches!(e, ExtensionHeader::Fragment { .. }));
        self.ip.hop_limit == 255
            && !fragmented
            && message.nd_addresses_are_valid(self.ip.source, self.ip.destination)
    }

    /// Whether the payload is TCP or UDP, whose checksum may follow either [`PseudoRule`] (RFC 6741 section 4.2).
    #[must_use]
    pub const fn has_pseudo_rule(&self) -> bool {
        has_rule(self.payload.next_header())
    }

    /// The ILNP nonce and the rule that the transport's checksum follows, if there is a nonce (RFC 6744 section 2).
    #[must_use]
    pub fn ilnp_nonce(&self) -> Option<(Nonce, PseudoRule)> {
        ilnp_nonce(&self.extensions)
    }

    /// Length of all extension headers, bytes.
    #[inline]
    fn extensions_len(&self) -> usize {
        // nearly every packet has none
        if self.extensions.is_empty() {
            return 0;
        }
        self.extensions.iter().map(ExtensionHeader::buffer_len).sum()
    }
}

/// Most tunnels that a packet may be in: the default tunnel encapsulation limit (RFC 2473 section 6.7).
pub const MAX_TUNNEL_DEPTH: usize = 4;

/// The upper-layer payload of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// SCTP (protocol 132, RFC 9260).
    Sctp(SctpPacket),
    /// ICMPv6 (protocol 58, RFC 4443).
    Icmpv6(Icmpv6),
    /// SCTP in UDP (RFC 6951). Parsing takes a datagram for one if either of its ports is [`udp::SCTP_TUNNELING_PORT`]; a
    /// driver that uses another port makes this value itself.
    SctpOverUdp {
        /// UDP source port: the sender's encapsulation port.
        source_port: u16,
        /// UDP destination port.
        destination_port: u16,
        /// What the datagram carries.
        packet: SctpPacket,
    },
    /// UDP (protocol 17, RFC 768).
    Udp(UdpDatagram),
    /// TCP (protocol 6, RFC 9293).
    Tcp(TcpSegment),
    /// An IPv6 packet in the packet (41, RFC 2473). Parsing goes down [`MAX_TUNNEL_DEPTH`] of them and leaves one below
    /// that unknown.
    Ipv6(Box<Packet>),
    /// Mobility header (135, RFC 6275).
    Mobility(Box<MobilityHeader>),
    /// The upper layer of somebody else's stack, in bytes, with what is known of its checksum. Parsing gives it only if
    /// asked to: [`Packet::parse_raw`].
    Raw(RawPayload),
    /// No next header (59).
    NoNextHeader,
    /// Any other upper-layer protocol.
    Unknown {
        /// Protocol number.
        next_header: u8,
        /// Payload bytes.
        bytes: Bytes,
    },
}

impl Payload {
    /// Protocol number.
    #[must_use]
    pub const fn next_header(&self) -> u8 {
        match self {
            Self::Sctp(_) => sctp::NEXT_HEADER,
            Self::Icmpv6(_) => icmpv6::NEXT_HEADER,
            Self::SctpOverUdp { .. } | Self::Udp(_) => udp::NEXT_HEADER,
            Self::Tcp(_) => tcp::NEXT_HEADER,
            Self::Ipv6(_) => ipv6::IPV6_IN_IPV6,
            Self::Mobility(_) => mobility::NEXT_HEADER,
            Self::Raw(raw) => raw.next_header,
            Self::NoNextHeader => ipv6::NO_NEXT_HEADER,
            Self::Unknown { next_header, .. } => *next_header,
        }
    }

    /// The SCTP packet, in UDP or not.
    #[must_use]
    pub const fn sctp(&self) -> Option<&SctpPacket> {
        match self {
            Self::Sctp(packet) | Self::SctpOverUdp { packet, .. } => Some(packet),
            _ => None,
        }
    }

    /// Makes it an SCTP packet without chunks, in the memory of the one that it was, if it was one.
    ///
    /// ```
    /// # use segue_wire::Payload;
    /// let mut payload = Payload::NoNextHeader;
    /// payload.begin_sctp().verification_tag = 7;
    /// assert_eq!(payload.sctp().map(|sctp| sctp.verification_tag), Some(7));
    /// ```
    #[inline]
    pub fn begin_sctp(&mut self) -> &mut SctpPacket {
        if !matches!(self, Self::Sctp(_)) {
            cold_path();
            *self = Self::Sctp(SctpPacket::default());
        }
        let Self::Sctp(sctp) = self else {
            unreachable!("it is one now")
        };
        sctp.chunks.clear();
        sctp
    }

    /// Parses the payload that `next_header` announced. What follows "no next header" is ignored (RFC 8200
    /// section 4.7).
    ///
    /// # Errors
    /// If the payload is truncated or malformed, or its checksum is wrong.
    pub fn parse(next_header: u8, bytes: Bytes, pseudo_header: &PseudoHeader) -> Result<Self, ParseError> {
        Self::parse_at(next_header, bytes, pseudo_header, 0)
    }

    fn parse_at(
        next_header: u8,
        bytes: Bytes,
        pseudo_header: &PseudoHeader,
        depth: usize,
    ) -> Result<Self, ParseError> {
        Ok(match next_header {
            sctp::NEXT_HEADER => Self::Sctp(SctpPacket::parse(&bytes)?),
            icmpv6::NEXT_HEADER => Self::Icmpv6(Icmpv6::parse(&bytes, pseudo_header)?),
            udp::NEXT_HEADER => Self::parse_udp(&bytes, pseudo_header)?,
            tcp::NEXT_HEADER => Self::Tcp(TcpSegment::parse(&bytes, pseudo_header)?),
            ipv6::IPV6_IN_IPV6 if depth < MAX_TUNNEL_DEPTH => {
                Self::Ipv6(Box::new(Packet::parse_at(bytes, depth + 1)?))
            }
            mobility::NEXT_HEADER => Self::Mobility(Box::new(MobilityHeader::parse(&bytes, pseudo_header)?)),
            ipv6::NO_NEXT_HEADER => Self::NoNextHeader,
            _ => Self::Unknown { next_header, bytes },
        })
    }

    /// A UDP datagram, or the SCTP packet in it (RFC 6951 section 5.4).
    fn parse_udp(bytes: &Bytes, pseudo_header: &PseudoHeader) -> Result<Self, ParseError> {
        let datagram = UdpDatagram::parse(bytes, pseudo_header)?;
        let (source_port, destination_port) = (datagram.source_port, datagram.destination_port);
        match datagram.data {
            Data::Bytes(sctp)
                if source_port == udp::SCTP_TUNNELING_PORT
                    || destination_port == udp::SCTP_TUNNELING_PORT =>
            {
                Ok(Self::SctpOverUdp {
                    source_port,
                    destination_port,
                    packet: SctpPacket::parse(&sctp)?,
                })
            }
            data => Ok(Self::Udp(UdpDatagram {
                source_port,
                destination_port,
                data,
            })),
        }
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    #[inline]
    pub fn buffer_len(&self) -> usize {
        match self {
            // nearly all are one of these
            Self::Sctp(packet) => packet.buffer_len(),
            Self::Tcp(segment) => segment.buffer_len(),
            _ => self.other_len(),
        }
    }

    #[inline(never)]
    fn other_len(&self) -> usize {
        match self {
            Self::Sctp(packet) => packet.buffer_len(),
            Self::Icmpv6(message) => message.buffer_len(),
            Self::SctpOverUdp { packet, .. } => udp::HEADER_LEN + packet.buffer_len(),
            Self::Udp(datagram) => datagram.buffer_len(),
            Self::Tcp(segment) => segment.buffer_len(),
            Self::Ipv6(packet) => packet.buffer_len(),
            Self::Mobility(header) => header.buffer_len(),
            Self::Raw(raw) => raw.bytes.len(),
            Self::NoNextHeader => 0,
            Self::Unknown { bytes, .. } => bytes.len(),
        }
    }

    /// Appends the payload with its checksum.
    pub fn emit(&self, pseudo_header: &PseudoHeader, out: &mut Vec<u8>) {
        match self {
            Self::Sctp(packet) => packet.emit(out),
            Self::Icmpv6(message) => message.emit(pseudo_header, out),
            Self::SctpOverUdp {
                source_port,
                destination_port,
                packet,
            } => udp::emit(
                (*source_port, *destination_port),
                packet.buffer_len(),
                pseudo_header,
                out,
                |out| packet.emit(out),
            ),
            Self::Udp(datagram) => datagram.emit(pseudo_header, out),
            Self::Tcp(segment) => segment.emit(pseudo_header, out),
            Self::Ipv6(packet) => packet.emit(out),
            Self::Mobility(header) => header.emit(pseudo_header, out),
            Self::Raw(raw) => raw.emit(pseudo_header, out),
            Self::NoNextHeader => {}
            Self::Unknown { bytes, .. } => out.put_slice(bytes),
        }
    }
}

pub(crate) fn pseudo_header(ip: &Ipv6Header, extensions: &[ExtensionHeader]) -> PseudoHeader {
    PseudoHeader {
        source: home_address(extensions).unwrap_or(ip.source),
        destination: final_destination(ip, extensions),
    }
}

fn home_address(extensions: &[ExtensionHeader]) -> Option<Ipv6Addr> {
    extensions.iter().find_map(|extension| match extension {
        ExtensionHeader::DestinationOptions(options) => options.iter().find_map(|option| match option {
            Ipv6Option::HomeAddress(address) => Some(*address),
            _ => None,
        }),
        _ => None,
    })
}

/// The payload that `next_header` announced; where there is a nonce, the checksum of TCP and UDP may follow either rule,
/// and the one that it follows is noted there.
fn parse_payload(
    next_header: u8,
    body: Bytes,
    ip: &Ipv6Header,
    extensions: &mut [ExtensionHeader],
    depth: usize,
) -> Result<Payload, ParseError> {
    let pseudo_header = pseudo_header(ip, extensions);
    let choice = has_rule(next_header) && ilnp_nonce(extensions).is_some();
    if !choice {
        return Payload::parse_at(next_header, body, &pseudo_header, depth);
    }
    match Payload::parse_at(next_header, body.clone(), &pseudo_header, depth) {
        Err(ParseError::BadChecksum(_)) => {
            let identifiers = pseudo_header.under(PseudoRule::Identifiers);
            let payload = Payload::parse_at(next_header, body, &identifiers, depth)?;
            set_rule(extensions, PseudoRule::Identifiers);
            Ok(payload)
        }
        parsed => parsed,
    }
}

/// Whether the checksum of this protocol may follow another rule than IPv6's: that of TCP or UDP (RFC 6741 section 4.2).
pub(crate) const fn has_rule(next_header: u8) -> bool {
    matches!(next_header, TCP | udp::NEXT_HEADER)
}

/// Notes the rule at the nonce.
pub(crate) fn set_rule(extensions: &mut [ExtensionHeader], new: PseudoRule) {
    for extension in extensions {
        if let ExtensionHeader::DestinationOptions(options) = extension {
            for option in options {
                if let Ipv6Option::IlnpNonce { rule, .. } = option {
                    *rule = new;
                }
            }
        }
    }
}

pub(crate) fn ilnp_nonce(extensions: &[ExtensionHeader]) -> Option<(Nonce, PseudoRule)> {
    extensions.iter().find_map(|extension| match extension {
        ExtensionHeader::DestinationOptions(options) => options.iter().find_map(|option| match option {
            Ipv6Option::IlnpNonce { nonce, rule } => Some((*nonce, *rule)),
            _ => None,
        }),
        _ => None,
    })
}

/// Protocol number of TCP (RFC 9293 section 3.1).
pub(crate) const TCP: u8 = 6;

fn final_destination(ip: &Ipv6Header, extensions: &[ExtensionHeader]) -> Ipv6Addr {
    let last_segment = extensions.iter().find_map(|extension| match extension {
        // Reserved (4 bytes), then addresses.
        ExtensionHeader::Routing {
            routing_type: 0 | 2,
            segments_left: 1..,
            data,
        } => data.get(4..)?.last_chunk::<16>().copied().map(Ipv6Addr::from),
        _ => None,
    });
    last_segment.unwrap_or(ip.destination)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet is moved at every hop: whoever makes it longer slows everything down. What is large and rare belongs
    /// behind a pointer, as mobility headers and inner packets are. The longest payload is a SACK with its flags.
    #[test]
    fn a_packet_is_moved_cheaply() {
        assert!(size_of::<Packet>() <= 152, "{}", size_of::<Packet>());
    }
}
