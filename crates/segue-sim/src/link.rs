//! Point-to-point links: rate, propagation delay, drop-tail queue, loss, jitter, set-up of a bearer that was let go.
//!
//! One direction of a link is one [`Link`]. On a FIFO link of constant rate a hop is one event: departure and arrival
//! are worked out when the packet is queued, which is exact. [`Service::HeadOfLine`] serves the same link packet by
//! packet, for links whose rate changes while packets wait; a test shows that the two agree on a constant link.

mod ring;

use crate::link_trace::{Cursor, LinkTrace};
use crate::loss::{Loss, LossModel};
use crate::scheduler::{Event, Scheduler, Ticket};
use crate::store::PacketRef;
use crate::warnings::Load;
use core::hint::cold_path;
use ring::Ring;
use schemars::JsonSchema;
use segue_proto::random::Stream;
use segue_proto::units::{BitRate, QueueLimit};
use segue_proto::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// How waiting packets are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Departure worked out on arrival: constant rate, one event per packet.
    #[default]
    Fifo,
    /// One event for the end of each transmission: the rate may change at any time.
    HeadOfLine,
}

/// What a link does to the packets on it.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkConfig {
    /// Rate of IPv6 packets.
    pub rate: BitRate,
    /// Propagation delay.
    pub delay: Duration,
    /// Waiting room; the packet being sent is not counted, as in ns-2.
    pub queue: QueueLimit,
    /// Random loss.
    pub loss: LossModel,
    /// Greatest additional delay, drawn uniformly for each packet.
    pub jitter: Duration,
    /// Whether jitter may let packets overtake each other; otherwise it delays those behind.
    pub reorder: bool,
    /// Probability that a packet arrives twice. As with netem a copy is not lost by chance, nor with its packet; but of what is
    /// lost to a silence, or sent while all is lost, there is none.
    pub duplicate: f64,
    /// Probability that a bit of a packet's payload is flipped.
    pub corrupt: f64,
    /// How waiting packets are served.
    pub service: Service,
    /// Longest packet, bytes; `None` for any.
    pub mtu: Option<u32>,
}

/// What becomes of a packet that a link took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// It was lost on the way.
    Lost,
    /// It arrives with bits flipped.
    Corrupted,
    /// It arrives: the packet before it, sent once, for the second time.
    Repeated,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    packet: PacketRef,
    fate: Fate,
    arrival: Ticket,
}

/// A link that has to be set up before it can send, since it is let go when there is nothing to send.
#[derive(Clone, Copy, Debug)]
struct SetUp {
    takes: Duration,
    /// For how long it is kept.
    hold: Duration,
    /// When its last packet has been sent; `None` if it was let go.
    sent: Option<Instant>,
}

/// A time in which packets are lost on a link that is up.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Silence {
    /// Its beginning.
    pub from: Instant,
    /// Its end, if it has one.
    pub until: Option<Instant>,
    /// Probability that a packet is lost.
    pub loss: f64,
}

impl Silence {
    fn covers(&self, at: Instant) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    /// Index of this link in its network.
    index: u32,
    config: LinkConfig,
    loss: Loss,
    stream: Stream,
    random: bool,
    /// FIFO service: when the packet being sent is, if that is later than now.
    sending_until: Instant,
    /// FIFO service: departure and length of those behind it, and of some that have left.
    waiting: VecDeque<(Instant, u32)>,
    /// Head-of-line service: the packets queued, the first of them being sent.
    line: VecDeque<(PacketRef, u32)>,
    /// How many of those behind the first are urgent: they come next.
    urgent: usize,
    /// Bytes of those behind the first, and of those that have left and are still in `waiting`.
    waiting_bytes: u64,
    /// Its packets are sent by somebody else, who says when: [`Self::send_first`].
    is_sent_by_others: bool,
    /// Generation of the head-of-line schedule.
    generation: u32,
    /// Packets with an arrival ahead, in order; the first one's is in the scheduler.
    flight: Ring<Flight>,
    /// When the transmitter is done with all that is queued.
    busy_until: Instant,
    last_arrival: Instant,
    /// Jitter that stays: how long the link may be idle in between, when it was last busy, and the jitter.
    hold: Option<Duration>,
    held: Option<(Instant, Duration)>,
    set_up: Option<SetUp>,
    /// When packets are lost on it although it is up.
    silences: Vec<Silence>,
    /// What it does over time, and how far it has come.
    trace: Option<Box<(Arc<LinkTrace>, Cursor)>>,
    cached_time: (u32, Duration),
    down: bool,
    /// Packets that it was given, and those that found its queue full.
    offered: u64,
    refused: u64,
}

/// What arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The packet.
    pub packet: PacketRef,
    /// How it fared.
    pub fate: Fate,
}

impl Link {
    /// An idle link. `index` is the link's number in the network; `stream` its own random numbers.
    #[must_use]
    pub fn new(index: u32, config: LinkConfig, stream: Stream) -> Self {
        let random = config.loss != LossModel::None
            || !config.jitter.is_zero()
            || config.duplicate > 0.0
            || config.corrupt > 0.0;
        Self {
            index,
            loss: Loss::new(config.loss),
            config,
            stream,
            random,
            sending_until: Instant::ZERO,
            waiting: VecDeque::new(),
            line: VecDeque::new(),
            urgent: 0,
            waiting_bytes: 0,
            is_sent_by_others: false,
            generation: 0,
            flight: Ring::new(),
            busy_until: Instant::ZERO,
            last_arrival: Instant::ZERO,
            hold: None,
            held: None,
            set_up: None,
            silences: Vec::new(),
            trace: None,
            cached_time: (0, Duration::ZERO),
            down: false,
            offered: 0,
            refused: 0,
        }
    }

    /// Packets that it was given, and those that found its queue full.
    pub(crate) fn load(&self) -> Load {
        Load {
            offered: self.offered,
            refused: self.refused,
        }
    }

    /// Whether it takes no packets.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.down
    }

    /// The link goes down: gives the packets that were queued or under way.
    pub fn go_down(&mut self, now: Instant, scheduler: &mut Scheduler) -> Vec<PacketRef> {
        self.down = true;
        self.lose_behind(0, now, scheduler)
    }

    /// The link is up again.
    pub fn come_up(&mut self) {
        self.down = false;
    }

    /// The link draws its jitter once for all packets that follow each other with less than `hold` between them, as a network
    /// has it that sets up its radio bearer for each burst.
    #[must_use]
    pub fn with_jitter_held(mut self, hold: Option<Duration>) -> Self {
        self.hold = hold;
        self
    }

    /// The link does not send by itself: it shares its rate with others, and its packets leave in the order of head-of-line
    /// service by [`Self::send_first`].
    #[must_use]
    pub fn sent_by_others(mut self) -> Self {
        self.config.service = Service::HeadOfLine;
        self.is_sent_by_others = true;
        self
    }

    /// The link takes `takes` to be set up before it sends anything, and is let go when it has had nothing to send for longer
    /// than `hold`: a bearer that is there while it is used, as a temporary block flow of GPRS. Packets that come meanwhile
    /// wait, and follow the first as fast as the link is.
    #[must_use]
    pub fn with_set_up(mut self, takes: Duration, hold: Duration) -> Self {
        self.set_up = (!takes.is_zero()).then_some(SetUp {
            takes,
            hold,
            sent: None,
        });
        self
    }

    /// Packets that are sent at these times are lost.
    #[must_use]
    pub fn with_silences(mut self, silences: Vec<Silence>) -> Self {
        self.random |= !silences.is_empty();
        self.silences = silences;
        self
    }

    /// The link does what a trace says.
    #[must_use]
    pub fn with_trace(mut self, trace: Option<Arc<LinkTrace>>) -> Self {
        self.random |= trace.is_some();
        self.trace = trace.map(|trace| Box::new((trace, Cursor::default())));
        self
    }

    /// Offers a packet of `length` bytes; `false` if the queue is full. `duplicate` is called if the link wants to
    /// deliver it twice and gives the copy.
    pub fn enqueue(
        &mut self,
        now: Instant,
        packet: PacketRef,
        length: u32,
        scheduler: &mut Scheduler,
        duplicate: impl FnOnce() -> PacketRef,
    ) -> bool {
        self.enqueue_as(now, packet, length, false, scheduler, duplicate)
    }

    /// As [`enqueue`](Self::enqueue); with head-of-line service an `urgent` packet goes before all that are not, in a
    /// waiting room of its own.
    #[inline(always)]
    pub fn enqueue_as(
        &mut self,
        now: Instant,
        packet: PacketRef,
        length: u32,
        urgent: bool,
        scheduler: &mut Scheduler,
        duplicate: impl FnOnce() -> PacketRef,
    ) -> bool {
        self.offered += 1;
        match self.config.service {
            Service::Fifo => {
                let busy = now < self.busy_until;
                // those that have left are forgotten when their room is needed
                if busy {
                    let full = self.waiting.len() == self.waiting.capacity()
                        || !self.has_room(self.waiting.len(), length);
                    if full {
                        self.forget_departed(now);
                        if !self.has_room(self.waiting.len(), length) {
                            self.refused += 1;
                            return false;
                        }
                    }
                } else if !self.waiting.is_empty() {
                    self.forget_departed(now);
                }
                let mut start = self.busy_until.max(now);
                if let Some(set_up) = &self.set_up
                    && (!busy || set_up.sent.is_none())
                {
                    cold_path();
                    start = start.max(set_up.done(now));
                }
                let departure = self.sent_by(start, length);
                if let Some(set_up) = &mut self.set_up {
                    cold_path();
                    set_up.sent = Some(departure);
                }
                if busy {
                    self.waiting.push_back((departure, length));
                    self.waiting_bytes += u64::from(length);
                } else {
                    self.sending_until = departure;
                }
                self.busy_until = departure;
                self.depart(departure, packet, scheduler, duplicate);
            }
            Service::HeadOfLine => {
                cold_path();
                let taken = self.join_line(now, packet, length, urgent, scheduler);
                self.refused += u64::from(!taken);
                return taken;
            }
        }
        true
    }

    #[inline(never)]
    fn join_line(
        &mut self,
        now: Instant,
        packet: PacketRef,
        length: u32,
        urgent: bool,
        scheduler: &mut Scheduler,
    ) -> bool {
        if self.line.is_empty() {
            if !self.is_sent_by_others {
                let start = self.set_up.as_ref().map_or(now, |set_up| set_up.done(now));
                self.serve(start, length, scheduler);
            }
            self.line.push_back((packet, length));
            return true;
        }
        if urgent {
            if self.urgent >= URGENT_QUEUE {
                return false;
            }
            self.urgent += 1;
            self.line.insert(self.urgent, (packet, length));
        } else {
            if !self.has_room(self.line.len() - self.urgent - 1, length) {
                return false;
            }
            self.line.push_back((packet, length));
        }
        self.waiting_bytes += u64::from(length);
        true
    }

    /// Head-of-line service: the packet at the head has been sent.
    pub fn on_departure(
        &mut self,
        now: Instant,
        generation: u32,
        scheduler: &mut Scheduler,
        duplicate: impl FnOnce(PacketRef) -> PacketRef,
    ) {
        if generation != self.generation {
            return;
        }
        self.send_first(now, scheduler, duplicate);
        if let Some(next) = self.length_of_first() {
            self.serve(now, next, scheduler);
        }
    }

    /// Length of the packet at the head of the line, bytes.
    #[must_use]
    pub fn length_of_first(&self) -> Option<u32> {
        self.line.front().map(|(_, length)| *length)
    }

    /// The packet at the head of the line has been sent.
    pub fn send_first(
        &mut self,
        now: Instant,
        scheduler: &mut Scheduler,
        duplicate: impl FnOnce(PacketRef) -> PacketRef,
    ) {
        let Some((packet, _)) = self.line.pop_front() else {
            return;
        };
        if let Some(set_up) = &mut self.set_up {
            set_up.sent = Some(now);
        }
        self.depart(now, packet, scheduler, || duplicate(packet));
        if let Some(&(_, next)) = self.line.front() {
            self.urgent = self.urgent.saturating_sub(1);
            self.waiting_bytes -= u64::from(next);
        }
    }

    /// The packet at the head of the flight arrives.
    ///
    /// # Panics
    /// If nothing is in flight: the scheduler and the link disagree.
    #[inline]
    pub fn on_arrival(&mut self, scheduler: &mut Scheduler) -> Arrival {
        let flight = self.flight.pop().expect("an arrival was scheduled");
        scheduler.next_arrival(self.index, self.flight.front().map(|next| next.arrival));
        Arrival {
            packet: flight.packet,
            fate: flight.fate,
        }
    }

    /// Whoever sends on the link is gone: what has not left is lost. Gives those packets.
    pub fn abandon(&mut self, now: Instant, scheduler: &mut Scheduler) -> Vec<PacketRef> {
        self.forget_departed(now);
        let unsent = usize::from(now < self.busy_until) + self.waiting.len();
        let flights = self.flight.iter().enumerate().rev();
        let originals = flights.filter(|(_, flight)| flight.fate != Fate::Repeated);
        let first_unsent = originals.take(unsent).last();
        let sent = first_unsent.map_or(self.flight.len(), |(index, _)| index);
        self.lose_behind(sent, now, scheduler)
    }

    /// Gives the packets in flight behind the first `kept`, and all that are queued. From now on the link is as if they had
    /// never been there, but for the random numbers that were drawn for them.
    fn lose_behind(&mut self, kept: usize, now: Instant, scheduler: &mut Scheduler) -> Vec<PacketRef> {
        let lost = self.flight.iter().skip(kept).map(|flight| flight.packet);
        let lost = lost
            .chain(self.line.drain(..).map(|(packet, _)| packet))
            .collect();
        self.flight.truncate(kept);
        scheduler.next_arrival(self.index, self.flight.front().map(|next| next.arrival));
        let last = self.flight.iter().next_back();
        self.last_arrival = last.map_or(now, |last| last.arrival.time());
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.urgent = 0;
        self.busy_until = self.busy_until.min(now);
        self.sending_until = self.sending_until.min(now);
        self.generation = self.generation.wrapping_add(1);
        self.let_go();
        self.held = self.held.filter(|(last, _)| *last <= now);
        self.loss.forget_after(now);
        if let Some(trace) = &mut self.trace {
            // where it is in the trace is found by the time of the next packet
            trace.1 = Cursor::default();
        }
        lost
    }

    /// Longest packet that the link takes, bytes.
    #[must_use]
    pub fn mtu(&self) -> Option<u32> {
        self.config.mtu
    }

    /// Packets queued and not yet sent, the one being sent included.
    pub fn backlog(&mut self, now: Instant) -> usize {
        self.forget_departed(now);
        usize::from(now < self.busy_until) + self.waiting.len() + self.line.len()
    }

    /// The packet has been sent at `departure`: decides its fate and when it arrives.
    #[inline(always)]
    fn depart(
        &mut self,
        departure: Instant,
        packet: PacketRef,
        scheduler: &mut Scheduler,
        duplicate: impl FnOnce() -> PacketRef,
    ) {
        if self.random {
            cold_path();
            return self.depart_at_random(departure, packet, scheduler, duplicate);
        }
        let arrival = departure + self.config.delay;
        self.fly(arrival, packet, Fate::Arrives, scheduler);
    }

    #[inline(never)]
    fn depart_at_random(
        &mut self,
        departure: Instant,
        packet: PacketRef,
        scheduler: &mut Scheduler,
        duplicate: impl FnOnce() -> PacketRef,
    ) {
        let mut arrival = departure + self.config.delay;
        let mut fate = Fate::Arrives;
        let mut lost = self.loss.next(departure, &mut self.stream);
        // what is lost by the time at which it was sent is lost before there are two of it
        let mut silent = self.loss.is_total(departure);
        if let Some((trace, _)) = self.trace.as_deref() {
            let (delay, loss) = trace.at(departure);
            arrival = departure + delay.unwrap_or(self.config.delay);
            lost |= loss.is_some_and(|p| self.stream.chance(p));
            silent |= loss.is_some_and(|p| p >= 1.0);
        }
        for silence in &self.silences {
            silent |= silence.covers(departure) && self.stream.chance(silence.loss);
        }
        if lost || silent {
            fate = Fate::Lost;
        } else if self.config.corrupt > 0.0 && self.stream.chance(self.config.corrupt) {
            fate = Fate::Corrupted;
        }
        if !self.config.jitter.is_zero() {
            arrival += self.jitter(departure);
        }
        if !self.config.reorder {
            arrival = arrival.max(self.last_arrival);
            self.last_arrival = arrival;
        }
        self.fly(arrival, packet, fate, scheduler);
        if self.config.duplicate > 0.0 && self.stream.chance(self.config.duplicate) && !silent {
            self.fly(arrival, duplicate(), Fate::Repeated, scheduler);
        }
    }

    /// Additional delay of a packet that is sent at `departure`.
    fn jitter(&mut self, departure: Instant) -> Duration {
        let mut draw = || Duration::from_nanos(self.stream.below(self.config.jitter.as_nanos() + 1));
        let Some(hold) = self.hold else { return draw() };
        let jitter = match self.held {
            Some((last, jitter)) if departure.since(last) <= hold => jitter,
            _ => draw(),
        };
        self.held = Some((departure, jitter));
        jitter
    }

    #[inline(always)]
    fn fly(&mut self, arrival: Instant, packet: PacketRef, fate: Fate, scheduler: &mut Scheduler) {
        if self.config.reorder {
            cold_path();
            return self.fly_loose(arrival, packet, fate, scheduler);
        }
        let ticket = scheduler.ticket(arrival);
        if self.flight.is_empty() {
            scheduler.next_arrival(self.index, Some(ticket));
        }
        self.flight.push(Flight {
            packet,
            fate,
            arrival: ticket,
        });
    }

    #[inline(never)]
    fn fly_loose(&mut self, arrival: Instant, packet: PacketRef, fate: Fate, scheduler: &mut Scheduler) {
        let (link, packet) = (self.index, packet.0);
        scheduler.at(arrival, Event::LooseArrival { link, packet, fate });
    }

    fn let_go(&mut self) {
        if let Some(set_up) = &mut self.set_up {
            set_up.sent = None;
        }
    }

    fn serve(&mut self, start: Instant, length: u32, scheduler: &mut Scheduler) {
        let done = self.sent_by(start, length);
        scheduler.at(
            done,
            Event::LinkDeparture {
                link: self.index,
                generation: self.generation,
            },
        );
    }

    /// Forgets the packets that have been sent by `now`.
    #[inline]
    fn forget_departed(&mut self, now: Instant) {
        if self.busy_until <= now {
            self.waiting.clear();
            self.waiting_bytes = 0;
            return;
        }
        while self.sending_until <= now
            && let Some((departure, length)) = self.waiting.pop_front()
        {
            self.sending_until = departure;
            self.waiting_bytes -= u64::from(length);
        }
    }

    /// Whether a packet of `length` fits behind the one being sent and `waiting` others.
    fn has_room(&self, waiting: usize, length: u32) -> bool {
        match self.config.queue {
            QueueLimit::Packets(n) => (waiting as u64) < n.count(),
            QueueLimit::Bytes(n) => self.waiting_bytes + u64::from(length) <= n.bytes(),
        }
    }

    /// When `length` bytes have been sent that begin at `start`.
    #[inline(always)]
    fn sent_by(&mut self, start: Instant, length: u32) -> Instant {
        // most packets of a direction are of one length
        if self.cached_time.0 == length && self.trace.is_none() {
            return start + self.cached_time.1;
        }
        self.work_out_sent_by(start, length)
    }

    #[inline(never)]
    fn work_out_sent_by(&mut self, start: Instant, length: u32) -> Instant {
        match &mut self.trace {
            None => {
                self.cached_time = (length, self.config.rate.time_for(u64::from(length)));
                start + self.cached_time.1
            }
            Some(trace) => trace.0.sent_by(&mut trace.1, start, length),
        }
    }
}

impl SetUp {
    /// When an idle link can begin to send at the earliest what it has from `now` on.
    fn done(&self, now: Instant) -> Instant {
        match self.sent {
            Some(sent) if now.since(sent) <= self.hold => now,
            _ => now + self.takes,
        }
    }
}

/// Urgent packets that wait at most: far more than there are.
const URGENT_QUEUE: usize = 100;

#[cfg(test)]
mod tests;
