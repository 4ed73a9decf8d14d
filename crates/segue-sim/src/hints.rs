//! Where something was found last: for what is looked up for every packet, in a tree that holds much.

/// What was found last, by a hash of what it was looked up by: a place to look before the tree, or the one beside it. It may be
/// another's, or nobody's any more; whoever asks compares.
#[derive(Debug)]
pub(crate) struct Hints<T> {
    /// A power of two of them, or none.
    latest: Vec<Option<T>>,
}

impl<T> Default for Hints<T> {
    fn default() -> Self {
        Self { latest: Vec::new() }
    }
}

impl<T: Copy> Hints<T> {
    /// What was found last for something with this hash, if it is what is looked for.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let place = self.place(hash);
        let known = |place: usize| self.latest.get(place).copied().flatten().filter(&is_it);
        known(place).or_else(|| known(place ^ 1))
    }

    /// Something with this hash was found, among so many.
    pub fn note(&mut self, hash: u64, found: T, among: usize) {
        if self.latest.len() < 2 * among {
            // begins anew: what is lost of it is found again
            self.latest = vec![None; (4 * among).next_power_of_two()];
        }
        let place = self.place(hash);
        let beside = self.latest[place].is_some() && self.latest[place ^ 1].is_none();
        self.latest[place ^ usize::from(beside)] = Some(found);
    }

    /// What has this hash is not there any more.
    pub fn forget(&mut self, hash: u64) {
        let first = self.place(hash) & !1;
        for latest in self.latest.iter_mut().skip(first).take(2) {
            *latest = None;
        }
    }

    /// The high bits of a hash are the better ones.
    #[inline]
    fn place(&self, hash: u64) -> usize {
        let bits = self.latest.len().trailing_zeros();
        hash.checked_shr(64 - bits).unwrap_or_default() as usize
    }
}

/// Mixes two numbers into one that differs in its high bits where they differ: for tables of the simulator's own, which nobody
/// has an interest in slowing down.
#[inline]
pub(crate) const fn hash(a: u64, b: u64) -> u64 {
    let product = (a ^ 0x9e37_79b9_7f4a_7c15) as u128 * (b ^ 0xd1b5_4a32_d192_ed03) as u128;
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_what_was_noted_is_found_and_nothing_for_what_was_forgotten() {
        let mut hints = Hints::default();
        assert_eq!(hints.find(hash(1, 2), |_| true), None);
        hints.forget(hash(1, 2));
        let hashes: Vec<u64> = (0..1000).map(|n| hash(n / 8, n % 8)).collect();
        for (n, &hash) in hashes.iter().enumerate() {
            hints.note(hash, n, hashes.len());
        }
        let found = |hints: &Hints<usize>| {
            let all = hashes.iter().enumerate();
            all.filter(|(n, hash)| hints.find(**hash, |found| found == n) == Some(*n))
                .count()
        };
        // a thousand in 2,048 pairs of places: 28 pairs are expected to be given three or more
        let before = found(&hints);
        assert!((950..=1000).contains(&before), "{before}");
        hashes[..500].iter().for_each(|&hash| hints.forget(hash));
        assert!(
            hashes[..500]
                .iter()
                .all(|&hash| hints.find(hash, |_| true).is_none())
        );
        assert!(found(&hints) > 300);
    }
}
