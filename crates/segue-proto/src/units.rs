//! Quantities with units, and how a person writes them.
//!
//! Every quantity in a scenario file is a string with a unit: `"200 ms"`, `"384 kbit/s"`, `"5 m/s"`. A bare number is
//! refused with a message that names what is missing. Integer quantities (time, rates, sizes) are worked out in exact
//! decimal arithmetic: `"0.1 ms"` is 100000 ns, not the nearest float.
//!
//! ```
//! use segue_proto::Duration;
//! use segue_proto::units::{BitRate, Speed};
//!
//! assert_eq!("0.1 ms".parse::<Duration>()?, Duration::from_nanos(100_000));
//! assert_eq!("384 kbit/s".parse::<BitRate>()?.bits_per_second(), 384_000);
//! assert_eq!("18 km/h".parse::<Speed>()?.metres_per_second(), 5.0);
//! let error = "200".parse::<Duration>().unwrap_err();
//! assert_eq!(error.to_string(), "`200` has no unit: expected a duration with a unit, such as \"200 ms\"");
//! # Ok::<(), segue_proto::units::UnitError>(())
//! ```

#[cfg(feature = "schema")]
mod schema;

use crate::time::Duration;
use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A data rate, bit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BitRate(u64);

/// An amount of data, bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(u64);

/// A number of packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Packets(u64);

/// A distance, metres; never negative.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Metres(f64);

/// A coordinate, metres: may be negative.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Coordinate(f64);

/// A speed, m/s; never negative.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Speed(f64);

/// A power, dBm: may be negative.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Dbm(f64);

/// A ratio of powers, dB: may be negative.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Decibel(f64);

/// The size of a queue, in packets or in bytes, as written: `"50 packets"` or `"64 kB"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// At most so many packets.
    Packets(Packets),
    /// At most so many bytes.
    Bytes(Bytes),
}

/// Why a text is not the quantity expected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnitError {
    /// A number without a unit.
    #[error("`{text}` has no unit: expected {expected}")]
    NoUnit {
        /// What was written.
        text: String,
        /// What was expected, with an example.
        expected: &'static str,
    },
    /// A unit of something else, or no unit at all.
    #[error("`{text}`: unknown unit `{unit}`: expected {expected}")]
    UnknownUnit {
        /// What was written.
        text: String,
        /// Its unit.
        unit: String,
        /// What was expected, with an example.
        expected: &'static str,
    },
    /// Not a number.
    #[error("`{text}` is not a number with a unit: expected {expected}")]
    NotANumber {
        /// What was written.
        text: String,
        /// What was expected, with an example.
        expected: &'static str,
    },
    /// Not two ends of something, or in the wrong order.
    #[error("`{text}`: expected {expected}")]
    NotARange {
        /// What was written.
        text: String,
        /// What was expected, with an example.
        expected: &'static str,
    },
    /// Less than zero where that means nothing.
    #[error("`{text}` is negative: expected {expected}, not below zero")]
    Negative {
        /// What was written.
        text: String,
        /// What was expected, with an example.
        expected: &'static str,
    },
    /// More than can be represented.
    #[error("`{text}` is too large")]
    TooLarge {
        /// What was written.
        text: String,
    },
    /// A fraction of the smallest part there is.
    #[error("`{text}` is not a whole number of {smallest}")]
    TooFine {
        /// What was written.
        text: String,
        /// The smallest part.
        smallest: &'static str,
    },
}

impl BitRate {
    /// From bit/s.
    #[must_use]
    pub const fn from_bits_per_second(bps: u64) -> Self {
        Self(bps)
    }
    /// In bit/s.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }
    /// Time that `bytes` take at this rate, rounded up to a nanosecond; `Duration::MAX` at rate zero.
    #[must_use]
    pub fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let ns = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

impl Bytes {
    /// From bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
    /// In bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl Packets {
    /// From a count.
    #[must_use]
    pub const fn new(packets: u64) -> Self {
        Self(packets)
    }
    /// The count.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0
    }
}

impl Metres {
    /// From metres.
    ///
    /// # Panics
    /// If `metres` is negative or not finite.
    #[must_use]
    pub fn new(metres: f64) -> Self {
        assert!(
            metres.is_finite() && metres >= 0.0,
            "a distance is finite and not negative"
        );
        Self(metres)
    }
    /// In metres.
    #[must_use]
    pub const fn metres(self) -> f64 {
        self.0
    }
}

impl Coordinate {
    /// From metres.
    #[must_use]
    pub const fn from_metres(metres: f64) -> Self {
        Self(metres)
    }

    /// In metres.
    #[must_use]
    pub const fn metres(self) -> f64 {
        self.0
    }
}

impl Speed {
    /// From m/s.
    ///
    /// # Panics
    /// If `metres_per_second` is negative or not finite.
    #[must_use]
    pub fn from_metres_per_second(metres_per_second: f64) -> Self {
        assert!(
            metres_per_second.is_finite() && metres_per_second >= 0.0,
            "a speed is finite and not negative"
        );
        Self(metres_per_second)
    }
    /// In m/s.
    #[must_use]
    pub const fn metres_per_second(self) -> f64 {
        self.0
    }
}

impl Dbm {
    /// From dBm.
    ///
    /// # Panics
    /// If `dbm` is not finite.
    #[must_use]
    pub fn new(dbm: f64) -> Self {
        assert!(dbm.is_finite(), "a power is finite");
        Self(dbm)
    }
    /// In dBm.
    #[must_use]
    pub const fn dbm(self) -> f64 {
        self.0
    }
}

impl Decibel {
    /// From dB.
    ///
    /// # Panics
    /// If `db` is not finite.
    #[must_use]
    pub fn new(db: f64) -> Self {
        assert!(db.is_finite(), "a ratio is finite");
        Self(db)
    }
    /// In dB.
    #[must_use]
    pub const fn db(self) -> f64 {
        self.0
    }
}

/// A quantity that is written as a number and a unit.
trait Quantity: Sized {
    /// "a duration with a unit, such as \"200 ms\"".
    const EXPECTED: &'static str;
    fn parse_text(text: &str) -> Result<Self, UnitError>;
    fn canonical(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// A unit's name with what it multiplies and divides by.
type Units = &'static [(&'static str, u64, u64)];

const TIME: Units = &[
    ("ns", 1, 1),
    ("us", 1_000, 1),
    ("\u{b5}s", 1_000, 1),
    ("\u{3bc}s", 1_000, 1),
    ("ms", 1_000_000, 1),
    ("s", 1_000_000_000, 1),
    ("min", 60_000_000_000, 1),
    ("h", 3_600_000_000_000, 1),
];
const RATE: Units = &[
    ("bit/s", 1, 1),
    ("kbit/s", 1_000, 1),
    ("Mbit/s", 1_000_000, 1),
    ("Gbit/s", 1_000_000_000, 1),
    ("bps", 1, 1),
    ("kbps", 1_000, 1),
    ("Mbps", 1_000_000, 1),
    ("Gbps", 1_000_000_000, 1),
];
const SIZE: Units = &[
    ("B", 1, 1),
    ("byte", 1, 1),
    ("bytes", 1, 1),
    ("kB", 1_000, 1),
    ("MB", 1_000_000, 1),
    ("GB", 1_000_000_000, 1),
    ("KiB", 1 << 10, 1),
    ("MiB", 1 << 20, 1),
    ("GiB", 1 << 30, 1),
];
const PACKETS: Units = &[("packets", 1, 1), ("packet", 1, 1)];
const DISTANCE: Units = &[("m", 1, 1), ("km", 1_000, 1), ("cm", 1, 100)];
const SPEED: Units = &[("m/s", 1, 1), ("km/h", 1_000, 3_600), ("km/s", 1_000, 1)];
const POWER: Units = &[("dBm", 1, 1)];
const RATIO: Units = &[("dB", 1, 1)];

/// Splits `text` into the text of its number and its unit.
fn split<'a>(text: &'a str, expected: &'static str) -> Result<(&'a str, &'a str), UnitError> {
    let text = text.trim();
    let not_a_number = || UnitError::NotANumber {
        text: text.to_owned(),
        expected,
    };
    let bytes = text.as_bytes();
    let digits_from = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let start = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let mut end = digits_from(start);
    if bytes.get(end) == Some(&b'.') {
        end = digits_from(end + 1);
    }
    if !bytes[start..end].iter().any(u8::is_ascii_digit) {
        return Err(not_a_number());
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent_end = digits_from(end + 1 + sign);
        if exponent_end > end + 1 + sign {
            end = exponent_end;
        }
    }
    let unit = text[end..].trim();
    if unit.is_empty() {
        return Err(UnitError::NoUnit {
            text: text.to_owned(),
            expected,
        });
    }
    Ok((&text[..end], unit))
}

fn factor(text: &str, unit: &str, units: Units, expected: &'static str) -> Result<(u64, u64), UnitError> {
    units
        .iter()
        .find(|u| u.0 == unit)
        .map(|u| (u.1, u.2))
        .ok_or_else(|| UnitError::UnknownUnit {
            text: text.trim().to_owned(),
            unit: unit.to_owned(),
            expected,
        })
}

/// An exact whole number of the smallest unit.
fn whole(text: &str, units: Units, expected: &'static str, smallest: &'static str) -> Result<u64, UnitError> {
    let (number, unit) = split(text, expected)?;
    let (multiply, _) = factor(text, unit, units, expected)?;
    let text = || text.trim().to_owned();
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((m, e)) => (
            m,
            e.parse::<i32>()
                .map_err(|_| UnitError::TooLarge { text: text() })?,
        ),
        None => (number, 0),
    };
    let negative = mantissa.starts_with('-');
    let digits = mantissa.trim_start_matches(['+', '-']);
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let too_large = || UnitError::TooLarge { text: text() };
    let mut value: u128 = 0;
    for digit in integer.bytes().chain(fraction.bytes()) {
        value = value
            .checked_mul(10)
            .and_then(|v| v.checked_add(u128::from(digit - b'0')))
            .ok_or_else(too_large)?;
    }
    if value == 0 {
        return Ok(0);
    }
    if negative {
        return Err(UnitError::Negative {
            text: text(),
            expected,
        });
    }
    value = value.checked_mul(u128::from(multiply)).ok_or_else(too_large)?;
    let mut scale = i64::from(exponent) - fraction.len() as i64;
    while scale > 0 {
        value = value.checked_mul(10).ok_or_else(too_large)?;
        scale -= 1;
    }
    while scale < 0 {
        if !value.is_multiple_of(10) {
            return Err(UnitError::TooFine {
                text: text(),
                smallest,
            });
        }
        value /= 10;
        scale += 1;
    }
    u64::try_from(value).map_err(|_| too_large())
}

/// A real number of the basic unit.
fn real(text: &str, units: Units, expected: &'static str, may_be_negative: bool) -> Result<f64, UnitError> {
    let (number, unit) = split(text, expected)?;
    let (multiply, divide) = factor(text, unit, units, expected)?;
    let number: f64 = number.parse().map_err(|_| UnitError::NotANumber {
        text: text.trim().to_owned(),
        expected,
    })?;
    if number < 0.0 && !may_be_negative {
        return Err(UnitError::Negative {
            text: text.trim().to_owned(),
            expected,
        });
    }
    let value = number * multiply as f64 / divide as f64;
    if !value.is_finite() {
        return Err(UnitError::TooLarge {
            text: text.trim().to_owned(),
        });
    }
    Ok(if value == 0.0 { 0.0 } else { value })
}

/// Writes `value` with the largest of `units` (largest first) that divides it.
fn write_whole(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let last = units.len() - 1;
    let (name, size) = if value == 0 {
        units[last]
    } else {
        units
            .iter()
            .copied()
            .find(|(_, size)| value.is_multiple_of(*size))
            .unwrap_or(units[last])
    };
    write!(f, "{} {name}", value / size)
}

impl Quantity for Duration {
    const EXPECTED: &'static str = "a duration with a unit, such as \"200 ms\"";
    fn parse_text(text: &str) -> Result<Self, UnitError> {
        whole(text, TIME, Self::EXPECTED, "nanoseconds").map(Self::from_nanos)
    }
    fn canonical(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_nanos() {
            0 => f.write_str("0 s"),
            ns => write_whole(
                f,
                ns,
                &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)],
            ),
        }
    }
}

impl Quantity for BitRate {
    const EXPECTED: &'static str = "a rate with a unit, such as \"384 kbit/s\"";
    fn parse_text(text: &str) -> Result<Self, UnitError> {
        whole(text, RATE, Self::EXPECTED, "bit/s").map(Self)
    }
    fn canonical(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_whole(
            f,
            self.0,
            &[
                ("Gbit/s", 1_000_000_000),
                ("Mbit/s", 1_000_000),
                ("kbit/s", 1_000),
                ("bit/s", 1),
            ],
        )
    }
}

impl Quantity for Bytes {
    const EXPECTED: &'static str = "a size with a unit, such as \"1500 B\" or \"64 kB\"";
    fn parse_text(text: &str) -> Result<Self, UnitError> {
        whole(text, SIZE, Self::EXPECTED, "bytes").map(Self)
    }
    fn canonical(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl Quantity for Packets {
    const EXPECTED: &'static str = "a number of packets, such as \"50 packets\"";
    fn parse_text(text: &str) -> Result<Self, UnitError> {
        whole(text, PACKETS, Self::EXPECTED, "packets").map(Self)
    }
    fn canonical(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets", self.0)
    }
}

impl Quantity for QueueLimit {
    const EXPECTED: &'static str = "a queue size with a unit, such as \"50 packets\" or \"64 kB\"";
    fn parse_text(text: &str) -> Result<Self, UnitError> {
        let (_, unit) = split(text, Self::EXPECTED)?;
        if PACKETS.iter().any(|u| u.0 == unit) {
            whole(text, PACKETS, Self::EXPECTED, "packets").map(|n| Self::Packets(Packets(n)))
        } else {
            whole(text, SIZE, Self::EXPECTED, "bytes").map(|n| Self::Bytes(Bytes(n)))
        }
    }
    fn canonical(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(n) => n.canonical(f),
            Self::Bytes(n) => n.canonical(f),
        }
    }
}

impl Quantity for Metres {
    const EXPECTED: &'static str = "a distance with a unit, such as \"40 m\"";
    fn parse_text(text: &str) -> Result<Self, UnitError> {
        real(text, DISTANCE, Self::EXPECTED, false).map(Self)
    }
    fn canonical(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} m", self.0)
    }
}

impl Quantity for Coordinate {
    const EXPECTED: &'static str = "a coordinate with a unit, such as \"-40 m\"";
    fn parse_text(text: &str) -> Result<Self, UnitError> {
        real(text, DISTANCE, Self::EXPECTED, true).map(Self)
    }
    fn canonical(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} m", self.0)
    }
}

impl Quantity for Speed {
    const EXPECTED: &'static str = "a speed with a unit, such as \"5 m/s\"";
    fn parse_text(text: &str) -> Result<Self, UnitError> {
        real(text, SPEED, Self::EXPECTED, false).map(Self)
    }
    fn canonical(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} m/s", self.0)
    }
}

impl Quantity for Dbm {
    const EXPECTED: &'static str = "a power with a unit, such as \"-82 dBm\"";
    fn parse_text(text: &str) -> Result<Self, UnitError> {
        real(text, POWER, Self::EXPECTED, true).map(Self)
    }
    fn canonical(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dBm", self.0)
    }
}

impl Quantity for Decibel {
    const EXPECTED: &'static str = "a ratio with a unit, such as \"3 dB\"";
    fn parse_text(text: &str) -> Result<Self, UnitError> {
        real(text, RATIO, Self::EXPECTED, true).map(Self)
    }
    fn canonical(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dB", self.0)
    }
}

/// Accepts a string; refuses bare numbers with the quantity's own message.
struct QuantityVisitor<T>(PhantomData<T>);

impl<T: Quantity> QuantityVisitor<T> {
    fn bare<E: de::Error>(number: impl fmt::Display) -> E {
        E::custom(UnitError::NoUnit {
            text: number.to_string(),
            expected: T::EXPECTED,
        })
    }
}

impl<T: Quantity> Visitor<'_> for QuantityVisitor<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::parse_text(text).map_err(E::custom)
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        Err(Self::bare(number))
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        Err(Self::bare(number))
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        Err(Self::bare(number))
    }
}

/// The canonical text of a quantity.
struct Canonical<'a, T>(&'a T);

impl<T: Quantity> fmt::Display for Canonical<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.canonical(f)
    }
}

macro_rules! quantities {
    ($($name:ident),*) => {$(
        impl FromStr for $name {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                Self::parse_text(text)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(QuantityVisitor::<Self>(PhantomData))
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&Canonical(self))
            }
        }
    )*};
}
quantities!(
    Duration, BitRate, Bytes, Packets, QueueLimit, Metres, Coordinate, Speed, Dbm, Decibel
);

macro_rules! display_canonical {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.canonical(f)
            }
        }
    )*};
}
display_canonical!(
    BitRate, Bytes, Packets, QueueLimit, Metres, Coordinate, Speed, Dbm, Decibel
);

#[cfg(test)]
mod tests;
