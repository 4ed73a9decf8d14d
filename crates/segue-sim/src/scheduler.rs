//! The event queue: events in order of (time, sequence number).
//!
//! Nearly all of them are arrivals by links. Those of one link come in order, so that only the next of each link is here,
//! in a [`Tournament`]; everything else is in a heap.

mod tournament;

use crate::link::Fate;
use segue_proto::Instant;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use tournament::Tournament;

/// What is to happen. Small and `Copy`: packets wait in the components that they are in, not in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The packet at the head of a link's flight arrives. Not queued, but announced by
    /// [`Scheduler::next_arrival`].
    LinkArrival(u32),
    /// A link with a head-of-line queue has sent the packet at the head; `generation` tells a stale event.
    LinkDeparture {
        /// Link.
        link: u32,
        /// Generation of the link's schedule.
        generation: u32,
    },
    /// A packet arrives out of order on a link that reorders.
    LooseArrival {
        /// Link.
        link: u32,
        /// Packet.
        packet: u32,
        /// How it fares.
        fate: Fate,
    },
    /// A node's timer.
    NodeTimer {
        /// Node.
        node: u32,
        /// Generation of the node's timer.
        generation: u32,
    },
    /// A radio channel's contention ends or its transmission ends.
    Channel {
        /// Channel.
        channel: u32,
        /// Generation of the channel's schedule.
        generation: u32,
    },
    /// In a direction of a cell whose bearers share it a packet has been sent, or a turn is over.
    CellTurn {
        /// Twice the number of the cell, and one more for the way from the hosts.
        direction: u32,
        /// Generation of its schedule.
        generation: u32,
    },
    /// A cell's beacon is due.
    Beacon(u32),
    /// An interface's layer-2 machine has a timeout.
    AttachmentTimer {
        /// Attachment.
        attachment: u32,
        /// Generation of its timer.
        generation: u32,
    },
    /// The mobile host reaches a point of its trajectory that somebody waits for.
    Waypoint(u32),
    /// A host on a way that is drawn reaches a place, or the end of what is known of it.
    Walk(u32),
    /// The position trace takes a sample.
    PositionSample,
    /// A link goes down or comes up, as the scenario says.
    LinkScript(u32),
    /// A prefix of a cell or an address of a host changes, as the scenario says.
    Readdressing(u32),
    /// A forged message is sent.
    Forgery(u32),
    /// Something is due at the directory.
    Directory,
    /// A node has worked off the packet at the head of its queue.
    Processed(u32),
    /// An application of a node begins.
    Start(u32),
}

/// A place in the order of events, drawn when the event is caused: time in the upper half, sequence number in the
/// lower, so that one comparison orders both. The lowest bits are left free for what a [`Tournament`] has to know.
///
/// Kept in halves, so that what has a ticket need not be aligned to 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    time: u64,
    rest: u64,
}

impl Ticket {
    /// After all others.
    const NEVER: Self = Self::of_key(u128::MAX << Self::FREE_BITS);

    /// Bits below the sequence number, for which 44 are enough: a run of years.
    const FREE_BITS: u32 = 20;

    const fn new(time: Instant, sequence: u64) -> Self {
        Self {
            time: time.as_nanos(),
            rest: sequence << Self::FREE_BITS,
        }
    }

    const fn of_key(key: u128) -> Self {
        Self {
            time: (key >> 64) as u64,
            rest: key as u64,
        }
    }

    /// The number to compare.
    const fn key(self) -> u128 {
        (self.time as u128) << 64 | self.rest as u128
    }

    /// When.
    #[must_use]
    pub const fn time(self) -> Instant {
        Instant::from_nanos(self.time)
    }
}

impl Ord for Ticket {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
impl PartialOrd for Ticket {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
    #[inline]
    fn lt(&self, other: &Self) -> bool {
        self.key() < other.key()
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    ticket: Ticket,
    event: Event,
}

/// The heap's order: the earliest ticket is the greatest.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.ticket.cmp(&self.ticket)
    }
}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.ticket == other.ticket
    }
}
impl Eq for Entry {}

/// The queue.
#[derive(Debug)]
pub struct Scheduler {
    arrivals: Tournament,
    heap: BinaryHeap<Entry>,
    /// The earliest ticket in the heap, but for the spent one.
    earliest: Ticket,
    next_sequence: u64,
    /// The entry at the top of the heap has been given out. It stays until the next one is queued, which takes its place:
    /// most events cause the next of their kind, and replacing costs half of removing and adding.
    spent: bool,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            arrivals: Tournament::default(),
            heap: BinaryHeap::new(),
            earliest: Ticket::NEVER,
            next_sequence: 0,
            spent: false,
        }
    }
}

impl Scheduler {
    /// Draws a place in the order for an event at `time`, to be queued now or later by [`Self::queue`].
    #[inline]
    pub fn ticket(&mut self, time: Instant) -> Ticket {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        Ticket::new(time, sequence)
    }

    /// Queues an event under a ticket drawn before.
    pub fn queue(&mut self, ticket: Ticket, event: Event) {
        let entry = Entry { ticket, event };
        if self.spent
            && let Some(mut top) = self.heap.peek_mut()
        {
            *top = entry;
            self.spent = false;
        } else {
            self.heap.push(entry);
        }
        self.note_earliest();
    }

    /// Draws a ticket and queues.
    pub fn at(&mut self, time: Instant, event: Event) {
        let ticket = self.ticket(time);
        self.queue(ticket, event);
    }

    /// When [`Event::LinkArrival`] of a link is due next: to be said when that is first known, and whenever the event was
    /// given out, which it is again otherwise.
    #[inline]
    pub fn next_arrival(&mut self, link: u32, ticket: Option<Ticket>) {
        self.arrivals.set(link, ticket.unwrap_or(Ticket::NEVER));
    }

    /// Takes the next event if it is due at or before `end`.
    pub fn pop_until(&mut self, end: Instant) -> Option<(Instant, Event)> {
        match self.pop_arrival_until(end) {
            Some((time, link)) => Some((time, Event::LinkArrival(link))),
            None => self.pop_other_until(end),
        }
    }

    /// The same if it is [`Event::LinkArrival`], as it nearly always is: of which link.
    #[inline(always)]
    pub fn pop_arrival_until(&mut self, end: Instant) -> Option<(Instant, u32)> {
        self.drop_spent();
        let (link, arrival) = self.arrivals.first();
        let due = self.earliest >= arrival && arrival.time() <= end && arrival != Ticket::NEVER;
        due.then(|| (arrival.time(), link))
    }

    /// The same if it is not.
    #[inline(never)]
    pub fn pop_other_until(&mut self, end: Instant) -> Option<(Instant, Event)> {
        self.drop_spent();
        if self.earliest < self.arrivals.first().1 {
            self.pop_heap_until(end)
        } else {
            None
        }
    }

    /// When the next event is due: for a driver that has to wait for it.
    pub fn next_time(&mut self) -> Option<Instant> {
        self.drop_spent();
        let (_, arrival) = self.arrivals.first();
        let next = self.earliest.min(arrival);
        (next != Ticket::NEVER).then(|| next.time())
    }

    fn pop_heap_until(&mut self, end: Instant) -> Option<(Instant, Event)> {
        let next = *self.heap.peek()?;
        self.spent = next.ticket.time() <= end;
        self.spent.then(|| (next.ticket.time(), next.event))
    }

    #[inline(always)]
    fn drop_spent(&mut self) {
        if self.spent {
            self.drop_top();
        }
    }

    #[inline(never)]
    fn drop_top(&mut self) {
        self.spent = false;
        self.heap.pop();
        self.note_earliest();
    }

    fn note_earliest(&mut self) {
        self.earliest = self.heap.peek().map_or(Ticket::NEVER, |next| next.ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_come_out_in_the_order_of_their_tickets() {
        let mut s = Scheduler::default();
        let t = Instant::from_nanos(5);
        let early = s.ticket(t);
        s.at(t, Event::Beacon(2));
        s.at(Instant::from_nanos(4), Event::Beacon(0));
        s.queue(early, Event::Beacon(1));
        let order: Vec<_> = std::iter::from_fn(|| s.pop_until(Instant::MAX))
            .map(|(_, e)| e)
            .collect();
        assert_eq!(order, [Event::Beacon(0), Event::Beacon(1), Event::Beacon(2)]);
    }

    #[test]
    fn arrivals_stand_in_the_same_order_as_all_else_until_the_next_is_announced() {
        let mut s = Scheduler::default();
        let t = Instant::from_nanos(5);
        let first = s.ticket(t);
        s.at(t, Event::Beacon(1));
        let second = s.ticket(t);
        s.next_arrival(3, Some(second));
        s.next_arrival(7, Some(first));
        assert_eq!(s.pop_until(Instant::from_nanos(4)), None);
        assert_eq!(s.pop_until(t), Some((t, Event::LinkArrival(7))));
        s.next_arrival(7, None);
        assert_eq!(s.pop_until(t), Some((t, Event::Beacon(1))));
        assert_eq!(s.next_time(), Some(t));
        assert_eq!(s.pop_until(t), Some((t, Event::LinkArrival(3))));
        assert_eq!(
            s.pop_until(t),
            Some((t, Event::LinkArrival(3))),
            "nobody said what comes next"
        );
        s.next_arrival(3, None);
        assert_eq!((s.next_time(), s.pop_until(Instant::MAX)), (None, None));
    }

    #[test]
    fn events_come_out_sorted_whatever_is_queued_in_between() {
        let mut scheduler = Scheduler::default();
        let mut random = segue_proto::random::Stream::new(1, "scheduler");
        let (mut queued, mut given) = (Vec::new(), Vec::new());
        let mut now = Instant::ZERO;
        for n in 0..5000u32 {
            let time = now + segue_proto::Duration::from_nanos(random.below(40));
            scheduler.at(time, Event::Beacon(n));
            queued.push((time, n));
            if random.chance(0.7)
                && let Some((time, Event::Beacon(n))) = scheduler.pop_until(Instant::MAX)
            {
                now = time;
                given.push((time, n));
            }
        }
        while let Some((time, Event::Beacon(n))) = scheduler.pop_until(Instant::MAX) {
            given.push((time, n));
        }
        // Numbers are given in the order of queueing, so that sorting by (time, number) is the order of tickets.
        queued.sort_unstable();
        assert_eq!(given, queued);
    }
}
