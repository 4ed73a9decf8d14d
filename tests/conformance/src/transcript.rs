//! What endpoints send, packet by packet: the time, the host, the interface and every byte, as a digest and, on demand, in
//! full. Two versions of the protocol machines that give the same digests behave the same.
//!
//! `make digests` compares them with `digests.txt`, which holds one for every seed of [`crate::ordeal`] and
//! [`crate::exercise`] and one for every test against a scripted peer. Where two differ, `digests --show SEED` of each
//! version gives two files whose first difference is the packet to explain.

#![allow(clippy::disallowed_methods, reason = "digests of tests go to files")]

use core::fmt::Write;
use segue_proto::Instant;
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// The environment variable that names the folder in which [`OfTest`] leaves its digests.
pub const FOLDER: &str = "SEGUE_TRANSCRIPTS";

/// What was sent so far.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    hash: Sha256,
    packets: u64,
    /// A line per packet, if they are kept.
    lines: Option<String>,
}

impl Transcript {
    /// One that keeps everything.
    #[must_use]
    pub fn in_full() -> Self {
        Self {
            lines: Some(String::new()),
            ..Self::default()
        }
    }

    /// A host sends these bytes.
    pub fn packet(&mut self, at: Instant, host: usize, interface: u8, bytes: &[u8]) {
        self.packets += 1;
        self.hash.update(at.as_nanos().to_be_bytes());
        self.hash.update([host as u8, interface]);
        self.hash.update((bytes.len() as u64).to_be_bytes());
        self.hash.update(bytes);
        if let Some(lines) = &mut self.lines {
            let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            let _ = writeln!(lines, "{} host {host} interface {interface} {hex}", at.as_nanos());
        }
    }

    /// Number of packets, and the first 16 hexadecimal digits of SHA-256 over all of it.
    #[must_use]
    pub fn digest(&self) -> String {
        let hash = self.hash.clone().finalize();
        let head = hash.iter().take(8).fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        format!("{} {head}", self.packets)
    }

    /// A line per packet: nanoseconds, host, interface, bytes. Nothing unless it was made by [`in_full`](Self::in_full).
    #[must_use]
    pub fn lines(&self) -> &str {
        self.lines.as_deref().unwrap_or_default()
    }
}

/// The transcript of an endpoint in a test: when it is dropped, its digest goes to a file named for the test, in the
/// folder that [`FOLDER`] names. Without that nothing is kept.
#[derive(Debug, Default)]
pub struct OfTest(Option<(PathBuf, Transcript)>);

impl OfTest {
    /// Of the test on whose thread this is.
    #[must_use]
    pub fn begin() -> Self {
        let folder = std::env::var_os(FOLDER).map(PathBuf::from);
        let thread = std::thread::current();
        let file = folder.zip(thread.name()).map(|(folder, name)| {
            let name = name.replace("::", ".");
            folder.join(name)
        });
        Self(file.map(|file| (file, Transcript::default())))
    }

    /// See [`Transcript::packet`].
    pub fn packet(&mut self, at: Instant, interface: u8, bytes: &[u8]) {
        if let Some((_, transcript)) = &mut self.0 {
            transcript.packet(at, 0, interface, bytes);
        }
    }
}

impl Drop for OfTest {
    fn drop(&mut self) {
        let Some((file, transcript)) = &self.0 else {
            return;
        };
        // a test is one thread, and what it makes is dropped in one order
        let before = std::fs::read_to_string(file).unwrap_or_default();
        let _ = std::fs::write(file, format!("{before}{}\n", transcript.digest()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_proto::Duration;

    #[test]
    fn every_bit_of_a_packet_and_its_time_and_place_count() {
        let at = Instant::ZERO + Duration::from_millis(1);
        let of = |at: Instant, host: usize, interface: u8, parts: &[&[u8]]| {
            let mut transcript = Transcript::in_full();
            for part in parts {
                transcript.packet(at, host, interface, part);
            }
            transcript
        };
        let first = of(at, 0, 1, &[b"ab", b"c"]);
        let others = [
            of(at + Duration::from_nanos(1), 0, 1, &[b"ab", b"c"]),
            of(at, 1, 1, &[b"ab", b"c"]),
            of(at, 0, 2, &[b"ab", b"c"]),
            of(at, 0, 1, &[b"a", b"bc"]),
            of(at, 0, 1, &[b"ab", b"d"]),
            of(at, 0, 1, &[b"ab"]),
        ];
        for other in &others {
            assert_ne!(first.digest(), other.digest(), "{}", other.lines());
        }
        assert_eq!(first.digest(), of(at, 0, 1, &[b"ab", b"c"]).digest());
        assert_eq!(
            first.lines(),
            "1000000 host 0 interface 1 6162\n1000000 host 0 interface 1 63\n"
        );
    }
}
