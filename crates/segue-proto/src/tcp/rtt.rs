//! The retransmission timeout: RFC 6298, or Linux's way of the same.

use super::config::{Config, RtoRule};
use crate::congestion::RttEstimator;
use crate::time::Duration;

/// Estimator of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    standard: RttEstimator,
    linux: Option<Linux>,
    /// Timeouts in a row: rule 5.5 of RFC 6298 doubles for each.
    backoff: u32,
    rto_min: Duration,
    rto_max: Duration,
    shortest: Option<Duration>,
}

/// Linux's variation, 4 RTTVAR.
#[derive(Clone, Copy, Debug)]
struct Linux {
    mdev: Duration,
    /// Greatest of this round.
    mdev_max: Duration,
    /// What the timeout is made with.
    rttvar: Duration,
    /// Data up to here belongs to this round.
    round_end: u64,
}

impl Rtt {
    pub fn new(config: &Config) -> Self {
        Self {
            // its own floor and ceiling are applied below
            standard: RttEstimator::new(config.rto_initial, Duration::ZERO, config.rto_max),
            linux: (config.rto_rule == RtoRule::Linux).then_some(Linux {
                mdev: Duration::ZERO,
                mdev_max: Duration::ZERO,
                rttvar: Duration::ZERO,
                round_end: 0,
            }),
            backoff: 0,
            rto_min: config.rto_min,
            rto_max: config.rto_max,
            shortest: None,
        }
    }

    /// Takes a measurement of data that was sent once, or whose timestamp tells its transmissions apart. `acked` and
    /// `next` are SND.UNA and SND.NXT.
    pub fn measure(&mut self, r: Duration, acked: u64, next: u64) {
        let r = r.max(GRANULARITY);
        self.shortest = Some(self.shortest.map_or(r, |s| s.min(r)));
        let former = self.standard.srtt();
        self.standard.measure(r);
        self.backoff = 0;
        let floor = self.rto_min;
        let Some(linux) = &mut self.linux else { return };
        let Some(srtt) = former else {
            linux.mdev = r * 2;
            linux.mdev_max = linux.mdev.max(floor);
            linux.rttvar = linux.mdev_max;
            linux.round_end = next;
            return;
        };
        let deviation = srtt.abs_diff(r);
        if r < srtt && deviation > linux.mdev / 4 {
            // shorter than ever expected: the variation grows by an eighth of what it otherwise would
            linux.mdev += (deviation - linux.mdev / 4) / 8;
        } else {
            linux.mdev = linux.mdev - linux.mdev / 4 + deviation;
        }
        if linux.mdev > linux.mdev_max {
            linux.mdev_max = linux.mdev;
            linux.rttvar = linux.rttvar.max(linux.mdev_max);
        }
        if acked > linux.round_end {
            if linux.mdev_max < linux.rttvar {
                linux.rttvar -= (linux.rttvar - linux.mdev_max) / 4;
            }
            linux.round_end = next;
            linux.mdev_max = floor;
        }
    }

    /// What the timeout is made of: SRTT, and what is added to it.
    pub fn estimate(&self) -> Option<(Duration, Duration)> {
        let srtt = self.standard.srtt()?;
        let variation = match &self.linux {
            Some(linux) => linux.rttvar,
            None => self.standard.rto().saturating_sub(srtt),
        };
        Some((srtt, variation))
    }

    /// Takes an estimate from elsewhere, as if it had been measured here.
    pub fn assume(&mut self, srtt: Duration, variation: Duration) {
        self.standard.assume(srtt, variation / 4);
        self.backoff = 0;
        let floor = self.rto_min;
        if let Some(linux) = &mut self.linux {
            linux.mdev = variation;
            linux.mdev_max = variation.max(floor);
            linux.rttvar = linux.mdev_max;
        }
    }

    /// Rule 5.5.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Rule 5.7: the SYN was sent more than once, and its acknowledgement does not say which of them it is for.
    pub fn fall_back(&mut self) {
        if self.standard.srtt().is_none() {
            let initial = self.standard.rto().max(FALLBACK);
            self.standard = RttEstimator::new(initial, Duration::ZERO, self.rto_max);
            self.backoff = 0;
        }
    }

    /// The timeout: rules 2.1 to 2.5.
    pub fn rto(&self) -> Duration {
        let base = match (self.standard.srtt(), &self.linux) {
            (Some(srtt), Some(linux)) => srtt + linux.rttvar,
            (Some(_), None) => self.standard.rto().max(self.rto_min),
            (None, _) => self.standard.rto(),
        };
        (base * (1 << self.backoff.min(16))).clamp(Duration::ZERO, self.rto_max)
    }

    pub fn srtt(&self) -> Option<Duration> {
        self.standard.srtt()
    }

    /// The shortest round trip.
    pub fn shortest(&self) -> Option<Duration> {
        self.shortest
    }
}

/// Rule 5.7.
const FALLBACK: Duration = Duration::from_secs(3);
/// G of RFC 6298, as fine as can be: a round trip is never nothing.
const GRANULARITY: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn linux_adds_at_least_200_ms_to_the_round_trip() {
        let mut rtt = Rtt::new(&Config::default());
        assert_eq!(rtt.rto(), ms(1000));
        for n in 0..200 {
            rtt.measure(ms(40), 10 * n, 10 * n + 10);
        }
        assert_eq!(rtt.rto(), ms(240));
        rtt.back_off();
        assert_eq!(rtt.rto(), ms(480));
        rtt.measure(ms(40), 3000, 3010);
        assert_eq!(rtt.rto(), ms(240));
    }

    #[test]
    fn linux_first_measurement_gives_three_round_trips() {
        let mut rtt = Rtt::new(&Config::default());
        rtt.measure(ms(300), 1, 11);
        assert_eq!(rtt.rto(), ms(900));
    }

    #[test]
    fn an_estimate_from_elsewhere_is_as_good_as_measured() {
        for rto_rule in [RtoRule::Linux, RtoRule::Rfc6298] {
            let config = Config {
                rto_rule,
                ..Config::default()
            };
            let (mut far, mut near) = (Rtt::new(&config), Rtt::new(&config));
            for n in 0..50 {
                far.measure(ms(900 + 10 * (n % 20)), 10 * n, 10 * n + 10);
                near.measure(ms(5), 10 * n, 10 * n + 10);
            }
            near.back_off();
            let (srtt, variation) = far.estimate().unwrap();
            near.assume(srtt, variation);
            assert_eq!(near.srtt(), far.srtt());
            let apart = near.rto().abs_diff(far.rto());
            assert!(apart < ms(1), "{rto_rule:?}: {} and {}", near.rto(), far.rto());
        }
    }

    #[test]
    fn rfc_6298_has_a_floor_under_the_whole() {
        let mut rtt = Rtt::new(&Config {
            rto_rule: RtoRule::Rfc6298,
            rto_min: ms(1000),
            ..Config::default()
        });
        rtt.measure(ms(40), 1, 11);
        assert_eq!(rtt.rto(), ms(1000));
        rtt.measure(ms(4000), 12, 20);
        // SRTT 535, RTTVAR 15 + 990
        assert_eq!(rtt.rto(), ms(535) + ms(4 * 1005));
    }

    #[test]
    fn only_a_measurement_ends_the_back_off() {
        // RFC 6298 section 5, after rule 5.7; Linux's tcp_valid_rtt_meas, alone of all, sets icsk_backoff to zero
        for rto_rule in [RtoRule::Linux, RtoRule::Rfc6298] {
            let mut rtt = Rtt::new(&Config {
                rto_rule,
                ..Config::default()
            });
            rtt.measure(ms(100), 1, 11);
            let rto = rtt.rto();
            rtt.back_off();
            rtt.back_off();
            assert_eq!(rtt.rto(), rto * 4, "{rto_rule:?}");
            rtt.measure(ms(100), 12, 20);
            assert!(rtt.rto() <= rto, "{rto_rule:?}");
        }
    }

    #[test]
    fn after_a_syn_that_was_sent_twice_the_timeout_is_3_s_at_least() {
        // rule 5.7
        for (initial, fallback) in [(1000, 3000), (5000, 5000)] {
            let mut rtt = Rtt::new(&Config {
                rto_initial: ms(initial),
                ..Config::default()
            });
            rtt.back_off();
            rtt.fall_back();
            assert_eq!(rtt.rto(), ms(fallback));
        }
        let mut rtt = Rtt::new(&Config::default());
        rtt.measure(ms(100), 1, 11);
        let rto = rtt.rto();
        rtt.fall_back();
        assert_eq!(rtt.rto(), rto, "there is something better to go by");
    }

    #[test]
    fn a_round_trip_that_gets_shorter_raises_linux_s_timeout_less_than_the_rfc_s() {
        let config = |rto_rule| Config {
            rto_rule,
            ..Config::default()
        };
        let mut linux = Rtt::new(&config(RtoRule::Linux));
        let mut rfc = Rtt::new(&config(RtoRule::Rfc6298));
        for rtt in [&mut linux, &mut rfc] {
            for n in 0..100 {
                rtt.measure(ms(1000), 10 * n, 10 * n + 10);
            }
            rtt.measure(ms(10), 2000, 2010);
        }
        assert!(linux.rto() < rfc.rto(), "{} {}", linux.rto(), rfc.rto());
    }
}
