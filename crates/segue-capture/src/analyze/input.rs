//! Where captures come from, and why one cannot be analysed.

use super::source::{Source, words};
use super::watch::{Watch, Watched};
use std::io::{Cursor, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A capture: a file, standard input, or bytes in memory; compressed by gzip or Zstandard, or as it is.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file, read as a stream; twice if two captures are compared.
    File(PathBuf),
    /// Standard input, which can be read only once.
    StandardInput,
    /// Bytes under a name.
    Bytes(String, Arc<[u8]>),
    /// One of these, whose reading is watched.
    Watched(Box<Self>, Arc<Watch>),
}

impl Input {
    /// As errors and reports name it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::StandardInput => STANDARD_INPUT.to_owned(),
            Self::Bytes(name, _) => name.clone(),
            Self::Watched(input, _) => input.name(),
        }
    }

    /// The same, and its reading can be watched and ended.
    #[must_use]
    pub fn watched(self, watch: &Arc<Watch>) -> Self {
        Self::Watched(Box::new(self), Arc::clone(watch))
    }

    /// Whether it can be read more than once.
    pub(super) fn can_be_read_again(&self) -> bool {
        match self {
            Self::File(_) | Self::Bytes(..) => true,
            Self::StandardInput => false,
            Self::Watched(input, _) => input.can_be_read_again(),
        }
    }

    /// Opens it at its beginning.
    pub(super) fn open(&self) -> Result<Source, Error> {
        match self {
            Self::File(path) => open_file(path),
            Self::StandardInput => standard_input(),
            Self::Bytes(_, bytes) => Ok(Box::new(Cursor::new(Arc::clone(bytes)))),
            Self::Watched(input, watch) => Ok(Box::new(Watched::new(input.open()?, Arc::clone(watch)))),
        }
    }
}

impl From<&Path> for Input {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

#[expect(clippy::disallowed_methods, reason = "reading captures is what this is for")]
fn open_file(path: &Path) -> Result<Source, Error> {
    match std::fs::File::open(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(Error::Io {
            file: path.display().to_string(),
            reason: words(&error),
        }),
    }
}

/// As errors and reports name it.
const STANDARD_INPUT: &str = "standard input";

fn standard_input() -> Result<Source, Error> {
    let input = std::io::stdin();
    if input.is_terminal() {
        return Err(Error::NotACapture {
            file: STANDARD_INPUT.to_owned(),
            what: "it is a terminal".to_owned(),
        });
    }
    Ok(Box::new(input))
}

/// Why a capture cannot be analysed at all. What breaks off in the middle is analysed as far as it goes instead, and
/// marked: see [`super::Partial`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refuses.
    #[error("{file}: {reason}")]
    Io {
        /// The file.
        file: String,
        /// What the operating system says.
        reason: String,
    },
    /// Nothing in it.
    #[error("{file}: the file is empty: expected a pcap or pcapng capture")]
    Empty {
        /// The file.
        file: String,
    },
    /// Its first bytes are no capture's.
    #[error("{file}: {what}: expected a pcap or pcapng capture")]
    NotACapture {
        /// The file.
        file: String,
        /// What it is, or how it begins.
        what: String,
    },
    /// Two captures are read twice, and this one cannot be.
    #[error("{file}: can be read only once: expected a file beside another capture")]
    Once {
        /// The file.
        file: String,
    },
    /// No captures, or too many.
    #[error("expected one capture, or two of the same traffic, and got {0}")]
    Count(usize),
}
