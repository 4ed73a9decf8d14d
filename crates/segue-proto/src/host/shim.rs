//! The shim in its place: below the transports, above the interfaces.

use super::{Host, HostEvent, ShimConfig};
use crate::address::AddressEvent;
use crate::contract::{InterfaceId, LocalAddress, Transmit};
use crate::ilnp::Ilnp;
use crate::location::Identity;
use crate::mip6::{CorrespondentNode, MobileNode};
use crate::random::{SecretRng, Stream};
use crate::shim::{Inbound, Shim, ShimEvent};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::{Packet, Payload};
use smallvec::SmallVec;

/// The shim that `config` asks for. Its secrets come from a generator of its own, keyed by its host's
/// ([`Stream::from_key`](crate::random::Stream::from_key)).
pub(super) fn from_config(config: &ShimConfig, secrets: &mut dyn SecretRng) -> Option<Box<dyn Shim>> {
    let mut own_secrets = || {
        let mut key = [0; 32];
        secrets.fill(&mut key);
        Box::new(Stream::from_key(key))
    };
    match config {
        ShimConfig::None => None,
        ShimConfig::MobileIpv6(config) => Some(Box::new(MobileNode::new((**config).clone(), own_secrets()))),
        ShimConfig::MobileIpv6Correspondent(config) => Some(Box::new(CorrespondentNode::new(
            (**config).clone(),
            own_secrets(),
        ))),
        ShimConfig::Ilnp(config) => {
            let shim = Ilnp::new((**config).clone(), own_secrets());
            Some(Box::new(shim.expect("the configuration was checked")))
        }
    }
}

/// The interface identifier that addresses are to be formed with, if the shim has one.
pub(super) fn interface_identifier(config: &ShimConfig) -> Option<[u8; 8]> {
    match config {
        ShimConfig::Ilnp(config) => Some(config.nid.0.to_be_bytes()),
        _ => None,
    }
}

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
                match self.acquisition_mut(local.interface) {
                    Some(acquisition) => acquisition.add_address(now, local.address),
                    None => {
                        self.tell_shim(now, &AddressEvent::Ready(local));
                        self.address_ready(local);
                    }
                }
            }
            ShimEvent::WithdrawAddress(local) => {
                self.dirty = true;
                match self.acquisition_mut(local.interface) {
                    Some(acquisition) => acquisition.remove_address(now, local.address),
                    None => {
                        self.addresses.retain(|l| *l != local);
                        self.tell_shim(now, &AddressEvent::Lost(local));
                        self.events.push_back(HostEvent::AddressLost(local));
                    }
                }
            }
            ShimEvent::UpdateDirectory => {
                if let Some((nid, locators)) = self.shim.as_ref().and_then(|s| s.directory_entry())
                    && let Some(client) = &mut self.location.client
                {
                    client.update_locators(now, nid, &locators);
                    self.dirty = true;
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
        let zone = self.location.directory.as_ref();
        let name = zone.and_then(|zone| Identity::HomeAddress(peer).name(zone).ok());
        if let (Some(name), Some(client)) = (name, &mut self.location.client) {
            let id = client.look_up_locators(now, &name);
            self.location.for_shim.push((id, peer));
            self.dirty = true;
        }
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
