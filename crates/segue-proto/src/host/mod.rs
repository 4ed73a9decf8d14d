//! A host: interfaces, shim, transport and applications, composed.

mod config;

pub use config::{Addressing, HostConfig, HostError, InterfaceConfig, ShimConfig};

use crate::app;
use crate::contract::{CellId, InterfaceId, LinkEvent, LocalAddress, Transmit};
use crate::random::SecretRng;
use crate::sctp::{AssociationId, Endpoint, Event};
use crate::sigma::SigmaEvent;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::Packet;

/// What a host tells its driver.
#[derive(Clone, PartialEq, Debug)]
pub enum HostEvent {
    /// Layer 2 is to attach `interface` to `cell`: a command to the driver.
    Attach {
        /// Interface.
        interface: InterfaceId,
        /// Cell.
        cell: CellId,
    },
    /// An address can be used from now on.
    AddressReady(LocalAddress),
    /// An address can no longer be used.
    AddressLost(LocalAddress),
    /// Duplicate address detection found the address taken.
    AddressRefused(LocalAddress),
    /// The location manager is to be told that the host is at this address. Its client will take this over.
    UpdateLocation(Ipv6Addr),
    /// The trail of a handover.
    Sigma(SigmaEvent),
    /// A notification of an association; `Readable`, `Writable` and `SendersDry` stay inside the host.
    Sctp(AssociationId, Event),
    /// An application reports.
    App {
        /// Its number, see [`Host::application`].
        application: usize,
        /// What it reports.
        event: app::AppEvent,
    },
}

/// A host.
pub struct Host {
    endpoint: Endpoint,
}

impl Host {
    /// A host from its configuration. `seed` and the host's name give its random streams; `secrets` secures SCTP.
    ///
    /// # Errors
    /// [`HostError`]: what is wrong with the configuration.
    pub fn new(config: HostConfig, seed: u64, secrets: Box<dyn SecretRng>) -> Result<Self, HostError> {
        let _ = seed;
        Ok(Self {
            endpoint: Endpoint::new(config.sctp, config.port, secrets),
        })
    }
    /// Takes a packet that arrived over `interface`.
    pub fn handle_packet(&mut self, now: Instant, interface: InterfaceId, packet: Packet) {
        let _ = (now, interface, packet);
    }
    /// Takes a link event.
    pub fn handle_link(&mut self, now: Instant, event: LinkEvent) {
        let _ = (now, event);
    }
    /// Works off the timers that are due. Call it once with the start time before anything else, too.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }
    /// The next packet to send. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let _ = now;
        None
    }
    /// When `handle_timeout` must be called next. Poll after `poll_transmit` and `poll_event` returned `None`.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<HostEvent> {
        None
    }
    /// The SCTP endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
    /// What application `index` has done so far. The configured applications come first, in their order; more
    /// connections of the listening one follow.
    #[must_use]
    pub fn application(&self, index: usize) -> Option<&app::Stats> {
        let _ = index;
        None
    }
    /// Addresses that can be used now.
    pub fn addresses(&self) -> impl Iterator<Item = LocalAddress> {
        core::iter::empty()
    }
}
