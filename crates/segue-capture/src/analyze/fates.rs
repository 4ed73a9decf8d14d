//! What became of packets, where both ends were captured.

use serde::Serialize;

/// What became of the packets with data of one direction, by what left the sender and what reached the receiver
/// (Phoomikiattisak and Bhatti 2019, sections 6.1.2 and 6.1.3). Of SCTP, each DATA chunk counts as a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct EndCounts {
    /// Packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Packets sent whose first byte had been sent before.
    pub retransmissions: u64,
    /// Packets sent that did not arrive, or came to a locator that the receiver no longer had.
    pub lost_packets: u64,
    /// Retransmissions of which an earlier copy arrived, even later.
    pub spurious_retransmissions: u64,
    /// Packets that may have been under way when the captures ended: they did not arrive, were sent after the last one
    /// that arrived by their way, and no longer before the end than any packet took.
    pub in_flight_packets: u64,
    /// Packets that arrived after one that was sent later (RFC 4737).
    pub reordered_packets: u64,
    /// Packets of which the other end's capture knows nothing: they arrived and were not seen to be sent, or they were sent
    /// before the receiver's capture began or after it ended. The latter count as sent, and nothing more is known of them.
    pub unmatched_packets: u64,
}

impl EndCounts {
    /// Both together.
    pub(super) const fn and(self, other: &Self) -> Self {
        Self {
            packets_sent: self.packets_sent + other.packets_sent,
            retransmissions: self.retransmissions + other.retransmissions,
            lost_packets: self.lost_packets + other.lost_packets,
            spurious_retransmissions: self.spurious_retransmissions + other.spurious_retransmissions,
            in_flight_packets: self.in_flight_packets + other.in_flight_packets,
            reordered_packets: self.reordered_packets + other.reordered_packets,
            unmatched_packets: self.unmatched_packets + other.unmatched_packets,
        }
    }
}
