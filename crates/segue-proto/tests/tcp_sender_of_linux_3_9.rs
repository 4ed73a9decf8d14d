//! Where Linux 3.9's sender is not a later one's: spurious timeouts (`tcp_enter_frto`, `tcp_process_frto`,
//! `tcp_enter_frto_loss` of its tcp_input.c) and when the window counts as used (`tcp_is_cwnd_limited` of its tcp_cong.c).
//! Segments are of 1000 bytes; positions are counted from the first byte of data, which is 1.

use crate::common::tcp_script::ms;
use crate::common::tcp_sender::{RTO, ack, sender, standard, ten, wait, write};
use segue_proto::tcp::{Config, FrtoRule, Profile, Reduction, WindowUse};

fn of_linux(frto_rule: FrtoRule) -> Config {
    Config {
        frto: true,
        frto_rule,
        undo: true,
        undo_repeated: false,
        reduction: Reduction::PrrRfc6937,
        ..standard()
    }
}

#[test]
fn the_profile_has_the_rules_of_its_version() {
    let old = Config::new(Profile::Linux39);
    assert_eq!(
        (old.frto, old.frto_rule, old.window_use),
        (true, FrtoRule::Rfc4138, WindowUse::ButForBursts)
    );
    let new = Config::new(Profile::Modern);
    assert_eq!(
        (new.frto, new.frto_rule, new.window_use),
        (true, FrtoRule::Rfc5682, WindowUse::LastWindow)
    );
}

#[test]
fn a_spurious_timeout_costs_half_the_window_and_takes_two_acknowledgements_to_find() {
    // tcp_process_frto: frto_counter 1, 2, and tcp_cwr_spur_to_response
    let mut s = ten(of_linux(FrtoRule::Rfc4138));
    s.write(10_000, 10_000);
    assert_eq!(wait(&mut s, ms(RTO)), [(1, 1000)]);
    assert_eq!(ack(&mut s, 2001, &[]), [(10_001, 1000), (11_001, 1000)]);
    assert_eq!(s.connection().counters().recovery.spurious_timeouts, 0);
    ack(&mut s, 3001, &[]);
    let counters = s.connection().counters();
    assert_eq!(
        (counters.recovery.spurious_timeouts, counters.recovery.undone),
        (1, 0)
    );
    assert_eq!(s.connection().snapshot().ssthresh, 5000);
    for segment in 4..=12 {
        ack(&mut s, segment * 1000 + 1, &[]);
    }
    // ssthresh, and what avoidance adds for an acknowledgement
    let cwnd = s.connection().snapshot().cwnd;
    assert!((5000..=5200).contains(&cwnd), "{cwnd}");
    assert_eq!(s.connection().counters().recovery.retransmissions, 1);
}

#[test]
fn of_several_timeouts_in_a_row_none_is_taken_back() {
    for (frto_rule, undone) in [(FrtoRule::Rfc4138, 0), (FrtoRule::Rfc5682, 1)] {
        let mut s = ten(of_linux(frto_rule));
        s.write(10_000, 10_000);
        for n in 0..3 {
            assert_eq!(wait(&mut s, ms(RTO << n)), [(1, 1000)]);
        }
        // the next one had arrived late; the other eight are lost
        ack(&mut s, 2001, &[]);
        let cut = s.connection().snapshot();
        assert_eq!(s.connection().counters().recovery.undone, undone, "{frto_rule:?}");
        assert_eq!(cut.cwnd >= 10_000, undone == 1, "{frto_rule:?}: {cut:?}");
        assert_eq!(cut.ssthresh == 5000, undone == 0, "{frto_rule:?}: {cut:?}");
    }
}

#[test]
fn news_that_are_sacked_before_the_old_say_that_the_timeout_was_right() {
    // tcp_process_frto: FLAG_DATA_SACKED without FLAG_ONLY_ORIG_SACKED; tcp_enter_frto_loss with three segments
    let mut s = ten(of_linux(FrtoRule::Rfc4138));
    s.write(10_000, 10_000);
    assert_eq!(wait(&mut s, ms(RTO)), [(1, 1000)]);
    assert_eq!(ack(&mut s, 1001, &[]), [(10_001, 1000), (11_001, 1000)]);
    let again = ack(&mut s, 1001, &[(10_001, 11_001)]);
    assert_eq!(again, [(1001, 1000), (2001, 1000), (3001, 1000)]);
    let counters = s.connection().counters();
    assert_eq!(
        (counters.recovery.spurious_timeouts, counters.recovery.undone),
        (0, 0)
    );
    assert_eq!(s.connection().snapshot().ssthresh, 5000);
}

#[test]
fn nothing_is_sent_until_an_acknowledgement_goes_forward() {
    // tcp_process_frto: frto_counter 1 without FLAG_DATA_ACKED
    let mut s = ten(of_linux(FrtoRule::Rfc4138));
    s.write(10_000, 10_000);
    assert_eq!(wait(&mut s, ms(RTO)), [(1, 1000)]);
    assert_eq!(ack(&mut s, 1, &[(5001, 6001)]), []);
    assert_eq!(ack(&mut s, 1, &[(5001, 7001)]), []);
    assert_eq!(s.connection().counters().recovery.spurious_timeouts, 0);
}

#[test]
fn the_whole_window_acknowledged_at_once_is_no_proof() {
    // tcp_process_frto: SND.UNA reaches frto_highmark; without timestamps there is nothing to take it back by
    let mut s = ten(of_linux(FrtoRule::Rfc4138));
    s.write(10_000, 10_000);
    assert_eq!(wait(&mut s, ms(RTO)), [(1, 1000)]);
    ack(&mut s, 10_001, &[]);
    let counters = s.connection().counters();
    assert_eq!(
        (counters.recovery.spurious_timeouts, counters.recovery.undone),
        (0, 0)
    );
    assert_eq!(s.connection().snapshot().ssthresh, 5000);
}

#[test]
fn a_window_counts_as_used_but_for_three_segments_or_a_third_of_it() {
    // tcp_is_cwnd_limited: left <= 3, or left * tcp_tso_win_divisor < cwnd
    let grows = |window_use, before: u32, used: u32| {
        let mut s = sender(Config {
            window_use,
            ..standard()
        });
        let before = u64::from(before);
        write(&mut s, 0, before as u32 * 1000);
        if before > 0 {
            ack(&mut s, before as u32 * 1000 + 1, &[]);
        }
        let cwnd = s.connection().snapshot().cwnd;
        write(&mut s, before * 1000, used * 1000);
        ack(&mut s, (before as u32 + used) * 1000 + 1, &[]);
        (cwnd, s.connection().snapshot().cwnd > cwnd)
    };
    let bursts = WindowUse::ButForBursts;
    assert_eq!(grows(bursts, 0, 7), (10_000, true));
    assert_eq!(grows(bursts, 0, 6), (10_000, false));
    assert_eq!(grows(bursts, 10, 14), (20_000, true));
    assert_eq!(grows(bursts, 10, 13), (20_000, false));
    // half of it in slow start: Linux 3.16
    assert_eq!(grows(WindowUse::LastWindow, 0, 6), (10_000, true));
    assert_eq!(grows(WindowUse::LastWindow, 10, 13), (20_000, true));
    assert_eq!(grows(WindowUse::Full, 0, 9), (10_000, false));
}
