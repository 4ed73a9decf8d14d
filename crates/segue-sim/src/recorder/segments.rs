//! Segments in packets, in tunnels too.

use segue_wire::{Packet, Payload};

/// The packet in all tunnels.
pub(crate) fn innermost(packet: &Packet) -> &Packet {
    match &packet.payload {
        Payload::Ipv6(inner) => innermost(inner),
        _ => packet,
    }
}
