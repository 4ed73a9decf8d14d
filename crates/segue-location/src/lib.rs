//! The location manager over real sockets: what [`segue_proto::location`] leaves to a driver.
//!
//! - [`store`]: the zones on disk, so that a server that is killed has lost nothing that it had answered;
//! - [`serve`]: DNS over UDP and TCP (RFC 7766) around [`segue_proto::location::Server`];
//! - [`ask`]: one update or look-up from the command line;
//! - [`config`]: the server's file, and key files as BIND's `tsig-keygen` writes them.

pub mod ask;
pub mod config;
pub mod serve;
pub mod store;
mod tcp;

use segue_proto::random::SecretRng;
use std::time::{SystemTime, UNIX_EPOCH};

/// The operating system's generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRandom;

impl SecretRng for OsRandom {
    fn fill(&mut self, out: &mut [u8]) {
        // There is no going on without: ids, ports and keys would be known to an attacker.
        getrandom::fill(out).expect("the operating system gives random numbers");
    }
}

/// Time of day, nanoseconds since 1970.
#[must_use]
pub fn unix_nanos() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the driver's clock")]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH)
        .map_or(0, |t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX))
}
