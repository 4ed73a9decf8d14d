//! Random waypoint (Johnson and Maltz 1996): a host goes to a place drawn uniformly from a rectangle in a straight line at a speed
//! drawn uniformly, pauses there for a time drawn uniformly, and goes on.
//!
//! It begins in the steady state, as Navidi and Camp derive it ("Stationary distributions for the random waypoint mobility model",
//! IEEE Transactions on Mobile Computing 3(1), 2004, section 3). With uniform places at the beginning the average speed would decay
//! for a long time (Yoon, Liu and Noble, INFOCOM 2003), and the hosts would gather in the middle of the area.

use super::{Area, Step};
use crate::mobility::Point;
use segue_proto::Duration;
use segue_proto::l2::DurationRange;
use segue_proto::random::Stream;

/// What the model is given.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameters {
    /// Where waypoints are.
    pub area: Area,
    /// Least and greatest speed, m/s; above zero.
    pub speed: [f64; 2],
    /// Pause at a waypoint.
    pub pause: DurationRange,
}

/// What a host does next.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Next {
    Pause(Duration),
    Go { to: Point, speed: f64 },
}

/// What is remembered of a host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Motion {
    parameters: Parameters,
    next: Next,
}

impl Parameters {
    /// Where a host begins, and what it does there, both in the steady state.
    pub(super) fn begin(&self, stream: &mut Stream) -> (Point, Motion) {
        let pause_s = f64::midpoint(self.pause.min().as_secs_f64(), self.pause.max().as_secs_f64());
        let way_s = self.mean_way() * self.mean_slowness();
        let (at, next) = if stream.chance(pause_s / (pause_s + way_s)) {
            (self.area.draw(stream), Next::Pause(self.rest_of_pause(stream)))
        } else {
            self.under_way(stream)
        };
        let motion = Motion {
            parameters: *self,
            next,
        };
        (at, motion)
    }

    /// Mean distance of two points drawn uniformly from the area, metres (Ghosh 1951).
    fn mean_way(&self) -> f64 {
        let (a, b, d) = (self.area.width(), self.area.height(), self.area.diagonal());
        let (aa, bb) = (a * a, b * b);
        (aa * a / bb + bb * b / aa + d * (3.0 - aa / bb - bb / aa)) / 15.0
            + (bb / a * libm::acosh(d / b) + aa / b * libm::acosh(d / a)) / 6.0
    }

    /// Mean of one by the speed, s/m: a host is under way as long as it is slow.
    fn mean_slowness(&self) -> f64 {
        let [least, most] = self.speed;
        if most > least {
            libm::log(most / least) / (most - least)
        } else {
            1.0 / least
        }
    }

    /// What is left of the pause in which a host is: long ones are met more often, at a moment that is uniform in them.
    fn rest_of_pause(&self, stream: &mut Stream) -> Duration {
        let (min, max) = (self.pause.min().as_secs_f64(), self.pause.max().as_secs_f64());
        let whole = libm::sqrt(min * min + stream.uniform() * (max * max - min * min));
        Duration::from_secs_f64(stream.uniform() * whole)
    }

    /// Long ways are met more often, by their length: pairs of points are drawn until one is kept. So are low speeds, by one by
    /// the speed. The place is uniform on the way.
    fn under_way(&self, stream: &mut Stream) -> (Point, Next) {
        let (from, to) = loop {
            let (from, to) = (self.area.draw(stream), self.area.draw(stream));
            if stream.chance(from.distance(to) / self.area.diagonal()) {
                break (from, to);
            }
        };
        let [least, most] = self.speed;
        let speed = least * libm::pow(most / least, stream.uniform());
        let done = stream.uniform();
        let at = Point {
            x: from.x + done * (to.x - from.x),
            y: from.y + done * (to.y - from.y),
        };
        (at, Next::Go { to, speed })
    }
}

impl Motion {
    pub(super) fn step(&mut self, at: Point, stream: &mut Stream) -> Step {
        let p = &self.parameters;
        match self.next {
            Next::Pause(lasts) => {
                let [least, most] = p.speed;
                self.next = Next::Go {
                    to: p.area.draw(stream),
                    speed: least + stream.uniform() * (most - least),
                };
                Step { to: at, lasts }
            }
            Next::Go { to, speed } => {
                self.next = Next::Pause(p.pause.draw(stream));
                Step {
                    to,
                    lasts: Duration::from_secs_f64(at.distance(to) / speed),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Model, Walk};
    use super::*;
    use segue_proto::Instant;

    const WALKERS: u64 = 4000;

    fn parameters(pause: [u64; 2]) -> Parameters {
        let [min, max] = pause.map(Duration::from_secs);
        Parameters {
            area: Area {
                least: Point { x: 100.0, y: -200.0 },
                greatest: Point { x: 1100.0, y: 300.0 },
            },
            speed: [1.0, 20.0],
            pause: DurationRange::uniform(min, max).unwrap(),
        }
    }

    /// Places and speeds of many walkers at a time.
    fn at(parameters: Parameters, now: Instant) -> Vec<(Point, f64)> {
        let walker = |number| {
            let mut walk = Walk::new(&Model::RandomWaypoint(parameters), Stream::new(number, "walk"));
            loop {
                let leg = walk.next_leg();
                if leg.end > now {
                    let speed = leg.from.distance(leg.to) / leg.end.since(leg.start).as_secs_f64();
                    return (leg.position(now), speed);
                }
            }
        };
        (0..WALKERS).map(walker).collect()
    }

    fn mean(values: impl Iterator<Item = f64>) -> f64 {
        let values: Vec<f64> = values.collect();
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn the_average_speed_is_that_of_the_steady_state_from_the_beginning_on() {
        // (vmax - vmin) / ln(vmax / vmin): 6.34 m/s where a uniform speed has 10.5
        let expected = 19.0 / libm::log(20.0);
        for s in [0, 100, 1000, 5000] {
            let walkers = at(parameters([0, 0]), Instant::ZERO + Duration::from_secs(s));
            let speed = mean(walkers.iter().map(|w| w.1));
            // the deviation of one is 5.0 m/s, of the mean 0.08
            assert!((speed - expected).abs() < 0.3, "{speed} at {s} s");
        }
    }

    #[test]
    fn as_many_pause_at_the_beginning_as_later() {
        let p = parameters([10, 90]);
        let way_s = p.mean_way() * libm::log(20.0) / 19.0;
        let expected = 50.0 / (50.0 + way_s);
        for s in [0, 30, 1000] {
            let walkers = at(p, Instant::ZERO + Duration::from_secs(s));
            let pausing = mean(walkers.iter().map(|w| f64::from(w.1 == 0.0)));
            assert!(
                (pausing - expected).abs() < 0.03,
                "{pausing} of {expected} at {s} s"
            );
        }
    }

    #[test]
    fn places_are_as_far_from_the_middle_at_the_beginning_as_later() {
        for pause in [[0, 0], [10, 90]] {
            let spread = |s| {
                let walkers = at(parameters(pause), Instant::ZERO + Duration::from_secs(s));
                let middle = Point { x: 600.0, y: 50.0 };
                assert!(walkers.iter().all(|(p, _)| (100.0..=1100.0).contains(&p.x)));
                assert!(walkers.iter().all(|(p, _)| (-200.0..=300.0).contains(&p.y)));
                mean(walkers.iter().map(|(p, _)| p.distance(middle)))
            };
            let [first, second, third] = [0, 60, 2000].map(spread);
            // of a uniform place it is 297 m
            assert!((first - third).abs() < 8.0, "{first}, {third}");
            assert!((second - third).abs() < 8.0, "{second}, {third}");
            assert!(first < 285.0, "{first}");
        }
    }

    #[test]
    fn the_mean_distance_of_two_points_is_that_of_the_unit_square() {
        let mut p = parameters([0, 0]);
        p.area = Area {
            least: Point { x: 0.0, y: 0.0 },
            greatest: Point { x: 1.0, y: 1.0 },
        };
        let root = core::f64::consts::SQRT_2;
        let expected = (2.0 + root + 5.0 * libm::log(1.0 + root)) / 15.0;
        assert!((p.mean_way() - expected).abs() < 1e-12);
    }
}
