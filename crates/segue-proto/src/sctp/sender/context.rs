//! What the sender works with and does not own.

use crate::sctp::Config;
use crate::sctp::outbox::Outbox;
use crate::sctp::peer::Peer;
use crate::time::Instant;

/// What the sender works with and does not own: it sends to the peer, and tells what happens.
pub(in crate::sctp) struct Context<'a> {
    pub now: Instant,
    pub config: &'a Config,
    pub peer: &'a mut Peer,
    pub out: &'a mut Outbox,
    /// Both ends offered FORWARD TSN (RFC 3758).
    pub may_forward_tsn: bool,
}
