//! Packets on their way up (RFC 6275 sections 11.3.3 and 11.3.6, and 9.3.1 for those of other mobile nodes).
//! What takes a packet says whether it goes up.

use super::MobileNode;
use crate::contract::InterfaceId;
use crate::mip6::config::is_routable_unicast;
use crate::mip6::direct_error::DirectError;
use crate::mip6::is_signalling;
use crate::mip6::tunnel::TunnelError;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::mobility::MobilityMessage;
use segue_wire::{Packet, Payload};

impl MobileNode {
    /// Takes a packet: whether it goes up.
    pub(super) fn take(&mut self, now: Instant, interface: InterfaceId, packet: &mut Packet) -> bool {
        if let Payload::Icmpv6(Icmpv6::RouterAdvertisement(advertisement)) = &packet.payload {
            if packet.nd_is_valid() {
                let router = packet.ip.source;
                self.movement
                    .handle_advertisement(now, interface, router, advertisement);
                self.follow(now);
            }
            return true;
        }
        let destination = packet.ip.destination;
        if destination == self.config.home_address {
            // section 11.6.2: away from home, through the tunnel only
            if !self.is_at_home()
                && let Payload::Mobility(header) = &packet.payload
                && matches!(header.message, MobilityMessage::HomeTest(_))
            {
                self.counters.outside_tunnel += 1;
                return false;
            }
            return self.take_at_home_address(now, packet);
        }
        if !self.movement.is_assigned(destination) {
            return true;
        }
        if let Some(home_address) = packet.extensions.iter().find_map(|e| e.type_2_home_address()) {
            return self.take_routed(now, packet, home_address);
        }
        match &mut packet.payload {
            Payload::Ipv6(inner) if inner.ip.destination == self.config.home_address => {
                if packet.ip.source != self.config.home_agent {
                    self.counters.tunnel_source_mismatch += 1;
                    return false;
                }
                self.counters.tunnelled_in += u64::from(!is_signalling(inner));
                *packet = core::mem::replace(&mut **inner, Packet::EMPTY);
                self.take_at_home_address(now, packet)
            }
            Payload::Mobility(header) => {
                // the rest is for the home address
                match header.message {
                    MobilityMessage::CareOfTest(_) | MobilityMessage::BindingError { .. } => {
                        self.take_mobility(now, packet);
                    }
                    _ => self.counters.unexpected += 1,
                }
                false
            }
            Payload::Icmpv6(error) if error.is_error() => {
                if let Some(error) = TunnelError::parse(error) {
                    return self.take_tunnel_error(packet, error);
                }
                if matches!(error, Icmpv6::ParameterProblem { .. }) {
                    self.handle_parameter_problem(now, packet.ip.source, error);
                } else if self.config.correspondent.translate_errors
                    && let Some(direct) = DirectError::parse(error)
                {
                    return self.take_direct_error(now, packet, direct);
                }
                true
            }
            _ => true,
        }
    }

    /// A packet with a type 2 routing header to `home_address`: it came the direct way.
    fn take_routed(&mut self, now: Instant, packet: &mut Packet, home_address: Ipv6Addr) -> bool {
        if home_address != self.config.home_address {
            self.counters.not_our_home_address += 1;
            return false;
        }
        // section 6.1: only a Binding Acknowledgement may come this way
        if let Payload::Mobility(header) = &packet.payload
            && !matches!(header.message, MobilityMessage::BindingAcknowledgement(_))
        {
            self.counters.malformed += 1;
            return false;
        }
        packet.ip.destination = home_address;
        packet.extensions.retain(|e| e.type_2_home_address().is_none());
        if !is_signalling(packet) {
            self.counters.optimized_in += 1;
            self.note_direct(now, packet.home_address().unwrap_or(packet.ip.source));
        }
        self.take_at_home_address(now, packet)
    }

    /// An error about a packet that this node has sent through the tunnel to its home agent: for the transport that it is
    /// of (RFC 2473 section 8). A path MTU stays what it is, since transports subtract
    /// [`overhead`](crate::shim::Shim::overhead) themselves.
    fn take_tunnel_error(&mut self, packet: &mut Packet, error: TunnelError) -> bool {
        let ours = error.entry == packet.ip.destination
            && error.exit == self.config.home_agent
            && error.source == self.config.home_address;
        let Some(mut message) = error.relayed.filter(|_| ours) else {
            self.counters.tunnel_errors_dropped += 1;
            return false;
        };
        if let (Icmpv6::PacketTooBig { mtu, .. }, Payload::Icmpv6(Icmpv6::PacketTooBig { mtu: path, .. })) =
            (&mut message, &packet.payload)
        {
            *mtu = *path;
        }
        self.counters.tunnel_errors_relayed += 1;
        packet.ip.source = packet.ip.destination;
        packet.ip.destination = self.config.home_address;
        packet.payload = Payload::Icmpv6(message);
        true
    }

    /// An error about a packet that this node has sent the direct way: for the transport that it is of. It must be of this care-of
    /// address, to somebody that it talks to; what else it quotes, the transport verifies as without mobility (RFC 8201 section
    /// 4, RFC 5927).
    fn take_direct_error(&mut self, now: Instant, packet: &mut Packet, error: DirectError) -> bool {
        let known = match error.routed_to {
            None => self.peers.get(error.destination).is_some(),
            // a peer that is mobile too
            Some(peer) => {
                let bound = self.correspondent.binding_cache().get(peer);
                bound.is_some_and(|b| b.expires > now && b.care_of_address == error.destination)
            }
        };
        let ours = error.source == packet.ip.destination
            && error.home_address == Some(self.config.home_address)
            && known;
        if !ours {
            self.counters.unexpected += 1;
            return false;
        }
        let Payload::Icmpv6(message) = core::mem::replace(&mut packet.payload, Payload::NoNextHeader) else {
            return false;
        };
        packet.ip.destination = self.config.home_address;
        packet.payload = Payload::Icmpv6(error.for_transport(message));
        true
    }

    /// A packet to the home address, wherever that brought it.
    fn take_at_home_address(&mut self, now: Instant, packet: &mut Packet) -> bool {
        match &packet.payload {
            Payload::Mobility(_) => {
                self.take_mobility(now, packet);
                return false;
            }
            Payload::Icmpv6(error @ Icmpv6::ParameterProblem { .. }) => {
                self.handle_parameter_problem(now, packet.ip.source, error);
            }
            _ => {}
        }
        self.correspondent.replace_source(now, packet, &mut self.counters)
    }

    /// A mobility header: for the mobile node, or for the correspondent that it is too.
    fn take_mobility(&mut self, now: Instant, packet: &Packet) {
        let Payload::Mobility(header) = &packet.payload else {
            return;
        };
        // section 6.1: with a Home Address option only a Binding Update
        let update = matches!(header.message, MobilityMessage::BindingUpdate(_));
        if packet.home_address().is_some() && !update || !is_routable_unicast(packet.ip.source) {
            self.counters.malformed += 1;
            return;
        }
        let from = packet.ip.source;
        match header.message {
            MobilityMessage::BindingAcknowledgement(ack) if from == self.config.home_agent => {
                self.handle_home_acknowledgement(now, header, ack);
            }
            MobilityMessage::BindingAcknowledgement(ack) => {
                self.handle_correspondent_acknowledgement(now, from, header, ack);
            }
            MobilityMessage::HomeTest(test) => self.handle_home_test(now, packet, test),
            MobilityMessage::CareOfTest(test) => self.handle_care_of_test(now, packet, test),
            MobilityMessage::BindingRefreshRequest => self.handle_refresh_request(now, from),
            MobilityMessage::BindingError { status, home_address } => {
                self.handle_binding_error(now, from, status, home_address);
            }
            _ => self
                .correspondent
                .handle_mobility(now, packet, &mut self.counters),
        }
    }
}
