//! The two ends of a connection.

use core::net::Ipv6Addr;

/// Addresses and ports of both ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Pair {
    pub local: Ipv6Addr,
    pub local_port: u16,
    pub remote: Ipv6Addr,
    pub remote_port: u16,
}

/// Hop limit of what is sent.
pub(super) const HOP_LIMIT: u8 = 64;
