//! What of a packet is data that a ledger is kept of, in tunnels too.

use super::ledger::{FlowKey, Segment, Transport};
use segue_wire::sctp::Chunk;
use segue_wire::tcp::TcpFlags;
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, Packet, Payload, RawPayload, tcp, udp};

/// What a packet says of a flow.
pub(super) enum Said<'a> {
    /// A TCP segment with data, a DATA chunk, or a datagram.
    Data(&'a Segment),
    /// Nothing more will come.
    Over(&'a FlowKey),
}

/// What `sender` says in this packet.
#[inline(always)]
pub(super) fn each(sender: u32, packet: &Packet, mut take: impl FnMut(Said<'_>)) {
    let inner = innermost(packet);
    match &inner.payload {
        Payload::Raw(raw) => {
            core::hint::cold_path();
            of_a_kernel(sender, inner, raw, take);
        }
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

/// The same of a packet in bytes, whose checksum is its receiver's to verify. A datagram says where it lies in all that was
/// sent if its data is synthetic.
#[inline(never)]
fn of_a_kernel(sender: u32, packet: &Packet, raw: &RawPayload, mut take: impl FnMut(Said<'_>)) {
    let bytes = &raw.bytes[..];
    let half = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u16::from_be_bytes);
    let word = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u32::from_be_bytes);
    let (Some(source_port), Some(destination_port), Some(second)) = (half(0), half(2), word(4)) else {
        return;
    };
    let flow = |transport| FlowKey {
        transport,
        sender,
        receiver: u128::from(packet.final_destination()) as u64,
        source_port,
        destination_port,
    };
    match raw.next_header {
        tcp::NEXT_HEADER => {
            let (Some(&offset), Some(&flags)) = (bytes.get(12), bytes.get(13)) else {
                return;
            };
            let header = 4 * usize::from(offset >> 4);
            let length = bytes.len().saturating_sub(header) as u32;
            let flow = flow(Transport::Tcp);
            if length > 0 {
                take(Said::Data(&Segment {
                    flow,
                    seq: second,
                    length,
                    bytes: length,
                }));
            }
            if flags & (TcpFlags::FIN.0 | TcpFlags::RST.0) != 0 {
                take(Said::Over(&flow));
            }
        }
        udp::NEXT_HEADER => {
            let data = Data::Bytes(raw.bytes.slice(udp::HEADER_LEN.min(bytes.len())..));
            if let Some(offset) = data.synthetic_offset() {
                take(Said::Data(&Segment {
                    flow: flow(Transport::Udp),
                    seq: offset as u32,
                    length: data.len() as u32,
                    bytes: data.len() as u32,
                }));
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
