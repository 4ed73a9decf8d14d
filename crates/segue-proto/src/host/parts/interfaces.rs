//! The interfaces of a host: how each gets its addresses, and which cell it is in.

use crate::address::{Acquisition, AddressEvent};
use crate::contract::{CellId, InterfaceId, LinkEvent, LocalAddress, Transmit};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::Packet;

/// All of them, by number.
#[derive(Default)]
pub(in crate::host) struct Interfaces {
    list: Vec<Interface>,
    /// The cell that is to serve next, with the prefix of its link.
    planned: Option<(CellId, Ipv6Addr)>,
}

struct Interface {
    acquisition: Option<Acquisition>,
    /// Cell connected to or being attached to: kept where there is no SIGMA to do it.
    cell: Option<CellId>,
    /// Addresses that it has whenever its link is up.
    while_up: Vec<Ipv6Addr>,
    /// Cell whose link is up.
    up: Option<CellId>,
}

impl Interfaces {
    /// One that acquires its addresses, or has these whenever its link is up.
    pub fn push(&mut self, acquisition: Option<Acquisition>, while_up: Vec<Ipv6Addr>) {
        self.list.push(Interface {
            acquisition,
            cell: None,
            while_up,
            up: None,
        });
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Address acquisition of an interface that has it.
    pub fn acquisition(&self, interface: InterfaceId) -> Option<&Acquisition> {
        self.list.get(usize::from(interface.0))?.acquisition.as_ref()
    }

    fn acquiring(&mut self, interface: InterfaceId) -> Option<&mut Acquisition> {
        self.list.get_mut(usize::from(interface.0))?.acquisition.as_mut()
    }

    /// Addresses that an interface has whenever its link is up.
    pub fn while_up(&self, interface: InterfaceId) -> Vec<Ipv6Addr> {
        let wire = self.list.get(usize::from(interface.0));
        wire.map(|wire| wire.while_up.clone()).unwrap_or_default()
    }

    /// Takes a packet that is about addresses. Whether the interface acquires them.
    pub fn handle_packet(&mut self, now: Instant, interface: InterfaceId, packet: &Packet) -> bool {
        let acquisition = self.acquiring(interface);
        acquisition.map(|a| a.handle_packet(now, packet)).is_some()
    }

    /// A link comes or goes.
    pub fn handle_link(&mut self, now: Instant, event: &LinkEvent) {
        match *event {
            LinkEvent::Up { interface, cell } => {
                if let Some(acquisition) = self.acquiring(interface) {
                    acquisition.handle_link_up(now);
                }
                self.note_up(interface, Some(cell));
                self.form_planned(now);
            }
            LinkEvent::Down { interface, .. } => {
                if let Some(acquisition) = self.acquiring(interface) {
                    acquisition.handle_link_down(now);
                }
                self.note_up(interface, None);
            }
            LinkEvent::Planned { to, prefix, .. } => {
                self.planned = Some((to, prefix));
                self.form_planned(now);
            }
            _ => {}
        }
    }

    fn note_up(&mut self, interface: InterfaceId, cell: Option<CellId>) {
        if let Some(interface) = self.list.get_mut(usize::from(interface.0)) {
            interface.up = cell;
        }
    }

    /// In the cell that is to serve next a host knows its address beforehand.
    fn form_planned(&mut self, now: Instant) {
        let Some((cell, prefix)) = self.planned else {
            return;
        };
        for interface in self.list.iter_mut().filter(|i| i.up == Some(cell)) {
            if let Some(acquisition) = &mut interface.acquisition {
                acquisition.assign_address_of(now, prefix);
            }
        }
    }

    /// Without SIGMA, an idle radio attaches to the first cell it hears that no other radio is in. Gives the cell that one is
    /// to attach to.
    pub fn attach_to_first_cell(&mut self, event: &LinkEvent) -> Option<CellId> {
        let (LinkEvent::Beacon { interface, cell, .. }
        | LinkEvent::Up { interface, cell }
        | LinkEvent::Down { interface, cell }) = *event
        else {
            return None;
        };
        let taken = self.list.iter().any(|i| i.cell == Some(cell));
        let radio = self.list.get_mut(usize::from(interface.0))?;
        match event {
            LinkEvent::Up { .. } => radio.cell = Some(cell),
            LinkEvent::Down { .. } => radio.cell = radio.cell.filter(|c| *c != cell),
            _ if !taken && radio.cell.is_none() && radio.acquisition.is_some() => {
                radio.cell = Some(cell);
                return Some(cell);
            }
            _ => {}
        }
        None
    }

    /// Forms another address. Whether the interface acquires them.
    pub fn add_address(&mut self, now: Instant, local: LocalAddress) -> bool {
        let acquisition = self.acquiring(local.interface);
        acquisition.map(|a| a.add_address(now, local.address)).is_some()
    }

    /// Has another address, without duplicate address detection. Whether the interface acquires them.
    pub fn assign_address(&mut self, now: Instant, local: LocalAddress) -> bool {
        let acquisition = self.acquiring(local.interface);
        acquisition
            .map(|a| a.assign_address(now, local.address))
            .is_some()
    }

    /// Tells the link of an address.
    pub fn announce_address(&mut self, local: LocalAddress) {
        if let Some(acquisition) = self.acquiring(local.interface) {
            acquisition.announce_address(local.address);
        }
    }

    /// Gives an address up. Whether the interface acquires them.
    pub fn remove_address(&mut self, now: Instant, local: LocalAddress) -> bool {
        let acquisition = self.acquiring(local.interface);
        acquisition
            .map(|a| a.remove_address(now, local.address))
            .is_some()
    }

    /// Has other addresses in the place of those that it has acquired.
    pub fn replace_addresses(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        identifier: [u8; 8],
        keep: Option<Duration>,
    ) {
        if let Some(acquisition) = self.acquiring(interface) {
            acquisition.replace_addresses(now, identifier, keep);
        }
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        for acquisition in self.list.iter_mut().filter_map(|i| i.acquisition.as_mut()) {
            acquisition.handle_timeout(now);
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        let acquisitions = self.list.iter().filter_map(|i| i.acquisition.as_ref());
        acquisitions.filter_map(Acquisition::poll_timeout).min()
    }

    /// The next event of the interface with this number.
    pub fn poll_event(&mut self, number: usize) -> Option<AddressEvent> {
        self.list.get_mut(number)?.acquisition.as_mut()?.poll_event()
    }

    /// The next packet of the interface with this number.
    pub fn poll_transmit(&mut self, number: usize, now: Instant) -> Option<Transmit> {
        self.list
            .get_mut(number)?
            .acquisition
            .as_mut()?
            .poll_transmit(now)
    }
}
