//! What a connection begins with that nobody else may know (RFC 6528; RFC 7323 section 7.1).

use super::ends::Pair;
use crate::random::SecretRng;
use crate::time::Instant;
use segue_wire::SeqNumber;
use sha2::{Digest, Sha256};

/// Chooses the initial numbers of connections, and ports.
pub(super) struct Numbers {
    secrets: Box<dyn SecretRng>,
    /// Of RFC 6528: drawn when the first connection needs it.
    key: Option<[u8; 32]>,
}

/// The numbers that a connection begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Initial {
    pub iss: SeqNumber,
    /// Added to the clock in timestamps, so that they tell nothing of other connections.
    pub ts_offset: u32,
}

impl Numbers {
    pub fn new(secrets: Box<dyn SecretRng>) -> Self {
        Self { secrets, key: None }
    }

    /// Ephemeral ports, each once, from one that nobody can guess (RFC 6056 section 3.3.1).
    pub fn ports(&mut self) -> impl Iterator<Item = u16> + use<> {
        let first = self.secrets.secret_u32();
        let span = u32::from(u16::MAX - FIRST_EPHEMERAL_PORT) + 1;
        (0..span).map(move |n| FIRST_EPHEMERAL_PORT + (first.wrapping_add(n) % span) as u16)
    }

    /// The initial sequence number of RFC 6528 section 3, M + F(pair, key) with M in steps of 4 microseconds; and the
    /// offset of timestamps, in the same way without a clock, so that they go on over connections of one pair.
    pub fn of(&mut self, now: Instant, pair: &Pair) -> Initial {
        let secrets = &mut self.secrets;
        let key = self.key.get_or_insert_with(|| {
            let mut key = [0; 32];
            secrets.fill(&mut key);
            key
        });
        let mut hash = Sha256::new();
        hash.update(*key);
        hash.update(pair.local.octets());
        hash.update(pair.local_port.to_be_bytes());
        hash.update(pair.remote.octets());
        hash.update(pair.remote_port.to_be_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        let word =
            |at: usize| u32::from_be_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]]);
        let clock = (now.as_nanos() / 4000) as u32;
        Initial {
            iss: SeqNumber(word(0).wrapping_add(clock)),
            ts_offset: word(4),
        }
    }
}

/// RFC 6335 section 6.
const FIRST_EPHEMERAL_PORT: u16 = 49_152;
