//! The timers of all associations in order, so that neither asking for the first nor working it off looks at the others.

use crate::earliest::Earliest;
use crate::time::Instant;
use smallvec::SmallVec;

/// The earliest timer of each association, by its place among all.
#[derive(Default)]
pub(super) struct Deadlines {
    of: Earliest,
    /// Those whose timers may have changed since they were listed.
    stale: Vec<usize>,
}

impl Deadlines {
    /// The timers of an association that was up to date may have changed.
    #[inline]
    pub(super) fn mark_stale(&mut self, place: usize) {
        self.stale.push(place);
    }

    /// One of those marked, which is to be [set](Self::set).
    #[inline]
    pub(super) fn next_stale(&mut self) -> Option<usize> {
        self.stale.pop()
    }

    /// The earliest timer of an association.
    #[inline]
    pub(super) fn set(&mut self, place: usize, deadline: Option<Instant>) {
        self.of.set(place, deadline);
    }

    /// The earliest of all, if none is stale.
    #[inline]
    pub(super) fn first(&self) -> Option<Instant> {
        self.of.first()
    }

    /// Those that are due, in order.
    pub(super) fn due(&self, now: Instant) -> SmallVec<[usize; 4]> {
        self.of.due(now)
    }

    /// Those stay for which `keeps` holds, and close up. None may be stale.
    pub(super) fn retain(&mut self, keeps: impl FnMut(usize) -> bool) {
        debug_assert!(self.stale.is_empty(), "a stale one would be another's");
        self.of.retain(keeps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_due_at_their_time_and_come_by_place() {
        let at = Instant::from_nanos;
        let mut deadlines = Deadlines::default();
        for (place, time) in [(2, 10), (1, 20), (0, 21)] {
            deadlines.set(place, Some(at(time)));
        }
        assert_eq!(deadlines.first(), Some(at(10)));
        assert_eq!(deadlines.due(at(9))[..], [0_usize; 0]);
        assert_eq!(deadlines.due(at(20))[..], [1, 2]);
        deadlines.set(2, Some(at(30)));
        assert_eq!(deadlines.first(), Some(at(20)));
        deadlines.set(1, None);
        assert_eq!(deadlines.first(), Some(at(21)));
        assert_eq!(deadlines.due(at(30))[..], [0, 2]);
        deadlines.retain(|place| place != 1);
        assert_eq!(deadlines.due(at(30))[..], [0, 1]);
        deadlines.mark_stale(1);
        assert_eq!([deadlines.next_stale(), deadlines.next_stale()], [Some(1), None]);
    }
}
