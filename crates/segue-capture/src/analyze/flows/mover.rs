//! Handovers of one direction at one place: [`HandoverMeter`] finds them, this adds what was around them.
//!
//! A flow that uses several paths at once (packet by packet, as MPTCP, CMT and multihomed ILNPv6 may) would settle on one
//! and then another with every few packets. [`CONCURRENT`] handovers within [`CONCURRENT_NS`] mean that: they are taken
//! back, and from then on a handover is a path that fell silent for [`SILENT_NS`] while others went on.

use super::moved::{Around, Moved, SILENT_NS};
use super::rates::{Lately, RTT_KEPT, RoundTrips};
use super::shares::Moves;
use crate::analyze::adaptation::{AdaptationTime, ThroughputBins};
use crate::handover::HandoverMeter;
use segue_wire::Tsn;

/// Handovers so close together are none, but the use of several paths at once.
pub(in super::super) const CONCURRENT: usize = 4;

/// How close.
pub(in super::super) const CONCURRENT_NS: u64 = 1_000_000_000;

/// A gap belongs to a handover if it begins no later than this after the first data over the new path.
pub(in super::super) const SETTLING_NS: u64 = 1_000_000_000;

/// Handovers kept of one direction.
const MAX_HANDOVERS: usize = 4096;

/// Paths that are used at once.
const MAX_AT_ONCE: usize = 16;

/// What surrounds a handover, while it goes on.
#[derive(Clone, Debug, Default)]
struct Surroundings {
    path: u16,
    /// Last data before, by whatever path.
    begin_ns: u64,
    first_new_ns: u64,
    bins: ThroughputBins,
    /// Worked out from the bins, once the direction has moved on.
    adaptation: Option<AdaptationTime>,
    before: Lately,
    bytes_after: u64,
    rtt_before_s: Option<f64>,
    rtt_after: RoundTrips,
    out_of_order: u64,
    last_ns: u64,
    settling_gap_ns: u64,
    packets: u64,
    ends: Option<usize>,
}

/// A path of several that are used at once.
#[derive(Clone, Copy, Debug)]
struct Used {
    path: u16,
    last_ns: u64,
    /// First data over another path since.
    first_other: Option<(u16, u64)>,
    /// Longest gap of all data since.
    gap_ns: u64,
    /// Useful bytes in the window before that, and since.
    before: Lately,
    bytes_after: u64,
}

impl Used {
    const fn new(path: u16, last_ns: u64) -> Self {
        Self {
            path,
            last_ns,
            first_other: None,
            gap_ns: 0,
            before: Lately { bytes: 0, ns: 0 },
            bytes_after: 0,
        }
    }
}

/// An item of data that arrived, for a [`Mover`].
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Arrival {
    pub time_ns: u64,
    pub path: u16,
    pub seq: u32,
    /// Useful bytes.
    pub useful: u32,
    /// All bytes.
    pub bytes: u32,
    pub out_of_order: bool,
    /// Of the data before it.
    pub last_data_ns: u64,
    /// Of the data before it that was new.
    pub last_new_ns: u64,
}

/// Handovers of one direction at one place.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Mover {
    meter: HandoverMeter<u16>,
    candidate: Option<Surroundings>,
    /// Of the handovers that the meter has: the last is still going on.
    settled: Vec<Surroundings>,
    /// Handovers that are over.
    done: Vec<Moved>,
    /// Paths that are used at once; empty while one at a time is.
    concurrent: Vec<Used>,
    last_new_ns: u64,
    window_ns: u64,
    /// Path of the last data while several are used, and changes of it; and what was taken back.
    last_path: u16,
    changes: u64,
    /// Handovers beyond what is kept.
    dropped: u64,
}

impl Mover {
    /// A direction that has been on `path` so far.
    pub(in super::super) fn new(path: u16, last_ns: u64, newest: u32) -> Self {
        let mut mover = Self::default();
        mover.meter.data_received(last_ns, path, Tsn(newest), 1);
        mover.last_new_ns = last_ns;
        mover
    }

    /// Data was sent by a path that its receiver will see as the same.
    pub(in super::super) fn sent(&mut self, time_ns: u64, path: u16, seq: u32) {
        if self.is_followed() {
            self.meter.data_sent(time_ns, path, Tsn(seq));
        }
    }

    /// The sender made a path its own.
    pub(in super::super) fn announced(&mut self, path: u16) {
        if self.is_followed() {
            let earlier = self.meter.handovers_settled();
            self.meter.path_announced(path);
            // what was announced before is over now
            if self.meter.handovers_settled() > earlier {
                self.on_settled();
            }
        }
    }

    /// From here on paths are the network's and not the sender's: what was sent no longer says which path data belongs to.
    /// The direction has been on `path` up to now, and `newest` has arrived.
    pub(in super::super) fn forget_sent(&mut self, path: u16, last_ns: u64, newest: u32) {
        if self.concurrent.is_empty() {
            self.harvest(usize::MAX, self.window_ns);
            self.meter.data_received(last_ns, path, Tsn(newest), 1);
        }
    }

    /// Whether handovers are looked for: not while several paths are in use, and not once there are too many.
    fn is_followed(&self) -> bool {
        self.concurrent.is_empty() && self.done.len() + self.settled.len() < MAX_HANDOVERS
    }

    /// Data arrived. `before` is asked for useful bytes and round trip time before a handover that may begin here; gives
    /// whether one settled.
    pub(in super::super) fn arrived(
        &mut self,
        a: Arrival,
        window_ns: u64,
        before: impl FnOnce() -> (Lately, Option<f64>),
    ) -> bool {
        self.window_ns = window_ns;
        let gap_ns = a.time_ns.saturating_sub(self.last_new_ns);
        if a.useful > 0 {
            self.last_new_ns = a.time_ns;
        }
        if !self.concurrent.is_empty() {
            self.several(a, gap_ns, before().0);
            return false;
        }
        if !self.is_followed() {
            self.dropped += u64::from(self.meter.path().is_some_and(|p| p != a.path));
            return false;
        }
        let earlier = self.meter.handovers_settled();
        if self.meter.path().is_some_and(|p| p != a.path)
            && self.candidate.as_ref().is_none_or(|c| c.path != a.path)
        {
            let (before, rtt_before_s) = before();
            let settling_gap_ns = self.candidate.take().map_or(0, |c| c.settling_gap_ns);
            self.candidate = Some(Surroundings {
                path: a.path,
                begin_ns: a.last_data_ns,
                first_new_ns: a.time_ns,
                before,
                rtt_before_s,
                settling_gap_ns,
                ..Surroundings::default()
            });
        }
        self.meter.data_received(a.time_ns, a.path, Tsn(a.seq), a.useful);
        if let Some(candidate) = &mut self.candidate {
            candidate.add(&a, window_ns);
        }
        let settled = self.meter.handovers_settled() > earlier;
        if settled {
            self.on_settled();
            self.look_for_concurrency(window_ns);
        } else {
            if self.meter.candidate_path().is_none() {
                self.candidate = None;
            }
            if let Some(last) = self.settled.last_mut() {
                last.add(&a, window_ns);
            }
        }
        settled
    }

    /// The meter has one handover more: the candidate was it.
    fn on_settled(&mut self) {
        if let Some(last) = self.settled.last_mut() {
            last.is_over();
        }
        self.settled.push(self.candidate.take().unwrap_or_default());
    }

    /// A round trip time was measured, of what was sent at `sent_ns`.
    pub(in super::super) fn round_trip(&mut self, sent_ns: u64, ns: u64) {
        if let Some(last) = self.settled.last_mut()
            && sent_ns >= last.first_new_ns
            && last.rtt_after.count() < RTT_KEPT as u64
        {
            last.rtt_after.add(ns);
        }
    }

    /// Last data over the old path before the last handover, and first after it. What a path in between carried does not count: packets
    /// were lost before that.
    pub(in super::super) fn last_settled(&self) -> Option<(u64, u64)> {
        let last = self.settled.last()?;
        let last_old_ns = self.meter.last_old_ns().unwrap_or(last.begin_ns);
        Some((last.begin_ns.min(last_old_ns), last.first_new_ns))
    }

    /// The two ends' account counts what is around the last handover under this number.
    pub(super) fn counted_as(&mut self, number: usize) {
        if let Some(last) = self.settled.last_mut() {
            last.ends = Some(number);
        }
    }

    /// Handovers beyond what is kept.
    pub(in super::super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// What was found by the end of the observation.
    pub(in super::super) fn finish(mut self, window_ns: u64) -> Moves {
        if self.concurrent.is_empty() {
            self.harvest(usize::MAX, window_ns);
        } else {
            let end_ns = self.last_new_ns;
            self.lose_silent(end_ns, u16::MAX);
        }
        self.done.sort_by_key(|m| m.first_new_ns);
        Moves {
            moved: self.done,
            in_use: self.concurrent.iter().map(|used| used.path).collect(),
            changes: self.changes,
        }
    }

    /// Takes the first `keep` handovers from the meter, and forgets the others.
    fn harvest(&mut self, keep: usize, window_ns: u64) {
        let found = core::mem::take(&mut self.meter).finish().handovers;
        let mut settled = core::mem::take(&mut self.settled);
        if found.len() > settled.len() {
            settled.extend(self.candidate.take());
        }
        self.candidate = None;
        for (handover, around) in found.iter().zip(&settled).take(keep) {
            let latency_ns = (handover.latency_s * 1e9).round() as i64;
            let first_new_ns = (handover.time_s * 1e9).round() as u64;
            // seconds since 1970 have no room for nanoseconds in a float
            let first_new_ns = if around.first_new_ns == 0 {
                first_new_ns
            } else {
                around.first_new_ns
            };
            self.done.push(Moved {
                from: handover.from,
                to: handover.to,
                last_old_ns: first_new_ns.saturating_add_signed(latency_ns.saturating_neg()),
                first_new_ns,
                interruption_ns: (handover.interruption_s * 1e9).round() as u64,
                settling_gap_ns: around.settling_gap_ns,
                adaptation: around.adaptation.or_else(|| around.bins.adaptation_time()),
                around: Around {
                    before: around.before,
                    bytes_after: around.bytes_after,
                    after_ns: around.last_ns.saturating_sub(around.first_new_ns).min(window_ns),
                    rtt_before_s: around.rtt_before_s,
                    rtt_after_s: around.rtt_after.median_s(),
                    out_of_order: around.out_of_order,
                },
                ends: around.ends,
                in_vain: false,
                received: false,
                packets_over: around.packets,
            });
        }
    }

    /// Whether the last handovers came so fast that they are the use of several paths at once.
    fn look_for_concurrency(&mut self, window_ns: u64) {
        let Some(first) = self.settled.len().checked_sub(CONCURRENT) else {
            return;
        };
        let times = self.settled[first..].iter().map(|s| s.first_new_ns);
        let (begin, end) = (
            times.clone().min().unwrap_or_default(),
            times.max().unwrap_or_default(),
        );
        if end.saturating_sub(begin) > CONCURRENT_NS {
            return;
        }
        for surroundings in &self.settled[first..] {
            self.concurrent.retain(|u| u.path != surroundings.path);
            self.concurrent
                .push(Used::new(surroundings.path, surroundings.last_ns));
        }
        self.changes += (self.settled.len() - first) as u64;
        self.harvest(first, window_ns);
    }

    /// Data arrived while several paths are used at once.
    fn several(&mut self, a: Arrival, gap_ns: u64, before: Lately) {
        self.changes += u64::from(core::mem::replace(&mut self.last_path, a.path) != a.path);
        let mut known = false;
        for used in &mut self.concurrent {
            if used.path == a.path {
                *used = Used::new(a.path, a.time_ns);
                known = true;
            } else {
                if used.first_other.is_none() {
                    used.first_other = Some((a.path, a.time_ns));
                    used.before = before;
                }
                used.gap_ns = used.gap_ns.max(gap_ns);
                used.bytes_after += u64::from(a.useful);
            }
        }
        if !known && self.concurrent.len() < MAX_AT_ONCE {
            self.concurrent.push(Used::new(a.path, a.time_ns));
        }
        self.lose_silent(a.time_ns, a.path);
        if self.concurrent.len() == 1 {
            // one path alone: from here on a change of it is a handover again
            self.concurrent.clear();
            self.meter
                .data_received(a.time_ns, a.path, Tsn(a.seq), a.useful.max(1));
        }
    }

    /// Paths that have been silent for too long are lost.
    fn lose_silent(&mut self, now_ns: u64, alive: u16) {
        let lost = &mut self.done;
        let dropped = &mut self.dropped;
        self.concurrent.retain(|used| {
            let silent = now_ns.saturating_sub(used.last_ns) >= SILENT_NS && used.path != alive;
            if let Some((to, first_ns)) = used.first_other
                && silent
            {
                if lost.len() < MAX_HANDOVERS {
                    lost.push(Moved {
                        from: used.path,
                        to,
                        last_old_ns: used.last_ns,
                        first_new_ns: first_ns,
                        interruption_ns: used.gap_ns,
                        settling_gap_ns: used.gap_ns,
                        adaptation: None,
                        around: Around {
                            before: used.before,
                            bytes_after: used.bytes_after,
                            after_ns: now_ns.saturating_sub(first_ns),
                            ..Around::NOTHING
                        },
                        ends: None,
                        in_vain: false,
                        received: false,
                        // others went on, or it would not be lost
                        packets_over: u64::MAX,
                    });
                } else {
                    *dropped += 1;
                }
                return false;
            }
            true
        });
    }
}

impl Surroundings {
    /// The direction has moved on: the connection over this path has ended.
    fn is_over(&mut self) {
        self.adaptation = core::mem::take(&mut self.bins).adaptation_time();
    }

    fn add(&mut self, a: &Arrival, window_ns: u64) {
        if a.path == self.path {
            self.bins.add(a.time_ns, u64::from(a.bytes));
            self.packets += 1;
        }
        if a.useful > 0 && a.last_new_ns <= self.first_new_ns.saturating_add(SETTLING_NS) {
            let gap_ns = a.time_ns.saturating_sub(a.last_new_ns);
            self.settling_gap_ns = self.settling_gap_ns.max(gap_ns);
        }
        if a.time_ns.saturating_sub(self.first_new_ns) < window_ns {
            self.bytes_after += u64::from(a.useful);
            self.out_of_order += u64::from(a.out_of_order);
        }
        self.last_ns = a.time_ns;
    }
}
