//! What a server has acknowledged, on disk: a table of [redb](https://docs.rs/redb), whose rows are
//! [`segue_proto::location::Row`]s.
//!
//! ```text
//! lock          held while a server runs: two of them would write over each other
//! zones.redb    the table
//! ```
//!
//! All changes that wait are written in one transaction, which costs one sync, before any answer that depends on them is
//! sent. A transaction that was not finished is not there when the table is opened again.

use anyhow::{Context as _, Result, bail};
use redb::{
    Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, StorageError, TableDefinition,
};
use segue_proto::location::{JournalEntry, Server, ServerConfig};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");

/// Memory for pages of the table, bytes: the zones themselves are in memory, so it is read once.
const CACHE: usize = 64 << 20;

/// The directory of a server.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    table: Table,
    _lock: File,
}

impl Store {
    /// Opens the directory, or makes it; the server that goes on from there.
    ///
    /// # Errors
    /// What cannot be read, is damaged, or is in use.
    pub fn open(directory: &Path, config: ServerConfig) -> Result<(Self, Server)> {
        make_directory(directory)?;
        let lock = open(&directory.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("{}: another server is using it", directory.display()),
            Err(TryLockError::Error(e)) => {
                return Err(e).with_context(|| format!("{}: cannot be locked", directory.display()));
            }
        }
        refuse_journals(directory)?;
        let path = directory.join("zones.redb");
        if !path.exists() {
            create(directory, &path, take_step)?;
        }
        let database = builder().open(&path);
        let database = database.map_err(|e| anyhow::anyhow!("{}: {}", path.display(), what_is_wrong(&e)))?;
        let table = Table::new(database);
        let server = table.server(config).with_context(|| path.display().to_string())?;
        let store = Self {
            path,
            table,
            _lock: lock,
        };
        Ok((store, server))
    }

    /// Makes `entries` durable, all or none of them.
    ///
    /// # Errors
    /// If it cannot: they may be on disk or not, and nothing more may be written or answered.
    pub fn write(&self, entries: &[JournalEntry]) -> Result<()> {
        self.table
            .write(entries)
            .with_context(|| format!("{}: cannot be written", self.path.display()))
    }
}

/// The rows, wherever the database has its bytes.
#[derive(Debug)]
pub struct Table(Database);

impl Table {
    /// The rows of this database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }

    /// The server that goes on from them. What is new in its configuration has been written.
    ///
    /// # Errors
    /// What is no row, or cannot be read or written.
    pub fn server(&self, config: ServerConfig) -> Result<Server> {
        let writing = self.0.begin_write()?;
        // So that it is there to be read.
        writing.open_table(ROWS)?;
        writing.commit()?;
        let table = self.0.begin_read()?.open_table(ROWS)?;
        let rows = table.iter()?.map(|row| {
            let (key, value) = row?;
            Ok((key.value().to_vec(), value.value().to_vec()))
        });
        let mut server = Server::restored::<anyhow::Error>(config, rows)?;
        let new: Vec<_> = std::iter::from_fn(|| server.poll_journal()).collect();
        if let Some(last) = new.last() {
            self.write(&new)?;
            server.handle_durable(last.number);
        }
        Ok(server)
    }

    /// Makes `entries` durable with one sync, all or none of them.
    ///
    /// # Errors
    /// If it cannot.
    pub fn write(&self, entries: &[JournalEntry]) -> Result<()> {
        let writing = self.0.begin_write()?;
        {
            let mut table = writing.open_table(ROWS)?;
            for row in entries.iter().flat_map(|e| &e.rows) {
                match &row.value {
                    Some(value) => table.insert(&row.key[..], &value[..])?,
                    None => table.remove(&row.key[..])?,
                };
            }
        }
        writing.commit()?;
        Ok(())
    }
}

/// How a database is opened: damage that is not the server's own is an error, and not a panic later.
#[must_use]
pub fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE).set_check_integrity_on_open(true);
    builder
}

/// What is done to files to make one.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    /// An empty table is written here, in place of whatever there is.
    Write(PathBuf),
    /// What is here is made durable: the bytes of a file, the names in a directory.
    Sync(PathBuf),
    Rename(PathBuf, PathBuf),
}

/// A table that is whole or not there, however this is interrupted; and there once this is done.
fn create(directory: &Path, path: &Path, mut take: impl FnMut(Step) -> Result<()>) -> Result<()> {
    let temporary = directory.join("zones.new");
    let steps = [
        Step::Write(temporary.clone()),
        Step::Sync(temporary.clone()),
        Step::Rename(temporary, path.to_owned()),
        Step::Sync(directory.to_owned()),
    ];
    for step in steps {
        take(step).with_context(|| format!("{}: cannot be made", path.display()))?;
    }
    Ok(())
}

fn take_step(step: Step) -> Result<()> {
    match step {
        Step::Write(path) => {
            match fs::remove_file(&path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
                _ => {}
            }
            drop(builder().create(&path)?);
        }
        Step::Sync(path) => sync(&path)?,
        Step::Rename(from, to) => fs::rename(from, to)?,
    }
    Ok(())
}

/// Refuses to begin anew where zones are kept as they were before the first release.
fn refuse_journals(directory: &Path) -> Result<()> {
    let context = || format!("{}: cannot be read", directory.display());
    for entry in fs::read_dir(directory).with_context(context)? {
        let path = entry.with_context(context)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == "snapshot" || name.starts_with("journal.") {
            bail!(
                "{}: zones as they were kept before the first release, which are not read: expected zones.redb",
                path.display()
            );
        }
    }
    Ok(())
}

fn what_is_wrong(error: &DatabaseError) -> String {
    match error {
        DatabaseError::DatabaseAlreadyOpen => "another process is using it".to_owned(),
        DatabaseError::Storage(StorageError::Io(e)) if e.kind() == std::io::ErrorKind::InvalidData => {
            "not a table of a location server".to_owned()
        }
        DatabaseError::Storage(StorageError::Corrupted(what)) => {
            format!("damaged ({what}): restore it from a copy")
        }
        other => format!("cannot be opened: {other}"),
    }
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

/// The directory; its name is durable once the one that it is in has been synced.
fn make_directory(directory: &Path) -> Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(directory).with_context(|| format!("{}: cannot be made", directory.display()))?;
    match directory.parent() {
        Some(parent) if parent != Path::new("") => sync(parent),
        _ => sync(Path::new(".")),
    }
}

/// Makes the bytes of a file durable, or the names in a directory.
fn sync(path: &Path) -> Result<()> {
    let opened = OpenOptions::new().read(true).open(path);
    opened
        .and_then(|file| file.sync_all())
        .with_context(|| format!("{}: cannot be synced", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// What a directory has after a power failure: of each name whether its file is whole. Names are durable when the
    /// directory is synced, or before; bytes when the file is.
    #[derive(Clone, Default)]
    struct AfterFailure {
        names: BTreeMap<PathBuf, usize>,
        durable_names: BTreeMap<PathBuf, usize>,
        whole: Vec<bool>,
    }

    impl AfterFailure {
        fn take(&mut self, directory: &Path, step: Step) {
            match step {
                Step::Write(path) => {
                    self.names.insert(path, self.whole.len());
                    self.whole.push(false);
                }
                Step::Sync(path) if path == directory => self.durable_names = self.names.clone(),
                Step::Sync(path) => self.whole[self.names[&path]] = true,
                Step::Rename(from, to) => {
                    let file = self.names.remove(&from).expect("a file");
                    self.names.insert(to, file);
                }
            }
        }

        /// Whether the file is whole, if there is one: with the names that are surely there, and with all of them.
        fn is_whole(&self, path: &Path) -> [Option<bool>; 2] {
            [&self.durable_names, &self.names].map(|names| names.get(path).map(|file| self.whole[*file]))
        }
    }

    #[test]
    fn a_table_is_whole_or_not_there_whenever_the_power_fails_and_there_at_the_end() {
        let (directory, path) = (Path::new("state"), Path::new("state/zones.redb"));
        let mut disk = AfterFailure::default();
        create(directory, path, |step| {
            disk.take(directory, step);
            assert!(!disk.is_whole(path).contains(&Some(false)), "half a table");
            Ok(())
        })
        .expect("made");
        assert_eq!(disk.is_whole(path), [Some(true); 2]);
    }
}
