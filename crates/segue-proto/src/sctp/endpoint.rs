//! All associations of a host on one local port: which of them a packet is for, and what to do with one that is for
//! none (RFC 9260 sections 5.1, 5.2, 8.4).

use super::association::{Association, Setup, State};
use super::cookie::{Cookie, CookieError, CookieKey};
use super::encapsulation::UDP_HEADER;
use super::handshake::{PeerParameters, init_ack, is_acceptable};
use super::transmit::transmit;
use super::{AssociationId, Config, EndpointCounters, Event};
use crate::contract::{InterfaceId, LocalAddress, Transmit};
use crate::random::SecretRng;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::sctp::{Chunk, ErrorCause, Init, SctpPacket};
use segue_wire::{Packet, Payload, Tsn};
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
    cookie_key: CookieKey,
    local: Vec<LocalAddress>,
    listening: bool,
    /// By ascending id.
    slots: Vec<Slot>,
    next_id: u32,
    /// Slot that the last packet was for: most packets are for the same one again.
    last_slot: usize,
    /// Answers to packets out of the blue.
    answers: VecDeque<Transmit>,
    /// Associations touched since they were last drained.
    to_transmit: VecDeque<AssociationId>,
    to_notify: VecDeque<AssociationId>,
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
        let mut cookie_key = [0; 32];
        secrets.fill(&mut cookie_key);
        Self {
            config,
            port,
            secrets,
            cookie_key,
            local: Vec::new(),
            listening: false,
            slots: Vec::new(),
            next_id: 0,
            last_slot: 0,
            answers: VecDeque::new(),
            to_transmit: VecDeque::new(),
            to_notify: VecDeque::new(),
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
    /// peer address.
    pub fn connect(&mut self, now: Instant, peer: &[Ipv6Addr], peer_port: u16) -> Option<AssociationId> {
        let route = *self.local.first()?;
        if peer.is_empty() {
            return None;
        }
        let (local_tag, local_initial_tsn) = self.new_tag_and_tsn();
        let setup = Setup {
            config: &self.config,
            state: State::CookieWait,
            local_port: self.port,
            peer_port,
            local_tag,
            local_initial_tsn,
            local: &self.local,
            route,
            peer_addresses: peer,
            // section 5.4: addresses that the upper layer gives are confirmed
            confirmed: peer.len(),
        };
        let mut association = Association::new(now, &setup, &mut *self.secrets);
        association.start(now);
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

    /// All associations.
    pub fn associations(&self) -> impl Iterator<Item = (AssociationId, &Association)> {
        self.slots.iter().map(|s| (s.id, &*s.association))
    }

    /// Takes a packet that arrived over `interface`; anything but SCTP is ignored.
    pub fn handle_packet(&mut self, now: Instant, interface: InterfaceId, mut packet: Packet) {
        let (from, to) = (packet.ip.source, packet.ip.destination);
        // worked on in place: a packet is some 170 bytes, and moving it about would cost more than reading it
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
        match &sctp.chunks[0] {
            Chunk::Init(init) => self.on_init(&arrived, init),
            Chunk::CookieEcho(_) => self.on_cookie_echo(&arrived, sctp),
            first => match self.find(&arrived, sctp) {
                // section 8.5.1: it is for an association that this end has left behind
                Some(index)
                    if matches!(first, Chunk::ShutdownAck)
                        && self.slots[index].association.is_in_handshake() =>
                {
                    self.on_out_of_the_blue(&arrived, sctp);
                }
                Some(index) => self.deliver(&arrived, index, sctp),
                None => self.on_out_of_the_blue(&arrived, sctp),
            },
        }
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.reap();
        for index in 0..self.slots.len() {
            if self.slots[index].deadline().is_some_and(|at| at <= now) {
                self.slots[index].association.handle_timeout(now);
                self.touch(index);
            }
        }
    }

    /// The next packet to send. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        while let Some(&id) = self.to_transmit.front() {
            if let Some(index) = self.slot_of(id) {
                // sending starts timers
                self.slots[index].deadline = None;
                self.deadline = None;
                if let Some(transmit) = self.slots[index].association.poll_transmit(now) {
                    return Some(transmit);
                }
                self.slots[index].queued_transmit = false;
            }
            self.to_transmit.pop_front();
        }
        None
    }

    /// When `handle_timeout` must be called next. Poll after `poll_transmit` has returned `None`.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        if self.deadline.is_none() {
            self.deadline = Some(self.slots.iter_mut().filter_map(Slot::deadline).min());
        }
        self.deadline.flatten()
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
            }
            self.to_notify.pop_front();
        }
        None
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
        });
        self.touch(self.slots.len() - 1);
        id
    }

    fn touch(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.deadline = None;
        self.deadline = None;
        if !slot.queued_transmit {
            slot.queued_transmit = true;
            self.to_transmit.push_back(slot.id);
        }
        if !slot.queued_notify {
            slot.queued_notify = true;
            self.to_notify.push_back(slot.id);
        }
    }

    /// Forgets associations that ended and have nothing left to tell.
    fn reap(&mut self) {
        if self.slots.iter().any(|s| s.association.is_done()) {
            self.slots.retain(|s| !s.association.is_done());
            self.deadline = None;
            self.last_slot = 0;
        }
    }

    fn deliver(&mut self, arrived: &Arrived, index: usize, sctp: &mut SctpPacket) {
        let association = &mut self.slots[index].association;
        if association.accepts_tag(sctp) {
            association.note_encapsulation(arrived.from, arrived.encapsulation);
        }
        association.handle_packet(arrived.now, arrived.from, arrived.to, sctp);
        self.touch(index);
    }

    /// The association of a packet: by the peer's address and port; an ASCONF from an address that nobody knows yet, by
    /// the address it names (RFC 5061 sections 5.2, D1 and D2, and 5.3.2). A peer may claim another's address, in an INIT
    /// or by ASCONF: of the associations that have the address, the one whose tag the packet carries.
    ///
    /// An ASCONF is found by its tag too. It may name an address that this end has deleted on its behalf: when the answer
    /// was lost with the address it went to, the same chunk comes again from yet another one.
    fn find(&mut self, arrived: &Arrived, sctp: &SctpPacket) -> Option<usize> {
        let port = arrived.from_port;
        if let Some(index) = self.find_by(arrived.from, port, |a| a.accepts_tag(sctp)) {
            return Some(index);
        }
        let named = sctp.chunks.iter().find_map(|c| match c {
            Chunk::Asconf(asconf) => Some(asconf.address),
            _ => None,
        });
        if let Some(named) = named {
            let by_tag = |s: &Slot| {
                let a = &s.association;
                a.peer_port == port && a.state != State::Closed && a.accepts_tag(sctp)
            };
            if let Some(index) = self
                .find_by(named, port, |a| a.accepts_tag(sctp))
                .or_else(|| self.slots.iter().position(by_tag))
            {
                return Some(index);
            }
        }
        self.find_by(arrived.from, port, |_| true)
            .or_else(|| self.find_by(named?, port, |_| true))
    }

    /// An association with a peer at `address` and `port` that `which` holds for.
    fn find_by(
        &mut self,
        address: Ipv6Addr,
        port: u16,
        which: impl Fn(&Association) -> bool,
    ) -> Option<usize> {
        let matches = |slot: &Slot| {
            let a = &slot.association;
            a.peer_port == port && a.state != State::Closed && a.has_peer_address(address) && which(a)
        };
        if self.slots.get(self.last_slot).is_some_and(matches) {
            return Some(self.last_slot);
        }
        self.last_slot = self.slots.iter().position(matches)?;
        Some(self.last_slot)
    }

    fn new_tag_and_tsn(&mut self) -> (u32, Tsn) {
        let tag = loop {
            let tag = self.secrets.secret_u32();
            if tag != 0 {
                break tag;
            }
        };
        (tag, Tsn(self.secrets.secret_u32()))
    }

    /// Section 5.1, B and 5.2: an INIT is answered without keeping anything.
    fn on_init(&mut self, arrived: &Arrived, init: &Init) {
        // section 3.3.2: an Initiate Tag of 0 is not even answered
        if arrived.tag != 0 {
            self.counters.refused.bad_init_tag += 1;
            return;
        }
        if init.initiate_tag == 0 {
            self.counters.refused.bad_init += 1;
            return;
        }
        let (from, port) = (arrived.from, arrived.from_port);
        // section 9.2: our SHUTDOWN ACK, or the answer to it, was lost
        if let Some(index) = self.find_by(from, port, |a| a.state == State::ShutdownAckSent) {
            self.slots[index].association.send_shutdown_ack(arrived.now);
            self.touch(index);
            return;
        }
        if !self.listening && self.find_by(from, port, |_| true).is_none() {
            self.counters.out_of_the_blue += 1;
            self.answer(
                arrived,
                init.initiate_tag,
                Chunk::Abort {
                    reflected_tag: false,
                    causes: Vec::new(),
                },
            );
            return;
        }
        let peer = PeerParameters::read(&init.parameters);
        let cause = if !is_acceptable(init) {
            Some(ErrorCause::InvalidMandatoryParameter)
        } else {
            peer.host_name.map(ErrorCause::UnresolvableAddress)
        };
        if let Some(cause) = cause {
            self.counters.refused.bad_init += 1;
            self.answer(
                arrived,
                init.initiate_tag,
                Chunk::Abort {
                    reflected_tag: false,
                    causes: vec![cause],
                },
            );
            return;
        }
        let in_handshake = self
            .find_by(from, port, Association::is_in_handshake)
            .map(|i| &self.slots[i].association);
        let (local_tag, local_initial_tsn) = match in_handshake {
            // section 5.2.1: both ends sent INIT; the answer repeats what our own INIT said
            Some(association) => (association.local_tag, association.outbound.next_tsn()),
            None => self.new_tag_and_tsn(),
        };
        let mut peer_addresses = vec![arrived.from];
        for address in peer.addresses {
            if address != arrived.from && peer_addresses.len() < super::path::MAX_DESTINATIONS {
                peer_addresses.push(address);
            }
        }
        let cookie = Cookie {
            created: arrived.now,
            // section 3.3.2.4: the increment asked for is granted, up to the configured life once more
            life: self.config.valid_cookie_life
                + Duration::from_millis(u64::from(peer.preservative_ms))
                    .clamp(Duration::ZERO, self.config.valid_cookie_life),
            local_tag,
            peer_tag: init.initiate_tag,
            local_initial_tsn,
            peer_initial_tsn: init.initial_tsn,
            peer_rwnd: init.a_rwnd,
            outbound_streams: self.config.outbound_streams.min(init.inbound_streams),
            inbound_streams: self.config.max_inbound_streams.min(init.outbound_streams),
            local_port: self.port,
            peer_port: arrived.from_port,
            peer_parameters: peer.extensions,
            local_address: arrived.to,
            peer_addresses,
        };
        let sealed = cookie.seal(&self.cookie_key);
        let ack = init_ack(&self.config, &self.local, &cookie, sealed, peer.unrecognized);
        self.counters.inits_answered += 1;
        self.answer(arrived, init.initiate_tag, Chunk::InitAck(Box::new(ack)));
    }

    /// Section 5.1, D and 5.2.4: the cookie comes back.
    fn on_cookie_echo(&mut self, arrived: &Arrived, sctp: &mut SctpPacket) {
        let Chunk::CookieEcho(bytes) = sctp.chunks.remove(0) else {
            return;
        };
        let cookie = match Cookie::open(&bytes, &self.cookie_key, arrived.now) {
            Ok(cookie) => cookie,
            Err(CookieError::Forged) => {
                self.counters.refused.forged_cookies += 1;
                return;
            }
            // section 5.2.4, step 3: a cookie of the association that exists is good however old
            Err(CookieError::Stale(cookie, _)) if self.is_of_existing(&cookie) => *cookie,
            Err(CookieError::Stale(cookie, excess)) => {
                self.counters.refused.stale_cookies += 1;
                let staleness = u32::try_from(excess.as_nanos() / 1000).unwrap_or(u32::MAX);
                let error = Chunk::Error(vec![ErrorCause::StaleCookie(staleness)]);
                self.answer(arrived, cookie.peer_tag, error);
                return;
            }
        };
        if cookie.local_tag != arrived.tag
            || cookie.peer_port != arrived.from_port
            || cookie.local_port != self.port
        {
            self.counters.refused.mismatched_cookies += 1;
            return;
        }
        // an address that another peer claims and has not confirmed is not yet its own
        let (from, port) = (arrived.from, arrived.from_port);
        let existing = self
            .find_tags(&cookie)
            .or_else(|| self.find_by(from, port, |a| a.has_confirmed_address(from)));
        let index = match existing {
            Some(index) => {
                let association = &mut self.slots[index].association;
                let same_local = association.local_tag == cookie.local_tag;
                if same_local && association.is_in_handshake() {
                    // rows B and D: both ends opened at once, or the COOKIE ECHOs crossed
                    association.adopt_cookie(arrived.now, &cookie);
                } else if !(same_local && association.peer_tag == cookie.peer_tag) {
                    // rows A and C: a restart is not supported yet, a late cookie is dropped
                    self.counters.refused.unexpected_cookies += 1;
                    return;
                }
                index
            }
            None if self.listening => {
                // the address that the peer has reached is the one that surely reaches the peer
                let reached = |l: &&LocalAddress| l.address == cookie.local_address;
                let Some(&route) = self.local.iter().find(reached).or(self.local.first()) else {
                    self.counters.refused.no_local_address += 1;
                    return;
                };
                let association = Association::from_cookie(
                    arrived.now,
                    &self.config,
                    &cookie,
                    &self.local,
                    route,
                    &mut *self.secrets,
                );
                let id = self.insert(association);
                let Some(index) = self.slot_of(id) else { return };
                let association = &mut self.slots[index].association;
                association.start_encapsulation(arrived.encapsulation);
                index
            }
            None => {
                self.counters.out_of_the_blue += 1;
                return;
            }
        };
        let association = &mut self.slots[index].association;
        association.note_encapsulation(arrived.from, arrived.encapsulation);
        association.queue_cookie_ack(arrived.from);
        if sctp.chunks.is_empty() {
            self.touch(index);
        } else {
            self.deliver(arrived, index, sctp);
        }
    }

    fn is_of_existing(&self, cookie: &Cookie) -> bool {
        self.find_tags(cookie)
            .is_some_and(|index| self.slots[index].association.peer_tag == cookie.peer_tag)
    }

    /// The association that a cookie has made, or completes: by our tag, from whatever address it comes.
    fn find_tags(&self, cookie: &Cookie) -> Option<usize> {
        self.slots.iter().map(|s| &s.association).position(|a| {
            a.state != State::Closed && a.local_tag == cookie.local_tag && a.peer_port == cookie.peer_port
        })
    }

    /// Whether a packet carries the tag of an association with its port: it comes from an address that its peer has
    /// deleted, overtaken by the ASCONF that did so (RFC 5061 section 5.3), or is about to add.
    fn is_from_foreign_address(&self, arrived: &Arrived, sctp: &SctpPacket) -> bool {
        self.slots.iter().map(|s| &s.association).any(|a| {
            a.state != State::Closed
                && a.peer_port == arrived.from_port
                && !a.has_peer_address(arrived.from)
                && a.accepts_tag(sctp)
        })
    }

    /// Section 8.4. A packet whose association is known all the same, by its tag, is dropped: the ABORT that answers
    /// what is out of the blue reflects the tag and would end the association at the peer, wherever it arrives from.
    fn on_out_of_the_blue(&mut self, arrived: &Arrived, sctp: &SctpPacket) {
        if self.is_from_foreign_address(arrived, sctp) {
            self.counters.refused.foreign_address += 1;
            return;
        }
        self.counters.out_of_the_blue += 1;
        let silent = sctp.chunks.iter().any(|c| match c {
            Chunk::Abort { .. } | Chunk::ShutdownComplete { .. } | Chunk::CookieAck => true,
            Chunk::Error(causes) => causes.iter().any(|c| matches!(c, ErrorCause::StaleCookie(_))),
            _ => false,
        });
        if silent {
            return;
        }
        let answer = if matches!(sctp.chunks[0], Chunk::ShutdownAck) {
            Chunk::ShutdownComplete { reflected_tag: true }
        } else {
            Chunk::Abort {
                reflected_tag: true,
                causes: Vec::new(),
            }
        };
        self.answer(arrived, arrived.tag, answer);
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
