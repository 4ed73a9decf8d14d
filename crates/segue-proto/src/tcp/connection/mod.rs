//! A connection: what it consists of, and what its user does with it.
//!
//! [`Connection`] has the state of RFC 9293 section 3.3.2 and composes a [`Sender`] and a [`Receiver`], which keep what
//! belongs to either direction to themselves. `arrive` gives them what comes in and acts on what they make of it, `output`
//! makes packets of what they have to send.
//!
//! Numbers of the sequence space are kept as *positions*, 64 bits wide and counted from the SYN, which is position 0 in
//! either direction: they never wrap. A sequence number is a position plus ISS or IRS, modulo 2^32.

mod arrive;
mod output;
mod view;

use super::challenges::Challenges;
use super::config::Config;
use super::counters::Counters;
use super::ends::Pair;
use super::event::{Event, SendError, State};
use super::networks::Remembered;
use super::receiver::Receiver;
use super::sender::{Expiry, Sender};
use super::timestamps::{Clock, Timestamps};
use crate::contract::{InterfaceId, LocalAddress};
use crate::time::Instant;
use segue_wire::{Data, SeqNumber};
use std::collections::VecDeque;
use std::sync::Arc;

/// A TCP connection of an [`Endpoint`](super::Endpoint).
#[derive(Debug)]
pub struct Connection {
    config: Arc<Config>,
    interface: InterfaceId,
    ends: Pair,
    state: State,
    /// It began with our SYN.
    active: bool,
    /// While our SYN is not acknowledged.
    opening: Option<Opening>,
    events: VecDeque<Event>,
    /// What is not counted by the sender.
    counters: Counters,
    timestamps: Timestamps,
    sender: Sender,
    receiver: Receiver,
    challenges: Challenges,
    reset_pending: Option<Reset>,
    /// The end of TIME-WAIT, or of FIN-WAIT-2.
    wait_at: Option<Instant>,
}

/// A connection that our SYN opens.
#[derive(Clone, Copy, Debug)]
struct Opening {
    /// A SYN or SYN-ACK is to be sent.
    pending: bool,
    transmissions: u32,
}

/// A RST that is to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reset {
    /// In answer to a segment that acknowledged this (RFC 9293 section 3.10.7.4, fifth).
    Answer(SeqNumber),
    /// The user aborts (section 3.10.5).
    Abort,
}

/// What the endpoint decides about a connection.
pub(super) struct Beginning {
    pub local: LocalAddress,
    pub pair: Pair,
    pub iss: SeqNumber,
    /// Added to the clock in timestamps, so that they tell nothing of other connections (RFC 7323 section 7.1).
    pub ts_offset: u32,
    pub overhead: u32,
    pub active: bool,
}

impl Connection {
    pub(super) fn new(now: Instant, config: &Arc<Config>, beginning: &Beginning) -> Self {
        let clock = Clock::new(beginning.ts_offset);
        Self {
            config: Arc::clone(config),
            interface: beginning.local.interface,
            ends: Pair {
                local: beginning.local.address,
                ..beginning.pair
            },
            state: State::SynSent,
            active: beginning.active,
            opening: Some(Opening {
                pending: true,
                transmissions: 0,
            }),
            events: VecDeque::new(),
            counters: Counters::default(),
            timestamps: Timestamps::new(clock),
            sender: Sender::new(now, config, beginning.iss, clock, beginning.overhead),
            receiver: Receiver::new(config),
            challenges: Challenges::default(),
            reset_pending: None,
            wait_at: None,
        }
    }

    /// Takes data to send: all of it, or as much as there is room for. Returns the bytes taken.
    ///
    /// # Errors
    /// If there is no room, or the connection is closing.
    pub fn send(&mut self, data: &Data) -> Result<u32, SendError> {
        if !self.may_still_send() {
            return Err(SendError::Closing);
        }
        self.sender.send(data)
    }

    /// Takes data to send: all of it or nothing. What is longer than the send buffer is taken when it is empty.
    ///
    /// # Errors
    /// If there is no room, or the connection is closing.
    pub fn send_all(&mut self, data: Data) -> Result<(), SendError> {
        if !self.may_still_send() {
            return Err(SendError::Closing);
        }
        self.sender.send_all(data)
    }

    /// Bytes that there is room for.
    #[must_use]
    pub fn send_room(&self) -> u64 {
        self.sender.room()
    }

    /// The next data received, if there is any; makes room for more.
    pub fn recv(&mut self) -> Option<Data> {
        let data = self.receiver.pop()?;
        if self.is_synchronized() {
            self.receiver.tell_of_room(&self.config);
        }
        Some(data)
    }

    /// Whether the peer has closed its direction and everything it sent was taken.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.receiver.is_at_end()
    }

    /// Closes this direction once everything sent has arrived (RFC 9293 section 3.10.4).
    pub fn close(&mut self) {
        match self.state {
            State::SynSent => self.end(Event::Closed),
            State::SynReceived | State::Established | State::CloseWait if !self.sender.is_closing() => {
                self.sender.close();
                self.note_close();
            }
            _ => {}
        }
    }

    /// Resets the connection (RFC 9293 section 3.10.5).
    pub fn abort(&mut self) {
        if matches!(
            self.state,
            State::SynReceived | State::Established | State::FinWait1 | State::FinWait2 | State::CloseWait
        ) {
            self.reset_pending = Some(Reset::Abort);
        }
        if self.state != State::Closed {
            self.end(Event::Aborted);
        }
    }

    /// The path carries packets of at most so many bytes from now on (RFC 9293 section 3.7.5, RFC 8201). What is outstanding in
    /// longer ones is lost.
    pub fn path_mtu_changed(&mut self, mtu: u32) {
        self.sender.on_path_mtu(mtu);
    }

    /// A shim makes packets so many bytes longer on their way down from now on.
    pub fn overhead_changed(&mut self, overhead: u32) {
        self.sender.on_overhead(overhead);
    }

    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The next event. Poll until `None` after every other call.
    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Works off the timers that are due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.receiver.handle_timeout(now);
        match self.sender.handle_timeout(now, self.opening.is_some()) {
            Expiry::Goes => {}
            Expiry::Syn => self.send_syn_again(),
            Expiry::GivesUp => self.end(Event::TimedOut),
        }
        if self.wait_at.is_some_and(|at| at <= now) {
            self.wait_at = None;
            // TIME-WAIT is over, or the peer's FIN never came
            let event = if self.state == State::TimeWait {
                Event::Closed
            } else {
                Event::TimedOut
            };
            self.end(event);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let mut earliest = self.sender.poll_timeout();
        for at in [self.receiver.poll_timeout(), self.wait_at] {
            earliest = earliest.min(at.unwrap_or(Instant::MAX));
        }
        (earliest != Instant::MAX).then_some(earliest)
    }

    /// The peer is in another network: gives what was seen of the one that it left.
    pub(super) fn change_network(&mut self, now: Instant, known: Option<Remembered>) -> Option<Remembered> {
        self.sender.change_network(now, known)
    }

    pub(super) fn pair(&self) -> Pair {
        self.ends
    }

    /// Whether these are its two ends.
    #[inline]
    pub(super) fn is_between(&self, pair: &Pair) -> bool {
        self.ends.remote_port == pair.remote_port
            && self.ends.local_port == pair.local_port
            && self.ends.remote == pair.remote
            && self.ends.local == pair.local
    }

    /// Whether the octet with this number is outstanding.
    pub(super) fn is_outstanding(&self, seq: SeqNumber) -> bool {
        self.sender.is_outstanding(seq)
    }

    /// Whether all is said: its slot can go.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Closed
            && self.events.is_empty()
            && self.reset_pending.is_none()
            && self.receiver.ready_bytes() == 0
    }
}

impl Connection {
    fn is_synchronized(&self) -> bool {
        !matches!(self.state, State::SynSent | State::SynReceived | State::Closed)
    }

    /// Whether data of the user may still be taken.
    fn may_still_send(&self) -> bool {
        !self.sender.is_closing()
            && matches!(
                self.state,
                State::SynSent | State::SynReceived | State::Established | State::CloseWait
            )
    }

    /// The user has closed: the state once there is a FIN to send.
    fn note_close(&mut self) {
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        };
    }

    /// A SYN, or what answers the peer's, goes out once more.
    fn send_syn_again(&mut self) {
        if let Some(opening) = &mut self.opening {
            opening.pending = true;
        }
    }

    /// It is over.
    fn end(&mut self, event: Event) {
        // nobody was told of a connection that never came about; of one in TIME-WAIT, all was told
        let known = self.state != State::TimeWait && (self.active || self.state != State::SynReceived);
        self.state = State::Closed;
        self.opening = None;
        self.wait_at = None;
        self.sender.stop();
        self.receiver.stop();
        if known {
            self.events.push_back(event);
        }
    }
}
