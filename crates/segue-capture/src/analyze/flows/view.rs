//! One direction of a flow as it was seen at one place.

use super::item::{Item, Settings};
use super::mover::{Arrival, Mover};
use super::rates::{Lately, RateRing, RoundTrips};
use super::sequence::Sequence;
use super::series::SeriesBuilder;
use super::shares::Moves;
use crate::analyze::model::{SegmentMark, Series, Spread};

/// Packets with data after which a direction is worth the memory of details.
const DETAILS_AFTER: u64 = 4;

/// Longest pauses kept.
const MAX_GAPS: usize = 8;

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

/// Packets and bytes of data.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Tally {
    pub data_packets: u64,
    pub data_bytes: u64,
    pub useful_bytes: u64,
    pub duplicates: u64,
    pub out_of_order: u64,
    pub retransmissions: u64,
    /// Times that data came by another path than the data before it.
    pub switches: u64,
}

/// What there is to say of a direction at a place once it is over.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Overview {
    pub tally: Tally,
    pub first_data_ns: u64,
    pub last_data_ns: u64,
    pub last_new_ns: u64,
    /// Begin and end of the longest time without new data between two that were.
    pub longest_gap_ns: (u64, u64),
    /// Longest pauses.
    pub gaps: Vec<Gap>,
    pub round_trips: Option<Spread>,
    /// Useful bytes of the window that ends with the last of them.
    pub lately: Lately,
    /// Points of figures.
    pub series: Option<Series>,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct View {
    tally: Tally,
    first_data_ns: u64,
    last_data_ns: u64,
    last_new_ns: u64,
    longest_gap_ns: u64,
    /// When that began.
    longest_gap_at_ns: u64,
    /// Packets that repeat something since the last new data, and the last of them.
    repeats: u32,
    last_repeat_ns: u64,
    sequence: Sequence,
    newest_seq: u32,
    newest_stamp: u32,
    path: u16,
    /// The item whose acknowledgement is waited for: end of it, when it was sent.
    timed: Option<(u32, u64)>,
    detail: Option<Box<Detail>>,
}

/// What directions with more than a few packets have.
#[derive(Clone, Debug, Default)]
struct Detail {
    rate: RateRing,
    round_trips: RoundTrips,
    gaps: Vec<Gap>,
    mover: Option<Box<Mover>>,
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
        let repeats = noted.mark == SegmentMark::Repeats;
        let late = repeats || noted.mark == SegmentMark::Fills;
        let stamp = item.stamp.unwrap_or(self.newest_stamp);
        // what is older than the newest was sent before it: the network has reordered it
        let older = late && !repeats && (stamp.wrapping_sub(self.newest_stamp) as i32) < 0;
        let first = self.tally.data_packets == 0;
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
        self.tally = Tally {
            data_packets: self.tally.data_packets + 1,
            data_bytes: self.tally.data_bytes + u64::from(item.bytes),
            useful_bytes: self.tally.useful_bytes + u64::from(useful),
            duplicates: self.tally.duplicates + u64::from(repeats),
            out_of_order: self.tally.out_of_order + u64::from(noted.mark == SegmentMark::Fills),
            retransmissions: self.tally.retransmissions + u64::from(late && !older),
            switches: self.tally.switches + u64::from(self.path != path),
        };
        self.last_data_ns = self.last_data_ns.max(time_ns);
        self.note_order(time_ns, item, stamp, late, older);
        let mut repeats = 0;
        if useful > 0 {
            repeats = core::mem::take(&mut self.repeats);
            if gap_ns > self.longest_gap_ns {
                (self.longest_gap_at_ns, self.longest_gap_ns) = (last_new_ns, gap_ns);
            }
            self.last_new_ns = time_ns;
        }
        let mut settled = false;
        let worth_it = settings.series || self.tally.data_packets >= DETAILS_AFTER || path != self.path;
        if self.detail.is_none() && worth_it {
            self.detail = Some(Box::default());
        }
        if let Some(detail) = &mut self.detail {
            let seen = Seen {
                arrival: Arrival {
                    time_ns,
                    path,
                    seq: item.seq,
                    useful,
                    bytes: item.bytes,
                    out_of_order: noted.mark == SegmentMark::Fills,
                    last_data_ns,
                    last_new_ns,
                },
                before: (!first).then_some((last_path, last_seq)),
                gap_ns,
                repaired: late,
                repeats,
                last_repeat_ns: self.last_repeat_ns,
                offset: noted.offset,
                mark: noted.mark,
            };
            settled = detail.data(&seen, settings);
        }
        self.path = path;
        settled
    }

    /// An item is the newest, or one that is `late`: repeated, or, if it is `older` than the newest, reordered.
    fn note_order(&mut self, time_ns: u64, item: Item, stamp: u32, late: bool, older: bool) {
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
    fn mover(&mut self) -> &mut Mover {
        let (path, last, seq, empty) = (self.path, self.last_data_ns, self.newest_seq, !self.has_data());
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
        if self.has_data()
            && let Some(mover) = self.detail.as_mut().and_then(|d| d.mover.as_mut())
        {
            mover.forget_sent(path, last_ns, newest);
        }
    }

    /// Data was sent by a path that its receiver will see as the same.
    pub(super) fn sent(&mut self, time_ns: u64, path: u16, seq: u32) {
        self.mover().sent(time_ns, path, seq);
    }

    /// The sender made a path its own.
    pub(super) fn announced(&mut self, path: u16) {
        self.mover().announced(path);
    }

    /// The first sequence number will be this one.
    pub(super) fn begin(&mut self, seq: u32) {
        self.sequence.begin(seq);
    }

    /// Around the last handover, from the last data before it to the first after it.
    pub(super) fn last_settled(&self) -> Option<(u64, u64)> {
        self.detail.as_ref()?.mover.as_ref()?.last_settled()
    }

    /// What the two ends' account counts around that handover has this number there.
    pub(super) fn counted_as(&mut self, number: usize) {
        self.mover().counted_as(number);
    }

    pub(in super::super) const fn has_data(&self) -> bool {
        self.tally.data_packets > 0
    }

    pub(in super::super) const fn tally(&self) -> Tally {
        self.tally
    }

    pub(in super::super) const fn last_new_ns(&self) -> u64 {
        self.last_new_ns
    }

    /// Whether all of the direction's sequence numbers before this one were seen.
    pub(super) fn has_all_before(&self, end: Option<u32>) -> bool {
        self.sequence.is_whole() && self.sequence.end() == end
    }

    /// Whether something before this sequence number lies behind all that was seen.
    pub(super) fn falls_short_of(&self, acknowledged: u32) -> bool {
        let end = self.sequence.end();
        end.is_some_and(|end| acknowledged.wrapping_sub(end) as i32 > 0)
    }

    /// The RTO that a sender works out from the round trips that were measured here, if any were.
    pub(super) fn rto_ns(&self) -> Option<u64> {
        let round_trips = &self.detail.as_ref()?.round_trips;
        (round_trips.count() > 0).then(|| round_trips.rto_ns())
    }

    /// Gaps in the sequence numbers that were taken to be filled.
    pub(super) const fn gaps_given_up(&self) -> u32 {
        self.sequence.given_up()
    }

    /// Handovers beyond what is kept.
    pub(super) fn handovers_dropped(&self) -> u64 {
        let mover = self.detail.as_ref().and_then(|d| d.mover.as_ref());
        mover.map_or(0, |m| m.dropped())
    }

    /// The end of the observation: what was seen, and what the detector of handovers found.
    pub(in super::super) fn finish(self, window_ns: u64) -> (Overview, Moves) {
        let detail = self.detail.map(|d| *d).unwrap_or_default();
        let moves = detail.mover.map(|m| m.finish(window_ns)).unwrap_or_default();
        let overview = Overview {
            tally: self.tally,
            first_data_ns: self.first_data_ns,
            last_data_ns: self.last_data_ns,
            last_new_ns: self.last_new_ns,
            longest_gap_ns: (
                self.longest_gap_at_ns,
                self.longest_gap_at_ns + self.longest_gap_ns,
            ),
            round_trips: detail.round_trips.spread(),
            lately: detail.rate.lately(window_ns),
            gaps: detail.gaps,
            series: detail.series.map(|s| s.finish()),
        };
        (overview, moves)
    }
}

/// An item of data with what the view makes of it.
struct Seen {
    arrival: Arrival,
    /// Path and sequence number of the data before it.
    before: Option<(u16, u32)>,
    /// The pause that it ends, and what was repeated in it.
    gap_ns: u64,
    repaired: bool,
    repeats: u32,
    last_repeat_ns: u64,
    /// Where it is in the stream, and what it is there.
    offset: u64,
    mark: SegmentMark,
}

impl Detail {
    /// An item of data. Gives whether a handover settled.
    fn data(&mut self, seen: &Seen, settings: &Settings) -> bool {
        let Arrival {
            time_ns,
            path,
            useful,
            last_data_ns,
            ..
        } = seen.arrival;
        if let Some((last_path, last_seq)) = seen.before.filter(|(last, _)| *last != path)
            && self.mover.is_none()
        {
            self.mover = Some(Box::new(Mover::new(last_path, last_data_ns, last_seq)));
        }
        let mut settled = false;
        if let Some(mover) = &mut self.mover {
            let (rate, trips) = (&self.rate, &self.round_trips);
            settled = mover.arrived(seen.arrival, settings.window_ns, || {
                (rate.lately(settings.window_ns), trips.median_s())
            });
        }
        if useful > 0 {
            self.rate.add(time_ns, u64::from(useful), settings.window_ns);
            if seen.gap_ns >= settings.min_gap_ns {
                let after_ns = time_ns.saturating_sub(seen.last_repeat_ns);
                self.gap(Gap {
                    begin_ns: time_ns - seen.gap_ns,
                    duration_ns: seen.gap_ns,
                    repaired: seen.repaired,
                    repeats: if after_ns <= seen.gap_ns / 2 {
                        seen.repeats
                    } else {
                        0
                    },
                });
            }
        }
        if settings.series {
            let since_start_ns = time_ns.saturating_sub(settings.start_ns);
            let series = self.series.get_or_insert_default();
            series.add(since_start_ns, path, useful, seen.offset, seen.mark);
        }
        settled
    }

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
