//! What a peer is told, and whether anything gets through to it.

use super::Correspondent;
use crate::ilnp::config::Config;
use crate::ilnp::local::Advertised;
use crate::ilnp::mode::Mode;
use crate::ilnp::telling::{Attempt, Overdue, refreshed_after};
use crate::reachability::{Reachability, Step};
use crate::time::{Duration, Instant};
use segue_wire::ilnp::{Locator, LocatorEntry};
use smallvec::SmallVec;

/// What an acknowledgement is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ilnp) enum Acknowledged {
    /// The update under way, and whether that is a handoff.
    Update { handoff: bool },
    /// What it has acknowledged before.
    Probe,
    /// Something else.
    Unexpected,
}

impl Correspondent {
    /// The peer was heard, though none of its transports need have been.
    pub(super) fn has_signalled(&mut self, now: Instant) {
        self.contact.on_heard(now);
        self.look_ups.on_heard(now);
        if let Some(way) = &mut self.reachability {
            way.on_heard(now);
        }
    }

    /// Begins to tell it what is `advertised`.
    pub(in crate::ilnp) fn tell(
        &mut self,
        now: Instant,
        advertised: SmallVec<[Advertised; 4]>,
        handoff: bool,
        config: &Config,
    ) {
        self.telling.begin(now, advertised, handoff, config);
        if handoff {
            self.on_moved();
        }
    }

    /// Tells it again what it was told.
    pub(in crate::ilnp) fn tell_again(&mut self, now: Instant, config: &Config) {
        self.telling.begin_again(now, config);
    }

    /// Begins anew with the update under way: it is somewhere else.
    pub(in crate::ilnp) fn restart_update(&mut self, config: &Config) {
        self.telling.restart(config);
    }

    /// The update under way is sent.
    pub(in crate::ilnp) fn attempt_update(&mut self, now: Instant) -> Option<Attempt> {
        let targets = self.locators.targets(now);
        self.telling.attempt(now, &targets)
    }

    /// The update went there.
    pub(in crate::ilnp) fn on_update_sent(&mut self, to: Locator) {
        self.telling.on_sent(to);
    }

    /// It acknowledges an update.
    pub(in crate::ilnp) fn on_acknowledgement(
        &mut self,
        now: Instant,
        entries: &[LocatorEntry],
        lifetime: Duration,
    ) -> Acknowledged {
        self.has_signalled(now);
        let probed = self.telling.probe() == Some(entries);
        if let Some(way) = self.reachability.as_mut().filter(|_| probed) {
            way.on_answer(now);
        }
        match self.telling.on_acknowledgement(now, entries, lifetime) {
            Some(handoff) => {
                self.knows_our_nonce();
                Acknowledged::Update { handoff }
            }
            None if probed && self.reachability.is_some() => Acknowledged::Probe,
            None => Acknowledged::Unexpected,
        }
    }

    /// Whether it is to be told again now though nothing has changed.
    pub(in crate::ilnp) fn take_refresh(&mut self, now: Instant, config: &Config) -> bool {
        let later = refreshed_after(config.locator_lifetime);
        self.telling.take_refresh(now, self.contact.is_quiet(now), later)
    }

    /// What has come of the update under way.
    pub(in crate::ilnp) fn on_update_timeout(&mut self, now: Instant, config: &Config) -> Overdue {
        self.telling.on_timeout(now, config)
    }
}

/// Whether anything gets through to it.
impl Correspondent {
    /// Watches whether anything gets through to it.
    pub(in crate::ilnp) fn watch(&mut self) {
        self.reachability = Some(Box::default());
    }

    /// Whether anything gets through to it, if that is watched and it takes updates.
    pub(in crate::ilnp) fn reachability(&self) -> Option<&Reachability> {
        self.reachability.as_deref().filter(|_| self.mode == Mode::Ilnp)
    }

    /// What is to be done to see whether anything gets through. If there is `no_other` way there is no need to know.
    pub(in crate::ilnp) fn on_reachability_timeout(&mut self, now: Instant, no_other: bool) -> Step {
        let is_ilnp = self.mode == Mode::Ilnp;
        match &mut self.reachability {
            Some(way) if no_other => {
                way.on_moved();
                Step::Nothing
            }
            Some(way) if is_ilnp => way.handle_timeout(now),
            _ => Step::Nothing,
        }
    }

    /// Whether it can be told for the first time where this host is: it was heard often enough, or this host has called it.
    pub(in crate::ilnp) fn may_be_told(&self) -> bool {
        let heard = self.parties.called || self.contact.has_heard_enough();
        heard && !self.telling.is_under_way() && !self.telling.has_given_up()
    }

    /// Packets take another way from now on.
    pub(super) fn on_moved(&mut self) {
        if let Some(way) = &mut self.reachability {
            way.on_moved();
        }
    }

    /// A packet goes to it.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.contact.on_sent(now);
        if let Some(way) = &mut self.reachability {
            way.on_sent(now);
        }
    }
}
