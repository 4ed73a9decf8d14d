//! The agent's file, as it is on disk.

use anyhow::{Context as _, anyhow, bail};
use nix::unistd::geteuid;
use segue_agent::config::Config;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// `segue-agent check`.
pub(crate) fn check(file: &Path) -> anyhow::Result<u8> {
    read(file)?;
    Ok(0)
}

/// Reads a file. One that has a key in it is not for others to read.
///
/// # Errors
/// One line that names the file, what is wrong and what was expected.
pub(crate) fn read(file: &Path) -> anyhow::Result<Config> {
    let shown = file.display();
    let mut text = String::new();
    #[expect(clippy::disallowed_methods, reason = "the agent reads its file")]
    let opened = File::open(file).with_context(|| shown.to_string())?;
    let metadata = opened.metadata().with_context(|| shown.to_string())?;
    opened
        .take(LONGEST)
        .read_to_string(&mut text)
        .with_context(|| shown.to_string())?;
    if metadata.len() > LONGEST {
        bail!(
            "{shown}: has {} bytes: expected {LONGEST} at most",
            metadata.len()
        );
    }
    let config = Config::parse(&text).map_err(|message| anyhow!("{shown}: {message}"))?;
    let mode = metadata.permissions().mode();
    if config.has_secret() && mode & OF_OTHERS != 0 {
        bail!(
            "{shown}: has a key and mode {:04o}: expected a file that others cannot read, as after chmod o-rwx",
            mode & 0o7777
        );
    }
    let (owner, own) = (metadata.uid(), geteuid().as_raw());
    if config.has_secret() && owner != own && owner != ROOT {
        bail!(
            "{shown}: has a key and is user {owner}'s: expected a file of root, or of user {own}, who runs the agent"
        );
    }
    Ok(config)
}

const ROOT: u32 = 0;

/// Others may read or write it.
const OF_OTHERS: u32 = 0o006;
/// A file has no more than this, bytes.
const LONGEST: u64 = 1 << 20;
