//! Throughput and round trip times around a moment, in constant memory.

use crate::analyze::model::Spread;

/// Bins of a window.
const BINS: usize = 20;

/// Useful bytes of the last window, in bins.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct RateRing {
    bins: [u32; BINS],
    /// Number of the newest bin, and the latest time in it.
    newest: u64,
    latest_ns: u64,
}

/// Bytes of the last while, and how long that was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in super::super) struct Lately {
    pub bytes: u64,
    pub ns: u64,
}

impl RateRing {
    pub(in super::super) fn add(&mut self, time_ns: u64, bytes: u64, window_ns: u64) {
        let number = time_ns / bin_ns(window_ns);
        self.latest_ns = self.latest_ns.max(time_ns);
        if number > self.newest {
            let passed = (number - self.newest).min(BINS as u64);
            for n in 0..passed {
                self.bins[((number - n) % BINS as u64) as usize] = 0;
            }
            self.newest = number;
        }
        if number + (BINS as u64) > self.newest {
            let bin = &mut self.bins[(number % BINS as u64) as usize];
            *bin = bin.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
    }

    /// Bytes in the window that ends with the bin of the newest packet, up to that packet: the bin goes on after it.
    pub(in super::super) fn lately(&self, window_ns: u64) -> Lately {
        let oldest = self.newest.saturating_sub(BINS as u64 - 1);
        Lately {
            bytes: self.bins.iter().map(|&b| u64::from(b)).sum(),
            ns: self.latest_ns.saturating_sub(oldest * bin_ns(window_ns)),
        }
    }
}

const fn bin_ns(window_ns: u64) -> u64 {
    match window_ns / BINS as u64 {
        0 => 1,
        ns => ns,
    }
}

/// Samples kept for a median.
pub const RTT_KEPT: usize = 16;

/// Round trip times.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct RoundTrips {
    last: [u64; RTT_KEPT],
    count: u64,
    min_ns: u64,
    max_ns: u64,
    /// SRTT and RTTVAR (RFC 6298 section 2).
    smoothed_ns: u64,
    variation_ns: u64,
}

/// RTO before the first round trip is known (RFC 6298 section 2.1).
const INITIAL_RTO_NS: u64 = 1_000_000_000;

impl RoundTrips {
    pub(in super::super) fn add(&mut self, ns: u64) {
        if self.count == 0 {
            self.smoothed_ns = ns;
            self.variation_ns = ns / 2;
        } else {
            let apart_ns = self.smoothed_ns.abs_diff(ns);
            self.variation_ns = self.variation_ns - self.variation_ns / 4 + apart_ns / 4;
            self.smoothed_ns = self.smoothed_ns - self.smoothed_ns / 8 + ns / 8;
        }
        self.last[(self.count % RTT_KEPT as u64) as usize] = ns;
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
    }

    pub(in super::super) const fn count(&self) -> u64 {
        self.count
    }

    /// The RTO that a sender works out from these round trips, with neither a floor nor backing off (RFC 6298 section 2):
    /// SRTT + 4 RTTVAR.
    pub(in super::super) const fn rto_ns(&self) -> u64 {
        if self.count == 0 {
            INITIAL_RTO_NS
        } else {
            self.smoothed_ns
                .saturating_add(self.variation_ns.saturating_mul(4))
        }
    }

    /// Median of the last samples, seconds.
    pub(in super::super) fn median_s(&self) -> Option<f64> {
        let kept = self.count.min(RTT_KEPT as u64) as usize;
        let mut sorted = self.last;
        let sorted = &mut sorted[..kept];
        sorted.sort_unstable();
        let upper = *sorted.get(kept / 2)?;
        let lower = sorted[(kept - 1) / 2];
        Some((lower + upper) as f64 / 2e9)
    }

    pub(in super::super) fn spread(&self) -> Option<Spread> {
        Some(Spread {
            median: self.median_s()?,
            min: self.min_ns as f64 / 1e9,
            max: self.max_ns as f64 / 1e9,
            count: self.count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_holds_one_window() {
        let mut ring = RateRing::default();
        for n in 0..100u64 {
            ring.add(n * 100, 10, 2000);
        }
        assert_eq!(ring.lately(2000).bytes, 200);
        ring.add(1_000_000, 7, 2000);
        assert_eq!(ring.lately(2000).bytes, 7);
        // what comes late by more than a window is in no bin
        ring.add(5, 1000, 2000);
        assert_eq!(ring.lately(2000).bytes, 7);
    }

    #[test]
    fn the_rto_is_the_one_of_rfc_6298() {
        let ms = |n: u64| n * 1_000_000;
        let mut trips = RoundTrips::default();
        assert_eq!(trips.rto_ns(), ms(1000));
        trips.add(ms(800));
        // R + 4 R/2
        assert_eq!(trips.rto_ns(), ms(2400));
        trips.add(ms(400));
        // SRTT 750, RTTVAR 3/4 * 400 + 1/4 * 400
        assert_eq!(trips.rto_ns(), ms(750 + 4 * 400));
        for _ in 0..200 {
            trips.add(ms(400));
        }
        assert!(trips.rto_ns().abs_diff(ms(400)) < ms(1), "{}", trips.rto_ns());
    }

    #[test]
    fn the_median_is_of_the_last_samples() {
        let mut trips = RoundTrips::default();
        assert_eq!(trips.median_s(), None);
        trips.add(3_000_000_000);
        trips.add(1_000_000_000);
        assert_eq!(trips.median_s(), Some(2.0));
        for _ in 0..RTT_KEPT {
            trips.add(5_000_000_000);
        }
        assert_eq!(
            trips.spread(),
            Some(Spread {
                median: 5.0,
                min: 1.0,
                max: 5.0,
                count: 18
            })
        );
    }
}
