//! What a network under kernels holds in memory after many handovers. The packets of its kernels are made here.

use super::Realtime;
use crate::output::RunOptions;
use crate::scenario::Scenario;
use crate::sink::Memory;
use allocation_counter::measure;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_capture::rows::{Spill, Store};
use segue_proto::{Duration, Instant, InterfaceId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const SCENARIO: &str = include_str!("../../../../scenarios/lab/handover-each-second.toml");
/// Bytes of data in a segment.
const DATA: u16 = 1000;
/// Segments of the mobile host; as many of its correspondent's.
const EACH: Duration = Duration::from_millis(10);
/// By then the hosts have their addresses.
const BEGIN: Instant = Instant::from_nanos(2_000_000_000);

/// Bytes on the heap.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Of hosts and routers: shims, home agents, addresses, neighbours, layer 2.
    nodes: i64,
    /// Of what is recorded of the run.
    recorder: i64,
    /// Packets that were lost, since this kernel sends nothing again.
    lost: i64,
}

/// What is missing for good of what was sent over TCP is told from what arrived: these kernels send nothing again. Kernels that do
/// leave no such holes.
const BYTES_A_LOSS: i64 = 32;
/// Where rows are of each of some dozen lists, eight bytes whenever their number doubles.
const BYTES_A_DOUBLING: i64 = 512;

/// A store that others hold as well, and that they can have fail.
#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>, Arc<AtomicBool>);

impl Store for Shared {
    fn reserve(&self, bytes: u64) -> u64 {
        let mut all = self.0.lock().unwrap();
        let at = all.len();
        all.resize(at + bytes as usize, 0xff);
        at as u64
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), String> {
        self.0.lock().unwrap()[at as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), String> {
        if self.1.load(Ordering::Relaxed) {
            return Err("store: gone".to_owned());
        }
        bytes.copy_from_slice(&self.0.lock().unwrap()[at as usize..][..bytes.len()]);
        Ok(())
    }
}

/// A TCP segment with data, number `number` of its direction, as a kernel gives it.
fn segment(from: Ipv6Addr, to: Ipv6Addr, ports: (u16, u16), number: u32) -> Bytes {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((20 + DATA).to_be_bytes());
    bytes.extend([6, 64]);
    bytes.extend(from.octets());
    bytes.extend(to.octets());
    bytes.extend(ports.0.to_be_bytes());
    bytes.extend(ports.1.to_be_bytes());
    bytes.extend((number * u32::from(DATA)).to_be_bytes());
    // acknowledgement, length of the header and ACK, window, checksum (which nobody here looks at), urgent pointer
    bytes.extend([0, 0, 0, 0, 5 << 4, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    bytes.resize(60 + usize::from(DATA), 0);
    bytes.into()
}

fn freed<T>(what: T) -> i64 {
    -measure(|| drop(what)).bytes_current
}

/// A kernel's segments each way, for so many seconds with a handover each, in a network that `begin` prepares. Gives it, and what
/// arrived and was sent.
fn carried<'a>(
    scenario: &'a Scenario,
    seconds: u64,
    begin: impl FnOnce(&mut Realtime<'_>),
) -> (Realtime<'a>, u32, u32) {
    let mut network = Realtime::new(scenario, 1, &RunOptions::default()).unwrap();
    begin(&mut network);
    let own: Vec<Ipv6Addr> = network
        .hosts()
        .iter()
        .map(|h| h.identity.unwrap_or_else(|| h.addresses[0].address))
        .collect();
    let (cn, mn) = (own[0], own[1]);
    let end = BEGIN + Duration::from_secs(seconds);
    let (mut now, mut number) = (BEGIN, 0);
    let mut arrived = 0;
    while now < end {
        for (host, bytes) in [
            (1, segment(mn, cn, (40_000, 9000), number)),
            (0, segment(cn, mn, (9000, 40_000), number)),
        ] {
            network.handle_kernel(now, host, InterfaceId(0), &bytes).unwrap();
        }
        (now, number) = (now + EACH, number + 1);
        network.handle_timeout(now);
        while network.poll_delivery().is_some() {
            arrived += 1;
        }
        while network.poll_change().is_some() || network.poll_lateness().is_some() {}
        network.give(&mut Memory::default()).unwrap();
    }
    (network, arrived, 2 * number)
}

fn scenario(scheme: &[(&str, &str)]) -> Scenario {
    let set: Vec<_> = scheme
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    Scenario::from_toml(SCENARIO, "handover-each-second.toml", &set).unwrap()
}

const MIP6_RO: [(&str, &str); 2] = [
    ("scheme", "mip6-ro"),
    ("mip6.home_agent.duplicate_address_detection", "0 s"),
];

/// After so many seconds, with rows in a store that is not counted.
fn held(scheme: &[(&str, &str)], seconds: u64) -> Held {
    let scenario = scenario(scheme);
    let store = Shared::default();
    // room that is taken while something is counted would be counted
    store.0.lock().unwrap().reserve(1 << 20);
    let spill = Spill::new(store.clone(), 16);
    let (network, arrived, sent) = carried(&scenario, seconds, |network| network.keep_rows_in(&spill));
    let mut network = network.network;
    let handovers = network.recorder.connections.shims().all().len() as u64;
    assert!(handovers >= seconds - 5, "{handovers} handovers in {seconds} s");
    assert!(arrived >= sent * 9 / 10, "{arrived} of {sent} packets");
    assert!(store.0.lock().unwrap().len() as u64 > 200 * seconds);
    let ledger = &network.recorder.connections.ledger;
    let lost = ledger.counts().iter().map(|c| c.lost_packets as i64).sum();
    Held {
        lost,
        nodes: freed(core::mem::take(&mut network.nodes)),
        recorder: freed(network.recorder),
    }
}

#[test]
fn after_twice_as_many_handovers_nodes_and_recorder_hold_as_much() {
    for scheme in [&[][..], &MIP6_RO] {
        let [once, twice] = [200, 400].map(|seconds| held(scheme, seconds));
        assert!(twice.nodes <= once.nodes + 512, "{scheme:?}: {once:?}, {twice:?}");
        let losses = BYTES_A_LOSS * (twice.lost - once.lost);
        let more = twice.recorder - once.recorder;
        assert!(
            more <= losses + BYTES_A_DOUBLING,
            "{scheme:?}: {more} bytes more: {once:?}, {twice:?}"
        );
    }
}

#[test]
fn rows_that_were_away_make_the_same_document() {
    for scheme in [&[][..], &MIP6_RO] {
        let scenario = scenario(scheme);
        let end = BEGIN + Duration::from_secs(60);
        let document = |begin: &dyn Fn(&mut Realtime<'_>)| {
            let (network, ..) = carried(&scenario, 60, begin);
            let output = network.finish(end, &mut Memory::default()).unwrap();
            serde_json::to_string(&output.metrics).unwrap()
        };
        let kept = document(&|_| {});
        for block in [1, 3] {
            let store = Shared::default();
            let away = document(&|network| network.keep_rows_in(&Spill::new(store.clone(), block)));
            assert!(store.0.lock().unwrap().len() > 60 * 200);
            assert!(away == kept, "{scheme:?}, {block} rows at a time");
        }
    }
}

#[test]
fn a_store_that_fails_ends_the_run() {
    let scenario = scenario(&[]);
    let store = Shared::default();
    let (mut network, ..) = carried(&scenario, 20, |network| {
        network.keep_rows_in(&Spill::new(store.clone(), 1));
    });
    let mut memory = Memory::default();
    assert_eq!(network.give(&mut memory), Ok(()));
    store.1.store(true, Ordering::Relaxed);
    network.network.recorder.connections.recall().unwrap_err();
    let why = network.give(&mut memory).unwrap_err();
    assert_eq!(why.to_string(), "store: gone");
    let end = Instant::ZERO + Duration::from_secs(22);
    let why = network.finish(end, &mut memory).unwrap_err();
    assert_eq!(why.to_string(), "store: gone");
}
