//! Chunks that wait for streams to be reset (RFC 6525 sections 5.2.2 to 5.2.7).

use super::Reassembly;
use crate::sctp::sender::concerns;
use segue_wire::sctp::DataChunk;
use segue_wire::{Ssn, Tsn};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Chunks sent after a reset that is not yet carried out (RFC 6525 section 5.2.2, E2), or that may have been.
#[derive(Debug)]
pub(super) struct Held {
    /// Those with a higher TSN wait,
    after: Tsn,
    /// of these streams; none stands for all.
    streams: Vec<u16>,
    /// By the distance from `after`.
    chunks: BTreeMap<u32, DataChunk>,
    /// Streams whose message 0 was taken in before it was known on which side of the reset it is, with its TSN.
    begun: Vec<(u16, Tsn)>,
}

impl Held {
    fn new(after: Tsn, streams: Vec<u16>) -> Self {
        Self {
            after,
            streams,
            chunks: BTreeMap::new(),
            begun: Vec::new(),
        }
    }

    /// Whether a chunk waits.
    pub(super) fn concerns(&self, chunk: &DataChunk) -> bool {
        self.after.before(chunk.tsn) && concerns(&self.streams, chunk.stream_id)
    }

    pub(super) fn keep(&mut self, chunk: DataChunk) {
        self.chunks.insert(chunk.tsn.distance_from(self.after), chunk);
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = &DataChunk> {
        self.chunks.values()
    }
}

impl Reassembly {
    /// Keeps what comes after a TSN in `streams`, or in all if none is named, until [`release`](Self::release). What was kept
    /// until now is kept on, or taken in, as this has it.
    pub(in crate::sctp) fn hold(&mut self, after: Tsn, streams: Vec<u16>) {
        let former = self.held.replace(Box::new(Held::new(after, streams)));
        self.insert_again(former.map(|h| h.chunks).unwrap_or_default().into_values());
    }

    /// Takes in what was kept.
    pub(in crate::sctp) fn release(&mut self) {
        let chunks = self.held.take().map(|h| h.chunks).unwrap_or_default();
        self.insert_again(chunks.into_values());
    }

    /// Takes in chunks that were kept, and are counted as held.
    fn insert_again(&mut self, chunks: impl Iterator<Item = DataChunk>) {
        for chunk in chunks {
            self.forget([&chunk.data].into_iter());
            self.insert(chunk);
        }
    }

    /// The buffer is full of what waits for a reset of the association, and the peer may carry that out only when all that
    /// it has sent is acknowledged (RFC 6525 section 5.2.4): takes in, in order and up to `cumulative`, before which nothing is
    /// missing, what goes on where its stream is. A stream that begins at 0 where it is at something else was reset. Of one
    /// that is at 0 nobody knows, but it goes on at 1 in both cases.
    ///
    /// Returns whether something still waits.
    pub(in crate::sctp) fn take_what_goes_on(&mut self, cumulative: Tsn) -> bool {
        let Some(mut held) = self.held.take() else {
            return false;
        };
        while let Some(first) = held.chunks.first_entry() {
            let chunk = first.get();
            let goes_on = chunk.unordered || self.next_ssn(chunk.stream_id) == chunk.ssn;
            if !goes_on || cumulative.before(chunk.tsn) {
                break;
            }
            if chunk.ssn == Ssn(0) && chunk.beginning && !chunk.unordered {
                held.begun.push((chunk.stream_id, chunk.tsn));
            }
            self.insert_again(core::iter::once(first.remove()));
        }
        let waits = !held.chunks.is_empty();
        self.held = Some(held);
        waits
    }

    /// Takes in what was kept, and has all streams begin again between what was sent before `next_tsn` and the rest.
    pub(in crate::sctp) fn release_around(&mut self, next_tsn: Tsn) {
        let Some(held) = self.held.take() else {
            self.reset_streams(&[]);
            return;
        };
        let sent_before = |tsn: Tsn| tsn.before(next_tsn);
        let (before, after): (Vec<_>, Vec<_>) = held.chunks.into_values().partition(|c| sent_before(c.tsn));
        self.insert_again(before.into_iter());
        let begun = held.begun.into_iter().filter(|&(_, tsn)| !sent_before(tsn));
        let begun: SmallVec<[_; 4]> = begun.map(|(id, _)| (id, self.next_ssn(id))).collect();
        self.reset_streams(&[]);
        for (stream_id, ssn) in begun {
            Self::stream(&mut self.streams, stream_id).next_ssn = ssn;
        }
        self.insert_again(after.into_iter());
    }

    fn next_ssn(&self, stream_id: u16) -> Ssn {
        let stream = self.streams.get(usize::from(stream_id));
        stream.map_or(Ssn(0), |s| s.next_ssn)
    }

    /// The streams of what is held, which were reset before it was sent.
    pub(super) fn reset_held_streams(&mut self) {
        if let Some(held) = &self.held {
            let streams = held.streams.clone();
            self.reset_streams(&streams);
        }
    }
}
