//! What is kept of each path.

use super::Cuc;
use crate::congestion::InterLoss;
use crate::time::{Duration, Instant};
use segue_wire::Tsn;

/// What is kept of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CmtPath {
    /// In fast recovery until all that was sent on the path up to this TSN is acknowledged.
    fast_recovery_exit: Option<Tsn>,
    /// The SACK at hand began it: a packet of retransmissions may go on this path whatever its cwnd says.
    fast_retransmission_due: bool,
    /// Round trips refused since the last one that was taken.
    refused_in_a_row: u8,
    /// Packets that may still be sent on it at this opportunity (Max.Burst).
    burst: u32,
    /// Chunks sent, and of them lost; the past counts for half every now and then.
    sent: u32,
    lost: u32,
    /// How much gets through between losses.
    inter_loss: InterLoss,
    /// When it was last penalised for holding others up.
    penalised: Option<Instant>,
}

/// Chunks sent after which the past of a loss rate fades with the next loss.
const MEMORY: u32 = 1000;

/// Ambiguous round trips in a row after which one is taken.
const PATIENCE: u8 = 8;

impl CmtPath {
    /// For the growth of cwnd: whether the ack point of the path advanced (`pseudo`, with CUC), and whether it is in fast recovery.
    pub(super) fn window_state(&self, cuc: Cuc, cumulative_advanced: bool, pseudo: bool) -> (bool, bool) {
        let advanced = match cuc {
            Cuc::Off => cumulative_advanced,
            Cuc::V1 | Cuc::V2 => pseudo,
        };
        (advanced, self.fast_recovery_exit.is_some())
    }

    /// So much of it was newly acknowledged.
    pub(super) fn on_ack(&mut self, bytes: u32) {
        self.inter_loss.on_ack(bytes);
    }

    /// How much gets through between losses.
    pub(super) fn inter_loss(&self) -> InterLoss {
        self.inter_loss
    }

    /// A chunk is sent on it.
    pub(super) fn note_sent(&mut self) {
        self.sent = self.sent.saturating_add(1);
    }

    /// Chunks of this path were found lost.
    pub(super) fn on_lost(&mut self, chunks: u32) {
        if self.sent > MEMORY {
            self.sent /= 2;
            self.lost /= 2;
        }
        self.lost = self.lost.saturating_add(chunks);
    }

    /// Share of the chunks sent that was lost, in millionths.
    pub(super) fn loss_rate(&self) -> u64 {
        u64::from(self.lost) * 1_000_000 / u64::from(self.sent.max(1))
    }
}

/// Its episodes of losses (RFC 9260 section 7.2.4, by path).
impl CmtPath {
    pub(super) fn is_in_fast_recovery(&self) -> bool {
        self.fast_recovery_exit.is_some()
    }

    /// An episode begins: it lasts until what was sent up to `last_sent` is acknowledged. A packet may go there whatever cwnd says.
    pub(super) fn begin_recovery(&mut self, last_sent: Tsn) {
        self.inter_loss.on_loss();
        self.fast_recovery_exit = Some(last_sent);
        self.fast_retransmission_due = true;
    }

    /// Ends the episode if everything up to its end has been acknowledged, as `is_over` tells.
    pub(super) fn leave_recovery(&mut self, is_over: impl FnOnce(Tsn) -> bool) {
        self.fast_recovery_exit.take_if(|exit| is_over(*exit));
    }

    /// T3-rtx expired; `lost`: and not because the peer's window is closed.
    pub(super) fn on_t3(&mut self, lost: bool) {
        if lost {
            self.inter_loss.on_loss();
        }
        self.fast_recovery_exit = None;
        self.fast_retransmission_due = false;
    }

    /// Whether a packet of retransmissions may go there whatever cwnd says.
    pub(super) fn forces(&self) -> bool {
        self.fast_retransmission_due
    }

    /// Another SACK is dealt with.
    pub(super) fn begin_sack(&mut self) {
        self.fast_retransmission_due = false;
    }

    /// A packet of retransmissions goes there: whatever cwnd says if one may, or as one of this opportunity's.
    pub(super) fn retransmissions_go(&mut self, was_forced: bool) {
        if !was_forced && !core::mem::take(&mut self.fast_retransmission_due) {
            self.use_burst();
        }
    }
}

/// Bursts, round trips and penalties.
impl CmtPath {
    /// A new opportunity to send, of so many packets if they are limited.
    pub(super) fn open_burst(&mut self, max_burst: Option<u32>) {
        self.burst = max_burst.unwrap_or(u32::MAX);
    }

    pub(super) fn has_burst(&self) -> bool {
        self.burst > 0
    }

    /// A packet of this opportunity goes out.
    pub(super) fn use_burst(&mut self) {
        self.burst = self.burst.saturating_sub(1);
    }

    /// A round trip was measured that may be one of several paths. Whether it is refused: of several in a row the next is not.
    pub(super) fn refuses_round_trip(&mut self, is_doubtful: bool) -> bool {
        if !is_doubtful || self.refused_in_a_row >= PATIENCE {
            self.refused_in_a_row = 0;
            return false;
        }
        self.refused_in_a_row += 1;
        true
    }

    /// It holds others up; whether it is to be penalised for it, once per round trip.
    pub(super) fn penalise(&mut self, now: Instant, srtt: Duration) -> bool {
        if self.penalised.is_some_and(|at| now.since(at) < srtt) {
            return false;
        }
        self.penalised = Some(now);
        true
    }
}

/// What tests elsewhere look at.
#[cfg(test)]
impl CmtPath {
    /// Until when it is in fast recovery.
    pub(super) fn recovery_ends_with(&self) -> Option<Tsn> {
        self.fast_recovery_exit
    }

    /// Chunks that were lost.
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    pub(super) fn refused_in_a_row(&self) -> u8 {
        self.refused_in_a_row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_rate_is_in_millionths_and_forgets_half_beyond_a_thousand_chunks() {
        let mut share = CmtPath {
            sent: 8,
            lost: 2,
            ..CmtPath::default()
        };
        assert_eq!(share.loss_rate(), 250_000);
        assert_eq!(CmtPath::default().loss_rate(), 0);
        share.sent = 1000;
        share.on_lost(3);
        assert_eq!((share.sent, share.lost), (1000, 5));
        share.sent = 1001;
        share.on_lost(4);
        assert_eq!((share.sent, share.lost), (500, 6));
        assert_eq!(share.loss_rate(), 12_000);
    }

    #[test]
    fn a_window_opens_by_the_ack_point_that_cuc_names() {
        let mut share = CmtPath::default();
        assert_eq!(share.window_state(Cuc::Off, false, true), (false, false));
        assert_eq!(share.window_state(Cuc::V1, false, true), (true, false));
        share.fast_recovery_exit = Some(Tsn(1));
        assert_eq!(share.window_state(Cuc::Off, true, false), (true, true));
        assert_eq!(share.window_state(Cuc::V2, true, false), (false, true));
    }
}
