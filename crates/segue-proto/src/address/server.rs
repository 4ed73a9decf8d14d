//! The server's side of DHCPv6, as an access router runs it.

use super::config::ServerConfig;
use crate::contract::{InterfaceId, Transmit};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::Packet;
use segue_wire::icmpv6::nd::LinkLayerAddress;

/// A DHCPv6 server on one link.
#[derive(Debug)]
pub struct Dhcpv6Server {
    interface: InterfaceId,
}

impl Dhcpv6Server {
    /// A server that hands out addresses of the /64 `prefix`.
    #[must_use]
    pub fn new(
        interface: InterfaceId,
        link_layer: LinkLayerAddress,
        prefix: Ipv6Addr,
        config: ServerConfig,
    ) -> Self {
        let _ = (link_layer, prefix, config);
        Self { interface }
    }
    /// Takes a packet that arrived over the link; anything but UDP to port 547 is ignored.
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        let _ = (now, packet);
    }
    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }
    /// The next packet to send. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let _ = (now, self.interface);
        None
    }
    /// When `handle_timeout` must be called next. Poll after `poll_transmit` has returned `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
