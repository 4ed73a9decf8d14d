//! The location manager: SIGMA's step 4 as DNS (Fu, Atiquzzaman and Ivancic 2005, section II-A).
//!
//! A mobile host's identity is a domain name (or maps to one, see [`Identity`]), its current address the AAAA record
//! there. The mobile host changes the record by dynamic update (RFC 2136) authenticated by TSIG (RFC 8945); a
//! correspondent looks it up before it sets up an association. No association that exists takes part in any of this.
//!
//! - [`Client`] keeps one name at the host's current address, and resolves names;
//! - [`Server`] is authoritative for its zones (RFC 1034, RFC 1035, RFC 2136), and answers an update only after the
//!   driver has confirmed that the [`JournalEntry`] of it is durable (RFC 2136 section 3.5);
//! - [`tsig`] signs and verifies.
//!
//! A node of ILNPv6 has NID and L64 records instead (RFC 6742): [`Client::update_locators`] and
//! [`Client::look_up_locators`], which follows an LP record where there is no L64. Its name may be that of its identity
//! address ([`Identity::HomeAddress`]).
//!
//! Both machines speak [`Datagram`]s: whole DNS messages with the peer's address and the local port. A host puts them
//! into UDP packets ([`crate::host`]), a driver onto sockets. DNS messages are read and written with the `domain`
//! crate; what is left to do here is what its `tsig` module would need a clock and a cryptographic library of its own
//! for.
//!
//! TSIG needs the time of day. The machines have none: [`ClientConfig::unix_at_zero`] and
//! [`ServerConfig::unix_at_zero`] say what it was at the driver's zero.

mod client;
mod compressor;
mod config;
mod identity;
mod ilnp_records;
mod message;
mod place;
mod rows;
mod server;
mod signer;
pub mod tsig;
mod zone;

pub use client::{Client, ClientCounters, ClientEvent, Failure, LookupId};
pub use config::{ClientConfig, ConfigError, Grant, KeyConfig, MOST_RECORDS, Room, ServerConfig, ZoneConfig};
pub use identity::{Identity, IdentityError};
pub use ilnp_records::PreferredLocator;
pub use rows::Row;
pub use server::{Answer, JournalEntry, RestoreError, Server, ServerCounters, Transport};

use bytes::Bytes;
use core::net::Ipv6Addr;

/// A domain name: compared without regard to case (RFC 4343).
pub type Name = domain::base::Name<Bytes>;

/// Port of DNS servers (RFC 1035 section 4.2).
pub const PORT: u16 = 53;

/// A DNS message on its way over UDP, or the content of a TCP frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The other end's address; an IPv4 address is written IPv4-mapped (RFC 4291 section 2.5.5.2).
    pub peer: Ipv6Addr,
    /// The other end's port.
    pub peer_port: u16,
    /// The port at this end.
    pub local_port: u16,
    /// The message.
    pub data: Bytes,
}

/// A domain name from text, with or without the dot at its end.
///
/// # Errors
/// What is wrong with it.
pub fn parse_name(text: &str) -> Result<Name, String> {
    if text.is_empty() || text == "." || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(format!("`{text}`: expected a domain name such as mh.example.org"));
    }
    Name::bytes_from_str(text).map_err(|e| format!("`{text}`: expected a domain name: {e}"))
}

#[cfg(test)]
mod tests;
