//! All timers of an association: which is the earliest, and what is due.

use super::association::{Association, State};
use crate::time::Instant;

impl Association {
    /// The earliest timer.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.state == State::Closed {
            return None;
        }
        let own = [
            self.t1,
            self.t2_shutdown,
            self.t5_shutdown_guard,
            self.sack_timer,
            self.window_probe_timer,
            self.partial.t3_rtx,
            self.stream_requests.t_reconfig(),
            self.asconf.t4_rto(),
            self.replacement_timer(),
        ];
        let mut earliest = Instant::MAX;
        for timer in own.into_iter().flatten() {
            earliest = earliest.min(timer);
        }
        for path in &self.paths {
            let timers = [path.t3_rtx, path.pmtu.timer().filter(|_| path.in_use)];
            for timer in timers.into_iter().flatten() {
                earliest = earliest.min(timer);
            }
        }
        for destination in self.destinations.iter().filter(|d| d.in_use && !d.deactivated) {
            if let Some(sent) = &destination.heartbeat {
                earliest = earliest.min(sent.expires);
            }
            if let Some(due) = destination.heartbeat_due {
                earliest = earliest.min(due);
            }
        }
        (earliest != Instant::MAX).then_some(earliest)
    }

    /// Works off the timers that are due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.is_stranded() {
            // what was asked for meanwhile may have started some
            self.stop_timers();
        }
        let due = |timer: Option<Instant>| timer.is_some_and(|at| at <= now);
        if due(self.t1) {
            self.on_t1(now);
        }
        if due(self.t5_shutdown_guard) {
            self.on_t5(now);
        }
        if due(self.t2_shutdown) {
            self.on_t2(now);
        }
        if due(self.sack_timer) {
            self.sack_timer = None;
            self.sack_now = true;
        }
        if due(self.window_probe_timer) {
            self.window_probe_timer = None;
            self.window_probe.allowed = true;
            self.open_burst();
        }
        self.on_pmtu_timers(now);
        for i in 0..self.paths.len() {
            if self.state != State::Closed && due(self.paths[i].t3_rtx) {
                self.on_t3(now, i);
            }
        }
        if self.state != State::Closed && due(self.partial.t3_rtx) {
            self.on_forward_tsn_t3(now);
        }
        if self.state != State::Closed && due(self.stream_requests.t_reconfig()) {
            self.on_t_reconfig(now);
        }
        if self.state != State::Closed && due(self.asconf.t4_rto()) {
            self.on_t4(now);
        }
        if self.state != State::Closed && due(self.replacement_timer()) {
            self.delete_replaced(now);
        }
        for i in 0..self.destinations.len() {
            if self.state == State::Closed {
                return;
            }
            self.on_heartbeat_timers(now, i);
        }
    }
}
