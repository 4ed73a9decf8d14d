//! SFR, split fast retransmit (Iyengar et al. 2006, section III), and the sender's part of DAC (section V).
//!
//! A chunk is missing only if something that was sent *later on the same path* is newly acknowledged: what overtook
//! it on another path says nothing. So the highest TSN newly acknowledged (HTNA) is kept by path. A chunk that was
//! sent again is on a path where later TSNs were in flight already, or where retransmissions with earlier ones follow
//! it: it is missing only by what was sent after that, whatever its TSN.
//!
//! Multiple fast retransmit (MFR; Caro, Amer and Stewart, "Retransmission schemes for end-to-end failover with
//! transport layer multihoming", GLOBECOM 2004) goes on with that: a fast retransmission that three later packets
//! have overtaken is lost as well, and sent once more. Without it there is T3-rtx alone, which one retransmission
//! lost in a queue of 1.6 s keeps waiting for seconds. The authors compare TSNs with the highest one outstanding at
//! the time of the retransmission; here it is the times of sending, because a path that sends nothing but
//! retransmissions has no higher TSNs.
//!
//! With DAC a SACK stands for several packets, and says for how many. If all that it newly acknowledges was sent on
//! one path and lies beyond the missing chunk, so many packets have overtaken that; otherwise one is certain and no
//! more.

use super::PathShare;
use crate::congestion::{CongestionControl, Loss};
use crate::sctp::ack::Ranges;
use crate::sctp::association::Association;
use crate::sctp::outbound::ChunkState;
use crate::sctp::path::PathId;
use crate::time::Instant;
use segue_wire::Tsn;

/// The last transmission of a chunk that is acknowledged.
#[derive(Clone, Copy)]
pub(in crate::sctp) struct LastSent {
    pub at: Instant,
    pub again: bool,
}

impl PathShare {
    /// A chunk is acknowledged whose last transmission was on this path. If it was sent before that, elsewhere or here,
    /// the acknowledgement may be for the earlier one: it is, if it comes within the shortest round trip of the path
    /// (RFC 8985 section 6.2, step 2).
    fn note_order(&mut self, now: Instant, last_sent: LastSent) {
        let too_early = |least| now.since(last_sent.at) < least;
        if last_sent.again && self.least_round_trip.is_none_or(too_early) {
            return;
        }
        if self.latest_newly_acked.is_none_or(|at| at < last_sent.at) {
            self.latest_newly_acked = Some(last_sent.at);
        }
    }
}

impl Association {
    /// `tsn`, sent on `path`, is acknowledged for the first time, cumulatively or by a gap ack block.
    pub(in crate::sctp) fn note_newly_acked(
        &mut self,
        now: Instant,
        path: PathId,
        tsn: Tsn,
        last_sent: LastSent,
        cumulatively: bool,
    ) {
        let Some(multipath) = &mut self.multipath else {
            return;
        };
        let later = |than: Option<Tsn>| than.is_none_or(|t| t.before(tsn));
        let sack = &mut multipath.sack;
        if later(sack.highest_newly_acked) {
            sack.highest_newly_acked = Some(tsn);
        }
        if sack.lowest_newly_acked.is_none_or(|t| tsn.before(t)) {
            sack.lowest_newly_acked = Some(tsn);
        }
        sack.mixed |= sack.acked_path.is_some_and(|p| p != path);
        sack.acked_path = Some(path);
        if let Some(path) = self.paths.get_mut(usize::from(path.0)) {
            if later(path.share.highest_newly_acked) {
                path.share.highest_newly_acked = Some(tsn);
            }
            path.share.note_order(now, last_sent);
        }
        if !cumulatively {
            self.advance_pseudo_cumulative_ack(path, tsn);
        } else if let Some(path) = self.paths.get_mut(usize::from(path.0)) {
            path.share.pseudo.on_cumulatively_acked();
        }
    }

    /// RFC 9260 section 7.2.4 for several paths: counts what the SACK at hand reports missing.
    pub(in crate::sctp) fn count_missing_by_path(
        &mut self,
        now: Instant,
        cumulative: Tsn,
        blocks: &Ranges,
        a_rwnd: u32,
    ) {
        let Some(multipath) = &self.multipath else {
            return;
        };
        let (config, sack) = (multipath.config, multipath.sack);
        let Some(highest) = sack.highest_newly_acked.filter(|h| cumulative.before(*h)) else {
            return;
        };
        let limit = highest.distance_from(cumulative);
        let threshold = self.missing_report_threshold(a_rwnd);
        let mut marked = false;
        let mut hole = 1;
        for &(start, end) in blocks {
            for offset in hole..start.min(limit) {
                let tsn = cumulative.add(offset);
                let Some(sent) = self.outbound.get_mut(tsn) else {
                    break;
                };
                if sent.state != ChunkState::Outstanding || (sent.fast_retransmitted && !config.mfr) {
                    continue;
                }
                let own = self.paths.get(usize::from(sent.path.0)).map(|p| &p.share);
                let overtaken = if sent.retransmitted {
                    // its TSN says nothing of when it was sent
                    own.is_some_and(|p| p.latest_newly_acked.is_some_and(|at| sent.sent_at < at))
                } else {
                    own.is_some_and(|p| p.highest_newly_acked.is_some_and(|h| tsn.before(h)))
                };
                if !overtaken && (config.sfr || sent.fast_retransmitted) {
                    self.counters.multipath.missing_reports_withheld += 1;
                    continue;
                }
                let all_beyond =
                    !sent.retransmitted && sack.lowest_newly_acked.is_some_and(|l| tsn.before(l));
                let reports = if config.dac && !sack.mixed && all_beyond {
                    sack.packets.max(1)
                } else {
                    1
                };
                sent.missing_reports = sent.missing_reports.saturating_add(reports);
                if sent.missing_reports >= threshold {
                    self.counters.multipath.retransmissions_lost += u64::from(sent.fast_retransmitted);
                    sent.fast_retransmitted = true;
                    sent.fast_marked = true;
                    let (path, len) = (sent.path, sent.len());
                    marked = true;
                    self.mark_lost(tsn, len);
                    if let Some(path) = self.paths.get_mut(usize::from(path.0)) {
                        path.share.on_lost(1);
                        path.share.pseudo.on_lost(config.cuc);
                    }
                }
            }
            if end >= limit {
                break;
            }
            hole = end + 1;
        }
        if marked {
            self.recover_by_path(now);
        }
    }

    /// Each path that lost something is cut once per loss episode of its own, and one packet may go there whatever cwnd says.
    fn recover_by_path(&mut self, now: Instant) {
        let last_sent = self.outbound.next_tsn().previous();
        for i in 0..self.paths.len() {
            let path = &self.paths[i];
            if !path.lost || path.share.fast_recovery_exit.is_some() {
                continue;
            }
            let coupled = self.coupled_ssthresh(PathId(i as u8));
            let path = &mut self.paths[i];
            path.share.inter_loss.on_loss();
            match coupled {
                Some(ssthresh) => path.window.cut_to(ssthresh),
                None => path.window.on_loss(Loss {
                    now,
                    flightsize: path.flightsize,
                    cut_already: false,
                }),
            }
            path.share.fast_recovery_exit = Some(last_sent);
            path.share.fast_retransmission_due = true;
        }
    }

    /// Ends the fast recovery of paths on which everything that was outstanding when it began has been acknowledged. Without
    /// CUC no path has an ack point of its own, and the association's has to do.
    pub(in crate::sctp) fn leave_fast_recovery_by_path(&mut self, cumulative: Tsn) {
        let by_path = self.cuc().is_some();
        for i in 0..self.paths.len() {
            let Some(exit) = self.paths[i].share.fast_recovery_exit else {
                continue;
            };
            let over = if by_path {
                let path = PathId(i as u8);
                let base = self.outbound.base;
                let reach = (exit.distance_from(base) as usize).saturating_add(1);
                let waits = |state| matches!(state, ChunkState::Outstanding | ChunkState::Marked);
                let mut before = self.outbound.sent.iter().take(reach);
                exit.before(base) || !before.any(|s| s.path == path && waits(s.state))
            } else {
                exit.at_or_before(cumulative)
            };
            if over {
                self.paths[i].share.fast_recovery_exit = None;
            }
        }
    }
}
