//! The sending side of an association.
//!
//! | part | file |
//! |---|---|
//! | what waits | `queue` |
//! | what is under way, what leaves it, and what is sent again | `flight`, `book`, `chunk` |
//! | what is lost of it | `loss_detection`, `early_retransmit` |
//! | a window of the peer's that is closed | `credit` |
//! | what a SACK acknowledges | `sack`, `overtaken`, `nr_sack`, `progress` |
//! | what follows from a loss, by cause | `fast_retransmit`, `timeout`, `recovery` |
//! | what is sent next, and where | `transmit`, `strategy` |
//! | partial reliability | `partial_reliability`, `abandoned` |

mod abandoned;
mod book;
mod busy;
pub(super) mod chunk;
pub(super) mod context;
pub(super) mod credit;
mod cuc;
mod early_retransmit;
mod fast_retransmit;
pub(super) mod flight;
mod gaps;
mod loss_detection;
mod messages;
mod nr_sack;
mod overtaken;
mod partial_reliability;
pub(super) mod plan;
pub(super) mod progress;
pub(super) mod queue;
pub(super) mod recovery;
pub(super) mod sack;
pub(super) mod strategy;
#[cfg(test)]
pub(super) mod tests;
mod timeout;
pub(super) mod transmit;

use super::options::Policy;
use super::peer::Peer;
use super::{Config, Event, Message, Reliability, SackImmediately, SendOptions};
use crate::time::Instant;
use abandoned::Abandoned;
use busy::Busy;
use context::Context;
use credit::Credit;
use flight::Flight;
use loss_detection::LossDetector;
use queue::SendQueue;
use recovery::Recovery;
use segue_wire::{Data, Tsn};
use strategy::Strategy;

/// What an association sends.
#[derive(Debug)]
pub(in crate::sctp) struct Sender {
    queue: SendQueue,
    flight: Flight,
    loss: LossDetector,
    credit: Credit,
    recovery: Recovery,
    strategy: Strategy,
    abandoned: Abandoned,
    busy: Busy,
    /// Streams that may be sent on: `0..outbound_streams`.
    outbound_streams: u16,
    /// Bytes that a refused `send` waits for.
    wanted_space: Option<usize>,
}

impl Sender {
    pub(super) fn new(config: &Config, initial_tsn: Tsn) -> Self {
        Self {
            queue: SendQueue::default(),
            flight: Flight::new(initial_tsn, config),
            loss: LossDetector::new(config),
            credit: Credit::default(),
            recovery: Recovery::default(),
            strategy: Strategy::new(config),
            abandoned: Abandoned::default(),
            busy: Busy::default(),
            outbound_streams: config.outbound_streams,
            wanted_space: None,
        }
    }

    /// The handshake is agreed on: so many streams, and this window of the peer's.
    pub(super) fn begin(&mut self, outbound_streams: u16, peer_rwnd: u32) {
        self.outbound_streams = outbound_streams;
        self.flight.advertise(peer_rwnd);
    }

    /// Room in the send buffer, bytes.
    pub(super) fn space(&self, config: &Config) -> usize {
        (config.send_buffer as usize).saturating_sub(self.buffered())
    }

    /// User bytes that take room in the send buffer.
    pub(super) fn buffered(&self) -> usize {
        self.queue.buffered() + self.flight.buffered()
    }

    /// User bytes that wait or were sent, those included that the receiver keeps.
    fn held(&self) -> usize {
        self.queue.buffered() + self.flight.held()
    }

    /// Whether everything given to it was acknowledged.
    #[inline]
    pub(super) fn is_dry(&self) -> bool {
        self.queue.is_empty() && self.flight.is_empty()
    }

    /// What is pushed next has been in the making since then.
    pub(super) fn busy_from(&mut self, since: Instant) {
        self.busy.on_message(since, self.is_dry());
    }

    /// See [`Busy`].
    #[inline]
    pub(super) fn busy_since(&self) -> Option<Instant> {
        self.busy.since()
    }

    /// Whether anything waits to be sent or to be acknowledged; what is held back is not counted.
    pub(super) fn is_busy(&self) -> bool {
        !self.flight.is_empty() || self.queue.has_unsent()
    }

    /// Whether a message waits to be sent; what is held back is not counted.
    pub(super) fn has_unsent(&self) -> bool {
        self.queue.has_unsent()
    }

    /// User bytes sent and not yet acknowledged; those marked for retransmission are not counted.
    pub(super) fn outstanding_bytes(&self) -> u32 {
        self.flight.outstanding_bytes()
    }

    /// Room left in the peer's receive window, bytes.
    #[inline]
    pub(super) fn peer_rwnd(&self) -> u32 {
        self.flight.peer_rwnd()
    }

    /// What is under way, to look at.
    #[inline]
    pub(super) fn flight(&self) -> &Flight {
        &self.flight
    }

    /// The first timer: T3-rtx of every path, that of a FORWARD TSN, and the one after which a closed window is probed;
    /// [`Instant::MAX`] if none runs.
    #[inline]
    pub(super) fn next_timer(&self) -> Instant {
        let at = |timer: Option<Instant>| timer.unwrap_or(Instant::MAX);
        at(self.flight.next_timer())
            .min(at(self.credit.timer()))
            .min(at(self.abandoned.t3_rtx()))
    }

    /// A closed window may be probed, if it is time; returns whether it is.
    pub(super) fn on_probe_timer(&mut self, now: Instant) -> bool {
        let due = self.credit.timer().is_some_and(|at| at <= now);
        if due {
            self.credit.on_timer();
        }
        due
    }

    /// No packet can leave: the timers that wait for answers stop.
    pub(super) fn suspend(&mut self) {
        self.abandoned.stop_timer();
        self.credit.suspend();
    }

    /// A new opportunity to send (Max.Burst, RFC 9260 section 6.1 rule D).
    #[inline]
    pub(super) fn open_burst(&mut self, config: &Config, peer: &Peer) {
        self.strategy.open_burst(config.max_burst, peer);
    }

    /// The association has ended.
    pub(super) fn end(&mut self) {
        self.queue.clear();
        self.flight.take();
        self.abandoned.clear();
        self.credit.suspend();
    }

    /// Takes every message out that was not acknowledged in whole: first those of which something was sent, then the others.
    pub(super) fn into_messages(mut self) -> (Vec<Message>, Vec<Message>) {
        messages::take(&mut self.flight, &mut self.queue)
    }
}

/// What must hold.
impl Sender {
    /// # Errors
    /// What does not hold, in words.
    pub(super) fn check_invariants(&self, config: &Config, peer: &Peer) -> Result<(), String> {
        self.flight.check_invariants()?;
        let (buffered, most) = (self.buffered(), config.send_buffer);
        if buffered > most as usize {
            return Err(format!("{buffered} bytes in a send buffer of {most}"));
        }
        let mut paths = self
            .flight
            .iter()
            .filter_map(|(tsn, sent)| Some((tsn, sent.path()?)));
        match paths.find(|(_, path)| peer.path(*path).is_none()) {
            Some((tsn, path)) => Err(format!("{tsn:?} was sent on path {path:?}, which is gone")),
            None => Ok(()),
        }
    }
}

/// Messages.
impl Sender {
    /// Takes a message for which there is room.
    pub(super) fn push(
        &mut self,
        now: Instant,
        stream_id: u16,
        data: Data,
        options: SendOptions,
        config: &Config,
    ) {
        let mut options = options;
        options.sack_immediately &= config.sack_immediately != SackImmediately::Never;
        self.abandoned.note_policy(options.reliability);
        self.busy.on_message(now, self.is_dry());
        self.queue.push(now, stream_id, data, options);
    }

    /// There is no room for `len` bytes: it is told of when there is.
    pub(super) fn want_space(&mut self, len: usize) {
        self.wanted_space = Some(len);
    }

    /// Makes ready for a message of `len` bytes: where the send buffer is full, what is too late or of lower priority
    /// goes. Returns whether nothing is left.
    pub(super) fn make_room(&mut self, cx: &mut Context<'_>, len: usize, reliability: Reliability) -> bool {
        if !self.abandoned.in_use() {
            return false;
        }
        self.make_room_for(cx, len, Policy::new(cx.now, reliability))
    }

    /// Tells of room in the send buffer, in steps large enough that a sender of small messages is not woken for each.
    pub(super) fn announce_space(&mut self, cx: &mut Context<'_>) {
        let Some(wanted) = self.wanted_space else { return };
        let step = (cx.config.send_buffer as usize / 16).min(16 * 1024);
        let space = self.space(cx.config);
        if space >= wanted.max(step) || (space >= wanted && !self.queue.has_unsent()) {
            self.wanted_space = None;
            cx.out.tell(Event::Writable);
        }
    }
}

/// Streams (RFC 6525).
impl Sender {
    pub(super) fn outbound_streams(&self) -> u16 {
        self.outbound_streams
    }

    /// Whether what waits needs more streams than there are (RFC 9260 section 5.1.1).
    pub(super) fn lacks_streams(&self) -> bool {
        self.queue.streams_needed() > usize::from(self.outbound_streams)
    }

    /// The peer takes so many streams more.
    pub(super) fn add_streams(&mut self, new_streams: u16) {
        self.outbound_streams = self.outbound_streams.saturating_add(new_streams);
    }

    /// Keeps the messages of `streams`, all if none is named, back.
    pub(super) fn hold(&mut self, streams: Vec<u16>) {
        self.queue.hold(streams);
    }

    /// Lets what was kept back go on.
    pub(super) fn release(&mut self) {
        self.queue.release();
    }

    /// Whether a message of one of `streams` is being sent.
    pub(super) fn is_amid_message_of(&self, streams: &[u16]) -> bool {
        self.queue.is_amid_message_of(streams)
    }

    /// The streams begin again, all if none is named.
    pub(super) fn reset_ssns(&mut self, streams: &[u16]) {
        self.queue.reset_ssns(streams);
        let (last, cumulative) = (
            self.flight.next_tsn().previous(),
            self.flight.cumulative_tsn_ack(),
        );
        self.abandoned.streams_begin_again(streams, last, cumulative);
    }

    /// The peer has reset the association: TSNs begin anew at `next_tsn`.
    pub(super) fn restart_tsns(&mut self, next_tsn: Tsn) {
        self.flight.restart_tsns(next_tsn);
        self.queue.reset_ssns(&[]);
        self.abandoned.restart();
        self.recovery.end();
        self.credit.forget_probe();
    }

    /// The association is reset at the peer's request: streams begin again, and what was kept back goes on.
    pub(super) fn reset_streams(&mut self) {
        self.reset_ssns(&[]);
        self.queue.release();
        self.abandoned.clear();
    }
}
