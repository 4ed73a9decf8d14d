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
//! - *nonce* (RFC 6744 section 2). It shows that packets, and above all locator updates, come from the node that the session
//!   began with. Packets without one are plain IPv6 and pass with their own addresses: they cannot reach what is
//!   bound to an identity.
//! - *handoff* (RFC 6743). When the set of locators changes, every peer with a session is told by a Locator Update, which
//!   is retransmitted until acknowledged. Hard and soft handoff, and several locators in use: [`Handoff`].
//! - *recovery*. When updates go unanswered, or a peer is silent, the directory is asked where the peer is.
//! - *fallback* (RFC 6741 section 10). A peer whose kernel answers the nonce option with an ICMPv6 parameter problem gets plain
//!   IPv6. The parameter problem must quote our addresses and our nonce. So does one that does not answer at all, if nothing
//!   says that it speaks ILNPv6 ([`Config::fallback_after`]). What is answered in plain IPv6 stays that, since the peer's transport knows
//!   it by this host's address; every ten minutes a call tries the nonce again, and falls back to the same session.
//! - *errors*. ICMPv6 errors about packets of a session quote locators and a nonce; they are given identities on the way up, if
//!   both are right. What this host's transports say of the peer's packets: see [`Config::translate_errors`].
//! - *fragments* of a kernel's datagrams go each by itself, with its own nonce in front of the fragment header.
//! - *checksums*. By either rule, see [`ChecksumRule`]; those of raw payloads are adjusted by difference.
//! - *ephemeral identifiers* (RFC 6740 section 10.2), see [`Identifiers::Ephemeral`]. The host is asked by
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
//! their hosts.
//!
//! # Who is believed
//!
//! An identifier proves nothing by itself (RFC 6740 section 9.2), and a nonce only that somebody is who he was before. So
//! there are two kinds of sessions, which are told apart by the nonce (RFC 6741 section 5.4, RFC 6744 section 5.2):
//! - *Called*: this host called. The locators come from the configuration, the directory, or the address that was called. The peer's nonce
//!   is learned from the first packet that is of a flow of the call and comes from one of these locators (RFC 6744 section
//!   4: without the nonce, no other source is taken); from elsewhere it is dropped, and the directory asked again.
//! - *Uninvited*: the peer called, and nobody but itself says that its locators are those of its identifier. It gets answers in
//!   the flows that it began (protocol and ports), and nothing else. Whatever else goes to that identity is a call of
//!   this host's, with a nonce and locators of its own; and so is what shows by itself that it begins something (a TCP
//!   SYN, an SCTP INIT, an echo request), even between the ports of such a flow. The true node is another session, by its own
//!   nonce, and shut out from nothing but the flows that were taken before it came.
//!
//! - *Called anew*. A peer that has been started again knows neither nonce. What answers a call (a SYN with ACK, say) that was repeated because
//!   nothing was heard, in its flow, from a locator of the peer, may have another nonce: it begins a session of its own, which is that of
//!   calls from then on, with this host's nonce, which the peer has just learnt. What flows there were stay with the old one.
//!
//! Sessions last for as long as connections do that nobody ends ([`Config::idle_timeout`]), since a peer whose nonce was forgotten is
//! somebody else. In one that was quiet for five minutes something may begin anew that has another nonce: what this host says
//! first is answered, from where the peer is, as a call is that was repeated in vain; and a call of the peer's goes up, or a
//! datagram from where it is confirmed to be, into a session of its own. The old session stays beside it, and takes its flows
//! back by its nonce. Whoever forges that, off the path, has of a connection that lives what he would have with plain
//! IPv6: one packet that this host's transport refuses. Of ports without a connection he has what is sent between
//! them until the peer speaks there.
//!
//! A flow belongs to one session of an identifier; packets of it with the nonce of another are dropped. So nobody off the path,
//! who has not seen a nonce, leads a call of this host's elsewhere, or puts a packet into a flow that he did not
//! begin. What is left to him: flows of protocols without a handshake between two ports that he knows beforehand, if he is
//! the first to use them; and a call that has not been answered, if he forges its ports and the locator of the peer within the
//! first round trip. Both are as with plain IPv6; against them RFC 6740 section 9 has IPsec. While a call stays unanswered although its session was answered before, the same goes for
//! that flow: who forges the answer is the peer of the calls to come.
//!
//! When the cache is full, sessions go of which one packet was heard before those that carry on, and these before calls of
//! this host's; calls that wait for a look-up are the last. Whoever sends twice in every name that he makes up still drives
//! out sessions that peers began and that are idle. They are begun again by what the peer sends next; what this host sends next
//! begins nothing, but for datagrams: it says nothing to anybody else, and leads nowhere until the peer has spoken.
//!
//! *That a peer is where it says* nobody checks in RFC 6743: who holds a session, and so a valid nonce, can have what goes to
//! him go to the network of somebody else: as much as the transport above sends to one who acknowledges blindly. With
//! [`Config::unconfirmed_bytes`] it is no more than that, until a packet of the session comes from there: with his nonce,
//! where every packet has it. That shows something only where networks let nobody send with the addresses of others (RFC
//! 2827): a test like that of RFC 6275 section 5.2 would need a message that RFC 6743 does not have.
//!
//! RFC 6743 gives its message no sequence number. [`Config::replay_guard`] says how a replay is known by somebody
//! who has been *on* the path. He is believed if the peer has been silent for that long; what this host then sends to a
//! locator that was given up makes the peer tell again, which is believed at once. Against who is on the path now,
//! and knows both nonces, there is nothing but IPsec (RFC 6743 section 6).

mod accepted;
mod config;
mod contact;
mod correspondent;
mod counters;
mod direct;
mod flow;
mod flows;
mod fragments;
mod handover;
mod local;
mod look_ups;
mod machine;
mod mode;
mod nonce;
mod outbox;
mod parties;
mod readdress;
mod remote_locators;
mod rewriter;
mod session_key;
mod sessions;
mod signalling;
mod telling;
mod way;

pub use config::{
    ChecksumRule, Config, Handoff, Identifiers, NonceIn, NonceLength, PeerConfig, Sharing, Trigger,
};
pub use correspondent::Correspondent;
pub use counters::Counters;
pub use direct::{Direct, Past};
pub use local::{Advertised, LocalLocator, LocatorState};
pub use machine::Ilnp;
pub use mode::{Mode, Plain};
pub use remote_locators::RemoteLocator;
pub use rewriter::{LocatorMapping, Rewriter, RewriterConfig, RewriterCounters};
pub use session_key::SessionKey;

#[cfg(test)]
mod tests;
