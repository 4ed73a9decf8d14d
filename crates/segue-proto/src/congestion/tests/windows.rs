//! Windows where nothing is usual: not used, at their floors, taken back.

use super::*;

fn standard(algorithm: Algorithm) -> Box<dyn CongestionControl> {
    begin(algorithm, SlowStart::Standard)
}

#[test]
fn a_window_below_the_initial_one_does_not_decay_and_ssthresh_never_falls() {
    // RFC 2861 section 3.2: ssthresh = max(ssthresh, 3/4 cwnd); the restart window is min(IW, cwnd), RFC 5681 section 4.1
    for algorithm in ALL {
        let mut w = standard(algorithm);
        w.set_cwnd(4 * MSS);
        w.set_ssthresh(30 * MSS);
        w.on_idle(3);
        assert_eq!((w.cwnd(), w.ssthresh()), (4 * MSS, 30 * MSS), "{algorithm:?}");
        w.set_cwnd(32 * MSS);
        w.on_idle(0);
        assert_eq!((w.cwnd(), w.ssthresh()), (32 * MSS, 30 * MSS), "{algorithm:?}");
        w.on_idle(1);
        assert_eq!((w.cwnd(), w.ssthresh()), (16 * MSS, 30 * MSS), "{algorithm:?}");
    }
}

#[test]
fn a_path_used_again_after_it_failed_begins_with_one_segment_and_keeps_its_ssthresh() {
    for algorithm in ALL {
        let mut w = standard(algorithm);
        w.set_cwnd(80 * MSS);
        w.set_ssthresh(40 * MSS);
        w.restart();
        assert_eq!((w.cwnd(), w.ssthresh()), (MSS, 40 * MSS), "{algorithm:?}");
        assert!(w.in_slow_start());
        w.on_credit();
        assert_eq!(w.cwnd(), 2 * MSS, "{algorithm:?}");
        w.set_cwnd(40 * MSS);
        assert!(!w.in_slow_start(), "cwnd has reached ssthresh");
        w.on_credit();
        assert_eq!(w.cwnd(), 40 * MSS, "credit is for slow start");
    }
}

#[test]
fn a_window_is_never_set_below_a_segment() {
    for algorithm in ALL {
        let mut w = standard(algorithm);
        w.set_cwnd(0);
        assert_eq!(w.cwnd(), MSS);
        w.set_segment(500);
        w.set_cwnd(0);
        assert_eq!(w.cwnd(), 500);
    }
}

#[test]
fn a_loss_leaves_two_segments_at_least() {
    // RFC 5681 section 3.1, equation 4
    for algorithm in ALL {
        let mut w = standard(algorithm);
        w.set_cwnd(2 * MSS);
        w.on_loss(loss(Instant::ZERO));
        assert_eq!((w.cwnd(), w.ssthresh()), (2 * MSS, 2 * MSS), "{algorithm:?}");
        w.on_rto(loss(Instant::ZERO));
        assert_eq!((w.cwnd(), w.ssthresh()), (MSS, 2 * MSS), "{algorithm:?}");
    }
}

#[test]
fn a_timeout_of_what_was_retransmitted_leaves_ssthresh_alone() {
    // RFC 5681 section 3.1
    for algorithm in ALL {
        let mut w = standard(algorithm);
        w.set_cwnd(80 * MSS);
        w.on_rto(loss(Instant::ZERO));
        let ssthresh = w.ssthresh();
        assert!(ssthresh >= 40 * MSS);
        w.set_cwnd(20 * MSS);
        w.on_rto(Loss {
            cut_already: true,
            ..loss(Instant::ZERO)
        });
        assert_eq!((w.cwnd(), w.ssthresh()), (MSS, ssthresh), "{algorithm:?}");
    }
}

#[test]
fn what_is_taken_back_never_makes_a_window_smaller() {
    for algorithm in ALL {
        let mut w = standard(algorithm);
        w.set_cwnd(80 * MSS);
        w.set_ssthresh(70 * MSS);
        w.on_undo(Prior {
            cwnd: 20 * MSS,
            ssthresh: 10 * MSS,
        });
        assert_eq!((w.cwnd(), w.ssthresh()), (80 * MSS, 70 * MSS), "{algorithm:?}");
    }
}

#[test]
fn slow_start_with_an_acknowledgement_as_the_unit_spends_it_whole() {
    let mut w = Reno::new(&start(SlowStart::Standard, Credit::Acks, None));
    w.set_ssthresh(11 * MSS - MSS / 2);
    let ack = Acked {
        bytes: 20 * MSS,
        ..acked(Instant::ZERO, ms(100))
    };
    w.on_ack(ack);
    assert_eq!(w.cwnd(), 11 * MSS - MSS / 2, "to ssthresh, no further");
    w.on_ack(ack);
    let beyond = w.cwnd() - (11 * MSS - MSS / 2);
    assert!(
        beyond.abs_diff(MSS * 2 / 21) <= 1,
        "one acknowledgement's worth: {beyond}"
    );
}

#[test]
fn time_without_use_does_not_count_for_cubic() {
    // RFC 9438 section 5.8: the curve goes on where it stood
    let grown = |unused: u64| {
        let mut w = standard(Algorithm::Cubic);
        let (mut now, rtt) = (Instant::ZERO, ms(100));
        w.set_cwnd(1000 * MSS);
        w.on_loss(loss(now));
        for _ in 0..20 {
            round(&mut *w, &mut now, rtt);
        }
        for _ in 0..unused {
            now += ms(500);
            w.on_ack(Acked {
                window_was_full: false,
                ..acked(now, rtt)
            });
        }
        for _ in 0..20 {
            round(&mut *w, &mut now, rtt);
        }
        w.cwnd()
    };
    let (straight, paused) = (grown(0), grown(12));
    assert!(straight.abs_diff(paused) < 2 * MSS, "{straight} {paused}");
}

#[test]
fn a_needless_cut_is_forgotten_by_cubic_s_curve_as_well() {
    // RFC 9438 section 4.9
    let after = |needless: bool| {
        let mut w = standard(Algorithm::Cubic);
        let (mut now, rtt) = (Instant::ZERO, ms(100));
        w.set_cwnd(1000 * MSS);
        w.on_loss(loss(now));
        for _ in 0..20 {
            round(&mut *w, &mut now, rtt);
        }
        if needless {
            let prior = Prior {
                cwnd: w.cwnd(),
                ssthresh: w.ssthresh(),
            };
            w.on_loss(loss(now));
            w.on_undo(prior);
        }
        let mut windows = Vec::new();
        for _ in 0..60 {
            round(&mut *w, &mut now, rtt);
            windows.push(w.cwnd() / MSS);
        }
        windows
    };
    assert_eq!(after(true), after(false));
}

#[test]
fn a_restart_begins_cubic_s_curve_anew_at_the_window_that_it_was_cut_at() {
    let mut w = standard(Algorithm::Cubic);
    let (mut now, rtt) = (Instant::ZERO, ms(100));
    w.set_cwnd(100 * MSS);
    w.on_loss(loss(now));
    for _ in 0..100 {
        round(&mut *w, &mut now, rtt);
    }
    assert!(w.cwnd() > 110 * MSS, "far beyond the plateau");
    w.set_cwnd(90 * MSS);
    w.on_idle(1);
    w.set_ssthresh(MSS);
    w.set_cwnd(70 * MSS);
    let from = now;
    // K = cbrt((100 - 70) / C), and the window nears W_max on the concave side again
    let k = libm::cbrt(30.0 / 0.4);
    while now.since(from).as_secs_f64() < k {
        round(&mut *w, &mut now, rtt);
    }
    let cwnd = f64::from(w.cwnd()) / f64::from(MSS);
    assert!((cwnd - 100.0).abs() < 1.5, "{cwnd}");
}

#[test]
fn cubic_opens_by_half_a_window_per_round_trip_at_most() {
    // RFC 9438 section 4.2: target is no more than 1.5 cwnd
    let mut w = standard(Algorithm::Cubic);
    let mut now = Instant::ZERO;
    w.set_cwnd(20 * MSS);
    w.set_ssthresh(MSS);
    round(&mut *w, &mut now, ms(100));
    now += Duration::from_secs(30);
    let before = w.cwnd();
    round(&mut *w, &mut now, ms(100));
    let growth = f64::from(w.cwnd()) / f64::from(before);
    assert!((1.45..1.55).contains(&growth), "{growth}");
}

#[test]
fn hybla_goes_by_the_shortest_round_trip_so_far() {
    let mut w = Hybla::new(&start(SlowStart::Standard, Credit::Bytes, Some(ms(100))));
    assert_eq!((w.rho(), w.cwnd()), (4.0, 4 * MSS));
    w.on_ack(acked(Instant::ZERO, ms(200)));
    assert_eq!(w.rho(), 4.0);
    w.on_ack(Acked {
        window_was_full: false,
        ..acked(Instant::ZERO, ms(60))
    });
    // in eighths, rounded down: 2.4
    assert_eq!(w.rho(), 2.375);
    let mut w = Hybla::new(&start(
        SlowStart::Standard,
        Credit::Bytes,
        Some(Duration::from_secs(2)),
    ));
    assert_eq!(w.cwnd(), 80 * MSS);
    w.on_ack(acked(Instant::ZERO, Duration::from_secs(2)));
    assert_eq!(w.cwnd(), (80 + 65_535) * MSS, "2^16 - 1 segments, not 2^80");
}

#[test]
fn veno_takes_a_loss_for_congestion_s_unless_it_has_measured() {
    // two round trips may both be of delayed acknowledgements, and tell nothing (`tcp_veno_cong_avoid`: cntrtt)
    for (measured, left) in [(2, 80), (3, 50)] {
        let mut w = Veno::new(&start(SlowStart::Standard, Credit::Bytes, None));
        w.set_ssthresh(MSS);
        w.set_cwnd(100 * MSS);
        w.on_ack(acked(Instant::ZERO, ms(100)));
        for _ in 1..measured {
            w.on_ack(acked(Instant::ZERO, ms(150)));
        }
        w.set_cwnd(100 * MSS);
        w.on_loss(loss(Instant::ZERO));
        assert_eq!(w.cwnd(), left * MSS, "{measured} measurements");
    }
}

fn of_linux() -> Cubic {
    Cubic::new(&Start {
        cubic_curve: CubicCurve::Linux,
        ..start(SlowStart::Standard, Credit::Bytes, None)
    })
}

#[test]
fn linux_s_cubic_grows_by_a_twentieth_before_the_first_loss_and_after_a_timeout() {
    // bictcp_update: cnt is 20 at most while last_max_cwnd is zero
    let mut w = of_linux();
    w.set_cwnd(100 * MSS);
    w.set_ssthresh(100 * MSS);
    let mut now = Instant::ZERO;
    round(&mut w, &mut now, ms(20));
    assert_eq!(w.cwnd(), 105 * MSS);
    w.on_rto(loss(now));
    w.set_cwnd(w.ssthresh());
    let before = w.cwnd() / MSS;
    round(&mut w, &mut now, ms(20));
    assert_eq!(w.cwnd() / MSS, before + before / 20);
    // by the RFC it begins at its plateau
    let mut w = Cubic::new(&start(SlowStart::Standard, Credit::Bytes, None));
    w.set_cwnd(100 * MSS);
    w.set_ssthresh(100 * MSS);
    round(&mut w, &mut now, ms(20));
    assert!(w.cwnd() < 101 * MSS);
}

#[test]
fn linux_s_cubic_comes_back_to_where_it_was_cut_in_the_time_of_the_curve() {
    // equation 2 of RFC 9438: K; and not by more than half a window per round trip
    let mut w = of_linux();
    let (mut now, rtt) = (Instant::ZERO, ms(100));
    w.set_cwnd(1000 * MSS);
    w.on_loss(loss(now));
    assert_eq!(w.cwnd(), 700 * MSS);
    let k = libm::cbrt(300.0 / 0.4);
    let begun = now;
    while now.since(begun).as_secs_f64() < k {
        let before = w.cwnd();
        round(&mut w, &mut now, rtt);
        assert!(w.cwnd() <= before / 2 * 3);
    }
    let cwnd = w.cwnd() / MSS;
    assert!((990..1002).contains(&cwnd), "{cwnd}");
}

#[test]
fn linux_s_cubic_looks_one_least_round_trip_ahead() {
    // bictcp_update: t += delay_min, where the RFC has the smoothed one
    let grown = |least: u64| {
        let mut w = of_linux();
        let mut now = Instant::ZERO;
        w.on_ack(Acked {
            window_was_full: false,
            ..acked(now, ms(least))
        });
        w.set_cwnd(100 * MSS);
        w.on_loss(loss(now));
        for _ in 0..3 {
            round(&mut w, &mut now, ms(1000));
        }
        w.cwnd() / MSS
    };
    assert!(grown(1000) > grown(100), "{} {}", grown(1000), grown(100));
}

#[test]
fn linux_s_cubic_does_not_count_a_pause() {
    // cubictcp_cwnd_event: CA_EVENT_TX_START
    let grown = |pause: Duration| {
        let mut w = of_linux();
        let mut now = Instant::ZERO;
        w.set_cwnd(100 * MSS);
        w.on_loss(loss(now));
        round(&mut w, &mut now, ms(100));
        now += pause;
        w.on_transmit_start(now, pause);
        for _ in 0..20 {
            round(&mut w, &mut now, ms(100));
        }
        w.cwnd() / MSS
    };
    assert_eq!(grown(Duration::ZERO), grown(Duration::from_secs(60)));
}
