//! Whether a value is the one that a script has.

use crate::drill::layout::{Field, Item, Value};
use crate::drill::stack::Comparison;

/// Holds chunks, parameters or causes against those that are due.
pub fn items(due: &[Item], came: &[Item]) -> Comparison {
    for (i, due) in due.iter().enumerate() {
        let Some(came) = came.get(i) else {
            return Comparison::Differs(format!("no {} in it", due.layout.name));
        };
        if due.layout != came.layout {
            return Comparison::Differs(format!("{}, not {}", came.layout.name, due.layout.name));
        }
        if let Comparison::Differs(difference) = item(due, came) {
            return Comparison::Differs(format!("{}: {difference}", due.layout.name));
        }
    }
    match came.get(due.len()) {
        None => Comparison::Same,
        Some(more) => Comparison::Differs(format!("{} too many", more.layout.name)),
    }
}

fn item(due: &Item, came: &Item) -> Comparison {
    for ((field, due), (_, came)) in due.pairs().zip(came.pairs()) {
        if let Comparison::Differs(difference) = value(field, due, came) {
            return Comparison::Differs(difference);
        }
    }
    Comparison::Same
}

fn value(field: &Field, due: &Value, came: &Value) -> Comparison {
    match (due, came) {
        (Value::Any, _) => Comparison::Same,
        (Value::Items(due), Value::Items(came)) => items(due, came),
        (Value::Absent, Value::Items(came)) => items(&[], came),
        (Value::Items(due), Value::Absent) => items(due, &[]),
        _ if is_nothing(due) && is_nothing(came) || due == came => Comparison::Same,
        _ => Comparison::Differs(format!(
            "{} is {}, not {}",
            field.name,
            Written(came),
            Written(due)
        )),
    }
}

/// An empty list says the same as none.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Absent => true,
        Value::Numbers(numbers) => numbers.is_empty(),
        Value::Groups(groups) => groups.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        _ => false,
    }
}

/// A value in few words, for a message that shows the whole packet too.
struct Written<'a>(&'a Value);

impl core::fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Value::Number(number) => write!(f, "{number}"),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Address(address) => write!(f, "{address}"),
            Value::Numbers(numbers) => write!(f, "{numbers:?}"),
            Value::Groups(groups) => write!(f, "{groups:?}"),
            Value::Bytes(bytes) => write!(f, "{} bytes {bytes:02x?}", bytes.len()),
            Value::Any | Value::Absent | Value::Items(_) => f.write_str("something else"),
        }
    }
}
