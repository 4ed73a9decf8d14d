//! Tables where tables belong: serde would read a list as the fields of a struct, one after the other.

use toml::{Table, Value};

const TABLES: [&str; 12] = [
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
];
const LISTS: [&str; 6] = ["host", "router", "link", "cell", "application", "forgery"];

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
        if let Some(at) = entries.iter().position(|e| !e.is_table()) {
            return Err((format!("{key}[{at}]"), expected()));
        }
    }
    Ok(())
}
