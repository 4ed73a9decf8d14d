//! The shim of a host that stays where it is and knows Mobile IPv6.

use super::binding_cache::BindingCache;
use super::config::CorrespondentConfig;
use super::correspondent::Correspondent;
use super::{Counters, EXTENSION_OVERHEAD, count_sent};
use crate::address::AddressEvent;
use crate::contract::{InterfaceId, LinkEvent, LocalAddress, Transmit};
use crate::random::SecretRng;
use crate::shim::{Count, Shim, ShimEvent};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::{Packet, Payload};

/// The shim of a host that stays where it is and knows Mobile IPv6.
#[derive(Debug)]
pub struct CorrespondentNode {
    core: Correspondent,
    /// Where the addresses are.
    locals: Vec<LocalAddress>,
    counters: Counters,
}

impl CorrespondentNode {
    /// A correspondent at `config.address`. Node key and nonces come from `secrets`.
    #[must_use]
    pub fn new(config: CorrespondentConfig, secrets: Box<dyn SecretRng>) -> Self {
        let address = config.address;
        Self {
            core: Correspondent::new(address, config, secrets),
            locals: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// The bindings that mobile nodes have left here.
    #[must_use]
    pub fn binding_cache(&self) -> &BindingCache {
        self.core.binding_cache()
    }

    /// Everything counted.
    #[must_use]
    pub fn counts(&self) -> Counters {
        self.counters
    }

    fn interface_of(&self, address: Ipv6Addr) -> Option<InterfaceId> {
        self.locals
            .iter()
            .find(|l| l.address == address)
            .map(|l| l.interface)
    }

    fn over(&mut self, packet: &Packet) -> Option<InterfaceId> {
        let interface = self.interface_of(packet.ip.source);
        if interface.is_none() {
            self.counters.no_interface += 1;
        }
        interface
    }
}

impl Shim for CorrespondentNode {
    fn identity(&self) -> Ipv6Addr {
        self.core.own()
    }

    fn inbound_in_place(&mut self, now: Instant, _interface: InterfaceId, packet: &mut Packet) -> bool {
        if packet.ip.destination != self.core.own() {
            return true;
        }
        if let Payload::Mobility(_) = &packet.payload {
            self.core.handle_mobility(now, packet, &mut self.counters);
            return false;
        }
        if let Payload::Icmpv6(message) = &packet.payload
            && let Some(error) = self.core.error_about_direct_way(now, message)
        {
            packet.payload = Payload::Icmpv6(error.for_transport(message.clone()));
            return true;
        }
        packet.home_address().is_none() || self.core.replace_source(now, packet, &mut self.counters)
    }

    fn outbound_in_place(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        if packet.ip.source == self.core.own() {
            self.core.route(now, packet, &mut self.counters);
        }
        self.over(packet)
    }

    fn handle_address(&mut self, _now: Instant, event: &AddressEvent) {
        match *event {
            AddressEvent::Ready(local) => {
                self.locals.retain(|l| l.address != local.address);
                self.locals.push(local);
            }
            AddressEvent::Lost(local) => self.locals.retain(|l| *l != local),
            _ => {}
        }
    }

    fn handle_link(&mut self, _now: Instant, _event: &LinkEvent) {}

    fn handle_found(&mut self, _now: Instant, _peer: Ipv6Addr, _addresses: &[Ipv6Addr]) {}

    fn handle_timeout(&mut self, now: Instant) {
        self.core.handle_timeout(now, &mut self.counters);
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Transmit> {
        while let Some(packet) = self.core.poll_transmit() {
            if let Some(interface) = self.over(&packet) {
                count_sent(&mut self.counters, &packet);
                return Some(Transmit { interface, packet });
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.core.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<ShimEvent> {
        self.core.poll_event()
    }

    fn overhead(&self, _peer: Ipv6Addr) -> u32 {
        if self.core.optimizes() {
            EXTENSION_OVERHEAD
        } else {
            0
        }
    }

    /// A tunnel is not reassembled by the home agent, and Home Address option and routing header stand in front of a fragment
    /// header (RFC 6275 section 6.3).
    fn takes_fragments(&self) -> bool {
        true
    }

    fn counters(&self) -> Vec<Count> {
        self.counters.list()
    }
}
