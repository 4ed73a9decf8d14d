//! Cases: named sets of overrides in the scenario file itself, of which `case` chooses one.
//!
//! ```toml
//! case = "lan-wan"
//!
//! [cases.lan-lan]
//!
//! [cases.lan-wan]
//! link.r1-r3.delay = "101 ms"     # the link of that name; numbers from 0 do as well
//! ```

use super::ScenarioError;
use toml::{Table, Value};

const CHOICE: &str = "case";
const CASES: &str = "cases";

/// Carries the chosen case into the rest of the file. The other keys that are set from outside come after it.
///
/// `chosen` is the case that was asked for from outside. `case` stays in the table as a label, `cases` does not: what
/// is left is the scenario as it is run.
pub(super) fn apply(table: &mut Table, file: &str, chosen: Option<&str>) -> Result<(), ScenarioError> {
    let source = if chosen.is_some() { "--set" } else { file };
    if let Some(chosen) = chosen {
        table.insert(CHOICE.to_owned(), Value::String(chosen.to_owned()));
    }
    let cases = table.remove(CASES);
    let cases = match cases {
        Some(Value::Table(cases)) => cases,
        Some(_) => return Err(ScenarioError::new(file, CASES, "expected tables: [cases.NAME]")),
        None if chosen.is_some() => {
            return Err(ScenarioError::new(
                source,
                CHOICE,
                "the scenario has no [cases.NAME]",
            ));
        }
        None => return Ok(()),
    };
    let Some(name) = table.get(CHOICE) else {
        return Ok(());
    };
    let Some(case) = name.as_str().and_then(|name| cases.get(name)) else {
        let known: Vec<&str> = cases.keys().map(String::as_str).collect();
        let problem = format!("{name}: expected one of {}", known.join(", "));
        return Err(ScenarioError::new(source, CHOICE, problem.replace('"', "`")));
    };
    let path = format!("{CASES}.{}", name.as_str().unwrap_or_default());
    if let Some(key) = [CHOICE, CASES].into_iter().find(|key| case.get(key).is_some()) {
        return Err(ScenarioError::new(
            file,
            &format!("{path}.{key}"),
            "a case cannot choose",
        ));
    }
    merge_into(table, case, file, &path)
}

/// Sets in the file what a table of keys at `path` has.
pub(super) fn merge_into(
    table: &mut Table,
    keys: &Value,
    file: &str,
    path: &str,
) -> Result<(), ScenarioError> {
    let Value::Table(keys) = keys else {
        return Err(ScenarioError::new(file, path, "expected a table of keys to set"));
    };
    for (key, value) in keys {
        match table.get_mut(key) {
            Some(there) => merge(there, value, &format!("{path}.{key}"))
                .map_err(|(key, problem)| ScenarioError::new(file, &key, problem))?,
            None => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
    Ok(())
}

/// Sets in `there` what `value` has: keys of tables one by one, entries of lists by name or number, all else whole.
fn merge(there: &mut Value, value: &Value, path: &str) -> Result<(), (String, String)> {
    match (there, value) {
        (Value::Table(there), Value::Table(keys)) => {
            for (key, value) in keys {
                match there.get_mut(key) {
                    Some(there) => merge(there, value, &format!("{path}.{key}"))?,
                    None => {
                        there.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(entries), Value::Table(keys)) => {
            for (key, value) in keys {
                let path = format!("{path}.{key}");
                let at = entry(entries, key).map_err(|problem| (path.clone(), problem))?;
                merge(&mut entries[at], value, &path)?;
            }
        }
        (there, value) => *there = value.clone(),
    }
    Ok(())
}

/// The entry of a list of tables that `key` names: its `name` (`host` where entries have none), or its number.
pub(super) fn entry(entries: &[Value], key: &str) -> Result<usize, String> {
    if let Ok(index) = key.parse::<usize>()
        && index < entries.len()
    {
        return Ok(index);
    }
    let names = |entry: &Value| {
        let table = entry.as_table()?;
        let name = table.get("name").or_else(|| table.get("host"))?;
        name.as_str().map(str::to_owned)
    };
    let named = entries.iter().position(|e| names(e).as_deref() == Some(key));
    named.ok_or_else(|| {
        let length = entries.len();
        let known: Vec<String> = entries.iter().filter_map(names).collect();
        let number = match length {
            0 => "expected nothing below it".to_owned(),
            1 => "expected the number 0".to_owned(),
            _ => format!("expected a number from 0 to {}", length - 1),
        };
        if known.is_empty() {
            number
        } else {
            format!("{number}, or one of {}", known.join(", "))
        }
    })
}
