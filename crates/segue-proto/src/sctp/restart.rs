//! INIT and COOKIE ECHO where an association exists: collisions and restarts (RFC 9260 sections 5.2.1 to 5.2.4).

use super::Event;
use super::association::{Association, ControlPacket, State};
use super::auth::Random;
use super::event::{Message, Restarted};
use super::handshake::cookie::{Cookie, TieTags};
use super::inbound::Received;
use super::reassembly::Reassembly;
use crate::contract::LocalAddress;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::Tsn;
use segue_wire::sctp::{Chunk, ErrorCause};
use smallvec::SmallVec;

/// What this end puts into the INIT ACK and the cookie.
pub(super) struct Answer {
    pub local_tag: u32,
    pub local_initial_tsn: Tsn,
    pub local_random: Option<Random>,
    pub tie_tags: Option<TieTags>,
    pub local: SmallVec<[LocalAddress; 4]>,
}

/// What to do with a valid cookie where an association exists (section 5.2.4, table 12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
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
pub(super) fn action(association: &Association, cookie: &Cookie) -> Action {
    let identity = &association.identity;
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

impl Association {
    /// Sections 5.2.1 and 5.2.2: the INIT ACK to an INIT that names `peer_addresses`; or the addresses among them that
    /// the association does not have, for which the INIT is refused. `fresh`: an answer that has nothing to do with
    /// this association.
    pub(super) fn answer_to_init(
        &mut self,
        peer_addresses: &[Ipv6Addr],
        fresh: Answer,
    ) -> Result<Answer, Vec<Ipv6Addr>> {
        if self.state != State::CookieWait {
            let new = |address: &&Ipv6Addr| !self.has_peer_address(**address);
            let new: Vec<Ipv6Addr> = peer_addresses.iter().filter(new).copied().collect();
            if !new.is_empty() {
                return Err(new);
            }
            self.identity.make_tie_tags(&mut self.rng);
        }
        let (local_tag, local_initial_tsn, local_random) = if self.is_in_handshake() {
            // both ends sent INIT: the answer repeats what our own INIT said
            (
                self.identity.local_tag(),
                self.outbound.next_tsn(),
                self.auth.random,
            )
        } else {
            (fresh.local_tag, fresh.local_initial_tsn, fresh.local_random)
        };
        Ok(Answer {
            local_tag,
            local_initial_tsn,
            local_random,
            tie_tags: self.identity.tie_tags(),
            local: self.usable_local(),
        })
    }

    /// Action B in an association that is up, and to which nothing has come yet: the peer's tag and initial TSN are
    /// those of its later INIT.
    pub(super) fn adopt_peer_tag(&mut self, cookie: &Cookie) {
        self.identity.learn_peer_tag(cookie.peer_tag);
        self.auth.adopt_random(&self.config, cookie.local_random);
        self.negotiate(&cookie.peer_parameters);
        self.received = Received::new(cookie.peer_initial_tsn);
        self.reassembly = Reassembly::new(cookie.peer_initial_tsn, &self.config);
        self.streams.begin(cookie.peer_initial_tsn);
        self.asconf.begin(cookie.peer_initial_tsn);
    }

    /// Action A in SHUTDOWN-ACK-SENT: no new association; the shutdown is to be completed first.
    pub(super) fn refuse_restart(&mut self, now: Instant, from: Ipv6Addr) {
        self.send_shutdown_ack(now);
        // with it, to where the COOKIE ECHO came from; the tag is the one that the answer will reflect
        self.out.take_back();
        let error = Chunk::Error(vec![ErrorCause::CookieReceivedWhileShuttingDown]);
        let chunks = SmallVec::from_iter([Chunk::ShutdownAck, error]);
        self.out.send(ControlPacket::new(from, chunks));
    }

    /// Addresses of ours that the peer may be told of.
    pub(super) fn usable_local(&self) -> SmallVec<[LocalAddress; 4]> {
        self.local.usable().collect()
    }

    /// Where a restarted association sends from: as before, if that address is still one.
    pub(super) fn route_of_restart(&self, usable: &[LocalAddress]) -> LocalAddress {
        let route = self.local.route();
        if usable.contains(&route) {
            route
        } else {
            self.local.source()
        }
    }

    /// Takes over from the association that this one is the restart of: what its user has not been told yet, what it
    /// did not get rid of, its counters, its endpoint pair shared keys, and what it knows of this host: spare addresses
    /// and the routing table. TSNs, streams, paths, windows and timers are as at the beginning; requests for addresses
    /// and streams that were not answered are forgotten, as [`Event::Restarted`] says.
    pub(super) fn replaces(&mut self, mut former: Association) {
        self.local.inherit(former.local);
        self.follow_source();
        let (unacknowledged, unsent) = former.outbound.take_messages();
        let unread: Vec<Message> = core::iter::from_fn(|| former.reassembly.pop()).collect();
        let restarted = Restarted {
            unsent,
            unacknowledged,
            unread,
        };
        let restarted = Event::Restarted(Box::new(restarted));
        self.out.tell_instead(&Event::Connected, restarted);
        self.out.follow(former.out);
        self.auth.inherit_keys(former.auth);
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
