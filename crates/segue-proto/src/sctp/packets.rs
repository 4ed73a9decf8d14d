//! Packets as they leave.

use crate::contract::{LocalAddress, Transmit};
use core::net::Ipv6Addr;
use segue_wire::sctp::{Chunk, SctpPacket};
use segue_wire::{Ipv6Header, Packet, Payload};
use smallvec::SmallVec;

/// Hop limit of everything sent.
const HOP_LIMIT: u8 = 64;

/// A packet from `ports.0` to `ports.1`, in UDP between `udp_ports` if there are any.
pub(super) fn transmit(
    source: LocalAddress,
    destination: Ipv6Addr,
    ports: (u16, u16),
    udp_ports: Option<(u16, u16)>,
    verification_tag: u32,
    chunks: SmallVec<[Chunk; 1]>,
) -> Transmit {
    let mut packet = Packet::EMPTY;
    let sctp = SctpPacket {
        source_port: ports.0,
        destination_port: ports.1,
        verification_tag,
        chunks,
    };
    write(&mut packet, source.address, destination, udp_ports, sctp);
    Transmit {
        interface: source.interface,
        packet,
    }
}

/// Writes a packet to `packet`, in UDP between `udp_ports` if there are any.
#[inline(always)]
pub(super) fn write(
    packet: &mut Packet,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    udp_ports: Option<(u16, u16)>,
    sctp: SctpPacket,
) {
    packet.ip = Ipv6Header {
        source,
        destination,
        traffic_class: 0,
        hop_limit: HOP_LIMIT,
        flow_label: 0,
    };
    packet.extensions.clear();
    packet.payload = match udp_ports {
        None => Payload::Sctp(sctp),
        Some((source_port, destination_port)) => Payload::SctpOverUdp {
            source_port,
            destination_port,
            packet: sctp,
        },
    };
}
