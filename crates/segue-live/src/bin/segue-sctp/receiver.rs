//! What becomes of the messages that arrive.

use crate::setup::Output;
use anyhow::Result;
use segue_proto::sctp::{Association, Message, SendError, SendOptions};
use segue_proto::{Duration, Instant};
use segue_wire::Data;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;

/// What to do with a message.
#[derive(Debug)]
pub(crate) enum Sink {
    Discard,
    Verify,
    Echo,
    Save(Output),
}

/// What came is not what was to come.
#[derive(Debug, thiserror::Error)]
#[error("message {message} of stream {stream_id} at offset {offset} is not what was sent")]
pub(crate) struct Mismatch {
    stream_id: u16,
    message: u64,
    offset: u64,
}

/// Takes the messages of one association.
#[derive(Debug)]
pub(crate) struct Receiver {
    sink: Sink,
    longest: usize,
    /// Messages on their way back that the send buffer had no room for.
    echoes: VecDeque<(u16, Data, SendOptions)>,
    /// With --echo, what has come of messages that come in pieces, by stream and kind.
    pieces: BTreeMap<(u16, bool), Pieces>,
    /// Bytes and messages returned.
    echoed: (u64, u64),
    /// Messages too long to be returned, or for which it was too late.
    not_echoed: u64,
    bytes: u64,
    messages: u64,
    first: Option<Instant>,
    /// Bytes that were there at `first`: what came after them took the time since.
    first_bytes: u64,
    last: Option<Instant>,
    longest_gap: Duration,
    longest_gap_end: Option<Instant>,
    /// Messages and bytes so far, by stream.
    streams: BTreeMap<u16, (u64, u64)>,
}

impl Receiver {
    /// `longest`: of the messages that can be returned, bytes.
    pub(crate) const fn new(sink: Sink, longest: usize) -> Self {
        Self {
            sink,
            longest,
            echoes: VecDeque::new(),
            pieces: BTreeMap::new(),
            echoed: (0, 0),
            not_echoed: 0,
            bytes: 0,
            messages: 0,
            first: None,
            first_bytes: 0,
            last: None,
            longest_gap: Duration::ZERO,
            longest_gap_end: None,
            streams: BTreeMap::new(),
        }
    }

    /// Takes what can be taken. With --echo, nothing is taken while what was taken before waits for room.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        association: &mut Association,
        mut log: Option<&mut Output>,
    ) -> Result<()> {
        self.send_echoes(now, association);
        while self.echoes.is_empty()
            && let Some(message) = association.recv()
        {
            self.count(now, &message, log.as_deref_mut())?;
            match &mut self.sink {
                Sink::Discard | Sink::Verify => {}
                Sink::Echo => {
                    self.echo(message);
                    self.send_echoes(now, association);
                }
                Sink::Save(file) => {
                    for part in &message.parts {
                        if let Data::Bytes(bytes) = part {
                            file.write(|out| out.write_all(bytes))?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<()> {
        if let Sink::Save(file) = &mut self.sink {
            file.write(|out| out.flush())?;
        }
        Ok(())
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes and messages returned to their sender.
    pub(crate) const fn echoed(&self) -> (u64, u64) {
        self.echoed
    }

    /// Messages that were to be returned and were not.
    pub(crate) fn not_echoed(&self) -> u64 {
        self.not_echoed + self.echoes.len() as u64
    }

    /// When the last message was taken.
    pub(crate) const fn last(&self) -> Option<Instant> {
        self.last
    }

    /// Bytes that came after the first, and first to last message.
    pub(crate) fn flow(&self) -> (u64, Duration) {
        let duration = self.last.zip(self.first).map(|(last, first)| last.since(first));
        (self.bytes - self.first_bytes, duration.unwrap_or(Duration::ZERO))
    }

    pub(crate) fn summary(&self) -> Value {
        json!({
            "received_bytes": self.bytes,
            "received_messages": self.messages,
            "first_received_ns": self.first.map(Instant::as_nanos),
            "last_received_ns": self.last.map(Instant::as_nanos),
            "longest_gap_ns": self.longest_gap.as_nanos(),
            "longest_gap_end_ns": self.longest_gap_end.map(Instant::as_nanos),
        })
    }

    fn count(&mut self, now: Instant, message: &Message, log: Option<&mut Output>) -> Result<()> {
        let len: u64 = message.parts.iter().map(|p| p.len() as u64).sum();
        let (number, offset) = self.streams.entry(message.stream_id).or_default();
        if let Some(log) = log {
            let (time, stream) = (now.as_nanos(), message.stream_id);
            log.write(|out| writeln!(out, "{time},{stream},{number},{offset},{len}"))?;
        }
        if matches!(self.sink, Sink::Verify) {
            let mut at = *offset;
            for part in &message.parts {
                if !part.is_synthetic_at(at) {
                    // once is enough
                    self.sink = Sink::Discard;
                    return Err(Mismatch {
                        stream_id: message.stream_id,
                        message: *number,
                        offset: at,
                    }
                    .into());
                }
                at += part.len() as u64;
            }
        }
        *offset += len;
        self.bytes += len;
        if message.last {
            *number += 1;
            self.messages += 1;
        }
        if *self.first.get_or_insert(now) == now {
            self.first_bytes += len;
        }
        if let Some(last) = self.last
            && now.since(last) > self.longest_gap
        {
            self.longest_gap = now.since(last);
            self.longest_gap_end = Some(now);
        }
        self.last = Some(now);
        Ok(())
    }

    /// Has a message returned once it is whole. What is longer than the send buffer is not, nor is more than that kept
    /// of messages that are not whole.
    fn echo(&mut self, message: Message) {
        let key = (message.stream_id, message.unordered);
        let mut pieces = match self.pieces.remove(&key) {
            Some(pieces) if !message.first => pieces,
            _ => Pieces::default(),
        };
        let others: usize = self.pieces.values().map(|p| p.len).sum();
        pieces.len += message.parts.iter().map(Data::len).sum::<usize>();
        if pieces.too_long || pieces.len + others > self.longest {
            pieces = Pieces {
                too_long: true,
                ..Pieces::default()
            };
        } else {
            pieces.parts.extend(message.parts);
        }
        if !message.last {
            self.pieces.insert(key, pieces);
        } else if pieces.too_long {
            self.not_echoed += 1;
        } else {
            let options = SendOptions {
                unordered: message.unordered,
                payload_protocol_id: message.payload_protocol_id,
                ..SendOptions::default()
            };
            self.echoes
                .push_back((message.stream_id, join(pieces.parts), options));
        }
    }

    fn send_echoes(&mut self, now: Instant, association: &mut Association) {
        while let Some((stream_id, data, options)) = self.echoes.front() {
            // a peer with more streams than this end gets its answers on the ones there are
            let stream_id = stream_id % association.outbound_streams().max(1);
            match association.send(now, stream_id, data.clone(), *options) {
                Err(SendError::BufferFull) => return,
                Ok(()) => {
                    self.echoed.0 += data.len() as u64;
                    self.echoed.1 += 1;
                }
                // the association is closing: there is no way back for it
                Err(_) => self.not_echoed += 1,
            }
            self.echoes.pop_front();
        }
    }
}

/// A message of which more is to come.
#[derive(Debug, Default)]
struct Pieces {
    parts: Vec<Data>,
    len: usize,
    /// Nothing of it is kept.
    too_long: bool,
}

/// A message's bytes in one piece.
fn join(mut parts: Vec<Data>) -> Data {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let mut bytes = Vec::new();
    for part in &parts {
        part.emit(&mut bytes);
    }
    Data::Bytes(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_at_first_is_no_part_of_the_rate() {
        let message = |len: usize| Message {
            stream_id: 0,
            payload_protocol_id: 0,
            unordered: false,
            first: true,
            last: true,
            parts: [Data::Bytes(vec![0; len].into())].into_iter().collect(),
        };
        let mut receiver = Receiver::new(Sink::Discard, 0);
        assert_eq!(receiver.flow(), (0, Duration::ZERO));
        // all that came until the program looked, at once, and a little later the rest
        let first = Instant::from_nanos(5_000_000);
        for len in [600_000, 400_000] {
            receiver.count(first, &message(len), None).unwrap();
        }
        assert_eq!(
            receiver.flow(),
            (0, Duration::ZERO),
            "nobody knows how long that took"
        );
        let last = first + Duration::from_millis(2);
        receiver.count(last, &message(1000), None).unwrap();
        assert_eq!(receiver.flow(), (1000, Duration::from_millis(2)));
        assert_eq!(receiver.bytes(), 1_001_000);
    }
}
