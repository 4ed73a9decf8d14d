//! Locator updates: telling peers where this host is, and being told (RFC 6743).

use super::config::Config;
use super::ilcc::{Correspondent, MAX_LOCATORS, MAX_LOOK_UP_INTERVAL, Mode};
use super::local::{Advertised, LocalLocators};
use super::machine::{Ilnp, Outbox};
use super::nonce;
use super::sessions::SessionKey;
use crate::contract::Transmit;
use crate::shim::ShimEvent;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{Locator, LocatorEntry, LocatorOperation, LocatorUpdate};
use segue_wire::{Ipv6Header, Packet, Payload, PseudoRule};
use smallvec::SmallVec;
use std::collections::VecDeque;

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
    /// The last acknowledgement.
    acknowledged: Option<Instant>,
}

/// The updates of a peer that were accepted. RFC 6743 gives them no number; but those of this implementation differ from
/// each other (see [`begin`]), so that what was superseded and comes again, byte for byte, is a replay or comes from a host
/// of another implementation that is back where it was.
#[derive(Clone, Debug, Default)]
pub(super) struct Accepted {
    /// The last.
    current: Option<u64>,
    /// Those that it superseded, and when each was.
    superseded: VecDeque<(u64, Instant)>,
}

impl Accepted {
    /// Whether an update is one from before, and the peer where the last one said: heard from there, at `heard`, less than
    /// `guard` ago, or there for less than that. A host that is back is silent elsewhere and tells again.
    fn is_replay(&self, now: Instant, body: u64, heard: Option<Instant>, guard: Duration) -> bool {
        let lately = |at: Instant| now.since(at) < guard;
        let before = self.superseded.iter().rev().find(|(old, _)| *old == body);
        self.current != Some(body) && before.is_some_and(|(_, at)| lately(*at) || heard.is_some_and(lately))
    }

    /// Whether there was one.
    pub fn any(&self) -> bool {
        self.current.is_some()
    }

    fn accept(&mut self, now: Instant, body: u64) {
        if self.current == Some(body) {
            return;
        }
        self.superseded.retain(|(old, _)| *old != body);
        if let Some(old) = self.current.replace(body) {
            if self.superseded.len() == MAX_SUPERSEDED {
                self.superseded.pop_front();
            }
            self.superseded.push_back((old, now));
        }
    }
}

/// A number for what an update says (FNV-1a).
fn hash(entries: &[LocatorEntry]) -> u64 {
    entries.iter().fold(0xcbf2_9ce4_8422_2325, |hash, entry| {
        let rest = u64::from(entry.preference) << 16 | u64::from(entry.lifetime_s);
        let bytes = entry
            .locator
            .0
            .to_be_bytes()
            .into_iter()
            .chain(rest.to_be_bytes());
        bytes.fold(hash, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    })
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
    pub(super) fn tell_peer(&mut self, now: Instant, key: SessionKey) {
        if let Some(peer) = self.ilcc.by_key_mut(key) {
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
    pub(super) fn tell_again(&mut self, now: Instant, key: SessionKey) {
        let Some(peer) = self.ilcc.by_key_mut(key) else {
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
        let current = || peer.locators.iter().filter(|l| !l.withdrawn);
        let same = current().all(|l| is_told(l.locator)) && told.iter().all(|e| peer.is_at(e.locator));
        let body = hash(entries);
        if peer
            .accepted
            .is_replay(now, body, peer.heard_at_home, self.config.replay_guard)
        {
            counters.lu_replayed += 1;
            return;
        }
        if same {
            counters.lu_repeated += 1;
        } else {
            counters.lu_received += 1;
        }
        counters.locators_left_out += told.len().saturating_sub(MAX_LOCATORS) as u64;
        peer.accepted.accept(now, body);
        peer.was_heard(now);
        peer.mode = Mode::Ilnp;
        peer.replace(now, &self.config, &told);
        peer.confirm(Locator::of(source));
        route_changed(now, peer, &mut self.out);
        message.operation = LocatorOperation::Acknowledgement;
        if signal(peer, &self.local, source, message, &mut self.out) {
            self.out.counters.lu_ack_sent += 1;
        }
        // what it was told went to where it no longer is: both have moved (004 section 7.6)
        let astray = |u: &Update| u.to.is_some_and(|to| !is_told(to));
        if peer.update.as_ref().is_some_and(astray) {
            send(now, peer, &self.local, &mut self.out);
        }
    }

    fn on_acknowledgement(&mut self, now: Instant, key: SessionKey, message: &LocatorUpdate) {
        let Some(peer) = self.ilcc.by_key_mut(key) else {
            return;
        };
        peer.was_heard(now);
        let Some(update) = peer.update.take_if(|u| u.entries == message.locators) else {
            self.out.counters.lu_unexpected_ack += 1;
            return;
        };
        self.out.counters.lu_ack_received += 1;
        peer.acknowledged = Some(now);
        peer.knows_our_nonce();
        let lifetime = self.config.locator_lifetime;
        peer.refresh = Some(now + Duration::from_nanos(lifetime.as_nanos() / 4 * 3));
        if update.handoff {
            if let Some(handover) = &mut self.handover {
                handover.acknowledged = Some(now);
            }
            self.settle_handover();
        }
    }

    /// A handoff is done if nobody is left who has to acknowledge it: everybody has, or is forgotten, or speaks only
    /// IPv6. If nobody ever did, it just ends.
    pub(super) fn settle_handover(&mut self) {
        let waiting = self
            .ilcc
            .iter()
            .any(|c| c.update.as_ref().is_some_and(|u| u.handoff));
        if !waiting
            && let Some(handover) = self.handover.take()
            && let Some(acknowledged) = handover.acknowledged
        {
            self.out.events.push_back(ShimEvent::HandoffDone {
                to: handover.to,
                delay: acknowledged.since(handover.begun),
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
        *handover = Some(Handover {
            to,
            begun: now,
            acknowledged: None,
        });
        out.counters.handoffs += 1;
        out.events.push_back(ShimEvent::HandoffBegun { from, to });
    }
    peer.told = advertised;
    begin(now, peer, handoff, local, config, out);
}

/// Begins to tell `peer` what it is to know. No update says the same as an earlier one: the lifetime, of which an eighth at
/// most is not told, counts them, so that the peer need not take one that is replayed.
fn begin(
    now: Instant,
    peer: &mut Correspondent,
    handoff: bool,
    local: &LocalLocators,
    config: &Config,
    out: &mut Outbox,
) {
    let lifetime_s = (config.locator_lifetime.as_nanos() / 1_000_000_000) as u16;
    let lifetime_s = lifetime_s - peer.updates % (lifetime_s / 8).clamp(1, 1024);
    peer.updates = peer.updates.wrapping_add(1);
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
    peer.asked = true;
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
const MAX_SUPERSEDED: usize = 32;
