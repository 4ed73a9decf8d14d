//! Times in the format of NTP (RFC 5905 section 6), by which replays of Binding Updates are known (RFC 4285 section 6): seconds in the
//! upper 32 bits, which begin anew every 136 years, so that times are compared by their difference.

use crate::time::{Duration, Instant};

/// The clock that timestamps are of. It begins with the driver's. A host whose times begin anew with each boot gives it the
/// calendar's: otherwise what was sent before the boot would be as new as what is sent now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NtpClock {
    /// The time at the driver's zero.
    at_zero: u64,
    source: Source,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Source {
    #[default]
    Driver,
    Calendar,
    /// The home agent's.
    Other,
}

impl NtpClock {
    /// The calendar's time at the driver's zero, nanoseconds since the Unix epoch. One that was set back is not followed, since
    /// what is accepted has to be newer than what was; nor is any by who goes by another's.
    pub fn set(&mut self, unix_ns: u64) {
        let at_zero = (UNIX_EPOCH << 32).wrapping_add(units(unix_ns));
        let follows = match self.source {
            Source::Driver => true,
            Source::Calendar => is_after(at_zero, self.at_zero),
            Source::Other => false,
        };
        if follows {
            (self.at_zero, self.source) = (at_zero, Source::Calendar);
        }
    }

    /// It is now `theirs`, whatever it was.
    pub fn adopt(&mut self, now: Instant, theirs: u64) {
        self.at_zero = theirs.wrapping_sub(units(now.as_nanos()));
        self.source = Source::Other;
    }

    pub fn at(self, now: Instant) -> u64 {
        self.at_zero.wrapping_add(units(now.as_nanos()))
    }

    /// Whether a time is no farther from now than `window`.
    pub fn is_close(self, now: Instant, time: u64, window: Duration) -> bool {
        let ahead = time.wrapping_sub(self.at(now)) as i64;
        ahead.unsigned_abs() <= units(window.as_nanos())
    }
}

/// Whether a time is after another.
pub(super) const fn is_after(time: u64, other: u64) -> bool {
    time.wrapping_sub(other) as i64 > 0
}

fn units(ns: u64) -> u64 {
    ((u128::from(ns) << 32) / 1_000_000_000) as u64
}

/// Seconds from the beginning of NTP's first era, 1900, to that of Unix (RFC 5905 figure 4).
const UNIX_EPOCH: u64 = 2_208_988_800;
