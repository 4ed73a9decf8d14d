//! SCTP in UDP (RFC 6951): which UDP port each destination of the peer is reached at.

use super::association::Association;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::sctp::SctpPacket;

/// UDP header, bytes: what encapsulation takes from the MTU (RFC 6951 section 5.6).
pub(super) const UDP_HEADER: u32 = 8;

impl Association {
    /// A packet with the right verification tag came from `from`, out of the UDP port `remote_port` or not in UDP: what
    /// goes there goes the same way (RFC 6951 section 5.4), and so do addresses that the peer adds.
    pub(super) fn note_encapsulation(&mut self, from: Ipv6Addr, remote_port: Option<u16>) {
        self.peer_encapsulation = remote_port;
        if let Some(index) = self.destination_index(from) {
            self.destinations[index].encapsulation = remote_port;
        }
    }

    /// A packet arrived out of the UDP port `remote_port`, or not in UDP. Returns false if it is refused whole.
    pub(super) fn handle_encapsulated(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        to: Ipv6Addr,
        remote_port: Option<u16>,
        packet: &mut SctpPacket,
    ) -> bool {
        let former = self.peer_encapsulation;
        if self.accepts_tag(packet) {
            self.note_encapsulation(from, remote_port);
        }
        let taken = self.handle_packet(now, from, to, packet);
        if !taken {
            // an ASCONF from an unknown address that is not authenticated changes nothing, not even this
            self.peer_encapsulation = former;
        }
        taken
    }

    /// The peer of a new association came out of `remote_port`: all its addresses are taken to be reached there until they
    /// say otherwise.
    pub(super) fn start_encapsulation(&mut self, remote_port: Option<u16>) {
        self.peer_encapsulation = remote_port;
        for destination in self.destinations.values_mut() {
            destination.encapsulation = remote_port;
        }
    }

    /// UDP ports of a packet to `destination`, ours first; `None` if it goes without UDP.
    pub(super) fn udp_ports(&self, destination: Ipv6Addr) -> Option<(u16, u16)> {
        let own = self.config.udp_encapsulation?;
        let remote_port = match self.destination_index(destination) {
            Some(index) => self.destinations[index].encapsulation,
            None => self.peer_encapsulation,
        };
        Some((own.local_port, remote_port?))
    }
}
