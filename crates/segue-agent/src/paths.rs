//! Networks as they are: what a path carries of packets that the agent has made longer.
//!
//! - *Path MTU* (RFC 8201). An ICMPv6 "packet too big" of a router quotes a packet as it was on the wire. The role has given it back the
//!   addresses that the kernel knows, if it is about a packet of its own; here its MTU is lowered by what the packet was longer,
//!   so that the kernel's own discovery works for identities and home addresses, and by [`LEAST_FREE`] bytes at least. It is
//!   remembered for the place on the wire.
//! - *Too big here*. A packet that does not fit the interface, or what is known of the path, is answered as a router would (RFC
//!   8201 section 4). One that the kernel may not make smaller, of 1280 bytes or less, is sent in fragments (RFC 8200 section 5).
//! - *Segments*. The MSS in a SYN, either way, is no greater than what fits (RFC 9293 section 3.7.1).
//! - *Options*. See [`Carriages`]: the nonce in UDP where destination options are dropped.

mod carriages;
mod limits;
mod pieces;
mod segment_size;

pub use carriages::Carriage;
pub(crate) use carriages::{Arrived, Carriages, Heard};
use limits::PathMtus;
pub(crate) use limits::Quotation;
use pieces::{in_pieces, segment_length};
use segment_size::clamp;

use crate::packets::innermost;
use segue_proto::contract::{InterfaceId, Transmit};
use segue_proto::shim::Count;
use segue_proto::{Duration, Instant, TokenBucket};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::invoking::MIN_MTU;
use segue_wire::{ExtensionHeader, Ipv6Header, Packet, Payload};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// What is kept free of a packet at least, in bytes. A Linux that forwards a super-packet (the host of a container, a router that has put
/// segments together) asks whether its segments fit, and takes the length of TCP's header from where it is without an extension
/// header: up to 60 bytes instead of 20, by whatever the sequence number is. With 40 bytes free they always do; with fewer, one TCP
/// connection in three or so is told of packets that are too big with the MTU that they keep to, and stands still.
pub const LEAST_FREE: u32 = 40;

/// A packet as the kernel sent it, as far as an answer to it needs that.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    ip: Ipv6Header,
    extensions: Vec<ExtensionHeader>,
    /// Bytes, of a super-packet all of them.
    length: usize,
}

impl Sent {
    pub fn new(packet: &Packet, length: usize) -> Self {
        Self {
            ip: packet.ip,
            extensions: packet.extensions.clone(),
            length,
        }
    }

    /// Whether the kernel sent it to this address.
    pub fn is_to(&self, destination: Ipv6Addr) -> bool {
        self.ip.destination == destination
    }

    /// By how many bytes what the role has made of it is longer.
    pub fn growth_of(&self, packet: &Packet) -> usize {
        packet.buffer_len().saturating_sub(self.length)
    }
}

/// What becomes of a packet that is too long.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What is sent of it.
    pub pieces: Vec<Packet>,
    /// What the kernel is told.
    pub answer: Option<Packet>,
}

/// Sizes of packets. What it is told is sizes of interfaces and errors of routers.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    interfaces: BTreeMap<InterfaceId, u32>,
    known: PathMtus,
    answers: Answers,
    /// Counts the packets that were cut up.
    identification: u32,
    counters: PathCounters,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct PathCounters {
    /// Packets of the kernel's that were too big for the interface or the path, and that it was told of.
    too_big: u64,
    /// The same, and it was not told because it was just told so often.
    too_big_unanswered: u64,
    /// Packets sent in fragments.
    fragmented: u64,
    /// Path MTUs learnt from routers.
    path_mtus: u64,
    /// Dropped: "packet too big" with an MTU that the packet did not exceed.
    incredible_mtus: u64,
    /// SYNs whose MSS was made smaller.
    clamped: u64,
}

impl Paths {
    /// The MTU of an interface.
    pub fn set_interface_mtu(&mut self, interface: InterfaceId, mtu: u32) {
        self.interfaces.insert(interface, mtu);
    }

    /// By name.
    pub fn counters(&self) -> Vec<Count> {
        let PathCounters {
            too_big,
            too_big_unanswered,
            fragmented,
            path_mtus,
            incredible_mtus,
            clamped,
        } = self.counters;
        vec![
            ("too_big", too_big),
            ("too_big_unanswered", too_big_unanswered),
            ("fragmented", fragmented),
            ("path_mtus", path_mtus),
            ("incredible_mtus", incredible_mtus),
            ("mss_clamped", clamped),
        ]
    }

    /// How long a packet may be that leaves by an interface for `destination`, as far as is known.
    pub fn most(&self, now: Instant, interface: InterfaceId, destination: Ipv6Addr) -> Option<u32> {
        let path = self.known.peek(now, interface, destination);
        let of_interface = self.interfaces.get(&interface).copied();
        path.into_iter().chain(of_interface).min()
    }

    /// How long a packet may be that is about to be sent and is longer; nothing if it fits. `grown` is by how many bytes it is longer than
    /// it was when the kernel sent it, `later` by how many it is going to be longer yet: what it is told has room for these.
    pub fn exceeds(
        &mut self,
        now: Instant,
        transmit: &mut Transmit,
        grown: usize,
        later: usize,
    ) -> Option<usize> {
        let Transmit { interface, packet } = transmit;
        let room = |mtu: u32| (mtu as usize).saturating_sub(later);
        let interface_mtu = self.interfaces.get(interface).map(|mtu| room(*mtu));
        if let Some(most) = interface_mtu
            && clamp(innermost(packet), most.saturating_sub(grown))
        {
            self.counters.clamped += 1;
        }
        let path = self.known.get(now, *interface, packet.ip.destination);
        let limit = path.map(room).into_iter().chain(interface_mtu).min()?;
        (segment_length(packet) > limit).then_some(limit)
    }

    /// Sees to a packet that exceeds `limit`. `sent` is as the kernel sent it, with the bytes by which it has grown; nothing for one of the
    /// role's own.
    pub fn too_long(
        &mut self,
        now: Instant,
        packet: Packet,
        limit: usize,
        sent: Option<(&Sent, usize)>,
    ) -> Outcome {
        if let Some((sent, grown)) = sent
            && segment_length(&packet).saturating_sub(grown) > MIN_MTU
        {
            return Outcome {
                pieces: Vec::new(),
                answer: self.too_big(now, sent, packet, limit.saturating_sub(grown)),
            };
        }
        self.counters.fragmented += 1;
        // of packets that follow each other another one; what is in them makes it hard to guess (RFC 7739)
        self.identification = self.identification.wrapping_add(1 << 16);
        let identification = fingerprint(&packet).wrapping_add(self.identification);
        Outcome {
            pieces: in_pieces(packet, limit, identification),
            answer: None,
        }
    }

    /// Sees to a packet that came over `interface` and goes up to the kernel: an error about what was quoted `before` the role had its
    /// way with it, or a SYN. `grown` is by how much packets grow at most. Whether it goes up.
    pub fn up(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        before: Option<Quotation>,
        packet: &mut Packet,
        grown: usize,
    ) -> bool {
        if let Some(most) = self.interfaces.get(&interface)
            && clamp(packet, (*most as usize).saturating_sub(grown))
        {
            self.counters.clamped += 1;
        }
        let Some(before) = before else {
            return true;
        };
        let Payload::Icmpv6(Icmpv6::PacketTooBig { mtu, invoking }) = &mut packet.payload else {
            return true;
        };
        let Some(after) = Quotation::of_bytes(invoking) else {
            return true;
        };
        // not about a session of the role's: the kernel, which has sent the packet, knows what to think of it (RFC 8201 section 6)
        if after == before {
            return true;
        }
        // RFC 8201 section 4: it cannot be about this packet
        if *mtu as usize >= before.length {
            self.counters.incredible_mtus += 1;
            return false;
        }
        let grown = before.length.saturating_sub(after.length) as u32;
        let free = LEAST_FREE.saturating_sub(grown);
        let on_the_wire = mtu.saturating_sub(free).max(MIN_MTU as u32);
        self.known.learn(now, interface, before.destination, on_the_wire);
        self.counters.path_mtus += 1;
        *mtu = on_the_wire.saturating_sub(grown).max(MIN_MTU as u32);
        true
    }

    /// Says to the kernel that a packet is too big, as a router would that is its peer (RFC 4443 section 3.2).
    fn too_big(&mut self, now: Instant, sent: &Sent, mut packet: Packet, mtu: usize) -> Option<Packet> {
        if !self.answers.0.take(now) {
            self.counters.too_big_unanswered += 1;
            return None;
        }
        self.counters.too_big += 1;
        let payload = core::mem::replace(&mut innermost(&mut packet).payload, Payload::NoNextHeader);
        let about = Packet {
            ip: sent.ip,
            extensions: sent.extensions.clone(),
            payload,
        };
        Some(Packet {
            ip: Ipv6Header {
                source: sent.ip.destination,
                destination: sent.ip.source,
                traffic_class: 0,
                hop_limit: 64,
                flow_label: 0,
            },
            extensions: Vec::new(),
            payload: Payload::Icmpv6(Icmpv6::PacketTooBig {
                mtu: mtu.max(MIN_MTU) as u32,
                invoking: Icmpv6::quote(&about),
            }),
        })
    }
}

/// A number made of the beginning of a transport's packet: ports, sequence numbers, checksum (FNV-1a).
fn fingerprint(packet: &Packet) -> u32 {
    let mut inner = packet;
    while let Payload::Ipv6(next) = &inner.payload {
        inner = next;
    }
    let bytes: &[u8] = match &inner.payload {
        Payload::Raw(raw) => &raw.bytes,
        Payload::Unknown { bytes, .. } => bytes,
        _ => &[],
    };
    let first = bytes.iter().take(64);
    first.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

/// How often the kernel is told of a packet that is too big: as errors are limited (RFC 4443 section 2.4 f).
#[derive(Debug)]
struct Answers(TokenBucket);

impl Default for Answers {
    fn default() -> Self {
        Self(TokenBucket::new(BURST, INTERVAL))
    }
}

/// At once, and from then on one each.
const BURST: u64 = 50;
const INTERVAL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
