//! What a scenario may say: JSON Schema of the file as it is written, and every key of it with its type, default and meaning. Both
//! come from the types that a scenario is read into ([`super::model`]), and from nothing else.
//!
//! A file says more than those: entries that stand for many ([`super::populations`]), cells from a file ([`super::cell_files`]),
//! presets ([`super::technology`]) and what becomes of parameters and cases. The schema has that too.

mod list;
pub(crate) mod range;
mod schema;
pub(in crate::scenario) mod texts;
mod types;

pub use list::{Choice, Key, keys};
pub use schema::schema;

use super::{ScenarioError, constellation, model, shape, technology};

/// Reads a scenario for its form alone, which is what [`schema`] is about. What stands for many, and what follows from parameters
/// and cases, is not worked out, and ranges are not looked at.
///
/// # Errors
/// One line: which key, what was expected.
pub fn check_form(text: &str, file: &str) -> Result<(), ScenarioError> {
    let mut table: toml::Table = text.parse().map_err(|e| ScenarioError::syntax(file, text, &e))?;
    if let Some(section) = table.remove("constellation") {
        let read: Result<constellation::Section, _> = serde_path_to_error::deserialize(section);
        read.map_err(|e| {
            ScenarioError::new(file, &format!("constellation.{}", e.path()), e.inner().message())
        })?;
    }
    technology::apply(&mut table, file)?;
    shape::check(&table).map_err(|(key, expected)| ScenarioError::new(file, &key, expected))?;
    match model(&table) {
        Ok(_) => Ok(()),
        Err((key, e)) => Err(ScenarioError::new(file, &key, e.message())),
    }
}
