//! Concurrent multipath transfer: what a path may have, what it gets back, and where it goes again.

use super::*;
use crate::congestion::{CongestionControl, Coupling};
use crate::sctp::ack::Ranges;
use crate::sctp::multipath::{BufferSplit, Cuc, PathShare, RtxPolicy};
use crate::sctp::sender::Cause;
use crate::sctp::transmit::Plan;

/// A path has 1000 bytes each outstanding, acknowledged by a gap ack block, marked and abandoned; the other has 2000
/// acknowledged by gap ack blocks.
fn holding(split: BufferSplit) -> Association {
    let mut a = cmt(
        MultipathConfig {
            buffer_split: split,
            ..MultipathConfig::default()
        },
        2,
    );
    a.config.send_buffer = 20_000;
    for path in [FIRST, FIRST, FIRST, FIRST, SECOND, SECOND] {
        send_on(&mut a, ms(0), path, 1000);
    }
    for tsn in [2, 5, 6] {
        a.flight.acknowledge(Tsn(tsn));
    }
    a.flight.lose_one(Cause::Timeout, Tsn(3));
    a.flight.abandon(Tsn(4));
    // with what is outstanding, and what is held out of order: 10 000
    a.credit.begin(6000);
    a
}

#[test]
fn a_path_holds_what_it_sent_in_each_state_by_its_bytes() {
    for (split, first, second) in [
        (BufferSplit::Sender, 7000, 8000),
        (BufferSplit::Receiver, 3000, 3000),
        (BufferSplit::Both, 3000, 3000),
    ] {
        let a = holding(split);
        for (path, most) in [(FIRST, first), (SECOND, second)] {
            assert!(a.fits_its_share(path, most), "{split:?} {path:?}");
            assert!(!a.fits_its_share(path, most + 1), "{split:?} {path:?}");
        }
    }
    assert!(holding(BufferSplit::None).fits_its_share(FIRST, 1 << 20));
    // one path has it all
    let mut a = holding(BufferSplit::Both);
    a.destinations[1].state = PathState::Inactive;
    assert!(a.fits_its_share(FIRST, 1 << 20));
    // three have a third each
    let mut a = holding(BufferSplit::Sender);
    a.add_destination(ms(0), address(2), true);
    assert!(a.fits_its_share(FIRST, 3666));
    assert!(!a.fits_its_share(FIRST, 3667));
}

fn opportunistic(round_trips: [u64; 2]) -> Association {
    let mut a = cmt(
        MultipathConfig {
            opportunistic: true,
            ..MultipathConfig::default()
        },
        2,
    );
    for (path, rtt) in a.paths.values_mut().zip(round_trips) {
        path.rtt.measure(Duration::from_millis(rtt));
        path.window.set_cwnd(40_000);
    }
    for path in [FIRST, FIRST, FIRST, SECOND] {
        send_on(&mut a, ms(0), path, 1000);
    }
    a
}

#[test]
fn what_holds_everybody_up_moves_to_the_faster_path_and_its_own_is_penalised_once_per_round_trip() {
    let mut a = opportunistic([200, 20]);
    let now = ms(50);
    let Some(Plan::Retransmit { tsn, path, forced }) = a.plan_opportunistic(now) else {
        panic!("nothing moves")
    };
    assert_eq!((tsn, path, forced), (Tsn(1), SECOND, true));
    assert_eq!((a.peer_rwnd(), a.recovery.episode().1), (97_000, 1));
    let slow = &a.paths[0];
    assert_eq!((a.flight.size_on(FIRST), a.flight.timed(FIRST)), (2032, None));
    assert_eq!(a.flight.watched(FIRST), Some((2, ms(1000))));
    assert_eq!((slow.window.cwnd(), slow.window.ssthresh()), (20_000, 20_000));
    assert_eq!(a.paths[1].window.cwnd(), 40_000);
    // marked, and sent again: not to be moved any more
    assert!(a.plan_opportunistic(now).is_none());
    let again = |former, moves| a.loss.on_sent_again(now, former, moves);
    let rto = Duration::from_secs(1);
    a.flight.resend(now, Tsn(1), SECOND, rto, again).expect("marked");
    assert!(a.plan_opportunistic(now).is_none());
    for (at, penalties, cwnd, left) in [(249, 1, 20_000, 1016), (250, 2, 10_000, 0)] {
        a.flight.acknowledge_next();
        assert!(a.plan_opportunistic(ms(at)).is_some());
        assert_eq!(a.out.counters.multipath.penalties, penalties, "{at}");
        assert_eq!(
            (a.paths[0].window.cwnd(), a.flight.size_on(FIRST)),
            (cwnd, left),
            "{at}"
        );
        // the one that is left is what its timer runs for
        assert_eq!(a.flight.t3_rtx(FIRST).is_some(), left > 0);
    }
    assert_eq!(a.out.counters.multipath.chunks_rescheduled, 3);
    assert_eq!(a.recovery.episode().1, 3);
}

#[test]
fn nothing_moves_to_a_path_that_is_not_faster_or_before_what_goes_first() {
    for (round_trips, moves) in [([200, 199], true), ([200, 200], false), ([200, 201], false)] {
        let mut a = opportunistic(round_trips);
        assert_eq!(a.plan_opportunistic(ms(50)).is_some(), moves, "{round_trips:?}");
    }
    for hindrance in 0..4 {
        let mut a = opportunistic([200, 20]);
        match hindrance {
            0 => a.receiver.hurry_sack(),
            1 => a.partial.due = true,
            2 => a.paths[1].window.set_cwnd(1016),
            _ => a.paths[1].share.burst = 0,
        }
        assert!(a.plan_opportunistic(ms(50)).is_none(), "{hindrance}");
    }
    // a round trip that nobody measured is as long as the RTO
    let a = cmt(MultipathConfig::default(), 2);
    assert_eq!(a.srtt_of(SECOND), a.paths[1].rto());
}

#[test]
fn a_round_trip_over_another_path_is_refused_eight_times_in_a_row_at_most() {
    let mut a = cmt(MultipathConfig::default(), 2);
    a.paths[0].rtt.measure(Duration::from_millis(100));
    let over = |a: &mut Association, path| {
        a.multipath.as_mut().expect("multipath").sack_path = Some(path);
    };
    over(&mut a, SECOND);
    let short = Duration::from_millis(99);
    for _ in 0..2 {
        for _ in 0..8 {
            assert!(!a.may_end_round_trip(FIRST, short));
        }
        assert!(a.may_end_round_trip(FIRST, short));
    }
    let counters = a.out.counters.multipath;
    assert_eq!(
        (counters.ambiguous_round_trips, counters.round_trips_refused),
        (18, 16)
    );
    assert!(!a.may_end_round_trip(FIRST, short));
    // one that is not shorter is news, and begins the row again
    assert!(a.may_end_round_trip(FIRST, Duration::from_millis(100)));
    assert_eq!(a.paths[0].share.refused_in_a_row, 0);
    // so is any of a path that none was measured of, and any over its own
    assert!(a.may_end_round_trip(SECOND, Duration::ZERO));
    over(&mut a, FIRST);
    assert!(a.may_end_round_trip(SECOND, Duration::ZERO));
    assert!(a.may_end_round_trip(FIRST, Duration::ZERO));
    assert_eq!(a.out.counters.multipath.ambiguous_round_trips, 21);
}

#[test]
fn a_sack_with_fewer_blocks_and_the_same_cumulative_ack_was_overtaken() {
    let ranges = |blocks: &[(u32, u32)]| blocks.iter().copied().collect::<Ranges>();
    let with = |ignore, destinations| {
        let mut a = cmt(
            MultipathConfig {
                ignore_stale_sacks: ignore,
                ..MultipathConfig::default()
            },
            destinations,
        );
        let reported = [(Tsn(3), Tsn(4)), (Tsn(6), Tsn(6))];
        a.flight.note_reported(reported.into_iter().collect());
        a
    };
    let mut a = with(true, 2);
    for (cumulative, blocks, stale) in [
        (0, &[(3, 4)][..], true),
        (0, &[(4, 4), (6, 6)], true),
        (0, &[], true),
        (0, &[(3, 4), (6, 6)], false),
        (0, &[(3, 5)], false),
        (1, &[(2, 3)], false),
    ] {
        let ranges = ranges(blocks);
        assert_eq!(
            a.is_overtaken(Tsn(cumulative), &ranges),
            stale,
            "{cumulative} {blocks:?}"
        );
    }
    assert_eq!(a.out.counters.multipath.stale_sacks, 3);
    // counted, and believed
    let mut a = with(false, 2);
    assert!(!a.is_overtaken(Tsn(0), &ranges(&[(3, 4)])));
    assert_eq!(a.out.counters.multipath.stale_sacks, 1);
    // on one path nothing overtakes
    assert!(!with(true, 1).is_overtaken(Tsn(0), &ranges(&[(3, 4)])));
    // nor where nothing was reported
    assert!(!cmt(MultipathConfig::default(), 2).is_overtaken(Tsn(0), &ranges(&[])));
}

#[test]
fn a_sack_came_over_the_path_between_its_addresses() {
    let mut a = cmt(MultipathConfig::default(), 3);
    for (packet, path) in [
        ((address(2), own().address), Some(PathId::first_at(2))),
        ((address(0), own().address), Some(FIRST)),
        ((address(0), address(1)), None),
        ((address(7), own().address), None),
    ] {
        a.multipath.as_mut().expect("multipath").packet = packet;
        a.paths[1].share.fast_retransmission_due = true;
        a.begin_sack_by_path();
        assert_eq!(a.multipath.as_ref().expect("multipath").sack_path, path);
        assert!(!a.paths[1].share.fast_retransmission_due);
    }
}

#[test]
fn leaving_a_path_forces_one_packet_of_what_was_moved() {
    let mut a = cmt(MultipathConfig::default(), 2);
    send_on(&mut a, ms(0), SECOND, 1000);
    a.flight.find_pseudo_cumulative_acks();
    assert_eq!(a.flight.awaited(SECOND), [Some(1), None]);
    a.quit_path(0);
    assert_eq!(a.recovery.episode().1, 0);
    assert_eq!(a.flight.awaited(SECOND), [None; 2]);
    a.quit_path(3);
    assert_eq!(a.recovery.episode().1, 1);
    for _ in 0..3 {
        a.recovery.force_more(4);
    }
    a.quit_path(1);
    assert_eq!(a.recovery.episode().1, 4);
    let counters = a.out.counters.multipath;
    assert_eq!((counters.paths_left, counters.chunks_moved), (3, 4));
    // it tells at once what arrived
    a.tell_what_arrived();
    assert!(a.receiver.sack_is_due());
    let mut one = up(Config::default(), 2);
    one.quit_path(3);
    one.tell_what_arrived();
    assert_eq!((one.recovery.episode().1, one.receiver.sack_is_due()), (0, false));
    assert_eq!(one.out.counters.multipath.paths_left, 0);
}

#[test]
fn retransmissions_go_where_their_policy_has_them_and_stay_among_equals() {
    let mut a = cmt(MultipathConfig::default(), 2);
    send_on(&mut a, ms(0), SECOND, 1000);
    let to = |a: &Association, policy| a.policy_path(policy, Tsn(1));
    use RtxPolicy as P;
    for policy in [P::Asap, P::Same, P::Cwnd, P::Ssthresh, P::LossRate] {
        assert_eq!(to(&a, policy), Some(SECOND), "{policy:?}");
    }
    a.paths[0].window.set_cwnd(20_000);
    a.paths[0].window.set_ssthresh(3000);
    a.paths[1].window.set_cwnd(19_999);
    a.paths[1].window.set_ssthresh(3001);
    assert_eq!(
        (to(&a, P::Cwnd), to(&a, P::Ssthresh)),
        (Some(FIRST), Some(SECOND))
    );
    a.paths[1].window.set_ssthresh(2999);
    assert_eq!(to(&a, P::Ssthresh), Some(FIRST));
    // a tenth, and nine hundredths
    (a.paths[0].share.sent, a.paths[0].share.lost) = (10, 1);
    (a.paths[1].share.sent, a.paths[1].share.lost) = (100, 9);
    assert_eq!(to(&a, P::LossRate), Some(SECOND));
    a.paths[1].share.lost = 11;
    assert_eq!(to(&a, P::LossRate), Some(FIRST));
    a.paths[1].window.set_cwnd(1016);
    assert_eq!(to(&a, P::Asap), Some(FIRST), "1016 bytes are under way");
    a.paths[1].window.set_cwnd(1017);
    assert_eq!(to(&a, P::Asap), Some(SECOND));
    a.destinations[1].state = PathState::PotentiallyFailed;
    assert_eq!(to(&a, P::Same), Some(FIRST));
    assert_eq!(a.policy_path(P::Same, Tsn(2)), None);
}

#[test]
fn a_loss_rate_is_in_millionths_and_forgets_half_beyond_a_thousand_chunks() {
    let mut share = PathShare {
        sent: 8,
        lost: 2,
        ..PathShare::default()
    };
    assert_eq!(share.loss_rate(), 250_000);
    assert_eq!(PathShare::default().loss_rate(), 0);
    share.sent = 1000;
    share.on_lost(3);
    assert_eq!((share.sent, share.lost), (1000, 5));
    share.sent = 1001;
    share.on_lost(4);
    assert_eq!((share.sent, share.lost), (500, 6));
    assert_eq!(share.loss_rate(), 12_000);
}

#[test]
fn a_window_opens_by_the_ack_point_that_cuc_names() {
    let mut share = PathShare::default();
    assert_eq!(share.window_state(Cuc::Off, false, true), (false, false));
    assert_eq!(share.window_state(Cuc::V1, false, true), (true, false));
    share.fast_recovery_exit = Some(Tsn(1));
    assert_eq!(share.window_state(Cuc::Off, true, false), (true, true));
    assert_eq!(share.window_state(Cuc::V2, true, false), (false, true));
}

#[test]
fn coupled_are_the_usable_paths_in_their_order() {
    let with = |congestion| {
        cmt(
            MultipathConfig {
                congestion,
                ..MultipathConfig::default()
            },
            3,
        )
    };
    let a = with(Coupling::Uncoupled);
    assert!(a.coupled_gains().is_empty());
    assert_eq!(a.coupled_ssthresh(FIRST), None);
    let mut a = with(Coupling::Rp1);
    a.destinations[1].state = PathState::Inactive;
    let gains = a.coupled_gains();
    let of: Vec<_> = gains.iter().map(|g| g.0).collect();
    assert_eq!(of, [FIRST, PathId::first_at(2)]);
    assert!(a.coupled_ssthresh(PathId::first_at(2)).is_some());
    assert_eq!(a.coupled_ssthresh(SECOND), None);
}

#[test]
fn the_least_round_trip_with_room_is_the_fastest() {
    let mut a = cmt(MultipathConfig::default(), 3);
    for (path, rtt) in a.paths.values_mut().zip([30, 10, 20]) {
        path.rtt.measure(Duration::from_millis(rtt));
    }
    assert_eq!(a.fastest_with_room(ms(0)), Some(SECOND));
    a.paths[1].window.set_cwnd(1016);
    send_on(&mut a, ms(0), SECOND, 1000);
    assert_eq!(a.fastest_with_room(ms(0)), Some(PathId::first_at(2)));
    a.destinations[2].deactivated = true;
    assert_eq!(a.fastest_with_room(ms(0)), Some(FIRST));
    a.paths[0].share.burst = 0;
    assert_eq!(a.fastest_with_room(ms(0)), None);
    assert_eq!(a.usable_paths().collect::<Vec<_>>(), [FIRST, SECOND]);
}
