use super::*;
use crate::congestion::{Acked, CongestionControl, SctpWindow, WindowRules};
use crate::random::Stream;
use crate::sctp::Profile;
use crate::time::Instant;

const SEGMENT: u32 = 1000;
const ALL: [Coupling; 5] = [
    Coupling::Lia,
    Coupling::Olia,
    Coupling::Balia,
    Coupling::Rp1,
    Coupling::Rp2,
];

/// A path with a window of so many segments.
fn path(segments: u32, rtt_ms: u64) -> PathShare {
    PathShare {
        cwnd: segments * SEGMENT,
        ssthresh: segments * SEGMENT / 2,
        segment: SEGMENT,
        rtt: Duration::from_millis(rtt_ms),
        inter_loss: InterLoss::default(),
    }
}

fn lossy(segments: u32, rtt_ms: u64, bytes_between_losses: u32) -> PathShare {
    let mut inter_loss = InterLoss::default();
    inter_loss.on_ack(bytes_between_losses);
    inter_loss.on_loss();
    PathShare {
        inter_loss,
        ..path(segments, rtt_ms)
    }
}

fn avoidance(coupling: Coupling, paths: &[PathShare], of: usize) -> f64 {
    coupling.gain(paths, of).avoidance
}

#[track_caller]
fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
}

#[test]
fn a_path_alone_is_never_coupled() {
    for coupling in ALL {
        assert_eq!(coupling.gain(&[path(10, 100)], 0), Gain::WHOLE);
        assert_eq!(coupling.ssthresh_after_loss(&[path(10, 100)], 0), None);
        assert_eq!(coupling.gain(&[path(10, 100), path(10, 100)], 7), Gain::WHOLE);
    }
    let two = [path(10, 100), path(20, 50)];
    assert_eq!(Coupling::Uncoupled.gain(&two, 0), Gain::WHOLE);
    assert_eq!(Coupling::Uncoupled.ssthresh_after_loss(&two, 0), None);
}

#[test]
fn lia_opens_all_windows_together_by_alpha_segments_per_round_trip() {
    // RFC 6356 section 3: the total window grows by about alpha segments per round trip
    let paths = [path(10, 100), path(30, 100)];
    let total = 40.0;
    // max(cwnd / rtt^2) = 30 / 0.01, (sum of cwnd / rtt)^2 = 400^2
    let alpha = total * 3000.0 / (400.0 * 400.0);
    close(alpha, 0.75);
    let sum = avoidance(Coupling::Lia, &paths, 0) + avoidance(Coupling::Lia, &paths, 1);
    close(sum, alpha);
    // in proportion to the windows
    close(avoidance(Coupling::Lia, &paths, 0), 0.75 * 10.0 / total);
}

#[test]
fn lia_is_no_faster_on_a_path_than_alone() {
    // alpha is driven by the short path; the long path's window would open faster than a TCP's on it
    let paths = [path(4, 10), path(400, 1000)];
    let total: f64 = 404.0;
    let alpha = total * (4.0 / 1e-4) / (400.0_f64 + 400.0).powi(2);
    assert!(alpha * 400.0 / total > 1.0);
    close(avoidance(Coupling::Lia, &paths, 1), 1.0);
    close(avoidance(Coupling::Lia, &paths, 0), alpha * 4.0 / total);
}

#[test]
fn olia_moves_window_from_the_largest_to_the_best() {
    // equal rates: a quarter of a segment each, and half a segment moved, since there are two paths
    let paths = [lossy(20, 100, 50_000), lossy(20, 100, 50_000)];
    close(avoidance(Coupling::Olia, &paths, 0), 0.25);
    close(avoidance(Coupling::Olia, &paths, 1), 0.25);
    let paths = [lossy(10, 100, 90_000), lossy(30, 100, 50_000)];
    close(avoidance(Coupling::Olia, &paths, 0), 1.0 / 16.0 + 0.5);
    close(avoidance(Coupling::Olia, &paths, 1), 9.0 / 16.0 - 0.5);
    // the best path has the largest window already
    let paths = [lossy(10, 100, 50_000), lossy(30, 100, 90_000)];
    close(avoidance(Coupling::Olia, &paths, 0), 1.0 / 16.0);
}

#[test]
fn olia_shrinks_the_largest_window_where_that_carries_little() {
    let paths = [lossy(10, 10, 90_000), lossy(11, 1000, 1000)];
    let share = 11.0 / (1000.0 + 11.0);
    close(avoidance(Coupling::Olia, &paths, 1), share * share - 0.5);
    assert!(avoidance(Coupling::Olia, &paths, 1) < 0.0);
}

#[test]
fn inter_loss_is_the_greater_of_the_last_two_stretches() {
    let mut l = InterLoss::default();
    l.on_ack(500);
    assert_eq!(l.bytes(), 500);
    l.on_loss();
    l.on_ack(200);
    assert_eq!(l.bytes(), 500);
    l.on_ack(400);
    assert_eq!(l.bytes(), 600);
    l.on_loss();
    l.on_loss();
    assert_eq!(l.bytes(), 0);
}

#[test]
fn balia_opens_and_cuts_by_the_ratio_of_rates() {
    let paths = [path(10, 100), path(30, 100)];
    // x = 100 and 300 segments/s: alpha 3 and 1
    close(
        avoidance(Coupling::Balia, &paths, 0),
        1.0 / 16.0 * 2.0 * 7.0 / 5.0,
    );
    close(avoidance(Coupling::Balia, &paths, 1), 9.0 / 16.0);
    // cut by min(alpha, 1.5) / 2: three quarters of the weaker, half of the stronger
    let cut = |of| Coupling::Balia.ssthresh_after_loss(&paths, of).unwrap();
    assert_eq!(cut(0), 2500);
    assert_eq!(cut(1), 15_000);
}

#[test]
fn rp_opens_by_the_share_and_all_windows_together_by_one_segment() {
    let mut paths = [path(10, 100), path(30, 50)];
    paths[0].ssthresh = 12_000;
    paths[1].ssthresh = 36_000;
    let gains = |coupling: Coupling| [coupling.gain(&paths, 0), coupling.gain(&paths, 1)];
    // shares of ssthresh: 1 to 3; of the rate: 100 to 600 segments/s
    for (coupling, first) in [(Coupling::Rp1, 0.25), (Coupling::Rp2, 1.0 / 7.0)] {
        let [a, b] = gains(coupling);
        close(a.avoidance, first);
        close(a.slow_start, first);
        close(a.avoidance + b.avoidance, 1.0);
        close(a.slow_start + b.slow_start, 1.0);
    }
    // the thresholds that RFC 9260 begins with
    paths[0].ssthresh = u32::MAX;
    paths[1].ssthresh = u32::MAX;
    close(Coupling::Rp1.gain(&paths, 0).slow_start, 0.5);
}

#[test]
fn rp_takes_half_of_what_all_paths_have_from_the_one_that_loses() {
    let paths = [path(10, 100), path(30, 100)];
    // 40 segments in all: half of them is more than the first has
    assert_eq!(Coupling::Rp1.ssthresh_after_loss(&paths, 0), Some(SEGMENT));
    assert_eq!(Coupling::Rp1.ssthresh_after_loss(&paths, 1), Some(10_000));
    // equal round trips: the same by rates
    assert_eq!(Coupling::Rp2.ssthresh_after_loss(&paths, 0), Some(SEGMENT));
    assert_eq!(Coupling::Rp2.ssthresh_after_loss(&paths, 1), Some(10_000));
    // rates 400 and 100: the faster gives half of all, 250 of its 400; the slower all it has
    let paths = [path(40, 100), path(30, 300)];
    assert_eq!(Coupling::Rp2.ssthresh_after_loss(&paths, 0), Some(15_000));
    assert_eq!(Coupling::Rp2.ssthresh_after_loss(&paths, 1), Some(SEGMENT));
}

#[test]
fn a_window_that_is_coupled_opens_by_its_gain() {
    let mut w = SctpWindow::new(WindowRules::new(Profile::Rfc9260, 1052, SEGMENT), 100_000);
    let full = |bytes| Acked {
        now: Instant::ZERO,
        bytes,
        cumulative_advanced: true,
        window_was_full: true,
        in_fast_recovery: false,
        open: true,
        flight_empty: false,
        round_start: false,
        una: 0,
        next: 0,
        rtt: None,
        srtt: None,
    };
    let gain = Gain {
        slow_start: 0.25,
        avoidance: -0.3,
    };
    w.set_cwnd(20_000);
    w.on_ack_coupled(full(SEGMENT), gain);
    assert_eq!(w.cwnd(), 20_250);
    w.set_ssthresh(10_000);
    w.on_ack_coupled(full(20_250), gain);
    assert_eq!(w.cwnd(), 19_950);
    // never below a segment
    w.set_cwnd(SEGMENT);
    w.set_ssthresh(0);
    w.on_ack_coupled(full(SEGMENT), gain);
    assert_eq!(w.cwnd(), SEGMENT);
    w.cut_to(5000);
    assert_eq!((w.cwnd(), w.ssthresh()), (5000, 5000));
    w.cut_to(1);
    assert_eq!((w.cwnd(), w.ssthresh()), (SEGMENT, SEGMENT));
}

/// An association with two paths through one bottleneck, beside one with one path: mean windows, round by round.
/// All windows beyond what the bottleneck holds lose, one of them at a time, with chances in proportion to the windows.
fn beside_one_flow(coupling: Coupling) -> (f64, f64) {
    const CAPACITY: u32 = 120 * SEGMENT;
    const ROUNDS: u32 = 60_000;
    let rules = WindowRules::new(Profile::Rfc9260, 1052, SEGMENT);
    let mut windows: [SctpWindow; 3] = core::array::from_fn(|_| {
        let mut w = SctpWindow::new(rules, 100_000);
        w.set_ssthresh(1);
        w.set_cwnd(20 * SEGMENT);
        w
    });
    let mut inter_loss = [InterLoss::default(); 3];
    let mut random = Stream::new(7, "bottleneck");
    let mut sums = [0.0; 3];
    for _ in 0..ROUNDS {
        let share = |of: usize, windows: &[SctpWindow; 3], inter_loss: &[InterLoss; 3]| PathShare {
            cwnd: windows[of].cwnd(),
            ssthresh: windows[of].ssthresh(),
            segment: SEGMENT,
            rtt: Duration::from_millis(100),
            inter_loss: inter_loss[of],
        };
        let paths = [0, 1].map(|of| share(of, &windows, &inter_loss));
        let total: u32 = windows.iter().map(CongestionControl::cwnd).sum();
        let loser = if total > CAPACITY {
            let mut at = random.below(u64::from(total)) as u32;
            (0..3).find(|&i| {
                let found = at < windows[i].cwnd();
                at = at.saturating_sub(windows[i].cwnd());
                found
            })
        } else {
            None
        };
        for of in 0..3 {
            sums[of] += f64::from(windows[of].cwnd()) / f64::from(SEGMENT);
            if loser == Some(of) {
                inter_loss[of].on_loss();
                let cut = if of < 2 {
                    coupling.ssthresh_after_loss(&paths, of)
                } else {
                    None
                };
                let half = windows[of].cwnd() / 2;
                windows[of].cut_to(cut.unwrap_or(half));
                continue;
            }
            let gain = if of < 2 {
                coupling.gain(&paths, of)
            } else {
                Gain::WHOLE
            };
            let bytes = windows[of].cwnd();
            inter_loss[of].on_ack(bytes);
            windows[of].on_ack_coupled(
                Acked {
                    now: Instant::ZERO,
                    bytes,
                    cumulative_advanced: true,
                    window_was_full: true,
                    in_fast_recovery: false,
                    open: true,
                    flight_empty: false,
                    round_start: false,
                    una: 0,
                    next: 0,
                    rtt: None,
                    srtt: None,
                },
                gain,
            );
        }
    }
    let rounds = f64::from(ROUNDS);
    ((sums[0] + sums[1]) / rounds, sums[2] / rounds)
}

#[test]
fn two_coupled_paths_take_about_one_share_of_a_shared_bottleneck() {
    let (two, one) = beside_one_flow(Coupling::Uncoupled);
    assert!(two / one > 1.8, "uncoupled: {two:.1} beside {one:.1}");
    for coupling in ALL {
        let (two, one) = beside_one_flow(coupling);
        let ratio = two / one;
        assert!(
            (0.6..1.45).contains(&ratio),
            "{coupling:?}: {two:.1} segments beside {one:.1}"
        );
    }
}
