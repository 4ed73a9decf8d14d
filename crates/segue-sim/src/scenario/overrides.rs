//! Overrides of single keys.

use super::ScenarioError;
use toml::{Table, Value};

/// Where an override comes from, in messages.
pub(super) const SOURCE: &str = "--set";

/// The value that overrides give to a key of the file's top level.
pub(super) fn given<'a>(overrides: &'a [(String, String)], key: &str) -> Option<&'a str> {
    let last = overrides.iter().rev().find(|(k, _)| k == key);
    last.map(|(_, value)| value.trim().trim_matches('"'))
}

/// Sets the dotted `key` of `table`. A value that is not TOML is taken as a string, so that quotes may be left out. Gives the
/// key with the numbers of entries that it names.
pub(super) fn apply(table: &mut Table, key: &str, value: &str) -> Result<String, ScenarioError> {
    put(table, key, parse(value), SOURCE)
}

/// Sets the dotted `key` of `table`, as `source` asks for it.
pub(super) fn put(table: &mut Table, key: &str, value: Value, source: &str) -> Result<String, ScenarioError> {
    let dotted = with_dots(key);
    let parts: Vec<&str> = dotted.split('.').collect();
    if parts.iter().any(|p| p.is_empty()) {
        return Err(ScenarioError::new(
            source,
            key,
            "expected a dotted key, such as `l2.latency`",
        ));
    }
    let mut at: &mut Value = table.entry(parts[0].to_owned()).or_insert_with(|| {
        if parts.len() == 1 {
            Value::Boolean(false)
        } else {
            Value::Table(Table::new())
        }
    });
    let mut numbered = parts[0].to_owned();
    for (depth, part) in parts.iter().enumerate().skip(1) {
        let path = parts[..depth].join(".");
        at = match at {
            Value::Table(t) => {
                numbered = format!("{numbered}.{part}");
                t.entry((*part).to_owned())
                    .or_insert_with(|| Value::Table(Table::new()))
            }
            Value::Array(a) => {
                let length = a.len();
                let index = super::cases::entry(a, part).map_err(|problem| {
                    ScenarioError::new(
                        source,
                        key,
                        format!("{problem}, because `{path}` is a list of {length}"),
                    )
                })?;
                numbered = format!("{numbered}.{index}");
                &mut a[index]
            }
            _ => {
                return Err(ScenarioError::new(
                    source,
                    key,
                    format!("`{path}` has no keys of its own"),
                ));
            }
        };
    }
    *at = value;
    Ok(numbered)
}

/// The value at the dotted `key`.
pub(super) fn find<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    let dotted = with_dots(key);
    let mut parts = dotted.split('.');
    let first = table.get(parts.next()?)?;
    parts.try_fold(first, |at, part| match at {
        Value::Table(t) => t.get(part),
        Value::Array(a) => a.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

/// `--set` if an override set this key, something within it, or something around it.
pub(super) fn source_of(key: &str, overrides: &[(String, String)]) -> Option<String> {
    written(key, overrides).map(|_| SOURCE.to_owned())
}

/// The key that an override named which set this key, something within it, or something around it.
pub(super) fn written<'a>(key: &str, overrides: &'a [(String, String)]) -> Option<&'a str> {
    let dotted = with_dots(key);
    let within = |a: &str, b: &str| a == b || a.strip_prefix(b).is_some_and(|rest| rest.starts_with('.'));
    let touches = |set: &str| within(&dotted, set) || within(set, &dotted);
    let found = overrides.iter().find(|(set, _)| touches(&with_dots(set)));
    found.map(|(set, _)| set.as_str())
}

/// `cell[0].radius`, as messages have it, is `cell.0.radius`.
pub(super) fn with_dots(key: &str) -> String {
    key.replace('[', ".").replace(']', "")
}

pub(super) fn parse(value: &str) -> Value {
    let as_toml = format!("v = {value}")
        .parse::<Table>()
        .ok()
        .and_then(|mut t| t.remove("v"));
    as_toml.unwrap_or_else(|| Value::String(value.to_owned()))
}
