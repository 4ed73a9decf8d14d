//! Shared keys of chunk authentication. They are read from files: a command line is for everyone on the machine to see.

use crate::setup;
use anyhow::{Context as _, Result, bail};
use segue_proto::sctp::SharedKey;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
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
    /// The key, from a file that only its owner may read and write: whoever has the key can be either end.
    pub(crate) fn read(&self) -> Result<SharedKey> {
        let mut key = Vec::new();
        let file = setup::open(&self.path)?;
        let cannot = || format!("cannot read {}", self.path.display());
        let mode = file.metadata().with_context(cannot)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            bail!(
                "{}: its mode is {mode:03o}, so that others than its owner have the key: expected 600 (chmod 600)",
                self.path.display()
            );
        }
        file.take(MAX_KEY + 1)
            .read_to_end(&mut key)
            .with_context(cannot)?;
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
    fn a_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let path = std::env::temp_dir().join(format!("segue-key-{}", std::process::id()));
        let mut file = std::fs::OpenOptions::new();
        let mut file = file
            .create(true)
            .truncate(true)
            .write(true)
            .open(&path)
            .expect("a file");
        std::io::Write::write_all(&mut file, b"secret").expect("written");
        let read_with = |mode: u32| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, permissions).expect("changed");
            let id = 1;
            let path = path.clone();
            KeyFile { id, path }.read().map_err(|e| e.to_string())
        };
        for mode in [0o644, 0o640, 0o604, 0o622] {
            let error = read_with(mode).expect_err("refused");
            assert!(error.contains(&format!("its mode is {mode:o}")), "{error}");
        }
        for mode in [0o600, 0o400] {
            assert_eq!(read_with(mode).expect("a key").key[..], b"secret"[..]);
        }
        let _ = std::fs::remove_file(&path);
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
