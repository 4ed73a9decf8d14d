//! UDP on a host: the applications on its sockets.
//!
//! A host has it only if one of its applications asks for it. Without a shim a socket keeps the address that it began with,
//! whatever becomes of that; with one, it begins with the identity.

use super::notice::Notice;
use super::{Connected, Connecting, Host};
use crate::contract::InterfaceId;
use crate::time::Instant;
use crate::udp::{Endpoint, Event, SocketId};
use core::net::Ipv6Addr;
use segue_wire::Packet;
use segue_wire::udp::UdpDatagram;

impl Host {
    /// The UDP endpoint, on a host that has one.
    #[must_use]
    pub fn udp(&self) -> Option<&Endpoint> {
        self.udp.as_ref().map(|u| u.endpoint())
    }

    /// The socket of application `index`, while it has one.
    #[must_use]
    pub fn socket_of(&self, index: usize) -> Option<SocketId> {
        match self.applications.connected(index)? {
            Connected::Udp(id) => Some(id),
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
                .is_some_and(|udp| udp.handle_datagram(now, interface, ends, datagram))
    }

    /// Opens a socket for application `index`.
    pub(super) fn connect_udp(&mut self, now: Instant, index: usize, peer: Ipv6Addr, port: u16) -> bool {
        let opened = self.udp.as_mut().and_then(|u| u.connect(peer, port));
        let Some(id) = opened else { return false };
        self.applications
            .connect(index, Connecting::With(Connected::Udp(id)));
        self.on_udp_connected(now, index, id);
        true
    }

    /// Application `index` has this socket now. One that only receives reports to its peer.
    fn on_udp_connected(&mut self, now: Instant, index: usize, id: SocketId) {
        if let Some(udp) = &mut self.udp
            && self
                .applications
                .get(index)
                .is_some_and(|a| a.application().only_receives())
        {
            udp.report(now, id);
        }
        self.notify(now, index, Notice::Connected);
    }

    /// Events of sockets. Whether there were any.
    pub(super) fn settle_udp(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some((id, event)) = self.udp.as_mut().and_then(|u| u.poll_event()) {
            moved = true;
            match event {
                Event::Accepted => {
                    let listener = self.udp.as_ref().and_then(|u| u.listener());
                    match self.accept_for(listener, Connected::Udp(id)) {
                        Some(index) => self.on_udp_connected(now, index, id),
                        None => self.counters.without_application += 1,
                    }
                }
                Event::Readable => {
                    if let Some(index) = self.applications.of(Connected::Udp(id)) {
                        self.notify(now, index, Notice::Readable);
                    }
                }
            }
        }
        moved
    }
}
