//! What an application sees of its transport.

use crate::sctp::{Association, SendError, SendOptions};
use crate::tcp;
use crate::time::Instant;
use segue_wire::Data;
use smallvec::{SmallVec, smallvec};

/// A connection that carries messages in order, or a stream of bytes.
///
/// A stream keeps no boundaries: what is sent as a message arrives in other pieces, and each piece that is received
/// counts as a message.
pub trait Connection {
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

    /// Bytes of the largest message that travels in one piece; of a stream, as much as may be offered at once.
    fn max_message(&self) -> u32;

    /// The next message received, or the next piece of one that is too long to be kept whole; makes room for more.
    fn recv(&mut self) -> Option<Piece>;

    /// Closes once everything sent has arrived.
    fn close(&mut self, now: Instant);
}

/// A message received, or a piece of one.
#[derive(Clone, PartialEq, Debug)]
pub struct Piece {
    /// Its bytes.
    pub parts: SmallVec<[Data; 1]>,
    /// Whether the message ends with it.
    pub last: bool,
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
    fn send(&mut self, now: Instant, data: Data) -> Result<(), SendRefused> {
        Self::send(self, now, STREAM, data, SendOptions::default()).map_err(|error| match error {
            SendError::BufferFull => SendRefused::Full,
            _ => SendRefused::Closed,
        })
    }

    fn max_message(&self) -> u32 {
        self.max_message_in_one_chunk()
    }

    fn recv(&mut self) -> Option<Piece> {
        Self::recv(self).map(|message| Piece {
            parts: message.parts,
            last: message.last,
        })
    }

    fn close(&mut self, now: Instant) {
        self.shutdown(now);
    }
}

impl Connection for tcp::Connection {
    fn send(&mut self, _now: Instant, data: Data) -> Result<(), SendRefused> {
        self.send_all(data).map_err(SendRefused::from)
    }

    fn send_some(&mut self, _now: Instant, data: Data) -> Result<u32, SendRefused> {
        Self::send(self, &data).map_err(SendRefused::from)
    }

    fn max_message(&self) -> u32 {
        MOST_AT_ONCE
    }

    fn recv(&mut self) -> Option<Piece> {
        let data = Self::recv(self)?;
        Some(Piece {
            parts: smallvec![data],
            last: true,
        })
    }

    fn close(&mut self, _now: Instant) {
        Self::close(self);
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
