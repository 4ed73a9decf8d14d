//! How many reports make a chunk lost: fast retransmit (RFC 9260 section 7.2.4) and early retransmit (RFC 5827).
//!
//! A loss near the end of what there is to send is reported by no more chunks than follow it. With fewer than three, fast
//! retransmit never comes, and T3-rtx takes a round trip and its variance, behind a full queue seconds. Early retransmit
//! lowers the threshold where less than four chunks are outstanding and no other can follow: to one less than those, all
//! of which then have arrived but the one that is missing. The RFC counts packets; chunks, of which a packet has one at
//! least, ask for no fewer reports.

use super::Profile;
use super::association::Association;

/// From so many outstanding chunks on fast retransmit is left to itself (RFC 5827 section 3.2).
const ENOUGH: usize = 4;

impl Association {
    /// Missing reports that mark a chunk for fast retransmit.
    pub(super) fn missing_report_threshold(&self) -> u8 {
        let usual = if self.config.profile == Profile::Rfc2960 {
            4
        } else {
            3
        };
        let outstanding = self.outbound.sent.len();
        if !self.config.early_retransmit || outstanding >= ENOUGH || self.more_may_follow() {
            return usual;
        }
        (outstanding.max(2) - 1) as u8
    }

    /// Whether there is new data that the peer has room for.
    fn more_may_follow(&self) -> bool {
        self.outbound.next_len().is_some_and(|len| len <= self.peer_rwnd)
    }
}
