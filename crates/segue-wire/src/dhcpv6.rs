//! DHCPv6 messages (RFC 8415), as far as a client that asks for one address needs them.

use bytes::Bytes;
use core::net::Ipv6Addr;

/// UDP port of clients (RFC 8415 section 7.2).
pub const CLIENT_PORT: u16 = 546;
/// UDP port of servers and relays (RFC 8415 section 7.2).
pub const SERVER_PORT: u16 = 547;

/// Message types (RFC 8415 section 7.3) of client-server exchanges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageType {
    /// SOLICIT (1).
    Solicit,
    /// ADVERTISE (2).
    Advertise,
    /// REQUEST (3).
    Request,
    /// CONFIRM (4).
    Confirm,
    /// RENEW (5).
    Renew,
    /// REBIND (6).
    Rebind,
    /// REPLY (7).
    Reply,
    /// RELEASE (8).
    Release,
    /// DECLINE (9).
    Decline,
}

/// A client-server message (RFC 8415 section 8).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dhcpv6Message {
    /// Message type.
    pub message_type: MessageType,
    /// Transaction id, 24 bits.
    pub transaction_id: u32,
    /// Options.
    pub options: Vec<Dhcpv6Option>,
}

/// An option (RFC 8415 section 21).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dhcpv6Option {
    /// Client identifier (1): a DUID.
    ClientIdentifier(Bytes),
    /// Server identifier (2): a DUID.
    ServerIdentifier(Bytes),
    /// Identity association for non-temporary addresses (3).
    IaNa(IaNa),
    /// Elapsed time (8), hundredths of a second.
    ElapsedTime(u16),
    /// Rapid commit (14).
    RapidCommit,
    /// Status code (13) with its message.
    StatusCode {
        /// Code (section 21.13).
        code: u16,
        /// UTF-8 text, kept as bytes.
        message: Bytes,
    },
    /// Any other option.
    Unknown {
        /// Option code.
        code: u16,
        /// Option data.
        data: Bytes,
    },
}

/// Identity association for non-temporary addresses (section 21.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IaNa {
    /// Identity association identifier.
    pub iaid: u32,
    /// T1, seconds.
    pub t1_s: u32,
    /// T2, seconds.
    pub t2_s: u32,
    /// Addresses in it (section 21.6).
    pub addresses: Vec<IaAddress>,
}

/// IA address option (section 21.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IaAddress {
    /// The address.
    pub address: Ipv6Addr,
    /// Preferred lifetime, seconds.
    pub preferred_lifetime_s: u32,
    /// Valid lifetime, seconds.
    pub valid_lifetime_s: u32,
}
