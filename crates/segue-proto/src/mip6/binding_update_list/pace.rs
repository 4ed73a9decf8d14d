//! When messages are sent again, and how many there may be (RFC 6275 section 11.8).

use crate::time::{Duration, Instant};
use smallvec::SmallVec;

/// The timer of something that is sent until it is answered (section 11.8).
#[derive(Clone, Copy, Debug)]
pub(in crate::mip6) struct Retransmission {
    next: Instant,
    timeout: Duration,
    /// Transmissions so far.
    attempts: u32,
}

impl Retransmission {
    pub fn begin(now: Instant, initial: Duration) -> Self {
        Self {
            next: now + initial,
            timeout: initial,
            attempts: 1,
        }
    }

    /// When the next transmission is due.
    pub fn next(&self) -> Instant {
        self.next
    }

    pub fn is_due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// Whether there was a transmission before: the next is a retransmission.
    pub fn is_begun(&self) -> bool {
        self.attempts > 0
    }

    /// Whether so many transmissions went unanswered.
    pub fn is_over(&self, most: u32) -> bool {
        self.attempts >= most
    }

    /// Whether the time between transmissions has grown to `max`.
    pub fn is_slowest(&self, max: Duration) -> bool {
        self.timeout >= max
    }

    /// The transmission that was counted last has to wait until then: see [`UpdateRate`].
    pub fn postpone(&mut self, until: Instant) {
        self.attempts = self.attempts.saturating_sub(1);
        self.next = until;
    }

    /// Another transmission at `now`; the next comes after twice the time, at most `max`. After the first, if that had to
    /// wait, it comes after the time itself.
    pub fn again(&mut self, now: Instant, max: Duration) {
        if self.attempts > 0 {
            self.timeout = (self.timeout * 2).min(max);
        }
        self.next = now + self.timeout;
        self.attempts += 1;
    }
}

/// Mobility messages of one type to one node: at most [`MAX_UPDATE_RATE`] within a second (section 11.8).
#[derive(Debug, Default)]
pub(in crate::mip6) struct UpdateRate {
    /// The last ones, the earliest first.
    sent: SmallVec<[Instant; MAX_UPDATE_RATE]>,
}

impl UpdateRate {
    /// Counts one that is sent now.
    ///
    /// # Errors
    /// It may not be sent before then.
    pub fn send(&mut self, now: Instant) -> Result<(), Instant> {
        if self.sent.len() < MAX_UPDATE_RATE {
            self.sent.push(now);
            return Ok(());
        }
        let earliest = self.sent[0] + Duration::from_secs(1);
        if earliest > now {
            return Err(earliest);
        }
        self.sent.remove(0);
        self.sent.push(now);
        Ok(())
    }
}

/// Section 12.
pub(in crate::mip6) const MAX_UPDATE_RATE: usize = 3;
