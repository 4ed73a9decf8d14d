//! Mobile IPv6 (RFC 6275): a host keeps its home address wherever it is.
//!
//! ```text
//!                                       HomeAgent  (on a router of the home link)
//!                                        |     | tunnel
//!   CorrespondentNode (a host's shim) ---+     +--- MobileNode (a host's shim)
//!          |                                            |
//!          +-------------- route optimisation ----------+
//! ```
//!
//! - [`MobileNode`] is a [`Shim`](crate::shim::Shim): transports are bound to the home address. Away from home it registers its
//!   care-of address with its home agent, packets pass through the tunnel between the two, and, with route
//!   optimisation, it tells its correspondents too and packets take the direct way. It is itself a
//!   correspondent of other mobile nodes.
//! - [`CorrespondentNode`] is the shim of a host that does not move: it answers return routability tests and keeps
//!   bindings.
//! - [`HomeAgent`] is a machine beside a router's forwarding. The router asks [`HomeAgent::intercepts`] of every packet's
//!   destination, hands over what it intercepts and what is for [`HomeAgent::address`], and forwards what comes out. What
//!   proxy neighbour discovery is on a real home link (section 10.4.1) is that question here.
//!
//! Home registrations are authenticated by the mobility message authentication option (RFC 4285) with a shared key,
//! where RFC 6275 has IPsec: on neither way can somebody else move a binding. Correspondents know no key beforehand:
//! return routability (section 5.2) shows them that whoever sends a Binding Update receives packets at both addresses.
//!
//! **Reception is soft.** Section 11.5.4 has a mobile node go on accepting packets at a care-of address that is no longer
//! the registered one as long as the address is its own. So it is here: what is still on its way to the old address
//! when the new one is registered is not lost, if the old link still is there. Sending is hard: from the moment of the
//! decision on, packets leave by the new address, through the home agent, which drops them until it has the
//! binding (section 10.4.5).
//!
//! **Both ends move.** Mobility headers take no notice of bindings (section 6.1): tests and Binding Updates to a peer that
//! is mobile itself go by its home agent, and so repair the direct way as soon as both home registrations are done. Data
//! for the peer's old care-of address is lost until then. When tests are not answered at all, the peer is given up for a
//! while, the binding that it left here is deleted, and packets both ways go by the home agents.
//!
//! **Errors about packets in the tunnel** go on to the source of what is in it (RFC 2473 section 8.2): from the home agent to
//! the correspondent, and from the mobile node's shim to its transports. Packets are not cut up to fit the tunnel.
//!
//! Left out: IPsec, dynamic home agent address discovery (sections 10.5, 11.4.1), mobile prefix discovery (sections 10.6,
//! 11.4.2), multicast (section 10.4.3) and simultaneous bindings (RFC 5648). A home agent keeps accepted sequence numbers in memory: after a restart, replay
//! protection needs the timestamps of RFC 4285 ([`ReplayProtection`]). Errors about packets that were sent the direct
//! way quote the care-of address, and are translated for transports only where that is asked for
//! ([`CorrespondentConfig::translate_errors`]).

mod binding_cache;
mod binding_update_list;
mod config;
mod correspondent;
mod correspondent_node;
mod counters;
mod direct_error;
mod home_agent;
mod mobile_node;
mod movement;
mod ntp;
mod reply;
mod return_routability;
mod silence;
mod tunnel;

pub use binding_cache::{Binding, BindingCache};
pub use config::{
    CorrespondentConfig, HandoffPolicy, HomeAgentConfig, INITIAL_BINDACK_TIMEOUT,
    INITIAL_BINDACK_TIMEOUT_FIRST_REG, LIFETIME_UNIT, MAX_BINDACK_TIMEOUT, MAX_DELETE_BCE_TIMEOUT,
    MAX_NONCE_LIFETIME, MAX_RR_BINDING_LIFETIME, MAX_TOKEN_LIFETIME, MobileNodeConfig, Registration,
    ReplayProtection, SecurityAssociation, ServedNode,
};
pub use correspondent_node::CorrespondentNode;
pub use counters::Counters;
pub use home_agent::{HomeAgent, HomeAgentEvent};
pub use mobile_node::MobileNode;
pub use return_routability::{
    BindingManagementKey, Nonces, TokenKind, keygen_token, mn_ha_code, verify_mn_ha_code,
};

use crate::time::Duration;
use core::net::Ipv6Addr;
use segue_wire::mobility::{MobilityHeader, MobilityMessage};
use segue_wire::{ExtensionHeader, Ipv6Header, Packet, Payload};

/// Bytes that a tunnel adds to a packet: an IPv6 header.
pub const TUNNEL_OVERHEAD: u32 = 40;
/// Bytes that a Home Address option adds, and a type 2 routing header.
pub const EXTENSION_OVERHEAD: u32 = 24;

/// Whether a packet is signalling of Mobile IPv6, in a tunnel or not: for queues that put it ahead of data.
#[must_use]
pub fn is_signalling(packet: &Packet) -> bool {
    match &packet.payload {
        Payload::Mobility(_) => true,
        Payload::Ipv6(inner) => is_signalling(inner),
        _ => false,
    }
}

/// Whether `new` is greater than `last` modulo 2^16 (section 9.5.1): `last` and the 32768 values before it are not.
fn is_newer(new: u16, last: u16) -> bool {
    (1..0x8000).contains(&new.wrapping_sub(last))
}

/// A lifetime in units of 4 seconds, rounded down.
fn lifetime_units(lifetime: Duration) -> u16 {
    u16::try_from(lifetime.as_nanos() / LIFETIME_UNIT.as_nanos()).unwrap_or(u16::MAX)
}

fn packet(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    extensions: Vec<ExtensionHeader>,
    payload: Payload,
) -> Packet {
    Packet {
        ip: Ipv6Header {
            source,
            destination,
            traffic_class: 0,
            hop_limit: HOP_LIMIT,
            flow_label: 0,
        },
        extensions,
        payload,
    }
}

fn mobility_packet(source: Ipv6Addr, destination: Ipv6Addr, header: MobilityHeader) -> Packet {
    packet(
        source,
        destination,
        Vec::new(),
        Payload::Mobility(Box::new(header)),
    )
}

/// Where a routing header belongs: behind hop-by-hop options (RFC 8200 section 4.1); and a Home Address option behind a
/// routing header too (RFC 6275 section 6.3).
fn place_of(extensions: &[ExtensionHeader], behind_routing: bool) -> usize {
    extensions
        .iter()
        .take_while(|e| {
            matches!(e, ExtensionHeader::HopByHop(_))
                || behind_routing && matches!(e, ExtensionHeader::Routing { .. })
        })
        .count()
}

/// Counts a signalling packet that is sent.
fn count_sent(counters: &mut Counters, packet: &Packet) {
    counters.signalling_packets_sent += 1;
    counters.signalling_bytes_sent += packet.buffer_len() as u64;
    let mut innermost = packet;
    while let Payload::Ipv6(inner) = &innermost.payload {
        innermost = inner;
    }
    let Payload::Mobility(header) = &innermost.payload else {
        return;
    };
    match header.message {
        MobilityMessage::BindingUpdate(_) => counters.binding_updates_sent += 1,
        MobilityMessage::BindingAcknowledgement(_) => counters.binding_acknowledgements_sent += 1,
        MobilityMessage::HomeTestInit { .. } | MobilityMessage::CareOfTestInit { .. } => {
            counters.test_inits_sent += 1;
        }
        MobilityMessage::HomeTest(_) | MobilityMessage::CareOfTest(_) => counters.tests_sent += 1,
        MobilityMessage::BindingRefreshRequest => counters.refresh_requests_sent += 1,
        MobilityMessage::BindingError { .. } => counters.binding_errors_sent += 1,
        MobilityMessage::Unknown { .. } => {}
    }
}

const HOP_LIMIT: u8 = 64;

#[cfg(test)]
mod tests;
