//! What to send next: SACK, retransmissions, new data, bundled into packets (RFC 9260 sections 6.1, 6.10).

use super::association::Association;
use super::handshake::State;
use super::path::PathId;
use super::receiver::SackForm;
use super::sender::{Sent, chunk_size};
use super::{Event, PathState, Profile, RetransmitTo, SackImmediately};
use crate::congestion::CongestionControl;
use crate::contract::{InterfaceId, LocalAddress, Transmit};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::sctp::{Chunk, SctpPacket};
use segue_wire::{Ipv6Header, Packet, Payload, Tsn};
use smallvec::SmallVec;

/// Hop limit of everything sent.
const HOP_LIMIT: u8 = 64;

/// Room in a packet below which a FORWARD TSN travels alone, bytes.
const FORWARD_TSN_ROOM: u32 = 64;

/// What a packet of data is to begin with.
pub(super) enum Plan {
    Retransmit { tsn: Tsn, path: PathId, forced: bool },
    New { path: PathId, len: u32 },
}

impl Association {
    #[inline]
    pub(super) fn poll_sack_or_data(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        let blocked_since = self.credit.look_again();
        let plan = self.plan(now);
        if let Some(since) = blocked_since {
            let ended = self.credit.go_on_from_blocking(now, since);
            self.out.counters.rwnd_blocked_ns += ended.map_or(0, Duration::as_nanos);
        }
        let Some(plan) = plan else {
            if self.receiver.sack_is_due() {
                return self.sack_packet(packet);
            }
            return if self.partial.due {
                self.forward_tsn_packet(now, packet)
            } else {
                None
            };
        };
        let (path, first_size) = match plan {
            Plan::Retransmit { tsn, path, .. } => (path, self.flight.get(tsn)?.size()),
            Plan::New { path, len } => (path, chunk_size(len)),
        };
        let mut chunks = SmallVec::new();
        let mut room = self
            .sizes
            .room()
            // a chunk that was cut before the peer, against RFC 4895 section 6.1, listed DATA
            .max(first_size);
        // RFC 3758 section 3.5 rule F2: a FORWARD TSN goes with the data if that leaves room for some streams
        if self.partial.due
            && first_size + self.receiver.sack_len(SackForm::default()) + FORWARD_TSN_ROOM > room
        {
            return self.forward_tsn_packet(now, packet);
        }
        // section 6.1: a SACK that is owed goes with the data if it fits
        if self.receiver.owes_sack() {
            let sack_size = self.receiver.sack_len(self.sack_form());
            if sack_size + first_size <= room && self.sack_goes_with(&self.paths[path]) {
                chunks.extend(self.take_sack());
                room -= sack_size;
            } else if self.receiver.sack_is_due() {
                return self.sack_packet(packet);
            }
        }
        if self.partial.due
            && let Some(chunk) = self.take_forward_tsn(now, room - first_size)
        {
            room -= chunk.buffer_len() as u32;
            chunks.push(chunk);
        }
        match plan {
            Plan::Retransmit { tsn, path, forced } => {
                self.bundle_retransmissions(now, tsn, path, forced, room, &mut chunks);
            }
            Plan::New { path, .. } => self.bundle_new(now, path, room, &mut chunks),
        }
        let path = &self.paths[path];
        let destination = self.destinations[path.destination].address;
        Some(self.write(packet, path.source, destination, chunks))
    }

    fn plan(&mut self, now: Instant) -> Option<Plan> {
        match self.state() {
            State::Established | State::ShutdownPending | State::ShutdownReceived => {}
            _ => return None,
        }
        if self.partial.in_use {
            self.abandon_overdue(now);
        }
        if self.multipath.is_some() {
            return self.plan_multipath(now);
        }
        if self.flight.marked() > 0 {
            // section 6.1 rule C: chunks marked for retransmission go before new ones, within cwnd
            let tsn = self.flight.next_marked(None)?;
            let path = self.retransmission_path(tsn)?;
            let forced = self.recovery.forces();
            // one packet at a time into a closed window
            if !forced && self.credit.is_closed() && self.flight.has_outstanding() {
                return None;
            }
            if forced || (self.burst > 0 && self.has_window(path)) {
                return Some(Plan::Retransmit { tsn, path, forced });
            }
            return None;
        }
        self.recovery.nothing_is_marked();
        let len = self.queue.next_len()?;
        if self.burst == 0 {
            return None;
        }
        let path = self.current_path()?;
        self.decay_idle(now, path);
        if !self.has_window(path) {
            return None;
        }
        self.plan_new(now, path, len)
    }

    /// New data of `len` bytes on a path whose window has room, if the peer's has (section 6.1 rule A).
    #[inline]
    pub(super) fn plan_new(&mut self, now: Instant, path: PathId, len: u32) -> Option<Plan> {
        let is_under_way = self.flight.has_outstanding();
        let rto = self.paths[path].rto();
        if !self.credit.admits(now, len, is_under_way, rto) {
            return None;
        }
        Some(Plan::New { path, len })
    }

    /// Section 6.1 rule B: whether cwnd of a path lets another packet go.
    #[inline]
    pub(super) fn has_window(&self, path: PathId) -> bool {
        self.flight.size_on(path) < self.paths[path].window.cwnd()
    }

    /// What idle RTOs have done to cwnd of a path.
    #[inline]
    pub(super) fn decay_idle(&mut self, now: Instant, path: PathId) {
        if self.flight.size_on(path) == 0 {
            self.paths[path].decay_idle(now);
        }
    }

    /// A packet of this opportunity goes out: of the association's, or of its path's where several are in use at once.
    #[inline]
    fn use_burst(&mut self, path: PathId) {
        self.burst = self.burst.saturating_sub(1);
        let share = &mut self.paths[path].share;
        share.burst = share.burst.saturating_sub(1);
    }

    #[inline(never)]
    fn bundle_retransmissions(
        &mut self,
        now: Instant,
        first: Tsn,
        path: PathId,
        forced: bool,
        mut room: u32,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) {
        // what may go on any path is spent first: if it were left, the next chunk would go beyond cwnd on a path that lost
        // nothing
        let due = &mut self.paths[path].share.fast_retransmission_due;
        if forced && self.recovery.use_forced() {
            // it is spent
        } else if !core::mem::take(due) {
            self.use_burst(path);
        }
        if self.credit.is_closed() {
            self.credit.on_probe_sent(first);
        }
        let mut next = Some(first);
        while let Some(tsn) = next {
            // the plan has decided on the first
            if (tsn != first && self.retransmission_path(tsn) != Some(path))
                || (self.partial.in_use && self.is_given_up(now, tsn))
            {
                break;
            }
            let Some(size) = self.flight.get(tsn).map(Sent::size) else {
                break;
            };
            // what was cut for a larger PMTU goes alone: IPv6 fragments it (section 6.9)
            if (size > room && tsn != first) || !(forced || self.has_window(path)) {
                break;
            }
            let fast = self.flight.get(tsn).is_some_and(Sent::is_fast_marked);
            let rto = self.paths[path].rto();
            let loss = &mut self.loss;
            let numbered = |former, moves| loss.on_sent_again(now, former, moves);
            let Some(sent) = self.flight.resend(now, tsn, path, rto, numbered) else {
                break;
            };
            let mut chunk = sent.chunk(tsn);
            chunk.immediate |= self.credit.probe() == Some(tsn)
                && self.config.sack_immediately == SackImmediately::WhenBlocked;
            self.credit.take(sent.len());
            room = room.saturating_sub(size);
            chunks.push(Chunk::Data(chunk));
            self.paths[path].note_sent(now);
            if fast {
                self.out.counters.fast_retransmits += 1;
                if self.config.tell_fast_retransmissions {
                    let peer_tag = self.identity.verification_tag();
                    self.out.tell(Event::FastRetransmitted { tsn, peer_tag });
                }
            }
            self.out.counters.data_chunks_sent += 1;
            self.out.counters.data_chunks_retransmitted += 1;
            next = self.flight.next_marked(Some(tsn.next()));
        }
    }

    fn bundle_new(&mut self, now: Instant, path: PathId, mut room: u32, chunks: &mut SmallVec<[Chunk; 1]>) {
        self.use_burst(path);
        if let Some(multipath) = &mut self.multipath {
            multipath.scheduler.on_sent(now, path.place());
        }
        let closing = self.state() == State::ShutdownPending;
        let mut first = true;
        while let Some(len) = self.queue.next_len() {
            if !first && self.partial.in_use && self.queue.next_unsent().is_some_and(|p| p.is_expired(now)) {
                break;
            }
            let size = chunk_size(len);
            if size > room || (!first && (len > self.credit.peer_rwnd() || !self.has_window(path))) {
                break;
            }
            if len > self.credit.peer_rwnd() {
                self.credit.on_probe_sent(self.flight.next_tsn());
            }
            first = false;
            let immediate = self.asks_for_sack(path, len, closing);
            let Some(content) = self.queue.cut(immediate) else {
                break;
            };
            let transmission = self.loss.on_sent(now);
            let rto = self.paths[path].rto();
            let (tsn, sent) = self.flight.send(now, content, path, rto, transmission);
            chunks.push(Chunk::Data(sent.chunk(tsn)));
            self.paths[path].note_sent(now);
            self.credit.take(len);
            self.out.counters.data_chunks_sent += 1;
            room -= size;
        }
    }

    /// RFC 7053 section 4: whether a new chunk of `len` user bytes asks for its SACK at once.
    fn asks_for_sack(&self, path: PathId, len: u32, closing: bool) -> bool {
        match self.config.sack_immediately {
            SackImmediately::Never => false,
            SackImmediately::OnRequest => closing && self.queue.is_last(len),
            SackImmediately::WhenBlocked => {
                let probes = len > self.credit.peer_rwnd();
                let fills = self.flight.size_on(path) + chunk_size(len) >= self.paths[path].window.cwnd();
                let blocks = len >= self.credit.peer_rwnd() || fills;
                let last = self.queue.is_last(len);
                probes || (blocks && !last) || (closing && last)
            }
        }
    }

    /// Where a marked chunk goes. After a timeout: to an active alternate (section 6.4.1), if so configured. After
    /// missing reports: to where it was (RFC 4960 and 9260 section 6.4), but in RFC 2960 section 6.4 to an alternate.
    pub(super) fn retransmission_path(&self, tsn: Tsn) -> Option<PathId> {
        if let Some(multipath) = &self.multipath {
            return self.policy_path(multipath.config.rtx_policy, tsn);
        }
        let sent = self.flight.get(tsn)?;
        let Some(path) = sent.path().and_then(|id| self.paths.get(id)) else {
            return self.current_path();
        };
        let last = path.destination;
        if self.destinations[last].deactivated {
            return self.current_path();
        }
        let stay = self.config.retransmit_to == RetransmitTo::SamePath
            || (sent.is_fast_marked() && self.config.profile != Profile::Rfc2960);
        let active = self.destinations[last].state == PathState::Active;
        let target = if stay && active {
            last
        } else {
            let alternate = self.usable_destination(Some(last));
            let least_failed = || if active { None } else { self.least_failed() };
            alternate.or_else(least_failed).unwrap_or(last)
        };
        Some(self.destinations[target].path)
    }

    /// Writes a packet of these chunks for the peer to `packet`; gives the interface to send it on.
    #[inline(always)]
    pub(super) fn write(
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
    pub(super) fn write_with_tag(
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
        write(
            packet,
            source.address,
            destination,
            self.udp_ports(destination),
            sctp,
        );
        source.interface
    }
}

/// A packet from `ports.0` to `ports.1`, in UDP between `udp_ports` if there are any.
pub(super) fn transmit(
    source: LocalAddress,
    destination: Ipv6Addr,
    ports: (u16, u16),
    udp_ports: Option<(u16, u16)>,
    verification_tag: u32,
    chunks: SmallVec<[Chunk; 1]>,
) -> Transmit {
    let mut packet = Packet::EMPTY;
    let sctp = SctpPacket {
        source_port: ports.0,
        destination_port: ports.1,
        verification_tag,
        chunks,
    };
    write(&mut packet, source.address, destination, udp_ports, sctp);
    Transmit {
        interface: source.interface,
        packet,
    }
}

#[inline(always)]
fn write(
    packet: &mut Packet,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    udp_ports: Option<(u16, u16)>,
    sctp: SctpPacket,
) {
    packet.ip = Ipv6Header {
        source,
        destination,
        traffic_class: 0,
        hop_limit: HOP_LIMIT,
        flow_label: 0,
    };
    packet.extensions.clear();
    packet.payload = match udp_ports {
        None => Payload::Sctp(sctp),
        Some((source_port, destination_port)) => Payload::SctpOverUdp {
            source_port,
            destination_port,
            packet: sctp,
        },
    };
}
