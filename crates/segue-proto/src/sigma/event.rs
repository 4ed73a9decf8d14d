//! What SIGMA asks for, and the trail it leaves.

use crate::contract::{CellId, InterfaceId, LocalAddress};
use crate::sctp::AddressChange;
use crate::time::Instant;
use core::fmt;
use core::net::Ipv6Addr;

/// What is to be done by the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Have layer 2 attach `interface` to `cell`: the start of step 1.
    StartAttach {
        /// Interface.
        interface: InterfaceId,
        /// Cell.
        cell: CellId,
    },
    /// Ask the peer to add this address: step 2.
    AddAddress(LocalAddress),
    /// Ask the peer to make `address` primary: step 3.
    SetPrimary {
        /// Address.
        address: Ipv6Addr,
    },
    /// Send from `address` from now on: the other half of step 3.
    SetRoute {
        /// Address.
        address: Ipv6Addr,
    },
    /// Tell the location manager: step 4.
    UpdateLocation {
        /// Address at which the host can be reached now.
        address: Ipv6Addr,
    },
    /// Ask the peer to delete this address: step 5.
    DeleteAddress {
        /// Address.
        address: Ipv6Addr,
    },
    /// Ask the peer to send nothing to this address for now: step 5, gently.
    DeactivateAddress {
        /// Address.
        address: Ipv6Addr,
    },
    /// Ask the peer for several things in one ASCONF.
    Change(Changes),
    /// No interface has this address of the association any more.
    AddressGone {
        /// Address.
        address: Ipv6Addr,
    },
    /// An interface has an address again that was gone.
    AddressBack(LocalAddress),
}

/// Changes that go in one ASCONF, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Changes([Option<AddressChange>; 4]);

impl Changes {
    /// Appends one; what does not fit is left out.
    pub(super) fn push(&mut self, change: AddressChange) {
        if let Some(free) = self.0.iter_mut().find(|c| c.is_none()) {
            *free = Some(change);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    /// Number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The changes.
    pub fn iter(&self) -> impl Iterator<Item = AddressChange> + '_ {
        self.0.iter().copied().flatten()
    }
}

/// Why a decision could not be carried out at its moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissReason {
    /// Layer 2 is not connected to the new cell yet.
    LinkNotUp,
    /// There is no address yet: step 1 goes on.
    NoAddress,
    /// The peer has not acknowledged the address yet: step 2 goes on.
    NotAcknowledged,
    /// The peer refused the address.
    Refused,
}

/// An entry of the trail: the signalling sequence of a handover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SigmaEvent {
    /// When.
    pub time: Instant,
    /// What.
    pub kind: SigmaEventKind,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SigmaEventKind {
    /// Step 1 begins: a new cell was detected and layer 2 attaches to it.
    ObtainStarted {
        /// Interface.
        interface: InterfaceId,
        /// Cell.
        cell: CellId,
    },
    /// Layer 2 is connected: router advertisements can be heard.
    LinkUp {
        /// Interface.
        interface: InterfaceId,
        /// Cell.
        cell: CellId,
    },
    /// Layer 2 noticed the loss of its connection.
    LinkDown {
        /// Interface.
        interface: InterfaceId,
        /// Cell.
        cell: CellId,
    },
    /// Step 1 ends: an address is usable.
    Obtained(LocalAddress),
    /// Step 2: Add IP Address was handed to SCTP.
    AddSent(Ipv6Addr),
    /// Step 2 ends: the peer acknowledged the address.
    AddAcknowledged(Ipv6Addr),
    /// Step 2 failed: the peer refused the address.
    AddRefused(Ipv6Addr),
    /// The policy decided that this is the moment to switch.
    DecisionPoint {
        /// Cell in use.
        from: CellId,
        /// Cell to switch to.
        to: CellId,
    },
    /// The decision found the new address not ready.
    Missed {
        /// Cell to switch to.
        to: CellId,
        /// Why.
        reason: MissReason,
    },
    /// The policy took back a decision that had not been carried out.
    Retracted {
        /// Cell that is not switched to after all.
        to: CellId,
    },
    /// Step 3: Set Primary Address was handed to SCTP.
    SetPrimarySent(Ipv6Addr),
    /// Step 3: the mobile host's own packets leave from this address now.
    RouteChanged(Ipv6Addr),
    /// Step 3 ends: the peer acknowledged the primary address.
    SetPrimaryAcknowledged(Ipv6Addr),
    /// Step 3 failed: the peer refused.
    SetPrimaryRefused(Ipv6Addr),
    /// Step 4: the location manager is told.
    LocationUpdated(Ipv6Addr),
    /// Step 5: Delete IP Address was handed to SCTP.
    DeleteSent(Ipv6Addr),
    /// Step 5 ends: the peer acknowledged the deletion.
    DeleteAcknowledged(Ipv6Addr),
    /// Step 5 failed: the peer refused.
    DeleteRefused(Ipv6Addr),
    /// Step 5, gently: Deactivate Address was handed to SCTP.
    DeactivateSent(Ipv6Addr),
    /// Step 5 ends: the peer acknowledged the deactivation.
    DeactivateAcknowledged(Ipv6Addr),
    /// Step 5 failed: the peer refused.
    DeactivateRefused(Ipv6Addr),
    /// An address that the peer still knows is usable again: steps 1 and 2 are not needed.
    Reused(Ipv6Addr),
    /// Step 3 of a deactivated address: Activate Address was handed to SCTP, with Set Primary Address.
    ActivateSent(Ipv6Addr),
    /// The peer acknowledged the activation.
    ActivateAcknowledged(Ipv6Addr),
    /// The peer refused it.
    ActivateRefused(Ipv6Addr),
}

impl SigmaEventKind {
    /// Number of the step that this belongs to, if it is a part of one.
    #[must_use]
    pub fn step(&self) -> Option<u8> {
        Some(match self {
            Self::ObtainStarted { .. } | Self::LinkUp { .. } | Self::Obtained(_) => 1,
            Self::AddSent(_) | Self::AddAcknowledged(_) | Self::AddRefused(_) | Self::Reused(_) => 2,
            Self::SetPrimarySent(_)
            | Self::RouteChanged(_)
            | Self::SetPrimaryAcknowledged(_)
            | Self::SetPrimaryRefused(_)
            | Self::ActivateSent(_)
            | Self::ActivateAcknowledged(_)
            | Self::ActivateRefused(_) => 3,
            Self::LocationUpdated(_) => 4,
            Self::DeleteSent(_)
            | Self::DeleteAcknowledged(_)
            | Self::DeleteRefused(_)
            | Self::DeactivateSent(_)
            | Self::DeactivateAcknowledged(_)
            | Self::DeactivateRefused(_) => 5,
            Self::LinkDown { .. }
            | Self::DecisionPoint { .. }
            | Self::Missed { .. }
            | Self::Retracted { .. } => {
                return None;
            }
        })
    }

    /// A stable name for tables and logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ObtainStarted { .. } => "obtain-started",
            Self::LinkUp { .. } => "link-up",
            Self::LinkDown { .. } => "link-down",
            Self::Obtained(_) => "obtained",
            Self::AddSent(_) => "add-sent",
            Self::AddAcknowledged(_) => "add-acknowledged",
            Self::AddRefused(_) => "add-refused",
            Self::DecisionPoint { .. } => "decision-point",
            Self::Missed { .. } => "missed",
            Self::Retracted { .. } => "retracted",
            Self::SetPrimarySent(_) => "set-primary-sent",
            Self::RouteChanged(_) => "route-changed",
            Self::SetPrimaryAcknowledged(_) => "set-primary-acknowledged",
            Self::SetPrimaryRefused(_) => "set-primary-refused",
            Self::LocationUpdated(_) => "location-updated",
            Self::DeleteSent(_) => "delete-sent",
            Self::DeleteAcknowledged(_) => "delete-acknowledged",
            Self::DeleteRefused(_) => "delete-refused",
            Self::DeactivateSent(_) => "deactivate-sent",
            Self::DeactivateAcknowledged(_) => "deactivate-acknowledged",
            Self::DeactivateRefused(_) => "deactivate-refused",
            Self::Reused(_) => "address-reused",
            Self::ActivateSent(_) => "activate-sent",
            Self::ActivateAcknowledged(_) => "activate-acknowledged",
            Self::ActivateRefused(_) => "activate-refused",
        }
    }

    /// The address that this is about, if there is one.
    #[must_use]
    pub fn address(&self) -> Option<Ipv6Addr> {
        match self {
            Self::Obtained(local) => Some(local.address),
            Self::AddSent(a)
            | Self::AddAcknowledged(a)
            | Self::AddRefused(a)
            | Self::SetPrimarySent(a)
            | Self::RouteChanged(a)
            | Self::SetPrimaryAcknowledged(a)
            | Self::SetPrimaryRefused(a)
            | Self::LocationUpdated(a)
            | Self::DeleteSent(a)
            | Self::DeleteAcknowledged(a)
            | Self::DeleteRefused(a)
            | Self::DeactivateSent(a)
            | Self::DeactivateAcknowledged(a)
            | Self::DeactivateRefused(a)
            | Self::Reused(a)
            | Self::ActivateSent(a)
            | Self::ActivateAcknowledged(a)
            | Self::ActivateRefused(a) => Some(*a),
            _ => None,
        }
    }
}

impl fmt::Display for SigmaEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.time, self.kind.name())?;
        match &self.kind {
            SigmaEventKind::ObtainStarted { cell, .. }
            | SigmaEventKind::LinkUp { cell, .. }
            | SigmaEventKind::LinkDown { cell, .. } => write!(f, " cell {}", cell.0),
            SigmaEventKind::DecisionPoint { from, to } => write!(f, " cell {} to {}", from.0, to.0),
            SigmaEventKind::Missed { to, reason } => write!(f, " cell {}: {reason:?}", to.0),
            SigmaEventKind::Retracted { to } => write!(f, " cell {}", to.0),
            kind => kind.address().map_or(Ok(()), |a| write!(f, " {a}")),
        }
    }
}
