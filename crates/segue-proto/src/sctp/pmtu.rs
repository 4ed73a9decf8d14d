//! Path MTU (RFC 9260 section 7.3).

use super::association::Association;
use crate::time::Instant;
use core::net::Ipv6Addr;

impl Association {
    pub(super) fn on_packet_too_big(
        &mut self,
        now: Instant,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        mtu: u32,
    ) -> bool {
        let _ = (now, source, destination, mtu);
        false
    }
}
