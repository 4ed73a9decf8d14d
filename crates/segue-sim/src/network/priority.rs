//! What goes first where signalling has priority (Phoomikiattisak and Bhatti 2019, sections 5.3 and 7.1): messages that
//! a handoff waits for, in tunnels too.

use super::Network;
use crate::store::PacketRef;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::{Packet, Payload};

impl Network {
    /// Whether the packet goes before data.
    pub fn is_urgent(&self, packet: PacketRef) -> bool {
        self.signalling_priority && is_signalling(&self.store.get(packet).packet)
    }
}

/// Whether the packet is signalling of mobility: router discovery, messages of Mobile IPv6 and of ILNPv6.
pub(crate) fn is_signalling(packet: &Packet) -> bool {
    match &packet.payload {
        Payload::Icmpv6(message) => matches!(
            message,
            Icmpv6::RouterSolicitation(_)
                | Icmpv6::RouterAdvertisement(_)
                | Icmpv6::NeighborSolicitation(_)
                | Icmpv6::NeighborAdvertisement(_)
                | Icmpv6::LocatorUpdate(_)
        ),
        Payload::Mobility(_) => true,
        Payload::Ipv6(inner) => is_signalling(inner),
        _ => false,
    }
}
