//! All connections of an association at one end.

use super::connection::{Act, Connection, Wrong};
use super::message::{Message, Reason};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Which end it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// Its programs connect.
    Opens,
    /// It connects to programs that listen to one of these ports, and to no others.
    Accepts(Vec<u16>),
}

/// What is to be done with TCP. Connections are named by their streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Connect to this port here; [`Proxy::connected`] or [`Proxy::failed`] says what came of it.
    Connect {
        /// Stream.
        stream: u16,
        /// Port of the program.
        port: u16,
    },
    /// Everything has been written: close the writing half.
    Shutdown {
        /// Stream.
        stream: u16,
    },
    /// Both halves are closed: let go of it.
    Close {
        /// Stream.
        stream: u16,
    },
    /// Let go of it by a reset.
    Reset {
        /// Stream.
        stream: u16,
    },
}

/// A message for the association, ordered in its stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Stream.
    pub stream: u16,
    /// Payload protocol identifier.
    pub payload_protocol_id: u32,
    /// Body.
    pub body: Bytes,
}

/// What came to what. A peer that does what it should makes no drops.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Connections that there were.
    pub connections: u64,
    /// Of them, those that nobody listened for.
    pub refused: u64,
    /// Dropped: messages that are none.
    pub malformed: u64,
    /// Dropped: messages that may not come where they came.
    pub unexpected: u64,
    /// Connections reset because more data came than was granted.
    pub beyond_credit: u64,
}

impl core::ops::Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            refused: self.refused + other.refused,
            malformed: self.malformed + other.malformed,
            unexpected: self.unexpected + other.unexpected,
            beyond_credit: self.beyond_credit + other.beyond_credit,
        }
    }
}

impl Counters {
    /// By name.
    #[must_use]
    pub fn named(self) -> [(&'static str, u64); 5] {
        [
            ("proxy_connections", self.connections),
            ("proxy_refused", self.refused),
            ("proxy_malformed", self.malformed),
            ("proxy_unexpected", self.unexpected),
            ("proxy_beyond_credit", self.beyond_credit),
        ]
    }
}

/// One end of an association that carries connections.
///
/// After every call, [`poll_command`](Self::poll_command) and [`poll_message`](Self::poll_message) may have something.
#[derive(Debug)]
pub struct Proxy {
    role: Role,
    /// Streams that there are.
    streams: u16,
    connections: BTreeMap<u16, Connection>,
    /// The stream that was last given a turn.
    turn: u16,
    commands: VecDeque<Command>,
    counters: Counters,
}

impl Proxy {
    /// With no connections, on so many streams in each direction.
    #[must_use]
    pub fn new(role: Role, streams: u16) -> Self {
        Self {
            role,
            streams,
            connections: BTreeMap::new(),
            turn: 0,
            commands: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// What came to what.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether a program may connect: there is a stream for it.
    #[must_use]
    pub fn can_accept(&self) -> bool {
        self.role == Role::Opens && self.connections.len() < usize::from(self.streams)
    }

    /// A program has connected to `port` of the peer's. Gives its stream; nothing if there is none.
    pub fn accepted(&mut self, port: u16) -> Option<u16> {
        if !self.can_accept() {
            return None;
        }
        let stream = (0..self.streams).find(|stream| !self.connections.contains_key(stream))?;
        self.connections.insert(stream, Connection::accepted(port));
        self.counters.connections += 1;
        Some(stream)
    }

    /// The connection that was asked for is there.
    pub fn connected(&mut self, stream: u16) {
        if let Some(connection) = self.connections.get_mut(&stream) {
            connection.connected();
        }
    }

    /// The connection that was asked for is refused.
    pub fn refused(&mut self, stream: u16) {
        self.counters.refused += 1;
        self.fail(stream, Reason::Refused);
    }

    /// The connection has been reset, or failed otherwise.
    pub fn failed(&mut self, stream: u16) {
        self.fail(stream, Reason::Reset);
    }

    fn fail(&mut self, stream: u16, reason: Reason) {
        if let Some(connection) = self.connections.get_mut(&stream) {
            connection.failed(reason);
        }
    }

    /// Bytes that may be read from a connection now. It is to be left alone while there are none.
    #[must_use]
    pub fn room(&self, stream: u16) -> u32 {
        self.connections.get(&stream).map_or(0, Connection::room)
    }

    /// This was read from a connection: no more than there was room for.
    pub fn read(&mut self, stream: u16, data: Bytes) {
        if let Some(connection) = self.connections.get_mut(&stream) {
            connection.read(data);
        }
    }

    /// There is no more to read from a connection: its program has closed its half.
    pub fn read_end(&mut self, stream: u16) {
        if let Some(connection) = self.connections.get_mut(&stream) {
            connection.read_end();
        }
    }

    /// What is to be written to a connection next.
    #[must_use]
    pub fn incoming(&self, stream: u16) -> Option<&Bytes> {
        self.connections.get(&stream)?.incoming()
    }

    /// So many bytes of it were written.
    pub fn written(&mut self, stream: u16, bytes: usize) {
        let act = self.connections.get_mut(&stream).and_then(|c| c.written(bytes));
        self.command(stream, act);
    }

    /// A message has come; `is_whole` is false of a piece of one. What is wrong with it is counted.
    pub fn handle_message(&mut self, stream: u16, payload_protocol_id: u32, body: Bytes, is_whole: bool) {
        let message = Message::parse(payload_protocol_id, body);
        let (Ok(message), true) = (message, is_whole) else {
            self.counters.malformed += 1;
            return;
        };
        let Some(connection) = self.connections.get_mut(&stream) else {
            return self.open(stream, &message);
        };
        match connection.handle(message) {
            Ok(act) => self.command(stream, act),
            Err(Wrong::Unexpected) => self.counters.unexpected += 1,
            Err(Wrong::BeyondCredit) => {
                self.counters.beyond_credit += 1;
                connection.abandon(Reason::Reset);
                self.command(stream, Some(Act::Reset));
            }
        }
        self.forget_if_over(stream);
    }

    /// The first message of a connection.
    fn open(&mut self, stream: u16, message: &Message) {
        let (Role::Accepts(ports), Message::Open(port), true) = (&self.role, message, stream < self.streams)
        else {
            self.counters.unexpected += 1;
            return;
        };
        self.counters.connections += 1;
        let connection = if ports.contains(port) {
            self.commands.push_back(Command::Connect { stream, port: *port });
            Connection::connecting()
        } else {
            self.counters.refused += 1;
            Connection::refused()
        };
        self.connections.insert(stream, connection);
    }

    /// The next message to send, with data of at most `most` bytes: connections take turns. Whoever takes it must be able to
    /// send it.
    pub fn poll_message(&mut self, most: u32) -> Option<Outgoing> {
        let behind = self.turn.saturating_add(1);
        let streams = self
            .connections
            .range(behind..)
            .chain(self.connections.range(..behind));
        let streams: Vec<u16> = streams.map(|(stream, _)| *stream).collect();
        for stream in streams {
            let next = self
                .connections
                .get_mut(&stream)
                .and_then(|c| c.poll_message(most));
            let Some((message, act)) = next else { continue };
            self.turn = stream;
            self.command(stream, act);
            self.forget_if_over(stream);
            let (payload_protocol_id, body) = message.emit();
            return Some(Outgoing {
                stream,
                payload_protocol_id,
                body,
            });
        }
        None
    }

    /// What is to be done with TCP next. Poll until `None` after every other call.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// The association has ended, or the peer began anew: every connection is reset, and nothing is sent of it.
    pub fn lose_all(&mut self) {
        let connections = core::mem::take(&mut self.connections);
        for (stream, connection) in connections {
            if connection.has_tcp() {
                self.commands.push_back(Command::Reset { stream });
            }
        }
    }

    fn command(&mut self, stream: u16, act: Option<Act>) {
        self.commands.extend(act.map(|act| match act {
            Act::Shutdown => Command::Shutdown { stream },
            Act::Close => Command::Close { stream },
            Act::Reset => Command::Reset { stream },
        }));
    }

    /// A connection that both ends are done with leaves its stream to the next.
    fn forget_if_over(&mut self, stream: u16) {
        if self.connections.get(&stream).is_some_and(Connection::is_over) {
            self.connections.remove(&stream);
        }
    }
}
