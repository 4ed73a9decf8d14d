//! Manhattan grid: streets in a grid, at whose crossings a host goes straight on or turns, as in the pedestrian environment of UMTS
//! 30.03 (ETSI TR 101 112 version 3.2.0, annex B: straight on 0.5, left and right 0.25 each; speed normal with 3 km/h and 0.3 m/s,
//! changed with probability 0.2 at position updates 5 m apart).
//!
//! At the border, where not every way goes on, the probabilities of those that do are in proportion; where none is left, a host
//! turns round. A speed below a tenth of the mean is drawn again: of the standard's least, 0 km/h, nobody would ever get on.
//!
//! A host begins at a uniform place of the streets, on its way in either direction. That is the steady state where left and right are
//! alike, but for what the border does to it: its streets are walked a little more. It is at a uniform place between two updates, too, and
//! its speed is one that is met at a moment and not one that is drawn at an update: speeds are drawn for a way, and a host is as
//! long on it as it is slow, so that their density in the steady state is that of the draw divided by the speed (Yoon, Liu and
//! Noble, INFOCOM 2003; Navidi and Camp 2004). The mean speed of hosts is 1 / E\[1/v\] at any time. A host that never changes its speed has
//! one as drawn.

use super::{Area, Step};
use crate::mobility::Point;
use segue_proto::Duration;
use segue_proto::random::Stream;

/// What the model is given.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameters {
    /// Where streets are: the first from south to north is at its western border, the first from west to east at its southern.
    pub area: Area,
    /// Distances of those that go from south to north, and of those that go from west to east, metres.
    pub spacing: [f64; 2],
    /// Mean speed, m/s.
    pub speed: f64,
    /// Standard deviation of the speed, m/s.
    pub speed_deviation: f64,
    /// Probability of another speed at an update.
    pub speed_change: f64,
    /// Way between updates, metres.
    pub update: f64,
    /// Shares of those who go straight on, to the left and to the right.
    pub turns: [f64; 3],
}

/// Draws of a speed, before the mean is taken: a deviation many times the mean gives few above it.
const DRAWS: usize = 100;
/// Part of the mean that is the least speed.
const LEAST: f64 = 0.1;

/// A direction: east, north, west, south.
const WAYS: [[i64; 2]; 4] = [[1, 0], [0, 1], [-1, 0], [0, -1]];

/// What is remembered of a host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Motion {
    parameters: Parameters,
    /// The crossing that it goes to: numbers of streets.
    to: [i64; 2],
    /// Where it goes, of [`WAYS`].
    way: usize,
    /// m/s.
    speed: f64,
    /// Metres until the next update.
    to_update: f64,
}

impl Parameters {
    /// Numbers of the last streets.
    fn last(&self) -> [i64; 2] {
        // what is a whole number of blocks is one in spite of rounding
        let last = |length: f64, spacing: f64| libm::floor(length / spacing + 1e-9) as i64;
        [
            last(self.area.width(), self.spacing[0]),
            last(self.area.height(), self.spacing[1]),
        ]
    }

    fn crossing(&self, number: [i64; 2]) -> Point {
        Point {
            x: self.area.least.x + number[0] as f64 * self.spacing[0],
            y: self.area.least.y + number[1] as f64 * self.spacing[1],
        }
    }

    /// Where a host begins, and where it goes.
    pub(super) fn begin(&self, stream: &mut Stream) -> (Point, Motion) {
        let last = self.last();
        let blocks = [last[0] * (last[1] + 1), last[1] * (last[0] + 1)];
        let lengths = [0, 1].map(|axis| blocks[axis] as f64 * self.spacing[axis]);
        let eastward = stream.uniform() * (lengths[0] + lengths[1]) < lengths[0];
        let axis = usize::from(!eastward);
        let mut from = [0; 2];
        from[axis] = stream.below(last[axis].cast_unsigned()).cast_signed();
        from[1 - axis] = stream.below(last[1 - axis].cast_unsigned() + 1).cast_signed();
        let mut to = from;
        to[axis] += 1;
        let (done, back) = (stream.uniform(), stream.chance(0.5));
        let (a, b) = (self.crossing(from), self.crossing(to));
        let at = Point {
            x: a.x + done * (b.x - a.x),
            y: a.y + done * (b.y - a.y),
        };
        let (speed, to_update) = self.between_updates(stream);
        let motion = Motion {
            parameters: *self,
            to: if back { from } else { to },
            way: if back { axis + 2 } else { axis },
            speed,
            to_update,
        };
        (at, motion)
    }

    /// Speed at a moment of the steady state, and way left until the next update. Speeds are drawn until one is kept, with a
    /// probability by one by the speed.
    fn between_updates(&self, stream: &mut Stream) -> (f64, f64) {
        if self.speed_deviation == 0.0 || self.speed_change == 0.0 {
            return (self.draw_speed(stream), self.update);
        }
        let least = LEAST * self.speed;
        let kept = (0..DRAWS * DRAWS).find_map(|_| {
            let speed = self.draw_speed(stream);
            stream.chance(least / speed).then_some(speed)
        });
        (kept.unwrap_or(self.speed), self.update * (1.0 - stream.uniform()))
    }

    fn draw_speed(&self, stream: &mut Stream) -> f64 {
        if self.speed_deviation == 0.0 {
            return self.speed;
        }
        let mut drawn = (0..DRAWS).map(|_| self.speed + self.speed_deviation * stream.normal());
        drawn
            .find(|speed| *speed >= LEAST * self.speed)
            .unwrap_or(self.speed)
    }
}

impl Motion {
    /// To the next crossing, or to where the speed changes.
    pub(super) fn step(&mut self, at: Point, stream: &mut Stream) -> Step {
        let p = self.parameters;
        let crossing = p.crossing(self.to);
        let whole = at.distance(crossing);
        let (speed, mut walked) = (self.speed, 0.0);
        while p.speed_deviation > 0.0 && walked + self.to_update < whole {
            walked += self.to_update;
            self.to_update = p.update;
            if stream.chance(p.speed_change) {
                self.speed = p.draw_speed(stream);
                let part = walked / whole;
                let to = Point {
                    x: at.x + part * (crossing.x - at.x),
                    y: at.y + part * (crossing.y - at.y),
                };
                return Step {
                    to,
                    lasts: Duration::from_secs_f64(walked / speed),
                };
            }
        }
        self.to_update -= whole - walked;
        self.way = self.turn(stream);
        self.to = next(self.to, self.way);
        Step {
            to: crossing,
            lasts: Duration::from_secs_f64(whole / speed),
        }
    }

    /// Where it goes on from the crossing.
    fn turn(&self, stream: &mut Stream) -> usize {
        let last = self.parameters.last();
        let ways = [self.way, (self.way + 1) % 4, (self.way + 3) % 4];
        let is_street = |way: usize| {
            let to = next(self.to, way);
            (0..=last[0]).contains(&to[0]) && (0..=last[1]).contains(&to[1])
        };
        let share = |turn: usize| {
            if is_street(ways[turn]) {
                self.parameters.turns[turn]
            } else {
                0.0
            }
        };
        let shares = [share(0), share(1), share(2)];
        let mut drawn = stream.uniform() * shares.iter().sum::<f64>();
        for (way, share) in ways.into_iter().zip(shares) {
            if drawn < share {
                return way;
            }
            drawn -= share;
        }
        (self.way + 2) % 4
    }
}

/// The crossing next to one.
fn next(crossing: [i64; 2], way: usize) -> [i64; 2] {
    let [dx, dy] = WAYS[way];
    [crossing[0] + dx, crossing[1] + dy]
}

#[cfg(test)]
mod tests {
    use super::super::{Model, Walk};
    use super::*;
    use crate::mobility::Leg;
    use segue_proto::Instant;

    fn parameters() -> Parameters {
        Parameters {
            area: Area {
                least: Point { x: -50.0, y: 10.0 },
                // half a block too wide
                greatest: Point { x: 1190.0, y: 810.0 },
            },
            spacing: [80.0, 50.0],
            speed: 3.0 / 3.6,
            speed_deviation: 0.3,
            speed_change: 0.2,
            update: 5.0,
            turns: [0.5, 0.25, 0.25],
        }
    }

    fn legs(p: Parameters, seed: u64, count: usize) -> Vec<Leg> {
        let mut walk = Walk::new(&Model::Manhattan(p), Stream::new(seed, "walk"));
        (0..count).map(|_| walk.next_leg()).collect()
    }

    fn near(value: f64, multiple_of: f64) -> bool {
        let over = value - multiple_of * libm::round(value / multiple_of);
        over.abs() < 1e-6
    }

    #[test]
    fn a_walker_is_always_on_a_street() {
        for seed in 0..50 {
            for leg in legs(parameters(), seed, 500) {
                let middle = leg.position(leg.start + (leg.end.since(leg.start)) / 2);
                for at in [leg.from, middle, leg.to] {
                    assert!((-50.0 - 1e-6..=1150.0 + 1e-6).contains(&at.x), "{at:?}");
                    assert!((10.0 - 1e-6..=810.0 + 1e-6).contains(&at.y), "{at:?}");
                    assert!(near(at.x + 50.0, 80.0) || near(at.y - 10.0, 50.0), "{at:?}");
                }
                let straight = leg.from.x == leg.to.x || leg.from.y == leg.to.y;
                assert!(straight || near(leg.from.distance(leg.to), 0.001), "{leg:?}");
            }
        }
    }

    #[test]
    fn turns_have_their_shares_at_crossings_with_four_ways() {
        for turns in [[0.5, 0.25, 0.25], [0.2, 0.7, 0.1]] {
            let p = Parameters {
                speed_deviation: 0.0,
                turns,
                ..parameters()
            };
            let mut counts = [0_u32; 4];
            for seed in 0..40 {
                let legs = legs(p, seed, 2000);
                for pair in legs.windows(2) {
                    let at = pair[0].to;
                    let inner = at.x > -40.0 && at.x < 1140.0 && at.y > 20.0 && at.y < 800.0;
                    if !inner {
                        continue;
                    }
                    let along = |leg: &Leg| (leg.to.x - leg.from.x, leg.to.y - leg.from.y);
                    let (a, b) = (along(&pair[0]), along(&pair[1]));
                    let (ahead, left) = (a.0 * b.0 + a.1 * b.1, a.0 * b.1 - a.1 * b.0);
                    let turn = if ahead.abs() > left.abs() {
                        if ahead > 0.0 { 0 } else { 3 }
                    } else if left > 0.0 {
                        1
                    } else {
                        2
                    };
                    counts[turn] += 1;
                }
            }
            let all: u32 = counts.iter().sum();
            assert!(all > 30_000 && counts[3] == 0, "{counts:?}");
            for (count, expected) in counts.into_iter().zip(turns) {
                let share = f64::from(count) / f64::from(all);
                assert!((share - expected).abs() < 0.01, "{counts:?}");
            }
        }
    }

    #[test]
    fn who_goes_straight_on_turns_round_at_the_border() {
        let p = Parameters {
            turns: [1.0, 0.0, 0.0],
            ..parameters()
        };
        let legs = legs(p, 7, 3000);
        let moves_in_x = |leg: &Leg| (leg.to.x - leg.from.x).abs() > (leg.to.y - leg.from.y).abs();
        let first = moves_in_x(&legs[0]);
        assert!(legs.iter().all(|leg| moves_in_x(leg) == first));
        let far = legs.iter().map(|leg| leg.from.distance(leg.to)).sum::<f64>();
        assert!(far > 2.0 * 1240.0, "{far}");
    }

    #[test]
    fn speeds_are_normal_by_the_way_walked_and_change_at_updates() {
        let p = parameters();
        let mut walked_at: Vec<(f64, f64)> = Vec::new();
        for seed in 0..100 {
            walked_at.extend(legs(p, seed, 1000).iter().map(|leg| {
                let metres = leg.from.distance(leg.to);
                (metres, metres / leg.end.since(leg.start).as_secs_f64())
            }));
        }
        let way: f64 = walked_at.iter().map(|(m, _)| m).sum();
        let mean = walked_at.iter().map(|(m, v)| m * v).sum::<f64>() / way;
        let square = walked_at
            .iter()
            .map(|(m, v)| m * (v - mean) * (v - mean))
            .sum::<f64>()
            / way;
        // what is below a tenth of the mean, 0.6 % of them, is drawn again
        assert!((mean - 0.8375).abs() < 0.01, "{mean}");
        assert!((libm::sqrt(square) - 0.295).abs() < 0.01, "{square}");
        assert!(walked_at.iter().all(|(_, v)| *v > 0.083));
        // one of five updates, 5 m apart, changes it
        let changes = walked_at
            .windows(2)
            .filter(|w| (w[0].1 - w[1].1).abs() > 1e-6)
            .count();
        let metres = way / changes as f64;
        assert!((metres - 25.0).abs() < 1.0, "{metres}");
    }

    /// Speeds of many walkers, then and two seconds later.
    fn speeds_at(p: Parameters, s: u64) -> Vec<(f64, f64)> {
        let then = Instant::ZERO + Duration::from_secs(s);
        let walker = |seed| {
            let mut walk = Walk::new(&Model::Manhattan(p), Stream::new(seed, "walk"));
            let mut at = |now| {
                let leg = core::iter::from_fn(|| Some(walk.next_leg())).find(|leg| leg.end > now);
                let leg = leg.expect("it goes on for ever");
                (
                    leg.from.distance(leg.to) / leg.end.since(leg.start).as_secs_f64(),
                    leg,
                )
            };
            let (speed, leg) = at(then);
            let soon = then + Duration::from_secs(2);
            (speed, if leg.end > soon { speed } else { at(soon).0 })
        };
        (0..4000).map(walker).collect()
    }

    #[test]
    fn speeds_are_those_of_the_steady_state_from_the_beginning_on() {
        let p = Parameters {
            speed_deviation: 0.4,
            ..parameters()
        };
        // the mean of one by the speed over draws, by sums over what can be drawn
        let steps = (0..10_000).map(|n| LEAST * p.speed + (f64::from(n) + 0.5) * 4.0e-4);
        let (mut draws, mut slowness) = (0.0, 0.0);
        for speed in steps {
            let off = (speed - p.speed) / p.speed_deviation;
            let density = libm::exp(-off * off / 2.0);
            (draws, slowness) = (draws + density, slowness + density / speed);
        }
        let expected = draws / slowness;
        assert!(expected < 0.8 * p.speed, "{expected}");
        for s in [0, 3, 10, 30, 300, 2000] {
            let speeds = speeds_at(p, s);
            let count = speeds.len() as f64;
            let mean = speeds.iter().map(|(speed, _)| speed).sum::<f64>() / count;
            // the deviation of one is 0.37 m/s, of the mean 0.006
            assert!((mean - expected).abs() < 0.02, "{mean} of {expected} at {s} s");
            // an update every 5 m, and a change at one of five; who turns in between has the same to a rounding
            let changes = speeds.iter().filter(|(a, b)| (a - b).abs() > 1e-6).count() as f64;
            let share = 2.0 * expected / 5.0 * 0.2;
            assert!(
                (changes / count - share).abs() < 0.012,
                "{changes} of {count} at {s} s"
            );
        }
    }

    #[test]
    fn who_never_changes_the_speed_has_one_as_drawn() {
        let p = Parameters {
            speed_change: 0.0,
            ..parameters()
        };
        let speeds = speeds_at(p, 0);
        let mean = speeds.iter().map(|(speed, _)| speed).sum::<f64>() / speeds.len() as f64;
        assert!((mean - 0.8375).abs() < 0.02, "{mean}");
    }

    #[test]
    fn hosts_begin_on_all_streets_alike() {
        let places: Vec<Point> = (0..4000)
            .map(|seed| Walk::new(&Model::Manhattan(parameters()), Stream::new(seed, "walk")).at())
            .collect();
        // 17 streets of 1200 m go from west to east, 16 of 800 m from south to north
        let eastward = places.iter().filter(|p| near(p.y - 10.0, 50.0)).count() as f64 / 4000.0;
        let expected = 17.0 * 1200.0 / (17.0 * 1200.0 + 16.0 * 800.0);
        assert!((eastward - expected).abs() < 0.03, "{eastward}, {expected}");
        let north = places.iter().filter(|p| p.y > 410.0).count() as f64 / 4000.0;
        assert!((north - 0.5).abs() < 0.05, "{north}");
    }
}
