//! Locator updates: telling peers where this host is, and being told (RFC 6743).

use super::Ilnp;
use crate::ilnp::accepted::hash;
use crate::ilnp::correspondent::{Acknowledged, Correspondent};
use crate::ilnp::remote_locators::MAX_LOCATORS;
use crate::ilnp::session_key::SessionKey;
use crate::ilnp::signalling::{probe, send, signal, tell, tell_again};
use crate::ilnp::telling::Overdue;
use crate::reachability::Step;
use crate::shim::ShimEvent;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::ilnp::{Locator, LocatorEntry, LocatorOperation, LocatorUpdate};
use smallvec::SmallVec;

impl Ilnp {
    /// Tells every peer with a session that has not been told what there is to tell.
    pub(super) fn tell_peers(&mut self, now: Instant) {
        let Self {
            ilcc,
            local,
            config,
            out,
            handover,
            ..
        } = self;
        for peer in ilcc.iter_mut() {
            let begun = tell(now, peer, local, config, out, *handover);
            *handover = begun.or(*handover);
        }
        let advertised = self.local.advertised(self.config.nid);
        if advertised != self.in_directory && !advertised.is_empty() {
            self.in_directory = advertised;
            self.out.tell(ShimEvent::UpdateDirectory);
        }
    }

    /// Tells one peer, if there is anything new for it.
    pub(super) fn tell_peer(&mut self, now: Instant, key: SessionKey) {
        if let Some(peer) = self.ilcc.by_key_mut(key) {
            let begun = tell(now, peer, &self.local, &self.config, &mut self.out, self.handover);
            self.handover = begun.or(self.handover);
        }
    }

    /// Tells one peer again what it has been told and acknowledged: it does not seem to know.
    pub(super) fn tell_again(&mut self, now: Instant, key: SessionKey) {
        let Some(peer) = self.ilcc.by_key_mut(key) else {
            return;
        };
        if peer.telling().is_settled(now, self.config.lu_timeout) {
            tell_again(now, peer, &self.local, &self.config, &mut self.out);
        }
    }

    /// Sends again what was not acknowledged, gives up what never was, and refreshes what will be over.
    pub(super) fn update_timeout(&mut self, now: Instant) {
        let Self {
            ilcc,
            local,
            config,
            out,
            ..
        } = self;
        let mut failed = false;
        for peer in ilcc.iter_mut() {
            if peer.take_refresh(now, config) {
                tell_again(now, peer, local, config, out);
            }
            match peer.on_update_timeout(now, config) {
                Overdue::No => {}
                Overdue::GivenUp { handoff } => {
                    failed |= handoff;
                    out.counters.lu_given_up += 1;
                    out.tell(ShimEvent::HandoffFailed {
                        peer: peer.identity(),
                    });
                }
                Overdue::Retransmit { sent } => {
                    send(now, peer, local, out);
                    if sent >= config.look_up_after {
                        peer.look_up(now, out);
                    }
                }
            }
        }
        if failed {
            // the others may have acknowledged it, or may yet
            self.settle_handover();
        }
    }

    /// Probes the way to peers that packets are sent to, and leaves the locator in use if it does not lead to one of them any
    /// more, while it leads to no other. Without another locator nothing would come of knowing. Who has acknowledged nothing may have
    /// called from an address that is not his: he is told where this host is, once he must have its nonce, and no more.
    pub(super) fn look_for_silence(&mut self, now: Instant) {
        if !self.config.detect_silence {
            return;
        }
        let no_other = !self.local.has_another();
        let mut silent = None;
        for peer in self.ilcc.iter_mut() {
            match peer.on_reachability_timeout(now, no_other) {
                Step::Nothing => {}
                Step::Probe if peer.telling().was_ever_acknowledged() => {
                    probe(now, peer, &self.local, &self.config, &mut self.out);
                }
                Step::Silent { since } if peer.telling().was_ever_acknowledged() => {
                    silent = Some((since, peer.key(), peer.local_nid()));
                }
                Step::Probe if peer.may_be_told() => {
                    tell_again(now, peer, &self.local, &self.config, &mut self.out);
                }
                Step::Probe | Step::Silent { .. } => {}
            }
        }
        let Some((since, key, nid)) = silent else { return };
        // then it is the peer, or a way that only leads to it
        let heard = |c: &Correspondent| c.reachability().is_some_and(|way| way.has_heard_since(since));
        let another_is_heard = self.ilcc.iter().any(|c| c.key() != key && heard(c));
        if !another_is_heard && let Some((locator, interface)) = self.local.in_use(nid).first().copied() {
            self.local.silent(now, locator, interface, &self.config);
            self.out.counters.locators_silent += 1;
            self.tell_peers(now);
        }
    }

    /// An update or an acknowledgement, of the session's peer, by its nonce.
    pub(super) fn on_locator_update(
        &mut self,
        now: Instant,
        key: SessionKey,
        source: Ipv6Addr,
        message: LocatorUpdate,
    ) {
        match message.operation {
            LocatorOperation::Advertisement => self.on_advertisement(now, key, source, message),
            LocatorOperation::Acknowledgement => self.on_acknowledgement(now, key, &message),
        }
    }

    fn on_advertisement(
        &mut self,
        now: Instant,
        key: SessionKey,
        source: Ipv6Addr,
        mut message: LocatorUpdate,
    ) {
        let Some(peer) = self.ilcc.by_key_mut(key) else {
            return;
        };
        let counters = &mut self.out.counters;
        let entries = &message.locators;
        // RFC 6743 section 2: the lifetime is the most that it may be considered valid, and all that are named are valid
        let valid = || entries.iter().filter(|e| e.lifetime_s > 0);
        let identity_prefix = self.config.identity_prefix;
        let usable = |locator: Locator| locator.is_routable() && locator != identity_prefix;
        if entries.iter().any(|e| !usable(e.locator)) || valid().next().is_none() {
            counters.lu_bad_locator += 1;
            return;
        }
        let told: SmallVec<[LocatorEntry; 4]> = valid().copied().collect();
        let is_told = |locator: Locator| told.iter().any(|e| e.locator == locator);
        let same = peer.is_where(&told);
        let number = hash(entries);
        if peer.is_replay(now, number, self.config.replay_guard) {
            counters.lu_replayed += 1;
            return;
        }
        if same {
            counters.lu_repeated += 1;
        } else {
            counters.lu_received += 1;
        }
        counters.locators_left_out += told.len().saturating_sub(MAX_LOCATORS) as u64;
        peer.on_update(now, &self.config, number, &told, Locator::of(source));
        peer.route_changed(now, &mut self.out);
        message.operation = LocatorOperation::Acknowledgement;
        if signal(peer, &self.local, source, message, &mut self.out) {
            self.out.counters.lu_ack_sent += 1;
        }
        // what it was told went to where it no longer is: both have moved (004 section 7.6)
        if peer.telling().is_astray(is_told) {
            send(now, peer, &self.local, &mut self.out);
        }
    }

    fn on_acknowledgement(&mut self, now: Instant, key: SessionKey, message: &LocatorUpdate) {
        let Some(peer) = self.ilcc.by_key_mut(key) else {
            return;
        };
        let lifetime = self.config.locator_lifetime;
        let handoff = match peer.on_acknowledgement(now, &message.locators, lifetime) {
            Acknowledged::Update { handoff } => handoff,
            Acknowledged::Probe => {
                self.out.counters.probes_answered += 1;
                return;
            }
            Acknowledged::Unexpected => {
                self.out.counters.lu_unexpected_ack += 1;
                return;
            }
        };
        self.out.counters.lu_ack_received += 1;
        if handoff {
            if let Some(handover) = &mut self.handover {
                handover.on_acknowledgement(now);
            }
            self.settle_handover();
        }
    }

    /// A handoff is done if nobody is left who has to acknowledge it: everybody has, or is forgotten, or speaks only
    /// IPv6. If nobody ever did, it just ends.
    pub(super) fn settle_handover(&mut self) {
        let waiting = self.ilcc.iter().any(|c| c.telling().is_handoff_under_way());
        if !waiting
            && let Some(handover) = self.handover.take()
            && let Some(done) = handover.end()
        {
            self.out.tell(done);
        }
    }
}
