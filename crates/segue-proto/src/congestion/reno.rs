//! Reno: RFC 5681.

use super::window::{Window, common_window, on_rto};
use super::{Acked, CongestionControl, Loss, Prior, Start};

/// The window of RFC 5681.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reno {
    window: Window,
}

impl Reno {
    /// A fresh window.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        Self {
            window: Window::new(start),
        }
    }

    fn on_restart(&mut self) {}
}

impl CongestionControl for Reno {
    common_window!();

    fn on_ack(&mut self, acked: Acked) {
        self.window.open_as_reno(&acked);
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
