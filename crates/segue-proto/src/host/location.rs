//! A host's part in location management: messages in UDP packets, its own name, and associations that are set up by name.

use super::event::HostEvent;
use super::parts::movers::Movers;
use super::{Connected, Connecting, Host};
use crate::contract::Transmit;
use crate::location::{Client, ClientEvent, Datagram, LookupId, Server};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, Ipv6Header, Packet, Payload};

/// Time until an application looks a name up again that could not be resolved.
const LOOK_UP_AGAIN: Duration = Duration::from_secs(1);

impl Host {
    /// The location client, on a host that has one.
    #[must_use]
    pub fn location_client(&self) -> Option<&Client> {
        self.location.client()
    }

    /// The location manager, on a host that is one.
    #[must_use]
    pub fn location_server(&self) -> Option<&Server> {
        self.location.server()
    }

    /// Tells the location manager where the host is: step 4 of a handover, and the first time that there is an
    /// address.
    pub(super) fn tell_location(&mut self, now: Instant, address: Ipv6Addr) {
        self.location.update(now, address);
    }

    /// Works off what is due of the client, and tells the location manager again what it did not take, if it still holds.
    pub(super) fn location_due(&mut self, now: Instant) {
        self.location.handle_timeout(now);
        if let Some(address) = self.location.take_to_tell_again(now)
            && self.has_address(address)
        {
            self.tell_location(now, address);
        }
    }

    /// Tells the location manager of the first usable address if it knows none that is usable and there is no
    /// association whose handover would.
    pub(super) fn tell_location_if_lost(&mut self, now: Instant) {
        if self.shim.is_some() {
            // its identity stays, and its locators are not addresses to be told of
            return;
        }
        let known = self.location.told().is_some_and(|a| self.has_address(a));
        if !known
            && !self.sigma.as_ref().is_some_and(Movers::have_association)
            && let Some(first) = self.addresses.first().map(|l| l.address)
        {
            self.tell_location(now, first);
        }
    }

    /// Starts a look-up for application `index`. `None`: there is no client.
    pub(super) fn look_up(&mut self, now: Instant, index: usize) -> Option<LookupId> {
        let Connecting::AtName { name, .. } = self.applications.get(index)?.connection() else {
            return None;
        };
        self.location.look_up(now, name)
    }

    /// Messages out, events in. Whether there were events.
    pub(super) fn settle_location(&mut self, now: Instant) -> bool {
        while let Some((own, answer)) = self.location.poll_answer() {
            if let Some(answer) = answer {
                self.send_datagram(own, answer);
            }
        }
        let mut moved = false;
        while let Some(event) = self.location.poll_event(now) {
            moved = true;
            self.on_location(now, event);
        }
        while let Some(datagram) = self.location.poll_transmit() {
            if let Some(own) = self.location_source() {
                self.send_datagram(own, datagram);
            }
        }
        moved
    }

    /// Where this host's own requests come from: the address that the location manager is told of, which is the one
    /// whose link is good; otherwise the first that can be used.
    fn location_source(&self) -> Option<Ipv6Addr> {
        if let Some((nid, locators)) = self.shim.as_ref().and_then(|s| s.directory_entry()) {
            // plain IPv6, from where it can be answered
            let in_use = locators.first()?.0.address(nid);
            return Some(in_use).filter(|a| self.has_address(*a));
        }
        let told = self.location.told().filter(|a| self.has_address(*a));
        let serving = self
            .sigma
            .as_ref()
            .and_then(|movers| movers.first().serving())
            .filter(|a| self.has_address(*a));
        told.or(serving)
            .or_else(|| self.addresses.first().map(|l| l.address))
    }

    fn send_datagram(&mut self, own: Ipv6Addr, datagram: Datagram) {
        let Some(local) = self.addresses.iter().find(|l| l.address == own) else {
            return;
        };
        let udp = UdpDatagram {
            source_port: datagram.local_port,
            destination_port: datagram.peer_port,
            data: Data::Bytes(datagram.data),
        };
        self.transmits.push_back(Transmit {
            interface: local.interface,
            packet: Packet {
                ip: Ipv6Header {
                    source: own,
                    destination: datagram.peer,
                    traffic_class: 0,
                    hop_limit: 64,
                    flow_label: 0,
                },
                extensions: Vec::new(),
                payload: Payload::Udp(udp),
            },
        });
    }

    fn on_location(&mut self, now: Instant, event: ClientEvent) {
        if let (Some(peer), Some(shim)) = (self.location.take_asked_by_shim(&event), &mut self.shim) {
            match &event {
                ClientEvent::LocatorsFound { locators, .. } => shim.handle_locators(now, peer, locators),
                _ => shim.handle_found(now, peer, &[]),
            }
        }
        let found = match &event {
            ClientEvent::Resolved { id, addresses, .. } => Some((*id, Some(addresses.clone()))),
            ClientEvent::LookupFailed { id, .. } => Some((*id, None)),
            _ => None,
        };
        self.events.push_back(HostEvent::Location(event));
        let Some((id, addresses)) = found else { return };
        let waiting =
            |c: &Connecting| matches!(c, Connecting::AtName { looking_up: Some(own), .. } if *own == id);
        let looking_up = self.applications.iter().position(|a| waiting(a.connection()));
        let Some(index) = looking_up else { return };
        self.applications.look_up(index, None, Some(now + LOOK_UP_AGAIN));
        let Some(running) = self.applications.get(index) else {
            return;
        };
        if running.transport() != crate::app::Transport::Sctp {
            if let (Some(addresses), &Connecting::AtName { port, .. }) = (addresses, running.connection())
                && let Some(&peer) = addresses.first()
            {
                self.connect_one(now, index, peer, port);
            }
            return;
        }
        if let (Some(addresses), Connecting::AtName { port, .. }) = (addresses, running.connection())
            && let Some(id) = self.endpoint.connect(now, &addresses, *port)
        {
            self.applications
                .connect(index, Connecting::With(Connected::Sctp(id)));
        }
    }
}
