//! Every key of a scenario.

use super::range::{self, Range};
use super::types::{Types, name_of};
use crate::scenario::cell_files::FromCsv;
use crate::scenario::constellation;
use crate::scenario::model::ScenarioFile;
use serde::Serialize;
use serde_json::Value;

/// A key of a scenario.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Key {
    /// Its name, with dots, and with `[]` behind a list: `link[].rate`.
    pub key: String,
    /// What its value is: `duration`, `whole number`, `text`, `one of`, `list of coordinate`, ...
    pub kind: String,
    /// The units that it may have.
    pub units: Vec<String>,
    /// A value, as a scenario has it.
    pub example: Option<Value>,
    /// Whether its table has to have it.
    pub required: bool,
    /// What is used if it is left out, where that is always the same.
    pub default: Option<Value>,
    /// The values that it may have, if they are few.
    pub choices: Vec<Choice>,
    /// What its value may be, in words.
    #[serde(serialize_with = "range::in_words")]
    pub range: Option<Range>,
    /// The least number that its type may have.
    pub least: Option<Value>,
    /// The greatest.
    pub greatest: Option<Value>,
    /// What it means.
    pub meaning: String,
}

/// A value that a key may have.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Choice {
    /// It.
    pub value: Value,
    /// What it means.
    pub meaning: String,
}

/// All keys of a scenario, in the order of their names.
#[must_use]
pub fn keys() -> Vec<Key> {
    let mut types = Types::of::<ScenarioFile>();
    let from_csv = types.add::<FromCsv>();
    let constellation = types.add::<constellation::Section>();
    let mut found = Vec::new();
    for (name, before) in [
        ("ScenarioFile", ""),
        (&from_csv, "cell[].from_csv."),
        (&constellation, "constellation."),
    ] {
        if let Some(table) = types.get(name) {
            of_table(&types, table, before, &mut found);
        }
    }
    found.sort_by(|a: &Key, b| a.key.cmp(&b.key));
    // what several kinds of a table have
    found.dedup_by(|next, first| {
        let same = next.key == first.key;
        if same {
            for choice in next.choices.drain(..) {
                if !first.choices.contains(&choice) {
                    first.choices.push(choice);
                }
            }
            first.required &= next.required;
            if first.range != next.range {
                first.range = None;
            }
        }
        same
    });
    found
}

/// The keys of a table, whose names begin with `before`.
fn of_table(types: &Types, table: &Value, before: &str, found: &mut Vec<Key>) {
    let Some(properties) = table.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required = table.get("required").and_then(Value::as_array);
    for (name, property) in properties {
        let key = format!("{before}{name}");
        let mut own = Key {
            required: required.is_some_and(|all| all.iter().any(|key| key == name)),
            default: property
                .get("default")
                .filter(|d| !d.is_object() && *d != &Value::Array(Vec::new()))
                .cloned(),
            meaning: text_at(property, "description"),
            range: range::of(property),
            ..Key::default()
        };
        for form in forms(types, property) {
            own.take(types, form, &key, found);
        }
        if !own.kind.is_empty() {
            if let (Some(range), Some(example)) = (&own.range, &own.example) {
                own.example = Some(range.example(&own.kind, example));
            }
            own.key = key;
            found.push(own);
        }
    }
}

impl Key {
    /// Its value may have this form. What is a table, or a list of them, has keys of its own.
    fn take(&mut self, types: &Types, form: &Value, key: &str, found: &mut Vec<Self>) {
        if form.get("properties").is_some() {
            let first = found.len();
            of_table(types, form, &format!("{key}."), found);
            // the key that tells which of several tables it is says what the table does
            for tag in found.iter_mut().skip(first).filter(|of| of.meaning.is_empty()) {
                tag.meaning.clone_from(&self.meaning);
                for choice in tag.choices.iter_mut().filter(|choice| choice.meaning.is_empty()) {
                    choice.meaning = text_at(form, "description");
                }
            }
            return;
        }
        let entries = form
            .get("items")
            .map(|items| forms(types, items))
            .unwrap_or_default();
        let tables: Vec<&&Value> = entries
            .iter()
            .filter(|entry| entry.get("properties").is_some())
            .collect();
        for table in &tables {
            of_table(types, table, &format!("{key}[]."), found);
        }
        if !tables.is_empty() {
            return;
        }
        if self.meaning.is_empty() {
            self.meaning = text_at(form, "description");
        }
        let value = entries.first().copied().unwrap_or(form);
        let kind = kind_of(types, value);
        let kind = if entries.is_empty() {
            kind
        } else {
            format!("list of {kind}")
        };
        if self.kind.is_empty() {
            self.kind = kind;
        } else if self.kind != kind {
            self.kind = format!("{} or {kind}", self.kind);
        }
        let strings = |part: &str| value.get(part).and_then(Value::as_array).into_iter().flatten();
        self.units
            .extend(strings("x-units").filter_map(Value::as_str).map(str::to_owned));
        self.example = self
            .example
            .take()
            .or_else(|| strings("examples").next().cloned());
        self.least = self.least.take().or_else(|| value.get("minimum").cloned());
        self.greatest = self.greatest.take().or_else(|| value.get("maximum").cloned());
        self.choices.extend(choices(value));
    }
}

/// The forms that a value may have.
fn forms<'a>(types: &'a Types, schema: &'a Value) -> Vec<&'a Value> {
    if let Some(named) = name_of(schema).and_then(|name| types.get(name)) {
        return forms(types, named);
    }
    let several = ["anyOf", "oneOf"]
        .iter()
        .find_map(|part| schema.get(*part)?.as_array());
    match several {
        Some(all) if choices(schema).is_empty() => all.iter().flat_map(|one| forms(types, one)).collect(),
        _ => vec![schema],
    }
}

/// The values that a schema lists.
fn choices(schema: &Value) -> Vec<Choice> {
    let plain = |value: &Value| Choice {
        value: value.clone(),
        meaning: String::new(),
    };
    if let Some(only) = schema.get("const") {
        return vec![Choice {
            value: only.clone(),
            meaning: text_at(schema, "description"),
        }];
    }
    if let Some(Value::Array(all)) = schema.get("enum") {
        return all.iter().map(plain).collect();
    }
    match schema.get("oneOf").and_then(Value::as_array) {
        Some(all) if all.iter().all(|one| one.get("properties").is_none()) => {
            all.iter().flat_map(choices).collect()
        }
        _ => Vec::new(),
    }
}

/// What a value is, in a word.
fn kind_of(types: &Types, value: &Value) -> String {
    if let Some(quantity) = value.get("x-quantity").and_then(Value::as_str) {
        return quantity.to_owned();
    }
    if !choices(value).is_empty() {
        return "one of".to_owned();
    }
    let word = |name: &str| {
        match name {
            "integer" => "whole number",
            "boolean" => "true or false",
            "string" => "text",
            "object" => "table",
            other => other,
        }
        .to_owned()
    };
    match value.get("type") {
        Some(Value::String(name)) if name == "array" => {
            let items = value
                .get("items")
                .map(|items| forms(types, items))
                .unwrap_or_default();
            items.first().map_or_else(
                || "list".to_owned(),
                |one| format!("list of {}", kind_of(types, one)),
            )
        }
        Some(Value::String(name)) => word(name),
        Some(Value::Array(names)) => {
            let words: Vec<String> = names.iter().filter_map(Value::as_str).map(word).collect();
            words.join(" or ")
        }
        _ => "value".to_owned(),
    }
}

fn text_at(schema: &Value, part: &str) -> String {
    let text = schema.get(part).and_then(Value::as_str).unwrap_or_default();
    // lines of a comment follow each other
    text.split('\n').map(str::trim).collect::<Vec<_>>().join(" ")
}
