//! A DATA chunk that was sent: what it carries, where it stands, and its last transmission.

use crate::sctp::ids::PathId;
use crate::sctp::lengths::chunk_size;
use crate::sctp::options::Policy;
use crate::time::Instant;
use segue_wire::sctp::DataChunk;
use segue_wire::{Data, Ssn, Tsn};

/// What an abandoned chunk holds.
const NOTHING: Data = Data::Synthetic { offset: 0, len: 0 };

/// Why a chunk is in flight no more although nobody acknowledged it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum Cause {
    /// T3-rtx of its path expired (RFC 9260 section 6.3.3).
    Timeout,
    /// Reports enough that it is missing (section 7.2.4, RFC 5827).
    MissingReports,
    /// Its destination, or the address that it was sent from, is left (RFC 5061 section 5.3).
    PathGone,
    /// A router said that it is too big (section 7.3).
    TooBig,
    /// It holds others up and goes over a faster path at once: see `multipath/opportunistic`.
    Rescheduled,
    /// It probed a window that was closed, and was not taken (section 6.1 rule A).
    ProbeRefused,
}

/// Where a chunk that was sent stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum ChunkState {
    /// In flight.
    Outstanding {
        /// Since it was last taken for lost it was moved to a faster path, and is not again.
        rescheduled: bool,
    },
    /// Marked for retransmission: not in flight.
    Marked(Cause),
    /// Acknowledged by a gap ack block: not in flight.
    GapAcked {
        /// The receiver keeps it (NR-SACK): its data is gone here, and its room in the send buffer free. Otherwise it is
        /// kept, because the receiver may renege.
        released: bool,
    },
    /// Abandoned (RFC 3758): for the sender as good as acknowledged, and without its data.
    Abandoned,
}

/// What a chunk carries.
#[derive(Debug)]
pub(in crate::sctp) struct Content {
    pub data: Data,
    pub about: About,
}

/// What a chunk says of its data.
#[derive(Clone, Copy, Debug)]
pub(in crate::sctp) struct About {
    pub payload_protocol_id: u32,
    pub stream_id: u16,
    pub ssn: Ssn,
    pub unordered: bool,
    pub beginning: bool,
    pub ending: bool,
    /// Sent with the I bit whenever it is sent (RFC 7053).
    pub immediate: bool,
    pub policy: Policy,
}

/// A DATA chunk that was sent, or is abandoned without having been.
#[derive(Debug)]
pub(in crate::sctp) struct Sent {
    data: Data,
    about: About,
    state: ChunkState,
    /// Path that it was last sent on; none if that was left since.
    path: Option<PathId>,
    /// The last time it was sent.
    transmission: Transmission,
    retransmissions: u32,
}

impl Sent {
    /// A chunk that is sent for the first time.
    pub(super) fn new(content: Content, path: PathId, transmission: Transmission) -> Self {
        Self {
            data: content.data,
            about: content.about,
            state: ChunkState::Outstanding { rescheduled: false },
            path: Some(path),
            transmission,
            retransmissions: 0,
        }
    }

    /// The end of a message that is never sent.
    pub(super) fn never(about: About) -> Self {
        Self {
            data: NOTHING,
            about,
            state: ChunkState::Abandoned,
            path: None,
            transmission: Transmission::NONE,
            retransmissions: 0,
        }
    }

    pub(in crate::sctp) fn about(&self) -> &About {
        &self.about
    }

    pub(super) fn into_data(self) -> Data {
        self.data
    }

    pub(in crate::sctp) fn state(&self) -> ChunkState {
        self.state
    }

    /// Path that it was last sent on. None if that was left since: it goes wherever new data goes, if it has to go again.
    pub(in crate::sctp) fn path(&self) -> Option<PathId> {
        self.path
    }

    /// The last time it was sent.
    pub(in crate::sctp) fn transmission(&self) -> Transmission {
        self.transmission
    }

    /// Bytes with header and padding: what congestion control counts.
    pub(in crate::sctp) fn size(&self) -> u32 {
        chunk_size(self.len())
    }

    /// User bytes: what the peer's window counts.
    pub(in crate::sctp) fn len(&self) -> u32 {
        self.data.len() as u32
    }

    pub(in crate::sctp) fn is_outstanding(&self) -> bool {
        matches!(self.state, ChunkState::Outstanding { .. })
    }

    /// Whether it is to be sent again.
    pub(in crate::sctp) fn is_marked(&self) -> bool {
        matches!(self.state, ChunkState::Marked(_))
    }

    /// Whether it is not acknowledged, and may be.
    pub(in crate::sctp) fn is_awaited(&self) -> bool {
        self.is_outstanding() || self.is_marked()
    }

    pub(in crate::sctp) fn is_gap_acked(&self) -> bool {
        matches!(self.state, ChunkState::GapAcked { .. })
    }

    pub(in crate::sctp) fn is_released(&self) -> bool {
        matches!(self.state, ChunkState::GapAcked { released: true })
    }

    /// Whether it waits to be sent again because of missing reports.
    pub(in crate::sctp) fn is_fast_marked(&self) -> bool {
        self.state == ChunkState::Marked(Cause::MissingReports)
    }

    /// Whether partial reliability has it abandoned instead of sent again.
    pub(in crate::sctp) fn is_given_up(&self, now: Instant) -> bool {
        self.about
            .policy
            .forbids_retransmission(now, self.retransmissions)
    }

    /// As it goes on the wire.
    pub(in crate::sctp) fn chunk(&self, tsn: Tsn) -> DataChunk {
        let about = &self.about;
        DataChunk {
            tsn,
            stream_id: about.stream_id,
            ssn: about.ssn,
            payload_protocol_id: about.payload_protocol_id,
            unordered: about.unordered,
            beginning: about.beginning,
            ending: about.ending,
            immediate: about.immediate,
            data: self.data.clone(),
        }
    }

    /// It is to be sent again.
    pub(super) fn mark(&mut self, cause: Cause) {
        self.state = ChunkState::Marked(cause);
    }

    /// A gap ack block reports it; returns where it stood.
    pub(super) fn gap_acked(&mut self) -> ChunkState {
        core::mem::replace(&mut self.state, ChunkState::GapAcked { released: false })
    }

    /// The receiver reneged: it is outstanding again.
    pub(super) fn renege(&mut self) {
        self.state = ChunkState::Outstanding { rescheduled: false };
    }

    /// It is abandoned, and its data forgotten; returns where it stood, and how much data it had.
    pub(super) fn abandon(&mut self) -> (ChunkState, usize) {
        let former = core::mem::replace(&mut self.state, ChunkState::Abandoned);
        (former, core::mem::replace(&mut self.data, NOTHING).len())
    }

    /// It is sent again; `transmission` is given the last one, and whether the path is another.
    pub(super) fn send_again(
        &mut self,
        path: PathId,
        transmission: impl FnOnce(Transmission, bool) -> Transmission,
    ) {
        let moves = self.path.replace(path) != Some(path);
        self.transmission = transmission(self.transmission, moves);
        self.retransmissions = self.retransmissions.saturating_add(1);
        let rescheduled = self.state == ChunkState::Marked(Cause::Rescheduled);
        self.state = ChunkState::Outstanding { rescheduled };
    }

    /// So many more reports that it is missing.
    pub(super) fn report_missing(&mut self, reports: u8) -> u8 {
        self.transmission.report_missing(reports)
    }

    /// Found lost by missing reports; returns whether it was before.
    pub(super) fn note_fast_retransmission(&mut self) -> bool {
        self.transmission.note_fast_retransmission()
    }

    /// The path that it was last sent on is left. If that is there again one day, it is another one.
    pub(super) fn leave_path(&mut self) {
        self.path = None;
    }

    /// The receiver keeps it: the data is forgotten but for its size. Returns whether that is new.
    pub(super) fn release(&mut self) -> bool {
        if self.state != (ChunkState::GapAcked { released: false }) {
            return false;
        }
        self.state = ChunkState::GapAcked { released: true };
        let len = self.len();
        self.data = Data::Synthetic { offset: 0, len };
        true
    }
}

/// The last transmission of a chunk, and what SACKs have said of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) struct Transmission {
    /// Its number among all transmissions of the association; 0 if it was never sent.
    number: u64,
    at: Instant,
    again: bool,
    /// The chunk was sent on another path before, or on one that was left since.
    moved: bool,
    missing_reports: u8,
    /// Found lost by missing reports, this time or before: not eligible for it again but with MFR.
    fast_retransmitted: bool,
}

impl Transmission {
    /// That of a TSN that is never sent.
    pub(in crate::sctp) const NONE: Self = Self {
        number: 0,
        at: Instant::ZERO,
        again: false,
        moved: false,
        missing_reports: 0,
        fast_retransmitted: false,
    };

    /// When it was.
    pub(in crate::sctp) fn at(&self) -> Instant {
        self.at
    }

    /// Whether the chunk was sent before: no round trip may be measured from it (RFC 9260 section 6.3.1, rule C5).
    pub(in crate::sctp) fn is_again(&self) -> bool {
        self.again
    }

    /// Its place in the order of sending.
    pub(in crate::sctp) fn number(&self) -> u64 {
        self.number
    }

    /// Whether the chunk was sent on another path before, or on one that was left since.
    pub(super) fn has_moved(&self) -> bool {
        self.moved
    }

    /// Whether missing reports had it sent, or will have.
    pub(super) fn is_fast_retransmitted(&self) -> bool {
        self.fast_retransmitted
    }

    /// That of a chunk that is sent for the first time.
    pub(super) fn first(number: u64, at: Instant) -> Self {
        Self {
            number,
            at,
            ..Self::NONE
        }
    }

    /// The chunk is sent again, by `next`; `moves`: on another path.
    pub(super) fn again(self, next: Self, moves: bool) -> Self {
        Self {
            again: true,
            moved: self.moved || moves,
            fast_retransmitted: self.fast_retransmitted,
            ..next
        }
    }

    pub(super) fn report_missing(&mut self, reports: u8) -> u8 {
        self.missing_reports = self.missing_reports.saturating_add(reports);
        self.missing_reports
    }

    pub(super) fn note_fast_retransmission(&mut self) -> bool {
        core::mem::replace(&mut self.fast_retransmitted, true)
    }

    /// Missing reports so far.
    #[cfg(test)]
    pub(super) fn missing_reports(&self) -> u8 {
        self.missing_reports
    }
}
