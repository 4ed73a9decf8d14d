//! Where captures and tables go while a run goes. A run keeps little of them: what it records grows without bound.

use crate::output::{CaptureFile, Trace};

/// Takes what a run records, piece by piece. The simulator opens no file: the driver may.
pub trait Sink {
    /// More of a capture: the next bytes of the pcapng file of this name.
    ///
    /// # Errors
    /// That the run has to end, and why.
    fn capture(&mut self, file: &str, bytes: &[u8]) -> Result<(), SinkError>;

    /// The rows that have been recorded since the last call; cells come with the first.
    ///
    /// # Errors
    /// That the run has to end, and why.
    fn rows(&mut self, rows: Trace) -> Result<(), SinkError>;
}

/// Why something could not be taken: a line that names the file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);

/// Keeps everything in memory.
#[derive(Debug, Default)]
pub struct Memory {
    /// Captures by name.
    pub captures: Vec<CaptureFile>,
    /// Tables, if any were recorded.
    pub trace: Option<Trace>,
}

impl Sink for Memory {
    fn capture(&mut self, file: &str, bytes: &[u8]) -> Result<(), SinkError> {
        match self.captures.iter_mut().find(|(name, _)| name == file) {
            Some((_, content)) => content.extend_from_slice(bytes),
            None => self.captures.push((file.to_owned(), bytes.to_vec())),
        }
        Ok(())
    }

    fn rows(&mut self, rows: Trace) -> Result<(), SinkError> {
        match &mut self.trace {
            Some(trace) => trace.append(rows),
            None => self.trace = Some(rows),
        }
        Ok(())
    }
}
