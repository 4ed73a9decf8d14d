//! The association that a packet is for (RFC 9260 sections 5.2 and 8.5, RFC 5061 section 5.2).

use super::{Associations, Slot, place_of};
use crate::sctp::AssociationId;
use crate::sctp::association::Association;
use crate::sctp::auth;
use crate::sctp::endpoint::arrived::Arrived;
use crate::sctp::handshake::{Cookie, PeerParameters, State};
use core::net::Ipv6Addr;
use segue_wire::icmpv6::invoking::{Invoking, InvokingSctp};
use segue_wire::sctp::{Chunk, SctpPacket};

/// The first of `candidates` that has not ended and that `which` holds for; counts those that it looks at.
fn first(
    slots: &[Slot],
    examined: &mut u64,
    mut candidates: impl Iterator<Item = AssociationId>,
    which: impl Fn(&Association) -> bool,
) -> Option<AssociationId> {
    candidates.find(|id| {
        *examined += 1;
        place_of(slots, *id).is_some_and(|place| {
            let association = &slots[place].association;
            !association.is_closed() && which(association)
        })
    })
}

impl Associations {
    /// The association of a packet: by its tag, if it comes from an address of the peer; an ASCONF by its tag from
    /// whatever address (RFC 5061 sections 5.2, D1 and D2, and 5.3.2). It may name an address that this end has deleted
    /// on its behalf: when the answer was lost with the address it went to, the same chunk comes again from yet another
    /// one.
    ///
    /// What has nobody's tag is for whoever has the address, or else the address that an ASCONF names, to be refused and
    /// counted there.
    pub(in crate::sctp::endpoint) fn find(
        &mut self,
        arrived: &Arrived,
        sctp: &SctpPacket,
    ) -> Option<AssociationId> {
        if let Some(last) = self.last_if_for(arrived, sctp) {
            return Some(last);
        }
        let found = self
            .find_by_tag(arrived, sctp)
            .or_else(|| self.find_at(arrived.from, arrived.from_port))
            .or_else(|| self.find_at(named_by_asconf(sctp)?, arrived.from_port));
        if let Some(place) = found.and_then(|id| self.slot_of(id)) {
            self.last = place;
            self.last_tag = self.slots[place].association.own_verification_tag();
        }
        found
    }

    /// The association that the last packet was for, if this one is too.
    #[inline]
    pub(in crate::sctp::endpoint) fn last_if_for(
        &self,
        arrived: &Arrived,
        sctp: &SctpPacket,
    ) -> Option<AssociationId> {
        // among thousands it is mostly for another, and looking at this one would be for nothing
        if sctp.verification_tag != self.last_tag {
            return None;
        }
        let slot = self.slots.get(self.last)?;
        let a = &slot.association;
        let is_for = a.peer_port() == arrived.from_port
            && !a.is_closed()
            && a.has_peer_address(arrived.from)
            && a.accepts_tag(sctp);
        is_for.then_some(slot.id)
    }

    fn find_by_tag(&mut self, arrived: &Arrived, sctp: &SctpPacket) -> Option<AssociationId> {
        let Arrived {
            tag, from, from_port, ..
        } = *arrived;
        if has_reflected_tag(sctp) {
            return self.find_with_peer_tag_at(tag, from_port, from);
        }
        let asks = named_by_asconf(sctp).is_some();
        self.find_with_local_tag(tag, |a| {
            a.peer_port() == from_port && (asks || a.has_peer_address(from))
        })
    }

    fn find_with_local_tag(
        &mut self,
        tag: u32,
        which: impl Fn(&Association) -> bool,
    ) -> Option<AssociationId> {
        self.list_touched();
        let candidates = self.index.with_local_tag(tag);
        first(&self.slots, &mut self.examined, candidates, which)
    }

    fn find_with_peer_tag_at(&mut self, tag: u32, port: u16, address: Ipv6Addr) -> Option<AssociationId> {
        self.list_touched();
        let candidates = self.index.with_peer_tag_at(tag, port, address);
        first(&self.slots, &mut self.examined, candidates, |_| true)
    }

    /// Whether nothing but the tag, which may be a guess, connects a packet with an association: neither is it from an
    /// address of the peer's, nor does it name one.
    pub(in crate::sctp::endpoint) fn is_known_by_tag_alone(
        &self,
        id: AssociationId,
        arrived: &Arrived,
        sctp: &SctpPacket,
    ) -> bool {
        self.get(id).is_some_and(|association| {
            !association.has_peer_address(arrived.from)
                && !named_by_asconf(sctp).is_some_and(|named| association.has_peer_address(named))
        })
    }

    /// An association with a peer that has `address` and sends from `port`.
    fn find_at(&mut self, address: Ipv6Addr, port: u16) -> Option<AssociationId> {
        self.list_touched();
        let candidates = self.index.at(address, port);
        first(&self.slots, &mut self.examined, candidates, |_| true)
    }

    /// The same where the address has been confirmed: one that another peer claims is not yet its own.
    pub(in crate::sctp::endpoint) fn find_confirmed(
        &mut self,
        address: Ipv6Addr,
        port: u16,
    ) -> Option<AssociationId> {
        self.list_touched();
        let candidates = self.index.confirmed_at(address, port);
        first(&self.slots, &mut self.examined, candidates, |_| true)
    }

    /// The association that an INIT is for, and the peer's address by which it was found: the source, or else one that
    /// the INIT names (section 5.2.2 speaks of addresses added to an association, so it is not the source alone that
    /// tells). An address that another peer claims and has not confirmed is not yet its own.
    pub(in crate::sctp::endpoint) fn find_existing(
        &mut self,
        arrived: &Arrived,
        named: &[Ipv6Addr],
    ) -> Option<(AssociationId, Ipv6Addr)> {
        let port = arrived.from_port;
        let mut found = |address| self.find_confirmed(address, port).map(|id| (id, address));
        found(arrived.from).or_else(|| named.iter().find_map(|&address| found(address)))
    }

    /// The association that a cookie is for: by our tag or by the tie-tags from whatever address it comes, else by the
    /// addresses, as [`find_existing`](Self::find_existing) does. The one that this end has begun since it answered the
    /// INIT may know another of the peer's addresses than the COOKIE ECHO comes from.
    pub(in crate::sctp::endpoint) fn find_for_cookie(
        &mut self,
        arrived: &Arrived,
        cookie: &Cookie,
    ) -> Option<AssociationId> {
        let (from, port) = (arrived.from, arrived.from_port);
        self.find_tags(cookie)
            .or_else(|| self.find_tie_tags(cookie))
            .or_else(|| self.find_confirmed(from, port))
            .or_else(|| {
                let mut named = cookie.peer_addresses.iter();
                named.find_map(|&address| self.find_confirmed(address, port))
            })
    }

    /// Whether a cookie is of an association that exists, on both sides.
    pub(in crate::sctp::endpoint) fn is_of_existing(&mut self, cookie: &Cookie) -> bool {
        let found = self.find_tags(cookie).and_then(|id| self.get(id));
        found.is_some_and(|a| a.peer_verification_tag() == Some(cookie.peer_tag))
    }

    /// The association that a cookie has made, or completes: by our tag, from whatever address it comes.
    fn find_tags(&mut self, cookie: &Cookie) -> Option<AssociationId> {
        self.find_with_local_tag(cookie.local_tag, |a| a.peer_port() == cookie.peer_port)
    }

    /// The association that there was when a cookie was made.
    fn find_tie_tags(&mut self, cookie: &Cookie) -> Option<AssociationId> {
        self.list_touched();
        let candidates = self.index.with_tie_tags(cookie.tie_tags?);
        let port = cookie.peer_port;
        first(&self.slots, &mut self.examined, candidates, |a| {
            a.peer_port() == port
        })
    }

    /// The association that sent a packet that an ICMPv6 error quotes, if it did: ICMP5 and ICMP6.
    pub(in crate::sctp::endpoint) fn find_invoked(
        &mut self,
        invoking: &Invoking,
        sctp: &InvokingSctp,
    ) -> Option<AssociationId> {
        let (port, address) = (sctp.destination_port, invoking.destination);
        if sctp.verification_tag == 0 {
            self.find_with_local_tag(sctp.initiate_tag?, |a| {
                a.peer_port() == port && a.has_peer_address(address)
            })
        } else {
            self.find_with_peer_tag_at(sctp.verification_tag, port, address)
        }
    }

    /// Whether a packet is the INIT ACK for an association that this end has begun and that turns out to be the second
    /// with its peer: by the peer's tag, or by an address that is the peer's of the other one beyond doubt. Who began it
    /// could not tell from an address that the other has not confirmed.
    pub(in crate::sctp::endpoint) fn is_second_with_its_peer(
        &mut self,
        id: AssociationId,
        arrived: &Arrived,
        sctp: &SctpPacket,
    ) -> bool {
        self.list_touched();
        let ([Chunk::InitAck(ack), ..], Some(begun)) = (sctp.chunks.as_slice(), self.get(id)) else {
            return false;
        };
        // section 8.5: what does not carry our tag is not even looked at
        if begun.state() != State::CookieWait || self.slots.len() == 1 || !begun.accepts_tag(sctp) {
            return false;
        }
        let port = arrived.from_port;
        let named = PeerParameters::read(&ack.parameters).addresses;
        let by_address = |address| self.index.confirmed_at(address, port);
        let mut others = self
            .index
            .with_peer_tag(ack.initiate_tag, port)
            .chain(by_address(arrived.from))
            .chain(named.into_iter().flat_map(by_address));
        others.any(|other| other != id)
    }

    /// Whether a peer may send from where a packet came from in good faith although that is not an address of its.
    pub(in crate::sctp::endpoint) fn is_from_former(&mut self, arrived: &Arrived) -> bool {
        self.list_touched();
        self.index.is_former(arrived.from, arrived.from_port)
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
