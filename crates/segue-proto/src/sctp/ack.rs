//! A SACK arrives (RFC 9260 sections 6.2.1, 6.3.2, 7.2).

use super::association::Association;
use super::loss::Transmission;
use super::outbound::ChunkState;
use super::path::PathId;
use super::{CwndCredit, Event};
use crate::congestion::{Acked, CongestionControl, Gain};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::Tsn;
use segue_wire::sctp::Sack;
use smallvec::SmallVec;

/// Ranges as offsets from the cumulative TSN ack, both ends inclusive, ascending.
pub(super) type Ranges = SmallVec<[(u32, u32); 4]>;

impl Association {
    /// `from`: the source address of the packet. Returns false if the SACK contradicts what was sent.
    pub(super) fn on_sack(&mut self, now: Instant, from: Ipv6Addr, sack: &Sack) -> bool {
        let cumulative = sack.cumulative_tsn_ack;
        let former = self.outbound.cumulative_tsn_ack();
        if cumulative.before(former) {
            // an old one, overtaken on the way (rule i)
            self.out.counters.multipath.overtaken_sacks += u64::from(self.multipath.is_some());
            return true;
        }
        let highest_sent = self.outbound.next_tsn().previous();
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
        let by_path = self.multipath.is_some();
        if by_path {
            self.begin_sack_by_path();
        }
        self.loss.begin_sack(sack.data_packets);
        let was_empty = self.outbound.is_empty();
        for path in self.paths.values_mut() {
            path.acked_bytes = 0;
            path.flight_before = path.flightsize;
            path.earliest_acked = false;
            path.lost = false;
        }

        let advanced = cumulative != former;
        let mut forward_tsn_acked = false;
        for _ in 0..cumulative.distance_from(former) {
            let Some((tsn, sent)) = self.outbound.pop_acked() else {
                break;
            };
            if sent.state == ChunkState::Abandoned {
                forward_tsn_acked = true;
            } else if sent.state != ChunkState::GapAcked {
                let size = sent.size();
                self.on_chunk_acked(now, tsn, sent.state, sent.path, size, sent.transmission);
                if by_path && let Some(path) = sent.path.and_then(|id| self.paths.get_mut(id)) {
                    path.share.pseudo.on_cumulatively_acked();
                }
            }
        }
        if by_path {
            self.find_pseudo_cumulative_acks();
        }
        if !(blocks.is_empty() && self.outbound.gap_acked.is_empty()) {
            self.apply_gap_ack_blocks(now, cumulative, &blocks);
        }
        if !blocks.is_empty() {
            let threshold = self.missing_report_threshold(sack.a_rwnd);
            let verdict = self.loss.step(&mut self.outbound, &blocks, threshold);
            self.recover(now, &verdict);
        }
        self.leave_fast_recovery(cumulative);
        if by_path {
            self.note_pseudo_cumulative_acks(advanced);
        }
        self.open_windows(now, advanced);
        if advanced && self.fast_recovery_exit.is_none() && self.config.cwnd_credit == CwndCredit::AckPath {
            self.credit_ack_path(from);
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
        self.peer_rwnd = sack.a_rwnd.saturating_sub(self.outbound.outstanding_bytes);
        self.note_window(sack.a_rwnd);
        self.open_burst();
        if self.outbound.is_empty() && !was_empty {
            self.out.tell(Event::SendersDry);
        }
        self.announce_space();
        if self.streams.is_busy() {
            self.continue_stream_changes(now);
        }
        self.continue_shutdown(now);
        true
    }

    /// A chunk that was outstanding or marked is acknowledged.
    fn on_chunk_acked(
        &mut self,
        now: Instant,
        tsn: Tsn,
        former: ChunkState,
        path: Option<PathId>,
        size: u32,
        transmission: Transmission,
    ) {
        let own = path.and_then(|id| self.paths.get(id));
        let least = own.and_then(|p| p.share.least_round_trip.or(p.rtt.srtt()));
        self.loss.on_newly_acked(now, tsn, path, transmission, least);
        let retransmitted = transmission.is_again();
        let Some(id) = path else { return };
        let Some(path) = self.paths.get_mut(id) else {
            return;
        };
        path.acked_bytes += size;
        path.pmtu.is_good();
        if former == ChunkState::Outstanding {
            path.flightsize -= size;
            // R3
            path.earliest_acked |= tsn == path.earliest;
        }
        if let Some((timed, sent_at)) = path.timed
            && timed == tsn
        {
            path.timed = None;
            let round_trip = now.since(sent_at);
            if !retransmitted && self.may_end_round_trip(id, round_trip) {
                let path = &mut self.paths[id];
                path.rtt.measure(round_trip);
                let least = &mut path.share.least_round_trip;
                *least = Some(least.map_or(round_trip, |l| l.min(round_trip)));
            }
        }
        let destination = self.paths[id].destination;
        // section 8.1 and 8.2: the address the chunk was last sent to is alive
        if self.destinations[destination].error_count > 0 || self.association_error_count > 0 {
            let since_last_sent = former == ChunkState::Outstanding && !retransmitted;
            if since_last_sent || !self.doubts(destination) {
                self.clear_errors(destination);
            } else {
                self.association_error_count = 0;
            }
        }
    }

    /// Brings the chunks' states in line with the blocks, touching only what changed since the last SACK.
    #[inline(never)]
    fn apply_gap_ack_blocks(&mut self, now: Instant, cumulative: Tsn, blocks: &Ranges) {
        let former: Ranges = self
            .outbound
            .gap_acked
            .iter()
            .filter(|r| cumulative.before(r.1))
            .map(|&(start, end)| {
                let start = if cumulative.before(start) {
                    start.distance_from(cumulative)
                } else {
                    1
                };
                (start, end.distance_from(cumulative))
            })
            .collect();
        if former == *blocks && !blocks.is_empty() {
            return;
        }
        for (start, end) in difference(blocks, &former) {
            for offset in start..=end {
                let tsn = cumulative.add(offset);
                let Some(sent) = self.outbound.get(tsn) else { break };
                let transmission = sent.transmission;
                let Some((state, path, size)) = self.outbound.set_state(tsn, ChunkState::GapAcked) else {
                    break;
                };
                if matches!(state, ChunkState::Outstanding | ChunkState::Marked) {
                    self.on_chunk_acked(now, tsn, state, path, size, transmission);
                    if let Some(path) = path {
                        self.advance_pseudo_cumulative_ack(path, tsn);
                    }
                }
            }
        }
        // section 6.2.1 rule iii: the receiver reneged; R4
        for (start, end) in difference(&former, blocks) {
            for offset in start..=end {
                let tsn = cumulative.add(offset);
                if self
                    .outbound
                    .get(tsn)
                    .is_none_or(|s| s.state != ChunkState::GapAcked || s.released)
                {
                    continue;
                }
                let Some((_, path, size)) = self.outbound.set_state(tsn, ChunkState::Outstanding) else {
                    break;
                };
                if let Some(path) = path.and_then(|id| self.paths.get_mut(id)) {
                    path.on_sent(now, tsn, size, false);
                } else {
                    self.outbound.set_state(tsn, ChunkState::Marked);
                }
            }
        }
        self.outbound.gap_acked = blocks
            .iter()
            .map(|&(start, end)| (cumulative.add(start), cumulative.add(end)))
            .collect();
    }

    /// cwnd grows and T3-rtx is stopped (R2) or started anew (R3), path by path.
    fn open_windows(&mut self, now: Instant, cumulative_advanced: bool) {
        let in_fast_recovery = self.fast_recovery_exit.is_some();
        let by_path = self.multipath.as_ref().map(|m| m.config.cuc);
        let gains = self.coupled_gains();
        let floor = self.outbound.cumulative_tsn_ack().next();
        for (id, path) in self.paths.iter_mut() {
            if path.acked_bytes > 0 {
                let (cumulative_advanced, in_fast_recovery) = match by_path {
                    None => (cumulative_advanced, in_fast_recovery),
                    Some(cuc) => path.share.window_state(cuc, cumulative_advanced),
                };
                path.share.inter_loss.on_ack(path.acked_bytes);
                let gain = gains.iter().find(|g| g.0 == id).map_or(Gain::WHOLE, |g| g.1);
                let acked = Acked {
                    now,
                    bytes: path.acked_bytes,
                    cumulative_advanced,
                    window_was_full: path.flight_before >= path.window.cwnd(),
                    in_fast_recovery,
                    open: !in_fast_recovery,
                    flight_empty: path.flightsize == 0,
                    round_start: false,
                    una: 0,
                    next: 0,
                    rtt: None,
                    srtt: path.rtt.srtt(),
                };
                path.window.on_ack_coupled(acked, gain);
            }
            if path.flightsize == 0 {
                path.t3_rtx = None;
            } else if path.earliest_acked {
                let from = if path.earliest.before(floor) {
                    floor
                } else {
                    path.earliest
                };
                if let Some(tsn) = self.outbound.timed_on(id, from, path.share.t3_by_order) {
                    path.earliest = tsn;
                }
                if path.acked_bytes > 0 {
                    path.t3_rtx = Some(now + path.rtt.rto());
                }
            }
        }
    }

    /// `CwndCredit::AckPath`: the SACK advanced the cumulative TSN ack and came over a path that none of the data it
    /// acknowledges was sent on: that path's cwnd opens by one segment if it is in slow start, full or not. The path is
    /// the one, from the present source, to the address that the SACK came from. Not in fast recovery.
    #[inline(never)]
    fn credit_ack_path(&mut self, from: Ipv6Addr) {
        let Some(index) = self.destination_index(from) else {
            return;
        };
        let id = self.destinations[index].path;
        if let Some(path) = self.paths.get_mut(id)
            && path.acked_bytes == 0
        {
            path.window.on_credit();
        }
    }

    /// Tells of room in the send buffer, in steps large enough that a sender of small messages is not woken for each.
    pub(super) fn announce_space(&mut self) {
        let Some(wanted) = self.wanted_space else { return };
        let step = (self.config.send_buffer as usize / 16).min(16 * 1024);
        let space = self.send_space();
        if space >= wanted.max(step) || (space >= wanted && !self.outbound.has_unsent()) {
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
