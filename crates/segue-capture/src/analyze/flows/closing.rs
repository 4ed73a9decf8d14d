//! Who has closed a flow, and how.

/// FIN in each direction, or RST in any; SHUTDOWN and ABORT likewise.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Closing {
    /// By direction.
    closed: [bool; 2],
    /// Which end said RST or ABORT, first, and when.
    reset: Option<(usize, u64)>,
}

impl Closing {
    /// Who sends in this direction has nothing more to send.
    pub(super) const fn close(&mut self, direction: usize) {
        self.closed[direction] = true;
    }

    /// Both have closed.
    pub(super) const fn complete(&mut self) {
        self.closed = [true; 2];
    }

    /// RST or ABORT.
    pub(super) fn reset(&mut self, direction: usize, now_ns: u64) {
        self.complete();
        self.reset.get_or_insert((direction, now_ns));
    }

    /// What comes next with a SYN is another connection.
    pub(super) fn has_begun(self) -> bool {
        self.closed.contains(&true)
    }

    /// Who sends in this direction has closed it.
    pub(in super::super) const fn is_closed(self, direction: usize) -> bool {
        self.closed[direction]
    }

    pub(in super::super) fn is_complete(self) -> bool {
        self.closed == [true; 2]
    }

    /// Who sends in this direction broke it off.
    pub(in super::super) fn is_given_up(self, direction: usize) -> bool {
        self.reset.is_some_and(|(end, _)| end == direction)
    }

    /// When the receiver of this direction broke it off, if he did.
    pub(in super::super) fn refused_ns(self, direction: usize) -> Option<u64> {
        self.reset.filter(|(end, _)| *end != direction).map(|(_, at)| at)
    }
}
