//! Files that get their names when they are whole.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Bytes that wait to be written.
const BUFFER_BYTES: usize = 1 << 18;

/// Longest part of its name that goes into the temporary one: file systems take 255 bytes.
const NAME_CHARACTERS: usize = 40;

/// A temporary file that is younger may not have its lock yet.
const YOUNG: Duration = Duration::from_secs(60);

/// Links that are followed to a file, as many as Linux does.
const MOST_LINKS: usize = 40;

/// A file under a temporary name in the folder where it is to be. Dropped before [`PartFile::finish`], it is removed; what a
/// process leaves that is killed, the next that writes into that folder removes.
///
/// Errors name the file that it is to become.
pub(crate) struct PartFile {
    path: PathBuf,
    part: PathBuf,
    out: BufWriter<File>,
    finished: bool,
}

impl PartFile {
    /// Begins the file `path`, in a folder that is made if it is missing; a link is followed, so that what it points to is
    /// replaced, or made if nothing is there.
    pub fn create(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| named(path, &e))?;
        }
        let path = follow(path).map_err(|e| named(path, &e))?;
        let named = |error| named(&path, &error);
        if path.exists() && !path.is_file() {
            let expected = io::Error::other("expected a regular file, or none");
            return Err(named(expected));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.chars().take(NAME_CHARACTERS).collect();
        let (part, file) = begin(&path, &name).map_err(named)?;
        // who writes has the lock; where there are none, nothing is removed
        let _ = file.try_lock();
        if let Some(folder) = path.parent() {
            remove_left_behind(folder);
        }
        Ok(Self {
            out: BufWriter::with_capacity(BUFFER_BYTES, file),
            path,
            part,
            finished: false,
        })
    }

    /// The file is whole: it gets its name.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        std::fs::rename(&self.part, &self.path).map_err(|e| named(&self.path, &e))?;
        self.finished = true;
        Ok(())
    }
}

/// Where links lead, whether or not something is there.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut end = path.to_owned();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&end) {
            Ok(target) => end = end.parent().unwrap_or(Path::new("")).join(target),
            // no link, or nothing at all
            Err(_) => return Ok(end),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// A new file beside `path`. In a container a process may have the number of one that was killed: what that has left is
/// passed over.
fn begin(path: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let part = path.with_file_name(format!(".{name}.{}-{number}.part", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&part) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return Ok((part, opened?)),
        }
    }
}

/// Removes temporary files in a folder that nobody has a lock on, once in the life of this process.
fn remove_left_behind(folder: &Path) {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let is_new = SEEN.lock().is_ok_and(|mut seen| seen.insert(folder.to_owned()));
    let entries = is_new.then(|| std::fs::read_dir(folder).ok()).flatten();
    for entry in entries.into_iter().flatten().flatten() {
        let is_part = entry.file_name().to_str().is_some_and(is_of_part_file);
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if !is_part || !entry.file_type().is_ok_and(|t| t.is_file()) || age().is_none_or(|age| age < YOUNG) {
            continue;
        }
        let left = OpenOptions::new().read(true).open(entry.path());
        let forgotten = left.is_ok_and(|file| file.try_lock().is_ok());
        if forgotten {
            // nothing can be done about one that cannot be removed
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether a name is one that `begin` gives.
fn is_of_part_file(name: &str) -> bool {
    let inner = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".part"));
    let numbers = inner.and_then(|inner| inner.rsplit_once('.')?.1.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|e| named(&self.path, &e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|e| named(&self.path, &e))
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.finished {
            // nothing can be done about one that cannot be removed
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

/// The error with the name of the file, in the words of the system.
fn named(path: &Path, error: &io::Error) -> io::Error {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or_default();
    io::Error::new(error.kind(), format!("{}: {words}", path.display()))
}
