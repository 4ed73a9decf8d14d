//! The timers of all associations in order, so that neither asking for the first nor working it off looks at the others.

use crate::sctp::AssociationId;
use crate::time::Instant;
use std::collections::BTreeSet;

/// The earliest timer of each association.
#[derive(Default)]
pub(super) struct Deadlines {
    in_order: BTreeSet<(Instant, AssociationId)>,
    /// Those whose timers may have changed since they were listed.
    stale: Vec<AssociationId>,
}

impl Deadlines {
    /// The timers of an association that was up to date may have changed.
    pub(super) fn mark_stale(&mut self, id: AssociationId) {
        self.stale.push(id);
    }

    /// Those marked since they were last taken.
    pub(super) fn take_stale(&mut self) -> Vec<AssociationId> {
        core::mem::take(&mut self.stale)
    }

    /// Forgets which are stale: whoever has one association alone looks there.
    pub(super) fn forget_stale(&mut self) {
        self.stale.clear();
    }

    /// The earliest timer of an association, instead of the one that it is `listed` with.
    pub(super) fn set(&mut self, id: AssociationId, listed: &mut Option<Instant>, deadline: Option<Instant>) {
        if *listed == deadline {
            return;
        }
        if let Some(old) = listed.take() {
            self.in_order.remove(&(old, id));
        }
        if let Some(new) = deadline {
            self.in_order.insert((new, id));
        }
        *listed = deadline;
    }

    pub(super) fn first(&self) -> Option<Instant> {
        self.in_order.first().map(|d| d.0)
    }

    /// Those that are due, in the order of their ids.
    pub(super) fn due(&self, now: Instant) -> Vec<AssociationId> {
        let due = self.in_order.range(..=(now, AssociationId(u64::MAX)));
        let mut due: Vec<_> = due.map(|d| d.1).collect();
        due.sort_unstable();
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_due_at_their_time_and_come_by_id() {
        let at = Instant::from_nanos;
        let mut deadlines = Deadlines::default();
        let mut listed = [None; 3];
        for (id, time) in [(2, 10), (1, 20), (0, 21)] {
            deadlines.set(AssociationId(id), &mut listed[id as usize], Some(at(time)));
        }
        assert_eq!(deadlines.first(), Some(at(10)));
        assert_eq!(deadlines.due(at(9)), []);
        assert_eq!(deadlines.due(at(20)), [1, 2].map(AssociationId));
        deadlines.set(AssociationId(2), &mut listed[2], Some(at(30)));
        assert_eq!((deadlines.first(), listed[2]), (Some(at(20)), Some(at(30))));
        deadlines.set(AssociationId(1), &mut listed[1], None);
        assert_eq!((deadlines.first(), listed[1]), (Some(at(21)), None));
        assert_eq!(deadlines.due(at(30)), [0, 2].map(AssociationId));
        deadlines.mark_stale(AssociationId(1));
        assert_eq!(deadlines.take_stale(), [AssociationId(1)]);
        deadlines.mark_stale(AssociationId(0));
        deadlines.forget_stale();
        assert_eq!(deadlines.take_stale(), []);
    }
}
