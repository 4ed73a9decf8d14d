//! A SACK arrives (RFC 9260 sections 6.2.1, 6.3.2, 7.2).

use super::Sender;
use super::chunk::{Cause, Sent};
use super::context::Context;
use super::early_retransmit::missing_report_threshold;
use super::flight::{Acknowledged, Passed};
use super::gaps::{Change, are_valid};
use super::overtaken::is_overtaken;
use super::progress::Progress;
use super::strategy::lent::View;
use crate::congestion::{Acked, Gain};
use crate::sctp::multipath::Cuc;
use crate::sctp::{CwndCredit, Event};
use core::hint::cold_path;
use core::net::Ipv6Addr;
use segue_wire::Tsn;
use segue_wire::sctp::{GapAckBlock, Sack};
use smallvec::SmallVec;

/// Addresses of a packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(in crate::sctp) struct Via {
    pub from: Ipv6Addr,
    pub to: Ipv6Addr,
}

/// What a SACK came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum SackOutcome {
    /// Another one overtook it: it changes nothing.
    Overtaken,
    /// It is applied.
    Taken,
}

/// A SACK that contradicts what was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) struct Impossible;

impl Sender {
    /// # Errors
    /// [`Impossible`], and nothing has changed.
    pub(in crate::sctp) fn handle_sack(
        &mut self,
        cx: &mut Context<'_>,
        via: Via,
        sack: &Sack,
    ) -> Result<SackOutcome, Impossible> {
        let cumulative = sack.cumulative_tsn_ack;
        let former = self.flight.cumulative_tsn_ack();
        let counters = &mut cx.out.counters;
        if cumulative.before(former) {
            cold_path();
            // rule i
            counters.multipath.overtaken_sacks += u64::from(self.strategy.is_concurrent());
            return Ok(SackOutcome::Overtaken);
        }
        let highest_sent = self.flight.next_tsn().previous();
        if !cumulative.at_or_before(highest_sent) {
            return Err(Impossible);
        }
        let reach = highest_sent.distance_from(cumulative);
        let blocks = &sack.gap_ack_blocks;
        if !are_valid(blocks, reach) {
            return Err(Impossible);
        }
        counters.sacks_received += 1;
        let change = self.flight.reported().change(cumulative, blocks);
        let says = (cumulative, &change);
        if is_overtaken(&self.flight, cx.peer, cx.config, says, &mut counters.multipath) {
            cold_path();
            self.open_burst(cx.config, cx.peer);
            return Ok(SackOutcome::Overtaken);
        }
        self.apply(cx, via, sack, &change);
        Ok(SackOutcome::Taken)
    }

    fn apply(&mut self, cx: &mut Context<'_>, via: Via, sack: &Sack, change: &Change) {
        let cumulative = sack.cumulative_tsn_ack;
        self.strategy.begin_sack(via.from, via.to, cx.peer);
        self.loss.begin_sack(sack.data_packets);
        let was_dry = self.is_dry();
        let advanced = cumulative != self.flight.cumulative_tsn_ack();
        let (progress, forward_tsn_acked) = self.acknowledge(cx, sack, change);
        let view = View {
            config: cx.config,
            peer: cx.peer,
            flight: &self.flight,
        };
        self.strategy.leave_fast_recovery(view, cumulative);
        self.recovery.on_acknowledged(cumulative);
        if !advanced && cx.config.multipath.is_some_and(|m| m.cuc != Cuc::Off) {
            cold_path();
            let offered = progress.iter().filter(|p| p.advances_pseudo()).count();
            cx.out.counters.multipath.pseudo_cumulative_acks += offered as u64;
        }
        self.open_windows(cx, advanced, &progress);
        if advanced && cx.config.cwnd_credit == CwndCredit::AckPath && !self.recovery.is_on() {
            credit_ack_path(cx, via.from, &progress);
        }
        if cx.peer.has_retired_paths() {
            cold_path();
            let flight = &self.flight;
            let dropped = cx.peer.drop_retired_paths(cx.config, |path| flight.size_on(path));
            self.flight.leave(&dropped);
        }
        if self.abandoned.in_use() {
            cold_path();
            if forward_tsn_acked {
                self.on_forward_tsn_acked(cx);
            }
            self.advance_peer_ack_point(cx);
        }
        self.note_window(cx, sack.a_rwnd);
        self.open_burst(cx.config, cx.peer);
        if self.is_dry() && !was_dry {
            cx.out.tell(Event::SendersDry);
        }
        self.announce_space(cx);
    }

    /// What the SACK acknowledges, and what it tells to be lost. Returns what that means for each path, and whether the
    /// cumulative TSN ack passed abandoned chunks.
    #[inline]
    fn acknowledge(&mut self, cx: &mut Context<'_>, sack: &Sack, change: &Change) -> (Progress, bool) {
        let (cumulative, blocks) = (sack.cumulative_tsn_ack, &sack.gap_ack_blocks);
        let mut progress = Progress::begin(&self.flight);
        let mut forward_tsn_acked = false;
        while self.flight.cumulative_tsn_ack() != cumulative {
            match self.flight.acknowledge_next() {
                Some(Passed::New(acknowledged)) => {
                    self.on_acknowledged(cx, &acknowledged);
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
            self.apply_gap_ack_blocks(cx, sack, change, &mut progress);
        }
        if !blocks.is_empty() {
            let next_len = || self.queue.next_len(cx.peer.sizes().max_data());
            let threshold = missing_report_threshold(&self.flight, cx.config, sack.a_rwnd, next_len);
            let verdict = self.loss.step(&mut self.flight, blocks, threshold);
            self.recover(cx, &verdict, &mut progress);
        }
        (progress, forward_tsn_acked)
    }

    /// A chunk that was outstanding or marked is acknowledged.
    fn on_acknowledged(&mut self, cx: &mut Context<'_>, acknowledged: &Acknowledged) {
        let &Acknowledged {
            tsn,
            path,
            was_outstanding,
            transmission,
            timed,
            ..
        } = acknowledged;
        self.busy.on_arrival();
        let now = cx.now;
        let least = path.and_then(|id| cx.peer[id].least_round_trip());
        self.loss.on_newly_acked(now, tsn, path, transmission, least);
        let Some(id) = path else {
            // the peer is there, but by which way is no matter any more
            cx.peer.is_there();
            return;
        };
        let destination = cx.peer[id].destination();
        let retransmitted = transmission.is_again();
        cx.peer.note_arrival(id);
        if let Some(sent_at) = timed
            && !retransmitted
        {
            let round_trip = now.since(sent_at);
            let counters = &mut cx.out.counters.multipath;
            if self
                .strategy
                .may_end_round_trip(id, round_trip, cx.peer, counters)
            {
                cx.peer.measure_data(id, round_trip);
            }
        }
        // section 8.1 and 8.2: the address the chunk was last sent to is alive
        let is_proof = was_outstanding && !retransmitted;
        cx.peer.acknowledges(destination, is_proof, cx.config, cx.out);
    }

    /// The peer's window is as a SACK advertises it; a probe that it did not take goes out again.
    fn note_window(&mut self, cx: &Context<'_>, a_rwnd: u32) {
        self.flight.advertise(a_rwnd);
        let cumulative = self.flight.cumulative_tsn_ack();
        let first = self.flight.get(cumulative.next()).map(Sent::len);
        let next_len = first.or_else(|| self.queue.next_len(cx.peer.sizes().max_data()));
        if let Some(probe) = self.credit.on_sack(a_rwnd, next_len, cumulative) {
            self.flight.lose_one(Cause::ProbeRefused, probe);
        }
    }

    /// Brings the chunks' states in line with the blocks, touching only what changed since the last SACK.
    #[inline(never)]
    fn apply_gap_ack_blocks(
        &mut self,
        cx: &mut Context<'_>,
        sack: &Sack,
        change: &Change,
        progress: &mut Progress,
    ) {
        let cumulative = sack.cumulative_tsn_ack;
        for &(start, end) in change.newly() {
            for offset in start..=end {
                if let Some(acknowledged) = self.flight.acknowledge(cumulative.add(offset)) {
                    self.on_acknowledged(cx, &acknowledged);
                    progress.note_acknowledged(&acknowledged);
                }
            }
        }
        // section 6.2.1 rule iii: the receiver reneged; R4
        for &(start, end) in change.gone() {
            for offset in start..=end {
                let tsn = cumulative.add(offset);
                let path = self.flight.get(tsn).and_then(Sent::path);
                if self.flight.renege(cx.now, tsn, |path| cx.peer.rto(path))
                    && let Some(path) = path
                {
                    cx.peer.note_sent_again(cx.now, path);
                    self.strategy.note_sent(path);
                }
            }
        }
        self.flight
            .blocks_are_applied(cumulative, &sack.gap_ack_blocks, change);
    }

    /// cwnd grows and T3-rtx is stopped (R2) or started anew (R3), path by path.
    fn open_windows(&mut self, cx: &mut Context<'_>, cumulative_advanced: bool, progress: &Progress) {
        let gains = self.strategy.gains(cx.peer);
        for progress in progress.iter() {
            let id = progress.path();
            let Some(path) = cx.peer.path(id) else {
                continue;
            };
            let bytes = progress.acked_bytes();
            let mut restart = None;
            if bytes > 0 {
                restart = Some(cx.now + path.rto());
                let (cumulative_advanced, in_fast_recovery) =
                    self.strategy
                        .on_ack(progress, cumulative_advanced, &self.recovery);
                let gain = gains.iter().find(|g| g.0 == id).map_or(Gain::WHOLE, |g| g.1);
                let acked = Acked {
                    now: cx.now,
                    bytes,
                    cumulative_advanced,
                    window_was_full: progress.flight_before() >= path.cwnd(),
                    in_fast_recovery,
                    open: !in_fast_recovery,
                    flight_empty: self.flight.size_on(id) == 0,
                    round_start: false,
                    una: 0,
                    next: 0,
                    rtt: None,
                    srtt: path.srtt(),
                };
                cx.peer.on_ack(id, acked, gain);
            }
            self.flight.settle(id, restart);
        }
    }

    /// What a SHUTDOWN says of what arrived, as a SACK: the window and the gaps are as they were.
    pub(in crate::sctp) fn sack_of_shutdown(&self, cumulative_tsn_ack: Tsn) -> Sack {
        let gaps = self.flight.reported().iter();
        let beyond = gaps.filter(|(start, _)| cumulative_tsn_ack.before(*start));
        let blocks: SmallVec<[GapAckBlock; 4]> = beyond
            .map(|r| GapAckBlock {
                start: r.0.distance_from(cumulative_tsn_ack) as u16,
                end: r.1.distance_from(cumulative_tsn_ack) as u16,
            })
            .collect();
        Sack {
            cumulative_tsn_ack,
            a_rwnd: self
                .flight
                .peer_rwnd()
                .saturating_add(self.flight.outstanding_bytes()),
            gap_ack_blocks: blocks,
            duplicate_tsns: Box::default(),
            data_packets: 0,
        }
    }
}

/// `CwndCredit::AckPath`: the SACK advanced the cumulative TSN ack and came over a path that none of the data it
/// acknowledges was sent on: that path's cwnd opens by one segment if it is in slow start, full or not. The path is
/// the one, from the present source, to the address that the SACK came from. Not in fast recovery.
#[inline(never)]
fn credit_ack_path(cx: &mut Context<'_>, from: Ipv6Addr, progress: &Progress) {
    let Some(index) = cx.peer.find(from) else {
        return;
    };
    let path = cx.peer[index].path();
    if progress.of(path).is_none_or(|p| p.acked_bytes() == 0) {
        cx.peer.on_credit(path);
    }
}
