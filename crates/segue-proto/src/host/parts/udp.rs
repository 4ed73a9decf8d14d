//! UDP on a host: its endpoint, who listens, and what a socket is to an application.

use super::listener::{self, Listener};
use crate::app::{self, Connection, SendRefused, Transport};
use crate::contract::{InterfaceId, LocalAddress, Transmit};
use crate::random::SecretRng;
use crate::time::Instant;
use crate::udp::{Endpoint, Event, MAX_DATA, Socket, SocketId};
use core::net::Ipv6Addr;
use segue_wire::Data;
use segue_wire::udp::UdpDatagram;

/// The part of a host that is UDP's.
pub(in crate::host) struct Udp {
    endpoint: Endpoint,
    listener: Option<Listener>,
}

impl Udp {
    /// UDP, if an application wants it: its secrets come from a generator of its own, keyed by its host's.
    pub fn for_applications(
        port: u16,
        applications: &[app::Config],
        secrets: &mut dyn SecretRng,
    ) -> Option<Box<Self>> {
        let (random, listener) = listener::begin(Transport::Udp, applications, secrets)?;
        let mut endpoint = Endpoint::new(random);
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

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.endpoint.poll_transmit()
    }

    pub fn has_events(&self) -> bool {
        self.endpoint.has_events()
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The listening application: its number and what it does.
    pub fn listener(&self) -> Option<(usize, app::Kind)> {
        self.listener.clone()
    }

    /// Takes a datagram. Whether there was a socket that it is for.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        ends: (Ipv6Addr, Ipv6Addr),
        datagram: &UdpDatagram,
    ) -> bool {
        self.endpoint.handle_datagram(now, interface, ends, datagram)
    }

    pub fn connect(&mut self, peer: Ipv6Addr, port: u16) -> Option<SocketId> {
        self.endpoint.connect(peer, port)
    }

    /// A socket that only receives reports to its peer.
    pub fn report(&mut self, now: Instant, id: SocketId) {
        self.endpoint.report(now, id);
    }

    /// Has `act` command a socket.
    pub fn command(&mut self, id: SocketId, act: impl FnOnce(&mut Socket)) {
        self.endpoint.command(id, act);
    }

    pub fn poll_event(&mut self) -> Option<(SocketId, Event)> {
        self.endpoint.poll_event()
    }
}

impl Connection for Socket {
    const IN_ORDER: bool = false;

    fn send(&mut self, _now: Instant, data: Data) -> Result<(), SendRefused> {
        Self::send(self, data).map_err(|_| SendRefused::Closed)
    }

    fn max_message(&self) -> u32 {
        MAX_DATA
    }

    fn recv(&mut self, take: impl FnOnce(&[Data], bool)) -> bool {
        let data = Self::recv(self);
        if let Some(data) = &data {
            take(core::slice::from_ref(data), true);
        }
        data.is_some()
    }

    /// Nobody is told.
    fn close(&mut self, _now: Instant) {}
}
