//! How long a layer-2 handover takes: one number, or the sum of its phases.

use crate::random::Stream;
use crate::time::Duration;
use crate::units::UnitError;
use core::fmt;
use core::str::FromStr;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A duration, or a range from which one is drawn uniformly: written `"200 ms"` or `"40 ms..350 ms"`, both ends
/// included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DurationRange {
    min: Duration,
    max: Duration,
}

/// A phase of an IEEE 802.11 handover.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The whole handover, when it is given as one latency.
    Whole,
    /// Noticing that a handover is needed.
    Detection,
    /// Looking for access points.
    Probe,
    /// Authentication with the new access point.
    Authentication,
    /// Association or reassociation with it.
    Reassociation,
}

/// The time of each phase; a phase left out takes no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Phases {
    /// Detection.
    pub detection: DurationRange,
    /// Probe.
    pub probe: DurationRange,
    /// Authentication.
    pub authentication: DurationRange,
    /// Reassociation.
    pub reassociation: DurationRange,
}

/// How long a layer-2 handover takes: a text (`"200 ms"`, `"40 ms..350 ms"`) or a table of [`Phases`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(untagged))]
pub enum Latency {
    /// From the command to attach until Link_Up.
    Single(DurationRange),
    /// The sum of the phases.
    Phases(Phases),
}

impl DurationRange {
    /// Always `duration`.
    #[must_use]
    pub const fn fixed(duration: Duration) -> Self {
        Self {
            min: duration,
            max: duration,
        }
    }
    /// Uniform over `min..=max`; `None` if `min` is the longer.
    #[must_use]
    pub fn uniform(min: Duration, max: Duration) -> Option<Self> {
        (min <= max).then_some(Self { min, max })
    }
    /// The shortest that can be drawn.
    #[must_use]
    pub const fn min(self) -> Duration {
        self.min
    }
    /// The longest that can be drawn.
    #[must_use]
    pub const fn max(self) -> Duration {
        self.max
    }
    /// Draws one. A fixed duration draws nothing from the stream.
    pub fn draw(self, stream: &mut Stream) -> Duration {
        if self.min == self.max {
            return self.min;
        }
        let width = (self.max - self.min).as_nanos();
        self.min + Duration::from_nanos(stream.below(width.saturating_add(1)))
    }
}

impl Latency {
    /// One latency that is always the same.
    #[must_use]
    pub const fn fixed(latency: Duration) -> Self {
        Self::Single(DurationRange::fixed(latency))
    }
    /// The phases in their order.
    pub(super) fn phases(self) -> [Option<(Phase, DurationRange)>; 4] {
        match self {
            Self::Single(range) => [Some((Phase::Whole, range)), None, None, None],
            Self::Phases(p) => [
                Some((Phase::Detection, p.detection)),
                Some((Phase::Probe, p.probe)),
                Some((Phase::Authentication, p.authentication)),
                Some((Phase::Reassociation, p.reassociation)),
            ],
        }
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::fixed(Duration::ZERO)
    }
}

impl FromStr for DurationRange {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let Some((min, max)) = text.split_once("..") else {
            return text.parse().map(Self::fixed);
        };
        Self::uniform(min.parse()?, max.parse()?).ok_or_else(|| UnitError::NotARange {
            text: text.to_owned(),
            expected: "a range with the shorter duration first, such as \"40 ms..350 ms\"",
        })
    }
}

/// Reads a text or refuses a bare number; a table only where `Latency` allows it.
struct RangeVisitor;

impl<'de> Visitor<'de> for RangeVisitor {
    type Value = DurationRange;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration or a range with units, such as \"200 ms\" or \"40 ms..350 ms\"")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<DurationRange, E> {
        text.parse().map_err(E::custom)
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<DurationRange, E> {
        self.visit_str(&number.to_string())
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<DurationRange, E> {
        self.visit_str(&number.to_string())
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<DurationRange, E> {
        self.visit_str(&number.to_string())
    }
}

impl<'de> Deserialize<'de> for DurationRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RangeVisitor)
    }
}

impl Serialize for DurationRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// The end of a range as a person would write it.
        struct End(Duration);
        impl fmt::Display for End {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.serialize(f)
            }
        }
        if self.min == self.max {
            self.min.serialize(serializer)
        } else {
            serializer.collect_str(&format_args!("{}..{}", End(self.min), End(self.max)))
        }
    }
}

struct LatencyVisitor;

impl<'de> Visitor<'de> for LatencyVisitor {
    type Value = Latency;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration with a unit, such as \"200 ms\", or a table of phases")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Latency, E> {
        RangeVisitor.visit_str(text).map(Latency::Single)
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Latency, E> {
        RangeVisitor.visit_i64(number).map(Latency::Single)
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Latency, E> {
        RangeVisitor.visit_u64(number).map(Latency::Single)
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Latency, E> {
        RangeVisitor.visit_f64(number).map(Latency::Single)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Latency, A::Error> {
        Phases::deserialize(de::value::MapAccessDeserializer::new(map)).map(Latency::Phases)
    }
}

impl<'de> Deserialize<'de> for Latency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LatencyVisitor)
    }
}

impl Serialize for Latency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Single(range) => range.serialize(serializer),
            Self::Phases(phases) => phases.serialize(serializer),
        }
    }
}
