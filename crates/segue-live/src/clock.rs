//! The only place that reads a clock.

use nix::time::{ClockId, clock_gettime};
use segue_proto::Instant;

/// A clock of the host that never goes back: its instants count from the boot of the machine, so that those of two processes on
/// one machine can be compared.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    id: ClockId,
    /// Nanoseconds from the Unix epoch to the zero of the clock, as they were at start.
    epoch_ns: u64,
}

impl Clock {
    /// A clock that stands still while the machine sleeps (`CLOCK_MONOTONIC`); what the host's calendar clock says is read once, here.
    #[must_use]
    pub fn new() -> Self {
        Self::of(ClockId::CLOCK_MONOTONIC)
    }

    /// A clock that goes on while the machine sleeps (`CLOCK_BOOTTIME`), as the clocks of others do: what they have forgotten meanwhile
    /// is forgotten here too.
    #[must_use]
    pub fn through_sleep() -> Self {
        Self::of(ClockId::CLOCK_BOOTTIME)
    }

    fn of(id: ClockId) -> Self {
        Self {
            id,
            epoch_ns: read(ClockId::CLOCK_REALTIME).saturating_sub(read(id)),
        }
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(read(self.id))
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

/// Nanoseconds of a clock. Linux always has these three clocks.
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
        for clock in [Clock::new(), Clock::through_sleep()] {
            let first = clock.now();
            assert!(first.as_nanos() > 0);
            assert!(clock.now() >= first);
            assert!(clock.unix_ns(first) > 1_577_836_800 * 1_000_000_000);
        }
    }
}
