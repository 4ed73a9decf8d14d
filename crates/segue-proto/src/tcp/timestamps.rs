//! Timestamps of a connection (RFC 7323): ours, by a clock that tells nothing of other connections, and the peer's latest.

use crate::time::{Duration, Instant};
use segue_wire::SeqNumber;
use segue_wire::tcp::{TcpOptions, Timestamps as TimestampsOption};

/// The clock of our timestamps: milliseconds (RFC 7323 section 5.4), with an offset of each connection's own
/// (section 7.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    offset: u32,
}

impl Clock {
    pub fn new(offset: u32) -> Self {
        Self { offset }
    }

    /// The timestamp of what is sent now.
    pub fn at(self, now: Instant) -> u32 {
        ((now.as_nanos() / 1_000_000) as u32).wrapping_add(self.offset)
    }

    /// Time since a timestamp of ours.
    pub fn since(self, now: Instant, ts: u32) -> Duration {
        Duration::from_millis(u64::from(self.at(now).wrapping_sub(ts)))
    }
}

/// The timestamps of both ends.
#[derive(Debug)]
pub(super) struct Timestamps {
    clock: Clock,
    /// TS.Recent; `None` unless both SYNs had timestamps.
    recent: Option<Recent>,
}

#[derive(Clone, Copy, Debug)]
struct Recent {
    value: u32,
    at: Instant,
}

/// What the timestamp of a segment says of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Paws {
    Good,
    /// Older than one that came before.
    Old,
    /// It has none although they were negotiated (RFC 7323 section 3.2).
    Missing,
}

impl Timestamps {
    pub fn new(clock: Clock) -> Self {
        Self { clock, recent: None }
    }

    /// Whether every segment has them.
    pub fn are_used(&self) -> bool {
        self.recent.is_some()
    }

    /// The peer's SYN has timestamps, and ours has or will.
    pub fn negotiate(&mut self, now: Instant, value: u32) {
        self.recent = Some(Recent { value, at: now });
    }

    /// PAWS (RFC 7323 section 5.3, rule R1), of a segment that is no RST.
    pub fn check(&self, now: Instant, options: &TcpOptions) -> Paws {
        let Some(recent) = self.recent else {
            return Paws::Good;
        };
        let Some(t) = options.timestamps else {
            return Paws::Missing;
        };
        let outdated = now.since(recent.at) > PAWS_LIFE;
        if is_before(t.value, recent.value) && !outdated {
            Paws::Old
        } else {
            Paws::Good
        }
    }

    /// RFC 7323 section 4.3, rule 2, of a segment that begins where the last acknowledgement ended, or before.
    pub fn update(&mut self, now: Instant, options: &TcpOptions) {
        if let (Some(recent), Some(t)) = (&mut self.recent, options.timestamps)
            && !is_before(t.value, recent.value)
        {
            *recent = Recent {
                value: t.value,
                at: now,
            };
        }
    }

    /// The timestamp of ours that a segment echoes.
    pub fn echoed(&self, options: &TcpOptions) -> Option<u32> {
        options
            .timestamps
            .filter(|t| self.are_used() && t.echo != 0)
            .map(|t| t.echo)
    }

    /// The option of a segment that is sent now.
    pub fn option(&self, now: Instant) -> Option<TimestampsOption> {
        self.recent.map(|recent| TimestampsOption {
            value: self.clock.at(now),
            echo: recent.value,
        })
    }

    /// The option of a SYN, which may be the first to offer it.
    pub fn offer(&self, now: Instant) -> TimestampsOption {
        TimestampsOption {
            value: self.clock.at(now),
            echo: self.recent.map_or(0, |recent| recent.value),
        }
    }

    /// Whether the timestamp of a segment is higher than any before.
    pub fn is_newer(&self, options: &TcpOptions) -> bool {
        match (self.recent, options.timestamps) {
            (Some(recent), Some(t)) => is_before(recent.value, t.value),
            _ => false,
        }
    }
}

/// Order of timestamps (RFC 7323 section 5.2).
pub(super) fn is_before(a: u32, b: u32) -> bool {
    SeqNumber(a).before(SeqNumber(b))
}

/// RFC 7323 section 5.5: a timestamp that was kept for so long says nothing any more.
const PAWS_LIFE: Duration = Duration::from_secs(24 * 86_400);
