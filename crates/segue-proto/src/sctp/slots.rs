//! Things that come and go, in places that are used again, under names that are not.
//!
//! A place is the lowest that is free, so that the order of things is that in which they came as far as none has gone:
//! rules that go "to the next in order" need that. A name has a generation beside the place: what outlives the thing that it
//! names finds nothing, and not what came after it.

use core::marker::PhantomData;
use core::num::NonZeroU32;
use core::ops::{Index, IndexMut};
use smallvec::SmallVec;

/// A name of a thing of one kind.
pub(in crate::sctp) struct Id<K> {
    place: u8,
    generation: NonZeroU32,
    kind: PhantomData<fn() -> K>,
}

impl<T> Id<T> {
    fn new(place: usize, generation: NonZeroU32) -> Self {
        Self {
            place: u8::try_from(place).unwrap_or(u8::MAX),
            generation,
            kind: PhantomData,
        }
    }

    /// Its place in the order of things.
    pub(in crate::sctp) fn place(self) -> u8 {
        self.place
    }

    fn index(self) -> usize {
        usize::from(self.place)
    }

    /// The name of the first thing in a place.
    #[cfg(test)]
    pub(in crate::sctp) const fn first_at(place: u8) -> Self {
        Self {
            place,
            generation: NonZeroU32::MIN,
            kind: PhantomData,
        }
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.place, self.generation) == (other.place, other.generation)
    }
}

impl<T> Eq for Id<T> {}

impl<T> core::fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}", self.place, self.generation)
    }
}

/// The thing in a place, if there is one.
#[derive(Debug)]
struct Slot<T> {
    generation: NonZeroU32,
    value: Option<T>,
}

/// Things by name and in order.
#[derive(Debug)]
pub(in crate::sctp) struct Slots<K, T> {
    slots: SmallVec<[Slot<T>; 2]>,
    kind: PhantomData<fn() -> K>,
}

impl<K, T> Default for Slots<K, T> {
    fn default() -> Self {
        Self {
            slots: SmallVec::new(),
            kind: PhantomData,
        }
    }
}

impl<K, T> Slots<K, T> {
    /// Most places.
    pub(in crate::sctp) const MOST: usize = u8::MAX as usize;

    /// The name that the next thing gets; `None` if there is no place.
    pub(in crate::sctp) fn next_id(&self) -> Option<Id<K>> {
        match self.slots.iter().position(|s| s.value.is_none()) {
            Some(free) => Some(Id::new(free, self.slots[free].generation.saturating_add(1))),
            None if self.slots.len() < Self::MOST => Some(Id::new(self.slots.len(), NonZeroU32::MIN)),
            None => None,
        }
    }

    /// Takes a thing in. There must be a place: [`next_id`](Self::next_id) tells.
    pub(in crate::sctp) fn insert(&mut self, value: T) -> Id<K> {
        let id = self.next_id().expect("a place that is free");
        let slot = Slot {
            generation: id.generation,
            value: Some(value),
        };
        match self.slots.get_mut(id.index()) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        id
    }

    /// Puts another thing in the place of one: its name names nothing from now on, and the new one has another.
    pub(in crate::sctp) fn replace(&mut self, id: Id<K>, value: T) -> Option<Id<K>> {
        self.get(id)?;
        let slot = self.slots.get_mut(id.index())?;
        slot.generation = slot.generation.saturating_add(1);
        slot.value = Some(value);
        Some(Id::new(id.index(), slot.generation))
    }

    /// Takes a thing out.
    pub(in crate::sctp) fn remove(&mut self, id: Id<K>) -> Option<T> {
        let slot = self.slots.get_mut(id.index())?;
        slot.value.take_if(|_| slot.generation == id.generation)
    }

    #[inline]
    pub(in crate::sctp) fn get(&self, id: Id<K>) -> Option<&T> {
        let slot = self.slots.get(id.index())?;
        slot.value.as_ref().filter(|_| slot.generation == id.generation)
    }

    #[inline]
    pub(in crate::sctp) fn get_mut(&mut self, id: Id<K>) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.index())?;
        slot.value.as_mut().filter(|_| slot.generation == id.generation)
    }

    pub(in crate::sctp) fn contains(&self, id: Id<K>) -> bool {
        self.get(id).is_some()
    }

    /// How many there are.
    pub(in crate::sctp) fn len(&self) -> usize {
        self.values().count()
    }

    /// Whether there has never been another than the first.
    pub(in crate::sctp) fn has_had_one(&self) -> bool {
        matches!(self.slots.as_slice(), [only] if only.generation == NonZeroU32::MIN)
    }

    /// In order.
    pub(in crate::sctp) fn iter(&self) -> impl DoubleEndedIterator<Item = (Id<K>, &T)> + Clone {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(place, s)| Some((Id::new(place, s.generation), s.value.as_ref()?)))
    }

    pub(in crate::sctp) fn iter_mut(&mut self) -> impl Iterator<Item = (Id<K>, &mut T)> {
        let slots = self.slots.iter_mut().enumerate();
        slots.filter_map(|(place, s)| Some((Id::new(place, s.generation), s.value.as_mut()?)))
    }

    pub(in crate::sctp) fn values(&self) -> impl Iterator<Item = &T> + Clone {
        self.slots.iter().filter_map(|s| s.value.as_ref())
    }

    pub(in crate::sctp) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|s| s.value.as_mut())
    }

    /// The names of those that there are now.
    pub(in crate::sctp) fn ids(&self) -> SmallVec<[Id<K>; 4]> {
        self.iter().map(|(id, _)| id).collect()
    }

    /// All others, those behind `id` first.
    pub(in crate::sctp) fn after(&self, id: Id<K>) -> impl Iterator<Item = (Id<K>, &T)> {
        let behind = self.iter().filter(move |(other, _)| other.place > id.place);
        let before = self
            .iter()
            .filter(move |(other, _)| other.place <= id.place && *other != id);
        behind.chain(before)
    }
}

impl<K, T> Index<Id<K>> for Slots<K, T> {
    type Output = T;

    #[inline]
    #[track_caller]
    fn index(&self, id: Id<K>) -> &T {
        self.get(id).expect("a thing that is named is there")
    }
}

impl<K, T> IndexMut<Id<K>> for Slots<K, T> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, id: Id<K>) -> &mut T {
        self.get_mut(id).expect("a thing that is named is there")
    }
}

/// Tests look at what is in a place.
#[cfg(test)]
impl<K, T> Index<usize> for Slots<K, T> {
    type Output = T;

    fn index(&self, place: usize) -> &T {
        self.slots[place].value.as_ref().expect("something is there")
    }
}

#[cfg(test)]
impl<K, T> IndexMut<usize> for Slots<K, T> {
    fn index_mut(&mut self, place: usize) -> &mut T {
        self.slots[place].value.as_mut().expect("something is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_and_a_name_is_not() {
        let mut slots: Slots<(), _> = Slots::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| slots.insert(name));
        assert_eq!(slots.remove(a), Some("a"));
        assert_eq!(slots.remove(a), None);
        assert_eq!((slots.get(a), slots.len()), (None, 2));
        let next = slots.next_id();
        let d = slots.insert("d");
        assert_eq!(next, Some(d));
        assert_eq!((d.place(), slots.get(a), slots[d]), (0, None, "d"));
        assert!(slots.contains(b) && !slots.contains(a) && a != d);
        let order: Vec<_> = slots.iter().map(|(_, name)| *name).collect();
        assert_eq!(order, ["d", "b", "c"]);
        let after: Vec<_> = slots.after(b).map(|(id, _)| id).collect();
        assert_eq!(after, [c, d]);
        let after: Vec<_> = slots.after(a).map(|(id, _)| id).collect();
        assert_eq!(after, [b, c, d], "what came in its place is the last");
    }

    #[test]
    fn what_takes_the_place_of_another_has_another_name() {
        let mut slots: Slots<(), _> = Slots::default();
        let a = slots.insert("a");
        assert!(slots.has_had_one());
        let b = slots.replace(a, "b").expect("it is there");
        assert_eq!((slots.get(a), slots[b], b.place()), (None, "b", 0));
        assert!(!slots.has_had_one() && slots.replace(a, "c").is_none());
        slots.remove(b);
        assert!(slots.insert("d") != b);
        // nor was there one alone if there were two
        let mut slots: Slots<(), _> = Slots::default();
        let [_, b] = ["a", "b"].map(|name| slots.insert(name));
        slots.remove(b);
        assert!(!slots.has_had_one());
    }

    #[test]
    fn places_come_to_an_end() {
        let mut slots: Slots<(), usize> = Slots::default();
        for n in 0..Slots::<(), usize>::MOST {
            slots.insert(n);
        }
        assert_eq!(slots.next_id(), None);
        let ids = slots.ids();
        slots.remove(ids[7]);
        assert_eq!(slots.insert(999).place(), 7);
    }
}
