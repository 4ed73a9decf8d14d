//! What an acknowledgement did.

use crate::tcp::scoreboard::Sent;
use crate::time::Instant;

/// What the acknowledgement at hand says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    /// Bytes acknowledged in order.
    pub acked: u32,
    /// Bytes newly SACKed.
    pub sacked: u32,
    /// Bytes that have left the network.
    pub delivered: u32,
    /// SND.UNA moved.
    pub advanced: bool,
    /// A duplicate acknowledgement (RFC 5681 section 2).
    pub duplicate: bool,
    /// A duplicate of ours was reported.
    pub dsack: bool,
    /// Something that was retransmitted is acknowledged in order.
    pub retransmitted_acked: bool,
    /// Timestamp that it echoes.
    pub echo: Option<u32>,
    /// What was sent once only and has arrived.
    pub arrivals: Arrivals,
    /// How many segments the lowest one that arrived after higher ones and the highest span: the highest alone would be one.
    pub reordering: u32,
}

/// What it came to, as far as the window is concerned.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Effect {
    /// Bytes that have left the network; without SACK, one segment for a duplicate acknowledgement, whichever that was.
    pub delivered: u32,
    /// SND.UNA moved.
    pub advanced: bool,
    /// It showed that something is lost.
    pub found_lost: bool,
}

/// What is acknowledged in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InOrder {
    /// Bytes, and those of them that had been SACKed before.
    pub acked: u32,
    pub known: u32,
    /// Some of it was retransmitted.
    pub retransmitted: bool,
    pub arrivals: Arrivals,
    pub reordering: u32,
}

/// What SACK blocks report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sacked {
    /// Bytes that no block had reported.
    pub bytes: u32,
    /// A duplicate of ours.
    pub dsack: bool,
    /// Blocks that cannot be.
    pub impossible: u32,
    pub arrivals: Arrivals,
    pub reordering: u32,
}

/// What was sent once only and has arrived with the acknowledgement at hand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    /// First and last transmission.
    sent: Option<(Instant, Instant)>,
    /// Some of it is of the recovery at hand.
    original: bool,
}

impl Arrivals {
    /// A segment has arrived, one of those before `high` perhaps, which belong to the recovery at hand.
    pub fn note(&mut self, sent: &Sent, high: u64) {
        if sent.was_retransmitted() {
            return;
        }
        let at = sent.sent_at();
        let (first, last) = self.sent.unwrap_or((at, at));
        self.sent = Some((first.min(at), last.max(at)));
        self.original |= sent.end() <= high;
    }

    /// All that is in either.
    pub fn and(self, other: Self) -> Self {
        let sent = match (self.sent, other.sent) {
            (Some((first, last)), Some((others_first, others_last))) => {
                Some((first.min(others_first), last.max(others_last)))
            }
            (sent, None) | (None, sent) => sent,
        };
        Self {
            sent,
            original: self.original || other.original,
        }
    }

    /// First transmission.
    pub fn first_sent(&self) -> Option<Instant> {
        self.sent.map(|(first, _)| first)
    }

    /// Last transmission.
    pub fn last_sent(&self) -> Option<Instant> {
        self.sent.map(|(_, last)| last)
    }

    /// Something of the recovery at hand that was sent once only has arrived.
    pub fn has_original(&self) -> bool {
        self.original
    }
}
