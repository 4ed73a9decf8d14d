//! What names a session.

use segue_wire::ilnp::Nid;

/// Names a session: the identifier of the peer, and which of the sessions with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SessionKey {
    pub(super) nid: Nid,
    pub(super) number: u64,
}

impl SessionKey {
    /// A number that no other session of this host has or had.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.number
    }
}
