//! Hybla: Caini and Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", International Journal of
//! Satellite Communications and Networking 22, 2004.
//!
//! A connection with a long round trip opens its window as one with the round trip RTT0 would open its own: with
//! `rho = max(RTT / RTT0, 1)`, each acknowledgement adds `2^rho - 1` segments in slow start and `rho^2 / W` in
//! congestion avoidance (section 4, equations 9 and 10). As in Linux, RTT is the shortest smoothed round trip so far,
//! `rho` is kept in eighths and rounded down, and the initial window is `rho` segments. As in Linux too, the window opens
//! as Reno's outside the open state (`hybla_state`, `hybla_en`): by `2^rho - 1` segments an acknowledgement after a timeout
//! it would be in the queue at once, before it is known what the timeout was.

use super::window::{Window, common_window, on_rto};
use super::{Acked, CongestionControl, Loss, Prior, Start};
use crate::time::Duration;

/// The window of Hybla.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hybla {
    window: Window,
    rho: f64,
    /// The shortest smoothed round trip.
    shortest: Option<Duration>,
}

impl Hybla {
    /// A fresh window.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        let mut hybla = Self {
            window: Window::new(start),
            rho: 1.0,
            shortest: None,
        };
        if let Some(rtt) = start.rtt {
            hybla.measure(rtt);
            hybla.window.cwnd = libm::floor(hybla.rho) as u32 * hybla.window.segment;
        }
        hybla
    }

    /// The round-trip time in units of RTT0, 1 at least.
    #[must_use]
    pub const fn rho(&self) -> f64 {
        self.rho
    }

    fn on_restart(&mut self) {}

    fn measure(&mut self, srtt: Duration) {
        if self.shortest.is_none_or(|s| srtt < s) {
            self.shortest = Some(srtt);
            let eighths = libm::floor(8.0 * srtt.as_nanos() as f64 / RTT0.as_nanos() as f64);
            self.rho = (eighths / 8.0).max(1.0);
        }
    }
}

impl CongestionControl for Hybla {
    common_window!();

    fn on_ack(&mut self, acked: Acked) {
        if let Some(srtt) = acked.srtt {
            self.measure(srtt);
        }
        if !acked.open {
            return self.window.open_as_reno(&acked);
        }
        if !acked.window_was_full {
            return;
        }
        let acks = self.window.acked_segments(&acked);
        if self.in_slow_start() {
            let limit = self.window.ssthresh;
            let step = libm::exp2(self.rho.min(MOST_RHO_IN_SLOW_START)) - 1.0;
            self.window.grow_up_to(acks * step, limit);
        } else {
            self.window
                .grow(acks * self.rho * self.rho / self.window.segments());
        }
    }

    fn on_loss(&mut self, _loss: Loss) {
        self.window.cut(0.5);
        self.window.fall_to_ssthresh();
    }

    fn on_rto(&mut self, loss: Loss) {
        on_rto(&mut self.window, loss, |w| w.cut(0.5));
    }

    fn on_undo(&mut self, prior: Prior) {
        self.window.undo(prior);
    }
}

/// The round-trip time of the connection that all are to be like (section 4).
const RTT0: Duration = Duration::from_millis(25);
/// 2^16 segments at once are more than any window.
const MOST_RHO_IN_SLOW_START: f64 = 16.0;
