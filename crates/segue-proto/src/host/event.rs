//! What a host tells its driver.

use crate::app;
use crate::contract::{CellId, InterfaceId, LocalAddress};
use crate::location::ClientEvent;
use crate::sctp::{AssociationId, Event};
use crate::shim::ShimEvent;
use crate::sigma::SigmaEvent;
use crate::tcp::ConnectionId;
use core::net::Ipv6Addr;

/// What a host tells its driver.
#[derive(Clone, PartialEq, Debug)]
pub enum HostEvent {
    /// Layer 2 is to attach `interface` to `cell`: a command to the driver.
    Attach {
        /// Interface.
        interface: InterfaceId,
        /// Cell.
        cell: CellId,
    },
    /// An address can be used from now on.
    AddressReady(LocalAddress),
    /// An address can no longer be used.
    AddressLost(LocalAddress),
    /// An address is for what already uses it (RFC 4862 section 5.5.4).
    AddressDeprecated(LocalAddress),
    /// Duplicate address detection found the address taken.
    AddressRefused(LocalAddress),
    /// The location manager is to be told that the host is at this address: step 4. Its client does so, where there
    /// is one.
    UpdateLocation(Ipv6Addr),
    /// The location client reports.
    Location(ClientEvent),
    /// The trail of a handover, of a host's first association.
    Sigma(SigmaEvent),
    /// The trail of a handover of this association: of every one that the host has, the first among them.
    SigmaOf(AssociationId, SigmaEvent),
    /// The shim reports.
    Shim(ShimEvent),
    /// A notification of an association; `Readable`, `Writable` and `SendersDry` stay inside the host.
    Sctp(AssociationId, Event),
    /// A notification of a TCP connection; `Readable`, `Writable` and `SendersDry` stay inside the host.
    Tcp(ConnectionId, crate::tcp::Event),
    /// An application reports.
    App {
        /// Its number, see [`Host::application`](super::Host::application).
        application: usize,
        /// What it reports.
        event: app::AppEvent,
    },
}

/// Packets and commands that came to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostCounters {
    /// Packets to an address that is not this host's.
    pub not_for_us: u64,
    /// Packets of the kernel's from an address that cannot be used.
    pub not_from_us: u64,
    /// Packets with a payload that nothing here takes, or with an extension header that says to discard them.
    pub not_understood: u64,
    /// Associations accepted although no application listens for more.
    pub without_application: u64,
    /// Packets sent in fragments.
    pub fragmented: u64,
    /// Packets put together from fragments that arrived.
    pub reassembled: u64,
    /// Commands of SIGMA that SCTP did not take.
    pub commands_refused: u64,
    /// Times that the parts did not come to rest within the bound: a bug of this program.
    pub restless: u64,
}
