//! How often something may be done: what others can cause without having shown who they are.

use crate::time::{Duration, Instant};

/// A token bucket.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    tokens: u64,
    since: Instant,
    burst: u64,
    interval: Duration,
}

impl TokenBucket {
    /// A full one: `burst` at once, and one each `interval` from then on.
    #[must_use]
    pub const fn new(burst: u64, interval: Duration) -> Self {
        Self {
            tokens: burst,
            since: Instant::ZERO,
            burst,
            interval,
        }
    }

    /// Whether there is a token now; it is taken then.
    pub fn take(&mut self, now: Instant) -> bool {
        let grown = now.since(self.since).as_nanos() / self.interval.as_nanos().max(1);
        self.tokens = (self.tokens + grown).min(self.burst);
        self.since += Duration::from_nanos(grown * self.interval.as_nanos());
        if self.tokens == 0 {
            return false;
        }
        self.tokens -= 1;
        true
    }

    /// Has the token back that was taken last: what it was for was not done.
    pub fn give_back(&mut self) {
        self.tokens = (self.tokens + 1).min(self.burst);
    }
}

/// How many ICMPv6 errors a node may send (RFC 4443 section 2.4 f): ten at once, ten a second, which the RFC proposes for a small
/// device.
#[derive(Clone, Debug)]
pub struct ErrorBudget(TokenBucket);

impl Default for ErrorBudget {
    fn default() -> Self {
        Self(TokenBucket::new(BURST, INTERVAL))
    }
}

impl ErrorBudget {
    /// Whether an error may be sent now; it is counted then.
    pub fn take(&mut self, now: Instant) -> bool {
        self.0.take(now)
    }
}

const BURST: u64 = 10;
const INTERVAL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_errors_at_once_and_ten_a_second() {
        let mut budget = ErrorBudget::default();
        let mut sent = 0;
        for ms in 0..=2000 {
            sent += u64::from(budget.take(Instant::ZERO + Duration::from_millis(ms)));
        }
        assert_eq!(sent, 10 + 20);
    }

    #[test]
    fn a_token_that_is_given_back_can_be_taken_again() {
        let mut bucket = TokenBucket::new(1, Duration::from_secs(1));
        assert!(bucket.take(Instant::ZERO) && !bucket.take(Instant::ZERO));
        bucket.give_back();
        bucket.give_back();
        assert!(bucket.take(Instant::ZERO) && !bucket.take(Instant::ZERO));
    }
}
