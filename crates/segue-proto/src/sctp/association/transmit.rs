//! A packet leaves: control chunks, a SACK, data; bundled (RFC 9260 sections 6.1, 6.2, 6.4, 6.10).

use super::Association;
use crate::contract::{InterfaceId, LocalAddress};
use crate::sctp::auth::Authentication;
use crate::sctp::handshake::{PeerExtensions, State};
use crate::sctp::ids::PathId;
use crate::sctp::lengths::PACKET_HEADERS;
use crate::sctp::outbox::ControlPacket;
use crate::sctp::packets::{self, Headers};
use crate::sctp::receiver::SackForm;
use crate::sctp::sender::plan::Plan;
use crate::sctp::sender::transmit::Packing;
use crate::sctp::{Config, PmtuDiscovery, SackRoute};
use crate::time::Instant;
use core::hint::cold_path;
use core::net::Ipv6Addr;
use segue_wire::Packet;
use segue_wire::sctp::Chunk;
use segue_wire::sctp::chunk_type::{HEARTBEAT, NR_SACK, PAD, SACK, SHUTDOWN};
use smallvec::SmallVec;

/// Room in a packet below which a FORWARD TSN travels alone, bytes.
const FORWARD_TSN_ROOM: u32 = 64;

impl Association {
    /// Since when there has always been something given to `send` that was neither acknowledged nor abandoned; messages that
    /// were abandoned count until another arrives.
    #[must_use]
    #[inline]
    pub fn busy_since(&self) -> Option<Instant> {
        self.sender.busy_since()
    }

    /// What is given to `send` next has been in the making since then: if it is all there is, the association has been
    /// [busy](Self::busy_since) since.
    pub fn busy_from(&mut self, since: Instant) {
        self.sender.busy_from(since);
    }

    /// Whether there may be something to send. `false` is certain, and then looking for it would change nothing: an
    /// association that is up sends nothing itself, and owes no answer. Asked after every packet.
    #[inline]
    pub(in crate::sctp) fn may_transmit(&self) -> bool {
        !self.sender.is_dry()
            || self.receiver.sack_is_due()
            || self.out.waiting() > 0
            || self.state() != State::Established
            || self.is_stranded()
            || self.sender.gives_up()
            || self.sender.owes_forward_tsn()
            || self.config.pmtu_discovery == PmtuDiscovery::Probing
            || self.config.multipath.is_some()
    }

    /// Writes the next packet to send to `packet`; gives the interface to send it on.
    pub(in crate::sctp) fn poll_transmit_into(
        &mut self,
        now: Instant,
        packet: &mut Packet,
    ) -> Option<InterfaceId> {
        if self.config.pmtu_discovery == PmtuDiscovery::Probing {
            self.send_pmtu_probes(now);
        }
        if self.is_stranded() {
            return self.poll_stranded(packet);
        }
        if let Some(control) = self.out.next_packet() {
            let control = self.bundle_sack(control);
            return Some(self.write_control(control, packet));
        }
        if self.is_closed() {
            return None;
        }
        let interface = self.poll_sack_or_data(now, packet);
        if interface.is_some() {
            return interface;
        }
        // looking for data may have brought a request of its own about: that streams are to be reset, for one
        self.out.next_packet().map(|c| self.write_control(c, packet))
    }

    /// The next packet of a host without an address that the peer knows.
    #[inline(never)]
    fn poll_stranded(&mut self, packet: &mut Packet) -> Option<InterfaceId> {
        // ASCONF names its source: the only thing that may leave from an address that the peer does not know. The
        // rest is not kept: a peer that goes on talking could fill the memory with answers. But for the last HEARTBEAT
        // ACK: it verifies the address that is being added, and can leave with the answer to the ASCONF
        let answers = |c: &ControlPacket| matches!(c.chunks.first(), Some(Chunk::HeartbeatAck(_)));
        let last = self.out.packets().rposition(answers);
        self.out
            .retain_packets(|place, c| Some(place) == last || (c.source.is_some() && !answers(c)));
        let control = self.out.take_packet(|c| c.source.is_some() && !answers(c))?;
        Some(self.write_control(control, packet))
    }

    #[inline(never)]
    fn write_control(&self, control: ControlPacket, packet: &mut Packet) -> InterfaceId {
        let source = control
            .source
            .unwrap_or_else(|| self.local.source_towards(control.destination));
        let mut headers = self.headers(source, control.destination);
        if let Some(tag) = control.tag {
            headers.verification_tag = tag;
        }
        packets::write(packet, &headers, |chunks| {
            *chunks = control.chunks;
            self.auth.protect(chunks);
        });
        source.interface
    }

    /// A SACK that is due, or a packet of data with what accompanies it.
    #[inline(always)]
    fn poll_sack_or_data(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        let Some(plan) = self.plan(now) else {
            if self.receiver.sack_is_due() {
                return self.sack_packet(packet);
            }
            return if self.sender.owes_forward_tsn() {
                self.forward_tsn_packet(now, packet)
            } else {
                None
            };
        };
        let path = plan.path();
        let first_size = self.sender.first_size(&plan)?;
        // a chunk may have been cut before the peer, against RFC 4895 section 6.1, listed DATA
        let mut room = self.peer.sizes().room().max(first_size);
        // RFC 3758 section 3.5 rule F2: a FORWARD TSN goes with the data if that leaves room for some streams
        let owes_forward_tsn = self.sender.owes_forward_tsn();
        if owes_forward_tsn {
            cold_path();
            let with_sack = first_size + self.receiver.sack_len(SackForm::default());
            if with_sack + FORWARD_TSN_ROOM > room {
                return self.forward_tsn_packet(now, packet);
            }
        }
        // section 6.1: a SACK that is owed goes with the data if it fits
        let mut takes_sack = false;
        if self.receiver.owes_sack() {
            cold_path();
            let sack_size = self.receiver.sack_len(self.sack_form());
            if sack_size + first_size <= room && self.sack_goes_with(path) {
                takes_sack = true;
                room -= sack_size;
            } else if self.receiver.sack_is_due() {
                return self.sack_packet(packet);
            }
        }
        let path = &self.peer[path];
        let source = path.source();
        let headers = self.headers(source, self.peer[path.destination()].address());
        let closing = self.state() == State::ShutdownPending;
        let any = packets::write(packet, &headers, |chunks| {
            if takes_sack {
                cold_path();
                chunks.extend(self.take_sack());
            }
            let (sender, mut cx) = self.sending(now);
            if owes_forward_tsn && let Some(chunk) = sender.take_forward_tsn(&mut cx, room - first_size) {
                room -= chunk.buffer_len() as u32;
                chunks.push(chunk);
            }
            let packing = Packing {
                room,
                closing,
                peer_tag: headers.verification_tag,
            };
            sender.bundle(&mut cx, plan, packing, chunks);
            self.auth.protect(chunks);
            !chunks.is_empty()
        });
        // whoever asks for packets until there is none would never end
        debug_assert!(any, "a plan is made of what may be sent");
        any.then_some(source.interface)
    }

    /// What the next packet of data is to begin with.
    #[inline]
    fn plan(&mut self, now: Instant) -> Option<Plan> {
        let may_send = matches!(
            self.state(),
            State::Established | State::ShutdownPending | State::ShutdownReceived
        );
        if may_send && self.sender.gives_up() {
            cold_path();
            self.abandon_overdue(now);
        }
        let sack_is_due = self.receiver.sack_is_due();
        let (sender, mut cx) = self.sending(now);
        sender.plan(&mut cx, may_send, sack_is_due)
    }

    /// What is too late is not sent any more; it may have been the last.
    #[inline(never)]
    fn abandon_overdue(&mut self, now: Instant) {
        let (sender, mut cx) = self.sending(now);
        if sender.abandon_overdue(&mut cx) {
            self.continue_shutdown(now);
        }
    }

    /// The FORWARD TSN that is due as a packet of its own.
    #[inline(never)]
    fn forward_tsn_packet(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        let source = self.peer[self.peer.current_path()?].source();
        let destination = self.peer[self.peer.current()].address();
        let room = self.peer.sizes().room();
        let (sender, mut cx) = self.sending(now);
        let chunk = sender.take_forward_tsn(&mut cx, room)?;
        packets::write(packet, &self.headers(source, destination), |chunks| {
            chunks.push(chunk);
            self.auth.protect(chunks);
        });
        Some(source.interface)
    }

    #[inline(never)]
    fn send_pmtu_probes(&mut self, now: Instant) {
        if self.may_heartbeat() && !self.is_stranded() {
            let auth_len = self.auth.overhead(&[HEARTBEAT, PAD]);
            self.peer
                .send_pmtu_probes(now, auth_len, &mut self.rng, &mut self.out);
        }
    }

    /// The headers of a packet to the peer.
    #[inline(always)]
    fn headers(&self, source: LocalAddress, destination: Ipv6Addr) -> Headers {
        Headers {
            source: source.address,
            destination,
            ports: (self.identity.local_port(), self.identity.peer_port()),
            verification_tag: self.identity.verification_tag(),
            udp_ports: self.peer.udp_ports(&self.config, destination),
        }
    }

    /// The SACK owed, as a packet of its own: to where the DATA came from (section 6.4).
    fn sack_packet(&mut self, packet: &mut Packet) -> Option<InterfaceId> {
        let to = self.receiver.reply_to()?;
        let source = self.sack_source(to);
        let any = packets::write(packet, &self.headers(source, to), |chunks| {
            if let Some(sack) = self.take_sack() {
                chunks.push(sack);
            }
            self.auth.protect(chunks);
            !chunks.is_empty()
        });
        any.then_some(source.interface)
    }

    /// A SACK that is due goes with control chunks on their way to the same address (section 6.10). Not to one that is not
    /// confirmed, where what may be sent is counted chunk by chunk.
    fn bundle_sack(&mut self, mut control: ControlPacket) -> ControlPacket {
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
            && self.peer.has_confirmed_address(control.destination)
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
        if PACKET_HEADERS + self.auth.overhead(&types) + used as u32 + sack <= self.peer.sizes().mtu() {
            control.chunks.extend(self.take_sack());
        }
        control
    }

    /// Whether data on a path takes a SACK along: it goes where that would go.
    fn sack_goes_with(&self, path: PathId) -> bool {
        let path = &self.peer[path];
        let to = self.peer[path.destination()].address();
        self.receiver.reply_to() == Some(to) && self.sack_source(to) == path.source()
    }

    /// The source of a SACK to `to`.
    fn sack_source(&self, to: Ipv6Addr) -> LocalAddress {
        if self.config.sack_route == SackRoute::Arrival
            && let Some(at) = self.receiver.arrived_at()
            && let Some(source) = self.local.source_at(at)
        {
            return source;
        }
        self.local.source_towards(to)
    }

    /// The acknowledgement owed; with it nothing is owed any more.
    fn take_sack(&mut self) -> Option<Chunk> {
        let form = self.sack_form();
        self.receiver.take_sack(form, &self.config, &mut self.out)
    }

    /// What acknowledgements are made like.
    pub(super) fn sack_form(&self) -> SackForm {
        sack_form(
            &self.config,
            self.peer.sizes().mtu(),
            &self.auth,
            &self.extensions,
        )
    }
}

/// What acknowledgements of an association are made like.
pub(super) fn sack_form(config: &Config, mtu: u32, auth: &Authentication, peer: &PeerExtensions) -> SackForm {
    SackForm {
        non_renegable: uses_nr_sack(config, peer),
        mtu,
        auth_len: auth.overhead(&[SACK, NR_SACK, SHUTDOWN]),
    }
}

/// Whether acknowledgements are NR-SACKs.
pub(super) fn uses_nr_sack(config: &Config, peer: &PeerExtensions) -> bool {
    peer.nr_sack() && config.multipath.is_some_and(|m| m.nr_sack)
}
