//! The timers of a sender, in one table, and what is counted by them.

use crate::time::{Duration, Instant};

/// What a sender waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// RACK's reordering timer, or early retransmit's.
    Reorder,
    /// Tail loss probe.
    Probe,
    /// The next probe of a closed window.
    Persist,
    /// RFC 6298.
    Retransmission,
}

/// The timers, each with the time at which it expires, if it runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    at: [Option<Instant>; 4],
    /// Probes of a window that stays closed.
    persist_backoff: u32,
    /// Timeouts in a row.
    retries: u32,
    /// Of them, those since the peer last showed that it is there.
    unanswered: u32,
}

impl Timers {
    pub fn at(&self, timer: Timer) -> Option<Instant> {
        self.at[timer as usize]
    }

    pub fn is_running(&self, timer: Timer) -> bool {
        self.at(timer).is_some()
    }

    pub fn start(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize] = Some(at);
    }

    /// Starts it unless it runs.
    pub fn ensure(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize].get_or_insert(at);
    }

    pub fn stop(&mut self, timer: Timer) {
        self.at[timer as usize] = None;
    }

    pub fn stop_all(&mut self) {
        self.at = [None; 4];
    }

    /// Whether it has expired; then it is stopped.
    pub fn take_due(&mut self, timer: Timer, now: Instant) -> bool {
        let due = self.at(timer).is_some_and(|at| at <= now);
        if due {
            self.stop(timer);
        }
        due
    }

    /// The earliest of them, [`Instant::MAX`] if none runs.
    #[inline]
    pub fn earliest(&self) -> Instant {
        self.at.iter().fold(Instant::MAX, |earliest, at| {
            earliest.min(at.unwrap_or(Instant::MAX))
        })
    }

    /// Timeouts in a row.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Timeouts in a row since the peer last showed that it is there.
    pub fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Another timeout.
    pub fn count_retry(&mut self) {
        self.retries += 1;
        self.unanswered += 1;
    }

    /// The peer has answered.
    pub fn forget_retries(&mut self) {
        (self.retries, self.unanswered) = (0, 0);
    }

    /// The peer has answered, but takes nothing: what was sent again is not repaired by that.
    pub fn note_answer(&mut self) {
        self.unanswered = 0;
    }

    /// The window stays closed: the next probe comes later.
    pub fn back_off_persist(&mut self) {
        self.persist_backoff = (self.persist_backoff + 1).min(MOST_BACKOFF);
    }

    /// Time until the next probe of the window.
    pub fn persist_interval(&self, rto: Duration, most: Duration) -> Duration {
        (rto * (1 << self.persist_backoff)).clamp(Duration::ZERO, most)
    }

    /// The window opens. Whether it was being probed.
    pub fn end_persist(&mut self) -> bool {
        let probed = self.is_running(Timer::Persist);
        if probed {
            self.stop(Timer::Persist);
            self.persist_backoff = 0;
        }
        probed
    }
}

const MOST_BACKOFF: u32 = 16;
