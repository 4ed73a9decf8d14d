//! One association: its state and its user's interface.
//!
//! An association is a composition. Its parts keep their fields to themselves, and do what concerns them alone; the files
//! here call them in the order that the RFCs have, and act on what they return:
//!
//! | what happens | file |
//! |---|---|
//! | it comes up, or begins again | `handshake` |
//! | a packet arrives | `receive` |
//! | a packet leaves | `transmit` |
//! | time passes | `timers` |
//! | addresses of this host change | `addresses` |
//! | either end asks for another set of addresses | `asconf` |
//! | addresses of the peer come and go, and paths to them | `peer` |
//! | streams are reset and added | `streams` |
//! | it ends | `shutdown` |

mod addresses;
mod asconf;
pub(super) mod came;
mod handshake;
mod peer;
mod receive;
mod shutdown;
mod streams;
#[cfg(test)]
pub(in crate::sctp) mod tests;
mod timers;
mod transmit;

use super::asconf::Asconf;
use super::auth::{AuthError, Authentication, Random, SharedKey};
use super::handshake::{Identity, PeerExtensions, Phase, State};
use super::ids::DestinationId;
use super::local::LocalAddresses;
use super::outbox::Outbox;
use super::peer::{Peer, Probing};
use super::receiver::Receiver;
use super::replies::Replies;
use super::sender::Sender;
use super::sender::context::Context;
use super::streams::StreamChanges;
use super::{AddressError, Config, Counters, Event, Message, PathSnapshot, SendError, SendOptions};
use crate::contract::LocalAddress;
use crate::random::SecretRng;
use crate::time::Instant;
use core::net::Ipv6Addr;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use segue_wire::sctp::Parameter;
use segue_wire::sctp::chunk_type::{ASCONF_ACK, DATA, FORWARD_TSN, SACK};
use segue_wire::{Data, Tsn};
use std::sync::Arc;

/// An association with a peer.
pub struct Association {
    /// As its user gave it: not written to after the start, and shared by all associations of an endpoint.
    config: Arc<Config>,
    /// Where it stands between its beginning and its end.
    phase: Phase,
    identity: Identity,
    rng: ChaCha8Rng,
    /// Control packets and events that wait, and what was counted.
    out: Outbox,
    local: LocalAddresses,
    peer: Peer,
    sender: Sender,
    receiver: Receiver,
    /// Answers to the packet at hand.
    replies: Replies,
    /// What the peer can do beyond RFC 9260.
    extensions: PeerExtensions,
    auth: Authentication,
    /// Streams that are being reset or added.
    streams: StreamChanges,
    /// Addresses that are being added or deleted.
    asconf: Asconf,
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
        options: SendOptions,
    ) -> Result<(), SendError> {
        match self.state() {
            State::CookieWait | State::CookieEchoed | State::Established => {}
            _ => return Err(SendError::Closing),
        }
        let len = data.len();
        if len == 0 {
            return Err(SendError::Empty);
        }
        if stream_id >= self.sender.outbound_streams() {
            return Err(SendError::NoSuchStream);
        }
        if len > self.config.send_buffer as usize {
            return Err(SendError::TooLong);
        }
        if len > self.send_space() {
            let (sender, mut cx) = self.sending(now);
            if sender.make_room(&mut cx, len, options.reliability) {
                self.continue_shutdown(now);
            }
            if len > self.send_space() {
                self.sender.want_space(len);
                return Err(SendError::BufferFull);
            }
        }
        if !self.sender.has_unsent() {
            self.open_burst();
        }
        self.sender.push(now, stream_id, data, options, &self.config);
        Ok(())
    }

    /// Room in the send buffer, bytes.
    #[must_use]
    pub fn send_space(&self) -> usize {
        self.sender.space(&self.config)
    }

    /// User bytes that fit one DATA chunk.
    #[must_use]
    pub fn max_message_in_one_chunk(&self) -> u32 {
        self.peer.sizes().max_data()
    }

    /// The next message received; opens the receive window again.
    pub fn recv(&mut self) -> Option<Message> {
        let message = self.receiver.take_message()?;
        if self.is_up() {
            let mtu = self.peer.sizes().mtu();
            self.receiver.consider_window_update(mtu, &self.config);
        }
        Some(message)
    }

    /// Makes `destination` the primary path.
    ///
    /// # Errors
    /// [`AddressError::BadAddress`] if the peer has no such address, or has deactivated it.
    pub fn set_primary_path(&mut self, now: Instant, destination: Ipv6Addr) -> Result<(), AddressError> {
        let _ = now;
        let known = self.peer.find(destination);
        let index = known.filter(|&index| !self.peer[index].is_deactivated());
        let index = index.ok_or(AddressError::BadAddress)?;
        self.peer.make_primary(index, &mut self.out);
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
        self.peer[self.peer.primary()].address()
    }

    /// All (source, destination) pairs that have been used, as they are now.
    pub fn paths(&self) -> impl Iterator<Item = PathSnapshot> {
        let flight = self.sender.flight();
        let paths = self.peer.paths();
        paths.map(|(id, _)| self.peer.snapshot(id, flight.size_on(id), &self.local))
    }

    /// Counters since the association began.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.out.counters
    }

    /// The peer's addresses, and whether each is still to be confirmed.
    pub(super) fn peer_addresses(&self) -> impl Iterator<Item = (Ipv6Addr, bool)> + '_ {
        let destinations = self.peer.destinations();
        destinations.map(|(_, d)| (d.address(), !d.is_confirmed()))
    }

    /// Addresses that the peer may send from although they are not its.
    pub(super) fn former_addresses(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        self.peer.former_addresses()
    }

    /// Port of the peer.
    #[must_use]
    pub fn peer_port(&self) -> u16 {
        self.identity.peer_port()
    }

    /// Streams that `send` may name: `0..outbound_streams`.
    #[must_use]
    pub fn outbound_streams(&self) -> u16 {
        self.sender.outbound_streams()
    }

    /// Streams that the peer may send on: the fewer of those that it asked for and those that this end takes.
    #[must_use]
    pub fn inbound_streams(&self) -> u16 {
        self.receiver.inbound_streams()
    }

    /// Whether everything given to `send` was acknowledged.
    #[must_use]
    pub fn is_sender_dry(&self) -> bool {
        self.sender.is_dry()
    }

    /// Receive window offered now, bytes.
    #[must_use]
    pub fn a_rwnd(&self) -> u32 {
        self.receiver.a_rwnd(&self.config)
    }

    /// Room left in the peer's receive window, bytes.
    #[must_use]
    pub fn peer_rwnd(&self) -> u32 {
        self.sender.peer_rwnd()
    }

    /// User bytes sent and not yet acknowledged; those marked for retransmission are not counted.
    #[must_use]
    pub fn outstanding_bytes(&self) -> u32 {
        self.sender.outstanding_bytes()
    }
}

/// What a new association is made of.
pub(super) struct Setup<'a> {
    pub config: &'a Arc<Config>,
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
        let config = Arc::clone(setup.config);
        let mut seed = [0; 32];
        secrets.fill(&mut seed);
        let peer = Peer::new(&config);
        let mut association = Self {
            phase: Phase::new(peer.primary()),
            identity: setup.identity,
            rng: ChaCha8Rng::from_seed(seed),
            out: Outbox::default(),
            local: LocalAddresses::new(setup.local, setup.route),
            peer,
            sender: Sender::new(&config, setup.local_initial_tsn),
            receiver: Receiver::new(&config),
            replies: Replies::default(),
            extensions: PeerExtensions::default(),
            auth: Authentication::new(&config, setup.local_random),
            streams: StreamChanges::new(setup.local_initial_tsn),
            asconf: Asconf::new(setup.local_initial_tsn),
            config,
        };
        for (i, &address) in setup.peer_addresses.iter().enumerate() {
            association.add_destination(now, address, i < setup.confirmed);
        }
        association
    }

    /// What the peer's INIT or INIT ACK said of extensions comes into force. Chunks are cut, and windows counted, by what is
    /// now known of the bytes that other chunks take.
    fn negotiate(&mut self, parameters: &[Parameter]) {
        self.extensions = PeerExtensions::read(parameters);
        self.auth.negotiate(parameters);
        let overhead = self.auth.overhead(&[DATA, SACK, FORWARD_TSN]);
        self.peer.leave_room_for(overhead, &self.config);
    }

    /// The sender, and what it works with.
    #[inline]
    fn sending(&mut self, now: Instant) -> (&mut Sender, Context<'_>) {
        let may_forward_tsn = self.may_forward_tsn();
        let cx = Context {
            now,
            config: &self.config,
            peer: &mut self.peer,
            out: &mut self.out,
            may_forward_tsn,
        };
        (&mut self.sender, cx)
    }

    /// The peer, and what heartbeats are sent with.
    fn probing(&mut self) -> (&mut Peer, Probing<'_>) {
        let allowed = self.may_heartbeat();
        let probing = Probing {
            config: &self.config,
            rng: &mut self.rng,
            out: &mut self.out,
            replies: &mut self.replies,
            auth_len: self.auth.overhead(&[ASCONF_ACK]),
            allowed,
        };
        (&mut self.peer, probing)
    }

    /// Whether HEARTBEATs may be sent: once the association is up, until a SHUTDOWN or SHUTDOWN ACK was (section 8.3).
    fn may_heartbeat(&self) -> bool {
        self.is_up() && self.phase.shutdown_chunk().is_none()
    }

    /// Whether both ends offered FORWARD TSN.
    #[inline]
    fn may_forward_tsn(&self) -> bool {
        self.config.partial_reliability && self.extensions.forward_tsn()
    }

    /// Whether `address` is an address of the peer.
    pub(super) fn has_peer_address(&self, address: Ipv6Addr) -> bool {
        self.peer.has(address)
    }

    /// A new opportunity to send (Max.Burst, RFC 9260 section 6.1 rule D).
    #[inline]
    fn open_burst(&mut self) {
        self.sender.open_burst(&self.config, &self.peer);
    }

    /// Data that was sent to a destination was not answered in time. Returns false if the association was lost with it.
    fn count_error(&mut self, index: DestinationId) -> bool {
        let goes_on = self.peer.count_error(index, &self.config, &mut self.out);
        if !goes_on {
            self.give_up_peer();
        }
        goes_on
    }

    /// A control chunk that was sent to a destination, which may be gone, was not answered in time. Returns false if the
    /// association was lost with it.
    fn not_answered(&mut self, index: DestinationId) -> bool {
        let known = self.peer.get(index).is_some();
        let goes_on = !known || self.peer.not_answered(index, &self.config, &mut self.out);
        if !goes_on {
            self.give_up_peer();
        }
        goes_on
    }

    /// Whether nothing of a closed association is left to be told or taken.
    pub(super) fn is_done(&self) -> bool {
        self.is_closed() && self.out.is_empty() && !self.receiver.has_message()
    }

    /// Drops events and messages that the user does not want.
    pub(super) fn discard_events_and_messages(&mut self) {
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
}

/// Chunk authentication (RFC 4895): its user's keys.
impl Association {
    /// Whether both ends support authentication.
    #[must_use]
    pub fn is_authentication_negotiated(&self) -> bool {
        self.auth.is_negotiated()
    }

    /// Adds an endpoint pair shared key, or replaces the one with this identifier. AUTH chunks that name it are accepted
    /// from now on; for sending see [`set_active_key`](Self::set_active_key).
    ///
    /// # Errors
    /// [`AuthError::NotOffered`].
    pub fn set_shared_key(&mut self, id: u16, key: impl Into<bytes::Bytes>) -> Result<(), AuthError> {
        self.auth.add_key(SharedKey { id, key: key.into() })
    }

    /// Authenticates with this key from now on, retransmissions included. The peer must know it already.
    ///
    /// # Errors
    /// [`AuthError::NoSuchKey`].
    pub fn set_active_key(&mut self, id: u16) -> Result<(), AuthError> {
        self.auth.activate_key(id)
    }

    /// Forgets a key: AUTH chunks that name it are refused from now on. Identifier 0 is the empty key, unless it was
    /// replaced.
    ///
    /// # Errors
    /// [`AuthError::NoSuchKey`] and [`AuthError::ActiveKey`].
    pub fn delete_shared_key(&mut self, id: u16) -> Result<(), AuthError> {
        self.auth.delete_key(id)
    }

    /// The shared key identifier that this end authenticates with.
    #[must_use]
    pub fn active_key(&self) -> u16 {
        self.auth.active_key()
    }
}

impl Association {
    /// Checks that the books balance: what is outstanding, marked and held is what the counts and timers say, queues
    /// are within what the configuration allows, and something will happen next if something must.
    ///
    /// # Errors
    /// What does not hold, in words.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.sender.check_invariants(&self.config, &self.peer)?;
        self.peer.check_invariants()?;
        self.receiver.check_invariants(&self.config)?;
        self.local.check_invariants()?;
        let waiting = self.out.waiting();
        if waiting > 0 && !self.is_stranded() {
            return Err(format!("{waiting} control packets are left after draining"));
        }
        let timer = self.poll_timeout();
        if self.is_closed() {
            if timer.is_some() {
                return Err("a closed association has timers".into());
            }
            if !self.is_sender_dry() {
                return Err("a closed association has data".into());
            }
        } else if !self.is_stranded() && timer.is_none() {
            // of a stranded one nothing can be done until there is an address again
            let waits = self.is_in_handshake() || !self.is_sender_dry() || self.asconf_outstanding();
            if waits {
                return Err(format!(
                    "something waits and no timer runs, state {:?}",
                    self.state()
                ));
            }
        }
        Ok(())
    }
}
