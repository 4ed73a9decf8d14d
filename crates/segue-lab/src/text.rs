//! Files of text that the user names.

use anyhow::Context as _;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::path::Path;

/// What is in a file.
///
/// # Errors
/// It cannot be read; the error names it.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = OpenOptions::new()
        .read(true)
        .open(path)
        .and_then(|mut file| file.read_to_string(&mut text));
    read.with_context(|| path.display().to_string())?;
    Ok(text)
}
