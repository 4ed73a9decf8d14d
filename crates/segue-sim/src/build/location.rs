//! The location manager and its clients.

use super::{wire_address, wired_ends};
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

/// What the mobile host is known by.
pub(crate) fn identity(l: &LocationSection, m: &MobileSection) -> String {
    let own = || format!("{}.{}", m.host.replace(' ', "-"), l.zone);
    l.identity.clone().unwrap_or_else(own)
}

/// The domain name of the mobile host.
pub(super) fn mobile_name(s: &ScenarioFile) -> Name {
    names(s).expect("applications by name were checked").1
}

/// The part of `host`: the server, the mobile host, or one that looks up.
pub(super) fn config(s: &ScenarioFile, host: &str, seed: u64) -> LocationConfig {
    let (Some(l), Some(m), Some((zone, name))) = (&s.location, &s.mobile, names(s)) else {
        return LocationConfig::default();
    };
    let addresses: Vec<_> = wired_ends(s, &l.server)
        .map(|(link, end)| wire_address(link, end))
        .collect();
    let key = key(seed);
    if host == l.server {
        let zone = ZoneConfig::new(zone, addresses).expect("the zone's name was checked");
        let grants = vec![Grant { name, below: false }];
        let server = ServerConfig {
            unix_at_zero: UNIX_AT_ZERO,
            ..ServerConfig::new(vec![zone], vec![KeyConfig { key, grants }])
        };
        return LocationConfig {
            client: None,
            server: Some(server),
        };
    }
    let moves = m.host == host;
    let looks_up = s.application.iter().any(|a| a.by_name && a.from == host);
    let client = ClientConfig {
        record: moves.then_some((zone, name)),
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
        server: None,
    }
}

/// The zone, and the mobile host's name in it.
fn names(s: &ScenarioFile) -> Option<(Name, Name)> {
    let (l, m) = (s.location.as_ref()?, s.mobile.as_ref()?);
    let zone = parse_name(&l.zone).ok()?;
    let name = Identity::parse(&identity(l, m)).ok()?.name(&zone).ok()?;
    Some((zone, name))
}

/// The key that the mobile host and the server have.
fn key(seed: u64) -> Key {
    let mut secret = vec![0; Algorithm::HmacSha256.mac_len()];
    Stream::new(seed, "location key").fill(&mut secret);
    let name = parse_name("mobile-host").expect("a name");
    Key::new(name, Algorithm::HmacSha256, secret)
}
