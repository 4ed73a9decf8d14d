//! The connections of an endpoint: by id, by the pair of their addresses and ports, and by their timers.

use super::connection::Connection;
use super::ends::Pair;
use super::event::{ConnectionId, Event};
use crate::earliest::Earliest;
use crate::time::Instant;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// All connections, each at a place that changes as others go.
#[derive(Default)]
pub(super) struct Connections {
    /// By ascending id.
    slots: Vec<Slot>,
    by_pair: BTreeMap<Pair, ConnectionId>,
    next_id: u64,
    /// Place that the last segment was for: most are for the same one again.
    last: usize,
    /// The earliest timer of all; the outer `None` when it may have changed.
    deadline: Option<Option<Instant>>,
    /// Timers by place, but for those of `changed`.
    timers: Earliest,
    /// Places of connections whose timers may have changed.
    changed: Vec<usize>,
}

struct Slot {
    id: ConnectionId,
    connection: Box<Connection>,
    timer_may_have_changed: bool,
    queued_transmit: bool,
    queued_notify: bool,
}

/// What a connection is to be asked for that was not going to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    /// The connection.
    pub id: ConnectionId,
    /// Segments.
    pub transmit: bool,
    /// Events.
    pub notify: bool,
}

impl Connections {
    /// How many.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is one between these ends.
    pub fn contains(&self, pair: &Pair) -> bool {
        self.by_pair.contains_key(pair)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.slots.iter().map(|s| (s.id, &*s.connection))
    }

    /// The place of a connection.
    #[inline]
    pub fn place_of(&self, id: ConnectionId) -> Option<usize> {
        place(&self.slots, id)
    }

    /// The place of the connection between these ends.
    #[inline]
    pub fn find(&mut self, pair: &Pair) -> Option<usize> {
        if let Some(slot) = self.slots.get(self.last)
            && slot.connection.is_between(pair)
        {
            return Some(self.last);
        }
        let id = *self.by_pair.get(pair)?;
        self.last = self.place_of(id)?;
        Some(self.last)
    }

    /// The connection at a place.
    #[inline]
    pub fn at(&self, place: usize) -> &Connection {
        &self.slots[place].connection
    }

    /// Has `act` do something with the connection at a place, of which timers may change. It is to be asked for what it has
    /// to send and to tell: see [`queue`](Self::queue).
    #[inline]
    pub fn act<T>(&mut self, place: usize, act: impl FnOnce(&mut Connection) -> T) -> T {
        self.timers_change(place);
        act(&mut self.slots[place].connection)
    }

    /// The next event of the connection at a place.
    #[inline]
    pub fn take_event(&mut self, place: usize) -> Option<Event> {
        self.slots[place].connection.poll_event()
    }

    /// Notes that the connection at a place has something to send or to tell, for a queue that it stands in once at a time.
    #[inline]
    pub fn queue(&mut self, place: usize, transmit: bool, notify: bool) -> Queued {
        let slot = &mut self.slots[place];
        Queued {
            id: slot.id,
            transmit: transmit && !core::mem::replace(&mut slot.queued_transmit, true),
            notify: notify && !core::mem::replace(&mut slot.queued_notify, true),
        }
    }

    /// The connection at a place has left the queue of those that have something to send.
    #[inline]
    pub fn has_transmitted(&mut self, place: usize) {
        self.slots[place].queued_transmit = false;
    }

    /// The connection at a place has left the queue of those that have something to tell.
    #[inline]
    pub fn has_notified(&mut self, place: usize) {
        self.slots[place].queued_notify = false;
    }

    /// Adds a connection, and gives its place, the last.
    pub fn insert(&mut self, connection: Connection) -> (ConnectionId, usize) {
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        self.by_pair.insert(connection.pair(), id);
        self.slots.push(Slot {
            id,
            connection: Box::new(connection),
            timer_may_have_changed: false,
            queued_transmit: false,
            queued_notify: false,
        });
        let place = self.slots.len() - 1;
        self.timers_change(place);
        (id, place)
    }

    /// Lets go of the connection at a place.
    #[inline(never)]
    pub fn remove(&mut self, place: usize) {
        self.look_at_changed();
        self.timers.retain(|other| other != place);
        let slot = self.slots.remove(place);
        self.by_pair.remove(&slot.connection.pair());
        self.deadline = None;
    }

    /// The earliest timer of all.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        if let Some(known) = self.deadline {
            return known;
        }
        let first = match self.slots.as_slice() {
            [only] => only.connection.poll_timeout(),
            _ => {
                self.look_at_changed();
                self.timers.first()
            }
        };
        self.deadline = Some(first);
        first
    }

    /// The places of connections of which a timer is due, in order.
    pub fn due(&mut self, now: Instant) -> SmallVec<[usize; 4]> {
        self.look_at_changed();
        self.timers.due(now)
    }

    fn look_at_changed(&mut self) {
        for place in self.changed.drain(..) {
            let slot = &mut self.slots[place];
            slot.timer_may_have_changed = false;
            self.timers.set(place, slot.connection.poll_timeout());
        }
    }

    /// The timers of a connection may change. A single one is asked when the time is wanted.
    #[inline]
    fn timers_change(&mut self, place: usize) {
        self.deadline = None;
        if !core::mem::replace(&mut self.slots[place].timer_may_have_changed, true) {
            self.changed.push(place);
        }
    }
}

/// The place of this id: they ascend.
#[inline]
fn place(slots: &[Slot], id: ConnectionId) -> Option<usize> {
    match slots {
        [only] if only.id == id => Some(0),
        slots => slots.binary_search_by_key(&id, |s| s.id).ok(),
    }
}

#[cfg(test)]
impl Connections {
    /// As if so many connections had been there before.
    pub fn begin_ids_at(&mut self, next: u64) {
        self.next_id = next;
    }
}
