//! What a user asks of one message that it sends.

use crate::time::{Duration, Instant};

/// How a message is to be sent (RFC 9260 section 11.1.5, SEND). The default: ordered, reliable, payload protocol
/// identifier 0.
///
/// ```
/// use segue_proto::Duration;
/// use segue_proto::sctp::{Reliability, SendOptions};
///
/// let options = SendOptions {
///     unordered: true,
///     reliability: Reliability::Timed { lifetime: Duration::from_millis(100) },
///     ..SendOptions::default()
/// };
/// # let _ = options;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendOptions {
    /// Deliver without regard to the order of the stream (U bit).
    pub unordered: bool,
    /// Payload protocol identifier: carried, and not looked at.
    pub payload_protocol_id: u32,
    /// When to give the message up.
    pub reliability: Reliability,
    /// Ask for the SACK of the message's last chunk at once (I bit, RFC 7053 section 4).
    pub sack_immediately: bool,
}

/// When a message is abandoned, with an `Event::MessageAbandoned`. To a peer without PR-SCTP (RFC 3758) only what has
/// not begun to be sent is: everything else is then delivered after all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reliability {
    /// Never.
    #[default]
    Full,
    /// After a time: from then on it is neither sent nor sent again (RFC 3758 section 4.1).
    Timed {
        /// From `send` on.
        lifetime: Duration,
    },
    /// Instead of sending one of its chunks again more often than that (RFC 7496 section 3.1).
    Retransmissions {
        /// Retransmissions of each chunk.
        limit: u32,
    },
    /// When the send buffer is needed for a message of higher priority, or one that is sent in another way (RFC 7496
    /// section 3.2).
    Priority {
        /// Priority: 0 is the highest.
        priority: u32,
    },
}

/// [`Reliability`] of a message that was accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Policy {
    Full,
    Until(Instant),
    Retransmissions(u32),
    Priority(u32),
}

impl Policy {
    pub(super) fn new(now: Instant, reliability: Reliability) -> Self {
        match reliability {
            Reliability::Full => Self::Full,
            Reliability::Timed { lifetime } => Self::Until(now + lifetime),
            Reliability::Retransmissions { limit } => Self::Retransmissions(limit),
            Reliability::Priority { priority } => Self::Priority(priority),
        }
    }

    /// Whether a message of which nothing was sent is too late.
    pub(super) fn is_expired(self, now: Instant) -> bool {
        matches!(self, Self::Until(end) if end <= now)
    }

    /// Whether a chunk that was sent again `retransmissions` times may not be once more.
    pub(super) fn forbids_retransmission(self, now: Instant, retransmissions: u32) -> bool {
        match self {
            Self::Full | Self::Priority(_) => false,
            Self::Until(end) => end <= now,
            Self::Retransmissions(limit) => retransmissions >= limit,
        }
    }

    /// The priority of a message that may make room, if it is lower than that of `other`.
    pub(super) fn priority_below(self, other: Self) -> Option<u32> {
        match (self, other) {
            (Self::Priority(own), Self::Priority(other)) => (own > other).then_some(own),
            (Self::Priority(own), _) => Some(own),
            _ => None,
        }
    }
}
