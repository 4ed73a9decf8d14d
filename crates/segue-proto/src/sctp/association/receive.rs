//! A packet arrives for the association, and the SACK that it is owed leaves (RFC 9260 sections 3.2, 6.2, 8.5).

use super::{Association, ControlPacket, PACKET_HEADERS};
use crate::contract::{InterfaceId, LocalAddress};
use crate::sctp::auth;
use crate::sctp::auth::Authentication;
use crate::sctp::handshake::{PeerExtensions, State};
use crate::sctp::multipath::uses_nr_sack;
use crate::sctp::path::Path;
use crate::sctp::receiver::{Outcome, SackForm};
use crate::sctp::{Config, Event, SackRoute};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::Packet;
use segue_wire::sctp::chunk_type::{ASCONF, NR_SACK, SACK, SHUTDOWN};
use segue_wire::sctp::{Chunk, DataChunk, ErrorCause, ForwardTsn, SctpPacket, UnrecognizedAction};
use smallvec::SmallVec;

/// What the DATA chunks and FORWARD TSNs of one packet mean for the SACK.
struct DataSeen {
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
    pub(in crate::sctp) fn handle_packet(
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
    pub(in crate::sctp) fn handle_chunks(
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
            any: false,
            immediate: false,
            had_gap: self.receiver.has_gap(),
            packet_len: len,
        };
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
            let back = self.has_peer_address(from).then_some((from, limit));
            self.owe_for_packet(now, back, to, &data);
        }
    }

    /// A packet with DATA or a FORWARD TSN is worked off, which came to `to`. `back`: where it came from, if that is an address
    /// of the peer's, and what a packet there may have.
    fn owe_for_packet(
        &mut self,
        now: Instant,
        back: Option<(Ipv6Addr, Option<usize>)>,
        to: Ipv6Addr,
        data: &DataSeen,
    ) {
        if self.streams.awaits_transfer() {
            self.continue_stream_changes(now);
        }
        self.receiver.arrived(back, to);
        self.on_data_after_replacement(now, to);
        let shutting_down = self.state() == State::ShutdownSent;
        let immediate = data.immediate || shutting_down;
        self.receiver
            .owe(now, data.had_gap, immediate, &self.config, &mut self.out);
        if shutting_down {
            // section 9.2: SACK and SHUTDOWN, T2 starts anew
            self.send_shutdown(now);
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
    pub(in crate::sctp) fn reply_limit(&self, from: Ipv6Addr, packet: &SctpPacket) -> Option<usize> {
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
        let chunks = reply.into_chunks(self.sizes.mtu(), auth_len);
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

    fn on_data(&mut self, chunk: &mut DataChunk, seen: &mut DataSeen) -> bool {
        if !self.takes_data() {
            self.out.counters.refused.unexpected += 1;
            return true;
        }
        seen.any = true;
        seen.immediate |= chunk.immediate || self.state() == State::ShutdownSent;
        let form = || sack_form(&self.config, self.sizes.mtu(), &self.auth, &self.peer_extensions);
        let outcome = self
            .receiver
            .on_data(chunk, seen.packet_len, &self.config, form, &mut self.out);
        seen.immediate |= outcome.asks_for_sack();
        match outcome {
            Outcome::Taken | Outcome::Duplicate | Outcome::NoRoom | Outcome::Unexpected => true,
            Outcome::NoSuchStream => {
                self.replies
                    .report(ErrorCause::InvalidStreamIdentifier(chunk.stream_id));
                true
            }
            Outcome::NoUserData => {
                self.abort_with(ErrorCause::NoUserData(chunk.tsn));
                false
            }
            Outcome::OutOfResource => {
                self.abort_with(ErrorCause::OutOfResource);
                false
            }
        }
    }

    fn on_forward_tsn(&mut self, chunk: &ForwardTsn, seen: &mut DataSeen) {
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

    /// Whether both ends offered FORWARD TSN.
    pub(in crate::sctp) fn may_forward_tsn(&self) -> bool {
        self.config.partial_reliability && self.peer_extensions.forward_tsn()
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

/// The SACK that the receiver owes leaves: by itself, or with what goes to the same address (sections 6.1, 6.4 and 6.10).
impl Association {
    /// The SACK owed, as a packet of its own: to where the DATA came from (section 6.4).
    pub(in crate::sctp) fn sack_packet(&mut self, packet: &mut Packet) -> Option<InterfaceId> {
        let to = self.receiver.reply_to()?;
        let sack = SmallVec::from_buf([self.take_sack()?]);
        Some(self.write(packet, self.sack_source(to), to, sack))
    }

    /// A SACK that is due goes with control chunks on their way to the same address (section 6.10). Not to one that is not
    /// confirmed, where what may be sent is counted chunk by chunk.
    pub(super) fn bundle_sack(&mut self, mut control: ControlPacket) -> ControlPacket {
        let goes_alone = |chunk: &Chunk| {
            matches!(
                chunk,
                Chunk::Init(_)
                    | Chunk::InitAck(_)
                    | Chunk::CookieEcho(_)
                    | Chunk::Abort { .. }
                    | Chunk::Sack(_)
                    | Chunk::NrSack(_)
                    // its length is what it is about
                    | Chunk::Pad(_)
                    | Chunk::Shutdown { .. }
                    | Chunk::ShutdownAck
                    | Chunk::ShutdownComplete { .. }
                    // its source is what it is about
                    | Chunk::Asconf(_)
            )
        };
        let fits = self.receiver.sack_is_due()
            && !matches!(
                self.state(),
                State::CookieWait | State::CookieEchoed | State::Closed
            )
            && self.receiver.reply_to() == Some(control.destination)
            && control.tag.is_none()
            && control
                .source
                .is_none_or(|source| source == self.sack_source(control.destination))
            && self.has_confirmed_address(control.destination)
            && !control.chunks.iter().any(goes_alone);
        if !fits {
            return control;
        }
        let types: SmallVec<[u8; 4]> = control
            .chunks
            .iter()
            .map(Chunk::chunk_type)
            .chain([SACK, NR_SACK])
            .collect();
        let used: usize = control.chunks.iter().map(Chunk::buffer_len).sum();
        let sack = self.receiver.sack_len(self.sack_form());
        if PACKET_HEADERS + self.auth.overhead(&types) + used as u32 + sack <= self.sizes.mtu() {
            control.chunks.extend(self.take_sack());
        }
        control
    }

    /// Whether data on a path takes a SACK along: it goes where that would go.
    pub(in crate::sctp) fn sack_goes_with(&self, path: &Path) -> bool {
        let to = self.destinations[path.destination].address;
        self.receiver.reply_to() == Some(to) && self.sack_source(to) == path.source
    }

    /// The source of a SACK to `to`.
    fn sack_source(&self, to: Ipv6Addr) -> LocalAddress {
        if self.config.sack_route == SackRoute::Arrival
            && let Some(at) = self.receiver.arrived_at()
            && let Some(source) = self.local.source_at(at)
        {
            return source;
        }
        self.source_towards(to)
    }

    /// The acknowledgement owed; with it nothing is owed any more.
    pub(in crate::sctp) fn take_sack(&mut self) -> Option<Chunk> {
        let form = self.sack_form();
        self.receiver.take_sack(form, &self.config, &mut self.out)
    }

    /// What acknowledgements are made like.
    pub(in crate::sctp) fn sack_form(&self) -> SackForm {
        sack_form(&self.config, self.sizes.mtu(), &self.auth, &self.peer_extensions)
    }
}

/// What acknowledgements of an association are made like.
fn sack_form(config: &Config, mtu: u32, auth: &Authentication, peer: &PeerExtensions) -> SackForm {
    SackForm {
        non_renegable: uses_nr_sack(config, peer),
        mtu,
        auth_len: auth.overhead(&[SACK, NR_SACK, SHUTDOWN]),
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
