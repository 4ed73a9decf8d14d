//! The router's side: advertisements, and defence of its own address.

use super::config::RouterConfig;
use crate::contract::{InterfaceId, Transmit};
use crate::random::Stream;
use crate::time::Instant;
use segue_wire::Packet;
use segue_wire::icmpv6::nd::LinkLayerAddress;

/// Neighbour discovery of one router interface.
#[derive(Debug)]
pub struct RouterNd {
    interface: InterfaceId,
}

impl RouterNd {
    /// An interface that advertises from `start` on. `stream` is drawn from for intervals and delays.
    #[must_use]
    pub fn new(
        start: Instant,
        interface: InterfaceId,
        link_layer: LinkLayerAddress,
        config: RouterConfig,
        stream: Stream,
    ) -> Self {
        let _ = (start, link_layer, config, stream);
        Self { interface }
    }
    /// Takes an ICMPv6 packet that arrived over the interface; anything but neighbour discovery is ignored.
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
