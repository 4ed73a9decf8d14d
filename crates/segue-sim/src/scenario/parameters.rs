//! Parameters: what an experiment varies, under names of its own, and what follows from them elsewhere in the file.
//!
//! ```toml
//! [parameters]
//! t_1 = "2 s"
//! t_dwell = "40 s"
//! bw_ratio = { value = 4, at_least = 1 }
//!
//! [derived]                       # keys of the rest of the file, each from an expression
//! "link.fast.rate" = "bw_ratio * 384 kbit/s"
//! "link.fast.outages.0.from" = "t_1 + t_dwell"
//!
//! [when.scheme.cmt]               # set where the key `scheme` of the top level is "cmt"
//! sctp.path_max_retrans = 5
//! ```
//!
//! `--set t_dwell="10 s"` sets the parameter, and so does `parameters.t_dwell`. What is set from outside by its own key wins
//! over what is derived.

use super::expressions::{self, evaluate};
use super::{ScenarioError, error, overrides, populations};
use toml::{Table, Value};

const PARAMETERS: &str = "parameters";
const PREFIX: &str = "parameters.";
const DERIVED: &str = "derived";
const WHEN: &str = "when";

/// What the rest of the reading has to know of parameters.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    /// Names of parameters.
    names: Vec<String>,
    /// Those set from outside.
    set: Vec<String>,
    /// Keys that were derived, with numbers of entries, and from what.
    derived: Vec<(String, String)>,
}

impl Parameters {
    /// Whether an override of `key` is one of a parameter.
    pub(super) fn has(&self, key: &str) -> bool {
        self.names.iter().any(|n| is_of(key, n))
    }

    /// The names of parameters, for hints.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// An override of `key` that is of no parameter, though it says so.
    pub(super) fn refuse_unknown(&self, key: &str) -> Result<(), ScenarioError> {
        let Some(name) = key.strip_prefix(PREFIX).filter(|_| !self.has(key)) else {
            return Ok(());
        };
        let problem = if self.names.is_empty() {
            "the scenario has no [parameters]".to_owned()
        } else {
            let hint = error::nearest(name, &self.names).map_or_else(
                || format!("expected one of {}", self.names.join(", ")),
                did_you_mean,
            );
            format!("no such parameter: {hint}")
        };
        Err(ScenarioError::new(overrides::SOURCE, key, problem))
    }

    /// How a message is to name `key`: as its parameter where it is nothing else. Also whether that was set from outside.
    pub(super) fn naming(&self, key: &str) -> (String, bool) {
        let dotted = overrides::with_dots(key);
        let Some((_, expression)) = self.derived.iter().find(|(k, _)| *k == dotted) else {
            return (key.to_owned(), false);
        };
        let outside = expressions::names(expression).any(|n| self.set.iter().any(|s| s == n));
        let name = if self.has(expression.trim()) {
            expression.trim().to_owned()
        } else {
            format!("{key} = {expression}")
        };
        (name, outside)
    }
}

/// Carries the parameters into the rest of the file; the values that were used stay in `[parameters]` as labels.
pub(super) fn apply(
    table: &mut Table,
    file: &str,
    set: &[(String, String)],
) -> Result<Parameters, ScenarioError> {
    let mut parameters = Parameters::default();
    let derived = flattened(table, file, DERIVED)?;
    let declared = match table.remove(PARAMETERS) {
        Some(Value::Table(declared)) => declared,
        Some(_) => {
            return Err(ScenarioError::new(
                file,
                PARAMETERS,
                "expected a table: [parameters]",
            ));
        }
        None => Table::new(),
    };
    let mut values: Vec<(String, Value)> = Vec::new();
    for (name, value, limits) in flat_parameters(&declared) {
        let given = set.iter().rev().find(|(key, _)| is_of(key, &name));
        let source = if given.is_some() { overrides::SOURCE } else { file };
        let declared = value;
        let value = given.map_or_else(|| declared.clone(), |(_, text)| overrides::parse(text));
        let used = populations::reads(table, &name)
            || derived.iter().any(|(_, e)| match e {
                Value::String(text) => expressions::names(text).any(|n| n == name),
                _ => false,
            });
        if !used && (given.is_some() || !derived.is_empty()) {
            return Err(ScenarioError::new(
                source,
                &name,
                "nothing in [derived] follows from this parameter",
            ));
        }
        expressions::expect_like(&declared, &value)
            .and_then(|()| check_limits(&value, &limits))
            .map_err(|problem| ScenarioError::new(source, &name, problem))?;
        if given.is_some() {
            parameters.set.push(name.clone());
        }
        parameters.names.push(name.clone());
        values.push((name, value));
    }
    let lookup = |name: &str| values.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    for (key, expression) in &derived {
        let Value::String(text) = expression else {
            return Err(ScenarioError::new(
                file,
                &format!("{DERIVED}.{key}"),
                "expected an expression in quotes, such as \"t_1 + t_dwell\"",
            ));
        };
        let mut outside = expressions::names(text).filter(|n| parameters.set.iter().any(|s| s == n));
        let (set, another) = (outside.next(), outside.next());
        let source = if set.is_some() { overrides::SOURCE } else { file };
        let unknown = expressions::names(text).find(|n| lookup(n).is_none());
        let value = match unknown.filter(|_| lookup(text.trim()).is_none()) {
            Some(name) => {
                let known: Vec<&str> = values.iter().map(|(n, _)| n.as_str()).collect();
                let hint = error::nearest(name, &known)
                    .map_or_else(String::new, |n| format!(": {}", did_you_mean(n)));
                Err(format!("`{name}` is no key of [{PARAMETERS}]{hint}"))
            }
            None => evaluate(text, &lookup),
        };
        let value = value.map_err(|problem| match set.filter(|_| another.is_none()) {
            Some(name) => ScenarioError::new(source, name, format!("{problem}, by {key} = {text}")),
            None => ScenarioError::new(source, &format!("{key} = {text}"), problem),
        })?;
        let numbered = overrides::put(table, key, value, file)?;
        parameters.derived.push((numbered, text.clone()));
    }
    if !values.is_empty() {
        table.insert(PARAMETERS.to_owned(), Value::Table(values.into_iter().collect()));
    }
    choose(table, file, set)?;
    Ok(parameters)
}

/// Whether an override of `key` is of the parameter `name`: it may name the table, too.
fn is_of(key: &str, name: &str) -> bool {
    key == name || key.strip_prefix(PREFIX) == Some(name)
}

fn did_you_mean(name: &str) -> String {
    format!("did you mean `{name}`?")
}

/// `[when.KEY.VALUE]`: set where the top-level KEY has that value.
fn choose(table: &mut Table, file: &str, set: &[(String, String)]) -> Result<(), ScenarioError> {
    let keys = match table.remove(WHEN) {
        None => return Ok(()),
        Some(Value::Table(keys)) => keys,
        Some(_) => {
            return Err(ScenarioError::new(
                file,
                WHEN,
                "expected tables: [when.KEY.VALUE]",
            ));
        }
    };
    for (key, choices) in keys {
        let path = format!("{WHEN}.{key}");
        let Value::Table(choices) = choices else {
            return Err(ScenarioError::new(
                file,
                &path,
                "expected tables: [when.KEY.VALUE]",
            ));
        };
        let given = overrides::given(set, &key).map(str::to_owned);
        let value = given.or_else(|| table.get(&key).and_then(Value::as_str).map(str::to_owned));
        for (choice, keys) in choices {
            if value.as_deref() == Some(&choice) {
                super::cases::merge_into(table, &keys, file, &format!("{path}.{choice}"))?;
            }
        }
    }
    Ok(())
}

/// A table of dotted keys, whether the dots are in quotes or make tables within tables.
fn flattened(table: &mut Table, file: &str, name: &str) -> Result<Vec<(String, Value)>, ScenarioError> {
    let keys = match table.remove(name) {
        None => return Ok(Vec::new()),
        Some(Value::Table(keys)) => keys,
        Some(_) => {
            return Err(ScenarioError::new(
                file,
                name,
                format!("expected a table: [{name}]"),
            ));
        }
    };
    let mut all = Vec::new();
    flatten(&keys, "", &mut all);
    Ok(all)
}

fn flatten(table: &Table, prefix: &str, into: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let path = format!("{prefix}{key}");
        match value {
            Value::Table(inner) => flatten(inner, &format!("{path}."), into),
            value => into.push((path, value.clone())),
        }
    }
}

/// Least and greatest value, where there are such limits.
type Limits = [(&'static str, Option<Value>); 2];

/// The parameters with their values and limits, sorted.
fn flat_parameters(declared: &Table) -> Vec<(String, Value, Limits)> {
    let mut all = Vec::new();
    let mut open: Vec<(String, &Table)> = vec![(String::new(), declared)];
    while let Some((prefix, table)) = open.pop() {
        for (key, value) in table {
            let name = format!("{prefix}{key}");
            match value {
                Value::Table(inner) if inner.contains_key("value") => {
                    let limits = ["at_least", "at_most"].map(|limit| (limit, inner.get(limit).cloned()));
                    all.push((name, inner["value"].clone(), limits));
                }
                Value::Table(inner) => open.push((format!("{name}."), inner)),
                value => all.push((name, value.clone(), [("at_least", None), ("at_most", None)])),
            }
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn check_limits(value: &Value, limits: &Limits) -> Result<(), String> {
    for (name, limit) in limits {
        let Some(limit) = limit else { continue };
        let written = |value: &Value| value.to_string().replace('"', "");
        let (given, bound) = (written(value), written(limit));
        let ahead = expressions::compare(value, limit)
            .map_err(|_| format!("`{given}`: expected a value such as {bound}"))?;
        let within = if *name == "at_least" {
            ahead.is_ge()
        } else {
            ahead.is_le()
        };
        if !within {
            return Err(format!("`{given}`: expected {} {bound}", name.replace('_', " ")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Scenario, schemes::Scheme};
    use segue_proto::Duration;
    use segue_proto::units::{BitRate, Packets, QueueLimit};

    const CMT: &str = include_str!("../../../../scenarios/papers/cmt.toml");

    fn with(overrides: &[(&str, &str)]) -> Result<Scenario, String> {
        let overrides: Vec<_> = overrides
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Scenario::from_toml(CMT, "cmt.toml", &overrides).map_err(super::super::tests::line)
    }

    fn link<'a>(s: &'a Scenario, name: &str) -> &'a super::super::model::LinkEntry {
        let mut links = s.file().link.iter();
        links.find(|l| l.name.as_deref() == Some(name)).expect("a link")
    }

    #[test]
    fn what_follows_from_a_parameter_is_set() {
        let s = with(&[
            ("bw_ratio", "2"),
            ("t_dwell", "10 s"),
            ("rbuf", "64 kB"),
            ("queue.packets", "20"),
            ("file_size", "1 MB"),
            ("rto.min", "1 s"),
            ("cmt.rtx_policy", "lossrate"),
            ("cmt.pf", "false"),
        ])
        .expect("a scenario");
        assert_eq!(link(&s, "ran1").rate, BitRate::from_bits_per_second(768_000));
        assert_eq!(link(&s, "ran1").outages[0].from, Duration::from_millis(12_065));
        assert_eq!(link(&s, "ran2").outages[0].to, Some(Duration::from_millis(2_065)));
        assert_eq!(link(&s, "ran2").queue, QueueLimit::Packets(Packets::new(20)));
        let file = s.file();
        assert_eq!(file.sctp.receive_buffer.map(|b| b.bytes()), Some(64_000));
        assert_eq!(file.application[0].size.map(|b| b.bytes()), Some(1_000_000));
        assert_eq!(file.sctp.rto_min, Some(Duration::from_secs(1)));
        assert!(!file.cmt.pf);
    }

    #[test]
    fn a_scheme_brings_its_settings_and_overrides_win_over_them() {
        for (scheme, name, retransmissions) in [
            ("failover", Scheme::Failover, 1),
            ("msctp-best", Scheme::MsctpBest, 1),
            ("msctp-worst", Scheme::MsctpWorst, 1),
            ("cmt", Scheme::Cmt, 5),
        ] {
            let s = with(&[("scheme", scheme)]).expect("a scenario");
            assert_eq!(s.file().scheme, name);
            assert_eq!(s.file().sctp.path_max_retrans, Some(retransmissions), "{scheme}");
        }
        let single = with(&[("scheme", "single")]).expect("a scenario");
        assert!(link(&single, "ran1").outages.is_empty());
        let own = with(&[("scheme", "cmt"), ("sctp.path_max_retrans", "2")]).expect("a scenario");
        assert_eq!(own.file().sctp.path_max_retrans, Some(2));
    }

    #[test]
    fn the_scenario_as_run_is_read_again_and_its_parameters_are_labels() {
        let s = with(&[("bw_ratio", "2")]).expect("a scenario");
        let text = s.to_toml();
        let again = Scenario::from_toml(&text, "as-run.toml", &[]).expect("a scenario");
        assert_eq!(again, s);
        let set = [("bw_ratio".to_owned(), "3".to_owned())];
        let error = Scenario::from_toml(&text, "as-run.toml", &set).expect_err("a label only");
        assert!(
            error.to_string().contains("nothing in [derived] follows"),
            "{error}"
        );
    }

    #[test]
    fn a_parameter_that_makes_no_sense_is_refused_by_its_name() {
        for (key, value, expected) in [
            ("bw_ratio", "0.5", "--set: bw_ratio: `0.5`: expected at least 1"),
            (
                "bw_ratio",
                "fast",
                "--set: bw_ratio: `fast`: expected a number such as 4",
            ),
            ("rbuf", "0 B", "--set: rbuf: expected 1500 B"),
            (
                "rbuf",
                "5",
                "--set: rbuf: `5` has no unit: expected a size with a unit, such as",
            ),
            ("parameters.rbuf", "5", "--set: rbuf: `5` has no unit"),
            ("parameters.rbuf", "5 B", "--set: rbuf: expected 1500 B"),
            (
                "parameters.rbuff",
                "64 kB",
                "--set: parameters.rbuff: no such parameter: did you mean `rbuf`?",
            ),
            (
                "rto.mim",
                "1 s",
                "--set: rto: unknown key: did you mean `rto.min`?",
            ),
            (
                "t_dwel",
                "1 s",
                "--set: t_dwel: unknown key: did you mean `t_dwell`?",
            ),
            (
                "queue.packets",
                "1.5",
                "--set: queue.packets: is 1.5 packets: expected a whole number of them, by ",
            ),
            (
                "rto.min",
                "100 s",
                "--set: rto.min: expected at most rto_max, 60 s",
            ),
            (
                "t_dwell",
                "10",
                "--set: t_dwell: `10` has no unit: expected a duration with a unit, such as",
            ),
            (
                "queue.packets",
                "0",
                "--set: queue.packets: `0`: expected at least 1",
            ),
            (
                "t_dwell",
                "-1 s",
                "--set: t_dwell: `-1 s` is negative: expected a duration",
            ),
            (
                "t_dwell",
                "5 kB",
                "--set: t_dwell: `5 kB`: unknown unit `kB`: expected a duration",
            ),
            ("file_size", "0 B", "--set: file_size: expected more than 0 B"),
            (
                "cmt.rtx_policy",
                "fastest",
                "expected one of asap, same, cwnd, ssthresh, lossrate",
            ),
            ("bw_ration", "2", "bw_ration"),
        ] {
            let error = with(&[(key, value)]).expect_err(value);
            assert!(error.contains(expected), "{key} = {value}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
