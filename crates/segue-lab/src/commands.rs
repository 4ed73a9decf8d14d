//! Commands on the standard input, a line each.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::{AsFd, BorrowedFd};

/// What is read of them and not yet obeyed is all here: [`io::Stdin`] has a buffer of its own, of which poll(2) does not know.
pub(crate) struct Commands(BufReader<File>);

impl Commands {
    /// Those of this program's standard input.
    pub(crate) fn new() -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Self(BufReader::new(File::from(input))))
    }

    /// Waits for the next; nothing at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line)?;
        Ok((read > 0).then(|| line.trim().to_owned()))
    }

    /// Whether there are more that have been read already: for these the descriptor is not ready.
    pub(crate) fn has_more(&self) -> bool {
        !self.0.buffer().is_empty()
    }

    /// Has all of them obeyed that are there, once the descriptor is ready; `false` at the end.
    pub(crate) fn obey(&mut self, mut obey: impl FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<bool> {
        loop {
            let Some(command) = self.next()? else {
                return Ok(false);
            };
            obey(&command)?;
            if !self.has_more() {
                return Ok(true);
            }
        }
    }
}

impl AsFd for Commands {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}
