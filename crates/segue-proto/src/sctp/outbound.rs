//! What is waiting to be sent, and what was sent and is not yet acknowledged.

use super::loss::Transmission;
use super::options::Policy;
use super::outbound_hold::Held;
use super::path::PathId;
use super::{Message, SendOptions};
use crate::time::Instant;
use segue_wire::sctp::DataChunk;
use segue_wire::{Data, Ssn, Tsn};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Header of a DATA chunk, bytes.
pub(super) const DATA_HEADER: u32 = 16;

/// Where a chunk that was sent stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ChunkState {
    /// In flight.
    Outstanding,
    /// Marked for retransmission: not in flight.
    Marked,
    /// Acknowledged by a gap ack block: not in flight, kept because the receiver may renege.
    GapAcked,
    /// Abandoned (RFC 3758): for the sender as good as acknowledged, and without its data.
    Abandoned,
}

/// A DATA chunk that was sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub data: Data,
    pub payload_protocol_id: u32,
    pub stream_id: u16,
    pub ssn: Ssn,
    pub unordered: bool,
    pub beginning: bool,
    pub ending: bool,
    /// Sent with the I bit whenever it is sent (RFC 7053).
    pub immediate: bool,
    pub policy: Policy,
    pub state: ChunkState,
    /// Path it was last sent on.
    pub path: Option<PathId>,
    /// The last time it was sent.
    pub transmission: Transmission,
    pub retransmissions: u32,
    /// The receiver keeps it (NR-SACK): its data is gone here, and its room in the send buffer free.
    pub released: bool,
    /// To be retransmitted because of missing reports, not of a timeout.
    pub fast_marked: bool,
    /// Opportunistic retransmission has moved it since it was first sent or taken for lost.
    pub moved: bool,
}

impl Sent {
    /// Bytes with header and padding: what congestion control counts.
    pub(super) fn size(&self) -> u32 {
        chunk_size(self.data.len() as u32)
    }

    /// User bytes: what the peer's window counts.
    pub(super) fn len(&self) -> u32 {
        self.data.len() as u32
    }

    pub(super) fn chunk(&self, tsn: Tsn) -> DataChunk {
        DataChunk {
            tsn,
            stream_id: self.stream_id,
            ssn: self.ssn,
            payload_protocol_id: self.payload_protocol_id,
            unordered: self.unordered,
            beginning: self.beginning,
            ending: self.ending,
            immediate: self.immediate,
            data: self.data.clone(),
        }
    }
}

/// Bytes of a DATA chunk with `len` user bytes, header and padding included.
pub(super) fn chunk_size(len: u32) -> u32 {
    DATA_HEADER + len.next_multiple_of(4)
}

/// A user message of which some is still unsent.
#[derive(Debug)]
pub(super) struct Unsent {
    pub data: Data,
    /// Bytes of it already sent.
    pub position: usize,
    pub stream_id: u16,
    /// Assigned when its first chunk is sent.
    pub ssn: Ssn,
    pub options: SendOptions,
    pub policy: Policy,
}

/// The send queue. Chunk `i` of `sent` has TSN `base + i`, so every look-up is an index.
#[derive(Debug)]
pub(super) struct Outbound {
    pub base: Tsn,
    pub sent: VecDeque<Sent>,
    pub unsent: VecDeque<Unsent>,
    /// Messages kept back while streams are reset.
    pub held: Option<Box<Held>>,
    pub next_ssn: Vec<Ssn>,
    /// Largest user data of a chunk.
    max_data: usize,
    /// User bytes accepted and not cumulatively acknowledged.
    pub buffered: usize,
    /// Of those, bytes of chunks that were released.
    pub released: usize,
    /// User bytes of chunks in state `Outstanding`.
    pub outstanding_bytes: u32,
    pub outstanding_chunks: u32,
    pub marked: u32,
    /// No marked chunk lies before this TSN.
    pub marked_from: Tsn,
    /// Ranges acknowledged by gap ack blocks, ascending, both ends inclusive.
    pub gap_acked: SmallVec<[(Tsn, Tsn); 4]>,
}

impl Outbound {
    pub(super) fn new(initial_tsn: Tsn, max_data: u32) -> Self {
        Self {
            base: initial_tsn,
            sent: VecDeque::new(),
            unsent: VecDeque::new(),
            held: None,
            next_ssn: Vec::new(),
            max_data: max_data as usize,
            buffered: 0,
            released: 0,
            outstanding_bytes: 0,
            outstanding_chunks: 0,
            marked: 0,
            marked_from: initial_tsn,
            gap_acked: SmallVec::new(),
        }
    }

    /// Chunks not yet cut have at most this much user data.
    pub(super) fn set_max_data(&mut self, max_data: u32) {
        self.max_data = max_data as usize;
    }

    /// The peer's cumulative TSN ack as known here.
    pub(super) fn cumulative_tsn_ack(&self) -> Tsn {
        self.base.previous()
    }

    /// The TSN that the next new chunk gets.
    pub(super) fn next_tsn(&self) -> Tsn {
        self.base.add(self.sent.len() as u32)
    }

    /// Whether everything was sent and cumulatively acknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.unsent.is_empty() && !self.holds_messages()
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    pub(super) fn push(&mut self, now: Instant, stream_id: u16, data: Data, options: SendOptions) {
        self.buffered += data.len();
        let message = Unsent {
            data,
            position: 0,
            stream_id,
            ssn: Ssn(0),
            options,
            policy: Policy::new(now, options.reliability),
        };
        if self.held.is_none() {
            self.unsent.push_back(message);
        } else {
            self.queue_or_hold(message);
        }
    }

    /// The stream sequence number of an ordered message that begins to be sent.
    fn assign_ssn(next_ssn: &mut Vec<Ssn>, stream_id: u16) -> Ssn {
        let index = usize::from(stream_id);
        if next_ssn.len() <= index {
            next_ssn.resize(index + 1, Ssn(0));
        }
        let ssn = next_ssn[index];
        next_ssn[index] = ssn.next();
        ssn
    }

    /// Streams that the messages not yet sent need: one more than the highest identifier among them.
    pub(super) fn streams_needed(&self) -> usize {
        self.unsent
            .iter()
            .map(|m| usize::from(m.stream_id) + 1)
            .max()
            .unwrap_or(0)
    }

    /// User bytes of the next new chunk.
    pub(super) fn next_len(&self) -> Option<u32> {
        let message = self.unsent.front()?;
        Some((message.data.len() - message.position).min(self.max_data) as u32)
    }

    /// User bytes that wait to be sent for the first time, those of messages held back not counted.
    pub(super) fn unsent_bytes(&self) -> usize {
        let first = self.unsent.front().map_or(0, |m| m.position);
        self.unsent.iter().map(|m| m.data.len()).sum::<usize>() - first
    }

    /// Whether the next new chunk, of `len` user bytes, is the last one waiting.
    pub(super) fn is_last(&self, len: u32) -> bool {
        self.unsent.len() == 1
            && self
                .unsent
                .front()
                .is_some_and(|m| m.data.len() - m.position == len as usize)
    }

    /// Cuts the next new chunk off the queue, as sent on `path`; `immediate`: with the I bit, whoever asks for it.
    pub(super) fn send_next(
        &mut self,
        transmission: Transmission,
        path: PathId,
        immediate: bool,
    ) -> Option<(Tsn, &Sent)> {
        let message = self.unsent.front_mut()?;
        let len = message.data.len();
        let start = message.position;
        let beginning = start == 0;
        let (stream_id, options, policy) = (message.stream_id, message.options, message.policy);
        if beginning && !options.unordered {
            message.ssn = Self::assign_ssn(&mut self.next_ssn, stream_id);
        }
        let ssn = message.ssn;
        let (data, ending) = if len - start <= self.max_data {
            let message = self.unsent.pop_front()?;
            let data = if beginning {
                message.data
            } else {
                message.data.slice(start, len - start)
            };
            (data, true)
        } else {
            message.position += self.max_data;
            (message.data.slice(start, self.max_data), false)
        };
        self.outstanding_bytes += data.len() as u32;
        self.outstanding_chunks += 1;
        let tsn = self.next_tsn();
        self.sent.push_back(Sent {
            data,
            payload_protocol_id: options.payload_protocol_id,
            stream_id,
            ssn,
            unordered: options.unordered,
            beginning,
            ending,
            immediate: immediate || (ending && options.sack_immediately),
            policy,
            state: ChunkState::Outstanding,
            path: Some(path),
            transmission,
            retransmissions: 0,
            released: false,
            fast_marked: false,
            moved: false,
        });
        self.sent.back().map(|sent| (tsn, sent))
    }

    /// Every chunk that was sent and is not cumulatively acknowledged, with its TSN.
    pub(super) fn all_sent(&self) -> impl Iterator<Item = (Tsn, &Sent)> {
        let base = self.base;
        self.sent
            .iter()
            .enumerate()
            .map(move |(i, sent)| (base.add(i as u32), sent))
    }

    pub(super) fn get(&self, tsn: Tsn) -> Option<&Sent> {
        self.sent.get(tsn.distance_from(self.base) as usize)
    }

    pub(super) fn get_mut(&mut self, tsn: Tsn) -> Option<&mut Sent> {
        self.sent.get_mut(tsn.distance_from(self.base) as usize)
    }

    /// Takes the chunk at the cumulative TSN ack off, and advances it.
    pub(super) fn pop_acked(&mut self) -> Option<(Tsn, Sent)> {
        let sent = self.sent.pop_front()?;
        let tsn = self.base;
        self.base = self.base.next();
        self.buffered -= sent.data.len();
        if sent.released {
            self.released -= sent.data.len();
        }
        self.leave(sent.state, sent.len());
        if self.marked_from.before(self.base) {
            self.marked_from = self.base;
        }
        Some((tsn, sent))
    }

    /// Changes the state of a chunk; returns its former state, path and size. What is abandoned stays so. What is marked may
    /// be moved again.
    pub(super) fn set_state(
        &mut self,
        tsn: Tsn,
        state: ChunkState,
    ) -> Option<(ChunkState, Option<PathId>, u32)> {
        let sent = self.get_mut(tsn)?;
        let (former, path, size, len) = (sent.state, sent.path, sent.size(), sent.len());
        if former == ChunkState::Abandoned {
            return Some((former, path, size));
        }
        sent.state = state;
        sent.moved &= state != ChunkState::Marked;
        self.leave(former, len);
        match state {
            ChunkState::Outstanding => {
                self.outstanding_bytes += len;
                self.outstanding_chunks += 1;
            }
            ChunkState::Marked => {
                self.marked += 1;
                if tsn.before(self.marked_from) {
                    self.marked_from = tsn;
                }
            }
            ChunkState::GapAcked | ChunkState::Abandoned => {}
        }
        Some((former, path, size))
    }

    /// Lowest TSN marked for retransmission at or after `from`.
    pub(super) fn next_marked(&mut self, from: Option<Tsn>) -> Option<Tsn> {
        if self.marked == 0 {
            return None;
        }
        let start = match from {
            Some(from) if self.marked_from.before(from) => from,
            _ => self.marked_from,
        };
        let offset = start.distance_from(self.base) as usize;
        let found = self
            .sent
            .iter()
            .skip(offset)
            .position(|s| s.state == ChunkState::Marked)?;
        let tsn = start.add(found as u32);
        if start == self.marked_from {
            self.marked_from = tsn;
        }
        Some(tsn)
    }

    /// Lowest TSN outstanding on `path` at or after `from`.
    fn earliest_on(&self, path: PathId, from: Tsn) -> Option<Tsn> {
        let start = if from.before(self.base) { self.base } else { from };
        let offset = start.distance_from(self.base) as usize;
        let found = self
            .sent
            .iter()
            .skip(offset)
            .position(|s| s.state == ChunkState::Outstanding && s.path == Some(path))?;
        Some(start.add(found as u32))
    }

    /// The chunk of `path` that T3-rtx runs for: the lowest TSN at or after `from`, or `by_order` what was sent first.
    pub(super) fn timed_on(&self, path: PathId, from: Tsn, by_order: bool) -> Option<Tsn> {
        if by_order {
            self.first_sent_on(path)
        } else {
            self.earliest_on(path, from)
        }
    }

    /// Of what is outstanding on `path`, that which was sent first.
    pub(super) fn first_sent_on(&self, path: PathId) -> Option<Tsn> {
        let own = self
            .all_sent()
            .filter(|(_, s)| s.state == ChunkState::Outstanding && s.path == Some(path));
        own.min_by_key(|(_, s)| s.transmission.number())
            .map(|(tsn, _)| tsn)
    }

    /// Marks everything outstanding for which `which` holds; returns the user bytes marked.
    pub(super) fn mark_where(&mut self, mut which: impl FnMut(&Sent) -> bool) -> u32 {
        let mut bytes = 0;
        let mut first = None;
        for (i, sent) in self.sent.iter_mut().enumerate() {
            if sent.state == ChunkState::Outstanding && which(sent) {
                sent.state = ChunkState::Marked;
                sent.fast_marked = false;
                sent.moved = false;
                bytes += sent.len();
                self.outstanding_chunks -= 1;
                self.marked += 1;
                first = first.or(Some(i));
            }
        }
        self.outstanding_bytes -= bytes;
        if let Some(first) = first {
            let tsn = self.base.add(first as u32);
            if self.marked == 0 || tsn.before(self.marked_from) {
                self.marked_from = tsn;
            }
        }
        bytes
    }

    /// Detaches every chunk from paths that are gone.
    pub(super) fn forget_paths(&mut self, mut gone: impl FnMut(PathId) -> bool) {
        for sent in &mut self.sent {
            sent.path.take_if(|path| gone(*path));
        }
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        self.base = self.next_tsn();
        self.sent.clear();
        self.unsent.clear();
        self.held = None;
        self.buffered = 0;
        self.released = 0;
        self.outstanding_bytes = 0;
        self.outstanding_chunks = 0;
        self.marked = 0;
        self.marked_from = self.base;
        self.gap_acked.clear();
    }

    /// Takes out every message that was not acknowledged in whole: first those of which something was sent, then the
    /// others. Of what the peer has promised to keep (NR-SACK) nothing is left: such a message comes in pieces.
    pub(super) fn take_messages(&mut self) -> (Vec<Message>, Vec<Message>) {
        self.release();
        let (mut begun, mut unsent) = (Vec::new(), Vec::new());
        let mut open: Option<(Pieces, bool)> = None;
        for sent in core::mem::take(&mut self.sent) {
            // what was abandoned is so in all its chunks, and the user knows
            let arrived = matches!(sent.state, ChunkState::GapAcked | ChunkState::Abandoned);
            let (pieces, all_arrived) = open.get_or_insert_with(|| (Pieces::of(&sent), true));
            if sent.released {
                pieces.leave_out();
            } else {
                pieces.push(sent.data);
            }
            *all_arrived &= arrived;
            if sent.ending
                && let Some((pieces, all_arrived)) = open.take()
                && !all_arrived
            {
                begun.extend(pieces.finish());
            }
        }
        for rest in core::mem::take(&mut self.unsent) {
            let data = rest.data.slice(rest.position, rest.data.len() - rest.position);
            if rest.position > 0
                && let Some((mut pieces, _)) = open.take()
            {
                pieces.push(data);
                begun.extend(pieces.finish());
                continue;
            }
            let message = Message {
                stream_id: rest.stream_id,
                payload_protocol_id: rest.options.payload_protocol_id,
                unordered: rest.options.unordered,
                first: true,
                last: true,
                parts: SmallVec::from_buf([data]),
            };
            if rest.position > 0 {
                &mut begun
            } else {
                &mut unsent
            }
            .push(message);
        }
        self.clear();
        (begun, unsent)
    }

    fn leave(&mut self, state: ChunkState, len: u32) {
        match state {
            ChunkState::Outstanding => {
                self.outstanding_bytes -= len;
                self.outstanding_chunks -= 1;
            }
            ChunkState::Marked => self.marked -= 1,
            ChunkState::GapAcked | ChunkState::Abandoned => {}
        }
    }
}

/// A message that is put together again, as far as its data is still there.
struct Pieces {
    finished: Vec<Message>,
    open: Message,
    /// Data is missing behind what `open` has.
    gap: bool,
}

impl Pieces {
    /// Those of the message that `sent` is of.
    fn of(sent: &Sent) -> Self {
        let open = Message {
            stream_id: sent.stream_id,
            payload_protocol_id: sent.payload_protocol_id,
            unordered: sent.unordered,
            first: true,
            last: true,
            parts: SmallVec::new(),
        };
        Self {
            finished: Vec::new(),
            open,
            gap: false,
        }
    }

    fn push(&mut self, data: Data) {
        if core::mem::take(&mut self.gap) {
            let next = Message {
                first: false,
                parts: SmallVec::new(),
                ..self.open
            };
            let before = core::mem::replace(&mut self.open, next);
            if !before.parts.is_empty() {
                self.finished.push(Message {
                    last: false,
                    ..before
                });
            }
        }
        self.open.parts.push(data);
    }

    fn leave_out(&mut self) {
        self.gap = true;
    }

    fn finish(mut self) -> Vec<Message> {
        self.open.last &= !self.gap;
        if !self.open.parts.is_empty() {
            self.finished.push(self.open);
        }
        self.finished
    }
}
