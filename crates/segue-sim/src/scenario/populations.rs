//! Populations: entries of which there are many, written once.
//!
//! ```toml
//! [[host]]
//! name = "phone{i}"
//! count = 10000
//! radios = 1
//!
//! [[mobile]]
//! host = "phone{i}"
//! count = 10000
//! from = ["{(i % 100) * 50} m", "{i // 100 * 50} m"]
//! to = ["uniform(0 m, 5 km)", "uniform(0 m, 5 km)"]
//! speed = "normal(1.4 m/s, 0.3 m/s)"
//! start = "exponential(10 s)"
//! ```
//!
//! `{i}` is the number of the one of them, from 0 on. What is in braces is an expression of that and of `[parameters]`
//! ([`super::expressions`]); a value that is nothing else becomes what it comes to. `uniform(a, b)`, `normal(mean, deviation)`,
//! `exponential(mean)` and `choice(a, b, ...)` are drawn for each of them, from a stream that the scenario's seed, the key and the
//! number name: others may come or go, and it is the same. What cannot be below zero is drawn again where it would be.

use super::expressions::{self, evaluate};
use segue_proto::random::Stream;
use toml::{Table, Value};

const COUNT: &str = "count";
/// Of a host, the name of its population.
const POPULATION: &str = "population";
/// Lists that may have populations.
const LISTS: [&str; 6] = ["host", "router", "link", "cell", "mobile", "application"];
/// The most entries that one of them stands for.
pub(super) const MOST: i64 = 100_000;
/// What programs of the lab are given, in the same braces.
const OF_PROGRAMS: [&str; 2] = ["peer", "port"];
/// So often something is drawn that would be below zero, before the distribution is refused.
const DRAWS: usize = 1000;

/// A key, and what is wrong with it.
type Wrong = (String, String);

/// Which entries of the file those of the scenario are.
#[derive(Debug, Default)]
pub(super) struct Populations {
    /// Of a list with populations, the entry of the file that each of its own is of; nothing for one that is no list there.
    origins: Vec<(&'static str, Option<Vec<usize>>)>,
}

impl Populations {
    /// The key of the file that `key`, which may be of one of many, comes from.
    pub(super) fn entry_of(&self, key: &str) -> String {
        let of_list = |(list, origins): &(&'static str, Option<Vec<usize>>)| {
            let rest = key.strip_prefix(list)?;
            let rest = rest.strip_prefix('[').or_else(|| rest.strip_prefix('.'))?;
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let number: usize = rest[..end].parse().ok()?;
            let rest = rest[end..].trim_start_matches(']');
            match origins {
                Some(origins) => Some(format!("{list}[{}]{rest}", origins.get(number)?)),
                None => Some(format!("{list}{rest}")),
            }
        };
        self.origins
            .iter()
            .find_map(of_list)
            .unwrap_or_else(|| key.to_owned())
    }
}

/// Writes out the entries that have a `count`.
pub(super) fn expand(table: &mut Table) -> Result<Populations, Wrong> {
    let mut populations = Populations::default();
    let seed = table.get("seed").and_then(Value::as_integer).unwrap_or(1);
    let parameters = match table.get("parameters") {
        Some(Value::Table(parameters)) => parameters.clone(),
        _ => Table::new(),
    };
    for list in LISTS {
        let (entries, is_list) = match table.get(list) {
            Some(Value::Array(entries)) => (&entries[..], true),
            Some(one @ Value::Table(_)) => (core::slice::from_ref(one), false),
            _ => continue,
        };
        if entries.iter().all(|entry| entry.get(COUNT).is_none()) {
            continue;
        }
        let (mut all, mut origins) = (Vec::new(), Vec::new());
        for (number, entry) in entries.iter().enumerate() {
            let key = if is_list {
                format!("{list}[{number}]")
            } else {
                list.to_owned()
            };
            let population = Population {
                key: &key,
                seed: seed.cast_unsigned(),
                parameters: &parameters,
            };
            let Some(count) = population.count(entry)? else {
                all.push(entry.clone());
                origins.push(number);
                continue;
            };
            let name = entry.get("name").filter(|_| list == "host");
            for i in 0..count {
                let mut one = population.one(entry, i)?;
                if let (Some(name), Value::Table(keys)) = (name, &mut one) {
                    keys.entry(POPULATION).or_insert_with(|| name.clone());
                }
                all.push(one);
                origins.push(number);
            }
        }
        populations.origins.push((list, is_list.then_some(origins)));
        table.insert(list.to_owned(), Value::Array(all));
    }
    Ok(populations)
}

/// Whether an entry that stands for many reads the parameter `name`.
pub(super) fn reads(table: &Table, name: &str) -> bool {
    let entries = LISTS.iter().filter_map(|list| table.get(*list));
    let entries = entries.flat_map(|value| match value {
        Value::Array(entries) => &entries[..],
        one => core::slice::from_ref(one),
    });
    let mut populations = entries.filter(|entry| entry.get(COUNT).is_some());
    populations.any(|entry| has_name(entry, name))
}

/// Whether anything in `value` has this name in an expression.
fn has_name(value: &Value, name: &str) -> bool {
    match value {
        Value::Table(keys) => keys.values().any(|value| has_name(value, name)),
        Value::Array(entries) => entries.iter().any(|value| has_name(value, name)),
        Value::String(text) => {
            let in_braces = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
            let drawn = distribution(text).map(|drawn| drawn.given).unwrap_or_default();
            let all = in_braces.map(|(expression, _)| expression).chain(drawn);
            all.into_iter()
                .any(|expression| expressions::names(expression).any(|n| n == name))
        }
        _ => false,
    }
}

/// An entry that stands for many.
struct Population<'a> {
    key: &'a str,
    seed: u64,
    parameters: &'a Table,
}

impl Population<'_> {
    fn count(&self, entry: &Value) -> Result<Option<i64>, Wrong> {
        match entry.get(COUNT) {
            None => Ok(None),
            Some(given) => {
                let worked_out = match given {
                    Value::String(text) => {
                        let key = || format!("{}.{COUNT}", self.key);
                        self.text(text, None).map_err(|problem| (key(), problem))?
                    }
                    other => other.clone(),
                };
                let count = worked_out.as_integer().filter(|count| (0..=MOST).contains(count));
                let count = count.ok_or_else(|| {
                    let key = format!("{}.{COUNT}", self.key);
                    let expected = format!("expected a whole number from 0 to {MOST}");
                    match given {
                        // the parameters in it are what is wrong
                        Value::String(text) if text.contains('{') => {
                            (key, format!("`{text}` is {worked_out}: {expected}"))
                        }
                        _ => (key, expected),
                    }
                })?;
                self.named(entry, count)?;
                Ok(Some(count))
            }
        }
    }

    /// Of several, each has a name of its own.
    fn named(&self, entry: &Value, count: i64) -> Result<(), Wrong> {
        for key in ["name", "host"] {
            let name = entry.get(key).and_then(Value::as_str);
            if count > 1 && name.is_some_and(|name| !name.contains('{')) {
                return Err((
                    format!("{}.{key}", self.key),
                    format!("expected `{{i}}` in it: there are {count} of them"),
                ));
            }
        }
        Ok(())
    }

    /// The one with number `i`.
    fn one(&self, entry: &Value, i: i64) -> Result<Value, Wrong> {
        let mut one = entry.clone();
        if let Value::Table(keys) = &mut one {
            keys.remove(COUNT);
        }
        self.fill(&mut one, self.key, i)?;
        Ok(one)
    }

    /// Everything in `value`, which is at `path`.
    fn fill(&self, value: &mut Value, path: &str, i: i64) -> Result<(), Wrong> {
        match value {
            Value::Table(keys) => keys
                .iter_mut()
                .try_for_each(|(key, value)| self.fill(value, &format!("{path}.{key}"), i)),
            Value::Array(entries) => (0..)
                .zip(entries)
                .try_for_each(|(at, value): (usize, _)| self.fill(value, &format!("{path}[{at}]"), i)),
            Value::String(text) => {
                let wrong = |problem| (path.to_owned(), problem);
                let filled = self.text(text, Some(i)).map_err(wrong)?;
                *value = match &filled {
                    Value::String(text) => match distribution(text) {
                        Some(drawn) => {
                            let stream = format!("population/{path}/{i}");
                            let mut stream = Stream::new(self.seed, &stream);
                            let lookup = |name: &str| self.lookup(name, Some(i));
                            drawn.draw(&mut stream, &lookup).map_err(wrong)?
                        }
                        None => filled,
                    },
                    _ => filled,
                };
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn lookup(&self, name: &str, i: Option<i64>) -> Option<Value> {
        if name == "i" {
            return i.map(Value::Integer);
        }
        self.parameters.get(name).cloned()
    }

    /// What is in braces, worked out.
    fn text(&self, text: &str, i: Option<i64>) -> Result<Value, String> {
        let lookup = |name: &str| self.lookup(name, i);
        let worked_out = |expression: &str| {
            let unknown = expressions::names(expression).find(|name| lookup(name).is_none());
            match unknown {
                Some(name) if i.is_none() => {
                    Err(format!("`{{{expression}}}`: `{name}` is no key of [parameters]"))
                }
                Some(name) => Err(format!(
                    "`{{{expression}}}`: `{name}` is neither `i` nor a key of [parameters]"
                )),
                None => {
                    evaluate(expression, &lookup).map_err(|problem| format!("`{{{expression}}}`: {problem}"))
                }
            }
        };
        let mut filled = String::new();
        let mut rest = text;
        while let Some(begin) = rest.find('{') {
            let (before, after) = rest.split_at(begin);
            let end = after.find('}').ok_or("expected a `}` for each `{`")?;
            let expression = &after[1..end];
            filled.push_str(before);
            rest = &after[end + 1..];
            if OF_PROGRAMS.contains(&expression) {
                filled.push_str(&after[..=end]);
                continue;
            }
            let value = worked_out(expression)?;
            if filled.is_empty() && rest.is_empty() {
                return Ok(value);
            }
            match value {
                Value::String(text) => filled.push_str(&text),
                other => filled.push_str(&other.to_string()),
            }
        }
        filled.push_str(rest);
        Ok(Value::String(filled))
    }
}

/// A distribution, and what it is given.
struct Distribution<'a> {
    kind: Kind,
    given: Vec<&'a str>,
}

#[derive(Clone, Copy)]
enum Kind {
    Uniform,
    Normal,
    Exponential,
    Choice,
}

/// The distribution that a value is, if it is one.
fn distribution(text: &str) -> Option<Distribution<'_>> {
    let (name, rest) = text.trim().split_once('(')?;
    let kind = match name.trim_end() {
        "uniform" => Kind::Uniform,
        "normal" => Kind::Normal,
        "exponential" => Kind::Exponential,
        "choice" => Kind::Choice,
        _ => return None,
    };
    let given = rest.strip_suffix(')')?.split(',').map(str::trim).collect();
    Some(Distribution { kind, given })
}

impl Distribution<'_> {
    /// A value of the unit that it is given in.
    fn draw(&self, stream: &mut Stream, lookup: expressions::Lookup<'_>) -> Result<Value, String> {
        let (expected, number) = match self.kind {
            Kind::Uniform => ("uniform(least, greatest)", 2),
            Kind::Normal => ("normal(mean, deviation)", 2),
            Kind::Exponential => ("exponential(mean)", 1),
            Kind::Choice => {
                let chosen = self.given[stream.below(self.given.len() as u64) as usize];
                return Ok(evaluate(chosen, lookup).unwrap_or_else(|_| Value::String(chosen.to_owned())));
            }
        };
        if self.given.len() != number {
            return Err(format!("expected {expected}"));
        }
        let refused = |problem| format!("expected {expected}: {problem}");
        let given = |at: usize| expressions::amount(self.given[at], lookup).map_err(refused);
        let first = given(0)?;
        match self.kind {
            Kind::Uniform => first.between(given(1)?, stream.uniform()).map_err(refused),
            Kind::Exponential => {
                let share = -libm::log(1.0 - stream.uniform());
                first.scaled(share).map_err(refused)
            }
            Kind::Normal | Kind::Choice => {
                let deviation = given(1)?;
                let fits = (0..DRAWS).find_map(|_| first.beside(deviation, stream.normal()).transpose());
                fits.unwrap_or_else(|| Err("hardly a value of it is above 0".to_owned()))
                    .map_err(refused)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<Table, Wrong> {
        let mut table: Table = text.parse().unwrap();
        expand(&mut table).map(|_| table)
    }

    fn strings(table: &Table, list: &str, key: &str) -> Vec<String> {
        let all = table[list].as_array().unwrap().iter();
        all.map(|entry| match &entry[key] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
        .collect()
    }

    #[test]
    fn entries_are_written_out_with_their_numbers() {
        let table = expanded(
            r#"
            parameters = { apart = "50 m" }
            [[host]]
            name = "server"
            [[host]]
            name = "phone{i}"
            count = 3
            radios = "{1 + i % 2}"
            [mobile]
            host = "phone{i}"
            count = 3
            from = ["{(i % 2) * apart}", "{i // 2}0 m"]
            [[application]]
            from = "server"
            to = "phone{i}"
            count = 2
            command = ["iperf3", "-c", "{peer}", "-p", "{port}", "-t", "{i + 1}"]
            "#,
        )
        .unwrap();
        assert_eq!(
            strings(&table, "host", "name"),
            ["server", "phone0", "phone1", "phone2"]
        );
        assert_eq!(table["host"][2]["radios"], Value::Integer(2));
        let from = |i: usize| table["mobile"][i]["from"].to_string();
        assert_eq!([from(1), from(2)], [r#"["50 m", "00 m"]"#, r#"["0 m", "10 m"]"#]);
        assert_eq!(
            table["application"][1]["command"].to_string(),
            r#"["iperf3", "-c", "{peer}", "-p", "{port}", "-t", 2]"#
        );
        assert!(
            table["host"]
                .as_array()
                .unwrap()
                .iter()
                .all(|h| h.get(COUNT).is_none())
        );
    }

    #[test]
    fn draws_are_those_of_the_key_and_the_number_and_no_others() {
        let text = |count: usize, more: &str| {
            format!(
                "[[mobile]]\nhost = \"m{{i}}\"\ncount = {count}\nspeed = \"uniform(1 m/s, 3 m/s)\"\nstart = \"exponential(10 s)\"\n{more}"
            )
        };
        let few = expanded(&text(10, "")).unwrap();
        let many = expanded(&text(
            4000,
            "pattern = \"choice(still, waypoints)\"\nx = \"normal(0 m, 2 m)\"",
        ))
        .unwrap();
        assert_eq!(
            strings(&few, "mobile", "speed"),
            strings(&many, "mobile", "speed")[..10]
        );
        let numbers = |key: &str, unit: f64| -> Vec<f64> {
            let texts = strings(&many, "mobile", key);
            let number = |text: &String| text.split(' ').next().unwrap().parse::<f64>().unwrap() * unit;
            texts.iter().map(number).collect()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let speeds = numbers("speed", 1.0);
        assert!(speeds.iter().all(|v| (1.0..3.0).contains(v)));
        assert!((mean(&speeds) - 2.0).abs() < 0.04, "{}", mean(&speeds));
        let places = numbers("x", 1.0);
        let deviation = mean(&places.iter().map(|x| x * x).collect::<Vec<f64>>()).sqrt();
        assert!(
            mean(&places).abs() < 0.15 && (deviation - 2.0).abs() < 0.1,
            "{deviation}"
        );
        let chosen = strings(&many, "mobile", "pattern");
        let still = chosen.iter().filter(|p| *p == "still").count();
        assert!((1850..2150).contains(&still), "{still}");
    }

    #[test]
    fn what_is_drawn_is_not_below_zero_where_that_makes_no_sense() {
        let text = "[[mobile]]\nhost = \"m{i}\"\ncount = 500\nspeed = \"normal(1 m/s, 2 m/s)\"";
        let speeds = strings(&expanded(text).unwrap(), "mobile", "speed");
        assert!(speeds.iter().all(|text| !text.starts_with('-')));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_its_key() {
        for (entry, key, word) in [
            ("name = \"a\"\ncount = 2", "host[0].name", "expected `{i}`"),
            ("name = \"a{i}\"\ncount = -1", "host[0].count", "from 0 to"),
            ("name = \"a{i}\"\ncount = \"x\"", "host[0].count", "from 0 to"),
            (
                "name = \"a{i}\"\ncount = \"{i}\"",
                "host[0].count",
                "`i` is no key",
            ),
            (
                "name = \"a{i}\"\ncount = \"{1 - 10 * 2}\"",
                "host[0].count",
                "`{1 - 10 * 2}` is -19: expected a whole number from 0 to",
            ),
            ("name = \"a{j}\"\ncount = 1", "host[0].name", "`j` is neither"),
            ("name = \"a{i\"\ncount = 1", "host[0].name", "expected a `}`"),
            (
                "name = \"a{i}\"\ncount = 1\nx = \"uniform(1 s)\"",
                "host[0].x",
                "expected uniform(least",
            ),
            (
                "name = \"a{i}\"\ncount = 1\nx = \"uniform(1 s, 2 m)\"",
                "host[0].x",
                "a distance",
            ),
            (
                "name = \"a{i}\"\ncount = 1\nx = \"uniform(2 s, 1 s)\"",
                "host[0].x",
                "the least is the greater",
            ),
            (
                "name = \"a{i}\"\ncount = 1\nx = \"normal(0 s, 0 s - 1 s)\"",
                "host[0].x",
                "negative",
            ),
        ] {
            let (at, said) = expanded(&format!("[[host]]\n{entry}")).unwrap_err();
            assert!(at == key && said.contains(word), "{entry}: {at}: {said}");
        }
    }

    #[test]
    fn keys_of_one_of_many_are_those_of_their_entry() {
        let mut table: Table = "[[host]]\nname = \"s\"\n[[host]]\nname = \"a{i}\"\ncount = 3\n[mobile]\nhost = \"a{i}\"\ncount = 3"
            .parse()
            .unwrap();
        let populations = expand(&mut table).unwrap();
        for (key, of) in [
            ("host[0].radios", "host[0].radios"),
            ("host[3].radios", "host[1].radios"),
            ("host[3]", "host[1]"),
            ("mobile[2].speed", "mobile.speed"),
            ("cell[2].radius", "cell[2].radius"),
            ("host", "host"),
        ] {
            assert_eq!(populations.entry_of(key), of);
        }
    }
}
