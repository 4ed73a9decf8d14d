//! The earliest of many times, of which a few change between one look and the next.

use crate::time::Instant;
use smallvec::SmallVec;

/// A time for each of a number of places, or none, and which is the earliest: a tournament tree. A change goes up from its leaf as
/// far as it is the earliest of its branch, or was: mostly a step or two.
#[derive(Debug, Default)]
pub(crate) struct Earliest {
    /// The earliest time below each node, [`Instant::MAX`] for none: nodes 2n and 2n + 1 are below node n, node 1 is the root,
    /// and there is no node 0. The second half are the places.
    nodes: Vec<Instant>,
}

impl Earliest {
    /// How many places there is room for: none, or a power of two.
    fn places(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Gives a place another time, or none.
    #[inline]
    pub(crate) fn set(&mut self, place: usize, time: Option<Instant>) {
        if place >= self.places() {
            self.grow(place + 1);
        }
        let mut node = self.places() + place;
        let mut earliest = time.unwrap_or(Instant::MAX);
        while self.nodes[node] != earliest {
            self.nodes[node] = earliest;
            if node == 1 {
                break;
            }
            earliest = earliest.min(self.nodes[node ^ 1]);
            node /= 2;
        }
    }

    /// The earliest of all.
    #[inline]
    pub(crate) fn first(&self) -> Option<Instant> {
        self.nodes.get(1).copied().filter(|&at| at != Instant::MAX)
    }

    /// The places whose time has come, in order.
    pub(crate) fn due(&self, now: Instant) -> SmallVec<[usize; 4]> {
        let mut due = SmallVec::new();
        if self.first().is_some_and(|at| at <= now) {
            self.collect_due(1, now, &mut due);
        }
        due
    }

    fn collect_due(&self, node: usize, now: Instant, due: &mut SmallVec<[usize; 4]>) {
        // a place without a time is not due at the end of time either
        if self.nodes[node] > now || self.nodes[node] == Instant::MAX {
            return;
        }
        if node >= self.places() {
            due.push(node - self.places());
        } else {
            self.collect_due(2 * node, now, due);
            self.collect_due(2 * node + 1, now, due);
        }
    }

    /// The places for which `keeps` holds stay, and close up.
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(usize) -> bool) {
        let former = core::mem::take(&mut self.nodes);
        let places = former.len() / 2;
        let kept = (0..places).filter(|&place| keeps(place));
        for (place, before) in kept.enumerate() {
            let time = former[places + before];
            self.set(place, Some(time));
        }
    }

    #[cold]
    fn grow(&mut self, places: usize) {
        let former = core::mem::take(&mut self.nodes);
        self.nodes = vec![Instant::MAX; 2 * places.next_power_of_two()];
        for (place, time) in former[former.len() / 2..].iter().enumerate() {
            self.set(place, Some(*time));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn the_first_and_those_due_are_what_looking_at_all_would_find() {
        let at = Instant::from_nanos;
        let mut random = Stream::new(5, "earliest");
        let mut earliest = Earliest::default();
        assert_eq!((earliest.first(), earliest.due(Instant::MAX).len()), (None, 0));
        let mut times: Vec<Option<Instant>> = Vec::new();
        for round in 0..4000_u64 {
            if round % 97 == 0 && times.len() < 21 {
                times.push(None);
            }
            if round % 501 == 500 {
                let gone = random.below(times.len() as u64) as usize;
                times.remove(gone);
                let mut place = 0..;
                earliest.retain(|_| place.next() != Some(gone));
            }
            let place = random.below(times.len() as u64) as usize;
            times[place] = (!random.chance(0.2)).then(|| at(random.below(40)));
            earliest.set(place, times[place]);
            assert_eq!(earliest.first(), times.iter().copied().flatten().min());
            let now = at(random.below(45));
            let due = (0..times.len()).filter(|&p| times[p].is_some_and(|t| t <= now));
            assert_eq!(earliest.due(now).to_vec(), due.collect::<Vec<_>>());
        }
    }
}
