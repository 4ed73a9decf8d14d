//! What SIGMA knows: radios, cells, addresses.

use super::event::MissReason;
use super::machine::Sigma;
use crate::contract::{CellId, InterfaceId, LocalAddress};
use core::net::Ipv6Addr;
use smallvec::SmallVec;

#[derive(Debug)]
pub(super) struct Radio {
    pub interface: InterfaceId,
    /// Cell connected to or being attached to.
    pub cell: Option<CellId>,
    pub up: bool,
}

/// An address that the host has, or that the peer knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub local: LocalAddress,
    /// The host can send from it and receive at it.
    pub usable: bool,
    /// To be deleted, or deactivated.
    pub obsolete: bool,
    /// The peer was told to leave it alone.
    pub deactivated: bool,
    /// Its valid lifetime is over, or there is no more room for it: to be deleted, whatever else is configured.
    pub expired: bool,
    /// SCTP was told that no interface has it.
    pub gone: bool,
    pub membership: Membership,
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

#[derive(Clone, Copy, Debug)]
pub(super) struct Primary {
    pub address: Ipv6Addr,
    /// The route moved with it.
    pub routed: bool,
}

impl Sigma {
    /// The ready address in `cell`, or what it lacks.
    pub(super) fn state_of(&self, cell: CellId) -> Result<Ipv6Addr, MissReason> {
        let Some(radio) = self.radios.iter().find(|r| r.cell == Some(cell) && r.up) else {
            return Err(MissReason::LinkNotUp);
        };
        let mut reason = MissReason::NoAddress;
        for known in self
            .known
            .iter()
            .filter(|k| k.usable && k.local.interface == radio.interface)
        {
            match known.membership {
                Membership::Member => return Ok(known.local.address),
                Membership::Refused => reason = MissReason::Refused,
                _ => reason = MissReason::NotAcknowledged,
            }
        }
        Err(reason)
    }

    /// An address that the association can be switched to.
    pub(super) fn ready_address(&self) -> Option<Ipv6Addr> {
        let ready = self.known.iter().find(|k| {
            k.usable && k.membership == Membership::Member && Some(k.local.address) != self.serving
        });
        ready.map(|k| k.local.address)
    }

    /// The cells other than the serving one, ready ones first.
    pub(super) fn candidates(&self) -> SmallVec<[CellId; 4]> {
        let serving = self.serving_cell();
        let mut cells: SmallVec<[CellId; 4]> = self
            .radios
            .iter()
            .filter_map(|r| r.cell)
            .filter(|c| Some(*c) != serving)
            .collect();
        cells.sort_by_key(|c| self.state_of(*c).is_err());
        cells
    }

    /// Cell of the radio that the association is routed over, if it is connected.
    pub(super) fn serving_cell(&self) -> Option<CellId> {
        let known = &self.known[self.index_of(self.serving?)?];
        self.cell_of(known.local.interface)
    }

    pub(super) fn cell_of(&self, interface: InterfaceId) -> Option<CellId> {
        self.radios.iter().find(|r| r.interface == interface)?.cell
    }

    pub(super) fn radio_mut(&mut self, interface: InterfaceId) -> Option<&mut Radio> {
        self.radios.iter_mut().find(|r| r.interface == interface)
    }

    pub(super) fn index_of(&self, address: Ipv6Addr) -> Option<usize> {
        self.known.iter().position(|k| k.local.address == address)
    }

    pub(super) fn is_usable(&self, address: Ipv6Addr) -> bool {
        self.known.iter().any(|k| k.local.address == address && k.usable)
    }

    /// The index of an address, which becomes known if it was not; one on a wire is usable from the start.
    pub(super) fn know(&mut self, local: LocalAddress) -> usize {
        if let Some(index) = self.index_of(local.address) {
            return index;
        }
        let usable = !self.radios.iter().any(|r| r.interface == local.interface);
        self.known.push(Known {
            local,
            usable,
            obsolete: !usable,
            deactivated: false,
            expired: false,
            gone: false,
            membership: Membership::Absent,
        });
        self.known.len() - 1
    }
}
