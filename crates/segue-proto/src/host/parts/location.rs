//! A host's part in location management: its client and server, and what was asked of them.

use crate::ilnp::Advertised;
use crate::location::{
    Client, ClientConfig, ClientEvent, Datagram, Identity, LookupId, Name, Server, ServerConfig, Transport,
};
use crate::random::{SecretRng, Stream};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::Data;
use segue_wire::ilnp::Nid;
use segue_wire::udp::UdpDatagram;
use std::collections::VecDeque;

/// Time until the location manager is told again what it has refused, or not answered as often as it was to be asked: its clock,
/// its keys or its zone may be as they should be by then.
const TELL_AGAIN: Duration = Duration::from_secs(30);

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
pub(in crate::host) struct Location {
    client: Option<Client>,
    server: Option<Server>,
    directory: Option<Name>,
    /// Look-ups of the shim's, and of whom.
    for_shim: Vec<(LookupId, Ipv6Addr)>,
    /// The address that the location manager was told last.
    told: Option<Ipv6Addr>,
    /// When it is told again, which did not take it.
    tell_again: Option<Instant>,
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
            tell_again: None,
            asked_at: VecDeque::new(),
        })
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        let client = self.client.as_ref().and_then(Client::poll_timeout);
        client.into_iter().chain(self.tell_again).min()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(client) = &mut self.client {
            client.handle_timeout(now);
        }
    }

    /// The address that the location manager did not take, if it is time to tell it again.
    pub fn take_to_tell_again(&mut self, now: Instant) -> Option<Ipv6Addr> {
        self.tell_again.take_if(|at| *at <= now)?;
        self.told.take()
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
            Some(client) if client.is_asking_from(datagram.destination_port) => {
                client.handle_datagram(now, &message);
                true
            }
            _ => false,
        }
    }

    pub fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    pub fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    /// The address that the location manager was told last.
    pub fn told(&self) -> Option<Ipv6Addr> {
        self.told
    }

    /// Tells the location manager where the host is.
    pub fn update(&mut self, now: Instant, address: Ipv6Addr) {
        if let Some(client) = &mut self.client {
            client.update(now, address);
            (self.told, self.tell_again) = (Some(address), None);
        }
    }

    /// Tells the directory of the host's locators. Whether there is a client to do so.
    pub fn update_locators(&mut self, now: Instant, nid: Nid, locators: &[Advertised]) -> bool {
        let Some(client) = &mut self.client else {
            return false;
        };
        client.update_locators(now, nid, locators);
        true
    }

    /// Looks a name up. `None`: there is no client.
    pub fn look_up(&mut self, now: Instant, name: &Name) -> Option<LookupId> {
        Some(self.client.as_mut()?.look_up(now, name))
    }

    /// Asks the directory where a peer of the shim's is, where there is one. Whether there is.
    pub fn look_up_for_shim(&mut self, now: Instant, peer: Ipv6Addr) -> bool {
        let zone = self.directory.as_ref();
        let name = zone.and_then(|zone| Identity::HomeAddress(peer).name(zone).ok());
        let (Some(name), Some(client)) = (name, &mut self.client) else {
            return false;
        };
        let id = client.look_up_locators(now, &name);
        self.for_shim.push((id, peer));
        true
    }

    /// The peer of whom the shim asked what is answered by this event.
    pub fn take_asked_by_shim(&mut self, event: &ClientEvent) -> Option<Ipv6Addr> {
        let (ClientEvent::LocatorsFound { id, .. } | ClientEvent::LookupFailed { id, .. }) = event else {
            return None;
        };
        let at = self.for_shim.iter().position(|(own, _)| own == id)?;
        Some(self.for_shim.swap_remove(at).1)
    }

    /// The next address of ours that the server was asked at, and its answer, if there is one.
    pub fn poll_answer(&mut self) -> Option<(Ipv6Addr, Option<Datagram>)> {
        let own = self.asked_at.pop_front()?;
        let answer = self.server.as_mut().and_then(Server::poll_answer);
        Some((own, answer.map(|answer| answer.datagram)))
    }

    pub fn poll_event(&mut self, now: Instant) -> Option<ClientEvent> {
        let event = self.client.as_mut().and_then(Client::poll_event)?;
        if let ClientEvent::UpdateFailed { address, .. } = &event
            && *address == self.told
        {
            self.tell_again = Some(now + TELL_AGAIN);
        }
        Some(event)
    }

    pub fn poll_transmit(&mut self) -> Option<Datagram> {
        self.client.as_mut().and_then(Client::poll_transmit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    const SERVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x53);
    const OWN: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);

    #[test]
    fn datagrams_are_for_the_client_at_the_ports_that_it_asked_from() {
        let config = LocationConfig {
            client: Some(ClientConfig::new(vec![(SERVER, 53)])),
            ..LocationConfig::default()
        };
        let mut location = Location::new(config, &mut Stream::new(1, "location")).unwrap();
        let name = crate::location::parse_name("mh.loc.example").unwrap();
        location.look_up(Instant::ZERO, &name);
        let asked = location.poll_transmit().expect("a question").local_port;
        let mut is_taken = |port| {
            let datagram = UdpDatagram {
                source_port: 53,
                destination_port: port,
                data: Data::Bytes(Bytes::from_static(b"no answer")),
            };
            location.handle_datagram(Instant::ZERO, OWN, SERVER, &datagram)
        };
        assert_eq!([asked, asked ^ 1].map(&mut is_taken), [true, false]);
    }

    #[test]
    fn a_location_manager_that_did_not_take_an_address_is_told_again() {
        let name = |text| crate::location::parse_name(text).unwrap();
        let client = ClientConfig {
            record: Some((name("loc.example"), name("mh.loc.example"))),
            attempts: Some(1),
            ..ClientConfig::new(vec![(SERVER, 53)])
        };
        let config = LocationConfig {
            client: Some(client),
            ..LocationConfig::default()
        };
        let mut location = Location::new(config, &mut Stream::new(1, "location")).unwrap();
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        location.update(at(0), OWN);
        assert_eq!(location.poll_timeout(), Some(at(1)));
        location.handle_timeout(at(1));
        let failed = location.poll_event(at(1));
        assert!(
            matches!(failed, Some(ClientEvent::UpdateFailed { .. })),
            "{failed:?}"
        );
        assert_eq!(location.poll_timeout(), Some(at(31)));
        assert_eq!(location.take_to_tell_again(at(30)), None);
        assert_eq!(location.take_to_tell_again(at(31)), Some(OWN));
        assert_eq!(location.poll_timeout(), None, "once");
        // not if the host has told it of another meanwhile
        location.update(at(31), OWN);
        location.handle_timeout(at(32));
        assert!(location.poll_event(at(32)).is_some());
        location.update(at(40), SERVER);
        assert_eq!(location.poll_timeout(), Some(at(41)));
        assert_eq!(location.take_to_tell_again(at(62)), None);
    }
}
