//! Tunnels (RFC 2473): into them, and what is said of the packets in them on the way.

use super::{TUNNEL_OVERHEAD, packet};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::invoking::{Invoking, MIN_MTU};
use segue_wire::ipv6::{HEADER_LEN, IPV6_IN_IPV6};
use segue_wire::{MAX_TUNNEL_DEPTH, Packet, Payload};

/// A packet in a tunnel (section 3.1), with the traffic class of what is in it and a flow label that is the same for a flow.
/// `None` if that is in too many already.
pub(super) fn encapsulate(source: Ipv6Addr, destination: Ipv6Addr, inner: Packet) -> Option<Packet> {
    if depth(&inner) >= MAX_TUNNEL_DEPTH {
        return None;
    }
    let traffic_class = inner.ip.traffic_class;
    let flow_label = flow_label_for(&inner);
    let mut outer = packet(source, destination, Vec::new(), Payload::Ipv6(Box::new(inner)));
    outer.ip.traffic_class = traffic_class;
    outer.ip.flow_label = flow_label;
    Some(outer)
}

/// The flow label of a tunnel's packet (RFC 6438 section 3): from addresses and flow label of what is in it, so that routers that
/// share load by the outer header keep a flow on one way and spread several. Zero if what is in it has no label: its host does
/// not keep flows apart.
fn flow_label_for(inner: &Packet) -> u32 {
    const BITS: u32 = 0xf_ffff;
    if inner.ip.flow_label == 0 {
        return 0;
    }
    let parties = inner.ip.source.to_bits() ^ inner.ip.destination.to_bits().rotate_left(1);
    let mut z = (parties >> 64) as u64 ^ parties as u64 ^ u64::from(inner.ip.flow_label) << 32;
    // the finalizer of SplitMix64
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    ((z as u32) & BITS).max(1)
}

fn depth(packet: &Packet) -> usize {
    match &packet.payload {
        Payload::Ipv6(inner) => 1 + depth(inner),
        _ => 0,
    }
}

/// An error about a packet in a tunnel (section 8).
#[derive(Clone, PartialEq, Debug)]
pub(super) struct TunnelError {
    /// Where the tunnel begins and ends.
    pub(super) entry: Ipv6Addr,
    pub(super) exit: Ipv6Addr,
    /// Source and destination of the packet that is in it.
    pub(super) source: Ipv6Addr,
    pub(super) destination: Ipv6Addr,
    /// What that packet's source is to be told, if anything.
    pub(super) relayed: Option<Icmpv6>,
}

impl TunnelError {
    /// Reads an error. `None` if it is not about a tunnel, or does not quote enough.
    pub(super) fn parse(error: &Icmpv6) -> Option<Self> {
        let outer = Invoking::parse(error.invoking()?).ok()?;
        if outer.next_header != IPV6_IN_IPV6 {
            return None;
        }
        let original = outer.payload;
        let inner = Invoking::parse(&original).ok()?;
        Some(Self {
            entry: outer.source,
            exit: outer.destination,
            source: inner.source,
            destination: inner.destination,
            relayed: relay(error, &inner, original),
        })
    }
}

/// Section 8.2. Nothing is said of an error (RFC 4443 section 2.4 e), nor that a packet is too big that every link must carry:
/// that would have to be cut up in the tunnel, which nobody here does (section 7.1 b).
fn relay(error: &Icmpv6, inner: &Invoking, original: Bytes) -> Option<Icmpv6> {
    const ICMPV6: u8 = 58;
    const ADDRESS_UNREACHABLE: u8 = 3;
    let is_error = inner.next_header == ICMPV6 && inner.payload.first().is_none_or(|message| *message < 128);
    if is_error || inner.source.is_unspecified() || inner.source.is_multicast() {
        return None;
    }
    let payload_length = original.get(4..).and_then(|rest| rest.first_chunk());
    let length = HEADER_LEN + payload_length.map_or(0, |length| usize::from(u16::from_be_bytes(*length)));
    match error {
        Icmpv6::PacketTooBig { mtu, .. } if length > MIN_MTU => Some(Icmpv6::PacketTooBig {
            mtu: mtu.saturating_sub(TUNNEL_OVERHEAD).max(MIN_MTU as u32),
            invoking: original,
        }),
        Icmpv6::DestinationUnreachable { .. } | Icmpv6::TimeExceeded { .. } => {
            Some(Icmpv6::DestinationUnreachable {
                code: ADDRESS_UNREACHABLE,
                invoking: original,
            })
        }
        _ => None,
    }
}
