//! All that is wrong with a scenario file at once, and where.
//!
//! A scenario is refused for the first thing that is wrong with it. Here that is put right for the time being, by a value that the key
//! may have, and the rest is looked at.

use super::keys::{self, Key};
use super::{Scenario, ScenarioError, overrides};
use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// The most that is said of a file.
const MOST: usize = 50;

/// Something that is wrong with a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Line and column, from 1 on; nothing for what is wrong in another file.
    pub at: Option<(usize, usize)>,
    /// Which key, and what was expected.
    pub error: ScenarioError,
}

/// What is wrong with a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Problems {
    /// In the order of the file.
    pub found: Vec<Found>,
    /// What was found could not be put right for the time being, so that there may be more.
    pub more: bool,
}

/// All that is wrong with a scenario file. `file` names it in messages, and files that it names are found from there.
#[must_use]
pub fn problems(text: &str, file: &str) -> Problems {
    let (written, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let mut found: Vec<Found> = errors.iter().map(|error| not_toml(text, file, error)).collect();
        found.sort_by_key(|found| found.at);
        // of a line that is none, the first that is wrong with it
        found.dedup_by_key(|found| found.at.map(|at| at.0));
        found.truncate(MOST);
        return Problems { found, more: true };
    }
    let mut problems = Problems::default();
    let mut repaired: Table = text.parse().unwrap_or_default();
    let known = keys::keys();
    while let Some(error) = refused(&repaired, file) {
        let again = problems.found.iter().any(|found| found.error == error);
        if again || problems.found.len() == MOST || !repair(&mut repaired, &error, &known) {
            problems.more = true;
        }
        if !again {
            let span = (error.source == file)
                .then(|| place(written.get_ref(), &error.key))
                .flatten();
            let at = span.map(|start| position(text, start));
            problems.found.push(Found { at, error });
        }
        if problems.more {
            break;
        }
    }
    problems.found.sort_by_key(|found| found.at);
    problems
}

fn not_toml(text: &str, file: &str, error: &toml::de::Error) -> Found {
    Found {
        at: error.span().map(|span| position(text, span.start)),
        error: ScenarioError::new(file, "", format!("is not TOML: {}", error.message())),
    }
}

fn refused(table: &Table, file: &str) -> Option<ScenarioError> {
    let text = toml::to_string(table).ok()?;
    Scenario::from_toml(&text, file, &[]).err()
}

/// Where the key is, or the nearest around it that the file has.
fn place(table: &DeTable<'_>, key: &str) -> Option<usize> {
    let dotted = overrides::with_dots(key);
    let mut at: Option<&Spanned<DeValue<'_>>> = None;
    let mut start = None;
    for part in dotted.split('.') {
        let inside = match at.map(Spanned::get_ref) {
            None => Some(table),
            Some(DeValue::Table(table)) => Some(table),
            Some(_) => None,
        };
        if let Some(inside) = inside {
            let Some((name, value)) = inside.iter().find(|(name, _)| name.get_ref() == part) else {
                break;
            };
            start = Some(name.span().start);
            at = Some(value);
            continue;
        }
        let Some(DeValue::Array(entries)) = at.map(Spanned::get_ref) else {
            break;
        };
        let Some(entry) = part.parse().ok().and_then(|number: usize| entries.get(number)) else {
            break;
        };
        start = Some(entry.span().start);
        at = Some(entry);
    }
    start
}

/// Line and column of a byte.
fn position(text: &str, start: usize) -> (usize, usize) {
    let before = text.get(..start).unwrap_or(text);
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    (
        before.matches('\n').count() + 1,
        before[line..].chars().count() + 1,
    )
}

/// Puts right what an error is about. Returns false where it cannot.
fn repair(table: &mut Table, error: &ScenarioError, known: &[Key]) -> bool {
    if error.key.is_empty() {
        return false;
    }
    let missing = error.problem.strip_prefix("expected the key `");
    if let Some(missing) = missing.and_then(|rest| rest.split_once('`')) {
        let key = format!("{}.{}", error.key, missing.0);
        return allowed(known, &key).is_some_and(|value| put(table, &key, value));
    }
    let required = known
        .iter()
        .any(|one| one.required && one.key == plain(&error.key));
    if required {
        return allowed(known, &error.key).is_some_and(|value| put(table, &error.key, value));
    }
    remove(table, &error.key)
}

/// A value that a key may have, if that depends on nothing else.
fn allowed(known: &[Key], key: &str) -> Option<Value> {
    let plain = plain(key);
    let key = known.iter().find(|one| one.key == plain)?;
    let value = key.default.clone().or_else(|| key.example.clone());
    let value = value.or_else(|| key.choices.first().map(|choice| choice.value.clone()));
    match value.or_else(|| key.least.clone())? {
        Json::String(text) => Some(Value::String(text)),
        Json::Bool(yes) => Some(Value::Boolean(yes)),
        Json::Number(number) => number
            .as_i64()
            .map(Value::Integer)
            .or_else(|| number.as_f64().map(Value::Float)),
        _ => None,
    }
}

/// A key without the numbers of entries.
fn plain(key: &str) -> String {
    let parts = key.split('.').map(|part| match part.split_once('[') {
        Some((name, _)) => format!("{name}[]"),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join(".")
}

fn put(table: &mut Table, key: &str, value: Value) -> bool {
    overrides::put(table, &overrides::with_dots(key), value, "").is_ok()
}

/// Takes a key out, or an entry of a list.
fn remove(table: &mut Table, key: &str) -> bool {
    let dotted = overrides::with_dots(key);
    let Some((around, last)) = dotted.rsplit_once('.') else {
        return table.remove(&dotted).is_some();
    };
    let mut parts = around.split('.');
    let Some(first) = parts.next().and_then(|part| table.get_mut(part)) else {
        return false;
    };
    let inside = parts.try_fold(first, |at, part| match at {
        Value::Table(table) => table.get_mut(part),
        Value::Array(entries) => entries.get_mut(part.parse::<usize>().ok()?),
        _ => None,
    });
    match inside {
        Some(Value::Table(table)) => table.remove(last).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BULK: &str = include_str!("../../../../scenarios/bench/bulk.toml");

    /// Line and column, and what is said.
    type Said = (Option<(usize, usize)>, String);

    fn all(text: &str) -> (Vec<Said>, bool) {
        let problems = problems(text, "f.toml");
        let found = problems
            .found
            .into_iter()
            .map(|found| (found.at, found.error.to_string()));
        (found.collect(), problems.more)
    }

    #[test]
    fn a_scenario_without_a_fault_has_none() {
        assert_eq!(all(BULK), (Vec::new(), false));
    }

    #[test]
    fn everything_is_said_at_once_in_the_order_of_the_file() {
        let text = BULK
            .replace("duration = \"60 s\"", "duration = 60")
            .replace("sack_frequency = 2", "sack_frequenzy = 2")
            .replace("kind = \"bulk\"", "kind = \"bulkt\"");
        let line = |of: &str| {
            text.lines()
                .position(|line| line.starts_with(of))
                .map(|line| (line + 1, 1))
        };
        let (found, more) = all(&text);
        let places: Vec<_> = found.iter().map(|(at, _)| *at).collect();
        assert_eq!(
            places,
            [line("duration"), line("sack_frequenzy"), line("kind")],
            "{found:?}"
        );
        assert!(found[0].1.contains("has no unit"), "{found:?}");
        assert!(found[1].1.contains("did you mean `sack_frequency`?"), "{found:?}");
        assert!(found[2].1.contains("expected one of bulk"), "{found:?}");
        assert!(!more);
    }

    #[test]
    fn what_hides_the_rest_says_so() {
        let text = BULK.replace("to = \"receiver\"", "to = \"nobody\"");
        let (found, more) = all(&text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].1.contains("expected the name of a host") && more);
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_places() {
        let (found, more) = all("a = \nb = 1\nc = = 2\n");
        let lines: Vec<_> = found.iter().filter_map(|(at, _)| at.map(|at| at.0)).collect();
        assert_eq!((lines, more), (vec![1, 3], true));
    }
}
