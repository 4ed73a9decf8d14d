//! Neighbour discovery messages and options (RFC 4861 section 4).

use bytes::Bytes;
use core::net::Ipv6Addr;

/// A 48-bit link-layer address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkLayerAddress(pub [u8; 6]);

/// Router solicitation (section 4.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RouterSolicitation {
    /// Options.
    pub options: Vec<NdOption>,
}

/// Router advertisement (section 4.2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RouterAdvertisement {
    /// Default hop limit, 0 for unspecified.
    pub cur_hop_limit: u8,
    /// M flag: addresses are available by DHCPv6.
    pub managed: bool,
    /// O flag: other configuration is available by DHCPv6.
    pub other: bool,
    /// H flag: the router is a Mobile IPv6 home agent (RFC 6275 section 7.1).
    pub home_agent: bool,
    /// Lifetime as default router, seconds.
    pub router_lifetime_s: u16,
    /// Reachable time, milliseconds, 0 for unspecified.
    pub reachable_time_ms: u32,
    /// Time between retransmitted neighbour solicitations, milliseconds, 0 for unspecified.
    pub retrans_timer_ms: u32,
    /// Options.
    pub options: Vec<NdOption>,
}

/// Neighbour solicitation (section 4.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeighborSolicitation {
    /// Address asked for.
    pub target: Ipv6Addr,
    /// Options.
    pub options: Vec<NdOption>,
}

/// Neighbour advertisement (section 4.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeighborAdvertisement {
    /// Address advertised.
    pub target: Ipv6Addr,
    /// R flag: sender is a router.
    pub router: bool,
    /// S flag: answer to a solicitation.
    pub solicited: bool,
    /// O flag: overrides a cache entry.
    pub override_flag: bool,
    /// Options.
    pub options: Vec<NdOption>,
}

/// A neighbour discovery option (section 4.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NdOption {
    /// Source link-layer address (1).
    SourceLinkLayerAddress(LinkLayerAddress),
    /// Target link-layer address (2).
    TargetLinkLayerAddress(LinkLayerAddress),
    /// Prefix information (3).
    PrefixInformation(PrefixInformation),
    /// MTU (5), bytes.
    Mtu(u32),
    /// Advertisement interval (7), milliseconds (RFC 6275 section 7.3).
    AdvertisementInterval(u32),
    /// Nonce (14), used by enhanced duplicate address detection (RFC 7527).
    Nonce(Bytes),
    /// Any other option; `data` is the whole option after type and length, a multiple of 8 less 2 bytes long.
    Unknown {
        /// Option type.
        option_type: u8,
        /// Option data.
        data: Bytes,
    },
}

/// Prefix information option (section 4.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixInformation {
    /// Prefix.
    pub prefix: Ipv6Addr,
    /// Number of leading bits that count, 0 to 128.
    pub prefix_length: u8,
    /// L flag: prefix is on link.
    pub on_link: bool,
    /// A flag: prefix may be used for address autoconfiguration.
    pub autonomous: bool,
    /// R flag: prefix field holds the router's whole address (RFC 6275 section 7.2).
    pub router_address: bool,
    /// Valid lifetime, seconds; all ones is infinity.
    pub valid_lifetime_s: u32,
    /// Preferred lifetime, seconds; all ones is infinity.
    pub preferred_lifetime_s: u32,
}
