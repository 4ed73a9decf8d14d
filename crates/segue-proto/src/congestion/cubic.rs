//! CUBIC: RFC 9438.

use super::cubic_steps::Steps;
use super::hystart::{HyStart, Pace};
use super::window::{Window, common_window, on_rto};
use super::{Acked, CongestionControl, CubicCurve, Loss, Prior, RenoFriendliness, Start};
use crate::time::{Duration, Instant};

/// The window of CUBIC.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cubic {
    window: Window,
    hystart: HyStart,
    curve: CubicCurve,
    /// The least round trip, of those that a recovery has not just made shorter.
    least_rtt: Option<Duration>,
    friendliness: RenoFriendliness,
    /// W_max, segments: where the window was cut last, less if it had not come that far again (section 4.7). Zero before
    /// the first loss, and after a timeout.
    w_max: f64,
    epoch: Option<Epoch>,
    /// The same as Linux has it.
    steps: Option<Steps>,
    /// cwnd before the last cut, segments (section 4.3).
    cwnd_prior: f64,
    /// What a loss that was none has to put back.
    before_cut: Option<(f64, f64, Option<Epoch>, Option<Steps>)>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Epoch {
    start: Instant,
    /// K, seconds (section 4.2, equation 2).
    k: f64,
    /// W_max of this stage, segments.
    w_max: f64,
    /// W_est, segments (section 4.3).
    w_est: f64,
    /// Last time that data was acknowledged while the window was full: time without use does not count (section 5.8).
    last: Instant,
}

impl Cubic {
    /// A fresh window.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        Self {
            window: Window::new(start),
            hystart: HyStart::new(start.slow_start),
            curve: start.cubic_curve,
            least_rtt: None,
            friendliness: start.reno_friendliness,
            w_max: 0.0,
            epoch: None,
            steps: None,
            cwnd_prior: 0.0,
            before_cut: None,
        }
    }

    fn on_restart(&mut self) {
        self.epoch = None;
        self.steps = None;
    }

    /// Congestion avoidance, for so many segments acknowledged.
    fn avoid(&mut self, acked: &Acked, segments: f64) {
        match self.curve {
            CubicCurve::Rfc9438 => self.follow(acked, segments),
            CubicCurve::Linux => self.step(acked, segments),
        }
    }

    /// As Linux does.
    fn step(&mut self, acked: &Acked, segments: f64) {
        let cwnd = libm::floor(self.window.segments());
        let begin = || Steps::begin(acked.now, cwnd, self.w_max);
        let steps = self.steps.get_or_insert_with(begin);
        let ahead = self.least_rtt.unwrap_or(Duration::ZERO);
        let growth = steps.growth(acked.now, cwnd, segments, self.w_max == 0.0, ahead);
        self.window.grow(growth);
    }

    /// In the first second of a stage the queue is still short of what the cut left out of it: Linux leaves those out.
    fn note_rtt(&mut self, acked: &Acked) {
        let settled = |s: &Steps| acked.now.since(s.start()) >= SETTLING;
        if let Some(rtt) = acked.rtt.filter(|_| self.steps.as_ref().is_none_or(settled)) {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |l| l.min(rtt)));
        }
    }

    /// Section 4.2, and 4.3 where that is more.
    fn follow(&mut self, acked: &Acked, segments: f64) {
        let cwnd = self.window.segments();
        let begin = || Epoch::begin(acked.now, cwnd, self.w_max);
        let epoch = self.epoch.get_or_insert_with(begin);
        epoch.last = acked.now;
        let rtt = acked.srtt.unwrap_or(Duration::ZERO).as_secs_f64();
        let t = acked.now.since(epoch.start).as_secs_f64();
        let target = epoch.w_cubic(t + rtt).clamp(cwnd, 1.5 * cwnd);
        let increase = (target - cwnd) / cwnd * segments;
        // equation 4
        let beyond = epoch.w_est >= self.cwnd_prior && self.friendliness == RenoFriendliness::Rfc9438;
        let alpha = if beyond {
            1.0
        } else {
            3.0 * (1.0 - BETA) / (1.0 + BETA)
        };
        epoch.w_est += alpha * segments / cwnd;
        if epoch.w_cubic(t) < epoch.w_est {
            // Reno-friendly region
            let missing = epoch.w_est - cwnd;
            if missing > 0.0 {
                self.window.grow(missing);
            }
        } else {
            self.window.grow(increase);
        }
    }

    /// Sections 4.6 and 4.7.
    fn cut(&mut self) {
        let cwnd = self.window.segments();
        self.before_cut = Some((self.w_max, self.cwnd_prior, self.epoch, self.steps));
        self.w_max = if cwnd < self.w_max {
            cwnd * (1.0 + BETA) / 2.0
        } else {
            cwnd
        };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.steps = None;
        self.window.cut(BETA);
    }
}

impl Epoch {
    /// Begins with a window of `cwnd` segments, having been cut at `w_max`. If it is there already, or was never cut
    /// (section 4.8, 4.10), K is zero and the curve begins at its plateau.
    fn begin(now: Instant, cwnd: f64, w_max: f64) -> Self {
        let (k, w_max) = if cwnd < w_max {
            (libm::cbrt((w_max - cwnd) / C), w_max)
        } else {
            (0.0, cwnd)
        };
        Self {
            start: now,
            k,
            w_max,
            w_est: cwnd,
            last: now,
        }
    }

    /// Equation 1, segments.
    fn w_cubic(&self, t: f64) -> f64 {
        let x = t - self.k;
        C * x * x * x + self.w_max
    }
}

impl CongestionControl for Cubic {
    common_window!();

    fn on_ack(&mut self, acked: Acked) {
        // acknowledgements that are delayed count for the segments that they are for: the curve is one of time
        let mut segments = f64::from(acked.bytes) / f64::from(self.window.segment);
        let mut pace = Pace::Full;
        self.note_rtt(&acked);
        if self.in_slow_start() {
            pace = self.hystart.on_ack(&acked, self.window.segments());
        }
        if !acked.window_was_full {
            // section 5.8: the curve stands still while the window is not used
            if let Some(epoch) = &mut self.epoch {
                let idle = acked.now.since(epoch.last);
                epoch.start += idle;
                epoch.last = acked.now;
            }
            return;
        }
        if self.in_slow_start() {
            match pace {
                Pace::Stop => self.window.ssthresh = self.window.cwnd,
                Pace::Quarter => {
                    let quarter = self.window.acked_segments(&acked) / CSS_GROWTH_DIVISOR;
                    self.window.grow_up_to(quarter, self.window.ssthresh);
                    return;
                }
                Pace::Full => {
                    segments = self.window.slow_start(&acked);
                }
            }
        }
        if segments > 0.0 {
            self.avoid(&acked, segments);
        }
    }

    fn on_transmit_start(&mut self, now: Instant, idle: Duration) {
        if let Some(steps) = &mut self.steps {
            steps.skip(now, idle);
        }
    }

    fn on_loss(&mut self, _loss: Loss) {
        self.cut();
        self.window.fall_to_ssthresh();
    }

    /// Section 4.8: the next stage begins with K = 0, from where slow start ends.
    fn on_rto(&mut self, loss: Loss) {
        if loss.cut_already {
            on_rto(&mut self.window, loss, |_| {});
        } else {
            self.cut();
            self.window.fall_to_one_segment();
        }
        self.w_max = 0.0;
        self.epoch = None;
        self.steps = None;
        self.least_rtt = None;
        self.hystart.restart();
    }

    /// Section 4.9.
    fn on_undo(&mut self, prior: Prior) {
        self.window.undo(prior);
        if let Some((w_max, cwnd_prior, epoch, steps)) = self.before_cut.take() {
            (self.w_max, self.cwnd_prior) = (w_max, cwnd_prior);
            (self.epoch, self.steps) = (epoch, steps);
        }
    }
}

/// Linux: time from the beginning of a stage during which round trips are not measured.
const SETTLING: Duration = Duration::from_secs(1);
/// C (section 5).
const C: f64 = 0.4;
/// beta_cubic (section 4.6).
const BETA: f64 = 0.7;
/// RFC 9406 section 4.3.
const CSS_GROWTH_DIVISOR: f64 = 4.0;
