//! Segments for no connection, and those that errors quote.

use super::ends::{HOP_LIMIT, Pair};
use crate::contract::{InterfaceId, Transmit};
use core::net::Ipv6Addr;
use segue_wire::tcp::{self, TcpFlags, TcpOptions, TcpSegment};
use segue_wire::{Data, Ipv6Header, Packet, Payload, SeqNumber};

/// The RST that answers a segment for no connection: section 3.10.7.1.
pub(super) fn reset(interface: InterfaceId, pair: &Pair, segment: &TcpSegment) -> Transmit {
    let (seq, ack, flags) = if segment.flags.contains(TcpFlags::ACK) {
        (segment.ack, SeqNumber(0), TcpFlags::RST)
    } else {
        let ack = segment.seq.add(segment.seq_len());
        (SeqNumber(0), ack, TcpFlags::RST | TcpFlags::ACK)
    };
    Transmit {
        interface,
        packet: Packet {
            ip: Ipv6Header {
                source: pair.local,
                destination: pair.remote,
                traffic_class: 0,
                hop_limit: HOP_LIMIT,
                flow_label: 0,
            },
            extensions: Vec::new(),
            payload: Payload::Tcp(TcpSegment {
                source_port: pair.local_port,
                destination_port: pair.remote_port,
                seq,
                ack,
                flags,
                window: 0,
                options: TcpOptions::default(),
                data: Data::Bytes(bytes::Bytes::new()),
            }),
        },
    }
}

/// The connection and the sequence number of a segment that an ICMPv6 error quotes, if it is one without extension
/// headers.
pub(super) fn quoted(invoking: &[u8]) -> Option<(Pair, SeqNumber)> {
    let (ip, rest) = invoking.split_first_chunk::<40>()?;
    if ip[6] != tcp::NEXT_HEADER {
        return None;
    }
    let head = rest.first_chunk::<8>()?;
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&ip[at..at + 16]);
        Ipv6Addr::from(octets)
    };
    let pair = Pair {
        local: address(8),
        local_port: u16::from_be_bytes([head[0], head[1]]),
        remote: address(24),
        remote_port: u16::from_be_bytes([head[2], head[3]]),
    };
    let seq = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    Some((pair, SeqNumber(seq)))
}

/// Whether this is a SYN that opens a connection.
pub(super) fn is_syn(segment: &TcpSegment) -> bool {
    segment.flags.contains(TcpFlags::SYN) && !segment.flags.intersects(TcpFlags::ACK | TcpFlags::RST)
}
