//! What a network under kernels holds in memory after many handovers. The packets of its kernels are made here.

use super::Realtime;
use crate::output::RunOptions;
use crate::scenario::Scenario;
use crate::sink::Memory;
use allocation_counter::measure;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_proto::{Duration, Instant, InterfaceId};

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
    /// Handovers so far.
    handovers: i64,
    /// Packets that were lost, since this kernel sends nothing again.
    lost: i64,
}

/// What a handover takes in the recorder at most: its signalling (76 bytes), its parts (88), and what each of two flows went
/// through (64), in vectors that double when they are full. And a packet that is lost for good: its mark (8), and that it is
/// missing at its receiver.
const BYTES_A_HANDOVER: i64 = 400;
const BYTES_A_LOSS: i64 = 32;

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

/// After so many seconds with a handover each.
fn held(scheme: &[(&str, &str)], seconds: u64) -> Held {
    let set: Vec<_> = scheme
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let scenario = Scenario::from_toml(SCENARIO, "handover-each-second.toml", &set).unwrap();
    let mut network = Realtime::new(&scenario, 1, &RunOptions::default()).unwrap();
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
    let mut network = network.network;
    let handovers = network.recorder.connections.shims().all().len() as i64;
    assert!(
        handovers as u64 >= seconds - 5,
        "{handovers} handovers in {seconds} s"
    );
    assert!(
        arrived >= number * 2 * 9 / 10,
        "{arrived} of {number} packets each way"
    );
    let ledger = &network.recorder.connections.ledger;
    let lost = ledger.counts().iter().map(|c| c.lost_packets as i64).sum();
    Held {
        lost,
        nodes: freed(core::mem::take(&mut network.nodes)),
        handovers,
        recorder: freed(network.recorder),
    }
}

#[test]
fn after_twice_as_many_handovers_the_nodes_hold_as_much_and_the_recorder_the_rows_more() {
    let mip6_ro = [
        ("scheme", "mip6-ro"),
        ("mip6.home_agent.duplicate_address_detection", "0 s"),
    ];
    for scheme in [&[][..], &mip6_ro] {
        let [once, twice] = [200, 400].map(|seconds| held(scheme, seconds));
        assert!(twice.nodes <= once.nodes + 512, "{scheme:?}: {once:?}, {twice:?}");
        let rows = BYTES_A_HANDOVER * (twice.handovers - once.handovers);
        let losses = BYTES_A_LOSS * (twice.lost - once.lost);
        let more = twice.recorder - once.recorder;
        assert!(
            more < rows + losses,
            "{scheme:?}: {more} bytes more: {once:?}, {twice:?}"
        );
    }
}
