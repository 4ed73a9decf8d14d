//! When a peer was heard, and when it was sent to.

use super::flows::{QUIET, REPEATED};
use crate::time::{Duration, Instant};

/// How lately, and how often, a peer was heard and sent to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contact {
    /// Last packet of a transport to it or from it. That two hosts tell each other again where they are keeps nothing alive.
    used: Instant,
    /// Packets sent since it was last heard, and since when.
    unheard: u32,
    unheard_since: Instant,
    /// Something was begun after a quiet time, and it was not heard since.
    begun_after_quiet: bool,
    /// Packets heard from it since the first nonce was sent to it.
    heard: u32,
    /// Packets heard from it.
    packets_heard: u32,
    /// Any packet has been sent to it.
    contacted: bool,
    /// When it was last heard at a locator that it has.
    heard_at_home: Option<Instant>,
}

impl Contact {
    pub fn new(now: Instant) -> Self {
        Self {
            used: now,
            unheard: 0,
            unheard_since: now,
            begun_after_quiet: false,
            heard: 0,
            packets_heard: 0,
            contacted: false,
            heard_at_home: None,
        }
    }

    /// Its transports were heard, or are spoken to.
    pub fn on_used(&mut self, now: Instant) {
        self.used = self.used.max(now);
    }

    /// The peer was heard, and it was the peer.
    pub fn on_heard(&mut self, now: Instant) {
        // what was carried past the machine is told afterwards
        if self.unheard_since <= now {
            self.unheard = 0;
            self.begun_after_quiet = false;
        }
        self.heard = self.heard.saturating_add(u32::from(self.contacted));
        self.packets_heard = self.packets_heard.saturating_add(1);
    }

    /// It was heard at a locator that it has.
    pub fn on_heard_at_home(&mut self, now: Instant) {
        self.heard_at_home = Some(now);
    }

    /// A packet goes to it.
    pub fn on_sent(&mut self, now: Instant) {
        self.used = self.used.max(now);
        self.contacted = true;
        if self.unheard == 0 {
            self.unheard_since = now;
        }
        self.unheard = self.unheard.saturating_add(1);
    }

    /// Something begins after a quiet time.
    pub fn on_begun_after_quiet(&mut self) {
        self.begun_after_quiet = true;
    }

    /// Of two sessions that turn out to be one: packets have gone to the other, or not.
    pub fn join(&mut self, other: &Self) {
        self.contacted = other.contacted;
    }

    /// Last packet of a transport to it or from it.
    pub fn used(&self) -> Instant {
        self.used
    }

    /// Whether there was none for so long that it may have been started again since.
    pub fn is_quiet(&self, now: Instant) -> bool {
        now.since(self.used) >= QUIET
    }

    /// Whether any packet has been sent to it.
    pub fn is_contacted(&self) -> bool {
        self.contacted
    }

    /// Packets heard since the first nonce was sent to it.
    pub fn heard(&self) -> u32 {
        self.heard
    }

    /// Whether so much was heard that it must have seen our nonce: a packet that was on its way may not have.
    pub fn has_heard_enough(&self) -> bool {
        self.heard >= HEARD_ENOUGH
    }

    /// Whether it was heard more than once.
    pub fn carries_on(&self) -> bool {
        self.packets_heard > 1
    }

    /// Whether so many packets have gone unanswered.
    pub fn has_unheard(&self, packets: u32) -> bool {
        self.unheard >= packets
    }

    /// Whether so many packets have gone unanswered for so long.
    pub fn is_silent(&self, now: Instant, packets: u32, time: Duration) -> bool {
        self.has_unheard(packets) && now.since(self.unheard_since) >= time
    }

    /// Whether what was begun after a quiet time was repeated, or goes on, unanswered: what was known of the peer may be of before
    /// it was started again, elsewhere.
    pub fn is_unheard_after_quiet(&self, now: Instant) -> bool {
        self.begun_after_quiet && self.is_silent(now, 1, REPEATED)
    }

    /// When it was last heard at a locator that it has.
    pub fn heard_at_home(&self) -> Option<Instant> {
        self.heard_at_home
    }
}

const HEARD_ENOUGH: u32 = 2;
