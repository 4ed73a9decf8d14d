//! What TCP's algorithms have in common.

use super::{Acked, Credit, Loss, Prior, Start};

/// cwnd and ssthresh in bytes, with the part of a byte by which cwnd has grown beyond.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Window {
    pub cwnd: u32,
    pub ssthresh: u32,
    pub segment: u32,
    pub initial: u32,
    pub credit: Credit,
    fraction: f64,
}

impl Window {
    pub fn new(start: &Start) -> Self {
        Self {
            cwnd: start.initial_window,
            // RFC 5681 section 3.1: arbitrarily high
            ssthresh: u32::MAX,
            segment: start.segment.max(1),
            initial: start.initial_window,
            credit: start.credit,
            fraction: 0.0,
        }
    }

    /// cwnd in segments.
    pub fn segments(&self) -> f64 {
        f64::from(self.cwnd) / f64::from(self.segment)
    }

    /// Segments that an acknowledgement counts for.
    pub fn acked_segments(&self, acked: &Acked) -> f64 {
        match self.credit {
            Credit::Acks => 1.0,
            Credit::Bytes => f64::from(acked.bytes) / f64::from(self.segment),
        }
    }

    /// RFC 5681 section 3.1, equation 2. Returns the segments of credit that are left when ssthresh is passed; where an
    /// acknowledgement is a unit, it is spent whole.
    pub fn slow_start(&mut self, acked: &Acked) -> f64 {
        let credit = self.acked_segments(acked);
        let before = self.cwnd;
        self.grow_up_to(credit, self.ssthresh);
        let spent = f64::from(self.cwnd - before) / f64::from(self.segment);
        if self.credit == Credit::Bytes && self.cwnd >= self.ssthresh {
            (credit - spent).max(0.0)
        } else {
            0.0
        }
    }

    /// Grows by `segments`, to no more than `limit`.
    pub fn grow_up_to(&mut self, segments: f64, limit: u32) {
        let before = self.cwnd;
        self.grow(segments);
        if self.cwnd > limit.max(before) {
            self.cwnd = limit.max(before);
            self.fraction = 0.0;
        }
    }

    /// Grows by `segments`, parts of one included.
    pub fn grow(&mut self, segments: f64) {
        let bytes = self.fraction + segments * f64::from(self.segment);
        let whole = libm::floor(bytes);
        self.fraction = bytes - whole;
        self.cwnd = self.cwnd.saturating_add(whole as u32);
    }

    /// RFC 5681 section 3.1, equation 4, with `share` of the window instead of half of it. As Linux, of cwnd instead of
    /// FlightSize: what was not used was taken off by window validation.
    pub fn cut(&mut self, share: f64) {
        self.ssthresh = self.share(share);
    }

    /// That share of cwnd in whole segments, two at least. Linux counts in segments, and drops what is left over at the
    /// cut; half a segment is much where windows are small: 5 is followed by 2, or 3 with CUBIC.
    pub fn share(&self, share: f64) -> u32 {
        let segments = self.cwnd / self.segment;
        ((f64::from(segments) * share) as u32).max(2) * self.segment
    }

    /// cwnd after a loss.
    pub fn fall_to_ssthresh(&mut self) {
        self.cwnd = self.ssthresh;
        self.fraction = 0.0;
    }

    /// RFC 5681 section 3.1: the loss window.
    pub fn fall_to_one_segment(&mut self) {
        self.cwnd = self.segment;
        self.fraction = 0.0;
    }

    /// RFC 2861 section 3.2: halved once per RTO without data, down to the initial window; ssthresh remembers.
    pub fn decay(&mut self, periods: u64) {
        let floor = self.initial.min(self.cwnd);
        self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
        self.cwnd = self
            .cwnd
            .checked_shr(periods.min(31) as u32)
            .unwrap_or(0)
            .max(floor);
        self.fraction = 0.0;
    }

    pub fn undo(&mut self, prior: Prior) {
        self.cwnd = self.cwnd.max(prior.cwnd);
        self.ssthresh = self.ssthresh.max(prior.ssthresh);
    }

    pub fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(self.segment);
        self.fraction = 0.0;
    }

    /// What Reno does with an acknowledgement (RFC 5681 section 3.1), where the window was full.
    pub fn open_as_reno(&mut self, acked: &Acked) {
        if !acked.window_was_full {
            return;
        }
        let mut credit = self.acked_segments(acked);
        if self.cwnd < self.ssthresh {
            credit = self.slow_start(acked);
        }
        if credit > 0.0 {
            self.avoid(credit);
        }
    }

    /// The rule of Reno for congestion avoidance: a segment per window acknowledged (RFC 5681 section 3.1, equation 3).
    pub fn avoid(&mut self, segments: f64) {
        self.grow(segments / self.segments());
    }
}

/// The parts of [`CongestionControl`](super::CongestionControl) that are the same for all of TCP's algorithms.
macro_rules! common_window {
    () => {
        fn cwnd(&self) -> u32 {
            self.window.cwnd
        }
        fn ssthresh(&self) -> u32 {
            self.window.ssthresh
        }
        fn in_slow_start(&self) -> bool {
            self.window.cwnd < self.window.ssthresh
        }
        fn on_idle(&mut self, periods: u64) {
            if periods > 0 {
                self.window.decay(periods);
                self.on_restart();
            }
        }
        fn restart(&mut self) {
            self.window.fall_to_one_segment();
            self.on_restart();
        }
        fn on_credit(&mut self) {
            if self.in_slow_start() {
                self.window.grow(1.0);
            }
        }
        fn set_cwnd(&mut self, cwnd: u32) {
            self.window.set_cwnd(cwnd);
        }
        fn set_ssthresh(&mut self, ssthresh: u32) {
            self.window.ssthresh = ssthresh;
        }
        fn set_segment(&mut self, segment: u32) {
            self.window.segment = segment.max(1);
        }
    };
}
pub(super) use common_window;

/// What a retransmission timeout does, where `cut` sets ssthresh.
pub(super) fn on_rto(window: &mut Window, loss: Loss, cut: impl FnOnce(&mut Window)) {
    if !loss.cut_already {
        cut(window);
    }
    window.fall_to_one_segment();
}
