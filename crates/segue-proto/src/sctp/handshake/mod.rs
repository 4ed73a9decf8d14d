//! The handshake (RFC 9260 section 5): what INIT and INIT ACK say, the cookie between them, the tags that they agree on, what
//! a handshake does to an association that exists, and the states that it leads through.

mod cookie;
mod extensions;
mod identity;
mod parameters;
mod phase;
mod restart;

pub(super) use cookie::{Cookie, CookieError, CookieKeys, Lifetime, Streams, TieTags};
pub(super) use extensions::PeerExtensions;
pub(super) use identity::Identity;
pub(super) use parameters::{PeerParameters, check_init, check_init_ack, init, init_ack, note_not_taken};
pub(super) use phase::{OnShutdown, OpeningChunk, Phase, PhaseTimer, Retry, ShutdownChunk, State};
pub(super) use restart::{Action, Answer, action};
