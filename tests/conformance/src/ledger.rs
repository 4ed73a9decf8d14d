//! Messages sent, and what came out: each once, in order within its stream, and every byte as it was.

use segue_proto::sctp::Message;
use segue_wire::Data;
use std::collections::{BTreeMap, BTreeSet};

/// One direction's messages. A message's payload protocol identifier is its index among those of its stream and kind,
/// and its bytes are a function of stream, kind and index.
#[derive(Debug, Default)]
pub struct Ledger {
    /// By stream and kind (unordered or not): lengths of what was sent.
    sent: BTreeMap<(u16, bool), Vec<u32>>,
    /// Next index due, by stream.
    next: BTreeMap<u16, u32>,
    /// Unordered messages that came out.
    unordered: BTreeSet<(u16, u32)>,
    /// Bytes that came out of messages that are delivered in pieces.
    begun: BTreeMap<(u16, bool, u32), u64>,
    received: usize,
}

impl Ledger {
    /// The data of the next message of `len` bytes on `stream_id`, and its payload protocol identifier. It counts as
    /// sent only after [`Ledger::sent`].
    #[must_use]
    pub fn next(&self, stream_id: u16, unordered: bool, len: u32) -> (u32, Data) {
        let index = self.sent.get(&(stream_id, unordered)).map_or(0, Vec::len) as u32;
        let offset = offset(stream_id, unordered, index);
        (index, Data::Synthetic { offset, len })
    }

    /// Books a message as sent.
    pub fn sent(&mut self, stream_id: u16, unordered: bool, len: u32) {
        self.sent.entry((stream_id, unordered)).or_default().push(len);
    }

    /// Books a message, or a piece of one, that came out.
    ///
    /// # Errors
    /// If it was never sent, came before, is not its stream's next, or has a wrong byte.
    pub fn receive(&mut self, message: &Message) -> Result<(), String> {
        let (stream_id, unordered, index) =
            (message.stream_id, message.unordered, message.payload_protocol_id);
        let name = || {
            let kind = if unordered { "unordered" } else { "ordered" };
            format!("{kind} message {index} of stream {stream_id}")
        };
        let len = self
            .sent
            .get(&(stream_id, unordered))
            .and_then(|s| s.get(index as usize));
        let Some(&len) = len else {
            return Err(format!("{} was never sent", name()));
        };
        let key = (stream_id, unordered, index);
        let begun = self.begun.remove(&key);
        if message.first {
            if begun.is_some() {
                return Err(format!("{} began twice", name()));
            }
            if unordered && !self.unordered.insert((stream_id, index)) {
                return Err(format!("{} came twice", name()));
            }
            let next = self.next.entry(stream_id).or_default();
            if !unordered && index != *next {
                return Err(format!("{} came when {next} was due", name()));
            }
            *next += u32::from(!unordered);
        } else if begun.is_none() {
            return Err(format!("{} goes on without having begun", name()));
        }
        let mut at = begun.unwrap_or_default();
        for part in &message.parts {
            if !part.is_synthetic_at(offset(stream_id, unordered, index) + at) {
                return Err(format!("{} holds wrong bytes", name()));
            }
            at += part.len() as u64;
        }
        if !message.last {
            self.begun.insert(key, at);
            return Ok(());
        }
        if at != u64::from(len) {
            return Err(format!("{} is not of {len} bytes", name()));
        }
        self.received += 1;
        Ok(())
    }

    /// Messages sent.
    #[must_use]
    pub fn sent_count(&self) -> usize {
        self.sent.values().map(Vec::len).sum()
    }

    /// Messages that came out.
    #[must_use]
    pub fn received_count(&self) -> usize {
        self.received
    }
}

/// Where a message's bytes begin in the synthetic sequence: no two messages share any.
fn offset(stream_id: u16, unordered: bool, index: u32) -> u64 {
    u64::from(unordered) << 63 | u64::from(stream_id) << 47 | u64::from(index) << 24
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(index: u32, unordered: bool, data: Data) -> Message {
        Message {
            stream_id: 3,
            payload_protocol_id: index,
            unordered,
            parts: [data].into_iter().collect(),
            first: true,
            last: true,
        }
    }

    fn ledger_of(unordered: bool) -> (Ledger, Vec<Message>) {
        let mut ledger = Ledger::default();
        let messages = (0..3)
            .map(|i| {
                let (index, data) = ledger.next(3, unordered, 10 + i);
                ledger.sent(3, unordered, 10 + i);
                message(index, unordered, data)
            })
            .collect();
        (ledger, messages)
    }

    #[test]
    fn what_was_sent_is_taken_once_and_in_order() {
        let (mut ledger, messages) = ledger_of(false);
        assert!(ledger.receive(&messages[1]).unwrap_err().contains("0 was due"));
        assert_eq!(ledger.receive(&messages[0]), Ok(()));
        assert!(ledger.receive(&messages[0]).unwrap_err().contains("1 was due"));
        let (mut ledger, messages) = ledger_of(true);
        assert_eq!(ledger.receive(&messages[1]), Ok(()));
        assert_eq!(ledger.receive(&messages[0]), Ok(()));
        assert!(ledger.receive(&messages[0]).unwrap_err().contains("twice"));
    }

    #[test]
    fn pieces_make_a_message_and_missing_ones_are_noticed() {
        let piece = |data: &Data, start: usize, len: usize, first: bool, last: bool| Message {
            first,
            last,
            ..message(0, false, data.slice(start, len))
        };
        let (mut ledger, messages) = ledger_of(false);
        let data = &messages[0].parts[0];
        assert_eq!(ledger.receive(&piece(data, 0, 4, true, false)), Ok(()));
        assert_eq!(ledger.received_count(), 0);
        assert_eq!(ledger.receive(&piece(data, 4, 6, false, true)), Ok(()));
        assert_eq!(ledger.received_count(), 1);
        let (mut ledger, _) = ledger_of(false);
        let error = ledger.receive(&piece(data, 4, 6, false, true)).unwrap_err();
        assert!(error.contains("without having begun"));
        let (mut ledger, _) = ledger_of(false);
        assert_eq!(ledger.receive(&piece(data, 0, 4, true, false)), Ok(()));
        let error = ledger.receive(&piece(data, 5, 5, false, true)).unwrap_err();
        assert!(error.contains("wrong bytes"));
    }

    #[test]
    fn wrong_bytes_lengths_and_messages_are_noticed() {
        let (mut ledger, messages) = ledger_of(false);
        let shifted = Data::Synthetic {
            offset: offset(3, false, 0) + 1,
            len: 10,
        };
        assert!(
            ledger
                .receive(&message(0, false, shifted))
                .unwrap_err()
                .contains("wrong bytes")
        );
        let (mut ledger, _) = ledger_of(false);
        let short = messages[0].parts[0].slice(0, 9);
        assert!(
            ledger
                .receive(&message(0, false, short))
                .unwrap_err()
                .contains("not of 10")
        );
        let (mut ledger, _) = ledger_of(false);
        assert!(
            ledger
                .receive(&message(7, false, Data::Bytes("x".into())))
                .unwrap_err()
                .contains("never")
        );
    }
}
