//! Models of random movement: ways that are drawn leg by leg, of which nobody keeps more than is needed.

pub mod gauss_markov;
pub mod manhattan;
pub mod random_waypoint;

use super::{Leg, Point};
use segue_proto::random::Stream;
use segue_proto::{Duration, Instant};

/// A rectangle that hosts do not leave, metres.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Area {
    /// The corner with the least x and y.
    pub least: Point,
    /// The corner with the greatest.
    pub greatest: Point,
}

impl Area {
    /// Length from west to east, metres.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.greatest.x - self.least.x
    }

    /// Length from south to north, metres.
    #[must_use]
    pub fn height(&self) -> f64 {
        self.greatest.y - self.least.y
    }

    /// The distance of its corners, which is the greatest there is between two of its points, metres.
    #[must_use]
    pub fn diagonal(&self) -> f64 {
        self.least.distance(self.greatest)
    }

    /// The point of it that is nearest to another.
    #[must_use]
    pub fn nearest(&self, to: Point) -> Point {
        Point {
            x: to.x.clamp(self.least.x, self.greatest.x),
            y: to.y.clamp(self.least.y, self.greatest.y),
        }
    }

    /// A point drawn uniformly.
    fn draw(&self, stream: &mut Stream) -> Point {
        Point {
            x: self.least.x + stream.uniform() * self.width(),
            y: self.least.y + stream.uniform() * self.height(),
        }
    }
}

/// A model of random movement with its parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Model {
    /// To a place drawn uniformly, there a pause, and on.
    RandomWaypoint(random_waypoint::Parameters),
    /// Speed and direction that remember what they were.
    GaussMarkov(gauss_markov::Parameters),
    /// Along the streets of a grid.
    Manhattan(manhattan::Parameters),
}

impl Model {
    /// Where hosts are.
    #[must_use]
    pub fn area(&self) -> Area {
        match self {
            Self::RandomWaypoint(p) => p.area,
            Self::GaussMarkov(p) => p.area,
            Self::Manhattan(p) => p.area,
        }
    }
}

/// What a host does until it does something else.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Step {
    /// Where it goes, in a straight line at constant speed; where it is, if it stays.
    to: Point,
    /// How long that takes.
    lasts: Duration,
}

/// What a model remembers of a host.
#[derive(Clone, Copy, Debug)]
enum Motion {
    RandomWaypoint(random_waypoint::Motion),
    GaussMarkov(gauss_markov::Motion),
    Manhattan(manhattan::Motion),
}

impl Motion {
    fn step(&mut self, at: Point, stream: &mut Stream) -> Step {
        match self {
            Self::RandomWaypoint(motion) => motion.step(at, stream),
            Self::GaussMarkov(motion) => motion.step(at, stream),
            Self::Manhattan(motion) => motion.step(at, stream),
        }
    }
}

/// The way of a host by a model. It goes on for ever.
#[derive(Clone, Debug)]
pub struct Walk {
    motion: Motion,
    stream: Stream,
    at: Point,
    now: Instant,
}

impl Walk {
    /// A way from time zero on, everything of which is drawn from `stream`.
    #[must_use]
    pub fn new(model: &Model, mut stream: Stream) -> Self {
        let (at, motion) = match model {
            Model::RandomWaypoint(p) => {
                let (at, motion) = p.begin(&mut stream);
                (at, Motion::RandomWaypoint(motion))
            }
            Model::GaussMarkov(p) => {
                let (at, motion) = p.begin(&mut stream);
                (at, Motion::GaussMarkov(motion))
            }
            Model::Manhattan(p) => {
                let (at, motion) = p.begin(&mut stream);
                (at, Motion::Manhattan(motion))
            }
        };
        Self {
            motion,
            stream,
            at,
            now: Instant::ZERO,
        }
    }

    /// Where the next leg begins: before the first, where the host is when the run begins.
    #[must_use]
    pub fn at(&self) -> Point {
        self.at
    }

    /// The next leg, which takes some time and begins where and when the last has ended.
    pub(crate) fn next_leg(&mut self) -> Leg {
        loop {
            let step = self.motion.step(self.at, &mut self.stream);
            let (from, start) = (self.at, self.now);
            self.at = step.to;
            self.now = start + step.lasts;
            if self.now > start {
                return Leg {
                    start,
                    end: self.now,
                    from,
                    to: step.to,
                };
            }
        }
    }
}
