//! The event queue: events in order of (time, sequence number).

use crate::link::Fate;
use segue_proto::Instant;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What is to happen. Small and `Copy`: packets wait in the components that they are in, not in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The packet at the head of a link's flight arrives.
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
    /// The position trace takes a sample.
    PositionSample,
    /// A link goes down or comes up, as the scenario says.
    LinkScript(u32),
    /// A forged message is sent.
    Forgery(u32),
    /// Something is due at the directory.
    Directory,
    /// An application of a node begins.
    Start(u32),
}

/// A place in the order of events, drawn when the event is caused: time in the upper half, sequence number in the
/// lower, so that one comparison orders both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ticket(u128);

impl Ticket {
    /// When.
    #[must_use]
    pub const fn time(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
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
#[derive(Debug, Default)]
pub struct Scheduler {
    heap: BinaryHeap<Entry>,
    next_sequence: u64,
    /// The entry at the top has been given out. It stays until the next one is queued, which takes its place: most
    /// events cause the next of their kind, and replacing costs half of removing and adding.
    spent: bool,
}

impl Scheduler {
    /// Draws a place in the order for an event at `time`, to be queued now or later by [`Self::queue`].
    pub fn ticket(&mut self, time: Instant) -> Ticket {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        Ticket(u128::from(time.as_nanos()) << 64 | u128::from(sequence))
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
    }

    /// Draws a ticket and queues.
    pub fn at(&mut self, time: Instant, event: Event) {
        let ticket = self.ticket(time);
        self.queue(ticket, event);
    }

    /// Takes the next event if it is due at or before `end`.
    pub fn pop_until(&mut self, end: Instant) -> Option<(Instant, Event)> {
        if self.spent {
            self.heap.pop();
            self.spent = false;
        }
        let next = *self.heap.peek()?;
        if next.ticket.time() > end {
            return None;
        }
        self.spent = true;
        Some((next.ticket.time(), next.event))
    }

    /// When the next event is due: for a driver that has to wait for it.
    pub fn next_time(&mut self) -> Option<Instant> {
        if self.spent {
            self.heap.pop();
            self.spent = false;
        }
        self.heap.peek().map(|next| next.ticket.time())
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
