//! Packets as they leave.

use crate::contract::{LocalAddress, Transmit};
use core::hint::cold_path;
use core::net::Ipv6Addr;
use segue_wire::sctp::Chunk;
use segue_wire::{Ipv6Header, Packet, Payload};
use smallvec::SmallVec;

/// Hop limit of everything sent.
const HOP_LIMIT: u8 = 64;

/// What stands in front of the chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers {
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    /// Of SCTP: the source's, the destination's.
    pub ports: (u16, u16),
    pub verification_tag: u32,
    /// The same of UDP, if it goes in UDP.
    pub udp_ports: Option<(u16, u16)>,
}

/// A packet of these chunks.
pub(super) fn transmit(source: LocalAddress, headers: &Headers, chunks: SmallVec<[Chunk; 1]>) -> Transmit {
    let mut packet = Packet::EMPTY;
    write(&mut packet, headers, |into| *into = chunks);
    Transmit {
        interface: source.interface,
        packet,
    }
}

/// Writes a packet to `packet`. `fill` writes its chunks, where they stay: they are large. Gives what it returns.
#[inline(always)]
pub(super) fn write<R>(
    packet: &mut Packet,
    headers: &Headers,
    fill: impl FnOnce(&mut SmallVec<[Chunk; 1]>) -> R,
) -> R {
    packet.ip = Ipv6Header {
        source: headers.source,
        destination: headers.destination,
        traffic_class: 0,
        hop_limit: HOP_LIMIT,
        flow_label: 0,
    };
    packet.extensions.clear();
    let sctp = packet.payload.begin_sctp();
    (sctp.source_port, sctp.destination_port) = headers.ports;
    sctp.verification_tag = headers.verification_tag;
    let result = fill(&mut sctp.chunks);
    if let Some(udp_ports) = headers.udp_ports {
        cold_path();
        encapsulate(&mut packet.payload, udp_ports);
    }
    result
}

/// Puts SCTP into UDP.
#[inline(never)]
fn encapsulate(payload: &mut Payload, (source_port, destination_port): (u16, u16)) {
    if let Payload::Sctp(packet) = core::mem::replace(payload, Payload::NoNextHeader) {
        *payload = Payload::SctpOverUdp {
            source_port,
            destination_port,
            packet,
        };
    }
}
