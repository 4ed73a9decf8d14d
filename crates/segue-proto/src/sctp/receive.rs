//! A packet arrives for the association (RFC 9260 sections 3.2, 6.2, 8.5).

use super::association::{Association, ControlPacket};
use super::auth;
use super::handshake::State;
use super::inbound::Arrival;
use super::{Event, SackRoute};
use crate::time::Instant;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::Data;
use segue_wire::sctp::chunk_type::ASCONF;
use segue_wire::sctp::{Chunk, DataChunk, ErrorCause, SctpPacket, UnrecognizedAction};

/// What the DATA chunks of one packet mean for the SACK.
#[derive(Default)]
pub(super) struct DataSeen {
    pub any: bool,
    /// Acknowledge without delay.
    pub immediate: bool,
    /// Length of the packet, bytes.
    pub packet_len: usize,
}

impl Association {
    /// `from` and `to`: the addresses of the packet. Returns false if it is refused whole.
    pub(super) fn handle_packet(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        to: Ipv6Addr,
        packet: &mut SctpPacket,
    ) -> bool {
        if self.is_closed() {
            self.out.counters.refused.after_close += 1;
            return false;
        }
        if !self.accepts_tag(packet) {
            self.out.counters.refused.bad_tag += 1;
            return false;
        }
        let is_asconf = |c: &Chunk| matches!(c, Chunk::Asconf(_));
        let found_by_asconf = !self.has_peer_address(from) && packet.chunks.iter().any(is_asconf);
        let (len, limit) = (length_as_it_came(packet), self.reply_limit(from, packet));
        self.authenticate(packet);
        // an address that is not the peer's (yet) brings in nothing but an ASCONF that is accepted; and a reflected tag
        // was good for the ABORT alone
        if found_by_asconf && !packet.chunks.iter().any(is_asconf) || !self.accepts_tag(packet) {
            self.replies.forget();
            return false;
        }
        self.handle_chunks(now, from, to, packet, len, limit);
        true
    }

    /// Works off the chunks of a packet that may be acted on. `len` is the length that it had as it came, `limit` that of
    /// what may answer it.
    pub(super) fn handle_chunks(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        to: Ipv6Addr,
        packet: &mut SctpPacket,
        len: usize,
        limit: Option<usize>,
    ) {
        self.replies.begin(from, limit);
        self.ignore_aborts_of_deleted(to, packet);
        self.asconf.begin_packet();
        let mut data = DataSeen {
            packet_len: len,
            ..DataSeen::default()
        };
        let had_gap = self.received.has_gap();
        let awaited = self.awaited_for(to);
        if let Some(multipath) = &mut self.multipath {
            multipath.packet = (from, to);
        }
        for chunk in &mut packet.chunks {
            if !self.handle_chunk(now, from, chunk, &mut data) || self.is_closed() {
                break;
            }
        }
        self.send_replies(to);
        if let Some(serial) = awaited {
            self.ask_again(now, serial);
        }
        if data.any && !self.is_closed() {
            if self.streams.awaits_transfer() {
                self.continue_stream_changes(now);
            }
            if self.has_peer_address(from) {
                self.reply_to = from;
                self.sack_limit = limit.map_or(u32::MAX, |l| u32::try_from(l).unwrap_or(u32::MAX));
            }
            self.arrived_at = to;
            self.on_data_after_replacement(now);
            let gap = self.gap_asks_for_sack(had_gap);
            self.owe_sack(now, data.immediate || gap);
        }
    }

    /// RFC 5061 section 5.3, F4 and 5.3.1: a packet from an address that is being deleted may overtake the deletion, or be
    /// overtaken by it, and the peer may answer it with an ABORT, which then comes to that address.
    fn ignore_aborts_of_deleted(&mut self, to: Ipv6Addr, packet: &mut SctpPacket) {
        let is_abort = |c: &Chunk| matches!(c, Chunk::Abort { .. });
        if self.local.is_being_deleted(to) && packet.chunks.iter().any(is_abort) {
            let before = packet.chunks.len();
            packet.chunks.retain(|c| !is_abort(c));
            self.out.counters.refused.unexpected += (before - packet.chunks.len()) as u64;
        }
    }

    /// Bytes of SCTP that a packet from an address may be answered with: of no more than came from it, until somebody has
    /// proven to hear us there.
    pub(super) fn reply_limit(&self, from: Ipv6Addr, packet: &SctpPacket) -> Option<usize> {
        (!self.has_confirmed_address(from)).then(|| packet.buffer_len())
    }

    /// Sends what answers the packet at hand, which came to `to`.
    fn send_replies(&mut self, to: Ipv6Addr) {
        let Some(reply) = self.replies.end() else {
            return;
        };
        if self.is_closed() {
            return;
        }
        // section 8.3: over the path that is probed, if so configured
        let back = self.config.sack_route == SackRoute::Arrival && reply.acknowledges_heartbeat();
        let source = self.local.source_at(to).filter(|_| back);
        let (destination, behind) = (reply.destination(), reply.behind());
        let auth_len = self.auth.overhead(&reply.chunk_types());
        let chunks = reply.into_chunks(self.config.mtu, auth_len);
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
    pub(super) fn accepts_tag(&self, packet: &SctpPacket) -> bool {
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
    #[inline]
    fn handle_chunk(&mut self, now: Instant, from: Ipv6Addr, chunk: &mut Chunk, data: &mut DataSeen) -> bool {
        match chunk {
            Chunk::Data(chunk) => self.on_data(chunk, data),
            Chunk::Sack(sack) if self.is_up() => {
                let possible = self.on_sack(now, from, sack);
                self.out.counters.refused.impossible_acks += u64::from(!possible);
                possible
            }
            chunk => {
                let chunk = core::mem::replace(chunk, Chunk::CookieAck);
                self.handle_control_chunk(now, from, chunk, data)
            }
        }
    }

    /// The same for anything but DATA, and SACK of an association that is up.
    #[inline(never)]
    fn handle_control_chunk(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        chunk: Chunk,
        data: &mut DataSeen,
    ) -> bool {
        if !self.is_up() && needs_association(&chunk) {
            self.out.counters.refused.unexpected += 1;
            return true;
        }
        match chunk {
            Chunk::Data(_) | Chunk::Sack(_) => {}
            Chunk::NrSack(nr_sack) if self.uses_nr_sack() => {
                if !self.on_nr_sack(now, from, &nr_sack) {
                    self.out.counters.refused.impossible_acks += 1;
                    return false;
                }
            }
            Chunk::InitAck(init_ack) => self.on_init_ack(now, from, &init_ack),
            Chunk::CookieAck => self.on_cookie_ack(now),
            Chunk::Heartbeat(info) => self.replies.acknowledge_heartbeat(info),
            Chunk::HeartbeatAck(info) => self.on_heartbeat_ack(now, &info),
            Chunk::Abort { causes, .. } => {
                self.close(Event::Aborted { causes });
                return false;
            }
            Chunk::Shutdown { cumulative_tsn_ack } => self.on_shutdown(now, cumulative_tsn_ack),
            Chunk::ShutdownAck => self.on_shutdown_ack(from),
            Chunk::ShutdownComplete { .. } => self.on_shutdown_complete(),
            Chunk::Error(causes) => self.on_error(now, &causes),
            Chunk::ForwardTsn(forward_tsn) if self.may_forward_tsn() => {
                self.on_forward_tsn(&forward_tsn, data)
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
    pub(super) fn on_unknown_chunk(&mut self, chunk_type: u8, flags: u8, value: &[u8]) -> bool {
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

    fn on_data(&mut self, chunk: &mut DataChunk, seen: &mut DataSeen) -> bool {
        // section 6: DATA counts only where the association is up and the peer may still send
        if !matches!(
            self.state(),
            State::Established | State::ShutdownPending | State::ShutdownSent
        ) {
            self.out.counters.refused.unexpected += 1;
            return true;
        }
        seen.any = true;
        if chunk.data.is_empty() {
            self.abort_with(ErrorCause::NoUserData(chunk.tsn)); // section 6.2
            return false;
        }
        seen.immediate |= chunk.immediate || self.state() == State::ShutdownSent;
        let tsn = chunk.tsn;
        let arrival = self.received.classify(tsn);
        match arrival {
            Arrival::InOrder | Arrival::OutOfOrder => {}
            Arrival::Duplicate => {
                self.out.counters.duplicate_data_chunks += 1;
                let limit = self.sack_blocks();
                self.received.note_duplicate(tsn, limit);
                seen.immediate = true;
                return true;
            }
            Arrival::TooFar => {
                self.out.counters.refused.beyond_window += 1;
                seen.immediate = true;
                return true;
            }
        }
        if !self.has_room_for(tsn, chunk.data.len()) {
            self.out.counters.refused.beyond_window += 1;
            seen.immediate = true;
            return !self.is_closed();
        }
        self.received.record(tsn);
        self.out.counters.data_chunks_received += 1;
        self.advertised_rwnd = self.advertised_rwnd.saturating_sub(chunk.data.len() as u32);
        if chunk.stream_id >= self.inbound_streams {
            // section 6.5: acknowledged, reported and dropped
            self.out.counters.refused.bad_stream += 1;
            self.replies
                .report(ErrorCause::InvalidStreamIdentifier(chunk.stream_id));
            return true;
        }
        let mut taken = chunk.take();
        keep_no_packet(&mut taken.data, seen.packet_len);
        self.reassembly.insert(taken);
        self.announce_readable();
        true
    }

    /// Section 6.2: with the window closed, a TSN beyond all received is dropped; one that fills a gap is taken, up to
    /// twice the buffer, because what is held may wait for it. If what is next in order does not fit even so and the
    /// user has nothing to take, a message is longer than the buffer and will never be complete; unless it is a reset of the
    /// association that keeps what came, until the peer has carried it out.
    fn has_room_for(&mut self, tsn: segue_wire::Tsn, len: usize) -> bool {
        let buffer = self.config.receive_buffer as usize;
        let held = self.held_bytes();
        if held < buffer {
            return true;
        }
        let fills_gap = tsn.before(self.received.highest());
        if fills_gap && held + len <= 2 * buffer {
            return true;
        }
        let cumulative = self.received.cumulative_tsn_ack();
        let next = tsn == cumulative.next();
        if next && !self.reassembly.has_ready() {
            let resets = self.streams.resets_association();
            let waits = resets && self.reassembly.take_what_goes_on(cumulative);
            if self.reassembly.has_ready() || self.reassembly.deliver_in_parts() {
                self.announce_readable();
            } else if !waits && (!self.received.has_gap() || held + len > 2 * buffer) {
                self.abort_with(ErrorCause::OutOfResource);
            }
            return false;
        }
        false
    }

    /// What is held of the receive buffer: user bytes, and what many small chunks cost beyond as much again.
    pub(super) fn held_bytes(&self) -> usize {
        let allowance = self.config.receive_buffer as usize;
        self.reassembly.buffered + self.reassembly.overhead_beyond(allowance)
    }

    /// Section 6.2: every second packet with DATA is acknowledged at once, any other within the delay. The first of an
    /// association is too (section 5.1; RFC 2960 and 4960 section 5.1 say the same), and more from there on if so
    /// configured.
    fn owe_sack(&mut self, now: Instant, immediate: bool) {
        let immediate = immediate || self.quick_sacks > 0;
        self.quick_sacks = self.quick_sacks.saturating_sub(1);
        self.unacknowledged_packets += 1;
        if self.state() == State::ShutdownSent {
            // section 9.2: SACK and SHUTDOWN, T2 starts anew
            self.sack_now = true;
            self.send_shutdown(now);
        } else if immediate || self.unacknowledged_packets >= self.config.sack_frequency {
            self.sack_now = true;
        } else if self.sack_timer.is_none() {
            self.sack_timer = Some(now + self.config.sack_delay);
        }
    }

    /// Advertised window: what is free; nothing, if that is less than a segment (RFC 1122 section 4.2.3.3).
    pub(super) fn rwnd_to_advertise(&self) -> u32 {
        let free = self.a_rwnd();
        if free < self.config.mtu.min(self.config.receive_buffer / 2) {
            0
        } else {
            free
        }
    }

    /// The user took a message: the peer is told of the room if that may matter to it, that is when the window it
    /// knows of is nearly used up and has grown by two segments, or has grown by half the buffer.
    pub(super) fn consider_window_update(&mut self) {
        if !self.is_up() {
            return;
        }
        let (known, now) = (self.advertised_rwnd, self.rwnd_to_advertise());
        let buffer = self.config.receive_buffer;
        let grown = now.saturating_sub(known);
        let segments = 2 * self.config.mtu;
        if grown >= buffer / 2 || (known < segments && grown >= segments.min(buffer / 2)) {
            self.sack_now = true;
        }
    }
}

/// What a packet that was parsed took of memory: nobody knows what was passed over in chunks other than DATA.
fn length_as_it_came(packet: &SctpPacket) -> usize {
    if packet.chunks.iter().all(|c| matches!(c, Chunk::Data(_))) {
        packet.buffer_len()
    } else {
        usize::MAX
    }
}

/// Gives the data of a packet memory of its own: what carried it had more than SCTP in it.
pub(super) fn keep_nothing_else(packet: &mut SctpPacket) {
    for chunk in &mut packet.chunks {
        if let Chunk::Data(data) = chunk {
            keep_no_packet(&mut data.data, usize::MAX);
        }
    }
}

/// What is kept of a packet must not keep all of it: data that is less than half of its packet gets memory of its own, so
/// that what is held is at most twice what the receive window counts.
fn keep_no_packet(data: &mut Data, packet_len: usize) {
    if let Data::Bytes(bytes) = data
        && bytes.len().saturating_mul(2) < packet_len
    {
        *bytes = Bytes::copy_from_slice(bytes);
    }
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
