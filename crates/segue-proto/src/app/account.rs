//! What an application keeps of its data, whatever its kind: how far its connection is, and what waits for room in it.

use super::Stats;
use super::connection::{Connection, SendRefused};
use crate::time::Instant;
use segue_wire::Data;

/// What was sent and received: over the connection at hand, and over all of them.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub position: Position,
    pub stats: Stats,
}

/// How far the connection at hand is: what `Stats` counts of all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    pub sent: u64,
    pub received: u64,
    pub responses: u64,
    /// The message of which the end is still to come has a wrong byte.
    pub corrupt: bool,
}

/// Bytes that wait for room in the send buffer.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Bytes to send; `None` for no end.
    pub left: Option<u64>,
    /// Bytes per message; `None` for what travels in one piece.
    pub message: Option<u64>,
}

impl Account {
    /// Sends one message of the synthetic sequence of that length; as a whole, or as much as there is room for. Returns
    /// the bytes taken.
    pub fn send(
        &mut self,
        now: Instant,
        connection: &mut impl Connection,
        len: u64,
        whole: bool,
    ) -> Result<u64, SendRefused> {
        let len = u32::try_from(len).map_err(|_| SendRefused::Closed)?;
        let data = Data::Synthetic {
            offset: self.position.sent,
            len,
        };
        let taken = if whole {
            connection.send(now, data).map(|()| len)
        } else {
            connection.send_some(now, data)
        }?;
        let taken = u64::from(taken);
        self.position.sent += taken;
        self.stats.bytes_sent += taken;
        self.stats.messages_sent += 1;
        Ok(taken)
    }
}

impl Outgoing {
    /// So many more bytes are to be sent. A peer may ask for any number of them, time and again.
    pub fn add(&mut self, bytes: u64) {
        self.left = self.left.map(|left| left.saturating_add(bytes));
    }

    /// Sends as much as there is room for.
    pub fn flush(&mut self, now: Instant, connection: &mut impl Connection, account: &mut Account) {
        let whole = self.message.is_some();
        let size = self
            .message
            .unwrap_or_else(|| u64::from(connection.max_message()));
        while self.left != Some(0) {
            let len = self.left.map_or(size, |left| left.min(size));
            match account.send(now, connection, len, whole) {
                Ok(taken) => {
                    self.left = self.left.map(|left| left - taken);
                    if taken < len {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }
}

impl Default for Outgoing {
    /// Nothing, and then what an application adds.
    fn default() -> Self {
        Self {
            left: Some(0),
            message: None,
        }
    }
}
