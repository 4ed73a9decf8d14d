//! A packet arrives for the association (RFC 9260 sections 3.2, 6.2, 8.5).

use super::Association;
use super::came::Came;
use super::transmit::{sack_form, uses_nr_sack};
use crate::sctp::auth::{self, AuthFailure};
use crate::sctp::handshake::State;
use crate::sctp::outbox::ControlPacket;
use crate::sctp::peer::HeartbeatAck;
use crate::sctp::receiver::Outcome;
use crate::sctp::replies::Reply;
use crate::sctp::sender::sack::{Impossible, SackOutcome, Via};
use crate::sctp::{Event, SackRoute};
use crate::time::Instant;
use core::hint::cold_path;
use core::net::Ipv6Addr;
use segue_wire::sctp::chunk_type::ASCONF;
use segue_wire::sctp::{Chunk, DataChunk, ErrorCause, ForwardTsn, SctpPacket, UnrecognizedAction};

/// The packet at hand, and what its DATA chunks and FORWARD TSNs mean for the SACK.
struct Seen {
    via: Via,
    /// There are any.
    any: bool,
    /// Acknowledge without delay.
    immediate: bool,
    /// Something was missing before the packet came.
    had_gap: bool,
    /// Length of the packet, bytes.
    packet_len: usize,
}

impl Association {
    /// `from` and `to`: the addresses of the packet. Returns false if it is refused whole.
    #[inline(never)]
    pub(in crate::sctp) fn handle_packet(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        to: Ipv6Addr,
        packet: &mut SctpPacket,
    ) -> bool {
        let Some(came) = self.admit(from, packet) else {
            return false;
        };
        self.handle_chunks_here(now, from, to, packet, came);
        true
    }

    /// The same of a packet that arrived out of the UDP port `remote_port`, or not in UDP, where both ends may be: what goes to
    /// where it came from goes the same way (RFC 6951 section 5.4), and so do addresses that the peer adds.
    pub(in crate::sctp) fn handle_encapsulated(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        to: Ipv6Addr,
        remote_port: Option<u16>,
        packet: &mut SctpPacket,
    ) -> bool {
        if self.accepts_tag(packet) {
            self.peer.comes_out_of(from, remote_port);
        }
        // an ASCONF from an unknown address that is not authenticated changes nothing, not even this
        let Some(came) = self.admit(from, packet) else {
            return false;
        };
        self.peer.expect_new_addresses_at(remote_port);
        self.handle_chunks(now, from, to, packet, came);
        true
    }

    /// Whether a packet may be acted on, less what of it may not.
    #[inline(always)]
    fn admit(&mut self, from: Ipv6Addr, packet: &mut SctpPacket) -> Option<Came> {
        if self.is_closed() {
            cold_path();
            self.out.counters.refused.after_close += 1;
            return None;
        }
        if !self.accepts_tag(packet) {
            cold_path();
            self.out.counters.refused.bad_tag += 1;
            return None;
        }
        let came = Came::of(packet, self.reply_limit(from, packet));
        if !self.auth.is_plain(&packet.chunks) && !self.admit_authenticated(from, packet) {
            self.replies.forget();
            return None;
        }
        Some(came)
    }

    /// Takes out of a packet what may not be acted on (RFC 4895 section 6.3). An address that is not the peer's (yet) brings in
    /// nothing but an ASCONF that is accepted; and a reflected tag was good for the ABORT alone.
    #[inline(never)]
    fn admit_authenticated(&mut self, from: Ipv6Addr, packet: &mut SctpPacket) -> bool {
        let is_asconf = |c: &Chunk| matches!(c, Chunk::Asconf(_));
        let found_by_asconf = !self.has_peer_address(from) && packet.chunks.iter().any(is_asconf);
        self.sift(packet);
        (!found_by_asconf || packet.chunks.iter().any(is_asconf)) && self.accepts_tag(packet)
    }

    /// Works off the chunks of a packet that may be acted on.
    #[inline(never)]
    pub(in crate::sctp) fn handle_chunks(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        to: Ipv6Addr,
        packet: &mut SctpPacket,
        came: Came,
    ) {
        self.handle_chunks_here(now, from, to, packet, came);
    }

    /// The same as a part of its caller.
    #[inline(always)]
    fn handle_chunks_here(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        to: Ipv6Addr,
        packet: &mut SctpPacket,
        Came { len, limit }: Came,
    ) {
        self.replies.begin(from, limit);
        if packet.chunks.iter().any(is_abort) {
            cold_path();
            self.ignore_aborts_of_deleted(to, packet);
        }
        self.asconf.begin_packet();
        let mut seen = Seen {
            via: Via { from, to },
            any: false,
            immediate: false,
            had_gap: self.receiver.has_gap(),
            packet_len: len,
        };
        let awaited = self.awaited_for(to);
        for chunk in &mut packet.chunks {
            if !self.handle_chunk(now, chunk, &mut seen) || self.is_closed() {
                break;
            }
        }
        self.send_replies(to);
        if let Some(serial) = awaited {
            cold_path();
            self.ask_again(now, serial);
        }
        if seen.any && !self.is_closed() {
            let back = self.has_peer_address(from).then_some((from, limit));
            self.owe_for_packet(now, back, &seen);
        }
    }

    /// A packet with DATA or a FORWARD TSN is worked off. `back`: where it came from, if that is an address
    /// of the peer's, and what a packet there may have.
    #[inline(always)]
    fn owe_for_packet(&mut self, now: Instant, back: Option<(Ipv6Addr, Option<usize>)>, seen: &Seen) {
        let to = seen.via.to;
        if self.streams.awaits_transfer() {
            cold_path();
            self.continue_stream_changes(now);
        }
        self.receiver.arrived(back, to);
        self.on_data_after_replacement(now, to);
        let shutting_down = self.state() == State::ShutdownSent;
        let immediate = seen.immediate || shutting_down;
        self.receiver
            .owe(now, seen.had_gap, immediate, &self.config, &mut self.out);
        if shutting_down {
            // section 9.2: SACK and SHUTDOWN, T2 starts anew
            self.send_shutdown(now);
        }
    }

    /// RFC 5061 section 5.3, F4 and 5.3.1: a packet from an address that is deleted may be overtaken by the deletion, and the
    /// peer may answer it with an ABORT, which comes to that address, before the answer to the deletion or after it.
    #[inline(never)]
    fn ignore_aborts_of_deleted(&mut self, to: Ipv6Addr, packet: &mut SctpPacket) {
        if !self.local.is_staying(to) {
            let before = packet.chunks.len();
            packet.chunks.retain(|c| !is_abort(c));
            self.out.counters.refused.unexpected += (before - packet.chunks.len()) as u64;
        }
    }

    /// Bytes of SCTP that a packet from an address may be answered with: of no more than came from it, until somebody has
    /// proven to hear us there.
    #[inline(always)]
    pub(in crate::sctp) fn reply_limit(&self, from: Ipv6Addr, packet: &SctpPacket) -> Option<usize> {
        if self.peer.has_confirmed_address(from) {
            return None;
        }
        cold_path();
        Some(packet.buffer_len())
    }

    /// Sends what answers the packet at hand, which came to `to`.
    #[inline(always)]
    fn send_replies(&mut self, to: Ipv6Addr) {
        if let Some(reply) = self.replies.end() {
            cold_path();
            self.send_reply(to, reply);
        }
    }

    #[inline(never)]
    fn send_reply(&mut self, to: Ipv6Addr, reply: Reply) {
        if self.is_closed() {
            return;
        }
        // section 8.3: over the path that is probed, if so configured
        let back = self.config.sack_route == SackRoute::Arrival && reply.acknowledges_heartbeat();
        let source = self.local.source_at(to).filter(|_| back);
        let (destination, behind) = (reply.destination(), reply.behind());
        let auth_len = self.auth.overhead(&reply.chunk_types());
        let chunks = reply.into_chunks(self.peer.sizes().mtu(), auth_len);
        if !chunks.is_empty() {
            let answer = ControlPacket {
                source,
                destination,
                tag: None,
                chunks,
            };
            self.out.send_behind(behind.unwrap_or(usize::MAX), answer);
        }
    }

    /// Section 8.5 and its exceptions 8.5.1.
    #[inline]
    pub(in crate::sctp) fn accepts_tag(&self, packet: &SctpPacket) -> bool {
        let tag = packet.verification_tag;
        // nearly every packet, and it is asked more than once of each
        if let [Chunk::Data(_) | Chunk::Sack(_), ..] = packet.chunks.as_slice() {
            return self.identity.accepts(tag, false);
        }
        let reflected = match auth::first_chunk(packet) {
            Some(Chunk::Abort { reflected_tag, .. } | Chunk::ShutdownComplete { reflected_tag }) => {
                *reflected_tag
            }
            _ => false,
        };
        self.identity.accepts(tag, reflected)
    }

    /// Returns false if the rest of the packet is not to be looked at. What is left of the chunk is of no use.
    #[inline(always)]
    fn handle_chunk(&mut self, now: Instant, chunk: &mut Chunk, seen: &mut Seen) -> bool {
        match chunk {
            Chunk::Data(chunk) => self.on_data(chunk, seen),
            Chunk::Sack(sack) if self.is_up() => {
                let (sender, mut cx) = self.sending(now);
                let outcome = sender.handle_sack(&mut cx, seen.via, sack);
                self.after_sack(now, outcome)
            }
            chunk => {
                let chunk = core::mem::replace(chunk, Chunk::CookieAck);
                self.handle_control_chunk(now, chunk, seen)
            }
        }
    }

    /// The same for anything but DATA, and SACK of an association that is up.
    #[inline(never)]
    fn handle_control_chunk(&mut self, now: Instant, chunk: Chunk, seen: &mut Seen) -> bool {
        let from = seen.via.from;
        if !self.is_up() && needs_association(&chunk) {
            self.out.counters.refused.unexpected += 1;
            return true;
        }
        match chunk {
            Chunk::Data(_) | Chunk::Sack(_) => {}
            Chunk::NrSack(nr_sack) if uses_nr_sack(&self.config, &self.extensions) => {
                let (sender, mut cx) = self.sending(now);
                let outcome = sender.handle_nr_sack(&mut cx, seen.via, &nr_sack);
                return self.after_nr_sack(now, outcome);
            }
            Chunk::InitAck(init_ack) => self.on_init_ack(now, from, &init_ack),
            Chunk::CookieAck => self.on_cookie_ack(now),
            Chunk::Heartbeat(info) => self.replies.acknowledge_heartbeat(info),
            Chunk::HeartbeatAck(info) => self.on_heartbeat_ack(now, &info),
            Chunk::Abort { causes, .. } => {
                self.close(Event::Aborted { causes });
                return false;
            }
            Chunk::Shutdown { cumulative_tsn_ack } => self.on_shutdown(now, seen.via, cumulative_tsn_ack),
            Chunk::ShutdownAck => self.on_shutdown_ack(from),
            Chunk::ShutdownComplete { .. } => self.on_shutdown_complete(),
            Chunk::Error(causes) => self.on_error(now, &causes),
            Chunk::ForwardTsn(forward_tsn) if self.may_forward_tsn() => {
                self.on_forward_tsn(&forward_tsn, seen)
            }
            Chunk::ReConfig(re_config) if self.may_re_config() => self.on_re_config(now, from, &re_config),
            // the association is over but for the last word: there is nothing left to change
            Chunk::Asconf(_) | Chunk::AsconfAck(_) if self.state() == State::ShutdownAckSent => {
                self.out.counters.refused.unexpected += 1;
            }
            Chunk::Asconf(asconf) if self.config.dynamic_addresses => self.on_asconf(now, from, &asconf),
            chunk @ (Chunk::Asconf(_) | Chunk::ForwardTsn(_) | Chunk::ReConfig(_) | Chunk::NrSack(_)) => {
                return self.on_unagreed_chunk(&chunk);
            }
            Chunk::AsconfAck(ack) => self.on_asconf_ack(now, &ack),
            // AUTH has done its work, and padding has none (RFC 4820 section 3)
            Chunk::Auth(_) | Chunk::Pad(_) => {}
            // INIT and COOKIE ECHO are the endpoint's; ECN is not used (nothing negotiates it)
            Chunk::Init(_) | Chunk::CookieEcho(_) | Chunk::Ecne(_) | Chunk::Cwr(_) => {
                self.out.counters.refused.unexpected += 1;
            }
            Chunk::Unknown {
                chunk_type,
                flags,
                value,
            } => {
                return self.on_unknown_chunk(chunk_type, flags, &value);
            }
        }
        true
    }

    /// Section 3.2: the two highest bits of an unknown chunk's type say what to do.
    pub(in crate::sctp) fn on_unknown_chunk(&mut self, chunk_type: u8, flags: u8, value: &[u8]) -> bool {
        self.out.counters.refused.unknown += 1;
        let action = UnrecognizedAction::of_chunk_type(chunk_type);
        if action.reports() && self.is_up() {
            let mut whole = vec![chunk_type, flags];
            whole.extend((4 + value.len() as u16).to_be_bytes());
            whole.extend(value);
            self.replies
                .report(ErrorCause::UnrecognizedChunkType(whole.into()));
        }
        !action.stops()
    }

    fn on_error(&mut self, now: Instant, causes: &[ErrorCause]) {
        for cause in causes {
            match cause {
                ErrorCause::StaleCookie(staleness_us) => self.on_stale_cookie(now, *staleness_us),
                ErrorCause::UnrecognizedChunkType(chunk) if chunk.first() == Some(&ASCONF) => {
                    self.on_asconf_unknown(cause, chunk);
                }
                _ => {}
            }
        }
    }

    /// A SACK was dealt with. Returns false if it contradicts what was sent.
    #[inline]
    pub(super) fn after_sack(&mut self, now: Instant, outcome: Result<SackOutcome, Impossible>) -> bool {
        match outcome {
            Ok(SackOutcome::Overtaken) => {}
            Ok(SackOutcome::Taken) => {
                if self.streams.is_busy() {
                    cold_path();
                    self.continue_stream_changes(now);
                }
                self.continue_shutdown(now);
            }
            Err(Impossible) => self.out.counters.refused.impossible_acks += 1,
        }
        outcome.is_ok()
    }

    /// The same of an NR-SACK, which may have made room in the send buffer.
    fn after_nr_sack(&mut self, now: Instant, outcome: Result<SackOutcome, Impossible>) -> bool {
        let possible = self.after_sack(now, outcome);
        if possible {
            let (sender, mut cx) = self.sending(now);
            sender.announce_space(&mut cx);
        }
        possible
    }

    fn on_heartbeat_ack(&mut self, now: Instant, info: &[u8]) {
        let (peer, mut probing) = self.probing();
        match peer.on_heartbeat_ack(now, info, &mut probing) {
            HeartbeatAck::Probe | HeartbeatAck::Answer { confirms: None } => {}
            HeartbeatAck::Refused => self.out.counters.refused.bad_heartbeat_acks += 1,
            HeartbeatAck::Answer {
                confirms: Some(index),
            } => {
                // it may be the only one: what waits goes out at once
                self.open_burst();
                if index == self.peer.primary() {
                    self.leave_silent_paths(now);
                }
            }
        }
    }

    #[inline(always)]
    fn on_data(&mut self, chunk: &mut DataChunk, seen: &mut Seen) -> bool {
        if !self.takes_data() {
            self.out.counters.refused.unexpected += 1;
            return true;
        }
        seen.any = true;
        seen.immediate |= chunk.immediate || self.state() == State::ShutdownSent;
        let form = || {
            sack_form(
                &self.config,
                self.peer.sizes().mtu(),
                &self.auth,
                &self.extensions,
            )
        };
        let outcome = self
            .receiver
            .on_data(chunk, seen.packet_len, &self.config, form, &mut self.out);
        seen.immediate |= outcome.asks_for_sack();
        match outcome {
            Outcome::Taken | Outcome::Duplicate | Outcome::NoRoom | Outcome::Unexpected => true,
            Outcome::NoSuchStream => {
                cold_path();
                self.replies
                    .report(ErrorCause::InvalidStreamIdentifier(chunk.stream_id));
                true
            }
            Outcome::NoUserData => {
                cold_path();
                self.abort_with(ErrorCause::NoUserData(chunk.tsn));
                false
            }
            Outcome::OutOfResource => {
                cold_path();
                self.abort_with(ErrorCause::OutOfResource);
                false
            }
        }
    }

    fn on_forward_tsn(&mut self, chunk: &ForwardTsn, seen: &mut Seen) {
        if !self.takes_data() {
            self.out.counters.refused.unexpected += 1;
            return;
        }
        // as for DATA, a SACK is owed
        seen.any = true;
        let outcome = self.receiver.on_forward_tsn(chunk, &mut self.out);
        seen.immediate |= outcome.asks_for_sack() || self.state() == State::ShutdownSent;
    }

    /// Section 6: DATA counts only where the association is up and the peer may still send.
    fn takes_data(&self) -> bool {
        matches!(
            self.state(),
            State::Established | State::ShutdownPending | State::ShutdownSent
        )
    }

    /// A chunk of an extension that was not agreed on is one of an unknown type (RFC 3758 section 3.3.1, RFC 6525
    /// section 5.2).
    fn on_unagreed_chunk(&mut self, chunk: &Chunk) -> bool {
        let mut whole = Vec::with_capacity(chunk.buffer_len());
        chunk.emit(&mut whole);
        let value = whole.get(4..).unwrap_or_default();
        self.on_unknown_chunk(chunk.chunk_type(), chunk.flags(), value)
    }
}

/// Authentication (RFC 4895 section 6.3).
impl Association {
    #[inline(never)]
    fn sift(&mut self, packet: &mut SctpPacket) {
        let sifted = self.auth.sift(packet);
        if let Some(key) = sifted.new_key {
            // RFC 6458 section 6.1.8, SCTP_AUTH_NEW_KEY
            self.out.tell(Event::PeerKeyChanged(key));
        }
        if let Some(failure) = sifted.failure {
            self.out.counters.refused.bad_auth += 1;
            if let AuthFailure::UnsupportedHmac(hmac_id) = failure
                && self.is_up()
            {
                self.replies
                    .report(ErrorCause::UnsupportedHmacIdentifier(hmac_id));
            }
        }
        self.out.counters.refused.unauthenticated += sifted.unauthenticated;
    }
}

fn is_abort(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Abort { .. })
}

/// Whether a chunk means something only to an association that is up. DATA is judged by the state itself.
fn needs_association(chunk: &Chunk) -> bool {
    matches!(
        chunk,
        Chunk::Sack(_)
            | Chunk::Heartbeat(_)
            | Chunk::HeartbeatAck(_)
            | Chunk::Asconf(_)
            | Chunk::AsconfAck(_)
            | Chunk::ForwardTsn(_)
            | Chunk::NrSack(_)
            | Chunk::ReConfig(_)
    )
}
