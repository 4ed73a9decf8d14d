//! The two ends of a session.

use core::net::Ipv6Addr;
use segue_wire::ilnp::Nid;

/// The two ends of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Parties {
    /// This host called: the locators are what the directory, the configuration or the address that was called
    /// said, until the peer, whose nonce came from one of them, told others. If not, the peer called, and nothing but its word says
    /// that its locators are those of its identifier: they serve for answers in flows that it began.
    pub called: bool,
    /// What transports know the peer by.
    pub identity: Ipv6Addr,
    /// Its node identifier.
    pub nid: Nid,
    /// The identifier of ours that it knows.
    pub local_nid: Nid,
}
