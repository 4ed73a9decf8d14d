//! Concurrent multipath transfer when retransmissions are lost in their turn, or take longer than T3-rtx. Host A
//! sends to the two addresses of host B.

use crate::common::*;
use crate::sctp_multipath::{MESSAGE, bulk, config, path, path_of, sent_to};
use segue_proto::sctp::multipath::{RtxPolicy, SchedulerKind};
use segue_proto::sctp::{Config, Event, MultipathConfig, PathState, Reliability, SackRoute, SendOptions};
use segue_proto::{Duration, Instant};
use segue_wire::Tsn;
use segue_wire::sctp::{Chunk, GapAckBlock, Sack};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

fn two_paths(config: Config) -> Net {
    let mut net = Net::established(config, [1, 2]);
    net.run_for(ms(1000));
    assert_eq!(path(&net, 2).state, PathState::Active);
    net.log.clear();
    net
}

/// Loses the first `times` transmissions of the chunk that A sends to B's address 1 as number `nth`.
fn lose_again_and_again(net: &mut Net, nth: usize, times: usize) {
    let (mut count, mut unlucky, mut lost) = (0, None, 0);
    net.rule = Box::new(move |d| {
        if d.from == A
            && let Some(chunk) = d.data().next()
        {
            count += usize::from(path_of(d) == 1);
            if count == nth && unlucky.is_none() {
                unlucky = Some(chunk.tsn);
            }
            if unlucky == Some(chunk.tsn) && lost < times {
                lost += 1;
                return vec![];
            }
        }
        vec![ms(20)]
    });
}

#[test]
fn a_fast_retransmission_waits_for_room_on_a_path_that_lost_nothing() {
    // path 1 loses a chunk and is cut, so that path 2 has the largest ssthresh; its window is full for a long round trip
    let mut net = two_paths(config(MultipathConfig {
        rtx_policy: RtxPolicy::Ssthresh,
        ..MultipathConfig::default()
    }));
    let mut count = 0;
    net.rule = Box::new(move |d| {
        count += usize::from(d.from == A && path_of(d) == 1 && d.data().next().is_some());
        match path_of(d) {
            1 if d.from == A && count == 40 => vec![],
            1 => vec![ms(20)],
            _ => vec![ms(150)],
        }
    });
    bulk(&mut net, 1000);
    let begins = net.now;
    let mut full = 0;
    while net.step(begins + ms(5000)) {
        let second = path(&net, 2);
        assert!(
            second.flightsize < second.cwnd + 16 + MESSAGE,
            "{second:?} holds more than a packet beyond cwnd"
        );
        full += usize::from(second.flightsize >= second.cwnd);
    }
    assert!(full > 0);
    assert_eq!(net.messages[B].len(), 1000);
    let counters = net.association(A).counters();
    assert_eq!((counters.fast_retransmits, counters.t3_expiries), (1, 0));
    let lost = sent_to(&net, 1)[39];
    assert_eq!(net.transmissions_of(A, lost)[1].1, address(B, 2));
}

#[test]
fn with_multiple_fast_retransmit_a_lost_retransmission_does_not_wait_for_t3() {
    for policy in [RtxPolicy::Same, RtxPolicy::Cwnd] {
        let run = |mfr| {
            let mut net = two_paths(config(MultipathConfig {
                mfr,
                rtx_policy: policy,
                ..MultipathConfig::default()
            }));
            lose_again_and_again(&mut net, 20, 3);
            bulk(&mut net, 1000);
            net.run_for(ms(6000));
            assert_eq!(net.messages[B].len(), 1000);
            (
                net.association(A).counters(),
                net.association(B).counters().duplicate_data_chunks,
            )
        };
        let (with, duplicates) = run(true);
        assert_eq!((with.t3_expiries, duplicates), (0, 0), "{policy:?}");
        assert_eq!(
            (with.fast_retransmits, with.multipath.retransmissions_lost),
            (3, 2)
        );
        let (without, _) = run(false);
        assert!(without.t3_expiries > 0, "{policy:?}");
        assert_eq!(without.multipath.retransmissions_lost, 0);
    }
}

/// Queues without end: path 1 carries a packet in 2 ms, path 2 one in 10 ms. Chunk `nth` to path 1 is lost once. How long the
/// last packet of data took on path 2 is told.
fn filling_queues(net: &mut Net, nth: usize) -> Rc<Cell<Duration>> {
    let (mut count, mut free) = (0, [Instant::ZERO; 2]);
    let took = Rc::new(Cell::new(Duration::ZERO));
    let told = Rc::clone(&took);
    net.rule = Box::new(move |d| {
        if d.from == B || d.data().next().is_none() {
            return vec![ms(10)];
        }
        let n = usize::from(path_of(d)) - 1;
        count += usize::from(n == 0);
        if n == 0 && count == nth {
            return vec![];
        }
        free[n] = free[n].max(d.at) + ms([2, 10][n]);
        let delay = free[n].since(d.at) + ms(10);
        if n == 1 {
            told.set(delay);
        }
        vec![delay]
    });
    took
}

#[test]
fn a_chunk_that_comes_from_another_path_does_not_stop_t3_from_following_what_is_under_way_there() {
    for nth in [100, 250, 400, 550] {
        // path 2 has lost nothing: that is where the chunk goes
        let mut net = two_paths(config(MultipathConfig {
            rtx_policy: RtxPolicy::LossRate,
            ..MultipathConfig::default()
        }));
        let took = filling_queues(&mut net, nth);
        bulk(&mut net, 2000);
        while net.association(A).counters().fast_retransmits == 0 {
            assert!(net.step(at(100.0)));
        }
        let again = retransmitted(&net)[0];
        assert_eq!(net.transmissions_of(A, again)[1].1, address(B, 2));
        let (takes, rto) = (took.get(), path(&net, 2).rto);
        assert!(
            takes > rto,
            "behind a queue that takes {takes}, with an RTO of {rto}"
        );
        net.run_for(ms(30_000));
        assert_eq!(net.messages[B].len(), 2000);
        assert_eq!(net.association(A).counters().t3_expiries, 0, "{nth}");
    }
}

/// What was sent more than once.
fn retransmitted(net: &Net) -> Vec<Tsn> {
    let mut seen = BTreeSet::new();
    let data = net.log.iter().filter(|d| d.from == A).flat_map(Departure::data);
    data.filter(|c| !seen.insert(c.tsn.0)).map(|c| c.tsn).collect()
}

#[test]
fn a_timeout_leaves_alone_what_was_sent_within_the_last_round_trip() {
    let run = |spare_recent| {
        let mut settings = config(MultipathConfig {
            spare_recent,
            rtx_policy: RtxPolicy::Same,
            ..MultipathConfig::default()
        });
        settings.rto_min = ms(50);
        let mut net = two_paths(settings);
        // the retransmission is lost as well, and the rest of the window is under way when T3-rtx expires for it
        lose_again_and_again(&mut net, 60, 2);
        bulk(&mut net, 2000);
        net.run_for(ms(6000));
        assert_eq!(net.messages[B].len(), 2000);
        let counters = net.association(A).counters();
        assert!(counters.t3_expiries > 0);
        (
            counters.multipath.chunks_spared,
            net.association(B).counters().duplicate_data_chunks,
        )
    };
    let (spared, duplicates) = run(true);
    assert!(spared > 0 && duplicates == 0, "{spared} {duplicates}");
    let (spared, duplicates) = run(false);
    assert!(spared == 0 && duplicates > 5, "{spared} {duplicates}");
}

#[test]
fn an_acknowledgement_of_what_timed_out_brings_no_path_back() {
    for pf in [true, false] {
        let mut settings = config(MultipathConfig {
            pf,
            ..MultipathConfig::default()
        });
        // chunks stay marked for a while after the timeout
        settings.max_burst = Some(1);
        settings.pf_max_retrans = Some(0);
        let mut net = two_paths(settings);
        net.rule = Box::new(|_| vec![]);
        net.command(A, |a, now| {
            for i in 0..10 {
                let data = synthetic(i * u64::from(MESSAGE), MESSAGE);
                a.send(now, 0, data, SendOptions::default()).expect("sent");
            }
        });
        for _ in 0..4 {
            // duplicates of the last SACK: an opportunity to send, for what Max.Burst has kept back
            let base = first_tsn(&net).previous();
            let packet = net.forge(A, address(B, 1), [sack_of(base, &[])]);
            net.inject(A, packet);
        }
        let [first, second] = [1, 2].map(|n| sent_to(&net, n));
        assert!(first.len() == 5 && second.len() == 5, "{first:?} {second:?}");
        let base = first_tsn(&net).previous();
        let packet = net.forge(A, address(B, 1), [sack_of(base, &first)]);
        net.inject(A, packet);
        while path(&net, 2).state == PathState::Active {
            assert!(net.step(net.now + ms(1000)) || net.now < at(10.0));
        }
        let marked = *second.last().expect("sent");
        assert_eq!(net.transmissions_of(A, marked).len(), 1, "it waits");
        let late: Vec<Tsn> = first.iter().copied().chain([marked]).collect();
        let packet = net.forge(A, address(B, 1), [sack_of(base, &late)]);
        net.inject(A, packet);
        let expected = if pf {
            PathState::PotentiallyFailed
        } else {
            PathState::Active
        };
        assert_eq!(path(&net, 2).state, expected);
        net.rule = Box::new(|_| vec![ms(10)]);
        net.run_for(ms(5000));
        assert_eq!(path(&net, 2).state, PathState::Active, "a heartbeat does");
    }
}

/// A SACK with the cumulative TSN ack `base` of `acked`, each in a block of its own.
fn sack_of(base: Tsn, acked: &[Tsn]) -> Chunk {
    let mut offsets: Vec<u16> = acked.iter().map(|t| t.distance_from(base) as u16).collect();
    offsets.sort_unstable();
    let cumulative = (1..).zip(&offsets).take_while(|(n, o)| n == *o).count() as u16;
    let rest = offsets[usize::from(cumulative)..].iter();
    let blocks = rest.map(|offset| GapAckBlock {
        start: offset - cumulative,
        end: offset - cumulative,
    });
    Chunk::Sack(Sack {
        cumulative_tsn_ack: base.add(u32::from(cumulative)),
        a_rwnd: 4_000_000,
        gap_ack_blocks: blocks.collect(),
        duplicate_tsns: Box::default(),
        data_packets: 1,
    })
}

#[test]
fn a_heartbeat_that_data_has_answered_for_is_no_error_when_it_is_lost() {
    let settings = Config {
        rto_initial: ms(200),
        rto_min: ms(100),
        sack_delay: ms(20),
        pf_max_retrans: Some(0),
        ..Config::default()
    };
    let mut net = Net::established(settings, [1, 1]);
    net.run_for(ms(500));
    let mut lost = false;
    net.rule = Box::new(move |d| {
        let heartbeat = names(d.sctp()).contains(&"HEARTBEAT");
        let first = d.from == A && d.data().next().is_some() && !core::mem::replace(&mut lost, true);
        if heartbeat || first { vec![] } else { vec![ms(10)] }
    });
    net.send(A, 0, synthetic(0, MESSAGE));
    net.run_for(Duration::from_secs(5));
    let states: Vec<_> = net.events[A]
        .iter()
        .filter_map(|(_, e)| match e {
            Event::PathStateChanged { state, .. } => Some(*state),
            _ => None,
        })
        .collect();
    assert_eq!(states, [PathState::PotentiallyFailed, PathState::Active]);
    assert_eq!(path(&net, 1).error_count, 0);
}

/// RFC 7829 section 3.2: a path that potentially failed is probed every RTO, also when it failed again before the
/// heartbeat of the first time was over.
#[test]
fn a_path_that_fails_again_is_probed_again() {
    let settings = Config {
        rto_initial: ms(400),
        rto_min: ms(100),
        sack_delay: ms(20),
        pf_max_retrans: Some(0),
        ..Config::default()
    };
    let mut net = Net::established(settings, [1, 1]);
    let mut lost = false;
    net.rule = Box::new(move |d| {
        let heartbeat = names(d.sctp()).contains(&"HEARTBEAT");
        let own = d.from == A && d.data().next().is_some();
        let first = own && !core::mem::replace(&mut lost, true);
        if heartbeat || first { vec![] } else { vec![ms(10)] }
    });
    net.send(A, 0, synthetic(0, MESSAGE));
    let state = |net: &Net| path(net, 1).state;
    while state(&net) == PathState::Active {
        net.step(net.now + ms(1));
    }
    while state(&net) == PathState::PotentiallyFailed {
        net.step(net.now + ms(1));
    }
    // what is measured next brings the RTO down: T3-rtx then expires before the heartbeat that is out
    net.send(A, 0, synthetic(u64::from(MESSAGE), MESSAGE));
    net.run_for(ms(100));
    assert_eq!(state(&net), PathState::Active);
    net.rule = Box::new(|d| if d.from == A { vec![] } else { vec![ms(10)] });
    net.log.clear();
    net.send(A, 0, synthetic(2 * u64::from(MESSAGE), MESSAGE));
    net.run_for(ms(1500));
    assert_eq!(state(&net), PathState::PotentiallyFailed);
    let heartbeats = net.log.iter().filter(|d| names(d.sctp()).contains(&"HEARTBEAT"));
    assert!(heartbeats.count() >= 1, "nothing asks whether it is back");
}

#[test]
fn a_heartbeat_is_answered_over_the_path_that_it_probes() {
    for (sack_route, own) in [(SackRoute::Arrival, true), (SackRoute::RoutingTable, false)] {
        let mut settings = config(MultipathConfig::default());
        settings.sack_route = sack_route;
        let mut net = Net::symmetric(settings, [1, 2], 1);
        net.connect();
        net.run_for(ms(1000));
        let with = |net: &Net, name: &str, n| {
            let of = net.log.iter().filter(|d| names(d.sctp()).contains(&name));
            of.filter(|d| path_of(d) == n).count()
        };
        assert_eq!(with(&net, "HEARTBEAT", 2), 1);
        assert_eq!(with(&net, "HEARTBEAT-ACK", 2) == 1, own, "{sack_route:?}");
    }
}

#[test]
fn what_is_given_up_behind_what_has_no_room_is_abandoned_and_not_planned_again_and_again() {
    for rtx_policy in [RtxPolicy::Same, RtxPolicy::default()] {
        let multipath = MultipathConfig {
            rtx_policy,
            scheduler: SchedulerKind::FillFirst,
            pf: false,
            spare_recent: false,
            ..MultipathConfig::default()
        };
        let mut net = two_paths(Config {
            max_burst: None,
            multipath: Some(multipath),
            ..Config::default()
        });
        net.rule = Box::new(|d| if d.from == A { vec![] } else { vec![ms(20)] });
        for n in 0..6 {
            let reliability = match n {
                ..4 => Reliability::Full,
                _ => Reliability::Retransmissions { limit: 0 },
            };
            let options = SendOptions {
                reliability,
                ..SendOptions::default()
            };
            net.command(A, |a, now| a.send(now, 0, synthetic(n * 1400, 1400), options))
                .expect("room");
        }
        net.run_for(ms(5000));
        net.association(A).check_invariants().expect("the books balance");
        // and with the path well again it is, when it is its turn
        net.rule = Box::new(|_| vec![ms(20)]);
        net.run_for(ms(60_000));
        let counters = net.association(A).counters();
        assert_eq!(counters.messages_abandoned_sent, 2, "{rtx_policy:?}");
        assert!(net.association(A).is_sender_dry(), "{rtx_policy:?}");
        let empty = net.log.iter().filter(|d| d.sctp().chunks.is_empty());
        assert_eq!(empty.count(), 0, "{rtx_policy:?}");
    }
}
