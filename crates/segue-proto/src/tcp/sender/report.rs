//! What an acknowledgement did.

use crate::tcp::scoreboard::Sent;
use crate::time::Instant;

/// What the acknowledgement at hand did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    /// Bytes acknowledged in order.
    pub acked: u32,
    /// Bytes newly SACKed.
    pub sacked: u32,
    /// Bytes acknowledged in order that had been SACKed before; without SACK, what duplicate acknowledgements stood for.
    pub known: u32,
    /// Without SACK: bytes that left the network for a duplicate acknowledgement, whichever they are.
    pub presumed: u32,
    /// SND.UNA moved.
    pub advanced: bool,
    /// SND.UNA before.
    pub former_una: u64,
    /// Bytes in the network before.
    pub former_pipe: u32,
    /// A duplicate acknowledgement (RFC 5681 section 2).
    pub duplicate: bool,
    /// A duplicate of ours was reported.
    pub dsack: bool,
    /// It showed that something is lost.
    pub found_lost: bool,
    /// Something that was retransmitted is acknowledged in order.
    pub retransmitted_acked: bool,
    /// Timestamp that it echoes.
    pub echo: Option<u32>,
    /// What was sent once only and has arrived.
    pub arrivals: Arrivals,
    /// How many segments the lowest one that arrived after higher ones and the highest span: the highest alone would be one.
    pub reordering: u32,
}

impl Report {
    /// Bytes that have left the network.
    pub fn delivered(&self) -> u32 {
        (self.acked - self.known) + self.sacked + self.presumed
    }
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
