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
    /// Of those that are next in order, and of the others, which are to be seen however few they are.
    in_order: Thinned,
    others: Thinned,
    gaps: Gaps,
    bin_ns: u64,
}

impl Default for SeriesBuilder {
    fn default() -> Self {
        Self {
            throughput: Vec::new(),
            in_order: Thinned::default(),
            others: Thinned::default(),
            gaps: Gaps::default(),
            bin_ns: SERIES_BIN_NS,
        }
    }
}

impl SeriesBuilder {
    /// What there is by now.
    pub fn finish(self) -> Series {
        let mut segments = self.in_order.points;
        segments.extend(self.others.points);
        segments.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series {
            bin_s: self.bin_ns as f64 / 1e9,
            throughput: self.throughput,
            segments,
            gaps: self.gaps.seconds(),
            arrivals_per_gap: self.gaps.per_gap,
        }
    }

    pub fn add(&mut self, since_start_ns: u64, path: u16, useful: u32, offset: u64, mark: SegmentMark) {
        self.gaps.arrived(since_start_ns);
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
        let segments = match mark {
            SegmentMark::New => &mut self.in_order,
            _ => &mut self.others,
        };
        let at_s = since_start_ns as f64 / 1e9;
        segments.add((at_s, offset.saturating_sub(BASE), path, mark));
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

/// Points, of which each so many are one.
#[derive(Clone, Debug, Default)]
struct Thinned {
    points: Vec<(f64, u64, u16, SegmentMark)>,
    /// Points that are passed over before one is taken.
    passed_over: u32,
    until_next: u32,
}

impl Thinned {
    fn add(&mut self, point: (f64, u64, u16, SegmentMark)) {
        if self.until_next > 0 {
            self.until_next -= 1;
            return;
        }
        self.points.push(point);
        if self.points.len() > MAX_POINTS {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.passed_over = self.passed_over.saturating_mul(2).saturating_add(1);
        }
        self.until_next = self.passed_over;
    }
}

/// Times between arrivals. Where there are too many, the longest of each so many in a row.
#[derive(Clone, Debug)]
struct Gaps {
    /// When each ended, and how long it was.
    longest_ns: Vec<(u64, u64)>,
    per_gap: u32,
    /// Arrivals of the newest.
    in_newest: u32,
    last_ns: Option<u64>,
}

impl Default for Gaps {
    fn default() -> Self {
        Self {
            longest_ns: Vec::new(),
            per_gap: 1,
            in_newest: 0,
            last_ns: None,
        }
    }
}

impl Gaps {
    fn arrived(&mut self, at_ns: u64) {
        let Some(last_ns) = self.last_ns else {
            self.last_ns = Some(at_ns);
            return;
        };
        // clocks of two interfaces may differ
        self.last_ns = Some(last_ns.max(at_ns));
        let gap = (at_ns, at_ns.saturating_sub(last_ns));
        if self.in_newest < self.per_gap
            && let Some(newest) = self.longest_ns.last_mut()
        {
            self.in_newest += 1;
            if gap.1 > newest.1 {
                *newest = gap;
            }
            return;
        }
        if self.longest_ns.len() == MAX_POINTS {
            self.join();
        }
        self.longest_ns.push(gap);
        self.in_newest = 1;
    }

    /// Of each two the longer.
    fn join(&mut self) {
        let longer = |pair: &[(u64, u64)]| pair.iter().copied().max_by_key(|gap| gap.1);
        self.longest_ns = self.longest_ns.chunks(2).filter_map(longer).collect();
        self.per_gap = self.per_gap.saturating_mul(2);
    }

    fn seconds(&self) -> Vec<(f64, f64)> {
        let seconds = |ns: u64| ns as f64 / 1e9;
        self.longest_ns
            .iter()
            .map(|&(at, lasted)| (seconds(at), seconds(lasted)))
            .collect()
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

    #[test]
    fn of_many_gaps_the_longest_of_each_so_many_stay() {
        let mut builder = SeriesBuilder::default();
        let arrivals = 3 * MAX_POINTS as u64;
        // every hundredth is late by another number of milliseconds
        let late = |n: u64| {
            if n.is_multiple_of(100) {
                n / 100 * 1_000_000
            } else {
                0
            }
        };
        for n in 0..arrivals {
            builder.add(n * 1_000_000_000 + late(n), 0, 1, BASE, SegmentMark::New);
        }
        let Series {
            gaps,
            arrivals_per_gap,
            segments,
            ..
        } = builder.finish();
        assert!(gaps.len() <= MAX_POINTS && segments.len() <= MAX_POINTS);
        assert_eq!(arrivals_per_gap, 4);
        assert_eq!(gaps.len() as u64, (arrivals - 1).div_ceil(4));
        for n in (100..arrivals).step_by(100) {
            let ended = (n * 1_000_000_000 + late(n)) as f64 / 1e9;
            let lasted = (1_000_000_000 + late(n)) as f64 / 1e9;
            assert!(
                gaps.contains(&(ended, lasted)),
                "the gap of {lasted} s at {ended} s"
            );
        }
        assert!(gaps.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn few_gaps_are_all_there() {
        let mut builder = SeriesBuilder::default();
        for at in [0, 3, 4, 9] {
            builder.add(at * 1_000_000_000, 0, 1, BASE, SegmentMark::Repeats);
        }
        let Series {
            gaps,
            arrivals_per_gap,
            ..
        } = builder.finish();
        assert_eq!(
            (gaps.as_slice(), arrivals_per_gap),
            ([(3.0, 3.0), (4.0, 1.0), (9.0, 5.0)].as_slice(), 1)
        );
    }

    #[test]
    fn what_is_out_of_order_all_the_time_is_thinned_evenly() {
        let mut builder = SeriesBuilder::default();
        let packets = 20 * MAX_POINTS as u64;
        for n in 0..packets {
            let mark = if n % 1000 == 0 {
                SegmentMark::New
            } else {
                SegmentMark::Ahead
            };
            builder.add(n * 1_000_000, 0, 1, BASE + n, mark);
        }
        let segments = builder.finish().segments;
        assert!(segments.len() <= 2 * MAX_POINTS && segments.is_sorted_by(|a, b| a.0 <= b.0));
        let of_new = segments.iter().filter(|s| s.3 == SegmentMark::New).count() as u64;
        assert_eq!(of_new, packets.div_ceil(1000));
        // one of 32 at most stays
        let widest = segments.windows(2).map(|pair| pair[1].1 - pair[0].1).max();
        assert!(widest <= Some(33), "{widest:?}");
        assert!(segments[0].1 == 0 && segments.last().is_some_and(|s| packets - s.1 <= 33));
    }
}
