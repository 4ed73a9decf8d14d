//! One association: its state and its user's interface.
//!
//! The rules are spread by topic over the files beside this one and the neighbouring ones, each an `impl Association`:
//! `addresses`, `asconf`, `replacement` and `streams` here; `handshake`, `receive`, `transmit`, `ack`, `retransmission`,
//! `heartbeat`, `destinations`, `shutdown`, `timers` there.

mod addresses;
mod asconf;
mod auth;
mod handshake;
pub(super) mod outbox;
mod receive;
mod replacement;
mod shutdown;
mod sizes;
mod streams;
mod timers;

use sizes::PacketSizes;

pub(super) use outbox::{ControlPacket, Outbox};

use super::asconf::Asconf;
use super::auth::{Authentication, Random};
use super::former_addresses::FormerAddresses;
use super::handshake::{Identity, PeerExtensions, Phase, State};
use super::heartbeat_limit::HeartbeatLimit;
use super::local::LocalAddresses;
use super::multipath::{Cuc, Multipath, pf_max_retrans};
use super::partial_reliability::PartialReliability;
use super::path::{Destination, DestinationId, Path};
use super::receiver::Receiver;
use super::replies::Replies;
use super::sender::loss::LossDetector;
use super::sender::{Credit, Flight, Recovery, SendQueue};
use super::slots::Slots;
use super::streams::StreamChanges;
use super::{
    AddressError, Config, Counters, Event, Message, PathSnapshot, PathState, Reliability, SackImmediately,
    SendError, SendOptions,
};
use crate::congestion::CongestionControl;
use crate::contract::{InterfaceId, LocalAddress};
use crate::random::SecretRng;
use crate::time::Instant;
use core::net::Ipv6Addr;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use segue_wire::sctp::chunk_type::{DATA, FORWARD_TSN, SACK};
use segue_wire::sctp::{Chunk, Parameter};
use segue_wire::{Data, Packet, Tsn};
use smallvec::SmallVec;

/// IPv6 header and SCTP common header, bytes.
pub(super) const PACKET_HEADERS: u32 = 40 + 12;

/// An association with a peer.
pub struct Association {
    pub(super) config: Config,
    pub(super) sizes: PacketSizes,
    /// Where it stands between its beginning and its end.
    pub(super) phase: Phase,
    pub(super) identity: Identity,
    pub(super) rng: ChaCha8Rng,
    /// Control packets and events that wait, and what was counted.
    pub(super) out: Outbox,

    // addresses
    pub(super) local: LocalAddresses,
    /// UDP port that the peer's last packet came from: new destinations start with it.
    pub(super) peer_encapsulation: Option<u16>,
    pub(super) destinations: Slots<Destination>,
    pub(super) former_addresses: FormerAddresses,
    /// HEARTBEATs that may still go to addresses that nobody has answered from.
    pub(super) heartbeat_limit: HeartbeatLimit,
    pub(super) primary: DestinationId,
    /// Destination that new data goes to: the primary while it is usable.
    pub(super) current: DestinationId,
    pub(super) paths: Slots<Path>,
    pub(super) association_error_count: u32,
    /// ssthresh of a path that begins: the peer's window as its INIT or INIT ACK advertised it.
    pub(super) initial_ssthresh: u32,

    // sending
    pub(super) queue: SendQueue,
    pub(super) flight: Flight,
    pub(super) loss: LossDetector,
    pub(super) outbound_streams: u16,
    pub(super) credit: Credit,
    /// Packets that may still be sent at this opportunity (Max.Burst).
    pub(super) burst: u32,
    pub(super) recovery: Recovery,
    /// Concurrent multipath transfer, where it is on.
    pub(super) multipath: Option<Box<Multipath>>,
    pub(super) partial: PartialReliability,
    /// Bytes that a refused `send` waits for.
    pub(super) wanted_space: Option<usize>,

    // receiving
    pub(super) receiver: Receiver,
    /// Answers to the packet at hand.
    pub(super) replies: Replies,

    pub(super) peer_extensions: PeerExtensions,
    pub(super) auth: Authentication,

    // streams
    pub(super) streams: StreamChanges,

    // dynamic addresses
    pub(super) asconf: Asconf,
    // timers; T3-rtx and heartbeats are kept by path and destination
}

impl Association {
    /// Whether data can be exchanged.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.state() == State::Established
    }

    /// Whether the association has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.phase.is_closed()
    }

    /// Whether the peer sends nothing new: it has asked for the end (SHUTDOWN), or the association has ended.
    #[must_use]
    pub fn is_peer_shutting_down(&self) -> bool {
        matches!(
            self.state(),
            State::ShutdownReceived | State::ShutdownAckSent | State::Closed
        )
    }

    /// Sends a user message; before the association is up it is kept.
    ///
    /// # Errors
    /// [`SendError`]: nothing was taken.
    pub fn send(
        &mut self,
        now: Instant,
        stream_id: u16,
        data: Data,
        mut options: SendOptions,
    ) -> Result<(), SendError> {
        match self.state() {
            State::CookieWait | State::CookieEchoed | State::Established => {}
            _ => return Err(SendError::Closing),
        }
        if data.is_empty() {
            return Err(SendError::Empty);
        }
        if stream_id >= self.outbound_streams {
            return Err(SendError::NoSuchStream);
        }
        if data.len() > self.config.send_buffer as usize {
            return Err(SendError::TooLong);
        }
        if data.len() > self.send_space() {
            self.make_room(now, data.len(), options.reliability);
        }
        if data.len() > self.send_space() {
            self.wanted_space = Some(data.len());
            return Err(SendError::BufferFull);
        }
        if !self.queue.has_unsent() {
            self.open_burst();
        }
        options.sack_immediately &= self.config.sack_immediately != SackImmediately::Never;
        self.partial.in_use |= options.reliability != Reliability::Full;
        self.queue.push(now, stream_id, data, options);
        Ok(())
    }

    /// Room in the send buffer, bytes.
    #[must_use]
    pub fn send_space(&self) -> usize {
        (self.config.send_buffer as usize).saturating_sub(self.queue.buffered() + self.flight.buffered())
    }

    /// User bytes that fit one DATA chunk.
    #[must_use]
    pub fn max_message_in_one_chunk(&self) -> u32 {
        self.sizes.max_data()
    }

    /// The next message received; opens the receive window again.
    pub fn recv(&mut self) -> Option<Message> {
        let message = self.receiver.take_message()?;
        if self.is_up() {
            self.receiver
                .consider_window_update(self.sizes.mtu(), &self.config);
        }
        Some(message)
    }

    /// Makes `destination` the primary path.
    ///
    /// # Errors
    /// [`AddressError::BadAddress`] if the peer has no such address, or has deactivated it.
    pub fn set_primary_path(&mut self, now: Instant, destination: Ipv6Addr) -> Result<(), AddressError> {
        let _ = now;
        let index = self
            .destination_index(destination)
            .filter(|&index| !self.destinations[index].deactivated)
            .ok_or(AddressError::BadAddress)?;
        self.make_primary(index);
        Ok(())
    }

    /// Verification tag of the packets to the peer (RFC 9260 section 3.1), once it is known.
    #[must_use]
    pub const fn peer_verification_tag(&self) -> Option<u32> {
        self.identity.peer_tag()
    }

    /// Verification tag of the packets from the peer.
    #[must_use]
    pub const fn own_verification_tag(&self) -> u32 {
        self.identity.local_tag()
    }

    /// The primary path's destination.
    #[must_use]
    pub fn primary_path(&self) -> Ipv6Addr {
        self.destinations[self.primary].address
    }

    /// All (source, destination) pairs that have been used, as they are now.
    pub fn paths(&self) -> impl Iterator<Item = PathSnapshot> {
        self.paths.iter().map(|(id, p)| {
            let index = p.destination;
            let d = &self.destinations[index];
            PathSnapshot {
                source: p.source.address,
                destination: d.address,
                primary: index == self.primary && p.source == self.source_towards(d.address),
                state: d.state,
                cwnd: p.window.cwnd(),
                ssthresh: p.window.ssthresh(),
                flightsize: self.flight.size_on(id),
                srtt: p.rtt.srtt(),
                rto: p.rtt.rto(),
                error_count: d.error_count,
            }
        })
    }

    /// Counters since the association began.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.out.counters
    }

    /// The peer's addresses, and whether each is still to be confirmed.
    pub(super) fn peer_addresses(&self) -> impl Iterator<Item = (Ipv6Addr, bool)> + '_ {
        let destinations = self.destinations.values();
        destinations.map(|d| (d.address, d.state == PathState::Unconfirmed))
    }

    /// Addresses that the peer may send from although they are not its.
    pub(super) fn former_addresses(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        self.former_addresses.iter()
    }

    /// Port of the peer.
    #[must_use]
    pub fn peer_port(&self) -> u16 {
        self.identity.peer_port()
    }

    /// Streams that `send` may name: `0..outbound_streams`.
    #[must_use]
    pub fn outbound_streams(&self) -> u16 {
        self.outbound_streams
    }

    /// Streams that the peer may send on: the fewer of those that it asked for and those that this end takes.
    #[must_use]
    pub fn inbound_streams(&self) -> u16 {
        self.receiver.inbound_streams()
    }

    /// Whether everything given to `send` was acknowledged.
    #[must_use]
    pub fn is_sender_dry(&self) -> bool {
        self.queue.is_empty() && self.flight.is_empty()
    }

    /// Receive window offered now, bytes.
    #[must_use]
    pub fn a_rwnd(&self) -> u32 {
        self.receiver.a_rwnd(&self.config)
    }

    /// Room left in the peer's receive window, bytes.
    #[must_use]
    pub fn peer_rwnd(&self) -> u32 {
        self.credit.peer_rwnd()
    }

    /// User bytes that wait or were sent, those included that the receiver keeps.
    pub(super) fn held_to_send(&self) -> usize {
        self.queue.buffered() + self.flight.held()
    }

    /// User bytes sent and not yet acknowledged; those marked for retransmission are not counted.
    #[must_use]
    pub fn outstanding_bytes(&self) -> u32 {
        self.flight.outstanding_bytes()
    }
}

/// What a new association is made of.
pub(super) struct Setup<'a> {
    pub config: &'a Config,
    pub identity: Identity,
    pub local_initial_tsn: Tsn,
    /// RANDOM of our INIT or INIT ACK, if it offers authentication.
    pub local_random: Option<Random>,
    pub local: &'a [LocalAddress],
    pub route: LocalAddress,
    pub peer_addresses: &'a [Ipv6Addr],
    /// How many of `peer_addresses`, from the front, are confirmed.
    pub confirmed: usize,
}

impl Association {
    pub(super) fn new(now: Instant, setup: &Setup<'_>, secrets: &mut dyn SecretRng) -> Self {
        let mut config = setup.config.clone();
        config.pf_max_retrans = pf_max_retrans(&config);
        let mut seed = [0; 32];
        secrets.fill(&mut seed);
        let auth = Authentication::new(&config, setup.local_random);
        let sizes = PacketSizes::new(&config);
        let cuc = config.multipath.map_or(Cuc::Off, |m| m.cuc);
        let destinations = Slots::default();
        // the name that the peer's first address will have
        let first = destinations.next_id().expect("there are none yet");
        let mut association = Self {
            phase: Phase::new(first),
            identity: setup.identity,
            rng: ChaCha8Rng::from_seed(seed),
            out: Outbox::default(),
            local: LocalAddresses::new(setup.local, setup.route),
            peer_encapsulation: config.udp_encapsulation.map(|udp| udp.remote_port),
            destinations,
            former_addresses: FormerAddresses::default(),
            heartbeat_limit: HeartbeatLimit::default(),
            primary: first,
            current: first,
            paths: Slots::default(),
            association_error_count: 0,
            initial_ssthresh: 0,
            queue: SendQueue::new(sizes.max_data()),
            sizes,
            flight: Flight::new(setup.local_initial_tsn, config.multipath.is_some(), cuc),
            loss: LossDetector::new(&config),
            outbound_streams: config.outbound_streams,
            credit: Credit::default(),
            burst: 0,
            recovery: Recovery::default(),
            multipath: config.multipath.map(|c| Box::new(Multipath::new(c))),
            partial: PartialReliability::default(),
            wanted_space: None,
            receiver: Receiver::new(&config),
            replies: Replies::default(),
            peer_extensions: PeerExtensions::default(),
            auth,
            streams: StreamChanges::new(setup.local_initial_tsn),
            asconf: Asconf::new(setup.local_initial_tsn),
            config,
        };
        for (i, &address) in setup.peer_addresses.iter().enumerate() {
            association.add_destination(now, address, i < setup.confirmed);
        }
        association
    }

    /// What the peer's INIT or INIT ACK said of extensions comes into force.
    pub(super) fn negotiate(&mut self, parameters: &[Parameter]) {
        self.peer_extensions = PeerExtensions::read(parameters);
        self.auth.negotiate(parameters);
        self.resize_chunks();
    }

    /// Chunks are cut, and windows counted, by what is now known of the bytes that other chunks take.
    pub(super) fn resize_chunks(&mut self) {
        let overhead = self.data_overhead();
        self.sizes.leave_room_for(&self.config, overhead);
        self.queue.cut_to(self.sizes.max_data());
    }

    /// Bytes that an AUTH chunk takes from a packet with data.
    pub(super) fn data_overhead(&self) -> u32 {
        self.auth.overhead(&[DATA, SACK, FORWARD_TSN])
    }

    /// Whether nothing of a closed association is left to be told or taken.
    pub(super) fn is_done(&self) -> bool {
        self.is_closed() && self.out.is_empty() && !self.receiver.has_message()
    }

    /// Drops events and messages that the user does not want.
    pub(super) fn drop_untold(&mut self) {
        self.out.forget_events();
        self.receiver.drop_messages();
    }

    pub(super) fn has_events(&self) -> bool {
        self.out.has_events()
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.out.next_event()
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        self.phase.state()
    }

    /// Whether both ends have an association.
    #[inline]
    pub(super) fn is_up(&self) -> bool {
        self.phase.is_up()
    }

    pub(super) fn is_in_handshake(&self) -> bool {
        self.phase.is_opening()
    }

    /// Writes the next packet to send to `packet`; gives the interface to send it on.
    pub(super) fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        self.send_pmtu_probes(now);
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
            .unwrap_or_else(|| self.source_towards(control.destination));
        let tag = control.tag.unwrap_or_else(|| self.identity.verification_tag());
        self.write_with_tag(packet, source, control.destination, tag, control.chunks)
    }

    /// Queues a packet of one control chunk with the peer's tag.
    pub(super) fn queue_control(&mut self, destination: Ipv6Addr, chunk: Chunk) {
        self.out
            .send(ControlPacket::new(destination, SmallVec::from_buf([chunk])));
    }

    /// A secret random number.
    pub(super) fn secret_u64(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// A new opportunity to send (Max.Burst, RFC 9260 section 6.1 rule D).
    pub(super) fn open_burst(&mut self) {
        self.burst = self.config.max_burst.unwrap_or(u32::MAX);
        if self.multipath.is_some() {
            self.open_bursts();
        }
    }
}
