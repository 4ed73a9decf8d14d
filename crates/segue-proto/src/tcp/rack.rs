//! RACK-TLP (RFC 8985): losses by time of transmission, and the probe of the tail.

use super::ack::Report;
use super::arrive::is_before;
use super::config::LossDetection;
use super::connection::Connection;
use super::recovery::Phase;
use super::scoreboard::Sent;
use crate::congestion::Loss;
use crate::time::{Duration, Instant};

/// The state of section 5.2.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: the segment sent last among those that have arrived.
    sent_at: Instant,
    end: u64,
    /// RACK.rtt.
    rtt: Option<Duration>,
    pub reordering_seen: bool,
    /// RACK.reo_wnd_mult, less 1.
    widened: u32,
    /// RACK.reo_wnd_persist: recoveries until it is 1 again.
    persist: u32,
    /// RACK.dsack_round: SND.NXT when it was widened last.
    dsack_round: Option<u64>,
}

impl Rack {
    /// Section 6.2, step 4: an acknowledgement up to `una` has a DSACK, with `next` to be sent next. The window is widened,
    /// once per round trip.
    pub fn note_dsack(&mut self, una: u64, next: u64) {
        if self.dsack_round.is_none_or(|round| una >= round) {
            self.dsack_round = Some(next);
            self.widened += 1;
            self.persist = PERSIST;
        }
    }

    /// A recovery is over.
    pub fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.widened = 0;
        }
    }
}

impl Connection {
    pub(super) fn uses_rack(&self) -> bool {
        self.sack && self.config.loss_detection == LossDetection::Rack
    }

    /// Section 6.2, step 2: a segment has arrived.
    pub(super) fn rack_delivered(&mut self, now: Instant, sent: &Sent, echo: Option<u32>) {
        let rtt = now.since(sent.sent_at);
        if sent.was_retransmitted() {
            // the original may have arrived, not the retransmission
            let too_early = self.rtt.shortest().is_some_and(|shortest| rtt < shortest);
            let older = echo.is_some_and(|e| is_before(e, self.ts_now(sent.sent_at)));
            if too_early || older {
                return;
            }
        }
        // as Linux has it, of the segment that is looked at last, in the order of numbers: where a retransmission and what was
        // sent long before it are acknowledged at once, the RFC's (of what was sent last) would have the rest lost at once
        self.rack.rtt = Some(rtt);
        if (sent.sent_at, sent.end) >= (self.rack.sent_at, self.rack.end) {
            self.rack.sent_at = sent.sent_at;
            self.rack.end = sent.end;
        }
    }

    /// Section 6.2, step 4: RACK_update_reo_wnd.
    fn reordering_window(&self) -> Duration {
        let recovering = matches!(self.recovery.phase, Phase::Recovery | Phase::Loss);
        let many = self.board.sacked_segments() >= self.recovery.dup_thresh;
        if !self.rack.reordering_seen && (recovering || many) {
            return Duration::ZERO;
        }
        let quarter = self.rtt.shortest().unwrap_or(Duration::ZERO) / 4;
        (quarter * u64::from(self.rack.widened + 1)).min(self.rtt.srtt().unwrap_or(quarter))
    }

    /// Section 6.2, step 5: RACK_detect_loss, with the timer of section 6.3.
    pub(super) fn rack_detect(&mut self, now: Instant) {
        self.reorder_at = None;
        let Some(rtt) = self.rack.rtt else { return };
        if self.board.sacked_segments() == 0 && !self.board.has_retransmissions() && !self.board.has_lost() {
            return;
        }
        let window = self.reordering_window();
        let (sent_at, end) = (self.rack.sent_at, self.rack.end);
        self.reorder_at = self.board.mark_overdue((sent_at, end), |sent| {
            let due = sent + rtt + window;
            if due <= now { Ok(()) } else { Err(due) }
        });
    }

    /// Section 7.2, TLP_calc_PTO: the probe timeout. It takes the place of the retransmission timer where that would expire
    /// sooner, and that begins anew with the probe.
    pub(super) fn arm_probe(&mut self, now: Instant) {
        let armed = self.config.tail_loss_probe
            && self.sack
            && self.recovery.phase == Phase::Open
            && self.recovery.probe.is_none()
            && self.board.sacked_segments() == 0
            && !self.board.is_empty()
            && self.is_synchronized();
        if !armed {
            self.probe_at = None;
            return;
        }
        let timeout = match self.rtt.srtt() {
            Some(srtt) => {
                let alone = self.board.segments() == 1;
                srtt * 2 + if alone { MOST_ACK_DELAY } else { Duration::ZERO }
            }
            None => Duration::from_secs(1),
        };
        self.probe_at = Some((now + timeout).min(self.rto_at.unwrap_or(Instant::MAX)));
    }

    /// Section 7.3: TLP_send_probe.
    pub(super) fn on_probe_timer(&mut self, now: Instant) {
        self.probe_at = None;
        if self.board.is_empty() {
            return;
        }
        self.counters.loss_probes += 1;
        self.probe_pending = true;
        // the retransmission timer begins anew with the probe
        self.rto_at = Some(now + self.rtt.rto());
    }

    /// Section 7.4: whether the probe made good a loss, which costs as any other does.
    #[inline]
    pub(super) fn end_probe(&mut self, report: &Report) {
        if let Some(probe) = self.recovery.probe {
            self.judge_probe(probe, report);
        }
    }

    #[inline(never)]
    fn judge_probe(&mut self, (high, retransmitted): (u64, bool), report: &Report) {
        if report.dsack && self.snd_una >= high {
            // both arrived: nothing was lost
            self.recovery.probe = None;
        } else if self.snd_una > high || (self.snd_una == high && !retransmitted) {
            self.recovery.probe = None;
            if retransmitted {
                let loss = Loss {
                    now: self.last_data_sent.unwrap_or(Instant::ZERO),
                    flightsize: self.board.flightsize(),
                    cut_already: false,
                };
                self.window.on_loss(loss);
            }
        } else if report.duplicate && report.sacked == 0 && self.snd_una == high {
            self.recovery.probe = None;
        }
    }
}

/// Recoveries for which a wider window stays (section 6.2, step 4).
const PERSIST: u32 = 16;
/// TLP.max_ack_delay (section 7.2).
const MOST_ACK_DELAY: Duration = Duration::from_millis(200);
