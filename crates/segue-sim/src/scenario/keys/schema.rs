//! JSON Schema (draft 7) of a scenario.

use super::range;
use super::types::{Types, each_reference, reference};
use crate::scenario::cell_files::FromCsv;
use crate::scenario::model::ScenarioFile;
use crate::scenario::{constellation, populations, technology};
use serde_json::{Map, Value, json};

/// What is behind the name of a type where a preset or a file has what is not written.
const PRESET: &str = "OfPreset";
/// What is behind it in an entry that stands for many.
const MANY: &str = "OfMany";
/// What is behind the name of an entry's type for all ways to write it.
const WRITTEN: &str = "AsWritten";

/// The type of an entry that stands for the cells of a file.
const CELLS_OF_FILE: &str = "CellEntryOfFile";

/// The type of a host whose way a file or a model has.
const MOBILE_OF_OTHER: &str = "MobileSectionOfOther";

/// Keys of a file that a scenario has not once it is read.
const READ: [(&str, &str); 3] = [
    (
        "cases",
        "Named sets of keys, of which `case` chooses one: [cases.NAME].",
    ),
    (
        "derived",
        "Keys of the rest of the file, each from an expression of parameters.",
    ),
    (
        "when",
        "Keys that are set where a key of the top level has a value: [when.scheme.sigma].",
    ),
];

/// JSON Schema of a scenario file as it is written. What it takes is read without a complaint about its form; whether names
/// exist, and which keys belong together, it does not say.
#[must_use]
pub fn schema() -> Value {
    let mut types = Types::of::<ScenarioFile>();
    let entries = [
        ("HostEntry", vec!["HostEntry".to_owned()]),
        ("RouterEntry", vec!["RouterEntry".to_owned()]),
        ("ApplicationEntry", vec!["ApplicationEntry".to_owned()]),
        ("MobileSection", mobiles(&mut types)),
        ("LinkEntry", links(&mut types)),
        ("CellEntry", cells(&mut types)),
    ];
    let mut file = types.take("ScenarioFile");
    let mut mobiles = types.take("Mobiles");
    for (entry, forms) in entries {
        let many: Vec<String> = forms.iter().filter_map(|form| many(&mut types, form)).collect();
        let forms = forms.iter().chain(&many).map(|form| reference(form));
        let forms: Vec<Value> = forms.chain([json!(true)]).collect();
        let written = format!("{entry}{WRITTEN}");
        // editors complete by `anyOf`, which would say of a fault only that there is one, and so takes everything; the form that
        // is meant says which it is
        let forms = json!({
            "anyOf": forms,
            "if": { "required": ["count"] },
            "then": meant(entry, MANY),
            "else": meant(entry, ""),
        });
        types.set(&written, forms);
        for schema in [&mut file, &mut mobiles] {
            each_reference(schema, &mut |name| {
                if name == entry {
                    name.clone_from(&written);
                }
            });
        }
    }
    if let Some(Value::Array(mut forms)) = mobiles.get("anyOf").cloned() {
        mobiles["if"] = json!({ "type": "object" });
        mobiles["then"] = forms[0].clone();
        mobiles["else"] = forms[1].clone();
        forms.push(json!(true));
        mobiles["anyOf"] = Value::Array(forms);
    }
    types.set("Mobiles", mobiles);
    for (key, meaning) in READ {
        let table = json!({ "type": "object", "description": meaning });
        object(&mut file, "properties").insert(key.to_owned(), table);
    }
    let constellation = types.add::<constellation::Section>();
    let meaning = "Satellites that pass over a host, written out as cells, routers, links and its plan.";
    let satellites = json!({ "description": meaning, "allOf": [reference(&constellation)] });
    object(&mut file, "properties").insert("constellation".to_owned(), satellites);
    types.write_out(&mut file);
    let definitions = types.those_of(&mut file);
    let head = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A scenario of Segue",
        "definitions": definitions,
    });
    if let (Value::Object(file), Value::Object(head)) = (&mut file, head) {
        file.extend(head);
    }
    tell_ranges(&mut file);
    file
}

/// Editors show descriptions, and know nothing of ranges of texts.
fn tell_ranges(schema: &mut Value) {
    if let Some(range) = range::of(schema) {
        let meaning = schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        schema["description"] = json!(format!("{meaning} Expected: {range}."));
    }
    match schema {
        Value::Object(keys) => keys.values_mut().for_each(tell_ranges),
        Value::Array(all) => all.iter_mut().for_each(tell_ranges),
        _ => {}
    }
}

/// The form of an entry that is meant, by the keys that it has; of one that stands for many with that behind its name.
fn meant(entry: &str, many: &str) -> Value {
    let form = |name: &str| reference(&format!("{name}{many}"));
    let preset = format!("{entry}{PRESET}");
    match entry {
        "MobileSection" => json!({
            "if": { "required": ["mobility"] },
            "then": form(MOBILE_OF_OTHER),
            "else": form(entry),
        }),
        "LinkEntry" => json!({
            "if": { "required": ["technology"] },
            "then": form(&preset),
            "else": form(entry),
        }),
        "CellEntry" => json!({
            "if": { "required": ["from_csv"] },
            "then": reference(CELLS_OF_FILE),
            "else": {
                "if": { "required": ["technology"], "properties": { "technology": { "enum": technology::names(false) } } },
                "then": form(entry),
                "else": {
                    "if": { "required": ["technology"] },
                    "then": form(&preset),
                    "else": form(entry),
                },
            },
        }),
        _ => form(entry),
    }
}

/// The keys of a part of a schema, which it gets if it has none.
fn object<'a>(schema: &'a mut Value, part: &str) -> &'a mut Map<String, Value> {
    let part = &mut schema[part];
    if !part.is_object() {
        *part = json!({});
    }
    part.as_object_mut().expect("it is one now")
}

/// One of these groups of keys is there.
fn one_of_the_groups(groups: &[&[&str]]) -> Value {
    let groups: Vec<Value> = groups.iter().map(|keys| json!({ "required": keys })).collect();
    json!({ "anyOf": groups })
}

/// Requires no more than `keys`, and conditions on the others.
fn requires(schema: &mut Value, keys: &[&str], conditions: Vec<Value>) {
    schema["required"] = json!(keys);
    if !conditions.is_empty() {
        schema["allOf"] = Value::Array(conditions);
    }
}

/// A host on a way of its own, or on one that a file or a model has.
fn mobiles(types: &mut Types) -> Vec<String> {
    let own = types.entry("MobileSection");
    object(own, "properties")["mobility"] = json!(false);
    let mut by_other = own.clone();
    let section = json!({ "description": "The file or the model that says how it moves.", "allOf": [reference("MobilitySection")] });
    object(&mut by_other, "properties")["mobility"] = section;
    requires(&mut by_other, &["host", "mobility"], Vec::new());
    let name = MOBILE_OF_OTHER.to_owned();
    types.set(&name, by_other);
    vec!["MobileSection".to_owned(), name]
}

/// A link that says all, or of a technology.
fn links(types: &mut Types) -> Vec<String> {
    let preset = types.copy("LinkEntry", PRESET, requires_nothing);
    let wires = technology::names(true);
    let with = types.entry(&preset);
    requires(with, &["between", "technology"], Vec::new());
    object(with, "properties")["technology"] = choice("Whose keys it has that are not set.", &wires);
    object(types.entry("LinkEntry"), "properties")["technology"] = json!(false);
    vec!["LinkEntry".to_owned(), preset]
}

/// A cell that says all but what a shared channel is like, one of a technology with bearers, and those of a file.
fn cells(types: &mut Types) -> Vec<String> {
    const TECHNOLOGY: &str = "Whose keys it has that are not set.";
    let preset = types.copy("CellEntry", PRESET, requires_nothing);
    let place = one_of_the_groups(&[&["position", "radius"], &["present"]]);
    let channel = one_of_the_groups(&[&["channel"], &["bearer"]]);
    let own = types.entry("CellEntry");
    requires(own, &["name", "router"], vec![place.clone(), channel]);
    object(own, "properties")["technology"] = choice(TECHNOLOGY, &technology::names(false));
    let with = types.entry(&preset);
    let mut of_file = with.clone();
    // a cell with bearers has no channel
    requires(with, &["name", "router", "technology"], vec![place]);
    object(with, "properties")["technology"] = choice(TECHNOLOGY, &technology::names(true));
    let file = types.add::<FromCsv>();
    let cells = object(&mut of_file, "properties");
    for key in ["name", "position", "present"] {
        cells.insert(key.to_owned(), json!(false));
    }
    let meaning = "A file of cells, in the columns of OpenCelliD, which this entry stands for.";
    let from_csv = json!({ "description": meaning, "allOf": [reference(&file)] });
    cells.insert("from_csv".to_owned(), from_csv);
    requires(&mut of_file, &["router", "from_csv"], Vec::new());
    let name = CELLS_OF_FILE.to_owned();
    types.set(&name, of_file);
    vec!["CellEntry".to_owned(), preset, name]
}

fn choice(meaning: &str, names: &[String]) -> Value {
    json!({ "description": meaning, "enum": names })
}

/// An entry that stands for many: it has a `count`, and expressions instead of values. Those of a file of cells have none.
fn many(types: &mut Types, form: &str) -> Option<String> {
    if form == CELLS_OF_FILE {
        return None;
    }
    let many = types.copy(form, MANY, |_, schema| take_expressions(schema));
    let entry = types.entry(&many);
    let count = json!({
        "description": "How many there are of it, each with its number in `{i}`.",
        "anyOf": [{ "type": "integer", "minimum": 0, "maximum": populations::MOST }, expression()],
    });
    object(entry, "properties").insert("count".to_owned(), count);
    let required = entry["required"].as_array_mut();
    required.expect("an entry has a name").push(json!("count"));
    Some(many)
}

/// What is worked out for each of many.
fn expression() -> Value {
    json!({ "type": "string", "pattern": "\\{[^{}]*\\}|^ *(uniform|normal|exponential|choice)\\(.*\\) *$" })
}

/// What is not written of these is in the preset.
fn requires_nothing(name: &str, schema: &mut Value) {
    if let ("LinkEntry" | "CellEntry" | "BearerSection" | "DirectionSection", Value::Object(keys)) =
        (name, schema)
    {
        keys.remove("required");
    }
}

/// Whatever has a value may have an expression.
fn take_expressions(schema: &mut Value) {
    let Value::Object(keys) = schema else { return };
    let is_choice = keys.get("oneOf").and_then(Value::as_array).is_some_and(|all| {
        all.iter()
            .all(|one| one.get("const").is_some() || one.get("enum").is_some())
    });
    let is_value = keys.contains_key("const")
        || keys.contains_key("enum")
        || is_choice
        || matches!(keys.get("type"), Some(Value::Array(_)))
        || matches!(
            keys.get("type").and_then(Value::as_str),
            Some("string" | "integer" | "number" | "boolean")
        );
    if is_value {
        // a tag says which of several tables it is
        if !keys.contains_key("const") {
            let value = Value::Object(core::mem::take(keys));
            keys.insert("anyOf".to_owned(), json!([value, expression()]));
        }
        return;
    }
    if let Some(Value::Object(properties)) = keys.get_mut("properties") {
        properties.values_mut().for_each(take_expressions);
    }
    if let Some(items) = keys.get_mut("items") {
        take_expressions(items);
    }
    for part in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(all)) = keys.get_mut(part) {
            all.iter_mut().for_each(take_expressions);
        }
    }
}
