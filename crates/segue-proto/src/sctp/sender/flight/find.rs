//! What is under way or awaited on a path.

use super::Flight;
use crate::sctp::ids::PathId;
use segue_wire::Tsn;

impl Flight {
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
