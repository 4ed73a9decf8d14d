//! The name of this host, kept at its locators: dynamic updates (RFC 2136) with signatures (RFC 8945), by the client of the location
//! manager.

use super::config::Publish;
use segue_proto::location::{
    Client, ClientCounters, ClientEvent, ConfigError, Datagram, Failure, Name, PreferredLocator,
};
use segue_proto::random::SecretRng;
use segue_proto::{Duration, Instant};
use segue_wire::ilnp::Nid;
use std::net::Ipv6Addr;

/// After a refusal; what can be done about it is the user's business.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// What the name is to have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Records {
    /// L64: locators and their preferences, the best first.
    pub locators: Vec<PreferredLocator>,
    /// AAAA, if the file says so.
    pub addresses: Vec<Ipv6Addr>,
}

/// How far it is.
#[derive(Clone, PartialEq, Debug)]
pub enum Progress {
    /// There is nothing to be published yet.
    Nothing,
    /// The server has not answered.
    UnderWay,
    /// The server has it.
    Published {
        /// Since then.
        at: Instant,
        /// How long it took.
        latency: Duration,
        /// Times that it was sent.
        sent: u32,
    },
    /// The server does not take it; it is tried again.
    Failed(Failure),
}

/// The machine.
pub(super) struct Publisher {
    client: Client,
    name: Name,
    nid: Nid,
    with_addresses: bool,
    wanted: Records,
    progress: Progress,
    /// Where the last transmission went out.
    port: Option<u16>,
    retry_at: Option<Instant>,
    updates: u64,
    refused: u64,
}

impl Publisher {
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(publish: &Publish, nid: Nid, secrets: Box<dyn SecretRng>) -> Result<Self, ConfigError> {
        Ok(Self {
            client: Client::new(publish.client(), secrets)?,
            name: publish.name.clone(),
            nid,
            with_addresses: publish.addresses,
            wanted: Records::default(),
            progress: Progress::Nothing,
            port: None,
            retry_at: None,
            updates: 0,
            refused: 0,
        })
    }

    /// The name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// What it is to have.
    pub fn wanted(&self) -> &Records {
        &self.wanted
    }

    /// How far that is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Updates that the server has taken, those that it refused, and what the client has counted.
    pub fn counters(&self) -> (u64, u64, ClientCounters) {
        (self.updates, self.refused, self.client.counters())
    }

    /// The port that an answer is waited for at.
    pub fn port(&self) -> Option<u16> {
        self.port.filter(|_| self.client.is_updating())
    }

    /// The host is there now. `unix_at_zero`: Unix time at the zero of `now`, seconds, by a clock that may have been set.
    pub fn publish(&mut self, now: Instant, mut records: Records, unix_at_zero: u64) {
        if !self.with_addresses {
            records.addresses.clear();
        }
        if records == self.wanted || records.locators.is_empty() {
            return;
        }
        self.wanted = records;
        self.update(now, unix_at_zero);
    }

    /// An answer of the server's, or something that pretends to be one.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &Datagram) {
        self.client.handle_datagram(now, datagram);
        self.settle(now);
    }

    /// Sends again what was not answered.
    pub fn handle_timeout(&mut self, now: Instant, unix_at_zero: u64) {
        self.client.handle_timeout(now);
        self.settle(now);
        if self.retry_at.is_some_and(|at| at <= now) {
            self.update(now, unix_at_zero);
        }
    }

    /// The next datagram for the server.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        let datagram = self.client.poll_transmit()?;
        self.port = Some(datagram.local_port);
        Some(datagram)
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.client.poll_timeout(), self.retry_at]
            .into_iter()
            .flatten()
            .min()
    }

    fn update(&mut self, now: Instant, unix_at_zero: u64) {
        let Records { locators, addresses } = &self.wanted;
        let addresses = self.with_addresses.then_some(&addresses[..]);
        self.retry_at = None;
        self.progress = Progress::UnderWay;
        self.client.handle_clock(unix_at_zero);
        self.client.update_node(now, self.nid, locators, addresses);
    }

    fn settle(&mut self, now: Instant) {
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::LocatorsUpdated { latency, sent, .. } => {
                    self.updates += 1;
                    let at = now;
                    self.progress = Progress::Published { at, latency, sent };
                }
                ClientEvent::LocatorsUpdateFailed { failure } => {
                    self.refused += 1;
                    self.progress = Progress::Failed(failure);
                    self.retry_at = Some(now + RETRY_AFTER);
                }
                _ => {}
            }
        }
    }
}
