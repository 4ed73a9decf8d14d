//! How many reports make a chunk lost: fast retransmit (RFC 9260 section 7.2.4) and early retransmit (RFC 5827).
//!
//! A loss near the end of what there is to send is reported by no more chunks than follow it. With fewer than three, fast
//! retransmit never comes, and T3-rtx takes a round trip and its variance, behind a full queue seconds. Where less than four
//! segments are outstanding and no other can follow, and all of them have been acknowledged by gap ack blocks but one, early
//! retransmit takes that one for lost at its first report (RFC 5827 section 3.2, for connections that have SACK). How often the
//! others were reported says nothing: one SACK may be for several of them, and a SACK that is repeated is for none.
//!
//! The RFC counts packets, of which one has arrived when all its chunks have. Where all chunks but one have arrived, all
//! packets have but one, and there are no more packets than chunks.

use super::Profile;
use super::association::Association;

/// From so many outstanding chunks on fast retransmit is left to itself (RFC 5827 section 3.2).
const ENOUGH: usize = 4;

impl Association {
    /// Missing reports that mark a chunk for fast retransmit, when a SACK with this `a_rwnd` has been applied.
    pub(super) fn missing_report_threshold(&self, a_rwnd: u32) -> u8 {
        let usual = if self.config.profile == Profile::Rfc2960 {
            4
        } else {
            3
        };
        let early = self.config.early_retransmit
            && self.flight.len() < ENOUGH
            && self.all_arrived_but_one()
            && !self.more_may_follow(a_rwnd);
        if early { 1 } else { usual }
    }

    fn all_arrived_but_one(&self) -> bool {
        let mut others = self.flight.iter().filter(|(_, s)| !s.is_gap_acked());
        others.next().is_some() && others.next().is_none()
    }

    /// Whether there is new data that the peer has room for (condition 3.b).
    fn more_may_follow(&self, a_rwnd: u32) -> bool {
        let room = a_rwnd.saturating_sub(self.flight.outstanding_bytes());
        self.queue.next_len().is_some_and(|len| len <= room)
    }
}
