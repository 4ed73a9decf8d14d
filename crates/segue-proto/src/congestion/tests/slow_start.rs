//! Where HyStart and HyStart++ end slow start, at the edges of their thresholds.

use super::*;

/// Acknowledgements of one round trip, all at one moment, that measure `rtt`.
fn burst(window: &mut dyn CongestionControl, now: Instant, rtt: Duration, count: u32) {
    for n in 0..count {
        window.on_ack(Acked {
            round_start: n == 0,
            ..acked(now, rtt)
        });
    }
}

/// Whether slow start goes at full pace on: the next acknowledgement opens the window by its segment.
fn full_pace(window: &mut dyn CongestionControl, now: Instant, rtt: Duration) -> bool {
    let before = window.cwnd();
    window.on_ack(acked(now, rtt));
    window.cwnd() - before == MSS
}

#[test]
fn hystart_plus_plus_looks_for_an_eighth_of_the_round_trip_from_4_to_16_ms() {
    // RFC 9406 section 4.2: RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / MIN_RTT_DIVISOR, MAX_RTT_THRESH))
    for (last, threshold) in [(8, 4), (32, 4), (80, 10), (120, 15), (128, 16), (400, 16)] {
        for (over, still) in [(threshold - 1, true), (threshold, false)] {
            let mut w = begin(Algorithm::Cubic, SlowStart::HystartPlusPlus);
            burst(&mut *w, Instant::ZERO, ms(last), 10);
            let now = Instant::ZERO + ms(last);
            burst(&mut *w, now, ms(last + over), 8);
            assert_eq!(
                full_pace(&mut *w, now, ms(last + over)),
                still,
                "{last} ms and {over} more"
            );
        }
    }
}

#[test]
fn hystart_plus_plus_wants_eight_samples_of_a_round_and_takes_the_shortest() {
    // RFC 9406 section 4.3: N_RTT_SAMPLE
    let mut w = begin(Algorithm::Cubic, SlowStart::HystartPlusPlus);
    burst(&mut *w, Instant::ZERO, ms(100), 10);
    let now = Instant::ZERO + ms(100);
    burst(&mut *w, now, ms(150), 6);
    assert!(full_pace(&mut *w, now, ms(150)), "the seventh");
    assert!(!full_pace(&mut *w, now, ms(150)), "the eighth");
    let mut w = begin(Algorithm::Cubic, SlowStart::HystartPlusPlus);
    burst(&mut *w, Instant::ZERO, ms(100), 10);
    burst(&mut *w, now, ms(150), 6);
    burst_more(&mut *w, now, ms(101));
    assert!(full_pace(&mut *w, now, ms(150)), "one was not long");
}

fn burst_more(window: &mut dyn CongestionControl, now: Instant, rtt: Duration) {
    window.on_ack(acked(now, rtt));
}

#[test]
fn hystart_plus_plus_is_for_the_initial_slow_start() {
    // RFC 9406 section 4.2
    let mut w = begin(Algorithm::Cubic, SlowStart::HystartPlusPlus);
    let mut now = Instant::ZERO;
    round(&mut *w, &mut now, ms(100));
    w.on_rto(loss(now));
    w.set_ssthresh(u32::MAX);
    w.set_cwnd(20 * MSS);
    for rtt in [100, 100, 150, 200] {
        let before = w.cwnd();
        round(&mut *w, &mut now, ms(rtt));
        assert_eq!(w.cwnd(), 2 * before, "{rtt} ms");
    }
}

#[test]
fn linux_s_hystart_watches_slow_start_after_a_timeout_too() {
    let mut w = begin(Algorithm::Cubic, SlowStart::Hystart);
    let mut now = Instant::ZERO;
    round(&mut *w, &mut now, ms(100));
    w.on_rto(loss(now));
    w.set_ssthresh(u32::MAX);
    w.set_cwnd(20 * MSS);
    now += ms(100);
    burst(&mut *w, now, ms(120), 8);
    assert!(!w.in_slow_start(), "the shortest round trip is remembered");
}

#[test]
fn linux_s_hystart_looks_for_a_sixteenth_of_the_round_trip_from_4_to_16_ms() {
    for (shortest, threshold) in [(16, 4), (64, 4), (160, 10), (256, 16), (600, 16)] {
        for (over, still) in [(threshold, true), (threshold + 1, false)] {
            let mut w = begin(Algorithm::Cubic, SlowStart::Hystart);
            burst(&mut *w, Instant::ZERO, ms(shortest), 10);
            burst(&mut *w, Instant::ZERO + ms(shortest), ms(shortest + over), 8);
            assert_eq!(w.in_slow_start(), still, "{shortest} ms and {over} more");
        }
    }
}

#[test]
fn linux_s_hystart_wants_eight_samples_and_sixteen_segments() {
    let mut w = begin(Algorithm::Cubic, SlowStart::Hystart);
    burst(&mut *w, Instant::ZERO, ms(100), 10);
    burst(&mut *w, Instant::ZERO + ms(100), ms(150), 7);
    assert!(w.in_slow_start());
    w.on_ack(acked(Instant::ZERO + ms(100), ms(150)));
    assert!(!w.in_slow_start());
    // below 16 segments it is not asked
    let mut w = begin(Algorithm::Cubic, SlowStart::Hystart);
    w.on_ack(acked(Instant::ZERO, ms(100)));
    w.set_cwnd(4 * MSS);
    burst(&mut *w, Instant::ZERO + ms(100), ms(150), 11);
    assert!(w.in_slow_start());
}

#[test]
fn linux_s_hystart_ends_with_a_train_of_acknowledgements_half_a_round_trip_long() {
    // Ha and Rhee 2011: acknowledgements no more than 2 ms apart
    for (gap_ms, count, still) in [(2, 25, true), (2, 26, false), (3, 60, true)] {
        let mut w = begin(Algorithm::Cubic, SlowStart::Hystart);
        burst(&mut *w, Instant::ZERO, ms(100), 10);
        let mut now = Instant::ZERO + ms(100);
        w.on_ack(Acked {
            round_start: true,
            ..acked(now, ms(100))
        });
        for _ in 0..count {
            now += ms(gap_ms);
            w.on_ack(acked(now, ms(100)));
        }
        assert_eq!(w.in_slow_start(), still, "{count} times {gap_ms} ms");
    }
}

/// Acknowledgements of two segments each, `gap` apart, that measure `rtt`, of a round that ends at `end`.
fn pairs(
    w: &mut dyn CongestionControl,
    now: &mut Instant,
    una: &mut u64,
    count: u32,
    gap: Duration,
    rtt: Duration,
) {
    for _ in 0..count {
        *now += gap;
        *una += u64::from(2 * MSS);
        w.on_ack(Acked {
            bytes: 2 * MSS,
            una: *una,
            next: *una + u64::from(w.cwnd()),
            ..acked(*now, rtt)
        });
    }
}

#[test]
fn today_s_hystart_stops_at_the_ninth_round_trip_that_is_an_eighth_longer() {
    // hystart_update of Linux 5.8 and later: HYSTART_DELAY_THRESH(delay_min >> 3), which is 4 to 16 ms
    for (first, over, still) in [
        (100, 12, true),
        (100, 13, false),
        (8, 4, true),
        (8, 5, false),
        (400, 17, false),
    ] {
        let mut w = begin(Algorithm::Cubic, SlowStart::Hystart58);
        let (mut now, mut una) = (Instant::ZERO, 0);
        pairs(&mut *w, &mut now, &mut una, 3, ms(10), ms(first));
        assert_eq!(w.cwnd(), 16 * MSS, "it is watched from here on");
        pairs(&mut *w, &mut now, &mut una, 8, ms(10), ms(first + over));
        assert!(w.in_slow_start(), "eight are no proof");
        pairs(&mut *w, &mut now, &mut una, 1, ms(10), ms(first + over));
        assert_eq!(w.in_slow_start(), still, "{first} ms and {over} more");
    }
}

#[test]
fn today_s_hystart_takes_a_shorter_round_trip_late_in_the_round_for_what_it_is() {
    // Linux b344579ca847: every measurement of the round may be its shortest
    let mut w = begin(Algorithm::Cubic, SlowStart::Hystart58);
    let (mut now, mut una) = (Instant::ZERO, 0);
    pairs(&mut *w, &mut now, &mut una, 3, ms(10), ms(200));
    pairs(&mut *w, &mut now, &mut una, 8, ms(10), ms(201));
    pairs(&mut *w, &mut now, &mut una, 1, ms(10), ms(29));
    assert!(w.in_slow_start());
}

#[test]
fn today_s_hystart_stops_when_the_train_is_as_long_as_half_a_round_trip() {
    for (gaps, still) in [(25, true), (26, false)] {
        let mut w = begin(Algorithm::Cubic, SlowStart::Hystart58);
        let (mut now, mut una) = (Instant::ZERO, 0);
        pairs(&mut *w, &mut now, &mut una, 3, ms(10), ms(101));
        let next = una + 1_000_000;
        for n in 0..=gaps {
            now += if n == 0 { ms(10) } else { ms(2) };
            w.on_ack(Acked {
                una: una + 1,
                next,
                ..acked(now, ms(101))
            });
        }
        // (101 ms + 1 ms) / 2
        assert_eq!(w.in_slow_start(), still, "{} ms", 2 * gaps);
    }
}
