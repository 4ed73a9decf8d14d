//! Fragments become messages (RFC 9260 section 6.9), whole or, where they are long, in parts (section 6.9; RFC 6458
//! section 8.1.21).

use super::load::Load;
use crate::sctp::Message;
use segue_wire::sctp::DataChunk;
use segue_wire::{Data, Ssn, Tsn};
use std::collections::{BTreeMap, VecDeque};

/// Consecutive fragments of one message.
#[derive(Debug)]
struct Run {
    /// Last TSN, unwrapped.
    end: u64,
    beginning: bool,
    ending: bool,
    stream_id: u16,
    ssn: Ssn,
    unordered: bool,
    payload_protocol_id: u32,
    /// User bytes of it not yet delivered.
    bytes: usize,
    /// What of it is not yet delivered.
    parts: VecDeque<Data>,
}

/// Where a message, or a part of one, belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub stream_id: u16,
    pub ssn: Ssn,
    pub unordered: bool,
}

/// Messages of which something is missing.
#[derive(Debug)]
pub(super) struct Fragments {
    /// By the unwrapped TSN of the first fragment.
    runs: BTreeMap<u64, Run>,
    /// The unwrapped TSN looked at last.
    last: Option<u64>,
    /// The run that is being delivered in parts.
    delivering: Option<u64>,
    /// Bytes of an incomplete message from which on it is delivered in parts.
    partial_delivery_point: usize,
    /// What is missing up to this unwrapped TSN was given up.
    given_up: Option<u64>,
}

/// What was given up.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct GivenUp {
    pub load: Load,
    /// The stream of the message that was being delivered in parts, if it was among it.
    pub cut_short: Option<u16>,
}

impl Fragments {
    pub(super) fn new(partial_delivery_point: usize) -> Self {
        Self {
            runs: BTreeMap::new(),
            last: None,
            delivering: None,
            partial_delivery_point,
            given_up: None,
        }
    }

    /// What is held.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Data> {
        self.runs.values().flat_map(|run| &run.parts)
    }

    /// Takes a fragment. Returns the message that it completes, with its stream sequence number, or what can be delivered
    /// of one that is long, if `is_in_turn` says that it may.
    pub(super) fn insert(
        &mut self,
        chunk: DataChunk,
        is_in_turn: impl Fn(Place) -> bool,
    ) -> Option<(Ssn, Message)> {
        let tsn = self.unwrap_tsn(chunk.tsn);
        let start = self.append(tsn, chunk);
        self.join_following(start, tsn + 1);
        let run = self.runs.get(&start).filter(|run| run.beginning)?;
        let goes_on = self.delivering == Some(start);
        if run.ending {
            let run = self.runs.remove(&start)?;
            if goes_on {
                self.delivering = None;
            }
            return Some((run.ssn, run.into_last_part(!goes_on)));
        }
        let long = run.bytes >= self.partial_delivery_point;
        if goes_on || (long && self.delivering.is_none() && is_in_turn(run.place())) {
            return self.take_part(start);
        }
        None
    }

    /// Begins to deliver an incomplete message whose turn it is, whatever its length: the buffer is full and nothing else
    /// can make room.
    pub(super) fn begin_delivery_in_parts(&mut self, is_in_turn: impl Fn(Place) -> bool) -> Option<Message> {
        if self.delivering.is_some() || self.partial_delivery_point == u32::MAX as usize {
            return None;
        }
        let begun = |(_, run): &(&u64, &Run)| run.beginning && is_in_turn(run.place());
        let start = self.runs.iter().find(begun).map(|(&start, _)| start)?;
        self.take_part(start).map(|(_, part)| part)
    }

    /// Joins parts that adjoin; returns how many fewer they are. A part is joined to one that is not twice as long: so a
    /// byte is copied as often as its message doubles, and few parts are left.
    pub(super) fn join_parts(&mut self) -> usize {
        self.runs.values_mut().map(|run| join_parts(&mut run.parts)).sum()
    }

    /// Gives up what lacks something up to a TSN.
    pub(super) fn give_up_to(&mut self, tsn: Tsn) -> GivenUp {
        let end = self.unwrap_tsn(tsn);
        self.given_up = self.given_up.max(Some(end));
        let kept = self.runs.split_off(&(end + 1));
        let gone = core::mem::replace(&mut self.runs, kept);
        let cut_short = self.delivering.and_then(|start| gone.get(&start));
        let cut_short = cut_short.map(|run| run.stream_id);
        if cut_short.is_some() {
            self.delivering = None;
        }
        GivenUp {
            load: Load::of(gone.values().flat_map(|run| &run.parts)),
            cut_short,
        }
    }

    /// Gives up all; the TSNs begin anew.
    pub(super) fn give_up_all(&mut self) -> Load {
        let gone = Load::of(self.parts());
        *self = Self::new(self.partial_delivery_point);
        gone
    }

    /// Checks that no TSN is in two runs, that bytes are counted, and that nothing is held of messages that were given up;
    /// `waits`: the first chunk that waits to be taken in, and nothing was given up behind it.
    pub(super) fn check(&self, waits: Option<Tsn>) -> Result<(), String> {
        if let Some(first) = self
            .runs
            .keys()
            .next()
            .filter(|&&start| Some(start) <= self.given_up)
        {
            return Err(format!("{} was given up, and is held", *first as u32));
        }
        if let Some(waits) = waits.filter(|&tsn| Some(self.nearest(tsn)) <= self.given_up) {
            return Err(format!("{waits:?} waits, and its stream has gone on beyond it"));
        }
        let mut last = None;
        for (&start, run) in &self.runs {
            if last >= Some(start) || run.end < start {
                return Err(format!("{} is in two runs of fragments", start as u32));
            }
            last = Some(run.end);
            if run.bytes != run.parts.iter().map(Data::len).sum::<usize>() {
                return Err(format!("{} bytes counted of a run of fragments", run.bytes));
            }
        }
        match self.delivering.filter(|start| !self.runs.contains_key(start)) {
            Some(start) => Err(format!(
                "{} is delivered in parts, and is not there",
                start as u32
            )),
            None => Ok(()),
        }
    }

    /// Appends a fragment to the run that ends just before it, or begins one; returns where that starts.
    fn append(&mut self, tsn: u64, chunk: DataChunk) -> u64 {
        if let Some((&start, run)) = self.runs.range_mut(..tsn).next_back()
            && run.end + 1 == tsn
            && !run.ending
            && !chunk.beginning
            && run.place() == place(&chunk)
        {
            run.end = tsn;
            run.bytes += chunk.data.len();
            run.ending = chunk.ending;
            run.parts.push_back(chunk.data);
            return start;
        }
        let run = Run {
            end: tsn,
            beginning: chunk.beginning,
            ending: chunk.ending,
            stream_id: chunk.stream_id,
            ssn: chunk.ssn,
            unordered: chunk.unordered,
            payload_protocol_id: chunk.payload_protocol_id,
            bytes: chunk.data.len(),
            parts: VecDeque::from([chunk.data]),
        };
        self.runs.insert(tsn, run);
        tsn
    }

    /// Joins the run at `next` to the one at `start`, moving the shorter list of parts.
    fn join_following(&mut self, start: u64, next: u64) {
        let joins = self
            .runs
            .get(&start)
            .zip(self.runs.get(&next))
            .is_some_and(|(first, second)| {
                !first.ending && !second.beginning && first.place() == second.place()
            });
        if !joins {
            return;
        }
        let Some(mut second) = self.runs.remove(&next) else {
            return;
        };
        let Some(first) = self.runs.get_mut(&start) else {
            return;
        };
        first.end = second.end;
        first.ending = second.ending;
        first.bytes += second.bytes;
        if first.parts.len() >= second.parts.len() {
            first.parts.append(&mut second.parts);
        } else {
            while let Some(part) = first.parts.pop_back() {
                second.parts.push_front(part);
            }
            first.parts = second.parts;
        }
    }

    /// What there is of the message that begins with the run at `start`.
    fn take_part(&mut self, start: u64) -> Option<(Ssn, Message)> {
        let run = self.runs.get_mut(&start).filter(|run| !run.parts.is_empty())?;
        let first = self.delivering != Some(start);
        self.delivering = Some(start);
        run.bytes = 0;
        let part = Message {
            stream_id: run.stream_id,
            payload_protocol_id: run.payload_protocol_id,
            unordered: run.unordered,
            first,
            last: false,
            parts: run.parts.drain(..).collect(),
        };
        Some((run.ssn, part))
    }

    /// The TSN in a number space that does not wrap, which is the last one from now on.
    fn unwrap_tsn(&mut self, tsn: Tsn) -> u64 {
        let unwrapped = self.nearest(tsn);
        self.last = Some(unwrapped);
        unwrapped
    }

    /// The TSN in a number space that does not wrap: the nearest to the last one.
    fn nearest(&self, tsn: Tsn) -> u64 {
        match self.last {
            // so that there is room before it
            None => (1 << 32) | u64::from(tsn.0),
            Some(last) => {
                let step = tsn.0.wrapping_sub(last as u32) as i32;
                last.wrapping_add_signed(i64::from(step))
            }
        }
    }
}

impl Run {
    fn place(&self) -> Place {
        Place {
            stream_id: self.stream_id,
            ssn: self.ssn,
            unordered: self.unordered,
        }
    }

    fn into_last_part(self, first: bool) -> Message {
        Message {
            stream_id: self.stream_id,
            payload_protocol_id: self.payload_protocol_id,
            unordered: self.unordered,
            first,
            last: true,
            parts: self.parts.into_iter().collect(),
        }
    }
}

fn place(chunk: &DataChunk) -> Place {
    Place {
        stream_id: chunk.stream_id,
        ssn: chunk.ssn,
        unordered: chunk.unordered,
    }
}

fn join_parts(parts: &mut VecDeque<Data>) -> usize {
    let before = parts.len();
    let mut joined: VecDeque<Data> = VecDeque::new();
    for mut part in parts.drain(..) {
        while let Some(former) = joined.pop_back() {
            match (former.len() < 2 * part.len())
                .then(|| join(&former, &part))
                .flatten()
            {
                Some(both) => part = both,
                None => {
                    joined.push_back(former);
                    break;
                }
            }
        }
        joined.push_back(part);
    }
    *parts = joined;
    before - parts.len()
}

fn join(first: &Data, second: &Data) -> Option<Data> {
    match (first, second) {
        (Data::Bytes(a), Data::Bytes(b)) => Some(Data::Bytes([&a[..], &b[..]].concat().into())),
        (
            &Data::Synthetic { offset, len },
            &Data::Synthetic {
                offset: next,
                len: more,
            },
        ) if next == offset.wrapping_add(len.into()) => {
            let len = len.checked_add(more)?;
            Some(Data::Synthetic { offset, len })
        }
        _ => None,
    }
}
