//! A list for what a long observation has a row of.

/// Values in a block.
const BLOCK: usize = 64;

/// A list that is added to, and grows by a block at a time. A vector that doubles copies what it has, into memory that nobody has
/// touched, and leaves behind what is too small for it the next time: over a long run it takes up to twice its values.
///
/// ```
/// let mut list = segue_capture::blocks::Blocks::default();
/// for number in 0..1000 {
///     list.push(number);
/// }
/// assert_eq!((list.len(), list.get(700), list.last()), (1000, Some(&700), Some(&999)));
/// assert!(list.iter().copied().eq(0..1000));
/// ```
#[derive(Clone, Debug)]
pub struct Blocks<T> {
    /// All but the last are full.
    blocks: Vec<Vec<T>>,
}

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self { blocks: Vec::new() }
    }
}

impl<T> Blocks<T> {
    /// Adds a value at the end.
    pub fn push(&mut self, value: T) {
        match self.blocks.last_mut() {
            Some(last) if last.len() < BLOCK => last.push(value),
            // most lists are short: the first block grows as it is needed
            None => self.blocks.push(vec![value]),
            Some(_) => {
                let mut block = Vec::with_capacity(BLOCK);
                block.push(value);
                self.blocks.push(block);
            }
        }
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        let last = self.blocks.last().map_or(0, Vec::len);
        self.blocks.len().saturating_sub(1) * BLOCK + last
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The value at a place.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.blocks.get(at / BLOCK)?.get(at % BLOCK)
    }

    /// The same, to be changed.
    #[must_use]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.blocks.get_mut(at / BLOCK)?.get_mut(at % BLOCK)
    }

    /// The value added last.
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.blocks.last()?.last()
    }

    /// The same, to be changed.
    #[must_use]
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.blocks.last_mut()?.last_mut()
    }

    /// All values, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flatten()
    }
}

impl<T> core::ops::Index<usize> for Blocks<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.blocks[at / BLOCK][at % BLOCK]
    }
}

impl<T> core::ops::IndexMut<usize> for Blocks<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.blocks[at / BLOCK][at % BLOCK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_places_at_the_borders_of_blocks() {
        let mut list = Blocks::default();
        assert!(list.is_empty() && list.last().is_none() && list.get(0).is_none());
        for number in 0..3 * BLOCK {
            assert_eq!(list.len(), number);
            list.push(number);
            assert_eq!((list.last(), list[number]), (Some(&number), number));
        }
        list[BLOCK] = 7;
        if let Some(value) = list.get_mut(2 * BLOCK - 1) {
            *value = 8;
        }
        if let Some(value) = list.last_mut() {
            *value = 9;
        }
        let changed = [(BLOCK, 7), (2 * BLOCK - 1, 8), (3 * BLOCK - 1, 9)];
        let expected =
            (0..3 * BLOCK).map(|n| changed.iter().find(|(at, _)| *at == n).map_or(n, |(_, to)| *to));
        assert!(list.iter().copied().eq(expected));
        assert_eq!(list.get(3 * BLOCK), None);
    }

    #[test]
    fn what_is_there_stays_where_it_is() {
        let mut list = Blocks::default();
        (0..2 * BLOCK).for_each(|number| list.push(number));
        let place = |list: &Blocks<usize>| core::ptr::from_ref(&list[BLOCK]);
        let before = place(&list);
        (0..100 * BLOCK).for_each(|number| list.push(number));
        assert_eq!(place(&list), before);
    }
}
