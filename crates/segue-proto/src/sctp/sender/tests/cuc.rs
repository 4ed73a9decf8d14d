//! The pseudo-cumulative acks of paths.

use super::super::flight::Passed;
use super::super::sack::SackOutcome;
use super::*;
use crate::sctp::MultipathConfig;
use segue_wire::sctp::{GapAckBlock, Sack};

/// Four chunks are out, the second of them over another path.
pub(super) fn with(cuc: Cuc) -> Rig {
    let mut a = Rig::cmt(
        MultipathConfig {
            cuc,
            ..MultipathConfig::default()
        },
        2,
    );
    for path in [FIRST, SECOND, FIRST, FIRST] {
        a.send_on(ms(0), path, 1000);
    }
    a
}

/// What a path waits for of what was sent once, and of what was sent again.
fn awaited(a: &Rig, path: PathId) -> [Option<u32>; 2] {
    a.sender.flight.awaited(path)
}

/// A gap ack block acknowledges a chunk; whether its path's ack point advances.
fn acked(a: &mut Rig, tsn: u32) -> bool {
    a.sender.flight.acknowledge(Tsn(tsn)).is_some_and(|a| a.pseudo)
}

fn sent_again(a: &mut Rig, tsn: u32, path: PathId) {
    a.sender.flight.lose_one(Cause::Timeout, Tsn(tsn));
    a.resend(ms(50), tsn, path);
}

#[test]
fn each_path_waits_for_its_earliest_and_then_for_the_next() {
    for cuc in [Cuc::V1, Cuc::V2] {
        let mut a = with(cuc);
        a.sender.flight.find_pseudo_cumulative_acks();
        assert_eq!(awaited(&a, FIRST), [Some(1), None]);
        assert_eq!(awaited(&a, SECOND), [Some(2), None]);
        assert!(!acked(&mut a, 3), "{cuc:?}");
        assert_eq!(awaited(&a, FIRST), [Some(1), None]);
        assert!(acked(&mut a, 1));
        assert_eq!(awaited(&a, FIRST), [Some(4), None]);
        assert!(acked(&mut a, 4));
        assert_eq!(awaited(&a, FIRST), [None, None]);
        assert!(acked(&mut a, 2));
        // nothing is waited for: nothing advances
        assert!(!acked(&mut a, 2));
        a.sender.flight.find_pseudo_cumulative_acks();
        assert_eq!(awaited(&a, SECOND), [None, None]);
    }
}

#[test]
fn version_2_follows_what_was_sent_again_apart() {
    let mut a = with(Cuc::V2);
    sent_again(&mut a, 1, SECOND);
    sent_again(&mut a, 3, SECOND);
    a.sender.flight.find_pseudo_cumulative_acks();
    assert_eq!(awaited(&a, FIRST), [Some(4), None]);
    assert_eq!(awaited(&a, SECOND), [Some(2), Some(1)]);
    assert!(acked(&mut a, 1));
    assert_eq!(awaited(&a, SECOND), [Some(2), Some(3)]);
    assert!(acked(&mut a, 3));
    assert_eq!(awaited(&a, SECOND), [Some(2), None]);
    assert!(acked(&mut a, 2));
    assert_eq!(awaited(&a, SECOND), [None, None]);
    // version 1 makes no difference
    let mut a = with(Cuc::V1);
    sent_again(&mut a, 1, SECOND);
    a.sender.flight.find_pseudo_cumulative_acks();
    assert_eq!(awaited(&a, FIRST), [Some(3), None]);
    assert_eq!(awaited(&a, SECOND), [Some(1), None]);
    assert!(acked(&mut a, 1));
    assert_eq!(awaited(&a, SECOND), [Some(2), None]);
}

#[test]
fn version_1_waits_for_what_is_marked_and_version_2_does_not() {
    for (cuc, first) in [(Cuc::V1, 1), (Cuc::V2, 3)] {
        let mut a = with(cuc);
        a.sender.flight.lose_one(Cause::Timeout, Tsn(1));
        a.sender.flight.find_pseudo_cumulative_acks();
        assert_eq!(awaited(&a, FIRST), [Some(first), None]);
        // what is known is not looked for again, until a chunk of the path is cumulatively acknowledged
        a.sender.flight.find_pseudo_cumulative_acks();
        assert_eq!(awaited(&a, FIRST), [Some(first), None]);
        let passed = a.sender.flight.acknowledge_next();
        assert!(matches!(passed, Some(Passed::New(acked)) if acked.pseudo));
        a.sender.flight.find_pseudo_cumulative_acks();
        assert_eq!(awaited(&a, FIRST), [Some(3), None]);
    }
}

#[test]
fn an_advance_is_counted_where_the_cumulative_ack_stood_still() {
    for (cuc, counted) in [(Cuc::V1, 1), (Cuc::V2, 1), (Cuc::Off, 0)] {
        let mut a = with(cuc);
        let block = |n| GapAckBlock { start: n, end: n };
        let sack = |cumulative, block: Option<GapAckBlock>| Sack {
            cumulative_tsn_ack: Tsn(cumulative),
            a_rwnd: 100_000,
            gap_ack_blocks: block.into_iter().collect(),
            duplicate_tsns: Vec::new().into(),
            data_packets: 0,
        };
        // the second path's earliest, with the first path's still under way
        let taken = Ok(SackOutcome::Taken);
        assert_eq!(a.sack(ms(100), &sack(0, Some(block(2)))), taken);
        let counted_so_far = a.out.counters.multipath.pseudo_cumulative_acks;
        assert_eq!(counted_so_far, counted, "{cuc:?}");
        assert_eq!(a.sack(ms(101), &sack(2, None)), taken);
        let after = a.out.counters.multipath.pseudo_cumulative_acks;
        assert_eq!(after, counted, "it advanced, {cuc:?}");
    }
}

#[test]
fn without_cuc_nothing_is_looked_for() {
    let mut a = with(Cuc::Off);
    a.sender.flight.find_pseudo_cumulative_acks();
    assert_eq!(awaited(&a, FIRST), [None, None]);
    assert!(!acked(&mut a, 1));
}
