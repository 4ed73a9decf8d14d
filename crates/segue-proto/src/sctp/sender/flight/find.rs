//! Which chunk is the next to be sent again, and the first that is under way on a path.

use super::Flight;
use crate::sctp::ids::PathId;
use crate::sctp::sender::chunk::Sent;
use segue_wire::Tsn;

impl Flight {
    /// Lowest TSN marked for retransmission at or after `from`.
    pub(in crate::sctp) fn next_marked(&mut self, from: Option<Tsn>) -> Option<Tsn> {
        if self.marked == 0 {
            return None;
        }
        let start = match from {
            Some(from) if self.marked_from.before(from) => from,
            _ => self.marked_from,
        };
        let offset = start.distance_from(self.base) as usize;
        let found = self.chunks.iter().skip(offset).position(Sent::is_marked)?;
        let tsn = start.add(found as u32);
        if start == self.marked_from {
            self.marked_from = tsn;
        }
        Some(tsn)
    }

    /// Of what is outstanding on `path`, that which was sent first.
    pub(super) fn first_sent_on(&self, path: PathId) -> Option<Tsn> {
        let own = self
            .iter()
            .filter(|(_, s)| s.is_outstanding() && s.path() == Some(path));
        own.min_by_key(|(_, s)| s.transmission().number())
            .map(|(tsn, _)| tsn)
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
