//! Messages from chunks: reassembly of fragments and order within streams (RFC 9260 sections 6.5, 6.6 and 6.9).

use super::sender::concerns;
use super::{Config, Message};
use hold::Held;
use segue_wire::sctp::DataChunk;
use segue_wire::{Data, Ssn, Tsn};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};

mod hold;

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

#[derive(Debug, Default)]
struct InStream {
    next_ssn: Ssn,
    waiting: BTreeMap<u16, Message>,
}

/// Everything received and not yet taken by the user.
#[derive(Debug)]
pub(super) struct Reassembly {
    ready: VecDeque<Message>,
    streams: Vec<InStream>,
    /// By the unwrapped TSN of the first fragment.
    runs: BTreeMap<u64, Run>,
    /// An unwrapped TSN near those that arrive.
    reference: u64,
    /// User bytes held here.
    pub buffered: usize,
    /// DATA chunks that they came in.
    chunks: usize,
    /// The run that is being delivered in parts.
    delivering: Option<u64>,
    /// Bytes of an incomplete message from which on it is delivered in parts.
    partial_delivery_point: usize,
    /// Whether anything waits for its stream's order.
    waiting: usize,
    /// Chunks that wait for streams to be reset.
    held: Option<Box<Held>>,
    /// Messages that FORWARD TSNs have had looked at.
    #[cfg(test)]
    looked_at: usize,
}

impl Reassembly {
    pub(super) fn new(initial_tsn: Tsn, config: &Config) -> Self {
        let half = config.receive_buffer / 2;
        Self {
            chunks: 0,
            delivering: None,
            partial_delivery_point: config.partial_delivery_point.unwrap_or(half) as usize,
            ready: VecDeque::new(),
            streams: Vec::new(),
            runs: BTreeMap::new(),
            reference: (1 << 32) | u64::from(initial_tsn.0),
            buffered: 0,
            waiting: 0,
            held: None,
            #[cfg(test)]
            looked_at: 0,
        }
    }

    pub(super) fn pop(&mut self) -> Option<Message> {
        let message = self.ready.pop_front()?;
        self.forget(message.parts.iter());
        Some(message)
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// User bytes held, counted anew: `buffered` says the same.
    pub(super) fn held(&self) -> usize {
        let whole = self
            .ready
            .iter()
            .chain(self.streams.iter().flat_map(|s| s.waiting.values()));
        let whole: usize = whole.flat_map(|m| &m.parts).map(Data::len).sum();
        let parts: usize = self.runs.values().flat_map(|r| &r.parts).map(Data::len).sum();
        let kept: usize = self
            .held
            .iter()
            .flat_map(|h| h.chunks())
            .map(|c| c.data.len())
            .sum();
        whole + parts + kept
    }

    /// Takes a chunk whose TSN is new.
    pub(super) fn insert(&mut self, chunk: DataChunk) {
        self.buffered += chunk.data.len();
        self.chunks += 1;
        if let Some(held) = &mut self.held
            && held.concerns(&chunk)
        {
            held.keep(chunk);
            return;
        }
        if chunk.beginning && chunk.ending {
            let message = Message {
                stream_id: chunk.stream_id,
                payload_protocol_id: chunk.payload_protocol_id,
                unordered: chunk.unordered,
                first: true,
                last: true,
                parts: SmallVec::from_buf([chunk.data]),
            };
            self.deliver(chunk.ssn, message);
        } else {
            self.insert_fragment(chunk);
        }
    }

    /// The streams named, or all if none is, begin again at 0; what still waits for their old order is delivered.
    pub(super) fn reset_streams(&mut self, streams: &[u16]) {
        for (stream_id, stream) in (0_u16..).zip(&mut self.streams) {
            if !concerns(streams, stream_id) {
                continue;
            }
            let from = stream.next_ssn;
            let mut stranded: Vec<_> = core::mem::take(&mut stream.waiting).into_iter().collect();
            stranded.sort_by_key(|&(ssn, _)| Ssn(ssn).distance_from(from));
            self.waiting -= stranded.len();
            self.ready
                .extend(stranded.into_iter().map(|(_, message)| message));
            stream.next_ssn = Ssn(0);
        }
    }

    /// All streams begin again, and the TSNs at `next_tsn`; parts of messages go.
    pub(super) fn begin_anew(&mut self, next_tsn: Tsn) {
        // what was kept was sent after a reset of its streams, and before this one
        self.reset_held_streams();
        self.release();
        self.reset_streams(&[]);
        for (_, run) in core::mem::take(&mut self.runs) {
            self.forget(run.parts.iter());
        }
        self.delivering = None;
        self.reference = (1 << 32) | u64::from(next_tsn.0);
    }

    /// The peer gave up what is missing up to `new_cumulative_tsn` (RFC 3758 section 3.6): parts of messages that lack
    /// it go, and the order of each stream in `skipped` goes on after the stream sequence number given with it.
    ///
    /// Returns the stream of the message that was being delivered in parts, if it went.
    pub(super) fn forward(
        &mut self,
        new_cumulative_tsn: Tsn,
        skipped: impl Iterator<Item = (u16, Ssn)>,
    ) -> Option<u16> {
        let mut cut_short = None;
        let end = self.unwrap_tsn(new_cumulative_tsn);
        let kept = self.runs.split_off(&(end + 1));
        for (start, run) in core::mem::replace(&mut self.runs, kept) {
            self.forget(run.parts.iter());
            if self.delivering == Some(start) {
                self.delivering = None;
                cut_short = Some(run.stream_id);
            }
        }
        for (stream_id, ssn) in skipped {
            self.skip_to(stream_id, ssn);
        }
        cut_short
    }

    /// Delivers what waits in a stream up to `ssn`, without what is missing, and then what follows in order.
    fn skip_to(&mut self, stream_id: u16, ssn: Ssn) {
        let stream = Self::stream(&mut self.streams, stream_id);
        if ssn.before(stream.next_ssn) {
            return;
        }
        // one after the other in the order of the stream, which may begin again at 0 on the way, and none beyond `ssn`: a
        // FORWARD TSN may name one stream thousands of times
        let from = stream.next_ssn;
        loop {
            let later = stream.waiting.range(from.0..).next();
            let next = later
                .or_else(|| stream.waiting.first_key_value())
                .map(|(&s, _)| s);
            #[cfg(test)]
            {
                self.looked_at += usize::from(next.is_some());
            }
            let Some(next) = next.filter(|&s| Ssn(s).distance_from(from) <= ssn.distance_from(from)) else {
                break;
            };
            if let Some(message) = stream.waiting.remove(&next) {
                self.waiting -= 1;
                self.ready.push_back(message);
            }
        }
        stream.next_ssn = ssn.next();
        while let Some(message) = stream.waiting.remove(&stream.next_ssn.0) {
            stream.next_ssn = stream.next_ssn.next();
            self.waiting -= 1;
            self.ready.push_back(message);
        }
    }

    fn stream(streams: &mut Vec<InStream>, stream_id: u16) -> &mut InStream {
        let index = usize::from(stream_id);
        if streams.len() <= index {
            streams.resize_with(index + 1, InStream::default);
        }
        &mut streams[index]
    }

    fn insert_fragment(&mut self, chunk: DataChunk) {
        let tsn = self.unwrap_tsn(chunk.tsn);
        let mut start = tsn;
        // append to the run that ends just before, or begin one
        let before = self.runs.range_mut(..tsn).next_back();
        match before {
            Some((&s, run))
                if run.end + 1 == tsn && !run.ending && !chunk.beginning && run.same_message(&chunk) =>
            {
                run.end = tsn;
                run.bytes += chunk.data.len();
                run.ending = chunk.ending;
                run.parts.push_back(chunk.data);
                start = s;
            }
            _ => {
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
            }
        }
        self.join_following(start, tsn + 1);
        let Some(run) = self.runs.get(&start).filter(|run| run.beginning) else {
            return;
        };
        if run.ending {
            let first = self.delivering != Some(start);
            if !first {
                self.delivering = None;
            }
            if let Some(run) = self.runs.remove(&start) {
                let message = Message {
                    stream_id: run.stream_id,
                    payload_protocol_id: run.payload_protocol_id,
                    unordered: run.unordered,
                    first,
                    last: true,
                    parts: run.parts.into_iter().collect(),
                };
                self.deliver(run.ssn, message);
            }
        } else {
            let long = run.bytes >= self.partial_delivery_point;
            let goes_on = self.delivering == Some(start);
            if goes_on || (long && self.delivering.is_none() && self.is_in_turn(start)) {
                self.deliver_part(start);
            }
        }
    }

    /// Begins to deliver an incomplete message, whatever its length: the buffer is full and nothing else can make room.
    pub(super) fn deliver_in_parts(&mut self) -> bool {
        if self.delivering.is_some() || self.partial_delivery_point == u32::MAX as usize {
            return false;
        }
        let begun = self
            .runs
            .iter()
            .filter(|(_, run)| run.beginning)
            .map(|(&start, _)| start);
        let candidates: SmallVec<[u64; 1]> = begun.collect();
        let Some(&start) = candidates.iter().find(|&&start| self.is_in_turn(start)) else {
            return false;
        };
        self.deliver_part(start);
        true
    }

    /// Whether the message that begins with the run at `start` is the next of its stream.
    fn is_in_turn(&self, start: u64) -> bool {
        self.runs.get(&start).is_some_and(|run| {
            let stream = self.streams.get(usize::from(run.stream_id));
            run.unordered || stream.map_or(Ssn(0), |s| s.next_ssn) == run.ssn
        })
    }

    fn deliver_part(&mut self, start: u64) {
        let first = self.delivering != Some(start);
        let Some(run) = self.runs.get_mut(&start).filter(|run| !run.parts.is_empty()) else {
            return;
        };
        run.bytes = 0;
        self.delivering = Some(start);
        self.ready.push_back(Message {
            stream_id: run.stream_id,
            payload_protocol_id: run.payload_protocol_id,
            unordered: run.unordered,
            first,
            last: false,
            parts: run.parts.drain(..).collect(),
        });
    }

    /// What the chunks held cost beyond their user bytes, as far as it exceeds `allowance`: so that a peer cannot have
    /// much memory kept by few bytes.
    pub(super) fn overhead_beyond(&self, allowance: usize) -> usize {
        (self.chunks * CHUNK_OVERHEAD).saturating_sub(allowance)
    }

    /// Data leaves.
    fn forget<'a>(&mut self, parts: impl Iterator<Item = &'a Data>) {
        for part in parts {
            self.buffered -= part.len();
            self.chunks -= 1;
        }
    }

    /// Joins the run at `next` to the one at `start`, moving the shorter list of parts.
    fn join_following(&mut self, start: u64, next: u64) {
        let Some(first) = self.runs.get(&start) else {
            return;
        };
        let joins = self.runs.get(&next).is_some_and(|second| {
            !first.ending
                && !second.beginning
                && first.stream_id == second.stream_id
                && first.ssn == second.ssn
                && first.unordered == second.unordered
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

    fn deliver(&mut self, ssn: Ssn, message: Message) {
        if message.unordered {
            self.ready.push_back(message);
            return;
        }
        let stream = Self::stream(&mut self.streams, message.stream_id);
        if ssn != stream.next_ssn {
            // a second message with a waiting SSN replaces it: its peer broke the protocol
            if let Some(replaced) = stream.waiting.insert(ssn.0, message) {
                self.forget(replaced.parts.iter());
            } else {
                self.waiting += 1;
            }
            return;
        }
        stream.next_ssn = ssn.next();
        self.ready.push_back(message);
        if self.waiting == 0 {
            return;
        }
        while let Some(message) = stream.waiting.remove(&stream.next_ssn.0) {
            stream.next_ssn = stream.next_ssn.next();
            self.waiting -= 1;
            self.ready.push_back(message);
        }
    }

    /// The TSN in a number space that does not wrap: the nearest to the last one.
    fn unwrap_tsn(&mut self, tsn: Tsn) -> u64 {
        let step = tsn.0.wrapping_sub(self.reference as u32) as i32;
        let unwrapped = self.reference.wrapping_add_signed(i64::from(step));
        self.reference = unwrapped;
        unwrapped
    }
}

impl Run {
    fn same_message(&self, chunk: &DataChunk) -> bool {
        self.stream_id == chunk.stream_id && self.ssn == chunk.ssn && self.unordered == chunk.unordered
    }
}

/// Bytes by which the record of a chunk held is larger than its user data, about.
const CHUNK_OVERHEAD: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(tsn: u32, ssn: u16, flags: &str, offset: u64) -> DataChunk {
        DataChunk {
            tsn: Tsn(tsn),
            stream_id: 1,
            ssn: Ssn(ssn),
            payload_protocol_id: 0,
            unordered: flags.contains('U'),
            beginning: flags.contains('B'),
            ending: flags.contains('E'),
            immediate: false,
            data: Data::Synthetic { offset, len: 10 },
        }
    }

    fn offsets(message: &Message) -> Vec<u64> {
        message
            .parts
            .iter()
            .map(|p| match p {
                Data::Synthetic { offset, .. } => *offset,
                Data::Bytes(_) => u64::MAX,
            })
            .collect()
    }

    #[test]
    fn fragments_in_any_order_give_the_message_in_order() {
        let tsns = [u32::MAX - 1, u32::MAX, 0, 1];
        let flags = ["B", "", "", "E"];
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
            let mut r = Reassembly::new(Tsn(u32::MAX - 1), &Config::default());
            for (n, &i) in order.iter().enumerate() {
                assert!(r.pop().is_none(), "delivered after {n} of 4 fragments");
                r.insert(chunk(tsns[i], 0, flags[i], 10 * i as u64));
            }
            assert_eq!(offsets(&r.pop().unwrap()), [0, 10, 20, 30]);
            assert_eq!(r.buffered, 0);
        }
    }

    #[test]
    fn ordered_messages_wait_for_their_predecessor_and_unordered_ones_do_not() {
        let mut r = Reassembly::new(Tsn(1), &Config::default());
        r.insert(chunk(2, 1, "BE", 100));
        assert!(r.pop().is_none());
        r.insert(chunk(3, 0, "UBE", 200));
        assert_eq!(offsets(&r.pop().unwrap()), [200]);
        r.insert(chunk(1, 0, "BE", 0));
        assert_eq!(offsets(&r.pop().unwrap()), [0]);
        assert_eq!(offsets(&r.pop().unwrap()), [100]);
    }

    #[test]
    fn a_forward_tsn_looks_at_nothing_but_what_it_delivers_however_many_entries_it_has() {
        let mut r = Reassembly::new(Tsn(1), &Config::default());
        // SSN 0 is missing, and every second one after it
        for n in 1..=1000 {
            r.insert(chunk(2 * n, (2 * n) as u16, "BE", 0));
        }
        // the same stream again and again, each time for one message or for none
        let skipped = (0..10_000_u16).map(|n| (1, Ssn(2 * (n / 100))));
        assert_eq!(r.forward(Tsn(1), skipped), None);
        let delivered = core::iter::from_fn(|| r.pop()).count();
        assert_eq!(delivered, 99);
        assert!(r.looked_at <= 10_000 + 99, "{} looked at", r.looked_at);
        // across the end of the number space
        let mut r = Reassembly::new(Tsn(1), &Config::default());
        let far = [0x7000, 0xe000, 0xfffd].map(|ssn| (1, Ssn(ssn)));
        r.forward(Tsn(1), far.into_iter());
        for (tsn, ssn) in [(4, 1), (3, 0), (2, 0xffff), (5, 3)] {
            r.insert(chunk(tsn, ssn, "BE", tsn.into()));
        }
        r.forward(Tsn(2), core::iter::once((1, Ssn(1))));
        let order: Vec<u64> = core::iter::from_fn(|| r.pop())
            .flat_map(|m| offsets(&m))
            .collect();
        assert_eq!(order, [2, 3, 4]);
    }

    #[test]
    fn adjacent_fragments_of_different_messages_are_not_joined() {
        let mut r = Reassembly::new(Tsn(1), &Config::default());
        r.insert(chunk(1, 0, "B", 0));
        r.insert(chunk(2, 1, "E", 10));
        assert!(r.pop().is_none());
        assert_eq!(r.buffered, 20);
    }

    #[test]
    fn what_is_held_is_counted_once_and_not_lost_when_something_else_is_to_be_held() {
        let mut r = Reassembly::new(Tsn(1), &Config::default());
        r.hold(Tsn(1), vec![1]);
        for (tsn, ssn) in [(2, 0), (3, 1), (4, 2)] {
            r.insert(chunk(tsn, ssn, "BE", u64::from(tsn)));
        }
        assert_eq!((r.buffered, r.held()), (30, 30));
        r.hold(Tsn(3), Vec::new());
        assert_eq!((r.buffered, r.held()), (30, 30));
        // 4 alone waits
        assert_eq!(offsets(&r.pop().unwrap()), [2]);
        assert_eq!(offsets(&r.pop().unwrap()), [3]);
        assert!(r.pop().is_none());
        r.release();
        assert_eq!(offsets(&r.pop().unwrap()), [4]);
        assert_eq!((r.buffered, r.held(), r.overhead_beyond(0)), (0, 0, 0));
    }

    #[test]
    fn after_a_new_beginning_streams_go_on_at_0_whatever_was_held() {
        let mut r = Reassembly::new(Tsn(1), &Config::default());
        for tsn in 1..=3 {
            r.insert(chunk(tsn, tsn as u16 - 1, "BE", u64::from(tsn)));
        }
        // sent after a reset of the stream: its numbers begin at 0
        r.hold(Tsn(4), vec![1]);
        r.insert(chunk(6, 1, "BE", 6));
        r.insert(chunk(5, 0, "BE", 5));
        r.begin_anew(Tsn(1000));
        for tsn in 1000..=1001 {
            r.insert(chunk(tsn, tsn as u16 - 1000, "BE", u64::from(tsn)));
        }
        let came: Vec<_> = core::iter::from_fn(|| r.pop())
            .flat_map(|m| offsets(&m))
            .collect();
        assert_eq!(came, [1, 2, 3, 5, 6, 1000, 1001]);
        assert_eq!((r.buffered, r.held()), (0, 0));
    }
}
