//! Schemas of types, which refer to each other by name, and copies of them that take other values.

use super::range;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// How a type is referred to.
const REFERENCE: &str = "#/definitions/";

/// The schemas of types, by their names.
#[derive(Debug)]
pub(super) struct Types(Map<String, Value>);

impl Types {
    /// Those of `T` and all that it has.
    pub fn of<T: JsonSchema>() -> Self {
        let schema = SchemaSettings::draft07()
            .into_generator()
            .into_root_schema_for::<T>();
        let mut root = schema.to_value();
        let mut types = match root.as_object_mut().and_then(|root| root.remove("definitions")) {
            Some(Value::Object(types)) => types,
            _ => Map::new(),
        };
        types.insert(T::schema_name().into_owned(), root);
        let mut types = Self(types);
        for schema in types.0.values_mut() {
            without_null(schema);
            say_formats(schema);
            say_ranges(schema);
            without_links(schema);
        }
        types
    }

    /// The schema of a type.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The schema of a type, to be changed.
    pub fn entry(&mut self, name: &str) -> &mut Value {
        self.0.entry(name.to_owned()).or_insert_with(|| json!({}))
    }

    /// Gives a type its schema.
    pub fn set(&mut self, name: &str, schema: Value) {
        self.0.insert(name.to_owned(), schema);
    }

    /// Adds another type, and all that it has. Gives its name.
    pub fn add<T: JsonSchema>(&mut self) -> String {
        self.0.extend(Self::of::<T>().0);
        T::schema_name().into_owned()
    }

    /// Takes the schema of a type out.
    pub fn take(&mut self, name: &str) -> Value {
        self.0.remove(name).unwrap_or_default()
    }

    /// A copy of a type and of all that it has, with `suffix` behind their names, each changed. Gives the name of the copy.
    pub fn copy(&mut self, name: &str, suffix: &str, change: fn(&str, &mut Value)) -> String {
        let copied = format!("{name}{suffix}");
        if !self.0.contains_key(&copied) {
            let mut copy = self.get(name).cloned().unwrap_or_default();
            change(name, &mut copy);
            // before what it has, which may have it
            self.0.insert(copied.clone(), Value::Null);
            each_reference(&mut copy, &mut |of| *of = self.copy(of, suffix, change));
            self.0.insert(copied.clone(), copy);
        }
        copied
    }

    /// Writes the types out where something is said beside a reference to them, which draft 7 has as `allOf` of the one reference:
    /// Taplo completes no key of such a schema, but looks on and on.
    pub fn write_out(&mut self, schema: &mut Value) {
        let types = self.0.clone();
        for schema in self.0.values_mut().chain([schema]) {
            write_out(&types, schema);
        }
    }

    /// The types that `schema` has, and those that these have.
    pub fn those_of(mut self, schema: &mut Value) -> Map<String, Value> {
        let mut reached = BTreeSet::new();
        let mut open = Vec::new();
        each_reference(schema, &mut |name| open.push(name.clone()));
        while let Some(name) = open.pop() {
            if let Some(schema) = self.0.get_mut(&name)
                && reached.insert(name)
            {
                each_reference(schema, &mut |name| open.push(name.clone()));
            }
        }
        self.0.retain(|name, _| reached.contains(name));
        self.0
    }
}

fn write_out(types: &Map<String, Value>, schema: &mut Value) {
    let has_one = schema
        .get("allOf")
        .and_then(Value::as_array)
        .is_some_and(|all| all.len() == 1);
    let of = if has_one { name_of(schema) } else { None };
    if let Some(Value::Object(of)) = of.and_then(|name| types.get(name)).cloned()
        && let Value::Object(keys) = &mut *schema
    {
        keys.remove("allOf");
        for (name, value) in of {
            keys.entry(name).or_insert(value);
        }
    }
    match schema {
        Value::Object(keys) => keys.values_mut().for_each(|value| write_out(types, value)),
        Value::Array(all) => all.iter_mut().for_each(|value| write_out(types, value)),
        _ => {}
    }
}

/// The type that a schema refers to, if it is nothing else.
pub(super) fn name_of(schema: &Value) -> Option<&str> {
    let reference = schema
        .get("$ref")
        .or_else(|| match schema.get("allOf")?.as_array()?.as_slice() {
            [only] => only.get("$ref"),
            _ => None,
        })?;
    reference.as_str()?.strip_prefix(REFERENCE)
}

/// A schema that refers to a type.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{REFERENCE}{name}") })
}

/// Every name in `schema` by which it refers to a type.
pub(super) fn each_reference(schema: &mut Value, see: &mut dyn FnMut(&mut String)) {
    match schema {
        Value::Object(keys) => {
            for (key, value) in keys {
                match value {
                    Value::String(text) if key == "$ref" => {
                        let mut name = text.trim_start_matches(REFERENCE).to_owned();
                        see(&mut name);
                        *text = format!("{REFERENCE}{name}");
                    }
                    value => each_reference(value, see),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|value| each_reference(value, see)),
        _ => {}
    }
}

/// A file has no value for nothing: a key is left out.
fn without_null(schema: &mut Value) {
    let is_null = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "null");
    match schema {
        Value::Object(keys) => {
            if keys.get("default").is_some_and(Value::is_null) {
                keys.remove("default");
            }
            if let Some(Value::Array(names)) = keys.get_mut("type") {
                names.retain(|name| name != "null");
                if let [only] = names.as_slice() {
                    let only = only.clone();
                    keys.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(all)) = keys.get_mut("enum") {
                all.retain(|value| !value.is_null());
            }
            if let Some(Value::Array(forms)) = keys.get_mut("anyOf") {
                forms.retain(|form| !is_null(form));
                if let [only] = forms.as_slice() {
                    let only = json!([only]);
                    keys.remove("anyOf");
                    keys.insert("allOf".to_owned(), only);
                }
            }
            keys.values_mut().for_each(without_null);
        }
        Value::Array(all) => all.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// Says what formats mean: the widths of integers in numbers, addresses as a pattern.
fn say_formats(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            let greatest = match keys.get("format").and_then(Value::as_str) {
                Some("uint8") => Some(u64::from(u8::MAX)),
                Some("uint16") => Some(u64::from(u16::MAX)),
                Some("uint32") => Some(u64::from(u32::MAX)),
                // an integer of TOML has 64 bits with its sign
                Some("uint64" | "uint") => Some(i64::MAX.cast_unsigned()),
                _ => None,
            };
            if let Some(greatest) = greatest {
                keys.entry("maximum").or_insert(json!(greatest));
            }
            // a key of a table may be called that
            let format = keys
                .get("format")
                .is_some_and(Value::is_string)
                .then(|| keys.remove("format"));
            match format.flatten() {
                Some(format) if format == "ipv6" => {
                    keys.insert("pattern".to_owned(), json!(ipv6_pattern()));
                    keys.insert("x-quantity".to_owned(), json!("IPv6 address"));
                }
                _ => {}
            }
            keys.values_mut().for_each(say_formats);
        }
        Value::Array(all) => all.iter_mut().for_each(say_formats),
        _ => {}
    }
}

/// Says what ranges of numbers come to.
fn say_ranges(schema: &mut Value) {
    if let Some(range) = range::of(schema)
        && let Value::Object(keys) = &mut *schema
        && keys
            .get("type")
            .is_some_and(|kind| kind == "integer" || kind == "number")
    {
        for (name, bound) in range.of_numbers() {
            keys.insert(name.to_owned(), Value::Number(bound));
        }
    }
    match schema {
        Value::Object(keys) => keys.values_mut().for_each(say_ranges),
        Value::Array(all) => all.iter_mut().for_each(say_ranges),
        _ => {}
    }
}

/// Descriptions are for people who have no documentation of Rust at hand: of a link to a thing, its name.
fn without_links(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            for (key, value) in keys {
                match value {
                    Value::String(text) if key == "description" => *text = linkless(text),
                    value => without_links(value),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(without_links),
        _ => {}
    }
}

/// ``[`a::B`](c::a::B)`` and ``[`a::B`]`` are `B`.
fn linkless(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else {
            break;
        };
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        plain += before;
        plain += &format!("`{}`", name.rsplit("::").next().unwrap_or(name));
        rest = target.map_or(after, |(_, after)| after);
    }
    plain + rest
}

/// The texts that are an IPv6 address (RFC 4291 section 2.2), but for those with an IPv4 address in them.
fn ipv6_pattern() -> String {
    const GROUP: &str = "[0-9a-fA-F]{1,4}";
    const GROUPS: usize = 8;
    let groups = |least: usize, most: usize| match most {
        0 => String::new(),
        _ if least == 0 => format!("({GROUP}(:{GROUP}){{0,{}}})?", most - 1),
        _ => format!("{GROUP}(:{GROUP}){{{},{}}}", least - 1, most - 1),
    };
    let shortened =
        (0..GROUPS).map(|before| format!("{}::{}", groups(before, before), groups(0, GROUPS - 1 - before)));
    let all: Vec<String> = shortened.chain([groups(GROUPS, GROUPS)]).collect();
    format!("^({})$", all.join("|"))
}
