//! Round-trip time and retransmission timeout (RFC 9260 section 6.3.1; RFC 6298 section 2).

use crate::time::Duration;

/// Estimator of one path, in integer nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RttEstimator {
    srtt: Option<Duration>,
    rttvar: Duration,
    rto: Duration,
    rto_min: Duration,
    rto_max: Duration,
}

impl RttEstimator {
    /// No measurement yet: the RTO is RTO.Initial (rule C1).
    #[must_use]
    pub fn new(rto_initial: Duration, rto_min: Duration, rto_max: Duration) -> Self {
        Self {
            srtt: None,
            rttvar: Duration::ZERO,
            rto: rto_initial,
            rto_min,
            rto_max,
        }
    }

    /// Takes a measurement of a segment that was sent once only (Karn's algorithm, rule C5, is the caller's).
    pub fn measure(&mut self, r: Duration) {
        match self.srtt {
            // C2
            None => {
                self.srtt = Some(r);
                self.rttvar = r / 2;
            }
            // C3 with RTO.Alpha = 1/8 and RTO.Beta = 1/4; RTTVAR first, from the old SRTT
            Some(srtt) => {
                self.rttvar = self.rttvar - self.rttvar / 4 + srtt.abs_diff(r) / 4;
                self.srtt = Some(srtt - srtt / 8 + r / 8);
            }
        }
        // C6, C7
        let srtt = self.srtt.unwrap_or(r);
        self.rto = (srtt + self.rttvar * 4).clamp(self.rto_min, self.rto_max);
    }

    /// Takes SRTT and RTTVAR from elsewhere.
    pub fn assume(&mut self, srtt: Duration, rttvar: Duration) {
        self.srtt = Some(srtt);
        self.rttvar = rttvar;
        self.rto = (srtt + rttvar * 4).clamp(self.rto_min, self.rto_max);
    }

    /// Doubles the RTO (rule E2), up to RTO.Max. The next measurement undoes it.
    pub fn back_off(&mut self) {
        let doubled = self.rto * 2;
        self.rto = if doubled > self.rto_max {
            self.rto_max
        } else {
            doubled
        };
    }

    /// Retransmission timeout.
    #[must_use]
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// The RTO that the measurements alone give, without RTO.Min and back-off, if there were any.
    #[must_use]
    pub fn measured_rto(&self) -> Option<Duration> {
        self.srtt.map(|srtt| srtt + self.rttvar * 4)
    }

    /// Mean deviation of round-trip times (RFC 9260 section 6.3.1); zero without a measurement.
    #[must_use]
    pub fn rttvar(&self) -> Duration {
        self.rttvar
    }

    /// Smoothed round-trip time, if measured.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> RttEstimator {
        RttEstimator::new(
            Duration::from_secs(3),
            Duration::from_secs(1),
            Duration::from_secs(60),
        )
    }

    #[test]
    fn first_measurement_sets_srtt_and_half_of_it_as_variation() {
        let mut rtt = estimator();
        rtt.measure(Duration::from_millis(800));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(800)));
        assert_eq!(rtt.rto(), Duration::from_millis(800 + 4 * 400));
    }

    #[test]
    fn second_measurement_is_smoothed_with_alpha_and_beta() {
        let mut rtt = estimator();
        rtt.measure(Duration::from_millis(800));
        rtt.measure(Duration::from_millis(1600));
        // RTTVAR = 3/4 * 400 + 1/4 * 800 = 500; SRTT = 7/8 * 800 + 1/8 * 1600 = 900
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(900)));
        assert_eq!(rtt.rto(), Duration::from_millis(900 + 4 * 500));
    }

    #[test]
    fn rto_is_clamped_doubles_up_to_the_maximum_and_recovers_with_a_measurement() {
        let mut rtt = estimator();
        rtt.measure(Duration::from_millis(10));
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_secs(2));
        for _ in 0..10 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Duration::from_secs(60));
        rtt.measure(Duration::from_millis(10));
        assert_eq!(rtt.rto(), Duration::from_secs(1));
    }

    #[test]
    fn what_the_measurements_give_is_known_without_the_limits_and_back_off() {
        let mut rtt = estimator();
        assert_eq!((rtt.measured_rto(), rtt.rttvar()), (None, Duration::ZERO));
        rtt.measure(Duration::from_millis(10));
        rtt.back_off();
        assert_eq!(rtt.measured_rto(), Some(Duration::from_millis(30)));
        assert_eq!(rtt.rttvar(), Duration::from_millis(5));
    }

    #[test]
    fn a_shorter_round_trip_is_a_deviation_too_and_lowers_srtt() {
        let mut rtt = estimator();
        rtt.measure(Duration::from_millis(1600));
        rtt.measure(Duration::from_millis(800));
        // RTTVAR = 3/4 * 800 + 1/4 * 800; SRTT = 7/8 * 1600 + 1/8 * 800
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(1500)));
        assert_eq!(rtt.rto(), Duration::from_millis(1500 + 4 * 800));
    }

    #[test]
    fn an_estimate_from_elsewhere_is_clamped_like_a_measurement() {
        let mut rtt = estimator();
        rtt.assume(Duration::from_millis(500), Duration::from_millis(250));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(500)));
        assert_eq!(rtt.rto(), Duration::from_millis(1500));
        rtt.assume(Duration::from_millis(5), Duration::from_millis(1));
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.assume(Duration::from_secs(50), Duration::from_secs(10));
        assert_eq!(rtt.rto(), Duration::from_secs(60));
    }
}
