//! All associations of a host on one local port: which of them a packet is for, and what to do with one that is for
//! none (RFC 9260 section 8.4). INIT and COOKIE ECHO, which make associations, are dealt with in `handshake`.

mod deadlines;
mod handshake;
mod icmp;
#[cfg(test)]
mod identifiers;
mod index;
mod lookup;
mod out_of_the_blue;

use super::association::{Association, Setup};
use super::auth::{self, Random};
use super::encapsulation::UDP_HEADER;
use super::handshake::{CookieKeys, Identity};
use super::local::address_rules;
use super::receiver::keep_nothing_else;
use super::transmit::transmit;
use super::{AssociationId, Config, Counters, EndpointCounters, Event};
use crate::contract::{InterfaceId, LocalAddress, Transmit};
use crate::random::SecretRng;
use crate::time::Instant;
use core::net::Ipv6Addr;
use deadlines::Deadlines;
use index::{Index, Keys};
use segue_wire::sctp::{Chunk, SctpPacket};
use segue_wire::{Packet, Payload};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// All associations of a host on one local port.
///
/// Drain `poll_transmit` and `poll_event` after every other call, commands to an association included; then ask
/// `poll_timeout`.
pub struct Endpoint {
    config: Config,
    port: u16,
    secrets: Box<dyn SecretRng>,
    cookie_keys: CookieKeys,
    local: Vec<LocalAddress>,
    listening: bool,
    /// By ascending id.
    slots: Vec<Slot>,
    /// Of all slots.
    index: Index,
    deadlines: Deadlines,
    /// Counters of associations that have ended.
    ended: Counters,
    next_id: u64,
    /// Slot that the last packet was for: most packets are for the same one again.
    last_slot: usize,
    /// Answers to packets out of the blue.
    answers: VecDeque<Transmit>,
    /// Associations touched since they were last drained.
    to_transmit: VecDeque<AssociationId>,
    to_notify: VecDeque<AssociationId>,
    /// Some association may have nothing left to tell.
    has_ended: bool,
    /// The earliest timer of all, as `Slot::deadline`.
    deadline: Option<Option<Instant>>,
    counters: EndpointCounters,
}

struct Slot {
    id: AssociationId,
    association: Box<Association>,
    queued_transmit: bool,
    queued_notify: bool,
    /// Its earliest timer as last worked out; the outer `None` when it may have changed since.
    deadline: Option<Option<Instant>>,
    /// What `Endpoint::deadlines` has of it.
    listed_deadline: Option<Instant>,
    /// What `Endpoint::index` has of it.
    listed_keys: Option<Box<Keys>>,
}

impl Slot {
    fn deadline(&mut self) -> Option<Instant> {
        *self
            .deadline
            .get_or_insert_with(|| self.association.poll_timeout())
    }
}

/// Addresses and interface of a packet that arrived.
#[derive(Clone, Copy)]
struct Arrived {
    now: Instant,
    interface: InterfaceId,
    from: Ipv6Addr,
    to: Ipv6Addr,
    from_port: u16,
    tag: u32,
    /// UDP source port, if it came in UDP.
    encapsulation: Option<u16>,
}

impl Arrived {
    /// Whether both addresses are those of single hosts.
    fn is_unicast(&self) -> bool {
        !(self.from.is_multicast() || self.from.is_unspecified() || self.to.is_multicast())
    }
}

impl Endpoint {
    /// An endpoint on the local `port`; `secrets` supplies tags, initial TSNs, nonces and the cookie key.
    #[must_use]
    pub fn new(mut config: Config, port: u16, mut secrets: Box<dyn SecretRng>) -> Self {
        if config.udp_encapsulation.is_some() {
            // from here on the MTU is that of what UDP carries
            config.mtu = config.mtu.saturating_sub(UDP_HEADER);
        }
        let cookie_keys = CookieKeys::new(config.valid_cookie_life, &mut *secrets);
        Self {
            config,
            port,
            secrets,
            cookie_keys,
            local: Vec::new(),
            listening: false,
            slots: Vec::new(),
            index: Index::default(),
            deadlines: Deadlines::default(),
            ended: Counters::default(),
            next_id: 0,
            last_slot: 0,
            answers: VecDeque::new(),
            to_transmit: VecDeque::new(),
            to_notify: VecDeque::new(),
            has_ended: false,
            deadline: None,
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
        for index in 0..self.slots.len() {
            self.slots[index].association.local_address_added(now, address);
            self.touch(index);
        }
    }

    /// An interface no longer has `address`: new associations do not offer it, and those that there are do without it,
    /// see [`Association::local_address_removed`].
    pub fn local_address_removed(&mut self, now: Instant, address: Ipv6Addr) {
        self.remove_local_address(address);
        for index in 0..self.slots.len() {
            self.slots[index].association.local_address_removed(now, address);
            self.touch(index);
        }
    }

    /// `address` is no longer this host's, on whatever link: the associations that have it delete it too.
    pub fn local_address_expired(&mut self, now: Instant, address: Ipv6Addr) {
        self.local_address_removed(now, address);
        for slot in &mut self.slots {
            // the last one stays until there is another
            let _ = slot.association.delete_address(now, address);
        }
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
            if self.find_confirmed(address, peer_port).is_some() {
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
        Some(self.insert(association))
    }

    /// An association.
    #[must_use]
    pub fn association(&self, id: AssociationId) -> Option<&Association> {
        self.slot_of(id).map(|i| &*self.slots[i].association)
    }

    /// An association, to be commanded. Poll the endpoint afterwards.
    pub fn association_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        let index = self.slot_of(id)?;
        self.touch(index);
        Some(&mut self.slots[index].association)
    }

    /// Lets go of an association that has ended, with whatever it still has to tell. Returns false if it has not ended.
    pub fn forget(&mut self, id: AssociationId) -> bool {
        match self.slot_of(id) {
            Some(index) if self.slots[index].association.is_closed() => {
                self.slots[index].association.drop_untold();
                self.touch(index);
                true
            }
            _ => false,
        }
    }

    /// Counters of all associations together, those included that have ended and are forgotten.
    #[must_use]
    pub fn association_totals(&self) -> Counters {
        let mut totals = self.ended;
        for slot in &self.slots {
            totals.add(&slot.association.counters());
        }
        totals
    }

    /// All associations.
    pub fn associations(&self) -> impl Iterator<Item = (AssociationId, &Association)> {
        self.slots.iter().map(|s| (s.id, &*s.association))
    }

    /// Takes a packet that arrived over `interface`; anything but SCTP is ignored.
    pub fn handle_packet(&mut self, now: Instant, interface: InterfaceId, mut packet: Packet) {
        self.handle_packet_in_place(now, interface, &mut packet);
    }

    /// The same for a packet where it lies: moving it about costs more than reading it. What is left of it is of no
    /// use.
    pub fn handle_packet_in_place(&mut self, now: Instant, interface: InterfaceId, packet: &mut Packet) {
        self.reap();
        let (from, to) = (packet.ip.source, packet.ip.destination);
        let (sctp, encapsulation) = match &mut packet.payload {
            Payload::Sctp(sctp) => (sctp, None),
            Payload::SctpOverUdp {
                source_port,
                destination_port,
                packet,
            } => {
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
            self.counters.refused.wrong_port += 1;
            return;
        }
        if sctp.chunks.is_empty() || !sctp.bundling_is_valid() {
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
            self.counters.refused.not_unicast += 1;
            return;
        }
        if !packet.extensions.is_empty() {
            keep_nothing_else(sctp);
        }
        match sctp.chunks.as_slice() {
            // nearly every packet
            [Chunk::Data(_) | Chunk::Sack(_), ..] if self.is_for_last(&arrived, sctp) => {
                self.deliver(&arrived, self.last_slot, sctp);
            }
            [Chunk::Init(init), ..] => self.on_init(&arrived, init),
            [Chunk::CookieEcho(_), ..] | [Chunk::Auth(_), Chunk::CookieEcho(_), ..] => {
                self.on_cookie_echo(&arrived, sctp);
            }
            _ => match self.find(&arrived, sctp) {
                // section 8.5.1: it is for an association that this end has left behind
                Some(index)
                    if matches!(auth::first_chunk(sctp), Some(Chunk::ShutdownAck))
                        && self.slots[index].association.is_in_handshake() =>
                {
                    self.on_out_of_the_blue(&arrived, sctp);
                }
                Some(index) if self.is_second_with_its_peer(index, &arrived, sctp) => {
                    self.give_up_second(index)
                }
                Some(index) if self.is_known_by_tag_alone(index, &arrived, sctp) => {
                    // an ASCONF from nobody's address, about nobody's: a guess, unless it is authenticated
                    let expected = self.index.is_former(arrived.from, arrived.from_port);
                    let answer = out_of_the_blue::answer(sctp);
                    if !self.deliver(&arrived, index, sctp) && !expected {
                        self.answer_out_of_the_blue(&arrived, answer);
                    }
                }
                Some(index) => {
                    self.deliver(&arrived, index, sctp);
                }
                None => self.on_out_of_the_blue(&arrived, sctp),
            },
        }
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.reap();
        if self.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        let due = match self.slots.as_slice() {
            [only] => vec![only.id],
            _ => self.deadlines.due(now),
        };
        for id in due {
            if let Some(index) = self.slot_of(id) {
                self.slots[index].association.handle_timeout(now);
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
    #[inline]
    pub fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        if self.answers.is_empty() && self.to_transmit.is_empty() {
            return None;
        }
        self.write_next(now, packet)
    }

    fn write_next(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer.write_to(packet));
        }
        while let Some(&id) = self.to_transmit.front() {
            if let Some(index) = self.slot_of(id) {
                // sending starts timers
                self.forget_deadline(index);
                let interface = self.slots[index].association.poll_transmit_into(now, packet);
                if interface.is_some() {
                    return interface;
                }
                self.list(index);
                let slot = &mut self.slots[index];
                slot.queued_transmit = false;
                self.has_ended |= slot.association.is_done();
                // sending may have events of its own
                if !slot.queued_notify && slot.association.has_events() {
                    slot.queued_notify = true;
                    self.to_notify.push_back(id);
                }
            }
            self.to_transmit.pop_front();
        }
        None
    }

    /// When `handle_timeout` must be called next. Poll after `poll_transmit` has returned `None`.
    #[inline]
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        if let Some(deadline) = self.deadline {
            return deadline;
        }
        let earliest = match self.slots.as_mut_slice() {
            [] => None,
            [only] => {
                self.deadlines.forget_stale();
                only.deadline()
            }
            _ => {
                self.list_deadlines();
                self.deadlines.first()
            }
        };
        self.deadline = Some(earliest);
        earliest
    }

    /// Whether [`poll_event`](Self::poll_event) may have something to give. `false` is certain.
    #[must_use]
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.to_notify.is_empty()
    }

    /// The next event. Poll until `None` after every other call. An association that has ended can be looked at until
    /// its last event and message have been taken and the endpoint is next called.
    pub fn poll_event(&mut self) -> Option<(AssociationId, Event)> {
        while let Some(&id) = self.to_notify.front() {
            if let Some(index) = self.slot_of(id) {
                if let Some(event) = self.slots[index].association.poll_event() {
                    return Some((id, event));
                }
                self.slots[index].queued_notify = false;
                self.has_ended |= self.slots[index].association.is_done();
            }
            self.to_notify.pop_front();
        }
        None
    }

    /// Longest packet towards `destination` if that is less than `Config::mtu`: packets that are longer all the same,
    /// because their chunks were cut before this was known, are to be fragmented by IPv6 (RFC 9260 section 6.9).
    #[must_use]
    pub fn reduced_mtu(&self, destination: Ipv6Addr) -> Option<u32> {
        self.index
            .towards(destination)
            .filter_map(|id| self.association(id)?.reduced_mtu(destination))
            .min()
    }

    /// Packets that reached no association.
    #[must_use]
    pub fn counters(&self) -> EndpointCounters {
        self.counters
    }
}

impl Endpoint {
    /// Whether nothing is queued that a poll has not brought out.
    pub(super) fn is_drained(&self) -> bool {
        self.answers.is_empty() && self.to_transmit.is_empty() && self.to_notify.is_empty()
    }

    fn slot_of(&self, id: AssociationId) -> Option<usize> {
        match self.slots.as_slice() {
            [only] if only.id == id => Some(0),
            slots => slots.binary_search_by_key(&id, |s| s.id).ok(),
        }
    }

    fn insert(&mut self, association: Association) -> AssociationId {
        self.reap();
        let id = AssociationId(self.next_id);
        self.next_id += 1;
        self.slots.push(Slot {
            id,
            association: Box::new(association),
            queued_transmit: false,
            queued_notify: false,
            deadline: None,
            listed_deadline: None,
            listed_keys: None,
        });
        self.deadlines.mark_stale(id);
        if let [only, _] = self.slots.as_mut_slice() {
            // it was looked at itself until now
            only.deadline = None;
            self.deadlines.mark_stale(only.id);
        }
        self.touch(self.slots.len() - 1);
        id
    }

    /// To be called for an association that is about to be commanded: whatever it will have to send or to tell is asked for.
    fn touch(&mut self, index: usize) {
        self.queue(index, true);
    }

    /// To be called for an association that has been given something: what it has to tell is known.
    #[inline]
    fn note_change(&mut self, index: usize) {
        let tells = self.slots[index].association.has_events();
        self.queue(index, tells);
    }

    #[inline]
    fn queue(&mut self, index: usize, tells: bool) {
        self.forget_deadline(index);
        self.list(index);
        let slot = &mut self.slots[index];
        if !slot.queued_transmit {
            slot.queued_transmit = true;
            self.to_transmit.push_back(slot.id);
        }
        if tells && !slot.queued_notify {
            slot.queued_notify = true;
            self.to_notify.push_back(slot.id);
        }
    }

    /// The timers of an association may have changed.
    #[inline]
    fn forget_deadline(&mut self, index: usize) {
        self.deadline = None;
        let slot = &mut self.slots[index];
        if slot.deadline.take().is_some() {
            self.deadlines.mark_stale(slot.id);
        }
    }

    fn list_deadlines(&mut self) {
        for id in self.deadlines.take_stale() {
            if let Some(index) = self.slot_of(id) {
                let slot = &mut self.slots[index];
                let deadline = slot.deadline();
                self.deadlines.set(id, &mut slot.listed_deadline, deadline);
            }
        }
    }

    /// To be called for an association whose addresses or tags may have changed.
    #[inline]
    fn list(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        self.index
            .update(slot.id, &mut slot.listed_keys, &slot.association);
    }

    /// Whether all associations are found by what they have. For tests.
    pub(super) fn index_is_complete(&self) -> bool {
        self.index.is_of(self.associations())
    }

    /// Forgets associations that ended and have nothing left to tell.
    fn reap(&mut self) {
        if core::mem::take(&mut self.has_ended) {
            let (ended, deadlines, index) = (&mut self.ended, &mut self.deadlines, &mut self.index);
            self.slots.retain_mut(|s| {
                let done = s.association.is_done();
                if done {
                    ended.add(&s.association.counters());
                    deadlines.set(s.id, &mut s.listed_deadline, None);
                    index.update(s.id, &mut s.listed_keys, &s.association);
                }
                !done
            });
            self.deadline = None;
            self.last_slot = 0;
        }
    }

    /// Returns false if the association refuses the packet whole.
    fn deliver(&mut self, arrived: &Arrived, index: usize, sctp: &mut SctpPacket) -> bool {
        let association = &mut self.slots[index].association;
        if self.config.udp_encapsulation.is_none() {
            let taken = association.handle_packet(arrived.now, arrived.from, arrived.to, sctp);
            self.note_change(index);
            return taken;
        }
        let former = association.peer_encapsulation;
        if association.accepts_tag(sctp) {
            association.note_encapsulation(arrived.from, arrived.encapsulation);
        }
        // an ASCONF from an unknown address that is not authenticated changes nothing, not even this
        let taken = association.handle_packet(arrived.now, arrived.from, arrived.to, sctp);
        if !taken {
            association.peer_encapsulation = former;
        }
        self.note_change(index);
        taken
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
        self.answers.push_back(transmit(
            source,
            arrived.from,
            (self.port, arrived.from_port),
            self.udp_ports_to(arrived),
            verification_tag,
            SmallVec::from_buf([chunk]),
        ));
    }
}
