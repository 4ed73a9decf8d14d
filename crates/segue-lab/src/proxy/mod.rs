//! TCP connections of programs over one SCTP association: each is a stream of it, in both directions.
//!
//! ```text
//!   program             TCP of the kernel              TCP of the kernel             program
//!      |                                                                                |
//!   accepted()  read()  incoming()           poll_command()  read()  incoming()  connected()
//!   -------------- Proxy (opens) ----------------------------- Proxy (accepts) ------------
//!   poll_message() | handle_message()                      handle_message() | poll_message()
//!      |                                                                                |
//!      +-------------------- streams of one SCTP association ---------------------------+
//! ```
//!
//! A [`Proxy`] does no I/O and reads no clock. The payload protocol identifier says what a message is ([`Message`]); data goes
//! as it is.
//!
//! **Streams** are used again without a reset (RFC 6525): messages of a stream arrive in order, each end closes with exactly
//! one [`Message::End`], and the end that opens takes the stream again once it has sent its own and got the other's. So what
//! comes first behind is the next [`Message::Open`]. A reset would cost a round trip more, and waits until all that was sent on
//! the stream is acknowledged, one request at a time.
//!
//! **Flow control** is by stream. An end may send as many bytes as the other has granted ([`WINDOW`], then
//! [`Message::Credit`] as the program reads), and the other takes all messages off the association at once. So a program that
//! does not read stops its own connection and no other, and SCTP's one receive window stays open. What TCP has is not read
//! while there is no credit, or while so much waits to be sent that SCTP takes no more: the program is then stopped by its own
//! kernel. An end keeps at most [`WINDOW`] bytes of each stream that wait for TCP, and [`READ_AHEAD`] that wait for SCTP.

mod connection;
mod machine;
mod message;
#[cfg(test)]
mod tests;

pub use machine::{Command, Counters, Outgoing, Proxy, Role};
pub use message::{Message, MessageError, Reason};

/// Bytes of a stream that an end may send without having heard that they were read.
pub const WINDOW: u32 = 256 * 1024;
/// Bytes of a stream that are read from TCP before SCTP has taken them.
pub const READ_AHEAD: u32 = 64 * 1024;
