//! What heartbeats are sent with, and what their answers come to.

use crate::sctp::Config;
use crate::sctp::ids::DestinationId;
use crate::sctp::outbox::Outbox;
use crate::sctp::replies::Replies;
use rand_chacha::ChaCha8Rng;

/// What heartbeats are sent with.
pub(in crate::sctp) struct Probing<'a> {
    pub config: &'a Config,
    pub rng: &'a mut ChaCha8Rng,
    pub out: &'a mut Outbox,
    pub replies: &'a mut Replies,
    /// Bytes that an AUTH chunk takes of an answer to an ASCONF.
    pub auth_len: u32,
    /// HEARTBEATs may be sent: the association is up, and no SHUTDOWN or SHUTDOWN ACK was sent (section 8.3).
    pub allowed: bool,
}

/// What a HEARTBEAT ACK was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum HeartbeatAck {
    /// The answer to a probe of the PMTU.
    Probe,
    /// The answer to nothing that waits for one.
    Refused,
    /// The answer to a heartbeat.
    Answer {
        /// By it an address was confirmed: data may go there.
        confirms: Option<DestinationId>,
    },
}
