//! Sockets of a script by its numbers, and what their associations have told.

use segue_proto::sctp::{AssociationId, Event};
use std::collections::{BTreeMap, VecDeque};

/// Sockets and associations.
#[derive(Default)]
pub struct Sockets {
    sockets: BTreeMap<i64, Socket>,
    associations: BTreeMap<AssociationId, Told>,
    /// Associations that peers have opened and nobody has accepted.
    waiting: VecDeque<AssociationId>,
}

/// A socket.
#[derive(Clone, Debug, Default)]
pub struct Socket {
    /// What it is for.
    pub role: Role,
    /// `O_NONBLOCK`.
    pub is_nonblocking: bool,
    /// `SO_LINGER` with a time of zero: closing aborts.
    pub aborts_on_close: bool,
}

/// What a socket is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// Nothing yet.
    #[default]
    Fresh,
    /// It accepts associations.
    Listening,
    /// It has one.
    Association(AssociationId),
}

/// What an association has told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// It was opened by this end.
    pub is_caller: bool,
    /// It has been up.
    pub was_up: bool,
    /// It is over.
    pub is_over: bool,
    /// The error that it ended with, until somebody asks.
    pub error: Option<&'static str>,
    /// Bytes of a message that `read` has left.
    pub left: usize,
}

impl Sockets {
    /// A new socket with the number that the script gives it; false if it has one of that number.
    pub fn open(&mut self, number: i64, role: Role) -> bool {
        let socket = Socket {
            role,
            ..Socket::default()
        };
        self.sockets.insert(number, socket).is_none()
    }

    /// The socket with this number.
    pub fn get(&mut self, number: i64) -> Option<&mut Socket> {
        self.sockets.get_mut(&number)
    }

    /// The socket is no more.
    pub fn close(&mut self, number: i64) {
        self.sockets.remove(&number);
    }

    /// What an association has told.
    pub fn told(&mut self, id: AssociationId) -> &mut Told {
        self.associations.entry(id).or_default()
    }

    /// The first association that nobody has accepted.
    pub fn accept(&mut self) -> Option<AssociationId> {
        self.waiting.pop_front()
    }

    /// An association tells something; `peer_aborts` if the last packet to it had an ABORT.
    pub fn note(&mut self, id: AssociationId, event: Event, peer_aborts: bool) {
        let told = self.associations.entry(id).or_default();
        match event {
            Event::Connected => {
                told.was_up = true;
                if !told.is_caller {
                    self.waiting.push_back(id);
                }
            }
            Event::Closed => told.is_over = true,
            Event::Lost => {
                told.is_over = true;
                told.error = Some("ETIMEDOUT");
            }
            Event::Aborted { .. } => {
                told.is_over = true;
                told.error = Some(match (peer_aborts, told.was_up) {
                    (true, true) => "ECONNRESET",
                    (true, false) => "ECONNREFUSED",
                    (false, _) => "ECONNABORTED",
                });
            }
            _ => {}
        }
    }
}
