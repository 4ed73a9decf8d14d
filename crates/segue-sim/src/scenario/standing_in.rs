//! Values that stand in for those that are wrong, so that the rest of a scenario can be looked at.

use super::keys::{self, Key};
use super::{Scenario, ScenarioError, overrides};
use serde_json::Value as Json;
use toml::{Table, Value};

/// A file is read so often at most: what a reading takes grows with the file.
const MOST_READINGS: usize = 400;
/// So many faults of a trial are put right to see what they hide.
const MOST_HIDDEN: usize = 4;

/// A scenario with values that stand in for wrong ones.
pub(super) struct Attempt<'a> {
    table: Table,
    file: &'a str,
    known: Vec<Key>,
    stand_ins: Vec<StandIn>,
    /// Lists and the numbers of entries that were taken out of them, in turn.
    taken_out: Vec<(String, usize)>,
    /// What was wrong with stand-ins alone.
    set_aside: Vec<ScenarioError>,
    readings: usize,
}

/// A key that was wrong, and the values that it may have; nothing for none.
#[derive(Clone)]
struct StandIn {
    key: String,
    values: Vec<Option<Value>>,
    current: usize,
}

impl<'a> Attempt<'a> {
    /// The scenario as it is written.
    pub fn new(table: Table, file: &'a str) -> Self {
        Self {
            table,
            file,
            known: keys::keys(),
            stand_ins: Vec::new(),
            taken_out: Vec::new(),
            set_aside: Vec::new(),
            readings: 0,
        }
    }

    /// What it is refused for, if it is.
    pub fn refused(&mut self) -> Option<ScenarioError> {
        self.readings += 1;
        refused(&self.table, self.file)
    }

    /// Whether it has been read often enough.
    pub fn is_over(&self) -> bool {
        self.readings >= MOST_READINGS
    }

    /// Whether this was found to depend on a stand-in.
    pub fn is_set_aside(&self, error: &ScenarioError) -> bool {
        self.set_aside.contains(error)
    }

    /// The error with the numbers that entries have in the file.
    pub fn as_written(&self, error: &ScenarioError) -> ScenarioError {
        let mut written = error.clone();
        for (list, taken) in self.taken_out.iter().rev() {
            written.key = renumbered(&written.key, list, |n| if n >= *taken { n + 1 } else { n });
        }
        written
    }

    /// The number of the stand-in that an error is about.
    pub fn replaced_by(&self, error: &ScenarioError) -> Option<usize> {
        self.stand_ins.iter().position(|one| one.is_meant_by(error))
    }

    /// The next value of a stand-in. Returns false if there is none.
    pub fn replace_again(&mut self, number: usize) -> bool {
        let one = &mut self.stand_ins[number];
        one.current += 1;
        let next = one.values.get(one.current).cloned();
        next.is_some_and(|value| set(&mut self.table, &one.key, value))
    }

    /// Whether an error goes away with another value of a stand-in, which is then taken.
    pub fn sets_aside(&mut self, error: &ScenarioError) -> bool {
        for number in 0..self.stand_ins.len() {
            for value in 0..self.stand_ins[number].values.len() {
                if value != self.stand_ins[number].current
                    && !self.is_over()
                    && self.is_gone(number, value, error)
                {
                    let one = &mut self.stand_ins[number];
                    one.current = value;
                    set(&mut self.table, &one.key, one.values[value].clone());
                    self.set_aside.push(error.clone());
                    return true;
                }
            }
        }
        false
    }

    /// Whether an error is not there with this value of a stand-in, nor behind others that come with it.
    fn is_gone(&mut self, number: usize, value: usize, error: &ScenarioError) -> bool {
        let one = &self.stand_ins[number];
        let mut trial = self.table.clone();
        if !set(&mut trial, &one.key, one.values[value].clone()) {
            return false;
        }
        for _ in 0..MOST_HIDDEN {
            self.readings += 1;
            let Some(other) = refused(&trial, self.file) else {
                return true;
            };
            let one = &self.stand_ins[number];
            // what it says may have a stand-in in it
            let repaired = full_key(&other) != full_key(error) && !one.is_meant_by(&other);
            let key = full_key(&other);
            if !repaired || !set(&mut trial, &key, self.allowed(&key).into_iter().next().flatten()) {
                return false;
            }
        }
        false
    }

    /// Puts right what an error is about. Returns false where it cannot.
    pub fn repair(&mut self, error: &ScenarioError) -> bool {
        let key = full_key(error);
        if key.is_empty() {
            return false;
        }
        if let Some((list, number)) = entry(&self.table, &key) {
            set(&mut self.table, &key, None);
            for one in &mut self.stand_ins {
                one.key = renumbered(&one.key, &list, |n| if n > number { n - 1 } else { n });
            }
            self.taken_out.push((list, number));
            return true;
        }
        let mut values = self.allowed(&key);
        let mut key = key;
        if let Some(meant) = meant(error, &key)
            && overrides::find(&self.table, &meant).is_none()
            && let Some(value) = overrides::find(&self.table, &key).cloned()
        {
            set(&mut self.table, &key, None);
            values = self.allowed(&meant);
            values.insert(0, Some(value));
            key = meant;
        }
        let Some(first) = values.first().cloned() else {
            return false;
        };
        let done = set(&mut self.table, &key, first);
        self.stand_ins.push(StandIn {
            key,
            values,
            current: 0,
        });
        done
    }

    /// What may stand in for a key, the best first; it may be left out if it is not required.
    fn allowed(&self, key: &str) -> Vec<Option<Value>> {
        let plain = plain(key);
        let Some(key) = self.known.iter().find(|one| one.key == plain) else {
            return if plain.ends_with(".count") {
                // without one, what the entry has in braces has no number
                vec![Some(Value::Integer(1)), Some(Value::Integer(1000))]
            } else {
                vec![None]
            };
        };
        let choices = key.choices.iter().map(|choice| &choice.value);
        let all = key
            .default
            .iter()
            .chain(&key.example)
            .chain(choices)
            .chain(&key.least);
        let mut values: Vec<Option<Value>> = Vec::new();
        for value in all.filter_map(of_json) {
            let others = multiples(&value);
            for value in std::iter::once(value).chain(others).map(Some) {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        if !key.required {
            values.insert(0, None);
        }
        values
    }
}

impl StandIn {
    /// Whether an error is about it, or something within.
    fn is_meant_by(&self, error: &ScenarioError) -> bool {
        let (own, key) = (
            overrides::with_dots(&self.key),
            overrides::with_dots(&full_key(error)),
        );
        key.strip_prefix(&own)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

fn refused(table: &Table, file: &str) -> Option<ScenarioError> {
    let text = toml::to_string(table).ok()?;
    Scenario::from_toml(&text, file, &[]).err()
}

/// The key that an error is about: one that is missing is told of its table.
fn full_key(error: &ScenarioError) -> String {
    let missing = error.problem.strip_prefix("expected the key `");
    match missing.and_then(|rest| rest.split_once('`')) {
        Some((missing, " too")) if error.key.is_empty() => missing.to_owned(),
        Some((missing, " too")) => format!("{}.{missing}", error.key),
        _ => error.key.clone(),
    }
}

/// The key that was meant by one that is none.
fn meant(error: &ScenarioError, key: &str) -> Option<String> {
    let rest = error.problem.strip_prefix("unknown key: did you mean `")?;
    let name = rest.strip_suffix("`?")?;
    let table = key.rsplit_once('.').map_or("", |(table, _)| table);
    Some(format!("{table}.{name}").trim_start_matches('.').to_owned())
}

/// Larger and smaller ones of a number or a quantity.
fn multiples(value: &Value) -> Vec<Value> {
    match value {
        Value::Integer(number) => vec![Value::Integer(number.saturating_mul(1000).saturating_add(1))],
        Value::String(text) => {
            let split = text.split_once(' ');
            let parsed = split.and_then(|(number, unit)| Some((number.parse::<f64>().ok()?, unit)));
            parsed.map_or_else(Vec::new, |(number, unit)| {
                let times = |by: f64| Value::String(format!("{} {unit}", number * by));
                [0.001, 1000.0, 10_000.0].map(times).to_vec()
            })
        }
        _ => Vec::new(),
    }
}

fn of_json(value: &Json) -> Option<Value> {
    match value {
        Json::String(text) => Some(Value::String(text.clone())),
        Json::Bool(yes) => Some(Value::Boolean(*yes)),
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

/// The list and the number of an entry, if that is what a key is.
fn entry(table: &Table, key: &str) -> Option<(String, usize)> {
    let dotted = overrides::with_dots(key);
    let (list, last) = dotted.rsplit_once('.')?;
    let number = last.parse().ok()?;
    let entries = overrides::find(table, list)?.as_array()?;
    (number < entries.len()).then(|| (list.to_owned(), number))
}

/// The key, with another number of the entry of `list` that it is in.
fn renumbered(key: &str, list: &str, number: impl Fn(usize) -> usize) -> String {
    // `a[0].b[1]`, as messages have it, part by part
    let mut written = String::new();
    let mut path = String::new();
    for part in overrides::with_dots(key).split('.') {
        let entry: Option<usize> = part.parse().ok();
        match entry {
            Some(n) if path == list => written.push_str(&format!("[{}]", number(n))),
            Some(n) => written.push_str(&format!("[{n}]")),
            None if written.is_empty() => written.push_str(part),
            None => written.push_str(&format!(".{part}")),
        }
        path = if path.is_empty() {
            part.to_owned()
        } else {
            format!("{path}.{part}")
        };
    }
    written
}

/// Gives a key a value, or takes it out; an entry of a list, too.
fn set(table: &mut Table, key: &str, value: Option<Value>) -> bool {
    let Some(value) = value else {
        return remove(table, key);
    };
    overrides::put(table, &overrides::with_dots(key), value, "").is_ok()
}

fn remove(table: &mut Table, key: &str) -> bool {
    let dotted = overrides::with_dots(key);
    let Some((around, last)) = dotted.rsplit_once('.') else {
        table.remove(&dotted);
        return true;
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
    match (inside, last.parse::<usize>()) {
        (Some(Value::Table(table)), _) => {
            table.remove(last);
            true
        }
        (Some(Value::Array(entries)), Ok(number)) if number < entries.len() => {
            entries.remove(number);
            true
        }
        _ => false,
    }
}
