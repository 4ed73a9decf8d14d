//! The order in which messages go to the user (RFC 9260 sections 6.5 and 6.6).

use crate::sctp::Message;
use crate::sctp::stream_list::concerns;
use segue_wire::Ssn;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, Default)]
struct InStream {
    next_ssn: Ssn,
    waiting: BTreeMap<u16, Message>,
}

/// Messages that the user may take, and those that wait for the ones before them in their stream.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    ready: VecDeque<Message>,
    /// Most associations have but one, which is here.
    streams: SmallVec<[InStream; 1]>,
    /// Messages that wait, of all streams.
    waiting: usize,
    /// Messages that skipping has had looked at.
    #[cfg(test)]
    looked_at: usize,
}

impl Delivery {
    pub(super) fn pop(&mut self) -> Option<Message> {
        self.ready.pop_front()
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// All messages, and the pieces of messages that are delivered in parts.
    pub(super) fn messages(&self) -> impl Iterator<Item = &Message> {
        let waiting = self.streams.iter().flat_map(|s| s.waiting.values());
        self.ready.iter().chain(waiting)
    }

    /// The stream sequence number that a stream goes on with.
    pub(super) fn next_ssn(&self, stream_id: u16) -> Ssn {
        let stream = self.streams.get(usize::from(stream_id));
        stream.map_or(Ssn(0), |s| s.next_ssn)
    }

    /// Takes a whole message; one that has its turn takes along what waited for it.
    ///
    /// Returns the message that it replaces: a second one with a stream sequence number that waits, whose peer broke the
    /// protocol.
    #[inline]
    pub(super) fn deliver(&mut self, ssn: Ssn, message: Message) -> Option<Message> {
        if message.unordered {
            self.ready.push_back(message);
            return None;
        }
        let stream = stream(&mut self.streams, message.stream_id);
        if ssn != stream.next_ssn {
            core::hint::cold_path();
            let replaced = stream.waiting.insert(ssn.0, message);
            self.waiting += usize::from(replaced.is_none());
            return replaced;
        }
        stream.next_ssn = ssn.next();
        self.ready.push_back(message);
        if self.waiting > 0 {
            core::hint::cold_path();
            self.waiting -= stream.take_in_order(&mut self.ready);
        }
        None
    }

    /// Takes a part of the message whose turn it is.
    pub(super) fn deliver_part(&mut self, part: Message) {
        self.ready.push_back(part);
    }

    /// Delivers what waits in a stream up to `ssn`, without what is missing, and then what follows in order.
    pub(super) fn skip_to(&mut self, stream_id: u16, ssn: Ssn) {
        let stream = stream(&mut self.streams, stream_id);
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
        self.waiting -= stream.take_in_order(&mut self.ready);
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

    /// All streams begin again; those in `begun` have done so already, and go on where they are.
    pub(super) fn reset_streams_but(&mut self, begun: impl Iterator<Item = u16>) {
        let goes_on: Vec<_> = begun.map(|id| (id, self.next_ssn(id))).collect();
        self.reset_streams(&[]);
        for (stream_id, ssn) in goes_on {
            stream(&mut self.streams, stream_id).next_ssn = ssn;
        }
    }

    /// Checks that messages that wait are counted, and that they do wait for something.
    pub(super) fn check(&self) -> Result<(), String> {
        let waiting: usize = self.streams.iter().map(|stream| stream.waiting.len()).sum();
        if waiting != self.waiting {
            return Err(format!("{waiting} messages wait, counted as {}", self.waiting));
        }
        let in_turn = |stream: &InStream| stream.waiting.contains_key(&stream.next_ssn.0);
        match self.streams.iter().position(in_turn) {
            Some(id) => Err(format!("the next message of stream {id} is there, and waits")),
            None => Ok(()),
        }
    }

    /// Messages that skipping has had looked at.
    #[cfg(test)]
    pub(super) fn looked_at(&self) -> usize {
        self.looked_at
    }
}

impl InStream {
    /// Moves what has its turn now to `ready`; returns how many messages that were.
    fn take_in_order(&mut self, ready: &mut VecDeque<Message>) -> usize {
        let before = ready.len();
        while let Some(message) = self.waiting.remove(&self.next_ssn.0) {
            self.next_ssn = self.next_ssn.next();
            ready.push_back(message);
        }
        ready.len() - before
    }
}

fn stream(streams: &mut SmallVec<[InStream; 1]>, stream_id: u16) -> &mut InStream {
    let index = usize::from(stream_id);
    if streams.len() <= index {
        streams.resize_with(index + 1, InStream::default);
    }
    &mut streams[index]
}
