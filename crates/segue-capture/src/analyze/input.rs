//! Where captures come from, and why one cannot be analysed.

use super::watch::{Watch, Watched};
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A capture: a file, or bytes in memory.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file, read as a stream; twice if two captures are compared.
    File(PathBuf),
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
            Self::Bytes(name, _) => name.clone(),
            Self::Watched(input, _) => input.name(),
        }
    }

    /// The same, and its reading can be watched and ended.
    #[must_use]
    pub fn watched(self, watch: &Arc<Watch>) -> Self {
        Self::Watched(Box::new(self), Arc::clone(watch))
    }

    /// Opens it at its beginning.
    pub(super) fn open(&self) -> Result<Box<dyn Read + Send>, Error> {
        match self {
            Self::File(path) => open_file(path),
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
fn open_file(path: &Path) -> Result<Box<dyn Read + Send>, Error> {
    match std::fs::File::open(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(Error::Io {
            file: path.display().to_string(),
            reason: words(&error),
        }),
    }
}

/// What the operating system says, without its number for it.
pub(super) fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
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
    /// No captures, or too many.
    #[error("expected one capture, or two of the same traffic, and got {0}")]
    Count(usize),
}
