//! How far things are with a peer.

use core::net::Ipv6Addr;

/// How far things are with a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Its locators are not known yet: packets to it wait.
    Unresolved,
    /// Packets to it carry a nonce; it has not answered with one yet.
    Probing,
    /// It speaks ILNPv6.
    Ilnp,
    /// It does not: packets are plain IPv6 between these two addresses.
    Plain {
        /// Ours. It stays while it can, since the peer's transport knows it.
        local: Ipv6Addr,
        /// The peer's.
        remote: Ipv6Addr,
    },
}
