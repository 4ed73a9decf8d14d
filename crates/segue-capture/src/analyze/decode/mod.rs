//! From the bytes of a frame to what flows are made of. Everything is read in place, through checked slices; what is cut
//! off or damaged is a named [`Skip`], which the analysis counts.
//!
//! Checksums are not verified: captures of the sending host hold what its network card has yet to fill in.

mod ip;
mod link;
mod tcp;

pub(super) use link::LinkType;
pub(super) use tcp::{MptcpOption, mptcp_options};

use crate::pcapng::Direction;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address of either kind; IPv4 as IPv4-mapped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct Address(pub u128);

impl Address {
    const MAPPED: u128 = 0xffff << 32;

    pub(super) fn v4(octets: [u8; 4]) -> Self {
        Self(Self::MAPPED | u128::from(u32::from_be_bytes(octets)))
    }

    pub(super) fn v6(octets: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(octets))
    }

    /// The lower half: the node identifier of an ILNPv6 address.
    pub(super) const fn nid(self) -> u64 {
        self.0 as u64
    }

    /// The upper half: the locator.
    pub(super) const fn locator(self) -> u64 {
        (self.0 >> 64) as u64
    }

    pub(super) const fn is_v4(self) -> bool {
        self.0 >> 32 == 0xffff
    }

    pub(super) fn ip(self) -> IpAddr {
        if self.is_v4() {
            IpAddr::V4(Ipv4Addr::from_bits(self.0 as u32))
        } else {
            IpAddr::V6(Ipv6Addr::from_bits(self.0))
        }
    }
}

/// How a packet's addresses relate to who its ends are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Marks {
    /// It is in a tunnel.
    pub tunnelled: bool,
    /// A Home Address destination option or a type 2 routing header: Mobile IPv6, route-optimised.
    pub route_optimised: bool,
    /// A nonce option: the addresses are locator and identifier (RFC 6744).
    pub ilnp: bool,
}

/// A packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decoded<'a> {
    /// Source and destination of the outermost header: the way that it takes.
    pub outer: (Address, Address),
    /// Source and destination of the innermost header.
    pub inner: (Address, Address),
    /// Those that the transports see: with home addresses in the place of care-of addresses.
    pub identity: (Address, Address),
    pub marks: Marks,
    /// Upper-layer protocol.
    pub protocol: u8,
    /// From the upper-layer header on, as captured.
    pub payload: &'a [u8],
    /// Bytes from there on, on the wire.
    pub payload_len: u32,
    /// IPv4 identification, for telling copies apart.
    pub identification: u16,
    /// By the link header.
    pub direction: Option<Direction>,
    /// First fragment of several.
    pub fragment: bool,
    /// Identification of the fragments of an IPv6 packet.
    pub fragments: Option<u32>,
}

/// Why a frame is not followed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Skip {
    /// Not IP: ARP and so on.
    NotIp,
    /// A link type that is not understood.
    UnknownLink,
    /// The captured bytes end within a header.
    CutOff,
    /// A header contradicts itself.
    Malformed,
    /// A fragment other than the first.
    Fragment,
    /// More tunnels than anybody uses.
    TooDeep,
    /// Encrypted (ESP).
    Encrypted,
}

impl Skip {
    /// All, by index.
    pub(super) const ALL: [Self; 7] = [
        Self::NotIp,
        Self::UnknownLink,
        Self::CutOff,
        Self::Malformed,
        Self::Fragment,
        Self::TooDeep,
        Self::Encrypted,
    ];

    /// Name in reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::NotIp => "not-ip",
            Self::UnknownLink => "unknown-link-type",
            Self::CutOff => "headers-cut-off",
            Self::Malformed => "malformed",
            Self::Fragment => "later-fragments",
            Self::TooDeep => "nested-too-deep",
            Self::Encrypted => "encrypted",
        }
    }
}

/// TCP (RFC 9293).
pub(super) const TCP: u8 = 6;
/// UDP (RFC 768).
pub(super) const UDP: u8 = 17;
/// ICMPv6 (RFC 4443).
pub(super) const ICMPV6: u8 = 58;
/// SCTP (RFC 9260).
pub(super) const SCTP: u8 = 132;
/// Mobility header (RFC 6275).
pub(super) const MOBILITY: u8 = 135;

/// Reads a frame.
pub(super) fn decode(link: LinkType, frame: &[u8], wire_len: u32) -> Result<Decoded<'_>, Skip> {
    let found = link::network(link, frame)?;
    let wire_len = wire_len.saturating_sub(found.header_len as u32);
    ip::decode(found.packet, wire_len, found.direction)
}

/// A TCP segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tcp<'a> {
    pub source_port: u16,
    pub destination_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    /// Bytes of data on the wire.
    pub data_len: u32,
    /// TSval and TSecr (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    pub options: &'a [u8],
}

/// Flags of TCP.
pub(super) mod flag {
    pub(in super::super) const FIN: u8 = 1;
    pub(in super::super) const SYN: u8 = 2;
    pub(in super::super) const RST: u8 = 4;
    pub(in super::super) const ACK: u8 = 16;
}

impl<'a> Tcp<'a> {
    /// Reads the header of a decoded packet.
    pub(super) fn parse(packet: &Decoded<'a>) -> Result<Self, Skip> {
        tcp::parse(packet.payload, packet.payload_len)
    }

    /// The first block of a selective acknowledgement (RFC 2018 section 4: what was received last).
    pub(super) fn sack(&self) -> Option<(u32, u32)> {
        tcp::sack(self.options)
    }

    /// Whether there is more among the options than timestamps, as there mostly is not.
    pub(super) fn has_more_options(&self) -> bool {
        !matches!(self.options, [] | [1, 1, 8, 10, _, _, _, _, _, _, _, _])
    }
}

/// Ports of a UDP datagram, what it carries, and how much of that there was on the wire.
pub(super) fn udp<'a>(packet: &Decoded<'a>) -> Result<(u16, u16, &'a [u8], u32), Skip> {
    let header: &[u8; 8] = packet.payload.first_chunk().ok_or(Skip::CutOff)?;
    let [s0, s1, d0, d1, l0, l1, ..] = *header;
    let len = u32::from(u16::from_be_bytes([l0, l1]));
    // zero in captures of hosts that leave segmentation to their network cards
    let len = if len == 0 {
        packet.payload_len
    } else {
        len.min(packet.payload_len)
    };
    let data_len = len.checked_sub(8).ok_or(Skip::Malformed)?;
    let data = packet.payload.get(8..).unwrap_or_default();
    let data = data.get(..data_len as usize).unwrap_or(data);
    Ok((
        u16::from_be_bytes([s0, s1]),
        u16::from_be_bytes([d0, d1]),
        data,
        data_len,
    ))
}
