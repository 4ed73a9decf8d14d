//! What an address of ours is to the association, and what becomes of it (RFC 5061 section 5.3).
//!
//! ```text
//!   (unknown) --an interface has it--> Spare --asked for--> Adding --granted--> InUse(Present)
//!                                                           |    |
//!                                                         gone  refused --> (unknown)
//!                                                           v
//!                                                     AddingAbsent --granted--> InUse(Absent)
//!
//!   InUse(Present) --gone--> InUse(Absent) --another took its place--> InUse(Replaced)
//!         ^----------back---------'-------------------back------------------'
//!
//!   InUse(p) --deletion asked for--> Deleting(p) --granted--> (unknown)
//!       ^----------refused---------------'
//!   Deleting(p) --back--> Deleting(Returned) --granted--> Spare
//! ```
//!
//! Whether the peer was told to leave it alone (see `deactivation`) is kept beside that, as long as the address is part
//! of the association.

use crate::sctp::AddressRequest;

/// What an address of ours is to the association.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// No part of the association: an interface has it.
    Spare,
    /// Asked for by ASCONF and not yet granted: a source for ASCONF only (RFC 5061 section 5.3, F1).
    Adding,
    /// The same, and no interface has it any more.
    AddingAbsent,
    /// Part of the association.
    InUse(Presence, Activity),
    /// Deletion asked for: no longer a source (F4). The activity is what it is again if that is refused.
    Deleting(Leaving, Activity),
}

/// Whether an interface has an address that is part of the association.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Presence {
    Present,
    Absent,
    /// It is absent, and another address took its place: it is to be deleted (see `replacement`).
    Replaced,
}

/// Whether an interface has an address that is being deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leaving {
    Present,
    Absent,
    Replaced,
    /// It came back while its deletion was unanswered.
    Returned,
}

/// Whether the peer was told to leave an address alone (see `deactivation`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Activity {
    Active,
    Deactivated,
}

/// What changes an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// An interface has it, or another interface than before.
    Appeared,
    /// No interface has it any more.
    Disappeared,
    /// Another one takes the place of all that are absent.
    Replaced,
    /// The peer is asked about it.
    Asked(Ask),
    Granted(Ask),
    Refused(Ask),
}

/// What a peer is asked about an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ask {
    Add,
    Delete,
    Deactivate,
    Activate,
}

impl Ask {
    /// `None` for what changes no state of ours.
    pub(super) const fn of(request: AddressRequest) -> Option<Self> {
        match request {
            AddressRequest::Add(_) => Some(Self::Add),
            AddressRequest::Delete(_) => Some(Self::Delete),
            AddressRequest::Deactivate(_) => Some(Self::Deactivate),
            AddressRequest::Activate(_) => Some(Self::Activate),
            AddressRequest::SetPrimary(_) => None,
        }
    }
}

impl State {
    /// In use as from the beginning.
    pub(super) const BEGUN: Self = Self::InUse(Presence::Present, Activity::Active);

    /// What the address is after `change`; `None` if it is no longer known. What does not fit leaves it as it is: the
    /// answer to a request that something else has settled, for one.
    pub(super) fn after(self, change: Change) -> Option<Self> {
        use Activity::{Active, Deactivated};
        Some(match (self, change) {
            (Self::AddingAbsent, Change::Appeared) => Self::Adding,
            (Self::InUse(_, activity), Change::Appeared) => Self::InUse(Presence::Present, activity),
            (Self::Deleting(_, activity), Change::Appeared) => Self::Deleting(Leaving::Returned, activity),

            (Self::Spare, Change::Disappeared) => return None,
            (Self::Adding, Change::Disappeared) => Self::AddingAbsent,
            (Self::InUse(Presence::Present, activity), Change::Disappeared) => {
                Self::InUse(Presence::Absent, activity)
            }
            (Self::Deleting(Leaving::Present | Leaving::Returned, activity), Change::Disappeared) => {
                Self::Deleting(Leaving::Absent, activity)
            }

            (Self::InUse(Presence::Absent, activity), Change::Replaced) => {
                Self::InUse(Presence::Replaced, activity)
            }

            (Self::Spare, Change::Asked(Ask::Add)) => Self::Adding,
            (Self::InUse(presence, activity), Change::Asked(Ask::Delete)) => {
                Self::Deleting(presence.leaving(), activity)
            }
            (Self::InUse(presence, _), Change::Asked(Ask::Deactivate)) => Self::InUse(presence, Deactivated),
            (Self::Deleting(leaving, _), Change::Asked(Ask::Deactivate)) => {
                Self::Deleting(leaving, Deactivated)
            }

            (Self::Adding, Change::Granted(Ask::Add)) => Self::BEGUN,
            (Self::AddingAbsent, Change::Granted(Ask::Add)) => Self::InUse(Presence::Absent, Active),
            // F10, and every other refusal: no part of the association
            (Self::Adding | Self::AddingAbsent, Change::Refused(Ask::Add)) => return None,

            (Self::Deleting(Leaving::Returned, _), Change::Granted(Ask::Delete)) => Self::Spare,
            (Self::Deleting(..), Change::Granted(Ask::Delete)) => return None,
            (Self::Deleting(leaving, activity), Change::Refused(Ask::Delete)) => {
                Self::InUse(leaving.presence(), activity)
            }

            (Self::InUse(presence, _), Change::Granted(Ask::Deactivate) | Change::Refused(Ask::Activate)) => {
                Self::InUse(presence, Deactivated)
            }
            (Self::InUse(presence, _), Change::Granted(Ask::Activate) | Change::Refused(Ask::Deactivate)) => {
                Self::InUse(presence, Active)
            }

            (unchanged, _) => unchanged,
        })
    }

    /// Whether an interface has it.
    pub(super) const fn is_present(self) -> bool {
        matches!(
            self,
            Self::Spare
                | Self::Adding
                | Self::InUse(Presence::Present, _)
                | Self::Deleting(Leaving::Present | Leaving::Returned, _)
        )
    }

    /// Whether it may be the source of any packet.
    pub(super) const fn is_source(self) -> bool {
        matches!(self, Self::InUse(Presence::Present, _))
    }

    /// Whether the peer sends data to it, as far as it was told.
    pub(super) const fn is_active(self) -> bool {
        matches!(self, Self::InUse(_, Activity::Active))
    }
}

impl Presence {
    const fn leaving(self) -> Leaving {
        match self {
            Self::Present => Leaving::Present,
            Self::Absent => Leaving::Absent,
            Self::Replaced => Leaving::Replaced,
        }
    }
}

impl Leaving {
    const fn presence(self) -> Presence {
        match self {
            Self::Present | Self::Returned => Presence::Present,
            Self::Absent => Presence::Absent,
            Self::Replaced => Presence::Replaced,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Activity::{Active, Deactivated};
    use Change::{Appeared, Asked, Disappeared, Granted, Refused, Replaced};
    use State::{Adding, AddingAbsent, Deleting, InUse, Spare};

    fn all_states() -> Vec<State> {
        let activities = [Active, Deactivated];
        let presences = [Presence::Present, Presence::Absent, Presence::Replaced];
        let leaving = [
            Leaving::Present,
            Leaving::Absent,
            Leaving::Replaced,
            Leaving::Returned,
        ];
        let mut all = vec![Spare, Adding, AddingAbsent];
        for activity in activities {
            all.extend(presences.map(|p| InUse(p, activity)));
            all.extend(leaving.map(|l| Deleting(l, activity)));
        }
        all
    }

    fn all_changes() -> Vec<Change> {
        let asks = [Ask::Add, Ask::Delete, Ask::Deactivate, Ask::Activate];
        let mut all = vec![Appeared, Disappeared, Replaced];
        for ask in asks {
            all.extend([Asked(ask), Granted(ask), Refused(ask)]);
        }
        all
    }

    /// State, change, and what comes of it; for both activities where none is named.
    fn table() -> Vec<(State, Change, Option<State>)> {
        let mut table = vec![
            (Spare, Disappeared, None),
            (Spare, Asked(Ask::Add), Some(Adding)),
            (Adding, Disappeared, Some(AddingAbsent)),
            (Adding, Granted(Ask::Add), Some(InUse(Presence::Present, Active))),
            (Adding, Refused(Ask::Add), None),
            (AddingAbsent, Appeared, Some(Adding)),
            (
                AddingAbsent,
                Granted(Ask::Add),
                Some(InUse(Presence::Absent, Active)),
            ),
            (AddingAbsent, Refused(Ask::Add), None),
        ];
        for a in [Active, Deactivated] {
            use Leaving as L;
            use Presence as P;
            table.extend([
                (InUse(P::Present, a), Disappeared, Some(InUse(P::Absent, a))),
                (InUse(P::Absent, a), Appeared, Some(InUse(P::Present, a))),
                (InUse(P::Replaced, a), Appeared, Some(InUse(P::Present, a))),
                (InUse(P::Absent, a), Replaced, Some(InUse(P::Replaced, a))),
                (Deleting(L::Present, a), Appeared, Some(Deleting(L::Returned, a))),
                (Deleting(L::Absent, a), Appeared, Some(Deleting(L::Returned, a))),
                (Deleting(L::Replaced, a), Appeared, Some(Deleting(L::Returned, a))),
                (Deleting(L::Present, a), Disappeared, Some(Deleting(L::Absent, a))),
                // back and gone once more: an interface does not have it
                (
                    Deleting(L::Returned, a),
                    Disappeared,
                    Some(Deleting(L::Absent, a)),
                ),
                (Deleting(L::Returned, a), Granted(Ask::Delete), Some(Spare)),
            ]);
            for (presence, leaving) in [
                (P::Present, L::Present),
                (P::Absent, L::Absent),
                (P::Replaced, L::Replaced),
            ] {
                let (in_use, deleting) = (InUse(presence, a), Deleting(leaving, a));
                table.extend([
                    (in_use, Asked(Ask::Delete), Some(deleting)),
                    (deleting, Granted(Ask::Delete), None),
                    (deleting, Refused(Ask::Delete), Some(in_use)),
                ]);
            }
            let refused = Some(InUse(P::Present, a));
            table.push((Deleting(L::Returned, a), Refused(Ask::Delete), refused));
            for p in [P::Present, P::Absent, P::Replaced] {
                table.extend([
                    (InUse(p, a), Asked(Ask::Deactivate), Some(InUse(p, Deactivated))),
                    (InUse(p, a), Granted(Ask::Deactivate), Some(InUse(p, Deactivated))),
                    (InUse(p, a), Refused(Ask::Activate), Some(InUse(p, Deactivated))),
                    (InUse(p, a), Refused(Ask::Deactivate), Some(InUse(p, Active))),
                    (InUse(p, a), Granted(Ask::Activate), Some(InUse(p, Active))),
                ]);
            }
            for l in [L::Present, L::Absent, L::Replaced, L::Returned] {
                let deactivated = Some(Deleting(l, Deactivated));
                table.push((Deleting(l, a), Asked(Ask::Deactivate), deactivated));
            }
        }
        table
    }

    #[test]
    fn what_becomes_of_an_address_row_by_row() {
        let table = table();
        for (state, change, next) in &table {
            assert_eq!(state.after(*change), *next, "{state:?}, {change:?}");
        }
        // and nothing else changes anything
        for state in all_states() {
            for change in all_changes() {
                if !table.iter().any(|row| (row.0, row.1) == (state, change)) {
                    assert_eq!(state.after(change), Some(state), "{state:?}, {change:?}");
                }
            }
        }
    }

    #[test]
    fn a_source_is_in_use_and_present() {
        for state in all_states() {
            let (in_use, absent) = match state {
                InUse(presence, _) => (true, presence != Presence::Present),
                Deleting(leaving, _) => (false, matches!(leaving, Leaving::Absent | Leaving::Replaced)),
                other => (false, other == AddingAbsent),
            };
            assert_eq!(state.is_present(), !absent, "{state:?}");
            assert_eq!(state.is_source(), in_use && !absent, "{state:?}");
            let active = matches!(state, InUse(_, Active));
            assert_eq!(state.is_active(), active, "{state:?}");
        }
    }
}
