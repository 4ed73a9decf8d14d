//! Random times and amounts of traffic models.

use crate::random::Stream;
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// How long a state lasts.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "distribution", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Holding {
    /// Exponentially distributed.
    Exponential {
        /// Mean.
        mean: Duration,
    },
    /// Pareto: probability (scale / t)^shape of more than t, for t from the scale on. Below a shape of 2 its variance is
    /// infinite, and many such sources together are self-similar (Willinger et al. 1997).
    Pareto {
        /// Mean.
        mean: Duration,
        /// Shape, above 1.
        shape: f64,
    },
}

/// The distribution of on and off times, as a scenario names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HoldingKind {
    /// Exponentially distributed.
    #[default]
    Exponential,
    /// Pareto, whose tail is heavy: most times are short, and few very long.
    Pareto,
}

impl Holding {
    /// The next one, by inversion of one uniform number.
    pub fn draw(&self, random: &mut Stream) -> Duration {
        let u = 1.0 - random.uniform();
        let seconds = match *self {
            Self::Exponential { mean } => -mean.as_secs_f64() * libm::log(u),
            Self::Pareto { mean, shape } => {
                let scale = mean.as_secs_f64() * (shape - 1.0) / shape;
                scale * libm::pow(u, -1.0 / shape)
            }
        };
        Duration::from_secs_f64(seconds.min(LONGEST_S))
    }

    /// Its mean.
    #[must_use]
    pub const fn mean(&self) -> Duration {
        match *self {
            Self::Exponential { mean } | Self::Pareto { mean, .. } => mean,
        }
    }

    /// Whether there is a distribution with this mean: none of Pareto has one whose shape is not above 1.
    pub(super) fn has_mean(&self) -> bool {
        match *self {
            Self::Exponential { .. } => true,
            Self::Pareto { shape, .. } => shape > 1.0 && shape.is_finite(),
        }
    }
}

/// Longer than any run.
const LONGEST_S: f64 = 1e7;

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(holding: Holding) -> Vec<f64> {
        let mut random = Stream::new(5, "holding");
        (0..200_000)
            .map(|_| holding.draw(&mut random).as_secs_f64())
            .collect()
    }

    fn share_above(times: &[f64], limit: f64) -> f64 {
        times.iter().filter(|t| **t > limit).count() as f64 / times.len() as f64
    }

    #[test]
    fn exponential_times_have_their_mean_and_no_memory() {
        let mean = Duration::from_millis(1500);
        let times = drawn(Holding::Exponential { mean });
        let measured = times.iter().sum::<f64>() / times.len() as f64;
        assert!((measured - 1.5).abs() < 0.015, "{measured}");
        for t in [1.0, 3.0, 6.0] {
            let (is, should) = (share_above(&times, t), libm::exp(-t / 1.5));
            assert!((is - should).abs() < 0.004, "{t}: {is}, {should}");
        }
    }

    #[test]
    fn pareto_times_have_their_least_value_and_their_tail() {
        let (mean, shape) = (Duration::from_secs(3), 1.5);
        let times = drawn(Holding::Pareto { mean, shape });
        // scale: 3 s * 0.5 / 1.5
        let least = times.iter().copied().fold(f64::MAX, f64::min);
        assert!((1.0..1.001).contains(&least), "{least}");
        for t in [2.0, 10.0, 50.0] {
            let (is, should) = (share_above(&times, t), libm::pow(t, -1.5));
            assert!((is - should).abs() < 0.004, "{t}: {is}, {should}");
        }
    }
}
