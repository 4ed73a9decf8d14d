//! The host's part in location management: its client's and server's messages in UDP packets, its own name, and
//! associations that are set up by name.

use super::{Connecting, Host, HostEvent};
use crate::contract::Transmit;
use crate::location::{
    Client, ClientConfig, ClientEvent, Datagram, LookupId, Name, Server, ServerConfig, Transport,
};
use crate::random::{SecretRng, Stream};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, Ipv6Header, Packet, Payload};
use std::collections::VecDeque;

/// Time until an application looks a name up again that could not be resolved.
const LOOK_UP_AGAIN: Duration = Duration::from_secs(1);

/// Ports of clients (RFC 6335 section 6).
const FIRST_CLIENT_PORT: u16 = 49_152;

/// A host's part in location management.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LocationConfig {
    /// Updates the host's own name, and resolves those of others.
    pub client: Option<ClientConfig>,
    /// Makes the host a location manager. Nothing that it keeps is durable: that is a driver's to do.
    pub server: Option<ServerConfig>,
    /// Zone in which a shim's peers are looked up by their identities, as
    /// [`Identity::HomeAddress`](crate::location::Identity::HomeAddress) names them.
    pub directory: Option<Name>,
}

/// The machines.
#[derive(Debug, Default)]
pub(super) struct Location {
    pub(super) client: Option<Client>,
    server: Option<Server>,
    pub(super) directory: Option<Name>,
    /// Look-ups of the shim's, and of whom.
    pub(super) for_shim: Vec<(LookupId, Ipv6Addr)>,
    /// The address that the location manager was told last.
    told: Option<Ipv6Addr>,
    /// The addresses of ours that the server was asked at, for its answers to come from.
    asked_at: VecDeque<Ipv6Addr>,
}

impl Location {
    /// Randomness of the client is drawn from `secrets` only if there is one.
    pub fn new(config: LocationConfig, secrets: &mut dyn SecretRng) -> Result<Self, String> {
        let client = config.client.map(|client| {
            let mut key = [0; 32];
            secrets.fill(&mut key);
            Client::new(client, Box::new(Stream::from_key(key))).map_err(|e| e.to_string())
        });
        let server = config
            .server
            .map(|server| Server::new(server).map_err(|e| e.to_string()));
        Ok(Self {
            client: client.transpose()?,
            server: server.transpose()?,
            directory: config.directory,
            for_shim: Vec::new(),
            told: None,
            asked_at: VecDeque::new(),
        })
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.client.as_ref().and_then(Client::poll_timeout)
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(client) = &mut self.client {
            client.handle_timeout(now);
        }
    }

    /// Whether `datagram`, from `peer` to `own`, was for the server or the client here.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        own: Ipv6Addr,
        peer: Ipv6Addr,
        datagram: &UdpDatagram,
    ) -> bool {
        let data = match &datagram.data {
            Data::Bytes(bytes) => bytes.clone(),
            Data::Synthetic { .. } => return false,
        };
        let message = Datagram {
            peer,
            peer_port: datagram.source_port,
            local_port: datagram.destination_port,
            data,
        };
        if let Some(server) = self
            .server
            .as_mut()
            .filter(|s| s.port() == datagram.destination_port)
        {
            if server.handle_message(now, Transport::Udp, &message) {
                self.asked_at.push_back(own);
            }
            return true;
        }
        match &mut self.client {
            Some(client) if datagram.destination_port >= FIRST_CLIENT_PORT => {
                client.handle_datagram(now, &message);
                true
            }
            _ => false,
        }
    }
}

impl Host {
    /// The location client, on a host that has one.
    #[must_use]
    pub fn location_client(&self) -> Option<&Client> {
        self.location.client.as_ref()
    }

    /// The location manager, on a host that is one.
    #[must_use]
    pub fn location_server(&self) -> Option<&Server> {
        self.location.server.as_ref()
    }

    /// Tells the location manager where the host is: step 4 of a handover, and the first time that there is an
    /// address.
    pub(super) fn tell_location(&mut self, now: Instant, address: Ipv6Addr) {
        if let Some(client) = &mut self.location.client {
            client.update(now, address);
            self.location.told = Some(address);
        }
    }

    /// Tells the location manager of the first usable address if it knows none that is usable and there is no
    /// association whose handover would.
    pub(super) fn tell_location_if_lost(&mut self, now: Instant) {
        if self.shim.is_some() {
            // its identity stays, and its locators are not addresses to be told of
            return;
        }
        let known = self.location.told.is_some_and(|a| self.has_address(a));
        if !known
            && self.sigma_association.is_none()
            && let Some(first) = self.addresses.first().map(|l| l.address)
        {
            self.tell_location(now, first);
        }
    }

    /// Starts a look-up for application `index`. `None`: there is no client.
    pub(super) fn look_up(&mut self, now: Instant, index: usize) -> Option<LookupId> {
        let Connecting::AtName { name, .. } = &self.applications.get(index)?.connection else {
            return None;
        };
        Some(self.location.client.as_mut()?.look_up(now, name))
    }

    /// Messages out, events in. Whether there were events.
    pub(super) fn settle_location(&mut self, now: Instant) -> bool {
        while let Some(own) = self.location.asked_at.pop_front() {
            if let Some(answer) = self.location.server.as_mut().and_then(Server::poll_answer) {
                self.send_datagram(own, answer.datagram);
            }
        }
        let mut moved = false;
        while let Some(event) = self.location.client.as_mut().and_then(Client::poll_event) {
            moved = true;
            self.on_location(now, event);
        }
        while let Some(datagram) = self.location.client.as_mut().and_then(Client::poll_transmit) {
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
        let told = self.location.told.filter(|a| self.has_address(*a));
        let serving = self
            .sigma
            .as_ref()
            .and_then(|s| s.serving())
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
        let shims = |(own, _): &(LookupId, Ipv6Addr)| match &event {
            ClientEvent::LocatorsFound { id, .. } | ClientEvent::LookupFailed { id, .. } => id == own,
            _ => false,
        };
        if let Some(at) = self.location.for_shim.iter().position(shims) {
            let (_, peer) = self.location.for_shim.swap_remove(at);
            if let Some(shim) = &mut self.shim {
                match &event {
                    ClientEvent::LocatorsFound { locators, .. } => shim.handle_locators(now, peer, locators),
                    _ => shim.handle_found(now, peer, &[]),
                }
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
        let Some(index) = self.applications.iter().position(|a| waiting(&a.connection)) else {
            return;
        };
        let running = &mut self.applications[index];
        if let Connecting::AtName {
            start, looking_up, ..
        } = &mut running.connection
        {
            *looking_up = None;
            *start = now + LOOK_UP_AGAIN;
        }
        if running.transport != crate::app::Transport::Sctp {
            if let (Some(addresses), &Connecting::AtName { port, .. }) = (addresses, &running.connection)
                && let Some(&peer) = addresses.first()
            {
                self.connect_one(now, index, peer, port);
            }
            return;
        }
        if let (Some(addresses), Connecting::AtName { port, .. }) = (addresses, &running.connection)
            && let Some(id) = self.endpoint.connect(now, &addresses, *port)
        {
            running.connection = Connecting::With(id);
        }
    }
}
