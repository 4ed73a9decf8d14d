//! What the runner asks of a stack under test.
//!
//! A stack is added by implementing [`Stack`] for a type that owns a machine and what stands between it and a script: its
//! sockets by the script's numbers, the relation of the script's numbers (tags, sequence numbers, ports) to the real ones, and
//! the settings that the script makes. It is made from the whole script, so that settings of an endpoint that a script makes
//! later can be made in time, and so that what cannot be mapped at all is refused before anything is played; then
//! [`play`](super::play) chooses it by the protocol of the script's sockets. `sctp` is one.

use super::ast::{Call, Packet, Shell};
use segue_proto::Instant;

/// What a script asks for and cannot have. Its text says what, not where: the runner knows the line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(pub String);

impl Refusal {
    /// A refusal of what `what` names.
    pub fn new<T>(what: impl Into<String>) -> Result<T, Self> {
        Err(Self(what.into()))
    }
}

/// What a call came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It returned.
    Returned(Returned),
    /// It returned something else than the script has in an argument: what, as a script would have it.
    Differs(String),
    /// It waits. The runner asks again, with the same call, after whatever may have ended the wait.
    Waits,
}

/// What a call returned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Returned {
    /// Its value, -1 for an error.
    pub value: i64,
    /// The name of the error.
    pub errno: Option<&'static str>,
}

impl Outcome {
    /// It returned `value`.
    #[must_use]
    pub const fn value(value: i64) -> Self {
        Self::Returned(Returned { value, errno: None })
    }

    /// It failed.
    #[must_use]
    pub const fn error(errno: &'static str) -> Self {
        Self::Returned(Returned {
            value: -1,
            errno: Some(errno),
        })
    }
}

/// A packet that the stack has sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// Its bytes from the IP header on.
    pub bytes: Vec<u8>,
}

/// A stack under test.
///
/// The runner drains [`poll_transmit`](Self::poll_transmit) after every other call that changes the stack.
pub trait Stack {
    /// The application calls a socket, or the runner asks again after [`Outcome::Waits`].
    ///
    /// # Errors
    /// If the call, or an argument, is none that the stack has.
    fn call(&mut self, now: Instant, call: &Call) -> Result<Outcome, Refusal>;

    /// A packet of the script arrives.
    ///
    /// # Errors
    /// If it, or something in it, cannot be made.
    fn inject(&mut self, now: Instant, packet: &Packet) -> Result<(), Refusal>;

    /// The next packet that the stack sends.
    fn poll_transmit(&mut self, now: Instant) -> Option<Sent>;

    /// Whether what is sent and no line expects is a fault at the end, too. Elsewhere it always is.
    fn all_is_expected(&self) -> bool {
        true
    }

    /// When the stack's next timer expires.
    fn poll_timeout(&mut self) -> Option<Instant>;

    /// Timers that are due expire.
    fn handle_timeout(&mut self, now: Instant);

    /// Holds a packet that was sent against the one that is due. What the script calls by numbers of its own (tags, initial
    /// sequence numbers) is learnt from the packets that say them first.
    ///
    /// # Errors
    /// If the line asks for something that the stack has not.
    fn compare(&mut self, due: &Packet, sent: &Sent) -> Result<Comparison, Refusal>;

    /// A packet as a script would write it, with the script's numbers where they are known.
    fn describe(&self, sent: &Sent) -> String;

    /// Commands of a shell: settings, for the most part.
    ///
    /// # Errors
    /// If they do anything that is not known to make no difference, or to be a setting that the stack has.
    fn shell(&mut self, now: Instant, shell: &Shell) -> Result<(), Refusal>;

    /// Python: `assert`s about the stack's state.
    ///
    /// # Errors
    /// If it is anything else, or asks for a value that the stack has not.
    fn code(&mut self, now: Instant, code: &str) -> Result<Comparison, Refusal>;
}

/// What a comparison came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// The two are the same.
    Same,
    /// So far they are, but the line says more than one packet has: the next one is to be held against the same line.
    Part,
    /// They are not: the first difference in words.
    Differs(String),
}
