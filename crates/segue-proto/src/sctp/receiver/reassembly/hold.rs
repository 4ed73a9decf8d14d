//! Chunks that wait for streams to be reset (RFC 6525 sections 5.2.2 to 5.2.7).

use crate::sctp::stream_list::concerns;
use segue_wire::sctp::DataChunk;
use segue_wire::{Ssn, Tsn};
use std::collections::BTreeMap;

/// What the chunks wait for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum Until {
    /// That what was sent before the peer's reset of these streams, or of all if none is named, has arrived (section
    /// 5.2.2, E2).
    StreamsReset(Vec<u16>),
    /// That the peer answers a reset of the association: it may have carried it out.
    AssociationReset,
}

/// Chunks sent after a reset that is not yet carried out, or that may have been.
#[derive(Debug)]
pub(super) struct Held {
    /// Those with a higher TSN wait,
    after: Tsn,
    until: Until,
    /// By the distance from `after`.
    chunks: BTreeMap<u32, DataChunk>,
    /// Streams whose message 0 was taken in before it was known on which side of the reset it is, with its TSN.
    begun: Vec<(u16, Tsn)>,
}

/// What was held, on both sides of a reset of the association.
pub(super) struct Around {
    pub before: Vec<DataChunk>,
    pub after: Vec<DataChunk>,
    /// Streams that had begun again when they were held.
    pub begun: Vec<u16>,
}

impl Held {
    pub(super) fn new(after: Tsn, until: Until) -> Self {
        Self {
            after,
            until,
            chunks: BTreeMap::new(),
            begun: Vec::new(),
        }
    }

    /// The streams whose chunks wait; none stands for all.
    pub(super) fn streams(&self) -> &[u16] {
        match &self.until {
            Until::StreamsReset(streams) => streams,
            Until::AssociationReset => &[],
        }
    }

    /// Whether a reset of the association is waited for.
    pub(super) fn awaits_association_reset(&self) -> bool {
        self.until == Until::AssociationReset
    }

    /// Keeps a chunk if it is to wait; gives it back if not.
    pub(super) fn keep(&mut self, chunk: DataChunk) -> Option<DataChunk> {
        if self.after.before(chunk.tsn) && concerns(self.streams(), chunk.stream_id) {
            self.chunks.insert(chunk.tsn.distance_from(self.after), chunk);
            None
        } else {
            Some(chunk)
        }
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = &DataChunk> {
        self.chunks.values()
    }

    pub(super) fn into_chunks(self) -> impl Iterator<Item = DataChunk> {
        self.chunks.into_values()
    }

    /// The first chunk, if its TSN is at most `cumulative` and it goes on where its stream is, as `next_ssn` tells.
    pub(super) fn take_what_goes_on(
        &mut self,
        cumulative: Tsn,
        next_ssn: impl Fn(u16) -> Ssn,
    ) -> Option<DataChunk> {
        let first = self.chunks.first_entry()?;
        let chunk = first.get();
        let goes_on = chunk.unordered || next_ssn(chunk.stream_id) == chunk.ssn;
        if !goes_on || cumulative.before(chunk.tsn) {
            return None;
        }
        if chunk.ssn == Ssn(0) && chunk.beginning && !chunk.unordered {
            self.begun.push((chunk.stream_id, chunk.tsn));
        }
        Some(first.remove())
    }

    /// The association was reset between what was sent before `next_tsn` and the rest.
    pub(super) fn split_at(self, next_tsn: Tsn) -> Around {
        let sent_before = |tsn: Tsn| tsn.before(next_tsn);
        let (before, after) = self.chunks.into_values().partition(|c| sent_before(c.tsn));
        let begun = self.begun.into_iter().filter(|&(_, tsn)| !sent_before(tsn));
        Around {
            before,
            after,
            begun: begun.map(|(stream_id, _)| stream_id).collect(),
        }
    }
}
