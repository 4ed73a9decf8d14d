//! Adaptation time t_a: how long a transport takes to make use of the path that it was moved to (Cottingham and Vidales,
//! "Is Latency the Real Enemy in Next Generation Networks?", section 5; definition also in its section 4).
//!
//! "From the point at which the mobile node receives the first data packet on the new interface from the correspondent
//! node, to the point where the new interface's throughput first reaches the value of the average throughput it achieves
//! over the lifetime of the connection."
//!
//! # Method
//! 1. **Bins.** The first bin begins at the first packet. Bytes are counted packet by packet; a packet that arrives more
//!    than [`BIN_NS`] after the beginning of the bin ends it. The throughput of the bin is what was counted in it over
//!    the time that it really took, and the packet begins the next bin, in which it counts. Pauses so make one long bin
//!    and not many empty ones: "we regard this as a more realistic view than counting data per strict time interval".
//! 2. **The final bin is dropped**: no packet ended it, and its throughput is "distorted by the test being ended".
//! 3. **Threshold**: the mean of the bins, not weighted by their lengths, "on a trace by trace basis".
//! 4. **Crossing.** The value of a bin stands at its end, where it becomes known. t_a is the time from the first packet to
//!    where the straight lines between these points first reach the threshold. If the first bin is there already, no
//!    adaptation is visible at this resolution, and t_a is zero.
//!
//! The same function serves simulated and captured packets.

use serde::Serialize;

/// Length after which a packet ends a bin, nanoseconds: 0.1 s, "sufficiently large to filter out high frequency
/// variation in the trace".
pub const BIN_NS: u64 = 100_000_000;

/// Most bins that are kept: an hour of them. What comes later is counted in none.
pub const MAX_BINS: usize = 36_000;

/// t_a, and what it was worked out from.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct AdaptationTime {
    /// t_a, seconds.
    pub adaptation_time_s: f64,
    /// The threshold: mean throughput of the bins, bit/s.
    pub threshold_bps: f64,
    /// Complete bins.
    pub bins: usize,
    /// There were more than [`MAX_BINS`]: the threshold is the mean of those, and what came later counts in nothing.
    pub is_capped: bool,
}

/// One bin that a packet ended.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Bin {
    /// When it ended, nanoseconds after the first packet.
    pub end_ns: u64,
    /// Throughput in it, bit/s.
    pub throughput_bps: f64,
}

/// t_a of data packets that arrived over the new path: (time in nanoseconds, bytes of data) each, in order of time,
/// beginning with the first on the new path. See the module for the method; `None` if not even one bin is complete.
///
/// ```
/// use segue_capture::analyze::adaptation_time;
/// // 100 bytes every 10 ms for half a second, then 500
/// let ms = |n: u64| (n * 10_000_000, if n < 50 { 100 } else { 500 });
/// let t_a = adaptation_time((0..=100).map(ms)).unwrap();
/// assert!((0.5..0.7).contains(&t_a.adaptation_time_s));
/// ```
#[must_use]
pub fn adaptation_time(packets: impl IntoIterator<Item = (u64, u64)>) -> Option<AdaptationTime> {
    let mut bins = ThroughputBins::default();
    for (time_ns, bytes) in packets {
        bins.add(time_ns, bytes);
    }
    bins.adaptation_time()
}

/// The bins of [`adaptation_time`], for those who see packets one at a time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ThroughputBins {
    first_ns: Option<u64>,
    /// Of the open bin.
    begin_ns: u64,
    bytes: u64,
    bins: Vec<Bin>,
    capped: bool,
}

impl ThroughputBins {
    /// A packet with data. Its time is no earlier than those before; one that is counts as of the same time.
    pub fn add(&mut self, time_ns: u64, bytes: u64) {
        let Some(first_ns) = self.first_ns else {
            self.first_ns = Some(time_ns);
            self.begin_ns = time_ns;
            self.bytes = bytes;
            return;
        };
        let elapsed_ns = time_ns.saturating_sub(self.begin_ns);
        if elapsed_ns > BIN_NS {
            if self.bins.len() < MAX_BINS {
                self.bins.push(Bin {
                    end_ns: time_ns - first_ns,
                    throughput_bps: self.bytes as f64 * 8.0 / (elapsed_ns as f64 / 1e9),
                });
            } else {
                self.capped = true;
            }
            self.begin_ns = time_ns;
            self.bytes = 0;
        }
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// The complete bins.
    #[must_use]
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// t_a, were the last packet added the last of the connection.
    #[must_use]
    pub fn adaptation_time(&self) -> Option<AdaptationTime> {
        let sum: f64 = self.bins.iter().map(|b| b.throughput_bps).sum();
        let threshold_bps = sum / self.bins.len() as f64;
        let reaching = |b: &Bin| b.throughput_bps >= threshold_bps;
        // Rounding may put the mean of equal bins above all of them: the greatest of them is taken to reach it.
        let greatest = || {
            let order = |a: &&Bin, b: &&Bin| a.throughput_bps.total_cmp(&b.throughput_bps);
            let greatest = self.bins.iter().max_by(order)?;
            self.bins
                .iter()
                .position(|b| b.throughput_bps == greatest.throughput_bps)
        };
        let at = self.bins.iter().position(reaching).or_else(greatest)?;
        let adaptation_ns = match at.checked_sub(1).and_then(|before| self.bins.get(before)) {
            None => 0.0,
            Some(before) => {
                let there = self.bins[at];
                let rise = there.throughput_bps - before.throughput_bps;
                let share = ((threshold_bps - before.throughput_bps) / rise).clamp(0.0, 1.0);
                before.end_ns as f64 + share * (there.end_ns - before.end_ns) as f64
            }
        };
        Some(AdaptationTime {
            adaptation_time_s: adaptation_ns / 1e9,
            threshold_bps,
            bins: self.bins.len(),
            is_capped: self.capped,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn bins_of(packets: &[(u64, u64)]) -> ThroughputBins {
        let mut bins = ThroughputBins::default();
        for &(ms, bytes) in packets {
            bins.add(ms * MS, bytes);
        }
        bins
    }

    #[test]
    fn a_bin_ends_at_the_first_packet_past_it_and_the_final_one_is_dropped() {
        let bins = bins_of(&[
            (1000, 100),
            (1100, 100),
            (1101, 900),
            (1150, 1),
            (1601, 50),
            (1700, 7),
        ]);
        // a packet exactly 0.1 s after the beginning is still in the bin; the pause makes one bin of 500 ms
        let expected = [(101, 200.0 * 8.0 / 0.101), (601, 901.0 * 8.0 / 0.5)];
        assert_eq!(bins.bins().len(), 2);
        for (bin, (ms, bps)) in bins.bins().iter().zip(expected) {
            assert_eq!(bin.end_ns, ms * MS);
            assert!((bin.throughput_bps - bps).abs() < 1e-6);
        }
    }

    #[test]
    fn the_crossing_is_interpolated_between_the_ends_of_bins() {
        // bins of 200 ms: 1000, 1000, 3000, 7000 bytes; mean 3000, reached exactly at the end of the third
        let rising = [(0, 1000), (200, 1000), (400, 3000), (600, 7000), (800, 1)];
        let t_a = bins_of(&rising).adaptation_time().unwrap();
        assert_eq!(t_a.bins, 4);
        assert!((t_a.threshold_bps - 3000.0 * 8.0 / 0.2).abs() < 1e-6);
        assert!((t_a.adaptation_time_s - 0.6).abs() < 1e-9);
        // 1000, 1000, 1000, 5000: mean 2000, a quarter of the way from 0.6 s to 0.8 s
        let late = [(0, 1000), (200, 1000), (400, 1000), (600, 5000), (800, 1)];
        let t_a = bins_of(&late).adaptation_time().unwrap();
        assert!((t_a.adaptation_time_s - 0.65).abs() < 1e-9);
    }

    #[test]
    fn the_mean_is_not_weighted_by_the_lengths_of_bins() {
        // 80 kbit/s for 200 ms, 8 kbit/s for a second
        let bins = bins_of(&[(0, 2000), (200, 1000), (1200, 1)]);
        let t_a = bins.adaptation_time().unwrap();
        assert!((t_a.threshold_bps - 44_000.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_at_the_threshold_from_the_first_bin_on_needs_no_adaptation() {
        let steady: Vec<_> = (0..100).map(|n| (n * 10 * MS, 700)).collect();
        let t_a = adaptation_time(steady).unwrap();
        assert_eq!(t_a.adaptation_time_s, 0.0);
        let falling = [(0, 5000), (200, 1000), (400, 1000), (600, 1)];
        assert_eq!(
            bins_of(&falling).adaptation_time().unwrap().adaptation_time_s,
            0.0
        );
    }

    #[test]
    fn without_a_complete_bin_there_is_none() {
        assert_eq!(adaptation_time([]), None);
        assert_eq!(adaptation_time([(5, 100), (BIN_NS + 5, 100)]), None);
        // times that go back are taken as they are meant
        assert_eq!(adaptation_time([(500, 100), (5, 100)]), None);
    }

    #[test]
    fn bins_are_bounded() {
        let mut bins = ThroughputBins::default();
        for n in 0..(MAX_BINS as u64 + 10) {
            bins.add(n * 200 * MS, 100);
        }
        assert_eq!(bins.bins().len(), MAX_BINS);
        assert!(bins.adaptation_time().unwrap().is_capped);
        assert!(
            !bins_of(&[(0, 1), (200, 1), (400, 1)])
                .adaptation_time()
                .unwrap()
                .is_capped
        );
    }
}
