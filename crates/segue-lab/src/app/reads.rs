//! When data reached a program: what it saw itself, whatever carried it.

use segue_proto::{Duration, Instant};
use serde_json::{Value, json};

/// Reads closer than this belong together.
const TOGETHER: Duration = Duration::from_millis(1);
/// The most of them that do: how fine the account is of a stream without a pause.
const LONGEST: Duration = Duration::from_millis(10);

/// Reads with data, in bursts: times are those of the machine's monotonic clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads(Vec<Burst>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Burst {
    first: Instant,
    last: Instant,
    bytes: u64,
}

impl Reads {
    /// So many bytes were read.
    pub(crate) fn note(&mut self, now: Instant, bytes: usize) {
        let bytes = bytes as u64;
        match self.0.last_mut() {
            Some(burst) if now.since(burst.last) < TOGETHER && now.since(burst.first) < LONGEST => {
                burst.last = now;
                burst.bytes += bytes;
            }
            _ => self.0.push(Burst {
                first: now,
                last: now,
                bytes,
            }),
        }
    }

    /// The longest time between two bursts.
    pub(super) fn longest_gap(&self) -> Duration {
        let gaps = self.0.windows(2).map(|pair| pair[1].first.since(pair[0].last));
        gaps.max().unwrap_or_default()
    }

    /// Of each its first and last time, in nanoseconds, and its bytes.
    pub(super) fn bursts(&self) -> Value {
        json!(self.in_numbers())
    }

    /// The same as numbers.
    pub(crate) fn in_numbers(&self) -> Vec<[u64; 3]> {
        let burst = |b: &Burst| [b.first.as_nanos(), b.last.as_nanos(), b.bytes];
        self.0.iter().map(burst).collect()
    }

    /// All of them.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|b| b.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(at_us: &[u64]) -> Reads {
        let mut reads = Reads::default();
        for us in at_us {
            reads.note(Instant::from_nanos(us * 1000), 100);
        }
        reads
    }

    #[test]
    fn the_longest_gap_is_between_two_bursts() {
        let reads = reads(&[1_000_000, 1_010_000, 1_010_500, 1_300_500, 1_310_000]);
        assert_eq!(reads.longest_gap(), Duration::from_millis(290));
        assert_eq!(reads.0.len(), 4);
    }

    #[test]
    fn a_stream_without_a_pause_is_several_bursts_without_a_gap_to_speak_of() {
        let every_half_ms: Vec<u64> = (0..100).map(|n| 1_000_000 + n * 500).collect();
        let reads = reads(&every_half_ms);
        assert_eq!(reads.0.len(), 5);
        assert_eq!(reads.0.iter().map(|b| b.bytes).sum::<u64>(), 10_000);
        assert_eq!(reads.longest_gap(), Duration::from_micros(500));
    }
}
