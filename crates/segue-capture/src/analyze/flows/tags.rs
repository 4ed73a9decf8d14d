//! Verification tags of SCTP (RFC 9260 section 8.5): each packet of a direction carries the same.

/// By direction; zero where none is known yet, which no packet but one with an INIT carries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tags([u32; 2]);

impl Tags {
    /// The direction of a packet with this tag, if the tag tells.
    pub(super) const fn direction(self, tag: u32) -> Option<usize> {
        match self.0 {
            [x, y] if x == y => None,
            [x, _] if tag != 0 && x == tag => Some(0),
            [_, y] if tag != 0 && y == tag => Some(1),
            _ => None,
        }
    }

    /// A packet of this direction carries it.
    pub(super) const fn carried(&mut self, direction: usize, tag: u32) {
        if tag != 0 && self.0[direction] == 0 {
            self.0[direction] = tag;
        }
    }

    /// An INIT or INIT ACK of this direction asks for it: packets of the other will carry it.
    pub(super) const fn asked_for(&mut self, direction: usize, tag: u32) {
        self.0[1 - direction] = tag;
    }

    /// Whether an INIT of this direction asks for another than is carried: it begins another association.
    pub(super) fn are_replaced(self, direction: usize, asks_for: Option<u32>) -> bool {
        let known = self.0[1 - direction];
        known != 0 && Some(known) != asks_for
    }
}
