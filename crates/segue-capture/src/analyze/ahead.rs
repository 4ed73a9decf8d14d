//! A source that a thread of its own reads ahead: unpacking goes on beside the analysis, and who waits for packets of a live
//! capture need not wait for ever.

use super::source::Source;
use super::watch::Watch;
use std::io::{Error, ErrorKind, Read, Result};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

/// Read at a time, and how much of it may wait.
const CHUNK: usize = 256 << 10;
const WAITING: usize = 4;

/// How long a live source is waited for before something else is seen to.
const PATIENCE: Duration = Duration::from_millis(50);

/// Bytes that were read: so many of a buffer.
struct Chunk {
    buffer: Vec<u8>,
    len: usize,
}

/// A source that is read ahead.
pub(super) struct Ahead {
    chunks: Receiver<Result<Chunk>>,
    /// Buffers that are free again.
    free: SyncSender<Vec<u8>>,
    current: Chunk,
    /// Of the current one, so much was given out.
    at: usize,
    at_end: bool,
    /// Of a live source: who may end it.
    live: Option<Arc<Watch>>,
}

impl Ahead {
    /// Reads this source to its end.
    pub(super) fn new(source: Source) -> Self {
        Self::begin(source, None)
    }

    /// Reads a source that may let one wait: then `read` gives [`ErrorKind::WouldBlock`] after a while. It ends when the watch
    /// ends it, whether it has more to say or not.
    pub(super) fn live(source: Source, watch: Arc<Watch>) -> Self {
        Self::begin(source, Some(watch))
    }

    fn begin(source: Source, live: Option<Arc<Watch>>) -> Self {
        let (filled, chunks) = sync_channel(WAITING);
        let (free, emptied) = sync_channel(WAITING + 2);
        std::thread::spawn(move || read_all(source, &filled, &emptied));
        Self {
            chunks,
            free,
            current: Chunk {
                buffer: Vec::new(),
                len: 0,
            },
            at: 0,
            at_end: false,
            live,
        }
    }

    /// Waits for the next chunk.
    fn next(&mut self) -> Result<()> {
        let gone = || Error::other("what reads it has failed");
        let next = match &self.live {
            None => self.chunks.recv().map_err(|_| gone())?,
            Some(watch) => match self.chunks.recv_timeout(PATIENCE) {
                Ok(next) => next,
                Err(RecvTimeoutError::Timeout) if watch.is_ended() => {
                    self.at_end = true;
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => return Err(ErrorKind::WouldBlock.into()),
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            },
        }?;
        self.at_end = next.len == 0;
        let old = core::mem::replace(&mut self.current, next);
        self.at = 0;
        // a buffer too many is dropped
        let _ = self.free.try_send(old.buffer);
        Ok(())
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.at == self.current.len && !self.at_end {
            self.next().inspect_err(|error| {
                self.at_end |= error.kind() != ErrorKind::WouldBlock;
            })?;
        }
        let waiting = self.current.buffer.get(self.at..self.current.len);
        let waiting = waiting.unwrap_or_default();
        let count = waiting.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), waiting.get(..count)) {
            to.copy_from_slice(from);
        }
        self.at += count;
        Ok(count)
    }
}

/// Reads until the end, an error, or until nobody wants more. An empty chunk is the end.
fn read_all(mut source: Source, filled: &SyncSender<Result<Chunk>>, emptied: &Receiver<Vec<u8>>) {
    loop {
        let mut buffer = match emptied.try_recv() {
            Ok(buffer) => buffer,
            Err(TryRecvError::Empty) => Vec::new(),
            Err(TryRecvError::Disconnected) => return,
        };
        buffer.resize(CHUNK, 0);
        let read = match source.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read,
        };
        let is_last = !matches!(read, Ok(1..));
        let chunk = read.map(|len| Chunk { buffer, len });
        if filled.send(chunk).is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn everything_comes_in_order_and_errors_come_last() {
        struct Then(Cursor<Vec<u8>>, Option<&'static str>);
        impl Read for Then {
            fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
                let len = buffer.len().min(1000);
                match (self.0.read(&mut buffer[..len])?, self.1) {
                    (0, Some(words)) => Err(Error::other(words)),
                    (count, _) => Ok(count),
                }
            }
        }
        let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        for words in [None, Some("broken")] {
            let mut ahead = Ahead::new(Box::new(Then(Cursor::new(bytes.clone()), words)));
            let mut out = Vec::new();
            let error = ahead.read_to_end(&mut out).err().map(|e| e.to_string());
            assert_eq!((out.len(), error.as_deref()), (bytes.len(), words));
            assert!(out == bytes);
            assert_eq!(ahead.read(&mut [0; 9]).unwrap(), 0);
        }
    }

    #[test]
    fn a_reader_that_panics_is_an_error() {
        struct Panics;
        impl Read for Panics {
            fn read(&mut self, _: &mut [u8]) -> Result<usize> {
                std::panic::resume_unwind(Box::new("quietly"))
            }
        }
        assert!(Ahead::new(Box::new(Panics)).read(&mut [0; 9]).is_err());
    }

    #[test]
    fn a_live_source_that_is_silent_does_not_hold_up_its_reader_and_can_be_ended() {
        struct Silent(Receiver<u8>);
        impl Read for Silent {
            fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
                let byte = self.0.recv().map_err(|_| Error::other("gone"))?;
                buffer[0] = byte;
                Ok(1)
            }
        }
        let (say, heard) = sync_channel(1);
        let watch = Arc::new(Watch::default());
        let mut ahead = Ahead::live(Box::new(Silent(heard)), Arc::clone(&watch));
        let mut buffer = [0; 9];
        assert_eq!(ahead.read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        say.send(5).unwrap();
        let read = core::iter::repeat_with(|| ahead.read(&mut buffer)).find(Result::is_ok);
        assert_eq!(read.unwrap().unwrap(), 1);
        assert_eq!(ahead.read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        watch.end();
        assert_eq!(ahead.read(&mut buffer).unwrap(), 0);
    }
}
