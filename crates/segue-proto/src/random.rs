//! Randomness: named streams for models, and a trait for what must be secret.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

/// A random stream of one component, derived from (seed, component name): ChaCha8 keyed by
/// SHA-256("segue-stream" | seed | name). The same on every machine and in every release.
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream of `component` under `seed`.
    #[must_use]
    pub fn new(seed: u64, component: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"segue-stream");
        hash.update(seed.to_le_bytes());
        hash.update(component.as_bytes());
        Self(ChaCha8Rng::from_seed(hash.finalize().into()))
    }

    /// The stream of a key: secret if the key is. For a part that needs a generator of its own from its host's
    /// [`SecretRng`].
    #[must_use]
    pub fn from_key(key: [u8; 32]) -> Self {
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A uniform 64-bit number.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in `0.0..1.0`, with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A uniform integer in `0..bound` by widening multiplication (bias below 2^-32 for bounds below 2^32).
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "empty range");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A standard normal number, by the method of Box and Muller (1958), of which the other number is left.
    pub fn normal(&mut self) -> f64 {
        let (distance, angle) = (1.0 - self.uniform(), self.uniform());
        libm::sqrt(-2.0 * libm::log(distance)) * libm::cos(core::f64::consts::TAU * angle)
    }

    /// Whether an event of probability `p` happens.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }
}

/// Randomness that secures something: tags, cookies, nonces, keys. A driver supplies it: the operating system's
/// generator live, a named seeded [`Stream`] in the simulator.
pub trait SecretRng: Send {
    /// Fills `out` with secret random bytes.
    fn fill(&mut self, out: &mut [u8]);

    /// A secret 32-bit number.
    fn secret_u32(&mut self) -> u32 {
        let mut b = [0; 4];
        self.fill(&mut b);
        u32::from_le_bytes(b)
    }

    /// A secret 64-bit number.
    fn secret_u64(&mut self) -> u64 {
        let mut b = [0; 8];
        self.fill(&mut b);
        u64::from_le_bytes(b)
    }
}

impl SecretRng for Stream {
    fn fill(&mut self, out: &mut [u8]) {
        self.0.fill_bytes(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_value_stable_and_independent_by_name() {
        let mut a = Stream::new(1, "link a");
        let mut b = Stream::new(1, "link b");
        let first = a.next_u64();
        assert_ne!(first, b.next_u64());
        assert_eq!(first, Stream::new(1, "link a").next_u64());
        assert_ne!(first, Stream::new(2, "link a").next_u64());
    }
}
