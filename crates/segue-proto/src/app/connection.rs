//! What an application sees of its transport.

use crate::sctp::{Association, SendError, SendOptions};
use crate::time::Instant;
use segue_wire::Data;
use smallvec::SmallVec;

/// A connection that carries messages in order.
pub trait Connection {
    /// Hands over a message.
    ///
    /// # Errors
    /// [`SendRefused`]: nothing was taken.
    fn send(&mut self, now: Instant, data: Data) -> Result<(), SendRefused>;

    /// Bytes of the largest message that travels in one piece.
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

/// All data of an application goes over one ordered stream.
const STREAM: u16 = 0;
