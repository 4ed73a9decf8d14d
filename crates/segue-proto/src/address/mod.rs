//! Address acquisition: how a host comes by an address on a new link.
//!
//! [`Acquisition`] is the machine of one interface: neighbour discovery and, by [`Method`], stateless
//! autoconfiguration, a DHCPv6 client, or a fixed latency. [`Dhcpv6Server`] is the counterpart that an access router
//! runs. All DHCPv6 messages are real UDP packets.
//!
//! Of DHCPv6 the exchanges that a handover meets are here: SOLICIT, ADVERTISE, REQUEST and REPLY, the two-message form
//! with rapid commit, DECLINE of an address that turns out to be taken, and RENEW and REBIND of a lease that is to last.
//! Left out: CONFIRM (an interface that loses its link forgets its lease or, with `retain`, takes it up again when a
//! router advertises the prefix of its address), relays, prefix delegation, and authentication.

mod acquisition;
mod client;
mod config;
mod server;

pub use acquisition::{Acquisition, AddressEvent};
pub use config::{ClientConfig, Method, ServerConfig};
pub use server::Dhcpv6Server;

use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::dhcpv6::Dhcpv6Message;
use segue_wire::icmpv6::nd::LinkLayerAddress;
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, Ipv6Header, Packet, Payload};

/// All_DHCP_Relay_Agents_and_Servers (RFC 8415 section 7.1).
pub const ALL_DHCP_RELAY_AGENTS_AND_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);

/// Option code of Preference (RFC 8415 section 21.8).
const PREFERENCE: u16 = 7;

/// A DUID of type 3, based on the link-layer address (RFC 8415 section 11.4).
fn duid(link_layer: LinkLayerAddress) -> Bytes {
    let [a, b, c, d, e, f] = link_layer.0;
    Bytes::copy_from_slice(&[0, 3, 0, 1, a, b, c, d, e, f])
}

fn udp_packet(
    (source, source_port): (Ipv6Addr, u16),
    (destination, destination_port): (Ipv6Addr, u16),
    message: &Dhcpv6Message,
) -> Packet {
    Packet {
        ip: Ipv6Header {
            source,
            destination,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload: Payload::Udp(UdpDatagram {
            source_port,
            destination_port,
            data: Data::Bytes(message.to_bytes()),
        }),
    }
}

/// The DHCPv6 message in a packet to `port`.
fn message_to(packet: &Packet, port: u16) -> Option<Dhcpv6Message> {
    match &packet.payload {
        Payload::Udp(UdpDatagram {
            destination_port,
            data: Data::Bytes(bytes),
            ..
        }) if *destination_port == port => Dhcpv6Message::parse(bytes).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
