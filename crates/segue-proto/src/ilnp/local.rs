//! This host's own locators: the local half of the ILCC (RFC 6741 section 5).

use super::config::{Config, Handoff, Trigger};
use crate::contract::{InterfaceId, LocalAddress};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::ilnp::{Locator, Nid};
use smallvec::SmallVec;

/// What may be done with a locator: the states that RFC 6741 section 5.1 names, and one of our own for what both ends know
/// to be over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LocatorState {
    /// In use: packets are sent from it, or have been exchanged with it lately.
    Active,
    /// May be used: packets from it and to it are taken.
    Valid,
    /// A peer's: used lately, beyond its lifetime, and kept for want of another.
    Expired,
    /// A peer's: beyond its lifetime and not in use, or withdrawn by an update and used until lately. This host's: its
    /// router is silent, or has deprecated its prefix. Not to be used if there is another. Packets are taken.
    Aged,
    /// A peer's: withdrawn by an update, and not used lately. This host's: given up by a hard handoff. Not to be used, and packets
    /// for it are dropped.
    Withdrawn,
}

/// A locator of this host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalLocator {
    /// The locator.
    pub locator: Locator,
    /// Where packets from it go out.
    pub interface: InterfaceId,
    /// What may be done with it.
    pub state: LocatorState,
    /// Preference, lower is better.
    pub preference: u16,
}

/// A locator with what is known of it.
#[derive(Debug)]
struct Held {
    shown: LocalLocator,
    /// Identifiers of ours for which there is an address here.
    nids: SmallVec<[Nid; 1]>,
    /// When its router was last heard, or its address became ready.
    heard: Instant,
    /// The router is silent.
    stale: bool,
    /// The router says that its prefix is not to be used any more.
    deprecated: bool,
    /// Nothing gets through its network, and it is tried again only then.
    silent_until: Option<Instant>,
    /// Number of the event that brought it, or brought it back.
    order: u64,
}

/// Preference of a locator that is in use, and of one that is not (RFC 6742 section 2.3: lower is better).
const IN_USE: u16 = 10;
const IN_RESERVE: u16 = 20;

/// A locator through whose network nothing got is not tried again for so long, where there is another.
const SILENT_FOR: Duration = Duration::from_secs(60);

/// A locator with its preference, as it is advertised.
pub type Advertised = (Locator, u16);

impl Held {
    /// Whether it may be used where there is a choice.
    fn is_fresh(&self) -> bool {
        !self.stale && !self.deprecated && self.silent_until.is_none()
    }

    fn is_at(&self, locator: Locator, interface: InterfaceId) -> bool {
        self.shown.locator == locator && self.shown.interface == interface
    }
}

/// The locators of this host, and its addresses that are not ILNP's.
#[derive(Debug, Default)]
pub(super) struct LocalLocators {
    locators: Vec<Held>,
    others: Vec<LocalAddress>,
    order: u64,
    /// Grows with every change.
    generation: u64,
}

impl LocalLocators {
    /// An address is ready. Its identifier is one of `nids`, or the address is none of ILNP's. Whether a locator came.
    pub fn ready(&mut self, now: Instant, local: LocalAddress, nids: &[Nid], config: &Config) -> bool {
        let (locator, nid) = (Locator::of(local.address), Nid::of(local.address));
        if !nids.contains(&nid) || !locator.is_routable() {
            if !self.others.contains(&local) {
                self.others.push(local);
            }
            return false;
        }
        let known = self
            .locators
            .iter_mut()
            .find(|l| l.is_at(locator, local.interface));
        if let Some(known) = known {
            let is_back = core::mem::take(&mut known.deprecated);
            if !known.nids.contains(&nid) {
                known.nids.push(nid);
                self.generation += 1;
            }
            if is_back {
                self.decide(config);
            }
            return false;
        }
        self.order += 1;
        let order = self.order;
        self.locators.push(Held {
            shown: LocalLocator {
                locator,
                interface: local.interface,
                state: LocatorState::Valid,
                preference: IN_USE,
            },
            nids: [nid].into_iter().collect(),
            heard: now,
            stale: false,
            deprecated: false,
            silent_until: None,
            order,
        });
        self.decide(config);
        true
    }

    /// An address is not to be used where there is another (RFC 4862 section 5.5.4): neither is its locator.
    pub fn deprecated(&mut self, local: LocalAddress, config: &Config) {
        let locator = Locator::of(local.address);
        for known in &mut self.locators {
            known.deprecated |= known.is_at(locator, local.interface);
        }
        self.decide(config);
    }

    /// An address is gone.
    pub fn lost(&mut self, local: LocalAddress, config: &Config) {
        self.others.retain(|o| *o != local);
        let (locator, nid) = (Locator::of(local.address), Nid::of(local.address));
        for known in &mut self.locators {
            if known.is_at(locator, local.interface) {
                known.nids.retain(|n| *n != nid);
            }
        }
        self.locators.retain(|l| !l.nids.is_empty());
        self.decide(config);
    }

    /// Another number whenever something may have changed.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// An identifier is no longer used.
    /// Its addresses, which are no longer needed.
    pub fn retire(&mut self, nid: Nid) -> Vec<LocalAddress> {
        self.generation += 1;
        let mut addresses = Vec::new();
        for known in self.locators.iter_mut().filter(|l| l.nids.contains(&nid)) {
            known.nids.retain(|n| *n != nid);
            addresses.push(LocalAddress {
                interface: known.shown.interface,
                address: known.shown.locator.address(nid),
            });
        }
        addresses
    }

    /// A router was heard over `interface`: its locators are fresh. One that was stale is as good as new. Whether there
    /// was one.
    pub fn heard(&mut self, now: Instant, interface: InterfaceId, config: &Config) -> bool {
        let mut back = false;
        for known in self
            .locators
            .iter_mut()
            .filter(|l| l.shown.interface == interface)
        {
            known.heard = now;
            if core::mem::take(&mut known.stale) {
                self.order += 1;
                known.order = self.order;
                back = true;
            }
        }
        if back {
            self.decide(config);
        }
        back
    }

    /// Locators whose routers have been silent for too long are stale. How many became so.
    pub fn starve(&mut self, now: Instant, config: &Config) -> u64 {
        let Some(timeout) = config.locator_timeout else {
            return 0;
        };
        let mut count = 0;
        for known in &mut self.locators {
            if !known.stale && known.heard + timeout <= now {
                known.stale = true;
                count += 1;
            }
        }
        if count > 0 {
            self.decide(config);
        }
        count
    }

    /// When [`starve`](Self::starve) has something to do next.
    pub fn starves_at(&self, config: &Config) -> Option<Instant> {
        let timeout = config.locator_timeout?;
        let fresh = self.locators.iter().filter(|l| !l.stale);
        fresh.map(|l| l.heard + timeout).min()
    }

    /// The locators of an interface are chosen before all others from now on, those that can be used: as if they had come last. One
    /// through whose network nothing got is tried again.
    pub fn prefer(&mut self, interface: InterfaceId, config: &Config) {
        for known in &mut self.locators {
            if known.shown.interface == interface {
                self.order += 1;
                known.order = self.order;
                known.silent_until = None;
            }
        }
        self.choose(config, false);
    }

    /// Whether there is a choice.
    pub fn has_another(&self) -> bool {
        self.locators.len() > 1
    }

    /// Nothing gets through the network of a locator. It is in reserve when [`recover`](Self::recover) says so, and does not
    /// come back into use by that alone. If nothing gets through any, they are tried in turn.
    pub fn silent(&mut self, now: Instant, locator: Locator, interface: InterfaceId, config: &Config) {
        for known in &mut self.locators {
            if known.is_at(locator, interface) {
                known.silent_until = Some(now + SILENT_FOR);
            }
        }
        if !self.locators.iter().any(Held::is_fresh) {
            for known in self.locators.iter_mut().filter(|l| !l.is_at(locator, interface)) {
                known.silent_until = None;
            }
        }
        let fresh = self.locators.iter_mut().filter(|l| l.is_fresh());
        if let Some(next) = fresh.max_by_key(|l| l.order) {
            self.order += 1;
            next.order = self.order;
        }
        self.decide(config);
    }

    /// Locators through whose networks nothing got long ago are in reserve.
    pub fn recover(&mut self, now: Instant, config: &Config) {
        let mut any = false;
        for known in &mut self.locators {
            any |= known.silent_until.take_if(|until| *until <= now).is_some();
        }
        if any {
            self.decide(config);
        }
    }

    /// When [`recover`](Self::recover) has something to do next.
    pub fn recovers_at(&self) -> Option<Instant> {
        self.locators.iter().filter_map(|l| l.silent_until).min()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &LocalLocator> {
        self.locators.iter().map(|l| &l.shown)
    }

    /// The locator of `address`, if it is one of `nids` here.
    pub fn of(&self, address: Ipv6Addr) -> Option<&LocalLocator> {
        let (locator, nid) = (Locator::of(address), Nid::of(address));
        self.locators
            .iter()
            .find(|l| l.shown.locator == locator && l.nids.contains(&nid))
            .map(|l| &l.shown)
    }

    /// The interface of any address of this host.
    pub fn interface_of(&self, address: Ipv6Addr) -> Option<InterfaceId> {
        let other = self.others.iter().find(|o| o.address == address);
        self.of(address)
            .map(|l| l.interface)
            .or_else(|| other.map(|o| o.interface))
    }

    /// The locators from which packets of `nid` are sent, the newest first: those of the best preference.
    pub fn in_use(&self, nid: Nid) -> SmallVec<[(Locator, InterfaceId); 4]> {
        let usable = |l: &&Held| l.nids.contains(&nid) && l.shown.state != LocatorState::Withdrawn;
        let key = |l: &Held| (l.shown.state == LocatorState::Aged, l.shown.preference);
        let Some(best) = self.locators.iter().filter(usable).map(key).min() else {
            return SmallVec::new();
        };
        let mut found: SmallVec<[_; 4]> = self
            .locators
            .iter()
            .filter(usable)
            .filter(|l| key(l) == best)
            .map(|l| (core::cmp::Reverse(l.order), l.shown.locator, l.shown.interface))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, l, i)| (l, i)).collect()
    }

    /// What peers of `nid` are told: the locators at which packets are taken and to which they may be sent, the best
    /// first.
    pub fn advertised(&self, nid: Nid) -> SmallVec<[Advertised; 4]> {
        let mut told: SmallVec<[(u16, core::cmp::Reverse<u64>, Locator); 4]> = self
            .locators
            .iter()
            .filter(|l| l.nids.contains(&nid) && l.shown.state <= LocatorState::Valid)
            .map(|l| (l.shown.preference, core::cmp::Reverse(l.order), l.shown.locator))
            .collect();
        told.sort_unstable();
        told.into_iter().map(|(p, _, l)| (l, p)).collect()
    }

    /// Which locator is in use, and what that means to the others.
    fn decide(&mut self, config: &Config) {
        self.choose(config, config.trigger == Trigger::Lost);
    }

    /// The same, where the one in use is kept or not.
    fn choose(&mut self, config: &Config, keeps: bool) {
        self.generation += 1;
        let fresh = self.locators.iter().any(Held::is_fresh);
        let candidate = |l: &&Held| l.is_fresh() || !fresh;
        let kept = self
            .locators
            .iter()
            .filter(candidate)
            .find(|l| l.shown.state == LocatorState::Active && keeps);
        let newest = self.locators.iter().filter(candidate).max_by_key(|l| l.order);
        let Some(chosen) = kept.or(newest).map(|l| l.order) else {
            return;
        };
        for known in &mut self.locators {
            let chosen = known.order == chosen;
            let (state, preference) = match config.handoff {
                Handoff::Multihomed if known.is_fresh() || chosen => {
                    let preference = config.preferences.get(usize::from(known.shown.interface.0));
                    (LocatorState::Active, *preference.unwrap_or(&IN_USE))
                }
                _ if chosen => (LocatorState::Active, IN_USE),
                Handoff::Hard => (LocatorState::Withdrawn, IN_RESERVE),
                _ if !known.is_fresh() => (LocatorState::Aged, IN_RESERVE),
                _ => (LocatorState::Valid, IN_RESERVE),
            };
            known.shown = LocalLocator {
                state,
                preference,
                ..known.shown
            };
        }
    }
}
