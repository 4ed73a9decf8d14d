//! Fragmentation by the source and reassembly by the destination (RFC 8200 section 4.5).

use crate::ipv6::HEADER_LEN;
use crate::{ExtensionHeader, Ipv6Header, Packet, ParseError, Payload};
use bytes::Bytes;

/// Cuts a packet into fragments of at most `mtu` bytes. A packet that fits, or that is a fragment already, is handed
/// back as it is. All extension headers are taken to be for the destination alone, but a hop-by-hop header.
#[must_use]
pub fn fragment(packet: Packet, mtu: usize, identification: u32) -> Vec<Packet> {
    let is_fragment = |e: &ExtensionHeader| matches!(e, ExtensionHeader::Fragment { .. });
    if packet.buffer_len() <= mtu || packet.extensions.iter().any(is_fragment) {
        return vec![packet];
    }
    let per_hop =
        |e: &ExtensionHeader| matches!(e, ExtensionHeader::HopByHop(_) | ExtensionHeader::Routing { .. });
    let unfragmentable = packet.extensions.iter().take_while(|e| per_hop(e)).count();
    let kept = packet
        .extensions
        .get(..unfragmentable)
        .unwrap_or_default()
        .to_vec();
    let kept_len: usize = kept.iter().map(ExtensionHeader::buffer_len).sum();
    let whole: Bytes = packet.to_vec().into();
    let fragmentable = whole.slice(HEADER_LEN + kept_len..);
    let next_header = packet
        .extensions
        .get(unfragmentable)
        .map_or(packet.payload.next_header(), ExtensionHeader::header_type);
    let room = mtu.saturating_sub(HEADER_LEN + kept_len + FRAGMENT_LEN) & !7;
    let room = room.max(8);
    let mut fragments = Vec::with_capacity(fragmentable.len().div_ceil(room));
    let mut start = 0;
    while start < fragmentable.len() {
        let end = (start + room).min(fragmentable.len());
        let mut extensions = kept.clone();
        extensions.push(ExtensionHeader::Fragment {
            offset: (start / 8) as u16,
            more: end < fragmentable.len(),
            identification,
        });
        fragments.push(Packet {
            ip: packet.ip,
            extensions,
            payload: Payload::Unknown {
                next_header,
                bytes: fragmentable.slice(start..end),
            },
        });
        start = end;
    }
    fragments
}

/// A fragment, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Header of the packet.
    pub ip: Ipv6Header,
    /// Which packet it belongs to, of those between its two addresses.
    pub identification: u32,
    /// Position of its first byte in the fragmentable part.
    pub offset: usize,
    /// More follow.
    pub more: bool,
    /// What the fragmentable part begins with; that of the first fragment counts.
    pub next_header: u8,
    /// Its bytes.
    pub bytes: Bytes,
}

impl Fragment {
    /// The fragment that a packet is; `None` if it is none, or one that section 4.5 has discarded: not a multiple of 8
    /// bytes although more follow, or beyond the longest packet.
    #[must_use]
    pub fn of(packet: &Packet) -> Option<Self> {
        let (offset, more, identification) = match packet.extensions.last()? {
            ExtensionHeader::Fragment {
                offset,
                more,
                identification,
            } => (usize::from(*offset) * 8, *more, *identification),
            _ => return None,
        };
        let Payload::Unknown { next_header, bytes } = &packet.payload else {
            return None;
        };
        let bad_length = more && (bytes.is_empty() || bytes.len() % 8 != 0);
        if bad_length || offset + bytes.len() > usize::from(u16::MAX) {
            return None;
        }
        Some(Self {
            ip: packet.ip,
            identification,
            offset,
            more,
            next_header: *next_header,
            bytes: bytes.clone(),
        })
    }
}

/// The packet whose fragmentable part is `bytes`, from the header of its first fragment.
///
/// # Errors
/// If it cannot be parsed.
pub fn reassembled(ip: &Ipv6Header, next_header: u8, bytes: &[u8]) -> Result<Packet, ParseError> {
    let mut whole = Vec::with_capacity(HEADER_LEN + bytes.len());
    ip.emit(bytes.len() as u16, next_header, &mut whole);
    whole.extend_from_slice(bytes);
    Packet::parse_bytes(whole.into())
}

/// Length of a fragment header, bytes.
const FRAGMENT_LEN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sctp::{Chunk, SctpPacket};

    fn packet(len: usize) -> Packet {
        Packet {
            ip: Ipv6Header {
                source: "2001:db8::1".parse().unwrap(),
                destination: "2001:db8::2".parse().unwrap(),
                traffic_class: 3,
                hop_limit: 64,
                flow_label: 7,
            },
            extensions: Vec::new(),
            payload: Payload::Sctp(SctpPacket {
                source_port: 1,
                destination_port: 2,
                verification_tag: 3,
                chunks: [Chunk::CookieEcho(vec![5; len].into())].into_iter().collect(),
            }),
        }
    }

    #[test]
    fn fragments_fit_and_give_the_packet_again() {
        for (len, count) in [(1000, 1), (1232, 2), (1400, 2), (4000, 4)] {
            let whole = packet(len);
            let fragments = fragment(whole.clone(), 1280, 9);
            assert_eq!(fragments.len(), count, "{len} bytes");
            if count == 1 {
                assert_eq!(fragments[0], whole);
                continue;
            }
            let mut bytes = Vec::new();
            let mut next_header = 0;
            for (i, packet) in fragments.iter().enumerate() {
                assert!(packet.buffer_len() <= 1280);
                // as it crosses the wire
                let packet = Packet::parse(&packet.to_vec()).unwrap();
                let fragment = Fragment::of(&packet).unwrap();
                assert_eq!((fragment.offset, fragment.identification), (bytes.len(), 9));
                assert_eq!(fragment.more, i + 1 < count);
                next_header = fragment.next_header;
                bytes.extend_from_slice(&fragment.bytes);
            }
            assert_eq!(reassembled(&whole.ip, next_header, &bytes).unwrap(), whole);
        }
    }

    #[test]
    fn a_fragment_with_an_impossible_length_is_none() {
        let mut fragments = fragment(packet(3000), 1280, 1);
        if let Payload::Unknown { bytes, .. } = &mut fragments[0].payload {
            *bytes = bytes.slice(..bytes.len() - 1);
        }
        assert_eq!(Fragment::of(&fragments[0]), None);
        if let Some(ExtensionHeader::Fragment { offset, .. }) = fragments[2].extensions.last_mut() {
            *offset = 0x1fff;
        }
        assert_eq!(Fragment::of(&fragments[2]), None);
        assert_eq!(Fragment::of(&packet(10)), None);
    }
}
