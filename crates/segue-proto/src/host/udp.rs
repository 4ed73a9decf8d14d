//! UDP on a host: its endpoint, and the applications on its sockets.
//!
//! A host has it only if one of its applications asks for it. Without a shim a socket keeps the address that it began with,
//! whatever becomes of that; with one, it begins with the identity.

use super::{Connecting, Host, Running};
use crate::app::{self, Application, Connection, SendRefused, Transport};
use crate::contract::{InterfaceId, LocalAddress, Transmit};
use crate::random::{SecretRng, Stream};
use crate::time::Instant;
use crate::udp::{Endpoint, Event, MAX_DATA, Socket, SocketId};
use core::net::Ipv6Addr;
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, Packet};

/// The part of a host that is UDP's.
pub(super) struct Udp {
    endpoint: Endpoint,
    /// The listening application: its number and what it does.
    listener: Option<(usize, app::Kind)>,
}

impl Udp {
    /// UDP, if an application wants it: its secrets come from a generator of its own, keyed by its host's.
    pub fn for_applications(
        port: u16,
        applications: &[app::Config],
        secrets: &mut dyn SecretRng,
    ) -> Option<Box<Self>> {
        if applications.iter().all(|a| a.transport != Transport::Udp) {
            return None;
        }
        let mut key = [0; 32];
        secrets.fill(&mut key);
        let mut endpoint = Endpoint::new(Box::new(Stream::from_key(key)));
        let listens = |a: &app::Config| a.transport == Transport::Udp && a.role == app::Role::Listen;
        let listener = applications
            .iter()
            .position(listens)
            .map(|number| (number, applications[number].kind.clone()));
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
}

impl Host {
    /// The UDP endpoint, on a host that has one.
    #[must_use]
    pub fn udp(&self) -> Option<&Endpoint> {
        self.udp.as_ref().map(|u| &u.endpoint)
    }

    /// The socket of application `index`, while it has one.
    #[must_use]
    pub fn socket_of(&self, index: usize) -> Option<SocketId> {
        match self.applications.get(index)?.connection {
            Connecting::WithUdp(id) => Some(id),
            _ => None,
        }
    }

    /// Takes a datagram for an application. Whether there was one that it is for.
    pub(super) fn handle_udp(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        packet: &Packet,
        datagram: &UdpDatagram,
    ) -> bool {
        let ends = (packet.ip.source, packet.ip.destination);
        self.has_address(ends.1)
            && self
                .udp
                .as_mut()
                .is_some_and(|udp| udp.endpoint.handle_datagram(now, interface, ends, datagram))
    }

    /// Opens a socket for application `index`.
    pub(super) fn connect_udp(&mut self, now: Instant, index: usize, peer: Ipv6Addr, port: u16) -> bool {
        let Some(running) = self.applications.get_mut(index) else {
            return false;
        };
        let opened = self.udp.as_mut().and_then(|u| u.endpoint.connect(peer, port));
        let Some(id) = opened else { return false };
        running.connection = Connecting::WithUdp(id);
        self.on_udp_connected(now, index, id);
        true
    }

    /// Application `index` has this socket now. One that only receives reports to its peer.
    fn on_udp_connected(&mut self, now: Instant, index: usize, id: SocketId) {
        if let Some(udp) = &mut self.udp
            && self.applications[index].application.only_receives()
        {
            udp.endpoint.report(now, id);
        }
        self.with_udp_application(index, |app, socket| app.on_connected(now, socket));
    }

    /// Events of sockets. Whether there were any.
    pub(super) fn settle_udp(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some((id, event)) = self.udp.as_mut().and_then(|u| u.endpoint.poll_event()) {
            moved = true;
            match event {
                Event::Accepted => {
                    let listener = self.udp.as_ref().and_then(|u| u.listener.clone());
                    match self.accept_for(listener, Connecting::WithUdp(id)) {
                        Some(index) => self.on_udp_connected(now, index, id),
                        None => self.counters.without_application += 1,
                    }
                }
                Event::Readable => {
                    let mine = |a: &Running| matches!(a.connection, Connecting::WithUdp(own) if own == id);
                    if let Some(index) = self.applications.iter().position(mine) {
                        self.with_udp_application(index, |app, socket| app.on_readable(now, socket));
                    }
                }
            }
        }
        moved
    }

    /// Has an application act on its socket, if it has one.
    pub(super) fn with_udp_application(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut Application, &mut Socket),
    ) {
        let Some(Running {
            application,
            connection: Connecting::WithUdp(id),
            ..
        }) = self.applications.get_mut(index)
        else {
            return;
        };
        if let Some(udp) = &mut self.udp {
            udp.endpoint.command(*id, |socket| act(application, socket));
        }
        self.tell_of_application(index);
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
