//! Scenarios: TOML, overrides, and what is refused.

mod access;
mod application_list;
mod applications;
mod cases;
mod cell_files;
mod constellation;
mod effect;
pub mod error;
pub mod events;
mod expressions;
pub mod files;
pub mod keys;
mod location;
mod mobiles;
pub mod mobility;
pub mod model;
mod named;
mod overrides;
mod parameters;
pub mod plan;
mod populations;
pub mod presence;
pub mod problems;
mod processing;
pub mod remedy;
pub mod schemes;
mod shape;
pub mod sharing;
mod standing_in;
pub mod tcp;
pub mod technology;
mod timers;
pub mod traffic;
mod validate;

pub(crate) use validate::{first_cell, point};

use crate::warnings::Warning;
pub use application_list::Applications;
use error::Choices;
pub use error::ScenarioError;
pub use mobiles::Mobiles;
pub use model::ScenarioFile;
pub use named::{Name, Named};

/// A scenario that has been read and found possible.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    file: ScenarioFile,
    warnings: Vec<Warning>,
}

impl Scenario {
    /// Reads a scenario. `file` names it in messages. `overrides` are pairs of a dotted key (`l2.latency`, or
    /// `link.0.rate` or `cell.NAME.radius` inside a list) and a value as TOML has it, where quotes may be left out.
    /// `case` chooses one of the file's `[cases.NAME]`, whose keys are set before the other overrides. A key of the file's
    /// `[parameters]` sets that, and what `[derived]` makes of it.
    ///
    /// # Errors
    /// One line: which file, which key, what was expected.
    pub fn from_toml(text: &str, file: &str, overrides: &[(String, String)]) -> Result<Self, ScenarioError> {
        Self::read(text, file, overrides).map_err(|error| blamed(error, text, file, overrides))
    }

    fn read(text: &str, file: &str, overrides: &[(String, String)]) -> Result<Self, ScenarioError> {
        let mut table: toml::Table = text.parse().map_err(|e| ScenarioError::syntax(file, text, &e))?;
        let written = table.clone();
        cases::apply(&mut table, file, overrides::given(overrides, "case"))?;
        let parameters = parameters::apply(&mut table, file, overrides)?;
        let mut set = Vec::with_capacity(overrides.len());
        for (key, value) in overrides {
            parameters.refuse_unknown(key)?;
            let key = if key == "case" || parameters.has(key) {
                key.clone()
            } else {
                overrides::apply(&mut table, key, value)?
            };
            set.push((key, value.clone()));
        }
        let overrides = &set[..];
        let source = |key: &str| overrides::source_of(key, overrides).unwrap_or_else(|| file.to_owned());
        let cell_files = cell_files::expand(&mut table, file, &source)?;
        let constellation = constellation::expand(&mut table, &source)?;
        let populations = populations::expand(&mut table).map_err(|(key, problem)| {
            let key = cell_files.entry_of(&constellation.entry_of(&key));
            ScenarioError::new(&source(&key), &key, problem)
        })?;
        let entry_of = |key: &str| cell_files.entry_of(&constellation.entry_of(&populations.entry_of(key)));
        technology::apply(&mut table, file)?;
        shape::check(&table).map_err(|(key, expected)| {
            let key = entry_of(&key);
            ScenarioError::new(&source(&key), &key, expected)
        })?;
        // a key that follows from a parameter goes by the name of that
        let named = |key: &str| {
            let key = &entry_of(key)[..];
            let (name, outside) = parameters.naming(key);
            let source = overrides::source_of(key, overrides);
            let set = outside.then(|| overrides::SOURCE.to_owned());
            (source.or(set).unwrap_or_else(|| file.to_owned()), name)
        };
        let mut parsed = model(&table).map_err(|(key, e)| {
            let value = overrides::find(&table, &key);
            let (source, name) = named(&key);
            // what was meant may be a parameter
            let written = overrides::written(&key, overrides);
            let hint = written.and_then(|w| error::nearest_above(LIKE, w, parameters.names()));
            ScenarioError::key(&source, &name, value, &choices(&table, &key), hint, &e)
        })?;
        keys::range::check(&table).map_err(|(key, expected)| {
            let (source, name) = named(&key);
            ScenarioError::new(&source, &name, expected)
        })?;
        events::apply(&mut parsed).map_err(|p| {
            let (source, name) = named(&p.key);
            ScenarioError::new(&source, &name, p.expected)
        })?;
        mobility::check(&parsed).map_err(|p| {
            let (source, name) = named(&p.key);
            ScenarioError::new(&source, &name, p.expected)
        })?;
        files::load(&mut parsed, file).map_err(|e| ScenarioError {
            key: entry_of(&e.key),
            ..e
        })?;
        let seed = parsed.seed;
        mobility::begin(&mut parsed, seed);
        validate::check(&parsed).map_err(|p| {
            let (source, name) = named(&p.key);
            ScenarioError::new(&source, &name, p.expected)
        })?;
        let warnings = effect::warnings(&parsed, &written, overrides, &table, || {
            Self::read(text, file, &[]).ok().map(|alone| alone.file)
        });
        Ok(Self {
            file: parsed,
            warnings,
        })
    }

    /// What was accepted and has no effect.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The scenario's parts.
    #[must_use]
    pub fn file(&self) -> &ScenarioFile {
        &self.file
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Its description.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.file.description
    }

    /// Names of all nodes by number: hosts, then routers.
    #[must_use]
    pub fn node_names(&self) -> Vec<String> {
        let hosts = self.file.host.iter().map(|h| h.name.clone());
        hosts
            .chain(self.file.router.iter().map(|r| r.name.clone()))
            .collect()
    }

    /// The whole scenario as TOML, defaults included.
    ///
    /// # Panics
    /// If a part of the scenario cannot be written as TOML, which no scenario that was read can have.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.file).expect("what was read can be written")
    }
}

/// The error with what is at fault: the override that it goes away without, where the file is blamed for what an override has
/// made of it; that override in full, where one is blamed.
fn blamed(error: ScenarioError, text: &str, file: &str, overrides: &[(String, String)]) -> ScenarioError {
    let same = |key: &str| overrides::with_dots(key) == overrides::with_dots(&error.key);
    let by_name = (error.source == overrides::SOURCE)
        .then(|| overrides.iter().rposition(|(key, _)| same(key)))
        .flatten();
    // what is wrong in a file that the scenario names is not the override's fault
    if ![file, overrides::SOURCE].contains(&error.source.as_str()) {
        return error;
    }
    let by_trial = || {
        (0..overrides.len()).rev().find(|&index| {
            let mut others = overrides.to_vec();
            others.remove(index);
            Scenario::read(text, file, &others).err().as_ref() != Some(&error)
        })
    };
    match by_name.or_else(by_trial) {
        Some(index) => error.of_override(&overrides[index]),
        None => error,
    }
}

/// The parts, or the key that is wrong and what is wrong with it.
fn model(table: &toml::Table) -> Result<ScenarioFile, (String, toml::de::Error)> {
    serde_path_to_error::deserialize(toml::Value::Table(table.clone()))
        .map_err(|e| (e.path().to_string(), e.into_inner()))
}

/// The names of which `key` takes one or a list, if it does: what is said to a name that nothing has.
fn choices(table: &toml::Table, key: &str) -> Choices {
    let names = |value: &str, at: &str| {
        let mut table = table.clone();
        overrides::apply(&mut table, key, value).ok()?;
        match model(&table) {
            Err((key, error)) if key == at => Some(error::variants(error.message())),
            _ => None,
        }
    };
    let found = |names: Option<Vec<String>>| names.filter(|names| !names.is_empty());
    if let Some(names) = found(names("?", key)) {
        return Choices::One(names);
    }
    found(names("[\"?\"]", &format!("{key}[0]"))).map_or(Choices::None, Choices::List)
}

/// How much like a parameter's name what somebody has set must be to have been meant for it.
const LIKE: f64 = 0.85;

#[cfg(test)]
mod messages;
#[cfg(test)]
mod tests;
