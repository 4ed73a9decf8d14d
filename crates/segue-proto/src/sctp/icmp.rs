//! What an ICMPv6 error that is known to be about a packet of ours does to its association (RFC 9260 section 10).

use super::association::Association;
use super::{Event, PathState, Unreachable};
use crate::time::Instant;
use core::net::Ipv6Addr;

impl Association {
    /// ICMP9: it counts as an error of the path, once per RTO, so that a router that reports every packet takes no
    /// path down sooner than silence would; the association's own count leaves it out, because a router may be wrong
    /// for a while (section 8.1 counts what was not answered). Returns whether anything came of it.
    pub(super) fn on_unreachable(&mut self, now: Instant, address: Ipv6Addr, reason: Unreachable) -> bool {
        let Some(index) = self.destination_index(address) else {
            return false;
        };
        let rto = self
            .paths
            .get(self.destinations[index].path)
            .map_or(self.config.rto_initial, |p| p.rto());
        let up = self.is_up();
        let d = &mut self.destinations[index];
        if d.unreachable_at.is_some_and(|at| now < at + rto) {
            return false;
        }
        d.unreachable_at = Some(now);
        self.out.tell(Event::Unreachable { address, reason });
        if up && d.state != PathState::Unconfirmed {
            d.error_count += 1;
            self.degrade(index);
        }
        true
    }

    /// No SCTP behind the UDP port of an address that was asked: the association cannot come up, unless the peer has
    /// other addresses to be asked.
    pub(super) fn on_port_unreachable(&mut self, address: Ipv6Addr) -> bool {
        self.out.tell(Event::Unreachable {
            address,
            reason: Unreachable::Port,
        });
        if self.destination_count() == 1 {
            self.on_protocol_unreachable();
        }
        true
    }

    /// ICMP8: as an ABORT with the T bit.
    pub(super) fn on_protocol_unreachable(&mut self) {
        self.close(Event::Aborted { causes: Vec::new() });
    }
}
