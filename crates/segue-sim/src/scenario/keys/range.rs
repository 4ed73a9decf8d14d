//! Ranges of values. They are attributes of the fields that a scenario is read into, and stand nowhere else: [`check`] holds a
//! file against them, and the list of keys and the schema have them.

use super::list;
use segue_proto::Duration;
use segue_proto::units::{BitRate, Bytes, Decibel, Metres, Speed};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Number, Value as Json, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;
use toml::{Table, Value};

/// What a value may be: `#[schemars(extend("x-range" = within("10 us", "1 s")))]`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Range {
    #[serde(skip_serializing_if = "Option::is_none")]
    least: Option<Bound>,
    #[serde(skip_serializing_if = "Option::is_none")]
    greatest: Option<Bound>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Text>,
}

type Text = Cow<'static, str>;

/// One end of a range.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Bound {
    /// As a scenario has it.
    at: Text,
    /// Whether it may be that itself.
    included: bool,
}

/// Both ends may be.
pub(crate) fn within(least: &'static str, greatest: &'static str) -> Range {
    at_least(least).at_most(greatest)
}

/// The least may be.
pub(crate) fn at_least(least: &'static str) -> Range {
    Range {
        least: bound(least, true),
        ..Range::default()
    }
}

/// It is more than that.
pub(crate) fn above(least: &'static str) -> Range {
    Range {
        least: bound(least, false),
        ..Range::default()
    }
}

/// The greatest may be.
pub(crate) fn at_most(greatest: &'static str) -> Range {
    Range::default().at_most(greatest)
}

/// A probability or a share.
pub(crate) fn proportion() -> Range {
    within("0", "1")
}

fn bound(at: &'static str, included: bool) -> Option<Bound> {
    Some(Bound {
        at: Cow::Borrowed(at),
        included,
    })
}

impl Range {
    /// Up to that.
    pub(crate) fn at_most(self, greatest: &'static str) -> Self {
        Self {
            greatest: bound(greatest, true),
            ..self
        }
    }

    /// Less than that.
    pub(crate) fn below(self, greatest: &'static str) -> Self {
        Self {
            greatest: bound(greatest, false),
            ..self
        }
    }

    /// Who says so.
    pub(crate) fn by(self, source: &'static str) -> Self {
        Self {
            source: Some(Cow::Borrowed(source)),
            ..self
        }
    }

    /// Its ends as numbers, of a key of this kind.
    fn limits(&self, kind: &str) -> Limits {
        let end = |bound: &Option<Bound>| {
            let bound = bound.as_ref()?;
            let at = of_text(kind, &bound.at).expect("a bound is of the kind of its key");
            Some((at, bound.included))
        };
        Limits {
            kind: kind.to_owned(),
            least: end(&self.least),
            greatest: end(&self.greatest),
        }
    }

    /// Example of a value in it: `text`, if it is.
    pub(super) fn example(&self, kind: &str, text: &Json) -> Json {
        let fits = text
            .as_str()
            .and_then(|text| self.limits(kind).hold(&Value::String(text.to_owned())));
        let ends = [&self.least, &self.greatest];
        let end = ends.into_iter().flatten().find(|bound| bound.included);
        match (fits, end) {
            (Some(false), Some(bound)) => json!(bound.at),
            _ => text.clone(),
        }
    }

    /// What JSON Schema has of it, which knows numbers alone.
    pub(super) fn of_numbers(&self) -> Vec<(&'static str, Number)> {
        let number = |bound: &Bound| bound.at.parse::<Number>().ok();
        let name = |bound: &Bound, [included, excluded]: [&'static str; 2]| {
            if bound.included { included } else { excluded }
        };
        let ends = [
            (&self.least, ["minimum", "exclusiveMinimum"]),
            (&self.greatest, ["maximum", "exclusiveMaximum"]),
        ];
        let of_end = |(bound, names): (&Option<Bound>, [&'static str; 2])| {
            let bound = bound.as_ref()?;
            Some((name(bound, names), number(bound)?))
        };
        ends.into_iter().filter_map(of_end).collect()
    }
}

/// The ends of a range in the smallest unit of a kind of values, each with whether it may be that itself.
struct Limits {
    kind: String,
    least: Option<(f64, bool)>,
    greatest: Option<(f64, bool)>,
}

impl Limits {
    /// Whether `value` is within; nothing where it is none of the kind, which is refused elsewhere.
    fn hold(&self, value: &Value) -> Option<bool> {
        let value = magnitude(&self.kind, value)?;
        let least = self
            .least
            .is_none_or(|(at, included)| value > at || (included && value >= at));
        let greatest = self
            .greatest
            .is_none_or(|(at, included)| value < at || (included && value <= at));
        Some(least && greatest)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = self.least.as_ref().map(|bound| (bound.included, &bound.at));
        let greatest = self.greatest.as_ref().map(|bound| (bound.included, &bound.at));
        match (least, greatest) {
            (Some((true, least)), Some((true, greatest))) => write!(f, "{least} to {greatest}")?,
            (Some((true, least)), Some((false, greatest))) => write!(f, "{least} to less than {greatest}")?,
            (Some((false, least)), Some((true, greatest))) => {
                write!(f, "more than {least} and at most {greatest}")?;
            }
            (Some((false, least)), Some((false, greatest))) => {
                write!(f, "more than {least} and less than {greatest}")?;
            }
            (Some((true, least)), None) => write!(f, "at least {least}")?,
            (Some((false, least)), None) => write!(f, "more than {least}")?,
            (None, Some((true, greatest))) => write!(f, "at most {greatest}")?,
            (None, Some((false, greatest))) => write!(f, "less than {greatest}")?,
            (None, None) => {}
        }
        match &self.source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

/// That of a field, by its schema.
pub(super) fn of(field: &Json) -> Option<Range> {
    field
        .get("x-range")
        .and_then(|range| Range::deserialize(range).ok())
}

/// In words.
pub(super) fn in_words<S: Serializer>(range: &Option<Range>, serializer: S) -> Result<S::Ok, S::Error> {
    range.as_ref().map(ToString::to_string).serialize(serializer)
}

/// The first key of a file whose value is out of its range, with what was expected.
pub(in crate::scenario) fn check(table: &Table) -> Result<(), (String, String)> {
    TREE.check_table(table)
        .map_err(|wrong| (wrong.key, wrong.expected))
}

/// The same of a section that is not of the model: `section` is its name.
pub(in crate::scenario) fn check_section(section: &str, value: &Value) -> Result<(), (String, String)> {
    let checked = TREE.keys.get(section).map_or(Ok(()), |node| node.check(value));
    checked.map_err(|wrong| {
        let wrong = wrong.inside(section);
        (wrong.key, wrong.expected)
    })
}

/// All ranges. They are the same for every file, and many are read in a sweep.
static TREE: LazyLock<Node> = LazyLock::new(|| {
    let mut tree = Node::default();
    for key in list::keys() {
        if let Some(range) = key.range {
            let parts = key.key.split('.');
            let node = parts.fold(&mut tree, |node, part| match part.strip_suffix("[]") {
                Some(list) => node.key(list).entries.get_or_insert_default(),
                None => node.key(part),
            });
            node.range = Some((range.limits(&key.kind), range));
        }
    }
    tree
});

/// Keys of a table that have ranges, or in which there are such.
#[derive(Default)]
struct Node {
    range: Option<(Limits, Range)>,
    keys: BTreeMap<String, Self>,
    /// Of each entry of a list.
    entries: Option<Box<Self>>,
}

/// What is out of a range.
struct Wrong {
    /// From where it is looked at.
    key: String,
    expected: String,
}

impl Wrong {
    /// The same from the table around, in which it is below `name`.
    fn inside(&self, name: &str) -> Self {
        let dot = if self.key.is_empty() || self.key.starts_with('[') {
            ""
        } else {
            "."
        };
        Self {
            key: format!("{name}{dot}{}", self.key),
            expected: self.expected.clone(),
        }
    }
}

impl Node {
    fn key(&mut self, name: &str) -> &mut Self {
        self.keys.entry(name.to_owned()).or_default()
    }

    fn check_table(&self, table: &Table) -> Result<(), Wrong> {
        for (name, value) in table {
            if let Some(node) = self.keys.get(name) {
                node.check(value).map_err(|wrong| wrong.inside(name))?;
            }
        }
        Ok(())
    }

    fn check(&self, value: &Value) -> Result<(), Wrong> {
        match value {
            Value::Table(table) => self.check_table(table),
            Value::Array(values) => {
                for (number, value) in values.iter().enumerate() {
                    match &self.entries {
                        Some(entries) => entries
                            .check(value)
                            .map_err(|wrong| wrong.inside(&format!("[{number}]")))?,
                        None => self.check(value)?,
                    }
                }
                Ok(())
            }
            value => match &self.range {
                Some((limits, range)) if limits.hold(value) == Some(false) => Err(Wrong {
                    key: String::new(),
                    expected: format!("expected {range}"),
                }),
                _ => Ok(()),
            },
        }
    }
}

/// How much a value is, in the smallest unit of its kind.
fn magnitude(kind: &str, value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::String(text) => of_text(kind, text),
        _ => None,
    }
}

fn of_text(kind: &str, text: &str) -> Option<f64> {
    match kind.trim_start_matches("list of ") {
        "duration" => text.parse::<Duration>().ok().map(|d| d.as_nanos() as f64),
        "rate" => text.parse::<BitRate>().ok().map(|r| r.bits_per_second() as f64),
        "size" => text.parse::<Bytes>().ok().map(|b| b.bytes() as f64),
        "distance" => text.parse::<Metres>().ok().map(Metres::metres),
        "speed" => text.parse::<Speed>().ok().map(Speed::metres_per_second),
        "ratio" => text.parse::<Decibel>().ok().map(Decibel::db),
        "angle" => number(text.trim().strip_suffix("deg")?),
        _ => match text.trim().strip_suffix('%') {
            Some(percent) => Some(number(percent)? / 100.0),
            None => number(text),
        },
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<(), (String, String)> {
        check(&text.parse().expect("TOML"))
    }

    #[test]
    fn every_bound_is_of_the_kind_of_its_key() {
        let ranged: Vec<_> = list::keys()
            .into_iter()
            .filter(|key| key.range.is_some())
            .collect();
        assert!(ranged.len() > 80, "{}", ranged.len());
        for key in ranged {
            let range = key.range.expect("it has one");
            for bound in [&range.least, &range.greatest].into_iter().flatten() {
                let known = of_text(&key.kind, &bound.at);
                assert!(known.is_some(), "{}: {} is no {}", key.key, bound.at, key.kind);
                let inside = range.limits(&key.kind).hold(&Value::String(bound.at.to_string()));
                assert_eq!(inside, Some(bound.included), "{}: {range}", key.key);
            }
            // what is used if the key is left out
            let default = match key.default {
                Some(Json::String(text)) => Some(Value::String(text)),
                Some(Json::Number(number)) => number.as_f64().map(Value::Float),
                _ => None,
            };
            if let Some(default) = default {
                assert_eq!(
                    range.limits(&key.kind).hold(&default),
                    Some(true),
                    "{}: {range}",
                    key.key
                );
            }
        }
    }

    #[test]
    fn ends_belong_to_a_range_or_do_not() {
        for (text, expected) in [
            ("duration = \"0 s\"", Some("more than 0 s and at most 1000000 s")),
            ("duration = \"1 ns\"", None),
            ("duration = \"1000000 s\"", None),
            (
                "duration = \"1000001 s\"",
                Some("more than 0 s and at most 1000000 s"),
            ),
            ("l2 = { beacon_loss = 0 }", Some("at least 1")),
            (
                "tcp = { send_buffer = \"1 GiB\" }",
                Some("2048 B to less than 1 GiB (RFC 7323 section 2.3)"),
            ),
        ] {
            let found = checked(text).err().map(|(_, problem)| problem);
            assert_eq!(found, expected.map(|words| format!("expected {words}")), "{text}");
        }
    }

    #[test]
    fn keys_are_named_as_the_file_has_them() {
        let at = |text: &str| checked(text).expect_err("out of range").0;
        assert_eq!(at("link = [{}, { mtu = \"1 B\" }]"), "link[1].mtu");
        assert_eq!(
            at("link = [{ loss = { probability = 2 } }]"),
            "link[0].loss.probability"
        );
        assert_eq!(at("event = [{ loss = \"130 %\" }]"), "event[0].loss");
        assert_eq!(
            at("mobile = { mobility = { alpha = 1.5 } }"),
            "mobile.mobility.alpha"
        );
        assert_eq!(
            at("mobile = [{ mobility = { alpha = 1.5 } }]"),
            "mobile[0].mobility.alpha"
        );
    }

    #[test]
    fn what_is_of_another_kind_is_left_to_the_reader() {
        assert_eq!(
            checked("duration = \"far\"\nl2 = { beacon_loss = \"x\" }"),
            Ok(())
        );
    }
}
