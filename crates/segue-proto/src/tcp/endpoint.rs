//! All connections of a host: which of them a segment is for, and what to do with one that is for none
//! (RFC 9293 sections 3.10.7.1 and 3.10.7.2).

use super::config::Config;
use super::connection::{Beginning, Connection};
use super::connections::Connections;
use super::counters::EndpointCounters;
use super::ends::Pair;
use super::event::{ConnectionId, Event};
use super::initial_numbers::Numbers;
use super::networks::{Networks, Remembered};
use super::strays::{is_syn, quoted, reset};
use crate::contract::{Departure, InterfaceId, LocalAddress, Transmit};
use crate::random::SecretRng;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::tcp::{TcpFlags, TcpSegment};
use segue_wire::{Packet, Payload};
use std::collections::VecDeque;
use std::sync::Arc;

/// All TCP connections of a host.
///
/// Drain `poll_transmit` and `poll_event` after every other call, commands to a connection included; then ask
/// `poll_timeout`.
pub struct Endpoint {
    config: Arc<Config>,
    numbers: Numbers,
    local: Vec<LocalAddress>,
    listening: Vec<u16>,
    connections: Connections,
    /// RSTs for segments that are for no connection.
    answers: VecDeque<Transmit>,
    to_transmit: VecDeque<ConnectionId>,
    to_notify: VecDeque<ConnectionId>,
    /// Some connection may have nothing left to tell.
    has_ended: bool,
    /// Networks that peers were in.
    networks: Networks,
    counters: EndpointCounters,
}

impl Endpoint {
    /// An endpoint; `secrets` supplies the key of initial sequence numbers, and ports.
    #[must_use]
    pub fn new(config: Config, secrets: Box<dyn SecretRng>) -> Self {
        Self {
            config: Arc::new(config),
            numbers: Numbers::new(secrets),
            local: Vec::new(),
            listening: Vec::new(),
            connections: Connections::default(),
            answers: VecDeque::new(),
            to_transmit: VecDeque::new(),
            to_notify: VecDeque::new(),
            has_ended: false,
            networks: Networks::default(),
            counters: EndpointCounters::default(),
        }
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Adds an address that connections may begin from; the first is taken where nothing else is said.
    pub fn add_local_address(&mut self, address: LocalAddress) {
        self.remove_local_address(address.address);
        self.local.push(address);
    }

    /// Removes an address from those that connections begin from; those that have it keep it.
    pub fn remove_local_address(&mut self, address: Ipv6Addr) {
        self.local.retain(|l| l.address != address);
    }

    /// Accepts connections to `port` from now on.
    pub fn listen(&mut self, port: u16) {
        if !self.listening.contains(&port) {
            self.listening.push(port);
        }
    }

    /// Opens a connection from an ephemeral port (RFC 6056 section 3.3.1). `overhead` is what a shim adds to packets to
    /// this peer. `None` if there is no local address to begin from, or no port is left.
    pub fn connect(
        &mut self,
        now: Instant,
        remote: Ipv6Addr,
        remote_port: u16,
        overhead: u32,
    ) -> Option<ConnectionId> {
        let local = *self.local.first()?;
        self.connect_from(now, local, remote, remote_port, overhead)
    }

    /// As [`connect`](Self::connect), from this address.
    pub fn connect_from(
        &mut self,
        now: Instant,
        local: LocalAddress,
        remote: Ipv6Addr,
        remote_port: u16,
        overhead: u32,
    ) -> Option<ConnectionId> {
        if remote.is_multicast() || remote.is_unspecified() || remote_port == 0 {
            return None;
        }
        let pair = self.numbers.ports().find_map(|local_port| {
            let pair = Pair {
                local: local.address,
                local_port,
                remote,
                remote_port,
            };
            (!self.connections.contains(&pair)).then_some(pair)
        })?;
        let connection = self.begin(now, local, pair, overhead, true);
        Some(self.insert(connection))
    }

    /// A connection.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections
            .place_of(id)
            .map(|place| self.connections.at(place))
    }

    /// Has `act` command a connection; `None` if there is none of this id. Poll the endpoint afterwards.
    #[inline]
    pub fn command<T>(&mut self, id: ConnectionId, act: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        let place = self.connections.place_of(id)?;
        let result = self.connections.act(place, act);
        self.note_change(place);
        Some(result)
    }

    /// All connections.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.connections.iter()
    }

    /// Takes a packet that arrived over `interface`; anything but TCP is ignored.
    pub fn handle_packet(&mut self, now: Instant, interface: InterfaceId, mut packet: Packet) {
        self.handle_packet_in_place(now, interface, &mut packet, 0);
    }

    /// The same for a packet where it lies, which saves moving it; what is left of it is of no use. If it begins a connection,
    /// `overhead` is what a shim adds to packets to this peer.
    pub fn handle_packet_in_place(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        packet: &mut Packet,
        overhead: u32,
    ) {
        self.reap();
        let (from, to) = (packet.ip.source, packet.ip.destination);
        let Payload::Tcp(segment) = &mut packet.payload else {
            return;
        };
        let pair = Pair {
            local: to,
            local_port: segment.destination_port,
            remote: from,
            remote_port: segment.source_port,
        };
        if !self.counters.admit(&pair) {
            return;
        }
        match self.connections.find(&pair) {
            Some(place) if is_syn(segment) && self.connections.at(place).yields_to(segment) => {
                self.connections.remove(place);
                self.without_connection(now, interface, pair, segment, overhead);
            }
            Some(place) => {
                self.connections
                    .act(place, |connection| connection.handle_segment(now, segment));
                self.note_change(place);
            }
            None => self.without_connection(now, interface, pair, segment, overhead),
        }
    }

    /// An ICMPv6 error about a packet of this host's. Packet Too Big sets the path MTU of the connection whose segment
    /// it quotes, if that is outstanding (RFC 8201 section 4; RFC 5927 section 4). Others are soft errors, and nothing
    /// comes of them but the retransmissions that go on anyway (RFC 9293 section 3.9.2.2). Whether it was acted on.
    pub fn handle_icmp(&mut self, message: &Icmpv6) -> bool {
        let Icmpv6::PacketTooBig { mtu, invoking } = message else {
            return false;
        };
        let Some((pair, seq)) = quoted(invoking) else {
            return false;
        };
        let Some(place) = self.connections.find(&pair) else {
            return false;
        };
        if !self.connections.at(place).is_outstanding(seq) {
            return false;
        }
        self.connections
            .act(place, |connection| connection.path_mtu_changed(*mtu));
        self.queue(place, true, true);
        true
    }

    /// Packets to `peer` take another way from now on: to an address with this prefix.
    pub fn network_changed(&mut self, now: Instant, peer: Ipv6Addr, prefix: u64) {
        if !self.config.remedy.remembers() {
            return;
        }
        let Some(moved) = self.networks.on_move(peer, prefix) else {
            return;
        };
        for place in 0..self.connections.len() {
            if self.connections.at(place).remote().0 != peer {
                continue;
            }
            let known = self.networks.remembered(moved.entered);
            self.queue(place, true, true);
            let change = |connection: &mut Connection| connection.change_network(now, known);
            if let Some(seen) = self.connections.act(place, change) {
                self.networks.remember(moved.left, seen);
            }
        }
    }

    /// What is remembered of the network with this prefix.
    #[must_use]
    pub fn remembered(&self, prefix: u64) -> Option<Remembered> {
        self.networks.remembered(prefix)
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.reap();
        for place in self.connections.due(now) {
            self.connections
                .act(place, |connection| connection.handle_timeout(now));
            self.queue(place, true, true);
        }
    }

    /// The next packet to send. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let mut packet = Packet::EMPTY;
        let interface = self.poll_transmit_into(now, &mut packet)?.interface;
        Some(Transmit { interface, packet })
    }

    /// The same, written to `packet`, where its driver wants it: moving it costs more than most of what makes it.
    pub fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<Departure> {
        if !self.answers.is_empty() {
            return self.answers.pop_front().map(|t| t.write_to(packet));
        }
        while let Some(&id) = self.to_transmit.front() {
            let mut sends = None;
            if let Some(place) = self.connections.place_of(id) {
                // sending starts timers
                let sent = self
                    .connections
                    .act(place, |connection| connection.poll_transmit_into(now, packet));
                let connection = self.connections.at(place);
                if sent {
                    sends = Some(Departure {
                        interface: connection.local().interface,
                        busy_since: connection.busy_since(),
                    });
                    if connection.may_transmit() {
                        return sends;
                    }
                }
                self.has_ended |= connection.is_done();
                let tells = connection.has_events();
                self.connections.has_transmitted(place);
                // sending may have events of its own
                self.queue(place, false, tells);
            }
            self.to_transmit.pop_front();
            if sends.is_some() {
                return sends;
            }
        }
        None
    }

    /// When `handle_timeout` must be called next. Poll after `poll_transmit` has returned `None`.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.connections.poll_timeout()
    }

    /// The next event. Poll until `None` after every other call. A connection that has ended can be looked at until its
    /// last event and data have been taken and the endpoint is next called.
    pub fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        while let Some(&id) = self.to_notify.front() {
            if let Some(place) = self.connections.place_of(id) {
                if let Some(event) = self.connections.take_event(place) {
                    return Some((id, event));
                }
                self.connections.has_notified(place);
                self.has_ended |= self.connections.at(place).is_done();
            }
            self.to_notify.pop_front();
        }
        None
    }

    /// Whether `poll_event` may have something to bring out.
    #[must_use]
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.to_notify.is_empty()
    }

    /// Segments that reached no connection.
    #[must_use]
    pub fn counters(&self) -> EndpointCounters {
        self.counters
    }
}

impl Endpoint {
    fn insert(&mut self, connection: Connection) -> ConnectionId {
        self.reap();
        let (id, place) = self.connections.insert(connection);
        self.queue(place, true, true);
        id
    }

    /// To be called for a connection that has been given something: what it has to send and to tell is known.
    #[inline]
    fn note_change(&mut self, place: usize) {
        let connection = self.connections.at(place);
        let (transmits, tells) = (connection.may_transmit(), connection.has_events());
        self.queue(place, transmits, tells);
    }

    /// To be called for a connection that has something to send or to tell, or may have.
    #[inline]
    fn queue(&mut self, place: usize, transmits: bool, tells: bool) {
        let queued = self.connections.queue(place, transmits, tells);
        if queued.transmit {
            self.to_transmit.push_back(queued.id);
        }
        if queued.notify {
            self.to_notify.push_back(queued.id);
        }
    }

    /// Lets go of connections that have ended and have nothing left to tell.
    fn reap(&mut self) {
        if core::mem::take(&mut self.has_ended) {
            for place in (0..self.connections.len()).rev() {
                if self.connections.at(place).is_done() {
                    self.connections.remove(place);
                }
            }
        }
    }

    /// A segment for no connection.
    #[inline(never)]
    fn without_connection(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        pair: Pair,
        segment: &mut TcpSegment,
        overhead: u32,
    ) {
        // section 3.10.7.2, first
        if segment.flags.contains(TcpFlags::RST) {
            self.counters.stray_resets += 1;
            return;
        }
        let listens = self.listening.contains(&pair.local_port);
        // second: any acknowledgment is bad
        if !listens || segment.flags.contains(TcpFlags::ACK) {
            self.counters.resets_sent += 1;
            self.answers.push_back(reset(interface, &pair, segment));
            return;
        }
        if !segment.flags.contains(TcpFlags::SYN) {
            self.counters.not_syn += 1;
            return;
        }
        if self.connections.len() >= self.config.max_connections {
            self.counters.too_many_connections += 1;
            return;
        }
        let local = LocalAddress {
            interface,
            address: pair.local,
        };
        let local = self
            .local
            .iter()
            .find(|l| l.address == pair.local)
            .copied()
            .unwrap_or(local);
        self.counters.accepted += 1;
        let mut connection = self.begin(now, local, pair, overhead, false);
        connection.accept(now, segment);
        self.insert(connection);
    }

    fn begin(
        &mut self,
        now: Instant,
        local: LocalAddress,
        pair: Pair,
        overhead: u32,
        active: bool,
    ) -> Connection {
        let initial = self.numbers.of(now, &pair);
        let beginning = Beginning {
            local,
            pair,
            iss: initial.iss,
            ts_offset: initial.ts_offset,
            overhead,
            active,
        };
        Connection::new(now, &self.config, &beginning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    /// An identifier that came again would be looked for among those before it.
    #[test]
    fn identifiers_go_on_after_four_thousand_million_connections() {
        let mut endpoint = Endpoint::new(Config::default(), Box::new(Stream::new(1, "tcp")));
        endpoint.add_local_address(LocalAddress {
            interface: InterfaceId(0),
            address: Ipv6Addr::LOCALHOST,
        });
        endpoint.connections.begin_ids_at(u64::from(u32::MAX));
        let mut connect = || {
            endpoint
                .connect(Instant::ZERO, Ipv6Addr::LOCALHOST, 80, 0)
                .expect("a port")
        };
        let (first, second) = (connect(), connect());
        assert!(first < second);
        assert_eq!(
            (
                endpoint.connections.place_of(first),
                endpoint.connections.place_of(second)
            ),
            (Some(0), Some(1))
        );
    }
}
