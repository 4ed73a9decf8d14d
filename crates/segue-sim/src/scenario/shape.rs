//! Tables where tables belong: serde would read a list as the fields of a struct, one after the other.

use toml::{Table, Value};

const TABLES: [&str; 13] = [
    "l2",
    "radio",
    "address",
    "handover",
    "location",
    "sctp",
    "cmt",
    "tcp",
    "mip6",
    "ilnp",
    "directory",
    "remedy",
    "metrics",
];
const LISTS: [&str; 6] = ["host", "router", "link", "cell", "application", "forgery"];

/// Tables of applications of their kinds.
const OF_APPLICATIONS: [&str; 4] = ["on_off", "voice", "web", "video"];

/// Where a link or a cell has a loss model: its own, or that of a direction.
const WAYS: [&str; 4] = ["", "up", "bearer.down", "bearer.up"];

const LOSS: &str = "expected a table such as { model = \"bernoulli\", probability = 0.01 }, with model one of none, bernoulli, \
                    gilbert-elliott, fades";

fn table_at<'a>(entry: &'a Value, path: &str) -> Option<&'a Table> {
    path.split('.').try_fold(entry, |at, key| at.get(key))?.as_table()
}

/// The first key of a wrong shape, with what was expected.
pub(super) fn check(file: &Table) -> Result<(), (String, String)> {
    for (key, value) in file {
        if TABLES.contains(&key.as_str()) && !value.is_table() {
            return Err((key.clone(), format!("expected a table: [{key}]")));
        }
        if key == "mobile" && !value.is_table() && !value.is_array() {
            return Err((
                key.clone(),
                "expected a table: [mobile], or several: [[mobile]]".to_owned(),
            ));
        }
        if !LISTS.contains(&key.as_str()) {
            continue;
        }
        let expected = || format!("expected a list of tables: [[{key}]]");
        let Value::Array(entries) = value else {
            return Err((key.clone(), expected()));
        };
        for (at, entry) in entries.iter().enumerate() {
            for way in WAYS {
                let direction = if way.is_empty() {
                    entry.as_table()
                } else {
                    table_at(entry, way)
                };
                let loss = direction.and_then(|d| d.get("loss"));
                if loss.is_some_and(|loss| !loss.is_table()) {
                    let path = [&format!("{key}[{at}]"), way, "loss"];
                    let path: Vec<&str> = path.into_iter().filter(|p| !p.is_empty()).collect();
                    let wrong = loss.map(Value::to_string).unwrap_or_default();
                    return Err((path.join("."), format!("`{wrong}`: {LOSS}")));
                }
            }
        }
        for (at, entry) in entries.iter().enumerate() {
            let is_other = |table: &&&str| entry.get(**table).is_some_and(|value| !value.is_table());
            let is_wrong = |sharing: &Value| !sharing.is_table() && !sharing.is_str();
            if key == "cell" && entry.get("sharing").is_some_and(is_wrong) {
                return Err((
                    format!("cell[{at}].sharing"),
                    "expected \"round-robin\" or \"proportional-fair\", or a table: [cell.sharing]"
                        .to_owned(),
                ));
            }
            if let Some(table) = OF_APPLICATIONS
                .iter()
                .find(is_other)
                .filter(|_| key == "application")
            {
                return Err((
                    format!("application[{at}].{table}"),
                    format!("expected a table: [application.{table}]"),
                ));
            }
        }
        if let Some(at) = entries.iter().position(|e| !e.is_table()) {
            return Err((format!("{key}[{at}]"), expected()));
        }
    }
    Ok(())
}
