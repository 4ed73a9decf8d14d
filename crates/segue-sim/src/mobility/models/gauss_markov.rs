//! Gauss-Markov: speed and direction change a little at each step, and remember what they were (Liang and Haas, "Predictive
//! distance-based mobility management for PCS networks", INFOCOM 1999, equation 2; for speed and direction: Camp, Boleng and Davies
//! 2002, section 2.5):
//!
//! ```text
//! s(n) = alpha s(n-1) + (1 - alpha) mean + sqrt(1 - alpha^2) deviation w(n),   w(n) standard normal
//! ```
//!
//! and so for the direction. Both begin in the steady state, which is normal with that mean and deviation; values k steps apart are
//! correlated by alpha^k. A negative speed, which a large deviation gives, is a step backwards.
//!
//! At the border of its area a host is reflected, and its mean direction with it: it walks on in the mirror image of the plane.
//! Speed and direction there know nothing of the border, so that what holds of them without one holds with it.

use super::{Area, Step};
use crate::mobility::Point;
use segue_proto::Duration;
use segue_proto::random::Stream;

/// What the model is given.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameters {
    /// What is not left.
    pub area: Area,
    /// How much of speed and direction is remembered from step to step: 0 for nothing, 1 for all.
    pub alpha: f64,
    /// Mean speed, m/s.
    pub speed: f64,
    /// Standard deviation of the speed, m/s.
    pub speed_deviation: f64,
    /// Mean direction, radians from east to north; nothing for one of its own for each host, drawn uniformly.
    pub direction: Option<f64>,
    /// Standard deviation of the direction, radians.
    pub direction_deviation: f64,
    /// Time between changes.
    pub step: Duration,
}

/// What is remembered of a host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Motion {
    parameters: Parameters,
    mean_direction: f64,
    /// m/s.
    speed: f64,
    /// Radians, in the plane as it was before it was mirrored.
    direction: f64,
    /// Whether x and y are mirrored.
    mirrored: [bool; 2],
    /// What is left of the step.
    left: Duration,
}

impl Parameters {
    /// Where a host begins, with a speed and a direction of the steady state.
    pub(super) fn begin(&self, stream: &mut Stream) -> (Point, Motion) {
        let at = self.area.draw(stream);
        let any = stream.uniform() * core::f64::consts::TAU;
        let mean_direction = self.direction.unwrap_or(any);
        let motion = Motion {
            parameters: *self,
            mean_direction,
            speed: self.speed + self.speed_deviation * stream.normal(),
            direction: mean_direction + self.direction_deviation * stream.normal(),
            mirrored: [false; 2],
            left: self.step,
        };
        (at, motion)
    }

    /// The next value of a process with this mean and deviation.
    fn next(&self, value: f64, mean: f64, deviation: f64, stream: &mut Stream) -> f64 {
        let a = self.alpha;
        a * value + (1.0 - a) * mean + libm::sqrt(1.0 - a * a) * deviation * stream.normal()
    }
}

impl Motion {
    /// To the end of the step, or to the border where that comes first.
    pub(super) fn step(&mut self, at: Point, stream: &mut Stream) -> Step {
        let p = self.parameters;
        if self.left.is_zero() {
            self.speed = p.next(self.speed, p.speed, p.speed_deviation, stream);
            self.direction = p.next(self.direction, self.mean_direction, p.direction_deviation, stream);
            self.left = p.step;
        }
        let along = [libm::cos(self.direction), libm::sin(self.direction)];
        let (least, greatest) = (p.area.least, p.area.greatest);
        let bounds = [(at.x, least.x, greatest.x), (at.y, least.y, greatest.y)];
        let mut velocity = [0.0; 2];
        // the border that is reached first, and after how many seconds
        let mut border: Option<(usize, f64)> = None;
        for (axis, (here, low, high)) in bounds.into_iter().enumerate() {
            let mut v = self.speed * along[axis] * if self.mirrored[axis] { -1.0 } else { 1.0 };
            if (v < 0.0 && here <= low) || (v > 0.0 && here >= high) {
                self.mirrored[axis] = !self.mirrored[axis];
                v = -v;
            }
            velocity[axis] = v;
            let reached = if v > 0.0 {
                (high - here) / v
            } else {
                (low - here) / v
            };
            if v != 0.0 && border.is_none_or(|(_, first)| reached < first) {
                border = Some((axis, reached));
            }
        }
        let left_s = self.left.as_secs_f64();
        let border = border.filter(|(_, reached)| *reached < left_s);
        let seconds = border.map_or(left_s, |(_, reached)| reached);
        let mut to = [at.x + velocity[0] * seconds, at.y + velocity[1] * seconds];
        if let Some((axis, _)) = border {
            // at the border, whatever rounding says
            let (_, low, high) = bounds[axis];
            to[axis] = if velocity[axis] > 0.0 { high } else { low };
        }
        let lasts = match border {
            Some((_, reached)) => Duration::from_secs_f64(reached).min(self.left),
            None => self.left,
        };
        self.left = self.left.saturating_sub(lasts);
        let to = Point { x: to[0], y: to[1] };
        Step {
            to: p.area.nearest(to),
            lasts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Model, Walk};
    use super::*;

    fn parameters() -> Parameters {
        Parameters {
            area: Area {
                least: Point { x: 0.0, y: 0.0 },
                greatest: Point { x: 300.0, y: 200.0 },
            },
            alpha: 0.8,
            speed: 10.0,
            speed_deviation: 2.0,
            direction: Some(0.5),
            direction_deviation: 0.4,
            step: Duration::from_secs(1),
        }
    }

    /// Speeds of one host, second by second: of those that end at a border the pieces are put together.
    fn speeds(p: Parameters, seed: u64, steps: usize) -> Vec<f64> {
        let mut walk = Walk::new(&Model::GaussMarkov(p), Stream::new(seed, "walk"));
        let (mut speeds, mut walked) = (Vec::new(), 0.0);
        while speeds.len() < steps {
            let leg = walk.next_leg();
            let inside = |at: Point| (0.0..=300.0).contains(&at.x) && (0.0..=200.0).contains(&at.y);
            assert!(inside(leg.from) && inside(leg.to), "{leg:?}");
            walked += leg.from.distance(leg.to);
            if leg.end.as_nanos().is_multiple_of(1_000_000_000) {
                speeds.push(core::mem::take(&mut walked));
            }
        }
        speeds
    }

    fn mean(values: impl Iterator<Item = f64>) -> f64 {
        let values: Vec<f64> = values.collect();
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn speed_has_its_mean_and_deviation_and_forgets_by_alpha_at_each_step() {
        let speeds = speeds(parameters(), 1, 40_000);
        let m = mean(speeds.iter().copied());
        // values are correlated: 40,000 of them are as good as 4,400
        assert!((m - 10.0).abs() < 0.12, "{m}");
        let variance = mean(speeds.iter().map(|s| (s - m) * (s - m)));
        assert!((libm::sqrt(variance) - 2.0).abs() < 0.1, "{variance}");
        for k in 1..8_usize {
            let together = speeds.iter().zip(&speeds[k..]).map(|(a, b)| (a - m) * (b - m));
            let correlation = mean(together) / variance;
            let expected = libm::pow(0.8, k as f64);
            assert!(
                (correlation - expected).abs() < 0.06,
                "{k}: {correlation}, {expected}"
            );
        }
    }

    #[test]
    fn speed_is_in_the_steady_state_from_the_beginning_on() {
        let first: Vec<f64> = (0..4000).map(|seed| speeds(parameters(), seed, 1)[0]).collect();
        let m = mean(first.iter().copied());
        let deviation = libm::sqrt(mean(first.iter().map(|s| (s - m) * (s - m))));
        assert!(
            (m - 10.0).abs() < 0.15 && (deviation - 2.0).abs() < 0.12,
            "{m}, {deviation}"
        );
    }

    #[test]
    fn without_deviation_a_host_walks_a_straight_line_and_back_from_the_border() {
        let p = Parameters {
            speed_deviation: 0.0,
            direction_deviation: 0.0,
            direction: Some(0.0),
            ..parameters()
        };
        let mut walk = Walk::new(&Model::GaussMarkov(p), Stream::new(3, "walk"));
        let first = walk.at();
        let mut at = first.x;
        for _ in 0..200 {
            let leg = walk.next_leg();
            // 10 m/s, folded at 0 and 300 m
            let unfolded = (first.x + 10.0 * leg.end.as_nanos() as f64 / 1e9) % 600.0;
            at = if unfolded > 300.0 {
                600.0 - unfolded
            } else {
                unfolded
            };
            assert!((leg.to.x - at).abs() < 1e-3, "{leg:?}: {at}");
            assert_eq!(leg.to.y, first.y);
        }
        assert!(at != first.x);
    }

    #[test]
    fn hosts_without_a_direction_are_everywhere_alike() {
        let p = Parameters {
            direction: None,
            ..parameters()
        };
        for s in [0, 20, 200] {
            let place = |seed| {
                let mut walk = Walk::new(&Model::GaussMarkov(p), Stream::new(seed, "walk"));
                while walk.now.as_nanos() < s * 1_000_000_000 {
                    walk.next_leg();
                }
                walk.at()
            };
            let places: Vec<Point> = (0..4000).map(place).collect();
            let west = mean(places.iter().map(|p| f64::from(p.x < 75.0)));
            let middle = mean(places.iter().map(|p| f64::from((112.5..187.5).contains(&p.x))));
            assert!(
                (west - 0.25).abs() < 0.03 && (middle - 0.25).abs() < 0.03,
                "{west} {middle}"
            );
        }
    }
}
