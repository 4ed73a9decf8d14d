//! All associations of a host on one local port: which of them a packet is for, and what to do with one that is for
//! none (RFC 9260 section 8.4). INIT and COOKIE ECHO, which make associations, are dealt with in `handshake`.

mod arrived;
mod associations;
mod handshake;
mod icmp;
mod out_of_the_blue;

use crate::contract::{Departure, InterfaceId, LocalAddress, Transmit};
use crate::random::SecretRng;
use crate::sctp::association::{Association, Setup};
use crate::sctp::auth::{self, Random};
use crate::sctp::handshake::{CookieKeys, Identity};
use crate::sctp::lengths::encapsulation_overhead;
use crate::sctp::local::address_rules;
use crate::sctp::packets::{Headers, transmit};
use crate::sctp::receiver::keep_nothing_else;
use crate::sctp::{AssociationId, Config, Counters, EndpointCounters, Event};
use crate::time::Instant;
use arrived::Arrived;
use associations::Associations;
use core::hint::cold_path;
use core::net::Ipv6Addr;
use segue_wire::sctp::{Chunk, SctpPacket};
use segue_wire::{Packet, Payload};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// All associations of a host on one local port.
///
/// Drain `poll_transmit` and `poll_event` after every other call, commands to an association included; then ask
/// `poll_timeout`.
pub struct Endpoint {
    config: Arc<Config>,
    port: u16,
    secrets: Box<dyn SecretRng>,
    cookie_keys: CookieKeys,
    local: Vec<LocalAddress>,
    listening: bool,
    associations: Associations,
    /// Answers to packets out of the blue.
    answers: VecDeque<Transmit>,
    /// Packets that reached no association.
    counters: EndpointCounters,
}

impl Endpoint {
    /// An endpoint on the local `port`; `secrets` supplies tags, initial TSNs, nonces and the cookie key.
    #[must_use]
    pub fn new(mut config: Config, port: u16, mut secrets: Box<dyn SecretRng>) -> Self {
        // from here on the MTU is that of what UDP carries
        config.mtu = config.mtu.saturating_sub(encapsulation_overhead(&config));
        let cookie_keys = CookieKeys::new(config.valid_cookie_life, &mut *secrets);
        Self {
            config: Arc::new(config),
            port,
            secrets,
            cookie_keys,
            local: Vec::new(),
            listening: false,
            associations: Associations::default(),
            answers: VecDeque::new(),
            counters: EndpointCounters::default(),
        }
    }

    /// Adds an address that new associations offer and may send from; the first is the default route.
    pub fn add_local_address(&mut self, address: LocalAddress) {
        if !self.local.iter().any(|l| l.address == address.address) {
            self.local.push(address);
        }
    }

    /// Removes an address from those that new associations offer; associations that have it keep it.
    pub fn remove_local_address(&mut self, address: Ipv6Addr) {
        self.local.retain(|l| l.address != address);
    }

    /// An interface has `address` now: new associations offer it, and those that there are may go on with it, see
    /// [`Association::local_address_added`].
    pub fn local_address_added(&mut self, now: Instant, address: LocalAddress) {
        self.remove_local_address(address.address);
        self.add_local_address(address);
        self.associations
            .command_all(|association| association.local_address_added(now, address));
    }

    /// An interface no longer has `address`: new associations do not offer it, and those that there are do without it,
    /// see [`Association::local_address_removed`].
    pub fn local_address_removed(&mut self, now: Instant, address: Ipv6Addr) {
        self.remove_local_address(address);
        self.associations
            .command_all(|association| association.local_address_removed(now, address));
    }

    /// `address` is no longer this host's, on whatever link: the associations that have it delete it too.
    pub fn local_address_expired(&mut self, now: Instant, address: Ipv6Addr) {
        self.local_address_removed(now, address);
        self.associations.command_all(|association| {
            // the last one stays until there is another
            let _ = association.delete_address(now, address);
        });
    }

    /// Accepts INITs from now on.
    pub fn listen(&mut self) {
        self.listening = true;
    }

    /// Starts an association with a peer, whose first address is the primary path; `None` if there is no local or no
    /// peer address, or if there is an association with that peer: two endpoints never have more than one (RFC 9260
    /// section 1.3).
    pub fn connect(&mut self, now: Instant, peer: &[Ipv6Addr], peer_port: u16) -> Option<AssociationId> {
        let first = *peer.first()?;
        for &address in peer {
            // an address that another peer claims and has not confirmed is not yet its own
            if self.associations.find_confirmed(address, peer_port).is_some() {
                return None;
            }
        }
        let local = address_rules::offered(self.local.iter().copied(), first);
        let route = address_rules::first_source(&local, first)?;
        let (local_tag, local_initial_tsn) = self.new_tag_and_tsn();
        let local_random = self.new_random();
        let setup = Setup {
            config: &self.config,
            identity: Identity::new(self.port, peer_port, local_tag),
            local_initial_tsn,
            local_random,
            local: &local,
            route,
            peer_addresses: peer,
            // section 5.4: addresses that the upper layer gives are confirmed
            confirmed: peer.len(),
        };
        let mut association = Association::new(now, &setup, &mut *self.secrets);
        association.send_opening_chunk(now);
        Some(self.associations.insert(association))
    }

    /// An association.
    #[must_use]
    pub fn association(&self, id: AssociationId) -> Option<&Association> {
        self.associations.get(id)
    }

    /// An association, to be commanded. Poll the endpoint afterwards.
    #[inline]
    pub fn association_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.associations.lend(id)
    }

    /// Has `act` command an association, which is asked afterwards whether it has anything to send or to tell. `None` if there
    /// is no such one.
    #[cfg(feature = "host")]
    pub(crate) fn command<R>(
        &mut self,
        id: AssociationId,
        act: impl FnOnce(&mut Association) -> R,
    ) -> Option<R> {
        self.associations.give(id, act)
    }

    /// Lets go of an association that has ended, with whatever it still has to tell. Returns false if it has not ended.
    pub fn forget(&mut self, id: AssociationId) -> bool {
        self.associations.forget(id)
    }

    /// Counters of all associations together, those included that have ended and are forgotten.
    #[must_use]
    pub fn association_totals(&self) -> Counters {
        self.associations.totals()
    }

    /// All associations.
    pub fn associations(&self) -> impl Iterator<Item = (AssociationId, &Association)> {
        self.associations.iter()
    }

    /// Takes a packet that arrived over `interface`; anything but SCTP is ignored.
    pub fn handle_packet(&mut self, now: Instant, interface: InterfaceId, mut packet: Packet) {
        self.handle_packet_in_place(now, interface, &mut packet);
    }

    /// The same for a packet where it lies: moving it about costs more than reading it. What is left of it is of no
    /// use.
    pub fn handle_packet_in_place(&mut self, now: Instant, interface: InterfaceId, packet: &mut Packet) {
        self.associations.reap();
        let (from, to) = (packet.ip.source, packet.ip.destination);
        let (sctp, encapsulation) = match &mut packet.payload {
            Payload::Sctp(sctp) => (sctp, None),
            Payload::SctpOverUdp {
                source_port,
                destination_port,
                packet,
            } => {
                cold_path();
                let own = self.config.udp_encapsulation.map(|udp| udp.local_port);
                if own != Some(*destination_port) || *source_port == 0 {
                    self.counters.refused.wrong_port += 1;
                    return;
                }
                (packet, Some(*source_port))
            }
            _ => return,
        };
        if sctp.destination_port != self.port {
            cold_path();
            self.counters.refused.wrong_port += 1;
            return;
        }
        if sctp.chunks.is_empty() || !sctp.bundling_is_valid() {
            cold_path();
            self.counters.refused.malformed += 1;
            return;
        }
        let arrived = Arrived {
            now,
            interface,
            from,
            to,
            from_port: sctp.source_port,
            tag: sctp.verification_tag,
            encapsulation,
        };
        if !arrived.is_unicast() {
            cold_path();
            self.counters.refused.not_unicast += 1;
            return;
        }
        if !packet.extensions.is_empty() {
            cold_path();
            keep_nothing_else(sctp);
        }
        self.handle_chunks(&arrived, sctp);
    }

    #[inline]
    fn handle_chunks(&mut self, arrived: &Arrived, sctp: &mut SctpPacket) {
        // nearly every packet
        if let [Chunk::Data(_) | Chunk::Sack(_), ..] = sctp.chunks.as_slice()
            && let Some(last) = self.associations.last_if_for(arrived, sctp)
        {
            self.deliver_here(arrived, last, sctp);
            return;
        }
        cold_path();
        match sctp.chunks.as_slice() {
            [Chunk::Init(init), ..] => self.on_init(arrived, init),
            [Chunk::CookieEcho(_), ..] | [Chunk::Auth(_), Chunk::CookieEcho(_), ..] => {
                self.on_cookie_echo(arrived, sctp);
            }
            _ => match self.associations.find(arrived, sctp) {
                Some(id) => self.handle_chunks_for(arrived, id, sctp),
                None => self.on_out_of_the_blue(arrived, sctp),
            },
        }
    }

    /// A packet for this association, if for any.
    fn handle_chunks_for(&mut self, arrived: &Arrived, id: AssociationId, sctp: &mut SctpPacket) {
        let in_handshake = |a: &Association| a.is_in_handshake();
        // section 8.5.1: it is for an association that this end has left behind
        if matches!(auth::first_chunk(sctp), Some(Chunk::ShutdownAck))
            && self.associations.get(id).is_some_and(in_handshake)
        {
            self.on_out_of_the_blue(arrived, sctp);
        } else if self.associations.is_second_with_its_peer(id, arrived, sctp) {
            self.give_up_second(id);
        } else if self.associations.is_known_by_tag_alone(id, arrived, sctp) {
            self.deliver_or_answer(arrived, id, sctp);
        } else {
            self.deliver(arrived, id, sctp);
        }
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.associations.reap();
        self.associations.handle_timeout(now);
    }

    /// The next packet to send. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let mut packet = Packet::EMPTY;
        let interface = self.poll_transmit_into(now, &mut packet)?.interface;
        Some(Transmit { interface, packet })
    }

    /// The same, written to `packet`, where its driver wants it: moving it costs more than most of what makes it.
    #[inline]
    pub fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<Departure> {
        if self.answers.is_empty() && !self.associations.may_transmit() {
            return None;
        }
        self.write_next(now, packet)
    }

    fn write_next(&mut self, now: Instant, packet: &mut Packet) -> Option<Departure> {
        if !self.answers.is_empty() {
            return self.write_answer(packet);
        }
        self.associations.poll_transmit_into(now, packet)
    }

    #[cold]
    fn write_answer(&mut self, packet: &mut Packet) -> Option<Departure> {
        self.associations.prepare_for_carrier();
        self.answers.pop_front().map(|answer| answer.write_to(packet))
    }

    /// When `handle_timeout` must be called next. Poll after `poll_transmit` has returned `None`.
    #[inline]
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.associations.poll_timeout()
    }

    /// Whether [`poll_event`](Self::poll_event) may have something to give. `false` is certain.
    #[must_use]
    #[inline]
    pub fn has_events(&self) -> bool {
        self.associations.has_events()
    }

    /// The next event. Poll until `None` after every other call. An association that has ended can be looked at until
    /// its last event and message have been taken and the endpoint is next called.
    pub fn poll_event(&mut self) -> Option<(AssociationId, Event)> {
        self.associations.poll_event()
    }

    /// Longest packet towards `destination` if that is less than `Config::mtu`: packets that are longer all the same,
    /// because their chunks were cut before this was known, are to be fragmented by IPv6 (RFC 9260 section 6.9).
    #[must_use]
    #[inline]
    pub fn reduced_mtu(&self, destination: Ipv6Addr) -> Option<u32> {
        self.associations.reduced_mtu(destination)
    }

    /// Packets that reached no association.
    #[must_use]
    pub fn counters(&self) -> EndpointCounters {
        EndpointCounters {
            associations_examined: self.associations.examined(),
            ..self.counters
        }
    }
}

impl Endpoint {
    /// Whether nothing is queued that a poll has not brought out.
    pub(super) fn is_drained(&self) -> bool {
        self.answers.is_empty() && !self.associations.may_transmit() && !self.associations.has_events()
    }

    /// Whether all associations are found by what they have. For tests.
    pub(super) fn index_is_complete(&self) -> bool {
        self.associations.index_is_complete()
    }

    /// Returns false if the association refuses the packet whole.
    #[inline(never)]
    fn deliver(&mut self, arrived: &Arrived, id: AssociationId, sctp: &mut SctpPacket) -> bool {
        self.deliver_here(arrived, id, sctp)
    }

    /// The same as a part of its caller.
    #[inline(always)]
    fn deliver_here(&mut self, arrived: &Arrived, id: AssociationId, sctp: &mut SctpPacket) -> bool {
        let encapsulates = self.config.udp_encapsulation.is_some();
        let taken = self.associations.give(id, |association| {
            if encapsulates {
                cold_path();
                let port = arrived.encapsulation;
                association.handle_encapsulated(arrived.now, arrived.from, arrived.to, port, sctp)
            } else {
                association.handle_packet(arrived.now, arrived.from, arrived.to, sctp)
            }
        });
        taken.unwrap_or(false)
    }

    /// RANDOM of an INIT or INIT ACK that offers authentication (RFC 4895 section 6.1).
    fn new_random(&mut self) -> Option<Random> {
        auth::is_offered(&self.config).then(|| {
            let mut random = [0; 32];
            self.secrets.fill(&mut random);
            random
        })
    }

    /// UDP ports of an answer to a packet: back the way it came.
    fn udp_ports_to(&self, arrived: &Arrived) -> Option<(u16, u16)> {
        Some((self.config.udp_encapsulation?.local_port, arrived.encapsulation?))
    }

    /// Sends a chunk back to where a packet came from.
    fn answer(&mut self, arrived: &Arrived, verification_tag: u32, chunk: Chunk) {
        let source = self
            .local
            .iter()
            .copied()
            .find(|l| l.address == arrived.to)
            .unwrap_or(LocalAddress {
                interface: arrived.interface,
                address: arrived.to,
            });
        let headers = Headers {
            source: source.address,
            destination: arrived.from,
            ports: (self.port, arrived.from_port),
            verification_tag,
            udp_ports: self.udp_ports_to(arrived),
        };
        self.answers
            .push_back(transmit(source, &headers, SmallVec::from_buf([chunk])));
    }
}
