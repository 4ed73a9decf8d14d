//! What a peer is told.

use super::Correspondent;
use crate::ilnp::config::Config;
use crate::ilnp::local::Advertised;
use crate::ilnp::telling::{Attempt, Overdue};
use crate::time::{Duration, Instant};
use segue_wire::ilnp::{Locator, LocatorEntry};
use smallvec::SmallVec;

impl Correspondent {
    /// Begins to tell it what is `advertised`.
    pub(in crate::ilnp) fn tell(
        &mut self,
        now: Instant,
        advertised: SmallVec<[Advertised; 4]>,
        handoff: bool,
        config: &Config,
    ) {
        self.telling.begin(now, advertised, handoff, config);
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

    /// It acknowledges an update. Whether that was a handoff; `None` if it is not the one under way.
    pub(in crate::ilnp) fn on_acknowledgement(
        &mut self,
        now: Instant,
        entries: &[LocatorEntry],
        lifetime: Duration,
    ) -> Option<bool> {
        self.was_heard(now);
        let handoff = self.telling.on_acknowledgement(now, entries, lifetime)?;
        self.knows_our_nonce();
        Some(handoff)
    }

    /// Whether it is to be told again now though nothing has changed.
    pub(in crate::ilnp) fn take_refresh(&mut self, now: Instant) -> bool {
        self.telling.take_refresh(now)
    }

    /// What has come of the update under way.
    pub(in crate::ilnp) fn on_update_timeout(&mut self, now: Instant, config: &Config) -> Overdue {
        self.telling.on_timeout(now, config)
    }
}
