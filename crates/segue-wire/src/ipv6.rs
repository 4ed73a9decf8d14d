//! IPv6 header and extension headers (RFC 8200).

use bytes::Bytes;
use core::net::Ipv6Addr;

/// The fixed IPv6 header (RFC 8200 section 3). Payload length and next header are worked out on emission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Header {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// Traffic class.
    pub traffic_class: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
}

/// An option of a hop-by-hop or destination options header (RFC 8200 section 4.2); padding is not kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ipv6Option {
    /// Router alert (RFC 2711).
    RouterAlert(u16),
    /// An option this crate does not know, with its data.
    Unknown {
        /// Option type, with the action bits.
        option_type: u8,
        /// Option data.
        data: Bytes,
    },
}

/// An extension header (RFC 8200 section 4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExtensionHeader {
    /// Hop-by-hop options.
    HopByHop(Vec<Ipv6Option>),
    /// Destination options.
    DestinationOptions(Vec<Ipv6Option>),
    /// Routing header, kept whole.
    Routing {
        /// Routing type.
        routing_type: u8,
        /// Segments left.
        segments_left: u8,
        /// Type-specific data.
        data: Bytes,
    },
    /// Fragment header (section 4.5). The payload behind a fragment is kept as `Payload::Unknown` unless the
    /// offset is zero and no more fragments follow.
    Fragment {
        /// Offset in units of 8 bytes.
        offset: u16,
        /// More fragments follow.
        more: bool,
        /// Identification.
        identification: u32,
    },
}
