//! Chunks that wait for streams to be reset (RFC 6525 sections 5.2.2 to 5.2.7), and what the peer gives up meanwhile (RFC 3758
//! section 3.6).

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
    forwarded: Option<Forwarded>,
    /// The last chunk of each stream that was taken in before it was known on which side of the reset it is.
    taken: BTreeMap<u16, Tsn>,
}

/// What the peer gave up while chunks wait (RFC 3758 section 3.6), and what is still to be passed over for it: a chunk that
/// waits has come, and its turn in its stream is before what was sent, and given up, behind it.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Forwarded {
    /// What is missing up to here is.
    up_to: Tsn,
    /// By stream, so that it is bounded: the last stream sequence number that its order passes over, and the new cumulative TSN
    /// of the FORWARD TSN that said so last.
    skipped: BTreeMap<u16, (Ssn, Tsn)>,
}

/// What was held, on both sides of a reset of the association.
pub(super) struct Around {
    pub before: Vec<DataChunk>,
    /// What is missing among those, and before them, was given up as far as this says. Nothing is to be skipped: the reset
    /// delivers what waits for its turn.
    pub forwarded_before: Option<Tsn>,
    pub after: Vec<DataChunk>,
    pub forwarded_after: Option<Forwarded>,
    /// Streams that had begun again when they were held.
    pub begun: Vec<u16>,
}

impl Forwarded {
    fn new(up_to: Tsn) -> Self {
        Self {
            up_to,
            skipped: BTreeMap::new(),
        }
    }

    /// How far what is missing was given up.
    pub(super) fn up_to(&self) -> Tsn {
        self.up_to
    }

    /// Stream sequence numbers that the order of their streams passes over.
    pub(super) fn skipped(&self) -> impl Iterator<Item = (u16, Ssn)> {
        self.skipped
            .iter()
            .map(|(&stream_id, &(ssn, _))| (stream_id, ssn))
    }

    /// A FORWARD TSN may name a stream more than once; a later FORWARD TSN knows better than one before.
    fn skip(&mut self, stream_id: u16, ssn: Ssn, up_to: Tsn) {
        let known = self.skipped.entry(stream_id).or_insert((ssn, up_to));
        if known.1 != up_to || known.0.before(ssn) {
            *known = (ssn, up_to);
        }
    }

    /// What was given up from `first` on, if anything was.
    fn since(mut self, first: Tsn) -> Option<Self> {
        self.skipped.retain(|_, skipped| first.at_or_before(skipped.1));
        first.at_or_before(self.up_to).then_some(self)
    }

    /// Whether the order of a stream that is at `next` goes on with `ssn` because all in between may be skipped.
    fn goes_on_with(&self, stream_id: u16, ssn: Ssn, next: Ssn) -> bool {
        self.skipped.get(&stream_id).is_some_and(|&(last, _)| {
            next.at_or_before(last) && ssn.distance_from(next) <= last.next().distance_from(next)
        })
    }
}

impl Held {
    pub(super) fn new(after: Tsn, until: Until) -> Self {
        Self {
            after,
            until,
            chunks: BTreeMap::new(),
            forwarded: None,
            taken: BTreeMap::new(),
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

    /// The first chunk that waits for a reset of the association.
    pub(super) fn first(&self) -> Option<Tsn> {
        let mut chunks = self.chunks.values().filter(|_| self.awaits_association_reset());
        chunks.next().map(|chunk| chunk.tsn)
    }

    /// The chunks in the order of their TSNs, and what was given up meanwhile.
    pub(super) fn into_parts(self) -> (impl Iterator<Item = DataChunk>, Option<Forwarded>) {
        (self.chunks.into_values(), self.forwarded)
    }

    /// The peer gave up what is missing up to a TSN. Returns what of `skipped` is of streams whose order is not affected by the
    /// chunks that wait.
    ///
    /// Those of streams that are reset are not: the peer assigns no new number on them before it has its answer (section 5.1.2,
    /// A1), and all that it says of them is of their old order.
    pub(super) fn forward<S: Iterator<Item = (u16, Ssn)>>(
        &mut self,
        new_cumulative_tsn: Tsn,
        skipped: S,
    ) -> Option<S> {
        let forwarded = self
            .forwarded
            .get_or_insert_with(|| Forwarded::new(new_cumulative_tsn));
        forwarded.up_to = new_cumulative_tsn;
        if self.until != Until::AssociationReset {
            return Some(skipped);
        }
        for (stream_id, ssn) in skipped {
            forwarded.skip(stream_id, ssn, new_cumulative_tsn);
        }
        None
    }

    /// The last TSN before which nothing that has come or was given up still waits, if anything was given up.
    pub(super) fn settled(&self) -> Option<Tsn> {
        let up_to = self.forwarded.as_ref()?.up_to;
        let first = self.chunks.values().next().map(|chunk| chunk.tsn);
        let stops_at = first.filter(|&tsn| tsn.at_or_before(up_to));
        Some(stops_at.map_or(up_to, Tsn::previous))
    }

    /// The first chunk, if its TSN is at most `cumulative` and it goes on where its stream is, as `next_ssn` tells, or where
    /// that is when what was given up is passed over.
    pub(super) fn take_what_goes_on(
        &mut self,
        cumulative: Tsn,
        next_ssn: impl Fn(u16) -> Ssn,
    ) -> Option<DataChunk> {
        let first = self.chunks.first_entry()?;
        let chunk = first.get();
        let (stream_id, ssn, next) = (chunk.stream_id, chunk.ssn, next_ssn(chunk.stream_id));
        let skips = || {
            let forwarded = self.forwarded.as_ref();
            forwarded.is_some_and(|f| f.goes_on_with(stream_id, ssn, next))
        };
        if cumulative.before(chunk.tsn) || !(chunk.unordered || ssn == next || skips()) {
            return None;
        }
        if !chunk.unordered {
            self.taken.insert(stream_id, chunk.tsn);
        }
        Some(first.remove())
    }

    /// The association was reset between what was sent before `next_tsn` and the rest.
    pub(super) fn split_at(self, next_tsn: Tsn) -> Around {
        let sent_before = |tsn: Tsn| tsn.before(next_tsn);
        let (before, after) = self.chunks.into_values().partition(|c| sent_before(c.tsn));
        let begun = self.taken.into_iter().filter(|&(_, tsn)| !sent_before(tsn));
        let (up_to, last) = (self.forwarded.as_ref().map(|f| f.up_to), next_tsn.previous());
        Around {
            before,
            forwarded_before: up_to.map(|tsn| if sent_before(tsn) { tsn } else { last }),
            after,
            forwarded_after: self.forwarded.and_then(|forwarded| forwarded.since(next_tsn)),
            begun: begun.map(|(stream_id, _)| stream_id).collect(),
        }
    }
}
