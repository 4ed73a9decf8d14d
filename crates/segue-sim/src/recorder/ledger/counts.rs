//! What is counted of the packets of a flow.

use serde::Serialize;
use std::collections::BTreeMap;

/// Counts of a flow, packets with data.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FlowCounts {
    /// Packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Packets whose first byte had been sent before (004 section 6.1.2).
    pub retransmissions: u64,
    /// Packets that did not reach their receiver's transport, retransmissions included, by whatever cause; one that
    /// arrives and is dropped for a stale locator among them (004 section 6.1.3).
    pub lost_packets: u64,
    /// Retransmissions of which an earlier copy had arrived, or arrived later.
    pub spurious_retransmissions: u64,
    /// Of SCTP: those because of missing reports.
    #[serde(skip)]
    pub fast_retransmissions: u64,
    /// Of SCTP: those of them that were spurious.
    #[serde(skip)]
    pub spurious_fast_retransmissions: u64,
    /// Packets that were under way when the run ended.
    pub in_flight_packets: u64,
    /// Of the lost ones: sent to a place where the mobile host no longer was, or not yet.
    pub lost_to_handover: u64,
    /// Of them, lost to a full queue.
    pub lost_to_queue: u64,
    /// Of them, lost otherwise (random loss, corruption, contention).
    pub lost_otherwise: u64,
    /// Where the lost ones went: counts by cause.
    pub lost_by_cause: BTreeMap<&'static str, u64>,
}
