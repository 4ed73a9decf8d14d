//! What answers a packet, and what a SACK changes.

use super::*;
use crate::congestion::RttEstimator;
use crate::sctp::slots::Id;
use segue_wire::sctp::Sack;

#[test]
fn a_sack_takes_its_chunks_out_of_flight_and_begins_the_timer_anew() {
    let mut a = up(Config::default(), 2);
    for at in [0, 10, 20] {
        send_on(&mut a, ms(at), FIRST, 1000);
    }
    a.count_error(Id::first_at(0));
    let sack = |cumulative, a_rwnd| Sack {
        cumulative_tsn_ack: Tsn(cumulative),
        a_rwnd,
        gap_ack_blocks: Default::default(),
        duplicate_tsns: Vec::new().into(),
        data_packets: 0,
    };
    assert!(a.on_sack(ms(400), address(0), &sack(1, 50_000)));
    let path = &a.paths[0];
    assert_eq!(a.flight.size_on(FIRST), 2032);
    assert_eq!(path.rtt.srtt(), Some(Duration::from_millis(400)));
    // 400 + 4 x 200
    assert_eq!(a.flight.watched(FIRST), Some((2, ms(1600))));
    assert_eq!(a.flight.timed(FIRST), None);
    assert_eq!((a.peer_rwnd(), a.out.counters.sacks_received), (48_000, 1));
    assert_eq!((a.destinations[0].error_count, a.association_error_count), (0, 0));
    // an old one, and one for what was never sent
    assert!(a.on_sack(ms(410), address(0), &sack(0, 9)));
    assert!(!a.on_sack(ms(410), address(0), &sack(4, 9)));
    assert_eq!((a.peer_rwnd(), a.out.counters.sacks_received), (48_000, 1));
    // one that says nothing new leaves the timer alone
    assert!(a.on_sack(ms(420), address(0), &sack(1, 40_000)));
    assert_eq!((a.flight.t3_rtx(FIRST), a.peer_rwnd()), (Some(ms(1600)), 38_000));
    assert!(a.on_sack(ms(500), address(0), &sack(3, 1500)));
    assert_eq!((a.flight.size_on(FIRST), a.flight.t3_rtx(FIRST)), (0, None));
    assert_eq!((a.peer_rwnd(), a.out.counters.sacks_received), (1500, 3));
    assert!(a.is_sender_dry());
}

#[test]
fn the_first_of_all_timers_is_the_next() {
    let config = Config {
        sack_delay: Duration::from_millis(60),
        quick_sacks: 0,
        ..Config::default()
    };
    let mut a = up(config, 2);
    assert_eq!(a.poll_timeout(), None);
    let mut opening = begun(&Config::default(), 1);
    opening.phase.opening_chunk_sent(ms(0), ms(90));
    assert_eq!(opening.poll_timeout(), Some(ms(90)));
    let mut ending = up(Config::default(), 1);
    assert!(ending.phase.begin_shutdown());
    ending.phase.on_all_acknowledged(ms(0), Duration::from_millis(80));
    assert_eq!(ending.poll_timeout(), Some(ms(80)));
    ending.phase.shutdown_chunk_sent(ms(70));
    assert_eq!(ending.poll_timeout(), Some(ms(70)));
    a.receiver.owe(ms(0), false, false, &a.config, &mut a.out);
    assert_eq!(a.poll_timeout(), Some(ms(60)));
    a.credit.begin(0);
    assert!(!a.credit.admits(ms(0), 1, false, Duration::from_millis(50)));
    assert_eq!(a.poll_timeout(), Some(ms(50)));
    a.partial.t3_rtx = Some(ms(40));
    assert_eq!(a.poll_timeout(), Some(ms(40)));
    a.paths[1].rtt = RttEstimator::new(Duration::from_millis(30), Duration::ZERO, Duration::MAX);
    send_on(&mut a, ms(0), SECOND, 1000);
    assert_eq!(a.poll_timeout(), Some(ms(30)));
    a.destinations[1].heartbeat_due = Some(ms(20));
    assert_eq!(a.poll_timeout(), Some(ms(20)));
    a.destinations[1].deactivated = true;
    assert_eq!(a.poll_timeout(), Some(ms(30)));
    a.partial.t3_rtx = None;
    a.flight.take();
    // a delayed SACK is due at its time and not before
    a.handle_timeout(ms(60) - Duration::from_nanos(1));
    assert!(!a.receiver.sack_is_due() && a.credit.admits(ms(59), 1, false, Duration::ZERO));
    a.handle_timeout(ms(60));
    assert!(a.receiver.sack_is_due() && a.receiver.sack_timer().is_none());
}
