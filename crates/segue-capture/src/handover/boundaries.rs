//! Which path each segment was first sent to.

use segue_wire::Tsn;

/// Switches kept: segments older than that many switches are long acknowledged.
const KEPT: usize = 8;

/// Serial numbers are told apart over half of their range (RFC 1982): what lies farther back than this is long acknowledged, and a
/// path in use since before that is taken to be in use since then.
const FAR: u32 = 1 << 30;

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
        self.move_up(tsn);
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

    /// The last step is not so far back that it would be taken for one to come.
    fn move_up(&mut self, newest: Tsn) {
        let last = self.len.checked_sub(1).and_then(|last| self.steps[last]);
        if let Some((_, path)) = last.filter(|(first, _)| newest.0.wrapping_sub(first.0) > FAR) {
            self.steps[0] = Some((Tsn(newest.0.wrapping_sub(FAR)), path));
            self.len = 1;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_use_for_more_than_half_of_the_range_is_known_when_it_is_left() {
        let mut steps = Boundaries::default();
        let mut at = 1_000_u32;
        // 3.5 GB in steps of a megabyte, as of a flow of TCP counted in bytes
        for _ in 0..3500 {
            assert_eq!(steps.assign(Tsn(at), 'a'), at == 1_000);
            at = at.wrapping_add(1_000_000);
        }
        let drains = Tsn(at.wrapping_sub(500_000));
        assert!(steps.assign(Tsn(at), 'b'));
        assert_eq!(steps.path_of(drains), Some('a'));
        assert_eq!(steps.path_of(Tsn(at)), Some('b'));
        for _ in 0..1500 {
            at = at.wrapping_add(1_000_000);
            assert!(!steps.assign(Tsn(at), 'b'));
        }
        assert_eq!(steps.path_of(Tsn(at)), Some('b'));
        assert_eq!(steps.path_of(Tsn(at.wrapping_sub(FAR / 2))), Some('b'));
    }
}
