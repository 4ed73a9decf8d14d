//! All connections of a host: which of them a segment is for, and what to do with one that is for none
//! (RFC 9293 sections 3.10.7.1 and 3.10.7.2).

use super::config::Config;
use super::connection::{Beginning, Connection};
use super::counters::EndpointCounters;
use super::ends::Pair;
use super::event::{ConnectionId, Event};
use super::initial_numbers::Numbers;
use super::networks::{Networks, Remembered};
use super::strays::{is_syn, quoted, reset};
use crate::contract::{InterfaceId, LocalAddress, Transmit};
use crate::random::SecretRng;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::tcp::{TcpFlags, TcpSegment};
use segue_wire::{Packet, Payload};
use std::collections::{BTreeMap, VecDeque};
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
    /// By ascending id.
    slots: Vec<Slot>,
    by_pair: BTreeMap<Pair, ConnectionId>,
    next_id: u64,
    /// Slot that the last segment was for: most are for the same one again.
    last_slot: usize,
    /// RSTs for segments that are for no connection.
    answers: VecDeque<Transmit>,
    to_transmit: VecDeque<ConnectionId>,
    to_notify: VecDeque<ConnectionId>,
    /// Some connection may have nothing left to tell.
    has_ended: bool,
    /// The earliest timer of all; the outer `None` when it may have changed.
    deadline: Option<Option<Instant>>,
    /// Networks that peers were in.
    networks: Networks,
    counters: EndpointCounters,
}

struct Slot {
    id: ConnectionId,
    connection: Box<Connection>,
    queued_transmit: bool,
    queued_notify: bool,
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
            slots: Vec::new(),
            by_pair: BTreeMap::new(),
            next_id: 0,
            last_slot: 0,
            answers: VecDeque::new(),
            to_transmit: VecDeque::new(),
            to_notify: VecDeque::new(),
            has_ended: false,
            deadline: None,
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
            (!self.by_pair.contains_key(&pair)).then_some(pair)
        })?;
        let connection = self.begin(now, local, pair, overhead, true);
        Some(self.insert(connection))
    }

    /// A connection.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.slot_of(id).map(|i| &*self.slots[i].connection)
    }

    /// Has `act` command a connection; `None` if there is none of this id. Poll the endpoint afterwards.
    #[inline]
    pub fn command<T>(&mut self, id: ConnectionId, act: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        let index = self.slot_of(id)?;
        let result = act(&mut self.slots[index].connection);
        self.note_change(index);
        Some(result)
    }

    /// A connection, to be commanded. Poll the endpoint afterwards.
    pub fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let index = self.slot_of(id)?;
        self.touch(index);
        Some(&mut self.slots[index].connection)
    }

    /// All connections.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.slots.iter().map(|s| (s.id, &*s.connection))
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
        match self.find(&pair) {
            Some(index) if is_syn(segment) && self.slots[index].connection.yields_to(segment) => {
                self.drop_slot(index);
                self.without_connection(now, interface, pair, segment, overhead);
            }
            Some(index) => {
                self.slots[index].connection.handle_segment(now, segment);
                self.note_change(index);
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
        let Some(index) = self.find(&pair) else {
            return false;
        };
        let connection = &mut self.slots[index].connection;
        if !connection.is_outstanding(seq) {
            return false;
        }
        connection.path_mtu_changed(*mtu);
        self.touch(index);
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
        for index in 0..self.slots.len() {
            if self.slots[index].connection.remote().0 != peer {
                continue;
            }
            let known = self.networks.remembered(moved.entered);
            self.touch(index);
            if let Some(seen) = self.slots[index].connection.change_network(now, known) {
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
        for index in 0..self.slots.len() {
            let at = self.slots[index].connection.poll_timeout();
            if at.is_some_and(|at| at <= now) {
                self.slots[index].connection.handle_timeout(now);
                self.touch(index);
            }
        }
    }

    /// The next packet to send. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let mut packet = Packet::EMPTY;
        let interface = self.poll_transmit_into(now, &mut packet)?;
        Some(Transmit { interface, packet })
    }

    /// The same, written to `packet`, where its driver wants it: moving it costs more than most of what makes it. Gives the
    /// interface to send it on.
    pub fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        if !self.answers.is_empty() {
            return self.answers.pop_front().map(|t| t.write_to(packet));
        }
        while let Some(&id) = self.to_transmit.front() {
            let mut sends = None;
            if let Some(index) = self.slot_of(id) {
                // sending starts timers
                self.deadline = None;
                let slot = &mut self.slots[index];
                let connection = &mut *slot.connection;
                if connection.poll_transmit_into(now, packet) {
                    sends = Some(connection.local().interface);
                    if connection.may_transmit() {
                        return sends;
                    }
                }
                slot.queued_transmit = false;
                self.has_ended |= connection.is_done();
                // sending may have events of its own
                if !slot.queued_notify && connection.has_events() {
                    slot.queued_notify = true;
                    self.to_notify.push_back(id);
                }
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
        let slots = &self.slots;
        *self.deadline.get_or_insert_with(|| match slots.as_slice() {
            [only] => only.connection.poll_timeout(),
            all => all.iter().filter_map(|s| s.connection.poll_timeout()).min(),
        })
    }

    /// The next event. Poll until `None` after every other call. A connection that has ended can be looked at until its
    /// last event and data have been taken and the endpoint is next called.
    pub fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        while let Some(&id) = self.to_notify.front() {
            if let Some(index) = self.slot_of(id) {
                let slot = &mut self.slots[index];
                if let Some(event) = slot.connection.poll_event() {
                    return Some((id, event));
                }
                slot.queued_notify = false;
                self.has_ended |= slot.connection.is_done();
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
    #[inline]
    fn slot_of(&self, id: ConnectionId) -> Option<usize> {
        match self.slots.as_slice() {
            [only] if only.id == id => Some(0),
            slots => slots.binary_search_by_key(&id, |s| s.id).ok(),
        }
    }

    #[inline]
    fn find(&mut self, pair: &Pair) -> Option<usize> {
        if let Some(slot) = self.slots.get(self.last_slot)
            && slot.connection.is_between(pair)
        {
            return Some(self.last_slot);
        }
        let id = *self.by_pair.get(pair)?;
        self.last_slot = self.slot_of(id)?;
        Some(self.last_slot)
    }

    fn insert(&mut self, connection: Connection) -> ConnectionId {
        self.reap();
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        self.by_pair.insert(connection.pair(), id);
        self.slots.push(Slot {
            id,
            connection: Box::new(connection),
            queued_transmit: false,
            queued_notify: false,
        });
        self.touch(self.slots.len() - 1);
        id
    }

    /// To be called for a connection that is about to be commanded: whatever it will have to send or to tell is asked for.
    fn touch(&mut self, index: usize) {
        self.queue(index, true, true);
    }

    /// To be called for a connection that has been given something: what it has to send and to tell is known.
    #[inline]
    fn note_change(&mut self, index: usize) {
        let connection = &*self.slots[index].connection;
        let (transmits, tells) = (connection.may_transmit(), connection.has_events());
        self.queue(index, transmits, tells);
    }

    #[inline]
    fn queue(&mut self, index: usize, transmits: bool, tells: bool) {
        self.deadline = None;
        let slot = &mut self.slots[index];
        if transmits && !slot.queued_transmit {
            slot.queued_transmit = true;
            self.to_transmit.push_back(slot.id);
        }
        if tells && !slot.queued_notify {
            slot.queued_notify = true;
            self.to_notify.push_back(slot.id);
        }
    }

    #[inline(never)]
    fn drop_slot(&mut self, index: usize) {
        let slot = self.slots.remove(index);
        self.by_pair.remove(&slot.connection.pair());
        self.deadline = None;
    }

    /// Lets go of connections that have ended and have nothing left to tell.
    fn reap(&mut self) {
        if core::mem::take(&mut self.has_ended) {
            for index in (0..self.slots.len()).rev() {
                if self.slots[index].connection.is_done() {
                    self.drop_slot(index);
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
        if self.slots.len() >= self.config.max_connections {
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
        endpoint.next_id = u64::from(u32::MAX);
        let mut connect = || {
            endpoint
                .connect(Instant::ZERO, Ipv6Addr::LOCALHOST, 80, 0)
                .expect("a port")
        };
        let (first, second) = (connect(), connect());
        assert!(first < second);
        assert_eq!(
            (endpoint.slot_of(first), endpoint.slot_of(second)),
            (Some(0), Some(1))
        );
    }
}
