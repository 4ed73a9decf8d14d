//! The SCTP congestion window (RFC 9260 section 7.2), in the three generations of the specification.
//!
//! Sizes are those of DATA chunks with header and padding, as RFC 9260 section 7.2.1 states; the same is used for the
//! older profiles, whose text speaks of "the total size of the DATA chunk(s)". Exception: duplicate TSNs that a SACK
//! reports are not added to partial_bytes_acked (RFC 9260 section 7.2.2), because their sizes are no longer known.

use super::{Acked, CongestionControl, Gain, Loss, Prior};
use crate::sctp::Profile;

/// The constants in which the generations differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowRules {
    profile: Profile,
    /// Unit of increase: the path MTU (RFC 2960, 4960) or the path maximum DATA chunk size (RFC 9260).
    segment: u32,
    /// cwnd at first, in units of increase, instead of what the generation says.
    initial: Option<u32>,
}

impl WindowRules {
    /// Rules of `profile` for a path of `pmtu` bytes whose DATA chunks are at most `pmdcs` bytes, header included.
    #[must_use]
    pub fn new(profile: Profile, pmtu: u32, pmdcs: u32) -> Self {
        let segment = if profile == Profile::Rfc9260 { pmdcs } else { pmtu };
        Self {
            profile,
            segment,
            initial: None,
        }
    }

    /// cwnd begins with so many units of increase, where given, whatever the generation has.
    #[must_use]
    pub fn with_initial(mut self, segments: Option<u32>) -> Self {
        self.initial = segments;
        self
    }

    /// Unit of increase, bytes.
    #[must_use]
    pub fn segment(&self) -> u32 {
        self.segment
    }

    /// cwnd before the first transmission: RFC 2960 section 7.2.1, RFC 4960 section 7.2.1, RFC 9260 section 7.2.1.
    fn initial(&self) -> u32 {
        let s = self.segment;
        if let Some(segments) = self.initial {
            return segments.max(1).saturating_mul(s);
        }
        match self.profile {
            Profile::Rfc2960 => 2 * s,
            Profile::Rfc4960 => (4 * s).min((2 * s).max(4380)),
            Profile::Rfc9260 => (4 * s).min((2 * s).max(4404)),
        }
    }

    /// Floor of ssthresh after a loss (section 7.2.3), and of cwnd when idle (section 7.2.1).
    fn floor(&self) -> u32 {
        match self.profile {
            Profile::Rfc2960 => 2 * self.segment,
            Profile::Rfc4960 | Profile::Rfc9260 => 4 * self.segment,
        }
    }
}

/// cwnd, ssthresh and partial_bytes_acked of one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SctpWindow {
    rules: WindowRules,
    cwnd: u32,
    ssthresh: u32,
    partial_bytes_acked: u32,
}

impl SctpWindow {
    /// A fresh path. `ssthresh` starts at the peer's advertised window in the older generations (RFC 2960 and 4960
    /// section 7.2.1 name it as the example), and as high as can be in RFC 9260.
    #[must_use]
    pub fn new(rules: WindowRules, peer_rwnd: u32) -> Self {
        let ssthresh = if rules.profile == Profile::Rfc9260 {
            u32::MAX
        } else {
            peer_rwnd
        };
        Self {
            rules,
            cwnd: rules.initial(),
            ssthresh,
            partial_bytes_acked: 0,
        }
    }

    /// The path MTU changed: the unit of increase and the floors with it. The window stays, in bytes.
    pub fn set_rules(&mut self, rules: WindowRules) {
        self.rules = rules;
    }

    /// Unit of increase, bytes.
    #[must_use]
    pub fn segment(&self) -> u32 {
        self.rules.segment
    }

    /// [`on_ack`](CongestionControl::on_ack) of a path whose window is coupled to those of others: it opens by `gain` of
    /// what it would alone. A window that shrinks keeps one segment.
    pub fn on_ack_coupled(&mut self, acked: Acked, gain: Gain) {
        let rules = self.rules;
        // RFC 2960 knows no fast recovery
        let held = acked.in_fast_recovery && rules.profile != Profile::Rfc2960;
        if self.cwnd <= self.ssthresh {
            // section 7.2.1: cumulative TSN ack advanced, cwnd fully utilised, not in fast recovery
            if acked.cumulative_advanced && acked.window_was_full && !held {
                self.open(acked.bytes.min(rules.segment), gain.slow_start);
            }
        } else if acked.cumulative_advanced || rules.profile == Profile::Rfc9260 {
            // section 7.2.2
            self.partial_bytes_acked = self.partial_bytes_acked.saturating_add(acked.bytes);
            if acked.window_was_full {
                if self.partial_bytes_acked >= self.cwnd && !held {
                    self.partial_bytes_acked -= self.cwnd;
                    self.open(rules.segment, gain.avoidance);
                }
            } else if rules.profile == Profile::Rfc9260 {
                self.partial_bytes_acked = self.partial_bytes_acked.min(self.cwnd);
            }
        }
        if acked.flight_empty {
            self.partial_bytes_acked = 0;
        }
    }

    /// A loss after which cwnd and ssthresh are what a coupling says
    /// ([`ssthresh_after_loss`](super::Coupling::ssthresh_after_loss)), one segment at least.
    pub fn cut_to(&mut self, ssthresh: u32) {
        self.ssthresh = ssthresh.max(self.rules.segment);
        self.cwnd = self.ssthresh;
        self.partial_bytes_acked = 0;
    }

    /// Opens the window by `share` of `bytes`.
    #[inline]
    fn open(&mut self, bytes: u32, share: f64) {
        let opened = if share == 1.0 {
            i64::from(bytes)
        } else {
            libm::round(f64::from(bytes) * share) as i64
        };
        let cwnd = (i64::from(self.cwnd) + opened).max(i64::from(self.rules.segment.min(self.cwnd)));
        self.cwnd = u32::try_from(cwnd).unwrap_or(u32::MAX);
    }

    fn halve(&mut self) {
        self.ssthresh = (self.cwnd / 2).max(self.rules.floor());
        self.partial_bytes_acked = 0;
    }
}

impl CongestionControl for SctpWindow {
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn on_ack(&mut self, acked: Acked) {
        self.on_ack_coupled(acked, Gain::WHOLE);
    }

    /// Section 7.2.3: ssthresh = max(cwnd / 2, floor), cwnd = ssthresh.
    fn on_loss(&mut self, _loss: Loss) {
        self.halve();
        self.cwnd = self.ssthresh;
    }

    /// Section 7.2.3: ssthresh as for a loss, cwnd = 1 segment.
    fn on_rto(&mut self, _loss: Loss) {
        self.halve();
        self.cwnd = self.rules.segment;
    }

    /// Section 7.2.1: cwnd = max(cwnd / 2, floor) once per RTO; RFC 9260 first remembers cwnd in ssthresh.
    fn on_idle(&mut self, periods: u64) {
        let floor = self.rules.floor();
        if periods == 0 || self.cwnd <= floor {
            return;
        }
        if self.rules.profile == Profile::Rfc9260 {
            self.ssthresh = self.cwnd;
        }
        self.cwnd = self
            .cwnd
            .checked_shr(periods.min(31) as u32)
            .unwrap_or(0)
            .max(floor);
    }

    /// Slow start from one segment; ssthresh stays.
    fn restart(&mut self) {
        self.cwnd = self.rules.segment;
        self.partial_bytes_acked = 0;
    }

    fn on_credit(&mut self) {
        if self.cwnd <= self.ssthresh {
            self.cwnd = self.cwnd.saturating_add(self.rules.segment);
        }
    }

    /// SCTP takes no loss back; this is how it would.
    fn on_undo(&mut self, prior: Prior) {
        self.cwnd = self.cwnd.max(prior.cwnd);
        self.ssthresh = self.ssthresh.max(prior.ssthresh);
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd;
    }

    fn set_ssthresh(&mut self, ssthresh: u32) {
        self.ssthresh = ssthresh;
    }

    /// The unit of increase; [`set_rules`](Self::set_rules) works it out from an MTU.
    fn set_segment(&mut self, segment: u32) {
        self.rules.segment = segment;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;

    fn window(profile: Profile) -> SctpWindow {
        SctpWindow::new(WindowRules::new(profile, 1500, 1448), 100_000)
    }

    fn full(bytes: u32) -> Acked {
        Acked {
            bytes,
            cumulative_advanced: true,
            window_was_full: true,
            in_fast_recovery: false,
            open: true,
            flight_empty: false,
            now: Instant::ZERO,
            round_start: false,
            una: 0,
            next: 0,
            rtt: None,
            srtt: None,
        }
    }

    fn loss() -> Loss {
        Loss {
            now: Instant::ZERO,
            flightsize: 0,
            cut_already: false,
        }
    }

    #[test]
    fn initial_cwnd_follows_the_profile() {
        assert_eq!(window(Profile::Rfc2960).cwnd(), 3000);
        assert_eq!(window(Profile::Rfc4960).cwnd(), 4380);
        assert_eq!(window(Profile::Rfc9260).cwnd(), 4404);
        let ten = WindowRules::new(Profile::Rfc4960, 1500, 1448).with_initial(Some(10));
        assert_eq!(SctpWindow::new(ten, 100_000).cwnd(), 15_000);
        let small = SctpWindow::new(WindowRules::new(Profile::Rfc9260, 576, 524), 100_000);
        assert_eq!(small.cwnd(), 4 * 524);
    }

    #[test]
    fn slow_start_grows_by_at_most_one_segment_and_only_when_the_window_was_full() {
        let mut w = window(Profile::Rfc4960);
        w.on_ack(full(3000));
        assert_eq!(w.cwnd(), 4380 + 1500);
        w.on_ack(full(100));
        assert_eq!(w.cwnd(), 4380 + 1600);
        for refused in [
            Acked {
                window_was_full: false,
                ..full(1500)
            },
            Acked {
                cumulative_advanced: false,
                ..full(1500)
            },
            Acked {
                in_fast_recovery: true,
                ..full(1500)
            },
        ] {
            w.on_ack(refused);
            assert_eq!(w.cwnd(), 4380 + 1600);
        }
    }

    #[test]
    fn rfc2960_grows_in_what_later_became_fast_recovery() {
        let mut w = window(Profile::Rfc2960);
        w.on_ack(Acked {
            in_fast_recovery: true,
            ..full(1500)
        });
        assert_eq!(w.cwnd(), 4500);
    }

    #[test]
    fn congestion_avoidance_adds_one_segment_per_window_acknowledged() {
        let mut w = window(Profile::Rfc9260);
        w.cwnd = 14_480;
        w.ssthresh = 5000;
        for _ in 0..4 {
            w.on_ack(full(2896));
            assert_eq!(w.cwnd(), 14_480);
        }
        w.on_ack(full(2896));
        assert_eq!(w.cwnd(), 14_480 + 1448);
        assert_eq!(w.partial_bytes_acked, 0);
    }

    #[test]
    fn losses_halve_with_the_profiles_floor_and_timeouts_leave_one_segment() {
        for (profile, floor, one) in [
            (Profile::Rfc2960, 3000, 1500),
            (Profile::Rfc4960, 6000, 1500),
            (Profile::Rfc9260, 5792, 1448),
        ] {
            let mut w = window(profile);
            w.cwnd = 40_000;
            w.on_loss(loss());
            assert_eq!((w.cwnd(), w.ssthresh()), (20_000, 20_000));
            w.on_rto(loss());
            assert_eq!((w.cwnd(), w.ssthresh()), (one, 10_000));
            w.on_rto(loss());
            assert_eq!((w.cwnd(), w.ssthresh()), (one, floor));
        }
    }

    #[test]
    fn idle_window_halves_once_per_rto_down_to_the_floor() {
        let mut w = window(Profile::Rfc4960);
        w.cwnd = 40_000;
        w.on_idle(1);
        assert_eq!(w.cwnd(), 20_000);
        w.on_idle(50);
        assert_eq!(w.cwnd(), 6000);
        w.cwnd = 1500;
        w.on_idle(3);
        assert_eq!(w.cwnd(), 1500);
    }

    /// In congestion avoidance, with part of a window acknowledged.
    fn avoiding(profile: Profile) -> SctpWindow {
        let mut w = window(profile);
        w.cwnd = 10_000;
        w.ssthresh = 5000;
        w.on_ack(full(9000));
        assert_eq!((w.cwnd(), w.partial_bytes_acked), (10_000, 9000));
        w
    }

    #[test]
    fn cwnd_at_ssthresh_is_still_in_slow_start() {
        // section 7.2.1: less than or equal to
        let mut w = window(Profile::Rfc9260);
        w.set_ssthresh(4404);
        w.on_ack(full(1448));
        assert_eq!((w.cwnd(), w.partial_bytes_acked), (4404 + 1448, 0));
        w.on_ack(full(1448));
        assert_eq!((w.cwnd(), w.partial_bytes_acked), (4404 + 1448, 1448));
    }

    #[test]
    fn what_was_acknowledged_beyond_a_window_counts_for_the_next_one() {
        // section 7.2.2: partial_bytes_acked - cwnd, of the window before it was opened
        let mut w = avoiding(Profile::Rfc9260);
        w.on_ack(full(1700));
        assert_eq!((w.cwnd(), w.partial_bytes_acked), (11_448, 700));
    }

    #[test]
    fn a_window_that_was_not_full_does_not_open_and_saves_up_no_more_than_itself() {
        // RFC 9260 section 7.2.2; the older text only does not open it
        for (profile, saved) in [(Profile::Rfc4960, 12_000), (Profile::Rfc9260, 10_000)] {
            let mut w = avoiding(profile);
            w.on_ack(Acked {
                window_was_full: false,
                ..full(3000)
            });
            assert_eq!((w.cwnd(), w.partial_bytes_acked), (10_000, saved), "{profile:?}");
        }
    }

    #[test]
    fn gap_reports_count_in_congestion_avoidance_since_rfc_9260() {
        for (profile, counted) in [(Profile::Rfc4960, 9000), (Profile::Rfc9260, 9500)] {
            let mut w = avoiding(profile);
            w.on_ack(Acked {
                cumulative_advanced: false,
                ..full(500)
            });
            assert_eq!(w.partial_bytes_acked, counted, "{profile:?}");
        }
    }

    #[test]
    fn fast_recovery_holds_the_window_in_congestion_avoidance_too() {
        let mut w = avoiding(Profile::Rfc9260);
        w.on_ack(Acked {
            in_fast_recovery: true,
            ..full(3000)
        });
        assert_eq!((w.cwnd(), w.partial_bytes_acked), (10_000, 12_000));
    }

    #[test]
    fn what_is_saved_up_is_dropped_when_all_is_acknowledged_and_at_losses() {
        // section 7.2.2 and 7.2.3
        let mut w = avoiding(Profile::Rfc9260);
        w.on_ack(Acked {
            flight_empty: true,
            ..full(500)
        });
        assert_eq!(w.partial_bytes_acked, 0);
        for lose in [
            SctpWindow::on_loss,
            SctpWindow::on_rto,
            |w: &mut SctpWindow, _| w.restart(),
            |w: &mut SctpWindow, _| w.cut_to(9000),
        ] as [fn(&mut SctpWindow, Loss); 4]
        {
            let mut w = avoiding(Profile::Rfc9260);
            lose(&mut w, loss());
            assert_eq!(w.partial_bytes_acked, 0);
        }
    }

    #[test]
    fn a_window_that_is_cut_by_others_keeps_a_segment() {
        let mut w = avoiding(Profile::Rfc9260);
        w.cut_to(9000);
        assert_eq!((w.cwnd(), w.ssthresh()), (9000, 9000));
        w.cut_to(10);
        assert_eq!((w.cwnd(), w.ssthresh()), (1448, 1448));
    }

    #[test]
    fn a_path_used_again_begins_with_one_segment() {
        let mut w = avoiding(Profile::Rfc4960);
        w.restart();
        assert_eq!((w.cwnd(), w.ssthresh()), (1500, 5000));
        w.on_credit();
        assert_eq!(w.cwnd(), 3000);
        w.set_cwnd(5000);
        w.on_credit();
        assert_eq!(w.cwnd(), 6500, "at ssthresh it is still slow start");
        w.on_credit();
        assert_eq!(w.cwnd(), 6500);
    }

    #[test]
    fn rfc_9260_remembers_in_ssthresh_what_an_idle_window_was() {
        // section 7.2.1
        for (profile, ssthresh) in [(Profile::Rfc4960, 5000), (Profile::Rfc9260, 10_000)] {
            let mut w = avoiding(profile);
            w.on_idle(0);
            assert_eq!((w.cwnd(), w.ssthresh()), (10_000, 5000));
            w.on_idle(1);
            let floor = w.rules.floor();
            assert_eq!((w.cwnd(), w.ssthresh()), (floor.max(5000), ssthresh));
            w.on_idle(1);
            assert_eq!(
                (w.cwnd(), w.ssthresh()),
                (floor, ssthresh),
                "at the floor nothing changes"
            );
        }
    }

    #[test]
    fn a_new_mtu_changes_the_unit_and_not_the_window() {
        let mut w = window(Profile::Rfc4960);
        w.set_rules(WindowRules::new(Profile::Rfc4960, 1280, 1228));
        assert_eq!((w.cwnd(), w.segment()), (4380, 1280));
        w.on_ack(full(5000));
        assert_eq!(w.cwnd(), 4380 + 1280);
        w.set_segment(1000);
        w.on_rto(loss());
        assert_eq!((w.cwnd(), w.segment()), (1000, 1000));
    }

    #[test]
    fn what_is_taken_back_never_makes_the_window_smaller() {
        let mut w = window(Profile::Rfc9260);
        let prior = |cwnd, ssthresh| Prior { cwnd, ssthresh };
        w.on_rto(loss());
        w.on_undo(prior(9000, 20_000));
        assert_eq!((w.cwnd(), w.ssthresh()), (9000, 20_000));
        w.on_undo(prior(8000, 10_000));
        assert_eq!((w.cwnd(), w.ssthresh()), (9000, 20_000));
    }
}
