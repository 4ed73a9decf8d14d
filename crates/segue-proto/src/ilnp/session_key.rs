//! What names a session.

use segue_wire::ilnp::Nid;

/// Names a session: the identifier of the peer, and which of the sessions with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SessionKey {
    nid: Nid,
    number: u64,
}

impl SessionKey {
    /// Whoever keeps the sessions sees to it that no number is used twice.
    pub(super) const fn new(nid: Nid, number: u64) -> Self {
        Self { nid, number }
    }

    /// The identifier of the peer.
    pub(super) const fn nid(self) -> Nid {
        self.nid
    }

    /// A number that no other session of this host has or had.
    #[must_use]
    pub(super) const fn number(self) -> u64 {
        self.number
    }
}
