//! One clear line for whoever wrote the scenario.

use super::overrides::{SOURCE, with_dots};
use std::fmt;
use toml::Value;

/// Why a scenario was refused: where, which key, what was expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    /// File name, or the `--set KEY=VALUE` that is at fault.
    pub source: String,
    /// Dotted key; empty where the file is not TOML at all.
    pub key: String,
    /// What is wrong and what was expected.
    pub problem: String,
}

impl std::error::Error for ScenarioError {}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() || self.source_names_key() {
            write!(f, "{}: {}", self.source, self.problem)
        } else {
            write!(f, "{}: {}: {}", self.source, self.key, self.problem)
        }
    }
}

impl ScenarioError {
    pub(super) fn new(source: &str, key: &str, problem: impl Into<String>) -> Self {
        Self {
            source: one_line(source),
            key: one_line(key),
            problem: one_line(&problem.into()),
        }
    }

    /// The same, of an override that is at fault.
    pub(super) fn of_override(self, (key, value): &(String, String)) -> Self {
        Self {
            source: one_line(&format!("{SOURCE} {key}={value}")),
            ..self
        }
    }

    /// Whether the source is an override of this key, or of one in its table: it is not to be named twice.
    fn source_names_key(&self) -> bool {
        let set = self
            .source
            .strip_prefix(SOURCE)
            .and_then(|rest| rest.split_once('='));
        set.is_some_and(|(key, _)| {
            let (set, own) = (with_dots(key.trim()), with_dots(&self.key));
            let rest = set.strip_prefix(&*own);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    pub(super) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let line = error
            .span()
            .map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
        Self::new(file, "", format!("line {line} is not TOML: {}", error.message()))
    }

    /// What serde says of the `value` at `key`, where one of `choices` is expected if there are any.
    pub(super) fn key(
        source: &str,
        key: &str,
        value: Option<&Value>,
        choices: &Choices,
        hint: Option<&str>,
        error: &toml::de::Error,
    ) -> Self {
        let message = error.message();
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        if message.starts_with("unknown field") && !quoted.is_empty() {
            let hint = hint.or_else(|| nearest(quoted[0], &quoted[1..])).map_or_else(
                || format!("expected one of {}", quoted[1..].join(", ")),
                |n| format!("did you mean `{n}`?"),
            );
            return Self::new(source, key, format!("unknown key: {hint}"));
        }
        if message.starts_with("unknown variant") && !quoted.is_empty() {
            let hint = meant(quoted[0], &quoted[1..]);
            let all = quoted[1..].join(", ");
            return Self::new(
                source,
                key,
                format!("`{}`: expected one of {all}{hint}", quoted[0]),
            );
        }
        let key = if key == "." { "" } else { key };
        let plain = match choices {
            Choices::None => expected_in_plain_words(message).map(str::to_owned),
            Choices::One(names) => Some(format!("one of {}", names.join(", "))),
            Choices::List(names) => Some(format!(
                "a list such as [\"{}\"], each one of {}",
                names[0],
                names.join(", ")
            )),
        };
        let plain = plain.or_else(|| own_words(message));
        if let (Some(missing), true) = (quoted.first(), message.starts_with("missing field")) {
            return Self::new(source, key, format!("expected the key `{missing}` too"));
        }
        let value = value.filter(|_| message.starts_with("invalid "));
        match (value, plain) {
            (Some(Value::Table(_)), Some(plain)) => {
                Self::new(source, key, format!("a table: expected {plain}"))
            }
            (Some(Value::Array(list)), Some(plain)) if !message.starts_with("invalid type") => {
                Self::new(source, key, format!("a list of {}: expected {plain}", list.len()))
            }
            (Some(value), Some(plain)) => Self::new(source, key, format!("`{value}`: expected {plain}")),
            _ => Self::new(source, key, in_plain_words(message)),
        }
    }
}

/// What may have been meant by a name that is none of `names`: those that have it as a part, or else the one most like it.
fn meant(word: &str, names: &[&str]) -> String {
    let parts = |name: &&&str| name.split('-').any(|part| part == word) || name.starts_with(word);
    let family: Vec<&str> = names.iter().filter(parts).copied().collect();
    match family[..] {
        [] => nearest(word, names).map_or(String::new(), |n| format!(" (did you mean `{n}`?)")),
        [one] => format!(" (did you mean `{one}`?)"),
        [ref some @ .., last] => format!(" (did you mean `{}` or `{last}`?)", some.join("`, `")),
    }
}

/// The names of which a key takes one or several.
pub(super) enum Choices {
    /// It takes no names.
    None,
    /// One.
    One(Vec<String>),
    /// A list of them.
    List(Vec<String>),
}

/// The candidate most like `word`, if any is like it at all.
pub(super) fn nearest<'a, T: AsRef<str>>(word: &str, candidates: &'a [T]) -> Option<&'a str> {
    nearest_above(0.7, word, candidates)
}

/// The candidate most like `word`, if one is more like it than `least`: 1 is the same.
pub(super) fn nearest_above<'a, T: AsRef<str>>(
    least: f64,
    word: &str,
    candidates: &'a [T],
) -> Option<&'a str> {
    candidates
        .iter()
        .map(|c| (strsim::jaro_winkler(word, c.as_ref()), c.as_ref()))
        .filter(|(likeness, _)| *likeness > least)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

/// The names that serde lists in its message about one that is none of them.
pub(super) fn variants(message: &str) -> Vec<String> {
    if !message.starts_with("unknown variant") {
        return Vec::new();
    }
    let quoted = message.split('`').skip(1).step_by(2);
    quoted.skip(1).map(str::to_owned).collect()
}

fn in_plain_words(message: &str) -> String {
    let found = message
        .rsplit_once("expected ")
        .map_or(message, |(found, _)| found);
    expected_in_plain_words(message)
        .map_or_else(|| message.to_owned(), |plain| format!("{found}expected {plain}"))
}

/// What types of ours say that they expect.
fn own_words(message: &str) -> Option<String> {
    let (_, expected) = message.split_once(", expected ")?;
    Some(expected.to_owned())
}

/// Names of types are no help to whoever writes a scenario.
fn expected_in_plain_words(message: &str) -> Option<&'static str> {
    let (_, expected) = message.rsplit_once("expected ")?;
    Some(match expected.split_whitespace().next().unwrap_or_default() {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" | "i64" => "a whole number, not negative",
        "f64" => "a number",
        "bool" | "a" if expected.starts_with("bool") || expected == "a boolean" => "true or false",
        "struct" | "internally" | "map" => "a table",
        "string" => "text",
        _ if expected.starts_with("a string") => "text in quotes",
        _ if expected.starts_with("a map") => "a table",
        "sequence" => "a list, in brackets",
        _ if expected == "a sequence" => "a list, in brackets",
        _ if expected.starts_with("an array of length 2") => "a list of two, such as [\"0 m\", \"70 m\"]",
        _ => return None,
    })
}

/// Longest message: whoever wrote a longer key knows it already.
const LONGEST: usize = 400;

/// Letters of a word that is written whole; of a longer one its beginning and its end.
const LONGEST_WORD: usize = 120;
const BEGINNING: usize = 80;
const END: usize = 20;

/// A word, such as a value that somebody wrote, without its middle if it is long: what was expected is still to be read.
fn cut(word: &str) -> String {
    let letters = word.chars().count();
    if letters <= LONGEST_WORD {
        return word.to_owned();
    }
    let beginning: String = word.chars().take(BEGINNING).collect();
    let end: String = word.chars().skip(letters - END).collect();
    format!("{beginning}\u{2026}{end}")
}

/// One line, printable, and not endless.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace().map(cut).collect::<Vec<_>>().join(" ");
    let mut line: String = words
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .take(LONGEST)
        .collect();
    if words.chars().nth(LONGEST).is_some() {
        line.push_str("...");
    }
    line
}
