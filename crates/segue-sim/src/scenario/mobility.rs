//! `mobility = { ... }` of a mobile host: a way from a file, or one that a model draws.
//!
//! ```toml
//! mobility = { file = "walk.tcl", format = "setdest", node = "0" }
//! mobility = { model = "random-waypoint", area = [["0 m", "0 m"], ["2 km", "1 km"]], speed = "0.5 m/s..2 m/s", pause = "0 s..60 s" }
//! mobility = { model = "gauss-markov", area = [["0 m", "0 m"], ["2 km", "1 km"]], speed = "1.4 m/s", speed_deviation = "0.3 m/s", direction_deviation = "40 deg", alpha = 0.85 }
//! mobility = { model = "manhattan", area = [["0 m", "0 m"], ["2 km", "1 km"]], streets = ["230 m", "80 m"], speed = "3 km/h", speed_deviation = "0.3 m/s" }
//! ```
//!
//! What a model draws comes from a stream that the run's seed and the host name. So runs with other seeds have other ways.

pub(super) mod quantities;

pub use quantities::{Angle, Origin, SpeedRange};

use super::keys::range::{at_least, at_most, proportion, within};
use super::model::{MobileSection, ScenarioFile};
use super::validate::{FAR, Problem, is_near, point, problem};
use crate::mobility::Point;
use crate::mobility::files::MobilityFormat;
use crate::mobility::geography::{self, Plane};
use crate::mobility::models::{Area, Model, Walk, gauss_markov, manhattan, random_waypoint};
use schemars::JsonSchema;
use segue_proto::l2::DurationRange;
use segue_proto::random::Stream;
use segue_proto::units::{Coordinate, Metres, Speed};
use segue_proto::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `mobility` of a mobile host. Which keys belong together follows from `file` and `model`, of which it has one.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MobilitySection {
    /// The file, from the scenario's directory on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<MobilityFormat>,
    /// Which of the file's nodes: its name, or its number.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "quantities::name"
    )]
    #[schemars(schema_with = "super::keys::texts::name")]
    pub node: Option<String>,
    /// In floating car data with longitude and latitude: the point that becomes x = 0 and y = 0. Left out: places are metres.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// What was read.
    #[serde(skip)]
    pub points: Arc<Vec<(Instant, Point)>>,
    /// The model that draws the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// The rectangle that is not left: two opposite corners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub area: Option<[[Coordinate; 2]; 2]>,
    /// Speed: one, or a range from which it is drawn uniformly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<SpeedRange>,
    /// Time at a waypoint: one, or a range from which it is drawn uniformly. Left out: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<DurationRange>,
    /// How much of speed and direction is remembered from step to step, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = proportion()))]
    pub alpha: Option<f64>,
    /// Standard deviation of the speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_most("10000 m/s")))]
    pub speed_deviation: Option<Speed>,
    /// Mean direction. Left out: one of its own for each host, drawn uniformly.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("-360 deg", "360 deg")))]
    pub direction: Option<Angle>,
    /// Standard deviation of the direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("0 deg", "360 deg")))]
    pub direction_deviation: Option<Angle>,
    /// Time between changes of speed and direction. Left out: 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("10 ms", "3600 s")))]
    pub step: Option<Duration>,
    /// Distance between streets that go from south to north, and between those that go from west to east.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streets: Option<[Metres; 2]>,
    /// Shares of those who go straight on, left and right at a crossing. Left out: 0.5, 0.25, 0.25.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = proportion()))]
    pub turns: Option<[f64; 3]>,
    /// Way between moments at which the speed may change. Left out: 5 m.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_least("0.1 m")))]
    pub update: Option<Metres>,
    /// Probability that it does then. Left out: 0.2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = proportion()))]
    pub speed_change: Option<f64>,
}

/// The models there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelName {
    /// Straight to a point drawn at random, a pause, and on to the next: see [`random_waypoint`].
    RandomWaypoint,
    /// Speed and direction remember what they were: see [`gauss_markov`].
    GaussMarkov,
    /// Along streets that cross at right angles: see [`manhattan`].
    Manhattan,
}

impl ModelName {
    /// As it is written.
    fn written(self) -> &'static str {
        match self {
            Self::RandomWaypoint => "random-waypoint",
            Self::GaussMarkov => "gauss-markov",
            Self::Manhattan => "manhattan",
        }
    }

    /// The keys that it has to have, and those that it may have.
    fn keys(self) -> [&'static [&'static str]; 2] {
        match self {
            Self::RandomWaypoint => [&["model", "area", "speed"], &["pause"]],
            Self::GaussMarkov => [
                &[
                    "model",
                    "area",
                    "speed",
                    "alpha",
                    "speed_deviation",
                    "direction_deviation",
                ],
                &["direction", "step"],
            ],
            Self::Manhattan => [
                &["model", "area", "speed", "streets"],
                &["turns", "speed_deviation", "update", "speed_change"],
            ],
        }
    }
}

/// Where a way comes from.
pub(super) enum Source<'a> {
    File {
        file: &'a str,
        format: MobilityFormat,
        node: &'a str,
        /// Where longitude and latitude belong.
        plane: Option<Plane>,
    },
    Model(Model),
}

/// Least and greatest speed of a model, m/s.
const SPEEDS: [f64; 2] = [0.001, 10_000.0];
/// Least side of an area, metres.
const LEAST_SIDE: f64 = 1.0;

impl MobilitySection {
    /// Where the way comes from.
    pub(super) fn source(&self) -> Result<Source<'_>, Problem> {
        let (reader, [needed, more]) = match (&self.file, self.model) {
            (Some(_), Some(_)) => return problem("model", "expected either `file` or `model`"),
            (None, None) => return problem("", "expected the key `file` or the key `model`"),
            (Some(_), None) => (
                "a file".to_owned(),
                [&["file", "format", "node"][..], &["origin"]],
            ),
            (None, Some(model)) => (format!("model \"{}\"", model.written()), model.keys()),
        };
        for (key, is_given) in self.given() {
            if needed.contains(&key) && !is_given {
                return problem("", format!("expected the key `{key}` too"));
            }
            if is_given && !needed.contains(&key) && !more.contains(&key) {
                return problem(key, format!("{reader} does not read it"));
            }
        }
        match (&self.file, self.format, &self.node, self.model) {
            (Some(file), Some(format), Some(node), _) => Ok(Source::File {
                file,
                format,
                node,
                plane: self.plane(format)?,
            }),
            (.., Some(ModelName::RandomWaypoint)) => self.random_waypoint().map(Source::Model),
            (.., Some(ModelName::GaussMarkov)) => self.gauss_markov().map(Source::Model),
            (.., Some(ModelName::Manhattan)) => self.manhattan().map(Source::Model),
            _ => problem("", "expected the key `file` or the key `model`"),
        }
    }

    fn given(&self) -> [(&'static str, bool); 17] {
        [
            ("file", self.file.is_some()),
            ("format", self.format.is_some()),
            ("node", self.node.is_some()),
            ("origin", self.origin.is_some()),
            ("model", self.model.is_some()),
            ("area", self.area.is_some()),
            ("streets", self.streets.is_some()),
            ("speed", self.speed.is_some()),
            ("pause", self.pause.is_some()),
            ("alpha", self.alpha.is_some()),
            ("speed_deviation", self.speed_deviation.is_some()),
            ("direction", self.direction.is_some()),
            ("direction_deviation", self.direction_deviation.is_some()),
            ("step", self.step.is_some()),
            ("turns", self.turns.is_some()),
            ("update", self.update.is_some()),
            ("speed_change", self.speed_change.is_some()),
        ]
    }

    fn plane(&self, format: MobilityFormat) -> Result<Option<Plane>, Problem> {
        let Some(origin) = self.origin else {
            return Ok(None);
        };
        if format != MobilityFormat::SumoFcd {
            return problem("origin", "is of format \"sumo-fcd\": others have metres");
        }
        let plane = Plane::around(origin.geodetic());
        plane.map_or_else(|| problem("origin", geography::NOWHERE), |plane| Ok(Some(plane)))
    }

    fn random_waypoint(&self) -> Result<Model, Problem> {
        Ok(Model::RandomWaypoint(random_waypoint::Parameters {
            area: self.area()?,
            speed: self.speeds()?,
            pause: self.pause.unwrap_or_default(),
        }))
    }

    fn gauss_markov(&self) -> Result<Model, Problem> {
        let radians = |angle: Angle| angle.degrees() * core::f64::consts::TAU / 360.0;
        Ok(Model::GaussMarkov(gauss_markov::Parameters {
            area: self.area()?,
            alpha: self.alpha.unwrap_or(0.0),
            speed: self.mean_speed()?,
            speed_deviation: self.speed_deviation(),
            direction: self.direction.map(radians),
            direction_deviation: self.direction_deviation.map_or(0.0, radians),
            step: self.step.unwrap_or(Duration::from_secs(1)),
        }))
    }

    fn manhattan(&self) -> Result<Model, Problem> {
        let area = self.area()?;
        let spacing = self.streets.unwrap_or([Metres::new(0.0); 2]).map(Metres::metres);
        let sides = [area.width(), area.height()];
        if (0..2).any(|axis| !(LEAST_SIDE..=sides[axis]).contains(&spacing[axis])) {
            return problem(
                "streets",
                "expected distances of at least 1 m, and of at most the sides of the area",
            );
        }
        let turns = self.turns.unwrap_or([0.5, 0.25, 0.25]);
        let sum: f64 = turns.iter().sum();
        if (sum - 1.0).abs() > 1e-6 {
            return problem(
                "turns",
                "expected shares of straight on, left and right that are 1 together",
            );
        }
        Ok(Model::Manhattan(manhattan::Parameters {
            area,
            spacing,
            speed: self.mean_speed()?,
            speed_deviation: self.speed_deviation(),
            speed_change: self.speed_change.unwrap_or(0.2),
            update: self.update.map_or(5.0, Metres::metres),
            turns,
        }))
    }

    fn area(&self) -> Result<Area, Problem> {
        let corners = self.area.unwrap_or([[Coordinate::from_metres(0.0); 2]; 2]);
        if !corners.iter().all(|corner| is_near(*corner)) {
            return problem("area", FAR);
        }
        let [a, b] = corners.map(point);
        let area = Area {
            least: Point {
                x: a.x.min(b.x),
                y: a.y.min(b.y),
            },
            greatest: Point {
                x: a.x.max(b.x),
                y: a.y.max(b.y),
            },
        };
        if area.width() < LEAST_SIDE || area.height() < LEAST_SIDE {
            return problem(
                "area",
                "expected two opposite corners at least 1 m apart each way, such as [[\"0 m\", \"0 m\"], [\"2 km\", \"1 km\"]]",
            );
        }
        Ok(area)
    }

    /// Least and greatest, m/s.
    fn speeds(&self) -> Result<[f64; 2], Problem> {
        let speeds = self.speed.map_or([0.0; 2], |range| range.metres_per_second());
        if speeds
            .iter()
            .any(|speed| !(SPEEDS[0]..=SPEEDS[1]).contains(speed))
        {
            return problem("speed", "expected speeds from 0.001 m/s to 10000 m/s");
        }
        Ok(speeds)
    }

    /// That of a model which knows no range, m/s.
    fn mean_speed(&self) -> Result<f64, Problem> {
        match self.speeds()? {
            [least, greatest] if least < greatest => problem(
                "speed",
                "a range: expected the mean, such as \"1.4 m/s\", with `speed_deviation`",
            ),
            [speed, _] => Ok(speed),
        }
    }

    fn speed_deviation(&self) -> f64 {
        self.speed_deviation.map_or(0.0, Speed::metres_per_second)
    }
}

/// What is wrong with the `mobility` of hosts, before files are read.
pub(super) fn check(s: &ScenarioFile) -> Result<(), Problem> {
    for (i, m) in s.mobile.iter().enumerate() {
        let Some(section) = &m.mobility else { continue };
        let of = s.mobile.key(i);
        let source = section.source().map_err(|p| Problem {
            key: match p.key.as_str() {
                "" => format!("{of}.mobility"),
                key => format!("{of}.mobility.{key}"),
            },
            expected: p.expected,
        })?;
        if let Source::Model(model) = source {
            let overridden = [
                ("to", m.to.is_some()),
                ("points", !m.points.is_empty()),
                ("start", !m.start.is_zero()),
                ("speed", m.speed.metres_per_second() != 0.0),
            ];
            if let Some((key, _)) = overridden.into_iter().find(|(_, is_given)| *is_given) {
                return problem(
                    format!("{of}.{key}"),
                    "the model in `mobility` says how it moves: expected nothing here",
                );
            }
            if !touches_a_cell(s, &model.area()) {
                return problem(
                    format!("{of}.mobility.area"),
                    "out of reach of every cell: expected a part of it within the radius of one",
                );
            }
        }
    }
    Ok(())
}

fn touches_a_cell(s: &ScenarioFile, area: &Area) -> bool {
    s.cell.iter().any(|cell| {
        let centre = point(cell.position);
        cell.present.is_some() || area.nearest(centre).distance(centre) <= cell.radius.metres()
    })
}

/// The model of a host that has one.
pub(crate) fn model_of(m: &MobileSection) -> Option<Model> {
    match m.mobility.as_ref()?.source() {
        Ok(Source::Model(model)) => Some(model),
        _ => None,
    }
}

/// What the model of a host draws from.
pub(crate) fn stream_of(m: &MobileSection, seed: u64) -> Stream {
    Stream::new(seed, &format!("{}/mobility", m.host))
}

/// Puts hosts with a model where they begin in a run with this seed.
pub(super) fn begin(s: &mut ScenarioFile, seed: u64) {
    for m in s.mobile.iter_mut() {
        if let Some(model) = model_of(m) {
            let at = Walk::new(&model, stream_of(m, seed)).at();
            m.from = [at.x, at.y].map(Coordinate::from_metres);
        }
    }
}

/// The scenario with hosts where they begin in a run with this seed, if any has a model.
pub(crate) fn begun(s: &ScenarioFile, seed: u64) -> Option<ScenarioFile> {
    let mut mobiles = s.mobile.iter();
    mobiles.any(|m| model_of(m).is_some()).then(|| {
        let mut begun = s.clone();
        begin(&mut begun, seed);
        begun
    })
}

#[cfg(test)]
mod tests;
