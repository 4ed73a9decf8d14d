//! The way down: identities become locators and identifiers.

use super::Ilnp;
use super::errors::quote_as_sent;
use crate::contract::{InterfaceId, Transmit};
use crate::ilnp::config::{Identifiers, NonceIn, Sharing};
use crate::ilnp::correspondent::{Again, Correspondent};
use crate::ilnp::flow::{Flow, is_answer, is_call, may_be_first};
use crate::ilnp::flows::QUIET;
use crate::ilnp::local::LocalLocators;
use crate::ilnp::mode::{Mode, Plain};
use crate::ilnp::nonce;
use crate::ilnp::parties::Parties;
use crate::ilnp::readdress::readdress;
use crate::ilnp::session_key::SessionKey;
use crate::reachability::Reachability;
use crate::shim::ShimEvent;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::Packet;
use segue_wire::ilnp::{Locator, Nid, Nonce};
use smallvec::SmallVec;

impl Ilnp {
    /// Sends packets that had to wait.
    pub(super) fn send_held(&mut self, now: Instant, held: impl IntoIterator<Item = Packet>) {
        for mut packet in held {
            if let Some(interface) = self.send_out(now, &mut packet) {
                self.out.send(Transmit { interface, packet });
            }
        }
    }

    /// Gives a transport's packet its way, where it lies.
    pub(super) fn send_out(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        let (source, destination) = (packet.ip.source, packet.ip.destination);
        if source != self.identity {
            return Some(self.local.interface_of(source).unwrap_or_default());
        }
        let flow = self.fragments.down(packet);
        if is_call(packet) {
            self.ilcc.note_call(now, destination, flow);
        }
        if !self.must_quote(packet)
            && let Some(interface) = self.send_as_before(now, flow, packet)
        {
            return Some(interface);
        }
        if destination.is_multicast() || destination.is_unicast_link_local() || destination.is_loopback() {
            return self.send_without_session(packet);
        }
        let key = self.session_for(now, flow, packet)?;
        let config = &self.config;
        let peer = self.ilcc.by_key_mut(key)?;
        match peer.mode() {
            Mode::Unresolved => {
                peer.look_up(now, &mut self.out);
                let packet = core::mem::replace(packet, Packet::EMPTY);
                if !peer.hold(packet, config.max_held as usize) {
                    self.out.counters.no_remote_locator += 1;
                }
                return None;
            }
            Mode::Plain(plain) => match plain.with_nonce(now, config.fallback_time) {
                None => return self.send_plain(now, key, packet),
                Some(tried) => peer.fall_back(tried),
            },
            Mode::Probing => {
                if let Some(plain) = self.may_speak_only_ipv6(now, key) {
                    let key = self.fall_back(key, plain);
                    return self.send_plain(now, key, packet);
                }
            }
            Mode::Ilnp => {
                let contact = peer.contact();
                let is_silent = contact.is_silent(now, config.silent_packets, config.silent_time);
                if is_silent || contact.is_unheard_after_quiet(now) {
                    peer.look_up(now, &mut self.out);
                }
            }
        }
        self.send_by_locators(now, key, packet)
    }

    /// Sends a packet of a session between locators of both ends.
    fn send_by_locators(
        &mut self,
        now: Instant,
        key: SessionKey,
        packet: &mut Packet,
    ) -> Option<InterfaceId> {
        let config = &self.config;
        let peer = self.ilcc.by_key_mut(key)?;
        let locals = locals_for(peer, &self.local);
        if locals.is_empty() {
            self.out.counters.no_local_locator += 1;
            return None;
        }
        let mut remotes = peer.best(now);
        if remotes.is_empty() {
            peer.look_up(now, &mut self.out);
            self.out.counters.no_remote_locator += 1;
            return None;
        }
        let unconfirmed = config
            .unconfirmed_bytes
            .filter(|_| remotes.iter().any(|r| peer.is_unconfirmed(*r)));
        if let Some(most) = unconfirmed
            && !peer.spend(
                now,
                packet.buffer_len() as u64,
                u64::from(most),
                config.active_time,
            )
        {
            remotes.retain(|r| !peer.is_unconfirmed(*r));
            if remotes.is_empty() {
                self.out.counters.unconfirmed_locator += 1;
                peer.look_up(now, &mut self.out);
                return None;
            }
        }
        let ((local, interface), remote) = share(config.sharing, &locals, &remotes, peer, packet);
        let addresses = (local.address(peer.local_nid()), remote.address(peer.nid()));
        let preference = self.local.of(addresses.0).map_or(10, |l| l.preference);
        peer.was_sent_to_at(now, remote, (local, preference), remotes.first().copied());
        let carried = match config.nonce_in {
            NonceIn::Every => true,
            NonceIn::SessionStartAndSignalling => {
                let heard_enough = peer.contact().has_heard_enough();
                peer.mode() == Mode::Probing || !heard_enough || peer.telling().is_under_way()
            }
        };
        let rule = peer.rule().unwrap_or(config.checksum.into());
        let nonce = peer.local_nonce();
        if unconfirmed.is_none() && (locals.len() * remotes.len() == 1 || config.sharing == Sharing::None) {
            peer.keep_way(now, remote, self.local.generation(), interface, addresses);
        }
        let watched = peer.reachability().and_then(Reachability::poll_timeout);
        if self.config.translate_errors {
            quote_as_sent(packet, addresses, peer.remote_nonce().map(|n| (n, rule)));
        }
        readdress(packet, addresses, carried.then_some((nonce, rule)));
        self.out.counters.ilnp_sent += 1;
        self.note_timeout_of(watched);
        Some(interface)
    }

    /// The way that the last packet took, if nothing has changed and there is nothing to think about.
    fn send_as_before(&mut self, now: Instant, flow: Flow, packet: &mut Packet) -> Option<InterfaceId> {
        let config = &self.config;
        let peer = self
            .ilcc
            .on_the_way_to(now, packet.ip.destination, flow, packet)?;
        if config.nonce_in != NonceIn::Every {
            return None;
        }
        let Again { way, nonce, rule } =
            peer.send_again(now, self.local.generation(), config.silent_packets)?;
        let rule = rule.unwrap_or(config.checksum.into());
        let watched = peer.reachability().and_then(Reachability::poll_timeout);
        readdress(packet, (way.source, way.destination), Some((nonce, rule)));
        self.out.counters.ilnp_sent += 1;
        self.note_timeout_of(watched);
        Some(way.interface)
    }

    /// The session of a packet that is sent: that of its flow, or this host's call to where it goes. A session that the
    /// peer began gets answers only: where that peer is, nobody but itself has said.
    fn session_for(&mut self, now: Instant, flow: Flow, packet: &Packet) -> Option<SessionKey> {
        let destination = packet.ip.destination;
        if let Some(peer) = self.ilcc.on_the_way_to(now, destination, flow, packet) {
            return Some(peer.key());
        }
        let may_be_first = may_be_first(packet);
        let called = self.ilcc.without_flow(destination, !may_be_first);
        if called.is_none() && is_answer(packet) {
            // to a session that had to make room: a call that begins with an answer would tell its peer nothing
            self.out.counters.no_session += 1;
            return None;
        }
        let called = called.filter(|key| !(is_call(packet) && self.is_called_otherwise(now, *key)));
        let key = called.or_else(|| self.call(now, destination))?;
        // what goes on with a connection whose session is forgotten leads nowhere yet: if its peer speaks, it is the peer's
        let leads = self
            .ilcc
            .by_key(key)
            .is_some_and(|c| c.mode() != Mode::Unresolved);
        if leads || may_be_first {
            self.ilcc.claim_for(now, key, flow, may_be_first);
        }
        Some(key)
    }

    /// Whether a call to a peer to which plain IPv6 is spoken begins a session of its own, with a nonce: now and then one does,
    /// since what the peer speaks, or the way to it lets through, need not stay so. What there is goes on beside it, with the
    /// addresses that the peer's transport knows.
    fn is_called_otherwise(&mut self, now: Instant, key: SessionKey) -> bool {
        // with another identifier of its own this host would be another to the peer
        let stable = self.config.identifiers == Identifiers::Stable;
        let Some(peer) = self.ilcc.by_key_mut(key).filter(|_| stable) else {
            return false;
        };
        let Some(tried) = peer.mode().plain().and_then(|plain| plain.with_another_call(now)) else {
            return false;
        };
        peer.fall_back(tried);
        true
    }

    /// Plain IPv6 to a peer that has not answered enough packets with a nonce. Of one that is known to speak ILNPv6 silence
    /// says nothing but that the way to it is lost (RFC 6741 section 10 is for those that do not). Of one that is heard in
    /// plain IPv6 beside this call it does, and sooner.
    fn may_speak_only_ipv6(&self, now: Instant, key: SessionKey) -> Option<Plain> {
        let config = &self.config;
        let peer = self.ilcc.by_key(key)?;
        let is_heard = self.plain_beside(peer).is_some();
        if !is_heard && config.knows_to_speak_ilnp(peer.identity()) {
            return None;
        }
        let after = config
            .fallback_after
            .map(|after| if is_heard { 1 } else { after })?;
        if !peer.contact().is_silent(now, after, config.fallback_time) {
            return None;
        }
        let remote = peer.best(now).first().copied()?;
        let (local, _) = self.local.in_use(peer.local_nid()).first().copied()?;
        let (local, remote) = (local.address(peer.local_nid()), remote.address(peer.nid()));
        Some(Plain::unanswered(now, local, remote))
    }

    /// Another session with the same peer, in which it has shown that it speaks plain IPv6.
    fn plain_beside(&self, peer: &Correspondent) -> Option<SessionKey> {
        let others = self.ilcc.of_identity(peer.identity());
        let mut others = others.filter(|c| c.key() != peer.key() && c.local_nid() == peer.local_nid());
        others.find(|c| c.is_plain()).map(Correspondent::key)
    }

    /// The peer speaks only IPv6. The session that goes on with it: the one in which it did so before this call, if there is
    /// one.
    pub(super) fn fall_back(&mut self, key: SessionKey, plain: Plain) -> SessionKey {
        let Some(peer) = self.ilcc.by_key(key) else {
            return key;
        };
        let (identity, is_known) = (peer.identity(), peer.mode().plain().is_some());
        let before = self.plain_beside(peer).filter(|_| !is_known);
        if let Some(before) = before {
            self.ilcc.merge(before, key);
        } else if let Some(peer) = self.ilcc.by_key_mut(key) {
            peer.fall_back(plain);
        }
        if !is_known {
            self.out.counters.fallbacks += 1;
            self.out.tell(ShimEvent::FellBack { peer: identity });
            self.settle_handover();
            self.find_timeout();
        }
        before.unwrap_or(key)
    }

    /// A session for a first packet to `identity`.
    fn call(&mut self, now: Instant, identity: Ipv6Addr) -> Option<SessionKey> {
        let nid = Nid::of(identity);
        let local_nid = self.identifier_for_a_call()?;
        let is_other = |c: &Correspondent| c.is_called() && c.identity() != identity;
        if self.ilcc.between(nid, local_nid).any(is_other) {
            self.out.counters.second_identity += 1;
            return None;
        }
        let known: Vec<Locator> = if Locator::of(identity) == self.config.identity_prefix {
            let peer = self.config.peers.iter().find(|p| p.nid == nid);
            peer.map(|p| p.locators.clone()).unwrap_or_default()
        } else {
            vec![Locator::of(identity)]
        };
        if local_nid != self.config.nid {
            if let Some(taken) = self.ephemeral.iter_mut().find(|(n, _)| *n == local_nid) {
                taken.1 = true;
            }
            self.fill_pool();
        }
        let key = self.add(
            now,
            Parties {
                called: true,
                identity,
                nid,
                local_nid,
            },
            None,
        );
        let peer = self.ilcc.by_key_mut(key)?;
        peer.on_locators_known(&known);
        Some(key)
    }

    /// Adds a session with this nonce of this host's or a new one, in place of another if there are too many.
    pub(super) fn add(&mut self, now: Instant, parties: Parties, nonce: Option<Nonce>) -> SessionKey {
        if self.ilcc.len() >= self.config.max_correspondents as usize {
            self.out.counters.forgotten += 1;
            if let Some(gone) = self.ilcc.forget_oldest() {
                self.retire(&gone);
            }
        }
        if self.sweep.is_none() {
            self.sweep = Some(now + self.config.idle_timeout.min(QUIET));
            self.find_timeout();
        }
        let nonce = nonce.unwrap_or_else(|| nonce::choose(self.config.nonce, &mut *self.secrets));
        let watches = self.config.detect_silence;
        self.ilcc.insert(parties.nid, |key| {
            let mut peer = Correspondent::new(key, parties, nonce, now);
            if watches {
                peer.watch();
            }
            peer
        })
    }

    /// This host's identifier, or an ephemeral one that has an address where packets would be sent from.
    fn identifier_for_a_call(&mut self) -> Option<Nid> {
        if self.config.identifiers == Identifiers::Stable {
            return Some(self.config.nid);
        }
        let here = self.local.in_use(self.config.nid).first().copied();
        let ready =
            |nid: &Nid| here.is_some_and(|(locator, _)| self.local.of(locator.address(*nid)).is_some());
        let found = self
            .ephemeral
            .iter()
            .filter(|(_, taken)| !taken)
            .map(|(nid, _)| *nid)
            .find(ready);
        if found.is_none() {
            self.out.counters.no_identifier += 1;
        }
        found
    }

    /// Plain IPv6 between the addresses that the peer's transport knows.
    fn send_plain(&mut self, now: Instant, key: SessionKey, packet: &mut Packet) -> Option<InterfaceId> {
        let peer = self.ilcc.by_key_mut(key)?;
        let plain = peer.mode().plain()?;
        let (mut local, remote) = plain.addresses();
        if self.local.of(local).is_none() {
            // flows from there are lost; those to come need not be
            let Some((locator, _)) = self.local.in_use(peer.local_nid()).first().copied() else {
                self.out.counters.no_local_locator += 1;
                return None;
            };
            local = locator.address(peer.local_nid());
        }
        peer.fall_back(plain.at(local).sent());
        peer.was_sent_to(now);
        if self.config.translate_errors {
            quote_as_sent(packet, (local, remote), None);
        }
        readdress(packet, (local, remote), None);
        self.out.counters.plain_sent += 1;
        self.local.interface_of(local)
    }

    /// To a group, or to a node on the link.
    fn send_without_session(&mut self, packet: &mut Packet) -> Option<InterfaceId> {
        let Some((locator, interface)) = self.local.in_use(self.config.nid).first().copied() else {
            self.out.counters.no_local_locator += 1;
            return None;
        };
        let addresses = (locator.address(self.config.nid), packet.ip.destination);
        readdress(packet, addresses, None);
        Some(interface)
    }
}

/// This host's locators for packets to a peer: those in use, or where the peer called and expects answers from.
fn locals_for(peer: &Correspondent, local: &LocalLocators) -> SmallVec<[(Locator, InterfaceId); 4]> {
    if let Some(called_at) = peer.called_at()
        && let Some(at) = local.of(called_at.locator().address(peer.local_nid()))
        && called_at.answers(at.state)
    {
        return [(at.locator, at.interface)].into_iter().collect();
    }
    local.in_use(peer.local_nid())
}

/// The locators of a packet. The pairs are gone through in an order in which neither end's locators lag behind.
fn share(
    sharing: Sharing,
    locals: &SmallVec<[(Locator, InterfaceId); 4]>,
    remotes: &SmallVec<[Locator; 4]>,
    peer: &mut Correspondent,
    packet: &Packet,
) -> ((Locator, InterfaceId), Locator) {
    let pairs = locals.len() * remotes.len();
    let n = match sharing {
        Sharing::None => 0,
        _ if pairs == 1 => 0,
        Sharing::PerPacket => peer.next_turn() as usize % pairs,
        Sharing::PerFlow => (Flow::down(packet).hash() % pairs as u64) as usize,
    };
    (locals[n % locals.len()], remotes[n / locals.len()])
}
