//! Early retransmit (RFC 5827): a loss at the tail does not wait for T3-rtx.

use crate::common::*;
use segue_proto::sctp::{Config, Profile, SendOptions};
use segue_wire::sctp::{Chunk, GapAckBlock, Sack};

/// A sends `messages` packets, and of the first transmissions those of `lost` (from 0 on) are lost. How many chunks are
/// retransmitted fast, and how often T3-rtx expires, within 5 s.
fn after_losing(early_retransmit: bool, messages: u64, lost: &'static [u64]) -> (u64, u64) {
    let config = Config {
        early_retransmit,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    // opens the window
    for i in 0..40 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    net.run_for(ms(2000));
    assert_eq!(net.messages[B].len(), 40);
    let mut number = 0;
    net.rule = Box::new(move |d| {
        if d.from == A && d.data().next().is_some() {
            number += 1;
            if lost.contains(&(number - 1)) {
                return Vec::new();
            }
        }
        vec![ms(10)]
    });
    for i in 40..40 + messages {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    net.run_for(ms(5000));
    assert_eq!(net.messages[B].len() as u64, 40 + messages);
    let counters = net.association(A).counters();
    (counters.fast_retransmits, counters.t3_expiries)
}

#[test]
fn the_first_of_two_or_three_is_retransmitted_when_all_others_have_arrived() {
    for messages in [2, 3] {
        assert_eq!(after_losing(true, messages, &[0]), (1, 0), "{messages}");
        assert_eq!(after_losing(false, messages, &[0]), (0, 1), "{messages}");
    }
}

#[test]
fn with_four_outstanding_fast_retransmit_does_as_usual() {
    for early in [false, true] {
        assert_eq!(after_losing(early, 4, &[0]), (1, 0));
    }
}

#[test]
fn a_loss_that_nothing_follows_waits_for_the_timeout() {
    for early in [false, true] {
        assert_eq!(after_losing(early, 3, &[2]), (0, 1));
    }
}

#[test]
fn as_long_as_one_of_the_others_is_missing_too_the_first_waits() {
    // two of three: one report is not enough for three outstanding
    assert_eq!(after_losing(true, 3, &[0, 1]), (0, 1));
}

/// A is given `messages` messages of 1000 bytes at once, of which the peer's window lets `window` go and Max.Burst three; none
/// arrives. Then come SACKs of the chunks with these numbers, from 1 on, and with this a_rwnd. How many chunks are
/// retransmitted fast.
fn after_sacks(profile: Profile, messages: u64, window: u32, sacks: &[(&[u16], u32)]) -> u64 {
    let config = Config {
        early_retransmit: true,
        max_burst: Some(3),
        ..Config::new(profile)
    };
    let mut net = Net::established(config, [1, 1]);
    net.send(A, 0, synthetic(0, 1000));
    net.run_for(ms(500));
    let base = first_tsn(&net);
    net.rule = Box::new(|_| vec![]);
    let acknowledge = |net: &mut Net, acked: &[u16], a_rwnd| {
        let blocks = acked.iter().map(|&n| GapAckBlock { start: n, end: n });
        let sack = Sack {
            cumulative_tsn_ack: base,
            a_rwnd,
            gap_ack_blocks: blocks.collect(),
            duplicate_tsns: Box::default(),
            data_packets: 0,
        };
        let packet = net.forge(A, address(B, 1), [Chunk::Sack(sack)]);
        net.inject(A, packet);
        net.association(A).check_invariants().expect("A");
    };
    acknowledge(&mut net, &[], window);
    let before = net.log.len();
    net.command(A, |a, now| {
        for i in 0..messages {
            a.send(now, 0, synthetic(i * 1000, 1000), SendOptions::default())
                .expect("sent");
        }
    });
    let sent = net.log[before..].iter().flat_map(Departure::data).count();
    assert_eq!(sent as u64, messages.min(3));
    for &(acked, a_rwnd) in sacks {
        acknowledge(&mut net, acked, a_rwnd);
    }
    net.association(A).counters().fast_retransmits
}

/// A window that nothing fills.
const OPEN: u32 = 100_000;

#[test]
fn one_sack_for_all_others_is_enough() {
    for profile in [Profile::Rfc2960, Profile::Rfc4960, Profile::Rfc9260] {
        assert_eq!(
            after_sacks(profile, 3, OPEN, &[(&[2, 3], OPEN)]),
            1,
            "{profile:?}"
        );
        assert_eq!(
            after_sacks(profile, 3, OPEN, &[(&[1, 3], OPEN)]),
            1,
            "{profile:?}"
        );
        assert_eq!(after_sacks(profile, 3, OPEN, &[(&[3], OPEN)]), 0, "{profile:?}");
    }
}

#[test]
fn where_the_sack_lets_new_data_follow_there_is_no_early_retransmit() {
    // the window was closed as long as this SACK had not opened it
    let profile = Profile::Rfc9260;
    assert_eq!(after_sacks(profile, 4, 3000, &[(&[2, 3], OPEN)]), 0);
    assert_eq!(after_sacks(profile, 4, 3000, &[(&[2], 2000), (&[2, 3], 2000)]), 0);
}

#[test]
fn where_the_sack_closes_the_window_there_is() {
    // it was open, and Max.Burst has kept the fourth back
    let profile = Profile::Rfc9260;
    assert_eq!(after_sacks(profile, 4, OPEN, &[(&[2, 3], 1000)]), 1);
    assert_eq!(after_sacks(profile, 4, OPEN, &[(&[2, 3], 1999)]), 1);
    assert_eq!(after_sacks(profile, 4, OPEN, &[(&[2, 3], 2000)]), 0);
}

#[test]
fn a_sack_that_is_repeated_makes_nothing_lost() {
    // a window update, which RFC 2960 counts as a report like any other
    let again = [(&[3][..], OPEN), (&[3], OPEN - 1), (&[3], OPEN)];
    assert_eq!(after_sacks(Profile::Rfc2960, 3, OPEN, &again), 0);
}
