//! INIT and COOKIE ECHO: the chunks that make associations, also where one exists already (RFC 9260 sections 5.1, 5.2).

use super::{Arrived, Endpoint};
use crate::contract::LocalAddress;
use crate::sctp::Event;
use crate::sctp::association::Association;
use crate::sctp::auth;
use crate::sctp::handshake::{
    Action, Answer, Cookie, CookieError, PeerParameters, State, action, check_init, init_ack, note_not_taken,
};
use crate::sctp::local::address_rules;
use crate::sctp::path::MAX_DESTINATIONS;
use crate::time::Duration;
use core::net::Ipv6Addr;
use segue_wire::Tsn;
use segue_wire::sctp::{Chunk, ErrorCause, Init, Parameter, SctpPacket};

impl Endpoint {
    pub(super) fn new_tag_and_tsn(&mut self) -> (u32, Tsn) {
        let tag = loop {
            let tag = self.secrets.secret_u32();
            if tag != 0 {
                break tag;
            }
        };
        (tag, Tsn(self.secrets.secret_u32()))
    }

    /// Section 5.1, B and 5.2: an INIT is answered without keeping anything.
    #[inline(never)]
    pub(super) fn on_init(&mut self, arrived: &Arrived, init: &Init) {
        // section 3.3.2: an Initiate Tag of 0 is not even answered
        if arrived.tag != 0 {
            self.counters.refused.bad_init_tag += 1;
            return;
        }
        if init.initiate_tag == 0 {
            self.counters.refused.bad_init += 1;
            return;
        }
        let mut peer = PeerParameters::read(&init.parameters);
        let own = |address| self.local.iter().any(|l| l.address == address);
        self.counters.addresses_ignored += peer.drop_impossible(arrived.from, own);
        let existing = self.find_existing(arrived, &peer.addresses);
        if let Some((index, _)) = existing
            && self.slots[index].association.state() == State::ShutdownAckSent
        {
            // section 9.2: our SHUTDOWN ACK, or the answer to it, was lost
            self.slots[index].association.send_shutdown_ack(arrived.now);
            self.touch(index);
            return;
        }
        if existing.is_none() && !self.listening {
            self.counters.out_of_the_blue += 1;
            return self.refuse(arrived, init.initiate_tag, Vec::new());
        }
        if let Err(cause) = check_init(&self.config, init, &peer) {
            self.counters.refused.bad_init += 1;
            return self.refuse(arrived, init.initiate_tag, vec![cause]);
        }
        if existing.is_none() && self.is_full() {
            self.counters.refused.too_many_associations += 1;
            return self.refuse(arrived, init.initiate_tag, vec![ErrorCause::OutOfResource]);
        }
        let mut answered = *arrived;
        let mut peer_addresses = vec![arrived.from];
        for address in peer.addresses.into_iter().filter(|&a| a != arrived.from) {
            if peer_addresses.len() < MAX_DESTINATIONS {
                peer_addresses.push(address);
            } else {
                note_not_taken(&mut peer.not_taken, address);
            }
        }
        let (tag, tsn) = self.new_tag_and_tsn();
        let mut answer = Answer {
            local_tag: tag,
            local_initial_tsn: tsn,
            local_random: self.new_random(),
            tie_tags: None,
            local: address_rules::offered(self.local.iter().copied(), arrived.from),
        };
        if let Some((index, known)) = existing {
            let association = &mut self.slots[index].association;
            let combined = association.answer_to_init(&peer_addresses, answer);
            // it may have made tie-tags
            self.list(index);
            match combined {
                Ok(combined) => answer = combined,
                Err(new) => {
                    self.counters.refused.new_addresses += 1;
                    let new = new.into_iter().map(Parameter::Ipv6Address).collect::<Vec<_>>();
                    let mut listed = Vec::new();
                    Parameter::emit_list(&new, &mut listed);
                    let cause = ErrorCause::RestartWithNewAddresses(listed.into());
                    return self.refuse(arrived, init.initiate_tag, vec![cause]);
                }
            }
            // section 5.2.1: to an address that this end knows of and the INIT names
            answered.from = known;
            peer_addresses.retain(|&a| a != known);
            peer_addresses.insert(0, known);
        }
        let cookie = Cookie {
            created: arrived.now,
            // section 3.3.2.1.3: the increment asked for is granted, up to the configured life once more
            life: self.config.valid_cookie_life
                + Duration::from_millis(u64::from(peer.preservative_ms))
                    .clamp(Duration::ZERO, self.config.valid_cookie_life),
            local_tag: answer.local_tag,
            peer_tag: init.initiate_tag,
            local_initial_tsn: answer.local_initial_tsn,
            peer_initial_tsn: init.initial_tsn,
            peer_rwnd: init.a_rwnd,
            tie_tags: answer.tie_tags,
            outbound_streams: self.config.outbound_streams.min(init.inbound_streams),
            inbound_streams: self.config.max_inbound_streams.min(init.outbound_streams),
            local_port: self.port,
            peer_port: arrived.from_port,
            local_random: answer.local_random,
            peer_parameters: peer.extensions,
            local_address: arrived.to,
            peer_addresses,
            not_taken: peer.not_taken,
        };
        let sealed = cookie.seal(self.cookie_keys.current(arrived.now, &mut *self.secrets));
        let ack = init_ack(&self.config, &answer.local, &cookie, sealed, peer.unrecognized);
        self.counters.inits_answered += 1;
        self.answer(&answered, init.initiate_tag, Chunk::InitAck(Box::new(ack)));
    }

    /// Section 5.1, D and 5.2.4: the cookie comes back.
    #[inline(never)]
    pub(super) fn on_cookie_echo(&mut self, arrived: &Arrived, sctp: &mut SctpPacket) {
        let authenticated = matches!(sctp.chunks[0], Chunk::Auth(_));
        let Some(Chunk::CookieEcho(bytes)) = sctp.chunks.get(usize::from(authenticated)).cloned() else {
            return;
        };
        let (cookie, excess) = match self.cookie_keys.open(&bytes, arrived.now) {
            Ok(cookie) => (cookie, None),
            Err(CookieError::Stale(cookie, excess)) => (*cookie, Some(excess)),
            Err(CookieError::Forged) => {
                self.counters.refused.forged_cookies += 1;
                return;
            }
        };
        // section 5.1.5, steps 3 and 4: what does not match is not even told that it is stale
        if cookie.local_tag != arrived.tag
            || cookie.peer_port != arrived.from_port
            || cookie.local_port != self.port
        {
            self.counters.refused.mismatched_cookies += 1;
            return;
        }
        let existing = self.find_for_cookie(arrived, &cookie);
        let guard = existing.and_then(|index| self.slots[index].association.guard_against_restart(&cookie));
        match auth::verify_cookie_echo(
            &self.config,
            guard,
            cookie.local_random,
            &cookie.peer_parameters,
            &sctp.chunks,
        ) {
            Ok(()) => {}
            Err(Some(_)) => {
                self.counters.refused.bad_auth += 1;
                return;
            }
            Err(None) => {
                self.counters.refused.unauthenticated += 1;
                return;
            }
        }
        // section 5.2.4, step 3: a cookie of the association that exists is good however old
        if let Some(excess) = excess.filter(|_| !self.is_of_existing(&cookie)) {
            self.counters.refused.stale_cookies += 1;
            let staleness = u32::try_from(excess.as_nanos() / 1000).unwrap_or(u32::MAX);
            let error = Chunk::Error(vec![ErrorCause::StaleCookie(staleness)]);
            self.answer(arrived, cookie.peer_tag, error);
            return;
        }
        sctp.chunks.drain(..=usize::from(authenticated));
        let index = match existing {
            Some(index) => {
                let association = &mut self.slots[index].association;
                match action(association.identity(), &cookie) {
                    Action::Restart => {
                        if !self.restart(arrived, index, &cookie) {
                            return;
                        }
                    }
                    Action::UpdatePeerTag if association.is_in_handshake() => {
                        association.adopt_cookie(arrived.now, &cookie);
                    }
                    Action::UpdatePeerTag if association.counters().data_chunks_received == 0 => {
                        association.adopt_peer_tag(&cookie);
                    }
                    // the peer has begun anew with another initial TSN, and ours is not at its own first any more
                    Action::UpdatePeerTag => {
                        if !self.restart(arrived, index, &cookie) {
                            return;
                        }
                    }
                    Action::Establish => {
                        if association.is_in_handshake() {
                            association.adopt_cookie(arrived.now, &cookie);
                        }
                    }
                    Action::Discard => {
                        self.counters.refused.unexpected_cookies += 1;
                        return;
                    }
                }
                index
            }
            None if !self.listening => {
                self.counters.out_of_the_blue += 1;
                return self.refuse(arrived, cookie.peer_tag, Vec::new());
            }
            None if self.is_full() => {
                self.counters.refused.too_many_associations += 1;
                return self.refuse(arrived, cookie.peer_tag, vec![ErrorCause::OutOfResource]);
            }
            None => {
                let to = cookie.peer_addresses.first().copied().unwrap_or(arrived.from);
                let local = address_rules::offered(self.local.iter().copied(), to);
                match self.accept(arrived, &cookie, &local) {
                    Some(index) => index,
                    None => return,
                }
            }
        };
        let association = &mut self.slots[index].association;
        association.note_encapsulation(arrived.from, arrived.encapsulation);
        association.queue_cookie_ack(arrived.from);
        if sctp.chunks.is_empty() {
            self.touch(index);
        } else if authenticated {
            let (from, to) = (arrived.from, arrived.to);
            let association = &mut self.slots[index].association;
            let limit = association.reply_limit(from, sctp);
            // the cookie is gone, and was part of what came
            association.handle_chunks(arrived.now, from, to, sctp, usize::MAX, limit);
            self.touch(index);
        } else {
            self.deliver(arrived, index, sctp);
        }
    }

    /// Whether a packet is the INIT ACK for an association that this end has begun and that turns out to be the second
    /// with its peer: by the peer's tag, or by an address that is the peer's of the other one beyond doubt. `connect`
    /// could not tell from an address that the other has not confirmed.
    pub(super) fn is_second_with_its_peer(&self, index: usize, arrived: &Arrived, sctp: &SctpPacket) -> bool {
        let [Chunk::InitAck(ack), ..] = sctp.chunks.as_slice() else {
            return false;
        };
        let begun = &self.slots[index].association;
        // section 8.5: what does not carry our tag is not even looked at
        if begun.state() != State::CookieWait || self.slots.len() == 1 || !begun.accepts_tag(sctp) {
            return false;
        }
        let (id, port) = (self.slots[index].id, arrived.from_port);
        let named = PeerParameters::read(&ack.parameters).addresses;
        let by_address = |address| self.index.confirmed_at(address, port);
        let mut others = self
            .index
            .with_peer_tag(ack.initiate_tag, port)
            .chain(by_address(arrived.from))
            .chain(named.into_iter().flat_map(by_address));
        others.any(|other| other != id)
    }

    /// Section 1.3: two endpoints never have more than one association. The one that was begun last ends without a word:
    /// the peer has kept nothing of it, and an ABORT under its tag could end the other.
    #[inline(never)]
    pub(super) fn give_up_second(&mut self, index: usize) {
        self.counters.refused.second_associations += 1;
        self.slots[index]
            .association
            .close(Event::Aborted { causes: Vec::new() });
        self.touch(index);
    }

    fn accept(&mut self, arrived: &Arrived, cookie: &Cookie, local: &[LocalAddress]) -> Option<usize> {
        // the address that the peer has reached is the one that surely reaches the peer
        let reached = local.iter().copied().find(|l| l.address == cookie.local_address);
        let Some(route) = reached.or_else(|| address_rules::first_source(local, arrived.from)) else {
            self.counters.refused.no_local_address += 1;
            return None;
        };
        let mut association = Association::from_cookie(
            arrived.now,
            &self.config,
            cookie,
            local,
            route,
            &mut *self.secrets,
        );
        association.start_encapsulation(arrived.encapsulation);
        let id = self.insert(association);
        let index = self.slot_of(id)?;
        self.slots[index]
            .association
            .start_encapsulation(arrived.encapsulation);
        Some(index)
    }

    /// Section 5.2.4, action A: the peer has restarted; what was is over, and the association begins anew in its
    /// place. Returns false if it does not.
    fn restart(&mut self, arrived: &Arrived, index: usize, cookie: &Cookie) -> bool {
        let association = &mut self.slots[index].association;
        if association.state() == State::ShutdownAckSent {
            association.refuse_restart(arrived.now, arrived.from);
            self.counters.refused.unexpected_cookies += 1;
            self.touch(index);
            return false;
        }
        let local = association.usable_local();
        let route = association.route_of_restart(&local);
        let mut fresh = Association::from_cookie(
            arrived.now,
            &self.config,
            cookie,
            &local,
            route,
            &mut *self.secrets,
        );
        fresh.start_encapsulation(arrived.encapsulation);
        let former = core::mem::replace(&mut **association, fresh);
        association.replaces(former);
        association.start_encapsulation(arrived.encapsulation);
        self.counters.restarts += 1;
        true
    }

    /// The association that an INIT is for, and the peer's address by which it was found: the source, or else one that
    /// the INIT names (section 5.2.2 speaks of addresses added to an association, so it is not the source alone that
    /// tells). An address that another peer claims and has not confirmed is not yet its own.
    fn find_existing(&mut self, arrived: &Arrived, named: &[Ipv6Addr]) -> Option<(usize, Ipv6Addr)> {
        let port = arrived.from_port;
        let mut found = |address| self.find_confirmed(address, port).map(|index| (index, address));
        found(arrived.from).or_else(|| named.iter().find_map(|&address| found(address)))
    }

    /// The association that a cookie is for: by our tag or by the tie-tags from whatever address it comes, else by the
    /// addresses, as [`find_existing`](Self::find_existing) does. The one that this end has begun since it answered the
    /// INIT may know another of the peer's addresses than the COOKIE ECHO comes from.
    fn find_for_cookie(&mut self, arrived: &Arrived, cookie: &Cookie) -> Option<usize> {
        let (from, port) = (arrived.from, arrived.from_port);
        self.find_tags(cookie)
            .or_else(|| self.find_tie_tags(cookie))
            .or_else(|| self.find_confirmed(from, port))
            .or_else(|| {
                let mut named = cookie.peer_addresses.iter();
                named.find_map(|&address| self.find_confirmed(address, port))
            })
    }

    fn is_of_existing(&mut self, cookie: &Cookie) -> bool {
        self.find_tags(cookie).is_some_and(|index| {
            self.slots[index].association.peer_verification_tag() == Some(cookie.peer_tag)
        })
    }

    /// Whether no more associations are accepted.
    fn is_full(&mut self) -> bool {
        self.slots.len() >= self.config.max_associations && {
            self.reap();
            self.slots.len() >= self.config.max_associations
        }
    }

    /// Answers with an ABORT.
    fn refuse(&mut self, arrived: &Arrived, tag: u32, causes: Vec<ErrorCause>) {
        let abort = Chunk::Abort {
            reflected_tag: false,
            causes,
        };
        self.answer(arrived, tag, abort);
    }
}
