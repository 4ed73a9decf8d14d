//! TCP on a host: its endpoint, and the applications on its connections.
//!
//! A host has it only if one of its applications asks for it. Without a shim a connection keeps the address that it began
//! with, whatever becomes of that; with one, it begins with the identity.

use super::{Connecting, Host, HostEvent, Running};
use crate::app::{self, Application, Transport};
use crate::contract::{InterfaceId, LocalAddress, Transmit};
use crate::random::{SecretRng, Stream};
use crate::tcp::{Config, Connection, ConnectionId, Endpoint, Event};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::tcp::TcpFlags;
use segue_wire::{Packet, Payload};

/// The part of a host that is TCP's.
pub(super) struct Tcp {
    endpoint: Endpoint,
    /// The listening application: its number and what it does.
    listener: Option<(usize, app::Kind)>,
}

impl Tcp {
    /// TCP, if an application wants it: its secrets come from a generator of its own, keyed by its host's.
    pub fn for_applications(
        config: Config,
        port: u16,
        applications: &[app::Config],
        secrets: &mut dyn SecretRng,
    ) -> Option<Box<Self>> {
        if applications.iter().all(|a| a.transport != Transport::Tcp) {
            return None;
        }
        let mut key = [0; 32];
        secrets.fill(&mut key);
        let mut endpoint = Endpoint::new(config, Box::new(Stream::from_key(key)));
        let listens = |a: &app::Config| a.transport == Transport::Tcp && a.role == app::Role::Listen;
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

    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
    }

    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.endpoint.poll_transmit(now)
    }

    #[inline]
    pub fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
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
}

impl Host {
    /// The TCP endpoint, on a host that has one.
    #[must_use]
    pub fn tcp(&self) -> Option<&Endpoint> {
        self.tcp.as_ref().map(|t| &t.endpoint)
    }

    /// The connection of application `index`, while it has one.
    #[must_use]
    pub fn connection_of(&self, index: usize) -> Option<ConnectionId> {
        match self.applications.get(index)?.connection {
            Connecting::WithTcp(id) => Some(id),
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
        if let (Some(shim), Payload::Tcp(segment)) = (&self.shim, &packet.payload)
            && segment.flags.contains(TcpFlags::SYN)
        {
            tcp.endpoint.set_overhead(shim.overhead(packet.ip.source));
        }
        tcp.endpoint.handle_packet_in_place(now, interface, packet);
    }

    /// Opens a connection for an application.
    pub(super) fn connect_tcp(&mut self, now: Instant, peer: Ipv6Addr, port: u16) -> Option<Connecting> {
        let overhead = self.shim.as_ref().map_or(0, |s| s.overhead(peer));
        let id = self.tcp.as_mut()?.endpoint.connect(now, peer, port, overhead)?;
        Some(Connecting::WithTcp(id))
    }

    /// Events of connections. Whether there were any.
    pub(super) fn settle_tcp(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some((id, event)) = self.tcp.as_mut().and_then(|t| t.endpoint.poll_event()) {
            moved = true;
            self.on_tcp(now, id, event);
        }
        moved
    }

    /// Has an application act on its connection, if that is TCP's.
    pub(super) fn with_tcp_application(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut Application, &mut Connection),
    ) {
        let Some(Running {
            application,
            connection: Connecting::WithTcp(id),
            ..
        }) = self.applications.get_mut(index)
        else {
            return;
        };
        if let Some(tcp) = &mut self.tcp {
            tcp.endpoint
                .command(*id, |connection| act(application, connection));
        }
        self.tell_of_application(index);
    }

    fn on_tcp(&mut self, now: Instant, id: ConnectionId, event: Event) {
        let mine = |a: &Running| matches!(a.connection, Connecting::WithTcp(own) if own == id);
        let index = self.applications.iter().position(mine);
        match (event, index) {
            (Event::Readable, Some(index)) => {
                self.with_tcp_application(index, |app, connection| app.on_readable(now, connection));
                return;
            }
            (Event::Writable, Some(index)) => {
                self.with_tcp_application(index, |app, connection| app.on_writable(now, connection));
                return;
            }
            (Event::SendersDry, Some(index)) => {
                self.with_tcp_application(index, |app, connection| app.on_dry(now, connection));
                return;
            }
            (Event::Readable | Event::Writable | Event::SendersDry, None) => return,
            (Event::Connected, index) => self.on_tcp_connected(now, id, index),
            // there will be nothing more to answer: this end closes too, behind what it still has to send
            (Event::PeerClosed, Some(index)) => self.with_tcp_application(index, |app, connection| {
                app.on_readable(now, connection);
                connection.close();
            }),
            (event, Some(index)) if event.is_end() => {
                // what arrived before the end is still there to be read
                self.with_tcp_application(index, |app, connection| app.on_readable(now, connection));
                let running = &mut self.applications[index];
                running.connection = Connecting::Over;
                running.application.on_closed(now);
                self.tell_of_application(index);
            }
            _ => {}
        }
        self.events.push_back(HostEvent::Tcp(id, event));
    }

    fn on_tcp_connected(&mut self, now: Instant, id: ConnectionId, index: Option<usize>) {
        let listener = self.tcp.as_ref().and_then(|t| t.listener.clone());
        let index = index.or_else(|| self.accept_for(listener, Connecting::WithTcp(id)));
        match index {
            Some(index) => {
                self.with_tcp_application(index, |app, connection| app.on_connected(now, connection));
            }
            None => {
                self.counters.without_application += 1;
                if let Some(tcp) = &mut self.tcp {
                    tcp.endpoint.command(id, Connection::abort);
                }
            }
        }
    }
}
