//! Shared keys of chunk authentication. They are read from files: a command line is for everyone on the machine to see.

use crate::setup;
use anyhow::{Context as _, Result, bail};
use segue_proto::sctp::SharedKey;
use std::io::Read as _;
use std::path::PathBuf;
use std::str::FromStr;

/// Longest key that is taken, bytes.
const MAX_KEY: u64 = 4096;

/// A key's identifier and the file whose bytes it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeyFile {
    pub id: u16,
    pub path: PathBuf,
}

impl FromStr for KeyFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (id, path) = text
            .split_once(':')
            .ok_or("expected ID:FILE, such as \"1:key\"")?;
        let id = id
            .parse()
            .map_err(|_| format!("`{id}` is not a key identifier: expected 0 to 65535"))?;
        if path.is_empty() {
            return Err("expected a file after the key identifier".to_owned());
        }
        Ok(Self {
            id,
            path: path.into(),
        })
    }
}

impl KeyFile {
    /// The key.
    pub(crate) fn read(&self) -> Result<SharedKey> {
        let mut key = Vec::new();
        setup::open(&self.path)?
            .take(MAX_KEY + 1)
            .read_to_end(&mut key)
            .with_context(|| format!("cannot read {}", self.path.display()))?;
        if key.is_empty() || key.len() as u64 > MAX_KEY {
            bail!("{}: expected a key of 1 to {MAX_KEY} bytes", self.path.display());
        }
        Ok(SharedKey {
            id: self.id,
            key: key.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_and_a_file_are_read() {
        let expected = KeyFile {
            id: 7,
            path: "dir/key:1".into(),
        };
        assert_eq!("7:dir/key:1".parse(), Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, says) in [
            ("key", "expected ID:FILE"),
            ("65536:key", "`65536` is not a key identifier"),
            ("1:", "expected a file"),
        ] {
            let error = text.parse::<KeyFile>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
