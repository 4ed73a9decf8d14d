//! UDP (RFC 768, checksum over IPv6 by RFC 8200 section 8.1).

use crate::payload::Data;

/// A UDP datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UdpDatagram {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// User data.
    pub data: Data,
}
