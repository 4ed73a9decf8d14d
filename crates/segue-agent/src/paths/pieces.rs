//! Packets in fragments, with what the agent has put in front of each: an ILNP nonce, a Home Address option and a routing header stand in
//! front of a fragment header (RFC 6275 sections 6.3 and 6.4), so that each fragment is a packet of its session, and whoever
//! puts them together is the kernel at the other end.

use crate::packets::cut;
use bytes::Bytes;
use segue_wire::ipv6::HEADER_LEN;
use segue_wire::{ExtensionHeader, Packet, Payload};

/// How long a packet is on the wire: of a super-packet, each of its segments.
pub(super) fn segment_length(packet: &Packet) -> usize {
    let whole = packet.buffer_len();
    let mut inner = packet;
    while let Payload::Ipv6(next) = &inner.payload {
        inner = next;
    }
    let Payload::Raw(raw) = &inner.payload else {
        return whole;
    };
    let Some(size) = raw.segment_size else {
        return whole;
    };
    const TCP: u8 = 6;
    const UDP_HEADER: usize = 8;
    let header = match raw.next_header {
        TCP => 4 * usize::from(raw.bytes.get(12).copied().unwrap_or(0) >> 4),
        _ => UDP_HEADER,
    };
    whole - raw.bytes.len() + raw.bytes.len().min(header + usize::from(size))
}

/// A packet in fragments of at most `mtu` bytes; of a super-packet, each of its segments. What is in a tunnel is cut up inside: this
/// host is its source (RFC 8200 section 4.5), and the tunnel's end puts nothing together.
pub(super) fn in_pieces(packet: Packet, mtu: usize, identification: u32) -> Vec<Packet> {
    let segments = cut(packet).into_iter();
    segments
        .enumerate()
        .flat_map(|(n, segment)| pieces_of(segment, mtu, identification.wrapping_add(n as u32)))
        .collect()
}

fn pieces_of(packet: Packet, mtu: usize, identification: u32) -> Vec<Packet> {
    if packet.buffer_len() <= mtu {
        return vec![packet];
    }
    if let Payload::Ipv6(inner) = packet.payload {
        let outer = |inner| Packet {
            ip: packet.ip,
            extensions: packet.extensions.clone(),
            payload: Payload::Ipv6(Box::new(inner)),
        };
        let around: usize = packet.extensions.iter().map(ExtensionHeader::buffer_len).sum();
        let room = mtu.saturating_sub(HEADER_LEN + around);
        let inside = pieces_of(*inner, room, identification).into_iter();
        return inside.map(outer).collect();
    }
    let mut extensions = packet.extensions.clone();
    // a fragment of the kernel's is cut further, and stays where it was in what the kernel has cut up
    let (start, more, identification) = match extensions.last() {
        Some(ExtensionHeader::Fragment {
            offset,
            more,
            identification,
        }) => {
            let place = (usize::from(*offset) * 8, *more, *identification);
            extensions.pop();
            place
        }
        _ => (0, false, identification),
    };
    let before: usize = extensions.iter().map(ExtensionHeader::buffer_len).sum();
    let next_header = packet.payload.next_header();
    let mut body = Vec::new();
    packet.payload.emit(&packet.pseudo_header(), &mut body);
    let body = Bytes::from(body);
    let room = mtu.saturating_sub(HEADER_LEN + before + FRAGMENT_HEADER) & !7;
    let room = room.max(8);
    let mut pieces = Vec::with_capacity(body.len().div_ceil(room));
    let mut at = 0;
    while at < body.len() {
        let end = (at + room).min(body.len());
        let mut headers = extensions.clone();
        headers.push(ExtensionHeader::Fragment {
            offset: ((start + at) / 8) as u16,
            more: more || end < body.len(),
            identification,
        });
        pieces.push(Packet {
            ip: packet.ip,
            extensions: headers,
            payload: Payload::Unknown {
                next_header,
                bytes: body.slice(at..end),
            },
        });
        at = end;
    }
    pieces
}

const FRAGMENT_HEADER: usize = 8;
