//! The Identifier-Locator Communication Cache: what is known of the nodes that this one talks to (RFC 6741 section 5).

use super::config::Config;
use super::local::{Advertised, LocatorState};
use super::locator_update::{Accepted, Update};
use super::sessions::SessionKey;
use crate::contract::InterfaceId;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::ilnp::{Locator, LocatorEntry, Nid, Nonce};
use segue_wire::{Packet, PseudoRule};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// How far things are with a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Its locators are not known yet: packets to it wait.
    Unresolved,
    /// Packets to it carry a nonce; it has not answered with one yet.
    Probing,
    /// It speaks ILNPv6.
    Ilnp,
    /// It does not: packets are plain IPv6 between these two addresses.
    Plain {
        /// Ours. It stays while it can, since the peer's transport knows it.
        local: Ipv6Addr,
        /// The peer's.
        remote: Ipv6Addr,
    },
}

/// A locator of a peer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RemoteLocator {
    /// The locator.
    pub locator: Locator,
    /// Preference: lower is better.
    pub preference: u16,
    /// End of its lifetime; nothing if none was told.
    pub until: Option<Instant>,
    /// Last time that a packet went to it or came from it.
    pub used: Option<Instant>,
    /// The peer has told that it is no longer there; kept for what is on its way without a nonce.
    pub withdrawn: bool,
    /// The peer was heard from there, or the directory, the configuration or the address that was called has named it: it
    /// is not only what an update says.
    pub confirmed: bool,
}

impl RemoteLocator {
    /// A locator that the directory, the configuration or a first packet gave.
    pub(super) fn found(locator: Locator) -> Self {
        Self {
            locator,
            preference: 10,
            until: None,
            used: None,
            withdrawn: false,
            confirmed: true,
        }
    }

    fn told(entry: &LocatorEntry, now: Instant) -> Self {
        Self {
            preference: entry.preference,
            until: Some(now + Duration::from_secs(u64::from(entry.lifetime_s))),
            confirmed: false,
            ..Self::found(entry.locator)
        }
    }

    /// What may be done with it.
    #[must_use]
    pub fn state(&self, now: Instant, active_time: Duration) -> LocatorState {
        let active = self.used.is_some_and(|used| now.since(used) < active_time);
        let over = self.until.is_some_and(|until| until <= now);
        match (self.withdrawn, over, active) {
            (true, _, true) => LocatorState::Aged,
            (true, _, false) => LocatorState::Withdrawn,
            // RFC 6741 section 5.2: what a session uses is not thrown away because a lifetime is over
            (false, true, true) => LocatorState::Expired,
            (false, true, false) => LocatorState::Aged,
            (false, false, true) => LocatorState::Active,
            (false, false, false) => LocatorState::Valid,
        }
    }
}

/// The way of a packet, which is that of the next as well while nothing changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// Of this host's locators: with another, it is worked out anew.
    pub generation: u64,
    /// The lifetime of the peer's locator is over then.
    pub until: Option<Instant>,
    pub interface: InterfaceId,
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    /// Position of the peer's locator.
    pub index: usize,
}

/// Where a peer called this host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CalledAt {
    /// At a locator that a hard handoff had not given up. If one does later, nothing goes from there any more.
    Held(Locator),
    /// At one that a hard handoff had given up by then: the caller knows no other, and takes answers from nowhere else.
    Left(Locator),
}

impl CalledAt {
    /// A call comes at a locator of this host's that is in `state`.
    fn new(locator: Locator, state: LocatorState) -> Self {
        match state {
            LocatorState::Withdrawn => Self::Left(locator),
            _ => Self::Held(locator),
        }
    }

    pub const fn locator(self) -> Locator {
        let (Self::Held(locator) | Self::Left(locator)) = self;
        locator
    }

    /// Whether it is answered from there, now that the locator is in `state`.
    pub fn answers(self, state: LocatorState) -> bool {
        state != LocatorState::Withdrawn || matches!(self, Self::Left(_))
    }
}

/// A session with a node that this one talks to.
#[derive(Debug)]
pub struct Correspondent {
    /// Which session.
    pub(super) key: SessionKey,
    /// This host called: the locators are what the directory, the configuration or the address that was called
    /// said, until the peer, whose nonce came from one of them, told others. If not, the peer called, and nothing but its word says
    /// that its locators are those of its identifier: they serve for answers in flows that it began.
    pub called: bool,
    /// What transports know it by.
    pub identity: Ipv6Addr,
    /// Its node identifier.
    pub nid: Nid,
    /// The identifier of ours that it knows.
    pub local_nid: Nid,
    /// How far things are.
    pub mode: Mode,
    /// Its locators.
    pub locators: Vec<RemoteLocator>,
    /// The nonce in packets to it.
    pub(super) local_nonce: Nonce,
    /// The nonce in packets from it.
    pub(super) remote_nonce: Option<Nonce>,
    /// The checksum rule that its packets follow.
    pub(super) rule: Option<PseudoRule>,
    /// What it has been told of our locators, whether acknowledged or not.
    pub(super) told: SmallVec<[Advertised; 4]>,
    /// When it is told again though nothing has changed.
    pub(super) refresh: Option<Instant>,
    /// The last acknowledgement.
    pub(super) acknowledged: Option<Instant>,
    /// The update under way.
    pub(super) update: Option<Update>,
    /// An update was given up: it is taken up again when the peer is heard.
    pub(super) gave_up: bool,
    /// Its updates.
    pub(super) accepted: Accepted,
    /// When it was last heard at a locator that it has.
    pub(super) heard_at_home: Option<Instant>,
    /// Updates begun.
    pub(super) updates: u16,
    /// Where it called this host: until it must have our nonce, it takes packets from nowhere else (RFC 6744 section 4).
    called_at: Option<CalledAt>,
    /// Packets that wait for a look-up.
    pub(super) held: VecDeque<Packet>,
    /// No look-up before this, and what is added next time.
    pub(super) next_look_up: Instant,
    pub(super) look_up_interval: Duration,
    /// A look-up has not been answered.
    pub(super) asked: bool,
    /// Last packet to it or from it.
    pub(super) used: Instant,
    /// Packets sent since it was last heard, and since when.
    pub(super) unheard: u32,
    pub(super) unheard_since: Instant,
    /// Packets heard from it since the first nonce was sent to it.
    pub(super) heard: u32,
    /// Packets heard from it.
    pub(super) packets_heard: u32,
    /// Bytes sent to locators that are not confirmed, and since when.
    pub(super) unconfirmed: (Instant, u64),
    /// Any packet has been sent to it.
    pub(super) contacted: bool,
    /// Packets shared out so far.
    pub(super) turn: u32,
    /// The way of its packets, worked out for the last of them.
    pub(super) way: Option<Way>,
    /// The best of its locators when that was last told of.
    pub(super) route: Option<Locator>,
}

impl Correspondent {
    pub(super) fn new(
        identity: Ipv6Addr,
        nid: Nid,
        local_nid: Nid,
        local_nonce: Nonce,
        now: Instant,
    ) -> Self {
        Self {
            key: SessionKey::default(),
            called: false,
            identity,
            nid,
            local_nid,
            mode: Mode::Unresolved,
            locators: Vec::new(),
            local_nonce,
            remote_nonce: None,
            rule: None,
            told: SmallVec::new(),
            refresh: None,
            acknowledged: None,
            update: None,
            gave_up: false,
            accepted: Accepted::default(),
            heard_at_home: None,
            updates: 0,
            called_at: None,
            held: VecDeque::new(),
            next_look_up: now,
            look_up_interval: FIRST_LOOK_UP_INTERVAL,
            asked: false,
            used: now,
            unheard: 0,
            unheard_since: now,
            heard: 0,
            packets_heard: 0,
            unconfirmed: (now, 0),
            contacted: false,
            turn: 0,
            way: None,
            route: None,
        }
    }

    /// Its locators of the best preference: valid ones, or aged ones where there is no other.
    pub(super) fn best(&self, now: Instant) -> SmallVec<[Locator; 4]> {
        let key = |l: &RemoteLocator| (l.until.is_some_and(|until| until <= now), l.preference);
        let usable = || self.locators.iter().filter(|l| !l.withdrawn);
        let Some(best) = usable().map(key).min() else {
            return SmallVec::new();
        };
        usable().filter(|l| key(l) == best).map(|l| l.locator).collect()
    }

    /// Whether `locator` is one of its own, or was until lately.
    pub(super) fn knows(&self, locator: Locator, now: Instant, active_time: Duration) -> bool {
        self.locators
            .iter()
            .any(|l| l.locator == locator && l.state(now, active_time) != LocatorState::Withdrawn)
    }

    /// Takes the locators of an update; those it does not name are withdrawn.
    pub(super) fn replace(&mut self, now: Instant, config: &Config, entries: &[LocatorEntry]) {
        let told = entries.iter().filter(|e| e.lifetime_s > 0);
        self.exchange(now, config, told.map(|e| RemoteLocator::told(e, now)).collect());
    }

    /// Takes the locators that a look-up found.
    pub(super) fn replace_by_found(&mut self, now: Instant, config: &Config, found: &[Advertised]) {
        let new = found.iter().map(|(locator, preference)| RemoteLocator {
            preference: *preference,
            ..RemoteLocator::found(*locator)
        });
        self.exchange(now, config, new.collect());
    }

    fn exchange(&mut self, now: Instant, config: &Config, mut new: Vec<RemoteLocator>) {
        for mut old in self.locators.drain(..) {
            if let Some(again) = new.iter_mut().find(|n| n.locator == old.locator) {
                again.used = old.used;
                again.confirmed |= old.confirmed;
            } else {
                old.withdrawn = true;
                if old.state(now, config.active_time) != LocatorState::Withdrawn {
                    new.push(old);
                }
            }
        }
        self.way = None;
        // what an update withdrew is the last to be kept, and the best are the first
        new.sort_by_key(|l| (l.withdrawn, l.preference));
        new.truncate(MAX_LOCATORS);
        self.locators = new;
    }

    /// Whether it has said, or was said, to be at `locator`, and has not left.
    pub(super) fn is_at(&self, locator: Locator) -> bool {
        self.locators.iter().any(|l| l.locator == locator && !l.withdrawn)
    }

    /// Marks a locator as used.
    pub(super) fn mark(&mut self, now: Instant, locator: Locator) {
        if let Some(known) = self.locators.iter_mut().find(|l| l.locator == locator) {
            known.used = Some(now);
        }
    }

    /// The peer was heard, and it was the peer.
    pub(super) fn was_heard(&mut self, now: Instant) {
        self.used = now;
        self.unheard = 0;
        self.heard = self.heard.saturating_add(u32::from(self.contacted));
        self.packets_heard = self.packets_heard.saturating_add(1);
        self.look_up_interval = FIRST_LOOK_UP_INTERVAL;
        self.next_look_up = now;
    }

    /// The peer was heard, in a packet that is taken to be its own, from `locator`.
    pub(super) fn was_heard_at(&mut self, now: Instant, locator: Locator) {
        self.was_heard(now);
        self.mark(now, locator);
        self.confirm(locator);
        if self.is_at(locator) {
            self.heard_at_home = Some(now);
        }
    }

    /// Something other than an update says that `locator` is the peer's.
    pub(super) fn confirm(&mut self, locator: Locator) {
        if let Some(known) = self.locators.iter_mut().find(|l| l.locator == locator) {
            known.confirmed = true;
        }
    }

    /// Whether `locator` is only what an update has said, and not what anything has shown.
    pub(super) fn is_unconfirmed(&self, locator: Locator) -> bool {
        self.locators.iter().any(|l| l.locator == locator && !l.confirmed)
    }

    /// Counts `bytes` against what may go to unconfirmed locators in `period`. Whether they may.
    pub(super) fn spend(&mut self, now: Instant, bytes: u64, most: u64, period: Duration) -> bool {
        let (since, spent) = &mut self.unconfirmed;
        if now.since(*since) >= period {
            (*since, *spent) = (now, 0);
        }
        let may = *spent + bytes <= most;
        *spent += if may { bytes } else { 0 };
        may
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

    /// A packet goes to it.
    pub(super) fn was_sent_to(&mut self, now: Instant) {
        self.used = now;
        self.contacted = true;
        if self.unheard == 0 {
            self.unheard_since = now;
        }
        self.unheard = self.unheard.saturating_add(1);
    }
}

/// Locators kept of one peer, the best ones. RFC 6743 section 4 has implementations support many, RFC 6741 section 5.3 that many do
/// no harm: nobody sends from so many places.
pub(super) const MAX_LOCATORS: usize = 64;

/// Time between the first two look-ups of a peer; doubled by each.
pub(super) const FIRST_LOOK_UP_INTERVAL: Duration = Duration::from_secs(1);
pub(super) const MAX_LOOK_UP_INTERVAL: Duration = Duration::from_secs(32);
