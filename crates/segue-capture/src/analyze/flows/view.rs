//! One direction of a flow as it was seen at one place.

use super::item::{Item, Settings};
use super::mover::{Arrival, Mover};
use super::paths::MAX_PATHS;
use super::rates::{RateRing, RoundTrips};
use super::sequence::{BASE, Sequence};
use super::shares::Moves;
use crate::analyze::model::{SegmentMark, Series};
use std::collections::BTreeMap;

/// Packets with data after which a direction is worth the memory of details.
const DETAILS_AFTER: u64 = 4;

/// Longest pauses kept.
const MAX_GAPS: usize = 8;

/// Points of a figure.
const MAX_POINTS: usize = 8192;

/// Width of the throughput bins of a figure.
const SERIES_BIN_NS: u64 = 100_000_000;

/// A pause in data not seen before.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Gap {
    pub begin_ns: u64,
    pub duration_ns: u64,
    pub repaired: bool,
    /// Packets that repeat something, from its begin to its end, if these made up most of it: where they came to an end before
    /// half of it had passed, the sender may have had nothing more to send.
    pub repeats: u32,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct View {
    pub packets: u64,
    pub data_packets: u64,
    pub data_bytes: u64,
    pub useful_bytes: u64,
    pub duplicates: u64,
    pub out_of_order: u64,
    pub retransmissions: u64,
    pub first_data_ns: u64,
    pub last_data_ns: u64,
    pub last_new_ns: u64,
    pub longest_gap_ns: u64,
    /// When that began.
    pub longest_gap_at_ns: u64,
    /// Packets that repeat something since the last new data, and the last of them.
    repeats: u32,
    last_repeat_ns: u64,
    pub sequence: Sequence,
    newest_seq: u32,
    newest_stamp: u32,
    path: u16,
    /// Times that data came by another path than the data before it.
    pub switches: u64,
    /// The item whose acknowledgement is waited for: end of it, when it was sent.
    timed: Option<(u32, u64)>,
    pub detail: Option<Box<Detail>>,
}

/// What directions with more than a few packets have.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Detail {
    rate: RateRing,
    pub round_trips: RoundTrips,
    pub gaps: Vec<Gap>,
    pub mover: Option<Box<Mover>>,
    series: Option<Box<SeriesBuilder>>,
}

impl View {
    /// An item of data at this place. Gives whether a handover settled.
    pub(in super::super) fn data(
        &mut self,
        time_ns: u64,
        path: u16,
        item: Item,
        settings: &Settings,
    ) -> bool {
        let noted = self.sequence.note(item.seq, item.span);
        let useful = if noted.new == u64::from(item.span) {
            item.bytes
        } else {
            (noted.new * u64::from(item.bytes) / u64::from(item.span.max(1))) as u32
        };
        self.data_packets += 1;
        self.data_bytes += u64::from(item.bytes);
        self.useful_bytes += u64::from(useful);
        let repeats = noted.mark == SegmentMark::Repeats;
        let late = repeats || noted.mark == SegmentMark::Fills;
        let stamp = item.stamp.unwrap_or(self.newest_stamp);
        // what is older than the newest was sent before it: the network has reordered it
        let older = late && !repeats && (stamp.wrapping_sub(self.newest_stamp) as i32) < 0;
        self.duplicates += u64::from(repeats);
        self.out_of_order += u64::from(noted.mark == SegmentMark::Fills);
        self.retransmissions += u64::from(late && !older);
        let first = self.data_packets == 1;
        let gap_ns = if first {
            0
        } else {
            time_ns.saturating_sub(self.last_new_ns)
        };
        let (last_data_ns, last_path, last_seq) = (self.last_data_ns, self.path, self.newest_seq);
        let last_new_ns = self.last_new_ns;
        if first {
            self.first_data_ns = time_ns;
            self.path = path;
        }
        self.last_data_ns = self.last_data_ns.max(time_ns);
        if !late {
            self.newest_seq = item.seq;
            self.newest_stamp = stamp;
            if self.timed.is_none() {
                self.timed = Some((item.seq.wrapping_add(item.span), time_ns));
            }
        } else if !older {
            // Karn: an acknowledgement may now be of either copy (RFC 6298 section 3)
            self.timed = None;
        }
        // a byte that was there is a keepalive or a window probe
        if late && !older && item.bytes > 1 {
            self.repeats = self.repeats.saturating_add(1);
            self.last_repeat_ns = time_ns;
        }
        let mut repeats = 0;
        if useful > 0 {
            repeats = core::mem::take(&mut self.repeats);
            if gap_ns > self.longest_gap_ns {
                (self.longest_gap_at_ns, self.longest_gap_ns) = (last_new_ns, gap_ns);
            }
            self.last_new_ns = time_ns;
        }
        let mut settled = false;
        let worth_it = settings.series || self.data_packets >= DETAILS_AFTER || path != self.path;
        if self.detail.is_none() && worth_it {
            self.detail = Some(Box::default());
        }
        if let Some(detail) = &mut self.detail {
            if path != last_path && !first && detail.mover.is_none() {
                detail.mover = Some(Box::new(Mover::new(last_path, last_data_ns, last_seq)));
            }
            if let Some(mover) = &mut detail.mover {
                let arrival = Arrival {
                    time_ns,
                    path,
                    seq: item.seq,
                    useful,
                    bytes: item.bytes,
                    out_of_order: noted.mark == SegmentMark::Fills,
                    last_data_ns,
                    last_new_ns,
                };
                let (rate, trips) = (&detail.rate, &detail.round_trips);
                settled = mover.arrived(arrival, settings.window_ns, || (rate.bytes(), trips.median_s()));
            }
            if useful > 0 {
                detail.rate.add(time_ns, u64::from(useful), settings.window_ns);
                if gap_ns >= settings.min_gap_ns {
                    let after_ns = time_ns.saturating_sub(self.last_repeat_ns);
                    detail.gap(Gap {
                        begin_ns: time_ns - gap_ns,
                        duration_ns: gap_ns,
                        repaired: late,
                        repeats: if after_ns <= gap_ns / 2 { repeats } else { 0 },
                    });
                }
            }
            if settings.series {
                let series = detail.series.get_or_insert_default();
                series.add(
                    time_ns.saturating_sub(settings.start_ns),
                    path,
                    useful,
                    noted.offset,
                    noted.mark,
                );
            }
        }
        self.switches += u64::from(self.path != path);
        self.path = path;
        settled
    }

    /// Acknowledged up to this sequence number, as seen at the place of the sender. Gives when what was timed was sent.
    pub(in super::super) fn acknowledged(&mut self, time_ns: u64, ack: u32) -> Option<u64> {
        let (end, sent_ns) = self.timed?;
        if (ack.wrapping_sub(end) as i32) < 0 {
            return None;
        }
        self.timed = None;
        self.round_trip(sent_ns, time_ns.saturating_sub(sent_ns));
        Some(sent_ns)
    }

    /// A round trip that began at `sent_ns`.
    pub(in super::super) fn round_trip(&mut self, sent_ns: u64, ns: u64) {
        let detail = self.detail.get_or_insert_default();
        detail.round_trips.add(ns);
        if let Some(mover) = &mut detail.mover {
            mover.round_trip(sent_ns, ns);
        }
    }

    /// The detector of handovers, made where there is none yet.
    pub(in super::super) fn mover(&mut self) -> &mut Mover {
        let (path, last, seq, empty) = (
            self.path,
            self.last_data_ns,
            self.newest_seq,
            self.data_packets == 0,
        );
        let detail = self.detail.get_or_insert_default();
        detail.mover.get_or_insert_with(|| {
            Box::new(if empty {
                Mover::default()
            } else {
                Mover::new(path, last, seq)
            })
        })
    }

    /// Paths turn out to be the network's and not the sender's.
    pub(in super::super) fn forget_sent(&mut self) {
        let (path, last_ns, newest) = (self.path, self.last_data_ns, self.newest_seq);
        if self.data_packets > 0
            && let Some(mover) = self.detail.as_mut().and_then(|d| d.mover.as_mut())
        {
            mover.forget_sent(path, last_ns, newest);
        }
    }

    /// Handovers by the end of the observation.
    pub(in super::super) fn moved(&mut self, window_ns: u64) -> Moves {
        let mover = self.detail.as_mut().and_then(|d| d.mover.take());
        mover.map(|m| m.finish(window_ns)).unwrap_or_default()
    }

    /// Useful bytes of the window that ends with the last of them.
    pub(in super::super) fn recent_bytes(&self) -> u64 {
        self.detail.as_ref().map_or(0, |d| d.rate.bytes())
    }

    /// Points of figures.
    pub(in super::super) fn series(&mut self) -> Option<Series> {
        let detail = self.detail.as_mut()?;
        detail.series.take().map(|s| s.series)
    }
}

impl Detail {
    /// Keeps the longest.
    fn gap(&mut self, gap: Gap) {
        if self.gaps.len() < MAX_GAPS {
            self.gaps.push(gap);
        } else if let Some(shortest) = self.gaps.iter_mut().min_by_key(|g| g.duration_ns)
            && shortest.duration_ns < gap.duration_ns
        {
            *shortest = gap;
        }
    }
}

/// Points of a figure, thinned out as they come.
#[derive(Clone, Debug)]
struct SeriesBuilder {
    series: Series,
    bin_ns: u64,
    every: u32,
    until_next: u32,
}

impl Default for SeriesBuilder {
    fn default() -> Self {
        Self {
            series: Series {
                bin_s: SERIES_BIN_NS as f64 / 1e9,
                ..Series::default()
            },
            bin_ns: SERIES_BIN_NS,
            every: 1,
            until_next: 0,
        }
    }
}

impl SeriesBuilder {
    fn add(&mut self, since_start_ns: u64, path: u16, useful: u32, offset: u64, mark: SegmentMark) {
        let bin = u32::try_from(since_start_ns / self.bin_ns).unwrap_or(u32::MAX);
        let bins = &mut self.series.throughput;
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
        let segments = &mut self.series.segments;
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
            for &(bin, path, bytes) in &self.series.throughput {
                let bin = bin >> halvings;
                match places.get(&(bin, path)).and_then(|&at| wide.get_mut(at)) {
                    Some(known) => known.2 += bytes,
                    None => {
                        places.insert((bin, path), wide.len());
                        wide.push((bin, path, bytes));
                    }
                }
            }
            self.series.throughput = wide;
            // a flow has fewer paths than that: there is an end to it
            if self.series.throughput.len() <= MAX_POINTS / 4 * 3 {
                return;
            }
            halvings = 1;
            self.bin_ns *= 2;
            self.series.bin_s *= 2.0;
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
        } = builder.series;
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
        } = builder.series;
        assert_eq!((bin_s, throughput.len()), (0.2, MAX_POINTS / 2 + 1));
    }
}
