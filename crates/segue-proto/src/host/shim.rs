//! The shim in its place: below the transports, above the interfaces.

use super::Host;
use super::event::HostEvent;
use crate::address::AddressEvent;
use crate::contract::{InterfaceId, LocalAddress, Transmit};
use crate::shim::{Inbound, Shim, ShimEvent};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::{Packet, Payload};
use smallvec::SmallVec;

impl Host {
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
        let payload = core::mem::replace(&mut packet.payload, Payload::NoNextHeader);
        let taken = Packet {
            ip: packet.ip,
            extensions: core::mem::take(&mut packet.extensions),
            payload,
        };
        match shim.inbound(now, interface, taken) {
            Inbound::Up(up) => {
                *packet = up;
                true
            }
            Inbound::Taken => false,
        }
    }

    /// A transport's packet on its way down. `None` if the shim holds it back or dropped it.
    pub(super) fn down(&mut self, now: Instant, transmit: Transmit) -> Option<Transmit> {
        match &mut self.shim {
            None => Some(transmit),
            Some(shim) => shim.outbound(now, transmit.packet),
        }
    }

    /// The same for a packet that may be too long for its way, and is then sent in fragments. `None` also if there is
    /// nothing of it to send yet.
    #[inline]
    pub(super) fn down_in_fragments(&mut self, now: Instant, transmit: Transmit) -> Option<Transmit> {
        let Some(mtu) = self.mtu_exceeded_by(&transmit.packet) else {
            return self.down(now, transmit);
        };
        if !self.shim.as_ref().is_some_and(|s| s.takes_fragments()) {
            let whole = self.down(now, transmit)?;
            return self.fragmented(whole, mtu);
        }
        let before = self.transmits.len();
        let first = self.fragmented(transmit, mtu)?;
        let rest = self.transmits.split_off(before);
        for fragment in core::iter::once(first).chain(rest) {
            let sent = self.down(now, fragment);
            self.transmits.extend(sent);
        }
        self.transmits.pop_front()
    }

    /// The next packet of a transport that the shim lets go. What it holds back or has more to say about comes out when the
    /// parts settle.
    #[inline(never)]
    pub(super) fn poll_through_shim(&mut self, now: Instant, packet: &mut Packet) -> Option<InterfaceId> {
        loop {
            let segment = self.tcp.as_mut().and_then(|t| t.poll_transmit(now));
            let datagram = || self.udp.as_mut().and_then(|u| u.poll_transmit());
            let transmit = segment
                .or_else(datagram)
                .or_else(|| self.endpoint.poll_transmit(now))?;
            let goes = self.down_in_fragments(now, transmit);
            if let Some(transmit) = goes.or_else(|| self.transmits.pop_front()) {
                return Some(transmit.write_to(packet));
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
