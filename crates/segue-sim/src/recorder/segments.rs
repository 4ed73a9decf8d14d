//! What of a packet is data that a ledger is kept of, in tunnels too.

use super::ledger::{FlowKey, Segment, Transport};
use segue_wire::sctp::Chunk;
use segue_wire::tcp::TcpFlags;
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, Packet, Payload};

/// What a packet says of a flow.
pub(super) enum Said<'a> {
    /// A TCP segment with data, a DATA chunk, or a datagram.
    Data(&'a Segment),
    /// Nothing more will come.
    Over(&'a FlowKey),
}

/// What `sender` says in this packet.
#[inline]
pub(super) fn each(sender: u32, packet: &Packet, mut take: impl FnMut(Said<'_>)) {
    let inner = innermost(packet);
    match &inner.payload {
        Payload::Tcp(tcp) => {
            let over = tcp.flags.contains(TcpFlags::FIN) || tcp.flags.contains(TcpFlags::RST);
            if tcp.data.is_empty() && !over {
                return;
            }
            let flow = FlowKey {
                transport: Transport::Tcp,
                sender,
                receiver: u128::from(inner.final_destination()) as u64,
                source_port: tcp.source_port,
                destination_port: tcp.destination_port,
            };
            if !tcp.data.is_empty() {
                take(Said::Data(&Segment {
                    flow,
                    seq: tcp.seq.0,
                    length: tcp.data.len() as u32,
                    bytes: tcp.data.len() as u32,
                }));
            }
            if over {
                take(Said::Over(&flow));
            }
        }
        Payload::Sctp(sctp) | Payload::SctpOverUdp { packet: sctp, .. } => {
            let flow = FlowKey {
                transport: Transport::Sctp,
                sender,
                receiver: u64::from(sctp.verification_tag),
                source_port: sctp.source_port,
                destination_port: sctp.destination_port,
            };
            for chunk in &sctp.chunks {
                match chunk {
                    Chunk::Data(data) => take(Said::Data(&Segment {
                        flow,
                        seq: data.tsn.0,
                        length: 1,
                        bytes: data.data.len() as u32,
                    })),
                    Chunk::ShutdownAck | Chunk::ShutdownComplete { .. } | Chunk::Abort { .. } => {
                        take(Said::Over(&flow));
                    }
                    _ => {}
                }
            }
        }
        Payload::Udp(UdpDatagram {
            source_port,
            destination_port,
            data: data @ Data::Synthetic { offset, .. },
        }) if !data.is_empty() => take(Said::Data(&Segment {
            flow: FlowKey {
                transport: Transport::Udp,
                sender,
                receiver: u128::from(inner.final_destination()) as u64,
                source_port: *source_port,
                destination_port: *destination_port,
            },
            seq: *offset as u32,
            length: data.len() as u32,
            bytes: data.len() as u32,
        })),
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
