//! What was counted: of an endpoint, and of a connection. Each reason for not acting on a segment has a counter of its
//! own.

use super::ends::Pair;

/// Counters of an endpoint: segments that reached no connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointCounters {
    /// Segments for no connection that were answered by a RST (RFC 9293 section 3.10.7.1).
    pub resets_sent: u64,
    /// RSTs for no connection.
    pub stray_resets: u64,
    /// From or to an address that is not one host's (RFC 9293 section 3.9.2.3).
    pub not_unicast: u64,
    /// From or to port 0.
    pub port_zero: u64,
    /// Segments to a listening port that were neither SYN nor ACK nor RST (section 3.10.7.2, fourth).
    pub not_syn: u64,
    /// SYNs beyond `Config::max_connections`.
    pub too_many_connections: u64,
    /// Connections accepted.
    pub accepted: u64,
}

impl EndpointCounters {
    /// Whether a segment may have come from there to here (RFC 9293 section 3.9.2.3); one that may not is counted.
    pub(super) fn admit(&mut self, ends: &Pair) -> bool {
        let unicast =
            !ends.remote.is_multicast() && !ends.remote.is_unspecified() && !ends.local.is_multicast();
        let ports = ends.remote_port != 0 && ends.local_port != 0;
        self.not_unicast += u64::from(!unicast);
        self.port_zero += u64::from(unicast && !ports);
        unicast && ports
    }
}

/// Counters of a connection since it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Segments sent, of whatever kind.
    pub segments_sent: u64,
    /// Segments with data sent, retransmissions included.
    pub data_segments_sent: u64,
    /// Bytes of data sent, retransmissions included.
    pub data_bytes_sent: u64,
    /// What was done about losses.
    pub recovery: RecoveryCounters,
    /// Segments received.
    pub segments_received: u64,
    /// Bytes of new data received.
    pub data_bytes_received: u64,
    /// Segments of which some or all was received before.
    pub duplicate_segments: u64,
    /// Segments that came before others that were due earlier.
    pub out_of_order_segments: u64,
    /// Acknowledgements without data sent.
    pub acks_sent: u64,
    /// Challenge ACKs sent (RFC 5961).
    pub challenge_acks: u64,
    /// Segments not acted on, by reason.
    pub refused: Refused,
}

/// What the sender of a connection did about losses, and what it took for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecoveryCounters {
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Entries into fast recovery.
    pub fast_recoveries: u64,
    /// Expiries of the retransmission timer, those of a SYN included.
    pub timeouts: u64,
    /// Tail loss probes.
    pub loss_probes: u64,
    /// Reductions of the window that were taken back: the retransmissions were needless.
    pub undone: u64,
    /// Timeouts that F-RTO found spurious.
    pub spurious_timeouts: u64,
    /// Probes of a window that is closed.
    pub window_probes: u64,
    /// Duplicates of ours that the peer reported (RFC 2883).
    pub dsacks_received: u64,
}

/// Segments that a connection did not act on, each counted under one reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Refused {
    /// Outside the window (RFC 9293 section 3.10.7.4, first).
    pub outside_window: u64,
    /// With a timestamp older than one seen (PAWS, RFC 7323 section 5.3).
    pub old_timestamp: u64,
    /// Without a timestamp although they were negotiated (RFC 7323 section 3.2).
    pub no_timestamp: u64,
    /// RSTs that are in the window, but not exactly where they must be (RFC 5961 section 3.2), or acknowledge something
    /// else than the SYN.
    pub doubtful_resets: u64,
    /// SYNs within a connection (RFC 5961 section 4.2).
    pub unexpected_syns: u64,
    /// Without ACK (section 3.10.7.4, fifth).
    pub no_ack: u64,
    /// With an acknowledgment that is too old, or of something that was not sent (RFC 5961 section 5.2).
    pub impossible_acks: u64,
    /// SACK blocks that cannot be (RFC 2883 section 4, Linux's validity checks).
    pub impossible_sacks: u64,
    /// With data for a connection whose user has closed it, or behind a FIN.
    pub data_after_close: u64,
    /// In a state that does not await them.
    pub unexpected: u64,
}

impl Refused {
    /// Segments refused for whatever reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.outside_window
            + self.old_timestamp
            + self.no_timestamp
            + self.doubtful_resets
            + self.unexpected_syns
            + self.no_ack
            + self.impossible_acks
            + self.impossible_sacks
            + self.data_after_close
            + self.unexpected
    }
}
