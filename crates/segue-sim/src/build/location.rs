//! The location manager and its clients.

use super::hosts::host_wire_address;
use super::wired_ends;
use crate::scenario::model::{LocationSection, MobileSection, ScenarioFile};
use segue_proto::host::LocationConfig;
use segue_proto::location::tsig::{Algorithm, Key};
use segue_proto::location::{
    ClientConfig, Grant, Identity, KeyConfig, Name, PORT, ServerConfig, ZoneConfig, parse_name,
};
use segue_proto::random::{SecretRng as _, Stream};

/// The time of day at the beginning of a run, for signatures: the first of January 2005, Unix seconds. Any will do.
const UNIX_AT_ZERO: u64 = 1_104_537_600;

/// A retransmission waits 16 times as long as the first at most.
const RETRY_MAX: u64 = 16;

/// What a mobile host is known by.
pub(crate) fn identity(l: &LocationSection, m: &MobileSection) -> String {
    let own = || format!("{}.{}", m.host.replace(' ', "-"), l.zone);
    l.identity.clone().unwrap_or_else(own)
}

/// The domain name of a mobile host.
pub(super) fn mobile_name(s: &ScenarioFile, host: &str) -> Name {
    let name = s.mobile.of(host).and_then(|m| name(s, m));
    name.expect("applications by name were checked")
}

/// The part of `host`: the server, the mobile host, or one that looks up.
pub(super) fn config(s: &ScenarioFile, host: &str, seed: u64) -> LocationConfig {
    let (Some(l), Some(zone)) = (&s.location, zone(s)) else {
        return LocationConfig::default();
    };
    let addresses: Vec<_> = wired_ends(s, &l.server)
        .map(|(link, end)| host_wire_address(s, &l.server, link, end))
        .collect();
    let key = key(seed);
    if host == l.server {
        let zone = ZoneConfig::new(zone, addresses).expect("the zone's name was checked");
        let names = s.mobile.iter().filter_map(|m| name(s, m));
        let grants = names.map(|name| Grant { name, below: false }).collect();
        let server = ServerConfig {
            unix_at_zero: UNIX_AT_ZERO,
            ..ServerConfig::new(vec![zone], vec![KeyConfig { key, grants }])
        };
        return LocationConfig {
            server: Some(server),
            ..LocationConfig::default()
        };
    }
    let own = s.mobile.of(host).and_then(|m| name(s, m));
    let moves = own.is_some();
    let looks_up = s.application.of(host).any(|(_, a)| a.by_name && a.from == host);
    let client = ClientConfig {
        record: own.map(|name| (zone, name)),
        // Whoever looks up needs no key, as with any name.
        key: moves.then_some(key),
        ttl: l.ttl,
        retry_initial: l.retry,
        retry_max: l.retry * RETRY_MAX,
        cache: l.cache,
        unix_at_zero: UNIX_AT_ZERO,
        ..ClientConfig::new(addresses.into_iter().map(|a| (a, PORT)).collect())
    };
    LocationConfig {
        client: (moves || looks_up).then_some(client),
        ..LocationConfig::default()
    }
}

fn zone(s: &ScenarioFile) -> Option<Name> {
    parse_name(&s.location.as_ref()?.zone).ok()
}

/// The name of a mobile host in the zone.
fn name(s: &ScenarioFile, m: &MobileSection) -> Option<Name> {
    let identity = identity(s.location.as_ref()?, m);
    Identity::parse(&identity).ok()?.name(&zone(s)?).ok()
}

/// The key that mobile hosts and the server have.
fn key(seed: u64) -> Key {
    let mut secret = vec![0; Algorithm::HmacSha256.mac_len()];
    Stream::new(seed, "location key").fill(&mut secret);
    let name = parse_name("mobile-host").expect("a name");
    Key::new(name, Algorithm::HmacSha256, secret)
}
