//! TCP on a host: its endpoint, and who listens.

use super::listener::{self, Listener};
use crate::app::{self, Transport};
use crate::contract::{Departure, InterfaceId, LocalAddress};
use crate::random::SecretRng;
use crate::tcp::{Config, Connection, ConnectionId, Endpoint, Event};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::Packet;

/// The part of a host that is TCP's.
pub(in crate::host) struct Tcp {
    endpoint: Endpoint,
    listener: Option<Listener>,
}

impl Tcp {
    /// TCP, if an application wants it: its secrets come from a generator of its own, keyed by its host's.
    pub fn for_applications(
        config: Config,
        port: u16,
        applications: &[app::Config],
        secrets: &mut dyn SecretRng,
    ) -> Option<Box<Self>> {
        let (random, listener) = listener::begin(Transport::Tcp, applications, secrets)?;
        let mut endpoint = Endpoint::new(config, random);
        if listener.is_some() {
            endpoint.listen(port);
        }
        Some(Box::new(Self { endpoint, listener }))
    }

    pub fn add_local_address(&mut self, local: LocalAddress) {
        self.endpoint.add_local_address(local);
    }

    pub fn remove_local_address(&mut self, address: Ipv6Addr) {
        self.endpoint.remove_local_address(address);
    }

    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
    }

    #[inline]
    pub fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<Departure> {
        self.endpoint.poll_transmit_into(now, packet)
    }

    /// Packets to `peer` go to `to` from now on.
    pub fn network_changed(&mut self, now: Instant, peer: Ipv6Addr, to: Ipv6Addr) {
        self.endpoint
            .network_changed(now, peer, (to.to_bits() >> 64) as u64);
    }

    #[inline]
    pub fn has_events(&self) -> bool {
        self.endpoint.has_events()
    }

    pub fn handle_icmp(&mut self, message: &segue_wire::icmpv6::Icmpv6) {
        self.endpoint.handle_icmp(message);
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The listening application: its number and what it does.
    pub fn listener(&self) -> Option<(usize, app::Kind)> {
        self.listener.clone()
    }

    /// Takes a segment. `overhead` is what a shim makes packets to its sender longer by, where it may begin a connection.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        packet: &mut Packet,
        overhead: u32,
    ) {
        self.endpoint
            .handle_packet_in_place(now, interface, packet, overhead);
    }

    pub fn connect(
        &mut self,
        now: Instant,
        peer: Ipv6Addr,
        port: u16,
        overhead: u32,
    ) -> Option<ConnectionId> {
        self.endpoint.connect(now, peer, port, overhead)
    }

    /// Has `act` command a connection.
    pub fn command(&mut self, id: ConnectionId, act: impl FnOnce(&mut Connection)) {
        self.endpoint.command(id, act);
    }

    pub fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        self.endpoint.poll_event()
    }
}
