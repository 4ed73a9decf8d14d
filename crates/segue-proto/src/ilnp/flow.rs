//! Flows: what a network layer can see of who talks to whom above it.

use segue_wire::icmpv6::{Echo, Icmpv6};
use segue_wire::sctp::{Chunk, SctpPacket};
use segue_wire::tcp::TcpFlags;
use segue_wire::{Packet, Payload};

/// Protocol and ports, of one peer: the ports as this host has them, its own first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Flow {
    protocol: u8,
    local_port: u16,
    remote_port: u16,
}

impl Flow {
    /// That of a packet on its way down.
    pub fn down(packet: &Packet) -> Self {
        let (local_port, remote_port) = ports(&packet.payload);
        Self {
            protocol: packet.payload.next_header(),
            local_port,
            remote_port,
        }
    }

    /// That of a packet on its way up.
    pub fn up(packet: &Packet) -> Self {
        let (remote_port, local_port) = ports(&packet.payload);
        Self {
            protocol: packet.payload.next_header(),
            local_port,
            remote_port,
        }
    }

    /// A number for it.
    pub fn hash(self) -> u64 {
        let Self {
            protocol,
            local_port,
            remote_port,
        } = self;
        let mut z = u64::from(protocol) << 32 | u64::from(local_port) << 16 | u64::from(remote_port);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Whether a packet begins something: a TCP SYN without ACK, an SCTP INIT, an echo request. Of other protocols the
/// network layer cannot tell.
pub(super) fn is_call(packet: &Packet) -> bool {
    const TCP: u8 = 6;
    const SCTP: u8 = 132;
    const INIT: u8 = 1;
    const FLAGS_OF_TCP: usize = 13;
    const FIRST_CHUNK_OF_SCTP: usize = 12;
    let has_init = |sctp: &SctpPacket| matches!(sctp.chunks.first(), Some(Chunk::Init(_)));
    let is_syn = |flags: TcpFlags| flags.0 & (TcpFlags::SYN.0 | TcpFlags::ACK.0) == TcpFlags::SYN.0;
    match &packet.payload {
        Payload::Tcp(tcp) => is_syn(tcp.flags),
        Payload::Sctp(sctp) => has_init(sctp),
        Payload::SctpOverUdp { packet: sctp, .. } => has_init(sctp),
        Payload::Icmpv6(Icmpv6::EchoRequest(_)) => true,
        Payload::Raw(raw) if raw.next_header == TCP => raw
            .bytes
            .get(FLAGS_OF_TCP)
            .is_some_and(|flags| is_syn(TcpFlags(*flags))),
        Payload::Raw(raw) if raw.next_header == SCTP => raw.bytes.get(FIRST_CHUNK_OF_SCTP) == Some(&INIT),
        _ => false,
    }
}

/// Source and destination port; an echo's identifier is both.
fn ports(payload: &Payload) -> (u16, u16) {
    const ICMPV6: u8 = 58;
    match payload {
        Payload::Sctp(sctp) => (sctp.source_port, sctp.destination_port),
        Payload::SctpOverUdp { packet: sctp, .. } => (sctp.source_port, sctp.destination_port),
        Payload::Tcp(tcp) => (tcp.source_port, tcp.destination_port),
        Payload::Udp(udp) => (udp.source_port, udp.destination_port),
        Payload::Icmpv6(
            Icmpv6::EchoRequest(Echo { identifier, .. }) | Icmpv6::EchoReply(Echo { identifier, .. }),
        ) => (*identifier, *identifier),
        Payload::Raw(raw) if raw.next_header == ICMPV6 => match raw.bytes[..] {
            // echo request and reply (RFC 4443 section 4)
            [128 | 129, _, _, _, a, b, ..] => (u16::from_be_bytes([a, b]), u16::from_be_bytes([a, b])),
            _ => (0, 0),
        },
        Payload::Raw(raw) => match raw.bytes.first_chunk() {
            Some(&[a, b, c, d]) => (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])),
            None => (0, 0),
        },
        _ => (0, 0),
    }
}
