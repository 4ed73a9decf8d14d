//! TCP on a host: the applications on its connections.
//!
//! A host has it only if one of its applications asks for it. Without a shim a connection keeps the address that it began
//! with, whatever becomes of that; with one, it begins with the identity.

use super::event::HostEvent;
use super::notice::Notice;
use super::{Connected, Connecting, Host};
use crate::app::Transport;
use crate::contract::InterfaceId;
use crate::tcp::{Connection, ConnectionId, Endpoint, Event};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::tcp::TcpFlags;
use segue_wire::{Packet, Payload};

impl Host {
    /// Connects an application to a peer with one address, over TCP or UDP. Whether it could.
    pub(super) fn connect_one(&mut self, now: Instant, index: usize, peer: Ipv6Addr, port: u16) -> bool {
        if self
            .applications
            .get(index)
            .is_some_and(|a| a.transport() == Transport::Udp)
        {
            return self.connect_udp(now, index, peer, port);
        }
        let connection = self.connect_tcp(now, peer, port);
        let connects = connection.is_some();
        if let Some(connection) = connection {
            self.applications.connect(index, connection);
        }
        connects
    }

    /// The TCP endpoint, on a host that has one.
    #[must_use]
    pub fn tcp(&self) -> Option<&Endpoint> {
        self.tcp.as_ref().map(|t| t.endpoint())
    }

    /// The connection of application `index`, while it has one.
    #[must_use]
    pub fn connection_of(&self, index: usize) -> Option<ConnectionId> {
        match self.applications.connected(index)? {
            Connected::Tcp(id) => Some(id),
            _ => None,
        }
    }

    /// Takes a segment that arrived over `interface`.
    pub(super) fn handle_tcp(&mut self, now: Instant, interface: InterfaceId, packet: &mut Packet) {
        if !self.has_address(packet.ip.destination) {
            self.counters.not_for_us += 1;
            return;
        }
        let Some(tcp) = &mut self.tcp else {
            self.counters.not_understood += 1;
            return;
        };
        let begins =
            matches!(&packet.payload, Payload::Tcp(segment) if segment.flags.contains(TcpFlags::SYN));
        let shim = self.shim.as_ref().filter(|_| begins);
        let overhead = shim.map_or(0, |shim| shim.overhead(packet.ip.source));
        tcp.handle_packet(now, interface, packet, overhead);
    }

    /// Opens a connection for an application.
    pub(super) fn connect_tcp(&mut self, now: Instant, peer: Ipv6Addr, port: u16) -> Option<Connecting> {
        let overhead = self.shim.as_ref().map_or(0, |s| s.overhead(peer));
        let id = self.tcp.as_mut()?.connect(now, peer, port, overhead)?;
        Some(Connecting::With(Connected::Tcp(id)))
    }

    /// Events of connections. Whether there were any.
    pub(super) fn settle_tcp(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some((id, event)) = self.tcp.as_mut().and_then(|t| t.poll_event()) {
            moved = true;
            self.on_tcp(now, id, event);
        }
        moved
    }

    fn on_tcp(&mut self, now: Instant, id: ConnectionId, event: Event) {
        let index = self.applications.of(Connected::Tcp(id));
        match (event, index) {
            (Event::Readable, Some(index)) => {
                self.notify(now, index, Notice::Readable);
                return;
            }
            (Event::Writable, Some(index)) => {
                self.notify(now, index, Notice::Writable);
                return;
            }
            (Event::SendersDry, Some(index)) => {
                self.notify(now, index, Notice::Dry);
                return;
            }
            (Event::Readable | Event::Writable | Event::SendersDry, None) => return,
            (Event::Connected, index) => self.on_tcp_connected(now, id, index),
            // there will be nothing more to answer: this end closes too, behind what it still has to send
            (Event::PeerClosed, Some(index)) => {
                self.notify(now, index, Notice::Readable);
                if let Some(tcp) = &mut self.tcp {
                    tcp.command(id, Connection::close);
                }
            }
            (event, Some(index)) if event.is_end() => {
                // what arrived before the end is still there to be read
                self.notify(now, index, Notice::Readable);
                self.applications.connect(index, Connecting::Over);
                self.applications
                    .work(index, |application| application.on_closed(now));
                self.tell_of_application(index);
            }
            _ => {}
        }
        self.events.push_back(HostEvent::Tcp(id, event));
    }

    fn on_tcp_connected(&mut self, now: Instant, id: ConnectionId, index: Option<usize>) {
        let listener = self.tcp.as_ref().and_then(|t| t.listener());
        let index = index.or_else(|| self.accept_for(listener, Connected::Tcp(id)));
        match index {
            Some(index) => self.notify(now, index, Notice::Connected),
            None => {
                self.counters.without_application += 1;
                if let Some(tcp) = &mut self.tcp {
                    tcp.command(id, Connection::abort);
                }
            }
        }
    }
}
