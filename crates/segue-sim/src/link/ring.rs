//! A queue in a ring.

/// A queue of small values in a ring of a power of two places. Pushing is a part of its caller: what is pushed is written
/// once and where it stays, and not handed over in memory, which a processor waits for that has just written it in parts.
#[derive(Debug)]
pub(super) struct Ring<T> {
    places: Vec<T>,
    /// Place of the first.
    first: usize,
    len: usize,
}

impl<T: Copy> Ring<T> {
    pub const fn new() -> Self {
        Self {
            places: Vec::new(),
            first: 0,
            len: 0,
        }
    }

    pub const fn len(&self) -> usize {
        self.len
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a value at the end.
    #[inline(always)]
    pub fn push(&mut self, value: T) {
        if self.len == self.places.len() {
            self.grow(value);
        }
        let place = self.place(self.len);
        self.places[place] = value;
        self.len += 1;
    }

    /// Takes the first value.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        let first = *self.front()?;
        self.first = self.place(1);
        self.len -= 1;
        Some(first)
    }

    /// The first value.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        (self.len > 0).then(|| &self.places[self.first])
    }

    /// All values, the first first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        (0..self.len).map(|index| &self.places[self.place(index)])
    }

    /// Keeps the first `len` values.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Where value `index` is, or the next one would be, if there is room for any.
    #[inline(always)]
    fn place(&self, index: usize) -> usize {
        (self.first + index) & (self.places.len() - 1)
    }

    #[cold]
    fn grow(&mut self, filler: T) {
        let room = (2 * self.len).max(LEAST);
        let mut places = Vec::with_capacity(room);
        places.extend(self.iter());
        places.resize(room, filler);
        (self.places, self.first) = (places, 0);
    }
}

/// Places of a ring that anything was ever in.
const LEAST: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use segue_proto::random::Stream;
    use std::collections::VecDeque;

    #[test]
    fn a_ring_is_a_queue() {
        let mut random = Stream::new(5, "ring");
        let (mut ring, mut queue) = (Ring::new(), VecDeque::new());
        for n in 0..5000 {
            match random.below(20) {
                0..10 => {
                    ring.push(n);
                    queue.push_back(n);
                }
                10..19 => assert_eq!(ring.pop(), queue.pop_front()),
                _ if n % 100 == 0 => {
                    ring.truncate(3);
                    queue.truncate(3);
                }
                _ => {}
            }
            assert_eq!((ring.len(), ring.is_empty()), (queue.len(), queue.is_empty()));
            assert_eq!(ring.front(), queue.front());
            assert!(ring.iter().eq(&queue) && ring.iter().rev().eq(queue.iter().rev()));
            assert!(ring.places.is_empty() || ring.places.len().is_power_of_two());
        }
    }
}
