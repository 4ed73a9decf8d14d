//! What losses do to windows, flights and counters.

use super::super::chunk::Sent;
use super::super::loss_detection::{Lost, Verdict};
use super::*;
use crate::sctp::{MultipathConfig, Profile};

/// So many chunks are lost, each perhaps as a retransmission.
fn verdict(lost: &[(u32, bool)], withheld: u64) -> Verdict {
    Verdict {
        lost: lost
            .iter()
            .map(|&(tsn, again)| Lost { tsn: Tsn(tsn), again })
            .collect(),
        withheld,
    }
}

#[test]
fn a_path_that_lost_something_is_cut_once_in_its_episode() {
    let mut a = Rig::cmt(MultipathConfig::default(), 2);
    for path in [FIRST, SECOND] {
        a.peer.path_mut(path).set_cwnd(40_000);
    }
    for path in [FIRST, SECOND, FIRST, FIRST] {
        a.send_on(ms(0), path, 1000);
    }
    a.sender.flight.find_pseudo_cumulative_acks();
    assert_eq!(a.sender.flight.awaited(FIRST), [Some(1), None]);
    let progress = a.recover(ms(100), &verdict(&[(1, false)], 2));
    assert_eq!(a.out.counters.multipath.missing_reports_withheld, 2);
    assert_eq!(
        (a.peer[FIRST].cwnd(), a.sender.flight.size_on(FIRST)),
        (20_000, 2032)
    );
    let episode = a.sender.concurrent().episode_on(FIRST);
    assert_eq!(episode, (Some(Tsn(4)), true), "and a packet may go there");
    assert!(progress.of(FIRST).is_some_and(|p| p.has_lost()));
    assert_eq!(a.sender.flight.watched(FIRST), Some((3, ms(1000))));
    assert_eq!(a.sender.flight.awaited(FIRST), [None; 2], "version 2 looks again");
    let lost = a.sender.concurrent().lost_on(FIRST);
    assert_eq!((lost, a.sender.flight.timed(FIRST)), (1, None));
    assert_eq!(a.peer[SECOND].cwnd(), 40_000);
    assert_eq!(a.sender.concurrent().episode_on(SECOND), (None, false));
    assert_eq!(a.sender.peer_rwnd(), 97_000);
    assert!(a.sender.flight.get(Tsn(1)).is_some_and(Sent::is_fast_marked));
    // in the same episode
    a.recover(ms(101), &verdict(&[(3, true)], 1));
    assert_eq!(a.peer[FIRST].cwnd(), 20_000);
    let counters = a.out.counters.multipath;
    assert_eq!(
        (counters.retransmissions_lost, counters.missing_reports_withheld),
        (1, 3)
    );
    let lost = a.sender.concurrent().lost_on(FIRST);
    assert_eq!((a.sender.flight.size_on(FIRST), lost), (1016, 2));
}

#[test]
fn version_1_of_cuc_goes_on_waiting_for_what_is_lost() {
    let mut a = Rig::cmt(
        MultipathConfig {
            cuc: Cuc::V1,
            ..MultipathConfig::default()
        },
        2,
    );
    a.send_on(ms(0), FIRST, 1000);
    a.sender.flight.find_pseudo_cumulative_acks();
    a.recover(ms(100), &verdict(&[(1, false)], 0));
    assert_eq!(a.sender.flight.awaited(FIRST), [Some(1), None]);
}

#[test]
fn a_path_leaves_fast_recovery_when_what_it_had_outstanding_then_has_arrived() {
    for cuc in [Cuc::V2, Cuc::Off] {
        let mut a = cuc::with(cuc);
        a.sender.concurrent().begin_episode_on(FIRST, Tsn(3));
        let mut over = |change: &dyn Fn(&mut Rig), cumulative: u32| {
            change(&mut a);
            a.leave_fast_recovery(cumulative);
            a.sender.concurrent().episode_on(FIRST).0.is_none()
        };
        assert!(!over(&|_| (), 0), "{cuc:?}");
        let gap = |tsn| {
            move |a: &mut Rig| {
                a.sender.flight.acknowledge(Tsn(tsn));
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
        let mut a = Rig::new(Config::new(profile), 1);
        a.peer.path_mut(FIRST).set_cwnd(80_000);
        for _ in 0..4 {
            a.send_on(ms(0), FIRST, 1000);
        }
        a.recover(ms(100), &verdict(&[(1, false)], 5));
        assert_eq!(a.out.counters.multipath.missing_reports_withheld, 0);
        assert_eq!(a.peer[FIRST].cwnd(), 40_000);
        assert_eq!(a.episode().1, 1);
        a.recover(ms(100), &verdict(&[(2, false)], 0));
        if profile == Profile::Rfc2960 {
            assert_eq!(a.peer[FIRST].cwnd(), 20_000, "every time");
            assert_eq!(a.episode().0, None);
            continue;
        }
        assert_eq!(a.peer[FIRST].cwnd(), 40_000);
        assert_eq!(a.episode().0, Some(4));
        a.leave_fast_recovery(3);
        assert_eq!(a.episode().0, Some(4));
        a.leave_fast_recovery(4);
        assert_eq!(a.episode().0, None);
    }
}

#[test]
fn leaving_a_path_forces_one_packet_of_what_was_moved() {
    let leave = |a: &mut Rig, path| {
        a.sender.leave_paths(&[path], &mut a.out.counters.multipath);
        a.episode().1
    };
    let mut a = Rig::cmt(MultipathConfig::default(), 2);
    a.send_on(ms(0), SECOND, 1000);
    a.sender.flight.find_pseudo_cumulative_acks();
    assert_eq!(a.sender.flight.awaited(SECOND), [Some(1), None]);
    // nothing is under way there
    assert_eq!(leave(&mut a, FIRST), 0);
    assert_eq!(a.sender.flight.awaited(SECOND), [None; 2]);
    assert_eq!(leave(&mut a, SECOND), 1);
    a.send_on(ms(0), FIRST, 1000);
    for _ in 0..3 {
        a.sender.recovery.force_more(4);
    }
    assert_eq!(leave(&mut a, FIRST), 4);
    let counters = a.out.counters.multipath;
    assert_eq!((counters.paths_left, counters.chunks_moved), (3, 2));
    let mut one = Rig::new(Config::default(), 2);
    one.send_on(ms(0), FIRST, 1000);
    assert_eq!(leave(&mut one, FIRST), 0);
    assert_eq!(one.out.counters.multipath.paths_left, 0);
}
