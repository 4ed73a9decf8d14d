//! Concurrent multipath transfer: what a path may have, what it gets back, and where it goes again.

use super::*;
use crate::congestion::Coupling;
use crate::sctp::PathState;
use crate::sctp::sender::chunk::Cause;
use crate::sctp::sender::plan::Plan;
use crate::sctp::sender::tests::rig::Rig;
use crate::sctp::testing::{FIRST, SECOND, THIRD, address, destination, ms, own};
use crate::time::{Duration, Instant};
use segue_wire::Tsn;

/// What tests elsewhere set and look at.
impl Concurrent {
    /// An episode of losses begins on a path, which ends with this TSN.
    pub(in crate::sctp) fn begin_episode_on(&mut self, path: PathId, exit: Tsn) {
        self.shares.open(path).begin_recovery(exit);
    }

    /// The end of the episode that a path is in, and whether a packet of retransmissions may go there whatever cwnd says.
    pub(in crate::sctp) fn episode_on(&self, path: PathId) -> (Option<Tsn>, bool) {
        let share = self.share(path);
        assert_eq!(share.recovery_ends_with().is_some(), share.is_in_fast_recovery());
        (share.recovery_ends_with(), share.forces())
    }

    /// Chunks of a path that were lost.
    pub(in crate::sctp) fn lost_on(&self, path: PathId) -> u32 {
        self.share(path).lost()
    }

    /// Share of the chunks sent on a path that was lost, in millionths.
    pub(in crate::sctp) fn loss_rate_on(&self, path: PathId) -> u64 {
        self.share(path).loss_rate()
    }
}

/// A path has 1000 bytes each outstanding, acknowledged by a gap ack block, marked and abandoned; the other has 2000
/// acknowledged by gap ack blocks.
fn holding(split: BufferSplit) -> Rig {
    let multipath = MultipathConfig {
        buffer_split: split,
        ..MultipathConfig::default()
    };
    let mut a = Rig::cmt(multipath, 2);
    a.config.send_buffer = 20_000;
    for path in [FIRST, FIRST, FIRST, FIRST, SECOND, SECOND] {
        a.send_on(ms(0), path, 1000);
    }
    let flight = a.sender.flight_mut();
    for tsn in [2, 5, 6] {
        flight.acknowledge(Tsn(tsn));
    }
    flight.lose_one(Cause::Timeout, Tsn(3));
    flight.abandon(Tsn(4));
    // with what is held out of order: 10 000
    a.sender.flight_mut().advertise(7000);
    a
}

#[test]
fn a_path_holds_what_it_sent_in_each_state_by_its_bytes() {
    let fits = |a: &mut Rig, path, len| {
        a.lend(ms(0), |concurrent, lent| {
            concurrent.fits_its_share(lent, path, len)
        })
    };
    for (split, first, second) in [
        (BufferSplit::Sender, 7000, 8000),
        (BufferSplit::Receiver, 3000, 3000),
        (BufferSplit::Both, 3000, 3000),
    ] {
        let mut a = holding(split);
        for (path, most) in [(FIRST, first), (SECOND, second)] {
            assert!(fits(&mut a, path, most), "{split:?} {path:?}");
            assert!(!fits(&mut a, path, most + 1), "{split:?} {path:?}");
        }
    }
    assert!(fits(&mut holding(BufferSplit::None), FIRST, 1 << 20));
    // one path has it all
    let mut a = holding(BufferSplit::Both);
    a.peer
        .destination_mut(destination(1))
        .set_state(PathState::Inactive);
    assert!(fits(&mut a, FIRST, 1 << 20));
    // three have a third each
    let mut a = holding(BufferSplit::Sender);
    a.peer
        .add(address(2), true, &a.config, &a.local)
        .expect("there is room");
    assert!(fits(&mut a, FIRST, 3666));
    assert!(!fits(&mut a, FIRST, 3667));
}

fn opportunistic(round_trips: [u64; 2]) -> Rig {
    let multipath = MultipathConfig {
        opportunistic: true,
        ..MultipathConfig::default()
    };
    let mut a = Rig::cmt(multipath, 2);
    for (path, rtt) in [FIRST, SECOND].into_iter().zip(round_trips) {
        let path = a.peer.path_mut(path);
        path.measure(Duration::from_millis(rtt));
        path.set_cwnd(40_000);
    }
    for path in [FIRST, FIRST, FIRST, SECOND] {
        a.send_on(ms(0), path, 1000);
    }
    a
}

fn plan_opportunistic(a: &mut Rig, now: Instant) -> Option<Plan> {
    a.lend(now, |concurrent, lent| concurrent.plan_opportunistic(lent))
}

#[test]
fn what_holds_everybody_up_moves_to_the_faster_path_and_its_own_is_penalised_once_per_round_trip() {
    let mut a = opportunistic([200, 20]);
    let now = ms(50);
    let Some(Plan::Retransmit { tsn, path, forced }) = plan_opportunistic(&mut a, now) else {
        panic!("nothing moves")
    };
    assert_eq!((tsn, path, forced), (Tsn(1), SECOND, true));
    assert_eq!((a.sender.peer_rwnd(), a.episode().1), (97_000, 1));
    let (slow, flight) = (&a.peer[FIRST], a.sender.flight());
    assert_eq!((flight.size_on(FIRST), flight.timed(FIRST)), (2032, None));
    assert_eq!(flight.watched(FIRST), Some((2, ms(1000))));
    assert_eq!((slow.cwnd(), slow.ssthresh()), (20_000, 20_000));
    assert_eq!(a.peer[SECOND].cwnd(), 40_000);
    // marked, and sent again: not to be moved any more
    assert!(plan_opportunistic(&mut a, now).is_none());
    a.resend(now, 1, SECOND);
    assert!(plan_opportunistic(&mut a, now).is_none());
    for (at, penalties, cwnd, left) in [(249, 1, 20_000, 1016), (250, 2, 10_000, 0)] {
        a.sender.flight_mut().acknowledge_next();
        assert!(plan_opportunistic(&mut a, ms(at)).is_some());
        assert_eq!(a.out.counters.multipath.penalties, penalties, "{at}");
        let size = a.sender.flight().size_on(FIRST);
        assert_eq!((a.peer[FIRST].cwnd(), size), (cwnd, left), "{at}");
        // the one that is left is what its timer runs for
        assert_eq!(a.sender.flight().t3_rtx(FIRST).is_some(), left > 0);
    }
    assert_eq!(a.out.counters.multipath.chunks_rescheduled, 3);
    assert_eq!(a.episode().1, 3);
}

#[test]
fn nothing_moves_to_a_path_that_is_not_faster_or_before_what_goes_first() {
    for (round_trips, moves) in [([200, 199], true), ([200, 200], false), ([200, 201], false)] {
        let mut a = opportunistic(round_trips);
        let plan = plan_opportunistic(&mut a, ms(50));
        assert_eq!(plan.is_some(), moves, "{round_trips:?}");
    }
    for hindrance in 0..3 {
        let mut a = opportunistic([200, 20]);
        match hindrance {
            0 => {}
            1 => a.peer.path_mut(SECOND).set_cwnd(1016),
            _ => a.sender.concurrent().shares.open(SECOND).open_burst(Some(0)),
        }
        let plan = a.lend(ms(50), |concurrent, lent| {
            lent.something_goes_first = hindrance == 0;
            concurrent.plan_opportunistic(lent)
        });
        assert!(plan.is_none(), "{hindrance}");
    }
    // a round trip that nobody measured is as long as the RTO
    let a = Rig::cmt(MultipathConfig::default(), 2);
    assert_eq!(a.peer[SECOND].srtt_or_rto(), a.peer[SECOND].rto());
}

#[test]
fn a_round_trip_over_another_path_is_refused_eight_times_in_a_row_at_most() {
    let mut a = Rig::cmt(MultipathConfig::default(), 2);
    a.peer.path_mut(FIRST).measure(Duration::from_millis(100));
    let over = |a: &mut Rig, path| a.sender.concurrent().sack_path = Some(path);
    let may_end = |a: &mut Rig, path, round_trip| {
        a.lend(ms(0), |concurrent, lent| {
            concurrent.may_end_round_trip(path, round_trip, lent.peer, lent.counters)
        })
    };
    over(&mut a, SECOND);
    let short = Duration::from_millis(99);
    for _ in 0..2 {
        for _ in 0..8 {
            assert!(!may_end(&mut a, FIRST, short));
        }
        assert!(may_end(&mut a, FIRST, short));
    }
    let counters = a.out.counters.multipath;
    assert_eq!(
        (counters.ambiguous_round_trips, counters.round_trips_refused),
        (18, 16)
    );
    assert!(!may_end(&mut a, FIRST, short));
    // one that is not shorter is news, and begins the row again
    assert!(may_end(&mut a, FIRST, Duration::from_millis(100)));
    assert_eq!(a.sender.concurrent().share(FIRST).refused_in_a_row(), 0);
    // so is any of a path that none was measured of, and any over its own
    assert!(may_end(&mut a, SECOND, Duration::ZERO));
    over(&mut a, FIRST);
    assert!(may_end(&mut a, SECOND, Duration::ZERO));
    assert!(may_end(&mut a, FIRST, Duration::ZERO));
    assert_eq!(a.out.counters.multipath.ambiguous_round_trips, 21);
}

#[test]
fn a_sack_came_over_the_path_between_its_addresses() {
    let mut a = Rig::cmt(MultipathConfig::default(), 3);
    for ((from, to), path) in [
        ((address(2), own().address), Some(THIRD)),
        ((address(0), own().address), Some(FIRST)),
        ((address(0), address(1)), None),
        ((address(7), own().address), None),
    ] {
        a.sender.concurrent().begin_episode_on(SECOND, Tsn(1));
        a.lend(ms(0), |concurrent, lent| {
            concurrent.begin_sack(from, to, lent.peer);
            assert_eq!(concurrent.sack_path, path);
            assert!(!concurrent.share(SECOND).forces());
        });
    }
}

#[test]
fn retransmissions_go_where_their_policy_has_them_and_stay_among_equals() {
    let mut a = Rig::cmt(MultipathConfig::default(), 2);
    a.send_on(ms(0), SECOND, 1000);
    let to = |a: &mut Rig, policy| {
        a.lend(ms(0), |concurrent, lent| {
            concurrent.settings.rtx_policy = policy;
            concurrent.retransmission_path(lent.view(), Tsn(1))
        })
    };
    // of so many chunks so many were lost
    let losses = |a: &mut Rig, path, sent: u32, lost| {
        let concurrent = a.sender.concurrent();
        *concurrent.shares.open(path) = CmtPath::default();
        (0..sent).for_each(|_| concurrent.note_sent(path));
        concurrent.note_lost(path, lost);
    };
    use RtxPolicy as P;
    for policy in [P::Asap, P::Same, P::Cwnd, P::Ssthresh, P::LossRate] {
        assert_eq!(to(&mut a, policy), Some(SECOND), "{policy:?}");
    }
    a.peer.path_mut(FIRST).set_cwnd(20_000);
    a.peer.path_mut(FIRST).set_ssthresh(3000);
    a.peer.path_mut(SECOND).set_cwnd(19_999);
    a.peer.path_mut(SECOND).set_ssthresh(3001);
    assert_eq!(to(&mut a, P::Cwnd), Some(FIRST));
    assert_eq!(to(&mut a, P::Ssthresh), Some(SECOND));
    a.peer.path_mut(SECOND).set_ssthresh(2999);
    assert_eq!(to(&mut a, P::Ssthresh), Some(FIRST));
    // a tenth, and nine hundredths
    losses(&mut a, FIRST, 10, 1);
    losses(&mut a, SECOND, 100, 9);
    assert_eq!(to(&mut a, P::LossRate), Some(SECOND));
    losses(&mut a, SECOND, 100, 11);
    assert_eq!(to(&mut a, P::LossRate), Some(FIRST));
    a.peer.path_mut(SECOND).set_cwnd(1016);
    assert_eq!(to(&mut a, P::Asap), Some(FIRST), "1016 bytes are under way");
    a.peer.path_mut(SECOND).set_cwnd(1017);
    assert_eq!(to(&mut a, P::Asap), Some(SECOND));
    let second = a.peer.destination_mut(destination(1));
    second.set_state(PathState::PotentiallyFailed);
    assert_eq!(to(&mut a, P::Same), Some(FIRST));
    let never_sent = a.lend(ms(0), |concurrent, lent| {
        concurrent.retransmission_path(lent.view(), Tsn(2))
    });
    assert_eq!(never_sent, None);
}

#[test]
fn coupled_are_the_usable_paths_in_their_order() {
    let with = |congestion| {
        let multipath = MultipathConfig {
            congestion,
            ..MultipathConfig::default()
        };
        Rig::cmt(multipath, 3)
    };
    let mut a = with(Coupling::Uncoupled);
    a.lend(ms(0), |concurrent, lent| {
        assert!(concurrent.coupled_gains(lent.peer).is_empty());
        assert_eq!(concurrent.coupled_ssthresh(FIRST, lent.peer), None);
    });
    let mut a = with(Coupling::Rp1);
    a.peer
        .destination_mut(destination(1))
        .set_state(PathState::Inactive);
    a.lend(ms(0), |concurrent, lent| {
        let gains = concurrent.coupled_gains(lent.peer);
        let of: Vec<_> = gains.iter().map(|g| g.0).collect();
        assert_eq!(of, [FIRST, THIRD]);
        assert!(concurrent.coupled_ssthresh(THIRD, lent.peer).is_some());
        assert_eq!(concurrent.coupled_ssthresh(SECOND, lent.peer), None);
    });
}

#[test]
fn the_least_round_trip_with_room_is_the_fastest() {
    let mut a = Rig::cmt(MultipathConfig::default(), 3);
    for (path, rtt) in [(FIRST, 30), (SECOND, 10), (THIRD, 20)] {
        a.peer.path_mut(path).measure(Duration::from_millis(rtt));
    }
    let fastest = |a: &mut Rig| a.lend(ms(0), |concurrent, lent| concurrent.fastest_with_room(lent));
    assert_eq!(fastest(&mut a), Some(SECOND));
    a.peer.path_mut(SECOND).set_cwnd(1016);
    a.send_on(ms(0), SECOND, 1000);
    assert_eq!(fastest(&mut a), Some(THIRD));
    a.peer.deactivate(destination(2), &a.config, &mut a.out);
    assert_eq!(fastest(&mut a), Some(FIRST));
    a.sender.concurrent().shares.open(FIRST).open_burst(Some(0));
    assert_eq!(fastest(&mut a), None);
    assert_eq!(a.peer.usable_paths().collect::<Vec<_>>(), [FIRST, SECOND]);
}
