//! The Identifier-Locator Communication Cache: what is known of the nodes that this one talks to (RFC 6741 section 5).

mod told;

pub(super) use told::Acknowledged;

use super::accepted::Accepted;
use super::config::Config;
use super::contact::Contact;
use super::local::{Advertised, LocatorState};
use super::look_ups::LookUps;
use super::mode::{Mode, Plain};
use super::outbox::Outbox;
use super::parties::Parties;
use super::remote_locators::{RemoteLocator, RemoteLocators};
use super::session_key::SessionKey;
use super::telling::Telling;
use super::way::{CalledAt, Way};
use crate::contract::InterfaceId;
use crate::reachability::Reachability;
use crate::shim::ShimEvent;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::ilnp::{Locator, LocatorEntry, Nid, Nonce};
use segue_wire::{Packet, PseudoRule};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// What shows that packets are of a session (RFC 6744 section 2).
#[derive(Clone, Copy, Debug)]
struct Nonces {
    /// In packets to the peer.
    local: Nonce,
    /// In packets from it.
    remote: Option<Nonce>,
    /// The checksum rule that its packets follow.
    rule: Option<PseudoRule>,
}

/// A session with a node that this one talks to.
#[derive(Debug)]
pub struct Correspondent {
    key: SessionKey,
    parties: Parties,
    mode: Mode,
    locators: RemoteLocators,
    nonces: Nonces,
    telling: Telling,
    accepted: Accepted,
    /// Where it called this host: until it must have our nonce, it takes packets from nowhere else (RFC 6744 section 4).
    called_at: Option<CalledAt>,
    look_ups: LookUps,
    contact: Contact,
    /// Packets shared out so far.
    turn: u32,
    /// The way of its packets, worked out for the last of them.
    way: Option<Way>,
    /// The best of its locators when that was last told of.
    route: Option<Locator>,
    /// Whether anything gets through to it, if that is watched.
    reachability: Option<Box<Reachability>>,
}

/// A packet goes as the last one did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    pub way: Way,
    pub nonce: Nonce,
    /// The checksum rule that the peer's packets follow.
    pub rule: Option<PseudoRule>,
}

impl Correspondent {
    /// What transports know it by.
    #[must_use]
    pub fn identity(&self) -> Ipv6Addr {
        self.parties.identity
    }

    /// Its node identifier.
    #[must_use]
    pub fn nid(&self) -> Nid {
        self.parties.nid
    }

    /// The identifier of ours that it knows.
    #[must_use]
    pub fn local_nid(&self) -> Nid {
        self.parties.local_nid
    }

    /// Whether this host called.
    #[must_use]
    pub fn is_called(&self) -> bool {
        self.parties.called
    }

    /// How far things are.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Its locators.
    #[must_use]
    pub fn locators(&self) -> &[RemoteLocator] {
        self.locators.all()
    }
}

impl Correspondent {
    pub(super) fn new(key: SessionKey, parties: Parties, local_nonce: Nonce, now: Instant) -> Self {
        Self {
            key,
            parties,
            mode: Mode::Unresolved,
            locators: RemoteLocators::new(now),
            nonces: Nonces {
                local: local_nonce,
                remote: None,
                rule: None,
            },
            telling: Telling::default(),
            accepted: Accepted::default(),
            called_at: None,
            look_ups: LookUps::new(now),
            contact: Contact::new(now),
            turn: 0,
            way: None,
            route: None,
            reachability: None,
        }
    }

    /// Which session.
    pub(super) fn key(&self) -> SessionKey {
        self.key
    }

    /// Who talks to whom.
    pub(super) fn parties(&self) -> Parties {
        self.parties
    }

    /// It has shown that it speaks plain IPv6.
    pub(super) fn is_plain(&self) -> bool {
        self.mode.plain().is_some_and(Plain::is_shown)
    }

    /// It was heard, with a nonce or in plain IPv6.
    pub(super) fn is_answered(&self) -> bool {
        self.nonces.remote.is_some() || self.is_plain()
    }

    /// The nonce in packets to it.
    pub(super) fn local_nonce(&self) -> Nonce {
        self.nonces.local
    }

    /// The nonce in packets from it.
    pub(super) fn remote_nonce(&self) -> Option<Nonce> {
        self.nonces.remote
    }

    /// The checksum rule that its packets follow.
    pub(super) fn rule(&self) -> Option<PseudoRule> {
        self.nonces.rule
    }

    /// When it was heard and sent to.
    pub(super) fn contact(&self) -> &Contact {
        &self.contact
    }

    /// What it is told.
    pub(super) fn telling(&self) -> &Telling {
        &self.telling
    }

    /// Two sessions turn out to be one: this goes on with the nonces of the other. What was said by these, either way, is said:
    /// an update under way goes on, and none is taken twice.
    pub(super) fn join(&mut self, other: Self) {
        self.nonces = other.nonces;
        self.telling = other.telling;
        self.contact.join(&other.contact);
        self.way = None;
        if other.accepted.any() {
            self.locators = other.locators;
            self.accepted = other.accepted;
        }
    }
}

/// Where it is.
impl Correspondent {
    /// Its locators of the best preference: valid ones, or aged ones where there is no other.
    pub(super) fn best(&self, now: Instant) -> SmallVec<[Locator; 4]> {
        self.locators.best(now)
    }

    /// Whether `locator` is one of its own, or was until lately.
    pub(super) fn knows(&self, locator: Locator, now: Instant, active_time: Duration) -> bool {
        self.locators.knows(locator, now, active_time)
    }

    /// Whether it has said, or was said, to be at `locator`, and has not left.
    pub(super) fn is_at(&self, locator: Locator) -> bool {
        self.locators.is_at(locator)
    }

    /// Whether these are the locators that it has not left.
    pub(super) fn is_where(&self, told: &[LocatorEntry]) -> bool {
        self.locators.are(told)
    }

    /// Whether `locator` is only what an update has said, and not what anything has shown.
    pub(super) fn is_unconfirmed(&self, locator: Locator) -> bool {
        self.locators.is_unconfirmed(locator)
    }

    /// Counts `bytes` against what may go to unconfirmed locators in `period`. Whether they may.
    pub(super) fn spend(&mut self, now: Instant, bytes: u64, most: u64, period: Duration) -> bool {
        self.locators.spend(now, bytes, most, period)
    }

    /// Takes the locators of an update; those it does not name are withdrawn.
    pub(super) fn replace(&mut self, now: Instant, config: &Config, entries: &[LocatorEntry]) {
        self.locators.replace(now, config, entries);
        self.way = None;
    }

    /// Takes the locators that a look-up found.
    pub(super) fn replace_by_found(&mut self, now: Instant, config: &Config, found: &[Advertised]) {
        self.locators.replace_by_found(now, config, found);
        self.way = None;
    }

    /// Something other than an update says that `locator` is the peer's.
    pub(super) fn confirm(&mut self, locator: Locator) {
        self.locators.confirm(locator);
    }

    /// The configuration, or the address that is called, says where it is.
    pub(super) fn on_locators_known(&mut self, locators: &[Locator]) {
        for locator in locators {
            self.locators.add_found(*locator);
        }
        if !locators.is_empty() {
            self.mode = Mode::Probing;
        }
    }

    /// It called from `locator`.
    pub(super) fn on_call_from(&mut self, locator: Locator) {
        self.on_locators_known(&[locator]);
        self.route = Some(locator);
    }

    /// Tells the host if packets to it go elsewhere from now on.
    pub(super) fn route_changed(&mut self, now: Instant, out: &mut Outbox) {
        let Some(best) = self.best(now).first().copied() else {
            return;
        };
        if self.route.replace(best).is_some_and(|old| old != best) {
            self.on_moved();
            out.tell(ShimEvent::RouteChanged {
                peer: self.identity(),
                to: best.address(self.nid()),
            });
        }
    }
}

/// What is heard of it.
impl Correspondent {
    /// The peer was heard, and it was the peer.
    pub(super) fn was_heard(&mut self, now: Instant) {
        self.contact.on_used(now);
        self.has_signalled(now);
    }

    /// The peer was heard, in a packet that is taken to be its own, from `locator`.
    pub(super) fn was_heard_at(&mut self, now: Instant, locator: Locator) {
        self.was_heard(now);
        self.locators.mark(now, locator);
        self.locators.confirm(locator);
        if self.locators.is_at(locator) {
            self.contact.on_heard_at_home(now);
        }
    }

    /// A packet of this session came from `locator`, with its nonce, under a checksum rule if it has such a checksum. Whether
    /// there may be something to tell it.
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        locator: Locator,
        nonce: Nonce,
        rule: Option<PseudoRule>,
    ) -> bool {
        self.nonces.remote = Some(nonce);
        let new = self.mode != Mode::Ilnp;
        let tell = new || self.telling.has_given_up();
        if new && self.locators.is_nowhere() {
            self.locators.add_found(locator);
        }
        self.mode = Mode::Ilnp;
        self.was_heard_at(now, locator);
        self.nonces.rule = rule.or(self.nonces.rule);
        self.must_know_our_nonce() || tell
    }

    /// An update says that it is at `told`, with this number for what it says. `source` is where it came from.
    pub(super) fn on_update(
        &mut self,
        now: Instant,
        config: &Config,
        number: u64,
        told: &[LocatorEntry],
        source: Locator,
    ) {
        self.accepted.accept(now, number);
        self.has_signalled(now);
        self.mode = Mode::Ilnp;
        self.replace(now, config, told);
        self.confirm(source);
    }

    /// Whether an update with this number is one from before.
    pub(super) fn is_replay(&self, now: Instant, number: u64, guard: Duration) -> bool {
        self.accepted
            .is_replay(now, number, self.contact.heard_at_home(), guard)
    }

    /// It called this host at `at`, one of this host's locators that is in `state`.
    pub(super) fn has_called(&mut self, at: Locator, state: LocatorState) {
        self.called_at = Some(CalledAt::new(at, state));
    }

    /// Whether it called this host at `at` when a hard handoff had given that up, and knows no other.
    pub(super) fn has_called_where_this_host_had_left(&self, at: Locator) -> bool {
        self.called_at == Some(CalledAt::Left(at))
    }

    /// Where it called this host, until it has our nonce.
    pub(super) fn called_at(&self) -> Option<CalledAt> {
        self.called_at
    }

    /// The peer has our nonce by now: packets to it may come from any of our locators. Whether that is new.
    pub(super) fn knows_our_nonce(&mut self) -> bool {
        self.way = self.way.filter(|_| self.called_at.is_none());
        self.called_at.take().is_some()
    }

    /// The same, if so much was heard of it that it must.
    pub(super) fn must_know_our_nonce(&mut self) -> bool {
        self.contact.has_heard_enough() && self.knows_our_nonce()
    }

    /// It is spoken to in plain IPv6 from now on, or still.
    pub(super) fn fall_back(&mut self, plain: Plain) {
        self.mode = Mode::Plain(plain);
        self.telling.stop();
    }
}

/// Asking where it is.
impl Correspondent {
    /// Asks the directory where it is, if it was not asked just now.
    pub(super) fn look_up(&mut self, now: Instant, out: &mut Outbox) {
        if self.look_ups.begin(now) {
            out.counters.look_ups += 1;
            out.tell(ShimEvent::LookUp {
                peer: self.identity(),
            });
        }
    }

    /// Whether it was asked for, without an answer.
    pub(super) fn is_asked(&self) -> bool {
        self.look_ups.is_asked()
    }

    /// The directory answers: it is not there.
    pub(super) fn on_not_found(&mut self) -> usize {
        self.look_ups.on_answer();
        self.look_ups.take_held().len()
    }

    /// The directory answers. Whether that is of use.
    pub(super) fn on_found(&mut self, now: Instant, config: &Config, found: &[Advertised]) -> bool {
        self.look_ups.on_answer();
        if self.is_plain() {
            return false;
        }
        self.replace_by_found(now, config, found);
        if self.mode == Mode::Unresolved {
            self.mode = Mode::Probing;
        }
        true
    }

    /// A packet waits for the answer, unless so many do already. Whether it does.
    pub(super) fn hold(&mut self, packet: Packet, most: usize) -> bool {
        self.look_ups.hold(packet, most)
    }

    /// Packets that wait.
    pub(super) fn held(&self) -> usize {
        self.look_ups.held()
    }

    /// The packets that wait; they do no more.
    pub(super) fn take_held(&mut self) -> VecDeque<Packet> {
        self.look_ups.take_held()
    }
}

/// What goes to it.
impl Correspondent {
    /// A packet goes to it.
    pub(super) fn was_sent_to(&mut self, now: Instant) {
        self.contact.on_sent(now);
    }

    /// A packet goes to it, at `remote`, from a locator of ours. The first tells it of that; `best` is where packets go.
    pub(super) fn was_sent_to_at(
        &mut self,
        now: Instant,
        remote: Locator,
        from: Advertised,
        best: Option<Locator>,
    ) {
        if !self.contact.is_contacted() {
            self.telling.on_first_packet(from);
            self.route = best;
        }
        self.on_sent(now);
        self.locators.mark(now, remote);
    }

    /// Something begins after a quiet time.
    pub(super) fn begins_after_quiet(&mut self) {
        self.contact.on_begun_after_quiet();
    }

    /// The number of a packet that is shared out.
    pub(super) fn next_turn(&mut self) -> u32 {
        self.turn = self.turn.wrapping_add(1);
        self.turn
    }

    /// The packets to come may take the same way: to `remote`, between these addresses.
    pub(super) fn keep_way(
        &mut self,
        now: Instant,
        remote: Locator,
        generation: u64,
        interface: InterfaceId,
        (source, destination): (Ipv6Addr, Ipv6Addr),
    ) {
        self.way = self.locators.position(remote).map(|index| Way {
            generation,
            // an aged locator is used for want of another: nothing to wait for
            until: self.locators.all()[index].until.filter(|until| *until > now),
            interface,
            source,
            destination,
            index,
        });
    }

    /// The way of the last packet, if the next takes it under these conditions.
    pub(super) fn way_again(&self, now: Instant, generation: u64, silent_packets: u32) -> Option<Way> {
        let way = self.way?;
        let same = way.generation == generation && way.until.is_none_or(|until| until > now);
        let is_gone = self.contact.has_unheard(silent_packets) || self.contact.is_unheard_after_quiet(now);
        (same && !is_gone && self.mode == Mode::Ilnp).then_some(way)
    }

    /// Packets went to it at `remote` without being seen here.
    pub(super) fn was_sent_past(&mut self, now: Instant, remote: Locator) {
        self.on_sent(now);
        self.locators.mark(now, remote);
    }

    /// Sends as the last packet went, if nothing has changed and there is nothing to think about: this host's locators are of
    /// this `generation`, and not so many packets were unanswered.
    pub(super) fn send_again(&mut self, now: Instant, generation: u64, silent_packets: u32) -> Option<Again> {
        let way = self.way_again(now, generation, silent_packets)?;
        self.on_sent(now);
        self.locators.mark_at(now, way.index);
        Some(Again {
            way,
            nonce: self.nonces.local,
            rule: self.nonces.rule,
        })
    }
}
