//! A source that a thread of its own reads ahead: unpacking goes on beside the analysis, and who waits for packets of a live
//! capture need not wait for ever.

use super::source::Source;
use super::watch::Watch;
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

/// Read at a time, and how many of these may wait.
const CHUNK: usize = 128 << 10;
const WAITING: usize = 2;

/// Room before each chunk, for what is left of the one before it.
pub(super) const ROOM: usize = 64 << 10;

/// How long a live source is waited for before something else is seen to.
const PATIENCE: Duration = Duration::from_millis(50);

/// Bytes that were read: those of a buffer from [`ROOM`] on, `len` of them.
pub(super) struct Chunk {
    pub buffer: Vec<u8>,
    pub len: usize,
}

/// A source that is read ahead.
pub(super) struct Ahead {
    chunks: Receiver<Result<Chunk>>,
    /// Buffers that are free again.
    free: SyncSender<Vec<u8>>,
    /// Of a live source: who may end it.
    live: Option<Arc<Watch>>,
}

impl Ahead {
    /// Reads this source to its end.
    pub(super) fn new(source: Source) -> Self {
        Self::begin(source, None)
    }

    /// Reads a source that may let one wait: then `next` gives [`ErrorKind::WouldBlock`] after a while. It ends when the watch
    /// ends it, whether it has more to say or not.
    pub(super) fn live(source: Source, watch: Arc<Watch>) -> Self {
        Self::begin(source, Some(watch))
    }

    fn begin(source: Source, live: Option<Arc<Watch>>) -> Self {
        let (filled, chunks) = sync_channel(WAITING);
        let (free, emptied) = sync_channel(WAITING + 2);
        std::thread::spawn(move || read_all(source, &filled, &emptied));
        Self { chunks, free, live }
    }

    /// Waits for the next chunk; there is none at the end. After that, or after an error, it is not asked again.
    pub(super) fn next(&self) -> Result<Option<Chunk>> {
        let gone = || Error::other("what reads it has failed");
        let next = match &self.live {
            None => self.chunks.recv().map_err(|_| gone())?,
            Some(watch) => match self.chunks.recv_timeout(PATIENCE) {
                Ok(next) => next,
                Err(RecvTimeoutError::Timeout) if watch.is_ended() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => return Err(ErrorKind::WouldBlock.into()),
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            },
        }?;
        Ok(Some(next).filter(|chunk| chunk.len > 0))
    }

    /// Takes a buffer back that is not needed any more.
    pub(super) fn give_back(&self, buffer: Vec<u8>) {
        // one too many, or one that was made larger, is dropped
        if buffer.capacity() <= ROOM + CHUNK {
            let _ = self.free.try_send(buffer);
        }
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
        buffer.resize(ROOM + CHUNK, 0);
        let read = match source.read(buffer.get_mut(ROOM..).unwrap_or_default()) {
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
    use std::io::{Cursor, Read};

    /// All bytes, and what went wrong in the end.
    fn all(ahead: &Ahead) -> (Vec<u8>, Option<String>) {
        let mut out = Vec::new();
        loop {
            match ahead.next() {
                Ok(Some(chunk)) => {
                    out.extend_from_slice(&chunk.buffer[ROOM..][..chunk.len]);
                    ahead.give_back(chunk.buffer);
                }
                Ok(None) => return (out, None),
                Err(error) => return (out, Some(error.to_string())),
            }
        }
    }

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
            let ahead = Ahead::new(Box::new(Then(Cursor::new(bytes.clone()), words)));
            let (out, error) = all(&ahead);
            assert!(out == bytes);
            assert_eq!(error.as_deref(), words);
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
        assert!(Ahead::new(Box::new(Panics)).next().is_err());
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
        let waits = |ahead: &Ahead| ahead.next().is_err_and(|e| e.kind() == ErrorKind::WouldBlock);
        let (say, heard) = sync_channel(1);
        let watch = Arc::new(Watch::default());
        let ahead = Ahead::live(Box::new(Silent(heard)), Arc::clone(&watch));
        assert!(waits(&ahead));
        say.send(5).unwrap();
        let read = core::iter::repeat_with(|| ahead.next()).find(Result::is_ok);
        assert_eq!(read.unwrap().unwrap().unwrap().len, 1);
        assert!(waits(&ahead));
        watch.end();
        assert!(ahead.next().unwrap().is_none());
    }
}
