//! Associations that wait in line.

use crate::sctp::AssociationId;
use std::collections::VecDeque;

/// A line in which mostly nobody or one waits, and who is first is asked for every packet.
#[derive(Default)]
pub(super) struct Line {
    first: Option<AssociationId>,
    /// Those behind the first; empty without one.
    others: VecDeque<AssociationId>,
}

impl Line {
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub(super) const fn first(&self) -> Option<AssociationId> {
        self.first
    }

    #[inline]
    pub(super) fn push(&mut self, id: AssociationId) {
        if self.first.is_none() {
            self.first = Some(id);
        } else {
            self.others.push_back(id);
        }
    }

    /// The first leaves.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.first = if self.others.is_empty() {
            None
        } else {
            self.others.pop_front()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_first_leaves_first() {
        let mut line = Line::default();
        assert!(line.is_empty());
        for id in 0..3 {
            line.push(AssociationId(id));
        }
        line.advance();
        line.push(AssociationId(0));
        for id in [1, 2, 0] {
            assert_eq!(line.first(), Some(AssociationId(id)));
            line.advance();
        }
        assert!(line.is_empty() && line.first().is_none());
        line.advance();
        assert!(line.is_empty());
    }
}
