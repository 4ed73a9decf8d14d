//! NR-SACK (draft-natarajan-tsvwg-sctp-nrsack): a receiver that keeps what it has says so, and the sender forgets it.
//!
//! With a SACK, what a gap ack block reports stays in the send buffer, for the receiver may still discard it (RFC 9260 section
//! 6.2). With data on several paths that is much: all that a fast path has delivered waits for a slow one to close the gap.
//! A receiver of ours never discards anything, so all its blocks are non-renegable. What they report takes no room in the
//! send buffer any more. The receive buffer is no larger for it: there the data waits as before.
//!
//! Used instead of SACK if both ends have listed the chunk's type in their Supported Extensions parameters.

use crate::sctp::association::Association;
use crate::sctp::outbound::ChunkState;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::Data;
use segue_wire::sctp::{Chunk, NrSack};

impl Association {
    /// Whether acknowledgements are NR-SACKs.
    pub(in crate::sctp) fn uses_nr_sack(&self) -> bool {
        self.peer_extensions.nr_sack && self.config.multipath.is_some_and(|m| m.nr_sack)
    }

    /// Bytes by which the acknowledgements of this association are longer than SACKs.
    pub(in crate::sctp) fn nr_sack_overhead(&self) -> u32 {
        if self.uses_nr_sack() { 4 } else { 0 }
    }

    /// The acknowledgement owed; with it nothing is owed any more.
    pub(in crate::sctp) fn take_acknowledgement(&mut self) -> Chunk {
        let mut sack = self.take_sack();
        if !self.uses_nr_sack() {
            return Chunk::Sack(sack);
        }
        let nr_gap_ack_blocks = core::mem::take(&mut sack.gap_ack_blocks);
        Chunk::NrSack(Box::new(NrSack {
            sack,
            nr_gap_ack_blocks,
        }))
    }

    /// As [`on_sack`](Self::on_sack); what the peer will not discard is forgotten.
    pub(in crate::sctp) fn on_nr_sack(&mut self, now: Instant, from: Ipv6Addr, nr_sack: &NrSack) -> bool {
        let mut sack = nr_sack.sack.clone();
        sack.gap_ack_blocks = nr_sack.all_gap_ack_blocks();
        if !self.on_sack(now, from, &sack) {
            return false;
        }
        let base = self.outbound.base;
        for block in &nr_sack.nr_gap_ack_blocks {
            for offset in block.start..=block.end {
                let tsn = sack.cumulative_tsn_ack.add(u32::from(offset));
                if tsn.before(base) {
                    continue;
                }
                // by an NR-SACK that was overtaken, too: what was promised once holds
                self.outbound.forget_acked(tsn);
            }
        }
        self.announce_space();
        true
    }
}

impl crate::sctp::outbound::Outbound {
    /// A chunk that a gap ack block reports is forgotten but for its size.
    fn forget_acked(&mut self, tsn: segue_wire::Tsn) {
        let Some(sent) = self.get_mut(tsn) else { return };
        if sent.released || sent.state != ChunkState::GapAcked {
            return;
        }
        sent.released = true;
        let len = sent.len();
        sent.data = Data::Synthetic { offset: 0, len };
        self.released += len as usize;
    }
}
