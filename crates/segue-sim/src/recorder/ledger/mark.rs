//! What stays of a packet that was lost or sent again.

use super::Entry;
use segue_capture::handover::LossCause;
use segue_capture::rows::Row;

/// What a handover may count of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// When it was sent, in units of [`TICK_NS`](super::TICK_NS).
    pub sent_ticks: u32,
    /// Its first byte had been sent before.
    pub is_retransmission: bool,
    /// And had arrived.
    pub is_spurious: bool,
    /// It was lost to handover.
    pub is_lost_to_handover: bool,
}

impl Row for Mark {
    const BYTES: usize = 4 + 3;

    fn put(self, to: &mut Vec<u8>) {
        self.sent_ticks.put(to);
        let flags = [self.is_retransmission, self.is_spurious, self.is_lost_to_handover];
        flags.into_iter().for_each(|flag| flag.put(to));
    }

    fn read(from: &mut &[u8]) -> Self {
        Self {
            sent_ticks: Row::read(from),
            is_retransmission: Row::read(from),
            is_spurious: Row::read(from),
            is_lost_to_handover: Row::read(from),
        }
    }
}

impl Mark {
    /// Of an entry; `arrived_before`: a packet that carried the same before arrived. Nothing if there is nothing to count.
    pub(super) fn of(entry: &Entry, arrived_before: bool) -> Option<Self> {
        let mark = Self {
            sent_ticks: entry.sent_ticks,
            is_retransmission: entry.is_retransmission(),
            is_spurious: entry.is_retransmission() && arrived_before,
            is_lost_to_handover: entry.fate.loss() == Some(LossCause::Handover),
        };
        (mark.is_retransmission || mark.is_lost_to_handover).then_some(mark)
    }
}
