//! Small sums: `t_1 + t_dwell`, `bw_ratio * 384 kbit/s`.

use core::cmp::Ordering;
use segue_proto::Duration;
use segue_proto::units::{BitRate, Bytes, Packets, UnitError};
use toml::Value;

/// What a name stands for.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<Value>;

/// Works out an expression: numbers, quantities with units and names, joined by `+`, `-` and `*` (which binds closer). A name
/// alone gives its value as it is, whatever that is.
///
/// # Errors
/// What is wrong with it.
pub(super) fn evaluate(text: &str, lookup: Lookup<'_>) -> Result<Value, String> {
    if let Some(value) = lookup(text.trim()) {
        return Ok(value);
    }
    let mut rest = text.trim_start();
    let mut sum = product(&mut rest, lookup)?;
    loop {
        let sign = match rest.chars().next() {
            None => break,
            Some('+') => 1.0,
            Some('-') => -1.0,
            Some(other) => return Err(format!("`{other}`: expected +, - or *")),
        };
        rest = rest[1..].trim_start();
        let next = product(&mut rest, lookup)?;
        if next.unit != sum.unit {
            return Err(format!(
                "{} and {} cannot be added",
                sum.unit.name(),
                next.unit.name()
            ));
        }
        sum.number += sign * next.number;
    }
    sum.into_value()
}

/// Which of two values of one unit is greater.
///
/// # Errors
/// They cannot be compared.
pub(super) fn compare(a: &Value, b: &Value) -> Result<Ordering, String> {
    let (a, b) = (Amount::of(a)?, Amount::of(b)?);
    if a.unit != b.unit {
        return Err(format!(
            "{} and {} cannot be compared",
            a.unit.name(),
            b.unit.name()
        ));
    }
    Ok(a.number.total_cmp(&b.number))
}

/// Whether `given` is of the kind of `declared`: a number, or a quantity with that unit. What is neither is left alone.
///
/// # Errors
/// What is wrong with it, and what was expected.
pub(super) fn expect_like(declared: &Value, given: &Value) -> Result<(), String> {
    let Ok(kind) = Amount::of(declared).map(|amount| amount.unit) else {
        return Ok(());
    };
    let text = match given {
        Value::Integer(n) => n.to_string(),
        Value::Float(n) => n.to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let said = |e: UnitError| e.to_string();
    match kind {
        Unit::None => match given {
            Value::Integer(_) | Value::Float(_) => Ok(()),
            _ => Err(format!("`{text}`: expected a number such as {declared}")),
        },
        Unit::Nanoseconds => text.parse::<Duration>().map(drop).map_err(said),
        Unit::BitsPerSecond => text.parse::<BitRate>().map(drop).map_err(said),
        Unit::Bytes => text.parse::<Bytes>().map(drop).map_err(said),
        Unit::Packets => text.parse::<Packets>().map(drop).map_err(said),
    }
}

/// The names that occur in an expression.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(['+', '-', '*']).map(str::trim);
    parts.filter(|p| p.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    None,
    Nanoseconds,
    BitsPerSecond,
    Bytes,
    Packets,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "a number",
            Self::Nanoseconds => "a duration",
            Self::BitsPerSecond => "a rate",
            Self::Bytes => "a size",
            Self::Packets => "a number of packets",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Amount {
    number: f64,
    unit: Unit,
}

impl Amount {
    fn of(value: &Value) -> Result<Self, String> {
        let plain = |number| Self {
            number,
            unit: Unit::None,
        };
        match value {
            Value::Integer(n) => Ok(plain(*n as f64)),
            Value::Float(n) if n.is_finite() => Ok(plain(*n)),
            Value::String(text) => Self::quantity(text),
            other => Err(format!("`{other}`: expected a number or a quantity with a unit")),
        }
    }

    fn quantity(text: &str) -> Result<Self, String> {
        let amount = |number: u64, unit| Self {
            number: number as f64,
            unit,
        };
        let time = text
            .parse()
            .map(|d: Duration| amount(d.as_nanos(), Unit::Nanoseconds));
        let rate = || {
            text.parse()
                .map(|r: BitRate| amount(r.bits_per_second(), Unit::BitsPerSecond))
        };
        let size = || text.parse().map(|b: Bytes| amount(b.bytes(), Unit::Bytes));
        let packets = || text.parse().map(|p: Packets| amount(p.count(), Unit::Packets));
        time.or_else(|_| rate())
            .or_else(|_| size())
            .or_else(|_| packets())
            .map_err(|_| format!("`{text}`: expected a duration, a rate, a size or packets, with the unit"))
    }

    fn times(self, other: Self) -> Result<Self, String> {
        let unit = match (self.unit, other.unit) {
            (unit, Unit::None) | (Unit::None, unit) => unit,
            (a, b) => return Err(format!("{} and {} cannot be multiplied", a.name(), b.name())),
        };
        Ok(Self {
            number: self.number * other.number,
            unit,
        })
    }

    fn into_value(self) -> Result<Value, String> {
        let number = self.number;
        if self.unit == Unit::None {
            let whole = number.fract() == 0.0 && number.abs() < 9.0e15;
            return Ok(if whole {
                Value::Integer(number as i64)
            } else {
                Value::Float(number)
            });
        }
        if !(0.0..9.0e18).contains(&number) {
            return Err(format!("is {} that is negative or too large", self.unit.name()));
        }
        // of bits, bytes and nanoseconds a fraction is none of the user's; half a packet is
        if self.unit == Unit::Packets && number.fract() != 0.0 {
            return Err(format!("is {number} packets: expected a whole number of them"));
        }
        let n = number.round() as u64;
        let text = match self.unit {
            Unit::None => unreachable!("plain numbers are done with"),
            Unit::Nanoseconds => Duration::from_nanos(n).to_string(),
            Unit::BitsPerSecond => BitRate::from_bits_per_second(n).to_string(),
            Unit::Bytes => Bytes::new(n).to_string(),
            Unit::Packets => Packets::new(n).to_string(),
        };
        Ok(Value::String(text))
    }
}

fn product(rest: &mut &str, lookup: Lookup<'_>) -> Result<Amount, String> {
    let mut product = factor(rest, lookup)?;
    while let Some(after) = rest.strip_prefix('*') {
        *rest = after.trim_start();
        product = product.times(factor(rest, lookup)?)?;
    }
    Ok(product)
}

/// A name, a number or a quantity.
fn factor(rest: &mut &str, lookup: Lookup<'_>) -> Result<Amount, String> {
    let end = rest.find(['+', '-', '*']).unwrap_or(rest.len());
    let (text, after) = rest.split_at(end);
    *rest = after;
    let text = text.trim();
    if text.is_empty() {
        return Err("expected a name, a number or a quantity with a unit".to_owned());
    }
    if text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        let value = lookup(text).ok_or_else(|| format!("`{text}` is no key of [parameters]"))?;
        return Amount::of(&value).map_err(|problem| format!("{text}: {problem}"));
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Amount {
            number,
            unit: Unit::None,
        }),
        _ => Amount::quantity(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<Value> {
        let value = match name {
            "bw_ratio" => Value::Integer(4),
            "half" => Value::Float(0.5),
            "t_1" => Value::String("2 s".to_owned()),
            "t_dwell" => Value::String("40 s".to_owned()),
            "queue.packets" => Value::Integer(50),
            "flag" => Value::Boolean(true),
            _ => return None,
        };
        Some(value)
    }

    fn is(text: &str, expected: &str) {
        let value = evaluate(text, &lookup).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(value, Value::String(expected.to_owned()), "{text}");
    }

    #[test]
    fn quantities_are_added_and_multiplied() {
        is("t_1 + t_dwell", "42000 ms");
        is("t_dwell - t_1", "38000 ms");
        is("bw_ratio * 384 kbit/s", "1536 kbit/s");
        is("t_1 + half * t_dwell", "22000 ms");
        is("queue.packets * 1 packet", "50 packets");
        is("1.5 MB + 500 kB", "2000000 B");
        assert_eq!(evaluate("2 * bw_ratio", &lookup), Ok(Value::Integer(8)));
        assert_eq!(evaluate("flag", &lookup), Ok(Value::Boolean(true)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, word) in [
            ("t_1 + bw_ratio", "cannot be added"),
            ("t_1 * t_dwell", "cannot be multiplied"),
            ("t_1 - t_dwell", "negative"),
            ("t_3 + t_1", "no key of [parameters]"),
            ("t_1 +", "expected a name"),
            ("2 apples * 3", "expected a duration"),
            ("half * 3 packets", "is 1.5 packets: expected a whole number"),
            ("flag * 2", "expected a number"),
            ("", "expected a name"),
        ] {
            let error = evaluate(text, &lookup).expect_err(text);
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn names_are_found() {
        let found: Vec<&str> = names("bw_ratio * 384 kbit/s + queue.packets").collect();
        assert_eq!(found, ["bw_ratio", "queue.packets"]);
    }
}
