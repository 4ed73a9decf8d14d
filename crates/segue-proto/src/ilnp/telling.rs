//! What a peer is told of this host's locators, until it has acknowledged that (RFC 6743).

use super::config::Config;
use super::local::Advertised;
use crate::time::{Duration, Instant};
use segue_wire::ilnp::{Locator, LocatorEntry, LocatorUpdate};
use smallvec::SmallVec;

/// What one peer is told.
#[derive(Debug, Default)]
pub(super) struct Telling {
    /// What it has been told, whether acknowledged or not.
    told: SmallVec<[Advertised; 4]>,
    /// When it is told again though nothing has changed.
    refresh: Option<Instant>,
    /// The last acknowledgement.
    acknowledged: Option<Instant>,
    /// The update under way.
    update: Option<Update>,
    /// What the last update said that was acknowledged, if nothing has been told since.
    known: Vec<LocatorEntry>,
    /// An update was given up: it is taken up again when the peer is heard.
    gave_up: bool,
    /// Updates begun.
    updates: u16,
}

/// An update that has not been acknowledged.
#[derive(Clone, PartialEq, Debug)]
struct Update {
    entries: Vec<LocatorEntry>,
    sent: u32,
    timeout: Duration,
    next: Instant,
    /// Where it was sent last.
    to: Option<Locator>,
    /// It tells of another locator in use, not only of more or fewer beside it.
    handoff: bool,
}

/// An update that is to be sent, again perhaps.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Attempt {
    /// To which of the peer's locators; `None` if it has none.
    pub to: Option<Locator>,
    pub entries: Vec<LocatorEntry>,
    pub again: bool,
}

/// What has come of an update by now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Overdue {
    /// Nothing: there is time.
    No,
    /// It is to be sent again, after so many times.
    Retransmit { sent: u32 },
    /// It was sent often enough.
    GivenUp { handoff: bool },
}

impl Telling {
    /// What it has been told.
    pub fn told(&self) -> &[Advertised] {
        &self.told
    }

    /// Whether there is anything new for it in what is `advertised`, or an update that was given up is to be taken up again:
    /// not for one that is quiet, and need not be there any more.
    pub fn is_due(&self, advertised: &[Advertised], is_quiet: bool) -> bool {
        *self.told != *advertised || (self.gave_up && !is_quiet)
    }

    /// Whether `advertised` means another locator in use, of the preference `best`, or an update that does is under way.
    pub fn is_handoff(&self, advertised: &[Advertised], best: u16) -> bool {
        let in_use = |told: &Advertised| advertised.iter().any(|a| a.0 == told.0 && a.1 == best);
        !self.told.first().is_some_and(in_use) || self.is_handoff_under_way()
    }

    pub fn is_under_way(&self) -> bool {
        self.update.is_some()
    }

    pub fn is_handoff_under_way(&self) -> bool {
        self.update.as_ref().is_some_and(|update| update.handoff)
    }

    /// An update was given up.
    pub fn has_given_up(&self) -> bool {
        self.gave_up
    }

    /// Whether it has acknowledged what it was told, and not just now.
    pub fn is_settled(&self, now: Instant, since: Duration) -> bool {
        let long_ago = self.acknowledged.is_some_and(|at| now.since(at) >= since);
        self.update.is_none() && long_ago && !self.told.is_empty()
    }

    /// Whether the update under way was sent last to where the peer is not.
    pub fn is_astray(&self, is_there: impl Fn(Locator) -> bool) -> bool {
        let to = self.update.as_ref().and_then(|update| update.to);
        to.is_some_and(|to| !is_there(to))
    }

    /// Whether it has ever acknowledged anything: it has our nonce, and is where it says.
    pub fn was_ever_acknowledged(&self) -> bool {
        self.acknowledged.is_some()
    }

    /// It has the first packet, which tells it of this one.
    pub fn on_first_packet(&mut self, from: Advertised) {
        self.told = [from].into_iter().collect();
    }

    /// Begins to tell it what is `advertised`. No update says the same as an earlier one: the lifetime, of which an eighth at
    /// most is not told, counts them, so that the peer need not take one that is replayed.
    pub fn begin(
        &mut self,
        now: Instant,
        advertised: SmallVec<[Advertised; 4]>,
        handoff: bool,
        config: &Config,
    ) {
        let lifetime_s = (config.locator_lifetime.as_nanos() / 1_000_000_000) as u16;
        let lifetime_s = lifetime_s - self.updates % (lifetime_s / 8).clamp(1, 1024);
        self.updates = self.updates.wrapping_add(1);
        self.gave_up = false;
        self.refresh = None;
        self.known.clear();
        self.told = advertised;
        self.update = Some(Update {
            entries: self
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
    }

    /// The same again, which is no handoff.
    pub fn begin_again(&mut self, now: Instant, config: &Config) {
        let told = core::mem::take(&mut self.told);
        self.begin(now, told, false, config);
    }

    /// Begins anew with the update under way: the peer is somewhere else.
    pub fn restart(&mut self, config: &Config) {
        if let Some(update) = &mut self.update {
            update.sent = 0;
            update.timeout = config.lu_timeout;
        }
    }

    /// The update under way is sent: first to the peer's best locator, then to each of the `targets` in turn.
    pub fn attempt(&mut self, now: Instant, targets: &[Locator]) -> Option<Attempt> {
        let update = self.update.as_mut()?;
        update.next = now + update.timeout;
        let attempt = Attempt {
            to: targets.get(update.sent as usize % targets.len().max(1)).copied(),
            entries: update.entries.clone(),
            again: update.sent > 0,
        };
        update.sent += 1;
        Some(attempt)
    }

    /// It went there.
    pub fn on_sent(&mut self, to: Locator) {
        if let Some(update) = &mut self.update {
            update.to = Some(to);
        }
    }

    /// An acknowledgement of these. Whether the update under way was a handoff; `None` if it is not for that one. What it was
    /// told is over after `lifetime`.
    pub fn on_acknowledgement(
        &mut self,
        now: Instant,
        entries: &[LocatorEntry],
        lifetime: Duration,
    ) -> Option<bool> {
        let update = self.update.take_if(|update| update.entries == entries)?;
        self.acknowledged = Some(now);
        self.refresh = Some(now + refreshed_after(lifetime));
        self.known = update.entries;
        Some(update.handoff)
    }

    /// What to say to see whether anything gets through: the update under way, or what is known already. `None` if there is
    /// nothing that the peer has acknowledged.
    pub fn probe(&self) -> Option<&[LocatorEntry]> {
        let said = self.update.as_ref().map_or(&self.known, |update| &update.entries);
        (!said.is_empty()).then_some(said)
    }

    /// Nothing is told any more.
    pub fn stop(&mut self) {
        self.update = None;
        self.refresh = None;
    }

    /// Whether it is to be told again now though nothing has changed. One that is quiet is not: what it was told is over then, and as
    /// good as any while there is no other (RFC 6741 section 5.2). It is looked at again `later`.
    pub fn take_refresh(&mut self, now: Instant, is_quiet: bool, later: Duration) -> bool {
        if self.refresh.take_if(|at| *at <= now).is_none() {
            return false;
        }
        if is_quiet {
            self.refresh = Some(now + later);
        }
        !is_quiet && self.update.is_none()
    }

    /// What has come of the update under way.
    pub fn on_timeout(&mut self, now: Instant, config: &Config) -> Overdue {
        let Some(update) = self.update.as_mut().filter(|update| update.next <= now) else {
            return Overdue::No;
        };
        if update.sent < config.lu_attempts {
            update.timeout = (update.timeout * 2).clamp(Duration::ZERO, config.lu_max_timeout);
            return Overdue::Retransmit { sent: update.sent };
        }
        let handoff = update.handoff;
        self.update = None;
        self.gave_up = true;
        Overdue::GivenUp { handoff }
    }

    /// When something is to be done next.
    pub fn timeout(&self) -> Option<Instant> {
        let update = self.update.as_ref().map(|update| update.next);
        [update, self.refresh].into_iter().flatten().min()
    }
}

/// Time after which a locator of this lifetime is told again.
pub(super) fn refreshed_after(lifetime: Duration) -> Duration {
    Duration::from_nanos(lifetime.as_nanos() / 4 * 3)
}
