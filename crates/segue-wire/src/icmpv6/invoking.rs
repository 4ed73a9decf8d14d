//! The packet that an ICMPv6 error is about, as far as the error quotes it (RFC 4443 section 2.4 c).

use super::Icmpv6;
use crate::ipv6::{ExtensionHeader, HEADER_LEN, Ipv6Header};
use crate::reader::Reader;
use crate::{Packet, ParseError, sctp, udp};
use bytes::Bytes;
use core::net::Ipv6Addr;

/// The least MTU of IPv6, which no error exceeds (RFC 8200 section 5, RFC 4443 section 2.4 c).
pub const MIN_MTU: usize = 1280;

/// What an error quotes of the IPv6 packet that caused it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invoking {
    /// Its source: whoever the error was sent to.
    pub source: Ipv6Addr,
    /// Its destination.
    pub destination: Ipv6Addr,
    /// Protocol of its payload.
    pub next_header: u8,
    /// Start of its payload.
    pub payload: Bytes,
}

/// What an error quotes of an SCTP packet: enough to tell its sender whether it is one of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvokingSctp {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Verification tag.
    pub verification_tag: u32,
    /// Initiate tag, if the first chunk is an INIT and was quoted that far.
    pub initiate_tag: Option<u32>,
    /// UDP ports, source first, if the packet was in UDP (RFC 6951).
    pub udp_ports: Option<(u16, u16)>,
}

impl Invoking {
    /// Reads the start of a packet, whose end is usually missing.
    ///
    /// # Errors
    /// If not even its headers are whole, or the payload is behind a fragment that is not the first.
    pub fn parse(quoted: &Bytes) -> Result<Self, ParseError> {
        let mut reader = Reader::new(quoted, "invoking packet");
        let (ip, _, mut next_header) = Ipv6Header::parse(&mut reader)?;
        while ExtensionHeader::is_known(next_header) {
            let (extension, following) = ExtensionHeader::parse(next_header, &mut reader)?;
            if matches!(extension, ExtensionHeader::Fragment { offset: 1.., .. }) {
                return Err(ParseError::BadValue("invoking fragment"));
            }
            next_header = following;
        }
        Ok(Self {
            source: ip.source,
            destination: ip.destination,
            next_header,
            payload: reader.rest(),
        })
    }

    /// The SCTP packet, bare or in UDP.
    ///
    /// # Errors
    /// If it is another protocol, or its common header is not whole but for the checksum.
    pub fn sctp(&self) -> Result<InvokingSctp, ParseError> {
        let mut reader = Reader::new(&self.payload, "invoking SCTP packet");
        let udp_ports = match self.next_header {
            sctp::NEXT_HEADER => None,
            udp::NEXT_HEADER => {
                let ports = (reader.u16()?, reader.u16()?);
                reader.skip(4)?;
                Some(ports)
            }
            _ => return Err(ParseError::BadValue("invoking protocol")),
        };
        let (source_port, destination_port) = (reader.u16()?, reader.u16()?);
        let verification_tag = reader.u32()?;
        Ok(InvokingSctp {
            source_port,
            destination_port,
            verification_tag,
            initiate_tag: initiate_tag(reader),
            udp_ports,
        })
    }
}

/// The initiate tag behind the verification tag: checksum, chunk header, tag.
fn initiate_tag(mut reader: Reader<'_>) -> Option<u32> {
    reader.skip(4).ok()?;
    let chunk_type = reader.u8().ok()?;
    reader.skip(3).ok()?;
    let tag = reader.u32().ok()?;
    (chunk_type == 1).then_some(tag)
}

impl Icmpv6 {
    /// The packet that this error quotes; `None` if it is no error of a known type.
    #[must_use]
    pub fn invoking(&self) -> Option<&Bytes> {
        match self {
            Self::DestinationUnreachable { invoking, .. }
            | Self::PacketTooBig { invoking, .. }
            | Self::TimeExceeded { invoking, .. }
            | Self::ParameterProblem { invoking, .. } => Some(invoking),
            _ => None,
        }
    }

    /// As much of `packet` as an error about it quotes: the error does not exceed the least MTU.
    #[must_use]
    pub fn quote(packet: &Packet) -> Bytes {
        let mut bytes = packet.to_vec();
        // IPv6 header, and type, code, checksum and the word behind them
        bytes.truncate(MIN_MTU - HEADER_LEN - 8);
        bytes.into()
    }

    /// Whether an error about `packet` may be sent (RFC 4443 section 2.4 e): not about an error, nor to or for more
    /// than one host. A router may answer a packet to a group that is too big for a link all the same.
    #[must_use]
    pub fn may_report(packet: &Packet) -> bool {
        let source = packet.ip.source;
        let error = matches!(&packet.payload, crate::Payload::Icmpv6(message) if message.is_error());
        !(error || source.is_unspecified() || source.is_multicast() || packet.ip.destination.is_multicast())
    }
}
