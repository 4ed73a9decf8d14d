//! Datagrams of programs that are not ours: what they say is theirs, and each of them is new data.

use super::Realtime;
use crate::output::{Metrics, RunOptions};
use crate::scenario::Scenario;
use crate::sink::Memory;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_proto::{Duration, Instant, InterfaceId};

/// One wire, which lets nothing through from 2 to 3 s.
const SCENARIO: &str = r#"
name = "wire"
duration = "5 s"
scheme = "none"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
name = "wire"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "100 packets"
[[event]]
kind = "blackhole"
on = "wire"
at = "2 s"
for = "1 s"
"#;

/// A datagram with 1000 bytes of the same, as a kernel gives it; in a fragment, if so.
fn datagram((from, to): (Ipv6Addr, Ipv6Addr), ports: (u16, u16), in_fragment: bool) -> Bytes {
    let extension = if in_fragment { 8 } else { 0 };
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((extension + 8 + 1000_u16).to_be_bytes());
    bytes.extend([if in_fragment { 44 } else { 17 }, 64]);
    bytes.extend(from.octets());
    bytes.extend(to.octets());
    if in_fragment {
        // the first, and more are to come (RFC 8200 section 4.5)
        bytes.extend([17, 0, 0, 1, 0, 0, 0, 7]);
    }
    for half in [ports.0, ports.1, 1008, 1] {
        bytes.extend(half.to_be_bytes());
    }
    bytes.resize(bytes.len() + 1000, 0x55);
    bytes.into()
}

/// A TCP segment with 4 bytes of data.
fn segment((from, to): (Ipv6Addr, Ipv6Addr), ports: (u16, u16), seq: u8) -> Bytes {
    let mut bytes = vec![0x60, 0, 0, 0, 0, 24, 6, 64];
    bytes.extend(from.octets());
    bytes.extend(to.octets());
    bytes.extend(ports.0.to_be_bytes());
    bytes.extend(ports.1.to_be_bytes());
    bytes.extend([0, 0, 0, seq, 0, 0, 0, 0, 5 << 4, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    bytes.extend([0x55; 4]);
    bytes.into()
}

/// A datagram each 10 ms from 1 to 4 s.
fn run(in_fragments: bool) -> Metrics {
    run_beside(in_fragments, &[])
}

/// The same, with a segment of TCP to the same port when so many milliseconds have passed.
fn run_beside(in_fragments: bool, said_ms: &[u64]) -> Metrics {
    let scenario = Scenario::from_toml(SCENARIO, "wire.toml", &[]).unwrap();
    let mut network = Realtime::new(&scenario, 1, &RunOptions::default()).unwrap();
    let own: Vec<Ipv6Addr> = network.hosts().iter().map(|h| h.addresses[0].address).collect();
    let mut now = Instant::ZERO + Duration::from_secs(1);
    while now < Instant::ZERO + Duration::from_secs(4) {
        let is_now = |ms: &u64| Instant::ZERO + Duration::from_millis(*ms) == now;
        if let Some(place) = said_ms.iter().position(is_now) {
            let bytes = segment((own[0], own[1]), (60_000, 9000), 4 * place as u8);
            network.handle_kernel(now, 0, InterfaceId(0), &bytes).unwrap();
        }
        let bytes = datagram((own[0], own[1]), (50_000, 9000), in_fragments);
        network.handle_kernel(now, 0, InterfaceId(0), &bytes).unwrap();
        now += Duration::from_millis(10);
        network.handle_timeout(now);
        while network.poll_delivery().is_some() {}
        while network.poll_change().is_some() || network.poll_lateness().is_some() {}
    }
    let end = Instant::ZERO + Duration::from_secs(5);
    network.finish(end, &mut Memory::default()).unwrap().metrics
}

#[test]
fn datagrams_of_any_program_are_counted_as_sent_arrived_and_lost() {
    let metrics = run(false);
    let [flow] = &metrics.flows[..] else {
        panic!("{:?}", metrics.flows)
    };
    assert_eq!((flow.source_port, flow.destination_port), (50_000, 9000));
    assert_eq!((flow.from.as_str(), flow.to.as_str()), ("a", "b"));
    let counts = &flow.counts;
    assert_eq!((counts.packets_sent, counts.retransmissions), (300, 0));
    // what is under way when it begins is lost as well
    assert!((100..=101).contains(&counts.lost_packets), "{counts:?}");
    assert_eq!(
        flow.transferred_bytes,
        1000 * (counts.packets_sent - counts.lost_packets)
    );
    let around = flow.around_events.unwrap();
    assert!((around.duration_s - 1.01).abs() < 0.011, "{around:?}");
    assert!(!around.censored);
    assert!(metrics.warnings.is_empty(), "{:?}", metrics.warnings);
}

#[test]
fn what_a_program_says_over_tcp_beside_its_datagrams_waits_for_them() {
    let metrics = run_beside(false, &[1000, 3500]);
    let found: Vec<_> = metrics
        .flows
        .iter()
        .map(|f| (f.transferred_bytes, f.around_events.is_some()))
        .collect();
    assert_eq!(found.len(), 2);
    assert!(found.contains(&(8, false)), "{found:?}");
    assert!(metrics.longest_gap_s < 1.1, "{}", metrics.longest_gap_s);
}

#[test]
fn datagrams_in_fragments_are_left_out_and_it_is_said() {
    let metrics = run(true);
    assert!(metrics.flows.is_empty(), "{:?}", metrics.flows);
    let said: Vec<_> = metrics.warnings.iter().map(|w| w.text.as_str()).collect();
    assert_eq!(
        said,
        ["300 datagrams that a kernel sent in fragments are in no figure"]
    );
}
