//! What headers take of a packet, bytes.

use super::Config;

/// IPv6 header and SCTP common header.
pub(in crate::sctp) const PACKET_HEADERS: u32 = 40 + 12;

/// Header of a DATA chunk.
pub(in crate::sctp) const DATA_HEADER: u32 = 16;

/// UDP header: what encapsulation takes from the MTU (RFC 6951 section 5.6).
const UDP_HEADER: u32 = 8;

/// A DATA chunk with `len` user bytes, header and padding included.
#[inline]
pub(in crate::sctp) fn chunk_size(len: u32) -> u32 {
    DATA_HEADER + len.next_multiple_of(4)
}

/// What encapsulation takes from every packet.
pub(in crate::sctp) fn encapsulation_overhead(config: &Config) -> u32 {
    if config.udp_encapsulation.is_some() {
        UDP_HEADER
    } else {
        0
    }
}
