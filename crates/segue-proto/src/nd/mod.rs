//! Neighbour discovery (RFC 4861) and stateless address autoconfiguration (RFC 4862).
//!
//! [`HostNd`] is the machine of one interface of a host: router solicitation, advertisements, address formation,
//! duplicate address detection, address lifetimes, answers to solicitations for its own addresses. [`RouterNd`] is
//! its counterpart in an access router.
//!
//! The links of Segue carry packets to the one router of a cell or wire: there is a next hop and no choice.
//! Therefore address resolution towards others, neighbour unreachability detection, redirects and the on-link prefix
//! list are left out. Interface identifiers are the modified EUI-64 of RFC 4291 appendix A; the stable opaque ones of
//! RFC 7217 and the temporary ones of RFC 8981 are left out, since they change no timing.

mod config;
mod host;
mod router;

pub use config::{AdvertisedHomeAgent, AdvertisedPrefix, HostConfig, INFINITE_LIFETIME_S, RouterConfig};
pub use host::{AddressState, HostNd, NdCounters, NdEvent};
pub use router::RouterNd;

use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::nd::LinkLayerAddress;
use segue_wire::{Ipv6Header, Packet, Payload};

/// All nodes on the link (RFC 4291 section 2.7.1).
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// All routers on the link (RFC 4291 section 2.7.1).
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// Hop limit of neighbour discovery: proof that a packet was sent on this link (RFC 4861 section 3.1).
const ND_HOP_LIMIT: u8 = 255;

/// The modified EUI-64 interface identifier of a 48-bit address (RFC 4291 appendix A).
#[must_use]
pub fn interface_identifier(link_layer: LinkLayerAddress) -> [u8; 8] {
    let [a, b, c, d, e, f] = link_layer.0;
    [a ^ 0x02, b, c, 0xff, 0xfe, d, e, f]
}

/// The first 64 bits of `prefix` with the interface identifier of `link_layer`.
#[must_use]
pub fn form_address(prefix: Ipv6Addr, link_layer: LinkLayerAddress) -> Ipv6Addr {
    form_address_with(prefix, interface_identifier(link_layer))
}

/// The first 64 bits of `prefix` with an interface identifier.
#[must_use]
pub fn form_address_with(prefix: Ipv6Addr, identifier: [u8; 8]) -> Ipv6Addr {
    let mut octets = prefix.octets();
    octets[8..].copy_from_slice(&identifier);
    octets.into()
}

/// The link-local address of an interface (RFC 4862 section 5.3).
#[must_use]
pub fn link_local(link_layer: LinkLayerAddress) -> Ipv6Addr {
    form_address(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), link_layer)
}

/// The solicited-node multicast address of `address` (RFC 4291 section 2.7.1).
#[must_use]
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(
        0xff02,
        0,
        0,
        0,
        0,
        1,
        0xff00 | u16::from(a),
        u16::from(b) << 8 | u16::from(c),
    )
}

/// A neighbour discovery packet.
fn nd_packet(source: Ipv6Addr, destination: Ipv6Addr, message: Icmpv6) -> Packet {
    Packet {
        ip: Ipv6Header {
            source,
            destination,
            traffic_class: 0,
            hop_limit: ND_HOP_LIMIT,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload: Payload::Icmpv6(message),
    }
}

#[cfg(test)]
mod tests;
