//! What T3-rtx does to windows, flights and counters.

use super::*;
use crate::sctp::MultipathConfig;
use crate::sctp::testing::{concurrently, destination};

#[test]
fn t3_rtx_marks_all_but_what_was_sent_within_a_round_trip() {
    let mut a = Rig::cmt(MultipathConfig::default(), 2);
    a.peer.path_mut(FIRST).measure(Duration::from_millis(100));
    for (at, path) in [(0, FIRST), (899, FIRST), (900, FIRST), (950, FIRST), (0, SECOND)] {
        a.send_on(ms(at), path, 1000);
    }
    a.sender.concurrent().begin_episode_on(FIRST, Tsn(4));
    assert_eq!(a.on_t3(ms(1000)), Some(destination(0)));
    assert_eq!(
        (a.sender.flight.marked(), a.out.counters.multipath.chunks_spared),
        (2, 2)
    );
    let path = &a.peer[FIRST];
    assert_eq!(
        (a.sender.flight.size_on(FIRST), path.rto()),
        (2032, Duration::from_secs(2))
    );
    assert_eq!(a.sender.flight.watched(FIRST), Some((3, ms(3000))));
    assert_eq!(path.cwnd(), path.segment());
    let share = a.sender.concurrent();
    assert_eq!(
        (share.lost_on(FIRST), share.episode_on(FIRST)),
        (2, (None, false))
    );
    assert_eq!(a.sender.flight.size_on(SECOND), 1016);
    assert_eq!(a.sender.peer_rwnd(), 97_000);
    assert_eq!((a.out.counters.t3_expiries, a.episode().1), (1, 1));
}

#[test]
fn t3_rtx_of_a_single_path_marks_everything_and_forces_a_packet() {
    let mut a = Rig::new(Config::default(), 1);
    a.peer.path_mut(FIRST).measure(Duration::from_millis(100));
    a.send_on(ms(0), FIRST, 1000);
    a.send_on(ms(999), FIRST, 999);
    a.sender.recovery.force_one();
    a.sender.recovery.begin(Tsn(2));
    assert_eq!(a.on_t3(ms(1000)), Some(destination(0)));
    assert_eq!((a.sender.flight.marked(), a.sender.flight.size_on(FIRST)), (2, 0));
    assert_eq!(
        (a.sender.flight.t3_rtx(FIRST), a.sender.recovery.is_on()),
        (None, false)
    );
    assert_eq!((a.sender.peer_rwnd(), a.episode().1), (100_000, 2));
    assert_eq!(a.out.counters.multipath.chunks_spared, 0);
    // not more than there is
    a.on_t3(ms(3000));
    assert_eq!(a.episode().1, 2);
}

#[test]
fn what_is_spared_was_sent_a_smoothed_round_trip_ago_at_most() {
    let srtt = Some(Duration::from_millis(100));
    let spared_from = |config, srtt| {
        let a = Rig::new(config, 2);
        a.sender.strategy.spared_from(ms(500), srtt)
    };
    let on = concurrently(MultipathConfig::default());
    assert_eq!(spared_from(on.clone(), srtt), ms(400));
    assert_eq!(spared_from(on, None), Instant::MAX);
    let off = MultipathConfig {
        spare_recent: false,
        ..MultipathConfig::default()
    };
    assert_eq!(spared_from(concurrently(off), srtt), Instant::MAX);
    assert_eq!(spared_from(Config::default(), srtt), Instant::MAX);
}
