//! Points of figures.

use super::paths::MAX_PATHS;
use super::sequence::BASE;
use crate::analyze::model::{SegmentMark, Series};
use std::collections::BTreeMap;

/// Points of a figure.
const MAX_POINTS: usize = 8192;

/// Width of the throughput bins of a figure.
const SERIES_BIN_NS: u64 = 100_000_000;

/// Points of a figure, thinned out as they come.
#[derive(Clone, Debug)]
pub(super) struct SeriesBuilder {
    /// Useful bytes by bin and path.
    throughput: Vec<(u32, u16, u64)>,
    segments: Vec<(f64, u64, u16, SegmentMark)>,
    bin_ns: u64,
    every: u32,
    until_next: u32,
}

impl Default for SeriesBuilder {
    fn default() -> Self {
        Self {
            throughput: Vec::new(),
            segments: Vec::new(),
            bin_ns: SERIES_BIN_NS,
            every: 1,
            until_next: 0,
        }
    }
}

impl SeriesBuilder {
    /// What there is by now.
    pub fn finish(self) -> Series {
        Series {
            bin_s: self.bin_ns as f64 / 1e9,
            throughput: self.throughput,
            segments: self.segments,
        }
    }

    pub fn add(&mut self, since_start_ns: u64, path: u16, useful: u32, offset: u64, mark: SegmentMark) {
        let bin = u32::try_from(since_start_ns / self.bin_ns).unwrap_or(u32::MAX);
        let bins = &mut self.throughput;
        let mut newest = bins.iter_mut().rev().take(MAX_PATHS);
        match newest.find(|b| b.0 == bin && b.1 == path) {
            Some(known) => known.2 += u64::from(useful),
            None => bins.push((bin, path, u64::from(useful))),
        }
        if bins.len() > MAX_POINTS {
            self.widen();
        }
        if self.until_next > 0 && mark == SegmentMark::New {
            self.until_next -= 1;
            return;
        }
        self.until_next = self.every - 1;
        let segments = &mut self.segments;
        segments.push((
            since_start_ns as f64 / 1e9,
            offset.saturating_sub(BASE),
            path,
            mark,
        ));
        if segments.len() > MAX_POINTS {
            let mut keep = false;
            segments.retain(|_| {
                keep = !keep;
                keep
            });
            self.every = self.every.saturating_mul(2);
        }
    }

    /// Puts together what is of the same bin and path, and makes bins wider until a quarter of the room is free.
    fn widen(&mut self) {
        let mut halvings = 0;
        loop {
            let mut places: BTreeMap<(u32, u16), usize> = BTreeMap::new();
            let mut wide: Vec<(u32, u16, u64)> = Vec::with_capacity(MAX_POINTS / 2);
            for &(bin, path, bytes) in &self.throughput {
                let bin = bin >> halvings;
                match places.get(&(bin, path)).and_then(|&at| wide.get_mut(at)) {
                    Some(known) => known.2 += bytes,
                    None => {
                        places.insert((bin, path), wide.len());
                        wide.push((bin, path, bytes));
                    }
                }
            }
            self.throughput = wide;
            // a flow has fewer paths than that: there is an end to it
            if self.throughput.len() <= MAX_POINTS / 4 * 3 {
                return;
            }
            halvings = 1;
            self.bin_ns *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_a_flow_over_many_paths_at_once_keeps_its_bins() {
        let mut builder = SeriesBuilder::default();
        let packets = 200_000u64;
        for n in 0..packets {
            builder.add(n * 1_000_000, (n % 40) as u16, 7, BASE, SegmentMark::New);
        }
        let Series {
            bin_s, throughput, ..
        } = builder.finish();
        assert!(throughput.len() <= MAX_POINTS, "{} points", throughput.len());
        assert_eq!(throughput.iter().map(|b| b.2).sum::<u64>(), 7 * packets);
        // 250 bins of 0.8 s would be 10,000 points
        assert_eq!(bin_s, 1.6);
    }

    #[test]
    fn bins_of_a_figure_become_twice_as_wide_when_there_are_too_many() {
        let mut builder = SeriesBuilder::default();
        for n in 0..=MAX_POINTS as u64 {
            builder.add(n * SERIES_BIN_NS, 0, 1, BASE, SegmentMark::New);
        }
        let Series {
            bin_s, throughput, ..
        } = builder.finish();
        assert_eq!((bin_s, throughput.len()), (0.2, MAX_POINTS / 2 + 1));
    }
}
