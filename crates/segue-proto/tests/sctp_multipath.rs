//! Concurrent multipath transfer: each part, on and off. Host A sends to the two addresses of host B.

use crate::common::*;
use segue_proto::contract::LocalAddress;
use segue_proto::sctp::multipath::{Cuc, RtxPolicy};
use segue_proto::sctp::{
    AddressChange, Config, MultipathConfig, PathSnapshot, PathState, Profile, SackRoute,
};
use segue_proto::{Duration, InterfaceId};
use segue_wire::Tsn;
use segue_wire::sctp::{Chunk, GapAckBlock, Sack};

pub(crate) const MESSAGE: u32 = 1000;

pub(crate) fn config(multipath: MultipathConfig) -> Config {
    Config {
        rto_initial: ms(500),
        rto_min: ms(200),
        sack_delay: ms(50),
        sack_route: SackRoute::Arrival,
        receive_buffer: 4_000_000,
        send_buffer: 4_000_000,
        multipath: Some(multipath),
        ..Config::new(Profile::Rfc4960)
    }
}

/// B's address that a packet is about.
pub(crate) fn path_of(d: &Departure) -> u16 {
    let b = if d.from == A {
        d.packet.ip.destination
    } else {
        d.packet.ip.source
    };
    if b == address(B, 1) { 1 } else { 2 }
}

/// Both ends up, both paths confirmed; packets take `delays` by path.
fn two_paths(multipath: MultipathConfig, delays: [u64; 2]) -> Net {
    let mut net = Net::established(config(multipath), [1, 2]);
    net.run_for(ms(1000));
    assert_eq!(path(&net, 2).state, PathState::Active);
    net.rule = Box::new(move |d| vec![ms(delays[usize::from(path_of(d)) - 1])]);
    net.log.clear();
    net
}

pub(crate) fn path(net: &Net, n: u16) -> PathSnapshot {
    net.association(A)
        .paths()
        .find(|p| p.destination == address(B, n))
        .expect("path")
}

pub(crate) fn bulk(net: &mut Net, messages: u64) {
    for i in 0..messages {
        net.send(A, 0, synthetic(i * u64::from(MESSAGE), MESSAGE));
    }
}

/// TSNs of DATA that A sent to B's address `n`, in order.
pub(crate) fn sent_to(net: &Net, n: u16) -> Vec<Tsn> {
    let own = net.log.iter().filter(|d| d.from == A && path_of(d) == n);
    own.flat_map(Departure::data).map(|c| c.tsn).collect()
}

fn all_arrived(net: &Net, messages: usize) {
    assert_eq!(net.messages[B].len(), messages);
    for (i, message) in net.messages[B].iter().enumerate() {
        assert!(
            message.parts[0].is_synthetic_at(i as u64 * u64::from(MESSAGE)),
            "message {i}"
        );
    }
}

#[test]
fn new_data_goes_on_every_confirmed_path_as_soon_as_its_window_has_room() {
    let mut net = two_paths(MultipathConfig::default(), [10, 10]);
    bulk(&mut net, 100);
    let at_once = net.now;
    for n in [1, 2] {
        let first = net.log.iter().filter(|d| d.at == at_once && path_of(d) == n);
        assert!(first.count() >= 1, "path {n}");
    }
    net.run_for(ms(2000));
    all_arrived(&net, 100);
    assert!(sent_to(&net, 1).len() > 30 && sent_to(&net, 2).len() > 30);
    assert_eq!(net.association(A).counters().data_chunks_retransmitted, 0);
}

#[test]
fn an_address_that_is_not_confirmed_gets_no_data() {
    let mut net = Net::symmetric(config(MultipathConfig::default()), [1, 2], 1);
    net.rule = Box::new(|d| if path_of(d) == 2 { vec![] } else { vec![ms(10)] });
    net.connect();
    net.run_for(ms(300));
    net.log.clear();
    bulk(&mut net, 50);
    net.run_for(ms(2000));
    all_arrived(&net, 50);
    assert_eq!(path(&net, 2).state, PathState::Unconfirmed);
    assert!(sent_to(&net, 2).is_empty());
}

#[test]
fn without_split_fast_retransmit_a_slow_path_is_taken_for_a_lossy_one() {
    let run = |sfr| {
        let mut net = two_paths(
            MultipathConfig {
                sfr,
                ..MultipathConfig::default()
            },
            [10, 90],
        );
        bulk(&mut net, 300);
        net.run_for(ms(5000));
        all_arrived(&net, 300);
        let b = net.association(B).counters();
        (net.association(A).counters(), b.duplicate_data_chunks)
    };
    let (with, duplicates) = run(true);
    assert_eq!((with.fast_retransmits, duplicates), (0, 0));
    assert!(with.multipath.missing_reports_withheld > 10);
    let (without, duplicates) = run(false);
    assert!(without.fast_retransmits >= 5, "{}", without.fast_retransmits);
    assert_eq!(
        duplicates, without.data_chunks_retransmitted,
        "all of them were needless"
    );
}

#[test]
fn without_cwnd_update_for_cmt_the_window_of_the_fast_path_waits_for_the_slow_one() {
    let run = |cuc| {
        let mut net = two_paths(
            MultipathConfig {
                cuc,
                ..MultipathConfig::default()
            },
            [10, 150],
        );
        bulk(&mut net, 2000);
        net.run_for(ms(450));
        (
            path(&net, 1).cwnd,
            net.association(A).counters().multipath.pseudo_cumulative_acks,
        )
    };
    let (off, none) = run(Cuc::Off);
    assert_eq!(none, 0);
    for version in [Cuc::V1, Cuc::V2] {
        let (cwnd, acks) = run(version);
        assert!(cwnd > 2 * off, "{version:?}: {cwnd} against {off}");
        assert!(acks > 10, "{version:?}: {acks}");
    }
}

/// Loses the first transmission of the DATA that A sends to B's address `n` as number `nth`.
fn lose(net: &mut Net, n: u16, nth: usize, delays: [u64; 2]) {
    let mut count = 0;
    net.rule = Box::new(move |d| {
        if d.from == A && path_of(d) == n && d.data().next().is_some() {
            count += 1;
            if count == nth {
                return vec![];
            }
        }
        vec![ms(delays[usize::from(path_of(d)) - 1])]
    });
}

#[test]
fn delayed_acks_halve_the_sacks_and_count_the_packets() {
    let run = |dac| {
        let mut net = two_paths(
            MultipathConfig {
                dac,
                ..MultipathConfig::default()
            },
            [10, 70],
        );
        bulk(&mut net, 400);
        net.run_for(ms(4000));
        all_arrived(&net, 400);
        let counts: Vec<u8> = net
            .log
            .iter()
            .filter(|d| d.from == B)
            .flat_map(|d| &d.sctp().chunks)
            .filter_map(|c| match c {
                Chunk::Sack(sack) => Some(sack.data_packets),
                _ => None,
            })
            .collect();
        counts
    };
    let (with, without) = (run(true), run(false));
    assert!(
        with.len() * 3 < without.len() * 2,
        "{} {}",
        with.len(),
        without.len()
    );
    assert!(with.iter().all(|n| (1..=2).contains(n)), "{with:?}");
    assert!(with.iter().filter(|n| **n == 2).count() * 2 > with.len());
    assert!(
        without.iter().all(|n| *n == 0),
        "flags are zero, as RFC 9260 has them"
    );
}

#[test]
fn a_sack_for_two_packets_of_one_path_is_two_missing_reports() {
    let sacks_until_retransmission = |packets: u8, mixed: bool| {
        let mut net = two_paths(MultipathConfig::default(), [5000, 5000]);
        net.rule = Box::new(|_| vec![]);
        bulk(&mut net, 40);
        let (first, second) = (sent_to(&net, 1), sent_to(&net, 2));
        let base = first[0].min_of(second[0]).previous();
        let lost = first[0];
        let mut acked: Vec<Tsn> = Vec::new();
        for n in 1..first.len().min(second.len()) {
            acked.push(first[n]);
            if mixed {
                acked.push(second[n]);
            }
            let sack = sack_of(base, &acked, packets);
            let packet = net.forge(A, address(B, 1), [sack]);
            net.inject(A, packet);
            if net.transmissions_of(A, lost).len() > 1 {
                return n;
            }
        }
        0
    };
    assert_eq!(sacks_until_retransmission(1, false), 3);
    assert_eq!(sacks_until_retransmission(2, false), 2);
    assert_eq!(
        sacks_until_retransmission(2, true),
        3,
        "which path the packets were of is not known"
    );
}

trait Earlier {
    fn min_of(self, other: Self) -> Self;
}

impl Earlier for Tsn {
    fn min_of(self, other: Self) -> Self {
        if self.before(other) { self } else { other }
    }
}

/// A SACK with the cumulative TSN ack `base` of `acked`, each in a block or joined with its neighbours.
fn sack_of(base: Tsn, acked: &[Tsn], packets: u8) -> Chunk {
    let mut offsets: Vec<u16> = acked.iter().map(|t| t.distance_from(base) as u16).collect();
    offsets.sort_unstable();
    let mut blocks: Vec<GapAckBlock> = Vec::new();
    for offset in offsets {
        match blocks.last_mut() {
            Some(block) if block.end + 1 == offset => block.end = offset,
            _ => blocks.push(GapAckBlock {
                start: offset,
                end: offset,
            }),
        }
    }
    Chunk::Sack(Sack {
        cumulative_tsn_ack: base,
        a_rwnd: 4_000_000,
        gap_ack_blocks: blocks.into_iter().collect(),
        duplicate_tsns: Box::default(),
        data_packets: packets,
    })
}

#[test]
fn retransmissions_go_where_the_policy_has_them() {
    // path 1 loses a chunk, and its window is cut: path 2 has the larger cwnd and ssthresh, and has lost nothing
    for (rtx_policy, expected) in [
        (RtxPolicy::Same, 1),
        (RtxPolicy::Cwnd, 2),
        (RtxPolicy::Ssthresh, 2),
        (RtxPolicy::LossRate, 2),
    ] {
        let multipath = MultipathConfig {
            rtx_policy,
            ..MultipathConfig::default()
        };
        let mut net = two_paths(multipath, [20, 20]);
        lose(&mut net, 1, 20, [20, 20]);
        bulk(&mut net, 200);
        net.run_for(ms(3000));
        all_arrived(&net, 200);
        let lost = sent_to(&net, 1)[19];
        let transmissions = net.transmissions_of(A, lost);
        assert_eq!(transmissions.len(), 2, "{rtx_policy:?}");
        assert_eq!(transmissions[1].1, address(B, expected), "{rtx_policy:?}");
        assert_eq!(net.association(A).counters().t3_expiries, 0, "{rtx_policy:?}");
    }
}

#[test]
fn retransmissions_go_wherever_there_is_room_as_soon_as_possible() {
    let multipath = MultipathConfig {
        rtx_policy: RtxPolicy::Asap,
        ..MultipathConfig::default()
    };
    let mut net = two_paths(multipath, [20, 20]);
    // more waits than windows hold: when T3-rtx of path 1 expires, only path 2 may have room
    net.rule = Box::new(|d| if path_of(d) == 1 { vec![] } else { vec![ms(20)] });
    bulk(&mut net, 100);
    let stuck = sent_to(&net, 1);
    net.run_for(ms(3000));
    all_arrived(&net, 100);
    let again = sent_to(&net, 2);
    assert!(stuck.iter().all(|t| again.contains(t)));
}

/// No packet passes on path 2.
fn kill_path_2(net: &mut Net) {
    net.rule = Box::new(|d| if path_of(d) == 2 { vec![] } else { vec![ms(10)] });
}

#[test]
fn a_path_that_potentially_failed_is_probed_and_begins_anew() {
    for segments in [1, 2] {
        let multipath = MultipathConfig {
            pf_recovery: segments,
            ..MultipathConfig::default()
        };
        let mut net = two_paths(multipath, [10, 10]);
        bulk(&mut net, 50);
        net.run_for(ms(500));
        kill_path_2(&mut net);
        bulk_from(&mut net, 50, 100);
        net.run_for(ms(450));
        assert_eq!(path(&net, 2).state, PathState::PotentiallyFailed);
        let stopped = net.log.len();
        bulk_from(&mut net, 150, 100);
        net.run_for(ms(1000));
        let later = &net.log[stopped..];
        let to_2 = || later.iter().filter(|d| d.from == A && path_of(d) == 2);
        assert!(
            to_2().all(|d| d.data().next().is_none()),
            "no data while it is in doubt"
        );
        let heartbeats = to_2().filter(|d| names(d.sctp()).contains(&"HEARTBEAT")).count();
        assert!(heartbeats >= 2, "{heartbeats} heartbeats");
        net.rule = Box::new(|_| vec![ms(10)]);
        net.run_for(ms(4000));
        assert_eq!(path(&net, 2).state, PathState::Active);
        assert_eq!(path(&net, 2).cwnd, u32::from(segments) * 1500);
        bulk_from(&mut net, 250, 50);
        net.run_for(ms(2000));
        all_arrived(&net, 300);
    }
}

#[test]
fn without_cmt_pf_a_dead_path_goes_on_getting_data() {
    let run = |pf| {
        let mut net = two_paths(
            MultipathConfig {
                pf,
                ..MultipathConfig::default()
            },
            [10, 10],
        );
        bulk(&mut net, 50);
        net.run_for(ms(500));
        kill_path_2(&mut net);
        let mut next = 50;
        let begin = net.log.len();
        for _ in 0..40 {
            bulk_from(&mut net, next, 20);
            next += 20;
            net.run_for(ms(100));
        }
        let dead = net.log[begin..].iter().filter(|d| d.from == A && path_of(d) == 2);
        dead.flat_map(Departure::data).count()
    };
    let (with, without) = (run(true), run(false));
    // a last flight each; after it one packet per T3-rtx, and only without CMT-PF
    assert!(
        without > with,
        "{without} chunks to the dead path, {with} with CMT-PF"
    );
}

/// Messages `from` and on.
fn bulk_from(net: &mut Net, from: u64, messages: u64) {
    for i in from..from + messages {
        net.send(A, 0, synthetic(i * u64::from(MESSAGE), MESSAGE));
    }
}

#[test]
fn a_sack_that_was_overtaken_is_not_taken_for_reneging() {
    for (ignore_stale_sacks, outstanding_again) in [(true, 0), (false, 2 * MESSAGE)] {
        let multipath = MultipathConfig {
            ignore_stale_sacks,
            ..MultipathConfig::default()
        };
        let mut net = two_paths(multipath, [10, 10]);
        net.rule = Box::new(|_| vec![]);
        bulk(&mut net, 6);
        let mut sent = [sent_to(&net, 1), sent_to(&net, 2)].concat();
        sent.sort_by_key(|t| t.0);
        let base = sent[0].previous();
        let newer = net.forge(A, address(B, 1), [sack_of(base, &sent[2..6], 2)]);
        let older = net.forge(A, address(B, 2), [sack_of(base, &sent[2..4], 2)]);
        net.inject(A, newer);
        let before = net.association(A).outstanding_bytes();
        net.inject(A, older);
        assert_eq!(net.association(A).outstanding_bytes(), before + outstanding_again);
        assert_eq!(net.association(A).counters().multipath.stale_sacks, 1);
        net.association(A).check_invariants().expect("the books balance");
    }
}

#[test]
fn a_receiver_that_reneged_is_believed_once_its_cumulative_ack_moves() {
    let mut net = two_paths(MultipathConfig::default(), [10, 10]);
    net.rule = Box::new(|_| vec![]);
    bulk(&mut net, 6);
    let mut sent = [sent_to(&net, 1), sent_to(&net, 2)].concat();
    sent.sort_by_key(|t| t.0);
    let first = net.forge(A, address(B, 1), [sack_of(sent[0].previous(), &sent[2..6], 2)]);
    net.inject(A, first);
    assert_eq!(net.association(A).outstanding_bytes(), 2 * MESSAGE);
    let moved = net.forge(A, address(B, 1), [sack_of(sent[1], &[], 2)]);
    net.inject(A, moved);
    assert_eq!(net.association(A).outstanding_bytes(), 4 * MESSAGE);
    net.association(A).check_invariants().expect("the books balance");
}

#[test]
fn the_round_trip_of_the_slow_path_is_not_measured_by_sacks_over_the_fast_one() {
    let run = |own_rtt| {
        let mut settings = config(MultipathConfig {
            own_rtt,
            ..MultipathConfig::default()
        });
        // no timeout comes between
        settings.rto_min = ms(1000);
        let mut net = Net::symmetric(settings, [1, 2], 1);
        net.rule = Box::new(|_| vec![ms(150)]);
        net.connect();
        net.run_for(ms(2000));
        assert_eq!(path(&net, 2).srtt, Some(ms(300)));
        net.rule = Box::new(|d| vec![ms(if path_of(d) == 1 { 10 } else { 150 })]);
        // a stream that keeps both paths busy
        for burst in 0..150 {
            for i in 0..20 {
                net.send(A, 0, synthetic((burst * 20 + i) * u64::from(MESSAGE), MESSAGE));
            }
            net.run_for(ms(10));
        }
        (
            path(&net, 2).srtt.expect("measured"),
            net.association(A).counters().multipath,
        )
    };
    let (own, counted) = run(true);
    assert!(own >= ms(200), "{own}");
    assert!(counted.round_trips_refused > 0);
    let (any, counted) = run(false);
    assert!(any < own, "{any} {own}");
    assert!(counted.ambiguous_round_trips > 0 && counted.round_trips_refused == 0);
}

#[test]
fn a_peer_whose_sacks_all_come_over_one_path_is_measured_all_the_same() {
    let mut settings = config(MultipathConfig::default());
    settings.sack_route = SackRoute::RoutingTable;
    let mut net = Net::established(settings, [1, 2]);
    net.run_for(ms(1000));
    let early = path(&net, 2).srtt;
    net.rule = Box::new(|d| vec![ms(if path_of(d) == 1 { 10 } else { 100 })]);
    bulk(&mut net, 1500);
    net.run_for(ms(6000));
    assert!(path(&net, 2).srtt > early, "{early:?} {:?}", path(&net, 2).srtt);
}

#[test]
fn data_in_flight_to_an_address_that_is_deleted_moves_at_once() {
    let mut net = two_paths(MultipathConfig::default(), [10, 10]);
    bulk(&mut net, 1000);
    // between two flights: what is sent 10 ms later is lost
    net.run_for(ms(90));
    kill_path_2(&mut net);
    net.run_for(ms(15));
    let gone = LocalAddress {
        interface: InterfaceId(2),
        address: address(B, 2),
    };
    net.command(B, |b, now| {
        b.local_address_removed(now, gone.address);
        b.change_addresses(now, &[AddressChange::Delete(gone.address)])
            .expect("asked");
    });
    let asked = net.now;
    net.run_for(ms(5000));
    all_arrived(&net, 1000);
    let counters = net.association(A).counters();
    assert_eq!(counters.multipath.paths_left, 1);
    assert!(counters.multipath.chunks_moved > 0);
    assert_eq!(counters.t3_expiries, 0, "nothing had to time out");
    let moved: Vec<_> = sent_to(&net, 2)
        .into_iter()
        .map(|t| net.transmissions_of(A, t))
        .filter(|t| t.len() > 1)
        .collect();
    // all but what the parting SACK says has arrived goes out again
    assert!(!moved.is_empty() && moved.len() as u64 <= counters.multipath.chunks_moved);
    assert!(moved.iter().all(|t| t[1].1 == address(B, 1)));
    // the first of them leaves with the answer, whatever cwnd says
    let first = moved.iter().map(|t| t[1].0).min().expect("moved");
    assert!(first.since(asked) <= Duration::from_millis(10), "{first:?}");
    assert!(
        path(&net, 1).ssthresh > 10_000,
        "the path that goes on is not to blame"
    );
}
