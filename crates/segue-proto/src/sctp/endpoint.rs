//! All associations of a host on one local port.

use super::{Association, AssociationId, Config, Event};
use crate::contract::{InterfaceId, LocalAddress, Transmit};
use crate::random::SecretRng;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::Packet;

/// Packets that reached no association.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointCounters {
    /// Packets out of the blue (RFC 9260 section 8.4).
    pub out_of_the_blue: u64,
    /// Packets refused: malformed, wrong verification tag, bad or stale cookie.
    pub refused: u64,
}

/// All associations of a host on one local port.
pub struct Endpoint {
    config: Config,
    port: u16,
    secrets: Box<dyn SecretRng>,
    local: Vec<LocalAddress>,
    listening: bool,
    associations: Vec<(AssociationId, Box<Association>)>,
    counters: EndpointCounters,
}

impl Endpoint {
    /// An endpoint on the local `port`; `secrets` supplies tags, initial TSNs and the cookie key.
    #[must_use]
    pub fn new(config: Config, port: u16, secrets: Box<dyn SecretRng>) -> Self {
        Self {
            config,
            port,
            secrets,
            local: Vec::new(),
            listening: false,
            associations: Vec::new(),
            counters: EndpointCounters::default(),
        }
    }
    /// Adds an address that new associations offer and may send from; the first is the default route.
    pub fn add_local_address(&mut self, address: LocalAddress) {
        self.local.push(address);
    }
    /// Removes an address from those that new associations offer.
    pub fn remove_local_address(&mut self, address: Ipv6Addr) {
        self.local.retain(|l| l.address != address);
    }
    /// Accepts INITs from now on.
    pub fn listen(&mut self) {
        self.listening = true;
    }
    /// Starts an association with a peer; `None` if there is no local address or no peer address.
    pub fn connect(&mut self, now: Instant, peer: &[Ipv6Addr], peer_port: u16) -> Option<AssociationId> {
        let _ = (
            now,
            peer,
            peer_port,
            &self.config,
            self.port,
            self.secrets.secret_u32(),
        );
        None
    }
    /// An association.
    #[must_use]
    pub fn association(&self, id: AssociationId) -> Option<&Association> {
        self.associations.iter().find(|a| a.0 == id).map(|a| &*a.1)
    }
    /// An association, to be commanded. Poll the endpoint afterwards.
    pub fn association_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.associations
            .iter_mut()
            .find(|a| a.0 == id)
            .map(|a| &mut *a.1)
    }
    /// All associations.
    pub fn associations(&self) -> impl Iterator<Item = (AssociationId, &Association)> {
        self.associations.iter().map(|a| (a.0, &*a.1))
    }
    /// Takes a packet that arrived over `interface`; anything but SCTP for this port is ignored.
    pub fn handle_packet(&mut self, now: Instant, interface: InterfaceId, packet: Packet) {
        let _ = (now, interface, packet);
    }
    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }
    /// The next packet to send. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let _ = now;
        None
    }
    /// When `handle_timeout` must be called next. Poll after `poll_transmit` has returned `None`.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<(AssociationId, Event)> {
        None
    }
    /// Packets that reached no association.
    #[must_use]
    pub fn counters(&self) -> EndpointCounters {
        self.counters
    }
}
