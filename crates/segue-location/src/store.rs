//! What a server has acknowledged, on disk: a snapshot of the zones, and a journal of the updates since.
//!
//! ```text
//! lock            held while a server runs: two of them would write over each other
//! snapshot        magic, generation, frames; replaced by rename, so always whole
//! journal.<g>     frames; g is the snapshot's generation
//!
//! frame           magic (4) | number (8) | length (4) | CRC-32C of number, length and body (4) | body
//! body            entries: length (4) | entry, as segue_proto::location::Server gives and takes them
//! ```
//!
//! A frame is written and synced as a whole before any answer that depends on it is sent; the next one is written
//! after that. So only the last frame can be torn, and what is torn was never acknowledged: it is cut off, and
//! [`Store::cut`] says so. A damaged frame that a whole one follows is not torn but damaged by something else, a file
//! that does not begin as a journal does is none, and a snapshot or a journal whose counterpart is gone is half of what
//! was acknowledged: the server refuses to start.

use anyhow::{Context as _, Result, bail};
use segue_proto::location::Server;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

const FRAME_MAGIC: [u8; 4] = *b"SgLf";
const SNAPSHOT_MAGIC: [u8; 8] = *b"SegueLM1";
const FRAME_HEADER: usize = 20;

/// Size of the journal from which on it is replaced by a snapshot, if that is smaller, bytes.
const COMPACT_FROM: u64 = 1 << 20;

/// The directory of a server.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    generation: u64,
    journal: File,
    journal_size: u64,
    snapshot_size: u64,
    /// Number of the next frame.
    next: u64,
    compact_from: u64,
    cut: Option<Cut>,
    _lock: File,
}

/// What was cut off a journal when it was opened: a record that was never acknowledged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The journal.
    pub file: PathBuf,
    /// How much of it.
    pub bytes: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.bytes == 1 { "" } else { "s" };
        write!(
            f,
            "{}: cut {} byte{plural} of an incomplete last record, which was never acknowledged",
            self.file.display(),
            self.bytes
        )
    }
}

impl Store {
    /// Opens the directory, or makes it, and brings `server` to the state that is kept there.
    ///
    /// # Errors
    /// What cannot be read, is damaged, or is in use.
    pub fn open(directory: &Path, server: &mut Server) -> Result<Self> {
        fs::create_dir_all(directory).with_context(|| format!("{}: cannot be made", directory.display()))?;
        let lock = open(&directory.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("{}: another server is using it", directory.display()),
            Err(TryLockError::Error(e)) => {
                return Err(e).with_context(|| format!("{}: cannot be locked", directory.display()));
            }
        }
        let snapshot_path = directory.join("snapshot");
        let snapshot = read_if_there(&snapshot_path)?;
        let snapshot_size = snapshot.as_ref().map_or(0, |s| s.len() as u64);
        let generation = match snapshot {
            None => 0,
            Some(bytes) => restore(&bytes, server).with_context(|| snapshot_path.display().to_string())?,
        };
        let path = journal_path(directory, generation);
        let bytes = match read_if_there(&path)? {
            Some(bytes) => bytes,
            // a journal is there before its snapshot is
            None if snapshot_size > 0 => bail!(
                "{}: missing: expected the journal that {} goes on in",
                path.display(),
                snapshot_path.display()
            ),
            None => {
                expect_no_journal(directory, &snapshot_path)?;
                Vec::new()
            }
        };
        let frames = Frames::read(&bytes).with_context(|| path.display().to_string())?;
        for entry in &frames.entries {
            server.replay(entry).with_context(|| path.display().to_string())?;
        }
        let mut journal = open(&path)?;
        let mut cut = None;
        if frames.good < bytes.len() {
            journal.set_len(frames.good as u64)?;
            cut = Some(Cut {
                file: path,
                bytes: (bytes.len() - frames.good) as u64,
            });
        }
        std::io::Seek::seek(&mut journal, std::io::SeekFrom::End(0))?;
        journal.sync_all()?;
        sync_directory(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            generation,
            journal,
            journal_size: frames.good as u64,
            snapshot_size,
            next: frames.next,
            compact_from: COMPACT_FROM,
            cut,
            _lock: lock,
        })
    }

    /// Compacts a journal of `bytes` already.
    #[must_use]
    pub fn compact_from(mut self, bytes: u64) -> Self {
        self.compact_from = bytes;
        self
    }

    /// What was cut off the journal when it was opened.
    #[must_use]
    pub const fn cut(&self) -> Option<&Cut> {
        self.cut.as_ref()
    }

    /// Makes `entries` durable, all or none of them.
    ///
    /// # Errors
    /// If it cannot: they may be on disk or not, and nothing more may be written or answered.
    pub fn append(&mut self, entries: &[Vec<u8>]) -> Result<()> {
        let frame = frame(self.next, entries);
        self.journal
            .write_all(&frame)
            .and_then(|()| self.journal.sync_data())
            .with_context(|| format!("{}: cannot be written", self.directory.display()))?;
        self.next += 1;
        self.journal_size += frame.len() as u64;
        Ok(())
    }

    /// Replaces the journal by a snapshot if it has grown enough.
    ///
    /// # Errors
    /// If files cannot be written; what was durable stays so.
    pub fn compact_if_due(&mut self, server: &Server) -> Result<bool> {
        if self.journal_size < self.compact_from.max(self.snapshot_size) {
            return Ok(false);
        }
        let generation = self.generation + 1;
        let path = journal_path(&self.directory, generation);
        let context = || format!("{}: cannot be written", self.directory.display());
        let journal = open(&path)?;
        journal.set_len(0).with_context(context)?;
        journal.sync_all().with_context(context)?;
        let mut bytes = SNAPSHOT_MAGIC.to_vec();
        bytes.extend_from_slice(&generation.to_be_bytes());
        bytes.extend_from_slice(&frame(0, &server.snapshot()));
        let temporary = self.directory.join("snapshot.new");
        let mut file = open(&temporary)?;
        file.set_len(0)
            .and_then(|()| file.write_all(&bytes))
            .and_then(|()| file.sync_all())
            .with_context(context)?;
        fs::rename(&temporary, self.directory.join("snapshot")).with_context(context)?;
        sync_directory(&self.directory)?;
        // From here on the old journal is of no use; a file that cannot be removed does no harm.
        let _ = fs::remove_file(journal_path(&self.directory, self.generation));
        self.generation = generation;
        self.journal = journal;
        self.journal_size = 0;
        self.snapshot_size = bytes.len() as u64;
        self.next = 0;
        Ok(true)
    }
}

/// The frames of a file.
struct Frames {
    entries: Vec<Vec<u8>>,
    /// Bytes up to the end of the last whole frame.
    good: usize,
    /// Number of the next one.
    next: u64,
}

impl Frames {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut frames = Self {
            entries: Vec::new(),
            good: 0,
            next: 0,
        };
        while let Some((len, entries)) = whole_frame(&bytes[frames.good..], frames.next) {
            frames.entries.extend(entries);
            frames.good += len;
            frames.next += 1;
        }
        let rest = &bytes[frames.good..];
        let later = |at: usize| {
            let number = rest
                .get(at + 4..at + 12)
                .and_then(|n| n.first_chunk())
                .map(|n| u64::from_be_bytes(*n));
            number.is_some_and(|n| n > frames.next && whole_frame(&rest[at..], n).is_some())
        };
        let starts = rest.windows(4).enumerate().filter(|(_, w)| **w == FRAME_MAGIC);
        if starts.map(|(at, _)| at).any(later) {
            bail!(
                "damaged at byte {}, and whole records follow: restore it from a copy",
                frames.good
            );
        }
        if frames.next == 0 && !rest.is_empty() && !may_be_torn(rest) {
            bail!("not a journal of a location server: expected a record at its beginning");
        }
        Ok(frames)
    }
}

/// Whether a journal without a whole frame is what a torn write of its first one can leave: the beginning of it, or
/// space that was set aside and not written.
fn may_be_torn(bytes: &[u8]) -> bool {
    let len = bytes.len().min(FRAME_MAGIC.len());
    bytes[..len] == FRAME_MAGIC[..len] || bytes.iter().all(|b| *b == 0)
}

/// Refuses a directory that has a journal but no snapshot for it to go on from.
fn expect_no_journal(directory: &Path, snapshot_path: &Path) -> Result<()> {
    let context = || format!("{}: cannot be read", directory.display());
    for entry in fs::read_dir(directory).with_context(context)? {
        let path = entry.with_context(context)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("journal.") {
            bail!(
                "{}: missing: expected the snapshot that {} goes on from",
                snapshot_path.display(),
                path.display()
            );
        }
    }
    Ok(())
}

/// The frame that `bytes` begin with, if it is whole and its number is `number`: its length and entries.
fn whole_frame(bytes: &[u8], number: u64) -> Option<(usize, Vec<Vec<u8>>)> {
    let (header, rest) = bytes.split_first_chunk::<FRAME_HEADER>()?;
    let field = |at: usize| {
        header
            .get(at..at + 4)?
            .first_chunk::<4>()
            .map(|b| u32::from_be_bytes(*b))
    };
    let body = rest.get(..field(12)? as usize)?;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&header[4..16]), body);
    if header[..4] != FRAME_MAGIC || header[4..12] != number.to_be_bytes() || field(16)? != crc {
        return None;
    }
    let mut entries = Vec::new();
    let mut left = body;
    while !left.is_empty() {
        let (len, more) = left.split_first_chunk::<4>()?;
        let (entry, more) = more.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        entries.push(entry.to_vec());
        left = more;
    }
    Some((FRAME_HEADER + body.len(), entries))
}

fn frame(number: u64, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    for entry in entries {
        body.extend_from_slice(&(entry.len() as u32).to_be_bytes());
        body.extend_from_slice(entry);
    }
    let mut out = FRAME_MAGIC.to_vec();
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&(body.len() as u32).to_be_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&out[4..16]), &body);
    out.extend_from_slice(&crc.to_be_bytes());
    out.extend_from_slice(&body);
    out
}

/// Takes a snapshot; its generation.
fn restore(bytes: &[u8], server: &mut Server) -> Result<u64> {
    let parts = bytes
        .strip_prefix(&SNAPSHOT_MAGIC)
        .and_then(|b| b.split_first_chunk::<8>());
    let (generation, rest) = parts.context("not a snapshot of a location server")?;
    let whole = whole_frame(rest, 0).filter(|(len, _)| *len == rest.len());
    let (_, entries) = whole.context("damaged: restore it from a copy")?;
    for entry in &entries {
        server.replay(entry)?;
    }
    Ok(u64::from_be_bytes(*generation))
}

fn journal_path(directory: &Path, generation: u64) -> PathBuf {
    directory.join(format!("journal.{generation}"))
}

fn open(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)
        .with_context(|| format!("{}: cannot be opened", path.display()))
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    match OpenOptions::new().read(true).open(path) {
        Ok(mut file) => {
            file.read_to_end(&mut bytes)
                .with_context(|| format!("{}: cannot be read", path.display()))?;
            Ok(Some(bytes))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| format!("{}: cannot be read", path.display())),
    }
}

/// New names are durable only once their directory is.
fn sync_directory(directory: &Path) -> Result<()> {
    let opened = OpenOptions::new().read(true).open(directory);
    opened
        .and_then(|d| d.sync_all())
        .with_context(|| format!("{}: cannot be synced", directory.display()))
}
