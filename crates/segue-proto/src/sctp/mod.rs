//! SCTP (RFC 9260) with dynamic address reconfiguration (RFC 5061) and chunk authentication (RFC 4895).
//!
//! An [`Endpoint`] holds all associations of one port. A [`Profile`] selects the constants and rules of RFC 2960, 4960 or
//! 9260 where they differ: RTO.Initial, initial cwnd and its floors, missing reports before a fast retransmit, fast
//! recovery and HTNA, the destination of fast retransmissions, and path verification.
//!
//! Send state (route, RTT, RTO, cwnd, T3-rtx) is kept per (source, destination) pair; state, error count and heartbeats
//! per destination.
//!
//! # Where data may go
//! - To confirmed addresses only (RFC 9260 section 5.4). Confirmed are the addresses given to [`Endpoint::connect`], the
//!   one that an INIT ACK came from, and for the server the one that its INIT ACK went to; all others once a HEARTBEAT ACK
//!   has brought back their nonce. An address added by ASCONF gets its heartbeat at once, behind the ASCONF-ACK.
//! - A Set Primary Address (RFC 5061 section 4.2.4) for an unconfirmed address makes it the primary path now; new data
//!   follows when it is confirmed.
//! - RFC 2960 predates path verification, which came with RFC 4460: under [`Profile::Rfc2960`] every address is usable at
//!   once.
//!
//! # Authentication (RFC 4895)
//! Offered by default, because ASCONF is not acted on without it (RFC 5061 section 4.1.1); [`AsconfAuth::None`] brings
//! back the time before. With [`AuthConfig`] more chunk types are taken only authenticated, and endpoint pair shared keys
//! keep out whoever saw the handshake. Keys change while an association lives ([`Association::set_shared_key`],
//! [`Association::set_active_key`], [`Association::delete_shared_key`]). A chunk type that must be authenticated and is not
//! is dropped alone; an AUTH chunk that is wrong takes the rest of its packet with it; both are counted ([`Refused`]).
//!
//! # SCTP in UDP (RFC 6951)
//! With [`Config::udp_encapsulation`] an association begins in UDP, takes packets in UDP and without, and answers each
//! address of the peer the way its last packet with the right verification tag came. An INIT proves nothing: its answer
//! goes back the way it came, and the association is left as it is.
//!
//! # Peers that restart
//! A peer that lost its state and opens again takes the place of its former self: the association keeps its
//! [`AssociationId`], everything else begins anew, and [`Event::Restarted`] gives back what was not delivered. A restart
//! that would add addresses is refused (RFC 9260 section 5.2.2). Accepted associations are limited in number
//! ([`Config::max_associations`]), and forgotten once they have ended and told everything ([`Endpoint::forget`]).
//!
//! # What a path carries
//! [`PmtuDiscovery`] says how the MTU of a path is found. [`Endpoint::handle_icmp`] takes ICMPv6 errors, if they quote a
//! packet of ours (RFC 9260 section 10). Messages are cut to the smallest PMTU of all paths. What was cut before a PMTU
//! shrank cannot be cut again (section 6.9): such packets are longer than [`Endpoint::reduced_mtu`], and whoever carries
//! them fragments them; a host of this crate does.
//!
//! # Addresses of ours
//! The host decides which it has ([`Association::local_address_added`], [`Association::local_address_removed`]), and its
//! user which of them the peer is told of ([`Association::change_addresses`]). An association whose last address is gone
//! stands still, without counting errors, until there is one again: with [`Config::auto_asconf`] it then takes that one in
//! place of the others by itself (RFC 5061 section 5.3.2). An address may be deactivated instead of deleted, if both ends
//! are configured to ([`Config::address_deactivation`], [`Association::deactivate_address`]).
//!
//! # Extensions
//! - [`SendOptions`] ask for a SACK at once (RFC 7053) and say when a message is given up ([`Reliability`]: RFC 3758, RFC
//!   7496).
//! - Streams are reset and added (RFC 6525): [`Association::reset_streams`] and its neighbours.
//! - Quick failover (RFC 7829): [`Config::pf_max_retrans`] has settings and what they give.
//! - Early retransmit (RFC 5827): [`Config::early_retransmit`].
//! - Messages longer than the receive buffer are delivered in pieces (RFC 6458): [`Message::first`] and
//!   [`Message::last`].
//!
//! # What is left out
//! ECN, IPv4, and the addition of duplicate TSNs to partial_bytes_acked (RFC 9260 section 7.2.2). A RE-CONFIG chunk of ours
//! carries one request.
//!
//! # Example
//! Two endpoints joined by nothing but a loop:
//! ```
//! use segue_proto::contract::LocalAddress;
//! use segue_proto::random::Stream;
//! use segue_proto::sctp::{Config, Endpoint, Event, SendOptions};
//! use segue_proto::{Instant, InterfaceId};
//! use segue_wire::Data;
//!
//! let addresses = ["2001:db8::1", "2001:db8::2"].map(|a| a.parse().unwrap());
//! let mut ends = ["a", "b"].map(|name| Endpoint::new(Config::default(), 5000, Box::new(Stream::new(1, name))));
//! for (end, address) in ends.iter_mut().zip(addresses) {
//!     end.add_local_address(LocalAddress { interface: InterfaceId(0), address });
//! }
//! ends[1].listen();
//! let now = Instant::ZERO;
//! let id = ends[0].connect(now, &[addresses[1]], 5000).unwrap();
//! ends[0].association_mut(id).unwrap().send(now, 0, Data::Bytes("hello".into()), SendOptions::default()).unwrap();
//!
//! let mut received = None;
//! for _ in 0..10 {
//!     for (from, to) in [(0, 1), (1, 0)] {
//!         while let Some(transmit) = ends[from].poll_transmit(now) {
//!             ends[to].handle_packet(now, InterfaceId(0), transmit.packet);
//!         }
//!         while let Some((id, event)) = ends[to].poll_event() {
//!             if event == Event::Readable {
//!                 received = ends[to].association_mut(id).unwrap().recv(); // and so on, until there is nothing left
//!             }
//!         }
//!     }
//! }
//! assert_eq!(received.unwrap().parts[0], Data::Bytes("hello".into()));
//! ```

mod add_fields;
mod asconf;
mod association;
pub mod auth;
pub mod config;
mod counters;
mod endpoint;
pub mod event;
mod handshake;
mod ids;
mod invariants;
mod lengths;
mod local;
pub mod multipath;
mod options;
mod outbox;
mod packets;
mod peer;
mod per_path;
mod receiver;
mod replies;
mod sender;
mod slots;
mod stream_list;
mod streams;
#[cfg(test)]
mod testing;

pub use association::Association;
pub use auth::{AsconfAuth, AuthConfig, AuthError, HmacIdentifier, SharedKey};
pub use config::{
    Config, CwndCredit, PmtuDiscovery, Profile, RetransmitTo, SackImmediately, SackRoute, UdpEncapsulation,
};
pub use counters::{Counters, EndpointCounters, EndpointRefused, IcmpCounters, Refused};
pub use endpoint::Endpoint;
pub use event::{
    AddressChange, AddressError, AddressRequest, AsconfResult, AssociationId, Event, Message, PathSnapshot,
    PathState, Restarted, SendError, StreamError, StreamRefused, StreamRequest, Unreachable,
};
pub use multipath::{MultipathConfig, MultipathCounters};
pub use options::{Reliability, SendOptions};
