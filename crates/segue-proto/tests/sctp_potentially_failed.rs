//! Quick failover: the potentially failed state and primary path switchover (RFC 7829).

use crate::common::*;
use segue_proto::sctp::{Config, Event, PathSnapshot, PathState, SackRoute, SendOptions};
use segue_proto::{Duration, Instant};
use segue_wire::sctp::Chunk;

/// RTO 100 ms to 1 s; the peer's SACKs are not delayed beyond that.
fn fast(pf_max_retrans: Option<u32>) -> Config {
    Config {
        rto_initial: ms(200),
        rto_min: ms(100),
        rto_max: ms(1000),
        sack_delay: ms(20),
        sack_route: SackRoute::Arrival,
        pf_max_retrans,
        ..Config::default()
    }
}

/// Nothing passes to or from these addresses of B.
fn kill(net: &mut Net, dead: &'static [u16]) {
    net.rule = Box::new(move |d| {
        let dead = dead.iter().map(|&n| address(B, n));
        let lost = dead
            .into_iter()
            .any(|a| [d.packet.ip.source, d.packet.ip.destination].contains(&a));
        if lost { Vec::new() } else { vec![ms(10)] }
    });
}

fn path_to(net: &Net, destination: u16) -> PathSnapshot {
    net.association(A)
        .paths()
        .find(|p| p.destination == address(B, destination))
        .expect("path")
}

fn state_events(net: &Net, destination: u16) -> Vec<PathState> {
    net.events[A]
        .iter()
        .filter_map(|(_, e)| match e {
            Event::PathStateChanged { address: a, state } if *a == address(B, destination) => Some(*state),
            _ => None,
        })
        .collect()
}

/// Sends 500 bytes every 5 ms for `duration`; returns when each message was received.
fn paced(net: &mut Net, duration: Duration) -> Vec<Instant> {
    let end = net.now + duration;
    let mut seen = net.messages[B].len();
    let mut times = Vec::new();
    let mut sent = 0;
    while net.now < end {
        let _ = net.command(A, |a, now| {
            a.send(now, 0, synthetic(sent * 500, 500), SendOptions::default())
        });
        sent += 1;
        let next = net.now + ms(5);
        while net.step(next) {
            let received = net.messages[B].len();
            times.extend((seen..received).map(|_| net.now));
            seen = received;
        }
    }
    times
}

/// The longest time without a message, when B's first address dies amid a paced stream.
fn failover_gap(config: Config) -> Duration {
    let mut net = Net::established(config, [1, 2]);
    net.keep_log = false;
    paced(&mut net, ms(1000));
    kill(&mut net, &[1]);
    let start = net.now;
    let times = paced(&mut net, ms(3000));
    let all = core::iter::once(start).chain(times).chain([net.now]);
    let all: Vec<_> = all.collect();
    all.windows(2).map(|w| w[1].since(w[0])).max().expect("messages")
}

#[test]
fn the_first_timeout_moves_new_data_and_heartbeats_watch_the_failed_path() {
    let mut net = Net::established(fast(Some(0)), [1, 2]);
    kill(&mut net, &[1]);
    net.send(A, 0, synthetic(0, 1000));
    net.run_for(ms(250));
    assert_eq!(state_events(&net, 1), [PathState::PotentiallyFailed]);
    assert_eq!(path_to(&net, 1).state, PathState::PotentiallyFailed);
    assert_eq!(
        net.messages[B].len(),
        1,
        "retransmitted to the active destination"
    );
    net.log.clear();
    net.send(A, 0, synthetic(1000, 1000));
    assert_eq!(net.log[0].packet.ip.destination, address(B, 2));
    assert_eq!(
        net.association(A).primary_path(),
        address(B, 1),
        "the primary stays"
    );
    // item 4: a heartbeat every RTO, which backs off, until Path.Max.Retrans
    net.run_for(ms(6000));
    let heartbeats: Vec<_> = net
        .log
        .iter()
        .filter(|d| d.from == A && d.packet.ip.destination == address(B, 1))
        .map(|d| {
            assert!(matches!(d.sctp().chunks[0], Chunk::Heartbeat(_)));
            d.at
        })
        .collect();
    assert!(heartbeats.len() >= 3, "{heartbeats:?}");
    let gaps: Vec<_> = heartbeats.windows(2).map(|w| w[1].since(w[0])).collect();
    assert!(
        gaps.windows(2).all(|w| w[1] == (w[0] + w[0]).min(ms(1000))),
        "{gaps:?}"
    );
    assert_eq!(
        state_events(&net, 1),
        [PathState::PotentiallyFailed, PathState::Inactive]
    );
}

#[test]
fn a_heartbeat_ack_makes_the_path_active_again_with_one_segment_of_cwnd() {
    let mut net = Net::established(fast(Some(0)), [1, 2]);
    paced(&mut net, ms(500));
    kill(&mut net, &[1]);
    paced(&mut net, ms(300));
    assert_eq!(path_to(&net, 1).state, PathState::PotentiallyFailed);
    net.rule = Box::new(|_| vec![ms(10)]);
    // idle, so that only a heartbeat can tell
    net.run_for(ms(1500));
    assert_eq!(
        state_events(&net, 1),
        [PathState::PotentiallyFailed, PathState::Active]
    );
    let path = path_to(&net, 1);
    assert_eq!((path.error_count, path.cwnd), (0, 1448));
    net.log.clear();
    net.send(A, 0, synthetic(0, 100));
    assert_eq!(
        net.log[0].packet.ip.destination,
        address(B, 1),
        "back to the primary"
    );
}

#[test]
fn a_failing_path_is_probed_on_though_the_source_of_its_heartbeat_goes() {
    // RFC 7829 section 3.2: a heartbeat every RTO, here with none at other times
    let config = Config {
        hb_interval: None,
        ..fast(Some(0))
    };
    let mut net = Net::established(config, [2, 2]);
    paced(&mut net, ms(500));
    kill(&mut net, &[1]);
    paced(&mut net, ms(300));
    assert_eq!(path_to(&net, 1).state, PathState::PotentiallyFailed);
    net.owned[A].retain(|a| *a != address(A, 1));
    net.command(A, |a, now| a.local_address_removed(now, address(A, 1)));
    net.rule = Box::new(|_| vec![ms(10)]);
    net.run_for(ms(1500));
    assert_eq!(
        state_events(&net, 1),
        [PathState::PotentiallyFailed, PathState::Active]
    );
}

#[test]
fn a_sack_for_data_sent_there_makes_the_path_active_again() {
    // a spurious timeout: the SACK is late, and nothing is lost
    let mut net = Net::established(fast(Some(0)), [1, 1]);
    net.rule = Box::new(|d| {
        let sack = d.from == B && matches!(d.sctp().chunks[0], Chunk::Sack(_));
        let heartbeat = matches!(d.sctp().chunks[0], Chunk::Heartbeat(_));
        match (heartbeat, sack) {
            (true, _) => Vec::new(),
            (_, true) => vec![ms(195)],
            _ => vec![ms(10)],
        }
    });
    net.send(A, 0, synthetic(0, 3000));
    net.run_for(ms(1000));
    assert_eq!(
        state_events(&net, 1)[..2],
        [PathState::PotentiallyFailed, PathState::Active]
    );
}

#[test]
fn with_every_destination_potentially_failed_data_goes_where_the_errors_are_fewest() {
    let config = Config {
        path_max_retrans: 10,
        association_max_retrans: 100,
        hb_interval: None,
        ..fast(Some(0))
    };
    let mut net = Net::established(config, [1, 2]);
    kill(&mut net, &[1, 2]);
    net.send(A, 0, synthetic(0, 1000));
    let mut seen = [false; 2];
    net.log.clear();
    while net.step(at(20.0)) {
        let both = [1, 2].map(|n| path_to(&net, n));
        let departures: Vec<_> = net.log.drain(..).collect();
        if both.iter().any(|p| p.state != PathState::PotentiallyFailed) {
            continue;
        }
        let fewest = both.iter().map(|p| p.error_count).min().unwrap();
        for d in departures.iter().filter(|d| d.data().next().is_some()) {
            let to = both
                .iter()
                .find(|p| p.destination == d.packet.ip.destination)
                .unwrap();
            assert_eq!(to.error_count, fewest);
            seen[usize::from(to.destination == address(B, 2))] = true;
        }
    }
    assert_eq!(seen, [true, true], "data went to either as their counts rose");
    // both come back: nothing was lost for good
    net.rule = Box::new(|_| vec![ms(10)]);
    net.run_for(ms(5000));
    assert!(net.association(A).is_sender_dry());
}

#[test]
fn without_pfmr_or_with_one_above_path_max_retrans_nothing_is_potentially_failed() {
    for pf_max_retrans in [None, Some(5), Some(9)] {
        let mut net = Net::established(fast(pf_max_retrans), [1, 2]);
        kill(&mut net, &[1]);
        paced(&mut net, ms(8000));
        assert_eq!(state_events(&net, 1), [PathState::Inactive], "{pf_max_retrans:?}");
    }
}

#[test]
fn primary_path_switchover_is_for_good() {
    // RFC 7829 section 5
    for (psmr, switches_after) in [(0, 1), (2, 3)] {
        let config = Config {
            primary_switchover_max_retrans: Some(psmr),
            ..fast(Some(0))
        };
        let mut net = Net::established(config, [1, 2]);
        kill(&mut net, &[1]);
        net.send(A, 0, synthetic(0, 1000));
        while net.association(A).primary_path() == address(B, 1) {
            assert!(path_to(&net, 1).error_count <= psmr);
            assert!(net.step(at(60.0)));
        }
        assert_eq!(path_to(&net, 1).error_count, switches_after);
        assert!(net.has_event(A, &Event::PrimaryChanged(address(B, 2))));
        net.rule = Box::new(|_| vec![ms(10)]);
        net.run_for(Duration::from_secs(40));
        assert_eq!(path_to(&net, 1).state, PathState::Active);
        net.log.clear();
        net.send(A, 0, synthetic(1000, 1000));
        assert_eq!(net.log[0].packet.ip.destination, address(B, 2));
    }
}

#[test]
fn the_gap_of_a_link_that_dies_without_warning_is_about_one_rto() {
    let standard = failover_gap(Config {
        path_max_retrans: 1,
        ..fast(None)
    });
    let quick = failover_gap(Config {
        path_max_retrans: 1,
        ..fast(Some(0))
    });
    let faster = failover_gap(Config {
        path_max_retrans: 1,
        rto_min: ms(40),
        ..fast(Some(0))
    });
    // these are the figures that `Config::pf_max_retrans` gives: an RTO, or two, half a round trip, and how much earlier
    // than the last message the last one arrived that was acknowledged
    assert_eq!([standard, quick, faster], [220, 115, 55].map(ms));
}
