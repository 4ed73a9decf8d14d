//! What SIGMA knows of its radios and addresses, each by itself.

use crate::contract::{CellId, InterfaceId, LocalAddress};
use core::net::Ipv6Addr;

/// A radio, and the cell that it is in.
#[derive(Clone, Debug)]
pub(super) struct Radio {
    interface: InterfaceId,
    link: Link,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Link {
    Idle,
    Attaching(CellId),
    Up(CellId),
}

impl Radio {
    /// A radio that is in no cell.
    pub fn new(interface: InterfaceId) -> Self {
        Self {
            interface,
            link: Link::Idle,
        }
    }

    pub fn interface(&self) -> InterfaceId {
        self.interface
    }

    /// Cell connected to or being attached to.
    pub fn cell(&self) -> Option<CellId> {
        match self.link {
            Link::Idle => None,
            Link::Attaching(cell) | Link::Up(cell) => Some(cell),
        }
    }

    /// Whether it is connected to this cell.
    pub fn is_connected_to(&self, cell: CellId) -> bool {
        self.link == Link::Up(cell)
    }

    /// Attaches to a cell, if it is in none. Whether it does.
    pub fn attach(&mut self, cell: CellId) -> bool {
        let idle = self.link == Link::Idle;
        if idle {
            self.link = Link::Attaching(cell);
        }
        idle
    }

    /// It is connected.
    pub fn on_up(&mut self, cell: CellId) {
        self.link = Link::Up(cell);
    }

    /// It has lost this cell. Whether that was the one that it was in.
    pub fn on_down(&mut self, cell: CellId) -> bool {
        let lost = self.cell() == Some(cell);
        if lost {
            self.link = Link::Idle;
        }
        lost
    }
}

/// An address that the host has, or that the peer knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    local: LocalAddress,
    /// The host can send from it and receive at it.
    usable: bool,
    /// To be deleted, or deactivated.
    obsolete: bool,
    /// The host has gone over to another since it has had this one: obsolete once that has been so for long enough.
    left: bool,
    /// The peer was told to leave it alone.
    deactivated: bool,
    /// Its valid lifetime is over, or there is no more room for it: to be deleted, whatever else is configured.
    expired: bool,
    /// SCTP was told that no interface has it.
    gone: bool,
    /// It is not to be used where there is another.
    deprecated: bool,
    membership: Membership,
}

/// What an address is to the association.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Membership {
    /// No part of it.
    Absent,
    /// Deleted although it could still be used: added again only when it is decided for.
    Retired,
    /// Add IP Address is unanswered.
    Adding,
    /// Part of it.
    Member,
    /// The peer does not want it.
    Refused,
    /// Delete IP Address is unanswered.
    Deleting,
}

impl Membership {
    /// Whether the peer has it, or may have.
    fn is_part(self) -> bool {
        matches!(self, Self::Adding | Self::Member | Self::Deleting)
    }
}

impl Known {
    /// An address that is no part of the association yet.
    pub fn new(local: LocalAddress, usable: bool) -> Self {
        Self {
            local,
            usable,
            obsolete: !usable,
            left: false,
            deactivated: false,
            expired: false,
            gone: false,
            deprecated: false,
            membership: Membership::Absent,
        }
    }

    pub fn local(&self) -> LocalAddress {
        self.local
    }

    pub fn address(&self) -> Ipv6Addr {
        self.local.address
    }

    pub fn membership(&self) -> Membership {
        self.membership
    }

    pub fn is_member(&self) -> bool {
        self.membership == Membership::Member
    }

    /// The host can send from it and receive at it.
    pub fn is_usable(&self) -> bool {
        self.usable
    }

    /// The host can send from it and receive at it, and may go on doing so.
    pub fn is_preferred(&self) -> bool {
        self.usable && !self.deprecated
    }

    /// A member that is to be deleted, or deactivated.
    pub fn is_to_be_deleted(&self) -> bool {
        self.obsolete && self.is_member()
    }

    /// To be deleted, whatever else is configured.
    pub fn is_expired(&self) -> bool {
        self.expired
    }

    /// Whether neither the host nor the peer has it.
    pub fn is_forgotten(&self) -> bool {
        !self.usable && !self.membership.is_part()
    }

    /// Whether it is one of those that the peer keeps although the host has it no more.
    pub fn is_kept(&self) -> bool {
        self.is_to_be_deleted() && !self.usable && !self.expired
    }

    /// The host has it. Whether SCTP had been told that it is gone.
    pub fn on_ready(&mut self, local: LocalAddress) -> bool {
        self.usable = true;
        self.obsolete = false;
        self.left = false;
        self.expired = false;
        self.deprecated = false;
        self.local = local;
        core::mem::take(&mut self.gone)
    }

    /// It is to be left for another.
    pub fn on_deprecated(&mut self) {
        self.deprecated = true;
        self.obsolete = true;
    }

    /// The host can no longer use it.
    pub fn on_lost(&mut self) {
        self.usable = false;
        self.obsolete = true;
    }

    /// It is no longer the host's, on whatever link.
    pub fn on_expired(&mut self) {
        self.on_lost();
        self.expired = true;
    }

    /// There is no more room for it.
    pub fn give_up(&mut self) {
        self.expired = true;
    }

    /// The host has gone over to `serving`, this address or another.
    pub fn on_switched(&mut self, serving: Option<Ipv6Addr>) {
        self.left = Some(self.address()) != serving;
    }

    /// It is obsolete, if the host has been elsewhere for long enough.
    pub fn on_delete_timer(&mut self) {
        self.obsolete |= core::mem::take(&mut self.left);
    }

    /// It is left behind.
    pub fn leave_behind(&mut self) {
        self.obsolete = true;
    }

    /// SCTP is to be told that no interface has it, if that is so and it does not know. Whether it is.
    pub fn take_gone(&mut self) -> bool {
        let gone = self.membership.is_part() && !self.usable && !self.gone;
        self.gone |= gone;
        gone
    }

    /// The association is gone: what it left behind is none of another's business.
    pub fn on_closed(&mut self) {
        self.membership = Membership::Absent;
        self.obsolete = self.deprecated || !self.usable;
        self.deactivated = false;
        self.gone = false;
    }

    /// The peer is asked to add it.
    pub fn add(&mut self) {
        self.membership = Membership::Adding;
    }

    /// It is part of the association.
    pub fn on_added(&mut self) {
        self.membership = Membership::Member;
    }

    /// The peer does not want it.
    pub fn on_refused(&mut self) {
        self.membership = Membership::Refused;
    }

    /// The peer is asked to leave it alone. Whether it was not before.
    pub fn deactivate(&mut self) -> bool {
        !core::mem::replace(&mut self.deactivated, true)
    }

    /// The peer is asked to use it again. Whether it had been asked not to.
    pub fn activate(&mut self) -> bool {
        core::mem::take(&mut self.deactivated)
    }

    /// The peer does not leave it alone. It is not asked again before the next reason to.
    pub fn on_deactivation_refused(&mut self) {
        self.deactivated = false;
        self.obsolete = false;
    }

    /// The peer is asked to delete it.
    pub fn delete(&mut self) {
        self.membership = Membership::Deleting;
    }

    /// The peer has deleted it.
    pub fn on_deleted(&mut self) {
        self.deactivated = false;
        self.membership = if self.obsolete {
            Membership::Retired
        } else {
            Membership::Absent
        };
    }

    /// The peer keeps it. It is not asked again before the next reason to.
    pub fn on_delete_refused(&mut self) {
        self.membership = Membership::Member;
        self.obsolete = false;
    }
}
