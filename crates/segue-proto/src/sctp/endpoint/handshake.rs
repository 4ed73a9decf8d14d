//! INIT and COOKIE ECHO: the chunks that make associations, also where one exists already (RFC 9260 sections 5.1, 5.2).

use super::Endpoint;
use super::arrived::Arrived;
use crate::sctp::association::Association;
use crate::sctp::association::came::Came;
use crate::sctp::auth;
use crate::sctp::handshake::{
    Action, Answer, Cookie, CookieError, Lifetime, PeerParameters, State, Streams, action, check_init,
    init_ack, note_not_taken,
};
use crate::sctp::ids::MAX_DESTINATIONS;
use crate::sctp::local::address_rules;
use crate::sctp::{AssociationId, Event};
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
        let own = |address| self.local.iter().any(|l| l.address == address);
        let (peer, ignored) = PeerParameters::read(&init.parameters).without_impossible(arrived.from, own);
        self.counters.addresses_ignored += ignored;
        let existing = self.associations.find_existing(arrived, &peer.addresses);
        if let Some((id, _)) = existing
            && self.is_in_state(id, State::ShutdownAckSent)
        {
            // section 9.2: our SHUTDOWN ACK, or the answer to it, was lost
            self.associations
                .command(id, |association| association.send_shutdown_ack_again());
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
        self.answer_init(arrived, init, peer, existing);
    }

    /// The INIT ACK, with all that will be known of the peer in its cookie; or why there is none. `existing`: the association
    /// that there is, and the address of the peer's by which it was found.
    fn answer_init(
        &mut self,
        arrived: &Arrived,
        init: &Init,
        mut peer: PeerParameters,
        existing: Option<(AssociationId, Ipv6Addr)>,
    ) {
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
        let mut answered = *arrived;
        if let Some((id, known)) = existing {
            // it may make tie-tags
            let combined = self.associations.ask(id, |association| {
                association.answer_to_init(&peer_addresses, answer)
            });
            match combined {
                Some(Ok(combined)) => answer = combined,
                Some(Err(new)) => return self.refuse_new_addresses(arrived, init.initiate_tag, new),
                None => return,
            }
            // section 5.2.1: to an address that this end knows of and the INIT names
            answered.from = known;
            peer_addresses.retain(|&a| a != known);
            peer_addresses.insert(0, known);
        }
        let cookie = Cookie {
            lifetime: Lifetime {
                created: arrived.now,
                // section 3.3.2.1.3: the increment asked for is granted, up to the configured life once more
                life: self.config.valid_cookie_life
                    + Duration::from_millis(u64::from(peer.preservative_ms))
                        .clamp(Duration::ZERO, self.config.valid_cookie_life),
            },
            local_tag: answer.local_tag,
            peer_tag: init.initiate_tag,
            local_initial_tsn: answer.local_initial_tsn,
            peer_initial_tsn: init.initial_tsn,
            peer_rwnd: init.a_rwnd,
            tie_tags: answer.tie_tags,
            streams: Streams {
                outbound: self.config.outbound_streams.min(init.inbound_streams),
                inbound: self.config.max_inbound_streams.min(init.outbound_streams),
            },
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
        let Some((cookie, excess)) = self.open_cookie(arrived, &bytes) else {
            return;
        };
        let existing = self.associations.find_for_cookie(arrived, &cookie);
        if !self.is_cookie_echo_authentic(existing, &cookie, sctp) {
            return;
        }
        // section 5.2.4, step 3: a cookie of the association that exists is good however old
        if let Some(excess) = excess.filter(|_| !self.associations.is_of_existing(&cookie)) {
            self.counters.refused.stale_cookies += 1;
            let staleness = u32::try_from(excess.as_nanos() / 1000).unwrap_or(u32::MAX);
            let error = Chunk::Error(vec![ErrorCause::StaleCookie(staleness)]);
            self.answer(arrived, cookie.peer_tag, error);
            return;
        }
        let taken = match existing {
            Some(id) => self.take_cookie(arrived, id, &cookie).then_some(id),
            None => self.accept(arrived, &cookie),
        };
        let Some(id) = taken else {
            return;
        };
        sctp.chunks.drain(..=usize::from(authenticated));
        self.associations.command(id, |association| {
            association.note_encapsulation(arrived.from, arrived.encapsulation);
            association.queue_cookie_ack(arrived.from);
            if authenticated && !sctp.chunks.is_empty() {
                let (from, to) = (arrived.from, arrived.to);
                // the cookie is gone, and was part of what came
                let came = Came::unknown(association.reply_limit(from, sctp));
                association.handle_chunks(arrived.now, from, to, sctp, came);
            }
        });
        if !authenticated && !sctp.chunks.is_empty() {
            self.deliver(arrived, id, sctp);
        }
    }

    /// What a cookie of ours says, and by how much it is older than its life, if it is; nothing of one that is not ours, or
    /// not of who it comes from.
    fn open_cookie(&mut self, arrived: &Arrived, bytes: &[u8]) -> Option<(Cookie, Option<Duration>)> {
        let (cookie, excess) = match self.cookie_keys.open(bytes, arrived.now) {
            Ok(cookie) => (cookie, None),
            Err(CookieError::Stale(cookie, excess)) => (*cookie, Some(excess)),
            Err(CookieError::Forged) => {
                self.counters.refused.forged_cookies += 1;
                return None;
            }
        };
        // section 5.1.5, steps 3 and 4: what does not match is not even told that it is stale
        if cookie.local_tag != arrived.tag
            || cookie.peer_port != arrived.from_port
            || cookie.local_port != self.port
        {
            self.counters.refused.mismatched_cookies += 1;
            return None;
        }
        Some((cookie, excess))
    }

    fn is_cookie_echo_authentic(
        &mut self,
        existing: Option<AssociationId>,
        cookie: &Cookie,
        sctp: &SctpPacket,
    ) -> bool {
        let existing = existing.and_then(|id| self.associations.get(id));
        let guard = existing.and_then(|association| association.guard_against_restart(cookie));
        let (random, parameters) = (cookie.local_random, &cookie.peer_parameters);
        match auth::verify_cookie_echo(&self.config, guard, random, parameters, &sctp.chunks) {
            Ok(()) => return true,
            Err(Some(_)) => self.counters.refused.bad_auth += 1,
            Err(None) => self.counters.refused.unauthenticated += 1,
        }
        false
    }

    /// Table 12: what a cookie does to the association that exists. Returns false if it is not answered.
    fn take_cookie(&mut self, arrived: &Arrived, id: AssociationId, cookie: &Cookie) -> bool {
        let Some(association) = self.associations.get(id) else {
            return false;
        };
        let opening = association.is_in_handshake();
        let untouched = !association.has_received_data();
        match action(association.identity(), cookie) {
            Action::Restart => self.restart(arrived, id, cookie),
            Action::UpdatePeerTag | Action::Establish if opening => {
                self.associations
                    .ask(id, |association| association.adopt_cookie(arrived.now, cookie));
                true
            }
            Action::UpdatePeerTag if untouched => {
                self.associations
                    .ask(id, |association| association.adopt_peer_tag(cookie));
                true
            }
            // the peer has begun anew with another initial TSN, and ours is not at its own first any more
            Action::UpdatePeerTag => self.restart(arrived, id, cookie),
            Action::Establish => true,
            Action::Discard => {
                self.counters.refused.unexpected_cookies += 1;
                false
            }
        }
    }

    /// Section 1.3: two endpoints never have more than one association. The one that was begun last ends without a word:
    /// the peer has kept nothing of it, and an ABORT under its tag could end the other.
    #[inline(never)]
    pub(super) fn give_up_second(&mut self, id: AssociationId) {
        self.counters.refused.second_associations += 1;
        self.associations.command(id, |association| {
            association.close(Event::Aborted { causes: Vec::new() });
        });
    }

    /// The association that a cookie makes, if this end accepts it.
    fn accept(&mut self, arrived: &Arrived, cookie: &Cookie) -> Option<AssociationId> {
        if !self.listening {
            self.counters.out_of_the_blue += 1;
            self.refuse(arrived, cookie.peer_tag, Vec::new());
            return None;
        }
        if self.is_full() {
            self.counters.refused.too_many_associations += 1;
            self.refuse(arrived, cookie.peer_tag, vec![ErrorCause::OutOfResource]);
            return None;
        }
        let to = cookie.peer_addresses.first().copied().unwrap_or(arrived.from);
        let local = address_rules::offered(self.local.iter().copied(), to);
        // the address that the peer has reached is the one that surely reaches the peer
        let reached = local.iter().copied().find(|l| l.address == cookie.local_address);
        let Some(route) = reached.or_else(|| address_rules::first_source(&local, arrived.from)) else {
            self.counters.refused.no_local_address += 1;
            return None;
        };
        let mut association = Association::from_cookie(
            arrived.now,
            &self.config,
            cookie,
            &local,
            route,
            &mut *self.secrets,
        );
        association.start_encapsulation(arrived.encapsulation);
        Some(self.associations.insert(association))
    }

    /// Section 5.2.4, action A: the peer has restarted; what was is over, and the association begins anew in its
    /// place. Returns false if it does not.
    fn restart(&mut self, arrived: &Arrived, id: AssociationId, cookie: &Cookie) -> bool {
        if self.is_in_state(id, State::ShutdownAckSent) {
            self.associations.command(id, |association| {
                association.refuse_restart(arrived.now, arrived.from);
            });
            self.counters.refused.unexpected_cookies += 1;
            return false;
        }
        self.associations.ask(id, |association| {
            association.restart(arrived.now, &self.config, cookie, &mut *self.secrets);
            association.start_encapsulation(arrived.encapsulation);
        });
        self.counters.restarts += 1;
        true
    }

    /// The INIT of a peer that begins anew names addresses that it did not have (section 5.2.2).
    fn refuse_new_addresses(&mut self, arrived: &Arrived, tag: u32, new: Vec<Ipv6Addr>) {
        self.counters.refused.new_addresses += 1;
        let new = new.into_iter().map(Parameter::Ipv6Address).collect::<Vec<_>>();
        let mut listed = Vec::new();
        Parameter::emit_list(&new, &mut listed);
        let cause = ErrorCause::RestartWithNewAddresses(listed.into());
        self.refuse(arrived, tag, vec![cause]);
    }

    fn is_in_state(&self, id: AssociationId, state: State) -> bool {
        self.associations.get(id).is_some_and(|a| a.state() == state)
    }

    /// Whether no more associations are accepted.
    fn is_full(&mut self) -> bool {
        self.associations.len() >= self.config.max_associations && {
            self.associations.reap();
            self.associations.len() >= self.config.max_associations
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
