//! Loss models of links.

use crate::scenario::keys::range::proportion;
use schemars::JsonSchema;
use segue_proto::random::Stream;
use segue_proto::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// How a link loses packets.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "model", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossModel {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet on its own with one probability.
    Bernoulli {
        /// Probability that a packet is lost, 0..=1.
        #[schemars(extend("x-range" = proportion()))]
        probability: f64,
    },
    /// Two states with a loss probability each, moving between them before each packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability to move from good to bad.
        #[schemars(extend("x-range" = proportion()))]
        good_to_bad: f64,
        /// Probability to move from bad to good.
        #[schemars(extend("x-range" = proportion()))]
        bad_to_good: f64,
        /// Loss probability in the good state.
        #[serde(default)]
        #[schemars(extend("x-range" = proportion()))]
        loss_good: f64,
        /// Loss probability in the bad state.
        #[serde(default = "certain")]
        #[schemars(extend("x-range" = proportion()))]
        loss_bad: f64,
    },
    /// From a lost packet on, every packet is lost for a while: a fade. The losses of one round-trip time are
    /// correlated, as Padhye et al. (1998) assume.
    Fades {
        /// Probability that a packet outside a fade begins one, and is lost, 0..=1.
        #[schemars(extend("x-range" = proportion()))]
        probability: f64,
        /// Length of a fade.
        duration: Duration,
    },
}

fn certain() -> f64 {
    1.0
}

/// A loss model at work.
#[derive(Clone, Debug)]
pub struct Loss {
    model: LossModel,
    bad: bool,
    fade_ends: Instant,
}

impl Loss {
    /// Begins in the good state.
    #[must_use]
    pub fn new(model: LossModel) -> Self {
        Self {
            model,
            bad: false,
            fade_ends: Instant::ZERO,
        }
    }

    /// Whether the next packet, sent at `now`, is lost.
    pub fn next(&mut self, now: Instant, stream: &mut Stream) -> bool {
        match self.model {
            LossModel::None => false,
            LossModel::Bernoulli { probability } => stream.chance(probability),
            LossModel::Fades {
                probability,
                duration,
            } => {
                let fading = now < self.fade_ends;
                if !fading && stream.chance(probability) {
                    self.fade_ends = now + duration;
                    return true;
                }
                fading
            }
            LossModel::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_good,
                loss_bad,
            } => {
                if stream.chance(if self.bad { bad_to_good } else { good_to_bad }) {
                    self.bad = !self.bad;
                }
                stream.chance(if self.bad { loss_bad } else { loss_good })
            }
        }
    }

    /// Packets that were to be sent after `now` are not: a fade that one of them began has not begun.
    pub fn forget_after(&mut self, now: Instant) {
        if let LossModel::Fades { duration, .. } = self.model
            && self.fade_ends > now + duration
        {
            self.fade_ends = now;
        }
    }

    /// Whether whatever is sent at `now` is lost, once [`next`](Self::next) has said of a packet that is.
    #[must_use]
    pub fn is_total(&self, now: Instant) -> bool {
        match self.model {
            LossModel::None => false,
            LossModel::Bernoulli { probability } => probability >= 1.0,
            LossModel::Fades { .. } => now < self.fade_ends,
            LossModel::GilbertElliott {
                loss_good, loss_bad, ..
            } => (if self.bad { loss_bad } else { loss_good }) >= 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_total_in_a_fade_and_where_it_is_certain() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let is_total = |model, ms: &[u64]| -> Vec<bool> {
            let (mut loss, mut stream) = (Loss::new(model), Stream::new(3, "loss"));
            let then = ms.iter().map(|&ms| {
                let lost = loss.next(at(ms), &mut stream);
                let total = loss.is_total(at(ms));
                assert!(lost || !total);
                total
            });
            then.collect()
        };
        let bernoulli = |probability| LossModel::Bernoulli { probability };
        assert_eq!(is_total(bernoulli(1.0), &[0]), [true]);
        assert_eq!(is_total(bernoulli(0.999), &[0, 1, 2]), [false; 3]);
        let fades = LossModel::Fades {
            probability: 1.0,
            duration: Duration::from_millis(5),
        };
        assert_eq!(is_total(fades, &[0, 4, 5]), [true; 3]);
        let states = |loss_bad| LossModel::GilbertElliott {
            good_to_bad: 1.0,
            bad_to_good: 1.0,
            loss_good: 0.0,
            loss_bad,
        };
        assert_eq!(is_total(states(1.0), &[0, 1, 2]), [true, false, true]);
        assert_eq!(is_total(states(0.5), &[0, 1, 2]), [false; 3]);
        assert_eq!(is_total(LossModel::None, &[0]), [false]);
    }

    #[test]
    fn a_fade_that_a_packet_never_sent_would_have_begun_does_not_begin() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let is_total_at_103 = |forgotten_after| {
            let mut loss = Loss::new(LossModel::Fades {
                probability: 1.0,
                duration: Duration::from_millis(5),
            });
            loss.next(at(100), &mut Stream::new(3, "loss"));
            loss.forget_after(at(forgotten_after));
            loss.is_total(at(103))
        };
        assert_eq!([99, 100].map(is_total_at_103), [false, true]);
    }

    #[test]
    fn gilbert_elliott_loses_its_stationary_share_in_bursts() {
        let model = LossModel::GilbertElliott {
            good_to_bad: 0.01,
            bad_to_good: 0.2,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let mut stream = Stream::new(7, "loss");
        let mut loss = Loss::new(model);
        let n = 400_000;
        let lost: Vec<bool> = (0..n).map(|_| loss.next(Instant::ZERO, &mut stream)).collect();
        // Stationary share of the bad state, in which everything is lost.
        let expected = 0.01 / (0.01 + 0.2);
        let share = lost.iter().filter(|&&l| l).count() as f64 / f64::from(n);
        assert!((share - expected).abs() < 0.003, "{share} against {expected}");
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let mean_burst = share * f64::from(n) / bursts;
        assert!(
            (mean_burst - 5.0).abs() < 0.3,
            "mean burst {mean_burst}, expected 1 / bad_to_good"
        );
    }

    #[test]
    fn a_fade_loses_everything_until_it_ends() {
        let duration = Duration::from_millis(5);
        let mut loss = Loss::new(LossModel::Fades {
            probability: 0.05,
            duration,
        });
        let mut stream = Stream::new(3, "loss");
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let lost: Vec<bool> = (0..100_000).map(|ms| loss.next(at(ms), &mut stream)).collect();
        let begins = lost.windows(2).filter(|w| !w[0] && w[1]).count();
        let losses = lost.iter().filter(|&&l| l).count();
        // Five packets a fade; a fade that follows another at once (one in twenty) is not seen to begin.
        let mean = losses as f64 / begins as f64;
        assert!((mean - 5.0 / 0.95).abs() < 0.1, "{mean} packets a fade");
    }
}
