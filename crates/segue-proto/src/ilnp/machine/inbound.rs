//! The way up: locators and identifiers become identities, if the nonce is right.
//! What takes a packet says whether it goes up.

use super::Ilnp;
use crate::ilnp::config::NonceIn;
use crate::ilnp::correspondent::Correspondent;
use crate::ilnp::flow::{Flow, answers_call, is_call, may_be_first};
use crate::ilnp::local::LocatorState;
use crate::ilnp::mode::Mode;
use crate::ilnp::nonce::{self, Taken};
use crate::ilnp::parties::Parties;
use crate::ilnp::readdress::{adjust_to_addresses, is_fragment, sum_in_bytes};
use crate::ilnp::session_key::SessionKey;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::checksum::PseudoHeader;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{Locator, LocatorUpdate, Nid, Nonce};
use segue_wire::{Packet, Payload, PseudoRule};

impl Ilnp {
    /// Takes a packet that arrived: whether it goes up.
    pub(super) fn take_in(&mut self, now: Instant, packet: &mut Packet) -> bool {
        let destination = packet.ip.destination;
        if packet.ilnp_nonce().is_some() {
            let Some(state) = self.local.of(destination).map(|l| l.state) else {
                if destination == self.identity {
                    self.out.counters.identity_on_wire += 1;
                    return false;
                }
                return true;
            };
            let old = sum_in_bytes(packet);
            match nonce::take(packet) {
                Taken::One(nonce, rule) => {
                    return self.take_with_nonce(now, packet, state, nonce, rule, old);
                }
                _ => self.out.counters.several_nonces += 1,
            }
            return false;
        }
        match &packet.payload {
            Payload::Icmpv6(Icmpv6::LocatorUpdate(_)) => {
                self.out.counters.lu_missing_nonce += 1;
                return false;
            }
            Payload::Icmpv6(message) if message.is_error() => return self.take_error(now, packet),
            _ => {}
        }
        self.take_without_nonce(now, packet)
    }

    /// A packet whose nonce has been taken out; its checksum is over `old`.
    fn take_with_nonce(
        &mut self,
        now: Instant,
        packet: &mut Packet,
        state: LocatorState,
        nonce: Nonce,
        rule: PseudoRule,
        old: Option<PseudoHeader>,
    ) -> bool {
        let (source, destination) = (packet.ip.source, packet.ip.destination);
        let (nid, local_nid) = (Nid::of(source), Nid::of(destination));
        // an identity is never on the wire
        if Locator::of(source) == self.config.identity_prefix {
            self.out.counters.bad_source += 1;
            return false;
        }
        let known = self.ilcc.by_nonce(nid, local_nid, nonce);
        // who calls may have looked this host up before it moved, and can be told where it is once the call is taken
        let taken = state != LocatorState::Withdrawn
            || match known.and_then(|key| self.ilcc.by_key_mut(key)) {
                Some(peer) => peer.has_called_where_this_host_had_left(Locator::of(destination)),
                None => may_be_first(packet) && self.ilcc.owner(nid, Flow::up(packet)).is_none(),
            };
        if !taken {
            self.out.counters.stale_locator += 1;
            if let Some(key) = known {
                self.tell_again(now, key);
                self.find_timeout();
            }
            return false;
        }
        if let Payload::Icmpv6(Icmpv6::LocatorUpdate(message)) = &packet.payload {
            let message = message.clone();
            self.take_locator_update(now, known, source, local_nid, message);
            return false;
        }
        let flow = self.fragments.up(packet);
        let anew = self.begun_anew(now, packet, nonce, flow);
        let session = anew.or_else(|| self.session_of(now, packet, nonce, flow));
        let Some(key) = session else {
            return false;
        };
        let Some(peer) = self.ilcc.by_key_mut(key) else {
            return false;
        };
        let rule = (packet.has_pseudo_rule() && !is_fragment(packet)).then_some(rule);
        let tell = peer.on_packet(now, Locator::of(source), nonce, rule);
        let identity = peer.identity();
        let held = peer.take_held();
        self.out.counters.ilnp_received += 1;
        if tell {
            self.tell_peer(now, key);
            self.find_timeout();
        }
        self.send_held(now, held);
        self.give_identities(packet, identity, old);
        if self.config.translate_errors {
            self.read_quotation(key, packet);
        }
        true
    }

    /// An update or an acknowledgement, of the session `known` by its nonce.
    fn take_locator_update(
        &mut self,
        now: Instant,
        known: Option<SessionKey>,
        source: Ipv6Addr,
        local_nid: Nid,
        message: LocatorUpdate,
    ) {
        let Some(key) = known else {
            let counters = &mut self.out.counters;
            let mut sessions = self.ilcc.between(Nid::of(source), local_nid);
            if sessions.any(Correspondent::is_plain) {
                counters.unexpected_nonce += 1;
            } else if self
                .ilcc
                .between(Nid::of(source), local_nid)
                .any(|c| c.remote_nonce().is_some())
            {
                counters.lu_wrong_nonce += 1;
            } else {
                // A session begins with data: nobody has to be told who has said nothing yet.
                counters.lu_unknown_correspondent += 1;
            }
            return;
        };
        self.on_locator_update(now, key, source, message);
        self.find_timeout();
    }

    /// A session in place of a call's whose peer has been started again, and knows neither nonce: an answer to a call that was repeated
    /// since nothing was heard, or to what was sent first after nothing was for long, from where the peer is, with a nonce
    /// that nobody has.
    fn begun_anew(&mut self, now: Instant, packet: &Packet, nonce: Nonce, flow: Flow) -> Option<SessionKey> {
        let (source, local_nid) = (packet.ip.source, Nid::of(packet.ip.destination));
        let nid = Nid::of(source);
        let shows_none = may_be_first(packet) && !is_call(packet);
        if !(answers_call(packet) || shows_none) || self.ilcc.by_nonce(nid, local_nid, nonce).is_some() {
            return None;
        }
        let old = self
            .ilcc
            .owner(nid, flow)
            .filter(|key| self.ilcc.may_be_answered_anew(*key, flow))?;
        let peer = self.ilcc.by_key(old)?;
        let was_answered = peer.is_called() && peer.mode() == Mode::Ilnp && peer.remote_nonce().is_some();
        if !was_answered || peer.local_nid() != local_nid || !peer.is_at(Locator::of(source)) {
            return None;
        }
        let (parties, own_nonce, locators) = (peer.parties(), peer.local_nonce(), peer.best(now));
        let key = self.add(now, parties, Some(own_nonce));
        self.ilcc.by_key_mut(key)?.on_locators_known(&locators);
        self.ilcc.claim(key, flow, now);
        self.out.counters.called_anew += 1;
        Some(key)
    }

    /// The session of a packet with data: that of its nonce (RFC 6741 section 5.4), if its flow is not another's; a call of
    /// this host's that has not been answered, if the flow is that call's and the packet comes from where the call went; or
    /// a new one, of a peer that calls.
    fn session_of(&mut self, now: Instant, packet: &Packet, nonce: Nonce, flow: Flow) -> Option<SessionKey> {
        let (source, destination) = (packet.ip.source, packet.ip.destination);
        let (nid, local_nid) = (Nid::of(source), Nid::of(destination));
        let known = self.ilcc.by_nonce(nid, local_nid, nonce);
        let owner = match known {
            Some(key) => match self.ilcc.use_flow(now, key, flow) {
                Ok(()) => return Some(key),
                Err(owner) => Some(owner),
            },
            None => self.ilcc.owner(nid, flow),
        };
        let Some(owner) = owner.and_then(|key| self.ilcc.by_key(key)) else {
            let key = self.answer(now, source, destination)?;
            self.ilcc.claim(key, flow, now);
            return Some(key);
        };
        let owner_key = owner.key();
        if let Some(is_call) = begins_in_quiet(now, owner, packet) {
            let key = match known {
                Some(key) => key,
                None => self.answer(now, source, destination)?,
            };
            self.ilcc.begin_in(now, key, flow, is_call);
            return Some(key);
        }
        // it calls again, or has the connection reset for which its call was taken
        if let Some(key) = known.filter(|_| may_be_first(packet) || answers_call(packet))
            && self.ilcc.is_called_by(key, flow)
        {
            return Some(key);
        }
        let owner = self.ilcc.by_key_mut(owner_key)?;
        let counters = &mut self.out.counters;
        match owner.remote_nonce() {
            _ if owner.local_nid() != local_nid => counters.second_session += 1,
            _ if owner.is_plain() => counters.unexpected_nonce += 1,
            None if owner.is_at(Locator::of(source)) => {
                let key = owner.key();
                if let Some(known) = known {
                    self.ilcc.join(key, known);
                    self.settle_handover();
                }
                // the call is answered, and in vain no longer
                let _ = self.ilcc.use_flow(now, key, flow);
                return Some(key);
            }
            // RFC 6744 section 4: from a locator that is not the correspondent's, without its nonce
            None => {
                counters.wrong_locator += 1;
                owner.look_up(now, &mut self.out);
            }
            Some(_) => counters.wrong_nonce += 1,
        }
        None
    }

    /// A packet without a nonce: of a session with a peer that speaks only IPv6; of one where nonces are only in the first
    /// packets and in signalling, by the locator (RFC 6741 section 5.4); or of none.
    fn take_without_nonce(&mut self, now: Instant, packet: &mut Packet) -> bool {
        let (source, destination) = (packet.ip.source, packet.ip.destination);
        let (nid, local_nid) = (Nid::of(source), Nid::of(destination));
        let is_plain = |c: &&Correspondent| c.mode().is_plain_between(destination, source);
        let bare = self.config.nonce_in == NonceIn::SessionStartAndSignalling;
        let known = self.ilcc.between(nid, local_nid).find(is_plain);
        let key = match known.map(Correspondent::key) {
            Some(key) => Some(key),
            None if bare => self.session_at(now, packet),
            None => None,
        };
        let Some(peer) = key.and_then(|key| self.ilcc.by_key_mut(key)) else {
            return self.up_unless_confused(packet);
        };
        let old = sum_in_bytes(packet);
        let identity = peer.identity();
        if let Some(plain) = peer.mode().plain() {
            peer.fall_back(plain.heard(now));
            peer.was_heard(now);
            self.out.counters.plain_received += 1;
        } else {
            let called_here = peer.has_called_where_this_host_had_left(Locator::of(destination));
            match self.local.of(destination).map(|l| l.state) {
                Some(LocatorState::Withdrawn) if !called_here => {
                    self.out.counters.stale_locator += 1;
                    return false;
                }
                Some(_) => {
                    peer.was_heard_at(now, Locator::of(source));
                    let (key, flow) = (peer.key(), Flow::up(packet));
                    let tell = peer.must_know_our_nonce();
                    self.ilcc.claim(key, flow, now);
                    if tell {
                        self.tell_peer(now, key);
                        self.find_timeout();
                    }
                    self.out.counters.ilnp_received += 1;
                }
                None => return self.up_unless_confused(packet),
            }
        }
        self.give_identities(packet, identity, old);
        true
    }

    /// The session of a packet without a nonce, by its locator and its flow. A flow that is new belongs to a session of a
    /// call rather than to that of somebody who has said that this is his locator.
    fn session_at(&self, now: Instant, packet: &Packet) -> Option<SessionKey> {
        let (nid, local_nid) = (Nid::of(packet.ip.source), Nid::of(packet.ip.destination));
        let locator = Locator::of(packet.ip.source);
        let owner = self.ilcc.owner(nid, Flow::up(packet));
        let sessions = self.ilcc.between(nid, local_nid);
        let at =
            sessions.filter(|c| c.mode() == Mode::Ilnp && c.knows(locator, now, self.config.active_time));
        match owner {
            Some(owner) => at.map(Correspondent::key).find(|key| *key == owner),
            None => at
                .max_by_key(|c| (c.is_called(), c.contact().is_contacted(), c.contact().heard()))
                .map(Correspondent::key),
        }
    }

    /// Plain IPv6 passes, unless a transport would take it for a session's.
    fn up_unless_confused(&mut self, packet: &Packet) -> bool {
        let source = packet.ip.source;
        if packet.ip.destination == self.identity && self.ilcc.of_identity(source).next().is_some() {
            self.out.counters.missing_nonce += 1;
            return false;
        }
        true
    }

    /// A session for a first packet from a node at `source` to this one at `destination`.
    fn answer(&mut self, now: Instant, source: Ipv6Addr, destination: Ipv6Addr) -> Option<SessionKey> {
        let (nid, local_nid) = (Nid::of(source), Nid::of(destination));
        let locator = Locator::of(source);
        if !locator.is_routable() || nid == Nid(0) || self.nids().contains(&nid) {
            self.out.counters.bad_source += 1;
            return None;
        }
        let identity = self.config.identity_prefix.address(nid);
        if self
            .ilcc
            .of_identity(identity)
            .any(|c| c.local_nid() != local_nid)
        {
            self.out.counters.second_session += 1;
            return None;
        }
        let gone = self.ilcc.forget_one_of(nid);
        if let Some(gone) = gone.or_else(|| self.ilcc.forget_stranger()) {
            self.out.counters.forgotten += 1;
            self.retire(&gone);
        }
        let at = self.local.of(destination);
        let called_at = at.map(|l| (l.locator, l.state));
        let key = self.add(
            now,
            Parties {
                called: false,
                identity,
                nid,
                local_nid,
            },
            None,
        );
        let peer = self.ilcc.by_key_mut(key)?;
        peer.on_call_from(locator);
        if let Some((at, state)) = called_at {
            peer.has_called(at, state);
        }
        Some(key)
    }

    /// Has a packet come from the peer's identity to this host's. Its checksum is over `old`.
    fn give_identities(&self, packet: &mut Packet, identity: Ipv6Addr, old: Option<PseudoHeader>) {
        packet.ip.source = identity;
        packet.ip.destination = self.identity;
        if let Some(old) = old {
            adjust_to_addresses(packet, &old);
        }
    }
}

/// Whether a packet with another nonce than a session's, in a flow of that, begins something as if it were nobody's (see
/// [`flows`](crate::ilnp::flows)); and if so, whether it shows that.
fn begins_in_quiet(now: Instant, owner: &Correspondent, packet: &Packet) -> Option<bool> {
    let (from, local_nid) = (Locator::of(packet.ip.source), Nid::of(packet.ip.destination));
    let is_begun = owner.mode() == Mode::Ilnp && owner.remote_nonce().is_some();
    if !is_begun || owner.local_nid() != local_nid || !owner.contact().is_quiet(now) || !may_be_first(packet)
    {
        return None;
    }
    let is_call = is_call(packet);
    let is_there = owner.is_at(from) && !owner.is_unconfirmed(from);
    (is_call || is_there).then_some(is_call)
}
