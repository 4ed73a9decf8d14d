//! Several addresses of the peer: heartbeats, retransmission to an alternate, failover.

use crate::common::*;
use segue_proto::sctp::{Config, CwndCredit, Event, PathState, Profile, RetransmitTo, SackRoute};
use segue_proto::{Duration, Instant};

fn path_to(net: &Net, host: usize, destination: core::net::Ipv6Addr) -> segue_proto::sctp::PathSnapshot {
    net.association(host)
        .paths()
        .find(|p| p.destination == destination)
        .expect("no such path")
}

/// Everything to and from address `n` of B is lost.
fn kill(net: &mut Net, n: u16) {
    let dead = address(B, n);
    net.rule = Box::new(move |d| {
        if d.packet.ip.source == dead || d.packet.ip.destination == dead {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
}

fn seconds_after(start: Instant, transmissions: &[(Instant, core::net::Ipv6Addr)]) -> Vec<(f64, u16)> {
    transmissions
        .iter()
        .map(|(at, to)| {
            (
                ((*at - start).as_secs_f64() * 1000.0).round() / 1000.0,
                to.segments()[3],
            )
        })
        .collect()
}

#[test]
fn addresses_of_init_ack_are_confirmed_by_heartbeats_before_use() {
    // RFC 9260 section 5.4
    let mut net = Net::symmetric(Config::default(), [1, 2], 1);
    net.connect();
    net.run_until(at(0.035));
    assert_eq!(path_to(&net, A, address(B, 1)).state, PathState::Active);
    assert_eq!(path_to(&net, A, address(B, 2)).state, PathState::Unconfirmed);
    net.run_until(at(0.2));
    assert_eq!(path_to(&net, A, address(B, 2)).state, PathState::Active);
    assert!(net.has_event(A, &Event::PeerAddressConfirmed(address(B, 2))));
    assert_eq!(path_to(&net, A, address(B, 2)).srtt, Some(ms(20)));
}

#[test]
fn rfc2960_uses_every_address_at_once() {
    let mut net = Net::symmetric(Config::new(Profile::Rfc2960), [1, 2], 1);
    net.connect();
    net.run_until(at(0.2));
    assert_eq!(path_to(&net, A, address(B, 2)).state, PathState::Active);
    assert!(!net.trace().iter().any(|t| t.contains("HEARTBEAT")));
}

#[test]
fn first_lost_tsn_goes_out_at_1_4_and_6_seconds_alternating_when_its_acks_take_the_dead_path() {
    // The receiver's routing table still points to the dead path: its SACKs are lost. RTO of the old path 1 s (RTO.Min)
    // and then 2 s; of the new path, never measured, 3 s (RTO.Initial of RFC 2960).
    let mut net = Net::established(Config::new(Profile::Rfc2960), [1, 2]);
    for i in 0..4 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    net.run_for(Duration::from_secs(1));
    assert_eq!(path_to(&net, A, address(B, 1)).rto, Duration::from_secs(1));
    kill(&mut net, 1);
    net.log.clear();
    let t = net.now;
    for i in 0..4 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    let first = net.log[0].data().next().unwrap().tsn;
    net.run_until(t + Duration::from_millis(6500));
    let sent = seconds_after(t, &net.transmissions_of(A, first));
    assert_eq!(sent, [(0.0, 1), (1.0, 2), (4.0, 1), (6.0, 2)]);
}

#[test]
fn same_path_retransmission_stays_on_the_dead_path() {
    let config = Config {
        retransmit_to: RetransmitTo::SamePath,
        ..Config::new(Profile::Rfc2960)
    };
    let mut net = Net::established(config, [1, 2]);
    net.send(A, 0, synthetic(0, 1000));
    net.run_for(Duration::from_secs(1));
    kill(&mut net, 1);
    net.log.clear();
    let t = net.now;
    net.send(A, 0, synthetic(0, 1000));
    let first = net.log[0].data().next().unwrap().tsn;
    net.run_until(t + Duration::from_millis(3500));
    assert_eq!(
        seconds_after(t, &net.transmissions_of(A, first)),
        [(0.0, 1), (1.0, 1), (3.0, 1)]
    );
}

#[test]
fn t3_cuts_only_the_path_that_timed_out_and_marks_all_of_it() {
    // RFC 9260 section 6.3.3, E1 to E3
    let mut net = Net::established(Config::default(), [1, 2]);
    kill(&mut net, 1);
    // B answers from its live address
    net.command(B, |b, now| b.set_route(now, address(B, 2))).unwrap();
    net.log.clear();
    let before = path_to(&net, A, address(B, 2)).cwnd;
    let t = net.now;
    for i in 0..3 {
        net.send(A, 0, synthetic(i * 1400, 1400));
    }
    net.run_for(Duration::from_secs(1));
    net.run_for(ms(1));
    let old = path_to(&net, A, address(B, 1));
    assert_eq!((old.cwnd, old.flightsize, old.error_count), (1448, 0, 1));
    assert_eq!(old.rto, Duration::from_secs(2));
    assert_eq!(path_to(&net, A, address(B, 2)).cwnd, before);
    net.run_for(ms(100));
    assert_eq!(net.messages[B].len(), 3);
    assert!(
        net.log
            .iter()
            .filter(|d| d.at > t && d.data().next().is_some())
            .all(|d| d.packet.ip.destination == address(B, 2))
    );
}

#[test]
fn a_destination_becomes_inactive_after_path_max_retrans_and_new_data_fails_over() {
    // RFC 9260 section 8.2: more than Path.Max.Retrans errors
    let config = Config {
        path_max_retrans: 2,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 2]);
    kill(&mut net, 1);
    net.command(B, |b, now| b.set_route(now, address(B, 2))).unwrap();
    for i in 0..10 {
        net.send(A, 0, synthetic(i * 1000, 1000));
        net.run_for(Duration::from_secs(10));
    }
    let inactive = Event::PathStateChanged {
        address: address(B, 1),
        state: PathState::Inactive,
    };
    assert!(net.has_event(A, &inactive));
    assert_eq!(net.messages[B].len(), 10);
    net.log.clear();
    net.send(A, 0, synthetic(0, 1000));
    assert_eq!(
        net.log[0].packet.ip.destination,
        address(B, 2),
        "new data avoids the inactive primary"
    );
    assert_eq!(net.association(A).primary_path(), address(B, 1));
    // the old path comes back: a heartbeat notices, and data returns to the primary
    net.rule = Box::new(|_| vec![ms(10)]);
    net.run_for(Duration::from_secs(120));
    assert!(net.has_event(
        A,
        &Event::PathStateChanged {
            address: address(B, 1),
            state: PathState::Active
        }
    ));
    net.log.clear();
    net.send(A, 0, synthetic(0, 1000));
    assert_eq!(net.log[0].packet.ip.destination, address(B, 1));
}

#[test]
fn an_association_whose_every_path_is_dead_is_lost() {
    // RFC 9260 section 8.1
    let config = Config {
        association_max_retrans: 4,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    net.rule = Box::new(|_| vec![]);
    net.send(A, 0, synthetic(0, 1000));
    net.run_for(Duration::from_secs(200));
    assert!(net.has_event(A, &Event::Lost));
    assert_eq!(net.events[A].iter().filter(|e| e.1 == Event::Lost).count(), 1);
}

#[test]
fn idle_destinations_get_heartbeats_every_interval_with_jitter() {
    // RFC 9260 section 8.3: RTO + HB.interval, jittered by half an RTO
    let mut net = Net::established(Config::default(), [1, 1]);
    net.run_for(Duration::from_secs(330));
    let times: Vec<_> = net
        .log
        .iter()
        .filter(|d| d.from == A && names(d.sctp()) == ["HEARTBEAT"])
        .map(|d| d.at.as_secs_f64())
        .collect();
    assert!((9..=11).contains(&times.len()), "{times:?}");
    let gaps: Vec<_> = times.windows(2).map(|w| w[1] - w[0]).collect();
    // measured from the answer, 20 ms later
    assert!(gaps.iter().all(|g| (30.5..=31.6).contains(g)), "{gaps:?}");
    assert!(
        gaps.windows(2).any(|w| (w[0] - w[1]).abs() > 0.01),
        "no jitter: {gaps:?}"
    );
    let quiet = Config {
        hb_interval: None,
        ..Config::default()
    };
    let mut net = Net::established(quiet, [1, 1]);
    net.run_for(Duration::from_secs(330));
    assert!(net.log.is_empty());
}

/// A sends to B's second address while B's routing table points to its first: SACKs come from there.
fn acks_over_the_other_path(credit: CwndCredit, sack_route: SackRoute) -> (u32, u32) {
    let config = Config {
        cwnd_credit: credit,
        sack_route,
        max_burst: None,
        ..Config::new(Profile::Rfc2960)
    };
    let mut net = Net::established(config, [1, 2]);
    net.command(A, |a, now| a.set_primary_path(now, address(B, 2)))
        .unwrap();
    let old_cwnd = path_to(&net, A, address(B, 1)).cwnd;
    for i in 0..10 {
        net.send(A, 0, synthetic(i * 1432, 1432));
    }
    net.run_for(Duration::from_secs(1));
    let sacks = net
        .log
        .iter()
        .filter(|d| d.from == B && names(d.sctp()) == ["SACK"])
        .count() as u32;
    assert!(sacks >= 4);
    (path_to(&net, A, address(B, 1)).cwnd - old_cwnd, sacks)
}

#[test]
fn ack_path_credit_opens_the_path_that_sacks_arrive_over_by_one_mtu_each() {
    assert_eq!(
        acks_over_the_other_path(CwndCredit::DataPath, SackRoute::RoutingTable).0,
        0
    );
    let (grown, sacks) = acks_over_the_other_path(CwndCredit::AckPath, SackRoute::RoutingTable);
    assert_eq!(grown, sacks * 1500);
    // acknowledged from where the data arrived, there is no other path
    assert_eq!(
        acks_over_the_other_path(CwndCredit::AckPath, SackRoute::Arrival).0,
        0
    );
}

#[test]
fn links_that_are_networks_of_their_own_fail_one_by_one() {
    // Address n of A and address n of B are on link n, and nothing else is: a packet between other pairs goes nowhere.
    let link = |d: &Departure| {
        let (from, to) = (
            d.packet.ip.source.segments()[3],
            d.packet.ip.destination.segments()[3],
        );
        (from == to).then_some(from)
    };
    let config = Config {
        rto_min: ms(100),
        sack_delay: ms(20),
        path_max_retrans: 1,
        ..Config::default()
    };
    let mut net = Net::symmetric(config, [2, 2], 1);
    net.rule = Box::new(move |d| link(d).map_or(vec![], |_| vec![ms(10)]));
    net.connect();
    net.run_until(at(0.03));
    for (host, peer) in [(A, B), (B, A)] {
        net.command(host, |association, _| {
            association.set_source(address(peer, 1), Some(address(host, 1)));
            association.set_source(address(peer, 2), Some(address(host, 2)));
        });
    }
    // the address verification that went out over the wrong link is repeated
    net.run_until(at(10.0));
    for (host, peer) in [(A, B), (B, A)] {
        assert_eq!(path_to(&net, host, address(peer, 2)).state, PathState::Active);
    }
    net.rule = Box::new(move |d| link(d).filter(|&n| n == 2).map_or(vec![], |_| vec![ms(10)]));
    for i in 0..20 {
        net.send(A, 0, synthetic(i * 1000, 1000));
        net.send(B, 0, synthetic(i * 1000, 1000));
    }
    net.run_for(Duration::from_secs(5));
    for host in [A, B] {
        assert!(net.association(host).is_sender_dry(), "host {host} is stuck");
    }

    // a route chosen for everything wins over the table
    net.command(A, |association, now| {
        association.set_route(now, address(A, 2)).unwrap()
    });
    net.command(A, |association, _| {
        association.set_source(address(B, 1), Some(address(A, 1)))
    });
    assert!(
        net.association(A)
            .paths()
            .any(|p| p.source == address(A, 2) && p.destination == address(B, 1))
    );
    net.log.clear();
    net.send(A, 0, synthetic(20_000, 1000));
    net.run_for(Duration::from_secs(2));
    assert!(
        net.log
            .iter()
            .filter(|d| d.from == A)
            .all(|d| d.packet.ip.source == address(A, 2))
    );
}

fn heartbeats_to(net: &Net, destination: core::net::Ipv6Addr) -> usize {
    net.log
        .iter()
        .filter(|d| d.packet.ip.destination == destination && names(d.sctp()).contains(&"HEARTBEAT"))
        .count()
}

#[test]
fn an_alternate_that_only_retransmissions_go_to_gets_heartbeats() {
    // RFC 9260 section 8.3: idle is a destination to which no new chunk goes that can measure the round trip
    let mut net = Net::established(Config::default(), [1, 2]);
    // each tenth message is lost, and there is nothing behind it by which to notice but the timer
    net.rule = Box::new(|d| {
        let lost = d.packet.ip.destination == address(B, 1)
            && d.data()
                .any(|c| (0..33).any(|n| c.data.is_synthetic_at(n * 10_000)));
        if lost { vec![] } else { vec![ms(10)] }
    });
    for n in 0..330 {
        net.send(A, 0, synthetic(n * 1000, 1000));
        net.run_for(Duration::from_secs(1));
    }
    let again = |d: &&Departure| d.packet.ip.destination == address(B, 2) && d.data().next().is_some();
    assert!(net.log.iter().filter(again).count() >= 30);
    assert!(heartbeats_to(&net, address(B, 2)) >= 9);
    assert_eq!(net.messages[B].len(), 330);
}

#[test]
fn the_window_of_an_idle_alternate_decays_before_what_was_lost_goes_there() {
    // RFC 9260 section 7.2.1
    let mut net = Net::established(Config::default(), [1, 2]);
    net.command(A, |a, now| a.set_primary_path(now, address(B, 2)))
        .unwrap();
    for n in 0..150 {
        net.send(A, 0, synthetic(n * 1400, 1400));
    }
    net.run_for(ms(900));
    assert!(path_to(&net, A, address(B, 2)).cwnd > 16_000);
    net.command(A, |a, now| a.set_primary_path(now, address(B, 1)))
        .unwrap();
    net.run_for(Duration::from_secs(60));
    kill(&mut net, 1);
    net.log.clear();
    net.send(A, 0, synthetic(150 * 1400, 1400));
    while !net
        .log
        .iter()
        .any(|d| d.packet.ip.destination == address(B, 2) && d.data().next().is_some())
    {
        net.run_for(ms(1));
    }
    assert_eq!(path_to(&net, A, address(B, 2)).cwnd, 4 * 1448);
}
