//! A SACK arrives (RFC 9260 sections 6.2.1, 6.3.2, 7.2).

use super::association::Association;
use super::multipath::Cuc;
use super::path::PathId;
use super::sender::{Acknowledged, Cause, Flight, Passed, Sent};
use super::{CwndCredit, Event};
use crate::congestion::{Acked, CongestionControl, Gain};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::Tsn;
use segue_wire::sctp::Sack;
use smallvec::SmallVec;

/// Ranges as offsets from the cumulative TSN ack, both ends inclusive, ascending.
pub(super) type Ranges = SmallVec<[(u32, u32); 4]>;

/// What a SACK says of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathProgress {
    pub path: PathId,
    /// What it newly acknowledges.
    pub acked_bytes: u32,
    /// What was under way before.
    pub flight_before: u32,
    /// Something was found lost.
    pub lost: bool,
    /// The path's pseudo-cumulative ack is acknowledged (CUC).
    pub pseudo: bool,
}

/// What a SACK says of each path.
#[derive(Debug)]
pub(super) struct Progress(SmallVec<[PathProgress; 2]>);

impl Progress {
    pub(super) fn begin(flight: &Flight) -> Self {
        let paths = flight.sizes().map(|(path, flight_before)| PathProgress {
            path,
            acked_bytes: 0,
            flight_before,
            lost: false,
            pseudo: false,
        });
        Self(paths.collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PathProgress> {
        self.0.iter()
    }

    pub(super) fn of(&self, path: PathId) -> Option<&PathProgress> {
        self.0.iter().find(|p| p.path == path)
    }

    fn note_acknowledged(&mut self, acknowledged: &Acknowledged) {
        let path = acknowledged.path;
        if let Some(progress) = self.0.iter_mut().find(|p| Some(p.path) == path) {
            progress.acked_bytes += acknowledged.size;
            progress.pseudo |= acknowledged.pseudo;
        }
    }

    pub(super) fn note_lost(&mut self, path: PathId) {
        if let Some(progress) = self.0.iter_mut().find(|p| p.path == path) {
            progress.lost = true;
        }
    }
}

impl Association {
    /// `from`: the source address of the packet. Returns false if the SACK contradicts what was sent.
    pub(super) fn on_sack(&mut self, now: Instant, from: Ipv6Addr, sack: &Sack) -> bool {
        let cumulative = sack.cumulative_tsn_ack;
        let former = self.flight.cumulative_tsn_ack();
        if cumulative.before(former) {
            // an old one, overtaken on the way (rule i)
            self.out.counters.multipath.overtaken_sacks += u64::from(self.multipath.is_some());
            return true;
        }
        let highest_sent = self.flight.next_tsn().previous();
        if !cumulative.at_or_before(highest_sent) {
            return false;
        }
        let Some(blocks) = valid_blocks(sack, highest_sent.distance_from(cumulative)) else {
            return false;
        };
        self.out.counters.sacks_received += 1;
        if self.is_overtaken(cumulative, &blocks) {
            self.open_burst();
            return true;
        }
        self.begin_sack_by_path();
        self.loss.begin_sack(sack.data_packets);
        let was_dry = self.is_sender_dry();
        let advanced = cumulative != former;
        let (progress, forward_tsn_acked) = self.acknowledge(now, sack, &blocks);
        self.leave_fast_recovery(cumulative);
        if !advanced && self.multipath.as_ref().is_some_and(|m| m.config.cuc != Cuc::Off) {
            let offered = progress.iter().filter(|p| p.pseudo).count();
            self.out.counters.multipath.pseudo_cumulative_acks += offered as u64;
        }
        self.open_windows(now, advanced, &progress);
        if advanced && !self.recovery.is_on() && self.config.cwnd_credit == CwndCredit::AckPath {
            self.credit_ack_path(from, &progress);
        }
        if self.paths.values().any(|p| p.retired) {
            self.drop_retired_paths();
        }
        if self.partial.in_use {
            if forward_tsn_acked {
                self.on_forward_tsn_acked();
            }
            self.advance_peer_ack_point(now);
        }
        self.note_window(sack.a_rwnd);
        self.open_burst();
        if self.is_sender_dry() && !was_dry {
            self.out.tell(Event::SendersDry);
        }
        self.announce_space();
        if self.streams.is_busy() {
            self.continue_stream_changes(now);
        }
        self.continue_shutdown(now);
        true
    }

    /// What the SACK acknowledges, and what it tells to be lost. Returns what that means for each path, and whether the
    /// cumulative TSN ack passed abandoned chunks.
    fn acknowledge(&mut self, now: Instant, sack: &Sack, blocks: &Ranges) -> (Progress, bool) {
        let cumulative = sack.cumulative_tsn_ack;
        let mut progress = Progress::begin(&self.flight);
        let mut forward_tsn_acked = false;
        while self.flight.cumulative_tsn_ack() != cumulative {
            match self.flight.acknowledge_next() {
                Some(Passed::New(acknowledged)) => {
                    self.on_acknowledged(now, &acknowledged);
                    progress.note_acknowledged(&acknowledged);
                }
                Some(Passed::Abandoned) => forward_tsn_acked = true,
                Some(Passed::Known) => {}
                // it is not beyond what was sent
                None => break,
            }
        }
        self.flight.find_pseudo_cumulative_acks();
        if !(blocks.is_empty() && self.flight.reported().is_empty()) {
            self.apply_gap_ack_blocks(now, cumulative, blocks, &mut progress);
        }
        if !blocks.is_empty() {
            let threshold = self.missing_report_threshold(sack.a_rwnd);
            let verdict = self.loss.step(&mut self.flight, blocks, threshold);
            self.recover(now, &verdict, &mut progress);
        }
        (progress, forward_tsn_acked)
    }

    /// A chunk that was outstanding or marked is acknowledged.
    fn on_acknowledged(&mut self, now: Instant, acknowledged: &Acknowledged) {
        let &Acknowledged {
            tsn,
            path,
            was_outstanding,
            transmission,
            timed,
            ..
        } = acknowledged;
        let own = path.and_then(|id| self.paths.get(id));
        let least = own.and_then(|p| p.share.least_round_trip.or(p.rtt.srtt()));
        self.loss.on_newly_acked(now, tsn, path, transmission, least);
        let retransmitted = transmission.is_again();
        let Some(id) = path else { return };
        let Some(path) = self.paths.get_mut(id) else {
            return;
        };
        path.pmtu.is_good();
        let destination = path.destination;
        if let Some(sent_at) = timed
            && !retransmitted
            && self.may_end_round_trip(id, now.since(sent_at))
            && let Some(path) = self.paths.get_mut(id)
        {
            let round_trip = now.since(sent_at);
            path.rtt.measure(round_trip);
            let least = &mut path.share.least_round_trip;
            *least = Some(least.map_or(round_trip, |l| l.min(round_trip)));
        }
        // section 8.1 and 8.2: the address the chunk was last sent to is alive
        if self.destinations[destination].error_count > 0 || self.association_error_count > 0 {
            let since_last_sent = was_outstanding && !retransmitted;
            if since_last_sent || !self.doubts(destination) {
                self.clear_errors(destination);
            } else {
                self.association_error_count = 0;
            }
        }
    }

    /// The peer's window is as a SACK advertises it; a probe that it did not take goes out again.
    pub(super) fn note_window(&mut self, a_rwnd: u32) {
        let cumulative = self.flight.cumulative_tsn_ack();
        let first = self.flight.get(cumulative.next()).map(Sent::len);
        let next_len = first.or_else(|| self.queue.next_len());
        let outstanding = self.flight.outstanding_bytes();
        if let Some(probe) = self.credit.on_sack(a_rwnd, outstanding, next_len, cumulative)
            && let Some((_, len)) = self.flight.lose_one(Cause::ProbeRefused, probe)
        {
            self.credit.give_back(len);
        }
    }

    /// Whether the probe of a closed window is out on `path`, and was answered.
    pub(super) fn probe_was_answered(&self, path: PathId) -> bool {
        let probe = self.credit.answered_probe().and_then(|tsn| self.flight.get(tsn));
        probe.is_some_and(|probe| probe.path() == Some(path))
    }

    /// Brings the chunks' states in line with the blocks, touching only what changed since the last SACK.
    #[inline(never)]
    fn apply_gap_ack_blocks(
        &mut self,
        now: Instant,
        cumulative: Tsn,
        blocks: &Ranges,
        progress: &mut Progress,
    ) {
        let offset = |tsn: Tsn| tsn.distance_from(cumulative);
        let beyond = self.flight.reported().iter().filter(|r| cumulative.before(r.1));
        let former: Ranges = beyond
            .map(|&(start, end)| {
                let start = if cumulative.before(start) {
                    offset(start)
                } else {
                    1
                };
                (start, offset(end))
            })
            .collect();
        if former == *blocks && !blocks.is_empty() {
            return;
        }
        for (start, end) in difference(blocks, &former) {
            for offset in start..=end {
                if let Some(acknowledged) = self.flight.acknowledge(cumulative.add(offset)) {
                    self.on_acknowledged(now, &acknowledged);
                    progress.note_acknowledged(&acknowledged);
                }
            }
        }
        // section 6.2.1 rule iii: the receiver reneged; R4
        for (start, end) in difference(&former, blocks) {
            for offset in start..=end {
                let tsn = cumulative.add(offset);
                let path = self.flight.get(tsn).and_then(|sent| sent.path());
                let path = path.and_then(|id| self.paths.get_mut(id));
                let rto = path.as_ref().map(|path| path.rto());
                if self.flight.renege(now, tsn, rto)
                    && let Some(path) = path
                {
                    path.note_sent(now);
                }
            }
        }
        let reported = blocks
            .iter()
            .map(|&(start, end)| (cumulative.add(start), cumulative.add(end)));
        self.flight.note_reported(reported.collect());
    }

    /// cwnd grows and T3-rtx is stopped (R2) or started anew (R3), path by path.
    fn open_windows(&mut self, now: Instant, cumulative_advanced: bool, progress: &Progress) {
        let in_fast_recovery = self.recovery.is_on();
        let by_path = self.multipath.as_ref().map(|m| m.config.cuc);
        let gains = self.coupled_gains();
        for progress in progress.iter() {
            let id = progress.path;
            let Some(path) = self.paths.get_mut(id) else {
                continue;
            };
            if progress.acked_bytes > 0 {
                let (cumulative_advanced, in_fast_recovery) = match by_path {
                    None => (cumulative_advanced, in_fast_recovery),
                    Some(cuc) => path.share.window_state(cuc, cumulative_advanced, progress.pseudo),
                };
                path.share.inter_loss.on_ack(progress.acked_bytes);
                let gain = gains.iter().find(|g| g.0 == id).map_or(Gain::WHOLE, |g| g.1);
                let acked = Acked {
                    now,
                    bytes: progress.acked_bytes,
                    cumulative_advanced,
                    window_was_full: progress.flight_before >= path.window.cwnd(),
                    in_fast_recovery,
                    open: !in_fast_recovery,
                    flight_empty: self.flight.size_on(id) == 0,
                    round_start: false,
                    una: 0,
                    next: 0,
                    rtt: None,
                    srtt: path.rtt.srtt(),
                };
                path.window.on_ack_coupled(acked, gain);
            }
            let restart = (progress.acked_bytes > 0).then(|| now + path.rto());
            self.flight.settle(id, restart);
        }
    }

    /// `CwndCredit::AckPath`: the SACK advanced the cumulative TSN ack and came over a path that none of the data it
    /// acknowledges was sent on: that path's cwnd opens by one segment if it is in slow start, full or not. The path is
    /// the one, from the present source, to the address that the SACK came from. Not in fast recovery.
    #[inline(never)]
    fn credit_ack_path(&mut self, from: Ipv6Addr, progress: &Progress) {
        let Some(index) = self.destination_index(from) else {
            return;
        };
        let id = self.destinations[index].path;
        if let Some(path) = self.paths.get_mut(id)
            && progress.of(id).is_none_or(|p| p.acked_bytes == 0)
        {
            path.window.on_credit();
        }
    }

    /// Tells of room in the send buffer, in steps large enough that a sender of small messages is not woken for each.
    pub(super) fn announce_space(&mut self) {
        let Some(wanted) = self.wanted_space else { return };
        let step = (self.config.send_buffer as usize / 16).min(16 * 1024);
        let space = self.send_space();
        if space >= wanted.max(step) || (space >= wanted && !self.queue.has_unsent()) {
            self.wanted_space = None;
            self.out.tell(Event::Writable);
        }
    }
}

/// The gap ack blocks, if they are in order and within what was sent (`reach` TSNs beyond the cumulative TSN ack).
fn valid_blocks(sack: &Sack, reach: u32) -> Option<Ranges> {
    let mut last = 0;
    for block in &sack.gap_ack_blocks {
        let (start, end) = (u32::from(block.start), u32::from(block.end));
        if start <= last || end < start || end > reach {
            return None;
        }
        last = end;
    }
    Some(
        sack.gap_ack_blocks
            .iter()
            .map(|b| (u32::from(b.start), u32::from(b.end)))
            .collect(),
    )
}

/// What of `a` is not in `b`.
pub(super) fn difference(a: &Ranges, b: &Ranges) -> Ranges {
    let mut out = Ranges::new();
    let mut j = 0;
    for &(start, end) in a {
        let mut at = start;
        while j < b.len() && b[j].1 < at {
            j += 1;
        }
        let mut k = j;
        while at <= end {
            match b.get(k) {
                Some(&(from, to)) if from <= end => {
                    if at < from {
                        out.push((at, from - 1));
                    }
                    at = at.max(to + 1);
                    k += 1;
                }
                _ => {
                    out.push((at, end));
                    break;
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_of_ranges() {
        let r = |v: &[(u32, u32)]| v.iter().copied().collect::<Ranges>();
        assert_eq!(difference(&r(&[(2, 9)]), &r(&[])), r(&[(2, 9)]));
        assert_eq!(difference(&r(&[(2, 9)]), &r(&[(2, 9)])), r(&[]));
        assert_eq!(difference(&r(&[(2, 9)]), &r(&[(2, 7)])), r(&[(8, 9)]));
        assert_eq!(
            difference(&r(&[(2, 9), (12, 14)]), &r(&[(3, 4), (6, 12)])),
            r(&[(2, 2), (5, 5), (13, 14)])
        );
        assert_eq!(difference(&r(&[(5, 6), (8, 8)]), &r(&[(1, 20)])), r(&[]));
    }
}
