//! `mobility = { ... }` of a mobile host: a way from a file, or one that a model draws.
//!
//! ```toml
//! mobility = { file = "walk.tcl", format = "setdest", node = "0" }
//! mobility = { model = "random-waypoint", area = [["0 m", "0 m"], ["2 km", "1 km"]], speed = "0.5 m/s..2 m/s", pause = "0 s..60 s" }
//! ```
//!
//! What a model draws comes from a stream that the run's seed and the host name. So runs with other seeds have other ways.

use super::model::{MobileSection, ScenarioFile};
use super::validate::{Problem, is_near, point, problem};
use crate::mobility::Point;
use crate::mobility::files::MobilityFormat;
use crate::mobility::models::{Area, Model, Walk, random_waypoint};
use segue_proto::Instant;
use segue_proto::l2::DurationRange;
use segue_proto::random::Stream;
use segue_proto::units::{Coordinate, Speed, UnitError};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// `mobility` of a mobile host. Which keys belong together follows from `file` and `model`, of which it has one.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MobilitySection {
    /// The file, from the scenario's directory on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<MobilityFormat>,
    /// Which of the file's nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
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
}

/// The models there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelName {
    /// [`random_waypoint`]
    RandomWaypoint,
}

/// A speed, or a range of them: `"1.4 m/s"`, `"0.5 m/s..2 m/s"`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SpeedRange {
    least: Speed,
    greatest: Speed,
}

/// Where a way comes from.
pub(super) enum Source<'a> {
    File {
        file: &'a str,
        format: MobilityFormat,
        node: &'a str,
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
        let (readers, needed): (&str, &[&str]) = match (&self.file, self.model) {
            (Some(_), Some(_)) => return problem("model", "expected either `file` or `model`"),
            (None, None) => return problem("", "expected the key `file` or the key `model`"),
            (Some(_), None) => ("a file", &["file", "format", "node"]),
            (None, Some(ModelName::RandomWaypoint)) => {
                ("model \"random-waypoint\"", &["model", "area", "speed"])
            }
        };
        let more: &[&str] = match self.model {
            Some(ModelName::RandomWaypoint) => &["pause"],
            None => &[],
        };
        for (key, is_given) in self.given() {
            if needed.contains(&key) && !is_given {
                return problem("", format!("expected the key `{key}` too"));
            }
            if is_given && !needed.contains(&key) && !more.contains(&key) {
                return problem(key, format!("{readers} does not read it"));
            }
        }
        match (&self.file, self.format, &self.node, self.model) {
            (Some(file), Some(format), Some(node), _) => Ok(Source::File { file, format, node }),
            (_, _, _, Some(ModelName::RandomWaypoint)) => self.random_waypoint().map(Source::Model),
            _ => problem("", "expected the key `file` or the key `model`"),
        }
    }

    fn given(&self) -> [(&'static str, bool); 7] {
        [
            ("file", self.file.is_some()),
            ("format", self.format.is_some()),
            ("node", self.node.is_some()),
            ("model", self.model.is_some()),
            ("area", self.area.is_some()),
            ("speed", self.speed.is_some()),
            ("pause", self.pause.is_some()),
        ]
    }

    fn random_waypoint(&self) -> Result<Model, Problem> {
        Ok(Model::RandomWaypoint(random_waypoint::Parameters {
            area: self.area()?,
            speed: self.speeds()?,
            pause: self.pause.unwrap_or_default(),
        }))
    }

    fn area(&self) -> Result<Area, Problem> {
        let corners = self.area.unwrap_or([[Coordinate::from_metres(0.0); 2]; 2]);
        if !corners.iter().all(|corner| is_near(*corner)) {
            return problem("area", super::validate::FAR);
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
        let speeds = self.speed.map_or([0.0; 2], |range| {
            [range.least, range.greatest].map(Speed::metres_per_second)
        });
        if speeds
            .iter()
            .any(|speed| !(SPEEDS[0]..=SPEEDS[1]).contains(speed))
        {
            return problem("speed", "expected speeds from 0.001 m/s to 10000 m/s");
        }
        Ok(speeds)
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

impl FromStr for SpeedRange {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (least, greatest) = text.split_once("..").unwrap_or((text, text));
        let (least, greatest): (Speed, Speed) = (least.parse()?, greatest.parse()?);
        if least.metres_per_second() > greatest.metres_per_second() {
            return Err(UnitError::NotARange {
                text: text.to_owned(),
                expected: "a range with the lower speed first, such as \"0.5 m/s..2 m/s\"",
            });
        }
        Ok(Self { least, greatest })
    }
}

impl Serialize for SpeedRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.least == self.greatest {
            self.least.serialize(serializer)
        } else {
            serializer.collect_str(&format_args!("{}..{}", self.least, self.greatest))
        }
    }
}

impl<'de> Deserialize<'de> for SpeedRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RangeVisitor)
    }
}

/// Reads a text, and refuses a bare number.
struct RangeVisitor;

impl Visitor<'_> for RangeVisitor {
    type Value = SpeedRange;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a speed or a range with units, such as \"1.4 m/s\" or \"0.5 m/s..2 m/s\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<SpeedRange, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<SpeedRange, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<SpeedRange, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;
    use super::*;

    const WALKERS: &str = include_str!("../../../../scenarios/populations/walkers.toml");

    fn with(mobility: &str, more: &[(&str, &str)]) -> Result<Scenario, String> {
        let set = [("mobile.0.mobility", mobility), ("walkers", "3")];
        let set = set.iter().chain(more);
        let set: Vec<_> = set.map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Scenario::from_toml(WALKERS, "walkers.toml", &set).map_err(super::super::tests::line)
    }

    const AREA: &str = "area = [[\"0 m\", \"0 m\"], [\"600 m\", \"400 m\"]]";

    #[test]
    fn what_a_model_cannot_do_with_is_refused_by_its_key() {
        for (mobility, expected) in [
            ("{ }", ": expected the key `file` or the key `model`"),
            (
                "{ file = \"a\", model = \"random-waypoint\" }",
                "model: expected either `file` or `model`",
            ),
            (
                "{ file = \"a\", node = \"0\" }",
                ": expected the key `format` too",
            ),
            (
                "{ file = \"a\", format = \"setdest\", node = \"0\", pause = \"1 s\" }",
                "pause: a file does not read it",
            ),
            (
                "{ model = \"random-waypont\" }",
                "mobility.model: `random-waypont`: expected one of random-waypoint",
            ),
            (
                "{ model = \"random-waypoint\", speed = \"1 m/s\" }",
                ": expected the key `area` too",
            ),
            (
                "{ model = \"random-waypoint\", AREA }",
                ": expected the key `speed` too",
            ),
            (
                "{ model = \"random-waypoint\", AREA, speed = \"1 m/s\", pase = \"1 s\" }",
                "unknown key: did you mean `pause`?",
            ),
            (
                "{ model = \"random-waypoint\", AREA, speed = \"1 m/s\", node = \"1\" }",
                "node: model \"random-waypoint\" does not read it",
            ),
            (
                "{ model = \"random-waypoint\", AREA, speed = \"0 m/s..1 m/s\" }",
                "speed: expected speeds from 0.001 m/s",
            ),
            (
                "{ model = \"random-waypoint\", AREA, speed = \"2 m/s..1 m/s\" }",
                "expected a range with the lower speed first",
            ),
            (
                "{ model = \"random-waypoint\", AREA, speed = 1.4 }",
                "speed: `1.4` has no unit",
            ),
            (
                "{ model = \"random-waypoint\", AREA, speed = \"1 m/s\", pause = 3 }",
                "pause: `3` has no unit",
            ),
            (
                "{ model = \"random-waypoint\", area = [[\"0 m\", \"0 m\"], [\"600 m\", \"0 m\"]], speed = \"1 m/s\" }",
                "area: expected two opposite corners",
            ),
            (
                "{ model = \"random-waypoint\", area = [[\"0 m\", \"0 m\"], [\"60000 km\", \"1 m\"]], speed = \"1 m/s\" }",
                "area: expected coordinates within",
            ),
            (
                "{ model = \"random-waypoint\", area = [[\"5 km\", \"0 m\"], [\"6 km\", \"1 km\"]], speed = \"1 m/s\" }",
                "area: out of reach of every cell",
            ),
        ] {
            let error = with(&mobility.replace("AREA", AREA), &[]).expect_err(mobility);
            assert!(error.contains(expected), "{mobility}: {error}");
            let of_key = error.starts_with("--set: mobile[0].mobility");
            assert!(of_key && !error.contains('\n'), "{error}");
        }
        let model = format!("{{ model = \"random-waypoint\", {AREA}, speed = \"1 m/s\" }}");
        for (key, value) in [("to", "[\"1 m\", \"1 m\"]"), ("start", "3 s"), ("speed", "1 m/s")] {
            let error = with(&model, &[(&format!("mobile.0.{key}"), value)]).expect_err(key);
            assert!(error.contains("expected nothing here"), "{error}");
        }
    }

    #[test]
    fn a_scenario_with_a_model_is_read_again_as_it_was_run() {
        let model = format!(
            "{{ model = \"random-waypoint\", {AREA}, speed = \"3 km/h..2 m/s\", pause = \"0 s..30 s\" }}"
        );
        let scenario = with(&model, &[]).unwrap();
        let again = Scenario::from_toml(&scenario.to_toml(), "again.toml", &[]).unwrap();
        assert_eq!(again.file().mobile, scenario.file().mobile);
    }

    #[test]
    fn hosts_begin_where_the_seed_and_their_names_say() {
        let scenario = with(
            &format!("{{ model = \"random-waypoint\", {AREA}, speed = \"1 m/s\" }}"),
            &[],
        )
        .unwrap();
        let places = |seed| {
            let begun = begun(scenario.file(), seed).expect("a model");
            begun.mobile.iter().map(|m| m.from).collect::<Vec<_>>()
        };
        let own: Vec<_> = scenario.file().mobile.iter().map(|m| m.from).collect();
        assert_eq!(places(1), own);
        let [first, second] = [places(1), places(2)];
        assert!(first[0] != first[1] && first[1] != first[2]);
        assert!((0..3).all(|host| first[host] != second[host]));
    }
}
