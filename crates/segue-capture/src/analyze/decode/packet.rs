//! A packet, and why there may be none.

use crate::pcapng::Direction;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address of either kind; IPv4 as IPv4-mapped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(in crate::analyze) struct Address(pub u128);

impl Address {
    const MAPPED: u128 = 0xffff << 32;

    pub(in crate::analyze) fn v4(octets: [u8; 4]) -> Self {
        Self(Self::MAPPED | u128::from(u32::from_be_bytes(octets)))
    }

    pub(in crate::analyze) fn v6(octets: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(octets))
    }

    /// The lower half: the node identifier of an ILNPv6 address.
    pub(in crate::analyze) const fn nid(self) -> u64 {
        self.0 as u64
    }

    /// The upper half: the locator.
    pub(in crate::analyze) const fn locator(self) -> u64 {
        (self.0 >> 64) as u64
    }

    pub(in crate::analyze) const fn is_v4(self) -> bool {
        self.0 >> 32 == 0xffff
    }

    pub(in crate::analyze) fn ip(self) -> IpAddr {
        if self.is_v4() {
            IpAddr::V4(Ipv4Addr::from_bits(self.0 as u32))
        } else {
            IpAddr::V6(Ipv6Addr::from_bits(self.0))
        }
    }
}

/// How a packet's addresses relate to who its ends are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::analyze) struct Marks {
    /// It is in a tunnel.
    pub tunnelled: bool,
    /// A Home Address destination option or a type 2 routing header: Mobile IPv6, route-optimised.
    pub route_optimised: bool,
    /// A nonce option: the addresses are locator and identifier (RFC 6744).
    pub ilnp: bool,
}

impl Marks {
    /// What either has.
    pub(in crate::analyze) const fn and(self, other: Self) -> Self {
        Self {
            tunnelled: self.tunnelled | other.tunnelled,
            route_optimised: self.route_optimised | other.route_optimised,
            ilnp: self.ilnp | other.ilnp,
        }
    }
}

/// A packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::analyze) struct Decoded<'a> {
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
    /// By the link header, the host's interface; zero if it does not say.
    pub device: u32,
    /// First fragment of several.
    pub fragment: bool,
    /// Where a later fragment begins in the whole; zero of all others.
    pub offset: u32,
    /// Identification of the fragments of an IPv6 packet.
    pub fragments: Option<u32>,
}

/// Why a frame is not followed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::analyze) enum Skip {
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
    pub(in crate::analyze) const ALL: [Self; 7] = [
        Self::NotIp,
        Self::UnknownLink,
        Self::CutOff,
        Self::Malformed,
        Self::Fragment,
        Self::TooDeep,
        Self::Encrypted,
    ];

    /// Name in reports.
    pub(in crate::analyze) const fn name(self) -> &'static str {
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
