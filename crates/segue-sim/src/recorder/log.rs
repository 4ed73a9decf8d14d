//! The event log, of which only a hash is kept.

use segue_proto::Instant;
use xxhash_rust::xxh3::Xxh3;

/// Records gathered before they are hashed together: few, so that they leave the cache to what else a hop needs.
const BATCH: usize = 128;

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
    batch: Box<[[u64; 3]; BATCH]>,
    /// Records in the batch.
    gathered: usize,
    /// Records hashed.
    hashed: u64,
}

impl EventLog {
    pub fn new() -> Self {
        Self {
            hash: Xxh3::new(),
            batch: Box::new([[0; 3]; BATCH]),
            gathered: 0,
            hashed: 0,
        }
    }

    /// Writes a record.
    #[inline]
    pub fn record(&mut self, now: Instant, kind: Kind, node: u32, number: u64, length: u32) {
        let record = [
            now.as_nanos().to_le(),
            (number | (kind as u64) << 56).to_le(),
            (u64::from(node) | u64::from(length) << 32).to_le(),
        ];
        let Some(place) = self.batch.get_mut(self.gathered) else {
            return self.begin_batch(record);
        };
        *place = record;
        self.gathered += 1;
    }

    #[cold]
    fn begin_batch(&mut self, record: [u64; 3]) {
        self.flush();
        self.batch[0] = record;
        self.gathered = 1;
    }

    /// Writes the text of the record just written.
    pub fn text(&mut self, text: &str) {
        self.flush();
        self.hash.update(text.as_bytes());
    }

    /// Records written.
    pub fn events(&self) -> u64 {
        self.hashed + self.gathered as u64
    }

    /// Hash of all that was written, hexadecimal.
    pub fn digest(&mut self) -> String {
        self.flush();
        format!("{:032x}", self.hash.digest128())
    }

    #[cold]
    fn flush(&mut self) {
        self.hash
            .update(bytemuck::cast_slice(&self.batch[..self.gathered]));
        self.hashed += self.gathered as u64;
        self.gathered = 0;
    }
}
