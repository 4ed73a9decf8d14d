//! Where the rows of a result go while a run goes on: a file that has no name, beside the captures.
//!
//! The loop that carries packets writes it itself, some kilobytes a second into the page cache, and reads what still changes.
//! Were it to wait for the disk there, packets would be late, and that is said.

use anyhow::Context as _;
use nix::unistd::{mkstemp, unlink};
use segue_capture::rows::{Spill, Store};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows that leave memory at a time.
const BLOCK: usize = 16;

/// The file.
#[derive(Debug)]
struct Unnamed {
    file: File,
    /// What it is called in messages.
    name: String,
    /// Room up to here is somebody's.
    reserved: AtomicU64,
}

/// A file in this folder, which is gone when nobody has it open any more.
pub(super) fn store(folder: &Path) -> anyhow::Result<Spill> {
    let template = folder.join("rows.XXXXXX");
    let made = mkstemp(&template).and_then(|(file, path)| {
        unlink(&path)?;
        Ok((file, path))
    });
    let (file, path) = made.with_context(|| template.display().to_string())?;
    Ok(Spill::new(
        Unnamed {
            file: file.into(),
            name: path.display().to_string(),
            reserved: AtomicU64::new(0),
        },
        BLOCK,
    ))
}

impl Unnamed {
    fn named(&self, done: io::Result<()>) -> Result<(), String> {
        done.map_err(|error| format!("{} (rows of the result): {error}", self.name))
    }
}

impl Store for Unnamed {
    fn reserve(&self, bytes: u64) -> u64 {
        self.reserved.fetch_add(bytes, Ordering::Relaxed)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), String> {
        self.named(self.file.write_all_at(bytes, at))
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), String> {
        self.named(self.file.read_exact_at(bytes, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_capture::rows::Rows;
    use std::fs;

    #[test]
    fn rows_are_in_a_file_without_a_name() {
        let folder = std::env::temp_dir().join(format!("segue-lab-rows-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let spill = store(&folder).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(&folder).unwrap();
        let mut lists = [Rows::default(), Rows::default()];
        lists.iter_mut().for_each(|list| list.keep_in(&spill));
        for number in 0..1000_u64 {
            lists.iter_mut().for_each(|list| list.push(number));
        }
        lists[0].update(3, |row| *row = 7);
        assert_eq!((lists[0].get(3), lists[1].get(3)), (Some(7), Some(3)));
        for list in &mut lists {
            list.recall();
            assert!(list.iter().skip(4).eq(4..1000));
        }
        assert_eq!(spill.failure(), None);
    }

    #[test]
    fn a_folder_that_is_not_there_and_a_disk_that_is_full_are_named() {
        let error = store(Path::new("/nowhere")).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "/nowhere/rows.XXXXXX: ENOENT: No such file or directory"
        );
        let full = Unnamed {
            file: fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open("/dev/full")
                .unwrap(),
            name: "/out/rows.1".to_owned(),
            reserved: AtomicU64::new(0),
        };
        let spill = Spill::new(full, 1);
        let mut list = Rows::default();
        list.keep_in(&spill);
        (0..3_u8).for_each(|number| list.push(number));
        let why = "/out/rows.1 (rows of the result): No space left on device (os error 28)";
        assert_eq!(spill.failure(), Some(why));
        assert!(list.iter().eq(0..3));
    }
}
