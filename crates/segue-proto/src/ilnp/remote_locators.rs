//! The locators of a peer: the remote half of the ILCC (RFC 6741 section 5).

use super::config::Config;
use super::local::{Advertised, LocatorState};
use crate::time::{Duration, Instant};
use segue_wire::ilnp::{Locator, LocatorEntry};
use smallvec::SmallVec;

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

    /// The same, after a packet went to it or came from it.
    const fn used_at(self, now: Instant) -> Self {
        Self {
            used: Some(now),
            ..self
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

/// The locators of one peer, and what has gone to those that nothing confirms.
#[derive(Debug)]
pub(super) struct RemoteLocators {
    list: Vec<RemoteLocator>,
    /// Bytes sent to locators that are not confirmed, and since when.
    unconfirmed: (Instant, u64),
}

impl RemoteLocators {
    pub fn new(now: Instant) -> Self {
        Self {
            list: Vec::new(),
            unconfirmed: (now, 0),
        }
    }

    /// All of them.
    pub fn all(&self) -> &[RemoteLocator] {
        &self.list
    }

    /// Whether it is nowhere that it has not left.
    pub fn is_nowhere(&self) -> bool {
        self.list.iter().all(|l| l.withdrawn)
    }

    /// Those that it has not left, those of the best preference first.
    pub fn targets(&self, now: Instant) -> SmallVec<[Locator; 4]> {
        let mut targets = self.best(now);
        let best = targets.len();
        for l in self.list.iter().filter(|l| !l.withdrawn) {
            if !targets[..best].contains(&l.locator) {
                targets.push(l.locator);
            }
        }
        targets
    }

    /// Whether these are the locators that it has not left.
    pub fn are(&self, told: &[LocatorEntry]) -> bool {
        let is_told = |locator: Locator| told.iter().any(|e| e.locator == locator);
        let current = || self.list.iter().filter(|l| !l.withdrawn);
        current().all(|l| is_told(l.locator)) && told.iter().all(|e| self.is_at(e.locator))
    }

    /// The position of a locator.
    pub fn position(&self, locator: Locator) -> Option<usize> {
        self.list.iter().position(|l| l.locator == locator)
    }

    /// The configuration or a packet gives a locator.
    pub fn add_found(&mut self, locator: Locator) {
        self.list.push(RemoteLocator::found(locator));
    }

    /// Marks the locator at a position as used.
    pub fn mark_at(&mut self, now: Instant, position: usize) {
        if let Some(known) = self.list.get_mut(position) {
            *known = known.used_at(now);
        }
    }

    /// Its locators of the best preference: valid ones, or aged ones where there is no other.
    pub fn best(&self, now: Instant) -> SmallVec<[Locator; 4]> {
        let key = |l: &RemoteLocator| (l.until.is_some_and(|until| until <= now), l.preference);
        let usable = || self.list.iter().filter(|l| !l.withdrawn);
        let Some(best) = usable().map(key).min() else {
            return SmallVec::new();
        };
        usable().filter(|l| key(l) == best).map(|l| l.locator).collect()
    }

    /// Whether `locator` is one of its own, or was until lately.
    pub fn knows(&self, locator: Locator, now: Instant, active_time: Duration) -> bool {
        self.list
            .iter()
            .any(|l| l.locator == locator && l.state(now, active_time) != LocatorState::Withdrawn)
    }

    /// Whether it has said, or was said, to be at `locator`, and has not left.
    pub fn is_at(&self, locator: Locator) -> bool {
        self.list.iter().any(|l| l.locator == locator && !l.withdrawn)
    }

    /// Whether `locator` is only what an update has said, and not what anything has shown.
    pub fn is_unconfirmed(&self, locator: Locator) -> bool {
        self.list.iter().any(|l| l.locator == locator && !l.confirmed)
    }

    /// Takes the locators of an update; those it does not name are withdrawn.
    pub fn replace(&mut self, now: Instant, config: &Config, entries: &[LocatorEntry]) {
        let told = entries.iter().filter(|e| e.lifetime_s > 0);
        self.exchange(now, config, told.map(|e| RemoteLocator::told(e, now)).collect());
    }

    /// Takes the locators that a look-up found.
    pub fn replace_by_found(&mut self, now: Instant, config: &Config, found: &[Advertised]) {
        let new = found.iter().map(|(locator, preference)| RemoteLocator {
            preference: *preference,
            ..RemoteLocator::found(*locator)
        });
        self.exchange(now, config, new.collect());
    }

    fn exchange(&mut self, now: Instant, config: &Config, mut new: Vec<RemoteLocator>) {
        for old in self.list.drain(..) {
            if let Some(again) = new.iter_mut().find(|n| n.locator == old.locator) {
                *again = RemoteLocator {
                    used: old.used,
                    confirmed: again.confirmed || old.confirmed,
                    ..*again
                };
            } else {
                let left = RemoteLocator {
                    withdrawn: true,
                    ..old
                };
                if left.state(now, config.active_time) != LocatorState::Withdrawn {
                    new.push(left);
                }
            }
        }
        // what an update withdrew is the last to be kept, and the best are the first
        new.sort_by_key(|l| (l.withdrawn, l.preference));
        new.truncate(MAX_LOCATORS);
        self.list = new;
    }

    /// Marks a locator as used.
    pub fn mark(&mut self, now: Instant, locator: Locator) {
        if let Some(known) = self.list.iter_mut().find(|l| l.locator == locator) {
            *known = known.used_at(now);
        }
    }

    /// Something other than an update says that `locator` is the peer's.
    pub fn confirm(&mut self, locator: Locator) {
        if let Some(known) = self.list.iter_mut().find(|l| l.locator == locator) {
            *known = RemoteLocator {
                confirmed: true,
                ..*known
            };
        }
    }

    /// Counts `bytes` against what may go to unconfirmed locators in `period`. Whether they may.
    pub fn spend(&mut self, now: Instant, bytes: u64, most: u64, period: Duration) -> bool {
        let (since, spent) = &mut self.unconfirmed;
        if now.since(*since) >= period {
            (*since, *spent) = (now, 0);
        }
        let may = *spent + bytes <= most;
        *spent += if may { bytes } else { 0 };
        may
    }
}

/// Locators kept of one peer, the best ones. RFC 6743 section 4 has implementations support many, RFC 6741 section 5.3 that many do
/// no harm: nobody sends from so many places.
pub(super) const MAX_LOCATORS: usize = 64;
