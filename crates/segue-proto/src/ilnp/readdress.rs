//! Other addresses for a packet, with what hangs on them.

use super::nonce;
use core::net::Ipv6Addr;
use segue_wire::checksum::PseudoHeader;
use segue_wire::ilnp::Nonce;
use segue_wire::raw::ChecksumState;
use segue_wire::{ExtensionHeader, Packet, Payload, PseudoRule, RawPayload};

/// Gives a packet other addresses and a nonce or none; the checksum of a transport in bytes follows.
pub(super) fn readdress(
    packet: &mut Packet,
    (source, destination): (Ipv6Addr, Ipv6Addr),
    nonce: Option<(Nonce, PseudoRule)>,
) {
    let old = sum_in_bytes(packet);
    packet.ip.source = source;
    packet.ip.destination = destination;
    if let Some((nonce, rule)) = nonce {
        // what has no such checksum is under IPv6's rule, as it is when parsed; so is a fragment, of which nobody can tell
        let rule = if packet.has_pseudo_rule() && !is_fragment(packet) {
            rule
        } else {
            PseudoRule::Ipv6
        };
        nonce::insert(packet, nonce, rule);
    }
    if let Some(old) = old {
        adjust_to_addresses(packet, &old);
    }
}

/// What the checksum is over that is in the bytes of a packet: of a transport that is not understood, whole or in its first
/// fragment. That of others is worked out when they are emitted.
pub(super) fn sum_in_bytes(packet: &Packet) -> Option<PseudoHeader> {
    (matches!(packet.payload, Payload::Raw(_)) || is_first_fragment(packet)).then(|| packet.pseudo_header())
}

/// Has the checksum in the bytes of a packet, which is over `old`, be over the addresses that it has now.
pub(super) fn adjust_to_addresses(packet: &mut Packet, old: &PseudoHeader) {
    let new = packet.pseudo_header();
    let first_fragment = is_first_fragment(packet);
    match &mut packet.payload {
        Payload::Raw(raw) => raw.adjust(old, &new),
        Payload::Unknown { next_header, bytes } if first_fragment => {
            let mut transport = RawPayload {
                next_header: *next_header,
                bytes: core::mem::take(bytes),
                checksum: ChecksumState::Complete,
                segment_size: None,
            };
            transport.adjust(old, &new);
            *bytes = transport.bytes;
        }
        _ => {}
    }
}

/// Whether a packet is a fragment of one that is not whole without others (RFC 8200 section 4.5).
pub(super) fn is_fragment(packet: &Packet) -> bool {
    packet
        .extensions
        .last()
        .is_some_and(ExtensionHeader::is_incomplete_fragment)
}

/// Whether it is the first of them, which has the transport's header.
pub(super) fn is_first_fragment(packet: &Packet) -> bool {
    let last = packet.extensions.last();
    matches!(
        last,
        Some(ExtensionHeader::Fragment {
            offset: 0,
            more: true,
            ..
        })
    )
}
