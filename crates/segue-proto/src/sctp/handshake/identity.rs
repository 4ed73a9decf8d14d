//! By what the packets of one association are told from those of others: ports and tags.

use super::cookie::TieTags;
use rand_core::RngCore;

/// Ports and tags of an association. The ports and our tag are what they are from the beginning; the peer's tag is learned,
/// and tie-tags are made when a cookie has need of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) struct Identity {
    local_port: u16,
    peer_port: u16,
    local_tag: u32,
    peer_tag: Option<u32>,
    tie_tags: Option<TieTags>,
}

impl Identity {
    /// Of an association with a peer whose tag is not known yet.
    pub(in crate::sctp) const fn new(local_port: u16, peer_port: u16, local_tag: u32) -> Self {
        Self {
            local_port,
            peer_port,
            local_tag,
            peer_tag: None,
            tie_tags: None,
        }
    }

    pub(in crate::sctp) const fn local_port(&self) -> u16 {
        self.local_port
    }

    pub(in crate::sctp) const fn peer_port(&self) -> u16 {
        self.peer_port
    }

    /// The tag that packets of the peer carry.
    pub(in crate::sctp) const fn local_tag(&self) -> u32 {
        self.local_tag
    }

    /// The peer's tag, once its INIT or INIT ACK is known.
    pub(in crate::sctp) const fn peer_tag(&self) -> Option<u32> {
        self.peer_tag
    }

    /// What packets to the peer carry: its tag, or zero until that is known (RFC 9260 section 8.5.1, rule A).
    #[inline]
    pub(in crate::sctp) fn verification_tag(&self) -> u32 {
        self.peer_tag.unwrap_or(0)
    }

    /// Tags given out in cookies, if there was need of them.
    pub(in crate::sctp) const fn tie_tags(&self) -> Option<TieTags> {
        self.tie_tags
    }

    /// The same once the peer's INIT or INIT ACK has named its tag.
    #[must_use]
    pub(in crate::sctp) const fn with_peer_tag(self, tag: u32) -> Self {
        Self {
            peer_tag: Some(tag),
            ..self
        }
    }

    /// Tie-tags for a cookie (RFC 9260 section 5.2.2): from the first time on the same.
    pub(in crate::sctp) fn make_tie_tags(&mut self, rng: &mut impl RngCore) -> TieTags {
        *self.tie_tags.get_or_insert_with(|| {
            loop {
                let tags = (rng.next_u32(), rng.next_u32());
                if tags.0 != 0 && tags.1 != 0 {
                    break tags;
                }
            }
        })
    }

    /// Whether a cookie with these tie-tags was made while this association existed.
    pub(in crate::sctp) fn has_tie_tags(&self, tie_tags: TieTags) -> bool {
        self.tie_tags == Some(tie_tags)
    }

    /// Whether a packet with this verification tag is the association's (RFC 9260 section 8.5): with our own tag, or, if it
    /// says that it reflects it, with the peer's (section 8.5.1, rules B and C).
    #[inline]
    pub(in crate::sctp) fn accepts(&self, tag: u32, is_reflected: bool) -> bool {
        if is_reflected {
            self.peer_tag == Some(tag)
        } else {
            self.local_tag == tag
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    #[test]
    fn a_reflected_tag_is_the_peers_and_nobody_reflects_a_tag_that_is_not_known() {
        let mut identity = Identity::new(1, 2, 3);
        assert!(identity.accepts(3, false) && !identity.accepts(4, false));
        assert!(!identity.accepts(0, true) && !identity.accepts(3, true));
        assert_eq!((identity.peer_tag(), identity.verification_tag()), (None, 0));
        identity = identity.with_peer_tag(4);
        assert!(identity.accepts(4, true) && !identity.accepts(4, false) && !identity.accepts(3, true));
        assert_eq!((identity.peer_tag(), identity.verification_tag()), (Some(4), 4));
    }

    #[test]
    fn tie_tags_are_made_once_and_are_not_the_tags_themselves() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut identity = Identity::new(1, 2, 3);
        identity = identity.with_peer_tag(4);
        assert_eq!(identity.tie_tags(), None);
        let made = identity.make_tie_tags(&mut rng);
        assert_eq!(identity.make_tie_tags(&mut rng), made);
        assert_eq!(identity.tie_tags(), Some(made));
        assert!(identity.has_tie_tags(made) && !identity.has_tie_tags((made.0, made.1 ^ 1)));
        // section 1.3: a cookie must not reveal the tags
        assert!(![3, 4].contains(&made.0) && ![3, 4].contains(&made.1));
        assert!(made.0 != 0 && made.1 != 0);
    }
}
