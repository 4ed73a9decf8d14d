//! A kernel in the place of a host's TCP and UDP.
//!
//! ```text
//!   kernel        TCP, UDP and ICMPv6 of its own       send_from_kernel() | poll_kernel()
//!   -----------------------------------------------------------------------------------
//!   this host     SCTP, shim, neighbour discovery, DHCPv6, addresses
//! ```
//!
//! Under a shim the kernel has its identity and nothing else; without one it has the addresses of the interfaces, which the
//! driver gives it as they become usable ([`HostEvent::AddressReady`](crate::host::HostEvent::AddressReady)). Packets of the
//! kernel are carried in bytes ([`Payload::Raw`]).

use super::driven::Driven;
use crate::contract::InterfaceId;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::{Packet, Payload};
use std::collections::VecDeque;

/// What waits for the kernel, and the associations of who drives it.
#[derive(Debug, Default)]
pub(in crate::host) struct Kernel {
    up: VecDeque<(InterfaceId, Packet)>,
    driven: Option<Driven>,
}

impl Kernel {
    /// Whether the kernel takes such a packet: everything but SCTP and what addresses are acquired by, which are in values,
    /// not in bytes.
    pub fn takes(packet: &Packet) -> bool {
        match &packet.payload {
            Payload::Raw(_) | Payload::Unknown { .. } | Payload::Tcp(_) => true,
            Payload::Icmpv6(message) => !is_neighbor_discovery(message),
            _ => false,
        }
    }

    pub fn give(&mut self, interface: InterfaceId, packet: Packet) {
        self.up.push_back((interface, packet));
    }

    pub fn drive(&mut self, driven: Driven) {
        self.driven = Some(driven);
    }

    pub fn driven(&self) -> Option<&Driven> {
        self.driven.as_ref()
    }

    pub fn with_driven<R>(&mut self, act: impl FnOnce(&mut Driven) -> R) -> Option<R> {
        self.driven.as_mut().map(act)
    }

    pub fn poll(&mut self) -> Option<(InterfaceId, Packet)> {
        self.up.pop_front()
    }
}

fn is_neighbor_discovery(message: &Icmpv6) -> bool {
    matches!(
        message,
        Icmpv6::RouterSolicitation(_)
            | Icmpv6::RouterAdvertisement(_)
            | Icmpv6::NeighborSolicitation(_)
            | Icmpv6::NeighborAdvertisement(_)
    )
}
