//! Routers.

use super::routes::{Routes, Way};
use super::{LazyTimer, Network, Node};
use crate::load::Load;
use crate::recorder::DropCause;
use crate::scheduler::Event;
use crate::store::PacketRef;
use core::net::Ipv6Addr;
use segue_proto::address::Dhcpv6Server;
use segue_proto::ilnp::Rewriter;
use segue_proto::mip6::HomeAgent;
use segue_proto::nd::{AdvertisedPrefix, RouterNd};
use segue_proto::tcp::WindowClamp;
use segue_proto::{ErrorBudget, InterfaceId};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::{Ipv6Header, Packet, Payload};

/// A router.
pub(crate) struct RouterNode {
    pub routes: Routes,
    /// The cell it serves, with what it runs there.
    pub access: Option<Access>,
    pub timer: LazyTimer,
    /// What it says itself comes from the first of them; it takes packets to any.
    pub addresses: Vec<Ipv6Addr>,
    /// Errors that it may still send.
    pub errors: ErrorBudget,
    /// A proxy that lowers windows.
    pub clamp: Option<Box<WindowClamp>>,
    /// It is a site border: its cell's locator is rewritten.
    pub rewriter: Option<Box<Rewriter>>,
    /// The home agent of the hosts whose home is its cell.
    pub home_agent: Option<Box<HomeAgent>>,
    /// What comes to its home agent.
    pub load: Option<Box<Load>>,
}

impl RouterNode {
    /// The link towards `destination` where nothing but that is to be asked: the router is no home agent and no border of
    /// a site, no proxy is on it, and the packet not for itself or its link.
    #[inline]
    pub fn plain_link(&self, destination: Ipv6Addr) -> Option<u32> {
        if self.rewriter.is_some() || self.home_agent.is_some() || self.clamp.is_some() {
            return None;
        }
        // no route has the prefix of what is multicast or link-local
        match self.routes.way_on(destination)? {
            Way::Link(link) => Some(link),
            Way::Cell(_) => None,
        }
    }
}

/// What an access router runs on its cell.
pub(crate) struct Access {
    pub cell: u32,
    pub discovery: RouterNd,
    pub dhcp: Option<Dhcpv6Server>,
}

impl Network {
    fn router(&mut self, node: u32) -> &mut RouterNode {
        match &mut self.nodes[node as usize] {
            Node::Router(router) => router,
            Node::Host(_) => unreachable!("node {node} is a host"),
        }
    }

    /// A packet has reached a router.
    #[inline(never)]
    pub fn forward(&mut self, packet: PacketRef, node: u32) {
        let destination = self.store.get(packet).packet.ip.destination;
        if destination.is_multicast() || destination.is_unicast_link_local() {
            let stored = self.store.take(packet);
            return self.router_receives(node, &stored.packet);
        }
        if let Node::Router(router) = &mut self.nodes[node as usize]
            && let Some(clamp) = &mut router.clamp
        {
            clamp.handle_packet(&mut self.store.get_mut(packet).packet);
        }
        if self.is_for_home_agent(node, destination) {
            if self.admits(packet, node, InterfaceId::default()) {
                self.home_agent_takes(packet, node);
            }
            return;
        }
        if self.router(node).addresses.contains(&destination) {
            return self.addressed_to_router(packet, node);
        }
        let inner = self.rewrite(packet, node, Rewriter::inbound);
        let Some(way) = self.router(node).routes.way(inner) else {
            return self.drop_without_route(packet, node);
        };
        let ip = &mut self.store.get_mut(packet).packet.ip;
        if ip.hop_limit <= 1 {
            return self.drop_packet(packet, node, DropCause::HopLimit);
        }
        ip.hop_limit -= 1;
        match way {
            Way::Link(link) => {
                self.rewrite(packet, node, Rewriter::outbound);
                self.send_on_link(link, packet);
            }
            Way::Cell(cell) => self.send_into_cell(cell, packet),
        }
    }

    /// A packet crosses the border of a site, if this router is one. Gives its destination then.
    fn rewrite(
        &mut self,
        packet: PacketRef,
        node: u32,
        cross: impl FnOnce(&mut Rewriter, Packet) -> Packet,
    ) -> Ipv6Addr {
        if let Node::Router(router) = &mut self.nodes[node as usize]
            && let Some(rewriter) = &mut router.rewriter
        {
            let crossed = cross(rewriter, self.store.get(packet).packet.clone());
            self.store.replace(packet, crossed);
        }
        self.store.get(packet).packet.ip.destination
    }

    /// A packet to one of the router's own addresses. It answers echo requests (RFC 4443 section 4.2).
    pub fn addressed_to_router(&mut self, packet: PacketRef, node: u32) {
        let stored = self.store.take(packet);
        if let Payload::Icmpv6(Icmpv6::EchoRequest(echo)) = stored.packet.payload {
            let reply = Packet {
                ip: Ipv6Header {
                    source: stored.packet.ip.destination,
                    destination: stored.packet.ip.source,
                    hop_limit: 64,
                    ..stored.packet.ip
                },
                extensions: Vec::new(),
                payload: Payload::Icmpv6(Icmpv6::EchoReply(echo)),
            };
            self.send_from_router(node, reply);
        }
    }

    /// A router sends a packet of its own to wherever its destination is.
    pub fn send_from_router(&mut self, node: u32, packet: Packet) {
        let packet = self.store_from_router(node, packet);
        self.forward(packet, node);
    }

    /// Stores a packet that a router sends, which is recorded.
    fn store_from_router(&mut self, node: u32, packet: Packet) -> PacketRef {
        let packet = self.store.insert(packet);
        let departure = InterfaceId::default().into();
        self.recorder
            .sent(self.now, node, departure, self.store.get(packet), None);
        packet
    }

    /// A packet for the router itself.
    fn router_receives(&mut self, node: u32, packet: &Packet) {
        let now = self.now;
        let Some(access) = &mut self.router(node).access else {
            return;
        };
        match &packet.payload {
            Payload::Icmpv6(_) => access.discovery.handle_packet(now, packet),
            Payload::Udp(_) => {
                if let Some(dhcp) = &mut access.dhcp {
                    dhcp.handle_packet(now, packet);
                }
            }
            _ => return,
        }
        self.service_router(node);
    }

    /// A router's timer is due, or the router starts.
    pub fn router_timeout(&mut self, node: u32) {
        let now = self.now;
        self.home_agent_timeout(node);
        let Some(access) = &mut self.router(node).access else {
            return;
        };
        access.discovery.handle_timeout(now);
        if let Some(dhcp) = &mut access.dhcp {
            dhcp.handle_timeout(now);
        }
        self.service_router(node);
    }

    /// An access router advertises these prefixes from now on.
    pub fn advertise(&mut self, node: u32, prefixes: Vec<AdvertisedPrefix>) {
        let now = self.now;
        if let Some(access) = &mut self.router(node).access {
            access.discovery.advertise(now, prefixes);
            self.service_router(node);
        }
    }

    fn service_router(&mut self, node: u32) {
        let now = self.now;
        loop {
            let Some(access) = &mut self.router(node).access else {
                return;
            };
            let cell = access.cell;
            let transmit = access
                .discovery
                .poll_transmit(now)
                .or_else(|| access.dhcp.as_mut().and_then(|dhcp| dhcp.poll_transmit(now)));
            let Some(transmit) = transmit else { break };
            let packet = self.store_from_router(node, transmit.packet);
            self.send_into_cell(cell, packet);
        }
        self.arm_router(node);
    }

    /// The router's one timer, for everything that runs on it.
    pub fn arm_router(&mut self, node: u32) {
        let now = self.now;
        let Node::Router(router) = &mut self.nodes[node as usize] else {
            return;
        };
        let access = router.access.as_ref();
        let times = [
            access.and_then(|a| a.discovery.poll_timeout()),
            access.and_then(|a| a.dhcp.as_ref().and_then(Dhcpv6Server::poll_timeout)),
            router.home_agent.as_ref().and_then(|agent| agent.poll_timeout()),
        ];
        let wanted = times.into_iter().flatten().min();
        router
            .timer
            .arm(wanted, now, &mut self.scheduler, |generation| Event::NodeTimer {
                node,
                generation,
            });
    }
}
