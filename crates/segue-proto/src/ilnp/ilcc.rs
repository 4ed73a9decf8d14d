//! The Identifier-Locator Communication Cache: what is known of the nodes that this one talks to (RFC 6741 section 5).

use super::config::Config;
use super::local::{Advertised, LocatorState};
use super::locator_update::Update;
use crate::contract::InterfaceId;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::ilnp::{Locator, LocatorEntry, Nid, Nonce};
use segue_wire::{Packet, PseudoRule};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};

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
        }
    }

    fn told(entry: &LocatorEntry, now: Instant) -> Self {
        Self {
            preference: entry.preference,
            until: Some(now + Duration::from_secs(u64::from(entry.lifetime_s))),
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
            (true, _, false) => LocatorState::Expired,
            // RFC 6741 section 5.2: what a session uses is not thrown away because a lifetime is over
            (false, true, _) => LocatorState::Aged,
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

/// A node that this one talks to.
#[derive(Debug)]
pub struct Correspondent {
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
    /// Locators of its updates that others superseded, and when.
    pub(super) superseded: Vec<(SmallVec<[Locator; 2]>, Instant)>,
    /// Packets that wait for a look-up.
    pub(super) held: VecDeque<Packet>,
    /// No look-up before this, and what is added next time.
    pub(super) next_look_up: Instant,
    pub(super) look_up_interval: Duration,
    /// Last packet to it or from it.
    pub(super) used: Instant,
    /// Packets sent since it was last heard, and since when.
    pub(super) unheard: u32,
    pub(super) unheard_since: Instant,
    /// Packets heard from it since the first nonce was sent to it.
    pub(super) heard: u32,
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
            superseded: Vec::new(),
            held: VecDeque::new(),
            next_look_up: now,
            look_up_interval: FIRST_LOOK_UP_INTERVAL,
            used: now,
            unheard: 0,
            unheard_since: now,
            heard: 0,
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
            .any(|l| l.locator == locator && l.state(now, active_time) != LocatorState::Expired)
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
            } else {
                old.withdrawn = true;
                if old.state(now, config.active_time) != LocatorState::Expired {
                    new.push(old);
                }
            }
        }
        self.way = None;
        new.truncate(MAX_LOCATORS);
        self.locators = new;
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
        self.heard = self.heard.saturating_add(1);
        self.look_up_interval = FIRST_LOOK_UP_INTERVAL;
        self.next_look_up = now;
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

/// The cache.
#[derive(Debug, Default)]
pub(super) struct Ilcc {
    entries: BTreeMap<Ipv6Addr, Correspondent>,
    /// Identities by the identifiers of peer and of this node: what packets are looked up by (RFC 6741 section 5.4).
    by_nids: BTreeMap<(Nid, Nid), Ipv6Addr>,
}

impl Ilcc {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn by_identity(&self, identity: Ipv6Addr) -> Option<&Correspondent> {
        self.entries.get(&identity)
    }

    pub fn by_identity_mut(&mut self, identity: Ipv6Addr) -> Option<&mut Correspondent> {
        self.entries.get_mut(&identity)
    }

    pub fn identity_of(&self, nid: Nid, local_nid: Nid) -> Option<Ipv6Addr> {
        self.by_nids.get(&(nid, local_nid)).copied()
    }

    /// Adds a correspondent. One whose identifiers are another's already is refused.
    pub fn insert(&mut self, correspondent: Correspondent) -> Option<&mut Correspondent> {
        let key = (correspondent.nid, correspondent.local_nid);
        let identity = correspondent.identity;
        if self.by_nids.contains_key(&key) || self.entries.contains_key(&identity) {
            return None;
        }
        self.by_nids.insert(key, identity);
        Some(self.entries.entry(identity).or_insert(correspondent))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Correspondent> {
        self.entries.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Correspondent> {
        self.entries.values_mut()
    }

    /// Forgets those that were last used before `since`.
    pub fn forget_idle(&mut self, since: Instant) -> Vec<Forgotten> {
        let mut gone = Vec::new();
        let by_nids = &mut self.by_nids;
        self.entries.retain(|_, c| {
            let keep = c.used > since;
            if !keep {
                by_nids.remove(&(c.nid, c.local_nid));
                gone.push(Forgotten::of(c));
            }
            keep
        });
        gone
    }

    /// Forgets the one that was used least lately; one to which nothing has been sent before any other, because whoever
    /// guesses identifiers makes as many of those as he likes.
    pub fn forget_oldest(&mut self) -> Option<Forgotten> {
        let oldest = self.entries.values().min_by_key(|c| (c.contacted, c.used))?;
        let oldest = oldest.identity;
        let gone = self.entries.remove(&oldest)?;
        self.by_nids.remove(&(gone.nid, gone.local_nid));
        Some(Forgotten::of(&gone))
    }
}

/// What is left of a correspondent that is no longer in the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forgotten {
    /// The identifier of ours that it knew.
    pub local_nid: Nid,
    /// Packets that waited for a look-up.
    pub held: usize,
}

impl Forgotten {
    fn of(correspondent: &Correspondent) -> Self {
        Self {
            local_nid: correspondent.local_nid,
            held: correspondent.held.len(),
        }
    }
}

/// Locators kept of one peer: a message names at most 255, and what an update withdrew is kept for a while.
const MAX_LOCATORS: usize = 512;

/// Time between the first two look-ups of a peer; doubled by each.
pub(super) const FIRST_LOOK_UP_INTERVAL: Duration = Duration::from_secs(1);
pub(super) const MAX_LOOK_UP_INTERVAL: Duration = Duration::from_secs(32);
