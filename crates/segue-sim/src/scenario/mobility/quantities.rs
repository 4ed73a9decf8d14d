//! Quantities of models of movement.

use crate::mobility::geography::Geodetic;
use schemars::JsonSchema;
use segue_proto::units::{Speed, UnitError};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A speed, or a range of them: `"1.4 m/s"`, `"0.5 m/s..2 m/s"`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SpeedRange {
    least: Speed,
    greatest: Speed,
}

impl SpeedRange {
    /// Least and greatest, m/s; the same for a single speed.
    #[must_use]
    pub const fn metres_per_second(self) -> [f64; 2] {
        [self.least.metres_per_second(), self.greatest.metres_per_second()]
    }
}

/// A direction, or a deviation of directions: `"90 deg"`. East is 0, north 90 degrees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Angle {
    degrees: f64,
}

impl Angle {
    /// In degrees.
    #[must_use]
    pub const fn degrees(self) -> f64 {
        self.degrees
    }
}

/// A point that becomes x = 0 and y = 0 of the plane: `{ lat = "52.52 deg", lon = "13.40 deg" }`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Latitude, degrees north.
    pub lat: Angle,
    /// Longitude, degrees east.
    pub lon: Angle,
}

impl Origin {
    pub(crate) fn geodetic(self) -> Geodetic {
        Geodetic {
            lat_deg: self.lat.degrees(),
            lon_deg: self.lon.degrees(),
        }
    }
}

impl FromStr for Angle {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const EXPECTED: &str = "an angle with its unit, such as \"90 deg\"";
        let text = text.trim();
        let number = |text: &str| text.trim().parse().ok().filter(|n: &f64| n.is_finite());
        let wrong = |expected| UnitError::NotANumber {
            text: text.to_owned(),
            expected,
        };
        match text.strip_suffix("deg") {
            Some(degrees) => {
                let degrees = number(degrees).ok_or_else(|| wrong(EXPECTED))?;
                Ok(Self { degrees })
            }
            None if number(text).is_some() => Err(UnitError::NoUnit {
                text: text.to_owned(),
                expected: EXPECTED,
            }),
            None => Err(wrong(EXPECTED)),
        }
    }
}

impl Serialize for Angle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{} deg", self.degrees))
    }
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
        deserializer.deserialize_any(Text {
            expecting: "a speed or a range with units, such as \"1.4 m/s\" or \"0.5 m/s..2 m/s\"",
            parse: SpeedRange::from_str,
        })
    }
}

impl<'de> Deserialize<'de> for Angle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            expecting: "an angle with its unit, such as \"90 deg\"",
            parse: Angle::from_str,
        })
    }
}

/// Reads a text, and refuses a bare number as the text that it would be.
struct Text<T> {
    expecting: &'static str,
    parse: fn(&str) -> Result<T, UnitError>,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

/// A name: a text, or a whole number, which `{i}` in a population becomes.
pub(super) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_any(NameVisitor).map(Some)
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node's name or number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }
}
