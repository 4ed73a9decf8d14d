#![doc = include_str!("../README.md")]
//!
//! # Within Segue
//! [`Packet`] is the currency of the whole program. Simulated hops pass the typed value and never serialise it, unless a
//! scenario asks for `wire = "exact"`.

#[cfg(any(test, feature = "arbitrary"))]
pub mod arbitrary;
pub mod checksum;
pub mod dhcpv6;
pub mod error;
pub mod fragment;
pub mod icmpv6;
pub mod ilnp;
pub mod ilnp_udp;
pub mod ipv6;
pub mod mobility;
pub mod packet;
pub mod payload;
pub mod raw;
pub mod reader;
pub mod sctp;
pub mod serial;
pub mod tcp;
pub mod udp;
mod writer;

pub use checksum::PseudoRule;
pub use error::ParseError;
pub use ipv6::{ExtensionHeader, Ipv6Header};
pub use packet::{MAX_TUNNEL_DEPTH, Packet, Payload};
pub use payload::{Data, synthetic_byte};
pub use raw::RawPayload;
pub use serial::{AsconfSerial, ReConfigSerial, SeqNumber, Ssn, Tsn};

#[cfg(test)]
mod tests;
