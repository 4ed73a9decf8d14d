//! What an application sees of its transport.

use crate::sctp::{Association, Reliability, SendError, SendOptions};
use crate::tcp;
use crate::time::{Duration, Instant};
use segue_wire::Data;

/// A connection that carries messages, or a stream of bytes.
///
/// A stream keeps no boundaries: what is sent as a message arrives in other pieces, and each piece that is received
/// counts as a message.
pub trait Connection {
    /// Whether what is sent arrives in order and nothing of it is missing. Otherwise a message says by itself where it
    /// belongs, see [`Data::synthetic_offset`].
    const IN_ORDER: bool = true;

    /// Says that what is handed over next has been in the making since then, as a message of a source of constant rate has been
    /// since the one before it: so long its application has not paused. Otherwise a message is there when it is handed over.
    fn made_since(&mut self, _since: Instant) {}

    /// Hands over a message.
    ///
    /// # Errors
    /// [`SendRefused`]: nothing was taken.
    fn send(&mut self, now: Instant, data: Data) -> Result<(), SendRefused>;

    /// Hands over as much of `data` as there is room for, where messages do not matter. Returns the bytes taken.
    ///
    /// # Errors
    /// [`SendRefused`]: nothing was taken.
    fn send_some(&mut self, now: Instant, data: Data) -> Result<u32, SendRefused> {
        let len = data.len() as u32;
        self.send(now, data).map(|()| len)
    }

    /// Hands over a message that is of use without those before it, and of none after `lifetime`: where the transport knows
    /// neither, as any other.
    ///
    /// # Errors
    /// [`SendRefused`]: nothing was taken.
    fn send_unordered(
        &mut self,
        now: Instant,
        data: Data,
        _lifetime: Option<Duration>,
    ) -> Result<(), SendRefused> {
        self.send(now, data)
    }

    /// Bytes of the largest message that travels in one piece; of a stream, as much as may be offered at once.
    fn max_message(&self) -> u32;

    /// Gives `take` the parts of the next message received, or of the next piece of one that is too long to be kept whole,
    /// and whether the message ends with it; makes room for more. Whether there was any.
    fn recv(&mut self, take: impl FnOnce(&[Data], bool)) -> bool;

    /// Closes once everything sent has arrived.
    fn close(&mut self, now: Instant);
}

/// Why a message was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendRefused {
    /// The send buffer is full; the application will be told when there is room.
    Full,
    /// The connection takes no more messages.
    Closed,
}

impl Connection for Association {
    fn made_since(&mut self, since: Instant) {
        self.busy_from(since);
    }

    fn send(&mut self, now: Instant, data: Data) -> Result<(), SendRefused> {
        Self::send(self, now, STREAM, data, SendOptions::default()).map_err(SendRefused::from)
    }

    fn send_unordered(
        &mut self,
        now: Instant,
        data: Data,
        lifetime: Option<Duration>,
    ) -> Result<(), SendRefused> {
        let options = SendOptions {
            unordered: true,
            reliability: lifetime.map_or(Reliability::Full, |lifetime| Reliability::Timed { lifetime }),
            ..SendOptions::default()
        };
        Self::send(self, now, STREAM, data, options).map_err(SendRefused::from)
    }

    fn max_message(&self) -> u32 {
        self.max_message_in_one_chunk()
    }

    #[inline]
    fn recv(&mut self, take: impl FnOnce(&[Data], bool)) -> bool {
        let message = Self::recv(self);
        let any = message.is_some();
        if let Some(message) = message {
            take(&message.parts, message.last);
        }
        any
    }

    fn close(&mut self, now: Instant) {
        self.shutdown(now);
    }
}

impl Connection for tcp::Connection {
    fn made_since(&mut self, since: Instant) {
        self.busy_from(since);
    }

    fn send(&mut self, _now: Instant, data: Data) -> Result<(), SendRefused> {
        self.send_all(data).map_err(SendRefused::from)
    }

    fn send_some(&mut self, _now: Instant, data: Data) -> Result<u32, SendRefused> {
        Self::send(self, &data).map_err(SendRefused::from)
    }

    fn max_message(&self) -> u32 {
        MOST_AT_ONCE
    }

    #[inline]
    fn recv(&mut self, take: impl FnOnce(&[Data], bool)) -> bool {
        let data = Self::recv(self);
        if let Some(data) = &data {
            take(core::slice::from_ref(data), true);
        }
        data.is_some()
    }

    fn close(&mut self, _now: Instant) {
        Self::close(self);
    }
}

impl From<SendError> for SendRefused {
    fn from(error: SendError) -> Self {
        match error {
            SendError::BufferFull => Self::Full,
            _ => Self::Closed,
        }
    }
}

impl From<tcp::SendError> for SendRefused {
    fn from(error: tcp::SendError) -> Self {
        match error {
            tcp::SendError::BufferFull => Self::Full,
            tcp::SendError::Closing => Self::Closed,
        }
    }
}

/// What is offered to a stream at once: more than any buffer has room for.
const MOST_AT_ONCE: u32 = 1 << 30;

/// All data of an application goes over one ordered stream.
const STREAM: u16 = 0;
