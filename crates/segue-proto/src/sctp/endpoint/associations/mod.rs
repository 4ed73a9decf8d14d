//! All associations of an endpoint: each by its identifier, by all that a packet may name it by, by its next timer, and
//! whether it has something to send or to tell.

mod deadlines;
#[cfg(test)]
mod identifiers;
mod index;
mod line;
mod lookup;

use crate::contract::Departure;
use crate::sctp::association::Association;
use crate::sctp::{AssociationId, Counters, Event};
use crate::time::Instant;
use core::hint::cold_path;
use core::net::Ipv6Addr;
use deadlines::Deadlines;
use index::{Index, Keys};
use line::Line;
use segue_wire::Packet;

/// The associations that there are, and those that have ended and have something left to tell.
#[derive(Default)]
pub(super) struct Associations {
    /// By ascending id.
    slots: Vec<Slot>,
    /// Of all slots; but what has changed is listed anew only before somebody looks here.
    index: Index,
    /// Those that may have changed since.
    unlisted: Vec<AssociationId>,
    /// How many are listed with a path that carries less than the interfaces do.
    reduced: usize,
    /// By place among the slots.
    deadlines: Deadlines,
    /// Counters of associations that are forgotten.
    ended: Counters,
    next_id: u64,
    /// Where the association of the last packet is looked for first: most packets are for the same one again.
    last: usize,
    /// The tag that it had then.
    last_tag: u32,
    /// Associations touched since they were last drained.
    to_transmit: Line,
    to_notify: Line,
    /// Some association may have nothing left to tell.
    has_ended: bool,
    /// Looked at on behalf of packets.
    examined: u64,
}

struct Slot {
    id: AssociationId,
    association: Box<Association>,
    queued_transmit: bool,
    queued_notify: bool,
    /// `Associations::deadlines` has its earliest timer, which cannot have changed since.
    is_timed: bool,
    /// What `Associations::index` has of it.
    listed_keys: Option<Box<Keys>>,
    /// It is counted in `Associations::reduced`.
    is_reduced: bool,
    /// It is among `Associations::unlisted`.
    unlisted: bool,
}

impl Slot {
    /// Whether it is listed under what it has, or will be.
    #[inline(always)]
    fn is_as_listed(&self) -> bool {
        let is_gone = self.listed_keys.is_none();
        self.unlisted || self.association.is_as_listed() && self.association.is_closed() == is_gone
    }
}

impl Associations {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many were looked at on behalf of packets.
    pub(super) fn examined(&self) -> u64 {
        self.examined
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (AssociationId, &Association)> {
        self.slots.iter().map(|s| (s.id, &*s.association))
    }

    /// Counters of all together, those included that are forgotten.
    pub(super) fn totals(&self) -> Counters {
        let mut totals = self.ended;
        for slot in &self.slots {
            totals.add(&slot.association.counters());
        }
        totals
    }

    pub(super) fn insert(&mut self, association: Association) -> AssociationId {
        self.reap();
        self.list_touched();
        let id = AssociationId(self.next_id);
        self.next_id += 1;
        self.slots.push(Slot {
            id,
            association: Box::new(association),
            queued_transmit: false,
            queued_notify: false,
            is_timed: true,
            listed_keys: None,
            is_reduced: false,
            unlisted: false,
        });
        self.touch(self.slots.len() - 1);
        id
    }

    pub(super) fn get(&self, id: AssociationId) -> Option<&Association> {
        self.slot_of(id).map(|place| &*self.slots[place].association)
    }

    /// An association for its user to command: whatever it will have to send or to tell is asked for.
    #[inline]
    pub(super) fn lend(&mut self, id: AssociationId) -> Option<&mut Association> {
        let place = self.slot_of(id)?;
        self.touch(place);
        // what becomes of it there is not seen here
        self.mark_unlisted(place);
        Some(&mut self.slots[place].association)
    }

    /// Commands an association: whatever it has to send or to tell then is asked for. `None` if there is no such one.
    pub(super) fn command<R>(
        &mut self,
        id: AssociationId,
        command: impl FnOnce(&mut Association) -> R,
    ) -> Option<R> {
        let place = self.slot_of(id)?;
        let result = command(&mut self.slots[place].association);
        self.touch(place);
        Some(result)
    }

    /// Commands all.
    pub(super) fn command_all(&mut self, mut command: impl FnMut(&mut Association)) {
        for place in 0..self.slots.len() {
            command(&mut self.slots[place].association);
            self.touch(place);
        }
    }

    /// Gives an association something after which it is asked whether it has anything to send or to tell.
    #[inline(always)]
    pub(super) fn give<R>(
        &mut self,
        id: AssociationId,
        give: impl FnOnce(&mut Association) -> R,
    ) -> Option<R> {
        let place = self.slot_of(id)?;
        let association = &mut self.slots[place].association;
        let result = give(association);
        let (sends, tells) = (association.may_transmit(), association.has_events());
        self.queue(place, sends, tells);
        Some(result)
    }

    /// Asks an association for something that changes at most what it is found by.
    pub(super) fn ask<R>(&mut self, id: AssociationId, ask: impl FnOnce(&mut Association) -> R) -> Option<R> {
        let place = self.slot_of(id)?;
        let result = ask(&mut self.slots[place].association);
        self.list(place);
        Some(result)
    }

    /// Lets go of one that has ended, with whatever it still has to tell. Returns false if it has not ended.
    pub(super) fn forget(&mut self, id: AssociationId) -> bool {
        match self.slot_of(id) {
            Some(place) if self.slots[place].association.is_closed() => {
                self.slots[place].association.discard_events_and_messages();
                self.touch(place);
                true
            }
            _ => false,
        }
    }

    /// Forgets those that ended and have nothing left to tell.
    #[inline]
    pub(super) fn reap(&mut self) {
        if core::mem::take(&mut self.has_ended) {
            self.forget_ended();
        }
    }

    #[inline(never)]
    fn forget_ended(&mut self) {
        self.list_deadlines();
        let slots = &self.slots;
        let stays = |place: usize| slots.get(place).is_some_and(|s| !s.association.is_done());
        self.deadlines.retain(stays);
        let (ended, reduced, index) = (&mut self.ended, &mut self.reduced, &mut self.index);
        self.slots.retain_mut(|s| {
            let done = s.association.is_done();
            if done {
                ended.add(&s.association.counters());
                *reduced -= usize::from(s.is_reduced);
                index.update(s.id, &mut s.listed_keys, &s.association);
            }
            !done
        });
        self.last = 0;
    }

    /// Works off the timers that are due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        for place in self.deadlines.due(now) {
            self.slots[place].association.handle_timeout(now);
            self.touch(place);
        }
    }

    /// The earliest timer of all.
    #[inline]
    pub(super) fn poll_timeout(&mut self) -> Option<Instant> {
        self.list_deadlines();
        self.deadlines.first()
    }

    /// Whether some association may have something to send. `false` is certain.
    #[inline]
    pub(super) fn may_transmit(&self) -> bool {
        !self.to_transmit.is_empty()
    }

    /// Writes the next packet that an association sends to `packet`.
    pub(super) fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<Departure> {
        while let Some(id) = self.to_transmit.first() {
            if let Some(place) = self.slot_of(id) {
                // sending starts timers
                self.forget_deadline(place);
                let association = &mut self.slots[place].association;
                if let Some(interface) = association.poll_transmit_into(now, packet) {
                    let departure = Departure {
                        interface,
                        busy_since: association.busy_since(),
                    };
                    if !association.may_transmit() {
                        self.has_sent_all(place);
                        self.to_transmit.advance();
                    }
                    self.prepare_for_carrier();
                    return Some(departure);
                }
                self.has_sent_all(place);
            }
            self.to_transmit.advance();
        }
        None
    }

    /// An association has nothing left to send.
    #[inline(always)]
    fn has_sent_all(&mut self, place: usize) {
        self.note_changes(place);
        let slot = &mut self.slots[place];
        slot.queued_transmit = false;
        self.has_ended |= slot.association.is_done();
        // sending may have events of its own
        if !slot.queued_notify && slot.association.has_events() {
            slot.queued_notify = true;
            self.to_notify.push(slot.id);
        }
    }

    /// Whether some association may have something to tell. `false` is certain.
    #[inline]
    pub(super) fn has_events(&self) -> bool {
        !self.to_notify.is_empty()
    }

    /// The next event.
    pub(super) fn poll_event(&mut self) -> Option<(AssociationId, Event)> {
        while let Some(id) = self.to_notify.first() {
            if let Some(place) = self.slot_of(id) {
                if let Some(event) = self.slots[place].association.poll_event() {
                    return Some((id, event));
                }
                self.slots[place].queued_notify = false;
                self.has_ended |= self.slots[place].association.is_done();
            }
            self.to_notify.advance();
        }
        None
    }

    /// A packet leaves: whoever carries it asks what carries it, [`reduced_mtu`](Self::reduced_mtu), and where there are several
    /// they are looked for.
    #[inline]
    pub(super) fn prepare_for_carrier(&mut self) {
        if self.slots.len() > 1 && !self.unlisted.is_empty() {
            cold_path();
            self.list_touched();
        }
    }

    /// Longest packet towards `destination`, if less than configured. To be asked of a packet that leaves.
    #[inline]
    pub(super) fn reduced_mtu(&self, destination: Ipv6Addr) -> Option<u32> {
        // asked for every packet
        if let [only] = self.slots.as_slice() {
            let open = Some(&only.association).filter(|a| !a.is_closed());
            return open.and_then(|a| a.reduced_mtu(destination));
        }
        if self.reduced == 0 {
            return None;
        }
        cold_path();
        self.reduced_mtu_of_any(destination)
    }

    #[inline(never)]
    fn reduced_mtu_of_any(&self, destination: Ipv6Addr) -> Option<u32> {
        self.index
            .towards(destination)
            .filter_map(|id| self.get(id)?.reduced_mtu(destination))
            .min()
    }

    /// Whether all will be found by what they have. For tests.
    pub(super) fn index_is_complete(&self) -> bool {
        let mut index = self.index.clone();
        let reduced = |s: &&Slot| s.is_reduced != s.association.has_reduced_mtu() && !s.unlisted;
        if self.slots.iter().any(|s| reduced(&s)) {
            return false;
        }
        for slot in self.slots.iter().filter(|s| s.unlisted) {
            index.update(slot.id, &mut slot.listed_keys.clone(), &slot.association);
        }
        index.is_of(self.iter())
    }

    #[inline]
    fn slot_of(&self, id: AssociationId) -> Option<usize> {
        match self.slots.get(self.last) {
            Some(slot) if slot.id == id => Some(self.last),
            _ => self.slot_of_another(id),
        }
    }

    #[cold]
    fn slot_of_another(&self, id: AssociationId) -> Option<usize> {
        place_of(&self.slots, id)
    }

    fn touch(&mut self, place: usize) {
        self.queue(place, true, true);
    }

    #[inline(always)]
    fn queue(&mut self, place: usize, sends: bool, tells: bool) {
        let slot = &self.slots[place];
        let is_queued = (slot.queued_transmit || !sends) && (slot.queued_notify || !tells);
        // most that is read was told of just now
        if !(is_queued && !slot.is_timed && slot.is_as_listed()) {
            self.queue_anew(place, sends, tells);
        }
    }

    #[inline(never)]
    fn queue_anew(&mut self, place: usize, sends: bool, tells: bool) {
        self.forget_deadline(place);
        self.note_changes(place);
        let slot = &mut self.slots[place];
        if sends && !slot.queued_transmit {
            slot.queued_transmit = true;
            self.to_transmit.push(slot.id);
        }
        if tells && !slot.queued_notify {
            slot.queued_notify = true;
            self.to_notify.push(slot.id);
        }
    }

    /// The timers of an association may have changed.
    #[inline]
    fn forget_deadline(&mut self, place: usize) {
        if core::mem::take(&mut self.slots[place].is_timed) {
            self.deadlines.mark_stale(place);
        }
    }

    #[inline]
    fn list_deadlines(&mut self) {
        while let Some(place) = self.deadlines.next_stale() {
            let slot = &mut self.slots[place];
            slot.is_timed = true;
            self.deadlines.set(place, slot.association.poll_timeout());
        }
    }

    /// If the addresses or tags of an association are others now, it will be listed anew.
    #[inline]
    fn note_changes(&mut self, place: usize) {
        if !self.slots[place].is_as_listed() {
            cold_path();
            self.mark_unlisted(place);
        }
    }

    /// The addresses or tags of an association may have changed.
    #[inline]
    fn mark_unlisted(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        if !slot.unlisted {
            slot.unlisted = true;
            self.unlisted.push(slot.id);
        }
    }

    /// Lists what has been touched under what it has now. To be called before the index is looked at.
    #[inline(never)]
    fn list_touched(&mut self) {
        while let Some(id) = self.unlisted.pop() {
            if let Some(place) = self.slot_of(id) {
                self.slots[place].unlisted = false;
                self.list(place);
            }
        }
    }

    fn list(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        self.index
            .update(slot.id, &mut slot.listed_keys, &slot.association);
        slot.association.note_listed();
        self.reduced -= usize::from(slot.is_reduced);
        slot.is_reduced = slot.association.has_reduced_mtu();
        self.reduced += usize::from(slot.is_reduced);
    }
}

/// Where the association of this name is.
fn place_of(slots: &[Slot], id: AssociationId) -> Option<usize> {
    // where none between it and the first has ended, as far behind that as the names are apart; no further in any case
    let first = slots.first()?.id;
    let apart = usize::try_from(id.0.checked_sub(first.0)?).ok()?;
    match slots.get(apart) {
        Some(slot) if slot.id == id => Some(apart),
        _ => {
            let before = &slots[..apart.min(slots.len())];
            before.binary_search_by_key(&id, |s| s.id).ok()
        }
    }
}
