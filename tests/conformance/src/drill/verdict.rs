//! What playing a script came to.

use core::fmt;

/// What playing a script came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Everything was as the script has it.
    Passed,
    /// Something was not.
    Failed(Failure),
    /// The script asks for something that no machine of ours has, or that the player does not do.
    Unmappable {
        /// Line of the script, from 1.
        line: usize,
        /// What it asks for.
        what: String,
    },
}

/// A line of a script that was not as it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Line of the script, from 1.
    pub line: usize,
    /// What was due, as the script has it, and when.
    pub due: String,
    /// What came, as a script would have it, and when.
    pub came: String,
    /// In which the two differ, if both are there.
    pub difference: Option<String>,
}

/// A verdict with the name of its script: what is printed.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The file, as it was named.
    pub file: &'a str,
    /// What playing it came to.
    pub verdict: &'a Verdict,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file;
        match self.verdict {
            Verdict::Passed => write!(f, "{file}: passed"),
            Verdict::Unmappable { line, what } => write!(f, "{file}:{line}: cannot be mapped: {what}"),
            Verdict::Failed(failure) => {
                let Failure {
                    line,
                    due,
                    came,
                    difference,
                } = failure;
                write!(f, "{file}:{line}: failed\n    due:  {due}\n    came: {came}")?;
                difference
                    .iter()
                    .try_for_each(|difference| write!(f, "\n    that is: {difference}"))
            }
        }
    }
}
