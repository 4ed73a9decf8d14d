//! Variable-length parameters of INIT and INIT ACK (RFC 9260 sections 3.3.2.1 and 3.3.3.1, RFC 5061 section 4.2).

use bytes::Bytes;
use core::net::{Ipv4Addr, Ipv6Addr};

/// A parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// Heartbeat info (1).
    HeartbeatInfo(Bytes),
    /// IPv4 address (5).
    Ipv4Address(Ipv4Addr),
    /// IPv6 address (6).
    Ipv6Address(Ipv6Addr),
    /// State cookie (7).
    StateCookie(Bytes),
    /// Unrecognized parameter (8): the parameter that was not understood, whole.
    UnrecognizedParameter(Bytes),
    /// Cookie preservative (9): suggested increment of the cookie's life, milliseconds.
    CookiePreservative(u32),
    /// Host name address (11), deprecated: kept so that its receiver can refuse it.
    HostNameAddress(Bytes),
    /// Supported address types (12): IANA parameter types, 5 for IPv4 and 6 for IPv6.
    SupportedAddressTypes(Vec<u16>),
    /// ECN capable (0x8000).
    EcnCapable,
    /// Supported extensions (0x8008, RFC 5061 section 4.2.7): chunk types.
    SupportedExtensions(Bytes),
    /// Forward TSN supported (0xC000, RFC 3758).
    ForwardTsnSupported,
    /// Adaptation layer indication (0xC006, RFC 5061 section 4.2.6).
    AdaptationLayerIndication(u32),
    /// Set primary address (0xC004, RFC 5061 section 4.2.4); its correlation id has no meaning in INIT.
    SetPrimaryAddress {
        /// ASCONF-request correlation id.
        correlation_id: u32,
        /// Address to be made primary.
        address: Ipv6Addr,
    },
    /// Any other parameter; what to do with it lies in its two highest bits (RFC 9260 section 3.2.1).
    Unknown {
        /// Parameter type.
        parameter_type: u16,
        /// Parameter value.
        value: Bytes,
    },
}
