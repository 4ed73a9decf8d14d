//! Flows: what a network layer can see of who talks to whom above it.

use super::readdress::is_first_fragment;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::invoking::Invoking;
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
    /// By protocol and ports, this host's first.
    pub const fn of_ports(protocol: u8, local_port: u16, remote_port: u16) -> Self {
        Self {
            protocol,
            local_port,
            remote_port,
        }
    }

    /// That of a packet on its way down; of an error, that of the packet from the peer that it is about.
    pub fn down(packet: &Packet) -> Self {
        let (protocol, source, destination) = match quoted(&packet.payload) {
            Some((protocol, source, destination)) => (protocol, destination, source),
            None => ports(packet),
        };
        Self {
            protocol,
            local_port: source,
            remote_port: destination,
        }
    }

    /// That of a packet on its way up; of an error, that of the packet to the peer that it is about.
    pub fn up(packet: &Packet) -> Self {
        let (protocol, source, destination) = match quoted(&packet.payload) {
            Some((protocol, source, destination)) => (protocol, destination, source),
            None => ports(packet),
        };
        Self {
            protocol,
            local_port: destination,
            remote_port: source,
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
    begins(packet) == Some(true)
}

/// Whether a packet may be the first of its flow: a call, or anything of a protocol of which the network layer cannot tell.
pub(super) fn may_be_first(packet: &Packet) -> bool {
    let tells = match &packet.payload {
        Payload::SctpOverUdp { .. } => true,
        payload => [TCP, SCTP, ICMPV6].contains(&payload.next_header()),
    };
    !tells || is_call(packet)
}

/// Whether a packet answers a call: a SYN with ACK, an INIT ACK, an echo reply, or a TCP reset.
pub(super) fn answers_call(packet: &Packet) -> bool {
    resets(packet) || begins(packet) == Some(false)
}

/// Whether a packet answers what begins something, or is an error about a packet of the peer's: it says nothing to whoever has not
/// sent that.
pub(super) fn is_answer(packet: &Packet) -> bool {
    let is_error = match &packet.payload {
        Payload::Icmpv6(message) => message.is_error(),
        Payload::Raw(raw) => raw.next_header == ICMPV6 && raw.bytes.first().is_some_and(|t| *t < 128),
        _ => false,
    };
    is_error || answers_call(packet)
}

fn resets(packet: &Packet) -> bool {
    let is_reset = |flags: TcpFlags| flags.0 & TcpFlags::RST.0 != 0;
    match &packet.payload {
        Payload::Tcp(tcp) => is_reset(tcp.flags),
        Payload::Raw(raw) if raw.next_header == TCP => raw
            .bytes
            .get(FLAGS_OF_TCP)
            .is_some_and(|flags| is_reset(TcpFlags(*flags))),
        _ => false,
    }
}

/// Whether a packet begins something (`true`) or answers what does: a SYN with ACK, an INIT ACK, an echo reply. Nothing if
/// the network layer cannot tell.
fn begins(packet: &Packet) -> Option<bool> {
    const INIT: u8 = 1;
    const INIT_ACK: u8 = 2;
    const ECHO_REQUEST: u8 = 128;
    const ECHO_REPLY: u8 = 129;
    const FIRST_CHUNK_OF_SCTP: usize = 12;
    let of_sctp = |sctp: &SctpPacket| match sctp.chunks.first()? {
        Chunk::Init(_) => Some(true),
        Chunk::InitAck(_) => Some(false),
        _ => None,
    };
    let of_tcp = |flags: TcpFlags| {
        let has = |flag: TcpFlags| flags.0 & flag.0 != 0;
        has(TcpFlags::SYN).then(|| !has(TcpFlags::ACK))
    };
    match &packet.payload {
        Payload::Tcp(tcp) => of_tcp(tcp.flags),
        Payload::Sctp(sctp) | Payload::SctpOverUdp { packet: sctp, .. } => of_sctp(sctp),
        Payload::Icmpv6(Icmpv6::EchoRequest(_)) => Some(true),
        Payload::Icmpv6(Icmpv6::EchoReply(_)) => Some(false),
        _ => match in_bytes(packet)? {
            (TCP, bytes) => of_tcp(TcpFlags(*bytes.get(FLAGS_OF_TCP)?)),
            (SCTP, bytes) => match *bytes.get(FIRST_CHUNK_OF_SCTP)? {
                INIT => Some(true),
                INIT_ACK => Some(false),
                _ => None,
            },
            (ICMPV6, [ECHO_REQUEST, ..]) => Some(true),
            (ICMPV6, [ECHO_REPLY, ..]) => Some(false),
            _ => None,
        },
    }
}

/// Protocol, source and destination port; an echo's identifier is both.
fn ports(packet: &Packet) -> (u8, u16, u16) {
    let protocol = packet.payload.next_header();
    match &packet.payload {
        Payload::Sctp(sctp) => (protocol, sctp.source_port, sctp.destination_port),
        Payload::SctpOverUdp { packet: sctp, .. } => (protocol, sctp.source_port, sctp.destination_port),
        Payload::Tcp(tcp) => (protocol, tcp.source_port, tcp.destination_port),
        Payload::Udp(udp) => (protocol, udp.source_port, udp.destination_port),
        Payload::Icmpv6(Icmpv6::EchoRequest(echo) | Icmpv6::EchoReply(echo)) => {
            (protocol, echo.identifier, echo.identifier)
        }
        _ => in_bytes(packet).map_or((protocol, 0, 0), |(protocol, bytes)| ports_in(protocol, bytes)),
    }
}

/// A transport that is not understood, from its header on: whole, or in its first fragment.
fn in_bytes(packet: &Packet) -> Option<(u8, &[u8])> {
    match &packet.payload {
        Payload::Raw(raw) => Some((raw.next_header, &raw.bytes)),
        Payload::Unknown { next_header, bytes } if is_first_fragment(packet) => Some((*next_header, bytes)),
        _ => None,
    }
}

/// The same of the beginning of a transport's packet.
fn ports_in(protocol: u8, bytes: &[u8]) -> (u8, u16, u16) {
    match (protocol, bytes) {
        // RFC 4443 section 4
        (ICMPV6, [128 | 129, _, _, _, a, b, ..]) => {
            let identifier = u16::from_be_bytes([*a, *b]);
            (protocol, identifier, identifier)
        }
        (ICMPV6, _) => (protocol, 0, 0),
        (_, [a, b, c, d, ..]) => (
            protocol,
            u16::from_be_bytes([*a, *b]),
            u16::from_be_bytes([*c, *d]),
        ),
        _ => (protocol, 0, 0),
    }
}

/// The same of the packet that an ICMPv6 error quotes.
fn quoted(payload: &Payload) -> Option<(u8, u16, u16)> {
    /// Type, code, checksum, and the word behind them (RFC 4443 section 3).
    const HEADER_OF_AN_ERROR: usize = 8;
    let invoking = match payload {
        Payload::Icmpv6(message) => message.invoking().cloned(),
        Payload::Raw(raw) if raw.next_header == ICMPV6 && raw.bytes.first().is_some_and(|t| *t < 128) => {
            (raw.bytes.len() > HEADER_OF_AN_ERROR).then(|| raw.bytes.slice(HEADER_OF_AN_ERROR..))
        }
        _ => None,
    };
    let packet = Invoking::parse(&invoking?).ok()?;
    Some(ports_in(packet.next_header, &packet.payload))
}

const FLAGS_OF_TCP: usize = 13;
const TCP: u8 = 6;
const SCTP: u8 = 132;
const ICMPV6: u8 = 58;
