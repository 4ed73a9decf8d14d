//! How many ICMPv6 errors a node may send (RFC 4443 section 2.4 f).

use crate::time::{Duration, Instant};

/// A token bucket of errors: ten at once, ten a second, which the RFC proposes for a small device.
#[derive(Clone, Debug)]
pub struct ErrorBudget {
    tokens: u64,
    since: Instant,
}

impl Default for ErrorBudget {
    fn default() -> Self {
        Self {
            tokens: BURST,
            since: Instant::ZERO,
        }
    }
}

impl ErrorBudget {
    /// Whether an error may be sent now; it is counted then.
    pub fn take(&mut self, now: Instant) -> bool {
        let grown = now.since(self.since).as_nanos() / INTERVAL.as_nanos();
        self.tokens = (self.tokens + grown).min(BURST);
        self.since += Duration::from_nanos(grown * INTERVAL.as_nanos());
        if self.tokens == 0 {
            return false;
        }
        self.tokens -= 1;
        true
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
}
