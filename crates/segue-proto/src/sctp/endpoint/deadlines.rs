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
