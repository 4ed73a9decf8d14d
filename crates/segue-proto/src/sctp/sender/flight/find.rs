//! What is under way or awaited on a path.

use super::Flight;
use crate::sctp::ids::PathId;
use crate::sctp::sender::chunk::Sent;
use segue_wire::Tsn;
use std::collections::VecDeque;

impl Flight {
    /// Of what is outstanding on `path`, that which was sent first. Where T3-rtx runs for that, and nowhere else.
    pub(super) fn first_sent_on(&mut self, path: PathId) -> Option<Tsn> {
        let is_under_way = is_under_way((self.base, &self.chunks), path);
        self.books.get_mut(path)?.first_sent(is_under_way)
    }

    /// The order in which the chunks of a path were sent is forgotten as far as nobody asks for it.
    pub(super) fn tidy_order(&mut self, path: PathId) {
        let is_under_way = is_under_way((self.base, &self.chunks), path);
        if let Some(book) = self.books.get_mut(path) {
            book.tidy(is_under_way);
        }
    }

    /// Whether anything of `path` up to `tsn` is neither acknowledged nor abandoned.
    pub(in crate::sctp) fn awaits_on(&self, path: PathId, tsn: Tsn) -> bool {
        if tsn.before(self.base) {
            return false;
        }
        let reach = (tsn.distance_from(self.base) as usize).saturating_add(1);
        let mut until = self.chunks.iter().take(reach);
        until.any(|s| s.path() == Some(path) && s.is_awaited())
    }
}

/// Whether what was sent on `path` by the transmission of a number, with a TSN, is what is outstanding there.
pub(super) fn is_under_way(
    (base, chunks): (Tsn, &VecDeque<Sent>),
    path: PathId,
) -> impl Fn(u64, Tsn) -> bool {
    move |number, tsn| {
        let sent = chunks.get(tsn.distance_from(base) as usize);
        sent.is_some_and(|s| {
            s.is_outstanding() && s.path() == Some(path) && s.transmission().number() == number
        })
    }
}
