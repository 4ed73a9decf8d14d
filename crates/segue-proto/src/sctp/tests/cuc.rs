//! The pseudo-cumulative acks of paths.

use super::*;
use crate::sctp::multipath::Cuc;
use crate::sctp::outbound::ChunkState;

/// Four chunks are out, the second of them over another path.
pub(super) fn with(cuc: Cuc) -> Association {
    let mut a = cmt(
        MultipathConfig {
            cuc,
            ..MultipathConfig::default()
        },
        2,
    );
    for path in [FIRST, SECOND, FIRST, FIRST] {
        send_on(&mut a, ms(0), path, 1000);
    }
    a
}

/// What a path waits for of what was sent once, and of what was sent again.
fn awaited(a: &Association, path: PathId) -> [Option<u32>; 2] {
    let p = &a.paths[path].share.pseudo;
    [
        (!p.find_pseudo_cumack).then_some(p.pseudo_cumack.0),
        (!p.find_rtx_pseudo_cumack).then_some(p.rtx_pseudo_cumack.0),
    ]
}

/// A gap ack block acknowledges a chunk; whether its path's ack point advanced, which is taken back.
fn acked(a: &mut Association, path: PathId, tsn: u32) -> bool {
    a.outbound.set_state(Tsn(tsn), ChunkState::GapAcked);
    a.advance_pseudo_cumulative_ack(path, Tsn(tsn));
    let pseudo = &mut a.paths[path].share.pseudo;
    core::mem::take(&mut pseudo.new_pseudo_cumack)
}

fn sent_again(a: &mut Association, tsn: u32, path: PathId) {
    let former = a.outbound.get(Tsn(tsn)).expect("sent").transmission;
    let again = a.loss.on_sent_again(ms(50), former, false);
    a.outbound.set_state(Tsn(tsn), ChunkState::Outstanding);
    let sent = a.outbound.get_mut(Tsn(tsn)).expect("sent");
    (sent.transmission, sent.path) = (again, Some(path));
}

#[test]
fn each_path_waits_for_its_earliest_and_then_for_the_next() {
    for cuc in [Cuc::V1, Cuc::V2] {
        let mut a = with(cuc);
        a.find_pseudo_cumulative_acks();
        assert_eq!(awaited(&a, FIRST), [Some(1), None]);
        assert_eq!(awaited(&a, SECOND), [Some(2), None]);
        assert!(!acked(&mut a, FIRST, 3), "{cuc:?}");
        assert_eq!(awaited(&a, FIRST), [Some(1), None]);
        assert!(acked(&mut a, FIRST, 1));
        assert_eq!(awaited(&a, FIRST), [Some(4), None]);
        assert!(acked(&mut a, FIRST, 4));
        assert_eq!(awaited(&a, FIRST), [None, None]);
        assert!(acked(&mut a, SECOND, 2));
        // nothing is waited for: nothing advances
        assert!(!acked(&mut a, SECOND, 2));
        a.find_pseudo_cumulative_acks();
        assert_eq!(awaited(&a, SECOND), [None, None]);
    }
}

#[test]
fn version_2_follows_what_was_sent_again_apart() {
    let mut a = with(Cuc::V2);
    sent_again(&mut a, 1, SECOND);
    sent_again(&mut a, 3, SECOND);
    a.find_pseudo_cumulative_acks();
    assert_eq!(awaited(&a, FIRST), [Some(4), None]);
    assert_eq!(awaited(&a, SECOND), [Some(2), Some(1)]);
    assert!(acked(&mut a, SECOND, 1));
    assert_eq!(awaited(&a, SECOND), [Some(2), Some(3)]);
    assert!(acked(&mut a, SECOND, 3));
    assert_eq!(awaited(&a, SECOND), [Some(2), None]);
    assert!(acked(&mut a, SECOND, 2));
    assert_eq!(awaited(&a, SECOND), [None, None]);
    // version 1 makes no difference
    let mut a = with(Cuc::V1);
    sent_again(&mut a, 1, SECOND);
    a.find_pseudo_cumulative_acks();
    assert_eq!(awaited(&a, FIRST), [Some(3), None]);
    assert_eq!(awaited(&a, SECOND), [Some(1), None]);
    assert!(acked(&mut a, SECOND, 1));
    assert_eq!(awaited(&a, SECOND), [Some(2), None]);
}

#[test]
fn version_1_waits_for_what_is_marked_and_version_2_does_not() {
    for (cuc, first) in [(Cuc::V1, 1), (Cuc::V2, 3)] {
        let mut a = with(cuc);
        a.outbound.set_state(Tsn(1), ChunkState::Marked);
        a.find_pseudo_cumulative_acks();
        assert_eq!(awaited(&a, FIRST), [Some(first), None]);
        // what is known is not looked for again
        a.outbound.pop_acked();
        a.find_pseudo_cumulative_acks();
        assert_eq!(awaited(&a, FIRST), [Some(first), None]);
        a.paths[0].share.pseudo.on_cumulatively_acked();
        assert!(a.paths[0].share.pseudo.new_pseudo_cumack);
        a.find_pseudo_cumulative_acks();
        assert_eq!(awaited(&a, FIRST), [Some(3), None]);
    }
}

#[test]
fn an_advance_is_counted_where_the_cumulative_ack_stood_still() {
    for (cuc, counted) in [(Cuc::V1, 2), (Cuc::V2, 2), (Cuc::Off, 0)] {
        let mut a = with(cuc);
        for path in a.paths.values_mut() {
            path.share.pseudo.new_pseudo_cumack = true;
        }
        a.note_pseudo_cumulative_acks(true);
        assert_eq!(a.out.counters.multipath.pseudo_cumulative_acks, 0);
        a.note_pseudo_cumulative_acks(false);
        assert_eq!(
            a.out.counters.multipath.pseudo_cumulative_acks, counted,
            "{cuc:?}"
        );
    }
}

#[test]
fn without_cuc_nothing_is_looked_for() {
    let mut a = with(Cuc::Off);
    a.find_pseudo_cumulative_acks();
    assert_eq!(awaited(&a, FIRST), [None, None]);
    assert!(!acked(&mut a, FIRST, 1));
}
