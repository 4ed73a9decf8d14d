//! How much signalling was sent.

use super::names;
use segue_wire::{Packet, Payload};
use serde::Serialize;
use std::collections::BTreeMap;

/// Packets and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SignallingCount {
    /// Packets, each counted where it is sent first, retransmissions included.
    pub packets: u64,
    /// Their lengths from the IPv6 header on, tunnels included.
    pub bytes: u64,
}

/// Signalling of mobility that hosts and routers sent: address configuration, ASCONF, messages of Mobile IPv6, ILNPv6 and
/// the location manager.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Signalling {
    /// All of it.
    #[serde(flatten)]
    pub all: SignallingCount,
    /// By kind of message: "RA", "BU", "LU" and so on.
    pub by_kind: BTreeMap<&'static str, SignallingCount>,
}

impl Signalling {
    /// A node sends a packet.
    pub fn sent(&mut self, packet: &Packet, length: u32) {
        // most packets are data, and looked at for every one of them
        if matches!(&packet.payload, Payload::Sctp(sctp) if sctp.chunks.len() == 1 && is_data(&sctp.chunks[0]))
        {
            return;
        }
        let Some(kind) = names::signalling(packet) else {
            return;
        };
        for count in [&mut self.all, self.by_kind.entry(kind).or_default()] {
            count.packets += 1;
            count.bytes += u64::from(length);
        }
    }
}

fn is_data(chunk: &segue_wire::sctp::Chunk) -> bool {
    use segue_wire::sctp::Chunk;
    matches!(chunk, Chunk::Data(_) | Chunk::Sack(_) | Chunk::NrSack(_))
}
