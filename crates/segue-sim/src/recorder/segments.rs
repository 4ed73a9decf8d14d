//! What of a packet is data that a ledger is kept of, in tunnels too.

use super::ledger::{FlowKey, Segment};
use segue_wire::sctp::Chunk;
use segue_wire::{Packet, Payload};

/// The data that `sender` sends in this packet: a TCP segment, or, where SCTP is `followed`, each DATA chunk.
pub(super) fn each(sender: u32, packet: &Packet, follow_sctp: bool, mut take: impl FnMut(&Segment)) {
    let inner = innermost(packet);
    match &inner.payload {
        Payload::Tcp(tcp) if !tcp.data.is_empty() => take(&Segment {
            flow: FlowKey {
                sender,
                receiver: u128::from(inner.final_destination()) as u64,
                source_port: tcp.source_port,
                destination_port: tcp.destination_port,
            },
            seq: tcp.seq.0,
            length: tcp.data.len() as u32,
            bytes: tcp.data.len() as u32,
        }),
        Payload::Sctp(sctp) | Payload::SctpOverUdp { packet: sctp, .. } if follow_sctp => {
            for chunk in &sctp.chunks {
                let Chunk::Data(data) = chunk else { continue };
                take(&Segment {
                    flow: FlowKey {
                        sender,
                        receiver: u64::from(sctp.verification_tag),
                        source_port: sctp.source_port,
                        destination_port: sctp.destination_port,
                    },
                    seq: data.tsn.0,
                    length: 1,
                    bytes: data.data.len() as u32,
                });
            }
        }
        _ => {}
    }
}

/// The packet in all tunnels.
pub(crate) fn innermost(packet: &Packet) -> &Packet {
    match &packet.payload {
        Payload::Ipv6(inner) => innermost(inner),
        _ => packet,
    }
}
