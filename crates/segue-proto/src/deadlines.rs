//! The timers of many things of one kind, of which the first is wanted: a timer that moves to a later time, as a
//! retransmission timer does at each acknowledgment, costs nothing until its turn would have come.

use crate::time::Instant;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// The earliest timer of each of many things, by their keys.
#[derive(Debug)]
pub(crate) struct Deadlines<K> {
    /// Of each thing an entry that is no later than its timer. Entries that no listing has are void.
    queue: BinaryHeap<Reverse<(Instant, K)>>,
    /// Those whose timers may have changed since they were listed.
    changed: Vec<K>,
}

/// How a thing is listed; it keeps that itself.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    at: Option<Instant>,
    is_changed: bool,
}

/// Finds the listing of a thing and its timer; nothing, if it is gone.
pub(crate) type Look<S, K> = fn(&mut S, K) -> Option<(&mut Listing, Option<Instant>)>;

impl<K> Default for Deadlines<K> {
    fn default() -> Self {
        Self {
            queue: BinaryHeap::new(),
            changed: Vec::new(),
        }
    }
}

impl<K: Copy + Ord> Deadlines<K> {
    /// The timer of a thing may have changed.
    #[inline]
    pub(crate) fn mark(&mut self, key: K, listing: &mut Listing) {
        if !listing.is_changed {
            listing.is_changed = true;
            self.changed.push(key);
        }
    }

    /// Forgets everything. Things that stay take a new [`Listing`].
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.changed.clear();
    }

    /// The earliest timer of all.
    pub(crate) fn first<S: ?Sized>(&mut self, all: &mut S, look: Look<S, K>) -> Option<Instant> {
        self.list(all, look);
        loop {
            let Reverse((at, key)) = *self.queue.peek()?;
            match turn(all, look, key, at) {
                Turn::Due => return Some(at),
                Turn::Later(later) => {
                    self.queue.pop();
                    self.queue.push(Reverse((later, key)));
                }
                Turn::Void => {
                    self.queue.pop();
                }
            }
        }
    }

    /// Those whose timers are due, in the order of their keys. Each is to be marked when its timer was worked off.
    pub(crate) fn due<S: ?Sized>(&mut self, now: Instant, all: &mut S, look: Look<S, K>) -> Vec<K> {
        self.list(all, look);
        let mut due = Vec::new();
        while let Some(Reverse((at, key))) = self.queue.peek().copied().filter(|next| next.0.0 <= now) {
            self.queue.pop();
            match turn(all, look, key, at) {
                Turn::Due => {
                    due.push(key);
                    if let Some((listing, _)) = look(all, key) {
                        listing.at = None;
                    }
                }
                Turn::Later(later) => self.queue.push(Reverse((later, key))),
                Turn::Void => {}
            }
        }
        due.sort_unstable();
        due
    }

    /// Lists those that have changed.
    fn list<S: ?Sized>(&mut self, all: &mut S, look: Look<S, K>) {
        for key in self.changed.drain(..) {
            let Some((listing, timer)) = look(all, key) else {
                continue;
            };
            listing.is_changed = false;
            if let Some(at) = timer.filter(|at| listing.at.is_none_or(|listed| *at < listed)) {
                listing.at = Some(at);
                self.queue.push(Reverse((at, key)));
            }
        }
    }
}

/// What an entry comes to when it is the first.
enum Turn {
    /// The timer is then.
    Due,
    /// It has moved to this time, with which it is listed now.
    Later(Instant),
    /// There is none, or another entry for it.
    Void,
}

fn turn<S: ?Sized, K>(all: &mut S, look: Look<S, K>, key: K, at: Instant) -> Turn {
    match look(all, key) {
        Some((listing, timer)) if listing.at == Some(at) => {
            listing.at = timer;
            match timer {
                Some(timer) if timer > at => Turn::Later(timer),
                Some(_) => Turn::Due,
                None => Turn::Void,
            }
        }
        _ => Turn::Void,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    type Things = [Option<(Listing, Option<Instant>)>];

    fn look(all: &mut Things, key: usize) -> Option<(&mut Listing, Option<Instant>)> {
        let (listing, timer) = all[key].as_mut()?;
        Some((listing, *timer))
    }

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// Ten things whose timers are set, moved, worked off and taken away at random are due as a search of all finds.
    #[test]
    fn the_first_and_the_due_are_those_that_a_search_of_all_finds() {
        let mut random = Stream::new(1, "deadlines");
        let mut all: Vec<Option<(Listing, Option<Instant>)>> =
            (0..10).map(|_| Some((Listing::default(), None))).collect();
        let mut deadlines = Deadlines::default();
        let mut worked_off = 0;
        for now in 0..20_000 {
            for _ in 0..random.below(4) {
                let key = random.below(10) as usize;
                match random.below(20) {
                    0 => all[key] = None,
                    1 => all[key] = Some((Listing::default(), None)),
                    n => {
                        if let Some((listing, timer)) = &mut all[key] {
                            *timer = (n > 2).then(|| at(now + 1 + random.below(50)));
                            deadlines.mark(key, listing);
                        }
                    }
                }
            }
            let timers = |all: &Things| -> Vec<(Instant, usize)> {
                let timed = (0..)
                    .zip(all)
                    .filter_map(|(key, thing)| Some((thing.as_ref()?.1?, key)));
                timed.collect()
            };
            let first = timers(&all).iter().map(|t| t.0).min();
            assert_eq!(deadlines.first(all.as_mut_slice(), look), first);
            let due: Vec<usize> = timers(&all)
                .iter()
                .filter(|t| t.0 <= at(now))
                .map(|t| t.1)
                .collect();
            assert_eq!(deadlines.due(at(now), all.as_mut_slice(), look), due);
            for key in due {
                worked_off += 1;
                let (listing, timer) = all[key].as_mut().unwrap();
                *timer = None;
                deadlines.mark(key, listing);
            }
        }
        assert!(worked_off > 1000, "{worked_off}");
    }

    #[test]
    fn a_timer_that_moves_to_later_times_has_one_entry() {
        let mut all = [Some((Listing::default(), None))];
        let mut deadlines = Deadlines::default();
        for ns in 1..1000 {
            let (listing, timer) = all[0].as_mut().unwrap();
            *timer = Some(at(100_000 + ns));
            deadlines.mark(0, listing);
            assert_eq!(deadlines.first(all.as_mut_slice(), look), Some(at(100_000 + ns)));
            assert_eq!(deadlines.queue.len(), 1);
        }
    }
}
