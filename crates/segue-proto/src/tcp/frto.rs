//! F-RTO: whether a timeout was spurious, asked of the acknowledgements that follow its one retransmission.
//!
//! - [`FrtoRule::Rfc5682`]: the SACK-enhanced form of RFC 5682 section 3.1, as Linux has it since 3.10. What was sent once
//!   and arrives shows that the timeout was spurious, at the first acknowledgement already, and the window is taken back.
//! - [`FrtoRule::Rfc4138`]: the SACK-enhanced form of RFC 4138 appendix B as Linux 2.6.24 to 3.9 has it (`tcp_enter_frto`,
//!   `tcp_process_frto`). It takes two acknowledgements that go forward, the second for new data; and a spurious timeout
//!   is answered as if the network had said that it is congested (`tcp_frto_response` 0): cwnd comes down to the ssthresh of
//!   the timeout, and nothing is taken back.

use super::ack::Report;
use super::config::FrtoRule;
use super::connection::Connection;
use super::recovery::Phase;
use crate::time::Instant;

/// The acknowledgement that is awaited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    /// The first that goes forward: new data is sent for it.
    First,
    /// The one that tells (RFC 4138).
    Second,
}

/// F-RTO of the last timeout.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frto {
    awaited: Option<Awaited>,
    /// End of what had been sent when the recovery that is under way began (`frto_highmark`). RFC 4138 only.
    high: u64,
    /// It has said what cwnd is after the acknowledgement at hand. RFC 4138 only.
    has_set_window: bool,
}

impl Frto {
    /// Whether cwnd is what F-RTO made it, and the acknowledgement at hand opens it no further.
    pub fn take_has_set_window(&mut self) -> bool {
        core::mem::take(&mut self.has_set_window)
    }

    /// What was retransmitted has been decided upon, or another recovery begins.
    pub fn stop(&mut self) {
        self.awaited = None;
    }

    /// A timeout. `high` is where the recovery that it belongs to ends.
    pub fn begin(&mut self, high: u64) {
        self.awaited = Some(Awaited::First);
        self.high = high;
    }
}

impl Connection {
    /// Whether F-RTO has dealt with the acknowledgement; otherwise it is as after any timeout.
    #[inline(never)]
    pub(super) fn finds_spurious_timeout(&mut self, now: Instant, report: &Report) -> bool {
        let Some(awaited) = self.recovery.frto.awaited else {
            return false;
        };
        match self.config.frto_rule {
            FrtoRule::Rfc5682 => self.by_rfc_5682(now, report),
            FrtoRule::Rfc4138 => self.by_rfc_4138(awaited, report),
        }
    }

    fn by_rfc_5682(&mut self, now: Instant, report: &Report) -> bool {
        // step 3b: something arrived that was sent once only
        if report.original_arrived {
            self.counters.spurious_timeouts += 1;
            self.take_timeout_back();
            self.become_open();
            self.in_disorder(now, report);
            return true;
        }
        if self.snd_nxt > self.recovery.high {
            // step 3a: the loss was real
            if report.sacked > 0 || report.duplicate {
                self.recovery.frto.stop();
                self.recovery.new_data_first = false;
            }
        } else if report.advanced && self.snd_una < self.recovery.high {
            // step 2b: new data, if there is any
            self.recovery.high = self.snd_nxt;
            if self.may_send_new_data() {
                self.recovery.new_data_first = true;
                return true;
            }
            self.recovery.frto.stop();
        }
        false
    }

    fn by_rfc_4138(&mut self, awaited: Awaited, report: &Report) -> bool {
        let former_high = self.recovery.frto.high;
        self.recovery.frto.has_set_window = true;
        if self.snd_una >= former_high {
            return self.was_lost(if awaited == Awaited::First { 2 } else { 3 });
        }
        match awaited {
            Awaited::First if !report.advanced => true,
            Awaited::First if self.may_send_new_data() => {
                self.recovery.frto.awaited = Some(Awaited::Second);
                self.recovery.new_data_first = true;
                self.window.set_cwnd(self.pipe() + 2 * self.mss);
                true
            }
            Awaited::First => self.was_lost(2),
            Awaited::Second => {
                let forward = report.advanced || report.sacked > 0;
                let news_sacked = report.sacked > 0 && !report.original_arrived;
                if !forward && !report.duplicate {
                    return true;
                }
                if !forward || news_sacked {
                    return self.was_lost(3);
                }
                self.counters.spurious_timeouts += 1;
                self.recovery.frto.has_set_window = false;
                self.reduce_after_spurious_timeout(report);
                true
            }
        }
    }

    /// The timeout was right: everything that has not arrived is retransmitted, `segments` of it at once
    /// (`tcp_enter_frto_loss`).
    fn was_lost(&mut self, segments: u32) -> bool {
        self.board.mark_all_lost();
        self.window.set_cwnd(segments * self.mss);
        let r = &mut self.recovery;
        r.frto.stop();
        r.new_data_first = false;
        r.high = self.snd_nxt;
        false
    }

    /// cwnd comes down to ssthresh in the way of a fast recovery that has nothing to repair (`tcp_enter_cwr`).
    fn reduce_after_spurious_timeout(&mut self, report: &Report) {
        self.board.unmark_lost();
        self.become_open();
        self.begin_reduction(report);
        self.recovery.phase = Phase::Recovery;
        self.recovery.high = self.snd_nxt;
    }
}
