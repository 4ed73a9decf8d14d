//! What was counted of concurrent multipath transfer.

use crate::sctp::add_fields::add_fields;

/// Counters of concurrent multipath transfer: zero where it is not in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MultipathCounters {
    /// SACKs with the cumulative TSN ack of the last one and less in their gap ack blocks: overtaken on a faster path
    /// (paper 003 section III-A, second problem).
    pub stale_sacks: u64,
    /// SACKs with an earlier cumulative TSN ack than the last one: overtaken as well, and plain to see.
    pub overtaken_sacks: u64,
    /// Round trips that ended with a SACK over another path than that of the data (paper 003 section III-A, third
    /// problem).
    pub ambiguous_round_trips: u64,
    /// Of them, those that were not taken for a measurement.
    pub round_trips_refused: u64,
    /// Times that a cwnd was offered growth by a pseudo-cumulative ack while the cumulative TSN ack stood still (CUC).
    pub pseudo_cumulative_acks: u64,
    /// Missing reports that were not counted, because nothing sent later on the chunk's own path was acknowledged (SFR).
    pub missing_reports_withheld: u64,
    /// Fast retransmissions that were found lost in their turn (MFR).
    pub retransmissions_lost: u64,
    /// Chunks that a T3-rtx that expired left alone, because they were sent within the last round trip.
    pub chunks_spared: u64,
    /// Packets out of order whose SACK was delayed (DAC).
    pub sacks_delayed: u64,
    /// Paths that were left while others went on.
    pub paths_left: u64,
    /// Chunks that were in flight there and moved to another path at once.
    pub chunks_moved: u64,
    /// Chunks sent again on another path because the peer's window waited for them (opportunistic retransmission).
    pub chunks_rescheduled: u64,
    /// Times that a path was penalised for that.
    pub penalties: u64,
    /// Times that a path with room got nothing because it had used up its part of a buffer (buffer splitting).
    pub shares_used_up: u64,
    /// Times that data waited for a faster path although a slower one had room (BLEST, ECF).
    pub waits: u64,
}

impl MultipathCounters {
    /// Adds those of another association.
    pub fn add(&mut self, other: &Self) {
        add_fields!(
            self,
            other,
            stale_sacks,
            overtaken_sacks,
            ambiguous_round_trips,
            round_trips_refused,
            pseudo_cumulative_acks,
            missing_reports_withheld,
            retransmissions_lost,
            chunks_spared,
            sacks_delayed,
            paths_left,
            chunks_moved,
            chunks_rescheduled,
            penalties,
            shares_used_up,
            waits,
        );
    }
}
