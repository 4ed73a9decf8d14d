//! CUBIC's growth as Linux has it: so many segments acknowledged for each that the window grows by, a number that is worked
//! out anew 32 times a second at most, in whole segments (`bictcp_update`, `tcp_cong_avoid_ai`).

use crate::time::{Duration, Instant};

/// A stage of congestion avoidance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Steps {
    /// When it began: later, if there was a pause.
    start: Instant,
    /// K, seconds; and where the plateau is, segments.
    k: f64,
    origin: f64,
    /// Segments acknowledged, less those that [`reno`](Self::reno) grew by.
    acked: f64,
    /// The window of Reno, segments.
    reno: f64,
    /// Segments acknowledged that the window has not grown by.
    credit: f64,
    /// Segments acknowledged for each of growth, the time and the window that it was worked out for.
    per_step: f64,
    worked_out: Option<(Instant, f64)>,
}

impl Steps {
    /// Begins at a window of `cwnd` segments that was cut at `w_max`, or never (zero).
    pub fn begin(now: Instant, cwnd: f64, w_max: f64) -> Self {
        let (k, origin) = if cwnd < w_max {
            (libm::cbrt((w_max - cwnd) / C), w_max)
        } else {
            (0.0, cwnd)
        };
        Self {
            start: now,
            k,
            origin,
            acked: 0.0,
            reno: cwnd,
            credit: 0.0,
            per_step: f64::INFINITY,
            worked_out: None,
        }
    }

    pub fn start(&self) -> Instant {
        self.start
    }

    /// A pause of that length is over: it does not count.
    pub fn skip(&mut self, now: Instant, pause: Duration) {
        self.start = (self.start + pause).min(now);
    }

    /// Segments that a window of `cwnd` grows by for `segments` acknowledged. `is_blind` says that nothing is known of what
    /// the path carries; `ahead` is how far the curve is looked ahead.
    pub fn growth(&mut self, now: Instant, cwnd: f64, segments: f64, is_blind: bool, ahead: Duration) -> f64 {
        self.acked += segments;
        let stale = |(at, window): (Instant, f64)| window != cwnd || now.since(at) > INTERVAL;
        if self.worked_out.is_none_or(stale) {
            self.worked_out = Some((now, cwnd));
            self.per_step = self.work_out(now, cwnd, is_blind, ahead);
        }
        let mut growth = 0.0;
        if self.credit >= self.per_step {
            // what was saved up at a slower pace is one step
            self.credit = 0.0;
            growth = 1.0;
        }
        self.credit += segments;
        let steps = libm::floor(self.credit / self.per_step);
        self.credit -= steps * self.per_step;
        growth + steps
    }

    fn work_out(&mut self, now: Instant, cwnd: f64, is_blind: bool, ahead: Duration) -> f64 {
        let t = (now.since(self.start) + ahead).as_secs_f64() - self.k;
        let rise = libm::floor(C * t.abs() * t.abs() * t.abs());
        let target = if t < 0.0 {
            self.origin - rise
        } else {
            self.origin + rise
        };
        let mut per_step = if target > cwnd {
            libm::floor(cwnd / (target - cwnd))
        } else {
            STANDSTILL * cwnd
        };
        if is_blind {
            per_step = per_step.min(BLIND_STEP);
        }
        // Reno-friendly region
        let per_reno = libm::floor(cwnd * RENO_EIGHTHS / 8.0);
        while self.acked > per_reno && per_reno > 0.0 {
            self.acked -= per_reno;
            self.reno += 1.0;
        }
        if self.reno > cwnd {
            per_step = per_step.min(libm::floor(cwnd / (self.reno - cwnd)));
        }
        per_step.max(FASTEST)
    }
}

/// For so long the pace stays what it is, unless the window changes.
const INTERVAL: Duration = Duration::from_millis(31);
/// C, as a fraction of 1024.
const C: f64 = 410.0 / 1024.0;
/// Windows acknowledged for a segment of growth on the plateau.
const STANDSTILL: f64 = 100.0;
/// Segments acknowledged for each of growth, at most, while nothing is known of the path: a twentieth per round trip.
const BLIND_STEP: f64 = 20.0;
/// Eighths of a window acknowledged for a segment of growth of Reno, with 717/1024 left after a cut.
const RENO_EIGHTHS: f64 = 15.0;
/// The window grows by half per round trip at most.
const FASTEST: f64 = 2.0;
