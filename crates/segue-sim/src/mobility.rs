//! Where a mobile host is, and when it enters and leaves circles: piecewise linear motion, solved in closed form.

pub mod files;
pub mod geography;
pub mod models;

use segue_proto::{Duration, Instant};

/// A point in the plane, metres.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Point {
    /// East, metres.
    pub x: f64,
    /// North, metres.
    pub y: f64,
}

impl Point {
    /// Distance, metres.
    #[must_use]
    pub fn distance(self, other: Self) -> f64 {
        libm::hypot(self.x - other.x, self.y - other.y)
    }
}

/// A straight piece of a trajectory at constant speed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Leg {
    pub start: Instant,
    pub end: Instant,
    pub from: Point,
    pub to: Point,
}

/// A trajectory from time zero to the end of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct Trajectory {
    legs: Vec<Leg>,
}

/// A time during which the host is inside a circle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stay {
    /// Enters; zero if it begins inside.
    pub enter: Instant,
    /// Leaves; `Instant::MAX` if it does not leave before the end.
    pub leave: Instant,
}

impl Trajectory {
    /// Stands still.
    #[must_use]
    pub fn fixed(at: Point) -> Self {
        Self {
            legs: vec![Leg {
                start: Instant::ZERO,
                end: Instant::MAX,
                from: at,
                to: at,
            }],
        }
    }

    /// Waits at `a` until `start`, then moves to `b` and back to `a`, over and over, at `speed` m/s until `end`.
    #[must_use]
    pub fn back_and_forth(a: Point, b: Point, speed: f64, start: Instant, end: Instant) -> Self {
        let mut points = vec![b, a];
        let laps = (end.since(start).as_secs_f64() * speed / a.distance(b).max(1e-9)) as usize / 2 + 1;
        points = points
            .iter()
            .copied()
            .cycle()
            .take(2 * laps.min(1_000_000))
            .collect();
        Self::waypoints(a, &points, speed, start)
    }

    /// Waits at `from` until `start`, then visits the points in order at `speed` m/s and stays at the last.
    #[must_use]
    pub fn waypoints(from: Point, points: &[Point], speed: f64, start: Instant) -> Self {
        let mut legs = Vec::with_capacity(points.len() + 2);
        if start > Instant::ZERO {
            legs.push(Leg {
                start: Instant::ZERO,
                end: start,
                from,
                to: from,
            });
        }
        let (mut at, mut walked) = (from, 0.0);
        let mut now = start;
        for &next in points {
            // Times follow from the whole distance walked, so that rounding does not add up over laps.
            walked += at.distance(next);
            let end = start + Duration::from_secs_f64(walked / speed);
            if end > now {
                legs.push(Leg {
                    start: now,
                    end,
                    from: at,
                    to: next,
                });
            }
            (at, now) = (next, end);
        }
        legs.push(Leg {
            start: now,
            end: Instant::MAX,
            from: at,
            to: at,
        });
        Self { legs }
    }

    /// Is at each point at its time, on straight lines in between; before the first at it, and after the last.
    #[must_use]
    pub fn timed(points: &[(Instant, Point)]) -> Self {
        let Some(&(_, first)) = points.first() else {
            return Self::fixed(Point::default());
        };
        let (mut now, mut at) = (Instant::ZERO, first);
        let mut legs = Vec::with_capacity(points.len() + 1);
        for &(time, next) in points {
            if time > now {
                legs.push(Leg {
                    start: now,
                    end: time,
                    from: at,
                    to: next,
                });
            }
            (now, at) = (time, next);
        }
        legs.push(Leg {
            start: now,
            end: Instant::MAX,
            from: at,
            to: at,
        });
        Self { legs }
    }

    /// Position at a time, metres.
    #[must_use]
    pub fn position(&self, now: Instant) -> Point {
        let index = self
            .legs
            .partition_point(|leg| leg.end <= now)
            .min(self.legs.len() - 1);
        self.legs[index].position(now)
    }

    /// The times before `end` during which the host is within `radius` metres of `centre`, in order.
    #[must_use]
    pub fn stays_within(&self, centre: Point, radius: f64, end: Instant) -> Vec<Stay> {
        let mut stays: Vec<Stay> = Vec::new();
        for leg in &self.legs {
            if leg.start > end {
                break;
            }
            let Some((enter, leave)) = leg.time_within(centre, radius) else {
                continue;
            };
            match stays.last_mut() {
                // A stay goes on across the joint of two legs.
                Some(last) if last.leave >= enter => last.leave = last.leave.max(leave),
                _ => stays.push(Stay { enter, leave }),
            }
        }
        stays.retain(|s| s.enter <= end);
        stays
    }
}

impl Leg {
    /// Position at a time of the leg, metres.
    pub fn position(&self, now: Instant) -> Point {
        let whole = self.end.since(self.start).as_secs_f64();
        if self.from == self.to || whole == 0.0 {
            return self.from;
        }
        let f = now.since(self.start).as_secs_f64() / whole;
        Point {
            x: self.from.x + f * (self.to.x - self.from.x),
            y: self.from.y + f * (self.to.y - self.from.y),
        }
    }

    /// From when until when the host is within `radius` metres of `centre`, if it is at all: those of the leg where it is there
    /// at its beginning or end.
    pub fn time_within(&self, centre: Point, radius: f64) -> Option<(Instant, Instant)> {
        let (dx, dy) = (self.to.x - self.from.x, self.to.y - self.from.y);
        let (fx, fy) = (self.from.x - centre.x, self.from.y - centre.y);
        let a = dx * dx + dy * dy;
        let c = fx * fx + fy * fy - radius * radius;
        if a == 0.0 {
            return (c <= 0.0).then_some((self.start, self.end));
        }
        let b = fx * dx + fy * dy;
        let discriminant = b * b - a * c;
        if discriminant < 0.0 {
            return None;
        }
        let root = libm::sqrt(discriminant);
        let (s0, s1) = ((-b - root) / a, (-b + root) / a);
        if s1 < 0.0 || s0 > 1.0 {
            return None;
        }
        let whole = self.end.since(self.start).as_secs_f64();
        let at = |s: f64| self.start + Duration::from_secs_f64(s * whole);
        let enter = if s0 <= 0.0 { self.start } else { at(s0) };
        let leave = if s1 >= 1.0 { self.end } else { at(s1) };
        Some((enter, leave))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(s: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(s)
    }

    #[test]
    fn back_and_forth_crosses_a_circle_where_geometry_says() {
        let (a, b) = (Point { x: 0.0, y: 0.0 }, Point { x: 70.0, y: 0.0 });
        let t = Trajectory::back_and_forth(a, b, 5.0, seconds(1.0), seconds(100.0));
        assert_eq!(t.position(seconds(0.5)), a);
        assert!((t.position(seconds(8.0)).x - 35.0).abs() < 1e-9);
        assert!((t.position(seconds(22.0)).x - 35.0).abs() < 1e-9);
        let first = t.stays_within(a, 40.0, seconds(100.0));
        assert_eq!(
            first[0],
            Stay {
                enter: Instant::ZERO,
                leave: seconds(9.0)
            }
        );
        assert_eq!(
            first[1],
            Stay {
                enter: seconds(21.0),
                leave: seconds(37.0)
            }
        );
        let second = t.stays_within(b, 40.0, seconds(100.0));
        assert_eq!(
            second[0],
            Stay {
                enter: seconds(7.0),
                leave: seconds(23.0)
            }
        );
    }

    #[test]
    fn timed_points_are_passed_at_their_times() {
        let p = |x: f64| Point { x, y: 0.0 };
        let t = Trajectory::timed(&[
            (seconds(2.0), p(10.0)),
            (seconds(4.0), p(30.0)),
            (seconds(4.0), p(30.0)),
        ]);
        let at: Vec<f64> = [0.0, 2.0, 3.0, 4.0, 60.0]
            .map(|s| t.position(seconds(s)).x)
            .to_vec();
        assert_eq!(at, [10.0, 10.0, 20.0, 30.0, 30.0]);
        let stays = t.stays_within(p(10.0), 5.0, seconds(60.0));
        let expected = Stay {
            enter: Instant::ZERO,
            leave: seconds(2.5),
        };
        assert_eq!(stays, [expected]);
    }

    #[test]
    fn a_path_past_a_circle_is_never_within_it() {
        let t = Trajectory::waypoints(
            Point { x: 0.0, y: 0.0 },
            &[Point { x: 0.0, y: 50.0 }, Point { x: 50.0, y: 50.0 }],
            10.0,
            Instant::ZERO,
        );
        assert!(
            t.stays_within(Point { x: 100.0, y: 0.0 }, 40.0, seconds(60.0))
                .is_empty()
        );
        assert_eq!(t.position(seconds(600.0)), Point { x: 50.0, y: 50.0 });
    }
}
