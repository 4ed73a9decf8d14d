//! Tests of an association's parts by themselves: an association that is up, whose state the test sets.

mod answers;
mod cuc;
mod losses;
mod paths;
mod share;

use super::association::{Association, Setup};
use super::handshake::{Identity, State};
use super::path::PathId;
use super::{Config, MultipathConfig, PathState, SendOptions};
use crate::InterfaceId;
use crate::contract::LocalAddress;
use crate::random::Stream;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::{Data, Tsn};

pub(in crate::sctp) const FIRST: PathId = PathId::first_at(0);
pub(in crate::sctp) const SECOND: PathId = PathId::first_at(1);

/// The peer's initial TSN.
pub(in crate::sctp) const PEER_TSN: Tsn = Tsn(0);

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

/// An association that is about to be opened, with so many destinations, all confirmed; the first chunk will have the TSN 1.
pub(in crate::sctp) fn begun(config: &Config, destinations: u16) -> Association {
    let addresses: Vec<_> = (0..destinations).map(address).collect();
    let setup = Setup {
        config,
        identity: Identity::new(1, 2, 3),
        local_initial_tsn: Tsn(1),
        local_random: None,
        local: &[own()],
        route: own(),
        peer_addresses: &addresses,
        confirmed: addresses.len(),
    };
    let mut association = Association::new(Instant::ZERO, &setup, &mut Stream::new(1, "unit"));
    association.credit.begin(100_000);
    association.open_burst();
    association
}

/// The same, established and without heartbeats.
pub(in crate::sctp) fn up(config: Config, destinations: u16) -> Association {
    let config = Config {
        hb_interval: None,
        ..config
    };
    let mut association = begun(&config, destinations);
    association
        .receiver
        .begin(PEER_TSN, config.max_inbound_streams, address(0), &config);
    association.phase.establish();
    association
}

pub(in crate::sctp) fn cmt(multipath: MultipathConfig, destinations: u16) -> Association {
    let config = Config {
        multipath: Some(multipath),
        ..Config::default()
    };
    up(config, destinations)
}

/// Sends a message of `len` bytes in one chunk on `path`, and books it.
pub(in crate::sctp) fn send_on(a: &mut Association, now: Instant, path: PathId, len: u32) -> Tsn {
    let data = Data::Synthetic { offset: 0, len };
    a.queue.push(now, 0, data, SendOptions::default());
    let content = a.queue.cut(false).expect("it waits");
    let transmission = a.loss.on_sent(now);
    let rto = a.paths[path].rto();
    let (tsn, _) = a.flight.send(now, content, path, rto, transmission);
    a.paths[path].note_sent(now);
    a.credit.take(len);
    tsn
}

/// States of the destinations.
fn states(a: &Association) -> Vec<PathState> {
    a.destinations.values().map(|d| d.state).collect()
}
