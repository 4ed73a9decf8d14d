//! Veno: Fu and Liew, "TCP Veno: TCP enhancement for transmission over wireless access networks", IEEE JSAC 21(2), 2003.
//!
//! As Vegas does, it works out how many segments wait in the bottleneck's queue (section II-A):
//! `N = (cwnd / BaseRTT - cwnd / RTT) * BaseRTT`. A loss while few wait is taken for random, and costs a fifth of the
//! window instead of half (section II-C); while many wait, the window opens by a segment every other round trip only
//! (section II-B).
//!
//! Where Linux (`tcp_veno.c`) differs from the paper this is Linux's, which was what others measured:
//! - BaseRTT is the shortest round trip since the connection began or was idle; the paper begins it anew at every loss
//!   (section II-A).
//! - N is worked out at every acknowledgement of a full window in the open state, from the shortest round trip since the
//!   last time, once there have been three measurements; outside the open state the window opens as Reno's, and N stays.
//!
//! Linux takes an acknowledgement without a measurement for a full queue, which is left out.

use super::window::{Window, common_window, on_rto};
use super::{Acked, CongestionControl, Loss, Prior, Start};
use crate::time::Duration;

/// The window of Veno.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Veno {
    window: Window,
    /// BaseRTT: the shortest round trip of all.
    base_rtt: Option<Duration>,
    /// The shortest since N was worked out last.
    recent_rtt: Option<Duration>,
    /// Measurements of the connection.
    samples: u32,
    /// N, segments, as last worked out.
    backlog: f64,
}

impl Veno {
    /// A fresh window.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        Self {
            window: Window::new(start),
            base_rtt: None,
            recent_rtt: None,
            samples: 0,
            backlog: 0.0,
        }
    }

    /// N: segments that are thought to wait in the bottleneck's queue.
    #[must_use]
    pub const fn backlog(&self) -> f64 {
        self.backlog
    }

    fn on_restart(&mut self) {
        // `tcp_veno_cwnd_event`: after a pause, what was measured before says nothing of the path
        self.base_rtt = None;
        self.recent_rtt = None;
    }

    /// The share of cwnd that is left after a loss.
    fn share(&self) -> f64 {
        if self.backlog < BETA { 0.8 } else { 0.5 }
    }

    fn measure(&mut self, rtt: Duration) {
        if rtt.is_zero() {
            return;
        }
        self.base_rtt = Some(self.base_rtt.map_or(rtt, |b| b.min(rtt)));
        self.recent_rtt = Some(self.recent_rtt.map_or(rtt, |r| r.min(rtt)));
        self.samples = self.samples.saturating_add(1);
    }

    /// Section II-A.
    fn estimate(&mut self) {
        if let (Some(base), Some(rtt)) = (self.base_rtt, self.recent_rtt.take()) {
            let (base, rtt) = (base.as_secs_f64(), rtt.as_secs_f64());
            self.backlog = self.window.segments() * (rtt - base) / rtt;
        }
    }
}

impl CongestionControl for Veno {
    common_window!();

    fn on_ack(&mut self, acked: Acked) {
        if let Some(rtt) = acked.rtt {
            self.measure(rtt);
        }
        // two measurements may both be of delayed acknowledgements
        let knows_enough = self.samples > 2;
        if !acked.open || (!knows_enough && acked.window_was_full) {
            self.recent_rtt = None;
        }
        if !acked.open || !knows_enough {
            return self.window.open_as_reno(&acked);
        }
        if !acked.window_was_full {
            return;
        }
        self.estimate();
        let mut credit = self.window.acked_segments(&acked);
        if self.in_slow_start() {
            credit = self.window.slow_start(&acked);
        }
        if credit > 0.0 {
            let pace = if self.backlog < BETA { 1.0 } else { 0.5 };
            self.window.avoid(credit * pace);
        }
    }

    fn on_loss(&mut self, _loss: Loss) {
        self.window.cut(self.share());
        self.window.fall_to_ssthresh();
    }

    fn on_rto(&mut self, loss: Loss) {
        let share = self.share();
        on_rto(&mut self.window, loss, |w| w.cut(share));
    }

    fn on_undo(&mut self, prior: Prior) {
        self.window.undo(prior);
    }
}

/// Segments in the queue from which on the path counts as congested (section II-A).
const BETA: f64 = 3.0;
