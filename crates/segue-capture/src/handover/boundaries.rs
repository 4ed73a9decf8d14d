//! Which path each segment was first sent to.

use segue_wire::Tsn;

/// Switches kept: segments older than that many switches are long acknowledged.
const KEPT: usize = 8;

/// First transmissions by path. TSNs are given to segments in the order of their first transmission (RFC 9260 section
/// 6.1), so the map from TSN to path is a step function, and only its last steps matter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Boundaries<P> {
    /// (first TSN, path), oldest first; the first `len` are valid.
    steps: [Option<(Tsn, P)>; KEPT],
    len: usize,
    newest: Option<Tsn>,
}

impl<P> Default for Boundaries<P> {
    fn default() -> Self {
        Self {
            steps: [const { None }; KEPT],
            len: 0,
            newest: None,
        }
    }
}

impl<P: Copy + Eq> Boundaries<P> {
    /// Whether `tsn` is newer than all assigned so far.
    pub(super) fn is_new(&self, tsn: Tsn) -> bool {
        self.newest.is_none_or(|newest| newest.before(tsn))
    }

    /// Notes that the new segment `tsn` was sent to `path` first; true if that is another path than before.
    pub(super) fn assign(&mut self, tsn: Tsn, path: P) -> bool {
        self.newest = Some(tsn);
        if self.current_path() == Some(path) {
            return false;
        }
        if self.len == KEPT {
            self.steps.rotate_left(1);
            self.len -= 1;
        }
        self.steps[self.len] = Some((tsn, path));
        self.len += 1;
        true
    }

    /// The newest segment assigned.
    pub(super) fn newest(&self) -> Option<Tsn> {
        self.newest
    }

    /// The path that new segments are sent to.
    pub(super) fn current_path(&self) -> Option<P> {
        let last = self.len.checked_sub(1)?;
        self.steps[last].map(|(_, path)| path)
    }

    /// The path that `tsn` was first sent to, if still known.
    pub(super) fn path_of(&self, tsn: Tsn) -> Option<P> {
        self.steps[..self.len]
            .iter()
            .rev()
            .flatten()
            .find(|(first, _)| first.at_or_before(tsn))
            .map(|&(_, path)| path)
    }
}
