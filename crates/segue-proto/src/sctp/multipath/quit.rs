//! Leaving a path while others go on: the mobile host has left the overlap of two networks (paper 003, section II).
//!
//! The paper lists three things to do when an address is deleted or deactivated. *Quit CMT mode*: nothing new is scheduled
//! there, since the destination is no longer usable. *Handle retransmissions of packets that were in flight on the link
//! that just went down*: they are marked at once, without waiting for missing reports or T3-rtx, and go before new data; the
//! first goes out whatever cwnd says, for the receiver's buffer waits for it. *Congestion adjustments on the current path*:
//! the loss was not its own, so its cwnd and ssthresh stay (RFC 5061 section 5.3 has no penalty either); chunks that move begin
//! without missing reports, and the pseudo-cumulative acks are looked for anew, since what they waited for may have
//! moved.

use crate::sctp::association::Association;

impl Association {
    /// An address of ours is gone: SACKs that left from it may be lost with it, and the peer, which is about to move what it
    /// had in flight there, had better know what arrived.
    pub(in crate::sctp) fn tell_what_arrived(&mut self) {
        if self.multipath.is_some() && self.is_up() {
            self.receiver.hurry_sack();
        }
    }

    /// `marked` chunks that were in flight to a destination that is left have been marked.
    pub(in crate::sctp) fn quit_path(&mut self, marked: u32) {
        if self.multipath.is_none() {
            return;
        }
        self.out.counters.multipath.paths_left += 1;
        self.out.counters.multipath.chunks_moved += u64::from(marked);
        self.flight.forget_pseudo_cumulative_acks();
        if marked > 0 {
            self.recovery.force_any();
        }
        self.open_burst();
    }
}
