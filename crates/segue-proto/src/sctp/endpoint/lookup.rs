//! The association that a packet is for (RFC 9260 sections 5.2 and 8.5, RFC 5061 section 5.2).

use super::{Arrived, Endpoint, Slot};
use crate::sctp::association::Association;
use crate::sctp::auth;
use crate::sctp::handshake::Cookie;
use crate::sctp::{AssociationId, EndpointCounters};
use core::net::Ipv6Addr;
use segue_wire::sctp::{Chunk, SctpPacket};

/// The first of `candidates` that has not ended and that `which` holds for.
pub(super) fn first(
    slots: &[Slot],
    counters: &mut EndpointCounters,
    mut candidates: impl Iterator<Item = AssociationId>,
    which: impl Fn(&Association) -> bool,
) -> Option<usize> {
    candidates.find_map(|id| {
        counters.associations_examined += 1;
        let index = slots.binary_search_by_key(&id, |s| s.id).ok()?;
        let a = &slots[index].association;
        (!a.is_closed() && which(a)).then_some(index)
    })
}

impl Endpoint {
    /// The association of a packet: by its tag, if it comes from an address of the peer; an ASCONF by its tag from
    /// whatever address (RFC 5061 sections 5.2, D1 and D2, and 5.3.2). It may name an address that this end has deleted
    /// on its behalf: when the answer was lost with the address it went to, the same chunk comes again from yet another
    /// one.
    ///
    /// What has nobody's tag is for whoever has the address, or else the address that an ASCONF names, to be refused and
    /// counted there.
    pub(super) fn find(&mut self, arrived: &Arrived, sctp: &SctpPacket) -> Option<usize> {
        if self.is_for_last(arrived, sctp) {
            return Some(self.last_slot);
        }
        let found = self
            .find_by_tag(arrived, sctp)
            .or_else(|| self.find_at(arrived.from, arrived.from_port))
            .or_else(|| self.find_at(named_by_asconf(sctp)?, arrived.from_port));
        if let Some(index) = found {
            self.last_slot = index;
        }
        found
    }

    /// Whether a packet is for the association that the last one was for.
    #[inline]
    pub(super) fn is_for_last(&self, arrived: &Arrived, sctp: &SctpPacket) -> bool {
        self.slots.get(self.last_slot).is_some_and(|slot| {
            let a = &slot.association;
            a.peer_port() == arrived.from_port
                && !a.is_closed()
                && a.has_peer_address(arrived.from)
                && a.accepts_tag(sctp)
        })
    }

    fn find_by_tag(&mut self, arrived: &Arrived, sctp: &SctpPacket) -> Option<usize> {
        let Arrived {
            tag, from, from_port, ..
        } = *arrived;
        if has_reflected_tag(sctp) {
            let theirs = self.index.with_peer_tag_at(tag, from_port, from);
            return first(&self.slots, &mut self.counters, theirs, |_| true);
        }
        let asks = named_by_asconf(sctp).is_some();
        first(
            &self.slots,
            &mut self.counters,
            self.index.with_local_tag(tag),
            |a| a.peer_port() == from_port && (asks || a.has_peer_address(from)),
        )
    }

    /// Whether nothing but the tag, which may be a guess, connects a packet with an association: neither is it from an
    /// address of the peer's, nor does it name one.
    pub(super) fn is_known_by_tag_alone(&self, index: usize, arrived: &Arrived, sctp: &SctpPacket) -> bool {
        let association = &self.slots[index].association;
        !association.has_peer_address(arrived.from)
            && !named_by_asconf(sctp).is_some_and(|named| association.has_peer_address(named))
    }

    /// An association with a peer that has `address` and sends from `port`.
    fn find_at(&mut self, address: Ipv6Addr, port: u16) -> Option<usize> {
        let candidates = self.index.at(address, port);
        first(&self.slots, &mut self.counters, candidates, |_| true)
    }

    /// The same where the address has been confirmed: one that another peer claims is not yet its own.
    pub(super) fn find_confirmed(&mut self, address: Ipv6Addr, port: u16) -> Option<usize> {
        let candidates = self.index.confirmed_at(address, port);
        first(&self.slots, &mut self.counters, candidates, |_| true)
    }

    /// The association that a cookie has made, or completes: by our tag, from whatever address it comes.
    pub(super) fn find_tags(&mut self, cookie: &Cookie) -> Option<usize> {
        let candidates = self.index.with_local_tag(cookie.local_tag);
        let port = cookie.peer_port;
        first(&self.slots, &mut self.counters, candidates, |a| {
            a.peer_port() == port
        })
    }

    /// The association that there was when a cookie was made.
    pub(super) fn find_tie_tags(&mut self, cookie: &Cookie) -> Option<usize> {
        let candidates = self.index.with_tie_tags(cookie.tie_tags?);
        let port = cookie.peer_port;
        first(&self.slots, &mut self.counters, candidates, |a| {
            a.peer_port() == port
        })
    }
}

/// The address that an ASCONF names as the one to find its association by (RFC 5061 section 4.1.1).
fn named_by_asconf(sctp: &SctpPacket) -> Option<Ipv6Addr> {
    sctp.chunks.iter().find_map(|c| match c {
        Chunk::Asconf(asconf) => Some(asconf.address),
        _ => None,
    })
}

/// Whether the tag of a packet is that of its receiver's peer (RFC 9260 section 8.5.1, rules B and C).
fn has_reflected_tag(sctp: &SctpPacket) -> bool {
    matches!(
        auth::first_chunk(sctp),
        Some(
            Chunk::Abort {
                reflected_tag: true,
                ..
            } | Chunk::ShutdownComplete { reflected_tag: true }
        )
    )
}
