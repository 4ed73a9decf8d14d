//! What losses and timeouts do to windows, flights and counters.

use super::*;
use crate::congestion::CongestionControl;
use crate::sctp::ack::Progress;
use crate::sctp::multipath::Cuc;
use crate::sctp::sender::Sent;
use crate::sctp::sender::loss::{Cause, Lost, Verdict};
use crate::sctp::slots::Id;
use crate::sctp::{Event, Profile};

fn verdict(lost: &[(u32, Cause)], withheld: u64) -> Verdict {
    Verdict {
        lost: lost
            .iter()
            .map(|&(tsn, cause)| Lost { tsn: Tsn(tsn), cause })
            .collect(),
        withheld,
    }
}

/// What loss detection found is acted on, and T3-rtx follows.
fn recover(a: &mut Association, now: Instant, verdict: &Verdict) -> Progress {
    let mut progress = Progress::begin(&a.flight);
    a.recover(now, verdict, &mut progress);
    for path in a.paths.ids() {
        a.flight.settle(path, None);
    }
    progress
}

#[test]
fn a_path_that_lost_something_is_cut_once_in_its_episode() {
    let mut a = cmt(MultipathConfig::default(), 2);
    for path in a.paths.values_mut() {
        path.window.set_cwnd(40_000);
    }
    for path in [FIRST, SECOND, FIRST, FIRST] {
        send_on(&mut a, ms(0), path, 1000);
    }
    a.flight.find_pseudo_cumulative_acks();
    assert_eq!(a.flight.awaited(FIRST), [Some(1), None]);
    let progress = recover(&mut a, ms(100), &verdict(&[(1, Cause::MissingReports)], 2));
    assert_eq!(a.out.counters.multipath.missing_reports_withheld, 2);
    let first = &a.paths[0];
    assert_eq!((first.window.cwnd(), a.flight.size_on(FIRST)), (20_000, 2032));
    assert_eq!(first.share.fast_recovery_exit, Some(Tsn(4)));
    assert!(first.share.fast_retransmission_due);
    assert!(progress.of(FIRST).is_some_and(|p| p.lost));
    assert_eq!(a.flight.watched(FIRST), Some((3, ms(1000))));
    assert_eq!(a.flight.awaited(FIRST), [None; 2], "version 2 looks again");
    assert_eq!((first.share.lost, a.flight.timed(FIRST)), (1, None));
    assert_eq!(a.paths[1].window.cwnd(), 40_000);
    assert_eq!(a.paths[1].share.fast_recovery_exit, None);
    assert_eq!(a.peer_rwnd(), 97_000);
    assert!(a.flight.get(Tsn(1)).is_some_and(Sent::is_fast_marked));
    // in the same episode
    recover(&mut a, ms(101), &verdict(&[(3, Cause::RetransmissionMissing)], 1));
    assert_eq!(a.paths[0].window.cwnd(), 20_000);
    let counters = a.out.counters.multipath;
    assert_eq!(
        (counters.retransmissions_lost, counters.missing_reports_withheld),
        (1, 3)
    );
    assert_eq!((a.flight.size_on(FIRST), a.paths[0].share.lost), (1016, 2));
}

#[test]
fn version_1_of_cuc_goes_on_waiting_for_what_is_lost() {
    let mut a = cmt(
        MultipathConfig {
            cuc: Cuc::V1,
            ..MultipathConfig::default()
        },
        2,
    );
    send_on(&mut a, ms(0), FIRST, 1000);
    a.flight.find_pseudo_cumulative_acks();
    recover(&mut a, ms(100), &verdict(&[(1, Cause::MissingReports)], 0));
    assert_eq!(a.flight.awaited(FIRST), [Some(1), None]);
}

#[test]
fn a_path_leaves_fast_recovery_when_what_it_had_outstanding_then_has_arrived() {
    for cuc in [Cuc::V2, Cuc::Off] {
        let mut a = cuc::with(cuc);
        a.paths[0].share.fast_recovery_exit = Some(Tsn(3));
        let mut over = |change: &dyn Fn(&mut Association), cumulative| {
            change(&mut a);
            a.leave_fast_recovery(Tsn(cumulative));
            a.paths[0].share.fast_recovery_exit.is_none()
        };
        assert!(!over(&|_| (), 0), "{cuc:?}");
        let gap = |tsn| {
            move |a: &mut Association| {
                a.flight.acknowledge(Tsn(tsn));
            }
        };
        assert!(!over(&gap(1), 0), "{cuc:?}");
        let by_path = cuc != Cuc::Off;
        assert_eq!(over(&gap(3), 0), by_path, "4 was sent later");
        assert_eq!(over(&|_| (), 2), by_path);
        assert!(over(&|_| (), 3));
    }
}

#[test]
fn one_episode_of_an_association_ends_with_what_was_sent_when_it_began() {
    for profile in [Profile::Rfc9260, Profile::Rfc4960, Profile::Rfc2960] {
        let mut a = up(Config::new(profile), 1);
        a.paths[0].window.set_cwnd(80_000);
        for _ in 0..4 {
            send_on(&mut a, ms(0), FIRST, 1000);
        }
        recover(&mut a, ms(100), &verdict(&[(1, Cause::MissingReports)], 5));
        assert_eq!(a.out.counters.multipath.missing_reports_withheld, 0);
        assert_eq!(a.paths[0].window.cwnd(), 40_000);
        assert_eq!(a.recovery.episode().1, 1);
        recover(&mut a, ms(100), &verdict(&[(2, Cause::MissingReports)], 0));
        if profile == Profile::Rfc2960 {
            assert_eq!(a.paths[0].window.cwnd(), 20_000, "every time");
            assert_eq!(a.recovery.episode().0, None);
            continue;
        }
        assert_eq!(a.paths[0].window.cwnd(), 40_000);
        assert_eq!(a.recovery.episode().0, Some(4));
        a.leave_fast_recovery(Tsn(3));
        assert_eq!(a.recovery.episode().0, Some(4));
        a.leave_fast_recovery(Tsn(4));
        assert_eq!(a.recovery.episode().0, None);
    }
}

#[test]
fn t3_rtx_marks_all_but_what_was_sent_within_a_round_trip() {
    let mut a = cmt(MultipathConfig::default(), 2);
    a.paths[0].rtt.measure(Duration::from_millis(100));
    for (at, path) in [(0, FIRST), (899, FIRST), (900, FIRST), (950, FIRST), (0, SECOND)] {
        send_on(&mut a, ms(at), path, 1000);
    }
    a.paths[0].share.fast_recovery_exit = Some(Tsn(4));
    a.paths[0].share.fast_retransmission_due = true;
    a.on_t3(ms(1000), Id::first_at(0));
    assert_eq!(
        (a.flight.marked(), a.out.counters.multipath.chunks_spared),
        (2, 2)
    );
    let path = &a.paths[0];
    assert_eq!(
        (a.flight.size_on(FIRST), path.rto()),
        (2032, Duration::from_secs(2))
    );
    assert_eq!(a.flight.watched(FIRST), Some((3, ms(3000))));
    assert_eq!(path.window.cwnd(), path.window.segment());
    assert_eq!((path.share.lost, path.share.fast_recovery_exit), (2, None));
    assert!(!path.share.fast_retransmission_due);
    assert_eq!(a.flight.size_on(SECOND), 1016);
    assert_eq!(a.peer_rwnd(), 97_000);
    assert_eq!((a.out.counters.t3_expiries, a.recovery.episode().1), (1, 1));
    assert_eq!((a.destinations[0].error_count, a.association_error_count), (1, 1));
}

#[test]
fn t3_rtx_of_a_single_path_marks_everything_and_forces_a_packet() {
    let mut a = up(Config::default(), 1);
    a.paths[0].rtt.measure(Duration::from_millis(100));
    send_on(&mut a, ms(0), FIRST, 1000);
    send_on(&mut a, ms(999), FIRST, 999);
    a.recovery.force_one();
    a.recovery.begin(Tsn(2));
    a.on_t3(ms(1000), Id::first_at(0));
    assert_eq!((a.flight.marked(), a.flight.size_on(FIRST)), (2, 0));
    assert_eq!((a.flight.t3_rtx(FIRST), a.recovery.is_on()), (None, false));
    assert_eq!((a.peer_rwnd(), a.recovery.episode().1), (100_000, 2));
    assert_eq!(a.out.counters.multipath.chunks_spared, 0);
    // not more than there is
    a.on_t3(ms(3000), Id::first_at(0));
    assert_eq!(a.recovery.episode().1, 2);
}

#[test]
fn what_is_spared_was_sent_a_smoothed_round_trip_ago_at_most() {
    let srtt = Some(Duration::from_millis(100));
    let a = cmt(MultipathConfig::default(), 2);
    assert_eq!(a.spared_from(ms(500), srtt), ms(400));
    assert_eq!(a.spared_from(ms(500), None), Instant::MAX);
    let off = MultipathConfig {
        spare_recent: false,
        ..MultipathConfig::default()
    };
    assert_eq!(cmt(off, 2).spared_from(ms(500), srtt), Instant::MAX);
    assert_eq!(up(Config::default(), 2).spared_from(ms(500), srtt), Instant::MAX);
}

#[test]
fn early_retransmit_takes_one_report_where_all_have_arrived_but_one_of_three() {
    let config = Config {
        early_retransmit: true,
        ..Config::default()
    };
    let flight = |config: &Config, chunks: u32, arrived: u32| {
        let mut a = up(config.clone(), 1);
        for _ in 0..chunks {
            send_on(&mut a, ms(0), FIRST, 1000);
        }
        for tsn in 2..2 + arrived {
            a.flight.acknowledge(Tsn(tsn));
        }
        a
    };
    assert_eq!(flight(&config, 3, 2).missing_report_threshold(9000), 1);
    assert_eq!(flight(&config, 3, 1).missing_report_threshold(9000), 3);
    assert_eq!(flight(&config, 4, 3).missing_report_threshold(9000), 3);
    assert_eq!(flight(&Config::default(), 3, 2).missing_report_threshold(9000), 3);
    let old = Config::new(Profile::Rfc2960);
    assert_eq!(flight(&old, 3, 2).missing_report_threshold(9000), 4);
    // what may still be sent will be reported behind it
    let mut a = flight(&config, 3, 2);
    let data = Data::Synthetic { offset: 0, len: 500 };
    a.queue.push(ms(0), 0, data, SendOptions::default());
    assert_eq!(a.missing_report_threshold(1500), 3);
    assert_eq!(a.missing_report_threshold(1499), 1);
}

#[test]
fn a_probe_that_was_refused_goes_out_again_when_the_window_opens() {
    let mut a = up(Config::default(), 2);
    let tsn = send_on(&mut a, ms(0), FIRST, 500);
    a.credit.on_probe_sent(tsn);
    assert!(!a.probe_was_answered(FIRST));
    a.note_window(0);
    assert!(a.probe_was_answered(FIRST) && !a.probe_was_answered(SECOND));
    a.note_window(499);
    assert_eq!(a.flight.marked(), 0);
    a.note_window(500);
    assert_eq!(a.flight.marked(), 1);
    assert_eq!((a.flight.size_on(FIRST), a.flight.t3_rtx(FIRST)), (0, None));
    assert_eq!((a.credit.probe(), a.peer_rwnd()), (None, 500));
    // a first answer that has room says only that it is on its way
    let mut a = up(Config::default(), 1);
    let tsn = send_on(&mut a, ms(0), FIRST, 500);
    a.credit.on_probe_sent(tsn);
    a.note_window(500);
    assert_eq!((a.flight.marked(), a.credit.probe()), (0, Some(tsn)));
    // and one that acknowledges it, that it was taken
    a.flight.acknowledge_next();
    a.note_window(500);
    assert_eq!(a.credit.probe(), None);
}

#[test]
fn t3_rtx_of_an_answered_probe_blames_nobody() {
    let mut a = up(Config::default(), 1);
    a.paths[0].window.set_cwnd(9000);
    let tsn = send_on(&mut a, ms(0), FIRST, 500);
    a.credit.on_probe_sent(tsn);
    a.note_window(0);
    a.on_t3(ms(1000), Id::first_at(0));
    assert_eq!(
        (a.paths[0].window.cwnd(), a.destinations[0].error_count),
        (9000, 0)
    );
    assert_eq!(a.paths[0].rto(), Duration::from_secs(2));
    assert_eq!(a.credit.answered_probe(), None);
    assert_eq!(a.flight.marked(), 1);
}

#[test]
fn a_destination_fails_potentially_beyond_pfmr_and_for_good_beyond_path_max_retrans() {
    let config = Config {
        pf_max_retrans: Some(2),
        association_max_retrans: 100,
        ..Config::default()
    };
    let mut a = up(config, 2);
    use PathState as S;
    for (errors, state, current) in [
        (1, S::Active, 0),
        (2, S::Active, 0),
        (3, S::PotentiallyFailed, 1),
        (4, S::PotentiallyFailed, 1),
        (5, S::PotentiallyFailed, 1),
        (6, S::Inactive, 1),
        (7, S::Inactive, 1),
    ] {
        assert!(a.count_error(Id::first_at(0)));
        assert_eq!(a.association_error_count, errors);
        assert_eq!((states(&a), a.current.place()), (vec![state, S::Active], current));
        let due = a.destinations[0].heartbeat_due;
        assert_eq!(due, (errors > 2).then_some(Instant::ZERO), "{errors}");
    }
    let changes: Vec<_> = core::iter::from_fn(|| a.poll_event()).collect();
    let changed = |state| Event::PathStateChanged {
        address: address(0),
        state,
    };
    assert_eq!(changes, [changed(S::PotentiallyFailed), changed(S::Inactive)]);
    assert_eq!((a.primary.place(), a.current.place()), (0, 1));
    a.clear_errors(Id::first_at(0));
    assert_eq!((a.current.place(), a.association_error_count), (0, 0));
    assert_eq!(a.destinations[0].error_count, 0);
}

#[test]
fn the_primary_is_switched_over_beyond_the_larger_of_psmr_and_pfmr() {
    for (psmr, pfmr, limit) in [(1, 3, 3), (4, 1, 4)] {
        let config = Config {
            pf_max_retrans: Some(pfmr),
            primary_switchover_max_retrans: Some(psmr),
            ..Config::default()
        };
        let mut a = up(config, 2);
        for _ in 0..limit {
            a.count_error(Id::first_at(0));
        }
        assert_eq!(a.primary.place(), 0);
        a.count_error(Id::first_at(0));
        assert_eq!(a.primary.place(), 1);
    }
}

#[test]
fn the_association_is_lost_beyond_its_limit() {
    let config = Config {
        association_max_retrans: 2,
        ..Config::default()
    };
    let mut a = up(config, 2);
    assert!(a.count_error(Id::first_at(0)) && a.count_error(Id::first_at(1)));
    // what was never confirmed counts only for itself
    a.destinations[1].state = PathState::Unconfirmed;
    assert!(a.count_error(Id::first_at(1)));
    assert!(!a.count_error(Id::first_at(0)));
    assert!(a.is_closed());
}

#[test]
fn of_those_that_failed_potentially_the_one_with_the_fewest_errors_is_used() {
    let mut a = up(Config::default(), 4);
    for (d, errors) in a.destinations.values_mut().zip([3, 2, 2, 1]) {
        d.state = PathState::PotentiallyFailed;
        d.error_count = errors;
    }
    assert_eq!(a.least_failed().map(Id::place), Some(3));
    a.destinations[3].deactivated = true;
    assert_eq!(a.least_failed().map(Id::place), Some(1));
    a.current = Id::first_at(2);
    assert_eq!(a.least_failed().map(Id::place), Some(2), "that which is in use");
    (a.current, a.primary) = (Id::first_at(0), Id::first_at(2));
    assert_eq!(a.least_failed().map(Id::place), Some(2), "the primary");
    a.destinations.remove(Id::first_at(2));
    a.destinations[1].state = PathState::Inactive;
    assert_eq!(a.least_failed().map(Id::place), Some(0));
}

#[test]
fn windows_that_begin_anew_have_the_segments_of_cmt_pf() {
    for segments in [1, 2] {
        let mut a = cmt(
            MultipathConfig {
                pf_recovery: segments,
                ..MultipathConfig::default()
            },
            2,
        );
        for path in a.paths.values_mut() {
            path.window.set_cwnd(40_000);
        }
        a.restart_windows(Id::first_at(1));
        let segment = a.paths[1].window.segment();
        assert_eq!(a.paths[1].window.cwnd(), segment * u32::from(segments));
        assert_eq!(a.paths[0].window.cwnd(), 40_000);
    }
}
