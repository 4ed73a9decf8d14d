//! ILNPv6 in UDP: packets whose nonce (RFC 6744) stands in a UDP datagram instead of a destination option, for networks that
//! drop packets with destination options (RFC 7872). It is a format of this implementation's own.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          Source Port          |       Destination Port        |  UDP (RFC 768)
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |            Length             |           Checksum            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    Version    |  Next Header  | Nonce Length  |   Reserved    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                Nonce, 4 or 12 bytes as RFC 6744 has them      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   what Next Header announces: the packet without its option
//! ```
//!
//! - *Ports*: both the one that the two hosts have agreed on ([`DEFAULT_PORT`]), so that a firewall that has let a datagram out
//!   takes the answer for one. Flows are kept apart by the flow label (RFC 6438).
//! - *Checksum*: never zero (RFC 8200 section 8.1).
//! - *Version*: 1. A datagram of another is dropped.
//! - *Next Header*: of the packet in which the option would have been, behind the option's header; 59 (no next header) for a
//!   datagram that says only that its sender understands the format.
//! - *Nonce Length*: 4 or 12 bytes.
//! - *Reserved*: zero when sent, ignored when received.
//!
//! Addresses, hop limit, traffic class and flow label are those of the packet with the option: both forms say the same, and a
//! checksum inside is over the same addresses.

use crate::checksum::{PseudoHeader, PseudoRule};
use crate::icmpv6::invoking::MIN_MTU;
use crate::ilnp::Nonce;
use crate::ipv6::{self, HEADER_LEN as IPV6_HEADER_LEN, Ipv6Header, Ipv6Option};
use crate::reader::Reader;
use crate::udp::{self, UdpDatagram};
use crate::{Data, ExtensionHeader, Packet, ParseError, Payload};
use bytes::{BufMut, Bytes};

/// The port where nothing else is said: of those for private use (RFC 6335 section 6).
pub const DEFAULT_PORT: u16 = 56740;

/// Bytes by which this form of a packet is longer than that with the option.
pub const LONGER_BY: usize = 8;

/// The nonce in a UDP datagram, header and all, if it is to `port` and of this format: what there is to see without understanding it.
#[must_use]
pub fn nonce_at(port: u16, datagram: &[u8]) -> Option<Nonce> {
    let (header, data) = datagram.split_first_chunk::<{ udp::HEADER_LEN }>()?;
    if header[2..4] != port.to_be_bytes() {
        return None;
    }
    let (fixed, rest) = data.split_first_chunk::<FIXED_LEN>()?;
    match (fixed[0], fixed[2]) {
        (VERSION, 4) => rest.first_chunk().map(|n| Nonce::Bits32(*n)),
        (VERSION, 12) => rest.first_chunk().map(|n| Nonce::Bits96(*n)),
        _ => None,
    }
}

const VERSION: u8 = 1;
/// Version, next header, nonce length, reserved.
const FIXED_LEN: usize = 4;

/// What a datagram carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NonceInUdp {
    /// The sender's nonce.
    pub nonce: Nonce,
    /// What `bytes` begin with.
    pub next_header: u8,
    /// The packet from behind the option's header on.
    pub bytes: Bytes,
}

impl NonceInUdp {
    /// Parses the data of a datagram, which it shares the storage of.
    ///
    /// # Errors
    /// If it is truncated, of another version, or its nonce of a length that there is not.
    pub fn parse(data: &Bytes) -> Result<Self, ParseError> {
        let mut reader = Reader::new(data, "ILNP in UDP");
        if reader.u8()? != VERSION {
            return Err(ParseError::BadValue("version of ILNP in UDP"));
        }
        let next_header = reader.u8()?;
        let length = reader.u8()?;
        reader.skip(1)?;
        let nonce = match length {
            4 => Nonce::Bits32(reader.array()?),
            12 => Nonce::Bits96(reader.array()?),
            _ => return Err(ParseError::BadLength("nonce of ILNP in UDP")),
        };
        Ok(Self {
            nonce,
            next_header,
            bytes: reader.rest(),
        })
    }

    /// Appends the data of a datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let nonce = self.nonce.as_bytes();
        out.extend_from_slice(&[VERSION, self.next_header, nonce.len() as u8, 0]);
        out.extend_from_slice(nonce);
        out.extend_from_slice(&self.bytes);
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        FIXED_LEN + self.nonce.as_bytes().len() + self.bytes.len()
    }

    /// The form in UDP of a packet with the option; `None` if the option is not alone in a header that comes first. A super-packet has
    /// to be cut up before.
    #[must_use]
    pub fn of(packet: &Packet) -> Option<Self> {
        let (ExtensionHeader::DestinationOptions(options), rest) = packet.extensions.split_first()? else {
            return None;
        };
        let [Ipv6Option::IlnpNonce { nonce, .. }] = options[..] else {
            return None;
        };
        let types = rest.iter().map(ExtensionHeader::header_type);
        let mut next_headers = types.chain([packet.payload.next_header()]);
        let mut following = || next_headers.next().unwrap_or(ipv6::NO_NEXT_HEADER);
        let next_header = following();
        let mut bytes = Vec::with_capacity(packet.buffer_len());
        for extension in rest {
            extension.emit(following(), &mut bytes);
        }
        packet.payload.emit(&packet.pseudo_header(), &mut bytes);
        Some(Self {
            nonce,
            next_header,
            bytes: bytes.into(),
        })
    }

    /// The packet with these addresses that carries this.
    #[must_use]
    pub fn packet(&self, ip: Ipv6Header, port: u16) -> Packet {
        let mut data = Vec::with_capacity(self.buffer_len());
        self.emit(&mut data);
        let datagram = UdpDatagram {
            source_port: port,
            destination_port: port,
            data: Data::Bytes(data.into()),
        };
        Packet {
            ip,
            extensions: Vec::new(),
            payload: Payload::Udp(datagram),
        }
    }

    /// What is in a datagram whose checksum is known to be right or, if `verified` is not said, turns out to be.
    ///
    /// # Errors
    /// As [`parse`](Self::parse) and [`UdpDatagram::parse`].
    pub fn in_datagram(bytes: &Bytes, pseudo: &PseudoHeader, verified: bool) -> Result<Self, ParseError> {
        if !verified {
            return match UdpDatagram::parse(bytes, pseudo)?.data {
                Data::Bytes(data) => Self::parse(&data),
                Data::Synthetic { .. } => Err(ParseError::BadValue("ILNP in UDP")),
            };
        }
        let length = bytes.get(4..).and_then(|b| b.first_chunk::<2>());
        let length = length.map_or(0, |l| usize::from(u16::from_be_bytes(*l)));
        if length < udp::HEADER_LEN || length > bytes.len() {
            return Err(ParseError::BadLength("UDP"));
        }
        Self::parse(&bytes.slice(udp::HEADER_LEN..length))
    }

    /// The bytes of the packet with the option, which this stands for.
    #[must_use]
    pub fn with_option(&self, ip: &Ipv6Header) -> Bytes {
        let option = Ipv6Option::IlnpNonce {
            nonce: self.nonce,
            rule: PseudoRule::Ipv6,
        };
        let header = ExtensionHeader::DestinationOptions(vec![option]);
        let length = header.buffer_len() + self.bytes.len();
        let mut out = Vec::with_capacity(IPV6_HEADER_LEN + length);
        ip.emit(length as u16, header.header_type(), &mut out);
        header.emit(self.next_header, &mut out);
        out.put_slice(&self.bytes);
        out.into()
    }

    /// The start of a packet in this form that an ICMPv6 error quotes, as if it were one with the option; `None` if it is another's, or
    /// the quotation does not reach to the end of the nonce.
    #[must_use]
    pub fn quoted_with_option(quoted: &Bytes, port: u16) -> Option<(Nonce, Bytes)> {
        let mut reader = Reader::new(quoted, "invoking packet");
        let (ip, payload_length, next_header) = Ipv6Header::parse(&mut reader).ok()?;
        let ports = (reader.u16().ok()?, reader.u16().ok()?);
        if next_header != udp::NEXT_HEADER || ports != (port, port) {
            return None;
        }
        reader.skip(4).ok()?;
        let carried = Self::parse(&reader.rest()).ok()?;
        let mut bytes = carried.with_option(&ip).to_vec();
        // of the whole packet, not of what is quoted
        let length = usize::from(payload_length).saturating_sub(LONGER_BY) as u16;
        if let Some(field) = bytes.get_mut(4..6) {
            field.copy_from_slice(&length.to_be_bytes());
        }
        bytes.truncate(MIN_MTU);
        Some((carried.nonce, bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::{ChecksumState, RawPayload};
    use core::net::Ipv6Addr;
    use proptest::prelude::*;

    const HERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0x2aa, 0, 0, 1);
    const THERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0x2aa, 0, 0, 2);

    fn datagram(nonce: Nonce, data: &[u8]) -> Packet {
        let inner = UdpDatagram {
            source_port: 7,
            destination_port: 9,
            data: Data::Bytes(data.to_vec().into()),
        };
        Packet {
            ip: Ipv6Header {
                source: HERE,
                destination: THERE,
                traffic_class: 2,
                hop_limit: 64,
                flow_label: 0x12345,
            },
            extensions: vec![ExtensionHeader::DestinationOptions(vec![Ipv6Option::IlnpNonce {
                nonce,
                rule: PseudoRule::Ipv6,
            }])],
            payload: Payload::Udp(inner),
        }
    }

    /// A datagram "hi" from port 7 to 9, as the agent sends it.
    const ON_THE_WIRE: [u8; 66] = [
        0x60, 0x21, 0x23, 0x45, 0, 26, 17, 64, // IPv6
        0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 0, 0x02, 0xaa, 0, 0, 0, 0, 0, 1, // from
        0x20, 0x01, 0x0d, 0xb8, 0, 3, 0, 0, 0x02, 0xaa, 0, 0, 0, 0, 0, 2, // to
        0xdd, 0xa4, 0xdd, 0xa4, 0, 26, 0, 0, // UDP, whose checksum is filled in below
        1, 17, 4, 0, 0xde, 0xad, 0xbe, 0xef, // version, next header, length, nonce
        0, 7, 0, 9, 0, 10, 0, 0, b'h', b'i', // what was sent
    ];

    #[test]
    fn a_packet_is_on_the_wire_as_the_diagram_has_it() {
        let packet = datagram(Nonce::Bits32([0xde, 0xad, 0xbe, 0xef]), b"hi");
        let carried = NonceInUdp::of(&packet).unwrap();
        let mut sent = carried.packet(packet.ip, DEFAULT_PORT).to_vec();
        let pseudo = packet.pseudo_header();
        // both checksums are right, and not zero
        for (start, at) in [(40, 46), (56, 62)] {
            assert_eq!(pseudo.checksum(17, &sent[start..]), 0);
            assert_ne!(sent[at..at + 2], [0, 0]);
            sent[at..at + 2].fill(0);
        }
        assert_eq!(sent, ON_THE_WIRE);
        assert_eq!(sent.len(), packet.buffer_len() + LONGER_BY);
    }

    #[test]
    fn what_is_cut_short_or_of_another_version_is_refused() {
        let packet = datagram(Nonce::Bits96([9; 12]), b"hi");
        let mut data = Vec::new();
        NonceInUdp::of(&packet).unwrap().emit(&mut data);
        assert!(NonceInUdp::parse(&data.clone().into()).is_ok());
        for length in 0..16 {
            assert!(
                NonceInUdp::parse(&data[..length].to_vec().into()).is_err(),
                "{length} bytes"
            );
        }
        for (at, value) in [(0, 2), (0, 0), (2, 5), (2, 0)] {
            let mut wrong = data.clone();
            wrong[at] = value;
            assert!(NonceInUdp::parse(&wrong.into()).is_err());
        }
        // the byte that is reserved says nothing
        data[3] = 0xff;
        assert!(NonceInUdp::parse(&data.into()).is_ok());
    }

    #[test]
    fn a_quotation_is_read_as_far_as_it_goes() {
        let nonce = Nonce::Bits32([1, 2, 3, 4]);
        let packet = datagram(nonce, &[5; 1000]);
        let sent: Bytes = NonceInUdp::of(&packet)
            .unwrap()
            .packet(packet.ip, 77)
            .to_vec()
            .into();
        let whole: Bytes = packet.to_vec().into();
        for length in [56, 57, 64, 500, sent.len()] {
            let (found, quoted) = NonceInUdp::quoted_with_option(&sent.slice(..length), 77).unwrap();
            assert_eq!(found, nonce);
            assert_eq!(quoted, whole.slice(..length - LONGER_BY));
        }
        assert_eq!(NonceInUdp::quoted_with_option(&sent.slice(..55), 77), None);
        assert_eq!(NonceInUdp::quoted_with_option(&sent, 78), None);
        assert_eq!(NonceInUdp::quoted_with_option(&whole, 77), None);
    }

    proptest! {
        #[test]
        fn both_forms_say_the_same(nonce in any::<[u8; 12]>(), long: bool, data in prop::collection::vec(any::<u8>(), 0..200)) {
            let nonce = if long { Nonce::Bits96(nonce) } else { Nonce::Bits32([nonce[0], nonce[1], nonce[2], nonce[3]]) };
            let packet = datagram(nonce, &data);
            let sent = NonceInUdp::of(&packet).unwrap().packet(packet.ip, 77);
            let bytes = Bytes::from(sent.to_vec());
            let raw = Packet::parse_raw(&bytes, ChecksumState::Complete, None).unwrap();
            let Payload::Raw(RawPayload { bytes, .. }) = &raw.payload else { panic!("UDP in bytes") };
            for verified in [false, true] {
                let back = NonceInUdp::in_datagram(bytes, &raw.pseudo_header(), verified).unwrap();
                prop_assert_eq!(Packet::parse_bytes(back.with_option(&raw.ip)).unwrap(), packet.clone());
            }
        }
    }
}
