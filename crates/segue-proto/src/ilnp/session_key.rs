//! What names a session.

use segue_wire::ilnp::Nid;

/// Names a session: the identifier of the peer, and which of the sessions with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct SessionKey {
    pub nid: Nid,
    pub number: u64,
}
