//! Where scripts are.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of the suites that others wrote: `SEGUE_JUDGES`, or `../shared/judges` beside the project.
///
/// # Errors
/// If there is none: why.
pub fn judges() -> Result<PathBuf, String> {
    let (named, folder) = match std::env::var_os("SEGUE_JUDGES") {
        Some(folder) => ("SEGUE_JUDGES is", PathBuf::from(folder)),
        None => (
            "SEGUE_JUDGES is not set, and the folder beside the project would be",
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/judges"),
        ),
    };
    if folder.is_dir() {
        Ok(folder)
    } else {
        Err(format!("{named} {}, which is no folder", folder.display()))
    }
}

/// The folder of our own scripts.
#[must_use]
pub fn own_scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts")
}

/// `path`, or the scripts in it and in the folders below it by name.
///
/// # Errors
/// If something cannot be listed.
pub fn scripts(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in path.read_dir()? {
        let entry = entry?.path();
        if entry.is_dir() || entry.extension() == Some(OsStr::new("pkt")) {
            found.extend(scripts(&entry)?);
        }
    }
    found.sort();
    Ok(found)
}

/// The text of a file; bytes that are not UTF-8 are replaced, as they can only stand in comments.
///
/// # Errors
/// If it cannot be read.
#[expect(clippy::disallowed_methods, reason = "a driver: scripts are files")]
pub fn read(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
}
