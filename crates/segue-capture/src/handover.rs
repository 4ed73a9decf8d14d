//! Handover metrics from data alone: the same code for simulated and captured packets.
//!
//! [`HandoverMeter`] is fed each data segment sent, received and lost, in time order, and finds the handovers in them.
//! It knows nothing of signalling: a handover is what happens to the data.
//!
//! # Definitions
//! - A **path** is named by the destination address of the data, or by whatever else tells paths apart (`P`).
//! - **Handover latency**: last data segment received through the old path to the first received through the new one
//!   (000 section VI-A). Signed: negative while the old path still drains after the new one has begun.
//! - **Interruption**: longest gap between two arrivals of new data, by whatever path, from that last segment on the old
//!   path until the handover has settled. Segments received before end no gap: the application gets nothing from them. Nor
//!   does one that is there already: a handover that it settles is silent until the next new data on that path.
//! - Where it is known when the sender had something to send ([`HandoverMeter::silence_begins`]), neither begins before
//!   that: what the application has not sent cannot be late.
//! - **Packets lost to a handover**: packets lost for [`LossCause::Handover`] since the handover before it settled,
//!   those still on their way to the old path included (000 section VI-B counts them over the run).
//!
//! # Settle rule
//! A segment *belongs* to the path that it was first sent to; retransmissions to another path do not move it. Data has
//! moved to a new path for good when [`SETTLE_SEGMENTS`] segments that belong to it have arrived over it, none newer
//! having arrived over the old path meanwhile (one is enough if the observation ends there). Then:
//! - the new path begins at its first segment of any kind since the old one was last seen current, a retransmission
//!   included: in 000 section V-C that is the segment at 10.0 s, although the path goes on only at 15 s;
//! - a retransmission over an alternate path, after which the old path goes on, is an excursion and no handover;
//! - segments that were sent to the old path before the switch and arrive after it do not end the new path, they make
//!   the latency smaller.
//!
//! The rule waits for no time, so that handovers may follow one another as fast as the data shows them.
//!
//! Where the sender's change of path is known ([`HandoverMeter::path_announced`]: a Set Primary Address that it
//! accepted), one segment over the announced path is enough, a retransmission included: a host that comes and goes
//! faster than timeouts expire may move nothing else. Segments sent before the announcement and still on their way
//! over the old path do not move it back.
//!
//! Without [`HandoverMeter::data_sent`] (a capture at the receiver only) a segment belongs to the path of its first
//! arrival if it is newer than all before it. The one case that then reads differently is the loss of the newest
//! segments: their retransmissions to an alternate path look like new data there.

mod boundaries;
#[cfg(test)]
mod tests;

use crate::rows::{Row, Rows, Spill};
use boundaries::Boundaries;
use core::net::Ipv6Addr;
use segue_wire::Tsn;
use serde::Serialize;

/// Segments that must have moved to a new path before a handover counts.
pub const SETTLE_SEGMENTS: u32 = 2;

/// One handover, as the data shows it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Handover<P = Ipv6Addr> {
    /// When the first data segment arrived over the new path, seconds.
    #[serde(rename = "time")]
    pub time_s: f64,
    /// Address of the old path.
    pub from: P,
    /// Address of the new path.
    pub to: P,
    /// Last data segment received over the old path to the first received over the new one, seconds (000 section
    /// VI-A). Negative if the old path was still draining when the new one began.
    pub latency_s: f64,
    /// Longest time without new data around the handover, seconds.
    pub interruption_s: f64,
    /// Data packets lost to this handover.
    pub lost_packets: u64,
}

/// Why a data packet was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossCause {
    /// Sent to a place where the mobile host no longer was, or not yet.
    Handover,
    /// A full queue.
    Queue,
    /// Random loss, corruption, contention.
    Other,
}

/// Counts over the whole observation. Packets are data packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct DataTotals {
    /// Packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Of them, retransmissions: a TSN that was not newer than all before it.
    pub packets_retransmitted: u64,
    /// Packets received, duplicates included.
    pub packets_received: u64,
    /// Packets received that carried nothing new.
    pub duplicate_packets: u64,
    /// Useful bytes received.
    pub useful_bytes: u64,
    /// Packets lost to handover.
    pub lost_to_handover: u64,
    /// Packets lost to a full queue.
    pub lost_to_queue: u64,
    /// Packets lost otherwise.
    pub lost_otherwise: u64,
    /// Longest time between two arrivals of new data, nanoseconds, at whatever moment.
    pub longest_gap_ns: u64,
}

impl DataTotals {
    /// Packets lost to handover / packets sent (000 section VI-B); zero if nothing was sent.
    #[must_use]
    pub fn handover_loss_rate(&self) -> f64 {
        if self.packets_sent == 0 {
            0.0
        } else {
            self.lost_to_handover as f64 / self.packets_sent as f64
        }
    }
}

/// What a meter found.
#[derive(Clone, PartialEq, Debug)]
pub struct HandoverReport<P = Ipv6Addr> {
    /// Every handover in order.
    pub handovers: Vec<Handover<P>>,
    /// Counts.
    pub totals: DataTotals,
}

/// Finds handovers in one direction of one association; see the module's documentation for the rules.
///
/// Times are nanoseconds and never go back. Work per packet is constant and allocates nothing; a settled handover
/// takes a place in a list.
///
/// ```
/// use segue_capture::handover::HandoverMeter;
/// use segue_wire::Tsn;
/// let (old, new) = ("2001:db8:2::1".parse().unwrap(), "2001:db8:3::1".parse().unwrap());
/// let mut meter = HandoverMeter::<std::net::Ipv6Addr>::new();
/// for (ms, path, tsn) in [(0, old, 1), (10, old, 2), (18, new, 3), (28, new, 4)] {
///     meter.data_sent(ms * 1_000_000, path, Tsn(tsn));
///     meter.data_received(ms * 1_000_000 + 500_000, path, Tsn(tsn), 1000);
/// }
/// let report = meter.finish();
/// assert_eq!(report.handovers.len(), 1);
/// assert_eq!(report.handovers[0].latency_s, 0.008);
/// ```
#[derive(Clone, Debug)]
pub struct HandoverMeter<P: Row = Ipv6Addr> {
    boundaries: Boundaries<P>,
    /// A retransmission was sent to a path that new data had already left: what arrives there may be that.
    old_path_resent: bool,
    current: Option<CurrentPath<P>>,
    candidate: Option<Candidate<P>>,
    /// The path that the sender last made its own, with the newest segment sent before.
    announced: Option<(P, Option<Tsn>)>,
    last_arrival_ns: Option<u64>,
    /// When data last arrived that had not been received before, or since then something was to come again.
    last_new_data_ns: Option<u64>,
    /// Losses by handover since the last handover settled.
    lost_since_settled: u64,
    settled: Rows<Settled<P>>,
    /// Nothing new has arrived since before the last of them settled.
    silent_since_settled: bool,
    totals: DataTotals,
}

/// The path that data is on.
#[derive(Clone, Copy, Debug)]
struct CurrentPath<P> {
    path: P,
    last_received_ns: u64,
}

/// A path that data may be moving to.
#[derive(Clone, Copy, Debug)]
struct Candidate<P> {
    path: P,
    first_received_ns: u64,
    /// Segments received over it that belong to it.
    segments: u32,
    longest_gap_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Settled<P> {
    from: P,
    to: P,
    last_old_ns: u64,
    first_new_ns: u64,
    interruption_ns: u64,
    lost_packets: u64,
}

impl<P: Row> Default for HandoverMeter<P> {
    fn default() -> Self {
        Self {
            boundaries: Boundaries::default(),
            old_path_resent: false,
            current: None,
            candidate: None,
            announced: None,
            last_arrival_ns: None,
            last_new_data_ns: None,
            lost_since_settled: 0,
            settled: Rows::default(),
            silent_since_settled: false,
            totals: DataTotals::default(),
        }
    }
}

impl<P: Row + Eq> HandoverMeter<P> {
    /// A meter that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves handovers that have settled in this store.
    pub fn keep_in(&mut self, spill: &Spill) {
        self.settled.keep_in(spill);
    }

    /// Has all handovers in memory again, and from now on.
    pub fn recall(&mut self) {
        self.settled.recall();
    }

    /// A data segment was sent towards `path`, or sent again.
    pub fn data_sent(&mut self, _time_ns: u64, path: P, tsn: Tsn) {
        self.totals.packets_sent += 1;
        if self.boundaries.is_new(tsn) {
            if self.boundaries.assign(tsn, path) {
                self.old_path_resent = false;
            }
        } else {
            self.totals.packets_retransmitted += 1;
            if self.boundaries.current_path() != Some(path) {
                self.old_path_resent = true;
            }
        }
    }

    /// The sender made `path` its path for data.
    pub fn path_announced(&mut self, path: P) {
        // A move announced before that carried something is over now.
        if self.candidate_is_announced() {
            self.settle();
        }
        self.announced = Some((path, self.boundaries.newest()));
    }

    /// Of what arrives next: nothing was to come before this moment.
    #[cold]
    pub fn silence_begins(&mut self, time_ns: u64) {
        self.last_new_data_ns = self.last_new_data_ns.max(Some(time_ns));
        if let Some(current) = &mut self.current
            && self.candidate.is_none()
        {
            current.last_received_ns = current.last_received_ns.max(time_ns);
        }
    }

    /// A data segment arrived over `path` with `useful_bytes` bytes not received before (zero for a duplicate).
    pub fn data_received(&mut self, time_ns: u64, path: P, tsn: Tsn, useful_bytes: u32) {
        self.totals.packets_received += 1;
        self.totals.duplicate_packets += u64::from(useful_bytes == 0);
        self.totals.useful_bytes += u64::from(useful_bytes);
        let gap_ns = self
            .last_new_data_ns
            .map_or(0, |last| time_ns.saturating_sub(last));
        if useful_bytes > 0 {
            self.last_new_data_ns = Some(time_ns);
            self.totals.longest_gap_ns = self.totals.longest_gap_ns.max(gap_ns);
        }
        self.last_arrival_ns = Some(time_ns);
        if self.boundaries.is_new(tsn) && self.boundaries.assign(tsn, path) {
            self.old_path_resent = false;
        }
        if useful_bytes > 0 && core::mem::take(&mut self.silent_since_settled) {
            self.end_silence(path, tsn, gap_ns);
        }
        match &self.current {
            None => {
                self.current = Some(CurrentPath {
                    path,
                    last_received_ns: time_ns,
                })
            }
            Some(current) if current.path == path => self.on_current_path(time_ns, tsn, gap_ns),
            Some(_) => self.on_other_path(time_ns, path, tsn, gap_ns),
        }
    }

    /// A data packet on its way to `path` was lost.
    pub fn data_lost(&mut self, _time_ns: u64, path: P, cause: LossCause) {
        match cause {
            LossCause::Queue => self.totals.lost_to_queue += 1,
            LossCause::Other => self.totals.lost_otherwise += 1,
            LossCause::Handover => {
                self.totals.lost_to_handover += 1;
                let moved_on = self.boundaries.current_path() != Some(path) && self.candidate.is_none();
                match self.settled.last_mut() {
                    // Still on its way to the old path when the handover settled.
                    Some(last) if moved_on && last.from == path => last.lost_packets += 1,
                    _ => self.lost_since_settled += 1,
                }
            }
        }
    }

    /// Counts so far.
    #[must_use]
    pub fn totals(&self) -> &DataTotals {
        &self.totals
    }

    /// The path that data may be moving to, where it has not settled yet.
    #[must_use]
    pub fn candidate_path(&self) -> Option<P> {
        self.candidate.map(|c| c.path)
    }

    /// The path that data is on.
    #[must_use]
    pub fn path(&self) -> Option<P> {
        self.current.map(|c| c.path)
    }

    /// Handovers settled so far.
    #[must_use]
    pub fn handovers_settled(&self) -> usize {
        self.settled.len()
    }

    /// Of the handover that settled last, when data last arrived over the old path.
    #[must_use]
    pub fn last_old_ns(&self) -> Option<u64> {
        self.settled.last().map(|last| last.last_old_ns)
    }

    /// Ends the observation.
    #[must_use]
    pub fn finish(mut self) -> HandoverReport<P> {
        if self.candidate.is_some_and(|c| c.segments > 0) || self.candidate_is_announced() {
            self.settle();
        }
        HandoverReport {
            handovers: self.settled.iter().map(Settled::into_handover).collect(),
            totals: self.totals,
        }
    }

    fn on_current_path(&mut self, time_ns: u64, tsn: Tsn, gap_ns: u64) {
        let Some(current) = &mut self.current else { return };
        match &mut self.candidate {
            None => current.last_received_ns = time_ns,
            Some(candidate) => {
                let left = self.boundaries.current_path() == Some(candidate.path);
                let drains =
                    left && candidate.segments > 0 && self.boundaries.path_of(tsn) == Some(current.path);
                if drains {
                    candidate.longest_gap_ns = candidate.longest_gap_ns.max(gap_ns);
                    if !self.old_path_resent {
                        current.last_received_ns = time_ns;
                    }
                } else if !(left && self.old_path_resent) {
                    // The old path goes on: what the other one carried was an excursion.
                    current.last_received_ns = time_ns;
                    self.candidate = None;
                }
            }
        }
    }

    fn on_other_path(&mut self, time_ns: u64, path: P, tsn: Tsn, gap_ns: u64) {
        let belongs = self.boundaries.path_of(tsn) == Some(path);
        if self.drains_settled(path, tsn) {
            if let Some(last) = self.settled.last_mut()
                && !self.old_path_resent
                && self.candidate.is_none()
            {
                last.last_old_ns = time_ns;
            }
            return;
        }
        match &mut self.candidate {
            Some(candidate) if candidate.path == path => {
                candidate.longest_gap_ns = candidate.longest_gap_ns.max(gap_ns);
                candidate.segments += u32::from(belongs);
            }
            // A third path takes over only with data of its own.
            Some(candidate) if !belongs => {
                candidate.longest_gap_ns = candidate.longest_gap_ns.max(gap_ns);
                return;
            }
            other => {
                // the old path has not gone on since
                let longest_gap_ns = other.map_or(0, |c| c.longest_gap_ns);
                self.candidate = Some(Candidate {
                    path,
                    first_received_ns: time_ns,
                    segments: u32::from(belongs),
                    longest_gap_ns: longest_gap_ns.max(gap_ns),
                });
            }
        }
        if self.candidate.is_some_and(|c| c.segments >= SETTLE_SEGMENTS) || self.candidate_is_announced() {
            self.settle();
        }
    }

    /// New data arrives over `path`, the first since before the last handover settled: so long it was silent, unless what
    /// ends the silence is the next handover.
    #[cold]
    fn end_silence(&mut self, path: P, tsn: Tsn, gap_ns: u64) {
        let goes_on = self.path() == Some(path) || self.drains_settled(path, tsn);
        if let Some(last) = self.settled.last_mut().filter(|_| goes_on) {
            last.interruption_ns = last.interruption_ns.max(gap_ns);
        }
    }

    fn candidate_is_announced(&self) -> bool {
        self.candidate
            .is_some_and(|c| self.announced.is_some_and(|(path, _)| path == c.path))
    }

    /// Whether the segment was on its way over the old path when the path that data is on now was announced.
    fn precedes_announcement(&self, tsn: Tsn) -> bool {
        let current = self.current.map(|c| c.path);
        self.announced.is_some_and(|(path, newest)| {
            current == Some(path) && newest.is_some_and(|n| tsn.at_or_before(n))
        })
    }

    /// Whether this is the end of the data that was sent to the old path before the handover settled last.
    fn drains_settled(&self, path: P, tsn: Tsn) -> bool {
        self.settled.last().is_some_and(|last| last.from == path)
            && self.boundaries.path_of(tsn) == Some(path)
            && (self.boundaries.current_path() != Some(path) || self.precedes_announcement(tsn))
    }

    fn settle(&mut self) {
        let (Some(current), Some(candidate)) = (self.current, self.candidate.take()) else {
            return;
        };
        self.settled.push(Settled {
            from: current.path,
            to: candidate.path,
            last_old_ns: current.last_received_ns,
            first_new_ns: candidate.first_received_ns,
            interruption_ns: candidate.longest_gap_ns,
            lost_packets: core::mem::take(&mut self.lost_since_settled),
        });
        // what settles it was a copy: the silence that it lies in is longer
        self.silent_since_settled = self.last_new_data_ns < self.last_arrival_ns;
        self.current = self.last_arrival_ns.map(|last_received_ns| CurrentPath {
            path: candidate.path,
            last_received_ns,
        });
    }
}

impl<P: Row> Row for Settled<P> {
    const BYTES: usize = 2 * P::BYTES + 4 * u64::BYTES;

    fn put(self, to: &mut Vec<u8>) {
        (self.from, self.to).put(to);
        let rest = [
            self.last_old_ns,
            self.first_new_ns,
            self.interruption_ns,
            self.lost_packets,
        ];
        rest.into_iter().for_each(|number| Row::put(number, to));
    }

    fn read(from: &mut &[u8]) -> Self {
        let (old, new) = Row::read(from);
        Self {
            from: old,
            to: new,
            last_old_ns: u64::read(from),
            first_new_ns: u64::read(from),
            interruption_ns: u64::read(from),
            lost_packets: u64::read(from),
        }
    }
}

impl<P> Settled<P> {
    fn into_handover(self) -> Handover<P> {
        Handover {
            time_s: self.first_new_ns as f64 / 1e9,
            from: self.from,
            to: self.to,
            latency_s: (self.first_new_ns as i64 - self.last_old_ns as i64) as f64 / 1e9,
            interruption_s: self.interruption_ns as f64 / 1e9,
            lost_packets: self.lost_packets,
        }
    }
}
