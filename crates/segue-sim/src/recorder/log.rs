//! The event log, of which only a hash is kept.

use segue_proto::Instant;
use xxhash_rust::xxh3::Xxh3;

/// Records gathered before they are hashed together.
const BATCH: usize = 1024;

/// Kinds of records.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Sent = 1,
    Hop = 2,
    Received = 3,
    Dropped = 4,
    Link = 5,
    Host = 6,
    Place = 7,
}

/// XXH3-128 over records of three 64-bit words: time; kind and number; node and length.
pub(super) struct EventLog {
    hash: Xxh3,
    batch: Vec<[u64; 3]>,
    events: u64,
}

impl EventLog {
    pub fn new() -> Self {
        Self {
            hash: Xxh3::new(),
            batch: Vec::with_capacity(BATCH),
            events: 0,
        }
    }

    /// Writes a record.
    pub fn record(&mut self, now: Instant, kind: Kind, node: u32, number: u64, length: u32) {
        self.events += 1;
        let words = [
            now.as_nanos().to_le(),
            (number | (kind as u64) << 56).to_le(),
            (u64::from(node) | u64::from(length) << 32).to_le(),
        ];
        self.batch.push(words);
        if self.batch.len() == BATCH {
            self.flush();
        }
    }

    /// Writes the text of the record just written.
    pub fn text(&mut self, text: &str) {
        self.flush();
        self.hash.update(text.as_bytes());
    }

    /// Records written.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Hash of all that was written, hexadecimal.
    pub fn digest(&mut self) -> String {
        self.flush();
        format!("{:032x}", self.hash.digest128())
    }

    fn flush(&mut self) {
        self.hash.update(bytemuck::cast_slice(&self.batch));
        self.batch.clear();
    }
}
