//! A packet that arrived, but for what it carries.

use crate::contract::InterfaceId;
use crate::time::Instant;
use core::net::Ipv6Addr;

/// Addresses and interface of a packet that arrived.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    pub now: Instant,
    pub interface: InterfaceId,
    pub from: Ipv6Addr,
    pub to: Ipv6Addr,
    pub from_port: u16,
    pub tag: u32,
    /// UDP source port, if it came in UDP.
    pub encapsulation: Option<u16>,
}

impl Arrived {
    /// Whether both addresses are those of single hosts.
    pub(super) fn is_unicast(&self) -> bool {
        !(self.from.is_multicast() || self.from.is_unspecified() || self.to.is_multicast())
    }
}
