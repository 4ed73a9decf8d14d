//! The mobility shim: what sits between a host's transports and its interfaces.
//!
//! A transport above a shim sees one address of its own, the [identity](Shim::identity), and one of each peer, and they
//! never change. The shim gives every packet on its way down the addresses, options, headers or tunnel that lead to
//! where the peer is now, and takes them off on the way up. Mobile IPv6 and ILNPv6 are its two
//! families; without one, transports use the addresses of the interfaces themselves.
//!
//! ```text
//!   transport      identity <-> identity
//!   ------------------------------------------------  outbound() | inbound()
//!   shim           care-of address or locator in use, signalling of its own: poll_transmit()
//!   ------------------------------------------------
//!   interfaces     addresses come and go: handle_address()
//! ```
//!
//! The contract is that of every machine (see [`crate::contract`]): one mutation, then the polls until they are empty.

use crate::address::AddressEvent;
use crate::contract::{InterfaceId, LinkEvent, LocalAddress, Transmit};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::Packet;
use segue_wire::ilnp::{Nid, PreferredLocator};

/// What becomes of a packet that came in.
#[derive(Clone, PartialEq, Debug)]
pub enum Inbound {
    /// It goes up: as it came, if it was none of the shim's business; with the identities as its addresses, if it was.
    Up(Packet),
    /// The shim used it up: signalling, or a packet that it dropped and counted.
    Taken,
}

/// What a shim reports.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ShimEvent {
    /// The host told somebody of a new address for the first time in this handoff: its delay (Phoomikiattisak and
    /// Bhatti 2019, section 5.4) is counted from here. Lower layers, router discovery and duplicate address detection
    /// are over by then.
    HandoffBegun {
        /// Address used so far, if there was one.
        from: Option<Ipv6Addr>,
        /// Address used from now on.
        to: Ipv6Addr,
    },
    /// Everybody who had to be told has acknowledged it.
    HandoffDone {
        /// Address in use.
        to: Ipv6Addr,
        /// Time since [`HandoffBegun`](Self::HandoffBegun).
        delay: Duration,
    },
    /// Somebody could not be told: the retransmissions are used up. For each peer or home agent, once.
    HandoffFailed {
        /// Who.
        peer: Ipv6Addr,
    },
    /// Packets to `peer` take another way from now on: by the home agent or not, to another locator.
    RouteChanged {
        /// The identity of the peer.
        peer: Ipv6Addr,
        /// Where its packets go.
        to: Ipv6Addr,
    },
    /// `peer` turned out not to speak the shim's protocol: packets to it are plain IPv6 from now on.
    FellBack {
        /// The peer.
        peer: Ipv6Addr,
    },
    /// The directory is to be told that the host is at these addresses (ILNP: its locators), for those who look it up.
    UpdateDirectory,
    /// The shim asks for this address on this interface, beside those that there are: duplicate address detection as usual,
    /// and [`AddressEvent::Ready`] when it can be used (ILNP: an ephemeral identifier).
    FormAddress(LocalAddress),
    /// The shim asks for this address on this interface, of which it is sure that no other node has it: as
    /// [`FormAddress`](Self::FormAddress), without duplicate address detection (Mobile IPv6: its home address, which the home
    /// agent defends; RFC 6275 section 11.5.5).
    AssignAddress(LocalAddress),
    /// Everybody on the link of this interface is to be told that the address is this interface's (Mobile IPv6: its home
    /// address, when the home agent no longer has its packets; RFC 6275 section 11.5.5).
    AnnounceAddress(LocalAddress),
    /// An address that was asked for by [`FormAddress`](Self::FormAddress) or [`AssignAddress`](Self::AssignAddress) is no
    /// longer needed.
    WithdrawAddress(LocalAddress),
    /// The shim needs to know where `peer` is, and asks the directory: for a first packet, or because both ends moved at
    /// once (RFC 6740 section 6.2).
    LookUp {
        /// The identity of the peer.
        peer: Ipv6Addr,
    },
}

/// A count, by name.
pub type Count = (&'static str, u64);

/// A mobility shim.
pub trait Shim {
    /// The address that transports are bound to: a home address; a canonical prefix with a node identifier.
    fn identity(&self) -> Ipv6Addr;

    /// Takes a packet that arrived over `interface`, before anything else of the host sees it.
    fn inbound(&mut self, now: Instant, interface: InterfaceId, mut packet: Packet) -> Inbound {
        if self.inbound_in_place(now, interface, &mut packet) {
            Inbound::Up(packet)
        } else {
            Inbound::Taken
        }
    }

    /// The same for a packet where it lies, which saves moving it: whether it goes up. If not, what is left of it is of no use.
    fn inbound_in_place(&mut self, now: Instant, interface: InterfaceId, packet: &mut Packet) -> bool;

    /// Gives a transport's packet its way. `None` if it was dropped (and counted), or is held back: then it comes out
    /// of [`poll_transmit`](Self::poll_transmit) when there is a way. More than one packet for one also comes out
    /// there. A packet whose source is not the identity passes as it is, over the interface that the address is on.
    fn outbound(&mut self, now: Instant, mut packet: Packet) -> Option<Transmit> {
        let interface = self.outbound_in_place(now, &mut packet)?;
        Some(Transmit { interface, packet })
    }

    /// The same for a packet where it lies: the interface that it goes over. If there is none, what is left of it is of no use.
    fn outbound_in_place(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId>;

    /// An address of an interface came or went, or a router was heard.
    fn handle_address(&mut self, now: Instant, event: &AddressEvent);

    /// A link event. The shim does not attach interfaces: the host does.
    fn handle_link(&mut self, now: Instant, event: &LinkEvent);

    /// An address of a wired interface, from the start.
    fn add_fixed_address(&mut self, now: Instant, local: LocalAddress) {
        self.handle_address(now, &AddressEvent::Ready(local));
    }

    /// The directory's answer to [`ShimEvent::LookUp`]: where `peer` is. Empty if it could not be found out.
    fn handle_found(&mut self, now: Instant, peer: Ipv6Addr, addresses: &[Ipv6Addr]);

    /// The directory's answer with preferences: lower is better. For a shim whose directory has none it is as
    /// [`handle_found`](Self::handle_found).
    fn handle_locators(&mut self, now: Instant, peer: Ipv6Addr, locators: &[PreferredLocator]) {
        let nid = Nid::of(peer);
        let addresses: Vec<Ipv6Addr> = locators.iter().map(|(l, _)| l.address(nid)).collect();
        self.handle_found(now, peer, &addresses);
    }

    /// What the directory is to have of this host, the best locator first, for a shim that has it told
    /// ([`ShimEvent::UpdateDirectory`]).
    fn directory_entry(&self) -> Option<(Nid, Vec<PreferredLocator>)> {
        None
    }

    /// Where those who ask a directory find this host, the best first: what
    /// [`ShimEvent::UpdateDirectory`] is to put there. Empty for a shim that needs none.
    fn locations(&self) -> Vec<Ipv6Addr> {
        Vec::new()
    }

    /// Works off the timers that are due.
    fn handle_timeout(&mut self, now: Instant);

    /// Signalling, and packets that were held back. Poll until `None` after every other call.
    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit>;

    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The next event. Poll until `None` after every other call.
    fn poll_event(&mut self) -> Option<ShimEvent>;

    /// Bytes by which packets to `peer` grow at most on the way down: transports make theirs smaller by so much.
    fn overhead(&self, peer: Ipv6Addr) -> u32;

    /// Whether a packet that must be sent in fragments is cut before it goes down, so that the shim gives each fragment
    /// its way. If not, the shim is given the whole packet, and what it makes of it is cut.
    fn takes_fragments(&self) -> bool {
        false
    }

    /// Everything counted, drops by their reason among it; names are stable.
    fn counters(&self) -> Vec<Count>;
}
