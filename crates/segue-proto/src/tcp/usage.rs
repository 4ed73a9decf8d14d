//! How much of cwnd is used: where it is not used it does not grow, and after a while it falls (RFC 5681 section 4.1,
//! RFC 2861; RFC 7661 has the reasons).

use super::config::WindowUse;
use super::connection::Connection;
use super::recovery::Phase;
use crate::time::Instant;

/// The use of cwnd by one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// In the window of data at hand cwnd kept something back, ...
    held_back: bool,
    /// ... or else so many bytes were outstanding at most.
    greatest: u32,
    /// SND.NXT when that was noted: the window of data ends where it is acknowledged.
    window_end: u64,
    /// Since when cwnd has not been used up, and the most that was in flight since (RFC 2861).
    unused_since: Instant,
    most_used: u32,
}

impl Usage {
    pub fn new(now: Instant) -> Self {
        Self {
            held_back: false,
            greatest: 0,
            window_end: 0,
            unused_since: now,
            most_used: 0,
        }
    }

    /// The window is in use, or begins anew.
    pub fn begin(&mut self, now: Instant) {
        self.unused_since = now;
        self.most_used = 0;
    }

    /// What one attempt to send tells: a window of data is remembered by the strongest sign that it gave.
    fn note(&mut self, una: u64, next: u64, flight: u32, held_back: bool) {
        if una >= self.window_end || held_back || (!self.held_back && flight > self.greatest) {
            self.held_back = held_back;
            self.greatest = flight;
            self.window_end = next;
        }
    }
}

impl Connection {
    /// Whether cwnd counts as used, where `pipe` bytes were in the network when the acknowledgement at hand came.
    #[inline]
    pub(super) fn is_window_used(&self, pipe: u32) -> bool {
        let cwnd = self.window.cwnd();
        match self.config.window_use {
            // a window in bytes may end within a segment
            WindowUse::Full => pipe + self.mss > cwnd,
            WindowUse::ButForBursts => {
                let left = cwnd.saturating_sub(pipe);
                left <= BURST * self.mss || (u64::from(left) * 3 < u64::from(cwnd) && left < MOST_HELD_BACK)
            }
            WindowUse::LastWindow => {
                self.usage.held_back
                    || (self.window.in_slow_start() && cwnd < self.usage.greatest.saturating_mul(2))
            }
        }
    }

    /// A segment has been sent.
    pub(super) fn note_use(&mut self, now: Instant) {
        let flight = self.board.flightsize();
        let cwnd = self.window.cwnd();
        let used = if self.config.window_use == WindowUse::LastWindow {
            let held_back = self.pipe() + self.mss > cwnd;
            self.usage.note(self.snd_una, self.snd_nxt, flight, held_back);
            self.is_window_used(flight)
        } else {
            flight + self.mss > cwnd
        };
        if used {
            self.usage.begin(now);
        } else {
            self.validate_unfilled_window(now, flight, cwnd);
        }
    }

    /// No segment could be sent: perhaps because of cwnd.
    #[inline]
    pub(super) fn note_what_is_held_back(&mut self, now: Instant, pipe: u32, cwnd: u32) {
        if pipe + self.mss > cwnd
            && self.config.window_use == WindowUse::LastWindow
            && self.may_send_new_data()
        {
            self.note_use(now);
        }
    }

    /// RFC 2861 section 3.2: the application has not filled the window for an RTO, while nothing but itself kept it.
    #[inline(never)]
    fn validate_unfilled_window(&mut self, now: Instant, flight: u32, cwnd: u32) {
        self.usage.most_used = self.usage.most_used.max(flight);
        if !self.config.cwnd_validation || now.since(self.usage.unused_since) < self.rtt.rto() {
            return;
        }
        let used = self
            .usage
            .most_used
            .max(self.config.initial_window.bytes(self.mss));
        if self.recovery.phase == Phase::Open && self.wanted.is_none() && used < cwnd {
            self.window.set_ssthresh(self.window.ssthresh().max(cwnd / 4 * 3));
            self.window.set_cwnd((cwnd + used) / 2);
        }
        self.usage.begin(now);
    }

    /// RFC 5681 section 4.1 and RFC 2861: nothing was sent for an RTO.
    pub(super) fn restart_after_idle(&mut self, now: Instant) {
        let Some(last) = self.last_data_sent.filter(|_| self.config.idle_restart) else {
            return;
        };
        let (idle, rto) = (now.since(last), self.rtt.rto());
        if idle > rto {
            self.window.on_idle(idle.as_nanos() / rto.as_nanos().max(1));
            self.usage.begin(now);
        }
    }
}

/// Segments by which the window may be short of full and still count as used.
const BURST: u32 = 3;
/// Linux's `gso_max_size`, bytes: what goes to an interface in one piece.
const MOST_HELD_BACK: u32 = 65_536;
