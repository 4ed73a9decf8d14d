//! JSON Schema of quantities: which texts are one. What it takes the parser takes too; the parser takes a few more, such as numbers
//! with an exponent.

use super::{
    BitRate, Bytes, Coordinate, DISTANCE, Dbm, Decibel, Metres, PACKETS, POWER, Packets, Quantity,
    QueueLimit, RATE, RATIO, SIZE, SPEED, Speed, TIME, Units,
};
use crate::time::Duration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// A kind of quantity, as it is written.
trait Written: Quantity {
    /// What it is, in a word.
    const KIND: &'static str;
    /// The units that it may have.
    const UNITS: &'static [Units];
    /// A text that is one.
    const EXAMPLE: &'static str;
    /// How its number may be.
    const NUMBER: Number;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    /// A whole number of the smallest unit.
    Whole,
    /// Not below zero.
    Positive,
    Signed,
}

/// Digits of the greatest whole number that is certain not to be too large.
const DIGITS: u32 = 18;
/// Digits of a real number, before the point and behind it.
const REAL_DIGITS: u32 = 15;

impl Number {
    /// The numbers that `unit` may have, as a regular expression.
    fn pattern(self, (_, multiplier, _): (&str, u64, u64)) -> String {
        let sign = if self == Self::Signed { "[+-]?" } else { "\\+?" };
        if self != Self::Whole {
            return format!("{sign}[0-9]{{1,{REAL_DIGITS}}}(\\.[0-9]{{0,{REAL_DIGITS}}})?");
        }
        let fraction = if multiplier.is_power_of_two() && multiplier > 1 {
            "(\\.(0|25|5|75))?".to_owned()
        } else {
            // so many of the smallest unit are a tenth of it, and a tenth of that
            match decimal_zeros(multiplier) {
                0 => String::new(),
                zeros => format!("(\\.[0-9]{{0,{zeros}}})?"),
            }
        };
        format!("{sign}[0-9]{{1,{}}}{fraction}", DIGITS - multiplier.ilog10())
    }
}

/// Zeros at the end of a number.
fn decimal_zeros(number: u64) -> u32 {
    let ends_in = |zeros: u32| {
        10_u64
            .checked_pow(zeros)
            .is_some_and(|power| number.is_multiple_of(power))
    };
    (1..).take_while(|&zeros| ends_in(zeros)).count() as u32
}

/// The texts that are a quantity, as a regular expression, but for blanks around them.
fn texts<T: Written>() -> String {
    let one =
        |unit: &(&str, u64, u64)| format!("{} *{}", T::NUMBER.pattern(*unit), unit.0.replace('/', "\\/"));
    let texts: Vec<String> = T::UNITS.iter().copied().flatten().map(one).collect();
    format!("({})", texts.join("|"))
}

fn schema<T: Written>() -> Schema {
    let names: Vec<&str> = T::UNITS.iter().copied().flatten().map(|unit| unit.0).collect();
    json_schema!({
        "type": "string",
        "pattern": format!("^ *{} *$", texts::<T>()),
        "examples": [T::EXAMPLE],
        "x-quantity": T::KIND,
        "x-units": names,
    })
}

macro_rules! written {
    ($($name:ident: $kind:literal, $units:expr, $example:literal, $number:ident;)*) => {$(
        impl Written for $name {
            const KIND: &'static str = $kind;
            const UNITS: &'static [Units] = $units;
            const EXAMPLE: &'static str = $example;
            const NUMBER: Number = Number::$number;
        }
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                schema::<Self>()
            }
        }
    )*};
}
written!(
    Duration: "duration", &[TIME], "200 ms", Whole;
    BitRate: "rate", &[RATE], "384 kbit/s", Whole;
    Bytes: "size", &[SIZE], "1500 B", Whole;
    Packets: "number of packets", &[PACKETS], "50 packets", Whole;
    QueueLimit: "queue size", &[PACKETS, SIZE], "50 packets", Whole;
    Metres: "distance", &[DISTANCE], "40 m", Positive;
    Coordinate: "coordinate", &[DISTANCE], "-40 m", Signed;
    Speed: "speed", &[SPEED], "5 m/s", Positive;
    Dbm: "power", &[POWER], "-82 dBm", Signed;
    Decibel: "ratio", &[RATIO], "3 dB", Signed;
);

#[cfg(feature = "nd")]
impl JsonSchema for crate::l2::DurationRange {
    fn schema_name() -> Cow<'static, str> {
        "DurationRange".into()
    }
    /// That the shorter one comes first it does not say.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let duration = texts::<Duration>();
        json_schema!({
            "type": "string",
            "pattern": format!("^ *{duration} *(\\.\\. *{duration} *)?$"),
            "examples": ["40 ms..350 ms"],
            "x-quantity": "duration or range of durations",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_each_quantity_is_one() {
        fn check<T: Written>() {
            assert!(T::parse_text(T::EXAMPLE).is_ok(), "{}", T::EXAMPLE);
        }
        check::<Duration>();
        check::<BitRate>();
        check::<Bytes>();
        check::<Packets>();
        check::<QueueLimit>();
        check::<Metres>();
        check::<Coordinate>();
        check::<Speed>();
        check::<Dbm>();
        check::<Decibel>();
    }

    #[test]
    fn fractions_are_of_what_is_left_of_the_smallest_unit() {
        let pattern = |unit: &str| {
            let unit = TIME.iter().find(|u| u.0 == unit).copied();
            Number::Whole.pattern(unit.expect("a unit of time"))
        };
        assert_eq!(pattern("ns"), "\\+?[0-9]{1,18}");
        assert_eq!(pattern("ms"), "\\+?[0-9]{1,12}(\\.[0-9]{0,6})?");
        assert_eq!(pattern("min"), "\\+?[0-9]{1,8}(\\.[0-9]{0,10})?");
    }
}
