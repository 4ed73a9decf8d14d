//! A server that runs beside a test, and its files.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Child;

/// A program that is killed when the test is done with it.
pub struct Killed(pub Child);

impl Drop for Killed {
    /// SIGKILL.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes a file that nobody else may read: it may have a key.
pub fn write(path: &Path, text: &str) {
    let file = std::fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path);
    file.and_then(|mut f| f.write_all(text.as_bytes()))
        .expect("written");
}
