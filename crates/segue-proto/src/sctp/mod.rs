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
//! # SCTP in UDP (RFC 6951)
//! With [`Config::udp_encapsulation`] an association begins in UDP, takes packets in UDP and without, and answers each
//! address of the peer the way its last packet with the right verification tag came. An INIT proves nothing: its answer
//! goes back the way it came, and the association is left as it is.
//!
//! # Addresses of ours
//! The host decides which it has ([`Association::local_address_added`], [`Association::local_address_removed`]), and its
//! user which of them the peer is told of ([`Association::change_addresses`]). An association whose last address is gone
//! stands still, without counting errors, until there is one again: with [`Config::auto_asconf`] it then takes that one in
//! place of the others by itself (RFC 5061 section 5.3.2). An address may be deactivated instead of deleted, if both ends
//! are configured to ([`Config::address_deactivation`], [`Association::deactivate_address`]).
//!
//! # What is left out
//! Restart of an association (RFC 9260 section 5.2.4, rows A and C: such a COOKIE ECHO is dropped and counted), ECN, path
//! MTU discovery, partial delivery (a message longer than the receive buffer aborts the association), and the addition of
//! duplicate TSNs to partial_bytes_acked (RFC 9260 section 7.2.2).
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
//!                 received = ends[to].association_mut(id).unwrap().recv();
//!             }
//!         }
//!     }
//! }
//! assert_eq!(received.unwrap().parts[0], Data::Bytes("hello".into()));
//! ```

mod ack;
mod address_rules;
mod asconf_answer;
mod asconf_request;
mod association;
pub mod auth;
mod auth_keys;
pub mod config;
mod cookie;
mod counters;
mod deactivation;
mod destinations;
pub mod encapsulation;
mod endpoint;
pub mod event;
mod extensions;
mod forward_tsn;
mod handshake;
mod heartbeat;
mod icmp;
mod inbound;
mod invariants;
mod local_addresses;
mod options;
mod outbound;
mod outbound_abandon;
mod outbound_hold;
mod partial_reliability;
mod path;
mod pmtu;
mod potentially_failed;
mod re_config_answer;
mod re_config_request;
mod reassembly;
mod receive;
mod restart;
mod retransmission;
mod shutdown;
mod sources;
mod transmit;
mod window_probe;

pub use association::Association;
pub use auth::{AsconfAuth, AuthConfig, AuthError};
pub use auth_keys::{HmacIdentifier, SharedKey};
pub use config::{Config, CwndCredit, Profile, RetransmitTo, SackImmediately, SackRoute};
pub use counters::{Counters, EndpointCounters, EndpointRefused, IcmpCounters, Refused};
pub use encapsulation::UdpEncapsulation;
pub use endpoint::Endpoint;
pub use event::{
    AddressChange, AddressError, AddressRequest, AsconfResult, AssociationId, Event, Message, PathSnapshot,
    PathState, Restarted, SendError, StreamError, StreamRefused, StreamRequest,
};
pub use icmp::Unreachable;
pub use options::{Reliability, SendOptions};
