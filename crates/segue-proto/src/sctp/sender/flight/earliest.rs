//! The first of a path's chunks that something holds of.

use crate::sctp::ids::PathId;
use crate::sctp::sender::chunk::Sent;
use segue_wire::Tsn;
use std::collections::VecDeque;

/// Of `chunks`, the first of which has the TSN `base`: the lowest TSN of `path` at or after `from` for whose chunk `which` holds.
pub(super) fn earliest_on(
    (base, chunks): (Tsn, &VecDeque<Sent>),
    path: PathId,
    from: Tsn,
    which: &dyn Fn(&Sent) -> bool,
) -> Option<Tsn> {
    let start = if from.before(base) { base } else { from };
    let offset = start.distance_from(base) as usize;
    let mut chunks = chunks.iter().skip(offset);
    let found = chunks.position(|s| s.path() == Some(path) && which(s))?;
    Some(start.add(found as u32))
}
