//! Path MTU: lowered by Packet Too Big, found by probing, and what becomes of chunks that were cut too large (RFC 9260
//! section 7.3, RFC 8201, RFC 8899).

use crate::common::*;
use segue_proto::sctp::{Config, PmtuDiscovery, Profile};
use segue_proto::{Duration, Instant};
use segue_wire::Packet;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::sctp::Chunk;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A network with a bottleneck, beyond which A's host fragments by what its SCTP knows.
struct Bottleneck {
    net: Net,
    mtu: Rc<Cell<usize>>,
    /// What the host fragments by.
    fragment_at: Rc<Cell<usize>>,
    too_big: Rc<RefCell<Vec<Packet>>>,
    fragmented: Rc<Cell<u32>>,
    /// The router says what it drops.
    tells: bool,
    dropped: usize,
}

impl Bottleneck {
    fn new(discovery: PmtuDiscovery, mtu: usize, tells: bool) -> Self {
        let config = Config {
            pmtu_discovery: discovery,
            hb_interval: None,
            ..Config::default()
        };
        let mut net = Net::symmetric(config, [1, 1], 1);
        let mtu = Rc::new(Cell::new(mtu));
        let fragment_at = Rc::new(Cell::new(usize::MAX));
        let too_big = Rc::new(RefCell::new(Vec::new()));
        let fragmented = Rc::new(Cell::new(0));
        let (m, f, t, n) = (
            mtu.clone(),
            fragment_at.clone(),
            too_big.clone(),
            fragmented.clone(),
        );
        net.rule = Box::new(move |d| {
            let length = d.packet.buffer_len();
            if d.from == B || length <= m.get() {
                return vec![ms(10)];
            }
            let probe = d.sctp().chunks.iter().any(|c| matches!(c, Chunk::Pad(_)));
            if !probe && length > f.get() && f.get() <= m.get() {
                n.set(n.get() + 1);
                return vec![ms(10)];
            }
            t.borrow_mut().push(d.packet.clone());
            vec![]
        });
        net.connect();
        let mut made = Self {
            net,
            mtu,
            fragment_at,
            too_big,
            fragmented,
            tells,
            dropped: 0,
        };
        made.run_for(ms(500));
        assert!(made.net.association(A).is_established());
        made
    }

    fn run_for(&mut self, duration: Duration) {
        let end = self.net.now + duration;
        loop {
            let known = self.net.ends[A].reduced_mtu(address(B, 1));
            self.fragment_at.set(known.map_or(usize::MAX, |m| m as usize));
            let packets = core::mem::take(&mut *self.too_big.borrow_mut());
            self.dropped += packets.len();
            if self.tells && !packets.is_empty() {
                let now: Instant = self.net.now;
                for packet in &packets {
                    let error = Icmpv6::PacketTooBig {
                        mtu: self.mtu.get() as u32,
                        invoking: Icmpv6::quote(packet),
                    };
                    self.net.ends[A].handle_icmp(now, &error);
                }
                let known = self.net.ends[A].reduced_mtu(address(B, 1));
                self.fragment_at.set(known.map_or(usize::MAX, |m| m as usize));
                self.net.drain();
            }
            if !self.net.step(end) {
                return;
            }
        }
    }

    /// Sends messages of one chunk each, as large as they are cut now.
    fn send(&mut self, count: u64) {
        for _ in 0..count {
            let len = self.net.association(A).max_message_in_one_chunk();
            self.net.send(A, 0, synthetic(0, len));
        }
    }

    /// The longest packet with DATA since the log was cleared.
    fn longest(&self) -> usize {
        self.net
            .log
            .iter()
            .filter(|d| d.data().next().is_some())
            .map(|d| d.packet.buffer_len())
            .max()
            .expect("DATA")
    }

    fn t3_expiries(&self) -> u64 {
        self.net.association(A).counters().t3_expiries
    }
}

#[test]
fn packet_too_big_lowers_the_pmtu_and_what_was_too_big_goes_out_again_in_fragments() {
    let mut b = Bottleneck::new(PmtuDiscovery::PacketTooBig, 1400, true);
    let window = b.net.association(A).paths().next().expect("path").cwnd;
    b.send(20);
    b.run_for(Duration::from_secs(2));
    assert_eq!(b.net.messages[B].len(), 20);
    assert!(b.dropped > 0 && b.fragmented.get() > 0);
    assert_eq!(b.t3_expiries(), 0, "it was known what to repeat, and when");
    assert_eq!(b.net.ends[A].reduced_mtu(address(B, 1)), Some(1400));
    assert!(
        b.net.association(A).paths().next().expect("path").cwnd >= window,
        "no sign of congestion"
    );
    // from now on messages are cut to fit
    b.net.log.clear();
    let before = (b.dropped, b.fragmented.get());
    b.send(20);
    b.net.send(A, 1, synthetic(0, 10_000));
    b.run_for(Duration::from_secs(2));
    assert_eq!(b.longest(), 1400);
    assert_eq!((b.dropped, b.fragmented.get()), before);
    assert_eq!(b.net.messages[B].len(), 41);
}

#[test]
fn a_packet_too_big_below_the_least_mtu_or_above_the_pmtu_changes_nothing() {
    // RFC 8200 section 5
    let mut b = Bottleneck::new(PmtuDiscovery::PacketTooBig, 1500, true);
    b.send(1);
    let packet = b.net.log.last().expect("packet").packet.clone();
    for mtu in [0, 68, 1279, 1500, 9000] {
        let error = Icmpv6::PacketTooBig {
            mtu,
            invoking: Icmpv6::quote(&packet),
        };
        let now = b.net.now;
        b.net.ends[A].handle_icmp(now, &error);
    }
    assert_eq!(b.net.ends[A].counters().icmp.ignored, 5);
    assert_eq!(b.net.ends[A].reduced_mtu(address(B, 1)), None);
    // nor does one about a packet that was not ours
    let mut forged = packet;
    if let segue_wire::Payload::Sctp(sctp) = &mut forged.payload {
        sctp.verification_tag ^= 1;
    }
    let error = Icmpv6::PacketTooBig {
        mtu: 1280,
        invoking: Icmpv6::quote(&forged),
    };
    let now = b.net.now;
    b.net.ends[A].handle_icmp(now, &error);
    assert_eq!(b.net.ends[A].counters().icmp.invalid, 1);
    assert_eq!(b.net.ends[A].reduced_mtu(address(B, 1)), None);
}

#[test]
fn ten_minutes_later_the_larger_packet_is_tried_again() {
    // RFC 8201 section 4
    let mut b = Bottleneck::new(PmtuDiscovery::PacketTooBig, 1400, true);
    b.send(5);
    b.run_for(Duration::from_secs(599));
    assert_eq!(b.net.ends[A].reduced_mtu(address(B, 1)), Some(1400));
    b.mtu.set(1500);
    b.run_for(Duration::from_secs(2));
    assert_eq!(b.net.ends[A].reduced_mtu(address(B, 1)), None);
    b.net.log.clear();
    b.send(5);
    b.run_for(Duration::from_secs(1));
    assert_eq!(b.longest(), 1500);
    assert_eq!(b.net.messages[B].len(), 10);
}

#[test]
fn probing_finds_what_passes_within_four_bytes_without_losing_data_or_window() {
    for mtu in [1280, 1300, 1420, 1496, 1500] {
        let mut b = Bottleneck::new(PmtuDiscovery::Probing, mtu, false);
        b.send(20);
        b.run_for(Duration::from_secs(60));
        b.net.log.clear();
        b.send(3);
        b.run_for(Duration::from_secs(5));
        let found = b.longest();
        assert!(found <= mtu && found + 4 > mtu, "{found} of {mtu}");
        assert_eq!(b.net.messages[B].len(), 23);
        assert_eq!((b.t3_expiries(), b.fragmented.get()), (0, 0));
        assert_eq!(b.net.association(A).paths().next().expect("path").error_count, 0);
        let probes = b.net.association(A).counters().pmtu_probes;
        assert!(probes <= 3 * 8, "{probes} probes for {mtu}");
        // nothing more is asked until ten minutes have passed
        b.run_for(Duration::from_secs(300));
        assert_eq!(b.net.association(A).counters().pmtu_probes, probes);
        if mtu == 1420 {
            b.mtu.set(1500);
            b.run_for(Duration::from_secs(400));
            assert_eq!(b.net.ends[A].reduced_mtu(address(B, 1)), None);
        }
    }
}

#[test]
fn a_probe_is_as_long_as_it_says_and_says_nothing_new_to_its_receiver() {
    let mut b = Bottleneck::new(PmtuDiscovery::Probing, 1500, false);
    b.net.log.clear();
    b.send(1);
    b.run_for(Duration::from_secs(1));
    let unknown = b.net.association(B).counters().refused.unknown;
    assert_eq!(unknown, 0);
    assert_eq!(
        b.net.ends[A].reduced_mtu(address(B, 1)),
        None,
        "1500 at the first attempt"
    );
}

#[test]
fn packet_too_big_shortens_the_search() {
    let mut b = Bottleneck::new(PmtuDiscovery::Probing, 1420, true);
    b.send(1);
    b.run_for(Duration::from_secs(2));
    assert_eq!(b.net.ends[A].reduced_mtu(address(B, 1)), Some(1420));
    assert!(b.net.association(A).counters().pmtu_probes <= 2);
}

#[test]
fn a_path_that_comes_to_swallow_large_packets_is_noticed_by_probing_only() {
    // RFC 8899 section 4.3; no router says anything
    for (discovery, survives) in [
        (PmtuDiscovery::Probing, true),
        (PmtuDiscovery::PacketTooBig, false),
    ] {
        let mut b = Bottleneck::new(discovery, 1500, false);
        b.send(5);
        b.run_for(Duration::from_secs(20));
        assert_eq!(b.net.ends[A].reduced_mtu(address(B, 1)), None);
        b.mtu.set(1380);
        b.send(20);
        b.run_for(Duration::from_secs(120));
        assert_eq!(b.net.messages[B].len() == 25, survives, "{discovery:?}");
        if survives {
            let found = b.net.ends[A].reduced_mtu(address(B, 1)).expect("reduced");
            assert!(found <= 1380 && found > 1370, "{found}");
        }
    }
}

#[test]
fn without_discovery_nothing_is_believed() {
    let mut b = Bottleneck::new(PmtuDiscovery::None, 1400, true);
    b.send(1);
    b.run_for(Duration::from_secs(1));
    assert!(b.dropped > 0);
    assert_eq!(b.net.ends[A].reduced_mtu(address(B, 1)), None);
    assert_eq!(b.net.messages[B].len(), 0);
}

#[test]
fn windows_count_in_the_new_unit() {
    // RFC 4960 section 7.2.1 counts in MTU: after a timeout cwnd is one of them
    let config = Config {
        hb_interval: None,
        ..Config::new(Profile::Rfc4960)
    };
    let mut net = Net::established(config, [1, 1]);
    net.send(A, 0, synthetic(0, 1400));
    let about = net.log.last().expect("packet").packet.clone();
    net.run_for(ms(500));
    let error = Icmpv6::PacketTooBig {
        mtu: 1300,
        invoking: Icmpv6::quote(&about),
    };
    let now = net.now;
    net.ends[A].handle_icmp(now, &error);
    net.drain();
    net.rule = Box::new(|_| vec![]);
    net.send(A, 0, synthetic(1400, 100));
    net.run_for(Duration::from_millis(1500));
    assert_eq!(net.association(A).paths().next().expect("path").cwnd, 1300);
}
