//! What somebody has to know who carries packets of a session himself, past the machine, while nothing changes.

use super::session_key::SessionKey;
use crate::contract::InterfaceId;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::ilnp::Nonce;

/// How packets of TCP and UDP of a session go, either way, for as long as [`Ilnp::direct_of`] says the same. Checksums follow IPv6's
/// rule, and every packet has a nonce alone in its destination options. What begins or ends something is for the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Direct {
    /// Which session.
    pub session: SessionKey,
    /// What transports call the peer.
    pub peer: Ipv6Addr,
    /// Where packets to it leave.
    pub interface: InterfaceId,
    /// This host's address on the wire, of packets either way.
    pub here: Ipv6Addr,
    /// The peer's.
    pub there: Ipv6Addr,
    /// In packets to the peer.
    pub nonce: Nonce,
    /// In packets from it.
    pub peers_nonce: Nonce,
}

/// When packets of a session were carried past the machine, if any were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Past {
    /// The last from the peer.
    pub heard: Option<Instant>,
    /// One to the peer: the first after that, or before it if there was none after.
    pub sent: Option<Instant>,
}

impl Past {
    /// None were.
    pub const NOTHING: Self = Self {
        heard: None,
        sent: None,
    };
}
