//! ILNPv6: the Identifier-Locator Network Protocol as a shim under an unchanged transport (RFC 6740 to 6744, RFC 6748;
//! Phoomikiattisak and Bhatti 2019, "004").
//!
//! A node has a node identifier (NID) that stays and locators (L64) that come and go: the prefixes of the networks that it is on. On the
//! wire an address is a locator and an identifier. Transports see neither: to them a node is its identity, an
//! address of [`Config::identity_prefix`] with its identifier, and that never changes.
//!
//! ```text
//!   transport    fd53:6567:7565:1:NID-here            <->  fd53:6567:7565:1:NID-there
//!   shim         locator in use : NID-here  + nonce    <->  locator of the peer : NID-there
//!   wire         2001:db8:0:2::NID-here                     2001:db8:0:1::NID-there
//! ```
//!
//! [`Ilnp`] is the machine; the ILCC keeps what it knows of each peer ([`Correspondent`]). What it does:
//! - *first contact*. The identity of a peer is mapped to locators by [`Config::peers`], or by a look-up
//!   ([`ShimEvent::LookUp`](crate::shim::ShimEvent::LookUp)), for which packets wait. A destination that is not of the
//!   identity prefix is a real address: its prefix is the first locator, and it stays the peer's identity. A peer that calls is known as
//!   identity prefix and identifier.
//! - *nonce* (RFC 6744). It shows that packets, and above all locator updates, come from the node that the session
//!   began with. Packets without one are plain IPv6 and pass with their own addresses: they cannot reach what is
//!   bound to an identity.
//! - *handoff* (RFC 6743). When the set of locators changes, every peer with a session is told by a Locator Update, which
//!   is retransmitted until acknowledged. Hard and soft handoff, and several locators in use: [`Handoff`].
//! - *recovery*. When updates go unanswered, or a peer is silent, the directory is asked where the peer is.
//! - *fallback* (RFC 6741 section 10). A peer whose kernel answers the nonce option with an ICMPv6 parameter problem,
//!   or that does not answer at all, gets plain IPv6. The parameter problem must quote our addresses and our nonce.
//! - *checksums*. By either rule, see [`ChecksumRule`]; those of raw payloads are adjusted by difference.
//! - *ephemeral identifiers* (RFC 6740 section 10), see [`Identifiers::Ephemeral`]. The host is asked by
//!   [`ShimEvent::FormAddress`](crate::shim::ShimEvent::FormAddress) for addresses with them.
//!
//! [`Rewriter`] is the machine of a site border router that maps locators (RFC 6748: localised numbering, location
//! privacy).
//!
//! What a host has to do: form its addresses with the identifier
//! ([`Acquisition::set_interface_identifier`](crate::address::Acquisition::set_interface_identifier)); give every packet
//! that is whole to [`Shim::inbound`](crate::shim::Shim::inbound); on `UpdateDirectory` publish
//! [`Ilnp::advertised`] as L64 records; on `LookUp` call `handle_found` or `handle_locators` with what it finds. The
//! [host](crate::host) does all of it.
//!
//! Left out, because nothing here would show it: locators of multicast groups, IPsec with identifiers (RFC 6741 section
//! 9), and subnetworks of locators that move as a whole (RFC 6748 section 4), which are the same updates sent by each of
//! their hosts. RFC 6743 gives its message no sequence number: an update that is replayed by somebody *on* the path
//! later than [`Config::replay_guard`] cannot be told from a host that is back. What the peer then sends to a locator
//! that was given up makes the host tell it again.
//!
//! A limit of the architecture, not hidden here: an identifier proves nothing by itself, and whoever speaks first for it is
//! believed for as long as the session lasts. A first packet forged from off the path, before the true node has spoken,
//! leads later packets for that identifier to the forger; a look-up before the first packet, or RFC 6740's security
//! considerations (IPsec, cryptographic identifiers), would be needed against it.

mod config;
mod counters;
mod errors;
mod ilcc;
mod inbound;
mod local;
mod locator_update;
mod machine;
mod nonce;
mod outbound;
mod rewriter;

pub use config::{
    ChecksumRule, Config, Handoff, Identifiers, NonceIn, NonceLength, PeerConfig, Sharing, Trigger,
};
pub use counters::Counters;
pub use ilcc::{Correspondent, Mode, RemoteLocator};
pub use local::{Advertised, LocalLocator, LocatorState};
pub use machine::Ilnp;
pub use rewriter::{LocatorMapping, Rewriter, RewriterConfig, RewriterCounters};
