//! The folder that a run writes to: captures and tables while it goes, outputs of programs.

use crate::text::read_text;
use anyhow::Context as _;
use segue_sim::output::Trace;
use segue_sim::sink::{Sink, SinkError};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// The folder.
pub(super) struct Directory {
    path: PathBuf,
    captures: BTreeSet<String>,
    /// The file for tables, if they are wanted.
    tables: Option<PathBuf>,
    writer: Option<Writer>,
}

/// Writes captures and tables in a thread of its own: whoever carries packets must not wait for a disk.
struct Writer {
    pieces: Sender<Piece>,
    thread: JoinHandle<io::Result<()>>,
}

/// Something for the end of a file.
struct Piece {
    path: PathBuf,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    /// Rows of all tables, by column: a line of JSON.
    Rows(Box<Trace>),
}

impl Directory {
    /// Makes it, if it is not there.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(path).with_context(|| path.display().to_string())?;
        Ok(Self {
            path: path.to_owned(),
            captures: BTreeSet::new(),
            tables: None,
            writer: None,
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it, to be written from its beginning.
    pub(super) fn create(&self, name: &str) -> anyhow::Result<File> {
        let path = self.path.join(name);
        create(&path).with_context(|| path.display().to_string())
    }

    /// What is in a file of it.
    pub(super) fn read(&self, name: &str) -> anyhow::Result<String> {
        read_text(&self.path.join(name))
    }

    /// The captures that were written.
    pub(super) fn captures(&self) -> Vec<PathBuf> {
        self.captures.iter().map(|name| self.path.join(name)).collect()
    }

    /// Begins to write captures, and the tables of the run into this file.
    pub(super) fn begin(&mut self, tables: Option<PathBuf>) -> anyhow::Result<()> {
        let (pieces, waiting) = channel();
        let thread = std::thread::Builder::new().spawn(move || write(&waiting));
        let thread = thread.context("a thread")?;
        self.writer = Some(Writer { pieces, thread });
        self.tables = tables;
        Ok(())
    }

    /// Ends to write them: they are whole now.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        let Some(Writer { pieces, thread }) = self.writer.take() else {
            return Ok(());
        };
        drop(pieces);
        match thread.join() {
            Ok(written) => written.context("what is recorded"),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Writes what comes, until nothing more will.
fn write(pieces: &Receiver<Piece>) -> io::Result<()> {
    let mut files: BTreeMap<PathBuf, File> = BTreeMap::new();
    for Piece { path, content } in pieces {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let file = match files.entry(path.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(create(&path).map_err(named)?),
        };
        let bytes = match content {
            Content::Bytes(bytes) => bytes,
            Content::Rows(rows) => {
                let mut line = serde_json::to_vec(&rows)?;
                line.push(b'\n');
                line
            }
        };
        file.write_all(&bytes).map_err(named)?;
    }
    Ok(())
}

/// Makes it, or writes it anew. A pipe is refused: it would wait for a reader.
fn create(path: &Path) -> io::Result<File> {
    if fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo()) {
        return Err(io::Error::other("is a pipe: expected a file, or nothing there"));
    }
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
}

impl Directory {
    /// Has it written. If what came before could not be, that is said.
    fn send(&mut self, path: PathBuf, content: Content) -> Result<(), SinkError> {
        let Some(writer) = &self.writer else {
            return Err(SinkError("nothing is being recorded".to_owned()));
        };
        if writer.pieces.send(Piece { path, content }).is_ok() {
            return Ok(());
        }
        let why = self.end().err();
        let why = why.map_or_else(|| "nobody writes it".to_owned(), |error| format!("{error:#}"));
        Err(SinkError(why))
    }
}

impl Sink for Directory {
    fn capture(&mut self, name: &str, bytes: &[u8]) -> Result<(), SinkError> {
        if !self.captures.contains(name) {
            self.captures.insert(name.to_owned());
        }
        self.send(self.path.join(name), Content::Bytes(bytes.to_vec()))
    }

    fn rows(&mut self, rows: Trace) -> Result<(), SinkError> {
        match &self.tables {
            Some(file) => self.send(file.clone(), Content::Rows(Box::new(rows))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_full_is_what_is_said() {
        // writes to this device fail as those to a full disk do
        let folder = nix::unistd::mkdtemp(&std::env::temp_dir().join("segue-lab-test.XXXXXX")).unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.join("full")).unwrap();
        let mut directory = Directory::open(&folder).unwrap();
        directory.begin(None).unwrap();
        // it is another thread that finds it out
        let tries = (0..1_000_000).find_map(|_| {
            std::thread::yield_now();
            directory.capture("full", b"x").err()
        });
        fs::remove_dir_all(folder).unwrap();
        assert!(tries.unwrap().0.contains("No space left on device"));
    }

    #[test]
    fn a_pipe_in_the_place_of_an_output_is_refused() {
        let folder = nix::unistd::mkdtemp(&std::env::temp_dir().join("segue-lab-test.XXXXXX")).unwrap();
        nix::unistd::mkfifo(&folder.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let refused = Directory::open(&folder).unwrap().create("pipe").unwrap_err();
        fs::remove_dir_all(&folder).unwrap();
        assert!(format!("{refused:#}").ends_with("pipe: is a pipe: expected a file, or nothing there"));
    }
}
