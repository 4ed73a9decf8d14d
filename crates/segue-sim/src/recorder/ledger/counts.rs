//! What is counted of the packets of a flow.

use super::{Entry, PacketFate, Sending};
use segue_capture::handover::LossCause;
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

impl FlowCounts {
    /// Counts what became of a packet; `arrived_before`: one that carried the same before arrived.
    pub(super) fn add(&mut self, entry: &Entry, arrived_before: bool) {
        if let Some(loss) = entry.fate.loss() {
            self.lost_packets += 1;
            match loss {
                LossCause::Handover => self.lost_to_handover += 1,
                LossCause::Queue => self.lost_to_queue += 1,
                LossCause::Other => self.lost_otherwise += 1,
            }
            *self.lost_by_cause.entry(entry.fate.name()).or_default() += 1;
        }
        self.in_flight_packets += u64::from(entry.fate == PacketFate::InFlight);
        let spurious = entry.is_retransmission() && arrived_before;
        let fast = entry.sending == Sending::FastRetransmission;
        self.spurious_retransmissions += u64::from(spurious);
        self.fast_retransmissions += u64::from(fast);
        self.spurious_fast_retransmissions += u64::from(fast && spurious);
    }
}
