//! The handshake of an association: what opens it, and how it comes up (RFC 9260 section 5); INIT and COOKIE ECHO where it
//! exists (sections 5.2.1 to 5.2.4).

use super::{Association, Setup};
use crate::contract::LocalAddress;
use crate::random::SecretRng;
use crate::sctp::auth::Authentication;
use crate::sctp::event::Restarted;
use crate::sctp::handshake::{
    Answer, Cookie, Identity, OpeningChunk, PeerParameters, Retry, State, check_init_ack, init,
    note_not_taken,
};
use crate::sctp::outbox::ControlPacket;
use crate::sctp::{Config, Event};
use crate::time::Instant;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::Tsn;
use segue_wire::sctp::{Chunk, ErrorCause, Init};
use smallvec::SmallVec;
use std::sync::Arc;

/// The handshake from either side (section 5.1).
impl Association {
    /// The server's association, from the cookie that came back.
    pub(in crate::sctp) fn from_cookie(
        now: Instant,
        config: &Arc<Config>,
        cookie: &Cookie,
        local: &[LocalAddress],
        route: LocalAddress,
        secrets: &mut dyn SecretRng,
    ) -> Self {
        let setup = Setup {
            config,
            identity: Identity::new(cookie.local_port, cookie.peer_port, cookie.local_tag),
            local_initial_tsn: cookie.local_initial_tsn,
            local_random: cookie.local_random,
            local,
            route,
            peer_addresses: &cookie.peer_addresses,
            // section 5.4: for the receiver of COOKIE ECHO, the address that the INIT ACK went to
            confirmed: 1,
        };
        let mut association = Self::new(now, &setup, secrets);
        association.adopt_cookie(now, cookie);
        association
    }

    /// The peer's side of a cookie becomes this association's: the association is up.
    pub(in crate::sctp) fn adopt_cookie(&mut self, now: Instant, cookie: &Cookie) {
        self.adopt_tag_of_peer(cookie.peer_tag);
        self.auth.adopt_random(&self.config, cookie.local_random);
        self.negotiate(&cookie.peer_parameters);
        self.set_peer(cookie.peer_initial_tsn, cookie.streams.outbound, cookie.peer_rwnd);
        for &address in &cookie.peer_addresses {
            self.add_destination(now, address, false);
        }
        for &address in &cookie.not_taken {
            self.peer.note_not_taken(address);
        }
        let named = cookie.peer_addresses.first().copied();
        self.receiver.begin(
            cookie.peer_initial_tsn,
            cookie.streams.inbound,
            named.unwrap_or(self.primary_path()),
            &self.config,
        );
        self.become_established(now);
    }

    fn set_peer(&mut self, initial_tsn: Tsn, outbound_streams: u16, rwnd: u32) {
        self.asconf.begin(initial_tsn);
        self.streams.begin(initial_tsn);
        self.sender.begin(outbound_streams, rwnd);
        self.peer.begin_windows(rwnd);
    }

    fn become_established(&mut self, now: Instant) {
        self.phase.establish();
        // section 5.1.1: the peer takes fewer streams than this end asked for, and what waits needs them
        if self.sender.lacks_streams() {
            self.abort_with(ErrorCause::UserInitiatedAbort(Bytes::from_static(
                b"too few streams",
            )));
            return;
        }
        self.peer.is_there();
        self.open_burst();
        self.out.tell(Event::Connected);
        if self.auth.random().is_some() && !self.is_authentication_negotiated() {
            self.out.tell(Event::AuthenticationNotSupported);
        }
        self.start_heartbeats(now);
    }

    /// INIT or COOKIE ECHO: the first, or again; nothing of an association that is up.
    pub(in crate::sctp) fn send_opening_chunk(&mut self, now: Instant) {
        let Some((chunk, destination)) = self.phase.opening_chunk() else {
            return;
        };
        let address = self.peer[destination].address();
        let rto = self.peer.rto_to(destination, &self.config);
        let packet = match chunk {
            OpeningChunk::Init { cookie_preservative } => {
                let local: SmallVec<[LocalAddress; 2]> = self.local_addresses().collect();
                let tag_and_tsn = (self.identity.local_tag(), self.sender.flight().next_tsn());
                let random = self.auth.random();
                let init = init(&self.config, &local, random, tag_and_tsn, cookie_preservative);
                let chunks = SmallVec::from_buf([Chunk::Init(Box::new(init))]);
                // section 8.5.1, rule A: also where an INIT ACK has named the peer's tag, and its cookie came back too late
                ControlPacket::new(address, chunks).with_tag(0)
            }
            OpeningChunk::CookieEcho { cookie, errors } => {
                let mut chunks = SmallVec::from_buf([Chunk::CookieEcho(cookie)]);
                if !errors.is_empty() {
                    chunks.push(Chunk::Error(errors));
                }
                ControlPacket::new(address, chunks)
            }
        };
        self.out.send(packet);
        let t1 = self.config.max_init_timeout.map_or(rto, |most| rto.min(most));
        self.phase.opening_chunk_sent(now, now + t1);
    }

    /// T1-init or T1-cookie expired (section 5.1, rules B and C): again, to the next address if there is one.
    pub(in crate::sctp) fn on_t1(&mut self, now: Instant) {
        let alternate = self.peer.usable_destination(self.phase.opening_destination());
        match self.phase.on_t1(self.config.max_init_retransmits, alternate) {
            Retry::Again => {
                self.peer.back_off_everywhere();
                self.send_opening_chunk(now);
            }
            Retry::GiveUp => self.give_up_peer(),
        }
    }

    pub(in crate::sctp) fn on_init_ack(&mut self, now: Instant, from: Ipv6Addr, init_ack: &Init) {
        if self.state() != State::CookieWait {
            self.out.counters.refused.unexpected += 1; // section 5.2.3
            return;
        }
        let own = |address| self.local.is_own(address);
        let (mut peer, ignored) = PeerParameters::read(&init_ack.parameters).without_impossible(from, own);
        self.out.counters.addresses_ignored += ignored;
        let cookie = match check_init_ack(&self.config, init_ack, &peer) {
            Ok(cookie) => cookie,
            Err(cause) => {
                let abort = Chunk::Abort {
                    reflected_tag: false,
                    causes: vec![cause.clone()],
                };
                let packet = ControlPacket::new(from, SmallVec::from_buf([abort]));
                self.out.send(packet.with_tag(init_ack.initiate_tag));
                self.close(Event::Aborted { causes: vec![cause] });
                return;
            }
        };
        self.adopt_tag_of_peer(init_ack.initiate_tag);
        let outbound_streams = self.config.outbound_streams.min(init_ack.inbound_streams);
        self.negotiate(&peer.extensions);
        self.set_peer(init_ack.initial_tsn, outbound_streams, init_ack.a_rwnd);
        let inbound_streams = self.config.max_inbound_streams.min(init_ack.outbound_streams);
        self.receiver
            .begin(init_ack.initial_tsn, inbound_streams, from, &self.config);
        // section 5.4: the address that the INIT ACK came from has proven itself by the tag
        self.add_destination(now, from, true);
        for address in peer.addresses {
            if self.add_destination(now, address, false).is_none() {
                note_not_taken(&mut peer.not_taken, address);
            }
        }
        for address in peer.not_taken {
            self.peer.note_not_taken(address);
        }
        let mut errors = Vec::new();
        if !peer.unrecognized.is_empty() {
            errors.push(ErrorCause::UnrecognizedParameters(
                peer.unrecognized.concat().into(),
            ));
        }
        let answered_from = self.peer.find(from);
        self.phase.on_init_ack(answered_from, cookie, errors);
        self.send_opening_chunk(now);
    }

    pub(in crate::sctp) fn on_cookie_ack(&mut self, now: Instant) {
        if self.state() == State::CookieEchoed {
            self.become_established(now);
        } else {
            self.out.counters.refused.unexpected += 1; // section 5.2.5
        }
    }

    /// Section 5.2.6: try again, asking for a longer life of the cookie.
    pub(in crate::sctp) fn on_stale_cookie(&mut self, now: Instant, staleness_us: u32) {
        let limit = self.config.max_init_retransmits;
        match self.phase.on_stale_cookie(now, staleness_us, limit) {
            Some(Retry::Again) => self.send_opening_chunk(now),
            Some(Retry::GiveUp) => self.close(Event::Lost),
            None => {}
        }
    }

    /// COOKIE ACK goes before anything else.
    pub(in crate::sctp) fn queue_cookie_ack(&mut self, to: Ipv6Addr) {
        let chunks = SmallVec::from_buf([Chunk::CookieAck]);
        self.out.send_first(ControlPacket::new(to, chunks));
    }
}

/// Collisions and restarts (section 5.2).
impl Association {
    /// What a COOKIE ECHO with this cookie has to be authenticated by (section 6.3), so that nobody restarts the association
    /// who does not know its key; nothing where the cookie is of the same handshake, and may name another RANDOM of the
    /// peer's.
    pub(in crate::sctp) fn guard_against_restart(&self, cookie: &Cookie) -> Option<&Authentication> {
        let restarts = !self.is_in_handshake() && self.identity.local_tag() != cookie.local_tag;
        restarts.then_some(&self.auth)
    }

    /// Sections 5.2.1 and 5.2.2: the INIT ACK to an INIT that names `peer_addresses`; or the addresses among them that
    /// the association does not have, for which the INIT is refused. `fresh`: an answer that has nothing to do with
    /// this association.
    pub(in crate::sctp) fn answer_to_init(
        &mut self,
        peer_addresses: &[Ipv6Addr],
        fresh: Answer,
    ) -> Result<Answer, Vec<Ipv6Addr>> {
        if self.state() != State::CookieWait {
            let new = |address: &&Ipv6Addr| !self.has_peer_address(**address);
            let new: Vec<Ipv6Addr> = peer_addresses.iter().filter(new).copied().collect();
            if !new.is_empty() {
                return Err(new);
            }
            self.identity.make_tie_tags(&mut self.rng);
            self.peer.note_other_tag();
        }
        let (local_tag, local_initial_tsn, local_random) = if self.is_in_handshake() {
            // both ends sent INIT: the answer repeats what our own INIT said
            (
                self.identity.local_tag(),
                self.sender.flight().next_tsn(),
                self.auth.random().copied(),
            )
        } else {
            (fresh.local_tag, fresh.local_initial_tsn, fresh.local_random)
        };
        Ok(Answer {
            local_tag,
            local_initial_tsn,
            local_random,
            tie_tags: self.identity.tie_tags(),
            local: self.local.usable().collect(),
        })
    }

    /// The peer's tag is known, or another one.
    fn adopt_tag_of_peer(&mut self, tag: u32) {
        self.identity = self.identity.with_peer_tag(tag);
        self.peer.note_other_tag();
    }

    /// Whether any data of the peer's has come.
    pub(in crate::sctp) fn has_received_data(&self) -> bool {
        self.receiver.has_received()
    }

    /// Action B in an association that is up, and to which nothing has come yet: the peer's tag and initial TSN are
    /// those of its later INIT.
    pub(in crate::sctp) fn adopt_peer_tag(&mut self, cookie: &Cookie) {
        self.adopt_tag_of_peer(cookie.peer_tag);
        self.auth.adopt_random(&self.config, cookie.local_random);
        self.negotiate(&cookie.peer_parameters);
        self.receiver.begin_tsns(cookie.peer_initial_tsn, &self.config);
        self.streams.begin(cookie.peer_initial_tsn);
        self.asconf.begin(cookie.peer_initial_tsn);
    }

    /// Action A in SHUTDOWN-ACK-SENT: no new association; the shutdown is to be completed first.
    pub(in crate::sctp) fn refuse_restart(&mut self, now: Instant, from: Ipv6Addr) {
        self.send_shutdown_ack(now);
        // with it, to where the COOKIE ECHO came from; the tag is the one that the answer will reflect
        self.out.take_back();
        let error = Chunk::Error(vec![ErrorCause::CookieReceivedWhileShuttingDown]);
        let chunks = SmallVec::from_iter([Chunk::ShutdownAck, error]);
        self.out.send(ControlPacket::new(from, chunks));
    }

    /// Begins anew with the peer that `cookie` describes (action A): what was is over.
    pub(in crate::sctp) fn restart(
        &mut self,
        now: Instant,
        config: &Arc<Config>,
        cookie: &Cookie,
        secrets: &mut dyn SecretRng,
    ) {
        let local: SmallVec<[LocalAddress; 4]> = self.local.usable().collect();
        // as before, if that address is still one
        let route = self.local.route();
        let route = if local.contains(&route) {
            route
        } else {
            self.local.source()
        };
        let fresh = Self::from_cookie(now, config, cookie, &local, route, secrets);
        let former = core::mem::replace(self, fresh);
        self.replaces(former);
    }

    /// Takes over from the association that this one is the restart of: what its user has not been told yet, what it
    /// did not get rid of, its counters, its endpoint pair shared keys, and what it knows of this host: spare addresses
    /// and the routing table. TSNs, streams, paths, windows and timers are as at the beginning; requests for addresses
    /// and streams that were not answered are forgotten, as [`Event::Restarted`] says.
    fn replaces(&mut self, former: Association) {
        self.local.inherit(former.local);
        self.follow_source();
        let (unacknowledged, unsent) = former.sender.into_messages();
        let restarted = Restarted {
            unsent,
            unacknowledged,
            unread: former.receiver.into_messages(),
        };
        let restarted = Event::Restarted(Box::new(restarted));
        self.out.tell_instead(&Event::Connected, restarted);
        self.out.follow(former.out);
        self.auth.inherit_keys(former.auth);
    }
}
