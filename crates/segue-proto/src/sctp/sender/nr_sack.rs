//! NR-SACK (draft-natarajan-tsvwg-sctp-nrsack): a receiver that keeps what it has says so, and the sender forgets it.
//!
//! With a SACK, what a gap ack block reports stays in the send buffer, for the receiver may still discard it (RFC 9260 section
//! 6.2). With data on several paths that is much: all that a fast path has delivered waits for a slow one to close the gap.
//! A receiver of ours never discards anything, so all its blocks are non-renegable. What they report takes no room in the
//! send buffer any more. The receive buffer is no larger for it: there the data waits as before.
//!
//! Used instead of SACK if both ends have listed the chunk's type in their Supported Extensions parameters.

use super::Sender;
use super::context::Context;
use super::sack::{Impossible, SackOutcome, Via};
use segue_wire::sctp::{GapAckBlock, NrSack};
use smallvec::SmallVec;

impl Sender {
    /// As [`handle_sack`](Self::handle_sack); what the peer will not discard is forgotten.
    ///
    /// # Errors
    /// See there.
    pub(in crate::sctp) fn handle_nr_sack(
        &mut self,
        cx: &mut Context<'_>,
        via: Via,
        nr_sack: &NrSack,
    ) -> Result<SackOutcome, Impossible> {
        let mut sack = nr_sack.sack.clone();
        sack.gap_ack_blocks = nr_sack.all_gap_ack_blocks();
        let outcome = self.handle_sack(cx, via, &sack)?;
        let beyond = self.flight.base().distance_from(sack.cumulative_tsn_ack);
        for offset in promised(nr_sack.nr_gap_ack_blocks.clone(), beyond, self.flight.len()) {
            // by an NR-SACK that was overtaken, too: what was promised once holds
            self.flight.release(sack.cumulative_tsn_ack.add(offset));
        }
        Ok(outcome)
    }
}

/// Offsets from the cumulative TSN ack that `blocks` name, of `sent` chunks of which the first is at `beyond`. Each once,
/// however often a peer names it: the blocks of an NR-SACK that was overtaken are checked by nobody before.
fn promised(mut blocks: SmallVec<[GapAckBlock; 4]>, beyond: u32, sent: usize) -> impl Iterator<Item = u32> {
    blocks.sort_unstable_by_key(|block| block.start);
    let mut next = beyond;
    let over = beyond.saturating_add(u32::try_from(sent).unwrap_or(u32::MAX));
    blocks.into_iter().flat_map(move |block| {
        let begin = u32::from(block.start).max(next);
        let end = (u32::from(block.end) + 1).min(over);
        next = next.max(end);
        begin..end
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_is_looked_at_once_and_only_as_far_as_was_sent() {
        let block = |(start, end): (u16, u16)| GapAckBlock { start, end };
        let offsets = |blocks: &[(u16, u16)], beyond, sent| -> Vec<u32> {
            promised(blocks.iter().copied().map(block).collect(), beyond, sent).collect()
        };
        assert_eq!(offsets(&[(2, 3), (6, 7)], 1, 10), [2, 3, 6, 7]);
        // in no order, overlapping, empty, beyond what was sent, and before it
        assert_eq!(offsets(&[(6, 9), (2, 7), (8, 3), (2, 4)], 3, 5), [3, 4, 5, 6, 7]);
        assert_eq!(offsets(&[(1, u16::MAX); 1000], 5, 3), [5, 6, 7]);
        assert_eq!(offsets(&[(1, u16::MAX); 1000], 1 << 31, 3), [0_u32; 0]);
        assert_eq!(offsets(&[(1, 5)], 1, 0), [0_u32; 0]);
    }
}
