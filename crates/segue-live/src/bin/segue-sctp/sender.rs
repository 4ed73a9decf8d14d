//! What an association is given to send.

use crate::setup;
use anyhow::{Context as _, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use segue_proto::sctp::{Association, SendError, SendOptions};
use segue_proto::units::{BitRate, Bytes};
use segue_proto::{Duration, Instant};
use segue_wire::Data;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Where messages come from.
#[derive(Debug)]
enum Source {
    Nothing,
    /// This many bytes of the synthetic sequence.
    Bytes(u64),
    File(SharedFile),
    /// Messages of the synthetic sequence, one per `every`, until the association ends.
    Paced {
        every: Duration,
        next: Option<Instant>,
    },
}

/// A file as one association reads it.
#[derive(Debug)]
pub(crate) struct SharedFile {
    file: Rc<File>,
    /// Where this association is in it; a pipe has no places.
    at: Option<u64>,
    /// Of the next message, what has been read.
    begun: Vec<u8>,
}

impl SharedFile {
    /// The next `size` bytes, or those that are left at the end; `None` as long as a pipe has less.
    fn next(&mut self, size: usize) -> io::Result<Option<Vec<u8>>> {
        let mut len = self.begun.len();
        self.begun.resize(size, 0);
        while len < size {
            match self.read(len) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) => {
                    self.begun.truncate(len);
                    let is_empty = error.kind() == io::ErrorKind::WouldBlock;
                    return if is_empty { Ok(None) } else { Err(error) };
                }
            }
        }
        self.begun.truncate(len);
        Ok(Some(core::mem::take(&mut self.begun)))
    }

    /// Reads what there is behind the first `len` bytes of the next message.
    fn read(&mut self, len: usize) -> io::Result<usize> {
        let into = &mut self.begun[len..];
        let Some(at) = &mut self.at else {
            // without a writer a pipe is at its end for read(2), and not for poll(2) until there has been one
            let mut fds = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
            return match poll(&mut fds, PollTimeout::ZERO)? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                _ => (&*self.file).read(into),
            };
        };
        let read = self.file.read_at(into, *at)?;
        *at += read as u64;
        Ok(read)
    }
}

/// The file that every association is sent: opened once, however many there are, if it is one that can be read at several
/// places.
#[derive(Debug)]
pub(crate) struct ToSend {
    path: PathBuf,
    opened: Option<Rc<File>>,
}

impl ToSend {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            opened: Some(Rc::new(setup::open_without_waiting(path)?)),
        })
    }

    pub(crate) fn is_same_file(&self, other: &Path) -> bool {
        self.opened
            .as_ref()
            .is_some_and(|file| setup::is_same_file(file, other))
    }

    /// For one more association.
    pub(crate) fn share(&mut self) -> Result<SharedFile> {
        let file = match self.opened.take() {
            Some(file) => file,
            None => Rc::new(setup::open_without_waiting(&self.path)?),
        };
        let is_regular = file.metadata().is_ok_and(|m| m.is_file());
        if is_regular {
            self.opened = Some(file.clone());
        }
        Ok(SharedFile {
            file,
            at: is_regular.then_some(0),
            begun: Vec::new(),
        })
    }
}

/// Sends messages, spread over the streams in turn.
#[derive(Debug)]
pub(crate) struct Sender {
    source: Source,
    size: usize,
    streams: u16,
    /// Message read and not yet taken.
    waiting: Option<Data>,
    offset: u64,
    messages: u64,
    done: bool,
    /// The association took no more before the end was reached.
    cut_short: bool,
}

impl Sender {
    fn new(source: Source, size: Bytes, streams: u16) -> Self {
        Self {
            source,
            size: size.bytes() as usize,
            streams,
            waiting: None,
            offset: 0,
            messages: 0,
            done: false,
            cut_short: false,
        }
    }

    pub(crate) fn nothing() -> Self {
        Self::new(Source::Nothing, Bytes::new(1), 1)
    }

    pub(crate) fn bytes(bytes: Bytes, size: Bytes, streams: u16) -> Self {
        Self::new(Source::Bytes(bytes.bytes()), size, streams)
    }

    /// A file goes over stream 0, so that it arrives in order.
    pub(crate) fn file(file: SharedFile, size: Bytes) -> Self {
        Self::new(Source::File(file), size, 1)
    }

    pub(crate) fn paced(rate: BitRate, size: Bytes, streams: u16) -> Self {
        let every = rate.time_for(size.bytes());
        Self::new(Source::Paced { every, next: None }, size, streams)
    }

    /// Whether there is anything to send at all.
    pub(crate) const fn has_source(&self) -> bool {
        !matches!(self.source, Source::Nothing)
    }

    /// Whether everything has been given to the association.
    pub(crate) const fn is_done(&self) -> bool {
        self.done
    }

    /// Whether a file or a number of bytes has an end that the association has not been given.
    pub(crate) const fn is_incomplete(&self) -> bool {
        matches!(self.source, Source::Bytes(_) | Source::File(_)) && (self.cut_short || !self.done)
    }

    pub(crate) const fn sent_bytes(&self) -> u64 {
        self.offset
    }

    pub(crate) const fn sent_messages(&self) -> u64 {
        self.messages
    }

    /// When the next message is due.
    pub(crate) const fn next_at(&self) -> Option<Instant> {
        match self.source {
            // while the send buffer is full, the association tells when there is room
            Source::Paced { next, .. } if self.waiting.is_none() => next,
            _ => None,
        }
    }

    /// What the next message is waited for at: a pipe that has nothing at the moment.
    pub(crate) fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            // while the send buffer is full, the association tells when there is room
            Source::File(file) if file.at.is_none() && self.waiting.is_none() && !self.done => {
                Some(file.file.as_fd())
            }
            _ => None,
        }
    }

    /// Gives the association what is due and what it has room for.
    pub(crate) fn send(&mut self, now: Instant, association: &mut Association) -> Result<()> {
        let streams = self.streams.min(association.outbound_streams()).max(1);
        loop {
            let Some(data) = self.next_message(now)? else {
                return Ok(());
            };
            let len = data.len() as u64;
            let stream_id = (self.messages % u64::from(streams)) as u16;
            match association.send(now, stream_id, data.clone(), SendOptions::default()) {
                Ok(()) => {
                    self.offset += len;
                    self.messages += 1;
                }
                Err(SendError::BufferFull) => {
                    self.waiting = Some(data);
                    return Ok(());
                }
                Err(SendError::Closing) => {
                    self.done = true;
                    self.cut_short = true;
                    return Ok(());
                }
                Err(error) => return Err(error).context("sending"),
            }
        }
    }

    fn next_message(&mut self, now: Instant) -> Result<Option<Data>> {
        if self.waiting.is_some() {
            return Ok(self.waiting.take());
        }
        let synthetic = |len: u64| Data::Synthetic {
            offset: self.offset,
            len: len as u32,
        };
        match &mut self.source {
            Source::Nothing => Ok(None),
            Source::Bytes(total) => {
                let left = *total - self.offset;
                self.done = left == 0;
                Ok((!self.done).then(|| synthetic(left.min(self.size as u64))))
            }
            Source::File(file) => {
                let Some(bytes) = file.next(self.size).context("reading the file to send")? else {
                    return Ok(None);
                };
                self.done = bytes.is_empty();
                Ok((!self.done).then(|| Data::Bytes(bytes.into())))
            }
            Source::Paced { every, next } => {
                let due = next.get_or_insert(now);
                if *due > now {
                    return Ok(None);
                }
                *due += *every;
                Ok(Some(synthetic(self.size as u64)))
            }
        }
    }
}
