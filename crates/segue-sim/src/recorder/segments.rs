//! What of a packet is data that a ledger is kept of, in tunnels too.

use super::ledger::{FlowKey, Segment, Transport};
use segue_wire::sctp::Chunk;
use segue_wire::tcp::TcpFlags;
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, ExtensionHeader, Packet, Payload, RawPayload, tcp, udp};

/// What a packet says of a flow.
pub(super) enum Said<'a> {
    /// A TCP segment with data, a DATA chunk, or a datagram.
    Data(&'a Segment),
    /// A datagram of a program that is not ours, which does not say where its data lies in all that was sent: it is new. Its
    /// sequence number is to be found.
    Datagram(&'a Segment),
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

/// The same of a packet in bytes, whose checksum is its receiver's to verify.
#[inline(never)]
fn of_a_kernel(sender: u32, packet: &Packet, raw: &RawPayload, mut take: impl FnMut(Said<'_>)) {
    let Some(segment) = KernelSegment::of(raw) else {
        return;
    };
    let flow = FlowKey {
        transport: segment.transport,
        sender,
        receiver: u128::from(packet.final_destination()) as u64,
        source_port: segment.ports.0,
        destination_port: segment.ports.1,
    };
    if segment.length > 0 {
        let data = Segment {
            flow,
            seq: segment.seq.unwrap_or_default(),
            length: segment.length,
            bytes: segment.length,
        };
        take(match segment.seq {
            Some(_) => Said::Data(&data),
            None => Said::Datagram(&data),
        });
    }
    if segment.flags.contains(TcpFlags::FIN) || segment.flags.contains(TcpFlags::RST) {
        take(Said::Over(&flow));
    }
}

/// What the header of a kernel's transport says, of a packet in bytes.
#[derive(Clone, Copy)]
pub(super) struct KernelSegment {
    pub transport: Transport,
    /// Source and destination.
    pub ports: (u16, u16),
    /// Sequence number; of a datagram where its data lies in all that was sent, if it is of ours and says so.
    pub seq: Option<u32>,
    /// Acknowledgment number.
    pub ack: u32,
    /// Control bits of TCP.
    pub flags: TcpFlags,
    /// Bytes of data.
    pub length: u32,
}

impl KernelSegment {
    /// Of what is neither TCP nor UDP, and of what is too short for its header, nothing; nor of a [receiver's
    /// report](receiver_report).
    pub fn of(raw: &RawPayload) -> Option<Self> {
        let bytes = &raw.bytes[..];
        let half = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u16::from_be_bytes);
        let word = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u32::from_be_bytes);
        let ports = (half(0)?, half(2)?);
        match raw.next_header {
            tcp::NEXT_HEADER => {
                let header = 4 * usize::from(*bytes.get(12)? >> 4);
                Some(Self {
                    transport: Transport::Tcp,
                    ports,
                    seq: Some(word(4)?),
                    ack: word(8)?,
                    flags: TcpFlags(*bytes.get(13)?),
                    length: bytes.len().saturating_sub(header) as u32,
                })
            }
            udp::NEXT_HEADER => {
                if bytes.len() < udp::HEADER_LEN {
                    return None;
                }
                let data = Data::Bytes(raw.bytes.slice(udp::HEADER_LEN..));
                if is_receiver_report(&bytes[udp::HEADER_LEN..]) {
                    return None;
                }
                Some(Self {
                    transport: Transport::Udp,
                    ports,
                    seq: data.synthetic_offset().map(|offset| offset as u32),
                    ack: 0,
                    flags: TcpFlags::default(),
                    length: data.len() as u32,
                })
            }
            _ => None,
        }
    }
}

/// What a receiver of the lab's own datagrams tells their sender, whose data it is not: how many have arrived.
#[must_use]
pub fn receiver_report(arrived: u64) -> [u8; RECEIVER_REPORT_LEN] {
    let mut report = [0; RECEIVER_REPORT_LEN];
    report[..4].copy_from_slice(RECEIVER_REPORT);
    report[4..].copy_from_slice(&arrived.to_be_bytes());
    report
}

/// As long as the simulator's, and shorter than any data.
const RECEIVER_REPORT_LEN: usize = 12;
/// By what it begins with it is told from what other programs send.
const RECEIVER_REPORT: &[u8] = b"seg\x01";

fn is_receiver_report(data: &[u8]) -> bool {
    data.len() == RECEIVER_REPORT_LEN && data.starts_with(RECEIVER_REPORT)
}

/// Whether a packet is the first fragment of a datagram, which its sender's kernel has cut (RFC 8200 section 4.5).
pub(super) fn begins_a_datagram(packet: &Packet) -> bool {
    let inner = innermost(packet);
    let is_udp = matches!(
        inner.payload,
        Payload::Unknown {
            next_header: udp::NEXT_HEADER,
            ..
        }
    );
    let is_first = |header: &ExtensionHeader| matches!(header, ExtensionHeader::Fragment { offset: 0, .. });
    is_udp && inner.extensions.iter().any(is_first)
}

/// The packet in all tunnels.
pub(crate) fn innermost(packet: &Packet) -> &Packet {
    match &packet.payload {
        Payload::Ipv6(inner) => innermost(inner),
        _ => packet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_wire::raw::ChecksumState;

    #[test]
    fn what_a_receiver_of_ours_reports_is_no_data_and_as_much_of_anybody_elses_is() {
        let datagram = |data: &[u8]| RawPayload {
            next_header: udp::NEXT_HEADER,
            bytes: [&[0, 1, 0, 2, 0, 20, 0, 0], data].concat().into(),
            checksum: ChecksumState::Complete,
            segment_size: None,
        };
        let length = |data: &[u8]| KernelSegment::of(&datagram(data)).map(|segment| segment.length);
        assert_eq!(length(&receiver_report(7)), None);
        assert_eq!(length(&[1; 12]), Some(12));
        assert_eq!(length(&receiver_report(7)[..11]), Some(11));
        assert_eq!(length(&[&receiver_report(7)[..], b"x"].concat()), Some(13));
    }
}
