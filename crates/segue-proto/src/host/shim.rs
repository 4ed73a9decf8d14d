//! The shim in its place: below the transports, which may be a kernel's, above the interfaces; what a kernel's driver has
//! here; and addresses that come and go, which are the shim's business where there is one.

use super::event::HostEvent;
use super::parts::driven::{Driven, DriverNotice, DriverRole};
use super::parts::udp::DatagramEnds;
use super::{Host, HostConfig, HostError};
use crate::address::AddressEvent;
use crate::contract::{Departure, InterfaceId, LocalAddress, Transmit};
use crate::random::SecretRng;
use crate::sctp::{Association, AssociationId};
use crate::shim::{Shim, ShimEvent};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::Packet;
use smallvec::SmallVec;

impl Host {
    /// A host whose TCP and UDP are a kernel's: of its applications only those over SCTP run here.
    ///
    /// # Errors
    /// As [`Host::new`].
    pub fn under_kernel(
        config: HostConfig,
        seed: u64,
        secrets: Box<dyn SecretRng>,
    ) -> Result<Self, HostError> {
        Self::with_kernel(config, seed, secrets, Some(Box::default()))
    }

    /// Takes a packet that the kernel sends over an interface; under a shim any interface will do, since the shim chooses.
    ///
    /// What is not from an address that can be used here goes nowhere, is counted, and is given back: the kernel's own router
    /// solicitations, or what it still sends from an address that is gone.
    pub fn send_from_kernel(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        packet: Packet,
    ) -> Option<Packet> {
        if !self.has_address(packet.ip.source) {
            self.counters.not_from_us += 1;
            return Some(packet);
        }
        self.send_down(now, interface, packet);
        self.settle(now);
        None
    }

    /// The next packet for the kernel, and the interface that it came over. Poll until `None` after every other call.
    pub fn poll_kernel(&mut self) -> Option<(InterfaceId, Packet)> {
        self.kernel.as_mut()?.poll()
    }

    /// A packet that got past the shim is the kernel's.
    pub(super) fn give_to_kernel(&mut self, interface: InterfaceId, packet: &mut Packet) {
        if !self.has_address(packet.ip.destination) {
            self.counters.not_for_us += 1;
            return;
        }
        if let Some(kernel) = &mut self.kernel {
            let packet = core::mem::replace(packet, Packet::EMPTY);
            kernel.give(interface, packet);
        }
    }

    /// Has its driver use associations of its own, in the place of applications over SCTP. Before the first call of any other
    /// kind; it is for hosts under a kernel alone.
    pub fn drive(&mut self, role: DriverRole) {
        if role == DriverRole::Listen {
            self.endpoint.listen();
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.drive(Driven::new(role));
        }
        self.update_slow_timeout(None);
    }

    /// What its driver is to know of its own associations. Poll until `None` after every other call.
    pub fn poll_driver(&mut self) -> Option<(AssociationId, DriverNotice)> {
        self.with_driven(Driven::poll)?
    }

    /// Lets its driver send and receive; nothing if there is no such association.
    pub fn command_association<R>(
        &mut self,
        now: Instant,
        id: AssociationId,
        act: impl FnOnce(&mut Association) -> R,
    ) -> Option<R> {
        let result = self.endpoint.command(id, act);
        self.settle(now);
        result
    }

    pub(super) fn with_driven<R>(&mut self, act: impl FnOnce(&mut Driven) -> R) -> Option<R> {
        self.kernel.as_mut()?.with_driven(act)
    }

    /// When an association of the driver's is to be opened, if not by `tried`.
    pub(super) fn driver_opens(&self, tried: Option<Instant>) -> Option<Instant> {
        let opens = self.kernel.as_ref()?.driven()?.opens();
        opens.filter(|at| tried.is_none_or(|tried| *at > tried))
    }

    /// Opens the driver's association if it is due. Whether it could.
    pub(super) fn open_for_driver(&mut self, now: Instant) -> bool {
        let Some(driven) = self.kernel.as_ref().and_then(|kernel| kernel.driven()) else {
            return false;
        };
        let Some((peer, port)) = driven.peer_due(now) else {
            return false;
        };
        let Some(id) = self.endpoint.connect(now, peer, port) else {
            return false;
        };
        self.with_driven(|driven| driven.opening(id));
        true
    }

    /// The shim, if there is one.
    #[must_use]
    pub fn shim(&self) -> Option<&dyn Shim> {
        self.shim.as_deref()
    }

    /// What the directory knows about `peer`, which the shim asked for by
    /// [`ShimEvent::LookUp`].
    pub fn handle_found(&mut self, now: Instant, peer: Ipv6Addr, addresses: &[Ipv6Addr]) {
        if let Some(shim) = &mut self.shim {
            shim.handle_found(now, peer, addresses);
        }
        self.settle(now);
    }

    /// Puts the shim in its place: transports see its identity and nothing else.
    pub(super) fn install_shim(&mut self, shim: Box<dyn Shim>) {
        let identity = LocalAddress {
            interface: InterfaceId::default(),
            address: shim.identity(),
        };
        self.shim = Some(shim);
        self.addresses.push(identity);
        self.endpoint.add_local_address(identity);
        if let Some(tcp) = &mut self.tcp {
            tcp.add_local_address(identity);
        }
        if let Some(udp) = &mut self.udp {
            udp.add_local_address(identity);
        }
    }

    /// A packet on its way up. `false` if the shim took it.
    #[inline]
    pub(super) fn up(&mut self, now: Instant, interface: InterfaceId, packet: &mut Packet) -> bool {
        let Some(shim) = &mut self.shim else { return true };
        core::hint::cold_path();
        shim.inbound_in_place(now, interface, packet)
    }

    /// A packet on its way down, where it lies: the interface that it goes over, `interface` if there is no shim. `None` if the
    /// shim holds it back or dropped it.
    fn down(&mut self, now: Instant, interface: InterfaceId, packet: &mut Packet) -> Option<InterfaceId> {
        match &mut self.shim {
            None => Some(interface),
            Some(shim) => shim.outbound_in_place(now, packet),
        }
    }

    /// The same for a packet that waits until it is polled for.
    pub(super) fn send_down(&mut self, now: Instant, interface: InterfaceId, mut packet: Packet) {
        if let Some(interface) = self.down(now, interface, &mut packet) {
            self.transmits.push_back(Transmit { interface, packet });
        }
    }

    /// The same as [`down`](Self::down) for a packet that may be too long for its way, and is then sent in fragments. `None` also if
    /// there is nothing of it to send yet.
    #[inline]
    fn down_in_fragments(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        packet: &mut Packet,
    ) -> Option<InterfaceId> {
        let Some(mtu) = self.mtu_exceeded_by(packet) else {
            return self.down(now, interface, packet);
        };
        let cut_before = self.shim.as_ref().is_some_and(|s| s.takes_fragments());
        let interface = if cut_before {
            interface
        } else {
            self.down(now, interface, packet)?
        };
        let before = self.transmits.len();
        let whole = core::mem::replace(packet, Packet::EMPTY);
        let mut first = self.fragmented(interface, whole, mtu)?;
        if cut_before {
            let rest = self.transmits.split_off(before);
            for fragment in core::iter::once(first).chain(rest) {
                self.send_down(now, fragment.interface, fragment.packet);
            }
            first = self.transmits.pop_front()?;
        }
        Some(first.write_to(packet).interface)
    }

    /// The next packet of a transport that the shim lets go. What it holds back or has more to say about comes out when the
    /// parts settle.
    #[inline(never)]
    pub(super) fn poll_through_shim(&mut self, now: Instant, packet: &mut Packet) -> Option<Departure> {
        loop {
            let departure = self.poll_whole(now, packet)?;
            let datagram = DatagramEnds::of(packet);
            let goes = self.down_in_fragments(now, departure.interface, packet);
            let busy_since = match (datagram, &mut self.udp) {
                (Some(ends), Some(udp)) => udp.passes(ends, departure.busy_since, goes.is_some()),
                _ => departure.busy_since.filter(|_| goes.is_some()),
            };
            if let Some(interface) = goes {
                return Some(Departure {
                    busy_since,
                    ..interface.into()
                });
            }
            *packet = Packet::EMPTY;
            if let Some(transmit) = self.transmits.pop_front() {
                return Some(Departure {
                    busy_since,
                    ..transmit.write_to(packet)
                });
            }
        }
    }

    /// Events and packets of the shim. Whether there were any.
    pub(super) fn settle_shim(&mut self, now: Instant) -> bool {
        let Some(shim) = &mut self.shim else { return false };
        let mut moved = false;
        let mut asked: SmallVec<[ShimEvent; 2]> = SmallVec::new();
        while let Some(event) = shim.poll_event() {
            moved = true;
            self.events.push_back(HostEvent::Shim(event));
            asked.push(event);
        }
        while let Some(transmit) = shim.poll_transmit(now) {
            moved = true;
            self.transmits.push_back(transmit);
        }
        for event in asked {
            self.do_for_shim(now, event);
        }
        moved
    }

    /// What the shim asks its host to do.
    fn do_for_shim(&mut self, now: Instant, event: ShimEvent) {
        match event {
            ShimEvent::FormAddress(local) => {
                self.dirty = true;
                if !self.interfaces.add_address(now, local) {
                    self.tell_shim(now, &AddressEvent::Ready(local));
                    self.address_ready(local);
                }
            }
            ShimEvent::AssignAddress(local) => {
                self.dirty = true;
                if !self.interfaces.assign_address(now, local) {
                    self.tell_shim(now, &AddressEvent::Ready(local));
                    self.address_ready(local);
                }
            }
            ShimEvent::AnnounceAddress(local) => {
                self.dirty = true;
                self.interfaces.announce_address(local);
            }
            ShimEvent::WithdrawAddress(local) => {
                self.dirty = true;
                if !self.interfaces.remove_address(now, local) {
                    self.addresses.retain(|l| *l != local);
                    self.tell_shim(now, &AddressEvent::Lost(local));
                    self.events.push_back(HostEvent::AddressLost(local));
                }
            }
            ShimEvent::UpdateDirectory => {
                if let Some((nid, locators)) = self.shim.as_ref().and_then(|s| s.directory_entry()) {
                    self.dirty |= self.location.update_locators(now, nid, &locators);
                }
            }
            ShimEvent::LookUp { peer } => self.look_up_for_shim(now, peer),
            ShimEvent::RouteChanged { peer, to } => {
                if let Some(tcp) = &mut self.tcp {
                    tcp.network_changed(now, peer, to);
                }
            }
            _ => {}
        }
    }

    /// Asks the directory where `peer` is. Without one it is the driver's to answer, by [`handle_found`](Self::handle_found).
    fn look_up_for_shim(&mut self, now: Instant, peer: Ipv6Addr) {
        self.dirty |= self.location.look_up_for_shim(now, peer);
    }

    /// An address came or went: the shim's business, and then none of the transports'. Whether there is a shim.
    pub(super) fn tell_shim(&mut self, now: Instant, event: &AddressEvent) -> bool {
        let Some(shim) = &mut self.shim else { return false };
        shim.handle_address(now, event);
        true
    }

    /// Whether the address stays whatever becomes of the interfaces.
    pub(super) fn is_identity(&self, address: Ipv6Addr) -> bool {
        self.shim.as_ref().is_some_and(|s| s.identity() == address)
    }
}

/// Addresses that come and go.
impl Host {
    /// Has an interface replace the addresses that it has acquired: see [`Acquisition::replace_addresses`].
    pub fn replace_addresses(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        identifier: [u8; 8],
        keep: Option<Duration>,
    ) {
        self.dirty = true;
        self.interfaces
            .replace_addresses(now, interface, identifier, keep);
        self.settle(now);
    }

    /// Whether an address is no longer this host's, so that what a transport still sends from it goes nowhere.
    #[inline]
    #[must_use]
    pub fn has_expired(&self, address: Ipv6Addr) -> bool {
        self.expired.contains(&address)
    }

    /// Makes an address usable.
    pub(super) fn address_ready(&mut self, local: LocalAddress) {
        if !self.has_address(local.address) {
            self.addresses.push(local);
        }
        self.expired.retain(|address| *address != local.address);
        if self.shim.is_none() {
            self.endpoint.add_local_address(local);
            if let Some(tcp) = &mut self.tcp {
                tcp.add_local_address(local);
            }
            if let Some(udp) = &mut self.udp {
                udp.add_local_address(local);
            }
        }
        self.events.push_back(HostEvent::AddressReady(local));
    }

    /// The addresses of a wire that comes and goes.
    pub(super) fn tell_of_wire(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        event: impl Fn(LocalAddress) -> AddressEvent,
    ) {
        for address in self.interfaces.while_up(interface) {
            self.on_address(now, event(LocalAddress { interface, address }));
        }
    }

    #[inline(never)]
    pub(super) fn on_address(&mut self, now: Instant, event: AddressEvent) {
        let shimmed = self.tell_shim(now, &event);
        match event {
            AddressEvent::Ready(local) => {
                self.address_ready(local);
                if let Some(movers) = &mut self.sigma {
                    movers.tell_all(|sigma| sigma.handle_address_ready(now, local));
                }
                self.tell_location_if_lost(now);
            }
            AddressEvent::Lost(local) => {
                let identity = self.is_identity(local.address);
                self.addresses.retain(|l| identity || l.address != local.address);
                if !shimmed {
                    self.endpoint.remove_local_address(local.address);
                    if let Some(tcp) = &mut self.tcp {
                        tcp.remove_local_address(local.address);
                    }
                    if let Some(udp) = &mut self.udp {
                        udp.remove_local_address(local.address);
                    }
                }
                self.events.push_back(HostEvent::AddressLost(local));
                if let Some(movers) = &mut self.sigma {
                    movers.tell_all(|sigma| sigma.handle_address_lost(now, local.address));
                }
                self.tell_location_if_lost(now);
            }
            AddressEvent::Expired(_) if shimmed => {}
            AddressEvent::Expired(local) => self.address_expired(now, local.address),
            AddressEvent::Refused(local) => self.events.push_back(HostEvent::AddressRefused(local)),
            AddressEvent::Deprecated(local) => self.address_deprecated(now, local, shimmed),
            AddressEvent::RouterHeard { .. } => {}
        }
    }

    fn address_expired(&mut self, now: Instant, address: Ipv6Addr) {
        if self.expired.len() == MOST_EXPIRED {
            self.expired.remove(0);
        }
        self.expired.push(address);
        match &mut self.sigma {
            Some(movers) => movers.tell_all(|sigma| sigma.handle_address_expired(now, address)),
            None => self.endpoint.local_address_expired(now, address),
        }
    }

    /// What begins from now on begins from another address, if there is one (RFC 6724 section 5, rule 3), and SIGMA leaves it.
    fn address_deprecated(&mut self, now: Instant, local: LocalAddress, shimmed: bool) {
        if !shimmed {
            self.endpoint.remove_local_address(local.address);
            self.endpoint.add_local_address(local);
            if let Some(tcp) = &mut self.tcp {
                tcp.add_local_address(local);
            }
            if let Some(udp) = &mut self.udp {
                udp.add_local_address(local);
            }
        }
        self.events.push_back(HostEvent::AddressDeprecated(local));
        if let Some(movers) = &mut self.sigma {
            movers.tell_all(|sigma| sigma.handle_address_deprecated(now, local.address));
        }
    }
}

/// Addresses remembered as no longer this host's.
const MOST_EXPIRED: usize = 16;
