//! What clients and servers are configured with.

use super::identity::in_zone;
use super::place::Place;
use super::tsig::Key;
use super::{Name, PORT, parse_name};
use crate::time::Duration;
use core::net::Ipv6Addr;
use std::collections::BTreeSet;

/// Most records that a name may be allowed: as many are kept and written together.
pub const MOST_RECORDS: usize = 1000;

/// Most bytes that they may take.
const MOST_BYTES: usize = 48 * 1024;

/// Configuration of a [`Client`](super::Client).
#[derive(Clone, PartialEq, Debug)]
pub struct ClientConfig {
    /// Servers in the order in which they are tried, with their ports.
    pub servers: Vec<(Ipv6Addr, u16)>,
    /// The zone and the name in it that updates are about; nothing for a client that only looks up.
    pub record: Option<(Name, Name)>,
    /// Signs updates and look-ups; answers must then be signed too.
    pub key: Option<Key>,
    /// Time to live of the record: how long a cache may go on giving the old address after a move. Whole seconds.
    pub ttl: Duration,
    /// Time until the first retransmission; doubled by each.
    pub retry_initial: Duration,
    /// Greatest time between retransmissions.
    pub retry_max: Duration,
    /// Times that a request is sent; nothing for as long as it takes.
    pub attempts: Option<u32>,
    /// Whether answers are kept for their time to live, as a resolver does.
    pub cache: bool,
    /// Unix time at the driver's zero, seconds: for signatures.
    pub unix_at_zero: u64,
}

impl ClientConfig {
    /// A client of `servers` that only looks up, with the defaults.
    #[must_use]
    pub fn new(servers: Vec<(Ipv6Addr, u16)>) -> Self {
        Self {
            servers,
            record: None,
            key: None,
            ttl: Duration::from_secs(5),
            retry_initial: Duration::from_secs(1),
            retry_max: Duration::from_secs(16),
            attempts: None,
            cache: false,
            unix_at_zero: 0,
        }
    }

    /// What is wrong with these values, if anything.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.servers.is_empty() {
            return Err(ConfigError("expected at least one server".to_owned()));
        }
        if let Some((zone, name)) = &self.record
            && !in_zone(name, zone)
        {
            return Err(ConfigError(format!("{name} is not in the zone {zone}")));
        }
        if self.ttl.as_nanos() / 1_000_000_000 > u64::from(i32::MAX.unsigned_abs()) {
            return Err(ConfigError(
                "ttl: expected at most 2147483647 s (RFC 2181 section 8)".to_owned(),
            ));
        }
        if self.retry_initial.is_zero() || self.retry_initial > self.retry_max {
            return Err(ConfigError(
                "retry: expected the first more than zero and at most the greatest".to_owned(),
            ));
        }
        if self.attempts == Some(0) {
            return Err(ConfigError("attempts: expected at least 1".to_owned()));
        }
        Ok(())
    }
}

/// Configuration of a [`Server`](super::Server).
#[derive(Clone, PartialEq, Debug)]
pub struct ServerConfig {
    /// Zones.
    pub zones: Vec<ZoneConfig>,
    /// Keys, and what each may change.
    pub keys: Vec<KeyConfig>,
    /// Port that it listens on.
    pub port: u16,
    /// Whether answers wait until the driver has confirmed that the changes before them are durable, and changes are
    /// given to it.
    pub journal: bool,
    /// What a zone may hold; more is refused.
    pub room: Room,
    /// Unix time at the driver's zero, seconds: for signatures.
    pub unix_at_zero: u64,
}

impl ServerConfig {
    /// A server with these zones and keys.
    #[must_use]
    pub fn new(zones: Vec<ZoneConfig>, keys: Vec<KeyConfig>) -> Self {
        Self {
            zones,
            keys,
            port: PORT,
            journal: false,
            room: Room::default(),
            unix_at_zero: 0,
        }
    }

    /// What is wrong with these values, if anything.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.zones.is_empty() {
            return Err(ConfigError("expected at least one zone".to_owned()));
        }
        if self.room.records == 0 || self.room.records > MOST_RECORDS {
            return Err(ConfigError(format!(
                "records per name: expected 1 to {MOST_RECORDS}"
            )));
        }
        if self.room.bytes > MOST_BYTES {
            return Err(ConfigError(format!(
                "bytes per name: expected at most {MOST_BYTES}"
            )));
        }
        let mut zones = BTreeSet::new();
        for zone in &self.zones {
            if !zones.insert(Place::of(&zone.name)) {
                return Err(ConfigError(format!("zone {} is there twice", zone.name)));
            }
        }
        let mut keys = BTreeSet::new();
        for key in &self.keys {
            if !keys.insert(Place::of(key.key.name())) {
                return Err(ConfigError(format!("key {} is there twice", key.key.name())));
            }
            for grant in &key.grants {
                if !self.zones.iter().any(|zone| in_zone(&grant.name, &zone.name)) {
                    return Err(ConfigError(format!(
                        "key {} may change {}, which is in no zone here",
                        key.key.name(),
                        grant.name
                    )));
                }
            }
        }
        Ok(())
    }
}

/// What a zone may hold, whoever fills it. What grows nothing needs no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Names of a zone.
    pub names: usize,
    /// Records of a name, at most [`MOST_RECORDS`].
    pub records: usize,
    /// Bytes that the records of a name take, without the name.
    pub bytes: usize,
}

impl Default for Room {
    /// A million hosts; of each more addresses, locators and other records than one has, in what crosses a network in a
    /// dozen packets.
    fn default() -> Self {
        Self {
            names: 1_000_000,
            records: 64,
            bytes: 16 * 1024,
        }
    }
}

/// A zone, as it is before the first update.
#[derive(Clone, PartialEq, Debug)]
pub struct ZoneConfig {
    /// Its name.
    pub name: Name,
    /// Name of the server: MNAME of the SOA and target of the NS record.
    pub server: Name,
    /// Addresses of the server, for its name if that is in the zone.
    pub server_addresses: Vec<Ipv6Addr>,
    /// Time to live of SOA and NS records, and of the answer that there is no such name (RFC 2308 section 4): short,
    /// for a host may appear at any time. Seconds.
    pub ttl: u32,
    /// First serial number.
    pub serial: u32,
}

impl ZoneConfig {
    /// A zone whose server is `ns` in it.
    ///
    /// # Errors
    /// If the name leaves no room for `ns`.
    pub fn new(name: Name, server_addresses: Vec<Ipv6Addr>) -> Result<Self, ConfigError> {
        let server = parse_name(&format!("ns.{name}")).map_err(ConfigError)?;
        Ok(Self {
            name,
            server,
            server_addresses,
            ttl: 5,
            serial: 1,
        })
    }
}

/// A key and what it may change.
#[derive(Clone, PartialEq, Debug)]
pub struct KeyConfig {
    /// The key.
    pub key: Key,
    /// Names whose records may be changed with it: a mobile host's key is for its own name.
    pub grants: Vec<Grant>,
}

/// Names that may be changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// This one ...
    pub name: Name,
    /// ... and whether those below it.
    pub below: bool,
}

impl Grant {
    /// Whether records at `name` may be changed.
    #[must_use]
    pub fn covers(&self, name: &Name) -> bool {
        if self.below {
            in_zone(name, &self.name)
        } else {
            *name == self.name
        }
    }
}

/// What is wrong with a configuration, in a line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);
