//! Times without new data of one direction of a flow, and what its sender does meanwhile.

use core::hint::cold_path;
use segue_capture::record::DEAD_AFTER_NS;
use segue_capture::rows::{Row, Rows, Spill};
use segue_proto::{Duration, Instant};
use std::sync::Arc;

/// A time without new data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Gap {
    /// Arrival of the last new byte before, or when its sender had something to send again, if that was later; of the first
    /// new byte, the first attempt.
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

impl Row for Gap {
    const BYTES: usize = 2 * 8;

    fn put(self, to: &mut Vec<u8>) {
        (self.since.as_nanos(), self.until.as_nanos()).put(to);
    }

    fn read(from: &mut &[u8]) -> Self {
        let (since, until) = Row::read(from);
        Self {
            since: Instant::from_nanos(since),
            until: Instant::from_nanos(until),
        }
    }
}

/// Since new data last arrived: what its sender has tried.
#[derive(Clone, Copy, Debug, Default)]
struct Attempts {
    first: Option<Instant>,
    /// Since when there has been something to come.
    awaited_since: Option<Instant>,
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

/// Times without new data. In this order: what every packet looks at comes last, where what a flow knows of it otherwise follows.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Pauses {
    /// Those through which the sender went on trying: no more than one a second.
    outages: Rows<Gap>,
    /// When something happens that the scenario has.
    events: Arc<[Gap]>,
    /// The longest around any of them, the first of several.
    around_events: Option<Gap>,
    /// Beginning of the first of these events that is not over.
    next_event: Option<Instant>,
    /// The longest, the first of several.
    longest: Option<Gap>,
    /// In the one that goes on.
    attempts: Attempts,
}

impl Pauses {
    /// Those of a flow of a run in which something happens then.
    #[must_use]
    pub fn around(events: &Arc<[Gap]>) -> Self {
        Self {
            events: Arc::clone(events),
            next_event: events.iter().map(|event| event.since).min(),
            ..Self::default()
        }
    }

    /// Leaves all but the last outages in this store.
    pub fn keep_in(&mut self, spill: &Spill) {
        self.outages.keep_in(spill);
    }

    /// Has all of them in memory again: the run is over.
    pub fn recall(&mut self) {
        self.outages.recall();
    }

    /// The sender sends something, perhaps again, and has had something to send since `awaited_since`.
    #[inline]
    pub fn sent(&mut self, now: Instant, awaited_since: Instant, again: bool) {
        self.attempts.first.get_or_insert(now);
        self.attempts.awaited_since.get_or_insert(awaited_since);
        self.attempts.last = Some(now);
        if again {
            self.attempts.first_again.get_or_insert(now);
        }
    }

    /// New data arrives, and ends this time without. `more_under_way`: something was sent that is newer than all that has
    /// arrived, and may have been lost.
    #[inline]
    pub fn arrived(&mut self, gap: Gap, is_first: bool, more_under_way: bool) {
        let now = gap.until;
        let attempts = core::mem::take(&mut self.attempts);
        self.attempts.awaited_since = more_under_way.then_some(now);
        let lasted = gap.lasted();
        if !is_first && self.longest.is_none_or(|longest| lasted > longest.lasted()) {
            self.longest = Some(gap);
        }
        if lasted.as_nanos() > DEAD_AFTER_NS && attempts.are_in_vain() {
            self.outages.push(gap);
        }
        if self.next_event.is_some_and(|from| now >= from) {
            cold_path();
            self.note_event(gap);
        }
    }

    fn note_event(&mut self, gap: Gap) {
        self.around_events = self.longest_around_events(gap);
        let coming = self.events.iter().filter(|event| event.until >= gap.until);
        self.next_event = coming.map(|event| event.since).min();
    }

    /// The longest time without new data around what happens, if `gap` is the last: it begins before that is over, and ends
    /// after it begins.
    fn longest_around_events(&self, gap: Gap) -> Option<Gap> {
        let mut events = self.events.iter();
        let is_around = events.any(|event| gap.since <= event.until && gap.until >= event.since);
        let longest = |known: &Gap| known.lasted() >= gap.lasted();
        self.around_events
            .filter(longest)
            .or(is_around.then_some(gap))
            .or(self.around_events)
    }

    /// The longest time without new data around what happens, and whether it went on when the run ended, with something that
    /// was tried in vain since then. `is_over`: nothing more was to come.
    #[must_use]
    pub fn around_events(&self, since: Instant, end: Instant, is_over: bool) -> Option<(Gap, bool)> {
        let last = Gap { since, until: end };
        let is_awaited = self.attempts.first.is_some() && !is_over;
        let known = match is_awaited {
            true => self.longest_around_events(last),
            false => self.around_events,
        };
        known.map(|gap| (gap, is_awaited && gap == last))
    }

    /// Since when there has been something to come, of which nothing has; nothing if all that was sent has arrived.
    #[must_use]
    #[inline]
    pub const fn awaited_since(&self) -> Option<Instant> {
        self.attempts.awaited_since
    }

    /// The longest between two arrivals of new data; nothing if there were not two.
    #[must_use]
    pub const fn longest(&self) -> Option<Gap> {
        self.longest
    }

    /// Those that are over, through which the sender tried for so long that the flow would have been dead, had nothing come
    /// any more.
    #[must_use]
    pub fn outages(&self) -> Vec<Gap> {
        self.outages.iter().collect()
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
        let since = at(before.unwrap_or(first));
        pauses.sent(at(first), since, false);
        for ms in again {
            pauses.sent(at(*ms), since, true);
        }
        let until = at(again.last().map_or(first, |ms| *ms) + 10);
        pauses.arrived(Gap { since, until }, before.is_none(), false);
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

    /// Something happens from 1000 to 1500 ms. What arrives then, and what is tried after it in vain until 5000 ms.
    fn around(arrivals: &[u64], tried: bool, is_over: bool) -> Option<(u64, u64, bool)> {
        let events = [Gap {
            since: at(1000),
            until: at(1500),
        }];
        let mut pauses = Pauses::around(&Arc::from(events));
        let mut before = None;
        for until in arrivals.iter().map(|ms| at(*ms)) {
            let (since, is_first) = (before.unwrap_or(until), before.is_none());
            pauses.sent(until, since, false);
            pauses.arrived(Gap { since, until }, is_first, false);
            before = Some(until);
        }
        let since = before.unwrap_or(at(0));
        if tried {
            pauses.sent(at(4000), since, false);
        }
        let ms = |at: Instant| at.as_nanos() / 1_000_000;
        let found = pauses.around_events(since, at(5000), is_over);
        found.map(|(gap, lasted)| (ms(gap.since), ms(gap.until), lasted))
    }

    #[test]
    fn a_gap_is_around_what_happens_if_it_ends_after_that_begins_and_begins_before_it_is_over() {
        // the longest of all is before it, another after it
        let arrivals = [0, 900, 980, 1400, 1490, 1590, 3000];
        assert_eq!(around(&arrivals, false, false), Some((980, 1400, false)));
        assert_eq!(around(&[0, 900, 1000], false, false), Some((900, 1000, false)));
        // nothing that was still to come was around it
        assert_eq!(around(&[0, 900], false, false), None);
        assert_eq!(around(&[1600, 3000], false, false), None);
        // it lasts to the end, where something was to come
        assert_eq!(around(&[0, 900], true, false), Some((900, 5000, true)));
        assert_eq!(around(&[0, 900], true, true), None);
        assert_eq!(around(&[], true, false), Some((0, 5000, true)));
    }

    #[test]
    fn something_is_awaited_from_when_its_sender_had_it_or_while_more_is_under_way() {
        let mut pauses = Pauses::default();
        assert_eq!(pauses.awaited_since(), None);
        pauses.sent(at(900), at(400), false);
        pauses.sent(at(1000), at(1000), true);
        assert_eq!(pauses.awaited_since(), Some(at(400)), "tried late");
        let gap = Gap {
            since: at(400),
            until: at(1050),
        };
        pauses.arrived(gap, false, false);
        assert_eq!(pauses.awaited_since(), None);
        pauses.arrived(gap, false, true);
        pauses.sent(at(2000), at(2000), false);
        assert_eq!(pauses.awaited_since(), Some(at(1050)));
    }

    #[test]
    fn of_equally_long_gaps_the_first_is_the_longest() {
        let mut pauses = Pauses::default();
        assert_eq!(pauses.longest(), None);
        let gap = |since: u64, until: u64| Gap {
            since: at(since),
            until: at(until),
        };
        pauses.arrived(gap(0, 50), true, false);
        assert_eq!(pauses.longest(), None, "nothing had come before");
        for (before, now) in [(50, 60), (60, 90), (90, 120), (120, 130)] {
            pauses.arrived(gap(before, now), false, false);
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
