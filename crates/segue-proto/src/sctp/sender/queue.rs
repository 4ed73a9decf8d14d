//! User messages that wait to be sent, and are cut into chunks.

use super::chunk::{About, Content};
use crate::sctp::SendOptions;
use crate::sctp::options::Policy;
use crate::sctp::stream_list::concerns;
use crate::time::Instant;
use segue_wire::{Data, Ssn};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// A user message of which some is still unsent.
#[derive(Debug)]
pub(super) struct Unsent {
    data: Data,
    /// Bytes of it already sent.
    position: usize,
    stream_id: u16,
    /// Assigned when its first chunk is sent.
    ssn: Ssn,
    options: SendOptions,
    policy: Policy,
}

impl Unsent {
    /// Whether some of it was sent.
    pub(super) fn is_begun(&self) -> bool {
        self.position > 0
    }

    /// What is left of it, its stream, and how it was to be sent.
    pub(super) fn into_rest(self) -> (Data, u16, SendOptions) {
        let left = self.data.len() - self.position;
        let data = if self.is_begun() {
            self.data.slice(self.position, left)
        } else {
            self.data
        };
        (data, self.stream_id, self.options)
    }
}

/// Messages kept out of the send queue.
#[derive(Debug)]
struct Held {
    /// Streams whose messages wait; none stands for all.
    streams: Vec<u16>,
    messages: VecDeque<Unsent>,
    /// User bytes of these.
    bytes: usize,
}

impl Held {
    fn concerns(&self, stream_id: u16) -> bool {
        concerns(&self.streams, stream_id)
    }

    fn keep(&mut self, message: Unsent) {
        self.bytes += message.data.len();
        self.messages.push_back(message);
    }
}

/// Stream and payload protocol identifier of a message that is dropped.
pub(in crate::sctp) type Dropped = (u16, u32);

/// The messages that wait.
#[derive(Debug, Default)]
pub(in crate::sctp) struct SendQueue {
    unsent: VecDeque<Unsent>,
    /// Messages kept back while streams are reset.
    held: Option<Box<Held>>,
    next_ssn: SmallVec<[Ssn; 4]>,
    /// User bytes that wait, those of messages kept back included.
    bytes: usize,
}

impl SendQueue {
    /// User bytes that take room in the send buffer.
    pub(in crate::sctp) fn buffered(&self) -> usize {
        self.bytes
    }

    /// Whether nothing waits, nor is kept back.
    pub(in crate::sctp) fn is_empty(&self) -> bool {
        self.unsent.is_empty() && !self.holds_messages()
    }

    pub(in crate::sctp) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    pub(in crate::sctp) fn push(&mut self, now: Instant, stream_id: u16, data: Data, options: SendOptions) {
        self.bytes += data.len();
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
    fn assign_ssn(next_ssn: &mut SmallVec<[Ssn; 4]>, stream_id: u16) -> Ssn {
        let index = usize::from(stream_id);
        if next_ssn.len() <= index {
            next_ssn.resize(index + 1, Ssn(0));
        }
        let ssn = next_ssn[index];
        next_ssn[index] = ssn.next();
        ssn
    }

    /// Streams that the messages not yet sent need: one more than the highest identifier among them.
    pub(in crate::sctp) fn streams_needed(&self) -> usize {
        let streams = self.unsent.iter().map(|m| usize::from(m.stream_id) + 1);
        streams.max().unwrap_or(0)
    }

    /// User bytes of the next new chunk, of at most `max_data`.
    #[inline]
    pub(in crate::sctp) fn next_len(&self, max_data: u32) -> Option<u32> {
        let message = self.unsent.front()?;
        Some((message.data.len() - message.position).min(max_data as usize) as u32)
    }

    /// User bytes that wait to be sent for the first time, those of messages held back not counted.
    pub(in crate::sctp) fn unsent_bytes(&self) -> usize {
        self.bytes - self.held.as_ref().map_or(0, |held| held.bytes)
    }

    /// Whether the next new chunk, of `len` user bytes, is the last one waiting.
    pub(in crate::sctp) fn is_last(&self, len: u32) -> bool {
        self.unsent.len() == 1
            && self
                .unsent
                .front()
                .is_some_and(|m| m.data.len() - m.position == len as usize)
    }

    /// Cuts the next new chunk off, of at most `max_data` user bytes; `immediate`: with the I bit, whoever asks for it.
    pub(in crate::sctp) fn cut(&mut self, max_data: u32, immediate: bool) -> Option<Content> {
        let max_data = max_data as usize;
        let message = self.unsent.front_mut()?;
        let (len, start) = (message.data.len(), message.position);
        let beginning = start == 0;
        let (stream_id, options, policy) = (message.stream_id, message.options, message.policy);
        if beginning && !options.unordered {
            message.ssn = Self::assign_ssn(&mut self.next_ssn, stream_id);
        }
        let ssn = message.ssn;
        let (data, ending) = if len - start <= max_data {
            let message = self.unsent.pop_front()?;
            let data = if beginning {
                message.data
            } else {
                message.data.slice(start, len - start)
            };
            (data, true)
        } else {
            message.position += max_data;
            (message.data.slice(start, max_data), false)
        };
        self.bytes -= data.len();
        let about = About {
            payload_protocol_id: options.payload_protocol_id,
            stream_id,
            ssn,
            unordered: options.unordered,
            beginning,
            ending,
            immediate: immediate || (ending && options.sack_immediately),
            policy,
        };
        Some(Content { data, about })
    }

    /// Drops everything.
    pub(in crate::sctp) fn clear(&mut self) {
        self.unsent.clear();
        self.held = None;
        self.bytes = 0;
    }

    /// Takes every message that waits out, those kept back included.
    pub(super) fn take(&mut self) -> VecDeque<Unsent> {
        self.release();
        self.bytes = 0;
        core::mem::take(&mut self.unsent)
    }

    /// The streams begin again, all if none is named.
    pub(in crate::sctp) fn reset_ssns(&mut self, streams: &[u16]) {
        for (stream_id, ssn) in (0_u16..).zip(&mut self.next_ssn) {
            if concerns(streams, stream_id) {
                *ssn = Ssn(0);
            }
        }
    }

    /// Policy of the message at `index` of those of which nothing was sent.
    pub(in crate::sctp) fn unsent_policy(&self, index: usize) -> Option<Policy> {
        Some(self.unsent.get(self.first_untouched() + index)?.policy)
    }

    /// Policy of the next message, if nothing of it was sent.
    pub(in crate::sctp) fn next_unsent(&self) -> Option<Policy> {
        let next = self.unsent.front()?;
        (next.position == 0).then_some(next.policy)
    }

    /// Policy of the message of which some was sent and some was not.
    pub(in crate::sctp) fn partly_sent(&self) -> Option<Policy> {
        let next = self.unsent.front()?;
        (next.position > 0).then_some(next.policy)
    }

    /// Drops the message at `index` of those of which nothing was sent.
    pub(in crate::sctp) fn remove_unsent(&mut self, index: usize) -> Option<Dropped> {
        let message = self.unsent.remove(self.first_untouched() + index)?;
        self.bytes -= message.data.len();
        Some((message.stream_id, message.options.payload_protocol_id))
    }

    /// Drops what is unsent of the message that is being sent. What is returned ends it, with a TSN that is never sent: without
    /// one there would be nothing to tell the peer if all its other chunks are acknowledged.
    pub(in crate::sctp) fn end_partly_sent(&mut self) -> Option<About> {
        let message = self.unsent.pop_front_if(|m| m.position > 0)?;
        self.bytes -= message.data.len() - message.position;
        Some(About {
            payload_protocol_id: message.options.payload_protocol_id,
            stream_id: message.stream_id,
            ssn: message.ssn,
            unordered: message.options.unordered,
            beginning: false,
            ending: true,
            immediate: false,
            policy: message.policy,
        })
    }

    /// User bytes of the messages of which nothing was sent and whose priority is below that of `policy`.
    pub(in crate::sctp) fn bytes_below(&self, policy: Policy) -> usize {
        let waiting = self.unsent.iter().skip(self.first_untouched());
        let below = waiting.filter(|m| m.policy.priority_below(policy).is_some());
        below.map(|m| m.data.len()).sum()
    }

    /// The unsent message of the lowest priority below that of `policy`: the oldest, as it is the first to be of no
    /// use.
    pub(in crate::sctp) fn lowest_below(&self, policy: Policy) -> Option<usize> {
        let waiting = self.unsent.iter().skip(self.first_untouched()).enumerate();
        let candidates = waiting.filter_map(|(i, m)| Some((m.policy.priority_below(policy)?, i)));
        candidates
            .max_by_key(|&(priority, i)| (priority, core::cmp::Reverse(i)))
            .map(|c| c.1)
    }

    /// Index of the first message of which nothing was sent.
    fn first_untouched(&self) -> usize {
        usize::from(self.partly_sent().is_some())
    }
}

/// Messages that wait while streams are reset (RFC 6525 section 5.1.2 A1): not one of them gets a number.
impl SendQueue {
    /// Keeps the messages of `streams` back, those that come included; a message that is being sent is finished.
    pub(in crate::sctp) fn hold(&mut self, streams: Vec<u16>) {
        let mut held = self.held.take().unwrap_or_else(|| {
            Box::new(Held {
                streams: Vec::new(),
                messages: VecDeque::new(),
                bytes: 0,
            })
        });
        held.streams = streams;
        for message in core::mem::take(&mut self.unsent) {
            if message.position == 0 && held.concerns(message.stream_id) {
                held.keep(message);
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
    fn queue_or_hold(&mut self, message: Unsent) {
        match &mut self.held {
            Some(held) if held.concerns(message.stream_id) => held.keep(message),
            _ => self.unsent.push_back(message),
        }
    }

    /// Whether messages of a stream are kept back, because it is to begin again.
    pub(in crate::sctp) fn is_held(&self, stream_id: u16) -> bool {
        self.held.as_ref().is_some_and(|held| held.concerns(stream_id))
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
