//! Home agents on routers: the machine of `segue_proto::mip6` beside the forwarding.

use super::{Network, Node};
use crate::recorder::DropCause;
use crate::recorder::segments::innermost;
use crate::store::PacketRef;
use core::net::Ipv6Addr;
use segue_proto::mip6::HomeAgent;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::{Packet, Payload};

impl Network {
    fn home_agent(&mut self, node: u32) -> Option<&mut HomeAgent> {
        match &mut self.nodes[node as usize] {
            Node::Router(router) => router.home_agent.as_deref_mut(),
            Node::Host(_) => None,
        }
    }

    /// Whether a router hands packets for `destination` to its home agent instead of forwarding them.
    pub fn is_for_home_agent(&mut self, node: u32, destination: Ipv6Addr) -> bool {
        let now = self.now;
        self.home_agent(node)
            .is_some_and(|agent| agent.address() == destination || agent.intercepts(now, destination))
    }

    /// A packet for a router's home agent. What it puts into a tunnel or takes out of one goes on as the same packet.
    pub fn home_agent_takes(&mut self, packet: PacketRef, node: u32) {
        let now = self.now;
        let original = self.store.get(packet).packet.clone();
        let source = innermost(&original).ip.source;
        let Some(agent) = self.home_agent(node) else {
            return;
        };
        let through = goes_through(&original, agent.address());
        let back = agent.handle_packet(now, original);
        match agent.poll_transmit() {
            Some(first) if through && innermost(&first).ip.source == source => {
                self.store.replace(packet, first);
                self.forward(packet, node);
            }
            other => {
                if back.is_some() {
                    self.addressed_to_router(packet, node);
                } else {
                    let too_big = other.as_ref().is_some_and(is_too_big);
                    self.swallow(packet, node, through, too_big);
                }
                if let Some(said) = other {
                    self.send_from_router(node, said);
                }
            }
        }
        self.service_home_agent(node);
    }

    /// A router's timer is due: its home agent's perhaps.
    pub fn home_agent_timeout(&mut self, node: u32) {
        let now = self.now;
        if let Some(agent) = self.home_agent(node) {
            agent.handle_timeout(now);
            self.service_home_agent(node);
        }
    }

    /// Drains a home agent; what it says is forwarded like any packet, and its timer is the router's.
    fn service_home_agent(&mut self, node: u32) {
        let now = self.now;
        loop {
            let Some(agent) = self.home_agent(node) else {
                return;
            };
            // what takes no time is done at once
            if agent.poll_timeout().is_some_and(|at| at <= now) {
                agent.handle_timeout(now);
            }
            if let Some(event) = agent.poll_event() {
                self.recorder.home_agent_event(now, node, &event);
            } else if let Some(packet) = agent.poll_transmit() {
                self.send_from_router(node, packet);
            } else {
                break;
            }
        }
        self.arm_router(node);
    }

    /// A home agent has made use of a packet for itself, or has dropped one that was to go `through` it.
    fn swallow(&mut self, packet: PacketRef, node: u32, through: bool, too_big: bool) {
        if !through {
            self.store.remove(packet);
        } else if too_big {
            self.drop_packet(packet, node, DropCause::TooBig);
        } else {
            self.drop_packet(packet, node, DropCause::HomeAgent);
        }
    }
}

/// Whether the home agent says that a packet does not fit its tunnel.
fn is_too_big(packet: &Packet) -> bool {
    matches!(packet.payload, Payload::Icmpv6(Icmpv6::PacketTooBig { .. }))
}

/// Whether a packet is to go on by the home agent at `agent`: it is for a mobile node, or came through a tunnel from one.
/// What else there is, signalling for the home agent itself, ends there.
fn goes_through(packet: &Packet, agent: Ipv6Addr) -> bool {
    packet.ip.destination != agent || matches!(packet.payload, Payload::Ipv6(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_wire::Ipv6Header;
    use segue_wire::icmpv6::Echo;
    use segue_wire::mobility::{MobilityHeader, MobilityMessage};

    const AGENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 9);

    fn packet(destination: Ipv6Addr, payload: Payload) -> Packet {
        Packet {
            ip: Ipv6Header {
                source: Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 7),
                destination,
                traffic_class: 0,
                hop_limit: 1,
                flow_label: 0,
            },
            extensions: Vec::new(),
            payload,
        }
    }

    /// A ping or a test for a mobile node that its home agent drops is lost, and not used up by the home agent.
    #[test]
    fn signalling_for_a_mobile_node_goes_through() {
        let ping = || {
            Payload::Icmpv6(Icmpv6::EchoRequest(Echo {
                identifier: 1,
                sequence: 1,
                data: b"ping".as_slice().into(),
            }))
        };
        let message = MobilityMessage::HomeTestInit { cookie: 1 };
        let test = || Payload::Mobility(Box::new(MobilityHeader::new(message.clone(), Vec::new())));
        for payload in [ping(), test()] {
            assert!(goes_through(&packet(HOME, payload), AGENT));
        }
        for payload in [ping(), test()] {
            assert!(!goes_through(&packet(AGENT, payload), AGENT));
        }
        let tunnelled = Payload::Ipv6(Box::new(packet(HOME, test())));
        assert!(goes_through(&packet(AGENT, tunnelled), AGENT));
    }
}
