//! Messages that wait while streams are reset (RFC 6525 section 5.1.2 A1): not one of them gets a number.

use super::{SendQueue, Unsent};
use crate::sctp::stream_list::concerns;
use std::collections::VecDeque;

/// Messages kept out of the send queue.
#[derive(Debug)]
pub(super) struct Held {
    /// Streams whose messages wait; none stands for all.
    streams: Vec<u16>,
    messages: VecDeque<Unsent>,
}

impl Held {
    fn concerns(&self, stream_id: u16) -> bool {
        concerns(&self.streams, stream_id)
    }
}

impl SendQueue {
    /// Keeps the messages of `streams` back, those that come included; a message that is being sent is finished.
    pub(in crate::sctp) fn hold(&mut self, streams: Vec<u16>) {
        let mut held = self.held.take().unwrap_or_else(|| {
            Box::new(Held {
                streams: Vec::new(),
                messages: VecDeque::new(),
            })
        });
        held.streams = streams;
        for message in core::mem::take(&mut self.unsent) {
            if message.position == 0 && held.concerns(message.stream_id) {
                held.messages.push_back(message);
            } else {
                self.unsent.push_back(message);
            }
        }
        self.held = Some(held);
    }

    /// Lets what was kept back go on.
    pub(in crate::sctp) fn release(&mut self) {
        if let Some(held) = self.held.take() {
            self.unsent.extend(held.messages);
        }
    }

    /// Queues a message, or keeps it back.
    #[cold]
    pub(super) fn queue_or_hold(&mut self, message: Unsent) {
        match &mut self.held {
            Some(held) if held.concerns(message.stream_id) => held.messages.push_back(message),
            _ => self.unsent.push_back(message),
        }
    }

    /// Whether messages are kept back.
    pub(in crate::sctp) fn holds_messages(&self) -> bool {
        self.held.as_ref().is_some_and(|held| !held.messages.is_empty())
    }

    /// Whether a message of one of `streams` is being sent.
    pub(in crate::sctp) fn is_amid_message_of(&self, streams: &[u16]) -> bool {
        let next = self.unsent.front();
        next.is_some_and(|m| m.position > 0 && concerns(streams, m.stream_id))
    }
}
