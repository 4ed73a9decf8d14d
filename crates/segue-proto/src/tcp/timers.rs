//! The timers of a connection.

use super::connection::Connection;
use super::event::{Event, State};
use crate::time::{Duration, Instant};

impl Connection {
    /// Works off the timers that are due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let due = |at: &Option<Instant>| at.is_some_and(|at| at <= now);
        if due(&self.ack_at) {
            self.ack_at = None;
            self.ack_now = true;
        }
        if due(&self.reorder_at) {
            self.on_reorder_timer(now);
        }
        if due(&self.probe_at) {
            self.on_probe_timer(now);
        }
        if due(&self.persist_at) {
            self.on_persist_timer();
        }
        if due(&self.rto_at) {
            self.on_retransmission_timeout(now);
        }
        if due(&self.wait_at) {
            self.wait_at = None;
            // TIME-WAIT is over, or the peer's FIN never came
            let event = if self.state == State::TimeWait {
                Event::Closed
            } else {
                Event::TimedOut
            };
            self.end(event);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let timers = [
            self.rto_at,
            self.ack_at,
            self.reorder_at,
            self.probe_at,
            self.persist_at,
            self.wait_at,
        ];
        let mut earliest = Instant::MAX;
        for at in timers {
            earliest = earliest.min(at.unwrap_or(Instant::MAX));
        }
        (earliest != Instant::MAX).then_some(earliest)
    }

    /// The window is still closed: another probe, later and later (RFC 9293 section 3.8.6.1). A peer that answers keeps
    /// the connection, however long its window stays closed.
    fn on_persist_timer(&mut self) {
        self.persist_at = None;
        if self.retries >= self.config.max_retransmits {
            self.end(Event::TimedOut);
            return;
        }
        self.retries += 1;
        self.persist_backoff = (self.persist_backoff + 1).min(MOST_BACKOFF);
        self.window_probe_pending = true;
    }

    /// Time until the next probe of the window.
    pub(super) fn persist_interval(&self) -> Duration {
        (self.rtt.rto() * (1 << self.persist_backoff)).clamp(Duration::ZERO, self.config.rto_max)
    }
}

const MOST_BACKOFF: u32 = 16;
