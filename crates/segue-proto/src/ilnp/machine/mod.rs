//! The machine: what it consists of, and what the host does with it. `inbound` and `errors` are what arrives, `outbound` what
//! is sent, `locator_update` what peers are told and tell, and whether that gets through.

mod errors;
mod inbound;
mod locator_update;
mod outbound;

use super::config::{ChecksumRule, Config, Identifiers, NonceIn};
use super::correspondent::Correspondent;
use super::counters::Counters;
use super::direct::{Direct, Past};
use super::flow::Flow;
use super::fragments::Fragments;
use super::handover::Handover;
use super::local::{Advertised, LocalLocator, LocalLocators};
use super::mode::Mode;
use super::outbox::Outbox;
use super::session_key::SessionKey;
use super::sessions::{Forgotten, Ilcc};
use super::signalling::send_anew;
use crate::address::AddressEvent;
use crate::contract::{InterfaceId, LinkEvent, LocalAddress, Transmit};
use crate::random::SecretRng;
use crate::reachability::Reachability;
use crate::shim::{Count, Shim, ShimEvent};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::ilnp::{Locator, Nid, Nonce};
use segue_wire::{Packet, PseudoRule};
use smallvec::SmallVec;

/// ILNPv6 on a host. See the [module](super).
pub struct Ilnp {
    config: Config,
    secrets: Box<dyn SecretRng>,
    identity: Ipv6Addr,
    /// The identifiers of this host: its own, and ephemeral ones with whether they are a session's.
    ephemeral: Vec<(Nid, bool)>,
    local: LocalLocators,
    ilcc: Ilcc,
    /// The locators that the directory was last told.
    in_directory: SmallVec<[Advertised; 4]>,
    handover: Option<Handover>,
    fragments: Fragments,
    /// When the cache is next looked through for those that were not used for long.
    sweep: Option<Instant>,
    timeout: Option<Instant>,
    out: Outbox,
}

impl core::fmt::Debug for Ilnp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ilnp")
            .field("identity", &self.identity)
            .field("local", &self.local)
            .field("ilcc", &self.ilcc)
            .finish_non_exhaustive()
    }
}

impl Ilnp {
    /// A host without locators. `secrets` makes nonces and ephemeral identifiers.
    ///
    /// # Errors
    /// What is wrong with the configuration, in a line that names the key.
    pub fn new(config: Config, secrets: Box<dyn SecretRng>) -> Result<Self, String> {
        config.check()?;
        let mut shim = Self {
            identity: config.identity_prefix.address(config.nid),
            config,
            secrets,
            ephemeral: Vec::new(),
            local: LocalLocators::default(),
            ilcc: Ilcc::default(),
            in_directory: SmallVec::new(),
            handover: None,
            fragments: Fragments::default(),
            sweep: None,
            timeout: None,
            out: Outbox::default(),
        };
        shim.fill_pool();
        Ok(shim)
    }

    /// The node identifier with which interfaces form their addresses.
    #[must_use]
    pub fn nid(&self) -> Nid {
        self.config.nid
    }

    /// What the directory is to have: the locators of this host with their preferences, the best first, for L64 records
    /// (RFC 6742 section 2.3).
    #[must_use]
    pub fn advertised(&self) -> SmallVec<[Advertised; 4]> {
        self.local.advertised(self.config.nid)
    }

    /// This host's locators and what may be done with them.
    pub fn locators(&self) -> impl Iterator<Item = &LocalLocator> {
        self.local.all()
    }

    /// The sessions in the cache.
    pub fn correspondents(&self) -> impl Iterator<Item = &Correspondent> {
        self.ilcc.iter()
    }

    /// Whether a packet is of a session by what stands in its headers: it has the peer's nonce; or the peer has not been heard yet, and
    /// this host has called it there. What is not begins a session, or is dropped.
    #[must_use]
    pub fn knows(&self, source: Ipv6Addr, destination: Ipv6Addr, nonce: Nonce) -> bool {
        let mut sessions = self.ilcc.between(Nid::of(source), Nid::of(destination));
        sessions.any(|c| match c.remote_nonce() {
            Some(known) => known == nonce,
            None => c.is_called() && c.is_at(Locator::of(source)),
        })
    }

    /// Of the session with `nid` at this host's `local_nid` in which the peer's packets have this nonce, whether this host called;
    /// nothing if there is none.
    #[must_use]
    pub fn session_called(&self, nid: Nid, local_nid: Nid, nonce: Nonce) -> Option<bool> {
        let mut sessions = self.ilcc.between(nid, local_nid);
        let session = sessions.find(|c| c.remote_nonce() == Some(nonce))?;
        Some(session.is_called())
    }

    /// The same of the session to which a flow with `peer` belongs, by protocol, this host's port and the peer's. Nothing if there is
    /// something to think about.
    #[must_use]
    pub fn direct(
        &self,
        now: Instant,
        peer: Ipv6Addr,
        (protocol, own, other): (u8, u16, u16),
    ) -> Option<Direct> {
        let flow = Flow::of_ports(protocol, own, other);
        self.direct_of(now, self.ilcc.owner_of(peer, flow)?)
    }

    /// The same of a session.
    #[must_use]
    pub fn direct_of(&self, now: Instant, session: SessionKey) -> Option<Direct> {
        let config = &self.config;
        let peer = self.ilcc.by_key(session)?;
        let plain_checksums =
            config.checksum == ChecksumRule::Ipv6 && peer.rule() != Some(PseudoRule::Identifiers);
        let settled =
            peer.mode() == Mode::Ilnp && peer.called_at().is_none() && !peer.telling().has_given_up();
        if config.nonce_in != NonceIn::Every || !plain_checksums || !settled {
            return None;
        }
        let way = peer.way_again(now, self.local.generation(), config.silent_packets)?;
        Some(Direct {
            session,
            peer: peer.identity(),
            interface: way.interface,
            here: way.source,
            there: way.destination,
            nonce: peer.local_nonce(),
            peers_nonce: peer.remote_nonce()?,
        })
    }

    /// Packets of a session were carried past the machine since the last call, and these flows of it are in use.
    pub fn note_carried(
        &mut self,
        now: Instant,
        direct: &Direct,
        past: Past,
        flows: impl Iterator<Item = (u8, u16, u16)>,
    ) {
        let Some(peer) = self.ilcc.by_key_mut(direct.session) else {
            return;
        };
        let there = Locator::of(direct.there);
        let unanswered = past.sent.filter(|at| Some(*at) > past.heard);
        if let Some(at) = past.sent.filter(|_| unanswered.is_none()) {
            peer.was_sent_past(at, there);
        }
        if let Some(at) = past.heard {
            peer.was_heard_at(at, there);
        }
        if let Some(at) = unanswered {
            peer.was_sent_past(at, there);
        }
        let watched = peer.reachability().and_then(Reachability::poll_timeout);
        let flows = flows.map(|(protocol, own, other)| Flow::of_ports(protocol, own, other));
        self.ilcc.refresh(now, direct.session, direct.peer, flows);
        self.note_timeout_of(watched);
    }

    /// The host would rather be at `interface` from now on: its locators, as far as they can be used, are chosen before all others
    /// until another comes, or with [`Trigger::Lost`](super::Trigger::Lost) until they are lost.
    pub fn prefer(&mut self, now: Instant, interface: InterfaceId) {
        self.local.prefer(interface, &self.config);
        self.locators_changed(now);
    }

    /// Everything counted.
    #[must_use]
    pub fn counted(&self) -> Counters {
        self.out.counters
    }

    /// Every identifier that is this host's.
    pub(super) fn nids(&self) -> SmallVec<[Nid; 4]> {
        let ephemeral = self.ephemeral.iter().map(|(nid, _)| *nid);
        [self.config.nid].into_iter().chain(ephemeral).collect()
    }

    /// New ephemeral identifiers in place of those that sessions have taken, with addresses at every locator.
    fn fill_pool(&mut self) {
        if self.config.identifiers != Identifiers::Ephemeral {
            return;
        }
        while self.ephemeral.iter().filter(|(_, taken)| !taken).count() < self.config.ephemeral_pool as usize
        {
            // RFC 6741 section 2.1: not unique worldwide, and not a group
            let nid = Nid(self.secrets.secret_u64() & !(0x3 << 56));
            if nid == Nid(0) || self.nids().contains(&nid) {
                continue;
            }
            self.ephemeral.push((nid, false));
            self.form_addresses(nid);
        }
    }

    fn form_addresses(&mut self, nid: Nid) {
        for l in self.local.all() {
            self.out.tell(ShimEvent::FormAddress(LocalAddress {
                interface: l.interface,
                address: l.locator.address(nid),
            }));
        }
    }

    /// A session is forgotten: its identifier is no longer used, and what waited for it will not be sent.
    fn retire(&mut self, gone: &Forgotten) {
        self.out.counters.not_found += gone.held as u64;
        let nid = gone.local_nid;
        if nid != self.config.nid && !self.ilcc.iter().any(|c| c.local_nid() == nid) {
            self.ephemeral.retain(|(n, _)| *n != nid);
            for l in self.local.retire(nid) {
                self.out.tell(ShimEvent::WithdrawAddress(l));
            }
        }
        self.settle_handover();
    }

    /// The set of locators may have changed.
    fn locators_changed(&mut self, now: Instant) {
        self.tell_peers(now);
        self.find_timeout();
    }

    /// The timeout is no later than that of a way that a packet has just taken.
    #[inline]
    fn note_timeout_of(&mut self, way: Option<Instant>) {
        if let Some(at) = way {
            self.timeout = Some(self.timeout.map_or(at, |timeout| timeout.min(at)));
        }
    }

    fn find_timeout(&mut self) {
        let peers = self.ilcc.iter().map(|c| c.telling().timeout());
        let ways = self
            .ilcc
            .iter()
            .map(|c| c.reachability().and_then(Reachability::poll_timeout));
        self.timeout = peers
            .chain(ways)
            .chain([
                self.sweep,
                self.local.starves_at(&self.config),
                self.local.recovers_at(),
            ])
            .flatten()
            .min();
    }

    /// What the directory says of where the peer of a session is.
    fn found(&mut self, now: Instant, key: SessionKey, usable: &[Advertised]) {
        let Some(entry) = self.ilcc.by_key_mut(key) else {
            return;
        };
        if usable.is_empty() {
            self.out.counters.not_found += entry.on_not_found() as u64;
            return;
        }
        if !entry.on_found(now, &self.config, usable) {
            return;
        }
        entry.route_changed(now, &mut self.out);
        send_anew(now, entry, &self.local, &self.config, &mut self.out);
        let gave_up = entry.telling().has_given_up();
        let held = entry.take_held();
        if gave_up {
            self.tell_peer(now, key);
        }
        self.send_held(now, held);
    }

    fn forget_idle(&mut self, now: Instant) {
        if self.sweep.is_none_or(|at| at > now) {
            return;
        }
        let idle = self.config.idle_timeout;
        for gone in self.ilcc.forget_idle(now, idle) {
            self.retire(&gone);
        }
        self.sweep = self.ilcc.idle_at(idle);
    }
}

impl Shim for Ilnp {
    fn identity(&self) -> Ipv6Addr {
        self.identity
    }

    fn inbound_in_place(&mut self, now: Instant, _interface: InterfaceId, packet: &mut Packet) -> bool {
        self.take_in(now, packet)
    }

    fn outbound_in_place(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        self.send_out(now, packet)
    }

    fn handle_address(&mut self, now: Instant, event: &AddressEvent) {
        match event {
            AddressEvent::Ready(local) => {
                let nids = self.nids();
                if self.local.ready(now, *local, &nids, &self.config) {
                    let locator = Locator::of(local.address);
                    let here = Nid::of(local.address);
                    for nid in nids.into_iter().filter(|n| *n != here && *n != self.config.nid) {
                        self.out.tell(ShimEvent::FormAddress(LocalAddress {
                            interface: local.interface,
                            address: locator.address(nid),
                        }));
                    }
                }
            }
            AddressEvent::Lost(local) | AddressEvent::Expired(local) => self.local.lost(*local, &self.config),
            AddressEvent::RouterHeard { interface, .. } => {
                self.local.heard(now, *interface, &self.config);
            }
            AddressEvent::Deprecated(local) => self.local.deprecated(*local, &self.config),
            AddressEvent::Refused(_) => return,
        }
        self.locators_changed(now);
    }

    fn handle_link(&mut self, _now: Instant, _event: &LinkEvent) {}

    fn handle_found(&mut self, now: Instant, peer: Ipv6Addr, addresses: &[Ipv6Addr]) {
        let nid = Nid::of(peer);
        let found: Vec<Advertised> = addresses
            .iter()
            .filter(|a| Nid::of(**a) == nid)
            .map(|a| (Locator::of(*a), 10))
            .collect();
        self.out.counters.bad_look_up += (addresses.len() - found.len()) as u64;
        self.handle_locators(now, peer, &found);
    }

    fn handle_locators(&mut self, now: Instant, peer: Ipv6Addr, found: &[Advertised]) {
        let asked = self
            .ilcc
            .of_identity(peer)
            .filter(|c| c.is_called() || c.is_asked());
        let asked: SmallVec<[SessionKey; 2]> = asked.map(Correspondent::key).collect();
        if asked.is_empty() {
            return;
        }
        let mut usable: Vec<Advertised> = Vec::new();
        for &(locator, preference) in found {
            if locator.is_routable() && locator != self.config.identity_prefix {
                usable.push((locator, preference));
            } else {
                self.out.counters.bad_look_up += 1;
            }
        }
        for key in asked {
            self.found(now, key, &usable);
        }
        self.find_timeout();
    }

    fn directory_entry(&self) -> Option<(Nid, Vec<Advertised>)> {
        Some((self.config.nid, self.advertised().to_vec()))
    }

    fn locations(&self) -> Vec<Ipv6Addr> {
        let advertised = self.advertised();
        advertised
            .iter()
            .map(|(locator, _)| locator.address(self.config.nid))
            .collect()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.timeout.is_none_or(|at| at > now) {
            return;
        }
        self.out.counters.locators_stale += self.local.starve(now, &self.config);
        self.local.recover(now, &self.config);
        self.look_for_silence(now);
        self.tell_peers(now);
        self.update_timeout(now);
        self.forget_idle(now);
        self.find_timeout();
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Transmit> {
        self.out.poll_transmit()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timeout
    }

    fn poll_event(&mut self) -> Option<ShimEvent> {
        self.out.poll_event()
    }

    fn overhead(&self, peer: Ipv6Addr) -> u32 {
        match self.ilcc.called(peer) {
            Some(peer) if peer.is_plain() => 0,
            _ => self.config.nonce_overhead(),
        }
    }

    fn counters(&self) -> Vec<Count> {
        self.out.counters.list()
    }
}
