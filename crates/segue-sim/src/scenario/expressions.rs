//! Small sums: `t_1 + t_dwell`, `bw_ratio * 384 kbit/s`, `(i % 100) * 50 m`.

use core::cmp::Ordering;
use segue_proto::Duration;
use segue_proto::units::{BitRate, Bytes, Coordinate, Packets, Speed, UnitError};
use toml::Value;

/// What a name stands for.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<Value>;

/// Works out an expression: numbers, quantities with units and names, joined by `+` and `-`, and by `*`, `//` (how many times the
/// one is in the other, whole) and `%` (what is left then), which bind closer; parentheses. A name alone gives its value as it is,
/// whatever that is.
///
/// # Errors
/// What is wrong with it.
pub(super) fn evaluate(text: &str, lookup: Lookup<'_>) -> Result<Value, String> {
    if let Some(value) = lookup(text.trim()) {
        return Ok(value);
    }
    amount(text, lookup)?.into_value()
}

/// What an expression comes to, as something to calculate with.
///
/// # Errors
/// What is wrong with it.
pub(super) fn amount(text: &str, lookup: Lookup<'_>) -> Result<Amount, String> {
    let mut rest = text.trim_start();
    let amount = sum(&mut rest, lookup, 0)?;
    match rest.chars().next() {
        None => Ok(amount),
        Some(other) => Err(format!("`{other}`: expected +, -, *, // or %")),
    }
}

/// Most parentheses within each other.
const DEEPEST: u32 = 32;

/// To the end, or to a parenthesis that ends it.
fn sum(rest: &mut &str, lookup: Lookup<'_>, depth: u32) -> Result<Amount, String> {
    if depth > DEEPEST {
        return Err(format!("has more than {DEEPEST} parentheses within each other"));
    }
    let mut sum = product(rest, lookup, depth)?;
    loop {
        let (sign, after) = match (rest.strip_prefix('+'), rest.strip_prefix('-')) {
            (Some(after), _) => (1.0, after),
            (_, Some(after)) => (-1.0, after),
            _ => return Ok(sum),
        };
        *rest = after.trim_start();
        let next = product(rest, lookup, depth)?;
        if next.unit != sum.unit {
            return Err(format!(
                "{} and {} cannot be added",
                sum.unit.name(),
                next.unit.name()
            ));
        }
        sum.number += sign * next.number;
    }
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
        Unit::Metres => text.parse::<Coordinate>().map(drop).map_err(said),
        Unit::MetresPerSecond => text.parse::<Speed>().map(drop).map_err(said),
    }
}

/// The names that occur in an expression.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(['+', '-', '*', '%', '(', ')']);
    let parts = parts.flat_map(|part| part.split("//")).map(str::trim);
    parts.filter(|p| p.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    None,
    Nanoseconds,
    BitsPerSecond,
    Bytes,
    Packets,
    Metres,
    MetresPerSecond,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "a number",
            Self::Nanoseconds => "a duration",
            Self::BitsPerSecond => "a rate",
            Self::Bytes => "a size",
            Self::Packets => "a number of packets",
            Self::Metres => "a distance",
            Self::MetresPerSecond => "a speed",
        }
    }
}

/// A number, with its unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount {
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
        let real = |number, unit| Self { number, unit };
        let distance = || text.parse().map(|c: Coordinate| real(c.metres(), Unit::Metres));
        let speed = || {
            text.parse()
                .map(|s: Speed| real(s.metres_per_second(), Unit::MetresPerSecond))
        };
        time.or_else(|_| rate())
            .or_else(|_| size())
            .or_else(|_| packets())
            .or_else(|_| distance())
            .or_else(|_| speed())
            .map_err(|_| {
                format!("`{text}`: expected a duration, a rate, a size, packets, a distance or a speed, with the unit")
            })
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

    /// How many times `other` is in it, whole, and what is left: that is not below zero.
    fn divided_by(self, other: Self) -> Result<(Self, Self), String> {
        if self.unit != other.unit && other.unit != Unit::None {
            return Err(format!(
                "{} cannot be divided by {}",
                self.unit.name(),
                other.unit.name()
            ));
        }
        if other.number <= 0.0 {
            return Err("a division by what is not above 0".to_owned());
        }
        let times = libm::floor(self.number / other.number);
        let whole = Self {
            number: times,
            unit: if self.unit == other.unit {
                Unit::None
            } else {
                self.unit
            },
        };
        let left = Self {
            number: self.number - times * other.number,
            unit: self.unit,
        };
        Ok((whole, left))
    }

    fn same_unit(self, other: Self) -> Result<(), String> {
        let units = (self.unit.name(), other.unit.name());
        (self.unit == other.unit)
            .then_some(())
            .ok_or_else(|| format!("{} and {} are not of one kind", units.0, units.1))
    }

    /// What lies between it and `greatest`, `share` of the way.
    pub(super) fn between(self, greatest: Self, share: f64) -> Result<Value, String> {
        self.same_unit(greatest)?;
        if self.number > greatest.number {
            return Err("the least is the greater of them".to_owned());
        }
        let number = self.number + share * (greatest.number - self.number);
        Self { number, ..self }.into_value()
    }

    /// So many times as much.
    pub(super) fn scaled(self, times: f64) -> Result<Value, String> {
        let number = self.number * times;
        Self { number, ..self }.into_value()
    }

    /// What is so many deviations from it; nothing where that is below zero, and of a kind that cannot be.
    pub(super) fn beside(self, deviation: Self, deviations: f64) -> Result<Option<Value>, String> {
        self.same_unit(deviation)?;
        if deviation.number < 0.0 {
            return Err("a deviation that is negative".to_owned());
        }
        let number = self.number + deviations * deviation.number;
        let signed = matches!(self.unit, Unit::None | Unit::Metres);
        if number < 0.0 && !signed {
            return Ok(None);
        }
        Self { number, ..self }.into_value().map(Some)
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
        if self.unit == Unit::Metres {
            return Ok(Value::String(Coordinate::from_metres(number).to_string()));
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
            Unit::None | Unit::Metres => unreachable!("plain numbers and distances are done with"),
            Unit::MetresPerSecond => Speed::from_metres_per_second(number).to_string(),
            Unit::Nanoseconds => Duration::from_nanos(n).to_string(),
            Unit::BitsPerSecond => BitRate::from_bits_per_second(n).to_string(),
            Unit::Bytes => Bytes::new(n).to_string(),
            Unit::Packets => Packets::new(n).to_string(),
        };
        Ok(Value::String(text))
    }
}

fn product(rest: &mut &str, lookup: Lookup<'_>, depth: u32) -> Result<Amount, String> {
    let mut product = factor(rest, lookup, depth)?;
    loop {
        let Some((sign, after)) = ["*", "//", "%"]
            .into_iter()
            .find_map(|sign| Some((sign, rest.strip_prefix(sign)?)))
        else {
            return Ok(product);
        };
        *rest = after.trim_start();
        let next = factor(rest, lookup, depth)?;
        product = match sign {
            "*" => product.times(next)?,
            "//" => product.divided_by(next)?.0,
            _ => product.divided_by(next)?.1,
        };
    }
}

/// A name, a number, a quantity, or a sum in parentheses.
fn factor(rest: &mut &str, lookup: Lookup<'_>, depth: u32) -> Result<Amount, String> {
    if let Some(within) = rest.strip_prefix('(') {
        *rest = within.trim_start();
        let amount = sum(rest, lookup, depth + 1)?;
        let after = rest.strip_prefix(')').ok_or("expected a `)`")?;
        *rest = after.trim_start();
        return Ok(amount);
    }
    // no farther than to the end of it: an expression may be long
    let ends = |(at, sign): &(usize, char)| match sign {
        '+' | '-' | '*' | '%' | ')' => true,
        '/' => rest[*at..].starts_with("//"),
        _ => false,
    };
    let end = rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at);
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
        is("(t_1 + t_dwell) * half", "21000 ms");
        is("7 // 2 * 50 m - 200 m", "-50 m");
        is("3 * 1.5 m/s", "4.5 m/s");
        is("45 s % t_dwell", "5000 ms");
        assert_eq!(evaluate("45 s // t_dwell", &lookup), Ok(Value::Integer(1)));
        assert_eq!(evaluate("(bw_ratio + 3) % 5", &lookup), Ok(Value::Integer(2)));
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
            ("(t_1 + t_1", "expected a `)`"),
            ("t_1)", "`)`: expected +, -, *, // or %"),
            ("3 % 0", "division by what is not above 0"),
            ("3 // t_1", "cannot be divided"),
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
