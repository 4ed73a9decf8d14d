//! A packet leaves: control chunks, a SACK, data; bundled (RFC 9260 sections 6.1, 6.2, 6.4, 6.10).

use super::Association;
use crate::contract::{InterfaceId, LocalAddress};
use crate::sctp::auth::Authentication;
use crate::sctp::handshake::{PeerExtensions, State};
use crate::sctp::ids::PathId;
use crate::sctp::lengths::PACKET_HEADERS;
use crate::sctp::outbox::ControlPacket;
use crate::sctp::packets;
use crate::sctp::receiver::SackForm;
use crate::sctp::sender::plan::Plan;
use crate::sctp::sender::transmit::Packing;
use crate::sctp::{Config, PmtuDiscovery, SackRoute};
use crate::time::Instant;
use core::hint::cold_path;
use core::net::Ipv6Addr;
use segue_wire::Packet;
use segue_wire::sctp::chunk_type::{HEARTBEAT, NR_SACK, PAD, SACK, SHUTDOWN};
use segue_wire::sctp::{Chunk, SctpPacket};
use smallvec::SmallVec;

/// Room in a packet below which a FORWARD TSN travels alone, bytes.
const FORWARD_TSN_ROOM: u32 = 64;

impl Association {
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

    fn write_control(&self, control: ControlPacket, packet: &mut Packet) -> InterfaceId {
        let source = control
            .source
            .unwrap_or_else(|| self.local.source_towards(control.destination));
        let tag = control.tag.unwrap_or_else(|| self.identity.verification_tag());
        self.write_with_tag(packet, source, control.destination, tag, control.chunks)
    }

    /// A SACK that is due, or a packet of data with what accompanies it.
    #[inline]
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
        let mut chunks = SmallVec::new();
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
        if self.receiver.owes_sack() {
            let sack_size = self.receiver.sack_len(self.sack_form());
            if sack_size + first_size <= room && self.sack_goes_with(path) {
                chunks.extend(self.take_sack());
                room -= sack_size;
            } else if self.receiver.sack_is_due() {
                return self.sack_packet(packet);
            }
        }
        let closing = self.state() == State::ShutdownPending;
        let peer_tag = self.identity.verification_tag();
        let (sender, mut cx) = self.sending(now);
        if owes_forward_tsn && let Some(chunk) = sender.take_forward_tsn(&mut cx, room - first_size) {
            room -= chunk.buffer_len() as u32;
            chunks.push(chunk);
        }
        let packing = Packing {
            room,
            closing,
            peer_tag,
        };
        sender.bundle(&mut cx, plan, packing, &mut chunks);
        if chunks.is_empty() {
            // whoever asks for packets until there is none would never end
            debug_assert!(false, "a plan is made of what may be sent");
            return None;
        }
        let path = &self.peer[path];
        let destination = self.peer[path.destination()].address();
        Some(self.write(packet, path.source(), destination, chunks))
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
        Some(self.write(packet, source, destination, SmallVec::from_buf([chunk])))
    }

    #[inline(never)]
    fn send_pmtu_probes(&mut self, now: Instant) {
        if self.may_heartbeat() && !self.is_stranded() {
            let auth_len = self.auth.overhead(&[HEARTBEAT, PAD]);
            self.peer
                .send_pmtu_probes(now, auth_len, &mut self.rng, &mut self.out);
        }
    }

    /// Writes a packet of these chunks for the peer to `packet`; gives the interface to send it on.
    #[inline(always)]
    fn write(
        &self,
        packet: &mut Packet,
        source: LocalAddress,
        destination: Ipv6Addr,
        chunks: SmallVec<[Chunk; 1]>,
    ) -> InterfaceId {
        let tag = self.identity.verification_tag();
        self.write_with_tag(packet, source, destination, tag, chunks)
    }

    /// The same with a verification tag that need not be the peer's.
    #[inline(always)]
    fn write_with_tag(
        &self,
        packet: &mut Packet,
        source: LocalAddress,
        destination: Ipv6Addr,
        verification_tag: u32,
        mut chunks: SmallVec<[Chunk; 1]>,
    ) -> InterfaceId {
        self.auth.protect(&mut chunks);
        let sctp = SctpPacket {
            source_port: self.identity.local_port(),
            destination_port: self.identity.peer_port(),
            verification_tag,
            chunks,
        };
        let udp_ports = self.peer.udp_ports(&self.config, destination);
        packets::write(packet, source.address, destination, udp_ports, sctp);
        source.interface
    }

    /// The SACK owed, as a packet of its own: to where the DATA came from (section 6.4).
    fn sack_packet(&mut self, packet: &mut Packet) -> Option<InterfaceId> {
        let to = self.receiver.reply_to()?;
        let sack = SmallVec::from_buf([self.take_sack()?]);
        Some(self.write(packet, self.sack_source(to), to, sack))
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
