//! DAC, delayed acks for CMT (Iyengar et al. 2006, section V): the receiver's part. The sender's is in `loss`.
//!
//! RFC 9260 section 6.7 has a SACK sent at once for every packet while there is a gap. With data on several paths there is
//! one nearly always, and no SACK would be delayed. So a gap alone is no reason any more: every second packet is
//! acknowledged, or the delay passes. What asks for a SACK at once still does: the I bit, a duplicate, data that has no
//! room.
//!
//! So that the sender does not miss the reports that a delayed SACK leaves out, the SACK says in two bits of its flags (6
//! and 7, as usrsctp has them) how many packets it stands for. No RFC defines these bits; a peer that does not know them
//! ignores them (RFC 9260 section 3.3.4 has the flags set to zero and ignored).

use crate::sctp::association::Association;
use segue_wire::sctp::Sack;

impl Association {
    /// Whether a gap before, or after, the packet at hand asks for a SACK at once.
    pub(in crate::sctp) fn gap_asks_for_sack(&mut self, had_gap: bool) -> bool {
        let gap = had_gap || self.received.has_gap();
        let delays = self.multipath.as_ref().is_some_and(|m| m.config.dac);
        if gap && delays {
            self.out.counters.multipath.sacks_delayed += 1;
        }
        gap && !delays
    }

    /// Says in `sack` how many packets it stands for.
    pub(in crate::sctp) fn count_packets(&self, sack: &mut Sack) {
        if self.multipath.as_ref().is_some_and(|m| m.config.dac) {
            sack.data_packets = self
                .unacknowledged_packets
                .min(u32::from(Sack::MOST_DATA_PACKETS)) as u8;
        }
    }
}
