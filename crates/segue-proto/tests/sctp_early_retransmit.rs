//! Early retransmit (RFC 5827): a loss at the tail does not wait for T3-rtx.

use crate::common::*;
use segue_proto::sctp::Config;

/// A sends `messages` packets, and of the first transmissions those of `lost` (from 0 on) are lost; then so many more
/// that wait in the send buffer. How many chunks are retransmitted fast, and how often T3-rtx expires, within 5 s.
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
