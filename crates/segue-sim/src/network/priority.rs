//! What goes first where signalling has priority (Phoomikiattisak and Bhatti 2019, sections 5.3 and 7.1): messages that
//! a handoff waits for, in tunnels too.

use super::Network;
use crate::recorder::segments::innermost;
use crate::store::PacketRef;
use segue_proto::mip6;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::{Packet, Payload};

impl Network {
    /// Whether the packet goes before data.
    pub fn is_urgent(&self, packet: PacketRef) -> bool {
        self.signalling_priority && goes_first(&self.store.get(packet).packet)
    }
}

/// Whether the packet is signalling of mobility: router discovery, messages of Mobile IPv6 and of ILNPv6.
pub(crate) fn goes_first(packet: &Packet) -> bool {
    let discovery = |packet: &Packet| {
        matches!(
            packet.payload,
            Payload::Icmpv6(
                Icmpv6::RouterSolicitation(_)
                    | Icmpv6::RouterAdvertisement(_)
                    | Icmpv6::NeighborSolicitation(_)
                    | Icmpv6::NeighborAdvertisement(_)
                    | Icmpv6::LocatorUpdate(_)
            )
        )
    };
    mip6::is_signalling(packet) || discovery(innermost(packet))
}
