//! How much of cwnd is used: where it is not used it does not grow, and after a while it falls (RFC 5681 section 4.1,
//! RFC 2861; RFC 7661 has the reasons).

use crate::congestion::CongestionControl;
use crate::tcp::config::WindowUse;
use crate::time::{Duration, Instant};

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
    pub fn note(&mut self, una: u64, next: u64, flight: u32, held_back: bool) {
        if una >= self.window_end || held_back || (!self.held_back && flight > self.greatest) {
            self.held_back = held_back;
            self.greatest = flight;
            self.window_end = next;
        }
    }

    /// Whether cwnd counts as used, where `pipe` bytes were in the network when the acknowledgement at hand came.
    #[inline]
    pub fn is_full(&self, rule: WindowUse, pipe: u32, mss: u32, window: &dyn CongestionControl) -> bool {
        let cwnd = window.cwnd();
        match rule {
            // a window in bytes may end within a segment
            WindowUse::Full => pipe + mss > cwnd,
            WindowUse::ButForBursts => {
                let left = cwnd.saturating_sub(pipe);
                left <= BURST * mss || (u64::from(left) * 3 < u64::from(cwnd) && left < MOST_HELD_BACK)
            }
            WindowUse::LastWindow => {
                self.held_back || (window.in_slow_start() && cwnd < self.greatest.saturating_mul(2))
            }
        }
    }

    /// So much is in flight, and cwnd would allow more. Gives the most that was, if that has lasted for an RTO.
    pub fn note_unfilled(&mut self, now: Instant, flight: u32, rto: Duration) -> Option<u32> {
        self.most_used = self.most_used.max(flight);
        (now.since(self.unused_since) >= rto).then_some(self.most_used)
    }
}

/// Segments by which the window may be short of full and still count as used.
const BURST: u32 = 3;
/// Linux's `gso_max_size`, bytes: what goes to an interface in one piece.
const MOST_HELD_BACK: u32 = 65_536;
