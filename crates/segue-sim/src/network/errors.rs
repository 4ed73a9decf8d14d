//! ICMPv6 errors of routers (RFC 4443): what does not fit the next link, and what there is no way for.

use super::{Network, Node};
use crate::recorder::DropCause;
use crate::store::PacketRef;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::{Ipv6Header, Packet, Payload};

impl Network {
    /// A router has no way for a packet: code 0, no route to destination.
    #[cold]
    pub fn drop_without_route(&mut self, packet: PacketRef, node: u32) {
        self.report(packet, node, |packet| Icmpv6::DestinationUnreachable {
            code: 0,
            invoking: Icmpv6::quote(packet),
        });
        let destination = self.store.get(packet).packet.ip.destination;
        self.notes.no_route(self.now, node, destination);
        self.drop_packet(packet, node, DropCause::NoRoute);
    }

    /// A packet is longer than the MTU of the link it would go over.
    #[cold]
    pub fn drop_too_big(&mut self, packet: PacketRef, node: u32, mtu: u32) {
        self.report(packet, node, |packet| Icmpv6::PacketTooBig {
            mtu,
            invoking: Icmpv6::quote(packet),
        });
        self.drop_packet(packet, node, DropCause::TooBig);
    }

    /// Tells a packet's source, if a router is to say anything about it and may now.
    fn report(&mut self, packet: PacketRef, node: u32, error: impl FnOnce(&Packet) -> Icmpv6) {
        let now = self.now;
        let invoking = &self.store.get(packet).packet;
        let Node::Router(router) = &mut self.nodes[node as usize] else {
            return;
        };
        if !Icmpv6::may_report(invoking) || !router.errors.take(now) {
            return;
        }
        let message = error(invoking);
        let reply = Packet {
            ip: Ipv6Header {
                source: router.addresses[0],
                destination: invoking.ip.source,
                traffic_class: 0,
                hop_limit: 64,
                flow_label: 0,
            },
            extensions: Vec::new(),
            payload: Payload::Icmpv6(message),
        };
        self.send_from_router(node, reply);
    }
}

/// Address of router `number` among the nodes, for what it says itself: of a prefix that no link has.
pub(crate) fn router_address(number: u32) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xfffe, number as u16, 0, 0, 0, 1)
}
