//! The folder that a run writes to: captures while it goes, outputs of programs.

use crate::text::read_text;
use anyhow::Context as _;
use segue_sim::output::Trace;
use segue_sim::sink::{Sink, SinkError};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// The folder.
pub(super) struct Directory {
    path: PathBuf,
    captures: BTreeSet<String>,
    writer: Option<Writer>,
}

/// Writes captures in a thread of its own: whoever carries packets must not wait for a disk.
struct Writer {
    pieces: Sender<Piece>,
    thread: JoinHandle<io::Result<()>>,
}

/// Bytes for the end of a file.
struct Piece {
    name: String,
    bytes: Vec<u8>,
}

impl Directory {
    /// Makes it, if it is not there.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(path).with_context(|| path.display().to_string())?;
        Ok(Self {
            path: path.to_owned(),
            captures: BTreeSet::new(),
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

    /// Begins to write captures.
    pub(super) fn begin(&mut self) {
        let (pieces, waiting) = channel();
        let path = self.path.clone();
        let thread = std::thread::spawn(move || write(&path, &waiting));
        self.writer = Some(Writer { pieces, thread });
    }

    /// Ends to write captures: they are whole now.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        let Some(Writer { pieces, thread }) = self.writer.take() else {
            return Ok(());
        };
        drop(pieces);
        match thread.join() {
            Ok(written) => written.context("captures"),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Writes what comes, until nothing more will.
fn write(folder: &Path, pieces: &Receiver<Piece>) -> io::Result<()> {
    let mut files: BTreeMap<String, File> = BTreeMap::new();
    for piece in pieces {
        let path = folder.join(&piece.name);
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        if !files.contains_key(&piece.name) {
            files.insert(piece.name.clone(), create(&path).map_err(named)?);
        }
        if let Some(file) = files.get_mut(&piece.name) {
            file.write_all(&piece.bytes).map_err(named)?;
        }
    }
    Ok(())
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
}

impl Sink for Directory {
    fn capture(&mut self, name: &str, bytes: &[u8]) -> Result<(), SinkError> {
        let Some(writer) = &self.writer else {
            return Err(SinkError("no captures are being written".to_owned()));
        };
        if !self.captures.contains(name) {
            self.captures.insert(name.to_owned());
        }
        let piece = Piece {
            name: name.to_owned(),
            bytes: bytes.to_vec(),
        };
        // what went wrong is said at the end
        writer
            .pieces
            .send(piece)
            .map_err(|_| SinkError("captures can no longer be written".to_owned()))
    }

    fn rows(&mut self, _: Trace) -> Result<(), SinkError> {
        Ok(())
    }
}
