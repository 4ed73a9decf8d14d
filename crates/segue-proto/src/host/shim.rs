//! The shim in its place: below the transports, above the interfaces.

use super::{Host, HostEvent, ShimConfig};
use crate::address::AddressEvent;
use crate::contract::{InterfaceId, LocalAddress, Transmit};
use crate::ilnp::Ilnp;
use crate::mip6::{CorrespondentNode, MobileNode};
use crate::random::{SecretRng, Stream};
use crate::shim::{Inbound, Shim, ShimEvent};
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::{Packet, Payload};

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
    /// [`ShimEvent::LookUp`](crate::shim::ShimEvent::LookUp).
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

    /// Events and packets of the shim. Whether there were any.
    pub(super) fn settle_shim(&mut self, now: Instant) -> bool {
        let Some(shim) = &mut self.shim else { return false };
        let mut moved = false;
        while let Some(event) = shim.poll_event() {
            moved = true;
            if let ShimEvent::FormAddress(wanted) = event {
                let interface = self.interfaces.get_mut(usize::from(wanted.interface.0));
                if let Some(acquisition) = interface.and_then(|i| i.acquisition.as_mut()) {
                    acquisition.add_address(now, wanted.address);
                    self.dirty = true;
                }
            }
            self.events.push_back(HostEvent::Shim(event));
        }
        while let Some(transmit) = shim.poll_transmit(now) {
            moved = true;
            self.transmits.push_back(transmit);
        }
        moved
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
