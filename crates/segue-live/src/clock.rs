//! The only place that reads a clock.

use nix::time::{ClockId, clock_gettime};
use segue_proto::Instant;

/// The monotonic clock of the host: its instants count from the boot of the machine, so that those of two processes on one
/// machine can be compared.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds from the Unix epoch to the zero of the monotonic clock, as they were at start.
    epoch_ns: u64,
}

impl Clock {
    /// A clock; what the host's calendar clock says is read once, here.
    #[must_use]
    pub fn new() -> Self {
        let monotonic = read(ClockId::CLOCK_MONOTONIC);
        Self {
            epoch_ns: read(ClockId::CLOCK_REALTIME).saturating_sub(monotonic),
        }
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(read(ClockId::CLOCK_MONOTONIC))
    }

    /// Nanoseconds of `at` since the Unix epoch.
    #[must_use]
    pub const fn unix_ns(&self, at: Instant) -> u64 {
        self.epoch_ns.saturating_add(at.as_nanos())
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Nanoseconds of a clock. Linux always has these two clocks.
fn read(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |t| {
        (t.tv_sec() as u64)
            .saturating_mul(1_000_000_000)
            .saturating_add(t.tv_nsec() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_and_the_calendar_is_past_2020() {
        let clock = Clock::new();
        let first = clock.now();
        assert!(first.as_nanos() > 0);
        assert!(clock.now() >= first);
        assert!(clock.unix_ns(first) > 1_577_836_800 * 1_000_000_000);
    }
}
