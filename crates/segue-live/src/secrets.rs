//! Secret randomness from the operating system.

use segue_proto::random::SecretRng;

/// The operating system's generator. It is asked for a block at a time.
pub struct OsSecrets {
    block: [u8; 256],
    used: usize,
}

impl OsSecrets {
    /// A source of secrets.
    ///
    /// # Errors
    /// If the operating system has no randomness to give.
    pub fn new() -> std::io::Result<Self> {
        let mut secrets = Self {
            block: [0; 256],
            used: 0,
        };
        getrandom::fill(&mut secrets.block)?;
        Ok(secrets)
    }

    fn refill(&mut self) {
        // after the first success, getrandom(2) does not fail for so short a block
        #[expect(clippy::expect_used, reason = "no secret is better than a guessable one")]
        getrandom::fill(&mut self.block).expect("the operating system's random generator");
        self.used = 0;
    }
}

impl SecretRng for OsSecrets {
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            if self.used == self.block.len() {
                self.refill();
            }
            // what was given out is not kept
            *byte = core::mem::take(&mut self.block[self.used]);
            self.used += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_across_blocks_and_sources() {
        let mut a = OsSecrets::new().unwrap();
        let mut b = OsSecrets::new().unwrap();
        let (mut x, mut y) = ([0; 300], [0; 300]);
        a.fill(&mut x);
        b.fill(&mut y);
        assert_ne!(x, y);
        assert_ne!(a.secret_u64(), a.secret_u64());
        // 40 zero bytes in a row would be the emptied block
        assert!(x.windows(40).all(|w| w.iter().any(|b| *b != 0)));
    }
}
