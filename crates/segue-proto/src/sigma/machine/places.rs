//! What is known of cells and addresses.

use super::Sigma;
use crate::contract::{CellId, InterfaceId, LocalAddress};
use crate::sigma::event::MissReason;
use crate::sigma::known::{Known, Membership, Radio};
use core::net::Ipv6Addr;
use smallvec::SmallVec;

impl Sigma {
    /// The ready address in `cell`, or what it lacks.
    pub(super) fn state_of(&self, cell: CellId) -> Result<Ipv6Addr, MissReason> {
        let Some(radio) = self.radios.iter().find(|r| r.is_connected_to(cell)) else {
            return Err(MissReason::LinkNotUp);
        };
        let mut reason = MissReason::NoAddress;
        for known in self
            .known
            .iter()
            .filter(|k| k.is_usable() && k.local().interface == radio.interface())
        {
            match known.membership() {
                Membership::Member if known.is_preferred() => return Ok(known.address()),
                Membership::Refused => reason = MissReason::Refused,
                _ => reason = MissReason::NotAcknowledged,
            }
        }
        Err(reason)
    }

    /// An address that the association can be switched to.
    pub(super) fn ready_address(&self) -> Option<Ipv6Addr> {
        let ready = || {
            let others = self.known.iter().filter(|k| Some(k.address()) != self.serving);
            others.filter(|k| k.is_usable() && k.is_member())
        };
        let preferred = ready().find(|k| k.is_preferred());
        preferred.or_else(|| ready().next()).map(Known::address)
    }

    /// The cells other than the serving one, ready ones first.
    pub(super) fn candidates(&self) -> SmallVec<[CellId; 4]> {
        let serving = self.serving_cell();
        let mut cells: SmallVec<[CellId; 4]> = self
            .radios
            .iter()
            .filter_map(Radio::cell)
            .filter(|c| Some(*c) != serving)
            .collect();
        cells.sort_by_key(|c| self.state_of(*c).is_err());
        cells
    }

    /// Cell of the radio that the association is routed over, if it is connected.
    pub(super) fn serving_cell(&self) -> Option<CellId> {
        let known = &self.known[self.index_of(self.serving?)?];
        self.cell_of(known.local().interface)
    }

    pub(super) fn cell_of(&self, interface: InterfaceId) -> Option<CellId> {
        self.radios.iter().find(|r| r.interface() == interface)?.cell()
    }

    /// The number of an interface among the radios.
    pub(super) fn number_of(&self, interface: InterfaceId) -> Option<usize> {
        self.radios.iter().position(|r| r.interface() == interface)
    }

    pub(super) fn index_of(&self, address: Ipv6Addr) -> Option<usize> {
        self.known.iter().position(|k| k.address() == address)
    }

    /// Whether the address that the association is routed over can be used.
    #[must_use]
    pub fn can_be_reached(&self) -> bool {
        self.serving.is_some_and(|address| self.is_usable(address))
    }

    pub(super) fn is_usable(&self, address: Ipv6Addr) -> bool {
        self.known.iter().any(|k| k.address() == address && k.is_usable())
    }

    pub(super) fn is_preferred(&self, address: Ipv6Addr) -> bool {
        self.known
            .iter()
            .any(|k| k.address() == address && k.is_preferred())
    }

    /// The index of an address, which becomes known if it was not; one on a wire is usable from the start.
    pub(super) fn know(&mut self, local: LocalAddress) -> usize {
        if let Some(index) = self.index_of(local.address) {
            return index;
        }
        let usable = !self.radios.iter().any(|r| r.interface() == local.interface);
        self.known.push(Known::new(local, usable));
        self.known.len() - 1
    }
}
