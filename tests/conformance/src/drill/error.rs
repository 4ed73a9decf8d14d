//! What a user wrote wrongly.

/// A line of a script that is not the language.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: expected {expected}, found {found}")]
pub struct SyntaxError {
    /// File, as it was named.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What could stand there.
    pub expected: String,
    /// What stands there.
    pub found: String,
}
