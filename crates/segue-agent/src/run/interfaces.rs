//! The interfaces of the list: which are there and up, what is open on them, and the packets that come and go by them.

use crate::kernel::{Guard, NextHops, Port};
use anyhow::Context as _;
use bytes::Bytes;
use nix::net::if_::if_nametoindex;
use segue_agent::fast_path::Leaves;
use segue_agent::locators::Held;
use segue_live::{AddressWatch, Buffers, CarrierWatch, HostAddress, Offload, Select};
use segue_proto::contract::Transmit;
use segue_proto::{Duration, Instant, InterfaceId};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd as _, BorrowedFd};
use tracing::{info, warn};

/// An interface that cannot be opened or guarded is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// An interface of the list.
struct Slot {
    name: String,
    port: Option<Port>,
    /// Nothing was heard of it yet, or it is not there.
    up: bool,
}

/// The interfaces of the list, by their place there.
pub(super) struct Interfaces {
    slots: Vec<Slot>,
    /// Which packets that arrive are the agent's.
    selected: Vec<Select>,
    guard: Guard,
    addresses: AddressWatch,
    carriers: CarrierWatch,
    /// Interfaces of the machine by number: up and with a carrier, or not.
    carrier: BTreeMap<u32, bool>,
    hops: NextHops,
    retry_at: Option<Instant>,
    /// Opened since somebody asked.
    opened: Vec<usize>,
    /// For the headers of a packet.
    head: Vec<u8>,
}

/// What can be read of what belongs to the interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Readable {
    /// Addresses or carriers have changed.
    Network,
    /// Routes or neighbours have.
    Neighbors,
    /// There are packets at the interface of this place.
    Port(usize),
}

impl Interfaces {
    /// None of them is open yet. `addresses` has said what the kernel holds; `device` is the number of the TUN device; `guard`
    /// is the name of what keeps the agent's packets from the kernel.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn new(
        names: Vec<String>,
        addresses: AddressWatch,
        device: u32,
        guard: &str,
        selected: Vec<Select>,
    ) -> anyhow::Result<Self> {
        let slots = names.into_iter().map(|name| Slot {
            name,
            port: None,
            up: false,
        });
        Ok(Self {
            slots: slots.collect(),
            selected,
            guard: Guard::new(guard).context("nftables")?,
            addresses,
            carriers: CarrierWatch::new(None).context("interfaces of this machine")?,
            carrier: BTreeMap::new(),
            hops: NextHops::new(device).context("routes and neighbours")?,
            retry_at: None,
            opened: Vec::new(),
            head: Vec::new(),
        })
    }

    /// How many the list has.
    pub const fn count(&self) -> usize {
        self.slots.len()
    }

    /// The name of the one at a place.
    pub fn name(&self, number: usize) -> &str {
        &self.slots[number].name
    }

    /// Their names, in the order of the list.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().map(|slot| slot.name.as_str())
    }

    /// Whether the machine has the one at a place.
    pub fn is_there(&self, number: usize) -> bool {
        self.slots[number].port.is_some()
    }

    /// Whether it is up and has a carrier.
    pub fn is_up(&self, number: usize) -> bool {
        self.slots[number].up
    }

    /// Whether the interface of a number in the kernel is up and has a carrier, as far as that has been heard.
    pub fn has_carrier(&self, index: u32) -> Option<bool> {
        self.carrier.get(&index).copied()
    }

    /// The addresses that the kernel holds on the interface of a number.
    pub fn addresses_of(&self, index: u32) -> Vec<Ipv6Addr> {
        let all = self.addresses.addresses().iter();
        all.filter(|a| a.interface_index == index)
            .map(|a| a.address)
            .collect()
    }

    /// Its number in the kernel, if it is there.
    pub fn index_of(&self, interface: InterfaceId) -> Option<u32> {
        let slot = self.slots.get(usize::from(interface.0))?;
        if_nametoindex(slot.name.as_str()).ok()
    }

    /// The number in the kernel of the interface at a place, as it was when it was opened.
    pub fn port_index(&self, number: usize) -> Option<u32> {
        self.slots.get(number)?.port.as_ref().map(Port::index)
    }

    /// Where packets to an address leave, if the way is known that the last one took.
    pub fn leaves_by(&self, interface: InterfaceId, destination: Ipv6Addr) -> Option<Leaves> {
        let index = self.port_index(usize::from(interface.0))?;
        let next_hop = self.hops.next_hop(index, destination)?;
        Some(Leaves { index, next_hop })
    }

    /// The same, if the kernel has to be asked.
    pub fn leaves_again(&mut self, interface: InterfaceId, destination: Ipv6Addr) -> Option<Leaves> {
        let index = self.port_index(usize::from(interface.0))?;
        let next_hop = self.hops.next_hop_again(index, destination)?;
        Some(Leaves { index, next_hop })
    }

    /// Packets that each did not take.
    pub fn refused(&self) -> impl Iterator<Item = (&str, u64)> {
        let refused = |slot: &Slot| slot.port.as_ref().map_or(0, Port::refused);
        self.slots
            .iter()
            .map(move |slot| (slot.name.as_str(), refused(slot)))
    }

    /// Reads what was said of interfaces and addresses, and opens what is there or forgets what is not.
    ///
    /// # Errors
    /// As the kernel has them; an interface that cannot be opened is tried again.
    pub fn take_changes(&mut self, now: Instant) -> anyhow::Result<()> {
        for change in self.carriers.changes().context("interfaces of this machine")? {
            self.carrier.insert(change.index, change.up);
        }
        self.addresses.changes().context("addresses of this machine")?;
        self.retry_at = None;
        for number in 0..self.slots.len() {
            if let Err(error) = self.open(number) {
                warn!(interface = self.name(number), %error, "cannot be used");
                self.retry_at = Some(now + RETRY_AFTER);
            }
        }
        Ok(())
    }

    /// Whether routes or neighbours have changed so that another interface may lead on.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn take_ways(&mut self) -> anyhow::Result<bool> {
        self.hops.take_changes().context("routes and neighbours")
    }

    /// The addresses that the kernel holds there.
    pub fn held(&self) -> Vec<Held> {
        let names: Vec<&str> = self.names().collect();
        held(&self.addresses, &names)
    }

    /// From now on these packets are the agent's. An interface where that fails is opened again.
    pub fn select(&mut self, now: Instant, selected: Vec<Select>) {
        if selected == self.selected {
            return;
        }
        self.selected = selected;
        for slot in &mut self.slots {
            let Some(port) = &slot.port else { continue };
            // what is kept from the kernel is the agent's by then
            let done = port
                .select(&self.selected)
                .and_then(|()| self.guard.watch(&slot.name, &self.selected));
            if let Err(error) = done {
                warn!(interface = slot.name, %error, "opened again");
                slot.port = None;
                self.retry_at = Some(now + RETRY_AFTER);
            }
        }
    }

    /// Those of these that lead on to the world, or these if none does: an address is there before its router is heard again.
    pub fn leading_on(&mut self, usable: Vec<bool>) -> Vec<bool> {
        let hops = &mut self.hops;
        let leads = |(slot, usable): (&Slot, &bool)| {
            *usable && slot.port.as_ref().is_some_and(|port| hops.leads_on(port.index()))
        };
        let lead_on: Vec<bool> = self.slots.iter().zip(&usable).map(leads).collect();
        if lead_on.contains(&true) { lead_on } else { usable }
    }

    /// Receives a packet by the interface at a place into one of `buffers`; `None` if there is none. Never waits.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn receive(&self, number: usize, buffers: &mut Buffers) -> anyhow::Result<Option<(Offload, Bytes)>> {
        let slot = &self.slots[number];
        let Some(port) = &slot.port else { return Ok(None) };
        port.receive(buffers)
            .with_context(|| format!("interface {}", slot.name))
    }

    /// Sends a packet by its interface, if that is there.
    ///
    /// # Errors
    /// As the kernel has them, but for an interface or a queue that takes none: that is counted.
    pub fn send(&mut self, now: Instant, transmit: &Transmit) -> anyhow::Result<()> {
        let slot = self.slots.get_mut(usize::from(transmit.interface.0));
        let Some((name, port)) = slot.and_then(|s| Some((&s.name, s.port.as_mut()?))) else {
            return Ok(());
        };
        port.send(now, &transmit.packet, &mut self.hops, &mut self.head)
            .with_context(|| format!("interface {name}"))
    }

    /// What says that something has changed, for as long as these are used.
    pub fn changes(&self) -> [(Readable, BorrowedFd<'_>); 3] {
        [
            (Readable::Network, self.addresses.as_fd()),
            (Readable::Network, self.carriers.as_fd()),
            (Readable::Neighbors, self.hops.as_fd()),
        ]
    }

    /// Where packets come in now.
    pub fn ports(&self) -> impl Iterator<Item = (Readable, BorrowedFd<'_>)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(number, slot)| Some((Readable::Port(number), slot.port.as_ref()?.as_fd())))
    }

    /// The places of those that were opened since the last call.
    pub fn take_opened(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.opened)
    }

    /// By what packets come in by the interface at a place, if it is open.
    pub fn port(&self, number: usize) -> Option<BorrowedFd<'_>> {
        Some(self.slots.get(number)?.port.as_ref()?.as_fd())
    }

    /// When [`take_changes`](Self::take_changes) must be called next, whatever is heard.
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Opens, or forgets, what there is of an interface of the list.
    fn open(&mut self, number: usize) -> io::Result<()> {
        let slot = &mut self.slots[number];
        let index = if_nametoindex(slot.name.as_str()).ok();
        if slot.port.as_ref().map(Port::index) != index {
            slot.port = None;
            if index.is_some() {
                self.guard.watch(&slot.name, &self.selected)?;
                slot.port = Some(Port::open(&slot.name, &self.selected)?);
                self.opened.push(number);
                info!(interface = slot.name, "opened");
            }
        }
        slot.up = index.is_some_and(|index| self.carrier.get(&index) == Some(&true));
        Ok(())
    }
}

/// The addresses that the kernel holds on the interfaces of these names.
pub(super) fn held(addresses: &AddressWatch, names: &[impl AsRef<str>]) -> Vec<Held> {
    let numbers: BTreeMap<u32, usize> = names
        .iter()
        .enumerate()
        .filter_map(|(number, name)| Some((if_nametoindex(name.as_ref()).ok()?, number)))
        .collect();
    let of_ours = |a: &HostAddress| {
        Some(Held {
            interface: *numbers.get(&a.interface_index)?,
            address: a.address,
            prefix_length: a.prefix_length,
            global: a.global,
            deprecated: a.deprecated,
        })
    };
    addresses.addresses().iter().filter_map(of_ours).collect()
}
