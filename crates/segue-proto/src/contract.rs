//! The contract of every machine.
//!
//! - in: `handle_packet(now, iface, packet)`, `handle_link(now, LinkEvent)`, `handle_timeout(now)`, and commands;
//! - out: `poll_transmit(now) -> Option<Transmit>`, `poll_timeout() -> Option<Instant>`, `poll_event() -> Option<Event>`.
//!
//! Transports and hosts have `poll_transmit_into(now, &mut packet)` beside `poll_transmit`: the same, with the packet written
//! where the driver wants it.
//!
//! One mutation, then the driver drains the three polls until they are empty: first `poll_transmit` and `poll_event`,
//! in any order, until both return `None`, then `poll_timeout` once. `now` never goes back. A timeout handled early
//! does nothing; a machine whose `poll_timeout` is at or before `now` must be given `handle_timeout(now)`.

use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::Packet;

/// An interface of a host, numbered from 0 in the order in which the host's configuration lists them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct InterfaceId(pub u8);

/// A radio cell or wired segment, as link-layer beacons name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CellId(pub u16);

/// A packet to be sent: the interface is named here, the source address by the packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Interface to send on.
    pub interface: InterfaceId,
    /// The packet, which names its own source address.
    pub packet: Packet,
}

#[cfg(any(feature = "sctp", feature = "tcp"))]
impl Transmit {
    /// Writes the packet to where it is wanted.
    #[inline]
    pub(crate) fn write_to(self, packet: &mut Packet) -> Departure {
        *packet = self.packet;
        self.interface.into()
    }
}

/// A packet to be sent that is written to where its driver wants it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// Interface to send on.
    pub interface: InterfaceId,
    /// Since when the association or connection that the packet is of has always had data of its application to send or to
    /// have acknowledged; of a datagram, since when its application has had it. Nothing where that is not known.
    pub busy_since: Option<Instant>,
}

impl From<InterfaceId> for Departure {
    fn from(interface: InterfaceId) -> Self {
        Self {
            interface,
            busy_since: None,
        }
    }
}

/// What a link tells its host; the names are those of IEEE 802.21 where it has one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LinkEvent {
    /// A beacon of `cell` was heard with `signal_dbm` by this interface, associated with it or not (Link_Detected and
    /// Link_Parameters_Report).
    Beacon {
        /// Interface that heard it.
        interface: InterfaceId,
        /// Cell that sent it.
        cell: CellId,
        /// Received signal strength, dBm.
        signal_dbm: f64,
    },
    /// Layer 2 is connected to `cell` (Link_Up).
    Up {
        /// Interface.
        interface: InterfaceId,
        /// Cell.
        cell: CellId,
    },
    /// Layer 2 noticed that its connection is gone (Link_Down).
    Down {
        /// Interface.
        interface: InterfaceId,
        /// Cell it was connected to.
        cell: CellId,
    },
    /// The connection will be lost after about `after` (Link_Going_Down). In the simulator it is worked out from the
    /// trajectory: a perfect predictor.
    GoingDown {
        /// Interface.
        interface: InterfaceId,
        /// Cell that will be lost.
        cell: CellId,
        /// Time left.
        after: Duration,
    },
    /// A positioning service reports how far the host has come across the overlap from the cell of `from` to the
    /// cell of `to`: 0 at its near border, 1 at its far border. Sent when the fraction that the policy asked for is
    /// passed.
    Overlap {
        /// Cell being left.
        from: CellId,
        /// Cell being entered.
        to: CellId,
        /// Fraction of the overlap, 0..=1.
        fraction: f64,
    },
    /// The network has told its plan (compare Link_Handover_Imminent): `to` serves in the place of `from` in `after`, and an
    /// address of `prefix`, a /64, is the host's there, so that it need not wait for an advertisement nor look for duplicates.
    Planned {
        /// Cell that serves until then.
        from: CellId,
        /// Cell that serves from then on.
        to: CellId,
        /// Prefix of its link.
        prefix: Ipv6Addr,
        /// Time left.
        after: Duration,
    },
}

/// An address of this host, bound to an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalAddress {
    /// Interface it belongs to.
    pub interface: InterfaceId,
    /// The address.
    pub address: Ipv6Addr,
}
