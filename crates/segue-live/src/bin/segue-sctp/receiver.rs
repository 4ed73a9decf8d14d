//! What becomes of the messages that arrive.

use anyhow::{Context as _, Result, bail};
use segue_proto::sctp::{Association, Message, SendError, SendOptions};
use segue_proto::{Duration, Instant};
use segue_wire::Data;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufWriter, Write};

/// What to do with a message.
#[derive(Debug)]
pub(crate) enum Sink {
    Discard,
    Verify,
    Echo,
    Save(BufWriter<File>),
}

/// Takes the messages of one association.
#[derive(Debug)]
pub(crate) struct Receiver {
    sink: Sink,
    /// Messages on their way back that the send buffer had no room for.
    echoes: VecDeque<(u16, Data, SendOptions)>,
    bytes: u64,
    messages: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    longest_gap: Duration,
    longest_gap_end: Option<Instant>,
    /// Messages and bytes so far, by stream.
    streams: BTreeMap<u16, (u64, u64)>,
}

impl Receiver {
    pub(crate) const fn new(sink: Sink) -> Self {
        Self {
            sink,
            echoes: VecDeque::new(),
            bytes: 0,
            messages: 0,
            first: None,
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
        mut log: Option<&mut BufWriter<File>>,
    ) -> Result<()> {
        self.send_echoes(now, association);
        while self.echoes.is_empty()
            && let Some(message) = association.recv()
        {
            self.count(now, &message, log.as_deref_mut())?;
            match &mut self.sink {
                Sink::Discard | Sink::Verify => {}
                Sink::Echo => {
                    let data = join(&message);
                    let options = SendOptions {
                        unordered: message.unordered,
                        payload_protocol_id: message.payload_protocol_id,
                        ..SendOptions::default()
                    };
                    self.echoes.push_back((message.stream_id, data, options));
                    self.send_echoes(now, association);
                }
                Sink::Save(file) => {
                    for part in &message.parts {
                        if let Data::Bytes(bytes) = part {
                            file.write_all(bytes).context("writing what was received")?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<()> {
        if let Sink::Save(file) = &mut self.sink {
            file.flush().context("writing what was received")?;
        }
        Ok(())
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When the last message was taken.
    pub(crate) const fn last(&self) -> Option<Instant> {
        self.last
    }

    /// First to last message.
    pub(crate) fn duration(&self) -> Option<Duration> {
        Some(self.last?.since(self.first?))
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

    fn count(&mut self, now: Instant, message: &Message, log: Option<&mut BufWriter<File>>) -> Result<()> {
        let len: u64 = message.parts.iter().map(|p| p.len() as u64).sum();
        let (number, offset) = self.streams.entry(message.stream_id).or_default();
        if let Some(log) = log {
            writeln!(
                log,
                "{},{},{number},{offset},{len}",
                now.as_nanos(),
                message.stream_id
            )
            .context("writing the log")?;
        }
        if matches!(self.sink, Sink::Verify) {
            let mut at = *offset;
            for part in &message.parts {
                if !part.is_synthetic_at(at) {
                    bail!(
                        "message {number} of stream {} at offset {at} is not what was sent",
                        message.stream_id
                    );
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
        self.first.get_or_insert(now);
        if let Some(last) = self.last
            && now.since(last) > self.longest_gap
        {
            self.longest_gap = now.since(last);
            self.longest_gap_end = Some(now);
        }
        self.last = Some(now);
        Ok(())
    }

    fn send_echoes(&mut self, now: Instant, association: &mut Association) {
        while let Some((stream_id, data, options)) = self.echoes.front() {
            // a peer with more streams than this end gets its answers on the ones there are
            let stream_id = stream_id % association.outbound_streams().max(1);
            match association.send(now, stream_id, data.clone(), *options) {
                Err(SendError::BufferFull) => return,
                // too long, or the association is closing: there is no way back for it
                Ok(()) | Err(_) => self.echoes.pop_front(),
            };
        }
    }
}

/// A message's bytes in one piece.
fn join(message: &Message) -> Data {
    match message.parts.as_slice() {
        [only] => only.clone(),
        parts => {
            let mut bytes = Vec::new();
            for part in parts {
                part.emit(&mut bytes);
            }
            Data::Bytes(bytes.into())
        }
    }
}
