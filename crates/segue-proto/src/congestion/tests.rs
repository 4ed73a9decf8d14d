use super::*;

mod slow_start;
mod windows;

const MSS: u32 = 1000;
const ALL: [Algorithm; 4] = [
    Algorithm::Reno,
    Algorithm::Cubic,
    Algorithm::Hybla,
    Algorithm::Veno,
];

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn start(slow_start: SlowStart, credit: Credit, rtt: Option<Duration>) -> Start {
    Start {
        segment: MSS,
        initial_window: 10 * MSS,
        credit,
        slow_start,
        cubic_curve: CubicCurve::Rfc9438,
        reno_friendliness: RenoFriendliness::Linux,
        rtt,
    }
}

fn loss(now: Instant) -> Loss {
    Loss {
        now,
        flightsize: 0,
        cut_already: false,
    }
}

/// An acknowledgement of one segment.
fn acked(now: Instant, rtt: Duration) -> Acked {
    Acked {
        now,
        bytes: MSS,
        cumulative_advanced: true,
        window_was_full: true,
        in_fast_recovery: false,
        open: true,
        flight_empty: false,
        round_start: false,
        una: 0,
        next: 0,
        rtt: Some(rtt),
        srtt: Some(rtt),
    }
}

/// Acknowledges a full window, evenly over a round trip.
fn round(window: &mut dyn CongestionControl, now: &mut Instant, rtt: Duration) {
    let segments = u64::from(window.cwnd() / MSS);
    for n in 0..segments {
        *now += rtt / segments;
        window.on_ack(Acked {
            round_start: n == 0,
            ..acked(*now, rtt)
        });
    }
}

fn begin(algorithm: Algorithm, slow_start: SlowStart) -> Box<dyn CongestionControl> {
    algorithm.begin(&start(slow_start, Credit::Bytes, Some(ms(100))))
}

#[test]
fn slow_start_doubles_by_bytes_and_grows_by_half_under_delayed_acknowledgements() {
    let both = |credit| {
        let mut w = Reno::new(&start(SlowStart::Standard, credit, None));
        for _ in 0..5 {
            w.on_ack(Acked {
                bytes: 2 * MSS,
                ..acked(Instant::ZERO, ms(100))
            });
        }
        w.cwnd()
    };
    assert_eq!(both(Credit::Bytes), 20 * MSS);
    assert_eq!(both(Credit::Acks), 15 * MSS);
}

#[test]
fn slow_start_ends_at_ssthresh_and_the_rest_of_the_credit_goes_to_congestion_avoidance() {
    let mut w = Reno::new(&start(SlowStart::Standard, Credit::Bytes, None));
    w.set_ssthresh(11 * MSS);
    w.on_ack(Acked {
        bytes: 12 * MSS,
        ..acked(Instant::ZERO, ms(100))
    });
    // a segment to ssthresh, and 11 more that are a window's worth
    assert_eq!(w.cwnd(), 12 * MSS);
}

#[test]
fn reno_adds_a_segment_per_round_trip_and_halves() {
    let mut w = begin(Algorithm::Reno, SlowStart::Standard);
    w.set_ssthresh(MSS);
    let mut now = Instant::ZERO;
    w.set_cwnd(50 * MSS);
    for _ in 0..10 {
        let before = w.cwnd();
        round(&mut *w, &mut now, ms(100));
        let growth = w.cwnd() - before;
        assert!(growth.abs_diff(MSS) < MSS / 20, "{growth}");
    }
    // in whole segments
    let half = |bytes: u32| bytes / MSS / 2 * MSS;
    let cut = half(w.cwnd());
    w.on_loss(loss(now));
    assert_eq!((w.cwnd(), w.ssthresh()), (cut, cut));
    w.on_rto(loss(now));
    assert_eq!((w.cwnd(), w.ssthresh()), (MSS, half(cut)));
    w.on_rto(Loss {
        cut_already: true,
        ..loss(now)
    });
    assert_eq!((w.cwnd(), w.ssthresh()), (MSS, half(cut)));
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for algorithm in ALL {
        for ssthresh in [MSS, u32::MAX] {
            let mut w = begin(algorithm, SlowStart::Standard);
            w.set_ssthresh(ssthresh);
            w.set_cwnd(20 * MSS);
            for _ in 0..100 {
                w.on_ack(Acked {
                    window_was_full: false,
                    ..acked(Instant::ZERO, ms(100))
                });
            }
            assert_eq!(w.cwnd(), 20 * MSS, "{algorithm:?}");
        }
    }
}

#[test]
fn needless_reductions_are_taken_back() {
    for algorithm in ALL {
        let mut w = begin(algorithm, SlowStart::Standard);
        w.set_cwnd(80 * MSS);
        let prior = Prior {
            cwnd: w.cwnd(),
            ssthresh: w.ssthresh(),
        };
        w.on_rto(loss(Instant::ZERO));
        w.on_undo(prior);
        assert_eq!(
            (w.cwnd(), w.ssthresh()),
            (prior.cwnd, prior.ssthresh),
            "{algorithm:?}"
        );
    }
}

#[test]
fn cubic_follows_equation_1_of_rfc_9438() {
    let mut w = begin(Algorithm::Cubic, SlowStart::Standard);
    let (mut now, rtt) = (Instant::ZERO, ms(100));
    w.set_cwnd(1000 * MSS);
    w.on_loss(loss(now));
    assert_eq!(w.cwnd(), 700 * MSS);
    // K = cbrt(W_max (1 - beta) / C)
    let k = libm::cbrt(1000.0 * 0.3 / 0.4);
    let first = now + rtt / 700;
    for _ in 0..180 {
        round(&mut *w, &mut now, rtt);
        let t = now.since(first).as_secs_f64();
        let x = t - k;
        let expected = 0.4 * x * x * x + 1000.0;
        let cwnd = f64::from(w.cwnd()) / f64::from(MSS);
        // the window is that of a round trip ahead by the end of the round trip
        assert!(
            (cwnd / expected - 1.0).abs() < 0.01,
            "t {t:.2}: {cwnd:.1}, {expected:.1}"
        );
    }
    assert!(w.cwnd() > 1200 * MSS, "and beyond W_max");
}

#[test]
fn cubic_is_no_slower_than_reno_where_windows_are_small() {
    // RFC 9438 section 4.3: W_est grows by 3 (1 - beta) / (1 + beta) = 0.53 segments per round trip
    let mut w = begin(Algorithm::Cubic, SlowStart::Standard);
    let (mut now, rtt) = (Instant::ZERO, ms(10));
    w.set_cwnd(30 * MSS);
    w.on_loss(loss(now));
    for n in 1..=16 {
        round(&mut *w, &mut now, rtt);
        let expected = 21.0 + 0.529 * f64::from(n);
        let cwnd = f64::from(w.cwnd()) / f64::from(MSS);
        assert!((cwnd - expected).abs() < 0.6, "round {n}: {cwnd} {expected}");
    }
}

#[test]
fn cubic_beyond_where_it_was_cut_is_as_fast_as_reno_by_the_rfc_and_not_in_linux() {
    for (friendliness, expected) in [(RenoFriendliness::Linux, 0.529), (RenoFriendliness::Rfc9438, 1.0)] {
        let mut w = Cubic::new(&Start {
            reno_friendliness: friendliness,
            ..start(SlowStart::Standard, Credit::Bytes, None)
        });
        let (mut now, rtt) = (Instant::ZERO, ms(10));
        w.set_cwnd(10 * MSS);
        w.on_loss(loss(now));
        // from 7 segments: six rounds to 10
        for _ in 0..10 {
            round(&mut w, &mut now, rtt);
        }
        let before = w.cwnd();
        for _ in 0..10 {
            round(&mut w, &mut now, rtt);
        }
        let growth = f64::from(w.cwnd() - before) / f64::from(MSS) / 10.0;
        assert!(
            (growth / expected - 1.0).abs() < 0.1,
            "{friendliness:?}: {growth}"
        );
    }
}

#[test]
fn what_is_left_after_a_cut_is_whole_segments() {
    for (algorithm, cwnd, left) in [
        (Algorithm::Reno, 5600, 2000),
        (Algorithm::Reno, 2500, 2000),
        (Algorithm::Cubic, 5600, 3000),
        (Algorithm::Cubic, 9999, 6000),
    ] {
        let mut w = begin(algorithm, SlowStart::Standard);
        w.set_cwnd(cwnd);
        w.on_loss(loss(Instant::ZERO));
        assert_eq!((w.cwnd(), w.ssthresh()), (left, left), "{algorithm:?} {cwnd}");
    }
}

#[test]
fn cubic_converges_fast_when_it_was_cut_before_it_had_recovered() {
    // RFC 9438 section 4.7
    let mut w = Cubic::new(&start(SlowStart::Standard, Credit::Bytes, None));
    w.set_cwnd(100 * MSS);
    w.on_loss(loss(Instant::ZERO));
    w.set_cwnd(80 * MSS);
    w.on_loss(loss(Instant::ZERO));
    assert_eq!(w.cwnd(), 56 * MSS);
    let mut now = Instant::ZERO;
    let plateau = 80.0 * 0.85;
    let k = libm::cbrt((plateau - 56.0) / 0.4);
    while now.as_secs_f64() < k {
        // so long that the Reno-friendly region is left
        round(&mut w, &mut now, ms(400));
    }
    let cwnd = f64::from(w.cwnd()) / f64::from(MSS);
    assert!((cwnd - plateau).abs() < 1.5, "{cwnd} {plateau}");
}

#[test]
fn cubic_begins_at_its_plateau_after_a_timeout() {
    // RFC 9438 section 4.8: K = 0, W_max the window where congestion avoidance begins
    let mut w = Cubic::new(&start(SlowStart::Standard, Credit::Bytes, None));
    w.set_cwnd(100 * MSS);
    w.on_rto(loss(Instant::ZERO));
    assert_eq!((w.cwnd(), w.ssthresh()), (MSS, 70 * MSS));
    let mut now = Instant::ZERO;
    while w.cwnd() < 70 * MSS {
        round(&mut w, &mut now, ms(100));
    }
    let from = now;
    for _ in 0..40 {
        round(&mut w, &mut now, ms(100));
    }
    let t = now.since(from).as_secs_f64();
    let expected = 70.0 + 0.4 * t * t * t;
    let cwnd = f64::from(w.cwnd()) / f64::from(MSS);
    assert!((cwnd / expected - 1.0).abs() < 0.08, "{cwnd} {expected}");
}

#[test]
fn hystart_stops_when_the_round_trip_grows() {
    for (kind, still) in [(SlowStart::Standard, true), (SlowStart::Hystart, false)] {
        let mut w = begin(Algorithm::Cubic, kind);
        let mut now = Instant::ZERO;
        round(&mut *w, &mut now, ms(100));
        round(&mut *w, &mut now, ms(100));
        assert!(w.in_slow_start());
        round(&mut *w, &mut now, ms(120));
        assert_eq!(w.in_slow_start(), still, "{kind:?}");
    }
}

#[test]
fn hystart_plus_plus_goes_slowly_for_five_rounds_and_then_stops() {
    // RFC 9406 section 4.2
    let mut w = begin(Algorithm::Cubic, SlowStart::HystartPlusPlus);
    let mut now = Instant::ZERO;
    for _ in 0..3 {
        round(&mut *w, &mut now, ms(100));
    }
    assert_eq!(w.cwnd(), 80 * MSS);
    // 12.5 ms and more above the last round
    round(&mut *w, &mut now, ms(115));
    let begun = w.cwnd();
    assert!(
        begun > 95 * MSS && begun < 110 * MSS,
        "a few at full pace, then a quarter: {begun}"
    );
    for _ in 0..4 {
        let before = w.cwnd();
        round(&mut *w, &mut now, ms(115));
        assert!(w.in_slow_start());
        let growth = f64::from(w.cwnd()) / f64::from(before);
        assert!((growth - 1.25).abs() < 0.02, "{growth}");
    }
    round(&mut *w, &mut now, ms(115));
    assert!(!w.in_slow_start());
}

#[test]
fn hystart_plus_plus_resumes_if_the_round_trip_shrinks_again() {
    let mut w = begin(Algorithm::Cubic, SlowStart::HystartPlusPlus);
    let mut now = Instant::ZERO;
    for rtt in [100, 100, 115, 100] {
        round(&mut *w, &mut now, ms(rtt));
    }
    let before = w.cwnd();
    round(&mut *w, &mut now, ms(100));
    assert!(w.cwnd() > before * 19 / 10);
}

#[test]
fn hybla_opens_as_fast_as_a_connection_with_rtt0() {
    // Caini and Firrincieli 2004: the window in segments grows by rho^2 per round trip, the rate by the same per time
    // whatever the round trip
    let rate_gained = |rtt: u64| {
        let mut w = Hybla::new(&start(SlowStart::Standard, Credit::Bytes, Some(ms(rtt))));
        w.set_ssthresh(MSS);
        w.set_cwnd(100 * MSS);
        let mut now = Instant::ZERO;
        while now < Instant::ZERO + ms(2000) {
            round(&mut w, &mut now, ms(rtt));
        }
        f64::from(w.cwnd() - 100 * MSS) / rtt as f64 / now.as_secs_f64()
    };
    let (near, far) = (rate_gained(25), rate_gained(200));
    assert!((far / near - 1.0).abs() < 0.1, "{near} {far}");
}

#[test]
fn hybla_s_slow_start_adds_two_to_the_rho_less_one_per_acknowledgement() {
    let mut w = Hybla::new(&start(SlowStart::Standard, Credit::Bytes, Some(ms(75))));
    assert_eq!(w.rho(), 3.0);
    assert_eq!(w.cwnd(), 3 * MSS);
    w.on_ack(acked(Instant::ZERO, ms(75)));
    assert_eq!(w.cwnd(), 10 * MSS);
    // not below 1
    let w = Hybla::new(&start(SlowStart::Standard, Credit::Bytes, Some(ms(5))));
    assert_eq!((w.rho(), w.cwnd()), (1.0, MSS));
}

#[test]
fn hybla_opens_as_reno_until_a_loss_is_repaired() {
    // Linux's hybla_cong_avoid: where hybla_en is not set, tcp_reno_cong_avoid
    let after_timeout = |open| {
        let mut w = Hybla::new(&start(SlowStart::Standard, Credit::Bytes, Some(ms(200))));
        assert_eq!(w.rho(), 8.0);
        w.set_cwnd(1400 * MSS);
        w.on_rto(loss(Instant::ZERO));
        w.on_ack(Acked {
            open,
            ..acked(Instant::ZERO, ms(200))
        });
        w.cwnd()
    };
    assert_eq!(after_timeout(false), 2 * MSS);
    assert_eq!(after_timeout(true), 256 * MSS);
}

#[test]
fn veno_knows_the_shortest_round_trip_after_a_timeout() {
    // Linux begins BaseRTT anew after a pause only (tcp_veno_cwnd_event)
    let backlog_of = |forget: fn(&mut Veno)| {
        let mut w = Veno::new(&start(SlowStart::Standard, Credit::Bytes, None));
        let mut now = Instant::ZERO;
        round(&mut w, &mut now, ms(100));
        w.on_rto(loss(now));
        forget(&mut w);
        w.set_ssthresh(MSS);
        w.set_cwnd(50 * MSS);
        round(&mut w, &mut now, ms(130));
        w.backlog()
    };
    let kept = backlog_of(|_| {});
    assert!((kept - 50.0 * 30.0 / 130.0).abs() < 0.5, "{kept}");
    assert_eq!(backlog_of(|w| w.on_idle(1)), 0.0);
}

#[test]
fn veno_opens_as_reno_and_learns_nothing_outside_the_open_state() {
    let mut w = Veno::new(&start(SlowStart::Standard, Credit::Bytes, None));
    w.set_ssthresh(MSS);
    w.set_cwnd(50 * MSS);
    let mut now = Instant::ZERO;
    round(&mut w, &mut now, ms(100));
    round(&mut w, &mut now, ms(130));
    let (backlog, before) = (w.backlog(), w.cwnd());
    assert!(backlog > 10.0, "{backlog}");
    for _ in 0..before / MSS {
        w.on_ack(Acked {
            open: false,
            ..acked(now, ms(100))
        });
    }
    // a segment a round trip, although segments wait
    assert!(
        (w.cwnd() - before).abs_diff(MSS) < MSS / 20,
        "{}",
        w.cwnd() - before
    );
    assert_eq!(w.backlog(), backlog);
}

#[test]
fn veno_gives_up_a_fifth_while_few_segments_wait_and_half_otherwise() {
    for (rtt, waiting, left) in [(102, 1.96, 80), (120, 16.7, 50)] {
        let mut w = Veno::new(&start(SlowStart::Standard, Credit::Bytes, None));
        w.set_ssthresh(MSS);
        w.set_cwnd(100 * MSS);
        let mut now = Instant::ZERO;
        round(&mut w, &mut now, ms(100));
        w.set_cwnd(100 * MSS);
        round(&mut w, &mut now, ms(rtt));
        w.set_cwnd(100 * MSS);
        round(&mut w, &mut now, ms(rtt));
        assert!((w.backlog() - waiting).abs() < 0.5, "{}", w.backlog());
        w.set_cwnd(100 * MSS);
        w.on_loss(loss(now));
        assert_eq!(w.cwnd(), left * MSS);
    }
}

#[test]
fn veno_opens_at_half_the_pace_while_segments_wait() {
    let growth = |rtt| {
        let mut w = Veno::new(&start(SlowStart::Standard, Credit::Bytes, None));
        w.set_ssthresh(MSS);
        w.set_cwnd(50 * MSS);
        let mut now = Instant::ZERO;
        round(&mut w, &mut now, ms(100));
        round(&mut w, &mut now, ms(rtt));
        let before = w.cwnd();
        for _ in 0..10 {
            round(&mut w, &mut now, ms(rtt));
        }
        w.cwnd() - before
    };
    let (free, loaded) = (growth(101), growth(130));
    assert!(free.abs_diff(10 * MSS) < MSS, "{free}");
    assert!(loaded.abs_diff(5 * MSS) < MSS, "{loaded}");
}

#[test]
fn an_idle_window_falls_towards_the_initial_one() {
    // RFC 2861 section 3.2
    let mut w = begin(Algorithm::Reno, SlowStart::Standard);
    w.set_cwnd(80 * MSS);
    w.set_ssthresh(40 * MSS);
    w.on_idle(2);
    assert_eq!((w.cwnd(), w.ssthresh()), (20 * MSS, 60 * MSS));
    w.on_idle(9);
    assert_eq!(w.cwnd(), 10 * MSS);
}
