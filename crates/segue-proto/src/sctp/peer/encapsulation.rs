//! SCTP in UDP (RFC 6951): which UDP port each destination of the peer is reached at.

use super::Peer;
use crate::sctp::Config;
use core::net::Ipv6Addr;

impl Peer {
    /// A packet with the right verification tag came from `from`, out of the UDP port `remote_port` or not in UDP: what
    /// goes there goes the same way (RFC 6951 section 5.4).
    pub(in crate::sctp) fn comes_out_of(&mut self, from: Ipv6Addr, remote_port: Option<u16>) {
        if let Some(index) = self.find(from) {
            self.destinations[index].note_udp_port(remote_port);
        }
    }

    /// So are addresses that the peer adds from now on reached.
    pub(in crate::sctp) fn expect_new_addresses_at(&mut self, remote_port: Option<u16>) {
        self.encapsulation = remote_port;
    }

    /// The peer of a new association came out of `remote_port`: all its addresses are taken to be reached there until they
    /// say otherwise.
    pub(in crate::sctp) fn start_encapsulation(&mut self, remote_port: Option<u16>) {
        self.encapsulation = remote_port;
        for destination in self.destinations.values_mut() {
            destination.note_udp_port(remote_port);
        }
    }

    /// UDP ports of a packet to `destination`, ours first; `None` if it goes without UDP.
    #[inline]
    pub(in crate::sctp) fn udp_ports(&self, config: &Config, destination: Ipv6Addr) -> Option<(u16, u16)> {
        let own = config.udp_encapsulation?;
        let remote_port = match self.find(destination) {
            Some(index) => self.destinations[index].encapsulation(),
            None => self.encapsulation,
        };
        Some((own.local_port, remote_port?))
    }
}
