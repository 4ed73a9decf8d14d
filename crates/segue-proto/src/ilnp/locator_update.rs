//! Locator updates: telling peers where this host is, and being told (RFC 6743).

use super::config::Config;
use super::ilcc::{Correspondent, MAX_LOOK_UP_INTERVAL, Mode};
use super::local::{Advertised, LocalLocators};
use super::machine::{Ilnp, Outbox};
use super::nonce;
use crate::contract::Transmit;
use crate::shim::ShimEvent;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{Locator, LocatorEntry, LocatorOperation, LocatorUpdate};
use segue_wire::{Ipv6Header, Packet, Payload, PseudoRule};
use smallvec::SmallVec;

/// An update that has not been acknowledged.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Update {
    entries: Vec<LocatorEntry>,
    sent: u32,
    timeout: Duration,
    next: Instant,
    /// Where it was sent last.
    to: Option<Locator>,
    /// It tells of another locator in use, not only of more or fewer beside it.
    handoff: bool,
}

impl Update {
    pub fn next(&self) -> Instant {
        self.next
    }
}

/// A handoff whose updates are not all acknowledged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Handover {
    to: Ipv6Addr,
    begun: Instant,
}

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
            tell(now, peer, local, config, out, handover);
        }
        let advertised = self.local.advertised(self.config.nid);
        if advertised != self.in_directory && !advertised.is_empty() {
            self.in_directory = advertised;
            self.out.events.push_back(ShimEvent::UpdateDirectory);
        }
    }

    /// Tells one peer, if there is anything new for it.
    pub(super) fn tell_peer(&mut self, now: Instant, identity: Ipv6Addr) {
        if let Some(peer) = self.ilcc.by_identity_mut(identity) {
            tell(
                now,
                peer,
                &self.local,
                &self.config,
                &mut self.out,
                &mut self.handover,
            );
        }
    }

    /// Tells one peer again what it has been told and acknowledged: it does not seem to know.
    pub(super) fn tell_again(&mut self, now: Instant, identity: Ipv6Addr) {
        let Some(peer) = self.ilcc.by_identity_mut(identity) else {
            return;
        };
        let long_ago = peer
            .acknowledged
            .is_some_and(|at| now.since(at) >= self.config.lu_timeout);
        if peer.update.is_none() && long_ago && !peer.told.is_empty() {
            begin(now, peer, false, &self.local, &self.config, &mut self.out);
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
            if peer.refresh.is_some_and(|at| at <= now) {
                peer.refresh = None;
                if peer.update.is_none() {
                    begin(now, peer, false, local, config, out);
                }
            }
            let Some(update) = peer.update.as_mut().filter(|u| u.next <= now) else {
                continue;
            };
            if update.sent >= config.lu_attempts {
                failed |= update.handoff;
                peer.update = None;
                peer.gave_up = true;
                out.counters.lu_given_up += 1;
                out.events
                    .push_back(ShimEvent::HandoffFailed { peer: peer.identity });
                continue;
            }
            update.timeout = (update.timeout * 2).clamp(Duration::ZERO, config.lu_max_timeout);
            let unanswered = update.sent;
            send(now, peer, local, out);
            if unanswered >= config.look_up_after {
                look_up(now, peer, out);
            }
        }
        if failed {
            self.handover = None;
        }
    }

    /// An update or an acknowledgement, of the session's peer, by its nonce.
    pub(super) fn on_locator_update(
        &mut self,
        now: Instant,
        identity: Ipv6Addr,
        source: Ipv6Addr,
        message: LocatorUpdate,
    ) {
        match message.operation {
            LocatorOperation::Advertisement => self.on_advertisement(now, identity, source, message),
            LocatorOperation::Acknowledgement => self.on_acknowledgement(now, identity, &message),
        }
    }

    fn on_advertisement(
        &mut self,
        now: Instant,
        identity: Ipv6Addr,
        source: Ipv6Addr,
        mut message: LocatorUpdate,
    ) {
        let Some(peer) = self.ilcc.by_identity_mut(identity) else {
            return;
        };
        let counters = &mut self.out.counters;
        let entries = &message.locators;
        let bad =
            entries.iter().any(|e| !e.locator.is_routable()) || entries.iter().all(|e| e.lifetime_s == 0);
        if bad {
            counters.lu_bad_locator += 1;
            return;
        }
        let guard = self.config.replay_guard;
        peer.superseded.retain(|(_, at)| now.since(*at) < guard);
        let told: SmallVec<[Locator; 2]> = entries.iter().map(|e| e.locator).collect();
        let current: SmallVec<[Locator; 2]> = peer
            .locators
            .iter()
            .filter(|l| !l.withdrawn)
            .map(|l| l.locator)
            .collect();
        if told == current {
            counters.lu_repeated += 1;
        } else if peer.superseded.iter().any(|(old, _)| *old == told) {
            counters.lu_replayed += 1;
            return;
        } else {
            counters.lu_received += 1;
            if peer.superseded.len() == MAX_SUPERSEDED {
                peer.superseded.remove(0);
            }
            peer.superseded.push((current, now));
        }
        peer.was_heard(now);
        peer.mode = Mode::Ilnp;
        peer.replace(now, &self.config, entries);
        route_changed(now, peer, &mut self.out);
        message.operation = LocatorOperation::Acknowledgement;
        if signal(peer, &self.local, source, message, &mut self.out) {
            self.out.counters.lu_ack_sent += 1;
        }
        // what it was told went to where it no longer is: both have moved (004 section 7.6)
        let astray = |u: &Update| u.to.is_some_and(|to| !told.contains(&to));
        if peer.update.as_ref().is_some_and(astray) {
            send(now, peer, &self.local, &mut self.out);
        }
    }

    fn on_acknowledgement(&mut self, now: Instant, identity: Ipv6Addr, message: &LocatorUpdate) {
        let Some(peer) = self.ilcc.by_identity_mut(identity) else {
            return;
        };
        peer.was_heard(now);
        let Some(update) = peer.update.take_if(|u| u.entries == message.locators) else {
            self.out.counters.lu_unexpected_ack += 1;
            return;
        };
        self.out.counters.lu_ack_received += 1;
        peer.acknowledged = Some(now);
        let lifetime = self.config.locator_lifetime;
        peer.refresh = Some(now + Duration::from_nanos(lifetime.as_nanos() / 4 * 3));
        let all = !self
            .ilcc
            .iter()
            .any(|c| c.update.as_ref().is_some_and(|u| u.handoff));
        if update.handoff
            && all
            && let Some(handover) = self.handover.take()
        {
            self.out.events.push_back(ShimEvent::HandoffDone {
                to: handover.to,
                delay: now.since(handover.begun),
            });
        }
    }
}

/// Tells `peer`, if there is anything new for it.
fn tell(
    now: Instant,
    peer: &mut Correspondent,
    local: &LocalLocators,
    config: &Config,
    out: &mut Outbox,
    handover: &mut Option<Handover>,
) {
    if !matches!(peer.mode, Mode::Ilnp | Mode::Probing) || !peer.contacted {
        return;
    }
    let advertised = local.advertised(peer.local_nid);
    let Some((best, preference)) = advertised.first().copied() else {
        return;
    };
    if peer.told == advertised && !peer.gave_up {
        return;
    }
    let in_use = |told: &Advertised| advertised.iter().any(|a| a.0 == told.0 && a.1 == preference);
    let handoff = !peer.told.first().is_some_and(in_use) || peer.update.as_ref().is_some_and(|u| u.handoff);
    if peer.mode == Mode::Probing && !handoff {
        return;
    }
    let to = best.address(peer.local_nid);
    if handoff && handover.is_none_or(|h| Locator::of(h.to) != best) {
        let from = peer.told.first().map(|told| told.0.address(peer.local_nid));
        *handover = Some(Handover { to, begun: now });
        out.counters.handoffs += 1;
        out.events.push_back(ShimEvent::HandoffBegun { from, to });
    }
    peer.told = advertised;
    begin(now, peer, handoff, local, config, out);
}

/// Begins to tell `peer` what it is to know.
fn begin(
    now: Instant,
    peer: &mut Correspondent,
    handoff: bool,
    local: &LocalLocators,
    config: &Config,
    out: &mut Outbox,
) {
    let lifetime_s = (config.locator_lifetime.as_nanos() / 1_000_000_000) as u16;
    peer.gave_up = false;
    peer.refresh = None;
    peer.update = Some(Update {
        entries: peer
            .told
            .iter()
            .take(LocatorUpdate::MAX_LOCATORS)
            .map(|(locator, preference)| LocatorEntry {
                locator: *locator,
                preference: *preference,
                lifetime_s,
            })
            .collect(),
        sent: 0,
        timeout: config.lu_timeout,
        next: now,
        to: None,
        handoff,
    });
    send(now, peer, local, out);
}

/// Begins anew with the update under way: the peer is somewhere else.
pub(super) fn send_anew(
    now: Instant,
    peer: &mut Correspondent,
    local: &LocalLocators,
    config: &Config,
    out: &mut Outbox,
) {
    if let Some(update) = &mut peer.update {
        update.sent = 0;
        update.timeout = config.lu_timeout;
        send(now, peer, local, out);
    }
}

/// Sends the update under way: first to the peer's best locator, then to each of them in turn.
fn send(now: Instant, peer: &mut Correspondent, local: &LocalLocators, out: &mut Outbox) {
    let best = peer.best(now);
    let others = peer.locators.iter().filter(|l| !l.withdrawn).map(|l| l.locator);
    let mut targets: SmallVec<[Locator; 4]> = best.clone();
    targets.extend(others.filter(|l| !best.contains(l)));
    let Some(mut update) = peer.update.take() else {
        return;
    };
    update.next = now + update.timeout;
    let to = targets.get(update.sent as usize % targets.len().max(1)).copied();
    if let Some(to) = to {
        let message = LocatorUpdate {
            operation: LocatorOperation::Advertisement,
            locators: update.entries.clone(),
        };
        if signal(peer, local, to.address(peer.nid), message, out) {
            out.counters.lu_sent += 1;
            out.counters.lu_retransmitted += u64::from(update.sent > 0);
            update.to = Some(to);
        }
    }
    update.sent += 1;
    peer.update = Some(update);
}

/// Sends a message of ours, from the locator in use. Whether there is one.
fn signal(
    peer: &mut Correspondent,
    local: &LocalLocators,
    destination: Ipv6Addr,
    message: LocatorUpdate,
    out: &mut Outbox,
) -> bool {
    let Some((locator, interface)) = local.in_use(peer.local_nid).first().copied() else {
        out.counters.no_local_locator += 1;
        return false;
    };
    let mut packet = Packet {
        ip: Ipv6Header {
            source: locator.address(peer.local_nid),
            destination,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload: Payload::Icmpv6(Icmpv6::LocatorUpdate(message)),
    };
    nonce::insert(&mut packet, peer.local_nonce, PseudoRule::Ipv6);
    out.counters.signalling_packets_sent += 1;
    out.counters.signalling_bytes_sent += packet.buffer_len() as u64;
    out.transmits.push_back(Transmit { interface, packet });
    true
}

/// Asks the directory where `peer` is, if it was not asked just now.
pub(super) fn look_up(now: Instant, peer: &mut Correspondent, out: &mut Outbox) {
    if peer.next_look_up > now {
        return;
    }
    peer.next_look_up = now + peer.look_up_interval;
    peer.look_up_interval = (peer.look_up_interval * 2).clamp(Duration::ZERO, MAX_LOOK_UP_INTERVAL);
    out.counters.look_ups += 1;
    out.events.push_back(ShimEvent::LookUp { peer: peer.identity });
}

/// Tells the host if packets to `peer` go elsewhere from now on.
pub(super) fn route_changed(now: Instant, peer: &mut Correspondent, out: &mut Outbox) {
    let Some(best) = peer.best(now).first().copied() else {
        return;
    };
    if peer.route.replace(best).is_some_and(|old| old != best) {
        out.events.push_back(ShimEvent::RouteChanged {
            peer: peer.identity,
            to: best.address(peer.nid),
        });
    }
}

/// Updates of a peer that are remembered to know their replay.
const MAX_SUPERSEDED: usize = 8;
