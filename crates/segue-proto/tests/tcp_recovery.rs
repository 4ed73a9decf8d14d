//! Loss recovery of TCP between two endpoints: what is retransmitted, when, and what it costs.

use crate::common::tcp::{A, B, Fate, Filter, World, ms};
use segue_proto::Duration;
use segue_proto::congestion::Algorithm;
use segue_proto::tcp::{Config, Counters, FrtoRule, LossDetection, Profile, Reduction};

/// A transfer of so many bytes at 10 Mbit/s and 40 ms, of whose data segments `fate` decides by their number. Counters of
/// the sender at the end.
fn transfer(config: &Config, bytes: u64, fate: impl FnMut(u32) -> Fate + 'static) -> (Counters, World) {
    let mut w = World::new(config);
    w.rate = Some(10_000_000);
    w.to_send[A] = bytes;
    w.filter = by_number(fate);
    w.connect();
    w.run_for(Duration::from_secs(30));
    assert_eq!(w.received[B], bytes);
    (w.connection(A).counters(), w)
}

fn by_number(mut fate: impl FnMut(u32) -> Fate + 'static) -> Filter {
    let mut number = 0;
    Box::new(move |from, segment| {
        if from == A && !segment.data.is_empty() {
            number += 1;
            fate(number)
        } else {
            Fate::Arrives
        }
    })
}

fn profile(profile: Profile) -> Config {
    Config::new(profile).with_window_clamp(100_000)
}

const PROFILES: [Profile; 3] = [Profile::Modern, Profile::Linux39, Profile::Linux24];

#[test]
fn several_losses_in_a_window_are_repaired_in_one_recovery_without_timeout() {
    for p in PROFILES {
        let (c, _) = transfer(&profile(p), 400_000, |n| match n {
            100 | 103 | 104 | 110 | 120 => Fate::Lost,
            _ => Fate::Arrives,
        });
        assert_eq!(
            (
                c.recovery.retransmissions,
                c.recovery.fast_recoveries,
                c.recovery.timeouts
            ),
            (5, 1, 0),
            "{p:?}"
        );
        assert_eq!(c.recovery.undone, 0, "{p:?}");
    }
}

#[test]
fn the_acknowledgement_that_ends_a_recovery_opens_the_window_by_what_it_delivers() {
    // it acknowledges two windows, nearly all of which was SACKed before
    let mut w = World::new(&Config {
        congestion_control: Algorithm::Reno,
        ..Config::new(Profile::Modern)
    });
    w.rate = Some(10_000_000);
    w.to_send[A] = 400_000;
    w.filter = by_number(|n| if n == 100 { Fate::Lost } else { Fate::Arrives });
    w.connect();
    while w.connection(A).counters().recovery.fast_recoveries == 0 {
        w.run_for(ms(1));
    }
    let begun = w.connection(A).snapshot();
    assert!(begun.ssthresh > 10 * begun.mss, "the window is large");
    while w.connection(A).snapshot().flightsize > begun.ssthresh + begun.mss {
        w.run_for(ms(1));
    }
    let ended = w.connection(A).snapshot();
    let growth = ended.cwnd - ended.ssthresh;
    assert!(growth < begun.mss / 4, "{growth} bytes");
}

#[test]
fn without_sack_a_partial_acknowledgement_retransmits_one_more() {
    // RFC 6582 section 3.2
    let config = Config {
        sack: false,
        undo: false,
        reduction: Reduction::Immediate,
        ..profile(Profile::Modern)
    };
    let (c, _) = transfer(&config, 400_000, |n| match n {
        100 | 104 | 110 => Fate::Lost,
        _ => Fate::Arrives,
    });
    assert_eq!(
        (
            c.recovery.retransmissions,
            c.recovery.fast_recoveries,
            c.recovery.timeouts
        ),
        (3, 1, 0)
    );
}

#[test]
fn a_lost_retransmission_is_noticed_by_rack_and_by_forward_acknowledgement() {
    for (p, timeouts) in [(Profile::Modern, 0), (Profile::Linux39, 0)] {
        let mut lost = None;
        let mut copies = 0;
        // the window must not be the limit: only what is sent after it tells of a retransmission's loss
        let mut w = World::new(&Config::new(p));
        w.rate = Some(10_000_000);
        w.to_send[A] = 800_000;
        let mut number = 0;
        w.filter = Box::new(move |from, s| {
            if from == A && !s.data.is_empty() {
                number += 1;
                if number == 100 {
                    lost = Some(s.seq);
                }
                if lost == Some(s.seq) {
                    copies += 1;
                    if copies <= 2 {
                        return Fate::Lost;
                    }
                }
            }
            Fate::Arrives
        });
        w.connect();
        w.run_for(Duration::from_secs(30));
        assert_eq!(w.received[B], 800_000);
        assert_eq!(w.connection(A).counters().recovery.timeouts, timeouts, "{p:?}");
    }
}

#[test]
fn reordering_costs_once_and_is_put_up_with_afterwards() {
    // each hundredth segment is 12 ms late, some ten places
    let late = |n: u32| {
        if n >= 150 && n.is_multiple_of(100) {
            Fate::Late(ms(12))
        } else {
            Fate::Arrives
        }
    };
    let (adaptive, w) = transfer(&profile(Profile::Linux39), 2_000_000, late);
    assert!(adaptive.recovery.retransmissions > 0, "the first time");
    assert_eq!(adaptive.recovery.undone, 1, "and that was taken back");
    assert!(
        adaptive.recovery.retransmissions <= 12,
        "{}",
        adaptive.recovery.retransmissions
    );
    assert!(w.connection(A).snapshot().reordering > 5);
    let stubborn = Config {
        adaptive_reordering: false,
        loss_detection: LossDetection::Rfc6675,
        ..profile(Profile::Linux39)
    };
    let (stubborn, _) = transfer(&stubborn, 2_000_000, late);
    assert!(
        stubborn.recovery.fast_recoveries >= 10,
        "{}",
        stubborn.recovery.fast_recoveries
    );
}

#[test]
fn rack_waits_a_quarter_of_a_round_trip_once_it_has_seen_reordering() {
    // RFC 8985 section 6.2
    let late = |n: u32| {
        if n >= 150 && n.is_multiple_of(100) {
            Fate::Late(ms(8))
        } else {
            Fate::Arrives
        }
    };
    let (c, _) = transfer(&profile(Profile::Modern), 2_000_000, late);
    assert!(c.recovery.fast_recoveries <= 2, "{}", c.recovery.fast_recoveries);
    assert!(c.recovery.retransmissions <= 4, "{}", c.recovery.retransmissions);
}

#[test]
fn a_spurious_timeout_is_found_out_by_new_data() {
    // RFC 5682: the path stops for a second
    let stops = |from: Duration, to: Duration, config: &Config| {
        let mut w = World::new(config);
        w.rate = Some(10_000_000);
        w.to_send[A] = 3_000_000;
        w.connect();
        w.run_for(from);
        let before = w.connection(A).snapshot().cwnd;
        // whatever is sent arrives after `to`, in order
        for n in 0..(to - from).as_millis() / 10 {
            let late = to - from - ms(10 * n);
            w.filter = Box::new(move |_, _| Fate::Late(late));
            w.run_for(ms(10));
        }
        w.filter = Box::new(|_, _| Fate::Arrives);
        w.run_for(Duration::from_secs(2));
        let after = w.connection(A).snapshot().cwnd;
        w.run_for(Duration::from_secs(30));
        assert_eq!(w.received[B], 3_000_000);
        (w.connection(A).counters(), before, after)
    };
    let config = Config {
        // so that only F-RTO can find out
        timestamps: false,
        frto_rule: FrtoRule::Rfc5682,
        ..profile(Profile::Linux39)
    };
    let (with, before, after) = stops(ms(1000), ms(2000), &config);
    assert_eq!(with.recovery.spurious_timeouts, 1);
    assert!(after + 1428 >= before, "{before} {after}");
    let without = Config {
        frto: false,
        ..config
    };
    let (without, ..) = stops(ms(1000), ms(2000), &without);
    assert_eq!(without.recovery.spurious_timeouts, 0);
    assert!(
        without.recovery.retransmissions > with.recovery.retransmissions,
        "{}",
        without.recovery.retransmissions
    );
}

#[test]
fn of_timeouts_in_a_row_old_linux_takes_back_the_first_alone() {
    // all arrives, but for a while no acknowledgement does: what is retransmitted then is reported as a duplicate
    let silent_for = |p: Profile, silence: u64| {
        let config = Config {
            // so that DSACKs and timestamps alone tell
            frto: false,
            tail_loss_probe: false,
            ..profile(p)
        };
        let mut w = World::new(&config);
        w.rate = Some(10_000_000);
        w.to_send[A] = 3_000_000;
        w.connect();
        w.run_for(ms(1000));
        w.filter = Box::new(|from, _| if from == B { Fate::Lost } else { Fate::Arrives });
        w.run_for(ms(silence));
        w.filter = Box::new(|_, _| Fate::Arrives);
        w.run_for(Duration::from_secs(30));
        assert_eq!(w.received[B], 3_000_000);
        let counters = w.connection(A).counters();
        (counters.recovery.timeouts, counters.recovery.undone)
    };
    for p in PROFILES {
        assert_eq!(silent_for(p, 200), (1, 1), "{p:?}");
        let repeated = u64::from(p == Profile::Modern);
        assert_eq!(silent_for(p, 500), (2, repeated), "{p:?}");
    }
}

#[test]
fn the_loss_of_the_tail_is_repaired_by_a_probe_or_else_by_a_timeout() {
    // RFC 8985 section 7: the last segment is the 70th
    let last = |n: u32| if n == 70 { Fate::Lost } else { Fate::Arrives };
    let bytes = 70 * 1428;
    let (probe, _) = transfer(&profile(Profile::Modern), bytes, last);
    assert_eq!((probe.recovery.loss_probes, probe.recovery.timeouts), (1, 0));
    let (timeout, _) = transfer(&profile(Profile::Linux39), bytes, last);
    assert_eq!((timeout.recovery.loss_probes, timeout.recovery.timeouts), (0, 1));
}

#[test]
fn early_retransmit_needs_fewer_acknowledgements_than_three() {
    // RFC 5827: three segments, the first lost
    let first = |n: u32| if n == 1 { Fate::Lost } else { Fate::Arrives };
    let (with, _) = transfer(&profile(Profile::Linux39), 3 * 1428, first);
    assert_eq!(
        (
            with.recovery.timeouts,
            with.recovery.fast_recoveries,
            with.recovery.retransmissions
        ),
        (0, 1, 1)
    );
    let without = Config {
        early_retransmit: false,
        ..profile(Profile::Linux39)
    };
    let (without, _) = transfer(&without, 3 * 1428, first);
    assert_eq!(
        (without.recovery.timeouts, without.recovery.fast_recoveries),
        (1, 0)
    );
}

#[test]
fn the_window_comes_down_as_the_reduction_says() {
    // about half of Reno's window is left, however it comes down
    for reduction in [
        Reduction::Immediate,
        Reduction::RateHalving,
        Reduction::PrrRfc6937,
        Reduction::Prr,
    ] {
        let config = Config {
            reduction,
            congestion_control: Algorithm::Reno,
            ..Config::new(Profile::Linux39)
        };
        let mut w = World::new(&config);
        w.rate = Some(10_000_000);
        w.to_send[A] = 3_000_000;
        w.filter = by_number(|n| if n == 300 { Fate::Lost } else { Fate::Arrives });
        w.connect();
        let mut before = 0;
        while w.connection(A).counters().recovery.fast_recoveries == 0 {
            before = w.connection(A).snapshot().cwnd;
            w.run_for(ms(1));
        }
        w.run_for(ms(700));
        let after = w.connection(A).snapshot();
        assert!(after.ssthresh.abs_diff(before / 2) < 2000, "{reduction:?}");
        let left = f64::from(after.cwnd) / f64::from(before);
        assert!((0.45..0.60).contains(&left), "{reduction:?}: {left}");
    }
}

#[test]
fn after_a_pause_a_sender_begins_again_with_the_initial_window() {
    // RFC 5681 section 4.1
    let burst = |idle_restart: bool| {
        let mut w = World::new(&Config {
            idle_restart,
            ..profile(Profile::Modern)
        });
        w.rate = Some(100_000_000);
        w.closes = [false; 2];
        w.to_send[A] = 800_000;
        w.connect();
        w.run_for(Duration::from_secs(20));
        assert_eq!(w.received[B], 800_000);
        let from = w.seen.len();
        let data = segue_wire::Data::Synthetic {
            offset: 800_000,
            len: 200_000,
        };
        w.command(A, |c| c.send(&data).map(drop)).unwrap();
        w.seen[from..].iter().filter(|s| s.from == A).count()
    };
    assert_eq!(burst(true), 10);
    assert!(burst(false) > 40);
}

#[test]
fn where_the_receiver_s_window_is_the_lesser_one_old_linux_opens_its_own_no_further() {
    let grown = |p: Profile| {
        let mut w = World::new(&Config {
            congestion_control: Algorithm::Reno,
            ..profile(p)
        });
        w.to_send[A] = 100_000_000;
        w.connect();
        w.run_for(Duration::from_secs(5));
        let now = w.connection(A).snapshot();
        assert!(now.ssthresh > 1_000_000, "slow start, without loss");
        f64::from(now.cwnd) / f64::from(now.snd_wnd)
    };
    let (old, new) = (grown(Profile::Linux24), grown(Profile::Modern));
    // so that a timeout sets ssthresh to half of what the path has carried, and not to all of it
    assert!((1.0..1.03).contains(&old), "{old}");
    assert!((1.9..2.03).contains(&new), "{new}");
}

#[test]
fn limited_transmit_sends_new_data_for_the_first_duplicates() {
    // RFC 3042
    let timeouts = |limited_transmit: bool| {
        let config = Config {
            limited_transmit,
            early_retransmit: false,
            initial_window: segue_proto::tcp::InitialWindow::Rfc2581,
            ..profile(Profile::Linux24)
        };
        // the second: the window of three is 2, 3 and 4, and two duplicates are all there can be
        let (c, _) = transfer(
            &config,
            100_000,
            |n| if n == 2 { Fate::Lost } else { Fate::Arrives },
        );
        c.recovery.timeouts
    };
    assert_eq!(timeouts(true), 0);
    assert_eq!(timeouts(false), 1);
}
