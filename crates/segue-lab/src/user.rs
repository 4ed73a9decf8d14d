//! The user of a TCP connection: sends the pattern of all our tests, checks what it receives against it, and does as it is told.

use segue_proto::tcp::{Connection, Event, SendError};
use segue_wire::Data;

/// What a user does with its connection. Offsets count from the first byte of each direction.
#[derive(Clone, Debug, Default)]
pub struct User {
    /// Bytes to be sent in all.
    to_send: u64,
    sent: u64,
    /// Send without end.
    flooding: bool,
    /// Do not read.
    paused: bool,
    closing: bool,
    closed: bool,
    received: u64,
    wrong: u64,
    peer_closed: bool,
}

/// What a user has noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noticed {
    /// Everything to be sent was taken by the connection.
    Sent,
    /// The peer has closed its direction and everything before was received.
    End,
}

impl User {
    /// Sends so many bytes more.
    pub const fn send(&mut self, bytes: u64) {
        let base = if self.sent > self.to_send {
            self.sent
        } else {
            self.to_send
        };
        self.to_send = base.saturating_add(bytes);
    }

    /// Sends without end, or no more.
    pub const fn flood(&mut self, on: bool) {
        self.flooding = on;
        if !on {
            self.to_send = self.sent;
        }
    }

    /// Stops reading, or goes on.
    pub const fn pause(&mut self, on: bool) {
        self.paused = on;
    }

    /// Closes its direction, after what there is to send.
    pub const fn close(&mut self) {
        self.closing = true;
    }

    /// Bytes given to the connection.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes received.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes received in pieces that were not what they should be.
    #[must_use]
    pub const fn wrong(&self) -> u64 {
        self.wrong
    }

    /// Reads and writes as much as the connection allows. Call it after every event of the connection, and after every command
    /// here.
    pub fn advance(&mut self, connection: &mut Connection) -> Vec<Noticed> {
        let mut noticed = Vec::new();
        while !self.paused
            && let Some(data) = connection.recv()
        {
            if !data.is_synthetic_at(self.received) {
                self.wrong += data.len() as u64;
            }
            self.received += data.len() as u64;
        }
        if !self.peer_closed && connection.is_at_end() {
            self.peer_closed = true;
            noticed.push(Noticed::End);
        }
        while self.flooding || self.sent < self.to_send {
            let left = if self.flooding {
                CHUNK
            } else {
                (self.to_send - self.sent).min(CHUNK)
            };
            let data = Data::Synthetic {
                offset: self.sent,
                len: left as u32,
            };
            match connection.send(&data) {
                Ok(taken) => self.sent += u64::from(taken),
                Err(SendError::BufferFull | SendError::Closing) => return noticed,
            }
            if !self.flooding && self.sent == self.to_send {
                noticed.push(Noticed::Sent);
            }
        }
        if self.closing && !self.closed {
            self.closed = true;
            connection.close();
        }
        noticed
    }
}

/// Bytes given to the connection at a time.
const CHUNK: u64 = 65_536;

/// What the connection's end is called.
#[must_use]
pub const fn name_of_end(event: Event) -> Option<&'static str> {
    match event {
        Event::Closed => Some("closed"),
        Event::Refused => Some("refused"),
        Event::Reset => Some("reset"),
        Event::TimedOut => Some("timed out"),
        Event::Aborted => Some("aborted"),
        _ => None,
    }
}
