//! Something of every path, kept by who needs it: of a path that came in the place of another it begins anew.

use super::ids::PathId;
use smallvec::SmallVec;

/// What is kept of each path.
#[derive(Debug)]
pub(in crate::sctp) struct PerPath<T>(SmallVec<[(PathId, T); 2]>);

impl<T> Default for PerPath<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T> PerPath<T> {
    #[inline]
    pub(in crate::sctp) fn get(&self, path: PathId) -> Option<&T> {
        // most associations have one, and it is the first
        match self.0.as_slice() {
            [(of, kept), ..] if *of == path => Some(kept),
            all => all.iter().find(|(of, _)| *of == path).map(|(_, kept)| kept),
        }
    }

    #[inline]
    pub(in crate::sctp) fn get_mut(&mut self, path: PathId) -> Option<&mut T> {
        let kept = self.0.iter_mut().find(|(of, _)| *of == path);
        kept.map(|(_, kept)| kept)
    }

    pub(in crate::sctp) fn iter(&self) -> impl Iterator<Item = (PathId, &T)> {
        self.0.iter().map(|(of, kept)| (*of, kept))
    }

    pub(in crate::sctp) fn iter_mut(&mut self) -> impl Iterator<Item = (PathId, &mut T)> {
        self.0.iter_mut().map(|(of, kept)| (*of, kept))
    }

    pub(in crate::sctp) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, kept)| kept)
    }

    /// The paths of which something is kept.
    pub(in crate::sctp) fn paths(&self) -> SmallVec<[PathId; 4]> {
        self.0.iter().map(|(of, _)| *of).collect()
    }
}

impl<T: Default> PerPath<T> {
    /// That of a path, begun if need be: in the place of one whose path is gone.
    #[inline]
    pub(in crate::sctp) fn open(&mut self, path: PathId) -> &mut T {
        let at = match self.0.first() {
            Some((of, _)) if *of == path => 0,
            _ => self.place(path),
        };
        &mut self.0[at].1
    }

    #[inline(never)]
    fn place(&mut self, path: PathId) -> usize {
        if let Some(known) = self.0.iter().position(|(of, _)| *of == path) {
            return known;
        }
        let begun = (path, T::default());
        match self.0.iter().position(|(of, _)| of.place() == path.place()) {
            Some(at) => {
                self.0[at] = begun;
                at
            }
            None => {
                self.0.push(begun);
                self.0.len() - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sctp::ids::Paths;
    use crate::sctp::slots::Slots;

    #[test]
    fn what_came_in_the_place_of_another_begins_anew() {
        let mut slots: Slots<Paths, ()> = Slots::default();
        let [a, b] = [(); 2].map(|()| slots.insert(()));
        let mut kept = PerPath::<u32>::default();
        *kept.open(a) = 1;
        *kept.open(b) = 2;
        slots.remove(a);
        let c = slots.insert(());
        assert_eq!((kept.get(a), kept.get(c)), (Some(&1), None));
        assert_eq!(*kept.open(c), 0);
        assert_eq!((kept.get(a), kept.get(b)), (None, Some(&2)));
        assert_eq!(kept.paths().as_slice(), [c, b]);
    }
}
