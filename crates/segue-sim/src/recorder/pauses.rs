//! Times without new data of one direction of a flow, and what its sender does meanwhile.

use segue_capture::record::DEAD_AFTER_NS;
use segue_proto::{Duration, Instant};

/// A time without new data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Gap {
    /// Arrival of the last new byte before; without any, the first attempt.
    pub since: Instant,
    /// Arrival of the next.
    pub until: Instant,
}

impl Gap {
    /// How long it was.
    #[must_use]
    pub fn lasted(self) -> Duration {
        self.until.since(self.since)
    }
}

/// Since new data last arrived: what its sender has tried.
#[derive(Clone, Copy, Debug, Default)]
struct Attempts {
    first: Option<Instant>,
    /// The first that repeats something.
    first_again: Option<Instant>,
    last: Option<Instant>,
}

impl Attempts {
    /// For how long its sender has tried, and how long it waited before it repeated anything, which is its retransmission
    /// timeout.
    fn tried(&self) -> Option<(Duration, Option<Duration>)> {
        let (first, last) = (self.first?, self.last?);
        let waited = self.first_again.map(|again| again.since(first));
        Some((last.since(first), waited))
    }

    /// Whether a flow would be dead that nothing comes of after all this.
    fn are_in_vain(&self) -> bool {
        self.tried()
            .is_some_and(|(tried, waited)| tried > patience(waited))
    }
}

/// Attempts for longer than this make a flow dead; `waited` is its sender's retransmission timeout, if that is known.
fn patience(waited: Option<Duration>) -> Duration {
    Duration::from_nanos(DEAD_AFTER_NS).max(waited.unwrap_or_default())
}

/// Times without new data.
#[derive(Debug, Default)]
pub struct Pauses {
    /// In the one that goes on.
    attempts: Attempts,
    /// The longest, the first of several.
    longest: Option<Gap>,
    /// Those through which the sender went on trying: no more than one a second.
    outages: Vec<Gap>,
}

impl Pauses {
    /// The sender sends something, perhaps again.
    #[inline]
    pub fn sent(&mut self, now: Instant, again: bool) {
        self.attempts.first.get_or_insert(now);
        self.attempts.last = Some(now);
        if again {
            self.attempts.first_again.get_or_insert(now);
        }
    }

    /// New data arrives; `before` it last did, and `first_sent` something was first sent.
    #[inline]
    pub fn arrived(&mut self, now: Instant, before: Option<Instant>, first_sent: Option<Instant>) {
        let attempts = core::mem::take(&mut self.attempts);
        let gap = Gap {
            since: before.or(first_sent).unwrap_or(now),
            until: now,
        };
        let lasted = gap.lasted();
        if before.is_some() && self.longest.is_none_or(|longest| lasted > longest.lasted()) {
            self.longest = Some(gap);
        }
        if lasted.as_nanos() > DEAD_AFTER_NS && attempts.are_in_vain() {
            self.outages.push(gap);
        }
    }

    /// The longest between two arrivals of new data; nothing if there were not two.
    #[must_use]
    pub const fn longest(&self) -> Option<Gap> {
        self.longest
    }

    /// Those that are over, through which the sender tried for so long that the flow would have been dead, had nothing come
    /// any more.
    #[must_use]
    pub fn outages(&self) -> &[Gap] {
        &self.outages
    }

    /// Whether the sender has tried for so long since new data last arrived that the flow is dead.
    #[must_use]
    pub fn is_tried_in_vain(&self) -> bool {
        self.attempts.are_in_vain()
    }

    /// For how long nothing may come of what is sent before the flow counts as dead.
    #[must_use]
    pub fn dead_after(&self) -> Duration {
        patience(self.attempts.tried().and_then(|(_, waited)| waited))
    }

    /// The last attempt since new data last arrived.
    #[must_use]
    pub const fn tried_last(&self) -> Option<Instant> {
        self.attempts.last
    }

    /// The first attempt since new data last arrived.
    #[must_use]
    pub const fn tried_since(&self) -> Option<Instant> {
        self.attempts.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Outages of a flow that sends at these times, the last of which arrives.
    fn outages(before: Option<u64>, first: u64, again: &[u64]) -> Vec<(u64, u64)> {
        let mut pauses = Pauses::default();
        pauses.sent(at(first), false);
        for ms in again {
            pauses.sent(at(*ms), true);
        }
        let now = at(again.last().map_or(first, |ms| *ms) + 10);
        pauses.arrived(now, before.map(at), Some(at(first)));
        let ms = |at: Instant| at.as_nanos() / 1_000_000;
        pauses
            .outages()
            .iter()
            .map(|g| (ms(g.since), ms(g.until)))
            .collect()
    }

    #[test]
    fn an_outage_is_longer_than_a_second_and_than_the_first_wait() {
        assert_eq!(outages(Some(100), 200, &[400, 1100, 1210]), [(100, 1220)]);
        // tried for no longer than a second, or repeated once after the timeout
        assert_eq!(outages(Some(100), 200, &[400, 1100, 1200]), []);
        assert_eq!(outages(Some(100), 200, &[3200]), []);
        assert_eq!(outages(Some(100), 200, &[3200, 9200]), [(100, 9210)]);
        // nothing was to be sent until then
        assert_eq!(outages(Some(100), 60_000, &[]), []);
        // from the first attempt on where nothing ever came
        assert_eq!(outages(None, 200, &[1200, 3200]), [(200, 3210)]);
    }

    #[test]
    fn of_equally_long_gaps_the_first_is_the_longest() {
        let mut pauses = Pauses::default();
        assert_eq!(pauses.longest(), None);
        pauses.arrived(at(50), None, Some(at(0)));
        assert_eq!(pauses.longest(), None, "nothing had come before");
        for (before, now) in [(50, 60), (60, 90), (90, 120), (120, 130)] {
            pauses.arrived(at(now), Some(at(before)), Some(at(0)));
        }
        assert_eq!(
            pauses.longest(),
            Some(Gap {
                since: at(60),
                until: at(90)
            })
        );
    }
}
