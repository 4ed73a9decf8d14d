//! The typed packet.

use crate::icmpv6::Icmpv6;
use crate::ipv6::{ExtensionHeader, Ipv6Header};
use crate::sctp::SctpPacket;
use crate::udp::UdpDatagram;
use bytes::Bytes;

/// An IPv6 packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The fixed header.
    pub ip: Ipv6Header,
    /// Extension headers, outermost first; empty for nearly every packet, and then no memory is allocated.
    pub extensions: Vec<ExtensionHeader>,
    /// What the packet carries.
    pub payload: Payload,
}

/// The upper-layer payload of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// SCTP (protocol 132, RFC 9260).
    Sctp(SctpPacket),
    /// ICMPv6 (protocol 58, RFC 4443).
    Icmpv6(Icmpv6),
    /// UDP (protocol 17, RFC 768).
    Udp(UdpDatagram),
    /// No next header (59).
    NoNextHeader,
    /// Any other upper-layer protocol.
    Unknown {
        /// Protocol number.
        next_header: u8,
        /// Payload bytes.
        bytes: Bytes,
    },
}
