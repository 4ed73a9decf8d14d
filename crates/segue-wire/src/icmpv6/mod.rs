//! ICMPv6 (RFC 4443) and neighbour discovery (RFC 4861).

pub mod nd;

use bytes::Bytes;
use nd::{NeighborAdvertisement, NeighborSolicitation, RouterAdvertisement, RouterSolicitation};

/// An ICMPv6 message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Icmpv6 {
    /// Destination unreachable (type 1), with the code and the start of the packet that caused it.
    DestinationUnreachable {
        /// Code (RFC 4443 section 3.1).
        code: u8,
        /// As much of the invoking packet as fits.
        invoking: Bytes,
    },
    /// Packet too big (type 2).
    PacketTooBig {
        /// MTU of the next hop, bytes.
        mtu: u32,
        /// As much of the invoking packet as fits.
        invoking: Bytes,
    },
    /// Time exceeded (type 3).
    TimeExceeded {
        /// Code (RFC 4443 section 3.3).
        code: u8,
        /// As much of the invoking packet as fits.
        invoking: Bytes,
    },
    /// Parameter problem (type 4).
    ParameterProblem {
        /// Code (RFC 4443 section 3.4).
        code: u8,
        /// Offset of the error in the invoking packet, bytes.
        pointer: u32,
        /// As much of the invoking packet as fits.
        invoking: Bytes,
    },
    /// Echo request (type 128).
    EchoRequest(Echo),
    /// Echo reply (type 129).
    EchoReply(Echo),
    /// Router solicitation (type 133).
    RouterSolicitation(RouterSolicitation),
    /// Router advertisement (type 134).
    RouterAdvertisement(RouterAdvertisement),
    /// Neighbour solicitation (type 135).
    NeighborSolicitation(NeighborSolicitation),
    /// Neighbour advertisement (type 136).
    NeighborAdvertisement(NeighborAdvertisement),
    /// Any other message, kept whole.
    Unknown {
        /// Type.
        message_type: u8,
        /// Code.
        code: u8,
        /// Body after the checksum.
        body: Bytes,
    },
}

/// Echo request and reply (RFC 4443 section 4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Echo {
    /// Identifier.
    pub identifier: u16,
    /// Sequence number.
    pub sequence: u16,
    /// Data.
    pub data: Bytes,
}
