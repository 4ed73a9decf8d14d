//! What the server gives, and what it counts.

use crate::location::Datagram;
use crate::location::config::ConfigError;
use crate::location::rows::Row;

/// What a message came over, and its answer goes back over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// UDP: answers are truncated to what the requestor takes.
    Udp,
    /// TCP (RFC 7766), with the driver's number for the connection.
    Tcp(u64),
}

/// An answer to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// How.
    pub transport: Transport,
    /// Whereto, and what.
    pub datagram: Datagram,
}

/// A change to be made durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalEntry {
    /// Its number, by which it is confirmed; one more than the last.
    pub number: u64,
    /// All of them, or none.
    pub rows: Vec<Row>,
}

/// Why a server cannot be what it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RestoreError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A row is none of a server's, or one is missing.
    #[error("not what a location server has kept")]
    Malformed,
    /// It is about a zone that the configuration does not have.
    #[error("it has changes of {0}, which is not among the zones")]
    UnknownZone(String),
}

/// Messages by what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServerCounters {
    /// Queries answered.
    pub queries: u64,
    /// Updates that changed something.
    pub updates: u64,
    /// Updates that came again and were answered as before.
    pub repeated: u64,
    /// Requests refused: not for us, not permitted, not authenticated.
    pub refused: u64,
    /// Requests whose key is unknown.
    pub bad_key: u64,
    /// Requests whose MAC is wrong.
    pub bad_signature: u64,
    /// Requests signed too long ago or ahead, or before one that was taken: replays among them.
    pub bad_time: u64,
    /// Requests that cannot be read.
    pub malformed: u64,
    /// Messages dropped without an answer: no header, answers themselves, or nothing that can be written.
    pub dropped: u64,
}
