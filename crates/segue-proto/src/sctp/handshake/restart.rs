//! What a cookie does to an association that exists (RFC 9260 section 5.2.4).

use super::cookie::{Cookie, TieTags};
use super::identity::Identity;
use crate::contract::LocalAddress;
use crate::sctp::auth::Random;
use segue_wire::Tsn;
use smallvec::SmallVec;

/// What this end puts into the INIT ACK and the cookie.
pub(in crate::sctp) struct Answer {
    pub local_tag: u32,
    pub local_initial_tsn: Tsn,
    pub local_random: Option<Random>,
    pub tie_tags: Option<TieTags>,
    pub local: SmallVec<[LocalAddress; 4]>,
}

/// What to do with a valid cookie where an association exists (table 12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum Action {
    /// A: the peer has restarted.
    Restart,
    /// B: both ends opened at once; the peer's tag is the cookie's.
    UpdatePeerTag,
    /// D: the COOKIE ECHO of this very association.
    Establish,
    /// C: the cookie is late; or a case that is not in the table.
    Discard,
}

/// How the cookie's tie-tags compare with the association's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ties {
    /// There are none in the cookie.
    None,
    Match,
    Differ,
}

/// Section 5.2.4, step 5.
pub(in crate::sctp) fn action(identity: &Identity, cookie: &Cookie) -> Action {
    let ties = match cookie.tie_tags {
        None => Ties::None,
        Some(tags) if identity.has_tie_tags(tags) => Ties::Match,
        Some(_) => Ties::Differ,
    };
    table(
        identity.local_tag() == cookie.local_tag,
        identity.peer_tag() == Some(cookie.peer_tag),
        ties,
    )
}

/// Table 12. That the peer's tag is not known yet ("0") is one way not to match it.
fn table(local_tag_matches: bool, peer_tag_matches: bool, ties: Ties) -> Action {
    match (local_tag_matches, peer_tag_matches, ties) {
        (false, false, Ties::Match) => Action::Restart,
        (true, false, _) => Action::UpdatePeerTag,
        (true, true, _) => Action::Establish,
        (false, _, _) => Action::Discard,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_12_row_by_row() {
        let all = [Ties::None, Ties::Match, Ties::Differ];
        // A: X X M M
        assert_eq!(table(false, false, Ties::Match), Action::Restart);
        for ties in all {
            // B: M X A A, and M 0 A A
            assert_eq!(table(true, false, ties), Action::UpdatePeerTag);
            // D: M M A A
            assert_eq!(table(true, true, ties), Action::Establish);
        }
        // C: X M 0 0
        assert_eq!(table(false, true, Ties::None), Action::Discard);
        // not in the table
        for (peer_tag_matches, ties) in [
            (true, Ties::Match),
            (true, Ties::Differ),
            (false, Ties::None),
            (false, Ties::Differ),
        ] {
            assert_eq!(table(false, peer_tag_matches, ties), Action::Discard);
        }
    }
}
