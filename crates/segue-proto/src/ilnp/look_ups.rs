//! Asking the directory where a peer is, and the packets that wait for it.

use crate::time::{Duration, Instant};
use segue_wire::Packet;
use std::collections::VecDeque;

/// The look-ups of one peer.
#[derive(Debug)]
pub(super) struct LookUps {
    /// No look-up before this, and what is added next time.
    next: Instant,
    interval: Duration,
    /// A look-up has not been answered.
    asked: bool,
    /// Packets that wait for one.
    held: VecDeque<Packet>,
}

impl LookUps {
    pub fn new(now: Instant) -> Self {
        Self {
            next: now,
            interval: FIRST_INTERVAL,
            asked: false,
            held: VecDeque::new(),
        }
    }

    /// Begins one, if there was none just now. Whether it does.
    pub fn begin(&mut self, now: Instant) -> bool {
        if self.next > now {
            return false;
        }
        self.asked = true;
        self.next = now + self.interval;
        self.interval = (self.interval * 2).clamp(Duration::ZERO, MAX_INTERVAL);
        true
    }

    /// The peer was heard: the next look-up may be at once.
    pub fn on_heard(&mut self, now: Instant) {
        self.interval = FIRST_INTERVAL;
        self.next = now;
    }

    /// There is an answer.
    pub fn on_answer(&mut self) {
        self.asked = false;
    }

    /// A look-up has not been answered.
    pub fn is_asked(&self) -> bool {
        self.asked
    }

    /// A packet waits, unless so many do already. Whether it does.
    pub fn hold(&mut self, packet: Packet, most: usize) -> bool {
        let room = self.held.len() < most;
        if room {
            self.held.push_back(packet);
        }
        room
    }

    /// Packets that wait.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// The packets that wait; they do no more.
    pub fn take_held(&mut self) -> VecDeque<Packet> {
        core::mem::take(&mut self.held)
    }
}

/// Time between the first two look-ups of a peer; doubled by each.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);
const MAX_INTERVAL: Duration = Duration::from_secs(32);
