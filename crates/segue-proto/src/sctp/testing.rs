//! What unit tests have in common: times, addresses, and a peer.

use super::Config;
use super::ids::{DestinationId, PathId};
use super::local::LocalAddresses;
use super::multipath::MultipathConfig;
use super::peer::Peer;
use crate::InterfaceId;
use crate::contract::LocalAddress;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;

pub(in crate::sctp) const FIRST: PathId = PathId::first_at(0);
pub(in crate::sctp) const SECOND: PathId = PathId::first_at(1);
pub(in crate::sctp) const THIRD: PathId = PathId::first_at(2);

pub(in crate::sctp) fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

pub(in crate::sctp) fn own() -> LocalAddress {
    LocalAddress {
        interface: InterfaceId(0),
        address: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    }
}

/// The peer's address at an index.
pub(in crate::sctp) fn address(index: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, index + 1)
}

/// The first destination in a place.
pub(in crate::sctp) const fn destination(place: u8) -> DestinationId {
    DestinationId::first_at(place)
}

/// Concurrent multipath transfer, and otherwise the defaults.
pub(in crate::sctp) fn concurrently(multipath: MultipathConfig) -> Config {
    Config {
        multipath: Some(multipath),
        ..Config::default()
    }
}

/// An address of ours, and a peer with so many, all confirmed.
pub(in crate::sctp) fn ends(config: &Config, destinations: u16) -> (LocalAddresses, Peer) {
    let local = LocalAddresses::new(&[own()], own());
    let mut peer = Peer::new(config);
    for address in (0..destinations).map(address) {
        peer.add(address, true, config, &local).expect("there is room");
    }
    (local, peer)
}
