//! RACK (RFC 8985): losses by time of transmission.

use crate::tcp::scoreboard::Sent;
use crate::time::{Duration, Instant};

/// The state of section 5.2.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: the segment sent last among those that have arrived.
    sent_at: Instant,
    end: u64,
    /// RACK.rtt.
    rtt: Option<Duration>,
    reordering_seen: bool,
    /// RACK.reo_wnd_mult, less 1.
    widened: u32,
    /// RACK.reo_wnd_persist: recoveries until it is 1 again.
    persist: u32,
    /// RACK.dsack_round: SND.NXT when it was widened last.
    dsack_round: Option<u64>,
}

/// What is lost: segments sent before the one that arrived, by so long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Overdue {
    /// When that was sent which has arrived, and where it ends.
    pub arrived: (Instant, u64),
    /// What is not acknowledged so long after it was sent is lost.
    pub after: Duration,
}

impl Rack {
    /// Section 6.2, step 2: a segment has arrived. `shortest` is the shortest round trip; `is_older` says that the
    /// acknowledgement echoes a timestamp from before its last transmission.
    pub fn on_delivered(&mut self, now: Instant, sent: &Sent, shortest: Option<Duration>, is_older: bool) {
        let rtt = now.since(sent.sent_at());
        if sent.was_retransmitted() {
            // the original may have arrived, not the retransmission
            let too_early = shortest.is_some_and(|shortest| rtt < shortest);
            if too_early || is_older {
                return;
            }
        }
        // as Linux has it, of the segment that is looked at last, in the order of numbers: where a retransmission and what was
        // sent long before it are acknowledged at once, the RFC's (of what was sent last) would have the rest lost at once
        self.rtt = Some(rtt);
        if (sent.sent_at(), sent.end()) >= (self.sent_at, self.end) {
            self.sent_at = sent.sent_at();
            self.end = sent.end();
        }
    }

    /// Section 6.2, step 3.
    pub fn on_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Section 6.2, step 4: an acknowledgement up to `una` has a DSACK, with `next` to be sent next. The window is widened,
    /// once per round trip.
    pub fn on_dsack(&mut self, una: u64, next: u64) {
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

    /// Section 6.2, step 5, for RACK_detect_loss; `None` as long as nothing has arrived. `impatient` says that a recovery is
    /// under way, or that so much was SACKed that reordering is no excuse.
    pub fn overdue(
        &self,
        impatient: bool,
        shortest: Option<Duration>,
        srtt: Option<Duration>,
    ) -> Option<Overdue> {
        let rtt = self.rtt?;
        Some(Overdue {
            arrived: (self.sent_at, self.end),
            after: rtt + self.reordering_window(impatient, shortest, srtt),
        })
    }

    /// Section 6.2, step 4: RACK_update_reo_wnd.
    fn reordering_window(
        &self,
        impatient: bool,
        shortest: Option<Duration>,
        srtt: Option<Duration>,
    ) -> Duration {
        if !self.reordering_seen && impatient {
            return Duration::ZERO;
        }
        let quarter = shortest.unwrap_or(Duration::ZERO) / 4;
        (quarter * u64::from(self.widened + 1)).min(srtt.unwrap_or(quarter))
    }
}

/// Recoveries for which a wider window stays (section 6.2, step 4).
const PERSIST: u32 = 16;
